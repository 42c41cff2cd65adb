/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `gpufl top`. Main thread. */
#ifndef GPUFL_CLI_TOP_H
#define GPUFL_CLI_TOP_H

#include "cli/host_watch.h"
#include "cli/live_kernels.h"

enum top_order { TOP_BY_MEMORY, TOP_BY_KERNELS, TOP_BY_PID, TOP_BY_NAME, TOP_BY_GPU, TOP_ORDER_COUNT };
extern const char *const top_order_names[]; /* NULL-terminated; the key of each is its first letter */

struct top_page {
    int columns, rows; /* rows 0: as many as it takes, and no line of keys */
    enum top_order order;
    bool use_color;
};

/* top_page.c: the page's lines, each ended by LF, none wider than the page. */
void top_page_write(struct bytes *out, const struct host_watch *watch, const struct live_kernels *live,
                    const struct top_page *page);
/* One JSON object and LF. */
void top_json_write(struct bytes *out, const struct host_watch *watch, const struct live_kernels *live);

#endif
