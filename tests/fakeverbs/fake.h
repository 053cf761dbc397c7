/*
 * What the files of the recording library share. Each file says in its head what it does; README.md says how it is used.
 */
#ifndef FAKEVERBS_FAKE_H
#define FAKEVERBS_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "abi.h"

enum { MAX_DEVICES = 16, MAX_PORTS = 2, MAX_GIDS = 16, MAX_PKEYS = 8, MAX_RULES = 64, MAX_SGES = 4 };
enum { MAX_SHARED_QPS = 512, MAX_SHARED_REGIONS = 65536, RECV_RING = 8192 };

/* ---- scenario.c: what devices there are and what shall go wrong ---- */

struct gid_row {
    bool present;
    union ibv_gid gid;
    uint32_t type, ifindex;
};

struct port {
    struct ibv_port_attr attr;
    struct gid_row gids[MAX_GIDS];
    uint16_t pkeys[MAX_PKEYS];
    /* Ports of different fabrics do not reach each other. */
    uint32_t fabric;
};

struct device {
    struct ibv_device base;
    struct ibv_device_attr attr;
    struct port ports[MAX_PORTS];
    uint32_t max_inline;
    /* Whether contexts have the extended operations (rdma-core 17 and later). */
    bool extended;
    /* Whether DMA-BUF file descriptors can be registered. */
    bool dmabuf;
};

enum rule_kind { RULE_VERB, RULE_COMPLETION, RULE_FLIP, RULE_EVENT };

struct rule {
    enum rule_kind kind;
    /* For RULE_VERB: the function without `ibv_`. */
    char verb[32];
    /* Only this device; empty: any. */
    char device[64];
    /* The first call or message that it meets, from 1, and how many. */
    uint64_t first, times;
    int error;
    unsigned status, vendor_err, event_type;
    uint32_t byte;
    int port;
    /* What the event changes; negative: nothing. */
    int lid, sm_lid, state;
    _Atomic uint64_t seen;
};

struct scenario {
    struct device devices[MAX_DEVICES];
    int device_count;
    struct rule rules[MAX_RULES];
    int rule_count;
    /* Longest time until a retry counter is used up. */
    uint64_t patience_ns;
    /* Whether posts and completions are recorded as well. */
    bool log_data;
};

struct scenario *scenario(void);

/* ---- inject.c: faults that a scenario asks for ---- */

int injected_errno(const struct device *device, const char *verb);
/* Both count a message of the device. */
bool injected_completion(const struct device *device, unsigned *status, unsigned *vendor_err);
bool injected_flip(const struct device *device, uint32_t *byte);
struct fake_context;
void inject_events(struct fake_context *context);
void push_event(struct fake_context *context, unsigned type, void *object, int port);

/* ---- record.c: the record of all calls, and what lives ---- */

enum kind { KIND_LIST, KIND_CONTEXT, KIND_PD, KIND_MR, KIND_CQ, KIND_QP, KINDS };
extern _Atomic int fakeverbs_live[KINDS];

bool recording(void);
bool recording_data(void);
/* One line: `format` and what follows are the members after "t_ns", "tid" and "call", without a leading comma. */
void record(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
void record_live(const char *when);
/* The text of a GID as 32 hexadecimal digits; `text` has room for 33. */
const char *gid_text(const union ibv_gid *gid, char *text);

/* ---- fabric.c: what all processes of a folder share ---- */

struct shared_region {
    _Atomic int pid;
    _Atomic uint32_t generation;
    /* The local key, 0 while there is none; the remote key is this with the highest bit set. */
    _Atomic uint32_t lkey;
    uint32_t pd, access;
    /* By which address it is named, where that lies in its process, and how long it is. */
    uint64_t iova, address, length;
};

struct recv_entry {
    uint64_t wr_id;
    int num_sge;
    struct ibv_sge sges[MAX_SGES];
    unsigned status, opcode, wc_flags, vendor_err;
    uint32_t byte_len, imm_data, src_qp;
};

/* A queue pair as its peers see it. */
struct shared_qp {
    _Atomic int pid;
    _Atomic int lock;
    _Atomic uint32_t generation;
    _Atomic uint32_t number, state, port_state;
    /* Bits 1 << IBV_EVENT_*: for the owner to raise. */
    _Atomic uint32_t pending_events;
    uint32_t pd, access, fabric, link_layer, lid, lmc, sgid_type, path_mtu;
    uint32_t max_dest_rd_atomic, min_rnr_timer, rq_psn, sq_psn, dest_qp;
    uint16_t pkey;
    struct gid_row gids[MAX_GIDS];
    struct ibv_ah_attr way;
    /* Receives: posted by the owner, consumed by the peer, polled by the owner. */
    _Atomic uint64_t posted, consumed, polled;
    struct recv_entry ring[RECV_RING];
};

struct fabric {
    _Atomic uint32_t next_qp, next_region, next_pd;
    struct shared_region regions[MAX_SHARED_REGIONS];
    struct shared_qp qps[MAX_SHARED_QPS];
};

struct fabric *fabric(void);
int own_pid(void);
struct shared_qp *add_shared_qp(void);
struct shared_qp *find_shared_qp(uint32_t number);
void lock_shared_qp(struct shared_qp *qp);
void unlock_shared_qp(struct shared_qp *qp);
struct shared_region *add_region(uint32_t *lkey);
struct shared_region *find_region(uint32_t lkey, int pid);
enum { REMOTE_KEY = 1u << 31 };

/* ---- objects ---- */

struct cqe {
    struct ibv_wc wc;
    struct fake_qp *qp;
    /* Requests of the queue pair that are done with it. */
    uint64_t done;
};

struct fake_cq {
    struct ibv_cq base;
    struct cqe *ring;
    uint64_t head, tail;
    bool overrun;
    int users;
};

struct wqe {
    struct ibv_send_wr wr;
    struct ibv_sge sges[MAX_SGES];
    uint8_t *inline_data;
    uint32_t length;
    /* When it first met a peer that did not answer, or that had no receive; 0: not yet. */
    uint64_t lost_since, rnr_since;
    /* Whether it was counted for injections. */
    bool counted;
};

struct fake_qp {
    struct ibv_qp base;
    struct fake_qp *next;
    struct shared_qp *shared;
    struct ibv_qp_attr attr;
    struct ibv_qp_cap cap;
    bool signal_all;
    struct wqe *ring;
    /* Room for the inline data of each place of the ring. */
    uint8_t *inline_room;
    uint64_t posted, executed, released;
};

struct fake_pd {
    struct ibv_pd base;
    uint32_t number;
    int users;
};

struct fake_mr {
    struct ibv_mr base;
    struct shared_region *region;
    /* A mapping of its own, for DMA-BUF. */
    void *mapped;
    size_t mapped_bytes;
};

enum { MAX_EVENTS = 64 };

struct fake_context {
    struct verbs_context verbs;
    struct device *device;
    pthread_mutex_t lock;
    struct fake_qp *qps;
    struct ibv_async_event events[MAX_EVENTS];
    unsigned event_head, event_tail;
    int pds, cqs;
};

struct fake_context *fake_context(struct ibv_context *context);

/* ---- data.c, transfer.c ---- */

enum passage { PASSED, FAILED, LOST, NOT_READY };

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
void fail_qp(struct fake_qp *qp);
enum passage transfer(struct fake_qp *qp, struct wqe *wqe, unsigned *status, const char **why);
uint64_t now_ns(void);

#endif
