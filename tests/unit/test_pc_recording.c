/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded PC samples: one recording made by the test, and one of a real GPU. */
#include "pc_sampling_fixture.h"

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
        cmocka_unit_test_setup_teardown(a_recording_is_read_as_it_was_recorded, fixture_setup, fixture_teardown),
        cmocka_unit_test(samples_recorded_on_an_h200_are_all_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
