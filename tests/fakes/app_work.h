/* SPDX-License-Identifier: Apache-2.0 */
/* The work that fake_app's threads do, and exact counts of what reached the GPU. */
#ifndef FAKES_APP_WORK_H
#define FAKES_APP_WORK_H

#include "app_options.h"

#include <stdint.h>

struct app_counts {
    uint64_t kernels, copies, memsets, syncs, graph_launches, errors;
};
/* Runs all threads to their end. False: CUDA could not be started; *error says why. */
bool app_work_run(const struct app_options *options, struct app_counts *counts, int *error);

#endif
