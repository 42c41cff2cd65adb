/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder_fixture.h"

#include "base/crc32c.h"
#include "capture/code_store.h"
#include "code_object_fixture.h"
#include "cubin_fixture.h"
#include "format/json.h"
#include "logfile/packed_bytes.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

struct bench {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
    struct code_store_options options;
    sem_t gate; /* held_crc waits for it */
};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    recorder_fixture_open(bench->dir, &bench->writer, &bench->recorder);
    bench->options = (struct code_store_options){
        .writer = bench->writer, .recorder = &bench->recorder, .session_id = FIXTURE_ID, .crc_user = bench};
    sem_init(&bench->gate, 0, 0);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    recorder_fixture_close(bench->dir, bench->writer, &bench->recorder);
    sem_destroy(&bench->gate);
    free(bench);
    return 0;
}

static struct code_store *store_make(struct bench *bench)
{
    struct code_store *store = NULL;
    struct problem problem = {""};
    if (code_store_make(&store, &bench->options, &problem))
        fail_msg("%s", problem.text);
    return store;
}

static void store_finish(struct code_store *store)
{
    code_store_stop(store, 60000);
    code_store_free(store);
}

static uint64_t lost(const struct bench *bench, enum loss_reason reason)
{
    return atomic_load(&bench->recorder.lost[reason]);
}

/* The records of a channel, parsed. */
struct records {
    struct json_document documents[32];
    size_t count;
};

static void records_read(const struct bench *bench, const char *file, struct records *records)
{
    records->count = 0;
    if (!fixture_exists(log_writer_dir(bench->writer), file))
        return;
    size_t size;
    char *text = fixture_read(log_writer_dir(bench->writer), file, &size);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        assert_true(records->count < 32);
        assert_int_equal(json_parse(&records->documents[records->count++], line, (size_t)(end - line), NULL), GPUFL_OK);
    }
    free(text);
}

static const struct json_value *record_at(const struct records *records, size_t index)
{
    assert_true(index < records->count);
    return records->documents[index].root;
}

static void records_free(struct records *records)
{
    for (size_t i = 0; i < records->count; i++)
        json_free(&records->documents[i]);
}

static void add_file(struct code_store *store, const char *name)
{
    size_t size;
    uint8_t *bytes = fixture_cubin_read(name, &size);
    code_store_add(store, bytes, size);
    free(bytes); /* the store writes its own copy */
}

static void assert_holds(const struct json_value *record, const char *name)
{
    size_t size;
    uint8_t *bytes = fixture_cubin_read(name, &size);
    assert_string_equal(json_get_text(record, "type", ""), "code_object");
    assert_string_equal(json_get_text(record, "encoding", ""), "zstd+base64");
    assert_int_equal(json_get_int(record, "bytes", -1), size);
    const struct json_value *data = json_member(record, "data");
    assert_non_null(data);
    struct bytes plain = {0};
    assert_int_equal(packed_bytes_read(&plain, data->text, data->text_size, size, 1 << 24, NULL), GPUFL_OK);
    assert_int_equal(plain.size, size);
    assert_memory_equal(plain.data, bytes, size);
    bytes_free(&plain);
    free(bytes);
}

static uint64_t seven(void *user, const void *cubin, size_t size)
{
    (void)user, (void)cubin;
    return size == 0 ? 0 : 7;
}

static void a_cubin_is_written_once_and_reads_back_the_same(void **state)
{
    struct bench *bench = *state;
    struct code_store *store = store_make(bench);
    add_file(store, "inlined.sm_90");
    add_file(store, "vector_add.sm_100");
    add_file(store, "inlined.sm_90");
    store_finish(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, 2);
    assert_holds(record_at(&records, 0), "inlined.sm_90");
    assert_holds(record_at(&records, 1), "vector_add.sm_100");
    const struct json_value *first = record_at(&records, 0);
    assert_string_equal(json_get_text(first, "arch", ""), "sm_90");
    assert_int_equal(json_get_int(first, "function_count", -1), 4);
    assert_string_equal(json_get_text(first, "crc_source", ""), "crc32c");
    size_t size;
    uint8_t *bytes = fixture_cubin_read("inlined.sm_90", &size);
    char crc[32];
    snprintf(crc, sizeof crc, "%u", crc32c(0, bytes, size));
    assert_string_equal(json_get_text(first, "cubin_crc", ""), crc);
    free(bytes);
    records_free(&records);
    assert_int_equal(recorder_lost_total(&bench->recorder), 0);
}

static void the_key_is_cuptis_where_there_is_one(void **state)
{
    struct bench *bench = *state;
    bench->options.crc = seven;
    struct code_store *store = store_make(bench);
    add_file(store, "vector_add.sm_90");
    store_finish(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_string_equal(json_get_text(record_at(&records, 0), "cubin_crc", ""), "7");
    assert_string_equal(json_get_text(record_at(&records, 0), "crc_source", ""), "cupti");
    records_free(&records);
}

/* CUPTI is not called for AMD's code. */
static void amds_code_is_kept_beside_nvidias_with_a_key_of_ours(void **state)
{
    struct bench *bench = *state;
    bench->options.crc = seven;
    struct code_store *store = store_make(bench);
    add_file(store, "vector_add.sm_90");
    size_t size;
    uint8_t *bytes = fixture_object_read("kernels.gfx90a", ".co", &size);
    code_store_add(store, bytes, size);
    code_store_add(store, bytes, size);
    store_finish(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, 2);
    const struct json_value *record = record_at(&records, 1);
    char crc[32];
    snprintf(crc, sizeof crc, "%u", crc32c(0, bytes, size));
    assert_string_equal(json_get_text(record, "cubin_crc", ""), crc);
    assert_string_equal(json_get_text(record, "crc_source", ""), "crc32c");
    assert_string_equal(json_get_text(record, "arch", ""), "gfx90a:sramecc+:xnack-");
    assert_int_equal(json_get_int(record, "function_count", -1), 2);
    free(bytes);
    records_free(&records);
}

static void a_module_that_is_not_a_cubin_is_reported_with_a_reason(void **state)
{
    struct bench *bench = *state;
    struct code_store *store = store_make(bench);
    size_t size;
    uint8_t *bytes = fixture_cubin_read("vector_add.sm_90", &size);
    code_store_add(store, bytes, size / 2);
    code_store_add(store, "not a cubin", 11);
    code_store_add(store, bytes, 0);
    free(bytes);
    store_finish(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, 2);
    const struct json_value *record = record_at(&records, 0);
    assert_null(json_member(record, "data"));
    assert_int_equal(json_member(record, "arch")->kind, JSON_NULL);
    assert_int_equal(json_member(record, "function_count")->kind, JSON_NULL);
    const char *reason = json_get_text(json_member(record, "skipped"), "reason", "");
    assert_non_null(strstr(reason, "section headers"));
    records_free(&records);
    assert_int_equal(lost(bench, LOSS_CODE_INVALID), 2);
}

static void more_code_than_the_limit_is_skipped_and_counted(void **state)
{
    struct bench *bench = *state;
    bench->options.bytes_max = 16000;
    struct code_store *store = store_make(bench);
    add_file(store, "inlined.sm_90"); /* 15,144 bytes */
    add_file(store, "vector_add.sm_90");
    store_finish(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, 2);
    assert_holds(record_at(&records, 0), "inlined.sm_90");
    const struct json_value *record = record_at(&records, 1);
    assert_null(json_member(record, "data"));
    assert_string_equal(json_get_text(record, "arch", ""), "sm_90");
    assert_non_null(strstr(json_get_text(json_member(record, "skipped"), "reason", ""), "16000 bytes"));
    records_free(&records);
    assert_int_equal(lost(bench, LOSS_CODE_LIMIT), 1);
}

static uint64_t held_crc(void *user, const void *cubin, size_t size)
{
    struct bench *bench = user;
    (void)cubin, (void)size;
    while (sem_wait(&bench->gate))
        continue;
    return 0;
}

static void what_does_not_fit_the_waiting_room_is_counted(void **state)
{
    struct bench *bench = *state;
    bench->options.crc = held_crc;
    bench->options.waiting_bytes_max = 14000;
    struct code_store *store = store_make(bench);
    add_file(store, "inlined.sm_90"); /* larger than the limit */
    assert_int_equal(lost(bench, LOSS_CODE_MEMORY), 1);
    /* The worker takes at most one of these; two more fill the queue. */
    for (int i = 0; i < 8; i++)
        add_file(store, "vector_add.sm_90");
    uint64_t refused = lost(bench, LOSS_CODE_MEMORY) - 1;
    assert_in_range(refused, 5, 6);
    for (int i = 0; i < 8; i++)
        sem_post(&bench->gate);
    store_finish(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, 1);
    records_free(&records);
}

static void what_waits_beyond_the_deadline_is_counted(void **state)
{
    struct bench *bench = *state;
    bench->options.crc = held_crc;
    struct code_store *store = store_make(bench);
    add_file(store, "vector_add.sm_80");
    add_file(store, "vector_add.sm_90");
    add_file(store, "vector_add.sm_100");
    for (int i = 0; i < 3; i++)
        sem_post(&bench->gate);
    code_store_stop(store, 0);
    size_t size;
    uint8_t *bytes = fixture_cubin_read("inlined.sm_90", &size);
    code_store_add(store, bytes, size); /* too late: dropped */
    free(bytes);
    code_store_free(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count + lost(bench, LOSS_CODE_UNWRITTEN), 3);
    records_free(&records);
}

/* A copy of the cubin whose line table names files in the current directory, which is changed to the test's. */
static uint8_t *cubin_here(const struct bench *bench, size_t *size)
{
    static const char before[] = "/tmp/gpufl-cubins", here[] = "././././././././.";
    _Static_assert(sizeof before == sizeof here, "in place of the old directory");
    uint8_t *bytes = fixture_cubin_read("inlined.sm_90", size);
    uint8_t *place = memmem(bytes, *size, before, sizeof before);
    assert_non_null(place);
    memcpy(place, here, sizeof here);
    assert_int_equal(chdir(bench->dir), 0);
    return bytes;
}

static void source_files_of_a_line_table_are_written_once(void **state)
{
    struct bench *bench = *state;
    static const char text[] = "line \"one\"\n\tline two\n";
    fixture_write(bench->dir, "inlined.cuh", text, sizeof text - 1); /* inlined.cu is missing */
    size_t size;
    uint8_t *bytes = cubin_here(bench, &size);
    bench->options.with_source = true;
    struct code_store *store = store_make(bench);
    code_store_add(store, bytes, size);
    bytes[size - 1] ^= 1; /* other content with the same files */
    code_store_add(store, bytes, size);
    store_finish(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, 3);
    const struct json_value *record = record_at(&records, 1);
    assert_string_equal(json_get_text(record, "type", ""), "source_file_content");
    assert_non_null(strstr(json_get_text(record, "path", ""), "/inlined.cuh"));
    const struct json_value *lines = json_member(record, "lines");
    assert_int_equal(lines->count, 2);
    assert_string_equal(lines->child->text, "line \"one\"");
    assert_string_equal(lines->child->next->text, "\tline two");
    char id[16];
    snprintf(id, sizeof id, "%d", (int)json_get_int(record, "source_file_id", 0));
    struct records dictionary;
    records_read(bench, "scope.log", &dictionary);
    assert_int_equal(dictionary.count, 1);
    assert_string_equal(json_get_text(json_member(record_at(&dictionary, 0), "source_file_dict"), id, ""),
                        json_get_text(record, "path", "?"));
    records_free(&dictionary);
    records_free(&records);
    free(bytes);
    assert_int_equal(chdir("/"), 0);
}

static void source_text_stays_out_unless_asked_for_and_within_its_limit(void **state)
{
    struct bench *bench = *state;
    fixture_write(bench->dir, "inlined.cu", "0123456789\n", 11);
    size_t size;
    uint8_t *bytes = cubin_here(bench, &size);
    struct code_store *store = store_make(bench);
    code_store_add(store, bytes, size);
    store_finish(store);
    assert_int_equal(lost(bench, LOSS_SOURCE_LIMIT), 0);
    bench->options.with_source = true;
    bench->options.source_bytes_max = 10;
    store = store_make(bench);
    code_store_add(store, bytes, size);
    store_finish(store);
    assert_int_equal(lost(bench, LOSS_SOURCE_LIMIT), 1);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(json_get_text(record_at(&records, i), "type", ""), "code_object");
    records_free(&records);
    free(bytes);
    assert_int_equal(chdir("/"), 0);
}

static void files_that_stacks_name_are_kept_where_they_are_source(void **state)
{
    struct bench *bench = *state;
    enum { too_many = 100001 };
    static char lines[too_many];
    memset(lines, '\n', sizeof lines);
    fixture_write(bench->dir, "train.py", "import torch\n", 13);
    fixture_write(bench->dir, "notes.bin", "text\n", 5);
    fixture_write(bench->dir, "long.py", lines, sizeof lines);
    assert_int_equal(chdir(bench->dir), 0);
    bench->options.with_source = true;
    struct code_store *store = store_make(bench);
    assert_int_equal(chdir("/"), 0); /* the session's directory does not change */
    code_store_add_source(store, "train.py");
    code_store_add_source(store, "train.py");
    code_store_add_source(store, "notes.bin");
    code_store_add_source(store, "<string>");
    code_store_add_source(store, "long.py");
    code_store_lose_source(store);
    store_finish(store);
    assert_int_equal(lost(bench, LOSS_SOURCE_LIMIT), 2);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, 1);
    assert_string_equal(json_get_text(record_at(&records, 0), "path", ""), "train.py");
    records_free(&records);
}

static void *add_many(void *argument)
{
    for (size_t i = 0; i < 20; i++)
        add_file(argument, fixture_cubins[i % fixture_cubin_count]);
    return NULL;
}

static void many_threads_add_at_once(void **state)
{
    struct bench *bench = *state;
    struct code_store *store = store_make(bench);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, store), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    store_finish(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, fixture_cubin_count);
    records_free(&records);
    assert_int_equal(recorder_lost_total(&bench->recorder), 0);
}

static void a_forked_child_forgets_it_without_a_trace(void **state)
{
    struct bench *bench = *state;
    bench->options.crc = held_crc;
    struct code_store *store = store_make(bench);
    add_file(store, "vector_add.sm_90");
    add_file(store, "vector_add.sm_80");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        code_store_abandon(store);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sem_post(&bench->gate);
    sem_post(&bench->gate);
    store_finish(store);
    struct records records;
    records_read(bench, "sass.log", &records);
    assert_int_equal(records.count, 2);
    records_free(&records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cubin_is_written_once_and_reads_back_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(the_key_is_cuptis_where_there_is_one, setup, teardown),
        cmocka_unit_test_setup_teardown(amds_code_is_kept_beside_nvidias_with_a_key_of_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(a_module_that_is_not_a_cubin_is_reported_with_a_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(more_code_than_the_limit_is_skipped_and_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_the_waiting_room_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(what_waits_beyond_the_deadline_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(source_files_of_a_line_table_are_written_once, setup, teardown),
        cmocka_unit_test_setup_teardown(source_text_stays_out_unless_asked_for_and_within_its_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_stacks_name_are_kept_where_they_are_source, setup, teardown),
        cmocka_unit_test_setup_teardown(many_threads_add_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_forked_child_forgets_it_without_a_trace, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
