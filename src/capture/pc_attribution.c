/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/pc_attribution.h"

#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

enum {
    PORTIONS_MAX = KERNEL_SHARES_MAX + 1, /* plus one for the time without a known scope */
    GROUPS_MAX = 4096,
    CELLS_MAX = 64 * 1024,
    PARTS_MAX = 16 * 1024,
    INDEX_FACTOR = 2, /* slots of an index per entry */
    DEVICES_MAX = 32,
    STALLS_MAX = 256 /* stall reasons of a device */
};
#define ADD_UP_NS INT64_C(1000000000)
#define WAIT_FOR_EXECUTION_NS INT64_C(30000000000)

/* One scope path's part of the samples of a function and interval, in proportion to its share of the execution time. */
struct part {
    int64_t ns;
    uint32_t group;
};
struct parts {
    int64_t total_ns;
    uint32_t first, count; /* position in the table */
};

struct function {
    uint64_t cubin_crc;
    uint32_t symbol_id, function_id;
    /* The last interval looked up: all its samples of the function share the result. */
    int64_t interval_start_ns, interval_end_ns;
    struct parts parts;
    uint32_t context_id;
    uint32_t generation; /* of the tables that contain `parts`; 0: none */
};

/* Samples that differ only in pc and stall. */
struct group {
    int64_t start_ns, end_ns;
    struct kernel_share share;
    int64_t total_ns; /* the total of which the share's time is a part */
    uint32_t function, context_id, device_id, window_id;
    uint32_t correlation_id, instances;
    uint32_t number;    /* its next position in the table, while the table is compacted */
    struct parts parts; /* GROUP_FOUND_LATE: in the table of late shares */
    enum group_state {
        GROUP_OF_SCOPE,      /* including those outside of scopes: known */
        GROUP_SCOPE_UNKNOWN, /* there were executions, but their scope is not known */
        GROUP_AWAITS,        /* no execution was found yet: stays in the tables when others are written */
        GROUP_FORGOTTEN,     /* no execution was found, and none can be found any more */
        GROUP_FOUND_LATE     /* found, not yet written */
    } state;
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
    struct part *parts;
    uint32_t part_count;
    struct kernel_share *late_shares; /* of groups found late, while they are written */
    uint32_t late_count;
    double phase; /* 0 to 1: decides who gets the samples left over after rounding */
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
    attribution->parts = calloc(PARTS_MAX, sizeof *attribution->parts);
    attribution->late_shares = calloc(PARTS_MAX, sizeof *attribution->late_shares);
    attribution->group_index = calloc(GROUPS_MAX * INDEX_FACTOR, sizeof *attribution->group_index);
    attribution->cell_index = calloc(CELLS_MAX * INDEX_FACTOR, sizeof *attribution->cell_index);
    if (!attribution->functions || !attribution->groups || !attribution->cells || !attribution->parts ||
        !attribution->late_shares || !attribution->group_index || !attribution->cell_index) {
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
    free(attribution->parts);
    free(attribution->late_shares);
    free(attribution->group_index);
    free(attribution->cell_index);
    free(attribution);
}

size_t pc_attribution_bytes(const struct pc_attribution *attribution)
{
    return sizeof *attribution + PC_FUNCTIONS_MAX * sizeof(struct function) + GROUPS_MAX * sizeof(struct group) +
           CELLS_MAX * sizeof(struct cell) + PARTS_MAX * (sizeof(struct part) + sizeof(struct kernel_share)) +
           (GROUPS_MAX + CELLS_MAX) * INDEX_FACTOR * sizeof(uint32_t);
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

/* NULL: out of range; rows then identify the stall by its index only. */
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
           a->correlation_id == b->correlation_id && a->share.scope_id == b->share.scope_id &&
           a->share.path_id == b->share.path_id && a->state == b->state;
}

/* The group's slot in the index, or the empty slot where it belongs. */
static uint32_t *group_place(struct pc_attribution *attribution, const struct group *group)
{
    const uint64_t key[] = {group->share.scope_id, (uint64_t)group->function << 32 | group->context_id,
                            (uint64_t)group->correlation_id << 32 | group->window_id,
                            (uint64_t)group->share.path_id << 32 | group->state};
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

static void group_look_up(const struct pc_attribution *attribution, const struct group *group,
                          struct kernel_overlap *overlap)
{
    kernel_history_overlap(attribution->options.history, attribution->functions[group->function - 1].symbol_id,
                           group->context_id, group->start_ns, group->end_ns, overlap);
}

/* The number of the group, merged with an equal one. began: executions of the interval that no previous sample
 * counted. */
static uint32_t group_add(struct pc_attribution *attribution, const struct group *group, uint32_t began)
{
    uint32_t *place = group_place(attribution, group);
    if (!*place) {
        attribution->groups[attribution->group_count++] = *group;
        *place = attribution->group_count;
        return *place - 1;
    }
    struct group *known = &attribution->groups[*place - 1];
    if (!group->correlation_id) {
        known->instances += group->start_ns <= known->end_ns ? began : group->instances;
        known->share.ns += group->share.ns;
        known->total_ns += group->total_ns;
    }
    if (group->start_ns < known->start_ns)
        known->start_ns = group->start_ns;
    if (group->end_ns > known->end_ns)
        known->end_ns = group->end_ns;
    return *place - 1;
}

static void part_add(struct pc_attribution *attribution, struct parts *parts, const struct group *group, uint32_t began)
{
    attribution->parts[attribution->part_count++] =
        (struct part){group->share.ns, group_add(attribution, group, began)};
    parts->count++;
    parts->total_ns += group->share.ns;
}

/* The groups of a function's samples in an interval; there must be room for all parts and their groups.
 * correlation_id: of the samples themselves (serialized mode), 0 none. */
static struct parts parts_of(struct pc_attribution *attribution, uint32_t function, const struct pc_interval *in,
                             uint32_t correlation_id)
{
    struct parts parts = {.first = attribution->part_count};
    struct group group = {.start_ns = in->start_ns,
                          .end_ns = in->end_ns,
                          .share.ns = 1,
                          .total_ns = 1,
                          .function = function,
                          .context_id = in->context_id,
                          .device_id = in->device_id,
                          .window_id = in->window_id,
                          .correlation_id = correlation_id,
                          .instances = 1};
    if (correlation_id) {
        struct kernel_execution execution;
        if (kernel_history_find(attribution->options.history, correlation_id,
                                attribution->functions[function - 1].symbol_id, &execution))
            group.share = (struct kernel_share){1, execution.scope_id, execution.path_id};
        part_add(attribution, &parts, &group, 0);
        return parts;
    }
    struct kernel_overlap overlap;
    group_look_up(attribution, &group, &overlap);
    if (!overlap.instances || !overlap.is_complete) {
        group.state = overlap.is_complete ? GROUP_AWAITS : GROUP_FORGOTTEN;
        part_add(attribution, &parts, &group, 0);
        return parts;
    }
    group.correlation_id = overlap.correlation_id;
    group.instances = overlap.instances;
    group.total_ns = overlap.total_ns;
    for (uint32_t i = 0; i < overlap.share_count; i++) {
        group.share = overlap.shares[i];
        part_add(attribution, &parts, &group, overlap.began);
    }
    if (overlap.unknown_ns) {
        group.share = (struct kernel_share){.ns = overlap.unknown_ns};
        group.state = GROUP_SCOPE_UNKNOWN;
        part_add(attribution, &parts, &group, overlap.began);
    }
    return parts;
}

/* Splits samples in proportion to time, into whole numbers with the exact total and without bias: what is left after
 * rounding down goes to parts chosen by systematic sampling of their remainders, starting at the phase. */
static void share_out(struct pc_attribution *attribution, uint64_t samples, const struct part *parts, uint32_t count,
                      int64_t total_ns, uint64_t portions[PORTIONS_MAX])
{
    const double golden = 0.6180339887498949; /* its multiples are spread evenly over the unit interval */
    double remainders = 0, mark;
    uint64_t given = 0;
    attribution->phase += golden;
    attribution->phase -= attribution->phase >= 1;
    mark = attribution->phase;
    for (uint32_t i = 0; i < count; i++) {
        double exact = (double)samples * (double)parts[i].ns / (double)total_ns;
        portions[i] = (uint64_t)exact;
        remainders += exact - (double)portions[i];
        while (remainders > mark) {
            portions[i]++;
            mark += 1;
        }
        given += portions[i];
    }
    /* A rounding error may leave one sample too few or too many. The last part has at least as many, or there is
     * none. */
    uint32_t last = count - 1;
    while (given > samples && last && !portions[last])
        last--;
    portions[last] += samples - given;
}

static void write_row(struct pc_attribution *attribution, const struct group *group, const struct cell *cell,
                      const struct kernel_share *share, uint64_t samples)
{
    const struct function *function = &attribution->functions[group->function - 1];
    bool has_scope = share != NULL, is_executed = has_scope || group->state == GROUP_SCOPE_UNKNOWN;
    int64_t *row = recorder_row(attribution->options.recorder, RECORD_PROFILE_SAMPLE_BATCH, group->start_ns);
    row[PROFILE_SAMPLE_CORR_ID] = group->correlation_id;
    row[PROFILE_SAMPLE_DEVICE_ID] = group->device_id;
    row[PROFILE_SAMPLE_FUNCTION_ID] = function->function_id;
    row[PROFILE_SAMPLE_PC_OFFSET] = (int64_t)cell->pc_offset;
    const uint32_t *metric = metric_id(attribution, group->device_id, cell->stall_index);
    row[PROFILE_SAMPLE_METRIC_ID] = metric ? *metric : 0;
    row[PROFILE_SAMPLE_METRIC_VALUE] = (int64_t)samples;
    row[PROFILE_SAMPLE_STALL_REASON] = cell->stall_index;
    row[PROFILE_SAMPLE_CUBIN_CRC] = (int64_t)function->cubin_crc;
    row[PROFILE_SAMPLE_CONTEXT_ID] = group->context_id;
    row[PROFILE_SAMPLE_INTERVAL_NS] = group->end_ns - group->start_ns;
    row[PROFILE_SAMPLE_INSTANCES] = is_executed ? group->instances : CELL_UNKNOWN;
    row[PROFILE_SAMPLE_CONFIDENCE_BP] =
        has_scope ? (int64_t)(10000.0 * (double)share->ns / (double)group->total_ns + 0.5) : CELL_UNKNOWN;
    row[PROFILE_SAMPLE_SCOPE_ID] = has_scope ? (int64_t)share->scope_id : 0;
    row[PROFILE_SAMPLE_SCOPE_NAME_ID] = has_scope ? share->path_id : 0;
    row[PROFILE_SAMPLE_WINDOW_ID] = group->window_id;
    if (!has_scope)
        attribution->unattributed += samples;
}

static void write_cell(struct pc_attribution *attribution, const struct cell *cell)
{
    const struct group *group = &attribution->groups[cell->group];
    if (group->state != GROUP_FOUND_LATE || !group->parts.count) {
        write_row(attribution, group, cell, group->state == GROUP_OF_SCOPE ? &group->share : NULL, cell->samples);
        return;
    }
    const struct kernel_share *shares = &attribution->late_shares[group->parts.first];
    struct part parts[PORTIONS_MAX];
    uint64_t portions[PORTIONS_MAX];
    int64_t unknown_ns = group->total_ns;
    for (uint32_t i = 0; i < group->parts.count; i++) {
        parts[i] = (struct part){.ns = shares[i].ns};
        unknown_ns -= shares[i].ns;
    }
    parts[group->parts.count] = (struct part){.ns = unknown_ns};
    share_out(attribution, cell->samples, parts, group->parts.count + (unknown_ns > 0), group->total_ns, portions);
    for (uint32_t i = 0; i < group->parts.count + (unknown_ns > 0); i++)
        if (portions[i])
            write_row(attribution, group, cell, i < group->parts.count ? &shares[i] : NULL, portions[i]);
}

/* Repeats the look-up for a group without an execution. Shares for which there is no room count as time without a
 * known scope. */
static void group_find_late(struct pc_attribution *attribution, struct group *group)
{
    struct kernel_overlap overlap;
    group_look_up(attribution, group, &overlap);
    if (!overlap.is_complete)
        group->state = GROUP_FORGOTTEN;
    if (!overlap.instances || !overlap.is_complete)
        return;
    uint32_t room = PARTS_MAX - attribution->late_count;
    group->state = overlap.share_count && room ? GROUP_FOUND_LATE : GROUP_SCOPE_UNKNOWN;
    group->correlation_id = overlap.correlation_id;
    group->instances = overlap.instances;
    group->total_ns = overlap.total_ns;
    group->parts = (struct parts){.first = attribution->late_count,
                                  .count = overlap.share_count < room ? overlap.share_count : room};
    memcpy(&attribution->late_shares[attribution->late_count], overlap.shares,
           group->parts.count * sizeof *overlap.shares);
    attribution->late_count += group->parts.count;
}

/* Removes written groups from both tables; groups keep their order, so they only move down. */
static void drop_written(struct pc_attribution *attribution)
{
    uint32_t group_count = 0, cell_count = 0;
    for (uint32_t i = 0; i < attribution->group_count; i++)
        if (attribution->groups[i].state == GROUP_AWAITS)
            attribution->groups[i].number = group_count++;
    for (uint32_t i = 0; i < attribution->cell_count; i++) {
        const struct group *group = &attribution->groups[attribution->cells[i].group];
        if (group->state != GROUP_AWAITS)
            continue;
        attribution->cells[cell_count] = attribution->cells[i];
        attribution->cells[cell_count++].group = group->number;
    }
    for (uint32_t i = 0; i < attribution->group_count; i++)
        if (attribution->groups[i].state == GROUP_AWAITS)
            attribution->groups[attribution->groups[i].number] = attribution->groups[i];
    attribution->group_count = group_count;
    attribution->cell_count = cell_count;
    memset(attribution->group_index, 0, GROUPS_MAX * INDEX_FACTOR * sizeof(uint32_t));
    memset(attribution->cell_index, 0, CELLS_MAX * INDEX_FACTOR * sizeof(uint32_t));
    for (uint32_t i = 0; i < group_count; i++)
        *group_place(attribution, &attribution->groups[i]) = i + 1;
    for (uint32_t i = 0; i < cell_count; i++)
        *cell_place(attribution, &attribution->cells[i]) = i + 1;
    attribution->part_count = 0;
    attribution->generation++; /* an interval that is still being read is looked up again */
}

static void write_tables(struct pc_attribution *attribution, int64_t now_ns, bool with_waiting)
{
    attribution->late_count = 0;
    for (uint32_t i = 0; i < attribution->group_count; i++) {
        struct group *group = &attribution->groups[i];
        if (group->state == GROUP_AWAITS)
            group_find_late(attribution, group);
        if (group->state == GROUP_AWAITS && (with_waiting || now_ns - group->start_ns >= WAIT_FOR_EXECUTION_NS))
            group->state = GROUP_FORGOTTEN;
    }
    for (uint32_t i = 0; i < attribution->cell_count; i++)
        if (attribution->groups[attribution->cells[i].group].state != GROUP_AWAITS)
            write_cell(attribution, &attribution->cells[i]);
    drop_written(attribution);
    attribution->since_ns = now_ns;
}

/* Makes room for all parts of a sample, even if that writes everything. */
static void make_room(struct pc_attribution *attribution, int64_t now_ns)
{
    if (attribution->part_count + PORTIONS_MAX <= PARTS_MAX && attribution->group_count + PORTIONS_MAX <= GROUPS_MAX &&
        attribution->cell_count + PORTIONS_MAX <= CELLS_MAX)
        return;
    write_tables(attribution, now_ns, false);
    if (attribution->group_count >= GROUPS_MAX / 2 || attribution->cell_count >= CELLS_MAX / 2)
        write_tables(attribution, now_ns, true);
}

static struct parts parts_find(struct pc_attribution *attribution, const struct pc_interval *interval,
                               const struct pc_count *sample)
{
    struct function *function = &attribution->functions[sample->function - 1];
    if (!sample->correlation_id && function->generation == attribution->generation &&
        function->context_id == interval->context_id && function->interval_start_ns == interval->start_ns &&
        function->interval_end_ns == interval->end_ns)
        return function->parts;
    if (sample->correlation_id) {
        struct parts parts = parts_of(attribution, sample->function, interval, sample->correlation_id);
        attribution->part_count = parts.first; /* they are not used again */
        return parts;
    }
    function->parts = parts_of(attribution, sample->function, interval, 0);
    function->generation = attribution->generation;
    function->context_id = interval->context_id;
    function->interval_start_ns = interval->start_ns;
    function->interval_end_ns = interval->end_ns;
    return function->parts;
}

static void cell_add(struct pc_attribution *attribution, const struct pc_count *sample, uint32_t group,
                     uint64_t samples)
{
    const struct cell cell = {samples, sample->pc_offset, group, sample->stall_index};
    uint32_t *place = cell_place(attribution, &cell);
    if (*place) {
        attribution->cells[*place - 1].samples += samples;
    } else {
        attribution->cells[attribution->cell_count++] = cell;
        *place = attribution->cell_count;
    }
}

void pc_attribution_add(struct pc_attribution *attribution, const struct pc_interval *interval,
                        const struct pc_count *counts, uint32_t count)
{
    uint64_t portions[PORTIONS_MAX];
    if (!attribution->cell_count)
        attribution->since_ns = interval->end_ns;
    for (uint32_t i = 0; i < count; i++) {
        const struct pc_count *sample = &counts[i];
        if (!sample->function || sample->function > attribution->function_count) {
            recorder_lose(attribution->options.recorder, LOSS_PC_TABLE, sample->samples);
            continue;
        }
        make_room(attribution, interval->end_ns);
        struct parts parts = parts_find(attribution, interval, sample);
        const struct part *part = &attribution->parts[parts.first];
        share_out(attribution, sample->samples, part, parts.count, parts.total_ns, portions);
        for (uint32_t j = 0; j < parts.count; j++)
            if (portions[j])
                cell_add(attribution, sample, part[j].group, portions[j]);
    }
}

void pc_attribution_write(struct pc_attribution *attribution, int64_t now_ns)
{
    if (attribution->cell_count && (now_ns == INT64_MAX || now_ns - attribution->since_ns >= ADD_UP_NS))
        write_tables(attribution, now_ns, now_ns == INT64_MAX);
}
