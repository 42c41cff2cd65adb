/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the store's tests: a store in a temporary directory, session directories delivered to it line by line as
 * the server does, and the session model read back from it. */
#ifndef GPUFL_TESTS_STORE_FIXTURE_H
#define GPUFL_TESTS_STORE_FIXTURE_H

#include "session_fixture.h"

#include "analysis/analysis.h"
#include "analysis/report.h"
#include "logfile/log_line.h"
#include "logfile/session_source.h"
#include "store/store_catalog.h"
#include "store/store_rollup.h"

#define MUST(call)                                                                                  \
    do {                                                                                            \
        struct problem problem = {""};                                                              \
        gpufl_status status_ = (call);                                                              \
        if (status_)                                                                                \
            fail_msg("%s:%d: %s: status %d: %s", __FILE__, __LINE__, #call, status_, problem.text); \
    } while (0)

/* Location of the engine under test: the SQLite engine in the directory or, when GPUFL_TEST_STORE is a clickhouse://
 * URL ending with /, a database there named after the directory. */
static inline const char *fixture_location(const char *dir, char location[1024])
{
    const char *url = getenv("GPUFL_TEST_STORE"), *query = url ? strchr(url, '?') : NULL;
    if (!url || !*url)
        return dir;
    uint64_t name = 0;
    for (const char *c = dir; *c; c++)
        name = name * 131 + (unsigned char)*c;
    snprintf(location, 1024, "%.*st%llx%s", (int)(query ? query - url : (long)strlen(url)), url,
             (unsigned long long)name, query ? query : "");
    return location;
}

static inline struct store *fixture_store(const char *dir)
{
    struct store *store = NULL;
    char location[1024];
    const struct store_options options = {.no_background = true};
    MUST(store_open(&store, fixture_location(dir, location), &options, &problem));
    return store;
}

struct delivery {
    struct store *store;
    struct store_write *write;
    struct batch_view view;
    uint64_t lines_in_window, lines_per_window, windows, repeated_windows, lines, repeated_lines;
    bool has_identity;
    char session_id[64];
};

static inline void delivery_begin(struct delivery *delivery, enum channel channel)
{
    char window_id[32];
    enum store_delivery answer;
    snprintf(window_id, sizeof window_id, "%llu", (unsigned long long)delivery->windows);
    const struct store_identity identity = {.session_id = delivery->session_id,
                                            .window_id = delivery->has_identity ? window_id : "",
                                            .channel = channel,
                                            .crc = 77};
    MUST(store_write_begin(delivery->store, &identity, &delivery->write, &answer, &problem));
    delivery->windows++;
    delivery->lines_in_window = 0;
    if (answer == STORE_REPEATED) {
        delivery->write = NULL;
        delivery->repeated_windows++;
    } else {
        assert_int_equal(answer, STORE_NEW);
    }
}

static inline void delivery_commit(struct delivery *delivery)
{
    struct store_written written;
    if (!delivery->write)
        return;
    MUST(store_write_commit(delivery->write, &written, &problem));
    assert_int_equal(written.delivery, STORE_NEW);
    delivery->write = NULL;
    delivery->lines += written.lines;
    delivery->repeated_lines += written.repeated_lines;
}

/* Writes one decoded line. */
static inline void delivery_line(struct delivery *delivery, enum channel channel, const char *text, size_t size)
{
    struct log_line line = {.channel = channel, .file = ""};
    struct json_document document = {0};
    char reason[LINE_REASON_SIZE];
    if (!log_line_decode(&line, &delivery->view, &document, text, size, reason) && delivery->write)
        MUST(store_write_line(delivery->write, &line, text, size, NULL, &problem));
    json_free(&document);
    delivery->lines_in_window++;
}

static inline void delivery_file(struct delivery *delivery, const struct session_files *files,
                                 const struct session_file *file)
{
    struct line_source source;
    const char *text;
    size_t size;
    int fd = session_file_open(files->dir_fd, file->name);
    assert_true(fd >= 0);
    assert_int_equal(line_source_open(&source, fd, session_file_coding(file), UINT64_MAX), GPUFL_OK);
    enum line_result result;
    delivery_begin(delivery, file->channel);
    while ((result = line_source_next(&source, &text, &size)) == LINE_WHOLE || result == LINE_UNENDED) {
        if (delivery->lines_in_window == delivery->lines_per_window) {
            delivery_commit(delivery);
            delivery_begin(delivery, file->channel);
        }
        delivery_line(delivery, file->channel, text, size);
    }
    delivery_commit(delivery);
    line_source_close(&source);
    close(fd);
}

/* Delivers every line of a session directory, lines_per_window at a time. */
static inline struct delivery deliver_session(struct store *store, const char *dir, uint64_t lines_per_window,
                                              bool has_identity)
{
    struct delivery delivery = {.store = store, .lines_per_window = lines_per_window, .has_identity = has_identity};
    struct session_files files;
    struct session_model *model;
    MUST(session_load(&model, dir, &problem));
    snprintf(delivery.session_id, sizeof delivery.session_id, "%s", model->job.session_id);
    session_free(model);
    MUST(session_files_find(&files, dir, &problem));
    for (size_t i = 0; i < files.log_count; i++)
        delivery_file(&delivery, &files, &files.items[i]);
    session_files_free(&files);
    batch_view_free(&delivery.view);
    return delivery;
}

struct store_reading {
    struct store *store;
    const char *session_id;
    log_line_fn on_line;
    void *line_user;
    struct log_summary *summary;
};

static inline bool store_reading_line(void *user, const struct log_line *line)
{
    struct store_reading *reading = user;
    log_summary_add(reading->summary, line);
    return reading->on_line(reading->line_user, line);
}

static inline gpufl_status store_reading_run(void *user, log_line_fn on_line, log_issue_fn on_issue, void *line_user,
                                             struct log_summary *summary, struct problem *problem)
{
    struct store_reading *reading = user;
    const struct store_range range = {.session_id = reading->session_id};
    (void)on_issue;
    reading->on_line = on_line;
    reading->line_user = line_user;
    reading->summary = summary;
    return store_read(reading->store, &range, store_reading_line, reading, problem);
}

static inline struct session_model *store_model(struct store *store, const char *session_id)
{
    struct store_reading reading = {.store = store, .session_id = session_id};
    struct session_model *model = NULL;
    MUST(session_load_from(&model, store_reading_run, &reading, 0, &problem));
    return model;
}

static const char *const golden_sessions[] = {
    "bench",     "deep",         "deep_hostile", "degraded",    "empty",         "hostile",
    "killed",    "launch_bound", "monitor",      "pc_sampling", "range_metrics", "sass_metrics",
    "sync_loop", "trace",        "two_gpus",     "v1",          "deep_v1"};
enum { SESSION_COUNT = sizeof golden_sessions / sizeof *golden_sessions };

static inline void golden_path(char path[512], const char *name)
{
    snprintf(path, 512, "%s/tests/golden/%s", SOURCE_DIR, name);
}

#endif
