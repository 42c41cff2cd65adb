/* SPDX-License-Identifier: Apache-2.0 */
/* Steps without scopes: kernels of one stream that repeat in the same order. A run of a few kernels that occurs once in
 * each period keeps its distance to the previous one, so such distances are the candidates; the one by which the
 * sequence repeats best is the period. */
#include "analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

enum { sampled_max = 1 << 18, periods_min = 5, candidates_max = 32, run_kernels = 8, slot_count = 1 << 16 };

/* The last kernels of one stream, in order: there a program runs steadily. */
struct sequence {
    uint64_t stream;
    uint32_t *ids, *rows;
    size_t count;
};

/* How the runs with the same hash recur in the sample. */
struct recurrence {
    size_t last, distance, same, count;
    int64_t idle_ns; /* of the stream before them */
};

static uint64_t stream_of(const struct kernel_columns *kernels, size_t row)
{
    return (uint64_t)kernels->device[row] << 32 | kernels->stream_id[row];
}

/* The stream that more than half of the last kernels ran on; any other if there is none (Boyer and Moore's vote). */
static uint64_t main_stream(const struct kernel_columns *kernels)
{
    uint64_t stream = 0;
    size_t votes = 0;
    for (size_t i = kernels->count > sampled_max ? kernels->count - sampled_max : 0; i < kernels->count; i++) {
        if (!votes)
            stream = stream_of(kernels, i);
        if (stream_of(kernels, i) == stream)
            votes++;
        else
            votes--;
    }
    return stream;
}

static bool sequence_make(struct sequence *sequence, const struct kernel_columns *kernels)
{
    size_t first = kernels->count;
    sequence->stream = main_stream(kernels);
    for (size_t count = 0; first > 0 && count < sampled_max; first--)
        count += stream_of(kernels, first - 1) == sequence->stream;
    sequence->ids = malloc((sampled_max + 1) * sizeof *sequence->ids);
    sequence->rows = malloc((sampled_max + 1) * sizeof *sequence->rows);
    if (!sequence->ids || !sequence->rows)
        return false;
    for (size_t i = first; i < kernels->count; i++) {
        if (stream_of(kernels, i) != sequence->stream)
            continue;
        sequence->ids[sequence->count] = kernels->kernel_id[i];
        sequence->rows[sequence->count++] = (uint32_t)i;
    }
    return true;
}

static uint32_t slot_of(const uint32_t *ids)
{
    uint32_t hash = 0;
    for (int i = 0; i < run_kernels; i++)
        hash = (hash ^ ids[i]) * UINT32_C(0x9e3779b1);
    return hash >> 16;
}

static void recurrences_find(const struct sequence *sequence, const struct kernel_columns *kernels,
                             struct recurrence *slots)
{
    for (size_t i = 0; i + run_kernels <= sequence->count; i++) {
        struct recurrence *run = &slots[slot_of(sequence->ids + i)];
        uint32_t row = sequence->rows[i], before = i ? sequence->rows[i - 1] : row;
        int64_t idle_ns =
            kernels->start_ns[row] - sum_saturated(kernels->start_ns[before], kernels->duration_ns[before]);
        if (run->count) {
            run->same += i - run->last == run->distance;
            run->distance = i - run->last;
        }
        run->idle_ns = idle_ns > 0 ? sum_saturated(run->idle_ns, idle_ns) : run->idle_ns;
        run->last = i;
        run->count++;
    }
}

static bool is_regular(const struct recurrence *run)
{
    return run->count >= periods_min && run->distance >= 2 && run->same * 10 >= (run->count - 2) * 8;
}

/* The share of kernels that run again `period` kernels later. */
static double repetition(const struct sequence *sequence, size_t period)
{
    size_t same = 0, count = sequence->count - period;
    for (size_t i = 0; i < count; i++)
        same += sequence->ids[i] == sequence->ids[i + period];
    return (double)same / (double)count;
}

/* 0: none. Of those that fit equally well, the shortest one. */
static size_t period_choose(const struct sequence *sequence, const struct recurrence *slots)
{
    size_t candidates[candidates_max] = {0}, count = 0, best = 0;
    double fits[candidates_max] = {0}, best_fit = 0.9;
    for (size_t slot = 0; slot < slot_count && count < candidates_max; slot++) {
        size_t at = 0, period = slots[slot].distance;
        while (at < count && candidates[at] != period)
            at++;
        if (at == count && is_regular(&slots[slot]) && period * periods_min <= sequence->count) {
            fits[count] = repetition(sequence, period);
            candidates[count++] = period;
        }
    }
    for (size_t i = 0; i < count; i++)
        best_fit = fits[i] > best_fit ? fits[i] : best_fit;
    for (size_t i = 0; i < count; i++)
        if (fits[i] >= best_fit - 0.002 && (!best || candidates[i] < best))
            best = candidates[i];
    return best;
}

/* Where the last period begins: of the runs that occur once in it, the one before which the stream idled longest. */
static size_t period_begin(const struct recurrence *slots, size_t period)
{
    int64_t longest_ns = -1;
    size_t begin = 0;
    for (size_t slot = 0; slot < slot_count; slot++)
        if (is_regular(&slots[slot]) && slots[slot].distance == period && slots[slot].idle_ns > longest_ns) {
            longest_ns = slots[slot].idle_ns;
            begin = slots[slot].last;
        }
    return begin;
}

/* Whether the stream's kernels from this row on are the run. */
static bool has_run(const struct kernel_columns *kernels, size_t row, const struct sequence *sequence, size_t begin)
{
    size_t at = 0;
    for (; at < run_kernels && row < kernels->count; row++) {
        if (stream_of(kernels, row) != sequence->stream)
            continue;
        if (kernels->kernel_id[row] != sequence->ids[begin + at])
            return false;
        at++;
    }
    return at == run_kernels;
}

static bool period_steps(struct steps *steps, const struct sequence *sequence, const struct session_model *model,
                         size_t begin)
{
    const struct kernel_columns *kernels = &model->kernels;
    const uint32_t first = sequence->ids[begin];
    size_t capacity = 0;
    for (size_t i = 0; i < kernels->count; i++) {
        if (kernels->kernel_id[i] != first || stream_of(kernels, i) != sequence->stream ||
            !has_run(kernels, i, sequence, begin))
            continue;
        if (steps->count == capacity) {
            capacity = capacity * 2 + 1024;
            struct step *grown = realloc(steps->items, capacity * sizeof *grown);
            if (!grown)
                return false;
            steps->items = grown;
        }
        int64_t begin_ns = kernels->start_ns[i];
        if (steps->count)
            steps->items[steps->count - 1].end_ns = begin_ns;
        steps->items[steps->count++] = (struct step){.begin_ns = begin_ns, .end_ns = begin_ns};
    }
    steps->count -= steps->count > 0; /* the last period has no end */
    steps->source = STEPS_PERIOD;
    steps->thread_id = ID_UNKNOWN;
    steps->name = session_text(model, DICTIONARY_KERNEL, first);
    steps->name_size = steps->name ? strlen(steps->name) : 0;
    return true;
}

static void no_steps(struct steps *steps, const char *because)
{
    steps_free(steps);
    steps->none_because = because;
}

gpufl_status steps_period_find(struct steps *steps, const struct session_model *model)
{
    struct sequence sequence = {0};
    struct recurrence *slots = NULL;
    no_steps(steps, "no scope ran 4 times or more as a loop, and the kernels do not repeat in a period");
    if (model->kernels.count < run_kernels * periods_min)
        return GPUFL_OK;
    bool is_done = sequence_make(&sequence, &model->kernels);
    if (is_done) {
        slots = calloc(slot_count, sizeof *slots);
        is_done = slots != NULL;
    }
    if (is_done) {
        recurrences_find(&sequence, &model->kernels, slots);
        size_t period = period_choose(&sequence, slots);
        if (period)
            is_done = period_steps(steps, &sequence, model, period_begin(slots, period));
        steps->period = period;
    }
    if (is_done && steps->source == STEPS_PERIOD && (steps->count < STEPS_MIN || steps->count > STEPS_MAX))
        no_steps(steps, "no scope ran 4 times or more as a loop, and the kernels do not repeat in a period");
    free(sequence.ids);
    free(sequence.rows);
    free(slots);
    return is_done ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}
