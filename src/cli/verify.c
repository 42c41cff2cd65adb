/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/message.h"
#include "analysis/quantity.h"
#include "cli/command.h"
#include "cli/session_operand.h"
#include "cli/terminal.h"

#include <inttypes.h>
#include <string.h>

static const char *const issue_words[] = {[LOG_ISSUE_DAMAGED_LINE] = "damaged line",
                                          [LOG_ISSUE_TORN_TAIL] = "torn tail",
                                          [LOG_ISSUE_MISSING_LINES] = "missing lines",
                                          [LOG_ISSUE_DUPLICATE_LINE] = "duplicate line",
                                          [LOG_ISSUE_BAD_SEGMENT] = "bad segment",
                                          [LOG_ISSUE_UNREADABLE] = "unreadable",
                                          [LOG_ISSUE_BAD_REFERENCE] = "bad reference",
                                          [LOG_ISSUE_COUNT_MISMATCH] = "count mismatch",
                                          [LOG_ISSUE_LOSS] = "loss",
                                          [LOG_ISSUE_UNFINISHED] = "unfinished"};

static void append_grouped(struct bytes *out, uint64_t number)
{
    char digits[24];
    size_t size = (size_t)(digits_u64(digits, number) - digits);
    for (size_t i = 0; i < size; i++) {
        if (i && (size - i) % 3 == 0)
            bytes_append_char(out, ',');
        bytes_append_char(out, digits[i]);
    }
}

static uint64_t issues_kept(const struct verify_report *report)
{
    return report->issue_count < 1000 ? report->issue_count : 1000;
}

static void append_rows(struct bytes *out, const struct log_summary *summary)
{
    static const struct {
        enum record_type type;
        const char *one, *many;
    } shown[] = {{RECORD_KERNEL_EVENT_BATCH, "kernel", "kernels"},
                 {RECORD_LAUNCH_EVENT_BATCH, "untimed launch", "untimed launches"},
                 {RECORD_MEMCPY_EVENT_BATCH, "copy", "copies"},
                 {RECORD_MEMSET_EVENT_BATCH, "memset", "memsets"},
                 {RECORD_SYNCHRONIZATION_EVENT_BATCH, "wait", "waits"},
                 {RECORD_SCOPE_EVENT_BATCH, "scope event", "scope events"},
                 {RECORD_PROFILE_SAMPLE_BATCH, "row of samples and counts", "rows of samples and counts"},
                 {RECORD_PM_SAMPLE_BATCH, "PM value", "PM values"},
                 {RECORD_DEVICE_METRIC_BATCH, "GPU sample", "GPU samples"}};
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        uint64_t count = summary->rows[shown[i].type];
        if (!count)
            continue;
        append_grouped(out, count);
        bytes_append_format(out, " %s, ", count == 1 ? shown[i].one : shown[i].many);
    }
    append_grouped(out, summary->lines);
    bytes_append_text(out, " lines in ");
    append_grouped(out, summary->files);
    bytes_append_text(out, summary->files == 1 ? " file" : " files");
}

static void append_text(struct bytes *out, const struct verify_report *report)
{
    if (report->is_complete) {
        bytes_append_text(out, "complete: ");
    } else if (report->summary.is_live) {
        bytes_append_text(out, "still being written: ");
    } else {
        bytes_append_text(out, "incomplete, ");
        append_grouped(out, report->issue_count);
        bytes_append_text(out, report->issue_count == 1 ? " gap: " : " gaps: ");
    }
    append_rows(out, &report->summary);
    if (report->is_complete)
        bytes_append_text(out, ", 0 lost");
    bytes_append_char(out, '\n');
    for (uint64_t i = 0; i < issues_kept(report); i++) {
        const struct log_issue *issue = &report->issues[i];
        bytes_append_text(out, "  ");
        if (issue->file[0])
            text_escape(out, issue->file, strlen(issue->file));
        if (issue->line)
            bytes_append_format(out, ":%" PRIu64, issue->line);
        bytes_append_format(out, "%s%s: ", issue->file[0] ? ": " : "", issue_words[issue->kind]);
        text_escape(out, issue->text, strlen(issue->text));
        bytes_append_char(out, '\n');
    }
    if (report->issue_count > issues_kept(report))
        bytes_append_format(out, "  and %" PRIu64 " more\n", report->issue_count - issues_kept(report));
}

static void append_json(struct bytes *out, const struct verify_report *report)
{
    const struct log_summary *summary = &report->summary;
    bytes_append_char(out, '{');
    json_key(out, "is_complete");
    json_bool(out, report->is_complete);
    json_key(out, "is_live");
    json_bool(out, summary->is_live);
    json_key(out, "has_shutdown");
    json_bool(out, summary->has_shutdown);
    json_key(out, "is_synthetic_shutdown");
    json_bool(out, summary->is_synthetic_shutdown);
    json_key(out, "lines");
    json_uint(out, summary->lines);
    json_key(out, "files");
    json_uint(out, summary->files);
    json_key(out, "bytes");
    json_uint(out, summary->bytes);
    json_key(out, "lost_records");
    json_uint(out, report->lost_records);
    json_key(out, "has_unknown_loss");
    json_bool(out, report->has_unknown_loss);
    json_key(out, "rows");
    bytes_append_char(out, '{');
    for (int type = 1; type < RECORD_TYPE_COUNT; type++) {
        if (!summary->rows[type])
            continue;
        json_key(out, record_catalogue[type].name);
        json_uint(out, summary->rows[type]);
    }
    bytes_append_char(out, '}');
    json_key(out, "issue_count");
    json_uint(out, report->issue_count);
    json_key(out, "issues");
    bytes_append_char(out, '[');
    for (uint64_t i = 0; i < issues_kept(report); i++) {
        const struct log_issue *issue = &report->issues[i];
        bytes_append_text(out, i ? ",{" : "{");
        json_key(out, "kind");
        json_text(out, issue_words[issue->kind]);
        json_key(out, "file");
        json_text(out, issue->file);
        json_key(out, "line");
        json_uint(out, issue->line);
        json_key(out, "count");
        json_uint(out, issue->count);
        json_key(out, "text");
        json_text(out, issue->text);
        bytes_append_char(out, '}');
    }
    bytes_append_text(out, "]}\n");
}

int command_verify(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("verify", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct verify_report report;
    struct problem problem = {""};
    struct session_choice choice;
    const char *session = session_operand("verify", arguments.operands[0], &choice);
    if (!session)
        return EXIT_ENVIRONMENT;
    struct progress *progress = progress_start("verifying", directory_bytes(session));
    gpufl_status status = verify_session(session, &report, &problem);
    progress_finish(progress);
    if (status != GPUFL_OK) {
        command_error("verify", "%s", problem.text);
        return EXIT_ENVIRONMENT;
    }
    struct bytes text = {0};
    if (arguments_has(&arguments, "json"))
        append_json(&text, &report);
    else
        append_text(&text, &report);
    code = report.is_complete ? EXIT_GOOD : EXIT_ANSWER_NO;
    if (text.failed) {
        command_error("verify", "out of memory");
        code = EXIT_ENVIRONMENT;
    } else if (arguments_has(&arguments, "json")) {
        fwrite(text.data, 1, text.size, stdout);
    } else {
        message_write(stdout, bytes_text(&text), MESSAGE_INDENT);
    }
    bytes_free(&text);
    verify_report_free(&report);
    return code;
}
