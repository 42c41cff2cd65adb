/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output into another program, as `man` does with a pager. Single-threaded. */
#ifndef GPUFL_CLI_PAGER_H
#define GPUFL_CLI_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct pager {
    pid_t pid;
    int output_fd; /* standard output as it was */
};

/* Starts the program and gives it what is printed from now on. argv: NULL-terminated. false: it cannot be executed. */
bool pager_start(struct pager *pager, const char *const *argv);
/* Waits for the pager to end. A pager that is closed early is not an error. */
void pager_finish(struct pager *pager);

#endif
