/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/metric_sets.h"

#include "base/environment.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PCT_ACTIVE ".avg.pct_of_peak_sustained_active"
#define PCT_ELAPSED ".avg.pct_of_peak_sustained_elapsed"

/* For the range profiler: exact, in as many passes as needed. */
static const char *const range_overview[] = {"gpu__time_duration.sum",
                                             "sm__throughput" PCT_ELAPSED,
                                             "l1tex__throughput" PCT_ACTIVE,
                                             "lts__throughput" PCT_ELAPSED,
                                             "gpu__dram_throughput" PCT_ELAPSED,
                                             "sm__warps_active" PCT_ACTIVE,
                                             "sm__pipe_tensor_cycles_active" PCT_ACTIVE,
                                             "sm__inst_executed.avg.per_cycle_active",
                                             "sm__cycles_active" PCT_ELAPSED,
                                             "l1tex__t_sector_hit_rate.pct",
                                             "lts__t_sector_hit_rate.pct",
                                             "dram__bytes_read.sum",
                                             "dram__bytes_write.sum",
                                             NULL};
static const char *const range_memory[] = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                                           "l1tex__t_sector_hit_rate.pct",
                                           "lts__t_sector_hit_rate.pct",
                                           "dram__bytes_read.sum",
                                           "dram__bytes_write.sum",
                                           "lts__t_bytes.sum",
                                           "l1tex__t_bytes.sum",
                                           "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                           "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                           "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                           "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
                                           "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
                                           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
                                           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                                           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
                                           NULL};
static const char *const range_compute[] = {"sm__inst_executed.sum",
                                            "sm__inst_executed.avg.per_cycle_active",
                                            "sm__issue_active" PCT_ACTIVE,
                                            "sm__pipe_alu_cycles_active" PCT_ACTIVE,
                                            "sm__pipe_fma_cycles_active" PCT_ACTIVE,
                                            "sm__pipe_fp64_cycles_active" PCT_ACTIVE,
                                            "sm__inst_executed_pipe_xu" PCT_ACTIVE,
                                            "sm__inst_executed_pipe_lsu" PCT_ACTIVE,
                                            "smsp__thread_inst_executed_per_inst_executed.ratio",
                                            NULL};
static const char *const range_occupancy[] = {"sm__warps_active" PCT_ACTIVE,
                                              "sm__warps_active.avg.per_cycle_active",
                                              "smsp__warps_eligible.avg.per_cycle_active",
                                              "smsp__issue_active.avg.per_cycle_active",
                                              "smsp__warps_issue_stalled_long_scoreboard.avg.per_cycle_active",
                                              "sm__ctas_launched.sum",
                                              "sm__warps_launched.sum",
                                              "sm__cycles_active" PCT_ELAPSED,
                                              NULL};
static const char *const range_tensor[] = {"sm__pipe_tensor_cycles_active" PCT_ACTIVE,
                                           "sm__pipe_tensor_cycles_active" PCT_ELAPSED,
                                           "sm__inst_executed_pipe_tensor.sum",
                                           "sm__pipe_tensor_op_hmma_cycles_active" PCT_ACTIVE,
                                           "sm__pipe_tensor_op_imma_cycles_active" PCT_ACTIVE,
                                           "sm__inst_executed.sum",
                                           "gpu__dram_throughput" PCT_ELAPSED,
                                           NULL};
/* Work, bytes and time of a roofline: one operation per instruction, two for a fused one; the tensor metrics count
 * operations, and each chip has its own kinds, which do not overlap. */
#define OP(name) "sm__sass_thread_inst_executed_op_" name "_pred_on.sum"
#define TENSOR_OPS(name) "sm__ops_path_tensor_src_" name ".sum"
static const char *const range_roofline[] = {"gpu__time_duration.sum",
                                             "dram__bytes_read.sum",
                                             "dram__bytes_write.sum",
                                             "sm__inst_executed.sum",
                                             OP("fadd"),
                                             OP("fmul"),
                                             OP("ffma"),
                                             OP("dadd"),
                                             OP("dmul"),
                                             OP("dfma"),
                                             OP("hadd"),
                                             OP("hmul"),
                                             OP("hfma"),
                                             TENSOR_OPS("bf16_dst_fp32"),
                                             TENSOR_OPS("tf32_dst_fp32"),
                                             TENSOR_OPS("fp16"),
                                             TENSOR_OPS("fp16_dst_fp16"),
                                             TENSOR_OPS("fp16_dst_fp32"),
                                             TENSOR_OPS("fp16_bf16_tf32_dst_fp32"),
                                             TENSOR_OPS("fp8"),
                                             TENSOR_OPS("fp64"),
                                             NULL};

/* For PM sampling: each set must fit in one pass, so the sets are small. */
static const char *const pm_overview[] = {"gr__cycles_active" PCT_ELAPSED,
                                          "sm__cycles_active" PCT_ELAPSED,
                                          "sm__issue_active" PCT_ELAPSED,
                                          "sm__warps_active_realtime" PCT_ELAPSED,
                                          "sm__pipe_tensor_cycles_active_realtime" PCT_ELAPSED,
                                          "dram__read_throughput" PCT_ELAPSED,
                                          "dram__write_throughput" PCT_ELAPSED,
                                          "nvlrx__bytes.sum.per_second",
                                          "nvltx__bytes.sum.per_second",
                                          "pcie__read_bytes.sum.per_second",
                                          "pcie__write_bytes.sum.per_second",
                                          NULL};
static const char *const pm_sm[] = {"sm__cycles_active" PCT_ELAPSED,
                                    "sm__inst_executed_realtime" PCT_ELAPSED,
                                    "sm__inst_executed_realtime.avg.per_cycle_elapsed",
                                    "sm__warps_active_realtime" PCT_ELAPSED,
                                    "sm__inst_executed_pipe_alu_realtime" PCT_ELAPSED,
                                    "sm__inst_executed_pipe_xu_realtime" PCT_ELAPSED,
                                    NULL};
static const char *const pm_memory[] = {"dram__read_throughput" PCT_ELAPSED, "dram__write_throughput" PCT_ELAPSED,
                                        "dram__bytes_read.sum.per_second",   "dram__bytes_write.sum.per_second",
                                        "lts__t_bytes.sum.per_second",       "l1tex__t_bytes.sum.per_second",
                                        "l1tex__t_sector_hit_rate.pct",      NULL};
static const char *const pm_tensor[] = {
    "sm__cycles_active" PCT_ELAPSED,          "sm__pipe_tensor_cycles_active_realtime" PCT_ELAPSED,
    "sm__inst_executed_realtime" PCT_ELAPSED, "dram__read_throughput" PCT_ELAPSED,
    "dram__write_throughput" PCT_ELAPSED,     NULL};
static const char *const pm_links[] = {"nvlrx__bytes.sum.per_second",
                                       "nvltx__bytes.sum.per_second",
                                       "nvlrx__bytes_data_user.sum.per_second",
                                       "nvltx__bytes_data_user.sum.per_second",
                                       "pcie__read_bytes.sum.per_second",
                                       "pcie__write_bytes.sum.per_second",
                                       "pcie__throughput.avg.pct_of_peak_sustained_elapsed",
                                       NULL};

const struct metric_set metric_sets[] = {
    {"overview", "how busy SMs, caches, memory and tensor cores were", PROFILER_RANGE, range_overview},
    {"memory", "hit rates, bytes, sectors and bank conflicts", PROFILER_RANGE, range_memory},
    {"compute", "instructions and how busy each pipe was", PROFILER_RANGE, range_compute},
    {"occupancy", "active, ready and issued warps", PROFILER_RANGE, range_occupancy},
    {"tensor", "tensor cores and the memory that feeds them", PROFILER_RANGE, range_tensor},
    {"roofline", "operations by kind, DRAM bytes and time", PROFILER_RANGE, range_roofline},
    {"overview", "SMs, tensor cores, DRAM, NVLink and PCIe over time", PROFILER_PM_SAMPLING, pm_overview},
    {"sm", "instructions, warps and pipes over time", PROFILER_PM_SAMPLING, pm_sm},
    {"memory", "DRAM, L2 and L1 over time", PROFILER_PM_SAMPLING, pm_memory},
    {"tensor", "tensor cores and DRAM over time", PROFILER_PM_SAMPLING, pm_tensor},
    {"links", "NVLink and PCIe over time", PROFILER_PM_SAMPLING, pm_links},
};
const size_t metric_set_count = sizeof metric_sets / sizeof metric_sets[0];

const struct metric_set *metric_set_find(enum profiler_kind kind, const char *name)
{
    for (size_t i = 0; i < metric_set_count; i++)
        if (metric_sets[i].kind == kind && !strcmp(metric_sets[i].name, name))
            return &metric_sets[i];
    return NULL;
}

static gpufl_status choice_add(struct metric_choice *choice, const char *metric, bool is_named, struct problem *problem)
{
    for (size_t i = 0; i < choice->count; i++) {
        if (!strcmp(choice->metrics[i], metric)) {
            choice->is_named[i] |= is_named;
            return GPUFL_OK;
        }
    }
    if (choice->count == METRICS_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "more than %d metrics were requested", METRICS_MAX);
    snprintf(choice->metrics[choice->count], METRIC_NAME_BYTES, "%s", metric);
    choice->list[choice->count] = choice->metrics[choice->count];
    choice->origin[choice->count] = (uint8_t)choice->count;
    choice->is_named[choice->count++] = is_named;
    return GPUFL_OK;
}

static gpufl_status refuse_word(enum profiler_kind kind, const char *word, struct problem *problem)
{
    const char *names[sizeof metric_sets / sizeof metric_sets[0] + 1];
    size_t count = 0;
    for (size_t i = 0; i < metric_set_count; i++)
        if (metric_sets[i].kind == kind)
            names[count++] = metric_sets[i].name;
    names[count] = NULL;
    const char *near = nearest_word(word, names);
    if (near)
        return problem_set(problem, GPUFL_E_INVALID, "no metric set '%s'; did you mean '%s'?", word, near);
    return problem_set(problem, GPUFL_E_INVALID,
                       "'%s' is neither a metric set nor a metric; `gpufl metrics sets` lists the sets", word);
}

static gpufl_status choice_add_word(struct metric_choice *choice, enum profiler_kind kind, const char *word,
                                    struct problem *problem)
{
    if (strstr(word, "__"))
        return choice_add(choice, word, true, problem);
    const struct metric_set *set = metric_set_find(kind, word);
    if (!set)
        return refuse_word(kind, word, problem);
    gpufl_status status = GPUFL_OK;
    for (const char *const *metric = set->metrics; *metric && status == GPUFL_OK; metric++)
        status = choice_add(choice, *metric, false, problem);
    return status;
}

gpufl_status metric_choice_parse(struct metric_choice *choice, enum profiler_kind kind, const char *text,
                                 struct problem *problem)
{
    static const char blank[] = " \t\r\n";
    choice->count = 0;
    choice->name[0] = '\0';
    gpufl_status status = GPUFL_OK;
    for (const char *at = text; *at && status == GPUFL_OK; at += *at == ',') {
        at += strspn(at, blank);
        size_t size = strcspn(at, ",");
        const char *start = at;
        at += size;
        while (size && strchr(blank, start[size - 1]))
            size--;
        if (!size)
            continue;
        char word[METRIC_NAME_BYTES];
        if (size >= sizeof word)
            status = problem_set(problem, GPUFL_E_INVALID, "'%.40s…' is too long for a metric name", start);
        if (status != GPUFL_OK)
            break;
        snprintf(word, sizeof word, "%.*s", (int)size, start);
        bool is_first = !choice->name[0];
        status = choice_add_word(choice, kind, word, problem);
        snprintf(choice->name, sizeof choice->name, "%.63s", is_first && !strstr(word, "__") ? word : "custom");
    }
    if (status != GPUFL_OK)
        choice->count = 0;
    else if (!choice->count)
        status = problem_set(problem, GPUFL_E_INVALID, "no metrics were given; `gpufl metrics sets` lists the sets");
    return status;
}

/* GPUFL_E_INVALID: this GPU does not support it. */
typedef gpufl_status (*metric_ask_fn)(struct profiler_host *host, const char *metric);

static gpufl_status ask_for_name(struct profiler_host *host, const char *metric)
{
    return profiler_host_check(host, metric, NULL);
}

/* A metric that exists on the chip may still be refused by this GPU, with any error. */
static gpufl_status ask_for_plan(struct profiler_host *host, const char *metric)
{
    struct metric_plan plan = {0};
    struct problem ignored;
    gpufl_status status = profiler_host_plan(host, &metric, 1, &plan, &ignored);
    if (status == GPUFL_OK)
        metric_plan_free(&plan);
    return status == GPUFL_OK || status == GPUFL_E_NO_MEMORY ? status : GPUFL_E_INVALID;
}

static void name_left_out(struct problem *left_out, size_t *used, const char *metric)
{
    size_t room = sizeof left_out->text - *used;
    int length = snprintf(left_out->text + *used, room, "%s%s", *used ? ", " : "", metric);
    *used += (size_t)length < room ? (size_t)length : room - 1;
}

static gpufl_status choice_fit(struct metric_choice *choice, struct profiler_host *host, metric_ask_fn ask,
                               struct problem *left_out, struct problem *problem)
{
    size_t kept = 0, used = 0;
    left_out->text[0] = '\0';
    for (size_t i = 0; i < choice->count; i++) {
        gpufl_status status = choice->is_named[i] ? GPUFL_OK : ask(host, choice->metrics[i]);
        if (status == GPUFL_E_INVALID) {
            name_left_out(left_out, &used, choice->metrics[i]);
            continue;
        }
        if (status != GPUFL_OK)
            return problem_set(problem, status, "the metrics of this GPU cannot be read");
        if (kept != i) {
            memcpy(choice->metrics[kept], choice->metrics[i], METRIC_NAME_BYTES);
            choice->is_named[kept] = choice->is_named[i];
            choice->origin[kept] = choice->origin[i];
        }
        kept++;
    }
    choice->count = kept;
    if (!kept)
        return problem_set(problem, GPUFL_E_INVALID, "this GPU supports none of the metrics of %s", choice->name);
    return GPUFL_OK;
}

gpufl_status metric_choice_fit(struct metric_choice *choice, struct profiler_host *host, struct problem *left_out,
                               struct problem *problem)
{
    return choice_fit(choice, host, ask_for_name, left_out, problem);
}

gpufl_status metric_choice_plan(struct metric_choice *choice, struct profiler_host *host, struct metric_plan *plan,
                                struct problem *left_out, struct problem *problem)
{
    left_out->text[0] = '\0';
    gpufl_status status = profiler_host_plan(host, choice->list, choice->count, plan, problem);
    if (status == GPUFL_OK || status == GPUFL_E_NO_MEMORY)
        return status;
    /* Checking each metric takes time, so it is done only when the plan of all fails. */
    struct problem none;
    gpufl_status fitted = choice_fit(choice, host, ask_for_plan, left_out, &none);
    if (fitted != GPUFL_OK) /* CUPTI's error for the whole plan is more specific */
        return status;
    return profiler_host_plan(host, choice->list, choice->count, plan, problem);
}

void metric_choice_copy(struct metric_choice *copy, const struct metric_choice *choice)
{
    *copy = *choice;
    for (size_t i = 0; i < copy->count; i++) {
        copy->list[i] = copy->metrics[i];
        copy->origin[i] = (uint8_t)i;
    }
}

void metric_choice_spread(const struct metric_choice *fitted, const double *values, size_t count, double *spread)
{
    for (size_t i = 0; i < count; i++)
        spread[i] = NAN;
    for (size_t i = 0; i < fitted->count; i++)
        spread[fitted->origin[i]] = values[i];
}

const char *metric_wire_name(const char *metric)
{
    static const struct {
        const char *metric, *column;
    } columns[] = {
        {"sm__throughput" PCT_ELAPSED, "sm_throughput_pct"},
        {"l1tex__t_sector_hit_rate.pct", "l1_hit_rate_pct"},
        {"lts__t_sector_hit_rate.pct", "l2_hit_rate_pct"},
        {"dram__bytes_read.sum", "dram_read_bytes"},
        {"dram__bytes_write.sum", "dram_write_bytes"},
        {"sm__pipe_tensor_cycles_active" PCT_ACTIVE, "tensor_active_pct"},
        {"sm__warps_active" PCT_ACTIVE, "achieved_occupancy_pct"},
        {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "shared_load_bank_conflicts"},
        {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "shared_store_bank_conflicts"},
        {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "shared_bank_conflicts"},
        {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "shared_wavefronts"},
    };
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (!strcmp(columns[i].metric, metric))
            return columns[i].column;
    return NULL;
}
