/*
 * Devices, contexts and what can be asked of them; asynchronous events.
 */
#include "fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct fake_context *fake_context(struct ibv_context *context) {
    return (struct fake_context *)((char *)context - offsetof(struct fake_context, verbs.context));
}

struct ibv_device **ibv_get_device_list(int *count) {
    struct scenario *all = scenario();
    int error = injected_errno(NULL, "get_device_list");
    record("get_device_list", "\"devices\":%d,\"errno\":%d", error ? 0 : all->device_count, error);
    if (count)
        *count = error ? 0 : all->device_count;
    struct ibv_device **list = error ? NULL : calloc((size_t)all->device_count + 1, sizeof *list);
    if (!list) {
        errno = error ? error : ENOMEM;
        return NULL;
    }
    for (int i = 0; i < all->device_count; i++)
        list[i] = &all->devices[i].base;
    fakeverbs_live[KIND_LIST]++;
    return list;
}

void ibv_free_device_list(struct ibv_device **list) {
    record("free_device_list", "\"ret\":0");
    fakeverbs_live[KIND_LIST]--;
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device) {
    return device->name;
}

uint64_t ibv_get_device_guid(struct ibv_device *device) {
    uint64_t guid = ((struct device *)device)->attr.node_guid;
    return ((uint64_t)htonl((uint32_t)guid) << 32) | htonl((uint32_t)(guid >> 32));
}

static int extended_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);

struct ibv_context *ibv_open_device(struct ibv_device *base) {
    struct device *device = (struct device *)base;
    int error = injected_errno(device, "open_device");
    struct fake_context *made = error ? NULL : calloc(1, sizeof *made);
    record("open_device", "\"device\":\"%s\",\"errno\":%d", base->name, error);
    if (!made) {
        errno = error ? error : ENOMEM;
        return NULL;
    }
    made->device = device;
    pthread_mutex_init(&made->lock, NULL);
    struct ibv_context *context = &made->verbs.context;
    pthread_mutex_init(&context->mutex, NULL);
    context->device = base;
    context->cmd_fd = -1;
    /* Like the kernel's file: one read takes one event, and a read of an empty one blocks unless set otherwise. */
    context->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    context->num_comp_vectors = 1;
    context->ops.poll_cq = fake_poll_cq;
    context->ops.post_send = fake_post_send;
    context->ops.post_recv = fake_post_recv;
    if (device->extended) {
        context->abi_compat = (void *)UINTPTR_MAX;
        made->verbs.sz = sizeof made->verbs;
        made->verbs.query_port = extended_query_port;
    }
    fakeverbs_live[KIND_CONTEXT]++;
    return context;
}

int ibv_close_device(struct ibv_context *context) {
    struct fake_context *made = fake_context(context);
    int error = injected_errno(made->device, "close_device");
    record("close_device", "\"device\":\"%s\",\"left_pds\":%d,\"left_cqs\":%d,\"ret\":%d", context->device->name, made->pds,
           made->cqs, error);
    if (error) {
        errno = error;
        return -1;
    }
    fakeverbs_live[KIND_CONTEXT]--;
    record_live("close_device");
    close(context->async_fd);
    free(made);
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
    struct fake_context *made = fake_context(context);
    int error = injected_errno(made->device, "query_device");
    record("query_device", "\"device\":\"%s\",\"ret\":%d", context->device->name, error);
    if (error)
        return error;
    *attr = made->device->attr;
    attr->node_guid = attr->sys_image_guid = ibv_get_device_guid(context->device);
    return 0;
}

static struct port *find_port(struct ibv_context *context, uint32_t number) {
    struct device *device = fake_context(context)->device;
    return number >= 1 && number <= device->attr.phys_port_cnt ? &device->ports[number - 1] : NULL;
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t size) {
    struct port *port = find_port(context, number);
    int error = injected_errno(fake_context(context)->device, "query_port");
    if (!error && !port)
        error = EINVAL;
    record("query_port", "\"device\":\"%s\",\"port\":%u,\"bytes\":%zu,\"ret\":%d", context->device->name, number, size,
           error);
    if (!error) {
        memset(attr, 0, size);
        memcpy(attr, &port->attr, size < sizeof *attr ? size : sizeof *attr);
    }
    return error;
}

static int extended_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size) {
    return query_port(context, port, attr, size);
}

/* The library's first form knows the structure up to port_cap_flags2. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr) {
    return query_port(context, port, attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t number, uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t size) {
    struct port *port = find_port(context, number);
    int error = injected_errno(fake_context(context)->device, "query_gid_ex");
    if (!error && (!port || (int)index >= port->attr.gid_tbl_len || flags || size < sizeof *entry))
        error = EINVAL;
    if (!error && !port->gids[index].present)
        error = ENODATA;
    record("query_gid_ex", "\"device\":\"%s\",\"port\":%u,\"index\":%u,\"ret\":%d", context->device->name, number, index,
           error);
    if (error)
        return error;
    struct gid_row *row = &port->gids[index];
    *entry = (struct ibv_gid_entry){row->gid, index, number, row->type, row->ifindex};
    return 0;
}

/* An empty row of the table reads as zeros, as it always did. */
int ibv_query_gid(struct ibv_context *context, uint8_t number, int index, union ibv_gid *gid) {
    struct port *port = find_port(context, number);
    int error = injected_errno(fake_context(context)->device, "query_gid");
    if (!error && (!port || index < 0 || index >= port->attr.gid_tbl_len))
        error = EINVAL;
    record("query_gid", "\"device\":\"%s\",\"port\":%u,\"index\":%d,\"errno\":%d", context->device->name, number, index,
           error);
    if (error) {
        errno = error;
        return -1;
    }
    *gid = port->gids[index].gid;
    return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t number, int index, uint16_t *pkey) {
    struct port *port = find_port(context, number);
    int error = injected_errno(fake_context(context)->device, "query_pkey");
    if (!error && (!port || index < 0 || index >= port->attr.pkey_tbl_len))
        error = EINVAL;
    record("query_pkey", "\"device\":\"%s\",\"port\":%u,\"index\":%d,\"errno\":%d", context->device->name, number, index,
           error);
    if (error) {
        errno = error;
        return -1;
    }
    *pkey = htons(port->pkeys[index]);
    return 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
    struct fake_context *made = fake_context(context);
    uint64_t one;
    if (read(context->async_fd, &one, sizeof one) != sizeof one)
        return -1;
    pthread_mutex_lock(&made->lock);
    *event = made->events[made->event_tail++ % MAX_EVENTS];
    pthread_mutex_unlock(&made->lock);
    record("get_async_event", "\"device\":\"%s\",\"type\":%u,\"ret\":0", context->device->name, event->event_type);
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event) {
    record("ack_async_event", "\"type\":%u", event->event_type);
}

/* The texts of rdma-core. */
const char *ibv_event_type_str(unsigned type) {
    static const char *const TEXTS[] = {
        "CQ error", "local work queue catastrophic error", "invalid request local work queue error",
        "local access violation work queue error", "communication established", "send queue drained",
        "path migrated", "path migration request error", "local catastrophic error", "port active", "port error",
        "LID change", "P_Key change", "SM change", "SRQ catastrophic error", "SRQ limit reached",
        "last WQE reached", "client reregistration", "GID table change"};
    return type < sizeof TEXTS / sizeof *TEXTS ? TEXTS[type] : "unknown";
}
