/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `gpufl monitor`. Main thread. */
#ifndef GPUFL_CLI_MONITOR_H
#define GPUFL_CLI_MONITOR_H

#include <stdbool.h>

/* --once: takes one sample and prints it; returns the exit code. */
int monitor_once(bool is_json, unsigned vendors /* bit per enum gpu_vendor */);

#endif
