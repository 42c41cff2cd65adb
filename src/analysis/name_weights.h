/* SPDX-License-Identifier: Apache-2.0 */
/* The names that took the most time (Misra-Gries algorithm): a name with more than a ninth of the time is always
 * included. Initialize with zeros; owns nothing. */
#ifndef GPUFL_ANALYSIS_NAME_WEIGHTS_H
#define GPUFL_ANALYSIS_NAME_WEIGHTS_H

#include <stdint.h>

enum { names_kept = 8 };
struct name_weights {
    uint32_t names[names_kept];
    int64_t weights[names_kept];
};

void name_weights_add(struct name_weights *weights, uint32_t name, int64_t weight);
uint32_t name_weights_top(const struct name_weights *weights);

#endif
