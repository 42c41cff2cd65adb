/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/host_metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 8192 }; /* every value that we read is well within this size */

/* Below one kernel tick the counters cannot distinguish busy from idle. */
static const int64_t share_time_min_ns = 10000000;

void host_metrics_init(struct host_metrics *metrics, const char *root)
{
    memset(metrics, 0, sizeof *metrics);
    metrics->root = root;
    metrics->ticks_per_second = sysconf(_SC_CLK_TCK);
    metrics->page_bytes = sysconf(_SC_PAGESIZE);
}

void host_metrics_reset(struct host_metrics *metrics)
{
    metrics->has_cpu = metrics->has_process = false;
}

struct host_sample host_sample_unknown(void)
{
    return (struct host_sample){CELL_UNKNOWN, CELL_UNKNOWN, CELL_UNKNOWN, CELL_UNKNOWN, CELL_UNKNOWN};
}

/* Reads the beginning of <root>/proc/<name>; false when it does not exist. */
static bool text_read(const struct host_metrics *metrics, const char *name, char text[FILE_SIZE_MAX])
{
    char path[512];
    int path_size = snprintf(path, sizeof path, "%s/proc/%s", metrics->root, name);
    if (path_size < 0 || (size_t)path_size >= sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    size_t size = 0;
    while (size < FILE_SIZE_MAX - 1) {
        ssize_t got = read(fd, text + size, FILE_SIZE_MAX - 1 - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    close(fd);
    text[size] = '\0';
    return size > 0;
}

/* Reads one decimal number after blanks; NULL when there is none or it is too large. */
static const char *number_read(const char *text, uint64_t *value)
{
    while (*text == ' ' || *text == '\t')
        text++;
    if (*text < '0' || *text > '9')
        return NULL;
    uint64_t number = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return NULL;
    *value = number;
    return text;
}

static const char *blanks_and_word_skip(const char *text)
{
    text += strspn(text, " ");
    return text + strcspn(text, " \n");
}

/* First line of /proc/stat: cpu user nice system idle iowait irq softirq steal (guest is in user). */
static bool cpu_ticks_read(const struct host_metrics *metrics, uint64_t *busy, uint64_t *total)
{
    char text[FILE_SIZE_MAX];
    if (!text_read(metrics, "stat", text) || strncmp(text, "cpu ", 4))
        return false;
    uint64_t ticks[8] = {0};
    const char *at = text + 4;
    size_t count = 0;
    while (count < 8 && (at = number_read(at, &ticks[count])))
        count++;
    if (count < 4)
        return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < 8; i++)
        if (__builtin_add_overflow(sum, ticks[i], &sum))
            return false;
    *total = sum;
    *busy = sum - ticks[3] - ticks[4];
    return true;
}

static int64_t cpu_share(struct host_metrics *metrics)
{
    uint64_t busy, total;
    if (!cpu_ticks_read(metrics, &busy, &total)) {
        metrics->has_cpu = false;
        return CELL_UNKNOWN;
    }
    int64_t share = CELL_UNKNOWN;
    if (metrics->has_cpu) {
        if (total == metrics->total_ticks)
            return CELL_UNKNOWN; /* no tick has passed: keep the older reading as the base */
        /* Counters may run backwards (iowait does, virtual machines do): the share is then unknown. */
        if (total > metrics->total_ticks && busy >= metrics->busy_ticks &&
            busy - metrics->busy_ticks <= total - metrics->total_ticks)
            share =
                (int64_t)((double)(busy - metrics->busy_ticks) * 10000 / (double)(total - metrics->total_ticks) + 0.5);
    }
    metrics->has_cpu = true;
    metrics->busy_ticks = busy;
    metrics->total_ticks = total;
    return share;
}

/* /proc/self/stat: pid (name) state ... utime and stime are fields 14 and 15. The name may contain anything, also
 * parentheses and blanks, so fields are counted from the last parenthesis. */
static bool process_ticks_read(const struct host_metrics *metrics, uint64_t *ticks)
{
    char text[FILE_SIZE_MAX];
    if (!text_read(metrics, "self/stat", text))
        return false;
    const char *at = strrchr(text, ')');
    if (!at)
        return false;
    at++;
    for (int field = 3; field <= 13; field++)
        at = blanks_and_word_skip(at);
    uint64_t user, system;
    return (at = number_read(at, &user)) && number_read(at, &system) && !__builtin_add_overflow(user, system, ticks);
}

static int64_t process_share(struct host_metrics *metrics, int64_t mono_ns)
{
    uint64_t ticks;
    if (metrics->ticks_per_second <= 0 || !process_ticks_read(metrics, &ticks)) {
        metrics->has_process = false;
        return CELL_UNKNOWN;
    }
    int64_t share = CELL_UNKNOWN;
    if (metrics->has_process) {
        int64_t elapsed_ns = mono_ns - metrics->process_time_ns;
        if (elapsed_ns < share_time_min_ns)
            return CELL_UNKNOWN;
        if (ticks >= metrics->process_ticks) {
            double used_ns = (double)(ticks - metrics->process_ticks) * 1e9 / (double)metrics->ticks_per_second;
            double value = used_ns * 10000 / (double)elapsed_ns + 0.5;
            share = value < (double)UINT32_MAX ? (int64_t)value : CELL_UNKNOWN;
        }
    }
    metrics->has_process = true;
    metrics->process_ticks = ticks;
    metrics->process_time_ns = mono_ns;
    return share;
}

static bool meminfo_find(const char *text, const char *key, uint64_t *kib)
{
    size_t size = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, size))
            return number_read(line + size, kib) != NULL;
    }
    return false;
}

static void memory_read(const struct host_metrics *metrics, struct host_sample *sample)
{
    char text[FILE_SIZE_MAX];
    uint64_t total_kib, available_kib, pages_total, pages_resident;
    if (text_read(metrics, "meminfo", text) && meminfo_find(text, "MemTotal:", &total_kib)) {
        sample->ram_total_mib = (int64_t)(total_kib / 1024);
        if (meminfo_find(text, "MemAvailable:", &available_kib) && available_kib <= total_kib)
            sample->ram_used_mib = (int64_t)((total_kib - available_kib) / 1024);
    }
    const char *at;
    uint64_t bytes;
    if (metrics->page_bytes > 0 && text_read(metrics, "self/statm", text) && (at = number_read(text, &pages_total)) &&
        number_read(at, &pages_resident) &&
        !__builtin_mul_overflow(pages_resident, (uint64_t)metrics->page_bytes, &bytes))
        sample->process_rss_mib = (int64_t)(bytes >> 20);
}

struct host_sample host_metrics_sample(struct host_metrics *metrics, int64_t mono_ns)
{
    struct host_sample sample = host_sample_unknown();
    sample.cpu_pct_x100 = cpu_share(metrics);
    sample.process_cpu_pct_x100 = process_share(metrics, mono_ns);
    memory_read(metrics, &sample);
    return sample;
}

static bool address_read(int family, const struct ifaddrs *interfaces, char *out, size_t size)
{
    for (const struct ifaddrs *at = interfaces; at; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != family || !(at->ifa_flags & IFF_UP) ||
            (at->ifa_flags & IFF_LOOPBACK))
            continue;
        const void *address = family == AF_INET
                                  ? (const void *)&((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr
                                  : (const void *)&((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr;
        if (inet_ntop(family, address, out, (socklen_t)size))
            return true;
    }
    return false;
}

void host_identity_read(struct host_identity *identity)
{
    memset(identity, 0, sizeof *identity);
    if (gethostname(identity->hostname, sizeof identity->hostname - 1))
        identity->hostname[0] = '\0';
    struct ifaddrs *interfaces;
    if (getifaddrs(&interfaces))
        return;
    if (!address_read(AF_INET, interfaces, identity->ip_addr, sizeof identity->ip_addr) &&
        !address_read(AF_INET6, interfaces, identity->ip_addr, sizeof identity->ip_addr))
        identity->ip_addr[0] = '\0';
    freeifaddrs(interfaces);
}
