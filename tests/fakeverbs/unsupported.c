/*
 * Functions that programs like perftest link to and that are not played: each is recorded and fails with EOPNOTSUPP, or
 * does nothing where there is nothing to do.
 */
#include "fake.h"

#include <errno.h>

static void *refuse(const char *call) {
    record(call, "\"errno\":%d", EOPNOTSUPP);
    errno = EOPNOTSUPP;
    return NULL;
}

static int refuse_number(const char *call) {
    refuse(call);
    return EOPNOTSUPP;
}

#define REFUSED_POINTER(name)                                                                                          \
    void *ibv_##name(void) {                                                                                           \
        return refuse(#name);                                                                                          \
    }
#define REFUSED(name)                                                                                                  \
    int ibv_##name(void) {                                                                                             \
        return refuse_number(#name);                                                                                   \
    }

REFUSED_POINTER(create_ah)
REFUSED_POINTER(create_ah_from_wc)
REFUSED_POINTER(create_comp_channel)
REFUSED_POINTER(create_srq)
REFUSED(destroy_ah)
REFUSED(destroy_comp_channel)
REFUSED(destroy_srq)
REFUSED(modify_srq)
REFUSED(query_srq)
REFUSED(get_cq_event)
REFUSED(resize_cq)
REFUSED(attach_mcast)
REFUSED(detach_mcast)

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count) {
    (void)cq;
    record("ack_cq_events", "\"count\":%u", count);
}

/* No queue pair has the extended way to post. */
void *ibv_qp_to_qp_ex(struct ibv_qp *qp) {
    (void)qp;
    return NULL;
}

/* Memory is not pinned here, so there is nothing that a fork could break. */
int ibv_fork_init(void) {
    record("fork_init", "\"ret\":0");
    return 0;
}

int ibv_is_fork_initialized(void) {
    return 2;
}
