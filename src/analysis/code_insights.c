/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about source lines: each names the line, its measurements, and a suggestion. Without data there is no insight;
 * the thresholds are in the rules below. */
#include "analysis/analysis.h"
#include "analysis/report_page.h"

#include <math.h>

enum { per_rule_max = 3 };

/* Sums of the counters of a whole session; a line matters by its share of them. */
struct counter_totals {
    double sectors_global, wavefronts_shared, branches, executed;
};

static double known(double value)
{
    return isfinite(value) ? value : 0;
}

static struct counter_totals totals_of(const struct hot_code *code)
{
    struct counter_totals totals = {0};
    for (size_t i = 0; i < code->function_count; i++) {
        const struct instruction_counts *counts = &code->functions[i].counts;
        totals.sectors_global += known(counts->sectors_global) + known(counts->sectors_local);
        totals.wavefronts_shared += known(counts->wavefronts_shared);
        totals.branches += known(counts->branch_divergent) + known(counts->branch_uniform);
        totals.executed += known(counts->inst_executed);
    }
    return totals;
}

/* Time concerned: the line's share of the samples, or without samples the whole time of its kernel. */
static int64_t line_impact_ns(const struct analysis *analysis, const struct hot_line *line)
{
    double compute_ns = 0;
    for (size_t i = 0; i < analysis->device_count; i++)
        compute_ns += (double)analysis->devices[i].compute_ns;
    if (line->samples)
        return (int64_t)(compute_ns * (double)line->samples / (double)analysis->stalls.total.samples);
    const char *name = analysis->code.functions[line->function].name;
    for (size_t i = 0; name && i < analysis->hotspot_count; i++)
        if (analysis->hotspots[i].name && !strcmp(analysis->hotspots[i].name, name))
            return analysis->hotspots[i].duration.total;
    return 0;
}

static const char *line_text(const struct analysis *analysis, const struct hot_line *line, struct bytes *out)
{
    enum { name_columns = 48 };
    const struct hot_function *function = &analysis->code.functions[line->function];
    bytes_clear(out);
    if (line->line) {
        page_place(out, line->file, line->line, 0);
        bytes_append_text(out, " (");
        page_function_name(out, function->name, function->function_id, name_columns);
        bytes_append_text(out, ")");
    } else {
        page_function_name(out, function->name, function->function_id, name_columns);
        bytes_append_format(out, " + 0x%x", analysis->code.places[line->place_first].pc_offset);
    }
    return bytes_text(out);
}

/* Loads, stores or both, if the instructions' text is known. */
static const char *access_words(const struct analysis *analysis, const struct hot_line *line)
{
    bool has_loads = false, has_stores = false;
    for (size_t i = 0; i < line->place_count; i++) {
        const struct code_place *place = &analysis->code.places[line->place_first + i];
        if (place->is_raw || !*place->sass || !(place->counts.sectors_global > 0))
            continue;
        bool is_load = strstr(place->sass, "LDG") || strstr(place->sass, "LD.");
        has_loads = has_loads || is_load;
        has_stores = has_stores || !is_load;
    }
    return has_loads == has_stores ? "global accesses" : has_loads ? "global loads" : "global stores";
}

/* The lines with the largest cost, at most per_rule_max; cost 0: the rule does not apply to the line. */
struct worst {
    const struct hot_line *lines[per_rule_max];
    double costs[per_rule_max];
    unsigned count;
};

static struct worst worst_lines(const struct analysis *analysis, const struct counter_totals *totals,
                                double (*cost)(const struct hot_line *, const struct counter_totals *))
{
    struct worst worst = {0};
    for (size_t i = 0; i < analysis->code.line_count; i++) {
        const struct hot_line *line = &analysis->code.lines[i];
        double value = line->has_counts ? cost(line, totals) : 0;
        if (!(value > 0))
            continue;
        unsigned at = worst.count < per_rule_max ? worst.count++ : per_rule_max - 1;
        if (worst.lines[at] && worst.costs[at] >= value)
            continue;
        for (; at && worst.costs[at - 1] < value; at--) {
            worst.lines[at] = worst.lines[at - 1];
            worst.costs[at] = worst.costs[at - 1];
        }
        worst.lines[at] = line;
        worst.costs[at] = value;
    }
    return worst;
}

/* Less than half of the moved sectors were needed, and the rest is at least 5 % of the session's sectors. */
static double coalescing_cost(const struct hot_line *line, const struct counter_totals *totals)
{
    double used = instruction_coalescing(&line->counts);
    double excess = line->counts.sectors_global - line->counts.sectors_global_ideal;
    return used < 0.5 && excess >= 0.05 * totals->sectors_global ? excess : 0;
}

static void coalescing_rule(struct analysis *analysis, const struct counter_totals *totals, struct bytes *scratch)
{
    struct worst worst = worst_lines(analysis, totals, coalescing_cost);
    for (unsigned i = 0; i < worst.count; i++) {
        const struct hot_line *line = worst.lines[i];
        double share = worst.costs[i] / totals->sectors_global;
        insight_add(analysis, "uncoalesced_access", share > 0.25 ? INSIGHT_HIGH : INSIGHT_MEDIUM,
                    line_impact_ns(analysis, line),
                    "%s: %s use %s of the bytes they move (%.1f sectors an access); the rest is %s of the counted "
                    "traffic: let neighbouring threads access neighbouring addresses.",
                    line_text(analysis, line, scratch), access_words(analysis, line),
                    quantity_percent(instruction_coalescing(&line->counts)).text,
                    known(instruction_sectors_per_request(&line->counts)), quantity_percent(share).text);
    }
}

/* Shared-memory accesses take at least twice the passes they need, and the rest is at least 5 % of all passes. */
static double conflict_cost(const struct hot_line *line, const struct counter_totals *totals)
{
    double factor = instruction_bank_conflicts(&line->counts);
    double excess = line->counts.wavefronts_shared - line->counts.wavefronts_shared_ideal;
    return factor >= 2 && excess >= 0.05 * totals->wavefronts_shared ? excess : 0;
}

static void conflict_rule(struct analysis *analysis, const struct counter_totals *totals, struct bytes *scratch)
{
    struct worst worst = worst_lines(analysis, totals, conflict_cost);
    for (unsigned i = 0; i < worst.count; i++)
        insight_add(
            analysis, "bank_conflicts", INSIGHT_MEDIUM, line_impact_ns(analysis, worst.lines[i]),
            "%s: shared-memory accesses take %.1f times the passes they need, because threads of a warp use the "
            "same bank: pad the array's rows by one element, or let neighbouring threads use neighbouring words.",
            line_text(analysis, worst.lines[i], scratch), instruction_bank_conflicts(&worst.lines[i]->counts));
}

/* At least a fifth of a line's branches split the warp, and they are at least 5 % of all branches. */
static double divergence_cost(const struct hot_line *line, const struct counter_totals *totals)
{
    double together = instruction_branch_efficiency(&line->counts);
    return together <= 0.8 && line->counts.branch_divergent >= 0.05 * totals->branches ? line->counts.branch_divergent
                                                                                       : 0;
}

static void divergence_rule(struct analysis *analysis, const struct counter_totals *totals, struct bytes *scratch)
{
    struct worst worst = worst_lines(analysis, totals, divergence_cost);
    for (unsigned i = 0; i < worst.count; i++)
        insight_add(
            analysis, "divergence", INSIGHT_MEDIUM, line_impact_ns(analysis, worst.lines[i]),
            "%s: %s of its branches split the warp, so that both sides run one after the other: let the "
            "condition depend on the warp rather than on the thread, or sort the work so that neighbours agree.",
            line_text(analysis, worst.lines[i], scratch),
            quantity_percent(1 - instruction_branch_efficiency(&worst.lines[i]->counts)).text);
}

/* A line with at least 5 % of the executed instructions in which fewer than half of the threads work. */
static double threads_cost(const struct hot_line *line, const struct counter_totals *totals)
{
    double share = instruction_thread_efficiency(&line->counts);
    return share < 0.5 && line->counts.inst_executed >= 0.05 * totals->executed
               ? line->counts.inst_executed * (1 - share)
               : 0;
}

static void threads_rule(struct analysis *analysis, const struct counter_totals *totals, struct bytes *scratch)
{
    struct worst worst = worst_lines(analysis, totals, threads_cost);
    for (unsigned i = 0; i < worst.count; i++)
        insight_add(
            analysis, "idle_threads", INSIGHT_LOW, line_impact_ns(analysis, worst.lines[i]),
            "%s: on average %.1f of a warp's 32 threads do its work: give the others something to do, or launch "
            "fewer.",
            line_text(analysis, worst.lines[i], scratch), 32 * instruction_thread_efficiency(&worst.lines[i]->counts));
}

/* Local memory makes at least 5 % of the counted sectors. */
static double local_cost(const struct hot_line *line, const struct counter_totals *totals)
{
    double sectors = known(line->counts.sectors_local);
    return sectors > 0 && sectors >= 0.05 * totals->sectors_global ? sectors : 0;
}

static void local_rule(struct analysis *analysis, const struct counter_totals *totals, struct bytes *scratch)
{
    struct worst worst = worst_lines(analysis, totals, local_cost);
    for (unsigned i = 0; i < worst.count; i++)
        insight_add(analysis, "local_traffic", INSIGHT_MEDIUM, line_impact_ns(analysis, worst.lines[i]),
                    "%s: %s of the counted traffic is local memory, spilled registers or a local array with a variable "
                    "index: use fewer registers at once, or make the index known when compiling.",
                    line_text(analysis, worst.lines[i], scratch),
                    quantity_percent(worst.costs[i] / totals->sectors_global).text);
}

/* A line with at least 10 % of all samples, two fifths of which have one reason. */
static void stall_rule(struct analysis *analysis, struct bytes *scratch)
{
    enum { lines_max = 5 };
    const struct stalls *stalls = &analysis->stalls;
    unsigned count = 0;
    for (size_t i = 0; i < analysis->code.line_count && count < lines_max; i++) {
        const struct hot_line *line = &analysis->code.lines[i];
        double share = stalls->total.samples ? (double)line->samples / (double)stalls->total.samples : 0;
        if (share < 0.1)
            return; /* sorted: no later line qualifies */
        double part = line->stall_count ? (double)line->stalls[0].samples / (double)line->samples : 0;
        const struct stall_kind *kind = &stalls->kinds[line->stalls[0].kind];
        if (part < 0.4 || !*kind->words || !*kind->advice)
            continue;
        count++;
        insight_add(analysis, "stalled_line", share > 0.3 ? INSIGHT_HIGH : INSIGHT_MEDIUM,
                    line_impact_ns(analysis, line), "%s: %s of all samples, %s of them %s (%s): %s.",
                    line_text(analysis, line, scratch), quantity_percent(share).text, quantity_percent(part).text,
                    kind->name, kind->words, kind->advice);
    }
}

void code_insights_add(struct analysis *analysis)
{
    struct bytes scratch = {0};
    struct counter_totals totals = totals_of(&analysis->code);
    stall_rule(analysis, &scratch);
    coalescing_rule(analysis, &totals, &scratch);
    conflict_rule(analysis, &totals, &scratch);
    divergence_rule(analysis, &totals, &scratch);
    local_rule(analysis, &totals, &scratch);
    threads_rule(analysis, &totals, &scratch);
    bytes_free(&scratch);
}
