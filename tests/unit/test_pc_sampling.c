/* SPDX-License-Identifier: Apache-2.0 */
/* Reading PC samples: from the look-alike CUPTI of two releases, whose answers
 * have different sizes, and from recordings. Each case in a process of its own,
 * since the look-alike reads its faults once. */
#include "session_fixture.h"

#include "../fakes/fake_client.h"
#include "driver/cupti_table.h"
#include "driver/pc_sampling.h"
#include "driver/pc_sampling_abi.h"
#include "requirement.h"

#include <time.h>

static struct cupti product; /* what the product's code sees of the look-alike */

static void product_open(const char *file, uint32_t version)
{
    product.library.handle = library_load(file);
    product.version = version;
    *(void **)&product.call.get_result_string = dlsym(product.library.handle, "cuptiGetResultString");
}

struct sum {
    uint64_t samples, in_long_scoreboard;
    uint32_t calls, long_scoreboard, correlation_id;
    bool has_two_ids;
    char function[256];
};

static void take(void *user, const struct pc_sample *samples, size_t count)
{
    struct sum *sum = user;
    sum->calls++;
    for (size_t i = 0; i < count; i++) {
        sum->samples += samples[i].samples;
        if (samples[i].stall_index == sum->long_scoreboard)
            sum->in_long_scoreboard += samples[i].samples;
        sum->has_two_ids |= sum->correlation_id && sum->correlation_id != samples[i].correlation_id;
        sum->correlation_id = samples[i].correlation_id;
        snprintf(sum->function, sizeof sum->function, "%s", samples[i].function);
    }
}

static void *current_context(void)
{
    struct fake_context *(*current)(void);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
    *(void **)&current = dlsym(RTLD_DEFAULT, "fake_current_context");
    return current();
}

static const struct pc_sampling_options usual = {
    .period_exponent = 16, .hardware_buffer_bytes = 32 << 20, .scratch_bytes = 1 << 20};

static struct pc_sampling *open_usual(const struct pc_sampling_options *options)
{
    struct pc_sampling *sampling = NULL;
    struct problem problem = {""};
    gpufl_status status = pc_sampling_open(&sampling, &product, current_context(), options, &problem);
    if (status != GPUFL_OK)
        fprintf(stderr, "%s\n", problem.text);
    CHECK(status == GPUFL_OK);
    return sampling;
}

static uint32_t stall_index(const struct pc_sampling *sampling, const char *word)
{
    const struct stall_reasons *stalls = pc_sampling_stall_reasons(sampling);
    for (uint32_t i = 0; i < stalls->count; i++)
        if (strstr(stalls->reasons[i].name, word))
            return stalls->reasons[i].index;
    return UINT32_MAX;
}

/* Kernels that run long enough for a period, to their end. */
static void run_kernels(int count)
{
    static const struct fake_kernel kernel = {"_Z6samplePf", 32, 0, 0, 2000000};
    static const struct fake_image image = {FAKE_IMAGE_MAGIC, 1, &kernel};
    static bool is_registered;
    if (!is_registered) {
        void **handle = rt.__cudaRegisterFatBinary((void *)(uintptr_t)&image);
        rt.__cudaRegisterFunction(handle, (const char *)&kernel, NULL, kernel.name, -1, NULL, NULL, NULL, NULL, NULL);
        rt.__cudaUnregisterFatBinary(handle);
        is_registered = true;
    }
    for (int i = 0; i < count; i++)
        CHECK(launch(&kernel, NULL) == FAKE_SUCCESS);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
}

static void read_all(const struct pc_sampling_options *options, struct sum *sum, struct pc_drain *drain)
{
    struct problem problem = {""};
    struct pc_sampling *sampling = open_usual(options);
    struct pc_drain last;
    sum->long_scoreboard = stall_index(sampling, "long_scoreboard");
    run_kernels(4);
    CHECK(pc_sampling_drain(sampling, take, sum, drain, &problem) == GPUFL_OK);
    uint64_t drained = sum->samples;
    CHECK(drained > 0 && drain->total == drained + drain->dropped + drain->non_user);
    run_kernels(1);
    /* What ran since the drain comes with the last records. */
    CHECK(pc_sampling_close(sampling, take, sum, &last, &problem) == GPUFL_OK);
    CHECK(sum->samples > drained);
}

static void read_newest(void)
{
    struct sum sum = {0};
    struct pc_drain drain;
    product_open("libcupti.so.13", 130001);
    read_all(&usual, &sum, &drain);
    CHECK(!strcmp(sum.function, "_Z6samplePf"));
    CHECK(sum.correlation_id == 0 && !drain.was_buffer_full && !drain.has_more);
}
static void samples_name_function_pc_and_stall(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", read_newest);
}

static void read_old(void)
{
    struct sum sum = {0};
    struct pc_drain drain;
    struct pc_sampling_options options = usual;
    options.worker_sleep_ms = 10; /* which it refuses */
    product_open("old/libcupti.so.12", 19);
    read_all(&options, &sum, &drain);
    CHECK(!strcmp(sum.function, "_Z6samplePf"));
    CHECK(!sum.has_two_ids && sum.correlation_id == 0);
}
static void an_old_cupti_writes_smaller_records(void **state)
{
    (void)state;
    in_child("old/libcupti.so.12", "", read_old);
}

static void read_shared_names(void)
{
    struct sum sum = {0};
    struct pc_drain drain;
    struct problem problem = {""};
    product_open("libcupti.so.13", 130001);
    struct pc_sampling *sampling = open_usual(&usual);
    for (int i = 0; i < 5; i++) { /* the same address each time, which must not be freed */
        run_kernels(1);
        CHECK(pc_sampling_drain(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    }
    CHECK(!strcmp(sum.function, "_Z6samplePf"));
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
}
static void names_that_cupti_shares_are_not_freed(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "pc_names=shared", read_shared_names);
}

static void read_in_small_pieces(void)
{
    struct pc_sampling_options options = usual;
    struct sum sum = {0};
    struct pc_drain drain;
    struct problem problem = {""};
    options.pcs_max = 3; /* of the eight PCs of the function */
    product_open("libcupti.so.13", 130001);
    struct pc_sampling *sampling = open_usual(&options);
    run_kernels(2);
    CHECK(pc_sampling_drain(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(drain.pcs == 8 && drain.total == sum.samples && !drain.has_more);
    CHECK(sum.calls == 3);
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
}
static void more_pcs_than_fit_are_read_in_several_calls(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", read_in_small_pieces);
}

static void read_serialized(void)
{
    struct pc_sampling_options options = usual;
    struct sum sum = {0};
    struct pc_drain drain;
    struct problem problem = {""};
    options.is_serialized = true;
    product_open("libcupti.so.13", 130001);
    struct pc_sampling *sampling = open_usual(&options);
    run_kernels(2);
    CHECK(pc_sampling_drain(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(sum.correlation_id != 0 && sum.has_two_ids);
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
}
static void samples_of_serialized_kernels_carry_their_launch(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", read_serialized);
}

static void read_with_losses(void)
{
    struct sum sum = {0};
    struct pc_drain drain;
    product_open("libcupti.so.13", 130001);
    read_all(&usual, &sum, &drain);
    CHECK(drain.dropped == 17 && drain.non_user == 5);
}
static void dropped_and_foreign_samples_are_counted(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "pc_dropped=17; pc_non_user=5", read_with_losses);
}

static void read_full_buffer(void)
{
    struct pc_sampling_options options = usual;
    struct sum sum = {0};
    struct pc_drain drain;
    struct problem problem = {""};
    options.hardware_buffer_bytes = 64 * 1024;
    product_open("libcupti.so.13", 130001);
    struct pc_sampling *sampling = open_usual(&options);
    run_kernels(3);
    CHECK(pc_sampling_drain(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(drain.was_buffer_full && sum.samples == 0);
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
}
static void a_full_hardware_buffer_is_no_error_but_said(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", read_full_buffer);
}

static void stop_and_start(void)
{
    struct sum sum = {0};
    struct pc_drain drain;
    struct problem problem = {""};
    product_open("libcupti.so.13", 130001);
    struct pc_sampling *sampling = open_usual(&usual);
    run_kernels(1);
    CHECK(pc_sampling_stop(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    uint64_t before = sum.samples;
    CHECK(before > 0);
    run_kernels(2);
    CHECK(pc_sampling_drain(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(sum.samples == before);
    CHECK(pc_sampling_start(sampling, &problem) == GPUFL_OK);
    run_kernels(1);
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(sum.samples > before);
}
static void nothing_is_sampled_between_stop_and_start(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", stop_and_start);
}

static void switch_off_with_little_room(void)
{
    struct pc_sampling_options options = usual;
    options.worker_sleep_ms = 60000; /* nothing is decoded before */
    struct sum sum = {0};
    struct pc_drain drain;
    struct problem problem = {""};
    product_open("libcupti.so.13", 130001);
    struct pc_sampling *sampling = open_usual(&options);
    run_kernels(1);
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(sum.samples > 0 && drain.pcs == 8 && !drain.unread);
    options.final_pcs_max = 3; /* of the eight PCs of the function */
    sampling = open_usual(&options);
    sum.samples = 0;
    run_kernels(1);
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(sum.samples > 0 && drain.pcs == 3);
    CHECK(drain.unread > 0 && sum.samples + drain.unread + drain.dropped + drain.non_user == drain.total);
}
static void samples_that_cupti_has_no_room_for_when_switched_off_are_counted(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "pc_dropped=17; pc_non_user=5", switch_off_with_little_room);
}

static void open_and_be_refused(void)
{
    struct pc_sampling *sampling = NULL;
    struct problem problem = {""};
    product_open("libcupti.so.13", 130001);
    CHECK(pc_sampling_open(&sampling, &product, current_context(), &usual, &problem) == GPUFL_E_PERMISSION);
    CHECK(strstr(problem.text, "CAP_PERFMON") && !sampling);
}
static void missing_permission_is_named(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "fail=cuptiPCSamplingEnable@*:35", open_and_be_refused);
}

static void lack_functions(void)
{
    struct pc_sampling *sampling = NULL;
    struct problem problem = {""};
    product_open("libnvidia-ml.so.1", 130001); /* any library without them */
    CHECK(pc_sampling_open(&sampling, &product, current_context(), &usual, &problem) == GPUFL_E_UNSUPPORTED);
    CHECK(strstr(problem.text, "cuptiPCSampling"));
}
static void a_library_without_pc_sampling_is_named(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", lack_functions);
}

/* A recording as record_pc_sampling.c writes it. */
struct recording {
    uint8_t bytes[64 * 1024];
    size_t size;
};
static void put(struct recording *recording, const void *bytes, size_t size)
{
    memcpy(recording->bytes + recording->size, bytes, size);
    recording->size += size;
}
static void put_u32(struct recording *recording, uint32_t value)
{
    put(recording, &value, sizeof value);
}
static void put_text(struct recording *recording, uint32_t kind, uint32_t number, const char *text)
{
    put_u32(recording, kind);
    put_u32(recording, (uint32_t)strlen(text) + 4);
    put_u32(recording, number);
    put(recording, text, strlen(text));
}
static void put_read(struct recording *recording, uint32_t kind, uint32_t pc_count, uint64_t dropped)
{
    struct pc_sampling_abi_data data = {.size = sizeof data,
                                        .total_samples = pc_count * 7 + dropped,
                                        .dropped_samples = dropped,
                                        .total_pcs = pc_count};
    uint64_t times[2] = {1000, 2000};
    put_u32(recording, kind);
    put_u32(recording, (uint32_t)(24 + sizeof data + pc_count * (sizeof(struct pc_sampling_abi_pc) + 16)));
    put(recording, times, sizeof times);
    put_u32(recording, 0);
    put_u32(recording, pc_count);
    put(recording, &data, sizeof data);
    for (uint32_t i = 0; i < pc_count; i++) {
        struct pc_sampling_abi_pc pc = {.size = sizeof pc,
                                        .cubin_crc = 0xabcdef,
                                        .pc_offset = i * 16,
                                        .function_index = 4,
                                        .function_name = (char *)(uintptr_t)1,
                                        .stall_count = 2};
        const struct pc_sampling_abi_stall stalls[2] = {{33, 4}, {35, 3}};
        put(recording, &pc, sizeof pc);
        put(recording, stalls, sizeof stalls);
    }
}

static void recording_write(const char *dir)
{
    struct recording *recording = calloc(1, sizeof *recording);
    put(recording, "CUPTIPCS", 8);
    put_u32(recording, 1);
    put_u32(recording, 130001);
    put_u32(recording, PC_SAMPLING_ABI_CONTINUOUS);
    put_u32(recording, 21);
    put_text(recording, 1, 33, "smsp__pcsamp_warps_issue_stalled_long_scoreboard");
    put_text(recording, 1, 35, "smsp__pcsamp_warps_issue_stalled_wait");
    put_text(recording, 2, 1, "_Z8recordedPf");
    put_read(recording, 3, 5, 2);
    put_read(recording, 3, 40, 0);
    put_read(recording, 4, 1, 0);
    fixture_write(dir, "test.pcrec", recording->bytes, recording->size);
    free(recording);
}

static void replay(void)
{
    struct pc_sampling_options options = usual;
    struct sum sum = {.long_scoreboard = 33};
    struct pc_drain drain;
    struct problem problem = {""};
    options.pcs_max = 16;
    product_open("libcupti.so.13", 130001);
    struct pc_sampling *sampling = open_usual(&options);
    CHECK(pc_sampling_stall_reasons(sampling)->count == 2 && stall_index(sampling, "_wait") == 35);
    CHECK(pc_sampling_drain(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(drain.total == 37 && drain.dropped == 2 && sum.samples == 35 && sum.in_long_scoreboard == 20);
    CHECK(pc_sampling_drain(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(drain.pcs == 40 && drain.total == 280 && sum.samples == 315);
    CHECK(!strcmp(sum.function, "_Z8recordedPf"));
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(drain.pcs == 1 && sum.samples == 322);
}
static void a_recording_is_read_as_it_was_recorded(void **state)
{
    char path[512];
    recording_write(*state);
    fixture_path(path, *state, "test.pcrec");
    setenv("FAKE_PC_RECORDING", path, 1);
    in_child("libcupti.so.13", "", replay);
    unsetenv("FAKE_PC_RECORDING");
}

/* The sums of a recording of a real GPU, read without the product's code. */
struct recorded_sums {
    uint64_t samples, dropped, total, non_user;
};
static struct recorded_sums recording_sums(const uint8_t *bytes, size_t size)
{
    struct recorded_sums sums = {0};
    for (size_t at = 24; at + 8 <= size;) {
        uint32_t head[2], pc_count;
        memcpy(head, bytes + at, sizeof head);
        if (head[0] == 3 || head[0] == 4) {
            size_t place = at + 8 + 20;
            struct pc_sampling_abi_data data;
            memcpy(&pc_count, bytes + place, sizeof pc_count);
            memcpy(&data, bytes + place + 4, sizeof data);
            sums.dropped += data.dropped_samples;
            sums.total += data.total_samples;
            sums.non_user += data.non_user_samples;
            place += 4 + sizeof data;
            for (uint32_t i = 0; i < pc_count; i++) {
                struct pc_sampling_abi_pc pc;
                memcpy(&pc, bytes + place, sizeof pc);
                place += sizeof pc;
                for (size_t j = 0; j < pc.stall_count; j++, place += sizeof(struct pc_sampling_abi_stall)) {
                    struct pc_sampling_abi_stall stall;
                    memcpy(&stall, bytes + place, sizeof stall);
                    sums.samples += stall.samples;
                }
            }
        }
        at += 8 + head[1];
    }
    return sums;
}

#define GOLDEN "h200_two_kernels.pcrec"
static struct recorded_sums golden;

static void replay_golden(void)
{
    struct sum sum = {0};
    struct recorded_sums seen = {0};
    struct pc_drain drain = {0};
    struct problem problem = {""};
    product_open("libcupti.so.13", 130001);
    struct pc_sampling *sampling = open_usual(&usual);
    CHECK(stall_index(sampling, "long_scoreboard") != UINT32_MAX);
    CHECK(pc_sampling_stall_reasons(sampling)->count >= 30);
    for (int i = 0; i < 10000 && (drain.pcs || i < 100); i++) {
        CHECK(pc_sampling_drain(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
        seen.dropped += drain.dropped;
        seen.total += drain.total;
        seen.non_user += drain.non_user;
    }
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(sum.samples == golden.samples && sum.samples > 1000);
    CHECK(seen.dropped + drain.dropped == golden.dropped);
    CHECK(seen.total + drain.total == golden.total && seen.non_user + drain.non_user == golden.non_user);
    CHECK(!strcmp(sum.function, "chase") || !strcmp(sum.function, "multiply"));
}
static void samples_recorded_on_an_h200_are_all_read(void **state)
{
    (void)state;
    REQUIRE(fixture_exists(SOURCE_DIR "/tests/recordings", GOLDEN), "tests/recordings/" GOLDEN);
    size_t size;
    char *bytes = fixture_read(SOURCE_DIR "/tests/recordings", GOLDEN, &size);
    golden = recording_sums((const uint8_t *)bytes, size);
    free(bytes);
    setenv("FAKE_PC_RECORDING", SOURCE_DIR "/tests/recordings/" GOLDEN, 1);
    in_child("libcupti.so.13", "", replay_golden);
    unsetenv("FAKE_PC_RECORDING");
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_name_function_pc_and_stall),
        cmocka_unit_test(an_old_cupti_writes_smaller_records),
        cmocka_unit_test(names_that_cupti_shares_are_not_freed),
        cmocka_unit_test(more_pcs_than_fit_are_read_in_several_calls),
        cmocka_unit_test(samples_of_serialized_kernels_carry_their_launch),
        cmocka_unit_test(dropped_and_foreign_samples_are_counted),
        cmocka_unit_test(a_full_hardware_buffer_is_no_error_but_said),
        cmocka_unit_test(nothing_is_sampled_between_stop_and_start),
        cmocka_unit_test(samples_that_cupti_has_no_room_for_when_switched_off_are_counted),
        cmocka_unit_test(missing_permission_is_named),
        cmocka_unit_test(a_library_without_pc_sampling_is_named),
        cmocka_unit_test_setup_teardown(a_recording_is_read_as_it_was_recorded, fixture_setup, fixture_teardown),
        cmocka_unit_test(samples_recorded_on_an_h200_are_all_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
