/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/id_set.h"
#include "logfile/row_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ISSUES_KEPT = 1000 };

/* What ids can refer to: the dictionaries, and two kinds of rows. */
enum { SPACE_LAUNCH = DICTIONARY_COUNT, SPACE_SCOPE, SPACE_COUNT };

static const struct reference {
    enum record_type type;
    unsigned column;
    int space;
} references[] = {
    {RECORD_KERNEL_EVENT_BATCH, KERNEL_KERNEL_ID, DICTIONARY_KERNEL},
    {RECORD_KERNEL_EVENT_BATCH, KERNEL_LAUNCH_ID, SPACE_LAUNCH},
    {RECORD_KERNEL_EVENT_BATCH, KERNEL_SCOPE_ID, SPACE_SCOPE},
    {RECORD_KERNEL_EVENT_BATCH, KERNEL_STACK_ID, DICTIONARY_FUNCTION},
    {RECORD_LAUNCH_CONFIG_BATCH, LAUNCH_CONFIG_KERNEL_ID, DICTIONARY_KERNEL},
    {RECORD_MEMCPY_EVENT_BATCH, MEMCPY_SCOPE_ID, SPACE_SCOPE},
    {RECORD_MEMSET_EVENT_BATCH, MEMSET_SCOPE_ID, SPACE_SCOPE},
    {RECORD_GRAPH_LAUNCH_BATCH, GRAPH_LAUNCH_SCOPE_ID, SPACE_SCOPE},
    {RECORD_SYNCHRONIZATION_EVENT_BATCH, SYNCHRONIZATION_FUNCTION_ID, DICTIONARY_FUNCTION},
    {RECORD_SYNCHRONIZATION_EVENT_BATCH, SYNCHRONIZATION_SCOPE_ID, SPACE_SCOPE},
    {RECORD_MEMORY_ALLOC_EVENT_BATCH, MEMORY_ALLOC_SCOPE_ID, SPACE_SCOPE},
    {RECORD_SCOPE_EVENT_BATCH, SCOPE_NAME_ID, DICTIONARY_SCOPE_NAME},
    {RECORD_SCOPE_EVENT_BATCH, SCOPE_PARENT_ID, SPACE_SCOPE},
    {RECORD_SCOPE_EVENT_BATCH, SCOPE_TAG_ID, DICTIONARY_TAG},
    {RECORD_SCOPE_ADOPTION_BATCH, SCOPE_ADOPTION_SCOPE_ID, SPACE_SCOPE},
    {RECORD_PROFILE_SAMPLE_BATCH, PROFILE_SAMPLE_FUNCTION_ID, DICTIONARY_FUNCTION},
    {RECORD_PROFILE_SAMPLE_BATCH, PROFILE_SAMPLE_METRIC_ID, DICTIONARY_METRIC},
    {RECORD_PROFILE_SAMPLE_BATCH, PROFILE_SAMPLE_SCOPE_NAME_ID, DICTIONARY_SCOPE_NAME},
    {RECORD_PROFILE_SAMPLE_BATCH, PROFILE_SAMPLE_SOURCE_FILE_ID, DICTIONARY_SOURCE_FILE},
    {RECORD_PM_SAMPLE_BATCH, PM_SAMPLE_METRIC_ID, DICTIONARY_METRIC},
    {RECORD_PM_SAMPLE_BATCH, PM_SAMPLE_SCOPE_NAME_ID, DICTIONARY_SCOPE_NAME},
};

struct verifier {
    struct verify_report *report;
    struct id_set spaces[SPACE_COUNT];
    bool has_gap;
    struct row_counts counts;
    int64_t shutdown_lost;  /* sum of its "lost" */
    int64_t cupti_reported; /* records counted by loss records with CUPTI's reason */
    bool has_unknown_drop;  /* cupti_dropped is null */
    bool has_lost_scopes;   /* rows may refer to scopes that were lost */
};

static void take_issue(void *user, const struct log_issue *issue)
{
    struct verifier *verifier = user;
    struct verify_report *report = verifier->report;
    if (issue->kind != LOG_ISSUE_DUPLICATE_LINE)
        verifier->has_gap = true;
    if (report->issue_count < ISSUES_KEPT)
        report->issues[report->issue_count] = *issue;
    report->issue_count++;
}

PRINTF_LIKE(6, 7)
static void add_issue(struct verifier *verifier, enum log_issue_kind kind, const char *file, uint64_t line,
                      uint64_t count, const char *format, ...)
{
    struct log_issue issue = {.kind = kind, .line = line, .count = count};
    snprintf(issue.file, sizeof issue.file, "%.127s", file);
    va_list args;
    va_start(args, format);
    vsnprintf(issue.text, sizeof issue.text, format, args);
    va_end(args);
    take_issue(verifier, &issue);
}

static void define_all(struct id_set *set, const struct batch_view *batch, unsigned column)
{
    if (!batch->columns[column].present)
        return;
    for (uint32_t row = 0; row < batch->row_count; row++)
        if (batch->columns[column].cells[row] > 0)
            id_set_add(set, (uint64_t)batch->columns[column].cells[row]);
}

static void take_batch(struct verifier *verifier, const struct log_line *line)
{
    const struct batch_view *batch = line->batch;
    if (line->type == RECORD_LAUNCH_CONFIG_BATCH)
        define_all(&verifier->spaces[SPACE_LAUNCH], batch, LAUNCH_CONFIG_LAUNCH_ID);
    else if (line->type == RECORD_SCOPE_EVENT_BATCH)
        define_all(&verifier->spaces[SPACE_SCOPE], batch, SCOPE_SCOPE_INSTANCE_ID);
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        const struct reference *reference = &references[i];
        if (reference->type != line->type || !batch->columns[reference->column].present)
            continue;
        const int64_t *cells = batch->columns[reference->column].cells;
        struct id_set *set = &verifier->spaces[reference->space];
        for (uint32_t row = 0; row < batch->row_count; row++) {
            uint64_t id = (uint64_t)cells[row];
            if (id && cells[row] != CELL_UNKNOWN && !id_set_has(set, id))
                id_set_note_use(set, id, line->file, line->line);
        }
    }
}

static void take_dictionary(struct verifier *verifier, const struct json_value *object)
{
    for (int i = 0; i < DICTIONARY_COUNT; i++) {
        const struct json_value *dictionary = json_member(object, dictionary_catalogue[i].name);
        if (!dictionary || dictionary->kind != JSON_OBJECT)
            continue;
        for (const struct json_value *entry = dictionary->child; entry; entry = entry->next) {
            char *end;
            unsigned long long id = strtoull(entry->key, &end, 10);
            if (id && !*end && entry->kind == JSON_STRING)
                id_set_add(&verifier->spaces[i], id);
        }
    }
}

static void take_loss(struct verifier *verifier, const struct log_line *line)
{
    const struct json_value *count = json_member(line->object, "count");
    const char *message = json_get_text(line->object, "message", ""), *cause = json_get_text(line->object, "cause", "");
    bool is_known = count && count->kind == JSON_INT && count->integer >= 0;
    char amount[32] = "an unknown number";
    if (is_known) {
        verifier->report->lost_records += (uint64_t)count->integer;
        if (!strcmp(json_get_text(line->object, "reason", ""), "cupti_dropped"))
            verifier->cupti_reported += count->integer;
        snprintf(amount, sizeof amount, "%" PRId64, count->integer);
    } else {
        verifier->report->has_unknown_loss = true;
    }
    verifier->has_lost_scopes |=
        !strcmp(json_get_text(line->object, "record_type", ""), record_catalogue[RECORD_SCOPE_EVENT_BATCH].name);
    add_issue(verifier, LOG_ISSUE_LOSS, line->file, line->line, is_known ? (uint64_t)count->integer : 0,
              "%s of %.60s not recorded: %.60s%s%.120s%s%.240s", amount,
              json_get_text(line->object, "record_type", "records"),
              json_get_text(line->object, "reason", "no reason given"), *message ? "; " : "", message,
              *cause ? "; first cause: " : "", cause);
}

static void take_shutdown(struct verifier *verifier, const struct log_line *line)
{
    row_counts_take(&verifier->counts, line->object);
    const struct json_value *lost = json_member(line->object, "lost");
    if (lost && lost->kind == JSON_OBJECT)
        for (const struct json_value *entry = lost->child; entry; entry = entry->next)
            if (entry->kind == JSON_INT && entry->integer > 0 && entry->integer < INT64_MAX / 1024)
                verifier->shutdown_lost += entry->integer;
    const struct json_value *dropped = json_member(line->object, "cupti_dropped");
    if (dropped && dropped->kind == JSON_INT && dropped->integer > verifier->cupti_reported)
        add_issue(verifier, LOG_ISSUE_LOSS, line->file, line->line, (uint64_t)dropped->integer,
                  "CUPTI dropped %" PRId64 " records before they reached gpufl", dropped->integer);
    verifier->has_unknown_drop |= dropped && dropped->kind == JSON_NULL;
}

static bool take_line(void *user, const struct log_line *line)
{
    struct verifier *verifier = user;
    if (line->batch)
        take_batch(verifier, line);
    else if (line->type == RECORD_DICTIONARY_UPDATE)
        take_dictionary(verifier, line->object);
    else if (line->type == RECORD_LOSS)
        take_loss(verifier, line);
    else if (line->type == RECORD_SHUTDOWN)
        take_shutdown(verifier, line);
    return true;
}

static void check_space(struct verifier *verifier, int space, const char *name)
{
    struct id_set *set = &verifier->spaces[space];
    const struct log_summary *summary = &verifier->report->summary;
    if (set->is_full) {
        add_issue(verifier, LOG_ISSUE_BAD_REFERENCE, "", 0, 0, "%s: too many scattered ids to check references", name);
        return;
    }
    /* Scopes and kernels are in different files: when the program is killed, either may be ahead of the other. */
    bool is_ahead = space == SPACE_SCOPE && (!summary->has_shutdown || summary->is_synthetic_shutdown);
    if (space == SPACE_SCOPE && verifier->has_lost_scopes)
        return; /* a loss record reports it */
    enum log_issue_kind kind = is_ahead ? LOG_ISSUE_UNFINISHED : LOG_ISSUE_BAD_REFERENCE;
    for (size_t i = 0; i < ID_SET_USES_MAX; i++) {
        const struct id_use *use = id_set_undefined(set, i);
        if (use)
            add_issue(verifier, kind, use->file, use->line, use->rows,
                      "%s %" PRIu64 " is used by %" PRIu64 " row%s but %s", name, use->id, use->rows,
                      use->rows == 1 ? "" : "s", is_ahead ? "was not yet written" : "never defined");
    }
    if (set->unlisted_rows)
        add_issue(verifier, kind, "", 0, set->unlisted_rows,
                  "%" PRIu64 " more rows use a %s that was not defined before them", set->unlisted_rows, name);
}

static void check_counts(struct verifier *verifier)
{
    const struct log_summary *summary = &verifier->report->summary;
    row_counts_check(&verifier->counts, summary, take_issue, verifier);
    uint64_t reported = verifier->report->lost_records;
    if ((uint64_t)verifier->shutdown_lost > reported) {
        uint64_t more = (uint64_t)verifier->shutdown_lost - reported;
        verifier->report->lost_records += more;
        add_issue(verifier, LOG_ISSUE_LOSS, "", 0, more,
                  "the shutdown record counts %" PRIu64 " more lost records than the loss records", more);
    }
    if (verifier->has_unknown_drop && summary->rows[RECORD_KERNEL_EVENT_BATCH]) {
        verifier->report->has_unknown_loss = true;
        add_issue(verifier, LOG_ISSUE_LOSS, "", 0, 0, "it is unknown whether CUPTI dropped records");
    }
}

gpufl_status verify_session(const char *path, struct verify_report *report, struct problem *problem)
{
    static const char *const row_spaces[] = {"launch_id", "scope_id"};
    *report = (struct verify_report){0};
    struct verifier *verifier = calloc(1, sizeof *verifier);
    report->issues = malloc(ISSUES_KEPT * sizeof *report->issues);
    gpufl_status status;
    if (!verifier || !report->issues) {
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to verify %s", path);
    } else {
        verifier->report = report;
        status = log_read(path, take_line, take_issue, verifier, &report->summary, problem);
    }
    if (verifier && !status) {
        for (int space = 0; space < SPACE_COUNT; space++)
            check_space(verifier, space,
                        space < DICTIONARY_COUNT ? dictionary_catalogue[space].name : row_spaces[space - SPACE_LAUNCH]);
        check_counts(verifier);
        report->is_complete = !verifier->has_gap;
    }
    for (int space = 0; verifier && space < SPACE_COUNT; space++)
        id_set_free(&verifier->spaces[space]);
    free(verifier);
    if (status)
        verify_report_free(report);
    return status;
}

void verify_report_free(struct verify_report *report)
{
    free(report->issues);
    *report = (struct verify_report){0};
}
