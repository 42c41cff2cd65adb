/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and counters are assigned to instructions and source lines of real cubins. */
#include "golden_session.h"
#include "session_fixture.h"
#include "tool_fixture.h"

#include <math.h>

static const struct hot_line *line_find(const struct hot_code *code, const char *file, uint32_t line)
{
    for (size_t i = 0; i < code->line_count; i++) {
        const char *slash = strrchr(code->lines[i].file, '/');
        if (code->lines[i].line == line && slash && !strcmp(slash + 1, file))
            return &code->lines[i];
    }
    fail_msg("no samples or counters at %s:%u", file, line);
    return NULL;
}

static void samples_are_summed_by_the_source_line_of_their_instruction(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    const struct hot_code *code = &golden.analysis.code;
    const struct hot_line *line = line_find(code, "vector_add.cu", 6);
    assert_ptr_equal(line, &code->lines[0]);
    assert_int_equal(line->samples, 42900 + 1800);
    assert_int_equal(line->not_issued, 39000);
    assert_int_equal(line->place_count, 2);
    assert_string_equal(line->source, "        sum[i] = a[i] + b[i];");
    assert_int_equal(line->stall_count, 2);
    assert_int_equal(line->stalls[0].samples, 42000);
    assert_string_equal(golden.analysis.stalls.kinds[line->stalls[0].kind].name, "long_scoreboard");
    assert_int_equal(line_find(code, "reduction.cu", 11)->samples, 14000);
    golden_unload(&golden);
}

static void lines_add_up_to_all_samples(void **state)
{
    (void)state;
    const char *const names[] = {"pc_sampling", "deep", "deep_v1"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct golden_session golden = golden_load(names[n]);
        uint64_t samples = 0;
        for (size_t i = 0; i < golden.analysis.code.line_count; i++)
            samples += golden.analysis.code.lines[i].samples;
        assert_int_equal(samples, golden.analysis.stalls.total.samples);
        golden_unload(&golden);
    }
}

static void instructions_come_from_the_listing_and_else_are_raw_words(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    const struct hot_code *code = &golden.analysis.code;
    const struct hot_line *reduce = line_find(code, "reduction.cu", 7);
    assert_string_equal(code->places[reduce->place_first].sass, "FADD R5, R2, R5");
    assert_false(code->places[reduce->place_first].is_raw);
    const struct hot_line *add = line_find(code, "vector_add.cu", 4);
    assert_string_equal(code->places[add->place_first].sass, "0x000e300000002500 0x00000000000479c3");
    assert_true(code->places[add->place_first].is_raw);
    golden_unload(&golden);
}

static void counters_of_a_line_are_those_of_its_instructions(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("sass_metrics");
    const struct hot_line *line = line_find(&golden.analysis.code, "vector_add.cu", 6);
    assert_true(line->has_counts);
    assert_true(line->counts.inst_executed == 3 * 32768);
    assert_true(instruction_coalescing(&line->counts) == 0.25);
    assert_true(instruction_sectors_per_request(&line->counts) == 16);
    assert_true(isnan(instruction_bank_conflicts(&line->counts)));
    assert_int_equal(line->samples, 0);
    const struct hot_line *conflict = line_find(&golden.analysis.code, "reduction.cu", 12);
    assert_true(instruction_bank_conflicts(&conflict->counts) == 8);
    assert_true(conflict->counts.sectors_local == 120000);
    golden_unload(&golden);
}

static void samples_and_counters_of_one_instruction_share_a_place(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep");
    const struct hot_line *line = line_find(&golden.analysis.code, "vector_add.cu", 6);
    assert_int_equal(line->samples, 44700);
    assert_true(line->counts.inst_executed == 3 * 32768);
    assert_int_equal(line->place_count, 4); /* 0x80, 0xc0, 0xd0, 0xe0 */
    const struct code_place *both = &golden.analysis.code.places[line->place_first + 3];
    assert_int_equal(both->pc_offset, 0xe0);
    assert_int_equal(both->samples, 42900);
    assert_true(both->has_counts && both->counts.inst_executed == 32768);
    golden_unload(&golden);
}

static void inlined_code_names_its_callers(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep");
    struct code_lookup lookup;
    assert_int_equal(code_lookup_open(&lookup, golden.model, CODE_STORED), GPUFL_OK);
    struct code_function function = code_lookup_function(&lookup, 303, "_Z9distancesPKfS0_Pfi");
    assert_string_equal(function.problem, "");
    struct code_text text;
    code_lookup_at(&lookup, &function, 0x100, &text);
    assert_int_equal(text.line, 4);
    assert_non_null(strstr(text.file, "inlined.cuh"));
    assert_int_equal(text.frame_count, 3);
    assert_int_equal(text.frames[2].line, 17);
    assert_string_equal(code_source_line(golden.model, text.file, 0, 4), "    return x * x;");
    assert_null(code_source_line(golden.model, text.file, 0, 4000));
    assert_null(code_source_line(golden.model, "/nowhere.cu", 0, 1));
    code_function_close(&function);
    code_lookup_close(&lookup);
    golden_unload(&golden);
}

static void v1_lines_come_from_the_rows_and_the_line_map(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep_v1");
    assert_int_equal(line_find(&golden.analysis.code, "matmul.cu", 9)->samples, 80);
    const struct hot_line *mapped = line_find(&golden.analysis.code, "matmul.cu", 10);
    assert_int_equal(mapped->samples, 20);
    assert_string_equal(mapped->source, "  sum += b[i];");
    /* The second instruction of a merged run has the text of the first. */
    assert_string_equal(golden.analysis.code.places[mapped->place_first].sass, "LDG.E R2, [R2] ;");
    golden_unload(&golden);
}

static const struct hot_function *function_by_crc(const struct hot_code *code, uint64_t crc, uint32_t function_id)
{
    for (size_t i = 0; i < code->function_count; i++)
        if (code->functions[i].cubin_crc == crc && code->functions[i].function_id == function_id)
            return &code->functions[i];
    fail_msg("no function %u of cubin %llu", function_id, (unsigned long long)crc);
    return NULL;
}

static void code_that_cannot_be_read_is_named_with_its_reason(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep_hostile");
    const struct hot_code *code = &golden.analysis.code;
    assert_non_null(strstr(function_by_crc(code, 2, 21)->problem, "damaged"));
    assert_non_null(strstr(function_by_crc(code, 3, 22)->problem, "base64"));
    assert_non_null(strstr(function_by_crc(code, 4, 22)->problem, "exceeds the limit"));
    assert_non_null(strstr(function_by_crc(code, 5, 22)->problem, "ELF"));
    assert_string_equal(function_by_crc(code, 999, 77)->problem, "the log holds no code of it");
    assert_string_equal(function_by_crc(code, 1, 20)->problem, "the stored code has no function of this name");
    for (size_t i = 0; i < code->place_count; i++)
        if (code->places[i].pc_offset > 0x200) {
            assert_string_equal(code->places[i].sass, "");
            assert_int_equal(code->places[i].line, 0);
        }
    golden_unload(&golden);
}

static void code_that_was_not_stored_is_named_with_its_reason(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep");
    assert_string_equal(function_by_crc(&golden.analysis.code, 0xffffffff00000002u, 2)->problem,
                        "its code was not stored: larger than GPUFL_CODE_BYTES_MAX");
    golden_unload(&golden);
}

static void without_reading_code_the_rows_are_unchanged(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("pc_sampling");
    struct analysis analysis;
    assert_int_equal(analysis_make_with(&analysis, golden.model, CODE_UNREAD), GPUFL_OK);
    assert_int_equal(analysis.stalls.total.samples, 69050);
    for (size_t i = 0; i < analysis.code.place_count; i++)
        assert_int_equal(analysis.code.places[i].line, 0);
    analysis_free(&analysis);
    golden_unload(&golden);
}

static void nvdisasm_provides_text_if_the_caller_allows_running_it(void **state)
{
    const char *dir = *state;
    tool_install(dir, "printf '\\t.section\\t.text.vector_add,\"ax\",@progbits\\n"
                      "        /*00e0*/                   IMAD.WIDE R4, R9, 0x4, R4 ;\\n'");
    struct golden_session golden = golden_load("pc_sampling");
    assert_int_equal(tool_runs(dir), 0);
    struct analysis analysis;
    assert_int_equal(analysis_make_with(&analysis, golden.model, CODE_TOOLS), GPUFL_OK);
    const struct hot_line *line = line_find(&analysis.code, "vector_add.cu", 6);
    const struct code_place *place = &analysis.code.places[line->place_first + 1];
    assert_int_equal(place->pc_offset, 0xe0);
    assert_string_equal(place->sass, "IMAD.WIDE R4, R9, 0x4, R4");
    assert_false(place->is_raw);
    /* The log's listing needs no tool. */
    assert_int_equal(tool_runs(dir), 1);
    analysis_free(&analysis);
    golden_unload(&golden);
}

static void a_tool_that_fails_is_not_run_again(void **state)
{
    const char *dir = *state;
    tool_install(dir, "exit 3");
    struct golden_session golden = golden_load("deep");
    struct analysis analysis;
    assert_int_equal(analysis_make_with(&analysis, golden.model, CODE_TOOLS), GPUFL_OK);
    assert_true(analysis.code.lookup.is_without_tool);
    assert_int_equal(tool_runs(dir), 1);
    const struct hot_line *line = line_find(&analysis.code, "inlined.cu", 14);
    assert_true(analysis.code.places[line->place_first].is_raw);
    analysis_free(&analysis);
    golden_unload(&golden);
}

static void assert_code(const struct session_model *model, const char *function, gpufl_status expected,
                        const char *part)
{
    struct bytes out = {0};
    struct problem problem = {""};
    struct report_options options = {0};
    assert_int_equal(report_code(model, function, &options, &out, &problem), expected);
    const char *text = expected == GPUFL_OK ? bytes_text(&out) : problem.text;
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
    bytes_free(&out);
}

static void a_function_is_listed_by_its_name_or_part_of_it(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("deep");
    assert_code(golden.model, "vector_add", GPUFL_OK, "42,900  long_scoreboard");
    assert_code(golden.model, "dist", GPUFL_OK, "inlined.cuh:4  inlined at inlined.cuh:9 < inlined.cu:17");
    assert_code(golden.model, "_Z6reduceILi256EEvPKfPfi", GPUFL_OK, "its code was not stored");
    assert_code(golden.model, "float", GPUFL_E_INVALID, "matches 2 functions");
    assert_code(golden.model, "gemm", GPUFL_E_NOT_FOUND, "choose: vector_add");
    golden_unload(&golden);
    golden = golden_load("deep_hostile");
    assert_code(golden.model, "vector_add", GPUFL_OK, "beyond the end of the function");
    golden_unload(&golden);
    golden = golden_load("trace");
    assert_code(golden.model, "reduce", GPUFL_E_NOT_FOUND, "no samples and no counters");
    golden_unload(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_summed_by_the_source_line_of_their_instruction),
        cmocka_unit_test(lines_add_up_to_all_samples),
        cmocka_unit_test(instructions_come_from_the_listing_and_else_are_raw_words),
        cmocka_unit_test(counters_of_a_line_are_those_of_its_instructions),
        cmocka_unit_test(samples_and_counters_of_one_instruction_share_a_place),
        cmocka_unit_test(inlined_code_names_its_callers),
        cmocka_unit_test(v1_lines_come_from_the_rows_and_the_line_map),
        cmocka_unit_test(code_that_cannot_be_read_is_named_with_its_reason),
        cmocka_unit_test(code_that_was_not_stored_is_named_with_its_reason),
        cmocka_unit_test(without_reading_code_the_rows_are_unchanged),
        cmocka_unit_test_setup_teardown(nvdisasm_provides_text_if_the_caller_allows_running_it, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_tool_that_fails_is_not_run_again, fixture_setup, fixture_teardown),
        cmocka_unit_test(a_function_is_listed_by_its_name_or_part_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
