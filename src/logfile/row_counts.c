/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/row_counts.h"

#include <inttypes.h>
#include <stdio.h>

void row_counts_take(struct row_counts *counts, const struct json_value *shutdown)
{
    const struct json_value *rows = json_member(shutdown, "rows");
    if (!rows || rows->kind != JSON_OBJECT)
        return;
    for (const struct json_value *entry = rows->child; entry; entry = entry->next) {
        enum record_type type = record_type_of(entry->key, entry->key_size);
        /* Skip records that are written to all channels: they are delivered once, however many copies exist. */
        if (entry->kind != JSON_INT || entry->integer < 0 || record_catalogue[type].channel == CHANNEL_COUNT)
            continue;
        counts->is_counted[type] = true;
        counts->rows[type] = entry->integer;
    }
}

bool row_counts_batches(const struct row_counts *counts, uint64_t *rows)
{
    bool is_counted = false;
    *rows = 0;
    for (int type = 1; type < RECORD_TYPE_COUNT; type++) {
        is_counted |= counts->is_counted[type];
        if (counts->is_counted[type] && record_catalogue[type].is_batch)
            *rows += (uint64_t)counts->rows[type];
    }
    return is_counted;
}

static void compare(const char *what, uint64_t counted, uint64_t found, log_issue_fn on_issue, void *user)
{
    if (counted == found)
        return;
    struct log_issue issue = {.kind = LOG_ISSUE_COUNT_MISMATCH,
                              .count = counted > found ? counted - found : found - counted};
    snprintf(issue.text, sizeof issue.text, "%s: the shutdown record counts %" PRIu64 " rows, but there are %" PRIu64,
             what, counted, found);
    on_issue(user, &issue);
}

static uint64_t trimmed_batch_rows(const struct log_summary *summary)
{
    uint64_t rows = 0;
    for (int type = 1; type < RECORD_TYPE_COUNT; type++)
        rows += record_catalogue[type].is_batch ? summary->trimmed_rows[type] : 0;
    return rows;
}

void row_counts_check(const struct row_counts *counts, const struct log_summary *summary, log_issue_fn on_issue,
                      void *user)
{
    uint64_t batch_rows;
    if (row_counts_batches(counts, &batch_rows) && summary->is_part && summary->has_batch_rows)
        compare("all batches", batch_rows, summary->batch_rows + trimmed_batch_rows(summary), on_issue, user);
    for (int type = 1; type < RECORD_TYPE_COUNT && !summary->is_part; type++)
        if (counts->is_counted[type])
            compare(record_catalogue[type].name, (uint64_t)counts->rows[type],
                    summary->rows[type] + summary->trimmed_rows[type], on_issue, user);
}
