/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/statistics.h"

#include <math.h>

#include <stdlib.h>
#include <string.h>

enum { insertion_max = 32, digit_count = 8, digit_values = 256 };

static void values_insert_sorted(int64_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        int64_t value = values[i];
        size_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

void values_sort(int64_t *values, int64_t *scratch, size_t count)
{
    if (count <= insertion_max) {
        values_insert_sorted(values, count);
        return;
    }
    size_t histogram[digit_count][digit_values];
    memset(histogram, 0, sizeof histogram);
    for (size_t i = 0; i < count; i++)
        for (unsigned digit = 0; digit < digit_count; digit++)
            histogram[digit][(uint64_t)values[i] >> (8 * digit) & 0xff]++;
    int64_t *from = values, *to = scratch;
    for (unsigned digit = 0; digit < digit_count; digit++) {
        /* Durations are small: most high digits are equal in all values. */
        size_t *bucket = histogram[digit];
        if (bucket[(uint64_t)from[0] >> (8 * digit) & 0xff] == count)
            continue;
        for (size_t i = 0, sum = 0; i < digit_values; i++) {
            size_t here = bucket[i];
            bucket[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[bucket[(uint64_t)from[i] >> (8 * digit) & 0xff]++] = from[i];
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != values)
        memcpy(values, from, count * sizeof *values);
}

bool keys_are_ordered(const int64_t *keys, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (keys[i - 1] > keys[i])
            return false;
    return true;
}

void keys_order(const int64_t *keys, size_t count, uint32_t *order, uint32_t *scratch)
{
    enum { bits = 11, buckets = 1 << bits };
    if (!count || runs_order(keys, count, order, scratch))
        return;
    int64_t least = keys[0], most = keys[0];
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
        least = keys[i] < least ? keys[i] : least;
        most = keys[i] > most ? keys[i] : most;
    }
    uint64_t range = (uint64_t)most - (uint64_t)least;
    uint32_t *from = order, *to = scratch;
    for (unsigned shift = 0; shift < 64 && range >> shift; shift += bits) {
        size_t bucket[buckets] = {0};
        for (size_t i = 0; i < count; i++)
            bucket[((uint64_t)keys[i] - (uint64_t)least) >> shift & (buckets - 1)]++;
        for (size_t i = 0, sum = 0; i < buckets; i++) {
            size_t here = bucket[i];
            bucket[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[bucket[((uint64_t)keys[from[i]] - (uint64_t)least) >> shift & (buckets - 1)]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != order)
        memcpy(order, from, count * sizeof *order);
}

int64_t nearest_rank(const int64_t *sorted, size_t count, unsigned percent)
{
    if (!count)
        return 0;
    size_t rank = count / 100 * percent + (count % 100 * percent + 99) / 100;
    return sorted[rank ? rank - 1 : 0];
}

struct distribution distribution_of(int64_t *values, int64_t *scratch, size_t count)
{
    struct distribution result = {.count = count};
    if (!count)
        return result;
    values_sort(values, scratch, count);
    for (size_t i = 0; i < count; i++)
        result.total = sum_saturated(result.total, values[i]);
    result.mean = (double)result.total / (double)count;
    result.min = values[0];
    result.max = values[count - 1];
    result.p50 = nearest_rank(values, count, 50);
    result.p90 = nearest_rank(values, count, 90);
    result.p99 = nearest_rank(values, count, 99);
    return result;
}

void histogram_edges(int64_t *edges, size_t count, int64_t min, int64_t max, bool is_log)
{
    for (size_t i = 0; i <= count; i++) {
        double part = (double)i / (double)count;
        /* powl, because the version of pow that came with glibc 2.29 is missing in older ones. */
        double value = is_log ? (double)((long double)min * powl((long double)max / (long double)min, part))
                              : (double)min + ((double)max + 1 - (double)min) * part;
        edges[i] = (int64_t)value;
        if (i && edges[i] <= edges[i - 1])
            edges[i] = edges[i - 1] + 1;
    }
    edges[0] = min;
    if (edges[count] <= max)
        edges[count] = max + 1;
}

static int value_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, value_compare);
    return values[count / 2];
}
