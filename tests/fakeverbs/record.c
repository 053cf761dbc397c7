/*
 * The record: one line of JSON a call, in the file $RAILMESH_FAKEVERBS_LOG.PID, and the count of what lives.
 *
 * Each line goes out in one write, so that a killed process loses nothing and threads do not mix.
 */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Atomic int fakeverbs_live[KINDS];
static const char *const KIND_NAMES[KINDS] = {"lists", "contexts", "pds", "mrs", "cqs", "qps"};

static int log_fd = -1;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void open_log(void) {
    const char *prefix = getenv("RAILMESH_FAKEVERBS_LOG");
    if (!prefix || !*prefix)
        return;
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", prefix, (int)getpid());
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_fd < 0)
        fprintf(stderr, "fakeverbs: %s cannot be written (%s): calls are not recorded\n", path, strerror(errno));
}

bool recording(void) {
    pthread_once(&opened, open_log);
    return log_fd >= 0;
}

bool recording_data(void) {
    return recording() && scenario()->log_data;
}

void record(const char *call, const char *format, ...) {
    if (!recording())
        return;
    int saved = errno;
    char line[4096];
    int used = snprintf(line, sizeof line, "{\"t_ns\":%llu,\"tid\":%ld,\"call\":\"%s\",", (unsigned long long)now_ns(),
                        syscall(SYS_gettid), call);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 2, format, arguments);
    va_end(arguments);
    if (more > (int)sizeof line - used - 3)
        more = (int)sizeof line - used - 3;
    used += more;
    memcpy(line + used, "}\n", 2);
    if (write(log_fd, line, (size_t)used + 2) < 0)
        fprintf(stderr, "fakeverbs: a call could not be recorded: %s\n", strerror(errno));
    errno = saved;
}

void record_live(const char *when) {
    char text[256];
    int used = 0;
    for (int kind = 0; kind < KINDS; kind++)
        used += snprintf(text + used, sizeof text - (size_t)used, ",\"%s\":%d", KIND_NAMES[kind], fakeverbs_live[kind]);
    record("live", "\"when\":\"%s\"%s", when, text);
}

const char *gid_text(const union ibv_gid *gid, char *text) {
    for (int i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", gid->raw[i]);
    return text;
}

__attribute__((destructor)) static void at_exit(void) {
    if (log_fd >= 0)
        record_live("exit");
}
