/* SPDX-License-Identifier: Apache-2.0 */
/* What programs that gpufl traces run on the GPU right now, read from the log
 * that they are writing: the recorder keeps its file open, so the file is found
 * through the process. Nothing is asked of the program. Bounded: a fixed number
 * of processes, and of bytes per tick. Main thread. */
#ifndef GPUFL_CLI_LIVE_KERNELS_H
#define GPUFL_CLI_LIVE_KERNELS_H

#include "format/batch.h"

#include <stdint.h>
#include <sys/types.h>

enum { LIVE_PROGRAMS_MAX = 64 };

#define LIVE_WINDOW_NS INT64_C(2000000000)

struct live_program {
    uint32_t pid;
    int fd;         /* of the log; -1: none was found */
    int foreign_fd; /* the number that it has in the program */
    off_t offset;
    int64_t looked_ns, read_ns;
    int64_t window_ns; /* since when kernels are counted for the next rate */
    uint64_t window_kernels;
    bool is_window_whole;
    char session_id[37];
    bool has_rate; /* false: the first look, or the log grew faster than it is read */
    double kernels_per_s;
    uint32_t top_kernel; /* most time in the last window; 0: none */
    bool is_asked;       /* during this tick */
    char **names;        /* owned; by id in kernel_dict */
    int64_t *durations_ns;
    uint32_t name_count;
};

struct live_kernels {
    const char *root; /* directory in which proc lies; borrowed. "" on a real system */
    struct live_program programs[LIVE_PROGRAMS_MAX];
    uint32_t count;
    struct bytes text;
    struct batch_view view;
};

void live_kernels_init(struct live_kernels *live, const char *root);
void live_kernels_free(struct live_kernels *live);
/* One tick: begin, ask for each process, end. The end forgets the processes that were not asked for. */
void live_kernels_begin(struct live_kernels *live);
/* NULL: gpufl does not trace it, or its log may not be read. */
const struct live_program *live_kernels_ask(struct live_kernels *live, uint32_t pid);
void live_kernels_end(struct live_kernels *live);
/* The process as of the latest tick; NULL: not found. */
const struct live_program *live_kernels_find(const struct live_kernels *live, uint32_t pid);
/* NULL: not known, because its definition was written before this program looked. */
const char *live_kernel_name(const struct live_program *program, uint32_t id);

#endif
