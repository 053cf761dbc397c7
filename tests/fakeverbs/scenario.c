/*
 * The scenario: a text file named by $RAILMESH_FAKEVERBS, whose lines README.md describes. Without one there is no device.
 *
 * A line that is not understood ends the process with its place: a test must not run on devices that it did not ask for.
 */
#include "fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct scenario loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *path;
static int line_number;

static void refuse(const char *what, const char *text) {
    fprintf(stderr, "fakeverbs: %s:%d: %s: %s\n", path, line_number, what, text);
    abort();
}

struct word {
    const char *name;
    int value;
};

static int look_up(const struct word *words, const char *text) {
    for (; words->name; words++)
        if (strcmp(words->name, text) == 0)
            return words->value;
    char *end;
    long number = strtol(text, &end, 0);
    if (*text == 0 || *end != 0)
        refuse("neither a known word nor a number", text);
    return (int)number;
}

static const struct word NUMBERS[] = {{NULL, 0}};
static const struct word NODES[] = {{"ca", NODE_CA}, {"rnic", NODE_RNIC}, {NULL, 0}};
static const struct word TRANSPORTS[] = {{"ib", TRANSPORT_IB}, {"iwarp", TRANSPORT_IWARP}, {NULL, 0}};
static const struct word LINKS[] = {{"infiniband", LINK_INFINIBAND}, {"ethernet", LINK_ETHERNET}, {NULL, 0}};
static const struct word STATES[] = {
    {"down", PORT_DOWN}, {"init", PORT_INIT}, {"armed", PORT_ARMED}, {"active", PORT_ACTIVE}, {NULL, 0}};
static const struct word PHYSICAL[] = {
    {"sleep", 1}, {"polling", 2}, {"disabled", 3}, {"linkup", 5}, {"recovery", 6}, {NULL, 0}};
static const struct word MTUS[] = {{"256", 1}, {"512", 2}, {"1024", 3}, {"2048", 4}, {"4096", 5}, {NULL, 0}};
static const struct word SPEEDS[] = {{"sdr", 1},  {"ddr", 2},  {"qdr", 4},   {"fdr10", 8}, {"fdr", 16},
                                     {"edr", 32}, {"hdr", 64}, {"ndr", 128}, {NULL, 0}};
static const struct word WIDTHS[] = {{"1x", 1}, {"4x", 2}, {"8x", 4}, {"12x", 8}, {"2x", 16}, {NULL, 0}};
static const struct word GID_TYPES[] = {
    {"ib", GID_TYPE_IB}, {"roce1", GID_TYPE_ROCE_V1}, {"roce2", GID_TYPE_ROCE_V2}, {NULL, 0}};
static const struct word ERRNOS[] = {
    {"EPERM", EPERM}, {"ENOENT", ENOENT}, {"EIO", EIO}, {"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM}, {"EACCES", EACCES},
    {"EFAULT", EFAULT}, {"EBUSY", EBUSY}, {"ENODEV", ENODEV}, {"EINVAL", EINVAL}, {"EMFILE", EMFILE},
    {"ENOSYS", ENOSYS}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EPROTONOSUPPORT", EPROTONOSUPPORT}, {"ETIMEDOUT", ETIMEDOUT},
    {"ENETUNREACH", ENETUNREACH}, {"EHOSTUNREACH", EHOSTUNREACH}, {"ENODATA", ENODATA}, {NULL, 0}};
static const struct word EVENTS[] = {
    {"cq_err", EVENT_CQ_ERR}, {"qp_fatal", EVENT_QP_FATAL}, {"device_fatal", EVENT_DEVICE_FATAL},
    {"port_active", EVENT_PORT_ACTIVE}, {"port_err", EVENT_PORT_ERR}, {"lid_change", EVENT_LID_CHANGE},
    {"pkey_change", EVENT_PKEY_CHANGE}, {"sm_change", EVENT_SM_CHANGE}, {"client_reregister", EVENT_CLIENT_REREGISTER},
    {"gid_change", EVENT_GID_CHANGE}, {NULL, 0}};

static struct device *last_device(void) {
    if (loaded.device_count == 0)
        refuse("stands before the first device", "write a line `device NAME` above it");
    return &loaded.devices[loaded.device_count - 1];
}

static struct port *last_port(void) {
    struct device *device = last_device();
    if (device->attr.phys_port_cnt == 0)
        refuse("stands before the first port", "write a line `port 1` above it");
    return &device->ports[device->attr.phys_port_cnt - 1];
}

/* Like a ConnectX-7 where nothing else is said. */
static void add_device(const char *name) {
    if (loaded.device_count == MAX_DEVICES)
        refuse("more devices than the library has room for", name);
    struct device *device = &loaded.devices[loaded.device_count++];
    struct ibv_device_attr *attr = &device->attr;
    device->base.node_type = NODE_CA;
    device->base.transport_type = TRANSPORT_IB;
    snprintf(device->base.name, sizeof device->base.name, "%s", name);
    snprintf(device->base.dev_name, sizeof device->base.dev_name, "uverbs%d", loaded.device_count - 1);
    snprintf(device->base.dev_path, sizeof device->base.dev_path, "/sys/class/infiniband_verbs/uverbs%d",
             loaded.device_count - 1);
    snprintf(device->base.ibdev_path, sizeof device->base.ibdev_path, "/sys/class/infiniband/%.200s", name);
    snprintf(attr->fw_ver, sizeof attr->fw_ver, "28.39.1002");
    attr->max_mr_size = UINT64_MAX;
    attr->page_size_cap = 0xfffffffffffff000;
    attr->vendor_id = 0x02c9;
    attr->vendor_part_id = 4129;
    attr->max_qp = MAX_SHARED_QPS;
    attr->max_qp_wr = RECV_RING;
    attr->max_sge = attr->max_sge_rd = MAX_SGES;
    attr->max_cq = 65536;
    attr->max_cqe = 4194303;
    attr->max_mr = MAX_SHARED_REGIONS;
    attr->max_pd = 65536;
    attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
    attr->max_res_rd_atom = 16 * MAX_SHARED_QPS;
    attr->max_pkeys = MAX_PKEYS;
    attr->local_ca_ack_delay = 16;
    device->max_inline = 956;
    device->extended = true;
    device->dmabuf = false;
}

static void add_port(const char *number) {
    struct device *device = last_device();
    if (look_up(NUMBERS, number) != device->attr.phys_port_cnt + 1 || device->attr.phys_port_cnt == MAX_PORTS)
        refuse("ports are numbered from 1, at most 2", number);
    struct port *port = &device->ports[device->attr.phys_port_cnt++];
    port->attr = (struct ibv_port_attr){
        .state = PORT_ACTIVE, .max_mtu = 5, .active_mtu = 5, .gid_tbl_len = MAX_GIDS, .max_msg_sz = 1u << 30,
        .pkey_tbl_len = 1, .max_vl_num = 4, .subnet_timeout = 18, .active_width = 2, .active_speed = 128,
        .phys_state = 5, .link_layer = LINK_INFINIBAND};
    port->pkeys[0] = 0xffff;
}

static void set_device(const char *key, const char *value) {
    struct device *device = last_device();
    struct ibv_device_attr *attr = &device->attr;
    if (strcmp(key, "node") == 0)
        device->base.node_type = look_up(NODES, value);
    else if (strcmp(key, "transport") == 0)
        device->base.transport_type = look_up(TRANSPORTS, value);
    else if (strcmp(key, "fw") == 0)
        snprintf(attr->fw_ver, sizeof attr->fw_ver, "%s", value);
    else if (strcmp(key, "path") == 0)
        snprintf(device->base.ibdev_path, sizeof device->base.ibdev_path, "%s", value);
    else if (strcmp(key, "uverbs") == 0)
        snprintf(device->base.dev_name, sizeof device->base.dev_name, "%s", value);
    else if (strcmp(key, "guid") == 0)
        attr->node_guid = attr->sys_image_guid = strtoull(value, NULL, 16);
    else if (strcmp(key, "vendor") == 0)
        attr->vendor_id = (uint32_t)look_up(NUMBERS, value);
    else if (strcmp(key, "part") == 0)
        attr->vendor_part_id = (uint32_t)look_up(NUMBERS, value);
    else if (strcmp(key, "max_qp") == 0)
        attr->max_qp = look_up(NUMBERS, value);
    else if (strcmp(key, "max_qp_wr") == 0)
        attr->max_qp_wr = look_up(NUMBERS, value);
    else if (strcmp(key, "max_sge") == 0)
        attr->max_sge = look_up(NUMBERS, value);
    else if (strcmp(key, "max_cqe") == 0)
        attr->max_cqe = look_up(NUMBERS, value);
    else if (strcmp(key, "max_qp_rd_atom") == 0)
        attr->max_qp_rd_atom = look_up(NUMBERS, value);
    else if (strcmp(key, "max_qp_init_rd_atom") == 0)
        attr->max_qp_init_rd_atom = look_up(NUMBERS, value);
    else if (strcmp(key, "max_inline") == 0)
        device->max_inline = (uint32_t)look_up(NUMBERS, value);
    else if (strcmp(key, "extended") == 0)
        device->extended = look_up(NUMBERS, value) != 0;
    else if (strcmp(key, "dmabuf") == 0)
        device->dmabuf = look_up(NUMBERS, value) != 0;
    else
        refuse("a device has no such key", key);
}

static void set_port(const char *key, const char *value) {
    struct port *port = last_port();
    struct ibv_port_attr *attr = &port->attr;
    if (strcmp(key, "link") == 0)
        attr->link_layer = (uint8_t)look_up(LINKS, value);
    else if (strcmp(key, "state") == 0)
        attr->state = (unsigned)look_up(STATES, value);
    else if (strcmp(key, "phys") == 0)
        attr->phys_state = (uint8_t)look_up(PHYSICAL, value);
    else if (strcmp(key, "max_mtu") == 0)
        attr->max_mtu = (unsigned)look_up(MTUS, value);
    else if (strcmp(key, "mtu") == 0)
        attr->active_mtu = (unsigned)look_up(MTUS, value);
    else if (strcmp(key, "lid") == 0)
        attr->lid = (uint16_t)look_up(NUMBERS, value);
    else if (strcmp(key, "lmc") == 0)
        attr->lmc = (uint8_t)look_up(NUMBERS, value);
    else if (strcmp(key, "sm_lid") == 0)
        attr->sm_lid = (uint16_t)look_up(NUMBERS, value);
    else if (strcmp(key, "speed") == 0)
        attr->active_speed = (uint8_t)look_up(SPEEDS, value);
    else if (strcmp(key, "speed_ex") == 0)
        attr->active_speed_ex = (uint32_t)look_up(NUMBERS, value);
    else if (strcmp(key, "width") == 0)
        attr->active_width = (uint8_t)look_up(WIDTHS, value);
    else if (strcmp(key, "max_msg") == 0)
        attr->max_msg_sz = (uint32_t)look_up(NUMBERS, value);
    else if (strcmp(key, "grh_required") == 0)
        attr->flags = look_up(NUMBERS, value) != 0 ? QPF_GRH_REQUIRED : 0;
    else if (strcmp(key, "fabric") == 0)
        port->fabric = (uint32_t)look_up(NUMBERS, value);
    else
        refuse("a port has no such key", key);
}

static void add_gid(const char *index, const char *address) {
    struct port *port = last_port();
    int at = look_up(NUMBERS, index);
    if (at < 0 || at >= MAX_GIDS)
        refuse("GID indices are 0 to 15", index);
    struct gid_row *row = &port->gids[at];
    if (inet_pton(AF_INET6, address, row->gid.raw) != 1)
        refuse("not a GID in the form of an IPv6 address", address);
    row->present = true;
    row->type = port->attr.link_layer == LINK_ETHERNET ? GID_TYPE_ROCE_V2 : GID_TYPE_IB;
}

static void set_gid(const char *index, const char *key, const char *value) {
    struct gid_row *row = &last_port()->gids[look_up(NUMBERS, index)];
    if (strcmp(key, "type") == 0)
        row->type = (uint32_t)look_up(GID_TYPES, value);
    else if (strcmp(key, "netdev") == 0) {
        row->ifindex = if_nametoindex(value);
        if (row->ifindex == 0)
            refuse("there is no such network device here", value);
    } else
        refuse("a GID has no such key", key);
}

static void add_pkey(const char *index, const char *value) {
    struct port *port = last_port();
    int at = look_up(NUMBERS, index);
    if (at < 0 || at >= MAX_PKEYS)
        refuse("P_Key indices are 0 to 7", index);
    port->pkeys[at] = (uint16_t)look_up(NUMBERS, value);
    if (port->attr.pkey_tbl_len <= at)
        port->attr.pkey_tbl_len = (uint16_t)(at + 1);
}

static struct rule *add_rule(const char *kind, const char *what) {
    if (loaded.rule_count == MAX_RULES)
        refuse("more injections than the library has room for", kind);
    struct rule *rule = &loaded.rules[loaded.rule_count++];
    rule->first = rule->times = 1;
    rule->port = 1;
    rule->lid = rule->sm_lid = rule->state = -1;
    if (strcmp(kind, "verb") == 0) {
        rule->kind = RULE_VERB;
        snprintf(rule->verb, sizeof rule->verb, "%s", what ? what : "");
    } else if (strcmp(kind, "completion") == 0)
        rule->kind = RULE_COMPLETION;
    else if (strcmp(kind, "flip") == 0)
        rule->kind = RULE_FLIP;
    else if (strcmp(kind, "event") == 0) {
        rule->kind = RULE_EVENT;
        rule->event_type = (unsigned)look_up(EVENTS, what ? what : "");
    } else
        refuse("not one of verb, completion, flip, event", kind);
    return rule;
}

static void set_rule(struct rule *rule, const char *key, const char *value) {
    if (strcmp(key, "device") == 0)
        snprintf(rule->device, sizeof rule->device, "%s", value);
    else if (strcmp(key, "call") == 0 || strcmp(key, "message") == 0)
        rule->first = strtoull(value, NULL, 0);
    else if (strcmp(key, "times") == 0)
        rule->times = strtoull(value, NULL, 0);
    else if (strcmp(key, "errno") == 0)
        rule->error = look_up(ERRNOS, value);
    else if (strcmp(key, "status") == 0)
        rule->status = (unsigned)look_up(NUMBERS, value);
    else if (strcmp(key, "vendor_err") == 0)
        rule->vendor_err = (unsigned)look_up(NUMBERS, value);
    else if (strcmp(key, "byte") == 0)
        rule->byte = (uint32_t)look_up(NUMBERS, value);
    else if (strcmp(key, "port") == 0)
        rule->port = look_up(NUMBERS, value);
    else if (strcmp(key, "lid") == 0)
        rule->lid = look_up(NUMBERS, value);
    else if (strcmp(key, "sm_lid") == 0)
        rule->sm_lid = look_up(NUMBERS, value);
    else if (strcmp(key, "state") == 0)
        rule->state = look_up(STATES, value);
    else
        refuse("an injection has no such key", key);
}

enum { MAX_WORDS = 32 };

/* Splits at blanks; what begins with # is a comment. */
static int split(char *line, char **words) {
    int count = 0;
    for (char *word = strtok(line, " \t\r\n"); word && *word != '#' && count < MAX_WORDS; word = strtok(NULL, " \t\r\n"))
        words[count++] = word;
    return count;
}

static void read_line(char *line) {
    char *words[MAX_WORDS] = {NULL};
    int count = split(line, words), positional = 0;
    struct rule *rule = NULL;
    if (count == 0)
        return;
    while (positional < count && !strchr(words[positional], '='))
        positional++;
    const char *kind = words[0], *first = positional > 1 ? words[1] : "", *second = positional > 2 ? words[2] : NULL;
    if (strcmp(kind, "patience_ms") == 0)
        loaded.patience_ns = (uint64_t)look_up(NUMBERS, first) * 1000000u;
    else if (strcmp(kind, "log_data") == 0)
        loaded.log_data = look_up(NUMBERS, first) != 0;
    else if (strcmp(kind, "device") == 0)
        add_device(first);
    else if (strcmp(kind, "port") == 0)
        add_port(first);
    else if (strcmp(kind, "gid") == 0)
        add_gid(first, second ? second : "");
    else if (strcmp(kind, "pkey") == 0)
        add_pkey(first, second ? second : "");
    else if (strcmp(kind, "inject") == 0)
        rule = add_rule(first, second);
    else
        refuse("not one of device, port, gid, pkey, inject, patience_ms, log_data", kind);
    for (int i = positional; i < count; i++) {
        char *value = strchr(words[i], '=');
        if (!value)
            refuse("not of the form key=value", words[i]);
        *value++ = 0;
        if (strcmp(kind, "device") == 0)
            set_device(words[i], value);
        else if (strcmp(kind, "port") == 0)
            set_port(words[i], value);
        else if (strcmp(kind, "gid") == 0)
            set_gid(first, words[i], value);
        else if (rule)
            set_rule(rule, words[i], value);
        else
            refuse("takes no key", words[i]);
    }
}

static void load(void) {
    loaded.patience_ns = 500u * 1000000u;
    loaded.log_data = true;
    path = getenv("RAILMESH_FAKEVERBS");
    if (!path || !*path)
        return;
    FILE *file = fopen(path, "r");
    if (!file)
        refuse("cannot be read", strerror(errno));
    char line[1024];
    while (fgets(line, sizeof line, file)) {
        line_number++;
        read_line(line);
    }
    fclose(file);
}

struct scenario *scenario(void) {
    pthread_once(&once, load);
    return &loaded;
}
