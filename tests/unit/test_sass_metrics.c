/* SPDX-License-Identifier: Apache-2.0 */
/* SASS metrics: the calls made to CUPTI and the handling of its results, with test functions in its place; and the
 * names of real chips, with the real library, which needs no GPU for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/cupti_table.h"
#include "driver/profiler_host.h"
#include "driver/sass_metrics.h"
#include "requirement.h"
#include "sanitizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 3, INSTANCES = 2 };

static struct {
    int result;         /* the result of every call */
    size_t flush_bytes; /* the size that the flush requires */
    size_t flushes;     /* calls of flush */
    size_t record_count, instance_count;
    size_t set_configs;
    uint64_t counted, value_sum;
    char symbols[64];
} fake;

static int fake_data_properties(struct sass_abi_data_properties *params)
{
    assert_int_equal(params->struct_bytes, 40);
    params->record_count = fake.record_count;
    params->instance_count = fake.instance_count;
    return fake.result;
}

static int fake_flush(struct sass_abi_flush *params)
{
    fake.flushes++;
    if (params->struct_bytes < fake.flush_bytes)
        return SASS_ABI_PARAMETER_SIZE_NOT_SUFFICIENT;
    for (size_t i = 0; i < params->record_count; i++) {
        struct sass_abi_record *record = &params->records[i];
        record->cubin_crc = 77;
        record->function_index = 5;
        record->function_name = i == 1 ? NULL : strdup(i ? "b" : "a");
        record->pc_offset = (uint32_t)i * 16;
        for (size_t j = 0; j < params->instance_count; j++)
            record->values[j] = (struct sass_abi_value){900 + j, 10 * i + j};
    }
    return CUPTI_ABI_SUCCESS;
}

static int fake_set_config(struct sass_abi_set_config *params)
{
    assert_int_equal(params->struct_bytes, 36);
    fake.set_configs++;
    fake.counted = params->config_count;
    return fake.result;
}

static int fake_disable(struct sass_abi_disable *params)
{
    params->dropped_records = 12;
    return fake.result;
}

static struct cupti library;
static const struct sass_metrics metrics = {.cupti = &library,
                                            .data_properties = fake_data_properties,
                                            .flush = fake_flush,
                                            .set_config = fake_set_config,
                                            .disable = fake_disable};

static void on_count(void *user, const struct sass_count *count)
{
    assert_ptr_equal(user, &fake);
    assert_int_equal(count->cubin_crc, 77);
    assert_int_equal(count->function_index, 5);
    assert_int_equal(count->pc_offset % 16, 0);
    assert_in_range(count->metric_id, 900, 900 + INSTANCES - 1);
    fake.counted++;
    fake.value_sum += count->value;
    size_t size = strlen(fake.symbols);
    snprintf(fake.symbols + size, sizeof fake.symbols - size, "%s", count->symbol);
}

static struct sass_flush flush_of(size_t bytes_max)
{
    fake.counted = fake.value_sum = fake.flushes = 0;
    fake.symbols[0] = '\0';
    return (struct sass_flush){.bytes_max = bytes_max, .on_count = on_count, .user = &fake};
}

static int fake_reset(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    fake.flush_bytes = SASS_ABI_FLUSH_BYTES_SHORT;
    fake.record_count = RECORDS;
    fake.instance_count = INSTANCES;
    return 0;
}

static void every_value_of_every_record_is_handed_over(void **state)
{
    (void)state;
    struct sass_flush flush = flush_of(1 << 20);
    assert_int_equal(sass_metrics_flush(&metrics, NULL, &flush, NULL), GPUFL_OK);
    assert_int_equal(fake.flushes, 1);
    assert_int_equal(fake.counted, RECORDS * INSTANCES);
    assert_int_equal(flush.values, RECORDS * INSTANCES);
    assert_int_equal(fake.value_sum, 0 + 1 + 10 + 11 + 20 + 21);
    assert_string_equal(fake.symbols, "aabb"); /* a function without a name is "" */
}

static void a_library_that_wants_the_whole_struct_gets_it(void **state)
{
    (void)state;
    fake.flush_bytes = SASS_ABI_FLUSH_BYTES_WHOLE;
    struct sass_flush flush = flush_of(1 << 20);
    assert_int_equal(sass_metrics_flush(&metrics, NULL, &flush, NULL), GPUFL_OK);
    assert_int_equal(fake.flushes, 2);
    assert_int_equal(fake.counted, RECORDS * INSTANCES);
}

static void nothing_counted_is_not_flushed(void **state)
{
    (void)state;
    fake.record_count = 0;
    struct sass_flush flush = flush_of(1 << 20);
    assert_int_equal(sass_metrics_flush(&metrics, NULL, &flush, NULL), GPUFL_OK);
    assert_int_equal(fake.flushes, 0);
}

static void more_than_is_set_aside_is_refused_with_its_number(void **state)
{
    (void)state;
    struct problem problem;
    struct sass_flush flush = flush_of(RECORDS * 80 - 1);
    assert_int_equal(sass_metrics_flush(&metrics, NULL, &flush, &problem), GPUFL_E_LIMIT);
    assert_int_equal(flush.values, RECORDS * INSTANCES);
    flush = flush_of(RECORDS * 80);
    assert_int_equal(sass_metrics_flush(&metrics, NULL, &flush, &problem), GPUFL_OK);
    fake.record_count = SIZE_MAX / 4;
    fake.instance_count = SIZE_MAX / 2;
    flush = flush_of(1 << 20);
    assert_int_equal(sass_metrics_flush(&metrics, NULL, &flush, &problem), GPUFL_E_LIMIT);
    assert_int_equal(fake.flushes, 0);
}

static void a_failing_call_is_named(void **state)
{
    (void)state;
    struct problem problem;
    uint64_t dropped = 99;
    fake.result = PROFILER_ABI_INVALID_OPERATION;
    struct sass_flush flush = flush_of(1 << 20);
    assert_int_not_equal(sass_metrics_flush(&metrics, NULL, &flush, &problem), GPUFL_OK);
    assert_non_null(strstr(problem.text, "cuptiSassMetricsGetDataProperties"));
    assert_int_not_equal(sass_metrics_disable(&metrics, NULL, &dropped, &problem), GPUFL_OK);
    assert_non_null(strstr(problem.text, "cuptiSassMetricsDisable"));
    assert_int_equal(dropped, 99); /* results are written on success only */
    fake.result = CUPTI_ABI_SUCCESS;
    assert_int_equal(sass_metrics_disable(&metrics, NULL, &dropped, &problem), GPUFL_OK);
    assert_int_equal(dropped, 12);
}

static struct sass_metric chip_metrics[] = {{1, "smsp__sass_inst_executed", ""},
                                            {2, "smsp__sass_thread_inst_executed", ""},
                                            {3, "smsp__sass_sectors_mem_global", ""},
                                            {4, "smsp__sass_inst_executed_op_ld", ""}};
static const struct sass_metric_list chip = {chip_metrics, 4};

static void a_device_is_configured_once(void **state)
{
    (void)state;
    struct problem problem;
    struct sass_choice choice, other, more;
    assert_int_equal(sass_choice_make(&choice, &chip, "X", "smsp__sass_sectors_mem_global", NULL), GPUFL_OK);
    assert_int_equal(sass_choice_make(&other, &chip, "X", "smsp__sass_thread_inst_executed", NULL), GPUFL_OK);
    assert_int_equal(sass_choice_make(&more, &chip, "X", "default", NULL), GPUFL_OK);
    fake.result = PROFILER_ABI_OUT_OF_MEMORY;
    assert_int_not_equal(sass_metrics_configure(&metrics, 3, &chip, &choice, &problem), GPUFL_OK);
    assert_non_null(strstr(problem.text, "cuptiSassMetricsSetConfig"));
    fake.result = CUPTI_ABI_SUCCESS;
    assert_int_equal(sass_metrics_configure(&metrics, 3, &chip, &choice, &problem), GPUFL_OK);
    assert_int_equal(fake.set_configs, 2);
    assert_int_equal(fake.counted, 2); /* executed instructions are included */
    assert_int_equal(sass_metrics_configure(&metrics, 3, &chip, &choice, &problem), GPUFL_OK);
    assert_int_equal(sass_metrics_configure(&metrics, 3, &chip, &other, &problem), GPUFL_E_BUSY);
    assert_non_null(strstr(problem.text, "GPU 3"));
    assert_int_equal(sass_metrics_configure(&metrics, 3, &chip, &more, &problem), GPUFL_E_BUSY);
    assert_int_equal(fake.set_configs, 2); /* CUPTI is not called again */
    assert_int_equal(sass_metrics_configure(&metrics, 4, &chip, &other, &problem), GPUFL_OK);
    assert_int_equal(fake.set_configs, 3);
}

static void a_set_says_what_the_chip_lacks(void **state)
{
    (void)state;
    struct sass_choice choice;
    assert_int_equal(sass_choice_make(&choice, &chip, "X", NULL, NULL), GPUFL_OK);
    assert_int_equal(choice.count, 3);
    assert_int_equal(choice.chosen[2], 2);
    assert_int_equal(choice.skipped_count, 7);
    assert_string_equal(choice.skipped[0], "smsp__sass_thread_inst_executed_pred_on");
    assert_int_equal(sass_choice_make(&choice, &chip, "X", " default, default ,", NULL), GPUFL_OK);
    assert_int_equal(choice.count, 3);
    assert_int_equal(choice.skipped_count, 7);
    assert_int_equal(sass_choice_make(&choice, &chip, "X", "all-memory", NULL), GPUFL_OK);
    assert_int_equal(choice.count, 3); /* executed, sectors, op_ld */
    assert_int_equal(choice.skipped_count, 0);
}

static void a_wrong_word_names_the_nearest(void **state)
{
    (void)state;
    struct problem problem;
    struct sass_choice choice;
    assert_int_equal(sass_choice_check("defalt", &problem), GPUFL_E_INVALID);
    assert_non_null(strstr(problem.text, "did you mean \"default\"?"));
    assert_int_equal(sass_choice_check("nothing-like-it", &problem), GPUFL_E_INVALID);
    assert_null(strstr(problem.text, "did you mean"));
    assert_int_equal(sass_choice_check("default,smsp__whatever", &problem), GPUFL_OK);
    assert_int_equal(sass_choice_check("", &problem), GPUFL_OK);
    assert_int_equal(sass_choice_make(&choice, &chip, "X", "smsp__sass_inst_executd", &problem), GPUFL_E_INVALID);
    assert_non_null(strstr(problem.text, "X has no SASS metric \"smsp__sass_inst_executd\""));
    assert_non_null(strstr(problem.text, "did you mean \"smsp__sass_inst_executed\"?"));
    char endless[400];
    memset(endless, '_', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    assert_int_equal(sass_choice_check(endless, &problem), GPUFL_E_INVALID);
    assert_non_null(strstr(problem.text, "too long"));
}

static void a_chip_without_executed_instructions_is_refused(void **state)
{
    (void)state;
    struct problem problem;
    struct sass_choice choice;
    const struct sass_metric_list poor = {chip_metrics + 1, 3};
    assert_int_equal(sass_choice_make(&choice, &poor, "X", NULL, &problem), GPUFL_E_UNSUPPORTED);
    assert_non_null(strstr(problem.text, "smsp__sass_inst_executed"));
}

static void a_missing_function_is_named(void **state)
{
    (void)state;
    struct problem problem;
    struct sass_metrics bound;
    struct cupti empty = {.library = {.path = "/nowhere"}};
    assert_int_equal(sass_metrics_bind(&bound, &empty, &problem), GPUFL_E_UNSUPPORTED);
    assert_non_null(strstr(problem.text, "cuptiSassMetrics"));
}

static void real_chips_have_the_default_metrics(void **state)
{
    (void)state;
    struct cupti *cupti;
    struct sass_metrics real;
    struct name_list chips;
    struct problem problem = {""};
    if (IS_SANITIZED)
        skip();
    REQUIRE(cupti_load(&cupti, &problem) == GPUFL_OK && sass_metrics_bind(&real, cupti, &problem) == GPUFL_OK, "CUPTI");
    struct sass_metric_list list;
    REQUIRE(sass_metrics_list(&real, "GH100", &list, &problem) == GPUFL_OK, "CUPTI's profiler host");
    assert_in_range(list.count, 60, SASS_METRICS_MAX);
    struct sass_choice choice;
    assert_int_equal(sass_choice_make(&choice, &list, "GH100", NULL, &problem), GPUFL_OK);
    assert_int_equal(choice.count, 10);
    assert_int_equal(choice.skipped_count, 0);
    assert_int_equal(sass_choice_make(&choice, &list, "GH100", "all-memory", &problem), GPUFL_OK);
    assert_in_range(choice.count, 40, list.count);
    for (size_t i = 0; i < list.count; i++) {
        assert_int_not_equal(list.metrics[i].id, 0);
        assert_true(*list.metrics[i].name && *list.metrics[i].description);
    }
    sass_metric_list_free(&list);

    assert_int_equal(sass_metrics_list(&real, "GH1OO", &list, &problem), GPUFL_E_INVALID);
    assert_non_null(strstr(problem.text, "GH1OO"));
    size_t with_metrics = 0;
    assert_int_equal(profiler_host_chips(cupti, &chips, &problem), GPUFL_OK);
    for (size_t i = 0; i < chips.count; i++) {
        if (sass_metrics_list(&real, chips.names[i], &list, &problem) != GPUFL_OK)
            continue;
        with_metrics++;
        if (sass_choice_make(&choice, &list, chips.names[i], NULL, &problem) != GPUFL_OK)
            fail_msg("%s", problem.text);
        assert_int_equal(choice.skipped_count, 0);
        sass_metric_list_free(&list);
    }
    assert_in_range(with_metrics, 20, chips.count);
    name_list_free(&chips);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_value_of_every_record_is_handed_over, fake_reset),
        cmocka_unit_test_setup(a_library_that_wants_the_whole_struct_gets_it, fake_reset),
        cmocka_unit_test_setup(nothing_counted_is_not_flushed, fake_reset),
        cmocka_unit_test_setup(more_than_is_set_aside_is_refused_with_its_number, fake_reset),
        cmocka_unit_test_setup(a_failing_call_is_named, fake_reset),
        cmocka_unit_test_setup(a_device_is_configured_once, fake_reset),
        cmocka_unit_test(a_set_says_what_the_chip_lacks),
        cmocka_unit_test(a_wrong_word_names_the_nearest),
        cmocka_unit_test(a_chip_without_executed_instructions_is_refused),
        cmocka_unit_test(a_missing_function_is_named),
        cmocka_unit_test(real_chips_have_the_default_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
