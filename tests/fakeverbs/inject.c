/*
 * Faults that a scenario asks for. Each rule counts on its own what it could meet in this process, from 1, and acts on
 * `times` of them from `first` on.
 */
#include "fake.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool meets(struct rule *rule, const struct device *device) {
    if (rule->device[0] && device && strcmp(rule->device, device->base.name) != 0)
        return false;
    uint64_t count = atomic_fetch_add(&rule->seen, 1) + 1;
    return count >= rule->first && count - rule->first < rule->times;
}

int injected_errno(const struct device *device, const char *verb) {
    struct scenario *all = scenario();
    for (int i = 0; i < all->rule_count; i++) {
        struct rule *rule = &all->rules[i];
        if (rule->kind == RULE_VERB && strcmp(rule->verb, verb) == 0 && meets(rule, device))
            return rule->error;
    }
    return 0;
}

bool injected_completion(const struct device *device, unsigned *status, unsigned *vendor_err) {
    struct scenario *all = scenario();
    bool hit = false;
    for (int i = 0; i < all->rule_count; i++) {
        struct rule *rule = &all->rules[i];
        if (rule->kind == RULE_COMPLETION && meets(rule, device)) {
            *status = rule->status;
            *vendor_err = rule->vendor_err;
            hit = true;
        }
    }
    return hit;
}

bool injected_flip(const struct device *device, uint32_t *byte) {
    struct scenario *all = scenario();
    bool hit = false;
    for (int i = 0; i < all->rule_count; i++)
        if (all->rules[i].kind == RULE_FLIP && meets(&all->rules[i], device)) {
            *byte = all->rules[i].byte;
            hit = true;
        }
    return hit;
}

void push_event(struct fake_context *context, unsigned type, void *object, int port) {
    if (context->event_head - context->event_tail == MAX_EVENTS)
        return;
    struct ibv_async_event *event = &context->events[context->event_head++ % MAX_EVENTS];
    memset(event, 0, sizeof *event);
    event->event_type = type;
    if (object)
        event->element.object = object;
    else
        event->element.port_num = port;
    uint64_t one = 1;
    /* It can only fail where 2^64 events wait. */
    ssize_t written = write(context->verbs.context.async_fd, &one, sizeof one);
    (void)written;
    record("event", "\"device\":\"%s\",\"type\":%u,\"port\":%d", context->device->base.name, type, port);
}

/* Events of ports change what the port tells, and what peers see of it. The caller holds the context. */
void inject_events(struct fake_context *context) {
    struct scenario *all = scenario();
    for (int i = 0; i < all->rule_count; i++) {
        struct rule *rule = &all->rules[i];
        if (rule->kind != RULE_EVENT || !meets(rule, context->device))
            continue;
        struct port *port = &context->device->ports[rule->port - 1];
        if (rule->lid >= 0)
            port->attr.lid = (uint16_t)rule->lid;
        if (rule->sm_lid >= 0)
            port->attr.sm_lid = (uint16_t)rule->sm_lid;
        if (rule->state >= 0)
            port->attr.state = (unsigned)rule->state;
        for (struct fake_qp *qp = context->qps; qp; qp = qp->next)
            if (qp->attr.port_num == rule->port) {
                qp->shared->lid = port->attr.lid;
                atomic_store(&qp->shared->port_state, port->attr.state);
            }
        push_event(context, rule->event_type, NULL, rule->port);
    }
}
