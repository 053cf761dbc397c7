/*
 * Queue pairs: their making, their states and the attributes that each change of state needs and allows, as
 * ib_modify_qp_is_ok of the Linux kernel has them for reliable connections. SQD and path migration are not played.
 */
#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct change {
    unsigned from, to;
    int required, allowed;
};

static const struct change CHANGES[] = {
    {QPS_RESET, QPS_INIT, MASK_PKEY_INDEX | MASK_PORT | MASK_ACCESS_FLAGS, 0},
    {QPS_INIT, QPS_INIT, 0, MASK_PKEY_INDEX | MASK_PORT | MASK_ACCESS_FLAGS},
    {QPS_INIT, QPS_RTR,
     MASK_AV | MASK_PATH_MTU | MASK_DEST_QPN | MASK_RQ_PSN | MASK_MAX_DEST_RD_ATOMIC | MASK_MIN_RNR_TIMER,
     MASK_ALT_PATH | MASK_ACCESS_FLAGS | MASK_PKEY_INDEX},
    {QPS_RTR, QPS_RTS, MASK_TIMEOUT | MASK_RETRY_CNT | MASK_RNR_RETRY | MASK_SQ_PSN | MASK_MAX_QP_RD_ATOMIC,
     MASK_CUR_STATE | MASK_ALT_PATH | MASK_ACCESS_FLAGS | MASK_MIN_RNR_TIMER | MASK_PATH_MIG_STATE},
    {QPS_RTS, QPS_RTS, 0, MASK_CUR_STATE | MASK_ACCESS_FLAGS | MASK_ALT_PATH | MASK_PATH_MIG_STATE | MASK_MIN_RNR_TIMER},
};

static int check_change(unsigned from, unsigned to, int mask) {
    if (to == QPS_RESET || to == QPS_ERR)
        return mask & ~(MASK_STATE | MASK_CUR_STATE) ? EINVAL : 0;
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++) {
        const struct change *change = &CHANGES[i];
        if (change->from != from || change->to != to)
            continue;
        bool all = (mask & change->required) == change->required;
        bool only = (mask & ~(MASK_STATE | change->required | change->allowed)) == 0;
        return all && only ? 0 : EINVAL;
    }
    return EINVAL;
}

/* The way to the peer, as rdma_check_ah_attr and the RoCE address resolution see it. */
static int check_way(const struct device *device, const struct ibv_qp_attr *now, const struct ibv_ah_attr *way) {
    if (way->port_num != now->port_num)
        return EINVAL;
    const struct port *port = &device->ports[way->port_num - 1];
    bool roce = port->attr.link_layer == LINK_ETHERNET;
    if (!way->is_global)
        return roce || (port->attr.flags & QPF_GRH_REQUIRED) ? EINVAL : 0;
    if (way->grh.sgid_index >= port->attr.gid_tbl_len)
        return EINVAL;
    return port->gids[way->grh.sgid_index].present ? 0 : ENODATA;
}

static int check_values(const struct device *device, const struct ibv_qp_attr *now, const struct ibv_qp_attr *attr,
                        int mask) {
    uint8_t number = mask & MASK_PORT ? attr->port_num : now->port_num;
    if (number < 1 || number > device->attr.phys_port_cnt)
        return EINVAL;
    const struct port *port = &device->ports[number - 1];
    if ((mask & MASK_PKEY_INDEX) && attr->pkey_index >= port->attr.pkey_tbl_len)
        return EINVAL;
    if ((mask & MASK_PATH_MTU) && (attr->path_mtu < 1 || attr->path_mtu > port->attr.active_mtu))
        return EINVAL;
    if ((mask & MASK_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > device->attr.max_qp_init_rd_atom)
        return EINVAL;
    if ((mask & MASK_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > device->attr.max_qp_rd_atom)
        return EINVAL;
    if ((mask & (MASK_RQ_PSN | MASK_SQ_PSN)) &&
        (((mask & MASK_RQ_PSN) ? attr->rq_psn : attr->sq_psn) & 0xff000000))
        return EINVAL;
    if ((mask & MASK_DEST_QPN) && (attr->dest_qp_num & 0xff000000))
        return EINVAL;
    if ((mask & MASK_TIMEOUT) && attr->timeout > 31)
        return EINVAL;
    if ((mask & MASK_RETRY_CNT) && attr->retry_cnt > 7)
        return EINVAL;
    if ((mask & MASK_RNR_RETRY) && attr->rnr_retry > 7)
        return EINVAL;
    if ((mask & MASK_MIN_RNR_TIMER) && attr->min_rnr_timer > 31)
        return EINVAL;
    return mask & MASK_AV ? check_way(device, now, &attr->ah_attr) : 0;
}

static void take_over(struct ibv_qp_attr *now, const struct ibv_qp_attr *attr, int mask) {
    if (mask & MASK_PORT)
        now->port_num = attr->port_num;
    if (mask & MASK_PKEY_INDEX)
        now->pkey_index = attr->pkey_index;
    if (mask & MASK_ACCESS_FLAGS)
        now->qp_access_flags = attr->qp_access_flags;
    if (mask & MASK_AV)
        now->ah_attr = attr->ah_attr;
    if (mask & MASK_PATH_MTU)
        now->path_mtu = attr->path_mtu;
    if (mask & MASK_DEST_QPN)
        now->dest_qp_num = attr->dest_qp_num;
    if (mask & MASK_RQ_PSN)
        now->rq_psn = attr->rq_psn;
    if (mask & MASK_SQ_PSN)
        now->sq_psn = attr->sq_psn;
    if (mask & MASK_MAX_DEST_RD_ATOMIC)
        now->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    if (mask & MASK_MAX_QP_RD_ATOMIC)
        now->max_rd_atomic = attr->max_rd_atomic;
    if (mask & MASK_MIN_RNR_TIMER)
        now->min_rnr_timer = attr->min_rnr_timer;
    if (mask & MASK_TIMEOUT)
        now->timeout = attr->timeout;
    if (mask & MASK_RETRY_CNT)
        now->retry_cnt = attr->retry_cnt;
    if (mask & MASK_RNR_RETRY)
        now->rnr_retry = attr->rnr_retry;
}

/* Tells peers what they need; the state last. */
static void publish(struct fake_qp *qp) {
    struct shared_qp *shared = qp->shared;
    const struct ibv_qp_attr *attr = &qp->attr;
    const struct port *port = &fake_context(qp->base.context)->device->ports[attr->port_num - 1];
    lock_shared_qp(shared);
    shared->access = attr->qp_access_flags;
    shared->fabric = port->fabric;
    shared->link_layer = port->attr.link_layer;
    shared->lid = port->attr.lid;
    shared->lmc = port->attr.lmc;
    shared->pkey = port->pkeys[attr->pkey_index];
    shared->path_mtu = attr->path_mtu;
    shared->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    shared->min_rnr_timer = attr->min_rnr_timer;
    shared->rq_psn = attr->rq_psn;
    shared->sq_psn = attr->sq_psn;
    shared->dest_qp = attr->dest_qp_num;
    shared->way = attr->ah_attr;
    shared->sgid_type = attr->ah_attr.is_global ? port->gids[attr->ah_attr.grh.sgid_index].type : GID_TYPE_IB;
    memcpy(shared->gids, port->gids, sizeof shared->gids);
    atomic_store(&shared->port_state, port->attr.state);
    atomic_store(&shared->state, attr->qp_state);
    unlock_shared_qp(shared);
}

static void forget_completions(struct fake_cq *cq, const struct fake_qp *qp) {
    uint64_t kept = cq->tail;
    for (uint64_t at = cq->tail; at != cq->head; at++) {
        struct cqe entry = cq->ring[at % (uint64_t)cq->base.cqe];
        if (entry.qp != qp)
            cq->ring[kept++ % (uint64_t)cq->base.cqe] = entry;
    }
    cq->head = kept;
}

static void forget_requests(struct fake_qp *qp) {
    qp->posted = qp->executed = qp->released = 0;
    forget_completions((struct fake_cq *)qp->base.send_cq, qp);
    forget_completions((struct fake_cq *)qp->base.recv_cq, qp);
    lock_shared_qp(qp->shared);
    atomic_store(&qp->shared->posted, 0);
    atomic_store(&qp->shared->consumed, 0);
    atomic_store(&qp->shared->polled, 0);
    unlock_shared_qp(qp->shared);
}

static const char *const STATES[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

static void record_attr(const struct ibv_qp *qp, unsigned from, unsigned to, const struct ibv_qp_attr *attr, int mask,
                        int error) {
    if (!recording())
        return;
    char text[1024], gid[33];
    int used = 0;
#define MEMBER(bit, ...)                                                                                               \
    if (mask & (bit))                                                                                                  \
    used += snprintf(text + used, sizeof text - (size_t)used, __VA_ARGS__)
    text[0] = 0;
    MEMBER(MASK_PORT, ",\"port_num\":%u", attr->port_num);
    MEMBER(MASK_PKEY_INDEX, ",\"pkey_index\":%u", attr->pkey_index);
    MEMBER(MASK_ACCESS_FLAGS, ",\"access\":%u", attr->qp_access_flags);
    MEMBER(MASK_PATH_MTU, ",\"path_mtu\":%u", attr->path_mtu);
    MEMBER(MASK_DEST_QPN, ",\"dest_qp_num\":%u", attr->dest_qp_num);
    MEMBER(MASK_RQ_PSN, ",\"rq_psn\":%u", attr->rq_psn);
    MEMBER(MASK_MAX_DEST_RD_ATOMIC, ",\"max_dest_rd_atomic\":%u", attr->max_dest_rd_atomic);
    MEMBER(MASK_MIN_RNR_TIMER, ",\"min_rnr_timer\":%u", attr->min_rnr_timer);
    MEMBER(MASK_TIMEOUT, ",\"timeout\":%u", attr->timeout);
    MEMBER(MASK_RETRY_CNT, ",\"retry_cnt\":%u", attr->retry_cnt);
    MEMBER(MASK_RNR_RETRY, ",\"rnr_retry\":%u", attr->rnr_retry);
    MEMBER(MASK_SQ_PSN, ",\"sq_psn\":%u", attr->sq_psn);
    MEMBER(MASK_MAX_QP_RD_ATOMIC, ",\"max_rd_atomic\":%u", attr->max_rd_atomic);
    const struct ibv_ah_attr *way = &attr->ah_attr;
    MEMBER(MASK_AV,
           ",\"ah\":{\"dlid\":%u,\"sl\":%u,\"src_path_bits\":%u,\"static_rate\":%u,\"is_global\":%u,\"port_num\":%u",
           way->dlid, way->sl, way->src_path_bits, way->static_rate, way->is_global, way->port_num);
    if ((mask & MASK_AV) && way->is_global)
        MEMBER(MASK_AV,
               ",\"dgid\":\"%s\",\"flow_label\":%u,\"sgid_index\":%u,\"hop_limit\":%u,\"traffic_class\":%u",
               gid_text(&way->grh.dgid, gid), way->grh.flow_label, way->grh.sgid_index, way->grh.hop_limit,
               way->grh.traffic_class);
    MEMBER(MASK_AV, "}");
#undef MEMBER
    record("modify_qp", "\"qp\":%u,\"from\":\"%s\",\"to\":\"%s\",\"mask\":%d%s,\"ret\":%d", qp->qp_num,
           from <= QPS_ERR ? STATES[from] : "?", to <= QPS_ERR ? STATES[to] : "?", mask, text, error);
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask) {
    struct fake_qp *qp = (struct fake_qp *)base;
    struct fake_context *owner = fake_context(base->context);
    pthread_mutex_lock(&owner->lock);
    unsigned from = atomic_load(&qp->shared->state), to = mask & MASK_STATE ? attr->qp_state : from;
    int error = injected_errno(owner->device, "modify_qp");
    if (!error)
        error = check_change(from, to, mask);
    if (!error && to != QPS_RESET && to != QPS_ERR)
        error = check_values(owner->device, &qp->attr, attr, mask);
    if (!error && to == QPS_ERR) {
        fail_qp(qp);
    } else if (!error && to == QPS_RESET) {
        atomic_store(&qp->shared->state, QPS_RESET);
        qp->attr = (struct ibv_qp_attr){.qp_state = QPS_RESET};
        forget_requests(qp);
    } else if (!error) {
        take_over(&qp->attr, attr, mask);
        qp->attr.qp_state = to;
        publish(qp);
    }
    if (!error)
        base->state = to;
    pthread_mutex_unlock(&owner->lock);
    record_attr(base, from, to, attr, mask, error);
    return error;
}

int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init) {
    struct fake_qp *qp = (struct fake_qp *)base;
    struct fake_context *owner = fake_context(base->context);
    pthread_mutex_lock(&owner->lock);
    int error = injected_errno(owner->device, "query_qp");
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = atomic_load(&qp->shared->state);
    attr->cap = qp->cap;
    *init = (struct ibv_qp_init_attr){
        base->qp_context, base->send_cq, base->recv_cq, NULL, qp->cap, base->qp_type, qp->signal_all};
    pthread_mutex_unlock(&owner->lock);
    record("query_qp", "\"qp\":%u,\"mask\":%d,\"state\":%u,\"ret\":%d", base->qp_num, mask, attr->qp_state, error);
    return error;
}

static int check_making(const struct device *device, const struct ibv_qp_init_attr *init) {
    const struct ibv_qp_cap *cap = &init->cap;
    if (init->qp_type != QPT_RC || init->srq)
        return EOPNOTSUPP;
    if (!init->send_cq || !init->recv_cq)
        return EINVAL;
    if (cap->max_send_wr > (uint32_t)device->attr.max_qp_wr || cap->max_recv_wr > (uint32_t)device->attr.max_qp_wr ||
        cap->max_send_sge > (uint32_t)device->attr.max_sge || cap->max_recv_sge > (uint32_t)device->attr.max_sge ||
        cap->max_inline_data > device->max_inline)
        return EINVAL;
    return cap->max_recv_wr > RECV_RING || cap->max_recv_sge > MAX_SGES ? EINVAL : 0;
}

static struct fake_qp *make_qp(struct ibv_pd *pd, const struct ibv_qp_init_attr *init) {
    struct fake_qp *qp = calloc(1, sizeof *qp);
    uint32_t sends = init->cap.max_send_wr ? init->cap.max_send_wr : 1;
    struct wqe *ring = calloc(sends, sizeof *ring);
    uint8_t *inline_room = malloc((size_t)sends * init->cap.max_inline_data + 1);
    struct shared_qp *shared = qp && ring && inline_room ? add_shared_qp() : NULL;
    if (!shared) {
        free(qp);
        free(ring);
        free(inline_room);
        return NULL;
    }
    qp->ring = ring;
    qp->inline_room = inline_room;
    qp->shared = shared;
    qp->cap = init->cap;
    qp->cap.max_send_wr = sends;
    qp->signal_all = init->sq_sig_all != 0;
    shared->pd = ((struct fake_pd *)pd)->number;
    struct ibv_qp *base = &qp->base;
    base->context = pd->context;
    base->qp_context = init->qp_context;
    base->pd = pd;
    base->send_cq = init->send_cq;
    base->recv_cq = init->recv_cq;
    base->handle = base->qp_num = atomic_load(&shared->number);
    base->qp_type = init->qp_type;
    pthread_mutex_init(&base->mutex, NULL);
    pthread_cond_init(&base->cond, NULL);
    return qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init) {
    struct fake_context *owner = fake_context(pd->context);
    int error = injected_errno(owner->device, "create_qp");
    if (!error)
        error = check_making(owner->device, init);
    struct fake_qp *qp = error ? NULL : make_qp(pd, init);
    if (!error && !qp)
        error = ENOMEM;
    record("create_qp",
           "\"qp\":%u,\"type\":%u,\"sends\":%u,\"receives\":%u,\"send_sges\":%u,\"recv_sges\":%u,\"inline\":%u,"
           "\"signal_all\":%d,\"errno\":%d",
           qp ? qp->base.qp_num : 0, init->qp_type, init->cap.max_send_wr, init->cap.max_recv_wr,
           init->cap.max_send_sge, init->cap.max_recv_sge, init->cap.max_inline_data, init->sq_sig_all, error);
    if (!qp) {
        errno = error;
        return NULL;
    }
    init->cap = qp->cap;
    pthread_mutex_lock(&owner->lock);
    qp->next = owner->qps;
    owner->qps = qp;
    ((struct fake_pd *)pd)->users++;
    ((struct fake_cq *)init->send_cq)->users++;
    ((struct fake_cq *)init->recv_cq)->users++;
    pthread_mutex_unlock(&owner->lock);
    fakeverbs_live[KIND_QP]++;
    return &qp->base;
}

int ibv_destroy_qp(struct ibv_qp *base) {
    struct fake_qp *qp = (struct fake_qp *)base;
    struct fake_context *owner = fake_context(base->context);
    int error = injected_errno(owner->device, "destroy_qp");
    record("destroy_qp", "\"qp\":%u,\"ret\":%d", base->qp_num, error);
    if (error)
        return error;
    pthread_mutex_lock(&owner->lock);
    struct fake_qp **at = &owner->qps;
    while (*at && *at != qp)
        at = &(*at)->next;
    if (*at)
        *at = qp->next;
    forget_requests(qp);
    ((struct fake_pd *)base->pd)->users--;
    ((struct fake_cq *)base->send_cq)->users--;
    ((struct fake_cq *)base->recv_cq)->users--;
    /* Under its lock, so that no peer is inside. */
    lock_shared_qp(qp->shared);
    atomic_store(&qp->shared->state, QPS_RESET);
    atomic_store(&qp->shared->number, 0);
    unlock_shared_qp(qp->shared);
    atomic_store(&qp->shared->pid, 0);
    pthread_mutex_unlock(&owner->lock);
    fakeverbs_live[KIND_QP]--;
    free(qp->ring);
    free(qp->inline_room);
    free(qp);
    return 0;
}
