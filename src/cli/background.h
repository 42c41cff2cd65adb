/* SPDX-License-Identifier: Apache-2.0 */
/* A gpufl command that runs in the background, in its own process group: Ctrl-C does not reach it, and it ends when this
 * process ends. Single-threaded. */
#ifndef GPUFL_CLI_BACKGROUND_H
#define GPUFL_CLI_BACKGROUND_H

#include "base/status.h"

#include <limits.h>
#include <sys/types.h>

struct background {
    const char *name; /* of the command, for messages; borrowed */
    pid_t pid;        /* 0: not started, or ended */
    int exit_code;    /* once it has ended: its own, or 128 and the number of the signal */
    char log[PATH_MAX];
};

/* argv: NULL-terminated, without the program's name. What it prints goes to <dir>/<name>.log. notify: the value of
 * NOTIFY_SOCKET for it; NULL: none. None of gpufl's variables that name servers, keys or directories are passed on. */
NODISCARD gpufl_status background_start(struct background *background, const char *name, const char *const *argv,
                                        const char *dir, const char *notify, struct problem *problem);
/* False once it has ended: exit_code tells how. */
bool background_is_running(struct background *background);
/* SIGTERM, then SIGKILL after so long. True: it ended by itself with status 0. */
bool background_stop(struct background *background, int timeout_ms);
/* Of its log, the last line that is not empty. */
void background_last_words(const struct background *background, char *out, size_t size);

#endif
