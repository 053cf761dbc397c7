/*
 * The part of libibverbs' ABI that the recording library implements, written after infiniband/verbs.h of rdma-core 44 and
 * 55, so that it builds where no RDMA headers are. The assertions below hold the sizes; tests/layout compares the same
 * numbers with the system's header.
 */
#ifndef FAKEVERBS_ABI_H
#define FAKEVERBS_ABI_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

union ibv_gid {
    uint8_t raw[16];
    struct {
        uint64_t subnet_prefix;
        uint64_t interface_id;
    } global;
};

enum ibv_gid_type { GID_TYPE_IB, GID_TYPE_ROCE_V1, GID_TYPE_ROCE_V2 };

struct ibv_gid_entry {
    union ibv_gid gid;
    uint32_t gid_index, port_num, gid_type, ndev_ifindex;
};

struct ibv_device {
    void *ops[2];
    int node_type;
    int transport_type;
    char name[64], dev_name[64], dev_path[256], ibdev_path[256];
};

struct ibv_device_attr {
    char fw_ver[64];
    uint64_t node_guid, sys_image_guid, max_mr_size, page_size_cap;
    uint32_t vendor_id, vendor_part_id, hw_ver;
    int max_qp, max_qp_wr;
    unsigned device_cap_flags;
    int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd;
    int max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom;
    int atomic_cap;
    int max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp, max_mcast_grp, max_mcast_qp_attach;
    int max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr, max_srq_sge;
    uint16_t max_pkeys;
    uint8_t local_ca_ack_delay, phys_port_cnt;
};

struct ibv_port_attr {
    unsigned state, max_mtu, active_mtu;
    int gid_tbl_len;
    uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
    uint16_t pkey_tbl_len, lid, sm_lid;
    uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state;
    uint8_t link_layer, flags;
    uint16_t port_cap_flags2;
    uint32_t active_speed_ex;
};

struct ibv_sge {
    uint64_t addr;
    uint32_t length, lkey;
};

struct ibv_send_wr {
    uint64_t wr_id;
    struct ibv_send_wr *next;
    struct ibv_sge *sg_list;
    int num_sge;
    unsigned opcode, send_flags;
    uint32_t imm_data;
    struct {
        uint64_t remote_addr;
        uint32_t rkey;
        uint64_t rest[2];
    } rdma;
    uint32_t xrc;
    uint64_t bind_or_tso[6];
};

struct ibv_recv_wr {
    uint64_t wr_id;
    struct ibv_recv_wr *next;
    struct ibv_sge *sg_list;
    int num_sge;
};

struct ibv_wc {
    uint64_t wr_id;
    unsigned status, opcode;
    uint32_t vendor_err, byte_len, imm_data, qp_num, src_qp;
    unsigned wc_flags;
    uint16_t pkey_index, slid;
    uint8_t sl, dlid_path_bits;
};

struct ibv_qp_cap {
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

struct ibv_qp_init_attr {
    void *qp_context;
    struct ibv_cq *send_cq, *recv_cq;
    void *srq;
    struct ibv_qp_cap cap;
    unsigned qp_type;
    int sq_sig_all;
};

struct ibv_global_route {
    union ibv_gid dgid;
    uint32_t flow_label;
    uint8_t sgid_index, hop_limit, traffic_class;
};

struct ibv_ah_attr {
    struct ibv_global_route grh;
    uint16_t dlid;
    uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

struct ibv_qp_attr {
    unsigned qp_state, cur_qp_state, path_mtu, path_mig_state;
    uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
    unsigned qp_access_flags;
    struct ibv_qp_cap cap;
    struct ibv_ah_attr ah_attr, alt_ah_attr;
    uint16_t pkey_index, alt_pkey_index;
    uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num;
    uint8_t timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
    uint32_t rate_limit;
};

struct ibv_async_event {
    union {
        void *object;
        int port_num;
    } element;
    unsigned event_type;
};

struct ibv_context;
struct ibv_cq;
struct ibv_qp;

struct ibv_context_ops {
    void *before_poll_cq[11];
    int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
    int (*req_notify_cq)(struct ibv_cq *, int);
    void *before_post_send[12];
    int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
    int (*post_recv)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
    void *after_post_recv[5];
};

struct ibv_context {
    struct ibv_device *device;
    struct ibv_context_ops ops;
    int cmd_fd, async_fd, num_comp_vectors;
    pthread_mutex_t mutex;
    void *abi_compat;
};

/* The operations before the context that callers know; only those that are implemented have names. */
struct verbs_context {
    int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);
    void *before_size[38];
    size_t sz;
    struct ibv_context context;
};

struct ibv_pd {
    struct ibv_context *context;
    uint32_t handle;
};

struct ibv_mr {
    struct ibv_context *context;
    struct ibv_pd *pd;
    void *addr;
    size_t length;
    uint32_t handle, lkey, rkey;
};

struct ibv_comp_channel {
    struct ibv_context *context;
    int fd, refcnt;
};

struct ibv_cq {
    struct ibv_context *context;
    struct ibv_comp_channel *channel;
    void *cq_context;
    uint32_t handle;
    int cqe;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    uint32_t comp_events_completed, async_events_completed;
};

struct ibv_qp {
    struct ibv_context *context;
    void *qp_context;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    void *srq;
    uint32_t handle, qp_num;
    unsigned state, qp_type;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    uint32_t events_completed;
};

#if defined(__x86_64__)
_Static_assert(sizeof(struct ibv_device) == 664, "ibv_device");
_Static_assert(sizeof(struct ibv_device_attr) == 232, "ibv_device_attr");
_Static_assert(sizeof(struct ibv_port_attr) == 56, "ibv_port_attr");
_Static_assert(sizeof(struct ibv_send_wr) == 128, "ibv_send_wr");
_Static_assert(sizeof(struct ibv_wc) == 48, "ibv_wc");
_Static_assert(sizeof(struct ibv_qp_init_attr) == 64, "ibv_qp_init_attr");
_Static_assert(sizeof(struct ibv_qp_attr) == 144, "ibv_qp_attr");
_Static_assert(sizeof(struct ibv_context) == 328, "ibv_context");
_Static_assert(sizeof(struct verbs_context) == 648, "verbs_context");
_Static_assert(offsetof(struct ibv_context, ops.poll_cq) == 96, "poll_cq");
_Static_assert(offsetof(struct ibv_context, ops.post_send) == 208, "post_send");
_Static_assert(sizeof(struct ibv_cq) == 128, "ibv_cq");
_Static_assert(sizeof(struct ibv_qp) == 160, "ibv_qp");
_Static_assert(offsetof(struct ibv_qp, qp_num) == 52, "qp_num");
#endif

enum { NODE_CA = 1, NODE_RNIC = 4 };
enum { TRANSPORT_IB = 0, TRANSPORT_IWARP = 1 };
enum { LINK_INFINIBAND = 1, LINK_ETHERNET = 2 };
enum { PORT_DOWN = 1, PORT_INIT = 2, PORT_ARMED = 3, PORT_ACTIVE = 4 };
enum { QPF_GRH_REQUIRED = 1 };
enum { ACCESS_LOCAL_WRITE = 1, ACCESS_REMOTE_WRITE = 2, ACCESS_REMOTE_READ = 4, ACCESS_REMOTE_ATOMIC = 8 };
enum { ACCESS_RELAXED_ORDERING = 1 << 20 };
enum { QPT_RC = 2 };
enum { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR };
enum {
    MASK_STATE = 1, MASK_CUR_STATE = 1 << 1, MASK_EN_SQD = 1 << 2, MASK_ACCESS_FLAGS = 1 << 3, MASK_PKEY_INDEX = 1 << 4,
    MASK_PORT = 1 << 5, MASK_QKEY = 1 << 6, MASK_AV = 1 << 7, MASK_PATH_MTU = 1 << 8, MASK_TIMEOUT = 1 << 9,
    MASK_RETRY_CNT = 1 << 10, MASK_RNR_RETRY = 1 << 11, MASK_RQ_PSN = 1 << 12, MASK_MAX_QP_RD_ATOMIC = 1 << 13,
    MASK_ALT_PATH = 1 << 14, MASK_MIN_RNR_TIMER = 1 << 15, MASK_SQ_PSN = 1 << 16, MASK_MAX_DEST_RD_ATOMIC = 1 << 17,
    MASK_PATH_MIG_STATE = 1 << 18, MASK_CAP = 1 << 19, MASK_DEST_QPN = 1 << 20,
};
enum { WR_RDMA_WRITE, WR_RDMA_WRITE_IMM, WR_SEND, WR_SEND_IMM, WR_RDMA_READ };
enum { SEND_FENCE = 1, SEND_SIGNALED = 2, SEND_SOLICITED = 4, SEND_INLINE = 8 };
enum {
    WC_SUCCESS, WC_LOC_LEN_ERR, WC_LOC_QP_OP_ERR, WC_LOC_EEC_OP_ERR, WC_LOC_PROT_ERR, WC_WR_FLUSH_ERR, WC_MW_BIND_ERR,
    WC_BAD_RESP_ERR, WC_LOC_ACCESS_ERR, WC_REM_INV_REQ_ERR, WC_REM_ACCESS_ERR, WC_REM_OP_ERR, WC_RETRY_EXC_ERR,
    WC_RNR_RETRY_EXC_ERR,
};
/* Opcodes of completions. */
enum { WC_OP_SEND = 0, WC_OP_RDMA_WRITE = 1, WC_OP_RDMA_READ = 2, WC_OP_RECV = 128, WC_OP_RECV_RDMA_IMM = 129 };
enum { WC_GRH = 1, WC_WITH_IMM = 2 };
enum {
    EVENT_CQ_ERR = 0, EVENT_QP_FATAL = 1, EVENT_QP_REQ_ERR = 2, EVENT_QP_ACCESS_ERR = 3, EVENT_COMM_EST = 4,
    EVENT_DEVICE_FATAL = 8, EVENT_PORT_ACTIVE = 9, EVENT_PORT_ERR = 10, EVENT_LID_CHANGE = 11, EVENT_PKEY_CHANGE = 12,
    EVENT_SM_CHANGE = 13, EVENT_CLIENT_REREGISTER = 17, EVENT_GID_CHANGE = 18,
};

#endif
