/* SPDX-License-Identifier: Apache-2.0 */
/* PC samples of the look-alike CUPTI as two releases, with structs of different sizes. */
#include "pc_sampling_fixture.h"

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
    options.worker_sleep_ms = 10; /* which this release refuses */
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
static void a_full_hardware_buffer_is_reported_without_an_error(void **state)
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
    CHECK(pc_sampling_start(sampling, false, &problem) == GPUFL_OK);
    run_kernels(1);
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(sum.samples > before);
}
static void start_rarely(void)
{
    struct sum sum = {0};
    struct pc_drain drain;
    struct problem problem = {""};
    product_open("libcupti.so.13", 130001);
    struct pc_sampling *sampling = open_usual(&usual);
    CHECK(pc_sampling_stop(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(pc_sampling_start(sampling, true, &problem) == GPUFL_OK);
    run_kernels(1);
    CHECK(pc_sampling_stop(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(sum.samples == 0);
    CHECK(pc_sampling_start(sampling, false, &problem) == GPUFL_OK);
    run_kernels(1);
    CHECK(pc_sampling_close(sampling, take, &sum, &drain, &problem) == GPUFL_OK);
    CHECK(sum.samples > 0);
}
static void who_wants_no_samples_gets_the_longest_period_until_the_next_start(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", start_rarely);
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
        cmocka_unit_test(a_full_hardware_buffer_is_reported_without_an_error),
        cmocka_unit_test(nothing_is_sampled_between_stop_and_start),
        cmocka_unit_test(who_wants_no_samples_gets_the_longest_period_until_the_next_start),
        cmocka_unit_test(samples_that_cupti_has_no_room_for_when_switched_off_are_counted),
        cmocka_unit_test(missing_permission_is_named),
        cmocka_unit_test(a_library_without_pc_sampling_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
