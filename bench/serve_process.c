/* SPDX-License-Identifier: Apache-2.0 */
#include "serve_process.h"

#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_TIMEOUT_MS = 60000 };

static int server_core = -1;

_Noreturn static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void core_take(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (core >= 0 && sched_setaffinity(0, sizeof set, &set))
        die("sched_setaffinity");
}

void cores_divide(void)
{
    cpu_set_t set;
    int cores[2] = {-1, -1}, count = 0;
    if (sched_getaffinity(0, sizeof set, &set))
        die("sched_getaffinity");
    for (int core = 0; core < CPU_SETSIZE && count < 2; core++)
        if (CPU_ISSET(core, &set))
            cores[count++] = core;
    if (count < 2) {
        printf("one core for server and generator together\n");
        return;
    }
    server_core = cores[0];
    core_take(cores[1]);
}

/* The line that names the port. */
static uint16_t port_read(struct serve_process *server)
{
    char text[4096];
    size_t size = 0;
    for (;;) {
        struct pollfd waiting = {.fd = server->messages, .events = POLLIN};
        ssize_t got =
            poll(&waiting, 1, START_TIMEOUT_MS) == 1 ? read(server->messages, text + size, sizeof text - 1 - size) : -1;
        if (got <= 0) {
            fprintf(stderr, "gpufl serve did not start: %.*s\n", (int)size, text);
            exit(1);
        }
        size += (size_t)got;
        text[size] = 0;
        const char *address = strstr(text, "http://127.0.0.1:");
        if (address && strchr(address, ','))
            return (uint16_t)strtoul(address + strlen("http://127.0.0.1:"), NULL, 10);
    }
}

void serve_start(struct serve_process *server, const char *data_dir)
{
    char path[PATH_MAX];
    int ends[2];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 32);
    if (size < 0 || pipe(ends))
        die("gpufl serve");
    path[size] = 0;
    for (int i = 0; i < 2; i++) /* BUILD/bench/NAME */
        *strrchr(path, '/') = 0;
    strncat(path, "/bin/gpufl", sizeof path - strlen(path) - 1);
    server->pid = fork();
    if (server->pid < 0)
        die("fork");
    if (!server->pid) {
        core_take(server_core);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* ends with the benchmark */
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        execl(path, path, "serve", "--listen", "127.0.0.1:0", "--data", data_dir, (char *)NULL);
        die(path);
    }
    close(ends[1]);
    server->messages = ends[0];
    server->port = port_read(server);
}

void serve_stop(struct serve_process *server)
{
    int status = 0;
    char text[1024];
    ssize_t got;
    kill(server->pid, SIGTERM);
    while ((got = read(server->messages, text, sizeof text)) > 0)
        if (!memmem(text, (size_t)got, "stopping", 8))
            fwrite(text, 1, (size_t)got, stderr);
    close(server->messages);
    if (waitpid(server->pid, &status, 0) < 0 || status) {
        fprintf(stderr, "gpufl serve ended with status %d\n", status);
        exit(1);
    }
}

static FILE *proc_open(const struct serve_process *server, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)server->pid, name);
    FILE *file = fopen(path, "r");
    if (!file)
        die(path);
    return file;
}

double serve_cpu_s(const struct serve_process *server)
{
    char text[1024] = "";
    FILE *file = proc_open(server, "stat");
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *at = strrchr(text, ')');
    unsigned long user = 0, system = 0;
    if (!at || sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        die("/proc/PID/stat");
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

uint64_t serve_rss_bytes(const struct serve_process *server)
{
    char line[256];
    unsigned long kib = 0;
    FILE *file = proc_open(server, "status");
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %lu kB", &kib) == 1)
            break;
    fclose(file);
    return (uint64_t)kib << 10;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)kind, (void)at;
    return remove(path);
}

static char left_dir[BENCH_DIR_SIZE];

static void left_remove(void)
{
    if (left_dir[0])
        nftw(left_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void bench_dir_make(char path[BENCH_DIR_SIZE])
{
    static bool is_registered;
    snprintf(path, BENCH_DIR_SIZE, "/tmp/gpufl-bench-XXXXXX");
    if (!mkdtemp(path))
        die(path);
    snprintf(left_dir, sizeof left_dir, "%s", path);
    if (!is_registered)
        atexit(left_remove);
    is_registered = true;
}

void bench_dir_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    left_dir[0] = 0;
}
