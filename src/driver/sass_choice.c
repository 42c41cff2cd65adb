/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the requested SASS metrics of a chip. */
#include "driver/sass_metrics.h"

#include "base/environment.h"

#include <stdio.h>
#include <string.h>

enum { word_bytes = 128 };

#define PREFIX "smsp__sass_"
static const char default_set[] = "default", memory_set[] = "all-memory";
static const char *const default_metrics[] = {SASS_METRIC_EXECUTED,
                                              PREFIX "thread_inst_executed",
                                              PREFIX "thread_inst_executed_pred_on",
                                              PREFIX "branch_targets_threads_divergent",
                                              PREFIX "branch_targets_threads_uniform",
                                              PREFIX "sectors_mem_global",
                                              PREFIX "sectors_mem_global_ideal",
                                              PREFIX "l1tex_pipe_lsu_wavefronts_mem_shared",
                                              PREFIX "l1tex_pipe_lsu_wavefronts_mem_shared_ideal",
                                              PREFIX "sectors_mem_local"};
enum { default_count = sizeof default_metrics / sizeof *default_metrics };
_Static_assert(default_count <= sizeof((struct sass_choice *)0)->skipped / sizeof(char *),
               "room for every skipped one");
/* Parts of the names of memory metrics. */
static const char *const memory_parts[] = {"_mem_",      "_op_global", "_op_local",   "_op_shared", "_op_dshared",
                                           "_op_memory", "_op_ld",     "_op_st",      "_op_atom",   "_op_tma",
                                           "_op_tmem",   "_op_utccp",  "_op_texture", "_memdesc"};

/* The next word of a list separated by commas, without surrounding blanks; NULL at the end. "" for an empty one. */
static const char *word_next(const char *text, char word[word_bytes], bool *is_whole)
{
    if (!text || !*text)
        return NULL;
    text += strspn(text, " \t");
    size_t size = strcspn(text, ",");
    const char *rest = text + size + (text[size] == ',');
    while (size && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    *is_whole = size < word_bytes;
    snprintf(word, word_bytes, "%.*s", (int)(*is_whole ? size : word_bytes - 1), text);
    return rest;
}

static gpufl_status word_check(const char *word, bool is_whole, struct problem *problem)
{
    static const char *const sets[] = {default_set, memory_set, NULL};
    if (!is_whole)
        return problem_set(problem, GPUFL_E_INVALID, "\"%s...\" is too long for the name of a SASS metric", word);
    if (!*word || strstr(word, "__") || strcmp(word, default_set) == 0 || strcmp(word, memory_set) == 0)
        return GPUFL_OK;
    const char *nearest = nearest_word(word, sets);
    return problem_set(problem, GPUFL_E_INVALID,
                       "\"%s\" is neither a set of SASS metrics (default, all-memory) nor the name of a metric%s%s%s",
                       word, nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

gpufl_status sass_choice_check(const char *text, struct problem *problem)
{
    char word[word_bytes];
    bool is_whole;
    while ((text = word_next(text, word, &is_whole))) {
        gpufl_status status = word_check(word, is_whole, problem);
        if (status != GPUFL_OK)
            return status;
    }
    return GPUFL_OK;
}

static size_t list_find(const struct sass_metric_list *list, const char *name)
{
    size_t i = 0;
    while (i < list->count && strcmp(list->metrics[i].name, name) != 0)
        i++;
    return i;
}

static void mark_default(struct sass_choice *choice, const struct sass_metric_list *available, bool *is_chosen)
{
    choice->skipped_count = 0; /* naming the set twice must not list a missing metric twice */
    for (size_t i = 0; i < default_count; i++) {
        size_t at = list_find(available, default_metrics[i]);
        if (at < available->count)
            is_chosen[at] = true;
        else
            choice->skipped[choice->skipped_count++] = default_metrics[i];
    }
}

static void mark_memory(const struct sass_metric_list *available, bool *is_chosen)
{
    for (size_t i = 0; i < available->count; i++)
        for (size_t j = 0; j < sizeof memory_parts / sizeof *memory_parts; j++)
            is_chosen[i] |= strstr(available->metrics[i].name, memory_parts[j]) != NULL;
}

static gpufl_status metric_unknown(const struct sass_metric_list *available, const char *chip, const char *word,
                                   struct problem *problem)
{
    const char *names[SASS_METRICS_MAX + 1] = {NULL};
    for (size_t i = 0; i < available->count; i++)
        names[i] = available->metrics[i].name;
    const char *nearest = nearest_word(word, names);
    return problem_set(problem, GPUFL_E_INVALID, "%s has no SASS metric \"%s\"%s%s%s", chip, word,
                       nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

gpufl_status sass_choice_make(struct sass_choice *choice, const struct sass_metric_list *available, const char *chip,
                              const char *text, struct problem *problem)
{
    bool is_chosen[SASS_METRICS_MAX] = {false};
    char word[word_bytes];
    bool is_whole, has_word = false;
    memset(choice, 0, sizeof *choice);
    if (available->count > SASS_METRICS_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "%s has %zu SASS metrics; at most %d are supported", chip,
                           available->count, SASS_METRICS_MAX);
    size_t executed = list_find(available, SASS_METRIC_EXECUTED);
    if (executed == available->count)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "%s does not count " SASS_METRIC_EXECUTED ", which every other count is checked against",
                           chip);
    is_chosen[executed] = true;
    while ((text = word_next(text, word, &is_whole))) {
        gpufl_status status = word_check(word, is_whole, problem);
        if (status != GPUFL_OK)
            return status;
        has_word |= *word != '\0';
        size_t at = list_find(available, word);
        if (strcmp(word, default_set) == 0)
            mark_default(choice, available, is_chosen);
        else if (strcmp(word, memory_set) == 0)
            mark_memory(available, is_chosen);
        else if (at < available->count)
            is_chosen[at] = true;
        else if (*word)
            return metric_unknown(available, chip, word, problem);
    }
    if (!has_word)
        mark_default(choice, available, is_chosen);
    for (size_t i = 0; i < available->count; i++)
        if (is_chosen[i])
            choice->chosen[choice->count++] = (uint16_t)i;
    return GPUFL_OK;
}
