/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/pm_use.h"

#include "analysis/statistics.h"

#include <math.h>
#include <stdlib.h>

enum { gap_intervals = 3 };

/* Time to the next sample; 0 if it is impossible or there is none. */
static int64_t distance_ns(const struct pm_series *series, size_t index)
{
    int64_t distance;
    if (index + 1 >= series->count ||
        __builtin_sub_overflow(series->times_ns[index + 1], series->times_ns[index], &distance))
        return 0;
    return distance > 0 ? distance : 0;
}

static gpufl_status median_distance_ns(const struct pm_series *series, int64_t *median_ns)
{
    int64_t *distances = malloc(2 * (series->count ? series->count : 1) * sizeof *distances);
    if (!distances)
        return GPUFL_E_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < series->count; i++) {
        distances[count] = distance_ns(series, i);
        count += distances[count] > 0;
    }
    values_sort(distances, distances + series->count, count);
    *median_ns = nearest_rank(distances, count, 50);
    free(distances);
    return GPUFL_OK;
}

static int number_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const double *sorted, size_t count, unsigned percent)
{
    size_t rank = count / 100 * percent + (count % 100 * percent + 99) / 100;
    return sorted[rank ? rank - 1 : 0];
}

/* Time-weighted statistics and gaps; the values that are numbers are copied to `numbers`. */
static void series_sum(const struct pm_series *series, double threshold, double *numbers, struct pm_use *use)
{
    double weighted = 0, above_ns = 0, covered_ns = 0;
    int64_t gap_from_ns = use->interval_ns <= INT64_MAX / gap_intervals ? use->interval_ns * gap_intervals : INT64_MAX;
    for (size_t i = 0; i < series->count; i++) {
        int64_t distance = distance_ns(series, i);
        bool is_gap = use->interval_ns && distance > gap_from_ns;
        int64_t weight_ns = is_gap || !distance ? use->interval_ns : distance;
        if (is_gap) {
            use->gap_count++;
            use->gap_ns = sum_saturated(use->gap_ns, distance - use->interval_ns);
        }
        double value = series->values[i];
        if (!isfinite(value)) {
            use->without_value++;
            continue;
        }
        numbers[use->count++] = value;
        /* Without any time all samples have the same weight. */
        double weight = weight_ns ? (double)weight_ns : 1;
        weighted += value * weight;
        covered_ns += weight;
        above_ns += value > threshold ? weight : 0;
        use->covered_ns = sum_saturated(use->covered_ns, weight_ns);
    }
    if (!use->count)
        return;
    use->mean = weighted / covered_ns;
    use->share_above = above_ns / covered_ns;
}

gpufl_status pm_use_of(const struct pm_series *series, int64_t interval_ns, double threshold, struct pm_use *use)
{
    struct pm_use result = {
        .interval_ns = interval_ns, .mean = NAN, .p50 = NAN, .p95 = NAN, .max = NAN, .share_above = NAN};
    if (interval_ns <= 0) {
        gpufl_status status = median_distance_ns(series, &result.interval_ns);
        if (status != GPUFL_OK)
            return status;
    }
    double *numbers = malloc((series->count ? series->count : 1) * sizeof *numbers);
    if (!numbers)
        return GPUFL_E_NO_MEMORY;
    series_sum(series, threshold, numbers, &result);
    if (result.count) {
        qsort(numbers, result.count, sizeof *numbers, number_compare);
        result.p50 = percentile(numbers, result.count, 50);
        result.p95 = percentile(numbers, result.count, 95);
        result.max = numbers[result.count - 1];
    }
    free(numbers);
    *use = result;
    return GPUFL_OK;
}
