/*
 * The queues: posting, progress and completions. There are no threads; whoever posts or polls moves on what waits.
 */
#include "fake.h"

#include <errno.h>
#include <string.h>

/* Codes of the RNR timer in units of 10 us (InfiniBand Architecture Specification, volume 1, table 45). */
static const uint32_t RNR_TIMERS[32] = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,   64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

static uint64_t at_most_patience(uint64_t wanted_ns) {
    uint64_t patience = scenario()->patience_ns;
    return wanted_ns < patience ? wanted_ns : patience;
}

/* Timeout 0 waits for ever. */
static bool retries_used_up(const struct fake_qp *qp, uint64_t since) {
    if (qp->attr.timeout == 0)
        return false;
    uint64_t each = 4096ull << qp->attr.timeout;
    return now_ns() - since >= at_most_patience(each * (qp->attr.retry_cnt + 1u));
}

/* 7 tries for ever. */
static bool rnr_retries_used_up(const struct fake_qp *qp, uint64_t since) {
    if (qp->attr.rnr_retry == 7)
        return false;
    const struct shared_qp *to = find_shared_qp(qp->attr.dest_qp_num);
    uint64_t each = to ? 10000ull * RNR_TIMERS[to->min_rnr_timer % 32] : 0;
    return now_ns() - since >= at_most_patience(each * qp->attr.rnr_retry);
}

void fail_qp(struct fake_qp *qp) {
    lock_shared_qp(qp->shared);
    atomic_store(&qp->shared->state, QPS_ERR);
    unlock_shared_qp(qp->shared);
}

static unsigned completion_opcode(unsigned opcode) {
    switch (opcode) {
    case WR_RDMA_WRITE:
    case WR_RDMA_WRITE_IMM:
        return WC_OP_RDMA_WRITE;
    case WR_RDMA_READ:
        return WC_OP_RDMA_READ;
    default:
        return WC_OP_SEND;
    }
}

/* A full queue is lost for good, as on a device. */
static void overrun(struct fake_cq *cq) {
    if (!cq->overrun) {
        record("cq_overrun", "\"entries\":%d", cq->base.cqe);
        push_event(fake_context(cq->base.context), EVENT_CQ_ERR, cq, 0);
    }
    cq->overrun = true;
}

static void complete(struct fake_qp *qp, const struct wqe *wqe, unsigned status, unsigned vendor_err) {
    struct fake_cq *cq = (struct fake_cq *)qp->base.send_cq;
    if (cq->head - cq->tail == (uint64_t)cq->base.cqe) {
        overrun(cq);
        return;
    }
    struct cqe *entry = &cq->ring[cq->head++ % (uint64_t)cq->base.cqe];
    memset(entry, 0, sizeof *entry);
    entry->wc.wr_id = wqe->wr.wr_id;
    entry->wc.status = status;
    entry->wc.opcode = completion_opcode(wqe->wr.opcode);
    entry->wc.vendor_err = vendor_err;
    entry->wc.byte_len = wqe->wr.opcode == WR_RDMA_READ ? wqe->length : 0;
    entry->wc.qp_num = qp->base.qp_num;
    entry->qp = qp;
    entry->done = qp->executed + 1;
}

enum stepped { STEPPED, WAITS };

static enum stepped ended(struct fake_qp *qp, const struct wqe *wqe, unsigned status, unsigned vendor_err) {
    if (status != WC_SUCCESS || qp->signal_all || (wqe->wr.send_flags & SEND_SIGNALED))
        complete(qp, wqe, status, vendor_err);
    qp->executed++;
    if (status != WC_SUCCESS && status != WC_WR_FLUSH_ERR)
        fail_qp(qp);
    return STEPPED;
}

static enum stepped waits_for_peer(struct fake_qp *qp, struct wqe *wqe, const char *why) {
    if (wqe->lost_since == 0) {
        wqe->lost_since = now_ns();
        record("lost", "\"qp\":%u,\"to\":%u,\"why\":\"%s\"", qp->base.qp_num, qp->attr.dest_qp_num, why);
    }
    return retries_used_up(qp, wqe->lost_since) ? ended(qp, wqe, WC_RETRY_EXC_ERR, 0x81) : WAITS;
}

static enum stepped waits_for_receive(struct fake_qp *qp, struct wqe *wqe) {
    if (wqe->rnr_since == 0)
        wqe->rnr_since = now_ns();
    return rnr_retries_used_up(qp, wqe->rnr_since) ? ended(qp, wqe, WC_RNR_RETRY_EXC_ERR, 0x82) : WAITS;
}

static enum stepped step(struct fake_qp *qp) {
    struct fake_context *owner = fake_context(qp->base.context);
    struct wqe *wqe = &qp->ring[qp->executed % qp->cap.max_send_wr];
    unsigned state = atomic_load(&qp->shared->state), status = WC_SUCCESS, vendor_err = 0;
    const char *why = NULL;
    if (state == QPS_ERR)
        return ended(qp, wqe, WC_WR_FLUSH_ERR, 0xf9);
    if (state != QPS_RTS)
        return WAITS;
    if (!wqe->counted) {
        wqe->counted = true;
        inject_events(owner);
        if (injected_completion(owner->device, &status, &vendor_err))
            return ended(qp, wqe, status, vendor_err);
    }
    switch (transfer(qp, wqe, &status, &why)) {
    case PASSED:
        return ended(qp, wqe, WC_SUCCESS, 0);
    case FAILED:
        return ended(qp, wqe, status, 0x88);
    case LOST:
        return waits_for_peer(qp, wqe, why);
    case NOT_READY:
        return waits_for_receive(qp, wqe);
    }
    return WAITS;
}

static void flush_receives(struct fake_qp *qp) {
    struct shared_qp *shared = qp->shared;
    lock_shared_qp(shared);
    while (atomic_load(&shared->consumed) != atomic_load(&shared->posted)) {
        struct recv_entry *entry = &shared->ring[atomic_load(&shared->consumed) % RECV_RING];
        entry->status = WC_WR_FLUSH_ERR;
        entry->opcode = WC_OP_RECV;
        entry->vendor_err = 0xf9;
        entry->byte_len = entry->wc_flags = entry->imm_data = entry->src_qp = 0;
        atomic_fetch_add(&shared->consumed, 1);
    }
    unlock_shared_qp(shared);
}

static void progress(struct fake_qp *qp) {
    while (qp->executed != qp->posted && step(qp) == STEPPED)
        continue;
    if (atomic_load(&qp->shared->state) == QPS_ERR)
        flush_receives(qp);
    uint32_t events = atomic_load(&qp->shared->pending_events) ? atomic_exchange(&qp->shared->pending_events, 0) : 0;
    if (events & 1u << EVENT_QP_ACCESS_ERR)
        push_event(fake_context(qp->base.context), EVENT_QP_ACCESS_ERR, &qp->base, 0);
}

static int take_request(struct fake_qp *qp, const struct ibv_send_wr *wr) {
    unsigned state = atomic_load(&qp->shared->state);
    if (state != QPS_RTS && state != QPS_ERR)
        return EINVAL;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge || wr->opcode > WR_RDMA_READ)
        return EINVAL;
    if (qp->posted - qp->released >= qp->cap.max_send_wr)
        return ENOMEM;
    uint64_t length = 0;
    for (int i = 0; i < wr->num_sge; i++)
        length += wr->sg_list[i].length;
    bool is_inline = wr->send_flags & SEND_INLINE;
    if (length > UINT32_MAX || (is_inline && (length > qp->cap.max_inline_data || wr->opcode == WR_RDMA_READ)))
        return EINVAL;
    uint64_t place = qp->posted % qp->cap.max_send_wr;
    struct wqe *wqe = &qp->ring[place];
    *wqe = (struct wqe){.wr = *wr, .length = (uint32_t)length};
    for (int i = 0; i < wr->num_sge; i++)
        wqe->sges[i] = wr->sg_list[i];
    if (is_inline && length > 0) {
        wqe->inline_data = qp->inline_room + place * qp->cap.max_inline_data;
        for (int i = 0, at = 0; i < wr->num_sge; at += (int)wr->sg_list[i++].length)
            memcpy(wqe->inline_data + at, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
    }
    qp->posted++;
    return 0;
}

static void record_request(const struct ibv_qp *qp, const struct ibv_send_wr *wr, int error) {
    if (!recording_data())
        return;
    uint64_t length = 0;
    for (int i = 0; i < wr->num_sge; i++)
        length += wr->sg_list[i].length;
    record("post_send",
           "\"qp\":%u,\"wr_id\":%llu,\"opcode\":%u,\"flags\":%u,\"sges\":%d,\"bytes\":%llu,\"remote\":%llu,\"rkey\":%u,"
           "\"imm\":%u,\"ret\":%d",
           qp->qp_num, (unsigned long long)wr->wr_id, wr->opcode, wr->send_flags, wr->num_sge,
           (unsigned long long)length, (unsigned long long)wr->rdma.remote_addr, wr->rdma.rkey, wr->imm_data, error);
}

int fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    struct fake_qp *qp = (struct fake_qp *)base;
    struct fake_context *owner = fake_context(base->context);
    int error = injected_errno(owner->device, "post_send");
    pthread_mutex_lock(&owner->lock);
    for (; wr; wr = wr->next) {
        if (!error)
            error = take_request(qp, wr);
        record_request(base, wr, error);
        if (error) {
            *bad = wr;
            break;
        }
    }
    progress(qp);
    pthread_mutex_unlock(&owner->lock);
    return error;
}

static int take_receive(struct fake_qp *qp, const struct ibv_recv_wr *wr) {
    struct shared_qp *shared = qp->shared;
    if (atomic_load(&shared->state) == QPS_RESET || wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_recv_sge)
        return EINVAL;
    if (atomic_load(&shared->posted) - atomic_load(&shared->polled) >= qp->cap.max_recv_wr)
        return ENOMEM;
    struct recv_entry *entry = &shared->ring[atomic_load(&shared->posted) % RECV_RING];
    entry->wr_id = wr->wr_id;
    entry->num_sge = wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++)
        entry->sges[i] = wr->sg_list[i];
    atomic_fetch_add(&shared->posted, 1);
    return 0;
}

int fake_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    struct fake_qp *qp = (struct fake_qp *)base;
    struct fake_context *owner = fake_context(base->context);
    int error = injected_errno(owner->device, "post_recv");
    pthread_mutex_lock(&owner->lock);
    for (; wr; wr = wr->next) {
        if (!error)
            error = take_receive(qp, wr);
        if (recording_data())
            record("post_recv", "\"qp\":%u,\"wr_id\":%llu,\"sges\":%d,\"bytes\":%u,\"ret\":%d", base->qp_num,
                   (unsigned long long)wr->wr_id, wr->num_sge, wr->num_sge > 0 ? wr->sg_list[0].length : 0, error);
        if (error) {
            *bad = wr;
            break;
        }
    }
    pthread_mutex_unlock(&owner->lock);
    return error;
}

static uint64_t waiting_receives(const struct fake_qp *qp) {
    return atomic_load(&qp->shared->consumed) - atomic_load(&qp->shared->polled);
}

static void take_received(struct fake_qp *qp, struct ibv_wc *wc) {
    struct shared_qp *shared = qp->shared;
    const struct recv_entry *entry = &shared->ring[atomic_load(&shared->polled) % RECV_RING];
    memset(wc, 0, sizeof *wc);
    wc->wr_id = entry->wr_id;
    wc->status = entry->status;
    wc->opcode = entry->opcode;
    wc->vendor_err = entry->vendor_err;
    wc->byte_len = entry->byte_len;
    wc->imm_data = entry->imm_data;
    wc->qp_num = qp->base.qp_num;
    wc->src_qp = entry->src_qp;
    wc->wc_flags = entry->wc_flags;
    atomic_fetch_add(&shared->polled, 1);
}

static int collect(struct fake_context *owner, struct fake_cq *cq, int room, struct ibv_wc *wc) {
    uint64_t waiting = cq->head - cq->tail;
    for (struct fake_qp *qp = owner->qps; qp; qp = qp->next)
        if (qp->base.recv_cq == &cq->base)
            waiting += waiting_receives(qp);
    if (waiting > (uint64_t)cq->base.cqe)
        overrun(cq);
    if (cq->overrun)
        return -1;
    int count = 0;
    for (; count < room && cq->tail != cq->head; cq->tail++) {
        struct cqe *entry = &cq->ring[cq->tail % (uint64_t)cq->base.cqe];
        entry->qp->released = entry->done;
        wc[count++] = entry->wc;
    }
    for (struct fake_qp *qp = owner->qps; qp && count < room; qp = qp->next)
        while (qp->base.recv_cq == &cq->base && count < room && waiting_receives(qp) > 0)
            take_received(qp, &wc[count++]);
    return count;
}

int fake_poll_cq(struct ibv_cq *base, int room, struct ibv_wc *wc) {
    struct fake_cq *cq = (struct fake_cq *)base;
    struct fake_context *owner = fake_context(base->context);
    if (injected_errno(owner->device, "poll_cq"))
        return -1;
    pthread_mutex_lock(&owner->lock);
    for (struct fake_qp *qp = owner->qps; qp; qp = qp->next)
        if (qp->base.send_cq == base || qp->base.recv_cq == base)
            progress(qp);
    int count = collect(owner, cq, room, wc);
    pthread_mutex_unlock(&owner->lock);
    for (int i = 0; i < count && recording_data(); i++)
        record("completion",
               "\"qp\":%u,\"wr_id\":%llu,\"status\":%u,\"opcode\":%u,\"vendor_err\":%u,\"byte_len\":%u,\"imm\":%u",
               wc[i].qp_num, (unsigned long long)wc[i].wr_id, wc[i].status, wc[i].opcode, wc[i].vendor_err,
               wc[i].byte_len, wc[i].imm_data);
    return count;
}
