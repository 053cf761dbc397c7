/*
 * One message from this queue pair to its peer: whether the peer is there and lets it in, and the bytes.
 *
 * Peers are processes: bytes go with process_vm_writev, within one process too, so that memory that is gone meanwhile is
 * an error and not a crash.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* Whether packets that go this way end at that port. */
static bool way_leads_to(const struct ibv_ah_attr *way, uint32_t gid_type, const struct shared_qp *to) {
    if (to->link_layer != LINK_ETHERNET) {
        uint32_t paths = 1u << to->lmc;
        if (way->dlid == 0 || to->lid == 0 || way->dlid < to->lid || way->dlid >= to->lid + paths)
            return false;
        if (!way->is_global)
            return true;
    }
    for (int i = 0; i < MAX_GIDS; i++)
        if (to->gids[i].present && to->gids[i].type == gid_type &&
            memcmp(to->gids[i].gid.raw, way->grh.dgid.raw, sizeof way->grh.dgid.raw) == 0)
            return true;
    return false;
}

/* NULL where both queue pairs are connected to each other, else why packets between them get lost. */
static const char *why_lost(const struct shared_qp *from, const struct shared_qp *to) {
    if (!to)
        return "there is no such queue pair";
    unsigned state = atomic_load(&to->state);
    if (state != QPS_RTR && state != QPS_RTS)
        return "the peer's queue pair is not in RTR or RTS";
    if (atomic_load(&from->port_state) != PORT_ACTIVE)
        return "the own port is not active";
    if (atomic_load(&to->port_state) != PORT_ACTIVE)
        return "the peer's port is not active";
    if (from->fabric != to->fabric || (from->link_layer == LINK_ETHERNET) != (to->link_layer == LINK_ETHERNET))
        return "the ports are of different fabrics";
    if (to->dest_qp != atomic_load(&from->number))
        return "the peer is connected to another queue pair";
    if (!way_leads_to(&from->way, from->sgid_type, to))
        return "no port has the address (LID or GID) that the way names";
    if (!way_leads_to(&to->way, to->sgid_type, from))
        return "the peer's way leads elsewhere";
    if ((from->pkey ^ to->pkey) & 0x7fff || !((from->pkey | to->pkey) & 0x8000))
        return "the P_Keys differ, or both are limited members";
    if (from->sq_psn != to->rq_psn)
        return "the peer expects another packet sequence number";
    return NULL;
}

/* Looks up pieces of this end's memory; false where a key, the bounds or the permission is wrong. */
static bool own_pieces(const struct fake_qp *qp, const struct wqe *wqe, uint32_t need, struct iovec *pieces) {
    for (int i = 0; i < wqe->wr.num_sge; i++) {
        const struct ibv_sge *sge = &wqe->sges[i];
        if (wqe->inline_data) {
            pieces[i] = (struct iovec){wqe->inline_data, wqe->length};
            break;
        }
        const struct shared_region *region = find_region(sge->lkey, own_pid());
        if (!region || region->pd != qp->shared->pd || (region->access & need) != need || sge->addr < region->iova ||
            sge->length > region->length || sge->addr - region->iova > region->length - sge->length)
            return false;
        pieces[i] = (struct iovec){(void *)(uintptr_t)(region->address + (sge->addr - region->iova)), sge->length};
    }
    return true;
}

static bool peer_piece(const struct shared_qp *to, uint32_t key, uint64_t address, uint64_t length, uint32_t need,
                       struct iovec *piece) {
    *piece = (struct iovec){NULL, 0};
    if (length == 0)
        return true;
    const struct shared_region *region = find_region(key, atomic_load(&to->pid));
    if (!region || region->pd != to->pd || (region->access & need) != need || address < region->iova ||
        length > region->length || address - region->iova > region->length - length)
        return false;
    *piece = (struct iovec){(void *)(uintptr_t)(region->address + (address - region->iova)), length};
    return true;
}

enum direction { TO_PEER, FROM_PEER };

/* Moves bytes; an errno, or 0. */
static int move_bytes(enum direction direction, int process, struct iovec *own, int own_count, struct iovec *theirs,
                      int their_count, uint32_t length) {
    if (length == 0)
        return kill(process, 0) != 0 && errno == ESRCH ? ESRCH : 0;
    ssize_t moved = direction == TO_PEER
                        ? process_vm_writev(process, own, (unsigned long)own_count, theirs, (unsigned long)their_count, 0)
                        : process_vm_readv(process, own, (unsigned long)own_count, theirs, (unsigned long)their_count, 0);
    if (moved < 0)
        return errno;
    return (uint32_t)moved == length ? 0 : EFAULT;
}

/* Sends from a copy in which one byte is wrong. */
static int move_flipped(uint32_t byte, int process, struct iovec *own, int own_count, struct iovec *theirs,
                        int their_count, uint32_t length) {
    uint8_t *copy = malloc(length);
    uint32_t used = 0;
    for (int i = 0; copy && i < own_count; i++) {
        memcpy(copy + used, own[i].iov_base, own[i].iov_len);
        used += (uint32_t)own[i].iov_len;
    }
    if (!copy)
        return ENOMEM;
    copy[byte % length] ^= 0xff;
    struct iovec whole = {copy, length};
    int error = move_bytes(TO_PEER, process, &whole, 1, theirs, their_count, length);
    free(copy);
    return error;
}

static int deliver(const struct fake_qp *qp, const struct shared_qp *to, struct iovec *own, int own_count,
                   struct iovec *theirs, int their_count, uint32_t length) {
    uint32_t byte = 0;
    int process = atomic_load(&to->pid);
    if (injected_flip(fake_context(qp->base.context)->device, &byte) && length > 0)
        return move_flipped(byte, process, own, own_count, theirs, their_count, length);
    return move_bytes(TO_PEER, process, own, own_count, theirs, their_count, length);
}

/* What the peer answers to a wrong key or permission; its queue pair fails too, with an event. */
static enum passage access_refused(struct shared_qp *to, unsigned *status) {
    atomic_fetch_or(&to->pending_events, 1u << EVENT_QP_ACCESS_ERR);
    atomic_store(&to->state, QPS_ERR);
    *status = WC_REM_ACCESS_ERR;
    return FAILED;
}

static enum passage moved(int error, struct shared_qp *to, unsigned *status, const char **why) {
    switch (error) {
    case 0:
        return PASSED;
    case ESRCH:
        *why = "the peer's process has ended";
        return LOST;
    case EPERM:
        *why = "this process may not reach the peer's memory (ptrace permission)";
        return LOST;
    default:
        return access_refused(to, status);
    }
}

/* Ends a receive of the peer. The caller holds its lock. */
static void end_receive(struct fake_qp *qp, struct shared_qp *to, const struct wqe *wqe, unsigned status) {
    struct recv_entry *entry = &to->ring[atomic_load(&to->consumed) % RECV_RING];
    bool with_imm = wqe->wr.opcode == WR_SEND_IMM || wqe->wr.opcode == WR_RDMA_WRITE_IMM;
    entry->status = status;
    entry->opcode = wqe->wr.opcode == WR_RDMA_WRITE_IMM ? WC_OP_RECV_RDMA_IMM : WC_OP_RECV;
    entry->wc_flags = with_imm ? WC_WITH_IMM : 0;
    entry->vendor_err = 0;
    entry->byte_len = wqe->length;
    entry->imm_data = with_imm ? wqe->wr.imm_data : 0;
    entry->src_qp = qp->base.qp_num;
    atomic_fetch_add(&to->consumed, 1);
}

static bool receive_waits(const struct shared_qp *to) {
    return atomic_load(&to->consumed) != atomic_load(&to->posted);
}

static enum passage fail_receive(struct fake_qp *qp, struct shared_qp *to, const struct wqe *wqe, unsigned theirs,
                                 unsigned own, unsigned *status) {
    end_receive(qp, to, wqe, theirs);
    atomic_store(&to->state, QPS_ERR);
    *status = own;
    return FAILED;
}

static enum passage send_message(struct fake_qp *qp, struct shared_qp *to, struct wqe *wqe, struct iovec *own,
                                 unsigned *status, const char **why) {
    if (!receive_waits(to))
        return NOT_READY;
    struct recv_entry *entry = &to->ring[atomic_load(&to->consumed) % RECV_RING];
    struct iovec theirs[MAX_SGES];
    uint64_t room = 0;
    for (int i = 0; i < entry->num_sge; i++) {
        const struct ibv_sge *sge = &entry->sges[i];
        if (!peer_piece(to, sge->lkey, sge->addr, sge->length, ACCESS_LOCAL_WRITE, &theirs[i]))
            return fail_receive(qp, to, wqe, WC_LOC_PROT_ERR, WC_REM_OP_ERR, status);
        room += sge->length;
    }
    if (wqe->length > room)
        return fail_receive(qp, to, wqe, WC_LOC_LEN_ERR, WC_REM_INV_REQ_ERR, status);
    int count = wqe->inline_data ? 1 : wqe->wr.num_sge;
    int error = deliver(qp, to, own, count, theirs, entry->num_sge, wqe->length);
    if (error != 0 && error != ESRCH && error != EPERM)
        return fail_receive(qp, to, wqe, WC_LOC_PROT_ERR, WC_REM_OP_ERR, status);
    enum passage passage = moved(error, to, status, why);
    if (passage == PASSED)
        end_receive(qp, to, wqe, WC_SUCCESS);
    return passage;
}

static enum passage write_message(struct fake_qp *qp, struct shared_qp *to, struct wqe *wqe, struct iovec *own,
                                  unsigned *status, const char **why) {
    bool with_imm = wqe->wr.opcode == WR_RDMA_WRITE_IMM;
    struct iovec theirs;
    if (!(to->access & ACCESS_REMOTE_WRITE) ||
        (wqe->length && !(wqe->wr.rdma.rkey & REMOTE_KEY)) ||
        !peer_piece(to, wqe->wr.rdma.rkey & ~REMOTE_KEY, wqe->wr.rdma.remote_addr, wqe->length, ACCESS_REMOTE_WRITE,
                    &theirs))
        return access_refused(to, status);
    if (with_imm && !receive_waits(to))
        return NOT_READY;
    int count = wqe->inline_data ? 1 : wqe->wr.num_sge;
    enum passage passage = moved(deliver(qp, to, own, count, &theirs, 1, wqe->length), to, status, why);
    if (passage == PASSED && with_imm)
        end_receive(qp, to, wqe, WC_SUCCESS);
    return passage;
}

static enum passage read_message(struct fake_qp *qp, struct shared_qp *to, struct wqe *wqe, struct iovec *own,
                                 unsigned *status, const char **why) {
    struct iovec theirs;
    if (qp->attr.max_rd_atomic == 0) {
        *status = WC_LOC_QP_OP_ERR;
        return FAILED;
    }
    if (qp->attr.max_rd_atomic > to->max_dest_rd_atomic) {
        atomic_store(&to->state, QPS_ERR);
        *status = WC_REM_INV_REQ_ERR;
        return FAILED;
    }
    if (!(to->access & ACCESS_REMOTE_READ) || (wqe->length && !(wqe->wr.rdma.rkey & REMOTE_KEY)) ||
        !peer_piece(to, wqe->wr.rdma.rkey & ~REMOTE_KEY, wqe->wr.rdma.remote_addr, wqe->length, ACCESS_REMOTE_READ,
                    &theirs))
        return access_refused(to, status);
    int error = move_bytes(FROM_PEER, atomic_load(&to->pid), own, wqe->wr.num_sge, &theirs, 1, wqe->length);
    uint32_t byte = 0;
    if (error == 0 && injected_flip(fake_context(qp->base.context)->device, &byte) && wqe->length > 0)
        ((uint8_t *)own[0].iov_base)[byte % own[0].iov_len] ^= 0xff;
    return moved(error, to, status, why);
}

/* Plays one request. LOST and NOT_READY leave it as it is, to be tried again. */
enum passage transfer(struct fake_qp *qp, struct wqe *wqe, unsigned *status, const char **why) {
    struct iovec own[MAX_SGES];
    bool is_read = wqe->wr.opcode == WR_RDMA_READ;
    const struct device *device = fake_context(qp->base.context)->device;
    if (wqe->length > device->ports[qp->attr.port_num - 1].attr.max_msg_sz) {
        *status = WC_LOC_LEN_ERR;
        return FAILED;
    }
    if (!own_pieces(qp, wqe, is_read ? ACCESS_LOCAL_WRITE : 0, own)) {
        *status = WC_LOC_PROT_ERR;
        return FAILED;
    }
    struct shared_qp *to = find_shared_qp(qp->attr.dest_qp_num);
    *why = why_lost(qp->shared, to);
    if (*why)
        return LOST;
    if (wqe->length > 128u << to->path_mtu && qp->attr.path_mtu > to->path_mtu) {
        atomic_store(&to->state, QPS_ERR);
        *status = WC_REM_INV_REQ_ERR;
        return FAILED;
    }
    switch (wqe->wr.opcode) {
    case WR_RDMA_READ:
        return read_message(qp, to, wqe, own, status, why);
    case WR_RDMA_WRITE:
        return write_message(qp, to, wqe, own, status, why);
    default:
        break;
    }
    /* Receives of the peer are taken by one at a time, and the peer may have left meanwhile. */
    lock_shared_qp(to);
    *why = why_lost(qp->shared, to);
    enum passage passage = *why ? LOST
                           : wqe->wr.opcode == WR_RDMA_WRITE_IMM ? write_message(qp, to, wqe, own, status, why)
                                                                 : send_message(qp, to, wqe, own, status, why);
    unlock_shared_qp(to);
    return passage;
}
