/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/pc_attribution.h"

#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

enum {
    GROUPS_MAX = 4096,
    CELLS_MAX = 64 * 1024,
    INDEX_FACTOR = 2, /* slots of an index for each thing in it */
    DEVICES_MAX = 32,
    STALLS_MAX = 256 /* indexes of a device */
};
#define ADD_UP_NS INT64_C(1000000000)
#define WAIT_FOR_EXECUTION_NS INT64_C(30000000000)

struct function {
    uint64_t cubin_crc;
    uint32_t symbol_id, function_id;
    /* The last interval looked up, since all samples of it and of the function share the answer. */
    int64_t interval_start_ns, interval_end_ns;
    uint32_t context_id, group;
    uint32_t generation; /* of the tables that `group` is in; 0: none */
};

/* Samples that share everything but pc and stall. */
struct group {
    int64_t start_ns, end_ns;
    uint64_t scope_id;
    int64_t scope_ns, total_ns;
    uint32_t function, context_id, device_id, window_id;
    uint32_t correlation_id, instances;
    uint32_t number;   /* its next place in the table, while that is tidied up */
    bool is_known;     /* executions were found */
    bool is_forgotten; /* they cannot be found any more */
    bool is_waiting;   /* stays in the tables when others are written */
};
struct cell {
    uint64_t samples, pc_offset;
    uint32_t group, stall_index;
};

struct pc_attribution {
    struct pc_attribution_options options;
    struct function *functions;
    uint32_t function_count, generation;
    struct group *groups;
    struct cell *cells;
    uint32_t group_count, cell_count;
    uint32_t *group_index, *cell_index; /* open addressing; number + 1, 0 empty */
    uint32_t metric_ids[DEVICES_MAX][STALLS_MAX];
    int64_t since_ns; /* end of the first interval in the tables */
    uint64_t unattributed;
};

gpufl_status pc_attribution_make(struct pc_attribution **out, const struct pc_attribution_options *options)
{
    struct pc_attribution *attribution = calloc(1, sizeof *attribution);
    if (!attribution)
        return GPUFL_E_NO_MEMORY;
    attribution->options = *options;
    attribution->generation = 1;
    attribution->functions = calloc(PC_FUNCTIONS_MAX, sizeof *attribution->functions);
    attribution->groups = calloc(GROUPS_MAX, sizeof *attribution->groups);
    attribution->cells = calloc(CELLS_MAX, sizeof *attribution->cells);
    attribution->group_index = calloc(GROUPS_MAX * INDEX_FACTOR, sizeof *attribution->group_index);
    attribution->cell_index = calloc(CELLS_MAX * INDEX_FACTOR, sizeof *attribution->cell_index);
    if (!attribution->functions || !attribution->groups || !attribution->cells || !attribution->group_index ||
        !attribution->cell_index) {
        pc_attribution_free(attribution);
        return GPUFL_E_NO_MEMORY;
    }
    *out = attribution;
    return GPUFL_OK;
}

void pc_attribution_free(struct pc_attribution *attribution)
{
    if (!attribution)
        return;
    free(attribution->functions);
    free(attribution->groups);
    free(attribution->cells);
    free(attribution->group_index);
    free(attribution->cell_index);
    free(attribution);
}

size_t pc_attribution_bytes(const struct pc_attribution *attribution)
{
    return sizeof *attribution + PC_FUNCTIONS_MAX * sizeof(struct function) + GROUPS_MAX * sizeof(struct group) +
           CELLS_MAX * sizeof(struct cell) + (GROUPS_MAX + CELLS_MAX) * INDEX_FACTOR * sizeof(uint32_t);
}

uint64_t pc_attribution_unattributed(const struct pc_attribution *attribution)
{
    return attribution->unattributed;
}

void pc_attribution_define(struct pc_attribution *attribution, uint32_t function, uint64_t cubin_crc,
                           const char *symbol)
{
    if (!function || function > PC_FUNCTIONS_MAX)
        return;
    attribution->functions[function - 1] =
        (struct function){.cubin_crc = cubin_crc,
                          .symbol_id = kernel_history_symbol(attribution->options.history, symbol),
                          .function_id = names_function(attribution->options.names, symbol)};
    if (function > attribution->function_count)
        attribution->function_count = function;
}

/* NULL: out of range; rows then name the stall by its index only. */
static uint32_t *metric_id(struct pc_attribution *attribution, uint32_t device_id, uint32_t stall_index)
{
    return device_id < DEVICES_MAX && stall_index < STALLS_MAX ? &attribution->metric_ids[device_id][stall_index]
                                                               : NULL;
}

void pc_attribution_stall(struct pc_attribution *attribution, uint32_t device_id, uint32_t stall_index,
                          const char *name)
{
    uint32_t *id = metric_id(attribution, device_id, stall_index);
    if (id && !*id)
        *id = names_metric(attribution->options.names, name);
}

static bool group_is(const struct group *a, const struct group *b)
{
    return a->function == b->function && a->context_id == b->context_id && a->window_id == b->window_id &&
           a->correlation_id == b->correlation_id && a->scope_id == b->scope_id && a->is_known == b->is_known;
}

/* The index's place of the group, or the empty one where it belongs. */
static uint32_t *group_place(struct pc_attribution *attribution, const struct group *group)
{
    const uint64_t key[] = {group->scope_id, (uint64_t)group->function << 32 | group->context_id,
                            (uint64_t)group->correlation_id << 32 | group->window_id, group->is_known};
    for (uint32_t at = crc32c(0, key, sizeof key);; at++) {
        uint32_t *place = &attribution->group_index[at % (GROUPS_MAX * INDEX_FACTOR)];
        if (!*place || group_is(&attribution->groups[*place - 1], group))
            return place;
    }
}

static uint32_t *cell_place(struct pc_attribution *attribution, const struct cell *cell)
{
    const uint64_t key[] = {cell->pc_offset, (uint64_t)cell->group << 32 | cell->stall_index};
    for (uint32_t at = crc32c(0, key, sizeof key);; at++) {
        uint32_t *place = &attribution->cell_index[at % (CELLS_MAX * INDEX_FACTOR)];
        if (!*place)
            return place;
        const struct cell *known = &attribution->cells[*place - 1];
        if (known->pc_offset == cell->pc_offset && known->group == cell->group &&
            known->stall_index == cell->stall_index)
            return place;
    }
}

static void group_look_up(const struct pc_attribution *attribution, const struct group *group, int64_t later_ns,
                          struct kernel_overlap *overlap)
{
    kernel_history_overlap(attribution->options.history, attribution->functions[group->function - 1].symbol_id,
                           group->context_id, group->start_ns, group->end_ns, later_ns, overlap);
}

static void group_attribute(const struct pc_attribution *attribution, struct group *group)
{
    struct kernel_overlap overlap;
    group_look_up(attribution, group, INT64_MIN, &overlap);
    group->is_forgotten = !overlap.is_complete;
    if (!overlap.instances || !overlap.is_complete)
        return;
    group->is_known = true;
    group->correlation_id = overlap.correlation_id;
    group->scope_id = overlap.scope_id;
    group->scope_ns = overlap.scope_ns;
    group->total_ns = overlap.total_ns;
    group->instances = overlap.instances;
}

/* Adds an interval's group to the one like it. */
static void group_extend(const struct pc_attribution *attribution, struct group *known, const struct group *group)
{
    struct kernel_overlap overlap;
    if (group->is_known && !group->correlation_id) {
        /* What also overlaps the intervals before was counted with them. */
        group_look_up(attribution, group, known->end_ns, &overlap);
        known->instances += overlap.later;
        known->scope_ns += group->scope_ns;
        known->total_ns += group->total_ns;
    }
    if (group->start_ns < known->start_ns)
        known->start_ns = group->start_ns;
    if (group->end_ns > known->end_ns)
        known->end_ns = group->end_ns;
    known->is_forgotten |= group->is_forgotten;
}

/* Where the samples of a function and interval belong; there must be room for a group. correlation_id: of the samples
 * themselves (serialized mode), 0 none. */
static uint32_t group_of(struct pc_attribution *attribution, uint32_t function, const struct pc_interval *in,
                         uint32_t correlation_id)
{
    struct group group = {.start_ns = in->start_ns,
                          .end_ns = in->end_ns,
                          .function = function,
                          .context_id = in->context_id,
                          .device_id = in->device_id,
                          .window_id = in->window_id};
    struct kernel_execution execution;
    if (correlation_id) {
        group.correlation_id = correlation_id;
        group.is_known = true;
        group.instances = 1;
        group.scope_ns = group.total_ns = 1;
        if (kernel_history_find(attribution->options.history, correlation_id,
                                attribution->functions[function - 1].symbol_id, &execution))
            group.scope_id = execution.scope_id;
    } else {
        group_attribute(attribution, &group);
    }
    uint32_t *place = group_place(attribution, &group);
    if (*place) {
        group_extend(attribution, &attribution->groups[*place - 1], &group);
    } else {
        attribution->groups[attribution->group_count++] = group;
        *place = attribution->group_count;
    }
    return *place - 1;
}

static void write_cell(struct pc_attribution *attribution, const struct cell *cell)
{
    const struct group *group = &attribution->groups[cell->group];
    const struct function *function = &attribution->functions[group->function - 1];
    int64_t *row = recorder_row(attribution->options.recorder, RECORD_PROFILE_SAMPLE_BATCH, group->start_ns);
    row[PROFILE_SAMPLE_CORR_ID] = group->correlation_id;
    row[PROFILE_SAMPLE_DEVICE_ID] = group->device_id;
    row[PROFILE_SAMPLE_FUNCTION_ID] = function->function_id;
    row[PROFILE_SAMPLE_PC_OFFSET] = (int64_t)cell->pc_offset;
    const uint32_t *metric = metric_id(attribution, group->device_id, cell->stall_index);
    row[PROFILE_SAMPLE_METRIC_ID] = metric ? *metric : 0;
    row[PROFILE_SAMPLE_METRIC_VALUE] = (int64_t)cell->samples;
    row[PROFILE_SAMPLE_STALL_REASON] = cell->stall_index;
    row[PROFILE_SAMPLE_CUBIN_CRC] = (int64_t)function->cubin_crc;
    row[PROFILE_SAMPLE_CONTEXT_ID] = group->context_id;
    row[PROFILE_SAMPLE_INTERVAL_NS] = group->end_ns - group->start_ns;
    row[PROFILE_SAMPLE_INSTANCES] = group->is_known ? group->instances : CELL_UNKNOWN;
    row[PROFILE_SAMPLE_CONFIDENCE_BP] =
        group->is_known ? (int64_t)(10000.0 * (double)group->scope_ns / (double)group->total_ns + 0.5) : CELL_UNKNOWN;
    row[PROFILE_SAMPLE_SCOPE_ID] = (int64_t)group->scope_id;
    row[PROFILE_SAMPLE_WINDOW_ID] = group->window_id;
    if (group->scope_id && attribution->options.scope_name_id)
        row[PROFILE_SAMPLE_SCOPE_NAME_ID] =
            attribution->options.scope_name_id(attribution->options.scope_user, group->scope_id);
    if (!group->is_known)
        attribution->unattributed += cell->samples;
}

/* Takes the written out of both tables; groups keep their order, so they only move down. */
static void drop_written(struct pc_attribution *attribution)
{
    uint32_t group_count = 0, cell_count = 0;
    for (uint32_t i = 0; i < attribution->group_count; i++)
        if (attribution->groups[i].is_waiting)
            attribution->groups[i].number = group_count++;
    for (uint32_t i = 0; i < attribution->cell_count; i++) {
        const struct group *group = &attribution->groups[attribution->cells[i].group];
        if (!group->is_waiting)
            continue;
        attribution->cells[cell_count] = attribution->cells[i];
        attribution->cells[cell_count++].group = group->number;
    }
    for (uint32_t i = 0; i < attribution->group_count; i++)
        if (attribution->groups[i].is_waiting)
            attribution->groups[attribution->groups[i].number] = attribution->groups[i];
    attribution->group_count = group_count;
    attribution->cell_count = cell_count;
    memset(attribution->group_index, 0, GROUPS_MAX * INDEX_FACTOR * sizeof(uint32_t));
    memset(attribution->cell_index, 0, CELLS_MAX * INDEX_FACTOR * sizeof(uint32_t));
    for (uint32_t i = 0; i < group_count; i++)
        *group_place(attribution, &attribution->groups[i]) = i + 1;
    for (uint32_t i = 0; i < cell_count; i++)
        *cell_place(attribution, &attribution->cells[i]) = i + 1;
    attribution->generation++;
}

static void write_tables(struct pc_attribution *attribution, int64_t now_ns, bool with_waiting)
{
    for (uint32_t i = 0; i < attribution->group_count; i++) {
        struct group *group = &attribution->groups[i];
        if (!group->is_known && !group->is_forgotten)
            group_attribute(attribution, group);
        group->is_waiting = !with_waiting && !group->is_known && !group->is_forgotten &&
                            now_ns - group->start_ns < WAIT_FOR_EXECUTION_NS;
    }
    for (uint32_t i = 0; i < attribution->cell_count; i++)
        if (!attribution->groups[attribution->cells[i].group].is_waiting)
            write_cell(attribution, &attribution->cells[i]);
    drop_written(attribution);
    attribution->since_ns = now_ns;
}

/* Room for a group and a cell, whatever that takes. */
static void make_room(struct pc_attribution *attribution, int64_t now_ns)
{
    if (attribution->group_count < GROUPS_MAX && attribution->cell_count < CELLS_MAX)
        return;
    write_tables(attribution, now_ns, false);
    if (attribution->group_count >= GROUPS_MAX / 2 || attribution->cell_count >= CELLS_MAX / 2)
        write_tables(attribution, now_ns, true);
}

void pc_attribution_add(struct pc_attribution *attribution, const struct pc_interval *interval,
                        const struct pc_count *counts, uint32_t count)
{
    if (!attribution->cell_count)
        attribution->since_ns = interval->end_ns;
    for (uint32_t i = 0; i < count; i++) {
        const struct pc_count *sample = &counts[i];
        if (!sample->function || sample->function > attribution->function_count) {
            recorder_lose(attribution->options.recorder, LOSS_PC_TABLE, sample->samples);
            continue;
        }
        make_room(attribution, interval->end_ns);
        struct function *function = &attribution->functions[sample->function - 1];
        uint32_t group = function->group;
        if (sample->correlation_id || function->generation != attribution->generation ||
            function->context_id != interval->context_id || function->interval_start_ns != interval->start_ns ||
            function->interval_end_ns != interval->end_ns) {
            group = group_of(attribution, sample->function, interval, sample->correlation_id);
            function->group = group;
            function->generation = sample->correlation_id ? 0 : attribution->generation;
            function->context_id = interval->context_id;
            function->interval_start_ns = interval->start_ns;
            function->interval_end_ns = interval->end_ns;
        }
        const struct cell cell = {sample->samples, sample->pc_offset, group, sample->stall_index};
        uint32_t *place = cell_place(attribution, &cell);
        if (*place) {
            attribution->cells[*place - 1].samples += sample->samples;
        } else {
            attribution->cells[attribution->cell_count++] = cell;
            *place = attribution->cell_count;
        }
    }
}

void pc_attribution_write(struct pc_attribution *attribution, int64_t now_ns)
{
    if (attribution->cell_count && (now_ns == INT64_MAX || now_ns - attribution->since_ns >= ADD_UP_NS))
        write_tables(attribution, now_ns, now_ns == INT64_MAX);
}
