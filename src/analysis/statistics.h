/* SPDX-License-Identifier: Apache-2.0 */
/* Exact statistics over whole columns. Pure functions. Radix sort, so no input makes it slow. */
#ifndef GPUFL_ANALYSIS_STATISTICS_H
#define GPUFL_ANALYSIS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Percentiles are nearest-rank: the smallest value that at least p % of all values do not exceed. */
struct distribution {
    uint64_t count;
    int64_t total, min, max, p50, p90, p99;
    double mean;
};

/* Sums of untrusted numbers saturate instead of wrapping. */
static inline int64_t sum_saturated(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b < 0 ? INT64_MIN : INT64_MAX;
}
static inline uint64_t sum_saturated_u64(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Ascending; values must not be negative; scratch must be as large as values. */
void values_sort(int64_t *values, int64_t *scratch, size_t count);
/* order: filled with the indexes of keys in ascending, stable order; scratch must be as large. */
void keys_order(const int64_t *keys, size_t count, uint32_t *order, uint32_t *scratch);
/* key_runs.c: the same for keys in few, long ascending runs; false: they are not, and order is not written. */
bool runs_order(const int64_t *keys, size_t count, uint32_t *order, uint32_t *scratch);
bool keys_are_ordered(const int64_t *keys, size_t count);
/* The upper median; sorts the values. count must not be 0. */
double median_of(double *values, size_t count);
int64_t nearest_rank(const int64_t *sorted, size_t count, unsigned percent);
/* Sorts values in place. count 0: all zeros. */
struct distribution distribution_of(int64_t *values, int64_t *scratch, size_t count);

/* Durations that differ by at least this factor are shown on a logarithmic scale. */
enum { HISTOGRAM_LOG_FACTOR = 16 };
/* The count + 1 borders of bins from min to max, strictly ascending; is_log requires min > 0. */
void histogram_edges(int64_t *edges, size_t count, int64_t min, int64_t max, bool is_log);

#endif
