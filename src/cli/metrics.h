/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of `gpufl metrics`. Each appends its answer to `out` or sets the problem; GPUFL_E_NOT_FOUND: there is
 * none. A host is opened for those that need one. */
#ifndef GPUFL_CLI_METRICS_H
#define GPUFL_CLI_METRICS_H

#include "base/bytes.h"
#include "cli/arguments.h"
#include "driver/profiler_host.h"
#include "driver/profiler_target.h"

struct metrics_query {
    struct cupti *cupti;         /* NULL for an action that needs none */
    struct profiler_host *host;  /* likewise */
    const char *chip;            /* NULL: none was asked for */
    enum profiler_kind kind;     /* PM sampling with --pm */
    const char *type;            /* of --type; NULL: all */
    const char *const *operands; /* after the action */
    int operand_count;
    bool is_json;
};

extern const char *const metric_type_words[]; /* by enum metric_type, then NULL */
const char *profiler_kind_word(enum profiler_kind kind);

/* The chip of this machine's first GPU. */
gpufl_status metrics_own_chip(char chip[PROFILER_CHIP_NAME_BYTES], struct problem *problem);
gpufl_status metrics_chips(const struct metrics_query *query, struct bytes *out, struct problem *problem);
gpufl_status metrics_list(const struct metrics_query *query, struct bytes *out, struct problem *problem);
gpufl_status metrics_show(const struct metrics_query *query, struct bytes *out, struct problem *problem);
gpufl_status metrics_passes(const struct metrics_query *query, struct bytes *out, struct problem *problem);
gpufl_status metrics_sets(const struct metrics_query *query, struct bytes *out, struct problem *problem);

#endif
