/*
 * Protection domains, memory regions and completion queues.
 */
#include "fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    struct fake_context *owner = fake_context(context);
    int error = injected_errno(owner->device, "alloc_pd");
    struct fake_pd *pd = error ? NULL : calloc(1, sizeof *pd);
    record("alloc_pd", "\"device\":\"%s\",\"errno\":%d", context->device->name, error);
    if (!pd) {
        errno = error ? error : ENOMEM;
        return NULL;
    }
    pd->base.context = context;
    pd->number = atomic_fetch_add(&fabric()->next_pd, 1) + 1;
    pd->base.handle = pd->number;
    pthread_mutex_lock(&owner->lock);
    owner->pds++;
    pthread_mutex_unlock(&owner->lock);
    fakeverbs_live[KIND_PD]++;
    return &pd->base;
}

/* As in the kernel, what is used by others stays: EBUSY. */
int ibv_dealloc_pd(struct ibv_pd *base) {
    struct fake_pd *pd = (struct fake_pd *)base;
    struct fake_context *owner = fake_context(base->context);
    pthread_mutex_lock(&owner->lock);
    int error = pd->users ? EBUSY : injected_errno(owner->device, "dealloc_pd");
    owner->pds -= error ? 0 : 1;
    pthread_mutex_unlock(&owner->lock);
    record("dealloc_pd", "\"users\":%d,\"ret\":%d", pd->users, error);
    if (error)
        return error;
    fakeverbs_live[KIND_PD]--;
    free(pd);
    return 0;
}

static int check_registration(void *address, size_t length, unsigned access) {
    if (length == 0 || (uintptr_t)address + length < length)
        return EINVAL;
    /* The kernel: what peers may write, this end may write. */
    if ((access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) && !(access & ACCESS_LOCAL_WRITE))
        return EINVAL;
    /* As with pinning, memory that is not there is EFAULT. */
    unsigned char present;
    uintptr_t page = (uintptr_t)address & ~(uintptr_t)4095, last = ((uintptr_t)address + length - 1) & ~(uintptr_t)4095;
    if (mincore((void *)page, 1, &present) != 0 || mincore((void *)last, 1, &present) != 0)
        return EFAULT;
    return 0;
}

static struct ibv_mr *add_mr(struct ibv_pd *base, void *address, size_t length, uint64_t iova, unsigned access) {
    struct fake_pd *pd = (struct fake_pd *)base;
    struct fake_context *owner = fake_context(base->context);
    uint32_t lkey;
    struct fake_mr *mr = calloc(1, sizeof *mr);
    struct shared_region *region = add_region(&lkey);
    if (!mr || !region) {
        free(mr);
        errno = ENOMEM;
        return NULL;
    }
    region->pd = pd->number;
    region->access = access;
    region->iova = iova;
    region->address = (uint64_t)(uintptr_t)address;
    region->length = length;
    atomic_store(&region->lkey, lkey);
    mr->region = region;
    mr->base = (struct ibv_mr){base->context, base, address, length, lkey, lkey, lkey | REMOTE_KEY};
    pthread_mutex_lock(&owner->lock);
    pd->users++;
    pthread_mutex_unlock(&owner->lock);
    fakeverbs_live[KIND_MR]++;
    return &mr->base;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access) {
    int error = injected_errno(fake_context(pd->context)->device, "reg_mr");
    if (!error)
        error = check_registration(address, length, access);
    struct ibv_mr *mr = error ? NULL : add_mr(pd, address, length, iova, access);
    record("reg_mr", "\"bytes\":%zu,\"access\":%u,\"lkey\":%u,\"rkey\":%u,\"errno\":%d", length, access,
           mr ? mr->lkey : 0, mr ? mr->rkey : 0, error);
    if (error)
        errno = error;
    return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access) {
    return ibv_reg_mr_iova2(pd, address, length, (uint64_t)(uintptr_t)address, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access) {
    return ibv_reg_mr_iova2(pd, address, length, iova, (unsigned)access);
}

/* The descriptor is mapped: a memfd stands for a buffer of a device. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access) {
    struct device *device = fake_context(pd->context)->device;
    int error = injected_errno(device, "reg_dmabuf_mr");
    if (!error && !device->dmabuf)
        error = EOPNOTSUPP;
    void *mapped = MAP_FAILED;
    uint64_t start = offset & ~(uint64_t)4095;
    size_t bytes = length + (size_t)(offset - start);
    if (!error) {
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)start);
        error = mapped == MAP_FAILED ? errno : 0;
    }
    struct ibv_mr *mr = error ? NULL : add_mr(pd, (char *)mapped + (offset - start), length, iova, (unsigned)access);
    record("reg_dmabuf_mr", "\"offset\":%llu,\"bytes\":%zu,\"iova\":%llu,\"fd\":%d,\"access\":%d,\"errno\":%d",
           (unsigned long long)offset, length, (unsigned long long)iova, fd, access, error);
    if (mr) {
        ((struct fake_mr *)mr)->mapped = mapped;
        ((struct fake_mr *)mr)->mapped_bytes = bytes;
    } else if (mapped != MAP_FAILED)
        munmap(mapped, bytes);
    if (error)
        errno = error;
    return mr;
}

int ibv_dereg_mr(struct ibv_mr *base) {
    struct fake_mr *mr = (struct fake_mr *)base;
    struct fake_context *owner = fake_context(base->context);
    int error = injected_errno(owner->device, "dereg_mr");
    record("dereg_mr", "\"lkey\":%u,\"ret\":%d", base->lkey, error);
    if (error)
        return error;
    atomic_store(&mr->region->lkey, 0);
    atomic_store(&mr->region->pid, 0);
    if (mr->mapped)
        munmap(mr->mapped, mr->mapped_bytes);
    pthread_mutex_lock(&owner->lock);
    ((struct fake_pd *)base->pd)->users--;
    pthread_mutex_unlock(&owner->lock);
    fakeverbs_live[KIND_MR]--;
    free(mr);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *channel,
                             int vector) {
    struct fake_context *owner = fake_context(context);
    int error = injected_errno(owner->device, "create_cq");
    if (!error && (entries < 1 || entries > owner->device->attr.max_cqe || vector < 0 ||
                   vector >= context->num_comp_vectors))
        error = EINVAL;
    struct fake_cq *cq = error ? NULL : calloc(1, sizeof *cq);
    struct cqe *ring = cq ? calloc((size_t)entries, sizeof *ring) : NULL;
    record("create_cq", "\"entries\":%d,\"vector\":%d,\"channel\":%s,\"errno\":%d", entries, vector,
           channel ? "true" : "false", error);
    if (!ring) {
        free(cq);
        errno = error ? error : ENOMEM;
        return NULL;
    }
    cq->ring = ring;
    cq->base.context = context;
    cq->base.channel = channel;
    cq->base.cq_context = cq_context;
    cq->base.cqe = entries;
    pthread_mutex_init(&cq->base.mutex, NULL);
    pthread_cond_init(&cq->base.cond, NULL);
    pthread_mutex_lock(&owner->lock);
    owner->cqs++;
    pthread_mutex_unlock(&owner->lock);
    fakeverbs_live[KIND_CQ]++;
    return &cq->base;
}

int ibv_destroy_cq(struct ibv_cq *base) {
    struct fake_cq *cq = (struct fake_cq *)base;
    struct fake_context *owner = fake_context(base->context);
    pthread_mutex_lock(&owner->lock);
    int error = cq->users ? EBUSY : injected_errno(owner->device, "destroy_cq");
    owner->cqs -= error ? 0 : 1;
    pthread_mutex_unlock(&owner->lock);
    record("destroy_cq", "\"users\":%d,\"ret\":%d", cq->users, error);
    if (error)
        return error;
    fakeverbs_live[KIND_CQ]--;
    free(cq->ring);
    free(cq);
    return 0;
}
