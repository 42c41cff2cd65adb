/* SPDX-License-Identifier: Apache-2.0 */
/* `gpufl serve` beside a benchmark, on a separate core, and what it costs. It ends the program with a message when
 * something goes wrong. One thread at a time. */
#ifndef GPUFL_BENCH_SERVE_PROCESS_H
#define GPUFL_BENCH_SERVE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

struct serve_process {
    pid_t pid;
    uint16_t port;
    int messages; /* its standard error */
};

/* Moves the caller to one core and gives the other one to servers. Says so where there is only one. */
void cores_divide(void);
/* gpufl: that of the build that the benchmark belongs to. */
void serve_start(struct serve_process *server, const char *data_dir);
/* Returns when it has ended by itself. */
void serve_stop(struct serve_process *server);
double serve_cpu_s(const struct serve_process *server);
uint64_t serve_rss_bytes(const struct serve_process *server);

/* A new directory, one at a time, and its end; a benchmark that fails removes it, too. */
enum { BENCH_DIR_SIZE = 64 };
void bench_dir_make(char path[BENCH_DIR_SIZE]);
void bench_dir_remove(const char *path);

#endif
