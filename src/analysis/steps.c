/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/analysis.h"
#include "analysis/time_window.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

/* Scopes of the same name, whatever number is at its end. */
struct step_group {
    uint32_t path_id; /* one of them */
    size_t name_size; /* of the path, without the number */
    uint64_t calls;
    int64_t wall_ns, first_ns, last_ns;
    uint32_t thread_id; /* of the first call */
};

struct step_search {
    const struct session_model *model;
    struct intern keys;
    struct step_group *groups; /* [id of the key - 1] */
    size_t capacity;
    uint32_t *group_of_path; /* [path id]; 0: not looked at yet */
};

/* "ProfilerStep#12", "step 12", "batch_12": the size without the number and the character before it. */
static size_t size_without_number(const char *path, size_t size)
{
    size_t at = size;
    while (at && isdigit((unsigned char)path[at - 1]))
        at--;
    if (at == size || !at || path[at - 1] == '|')
        return size;
    if (strchr("#_-:. ", path[at - 1]))
        at--;
    return at && path[at - 1] != '|' ? at : size;
}

static const char *last_part(const char *path, size_t size, size_t *part_size)
{
    const char *bar = memrchr(path, '|', size);
    const char *part = bar ? bar + 1 : path;
    *part_size = size - (size_t)(part - path);
    return part;
}

/* How well a name fits a step: 2 ProfilerStep, 1 a usual name, 0 any other, -1 an operator of a framework. */
static int name_rank(const char *path, size_t size)
{
    static const char *const usual[] = {"step",  "train_step", "training_step", "trainstep", "iteration", "iter",
                                        "batch", "train step", "training step", "frame",     "request"};
    size_t part_size;
    const char *part = last_part(path, size, &part_size);
    if (part_size == strlen("ProfilerStep") && !strncmp(part, "ProfilerStep", part_size))
        return 2;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (part_size == strlen(usual[i]) && !strncasecmp(part, usual[i], part_size))
            return 1;
    return memmem(part, part_size, "::", 2) || memchr(part, '[', part_size) ? -1 : 0;
}

/* NULL: no memory. The path must have a text. */
static struct step_group *group_of(struct step_search *search, uint32_t path_id)
{
    uint32_t id = search->group_of_path[path_id];
    if (!id) {
        const char *path = session_text(search->model, DICTIONARY_SCOPE_NAME, path_id);
        size_t size = size_without_number(path, strlen(path));
        bool is_new = false;
        id = intern_id(&search->keys, path, size, &is_new);
        if (!id)
            return NULL;
        if (id > search->capacity) {
            size_t capacity = search->capacity * 2 + 64;
            struct step_group *grown = realloc(search->groups, capacity * sizeof *grown);
            if (!grown)
                return NULL;
            search->groups = grown;
            search->capacity = capacity;
        }
        if (is_new)
            search->groups[id - 1] =
                (struct step_group){.path_id = path_id, .name_size = size, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
        search->group_of_path[path_id] = id;
    }
    return &search->groups[id - 1];
}

/* An entry that can be a step: the user's, or pushed by NVTX, with both ends. */
static bool is_candidate(const struct session_model *model, const struct scope_instance *scope)
{
    bool is_nested = scope->source == 0 || scope->source == 1 || scope->source == 3;
    return is_nested && scope->kind == SCOPE_OF_USER && !scope->is_attribution_only &&
           scope->begin_ns != TIME_UNKNOWN && scope->end_ns != TIME_UNKNOWN && scope->end_ns > scope->begin_ns &&
           scope->path_id && scope->path_id < model->dictionaries[DICTIONARY_SCOPE_NAME].count &&
           session_text(model, DICTIONARY_SCOPE_NAME, scope->path_id);
}

static bool groups_fill(struct step_search *search)
{
    for (size_t i = 0; i < search->model->scope_count; i++) {
        const struct scope_instance *scope = &search->model->scopes[i];
        if (!is_candidate(search->model, scope))
            continue;
        struct step_group *group = group_of(search, scope->path_id);
        if (!group)
            return false;
        if (!group->calls++)
            group->thread_id = scope->thread_id;
        group->wall_ns = sum_saturated(group->wall_ns, scope->end_ns - scope->begin_ns);
        group->first_ns = scope->begin_ns < group->first_ns ? scope->begin_ns : group->first_ns;
        group->last_ns = scope->end_ns > group->last_ns ? scope->end_ns : group->last_ns;
    }
    return true;
}

/* The scope whose entries are the steps; NULL: none. */
static const struct step_group *group_choose(const struct step_search *search)
{
    const struct step_group *best = NULL;
    int best_rank = -1;
    for (uint32_t i = 0; i < search->keys.count; i++) {
        const struct step_group *group = &search->groups[i];
        const char *path = session_text(search->model, DICTIONARY_SCOPE_NAME, group->path_id);
        int rank = name_rank(path, group->name_size);
        bool is_loop = group->wall_ns >= (group->last_ns - group->first_ns) / 2;
        if (group->calls < STEPS_MIN || group->calls > STEPS_MAX || rank < 0 || (!rank && !is_loop))
            continue;
        if (rank > best_rank || (rank == best_rank && group->wall_ns > best->wall_ns)) {
            best = group;
            best_rank = rank;
        }
    }
    return best;
}

static int step_compare(const void *left, const void *right)
{
    const struct step *a = left, *b = right;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

/* Entries of other threads overlap these: the steps are those of the thread that entered the scope first. */
static bool steps_collect(struct steps *steps, const struct step_search *search, const struct step_group *group)
{
    const struct session_model *model = search->model;
    uint32_t id = (uint32_t)(group - search->groups) + 1;
    steps->items = malloc(group->calls * sizeof *steps->items);
    if (!steps->items)
        return false;
    for (size_t i = 0; i < model->scope_count; i++) {
        const struct scope_instance *scope = &model->scopes[i];
        if (is_candidate(model, scope) && search->group_of_path[scope->path_id] == id &&
            scope->thread_id == group->thread_id)
            steps->items[steps->count++] = (struct step){.begin_ns = scope->begin_ns, .end_ns = scope->end_ns};
    }
    qsort(steps->items, steps->count, sizeof *steps->items, step_compare);
    size_t kept = 0;
    for (size_t i = 0; i < steps->count; i++)
        if (!kept || steps->items[i].begin_ns >= steps->items[kept - 1].end_ns)
            steps->items[kept++] = steps->items[i];
    steps->count = kept;
    steps->source = STEPS_SCOPE;
    steps->thread_id = group->thread_id;
    steps->name = session_text(model, DICTIONARY_SCOPE_NAME, group->path_id);
    steps->name_size = group->name_size;
    return true;
}

static gpufl_status steps_scope_find(struct steps *steps, const struct session_model *model)
{
    struct step_search search = {.model = model};
    size_t paths = model->dictionaries[DICTIONARY_SCOPE_NAME].count;
    search.group_of_path = calloc(paths + 1, sizeof *search.group_of_path);
    bool is_done = search.group_of_path && groups_fill(&search);
    if (is_done) {
        const struct step_group *group = group_choose(&search);
        is_done = !group || steps_collect(steps, &search, group);
    }
    intern_free(&search.keys);
    free(search.groups);
    free(search.group_of_path);
    return is_done ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

static int64_t step_ns(const struct step *step)
{
    return step->end_ns - step->begin_ns;
}

/* Warm-up ends before the first three steps in a row that take at most 1.5 times the median of the second half; it is
 * never more than half of the steps. Where no three such steps follow each other, there is none. */
static size_t warmup_count(const struct steps *steps, int64_t *durations, int64_t *scratch)
{
    size_t half = steps->count / 2, run = 0;
    for (size_t i = half; i < steps->count; i++)
        durations[i - half] = step_ns(&steps->items[i]);
    int64_t median_ns = distribution_of(durations, scratch, steps->count - half).p50;
    for (size_t i = 0; i < steps->count; i++) {
        run = (double)step_ns(&steps->items[i]) <= 1.5 * (double)median_ns ? run + 1 : 0;
        if (run == 3)
            return i - 2 < half ? i - 2 : half;
    }
    return 0;
}

static gpufl_status times_make(struct analysis *analysis, struct step_times *times, size_t first, int64_t *durations,
                               int64_t *scratch)
{
    const struct steps *steps = &analysis->steps;
    size_t kernels = 0;
    times->count = steps->count - first;
    for (size_t i = first; i < steps->count; i++) {
        durations[i - first] = step_ns(&steps->items[i]);
        kernels += steps->items[i].kernels;
    }
    times->duration = distribution_of(durations, scratch, times->count);
    times->p10_ns = nearest_rank(durations, times->count, 10);
    times->kernels = (double)kernels / (double)times->count;
    int64_t begin_ns = steps->items[first].begin_ns, end_ns = steps->items[steps->count - 1].end_ns;
    times->wall_ns = end_ns - begin_ns;
    return time_window_busy(analysis, begin_ns, end_ns, &times->busy_ns);
}

/* The first steps of these lengths. */
static void extremes_find(struct steps *steps)
{
    steps->slowest = steps->typical = steps->count;
    for (size_t i = steps->count; i-- > steps->warmup;) {
        if (step_ns(&steps->items[i]) == steps->steady.duration.max)
            steps->slowest = i;
        else if (step_ns(&steps->items[i]) == steps->steady.duration.p50)
            steps->typical = i;
    }
}

gpufl_status steps_make(struct analysis *analysis)
{
    struct steps *steps = &analysis->steps;
    const struct session_model *model = analysis->model;
    gpufl_status status = steps_scope_find(steps, model);
    if (status == GPUFL_OK && steps->count < STEPS_MIN) {
        steps_free(steps);
        status = steps_period_find(steps, model);
    }
    if (status != GPUFL_OK || steps->source == STEPS_NONE)
        return status;
    int64_t *durations = malloc(steps->count * sizeof *durations), *scratch = malloc(steps->count * sizeof *scratch);
    status = durations && scratch ? GPUFL_OK : GPUFL_E_NO_MEMORY;
    for (size_t i = 0; status == GPUFL_OK && i < steps->count; i++)
        steps->items[i].kernels =
            kernel_from(model, steps->items[i].end_ns) - kernel_from(model, steps->items[i].begin_ns);
    if (status == GPUFL_OK) {
        steps->warmup = warmup_count(steps, durations, scratch);
        status = times_make(analysis, &steps->whole, 0, durations, scratch);
    }
    if (status == GPUFL_OK)
        status = times_make(analysis, &steps->steady, steps->warmup, durations, scratch);
    if (status == GPUFL_OK) {
        extremes_find(steps);
        status = steps->typical < steps->count ? steps_compare(analysis) : GPUFL_OK;
    }
    free(durations);
    free(scratch);
    return status;
}

void steps_free(struct steps *steps)
{
    free(steps->items);
    free(steps->differences);
    *steps = (struct steps){0};
}

size_t kernel_from(const struct session_model *model, int64_t time_ns)
{
    size_t low = 0, high = model->kernels.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (model->kernels.start_ns[middle] < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
