/* SPDX-License-Identifier: Apache-2.0 */
/* Wire v1, inwards: our reader on sessions in GPUFlight's layout, written here byte
 * by byte from the format's description. test_v1_reader.c has the other direction. */
#include "session_fixture.h"

#include <zlib.h>

#define ID "11111111-2222-4333-8444-555555555555"
#define ENVELOPE(version, type, batch)                                                               \
    "{\"version\":" #version ",\"type\":\"" type "\",\"session_id\":\"" ID "\",\"batch_id\":" #batch \
    ",\"base_time_ns\":5000,"
#define JOB_START                                                                                      \
    "{\"version\":1,\"type\":\"job_start\",\"pid\":42,\"app\":\"train\",\"session_id\":\"" ID          \
    "\",\"log_path\":\"/x\","                                                                          \
    "\"ts_ns\":100,\"hostname\":\"h\",\"ip_addr\":\"\",\"host\":{\"cpu_pct\":1.5,\"ram_used_mib\":10," \
    "\"ram_total_mib\":20},\"devices\":[],\"session_kind\":\"trace\",\"profiling_engine\":\"nvidia.trace\"}\n"
#define SHUTDOWN "{\"type\":\"shutdown\",\"pid\":42,\"app\":\"train\",\"session_id\":\"" ID "\",\"ts_ns\":900}\n"
#define KERNEL_COLUMNS                                                                                            \
    "\"columns\":[\"dt_ns\",\"kernel_id\",\"stream_id\",\"duration_ns\",\"corr_id\",\"dyn_shared\",\"num_regs\"," \
    "\"has_details\",\"external_kind\",\"external_id\"],"
#define DICTIONARY                                                                                              \
    "{\"version\":1,\"type\":\"dictionary_update\",\"session_id\":\"" ID "\",\"kernel_dict\":{\"1\":\"axpy\"}," \
    "\"scope_name_dict\":{\"1\":\"train|step\"}}\n"

static int setup(void **state)
{
    char path[512];
    char *base = strdup(fixture_dir());
    fixture_path(path, base, ID);
    assert_int_equal(mkdir(path, 0700), 0);
    *state = base;
    return 0;
}

static int teardown(void **state)
{
    fixture_remove(*state);
    free(*state);
    return 0;
}

static void session_path(char out[512], void **state)
{
    fixture_path(out, *state, ID);
}

static void make_tmp(const char *dir)
{
    char path[512];
    fixture_path(path, dir, ".tmp");
    assert_int_equal(mkdir(path, 0700), 0);
}

/* A published window with its sidecar. crc_error: to make the sidecar disagree. */
static void publish(const char *dir, const char *channel, int index, const char *text, uint32_t crc_error)
{
    unsigned char payload[16384];
    z_stream stream = {
        .next_in = (Bytef *)text, .avail_in = (uInt)strlen(text), .next_out = payload, .avail_out = sizeof payload};
    assert_int_equal(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t size = stream.total_out;
    deflateEnd(&stream);
    char name[64], sidecar[1024];
    snprintf(name, sizeof name, ".gpufl-window.%s.%d.json", channel, index);
    snprintf(
        sidecar, sizeof sidecar,
        "{\"schema_version\":1,\"type\":\"transport_window\",\"window_id\":\"%s\",\"session_id\":\"%s\",\"channel\":\"%s\","
        "\"window_sequence\":%d,\"opened_mono_ms\":1,\"closed_mono_ms\":2,\"created_wall_ms\":3,"
        "\"payload_file\":\"%s.%d.log.gz\",\"payload_bytes\":%zu,\"payload_crc32\":%lu}",
        ID, ID, channel, index, channel, index, size,
        (unsigned long)((uint32_t)crc32(0, payload, (uInt)size) ^ crc_error));
    fixture_write(dir, name, sidecar, strlen(sidecar));
    snprintf(name, sizeof name, "%s.%d.log.gz", channel, index);
    fixture_write(dir, name, payload, size);
}

static const char first_kernels[] = ENVELOPE(1, "kernel_event_batch", 1) KERNEL_COLUMNS
    "\"rows\":[[0,1,7,250,11,0,32,1,0,0],[-40,1,7,260,12,1024,32,0,4,18446744073709551615]]}\n";
static const char second_kernels[] =
    ENVELOPE(1, "kernel_event_batch", 2) KERNEL_COLUMNS "\"rows\":[[5,1,7,300,13,0,32,0,0,0]]}\n";
static const char third_kernels[] =
    ENVELOPE(1, "kernel_event_batch", 3) KERNEL_COLUMNS "\"rows\":[[9,1,8,400,14,0,32,0,0,0]]}\n";

struct kernel_check {
    int64_t corr[16], dt[16], duration[16];
    uint64_t external[16];
    unsigned count, job_starts, shutdowns, dictionaries, isa_maps;
    bool has_device_column;
};

static bool check_kernels(void *user, const struct log_line *line)
{
    struct kernel_check *check = user;
    check->job_starts += line->type == RECORD_JOB_START;
    check->shutdowns += line->type == RECORD_SHUTDOWN;
    check->dictionaries += line->type == RECORD_DICTIONARY_UPDATE;
    check->isa_maps += line->type == RECORD_PROFILE_SAMPLE_BATCH;
    if (line->type != RECORD_KERNEL_EVENT_BATCH)
        return true;
    assert_int_equal(line->seq, -1);
    const struct batch_column *columns = line->batch->columns;
    check->has_device_column |= columns[KERNEL_DEVICE_ID].present;
    for (uint32_t row = 0; row < line->batch->row_count && check->count < 16; row++, check->count++) {
        check->corr[check->count] = columns[KERNEL_CORR_ID].cells[row];
        check->dt[check->count] = columns[KERNEL_DT_NS].cells[row] + line->batch->base_time_ns;
        check->duration[check->count] = columns[KERNEL_DURATION_NS].cells[row];
        check->external[check->count] = (uint64_t)columns[KERNEL_EXTERNAL_ID].cells[row];
    }
    return true;
}

static struct kernel_check read_kernels(const char *path)
{
    struct kernel_check check = {0};
    struct log_summary summary;
    assert_int_equal(log_read(path, check_kernels, NULL, &check, &summary, NULL), GPUFL_OK);
    return check;
}

static void windows_retired_and_active_files_are_read_in_order(void **state)
{
    char dir[512], window[4096], active[4096];
    session_path(dir, state);
    make_tmp(dir);
    snprintf(window, sizeof window, "%s%s%s", JOB_START, DICTIONARY, first_kernels);
    publish(dir, "device", 1, window, 0);
    fixture_write(dir, ".tmp/device.2.log", second_kernels, strlen(second_kernels));
    /* The active file ends in the middle of a line. */
    snprintf(active, sizeof active, "%s%.60s", third_kernels, second_kernels);
    fixture_write(dir, ".tmp/device.log", active, strlen(active));
    fixture_write(dir, ".tmp/device.2.log.gz.part", "garbage", 7);
    fixture_write(dir, ".gpufl-window-ack.device.1", "", 0);
    publish(dir, "scope", 1, JOB_START DICTIONARY, 0);

    struct kernel_check check = read_kernels(*state);
    assert_int_equal(check.count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(check.corr[i], 11 + i);
    assert_int_equal(check.dt[1], 5000 - 40);
    assert_int_equal(check.duration[3], 400);
    assert_true(check.external[1] == UINT64_MAX);
    assert_false(check.has_device_column);
    assert_int_equal(check.job_starts, 1);
    assert_int_equal(check.dictionaries, 2);

    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.first_type, RECORD_JOB_START);
    assert_int_equal(seen.issues[LOG_ISSUE_TORN_TAIL], 1);
    assert_string_equal(seen.last[LOG_ISSUE_TORN_TAIL].file, ".tmp/device.log");
    assert_int_equal(seen.issues[LOG_ISSUE_UNFINISHED], 1);
    assert_int_equal(seen.issue_count, 2);
}

static void a_finished_session_is_complete(void **state)
{
    char dir[512], window[4096];
    session_path(dir, state);
    snprintf(window, sizeof window, "%s%s%s", JOB_START, DICTIONARY, first_kernels);
    publish(dir, "device", 1, window, 0);
    snprintf(window, sizeof window, "%s%s", second_kernels, SHUTDOWN);
    publish(dir, "device", 2, window, 0);
    publish(dir, "scope", 1, JOB_START SHUTDOWN, 0);
    publish(dir, "system", 1, JOB_START SHUTDOWN, 0);
    publish(dir, "sass", 1, JOB_START SHUTDOWN, 0);
    struct verify_report report;
    assert_int_equal(verify_session(dir, &report, NULL), GPUFL_OK);
    assert_int_equal(report.issue_count, 0);
    assert_true(report.is_complete);
    assert_int_equal(report.summary.rows[RECORD_SHUTDOWN], 1);
    assert_int_equal(report.summary.rows[RECORD_KERNEL_EVENT_BATCH], 3);
    verify_report_free(&report);
}

static void ten_windows_are_ordered_by_number_not_by_name(void **state)
{
    char dir[512], line[1024];
    session_path(dir, state);
    for (int i = 1; i <= 11; i++) {
        snprintf(line, sizeof line, "%s\"rows\":[[0,1,7,1,%d,0,32,0,0,0]]}\n",
                 ENVELOPE(1, "kernel_event_batch", 1) KERNEL_COLUMNS, i);
        publish(dir, "device", i, line, 0);
    }
    struct kernel_check check = read_kernels(dir);
    assert_int_equal(check.count, 11);
    for (int i = 0; i < 11; i++)
        assert_int_equal(check.corr[i], i + 1);
}

static void a_window_that_differs_from_its_sidecar_is_reported_and_still_read(void **state)
{
    char dir[512];
    session_path(dir, state);
    publish(dir, "device", 1, first_kernels, 0x80);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issues[LOG_ISSUE_BAD_SEGMENT], 1);
    assert_int_equal(seen.kernels, 2);
}

static void a_truncated_window_gives_what_decodes(void **state)
{
    char dir[512], window[8192] = "", path[512];
    session_path(dir, state);
    for (int i = 0; i < 12; i++)
        strncat(window, i % 2 ? first_kernels : second_kernels, sizeof window - strlen(window) - 1);
    publish(dir, "device", 1, window, 0);
    fixture_path(path, dir, "device.1.log.gz");
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(truncate(path, status.st_size - 12), 0);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issues[LOG_ISSUE_BAD_SEGMENT], 2); /* size, and the end of the data */
    assert_true(seen.kernels > 0);
}

static void losses_and_missing_windows_are_distinguished(void **state)
{
    char dir[512];
    session_path(dir, state);
    publish(dir, "device", 1, first_kernels, 0);
    static const char marker[] = "{\"schema_version\":1,\"type\":\"transport_window_loss\",\"channel\":\"device\","
                                 "\"window_index\":2,\"reason\":\"spool_full\"}";
    fixture_write(dir, ".gpufl-transport-loss.device.2.json", marker, strlen(marker));
    publish(dir, "device", 5, second_kernels, 0);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issues[LOG_ISSUE_LOSS], 1);
    assert_non_null(strstr(seen.last[LOG_ISSUE_LOSS].text, "spool_full"));
    assert_int_equal(seen.issues[LOG_ISSUE_MISSING_LINES], 1);
    assert_non_null(strstr(seen.last[LOG_ISSUE_MISSING_LINES].text, "windows 3 to 4"));
    assert_int_equal(seen.kernels, 3);
}

static void a_window_that_is_published_twice_is_read_once(void **state)
{
    char dir[512];
    session_path(dir, state);
    make_tmp(dir);
    publish(dir, "device", 1, first_kernels, 0);
    fixture_write(dir, ".tmp/device.1.log", first_kernels, strlen(first_kernels));
    assert_int_equal(fixture_see(dir).kernels, 2);
}

struct metric_check {
    unsigned rows, with_fan;
    int64_t power, energy;
};

static bool check_metrics(void *user, const struct log_line *line)
{
    struct metric_check *check = user;
    if (line->type != RECORD_DEVICE_METRIC_BATCH)
        return true;
    const struct batch_column *columns = line->batch->columns;
    check->rows += line->batch->row_count;
    check->power += columns[DEVICE_METRIC_POWER_MW].cells[0];
    if (columns[DEVICE_METRIC_FAN_SPEED_PCT].present) {
        check->with_fan++;
        check->energy = columns[DEVICE_METRIC_ENERGY_UJ].cells[0];
    }
    return true;
}

static void device_metrics_with_9_and_18_columns_are_read(void **state)
{
    char dir[512];
    session_path(dir, state);
    static const char text[] = JOB_START ENVELOPE(
        1, "device_metric_batch",
        1) "\"columns\":[\"dt_ns\",\"device_id\",\"gpu_util\",\"mem_util\","
           "\"temp_c\",\"power_mw\",\"used_mib\",\"total_mib\",\"clock_sm\"],\"rows\":[[0,0,50,20,40,70000,100,200,1500]]}\n" ENVELOPE(
               1, "device_metric_batch",
               2) "\"columns\":[\"dt_ns\",\"device_id\",\"gpu_util\",\"mem_util\",\"temp_c\","
                  "\"power_mw\",\"used_mib\",\"total_mib\",\"clock_sm\",\"fan_speed_pct\",\"temp_mem_c\",\"temp_junction_c\","
                  "\"voltage_mv\",\"energy_uj\",\"clock_mem\",\"pcie_bw_bps\",\"ecc_corrected\",\"ecc_uncorrected\"],"
                  "\"rows\":[[0,0,51,21,41,80000,100,200,1500,30,60,70,900,123456789012,2600,1000,0,0]]}\n" SHUTDOWN;
    publish(dir, "system", 1, text, 0);
    struct metric_check check = {0};
    struct log_summary summary;
    assert_int_equal(log_read(dir, check_metrics, NULL, &check, &summary, NULL), GPUFL_OK);
    assert_int_equal(check.rows, 2);
    assert_int_equal(check.power, 150000);
    assert_int_equal(check.with_fan, 1);
    assert_int_equal(check.energy, 123456789012);
}

static bool check_scopes(void *user, const struct log_line *line)
{
    unsigned *seen = user;
    if (line->type != RECORD_SCOPE_EVENT_BATCH)
        return true;
    const struct batch_column *columns = line->batch->columns;
    assert_int_equal(columns[SCOPE_SCOPE_INSTANCE_ID].cells[0], line->batch->version);
    assert_int_equal(columns[SCOPE_REPEAT].present, line->batch->version >= 2);
    assert_int_equal(columns[SCOPE_ORIGINAL_START_NS].present, line->batch->version >= 3);
    *seen |= 1u << line->batch->version;
    return true;
}

static void scope_batches_of_versions_1_to_3_are_read(void **state)
{
    char dir[512];
    session_path(dir, state);
    static const char text[] = DICTIONARY ENVELOPE(
        1, "scope_event_batch",
        1) "\"columns\":[\"dt_ns\",\"scope_instance_id\",\"name_id\",\"event_type\","
           "\"depth\"],\"rows\":[[0,1,1,0,0]]}\n" ENVELOPE(
               2, "scope_event_batch",
               2) "\"columns\":[\"dt_ns\",\"scope_instance_id\",\"name_id\",\"event_type\","
                  "\"depth\",\"repeat\",\"warmup\"],\"rows\":[[0,2,1,0,0,10,2]]}\n" ENVELOPE(
                      3, "scope_event_batch",
                      3) "\"columns\":[\"dt_ns\",\"scope_instance_id\",\"name_id\",\"event_type\","
                         "\"depth\",\"repeat\",\"warmup\",\"original_start_ns\"],\"rows\":[[0,3,1,2,0,10,2,4000]]}\n";
    publish(dir, "scope", 1, text, 0);
    unsigned seen = 0;
    struct log_summary summary;
    assert_int_equal(log_read(dir, check_scopes, NULL, &seen, &summary, NULL), GPUFL_OK);
    assert_int_equal(seen, 1u << 1 | 1u << 2 | 1u << 3);
}

static void unknown_types_and_columns_are_ignored(void **state)
{
    char dir[512];
    session_path(dir, state);
    static const char text[] =
        "{\"version\":1,\"type\":\"hologram_batch\",\"rows\":[[1,\"x\",{\"a\":null}]]}\n" ENVELOPE(
            1, "kernel_event_batch", 1) "\"columns\":[\"corr_id\",\"mood\",\"duration_ns\",\"dt_ns\",\"external_id\"],"
                                        "\"rows\":[[21,\"fine\",100,0,0],[22,null,200,1,0],[23,[1,2],300,2,0]]}\n";
    publish(dir, "device", 1, text, 0);
    struct kernel_check check = read_kernels(dir);
    assert_int_equal(check.count, 3);
    assert_int_equal(check.corr[2], 23);
    assert_int_equal(check.duration[2], 300);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.summary.unknown_types, 1);
    assert_int_equal(seen.summary.damaged_lines, 0);
}

static void records_of_all_channels_and_isa_maps_are_delivered_once(void **state)
{
    static const char *const channels[] = {"device", "scope", "system", "sass"};
    static const char text[] = JOB_START
        "{\"version\":1,\"type\":\"capture_capabilities\",\"session_id\":\"" ID
        "\",\"ts_ns\":101,\"capabilities\":[]}\n"
        "{\"version\":1,\"type\":\"segment_start\",\"session_id\":\"" ID
        "\",\"run_id\":\"r\",\"segment_index\":0,\"ts_ns\":102}\n"
        "{\"version\":1,\"type\":\"profile_sample_batch\",\"session_id\":\"" ID
        "\",\"batch_id\":1000001,\"base_time_ns\":5,"
        "\"columns\":[\"dt_ns\",\"function_id\",\"sample_kind\"],\"rows\":[[0,0,2],[0,0,2]]}\n"
        "{\"version\":1,\"type\":\"segment_end\",\"session_id\":\"" ID
        "\",\"run_id\":\"r\",\"segment_index\":0,\"ts_ns\":800}\n"
        "{\"version\":1,\"type\":\"run_end\",\"session_id\":\"" ID "\",\"run_id\":\"r\",\"ts_ns\":801}\n" SHUTDOWN;
    char dir[512];
    session_path(dir, state);
    for (int i = 0; i < 4; i++)
        publish(dir, channels[i], 1, text, 0);
    struct fixture_seen seen = fixture_see(dir);
    assert_int_equal(seen.issue_count, 0);
    assert_int_equal(seen.line_count, 7);
    assert_int_equal(seen.summary.rows[RECORD_PROFILE_SAMPLE_BATCH], 2);
    assert_int_equal(seen.summary.rows[RECORD_SEGMENT_END], 1);
    assert_int_equal(seen.summary.rows[RECORD_SHUTDOWN], 1);
}

static void a_synthetic_shutdown_is_accepted(void **state)
{
    char dir[512];
    session_path(dir, state);
    publish(dir, "device", 1, first_kernels, 0);
    publish(dir, "device", 2,
            "{\"type\":\"shutdown\",\"pid\":42,\"app\":\"train\",\"session_id\":\"" ID
            "\",\"ts_ns\":950,\"synthetic\":true,\"exit_code\":137,\"signaled\":true,\"signal\":9,\"crashed\":true}\n",
            0);
    struct fixture_seen seen = fixture_see(dir);
    assert_true(seen.summary.has_shutdown);
    assert_true(seen.summary.is_synthetic_shutdown);
    assert_int_equal(seen.kernels, 2);
}

static void the_older_flat_layout_is_read_oldest_first(void **state)
{
    char flat[512];
    fixture_path(flat, *state, "flat");
    assert_int_equal(mkdir(flat, 0700), 0);
    fixture_write(flat, "my.app.device.log", third_kernels, strlen(third_kernels));
    fixture_write(flat, "my.app.device.log.1", second_kernels, strlen(second_kernels));
    fixture_write(flat, "my.app.device.log.2", first_kernels, strlen(first_kernels));
    fixture_write(flat, "my.app.system.log", JOB_START,
                  strlen(JOB_START) - 1); /* v1 writers may leave out the last LF */
    struct kernel_check check = read_kernels(flat);
    assert_int_equal(check.job_starts, 1);
    assert_int_equal(check.count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(check.corr[i], 11 + i);
    assert_int_equal(fixture_see(flat).issues[LOG_ISSUE_TORN_TAIL], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_retired_and_active_files_are_read_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_finished_session_is_complete, setup, teardown),
        cmocka_unit_test_setup_teardown(ten_windows_are_ordered_by_number_not_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(a_window_that_differs_from_its_sidecar_is_reported_and_still_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_truncated_window_gives_what_decodes, setup, teardown),
        cmocka_unit_test_setup_teardown(losses_and_missing_windows_are_distinguished, setup, teardown),
        cmocka_unit_test_setup_teardown(a_window_that_is_published_twice_is_read_once, setup, teardown),
        cmocka_unit_test_setup_teardown(device_metrics_with_9_and_18_columns_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(scope_batches_of_versions_1_to_3_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_types_and_columns_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(records_of_all_channels_and_isa_maps_are_delivered_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_synthetic_shutdown_is_accepted, setup, teardown),
        cmocka_unit_test_setup_teardown(the_older_flat_layout_is_read_oldest_first, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
