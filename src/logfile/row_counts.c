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
        /* Records of all channels are delivered once, however often they were written. */
        if (entry->kind != JSON_INT || record_catalogue[type].channel == CHANNEL_COUNT)
            continue;
        counts->is_told[type] = true;
        counts->told[type] = entry->integer;
    }
}

void row_counts_check(const struct row_counts *counts, const struct log_summary *summary, log_issue_fn on_issue,
                      void *user)
{
    for (int type = 1; type < RECORD_TYPE_COUNT; type++) {
        uint64_t told = (uint64_t)counts->told[type], found = summary->rows[type];
        if (!counts->is_told[type] || told == found)
            continue;
        struct log_issue issue = {.kind = LOG_ISSUE_COUNT_MISMATCH,
                                  .count = told > found ? told - found : found - told};
        snprintf(issue.text, sizeof issue.text, "%s: the shutdown record counts %" PRIu64 " rows, there are %" PRIu64,
                 record_catalogue[type].name, told, found);
        on_issue(user, &issue);
    }
}
