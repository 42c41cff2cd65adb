/* SPDX-License-Identifier: Apache-2.0 */
/* What one write adds to the catalog and the rollups, collected while its lines arrive: facts of the session from its
 * records, sums per kernel, sums per metric and minute. The same for every engine; at commit the engine adds them to
 * the stored sums. Owns its memory; one thread at a time. */
#ifndef GPUFL_STORE_WRITE_SUMS_H
#define GPUFL_STORE_WRITE_SUMS_H

#include "format/json.h"
#include "store/row_buffer.h"
#include "store/store_rollup.h"

enum { FACT_TEXT_MAX = 256, FACT_LOSSES_MAX = 64, FACT_GPUS_MAX = 256, KERNEL_ID_MAX = 4 * 1024 * 1024 };
#define MINUTE_NS INT64_C(60000000000)

struct loss_fact {
    char reason[96];
    int64_t count;
    bool has_unknown;
    bool is_total; /* from the shutdown record: the reason's total so far, not an increment */
};
struct gpu_fact {
    char uuid[96], name[128];
    int64_t device_id;
};
struct session_facts {
    char app[FACT_TEXT_MAX], host[FACT_TEXT_MAX], kind[64], engine[64]; /* "": not recorded */
    int64_t start_ns;                                                   /* of job_start; CELL_UNKNOWN */
    int64_t first_ns, last_ns;                                          /* of any record; CELL_UNKNOWN */
    bool has_ended, has_crashed;
    int64_t kernels, kernel_ns, rows, lines;
    int64_t expected_rows; /* of the whole session, from its shutdown record; CELL_UNKNOWN */
    struct loss_fact losses[FACT_LOSSES_MAX];
    unsigned loss_count;
    struct gpu_fact *gpus; /* owned by the sums; at most FACT_GPUS_MAX */
    size_t gpu_count, gpu_capacity;
};

struct kernel_sum {
    uint32_t kernel_id;
    uint32_t histogram[STORE_HISTOGRAM_BINS];
    uint64_t count;
    int64_t total_ns, min_ns, max_ns;
    double sum_squares;
};
struct kernel_name {
    uint32_t kernel_id;
    uint32_t size;
    size_t at; /* offset in names_text */
};

struct metric_cell {
    int64_t min, max;
    double sum;
    uint64_t count;
};
/* One device (or the host) in one minute. */
struct metric_sum {
    enum record_type type;
    int64_t device_id; /* CELL_UNKNOWN: the host */
    int64_t minute;    /* since 1970 */
    struct metric_cell cells[ROW_COLUMNS_MAX];
};
struct metric_sample {
    enum record_type type;
    int64_t device_id;
    int64_t cells[ROW_COLUMNS_MAX]; /* [0]: the time */
};

struct write_sums {
    struct session_facts facts;
    struct kernel_sum *kernels;
    uint32_t *kernel_slots; /* index + 1, open addressing by kernel_id */
    size_t kernel_count, kernel_capacity, kernel_slot_count;
    struct kernel_name *names;
    size_t name_count, name_capacity;
    struct bytes names_text;
    struct metric_sum *metrics;
    uint32_t *metric_slots; /* index + 1, open addressing by type, device and minute */
    size_t metric_count, metric_capacity, metric_slot_count;
    struct metric_sample *samples; /* the latest per device */
    size_t sample_count, sample_capacity;
};

void write_sums_init(struct write_sums *sums);
void write_sums_free(struct write_sums *sums);
size_t write_sums_bytes(const struct write_sums *sums);
/* False: out of memory. */
NODISCARD bool write_sums_record(struct write_sums *sums, enum record_type type, const struct json_value *object);
NODISCARD bool write_sums_rows(struct write_sums *sums, const struct row_buffer *rows);

/* The histogram bin of a duration. */
static inline unsigned histogram_bin(int64_t duration_ns)
{
    return duration_ns > 0 ? 64 - (unsigned)__builtin_clzll((uint64_t)duration_ns) : 0;
}

void metric_cell_add(struct metric_cell *cell, const struct metric_cell *other);
/* Encodes metric sums: per column with samples its index, count, min, max - min, sum. */
void metric_cells_encode(const struct metric_cell *cells, unsigned column_count, struct bytes *out);
/* order: the catalogue index of each stored column. Adds to the cells. */
NODISCARD gpufl_status metric_cells_add(struct metric_cell *cells, const void *data, size_t size, const int *order,
                                        unsigned order_count);
/* Passes one minute's sums to the callback of store_metrics, by column; false: the callback stopped. */
bool metric_cells_deliver(enum record_type type, int64_t minute, const struct metric_cell *cells,
                          store_metric_fn on_metric, void *user);

#endif
