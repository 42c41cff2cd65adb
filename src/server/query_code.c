/* SPDX-License-Identifier: Apache-2.0 */
/* Code: hot lines, and the instructions of one function. */
#include "analysis/code_walk.h"
#include "analysis/kernel_resources.h"
#include "server/query_call.h"

#include <stdio.h>
#include <stdlib.h>

enum { lines_default = 200, lines_max = 1000, instructions_max = 1 << 16 };

static void function_names(struct bytes *out, const struct hot_function *function)
{
    member_int(out, "function_id", function->function_id == ID_UNKNOWN ? CELL_UNKNOWN : (int64_t)function->function_id);
    member_text(out, "symbol", function->symbol);
    member_text(out, "language", image_language(function->vendor));
}

void query_code(struct query_call *call)
{
    const struct hot_code *code = &call->session->analysis.code;
    struct query_page page;
    if (!query_page(call, lines_default, lines_max, &page))
        return;
    bytes_append_char(&call->out, '{');
    list_open(&call->out, "functions");
    for (size_t i = 0; i < code->function_count; i++) {
        const struct hot_function *function = &code->functions[i];
        element(&call->out, '{');
        member_text(&call->out, "name", function->name);
        function_names(&call->out, function);
        json_crc(&call->out, function->cubin_crc);
        member_uint(&call->out, "samples", function->samples);
        json_counts(&function->counts, function->has_counts, &call->out);
        member_text(&call->out, "problem", function->problem);
        bytes_append_char(&call->out, '}');
    }
    bytes_append_char(&call->out, ']');
    json_lines(&call->session->analysis, page.first, page.limit, &call->out);
    query_page_end(call, &page, code->line_count);
    bytes_append_char(&call->out, '}');
}

/* Finds a function by function_id, symbol or name; if several cubins contain it, the hottest one unless the query has a
 * CRC. */
static bool function_find(struct query_call *call, uint32_t *chosen)
{
    const struct hot_code *code = &call->session->analysis.code;
    const char *wanted = http_exchange_path_value(call->exchange, "function"), *crc = query_text(call, "cubin_crc");
    for (uint32_t i = 0; i < code->function_count; i++) {
        const struct hot_function *function = &code->functions[i];
        const char *symbol = function->symbol;
        char id[16], own_crc[24];
        snprintf(id, sizeof id, "%u", function->function_id);
        snprintf(own_crc, sizeof own_crc, "%llu", (unsigned long long)function->cubin_crc);
        bool is_it = !strcmp(wanted, id) || (symbol && !strcmp(wanted, symbol)) ||
                     (function->name && !strcmp(wanted, function->name));
        if (is_it && (!crc || !strcmp(crc, own_crc))) {
            *chosen = i;
            return true;
        }
    }
    return query_fail(call, 404, "function_unknown", "this session has no samples or counters of such a function");
}

struct listing {
    struct query_call *call;
    size_t count, left_out;
};

static void step_write(void *user, const struct code_step *step)
{
    struct listing *listing = user;
    if (listing->count++ < instructions_max)
        json_step(&listing->call->session->analysis, step, &listing->call->out);
    else
        listing->left_out++;
}

static void member_known(struct bytes *out, const char *key, uint32_t value)
{
    member_int(out, key, value == AMDGPU_UNKNOWN ? CELL_UNKNOWN : (int64_t)value);
}

/* Resources of an AMD kernel; null for NVIDIA's, whose launches report them. */
static void resources_write(struct query_call *call, struct code_lookup *lookup, const struct hot_function *hot)
{
    struct bytes *out = &call->out;
    struct code_function function = code_lookup_function(lookup, hot->cubin_crc, hot->symbol);
    struct kernel_resources resources;
    json_key(out, "resources");
    if (kernel_resources_read(&function, hot->name, &resources)) {
        const struct amdgpu_kernel *kernel = &resources.kernel;
        const struct amdgpu_occupancy *occupancy = &resources.occupancy;
        bytes_append_char(out, '{');
        member_text(out, "arch", resources.arch);
        member_known(out, "vgprs", kernel->vgpr_count);
        member_known(out, "agprs", kernel->agpr_count);
        member_known(out, "sgprs", kernel->sgpr_count);
        member_known(out, "vgpr_spills", kernel->vgpr_spills);
        member_known(out, "sgpr_spills", kernel->sgpr_spills);
        member_known(out, "lds_bytes", kernel->lds_bytes);
        member_known(out, "scratch_bytes", kernel->scratch_bytes);
        member_known(out, "wave_size", kernel->wave_size);
        member_known(out, "work_group_size",
                     resources.demand.group_size ? resources.demand.group_size : AMDGPU_UNKNOWN);
        member_double(out, "waves_per_simd", kernel_resources_waves(&resources));
        member_known(out, "waves_per_simd_max", occupancy->problem ? AMDGPU_UNKNOWN : occupancy->waves_max);
        member_text(out, "limiter", occupancy->problem ? NULL : amdgpu_limiter_name(occupancy->limiter));
        member_text(out, "occupancy_problem", occupancy->problem);
        bytes_append_char(out, '}');
    } else {
        json_text(out, NULL);
    }
    code_function_close(&function);
}

void query_code_function(struct query_call *call)
{
    const struct hot_code *code = &call->session->analysis.code;
    uint32_t chosen = 0;
    struct code_lookup lookup;
    if (!function_find(call, &chosen))
        return;
    /* The session's lookup belongs to its creator; this one is private to the request. External tools process uploaded
     * code only if the operator configured one. */
    if (code_lookup_open(&lookup, call->session->model, CODE_NAMED_TOOLS) != GPUFL_OK) {
        query_fail(call, 503, "no_memory", "no memory to answer");
        return;
    }
    const struct hot_function *function = &code->functions[chosen];
    struct listing listing = {.call = call};
    bytes_append_char(&call->out, '{');
    member_text(&call->out, "name", function->name);
    function_names(&call->out, function);
    json_crc(&call->out, function->cubin_crc);
    member_uint(&call->out, "samples", function->samples);
    json_counts(&function->counts, function->has_counts, &call->out);
    member_text(&call->out, "problem", function->problem);
    resources_write(call, &lookup, function);
    list_open(&call->out, "instructions");
    gpufl_status status = code_walk(&lookup, code, chosen, step_write, &listing);
    bytes_append_char(&call->out, ']');
    member_uint(&call->out, "left_out", listing.left_out);
    bytes_append_char(&call->out, '}');
    if (status != GPUFL_OK || lookup.has_failed)
        query_fail(call, 503, "no_memory", "no memory to answer");
    code_lookup_close(&lookup);
}

void query_ptx(struct query_call *call)
{
    enum { ptx_bytes_max = 8 << 20 };
    const struct hot_code *code = &call->session->analysis.code;
    uint32_t chosen = 0;
    struct code_lookup lookup;
    if (!function_find(call, &chosen))
        return;
    if (code_lookup_open(&lookup, call->session->model, CODE_STORED) != GPUFL_OK) {
        query_fail(call, 503, "no_memory", "no memory to answer");
        return;
    }
    const struct hot_function *hot = &code->functions[chosen];
    const char *symbol = hot->symbol;
    struct code_function function = code_lookup_function(&lookup, hot->cubin_crc, symbol);
    struct bytes text = {.limit = ptx_bytes_max};
    bool has_ptx = code_function_ptx(&function, &text);
    bytes_append_char(&call->out, '{');
    member_text(&call->out, "symbol", symbol);
    json_crc(&call->out, hot->cubin_crc);
    json_key(&call->out, "ptx");
    if (has_ptx && !text.failed)
        json_string(&call->out, text.data, text.size);
    else
        json_text(&call->out, NULL);
    member_text(&call->out, "problem",
                !has_ptx      ? "the log has no PTX of it; compile with nvcc -lineinfo to keep it"
                : text.failed ? "its PTX is too large to show"
                              : NULL);
    bytes_append_char(&call->out, '}');
    bytes_free(&text);
    code_function_close(&function);
    code_lookup_close(&lookup);
}

void query_source(struct query_call *call)
{
    const struct session_model *model = call->session->model;
    const char *file = query_text(call, "file");
    if (!file) {
        query_fail(call, 400, "parameter_missing",
                   "the parameter file is missing: a path as in a function's instructions");
        return;
    }
    const struct source_content *source = code_source(model, file, 0);
    bytes_append_char(&call->out, '{');
    member_text(&call->out, "file", file);
    json_key(&call->out, "lines");
    if (!source)
        json_text(&call->out, NULL);
    else
        bytes_append_char(&call->out, '[');
    for (size_t i = 0; source && i < source->line_count; i++) {
        const char *line = model->deep.source_lines[source->line_first + i];
        if (i)
            bytes_append_char(&call->out, ',');
        json_string(&call->out, line, strlen(line));
    }
    bytes_append_text(&call->out, source ? "]}" : "}");
}
