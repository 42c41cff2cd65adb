/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies into a real store, without a network. */
#include "session_fixture.h"

#include "body_fixture.h"
#include "server/ingest.h"
#include "store/store_catalog.h"

struct ingest_fixture {
    char *dir;
    struct store *store;
    struct live *live;
    struct ingest ingest;
};

static int open_fixture(void **state)
{
    static struct ingest_fixture fixture;
    static const struct store_options options = {.no_background = true};
    struct problem problem = {""};
    fixture = (struct ingest_fixture){.dir = strdup(fixture_dir())};
    if (store_open(&fixture.store, fixture.dir, &options, &problem))
        fail_msg("store_open: %s", problem.text);
    assert_int_equal(live_open(&fixture.live), GPUFL_OK);
    assert_int_equal(ingest_open(&fixture.ingest, fixture.store, fixture.live, fixture.dir, NULL, NULL), GPUFL_OK);
    *state = &fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct ingest_fixture *fixture = *state;
    assert_int_equal(atomic_load(&fixture->ingest.flight_bytes), 0);
    ingest_close(&fixture->ingest);
    live_close(fixture->live);
    store_close(fixture->store);
    fixture_remove(fixture->dir);
    free(fixture->dir);
    return 0;
}

static const char job_start_line[] = "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"" FIXTURE_ID
                                     "\",\"pid\":7,\"app\":\"fixture\",\"ts_ns\":1000,\"hostname\":\"node1\"}\n";

/* A line of `count` kernels without seq and CRC, as in v1. */
static void kernels_append(struct bytes *text, uint64_t batch_id, unsigned count)
{
    bytes_append_format(
        text,
        "{\"version\":1,\"type\":\"kernel_event_batch\",\"session_id\":\"" FIXTURE_ID
        "\",\"batch_id\":%llu,\"base_time_ns\":1000000,\"columns\":[\"dt_ns\",\"kernel_id\",\"stream_id\","
        "\"duration_ns\",\"corr_id\"],\"rows\":[",
        (unsigned long long)batch_id);
    for (unsigned i = 0; i < count; i++)
        bytes_append_format(text, "%s[%u,1,7,%u,%u]", i ? "," : "", i * 1000, 500 + i, i);
    bytes_append_text(text, "]}\n");
}

static struct ingest_head head_make(const char *window_id, enum content_coding coding, const struct bytes *body)
{
    struct ingest_head head = {.channel = CHANNEL_COUNT, .coding = coding, .host = "node1", .sender = "test"};
    snprintf(head.session_id, sizeof head.session_id, FIXTURE_ID);
    snprintf(head.window_id, sizeof head.window_id, "%s", window_id);
    if (*window_id) {
        head.channel = CHANNEL_DEVICE;
        head.has_crc32 = true;
        head.crc32 = (uint32_t)crc32_z(0, (const Bytef *)body->data, body->size);
    }
    return head;
}

static struct ingest_answer deliver(struct ingest_fixture *fixture, const struct ingest_head *head,
                                    const struct bytes *body, size_t piece)
{
    struct ingest_answer answer;
    struct ingest_body *taken;
    if (ingest_body_open(&taken, &fixture->ingest, head, &answer))
        return answer;
    for (size_t at = 0; at < body->size; at += piece)
        ingest_body_data(taken, body->data + at, body->size - at < piece ? body->size - at : piece);
    ingest_body_end(taken, &answer);
    return answer;
}

static uint64_t kernels_kept(struct ingest_fixture *fixture)
{
    struct fixture_seen seen = {0};
    const struct store_range range = {.session_id = FIXTURE_ID};
    gpufl_status status = store_read(fixture->store, &range, fixture_take_line, &seen, NULL);
    assert_true(status == GPUFL_OK || status == GPUFL_E_NOT_FOUND);
    return seen.kernels;
}

static unsigned files_in_quarantine(struct ingest_fixture *fixture)
{
    char path[512];
    unsigned count = 0;
    fixture_path(path, fixture->dir, "quarantine");
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static const enum content_coding codings[] = {CONTENT_PLAIN, CONTENT_GZIP, CONTENT_ZSTD};

static void a_window_is_stored_once_whatever_its_coding_and_pieces(void **state)
{
    struct ingest_fixture *fixture = *state;
    static const size_t pieces[] = {1, 13, 1 << 20};
    uint64_t expected = 0;
    for (unsigned i = 0; i < 3; i++) {
        struct bytes text = {0};
        char id[16];
        bytes_append_text(&text, job_start_line);
        kernels_append(&text, i + 1, 100);
        struct bytes body = body_make(codings[i], text.data, text.size);
        snprintf(id, sizeof id, "window-%u", i);
        struct ingest_head head = head_make(id, codings[i], &body);
        for (unsigned j = 0; j < 3; j++) {
            struct ingest_answer answer = deliver(fixture, &head, &body, pieces[j]);
            assert_int_equal(answer.status, 202);
            assert_int_equal(answer.rejected, 0);
        }
        expected += 100;
        assert_int_equal(kernels_kept(fixture), expected);
        bytes_free(&body);
        bytes_free(&text);
    }
    assert_int_equal(atomic_load(&fixture->ingest.counters.bodies), 9);
    assert_int_equal(atomic_load(&fixture->ingest.counters.bodies_repeated), 6);
    assert_int_equal(atomic_load(&fixture->ingest.counters.rows), 300);
    assert_int_equal(files_in_quarantine(fixture), 0);
}

static void the_same_window_with_other_content_is_a_conflict(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0};
    kernels_append(&text, 1, 10);
    struct ingest_head head = head_make("window", CONTENT_PLAIN, &text);
    assert_int_equal(deliver(fixture, &head, &text, text.size).status, 202);
    kernels_append(&text, 2, 10);
    head = head_make("window", CONTENT_PLAIN, &text);
    struct ingest_answer answer = deliver(fixture, &head, &text, text.size);
    assert_int_equal(answer.status, 409);
    assert_string_equal(answer.code, "window_identity_conflict");
    assert_int_equal(kernels_kept(fixture), 10);
    bytes_free(&text);
}

static void without_a_window_a_batch_still_counts_once(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0};
    kernels_append(&text, 1, 10);
    kernels_append(&text, 2, 10);
    struct ingest_head head = head_make("", CONTENT_PLAIN, &text);
    assert_int_equal(deliver(fixture, &head, &text, 100).status, 202);
    kernels_append(&text, 3, 10); /* the older two are repeated in another body */
    struct ingest_answer answer = deliver(fixture, &head, &text, 100);
    assert_int_equal(answer.status, 202);
    assert_int_equal(answer.accepted, 3);
    assert_int_equal(answer.repeated, 2);
    assert_int_equal(kernels_kept(fixture), 30);
    bytes_free(&text);
}

static bool count_details(void *user, const struct log_line *line)
{
    *(unsigned *)user += line->type == RECORD_KERNEL_DETAIL;
    return true;
}

static void the_same_body_without_a_window_is_stored_once(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0};
    kernels_append(&text, 1, 1);
    bytes_append_text(&text,
                      "{\"version\":1,\"type\":\"kernel_detail\",\"session_id\":\"" FIXTURE_ID "\",\"corr_id\":0}\n");
    struct ingest_head head = head_make("", CONTENT_PLAIN, &text);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(deliver(fixture, &head, &text, 10).status, 202);
    unsigned details = 0;
    const struct store_range range = {.session_id = FIXTURE_ID};
    assert_int_equal(store_read(fixture->store, &range, count_details, &details, NULL), GPUFL_OK);
    assert_int_equal(details, 1);
    assert_int_equal(atomic_load(&fixture->ingest.counters.bodies_repeated), 2);
    bytes_free(&text);
}

static void damaged_bodies_leave_only_quarantine_files(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0};
    for (unsigned i = 1; i < 50; i++)
        kernels_append(&text, i, 100);
    for (unsigned i = 1; i < 3; i++) {
        struct bytes body = body_make(codings[i], text.data, text.size);
        struct ingest_head head = head_make("window", codings[i], &body);
        head.crc32 ^= 1;
        struct ingest_answer answer = deliver(fixture, &head, &body, 1000);
        assert_int_equal(answer.status, 422);
        assert_string_equal(answer.code, "body_crc_mismatch");
        assert_int_equal(answer.accepted, 0);
        body.size -= 10;
        head = head_make("window", codings[i], &body);
        answer = deliver(fixture, &head, &body, 1000);
        assert_int_equal(answer.status, 422);
        assert_string_equal(answer.code, "body_damaged");
        body.data[body.size / 2] = (char)~body.data[body.size / 2];
        body.size += 10;
        head = head_make("window", codings[i], &body);
        answer = deliver(fixture, &head, &body, 1000);
        assert_int_equal(answer.status, 422);
        assert_true(answer.quarantined[0]);
        bytes_free(&body);
    }
    assert_int_equal(kernels_kept(fixture), 0);
    assert_int_equal(files_in_quarantine(fixture), 6);
    struct bytes empty = {0};
    struct ingest_head head = head_make("", CONTENT_PLAIN, &empty);
    struct ingest_answer answer = deliver(fixture, &head, &empty, 1);
    assert_int_equal(answer.status, 400);
    assert_string_equal(answer.code, "body_empty");
    bytes_free(&text);
}

static void a_decompression_bomb_is_rejected(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0};
    assert_true(bytes_reserve(&text, 64 << 20));
    memset(text.data, '\n', 64 << 20);
    text.size = 64 << 20;
    for (unsigned i = 1; i < 3; i++) {
        struct bytes body = body_make(codings[i], text.data, text.size);
        struct ingest_head head = head_make("bomb", codings[i], &body);
        struct ingest_answer answer = deliver(fixture, &head, &body, 1000);
        assert_int_equal(answer.status, 413);
        assert_string_equal(answer.code, "body_too_large");
        bytes_free(&body);
    }
    text.size = 0;
    bytes_free(&text);
}

/* A record of an unknown type with `size` bytes of text. */
static void unknown_record_append(struct bytes *text, const char *repeated, size_t size)
{
    bytes_append_text(text, "{\"version\":1,\"type\":\"unknown\",\"session_id\":\"" FIXTURE_ID "\",\"a\":[");
    for (size_t end = text->size + size; text->size < end;)
        bytes_append_text(text, repeated);
    text->size--; /* the last comma */
    bytes_append_text(text, "]}\n");
}

static void a_line_with_more_values_than_text_is_rejected(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0};
    kernels_append(&text, 1, 10);
    unknown_record_append(&text, "0,", 1 << 20);
    struct bytes body = body_make(CONTENT_ZSTD, text.data, text.size);
    assert_true(body.size < 16 << 10);
    struct ingest_head head = head_make("values", CONTENT_ZSTD, &body);
    struct ingest_answer answer = deliver(fixture, &head, &body, 1000);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.accepted, 1);
    assert_int_equal(answer.rejected, 1);
    assert_non_null(strstr(answer.errors[0].reason, "too many values"));
    bytes_free(&body);
    bytes_free(&text);
}

static void the_memory_of_a_large_line_is_counted_before_parsing(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0}, large = {0};
    struct ingest_answer answer;
    struct ingest_body *first;
    fixture->ingest.limits.flight_bytes_max = 32 << 20;
    kernels_append(&text, 1, 100);
    unknown_record_append(&large, "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",", 4 << 20);
    struct ingest_head head = head_make("first", CONTENT_PLAIN, &text);
    struct ingest_head other = head_make("other", CONTENT_PLAIN, &large);
    assert_int_equal(ingest_body_open(&first, &fixture->ingest, &head, &answer), GPUFL_OK);
    ingest_body_data(first, text.data, text.size);
    answer = deliver(fixture, &other, &large, large.size);
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer.code, "server_busy");
    ingest_body_end(first, &answer);
    assert_int_equal(answer.status, 202);
    /* It is accepted if it is alone. */
    assert_int_equal(deliver(fixture, &other, &large, large.size).status, 202);
    bytes_free(&text);
    bytes_free(&large);
}

static void invalid_lines_are_reported_and_the_others_are_stored(void **state)
{
    struct ingest_fixture *fixture = *state;
    static const char *const bad[] = {
        "this is not a record\n",
        "{\"type\":\"kernel_event_batch\",\"session_id\":\"" FIXTURE_ID
        "\",\"batch_id\":9,\"base_time_ns\":1,\"columns\":[\"dt_ns\"],\"rows\":[[1,2]]}\n",
        "{\"version\":1,\"type\":\"clock_sync\",\"session_id\":\"" FIXTURE_ID "\",\"seq\":4,\"crc\":\"00000000\"}\n",
        ("{\"version\":1,\"type\":\"kernel_event_batch\",\"session_id\":\"another\",\"batch_id\":1,\"base_time_ns\":1,"
         "\"columns\":[\"dt_ns\"],\"rows\":[[1]]}\n"),
        "[1,2,3]\n",
    };
    struct bytes text = {0};
    kernels_append(&text, 1, 10);
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        bytes_append_text(&text, bad[i]);
    kernels_append(&text, 2, 10);
    struct ingest_head head = head_make("window", CONTENT_PLAIN, &text);
    struct ingest_answer answer = deliver(fixture, &head, &text, 77);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.accepted, 2);
    assert_int_equal(answer.rejected, sizeof bad / sizeof *bad);
    for (unsigned i = 0; i < answer.error_count; i++) {
        assert_int_equal(answer.errors[i].line, i + 2);
        assert_true(answer.errors[i].reason[0]);
    }
    assert_int_equal(kernels_kept(fixture), 20);
    size_t size;
    char path[512];
    fixture_path(path, fixture->dir, "quarantine");
    char *kept = fixture_read(path, answer.quarantined, &size);
    assert_non_null(strstr(kept, "this is not a record"));
    assert_non_null(strstr(kept, "\"session_id\":\"" FIXTURE_ID "\""));
    free(kept);
    /* Only invalid lines: the sender keeps them, and each error is in the answer. */
    bytes_clear(&text);
    bytes_append_text(&text, bad[0]);
    bytes_append_text(&text, bad[4]);
    head = head_make("other", CONTENT_PLAIN, &text);
    answer = deliver(fixture, &head, &text, 77);
    assert_int_equal(answer.status, 422);
    assert_string_equal(answer.code, "no_line_accepted");
    assert_int_equal(answer.rejected, 2);
    bytes_free(&text);
}

static void a_repeated_window_gets_its_rejected_lines_again(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0};
    kernels_append(&text, 1, 10);
    bytes_append_text(&text, "not a record\n{\"version\":1,\"type\":\"loss\",\"session_id\":\"another\"}\n");
    struct ingest_head head = head_make("window", CONTENT_PLAIN, &text);
    for (unsigned i = 0; i < 2; i++) {
        struct ingest_answer answer = deliver(fixture, &head, &text, 100);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.rejected, 2);
    }
    assert_int_equal(kernels_kept(fixture), 10);
    assert_int_equal(files_in_quarantine(fixture), 1);
    assert_int_equal(atomic_load(&fixture->ingest.counters.lines_rejected), 2);
    bytes_free(&text);
}

static void a_client_that_disconnects_leaves_nothing(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0};
    struct ingest_answer answer;
    struct ingest_body *body;
    kernels_append(&text, 1, 100);
    struct ingest_head head = head_make("window", CONTENT_PLAIN, &text);
    assert_int_equal(ingest_body_open(&body, &fixture->ingest, &head, &answer), GPUFL_OK);
    ingest_body_data(body, text.data, text.size);
    assert_true(atomic_load(&fixture->ingest.flight_bytes) > 0);
    ingest_body_abort(body);
    assert_int_equal(kernels_kept(fixture), 0);
    assert_int_equal(deliver(fixture, &head, &text, 1000).status, 202);
    assert_int_equal(kernels_kept(fixture), 100);
    bytes_free(&text);
}

static void bodies_beyond_the_limit_are_answered_with_retry_later(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes text = {0};
    struct ingest_answer answer;
    struct ingest_body *first;
    for (unsigned i = 1; i < 100; i++)
        kernels_append(&text, i, 100);
    fixture->ingest.limits.flight_bytes_max = 2 * text.size;
    struct ingest_head head = head_make("first", CONTENT_PLAIN, &text);
    assert_int_equal(ingest_body_open(&first, &fixture->ingest, &head, &answer), GPUFL_OK);
    ingest_body_data(first, text.data, text.size);
    struct ingest_head other = head_make("other", CONTENT_PLAIN, &text);
    answer = deliver(fixture, &other, &text, text.size);
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer.code, "server_busy");
    assert_in_range(answer.retry_after_s, 1, 60);
    assert_int_equal(files_in_quarantine(fixture), 0);
    ingest_body_end(first, &answer);
    assert_int_equal(answer.status, 202);
    bytes_free(&text);
}

struct row_counts {
    uint64_t rows[RECORD_TYPE_COUNT], records[RECORD_TYPE_COUNT];
};

static bool count_rows(void *user, const struct log_line *line)
{
    struct row_counts *counts = user;
    if (line->batch)
        counts->rows[line->type] += line->batch->row_count;
    else
        counts->records[line->type]++;
    return true;
}

static void a_recorded_training_is_read_back_unchanged(void **state)
{
    struct ingest_fixture *fixture = *state;
    static const char dir[] = SOURCE_DIR "/examples/recorded/h200-training";
    static const char session_id[] = "01a1dda6-bd49-7835-94a7-5610dac3ba40";
    static const enum channel channels[] = {CHANNEL_DEVICE, CHANNEL_SCOPE, CHANNEL_SYSTEM};
    for (unsigned i = 0; i < 3; i++) {
        char name[64];
        struct bytes body = {0};
        snprintf(name, sizeof name, "%s.000001.log.zst", channel_names[channels[i]]);
        body.data = fixture_read(dir, name, &body.size); /* sealed: columns with differences */
        struct ingest_head head = head_make(name, CONTENT_ZSTD, &body);
        head.channel = channels[i];
        snprintf(head.session_id, sizeof head.session_id, "%s", session_id);
        for (unsigned j = 0; j < 2; j++) {
            struct ingest_answer answer = deliver(fixture, &head, &body, 16384);
            assert_int_equal(answer.status, 202);
        }
        bytes_free(&body);
    }
    struct row_counts filed = {{0}, {0}}, stored = {{0}, {0}};
    struct log_summary summary;
    const struct store_range range = {.session_id = session_id};
    assert_int_equal(log_read(dir, count_rows, NULL, &filed, &summary, NULL), GPUFL_OK);
    assert_int_equal(store_read(fixture->store, &range, count_rows, &stored, NULL), GPUFL_OK);
    assert_int_equal(stored.rows[RECORD_KERNEL_EVENT_BATCH], 146100);
    for (unsigned i = 0; i < RECORD_TYPE_COUNT; i++) {
        assert_int_equal(stored.rows[i], filed.rows[i]);
        assert_int_equal(stored.records[i], filed.records[i]);
    }
}

static void quarantine_is_bounded(void **state)
{
    struct ingest_fixture *fixture = *state;
    struct bytes about = {0};
    char name[64], last[64] = "";
    fixture->ingest.quarantine.files_max = 5;
    bytes_append_text(&about, "{}");
    for (unsigned i = 0; i < 20; i++) {
        ingest_quarantine_add(&fixture->ingest.quarantine, &about, "content", 7, name, sizeof name);
        assert_true(strcmp(name, last) > 0);
        snprintf(last, sizeof last, "%s", name);
        assert_true(files_in_quarantine(fixture) <= 5);
    }
    fixture->ingest.quarantine.bytes_max = 100;
    char large[90] = {0};
    ingest_quarantine_add(&fixture->ingest.quarantine, &about, large, sizeof large, name, sizeof name);
    assert_int_equal(files_in_quarantine(fixture), 1);
    bytes_free(&about);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(a_window_is_stored_once_whatever_its_coding_and_pieces),
        WITH_STORE(the_same_window_with_other_content_is_a_conflict),
        WITH_STORE(without_a_window_a_batch_still_counts_once),
        WITH_STORE(the_same_body_without_a_window_is_stored_once),
        WITH_STORE(damaged_bodies_leave_only_quarantine_files),
        WITH_STORE(a_decompression_bomb_is_rejected),
        WITH_STORE(a_line_with_more_values_than_text_is_rejected),
        WITH_STORE(the_memory_of_a_large_line_is_counted_before_parsing),
        WITH_STORE(invalid_lines_are_reported_and_the_others_are_stored),
        WITH_STORE(a_repeated_window_gets_its_rejected_lines_again),
        WITH_STORE(a_client_that_disconnects_leaves_nothing),
        WITH_STORE(bodies_beyond_the_limit_are_answered_with_retry_later),
        WITH_STORE(a_recorded_training_is_read_back_unchanged),
        WITH_STORE(quarantine_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
