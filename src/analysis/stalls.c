/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stalls.h"

#include "analysis/statistics.h"

#include <stdlib.h>

static const struct stall_kind known_kinds[] = {
    {"selected", STALL_ISSUED, "issued an instruction", ""},
    {"not_selected", STALL_READY, "ready, another warp was chosen",
     "more warps are ready than the scheduler can use: fewer warps with more work each cost nothing here"},
    {"long_scoreboard", STALL_MEMORY, "waited for global, local or texture memory",
     "load earlier than the use, move less (coalesce, keep reused data in shared memory), or keep more warps in "
     "flight"},
    {"lg_throttle", STALL_MEMORY, "the queue for global and local memory was full",
     "use fewer and wider accesses (float4), and look for spilled registers and local arrays"},
    {"short_scoreboard", STALL_MEMORY, "waited for shared memory or special functions",
     "look for bank conflicts in shared memory, and for sqrt, exp and divisions inside of the loop"},
    {"mio_throttle", STALL_MEMORY, "shared-memory and special-function queue full",
     "use wider shared-memory accesses, and fewer shuffles and special functions"},
    {"tex_throttle", STALL_MEMORY, "the texture queue was full",
     "issue fewer texture or surface accesses, or load through global memory"},
    {"drain", STALL_MEMORY, "waited at its end for stores to leave",
     "coalesce the stores at the end of the kernel, or write less"},
    {"imc_miss", STALL_MEMORY, "waited for constants",
     "let the whole warp read the same constant, and keep constants few"},
    {"math_pipe_throttle", STALL_PIPE, "the arithmetic pipe was busy",
     "this code computes at the pipe's limit: use cheaper instructions, lower precision or tensor cores"},
    {"gmma", STALL_PIPE, "waited for matrix instructions of its warpgroup",
     "overlap the matrix instructions with loads of the next tile"},
    {"wait", STALL_PIPE, "waited a fixed latency after its own instruction",
     "give each thread independent work (unroll), or run more warps"},
    {"dispatch_stall", STALL_PIPE, "the dispatcher held it back", ""},
    {"barrier", STALL_SYNC, "waited at a barrier for the block's other warps",
     "even out the work before the barrier, use smaller blocks, or synchronize less often"},
    {"membar", STALL_SYNC, "waited for a memory fence", "use fewer fences, or narrower ones (__threadfence_block)"},
    {"warpgroup_arrive", STALL_SYNC, "waited for its warpgroup to arrive",
     "even out the work of the four warps before the matrix instruction"},
    {"sleeping", STALL_SYNC, "slept (nanosleep, or all threads yielded)", "shorten the sleeping or spinning loop"},
    {"branch_resolving", STALL_CONTROL, "waited for a branch to resolve",
     "use fewer branches: select values instead of jumping"},
    {"no_instructions", STALL_CONTROL, "waited for instructions to be fetched",
     "the code jumps often or exceeds the instruction cache: shorten the loop, unroll less"},
    {"misc", STALL_OTHER, "other reasons", ""},
};
enum { known_count = sizeof known_kinds / sizeof *known_kinds, unnamed_kind = known_count };

const char *function_name(const struct session_model *model, uint32_t function_id)
{
    const char *name = session_text(model, DICTIONARY_FUNCTION, function_id);
    return name && *name ? name : NULL;
}

const char *function_symbol(const struct session_model *model, uint32_t function_id)
{
    const char *symbol = session_text(model, DICTIONARY_FUNC_SYMBOL, function_id);
    return symbol && *symbol ? symbol : function_name(model, function_id);
}

uint8_t stalls_metric_kind(const struct stalls *stalls, uint32_t metric_id)
{
    return metric_id < stalls->metric_count ? stalls->metric_kinds[metric_id] : unnamed_kind;
}

void stall_profile_add(const struct stalls *stalls, struct stall_profile *profile, uint32_t metric_id, uint64_t samples)
{
    uint8_t kind = stalls_metric_kind(stalls, metric_id);
    if (kind & STALL_NOT_ISSUED) {
        profile->not_issued = sum_saturated_u64(profile->not_issued, samples);
        return;
    }
    profile->samples = sum_saturated_u64(profile->samples, samples);
    profile->by_kind[kind] = sum_saturated_u64(profile->by_kind[kind], samples);
}

unsigned stall_profile_top(const struct stalls *stalls, const struct stall_profile *profile, uint64_t *count)
{
    unsigned top = 0, top_rank = 0;
    for (unsigned kind = 0; kind < stalls->kind_count; kind++) {
        enum stall_family family = stalls->kinds[kind].family;
        unsigned rank = family == STALL_ISSUED ? 0 : family == STALL_READY ? 1 : 2;
        if (profile->by_kind[kind] &&
            (rank > top_rank || (rank == top_rank && profile->by_kind[kind] > profile->by_kind[top]))) {
            top = kind;
            top_rank = rank;
        }
    }
    *count = profile->by_kind[top];
    return top;
}

/* The prefix before the reason differs between CUPTI releases. */
static const char *reason_of(const char *name, size_t *size, bool *is_not_issued)
{
    static const char *const prefixes[] = {"smsp__pcsamp_warps_issue_stalled_", "smsp__pcsamp_warp_stall_", "stalled_",
                                           "stall_"};
    static const char suffix[] = "_not_issued";
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) {
            name += strlen(prefixes[i]);
            break;
        }
    *size = strlen(name);
    *is_not_issued = *size > sizeof suffix - 1 && !strcmp(name + *size - (sizeof suffix - 1), suffix);
    *size -= *is_not_issued ? sizeof suffix - 1 : 0;
    return name;
}

/* "barrier_not_issued" and "barrier" are one kind; an unknown kind gets the first name seen. */
static uint8_t kind_find(struct stalls *stalls, const char *metric)
{
    size_t size;
    bool is_not_issued;
    const char *reason = reason_of(metric, &size, &is_not_issued);
    unsigned kind = 0;
    for (; kind < stalls->kind_count; kind++) {
        size_t kind_size;
        bool ignored;
        const char *name = reason_of(stalls->kinds[kind].name, &kind_size, &ignored);
        if (kind_size == size && !memcmp(name, reason, size))
            break;
    }
    if (kind == stalls->kind_count && kind < STALL_KINDS_MAX)
        stalls->kinds[stalls->kind_count++] = (struct stall_kind){reason, STALL_OTHER, "", ""};
    else if (kind == stalls->kind_count)
        kind = unnamed_kind;
    return (uint8_t)(kind | (is_not_issued ? STALL_NOT_ISSUED : 0));
}

static bool kinds_make(struct stalls *stalls, const struct session_model *model)
{
    memcpy(stalls->kinds, known_kinds, sizeof known_kinds);
    stalls->kinds[unnamed_kind] = (struct stall_kind){"(reason not recorded)", STALL_OTHER, "", ""};
    stalls->kind_count = unnamed_kind + 1;
    const struct dictionary_table *metrics = &model->dictionaries[DICTIONARY_METRIC];
    stalls->metric_kinds = malloc((size_t)metrics->count + 1);
    if (!stalls->metric_kinds)
        return false;
    stalls->metric_count = metrics->count;
    memset(stalls->metric_kinds, unnamed_kind, (size_t)metrics->count + 1);
    bool *is_used = calloc((size_t)metrics->count + 1, sizeof *is_used);
    if (!is_used)
        return false;
    for (size_t i = 0; i < stalls->row_count; i++)
        if (stalls->rows[i].metric_id < metrics->count)
            is_used[stalls->rows[i].metric_id] = true;
    /* Reasons without a suffix first, so that an unknown one gets its plain name. */
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t id = 1; id < metrics->count; id++)
            if (is_used[id] && metrics->texts[id] && *metrics->texts[id] &&
                (pass == 1) == (strstr(metrics->texts[id], "_not_issued") != NULL))
                stalls->metric_kinds[id] = kind_find(stalls, metrics->texts[id]);
    free(is_used);
    return true;
}

static int row_compare(const void *left, const void *right)
{
    const struct code_sample *a = left, *b = right;
    if (a->cubin_crc != b->cubin_crc)
        return a->cubin_crc < b->cubin_crc ? -1 : 1;
    if (a->function_id != b->function_id)
        return a->function_id < b->function_id ? -1 : 1;
    if (a->pc_offset != b->pc_offset)
        return a->pc_offset < b->pc_offset ? -1 : 1;
    return a->metric_id < b->metric_id ? -1 : a->metric_id > b->metric_id;
}

static bool rows_copy(struct stalls *stalls, const struct session_model *model)
{
    const struct session_deep *deep = &model->deep;
    size_t count = 0;
    for (size_t i = 0; i < deep->sample_count; i++)
        count += deep->samples[i].kind == SAMPLE_PC && deep->samples[i].value;
    stalls->rows = malloc((count + 1) * sizeof *stalls->rows);
    if (!stalls->rows)
        return false;
    for (size_t i = 0; i < deep->sample_count; i++)
        if (deep->samples[i].kind == SAMPLE_PC && deep->samples[i].value)
            stalls->rows[stalls->row_count++] = deep->samples[i];
    qsort(stalls->rows, stalls->row_count, sizeof *stalls->rows, row_compare);
    return true;
}

static void pc_close(struct stalls *stalls, struct hot_pc *pc, const struct stall_profile *profile)
{
    pc->samples = profile->samples;
    pc->not_issued = profile->not_issued;
    pc->stall = (uint8_t)stall_profile_top(stalls, profile, &pc->stall_samples);
}

static bool is_same_function(const struct code_sample *a, const struct code_sample *b)
{
    return a->cubin_crc == b->cubin_crc && a->function_id == b->function_id;
}

/* One scan over the sorted rows: instructions and functions are runs of rows. */
static bool places_make(struct stalls *stalls)
{
    size_t functions = 0, pcs = 0;
    for (size_t i = 0; i < stalls->row_count; i++) {
        bool is_function = !i || !is_same_function(&stalls->rows[i], &stalls->rows[i - 1]);
        functions += is_function;
        pcs += is_function || stalls->rows[i].pc_offset != stalls->rows[i - 1].pc_offset;
    }
    stalls->functions = calloc(functions + 1, sizeof *stalls->functions);
    stalls->pcs = calloc(pcs + 1, sizeof *stalls->pcs);
    if (!stalls->functions || !stalls->pcs)
        return false;
    struct stall_profile at_pc = {0};
    for (size_t i = 0; i < stalls->row_count; i++) {
        const struct code_sample *row = &stalls->rows[i];
        bool is_function = !i || !is_same_function(row, row - 1);
        if (is_function)
            stalls->functions[stalls->function_count++] =
                (struct function_stalls){.cubin_crc = row->cubin_crc, .function_id = row->function_id};
        if (is_function || row->pc_offset != (row - 1)->pc_offset) {
            if (stalls->pc_count)
                pc_close(stalls, &stalls->pcs[stalls->pc_count - 1], &at_pc);
            memset(&at_pc, 0, sizeof at_pc);
            stalls->pcs[stalls->pc_count++] = (struct hot_pc){.cubin_crc = row->cubin_crc,
                                                              .function_id = row->function_id,
                                                              .pc_offset = row->pc_offset,
                                                              .row_first = (uint32_t)i};
        }
        struct hot_pc *pc = &stalls->pcs[stalls->pc_count - 1];
        pc->row_count++;
        if (!pc->source_line) {
            pc->source_file_id = row->source_file_id;
            pc->source_line = row->source_line;
        }
        stall_profile_add(stalls, &at_pc, row->metric_id, row->value);
        stall_profile_add(stalls, &stalls->functions[stalls->function_count - 1].profile, row->metric_id, row->value);
        stall_profile_add(stalls, &stalls->total, row->metric_id, row->value);
    }
    if (stalls->pc_count)
        pc_close(stalls, &stalls->pcs[stalls->pc_count - 1], &at_pc);
    return true;
}

static int scoped_compare(const void *left, const void *right)
{
    const struct scope_sample *a = left, *b = right;
    return a->path_id < b->path_id ? -1 : a->path_id > b->path_id;
}

static bool scopes_make(struct stalls *stalls, const struct session_model *model)
{
    size_t count = model->deep.scope_sample_count, paths = 0;
    struct scope_sample *rows = malloc((count + 1) * sizeof *rows);
    if (!rows)
        return false;
    if (count)
        memcpy(rows, model->deep.scope_samples, count * sizeof *rows);
    qsort(rows, count, sizeof *rows, scoped_compare);
    for (size_t i = 0; i < count; i++)
        paths += !i || rows[i].path_id != rows[i - 1].path_id;
    stalls->scopes = calloc(paths + 1, sizeof *stalls->scopes);
    for (size_t i = 0; stalls->scopes && i < count; i++) {
        if (!i || rows[i].path_id != rows[i - 1].path_id)
            stalls->scopes[stalls->scope_count++].path_id = rows[i].path_id;
        struct scope_stalls *scope = &stalls->scopes[stalls->scope_count - 1];
        stall_profile_add(stalls, &scope->profile, rows[i].metric_id, rows[i].value);
        if (stalls_metric_kind(stalls, rows[i].metric_id) & STALL_NOT_ISSUED)
            continue;
        scope->certain = sum_saturated_u64(scope->certain, rows[i].certain);
        stalls->certain = sum_saturated_u64(stalls->certain, rows[i].certain);
        stalls->undecided = sum_saturated_u64(stalls->undecided, rows[i].undecided);
        stalls->weighted += rows[i].weighted;
    }
    free(rows);
    return stalls->scopes != NULL;
}

static int by_samples(uint64_t a, uint64_t b)
{
    return a > b ? -1 : a < b;
}

static int function_compare(const void *left, const void *right)
{
    const struct function_stalls *a = left, *b = right;
    int order = by_samples(a->profile.samples, b->profile.samples);
    if (!order)
        order = a->function_id < b->function_id ? -1 : a->function_id > b->function_id;
    return order ? order : a->cubin_crc < b->cubin_crc ? -1 : a->cubin_crc > b->cubin_crc;
}

static int scope_compare(const void *left, const void *right)
{
    const struct scope_stalls *a = left, *b = right;
    int order = by_samples(a->profile.samples, b->profile.samples);
    return order ? order : a->path_id < b->path_id ? -1 : a->path_id > b->path_id;
}

static int pc_compare(const void *left, const void *right)
{
    const struct hot_pc *a = left, *b = right;
    int order = by_samples(a->samples, b->samples);
    return order ? order : a->row_first < b->row_first ? -1 : a->row_first > b->row_first;
}

gpufl_status stalls_make(struct stalls *stalls, const struct session_model *model)
{
    memset(stalls, 0, sizeof *stalls);
    if (!rows_copy(stalls, model) || !kinds_make(stalls, model) || !places_make(stalls) ||
        !scopes_make(stalls, model)) {
        stalls_free(stalls);
        return GPUFL_E_NO_MEMORY;
    }
    qsort(stalls->functions, stalls->function_count, sizeof *stalls->functions, function_compare);
    qsort(stalls->scopes, stalls->scope_count, sizeof *stalls->scopes, scope_compare);
    qsort(stalls->pcs, stalls->pc_count, sizeof *stalls->pcs, pc_compare);
    return GPUFL_OK;
}

void stalls_free(struct stalls *stalls)
{
    free(stalls->functions);
    free(stalls->scopes);
    free(stalls->pcs);
    free(stalls->rows);
    free(stalls->metric_kinds);
    memset(stalls, 0, sizeof *stalls);
}
