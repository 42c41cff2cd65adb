/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/metric_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct counted {
    const char *part, *unit;
};

/* By the first matching part of the name: NVIDIA's names (PerfWorks) in lower case, AMD's in upper case. */
static const struct counted counted_by_name[] = {
    {"bytes", "B"},
    {"sector", "sectors"},
    {"request", "requests"},
    {"wavefront", "wavefronts"},
    {"conflict", "conflicts"},
    {"ops_path", "op"},
    {"inst", "inst"},
    {"issue", "inst"},
    {"warps", "warps"},
    {"ctas", "blocks"},
    {"cycles", "cycles"},
    {"INSTS", "inst"},
    {"WAVES", "waves"},
    {"CYCLES", "cycles"},
    {"GUI_ACTIVE", "cycles"},
    {"TCC_", "requests"},
    {NULL, "events"},
};

static const char *counted_unit(const char *name)
{
    const struct counted *counted = counted_by_name;
    while (counted->part && !strstr(name, counted->part))
        counted++;
    return counted->unit;
}

/* "8.59 G", "338 M", "2.889": three digits, four if the value is small. */
static void scaled_number(char *out, size_t size, double value)
{
    static const char *const prefixes[] = {"", " k", " M", " G", " T", " P"};
    unsigned prefix = 0;
    double rest = fabs(value);
    if (rest >= 9999.5)
        for (; rest >= 999.5 && prefix + 1 < sizeof prefixes / sizeof *prefixes; prefix++)
            rest /= 1000;
    if (rest > 99999) /* beyond the largest prefix */
        snprintf(out, size, "%.3g", value);
    else if (prefix)
        snprintf(out, size, "%s%.*f%s", value < 0 ? "-" : "",
                 rest < 9.995   ? 2
                 : rest < 99.95 ? 1
                                : 0,
                 rest, prefixes[prefix]);
    else
        snprintf(out, size, "%.4g", value);
}

struct quantity metric_quantity(const char *name, double value)
{
    struct quantity text;
    char number[24];
    const char *unit = counted_unit(name);
    bool is_rate = strstr(name, "per_second") != NULL;
    scaled_number(number, sizeof number, value);
    if (strstr(name, "pct"))
        snprintf(text.text, sizeof text.text, "%.1f %%", value);
    else if (strstr(name, "time_duration") && value >= 0)
        text = quantity_time(value);
    else if (strstr(name, ".ratio") || strstr(name, "_per_inst"))
        snprintf(text.text, sizeof text.text, "%s : 1", number);
    else if (strstr(name, "per_cycle"))
        snprintf(text.text, sizeof text.text, "%s %s/cycle", number, unit);
    else if (!strcmp(unit, "B") && value >= 0)
        text = is_rate ? quantity_rate(value) : quantity_bytes(value);
    else if (is_rate && !strcmp(unit, "cycles"))
        snprintf(text.text, sizeof text.text, strchr(number, ' ') ? "%sHz" : "%s Hz", number);
    else if (!strcmp(number, "1") && unit[strlen(unit) - 1] == 's')
        snprintf(text.text, sizeof text.text, "1 %.*s%s", (int)strlen(unit) - 1, unit, is_rate ? "/s" : "");
    else
        snprintf(text.text, sizeof text.text, "%s %s%s", number, unit, is_rate ? "/s" : "");
    return text;
}

bool metric_is_zero(const struct metric_column *column)
{
    return !(column->min < 0 || column->max > 0) && !strstr(column->name, "pct");
}

struct quantity quantity_flops(double per_second)
{
    static const char *const units[] = {"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"};
    struct quantity text;
    unsigned unit = 0;
    for (; per_second >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        per_second /= 1000;
    snprintf(text.text, sizeof text.text, "%.*f %s",
             per_second < 9.995   ? 2
             : per_second < 99.95 ? 1
                                  : 0,
             per_second, units[unit]);
    return text;
}

static const struct metric_column *column_find(const struct metric_group *group, const char *name)
{
    for (size_t i = 0; i < group->column_count; i++)
        if (!strcmp(group->columns[i].name, name))
            return &group->columns[i];
    return NULL;
}

/* Operations per count of a counter; 0: it counts none. */
static double operations_each(const char *name)
{
    const char *op = strstr(name, "sass_thread_inst_executed_op_");
    static const char *const fused[] = {"ffma_pred_on.sum", "dfma_pred_on.sum", "hfma_pred_on.sum"};
    static const char *const single[] = {"fadd_pred_on.sum", "fmul_pred_on.sum", "dadd_pred_on.sum",
                                         "dmul_pred_on.sum", "hadd_pred_on.sum", "hmul_pred_on.sum"};
    size_t size = strlen(name);
    if (!strncmp(name, "sm__ops_path_tensor_src_", 24) && size > 4 && !strcmp(name + size - 4, ".sum"))
        return 1;
    op = op ? op + strlen("sass_thread_inst_executed_op_") : NULL;
    for (size_t i = 0; op && i < sizeof fused / sizeof *fused; i++)
        if (!strcmp(op, fused[i]))
            return 2;
    for (size_t i = 0; op && i < sizeof single / sizeof *single; i++)
        if (!strcmp(op, single[i]))
            return 1;
    return 0;
}

double metric_group_time_ns(const struct metric_group *group)
{
    const struct metric_column *time = column_find(group, "gpu__time_duration.sum");
    return time && time->mean > 0 ? time->mean * (double)time->count : (double)NAN;
}

double metric_group_flops(const struct metric_group *group)
{
    const struct metric_column *time = column_find(group, "gpu__time_duration.sum");
    double operations = 0;
    bool is_counted = false;
    for (size_t i = 0; i < group->column_count; i++) {
        double each = operations_each(group->columns[i].name);
        is_counted = is_counted || each > 0;
        operations += each * group->columns[i].mean;
    }
    return is_counted && time && time->mean > 0 ? operations * 1e9 / time->mean : (double)NAN;
}

void text_metric_name(struct bytes *out, const char *name, size_t size, size_t columns)
{
    static const char common[] = "_of_peak_sustained_";
    struct bytes whole = {0}, brief = {0};
    text_escape(&whole, name, size);
    const char *text = bytes_text(&whole), *at = strstr(text, common);
    if (columns && at && text_columns(whole.data, whole.size) > columns) {
        bytes_append(&brief, text, (size_t)(at - text));
        bytes_append_text(&brief, "…");
        bytes_append_text(&brief, at + sizeof common - 1);
        text_cut(out, brief.data, brief.size, columns);
    } else {
        text_cut(out, text, whole.size, columns);
    }
    out->failed |= whole.failed || brief.failed;
    bytes_free(&whole);
    bytes_free(&brief);
}
