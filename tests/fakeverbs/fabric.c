/*
 * The fabric: a file in $RAILMESH_FAKEVERBS_DIR that every process of a test maps. It holds the queue pairs and the
 * regions of all processes; the messages themselves go straight from memory to memory with process_vm_writev.
 *
 * All zero is its initial state, so whoever comes first makes it by making it long enough. What a killed process left is
 * taken over when room runs out.
 */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct fabric *shared;
static pthread_once_t mapped = PTHREAD_ONCE_INIT;
static int pid;

static void map_fabric(void) {
    pid = (int)getpid();
    /* Where Yama restricts ptrace, peers may reach the memory of this process only if it allows them. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    const char *folder = getenv("RAILMESH_FAKEVERBS_DIR");
    if (!folder || !*folder) {
        fprintf(stderr, "fakeverbs: RAILMESH_FAKEVERBS_DIR has to name a folder that all ends of the test share\n");
        abort();
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/fabric", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, sizeof(struct fabric)) != 0) {
        fprintf(stderr, "fakeverbs: %s cannot be made: %s\n", path, strerror(errno));
        abort();
    }
    void *at = mmap(NULL, sizeof(struct fabric), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED) {
        fprintf(stderr, "fakeverbs: %s cannot be mapped: %s\n", path, strerror(errno));
        abort();
    }
    close(fd);
    shared = at;
}

struct fabric *fabric(void) {
    pthread_once(&mapped, map_fabric);
    return shared;
}

int own_pid(void) {
    fabric();
    return pid;
}

static bool dead(int process) {
    return kill(process, 0) != 0 && errno == ESRCH;
}

/* Takes a place whose owner is 0, or in the second round one whose owner is dead. */
static bool take(_Atomic int *owner, int round) {
    int holder = atomic_load(owner);
    if (holder != 0 && (round == 0 || !dead(holder)))
        return false;
    return atomic_compare_exchange_strong(owner, &holder, own_pid());
}

struct shared_qp *add_shared_qp(void) {
    struct fabric *all = fabric();
    for (int i = 0; i < 2 * MAX_SHARED_QPS; i++) {
        uint32_t at = atomic_fetch_add(&all->next_qp, 1) % MAX_SHARED_QPS;
        struct shared_qp *qp = &all->qps[at];
        if (!take(&qp->pid, i / MAX_SHARED_QPS))
            continue;
        atomic_store(&qp->number, 0);
        atomic_store(&qp->lock, 0);
        atomic_store(&qp->state, QPS_RESET);
        atomic_store(&qp->pending_events, 0);
        atomic_store(&qp->posted, 0);
        atomic_store(&qp->consumed, 0);
        atomic_store(&qp->polled, 0);
        uint32_t generation = atomic_fetch_add(&qp->generation, 1) % 0x7ffe + 1;
        atomic_store(&qp->number, generation * MAX_SHARED_QPS + at);
        return qp;
    }
    return NULL;
}

struct shared_qp *find_shared_qp(uint32_t number) {
    struct shared_qp *qp = &fabric()->qps[number % MAX_SHARED_QPS];
    return atomic_load(&qp->pid) != 0 && atomic_load(&qp->number) == number ? qp : NULL;
}

void lock_shared_qp(struct shared_qp *qp) {
    for (unsigned spins = 1;; spins++) {
        int holder = 0;
        if (atomic_compare_exchange_weak(&qp->lock, &holder, own_pid()))
            return;
        if (spins % 64 == 0)
            sched_yield();
        /* The holder was killed inside: nothing is half done that counts, for `consumed` is moved last. */
        if (spins % 4096 == 0 && holder != 0 && dead(holder) &&
            atomic_compare_exchange_strong(&qp->lock, &holder, own_pid()))
            return;
    }
}

void unlock_shared_qp(struct shared_qp *qp) {
    atomic_store(&qp->lock, 0);
}

/* The region becomes valid when its owner stores `*lkey` in it, after everything else. */
struct shared_region *add_region(uint32_t *lkey) {
    struct fabric *all = fabric();
    for (int i = 0; i < 2 * MAX_SHARED_REGIONS; i++) {
        uint32_t at = atomic_fetch_add(&all->next_region, 1) % MAX_SHARED_REGIONS;
        struct shared_region *region = &all->regions[at];
        if (!take(&region->pid, i / MAX_SHARED_REGIONS))
            continue;
        uint32_t generation = atomic_fetch_add(&region->generation, 1) % 0x7ffe + 1;
        atomic_store(&region->lkey, 0);
        *lkey = generation * MAX_SHARED_REGIONS + at;
        return region;
    }
    return NULL;
}

struct shared_region *find_region(uint32_t lkey, int process) {
    struct shared_region *region = &fabric()->regions[lkey % MAX_SHARED_REGIONS];
    if (lkey == 0 || atomic_load(&region->lkey) != lkey || atomic_load(&region->pid) != process)
        return NULL;
    return region;
}
