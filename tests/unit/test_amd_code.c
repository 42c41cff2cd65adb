/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's instructions, from llvm-objdump's output to the report of a session. After an intended change of the report:
 * GPUFL_UPDATE_GOLDEN=1 test_amd_code, then read the diff. */
#include "golden_session.h"
#include "session_fixture.h"
#include "tool_fixture.h"

#include "analysis/code_listings.h"
#include "analysis/kernel_resources.h"
#include "code/disassembler.h"
#include "code_object_fixture.h"

static void objdump_install(const char *dir, const char *code)
{
    tool_install_as(dir, "llvm-objdump", "GPUFL_LLVM_OBJDUMP", code);
}

/* A tool that prints what the real one printed when the listing was recorded. */
static void recorded_tool_install(const char *dir, const char *target)
{
    char code[700];
    snprintf(code, sizeof code, "cat '%s/tests/recordings/code_objects/listing.%s.txt'", SOURCE_DIR, target);
    objdump_install(dir, code);
}

static struct problem read_function(const struct fixture_object *fixture, const char *name,
                                    struct disassembly *disassembly)
{
    struct problem problem = {"unset"};
    const struct image_function *function = image_function_find(&fixture->image, name);
    assert_non_null(function);
    assert_int_equal(disassembly_read(disassembly, &fixture->image, function, NULL, &problem), GPUFL_OK);
    return problem;
}

static void instructions_of_every_size_follow_each_other(void **state)
{
    const char *dir = *state;
    static const struct {
        const char *target, *function, *first, *branch;
        uint64_t branch_pc;
        size_t count;
    } cases[] = {
        {"gfx90a", "vector_add", "s_load_dword s0, s[4:5], 0x18", "s_cbranch_execz 27 <vector_add+0x8c>", 0x1c, 28},
        {"gfx90a", "block_sum", "s_load_dwordx4 s[0:3], s[4:5], 0x0", "s_cbranch_execz 6 <block_sum+0x74>", 0x58, 101},
        {"gfx1100", "vector_add", "s_load_b32 s2, s[0:1], 0x18", "s_cbranch_execz 30 <vector_add+0x9c>", 0x20, 30},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[32];
        struct fixture_object fixture;
        struct disassembly disassembly;
        snprintf(name, sizeof name, "kernels.%s", cases[i].target);
        recorded_tool_install(dir, cases[i].target);
        fixture_object_open(&fixture, name);
        struct problem problem = read_function(&fixture, cases[i].function, &disassembly);
        assert_string_equal(problem.text, "");
        assert_int_equal(disassembly.count, cases[i].count);
        assert_int_equal(disassembly.text_count, cases[i].count);
        assert_string_equal(disassembly.instructions[0].text, cases[i].first);
        assert_int_equal(disassembly.instructions[0].size, 8);
        assert_string_equal(disassembly_at(&disassembly, cases[i].branch_pc)->text, cases[i].branch);
        assert_ptr_equal(disassembly_at(&disassembly, 4), &disassembly.instructions[0]);
        uint64_t at = 0;
        for (size_t k = 0; k < disassembly.count; at += disassembly.instructions[k++].size)
            assert_int_equal(disassembly.instructions[k].pc, at);
        const struct image_function *function = image_function_find(&fixture.image, cases[i].function);
        assert_int_equal(at, function->size);
        assert_null(disassembly_at(&disassembly, function->size));
        disassembly_free(&disassembly);
        fixture_object_close(&fixture);
    }
}

static void the_tool_is_asked_for_one_function_of_the_right_target(void **state)
{
    const char *dir = *state;
    char code[700];
    snprintf(code, sizeof code, "echo \"$*\" > '%s/args'", dir);
    objdump_install(dir, code);
    struct fixture_object fixture;
    struct disassembly disassembly;
    fixture_object_open(&fixture, "kernels.gfx90a");
    struct problem problem = read_function(&fixture, "block_sum", &disassembly);
    assert_non_null(strstr(problem.text, "llvm-objdump printed no text"));
    disassembly_free(&disassembly);
    size_t size;
    char *args = fixture_read(dir, "args", &size);
    static const char begin[] = "--disassemble --mcpu=gfx90a --start-address=0x1a00 --stop-address=0x1bf0 ";
    if (strncmp(args, begin, sizeof begin - 1) != 0)
        fail_msg("%s", args);
    free(args);
    fixture_object_close(&fixture);
}

/* A line with a wrong address or a wrong encoding is not used for any instruction. */
static void output_that_does_not_match_the_code_is_ignored(void **state)
{
    const char *dir = *state;
    struct fixture_object fixture;
    struct disassembly disassembly;
    fixture_object_open(&fixture, "kernels.gfx90a");
    static const char *const lines[] = {
        "\\ts_nop 0 // 000000001900: C0020003 00000018", /* another encoding */
        "\\ts_nop 0 // 000000001904: 00000018 00000000", /* of two instructions */
        "\\ts_nop 0 // 000000001990: BF800000",          /* after the function */
        "\\ts_nop 0 // 0000000018FC: BF800000",          /* before it */
        "\\ts_nop 0 // 1900 C0020002 00000018",
        "\\ts_nop 0 // 000000001900:",
        "\\ts_nop 0 // 00000000000000001900: C0020002",
        "// 000000001900: C0020002 00000018",
        "\\ts_nop 0",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char code[256];
        snprintf(code, sizeof code, "printf '%s\\n'", lines[i]);
        objdump_install(dir, code);
        struct problem problem = read_function(&fixture, "vector_add", &disassembly);
        if (disassembly.text_count)
            fail_msg("line %zu is believed: %s", i, disassembly.instructions[0].text);
        assert_non_null(strstr(problem.text, "no instruction of vector_add"));
        assert_int_equal(disassembly.count, 0x90 / 4);
        disassembly_free(&disassembly);
    }
    /* Known instructions are listed among unknown ones of the smallest size; a second line for the same address is
     * ignored; and no text controls the terminal. */
    objdump_install(dir, "printf '\\tone\\033[31m // 000000001908: D2000000 04011006 <x\\033>\\n"
                         "\\ttwo // 000000001908: D2000000 04011006\\n\\tlate // 000000001900: C0020002 00000018\\n'");
    read_function(&fixture, "vector_add", &disassembly);
    assert_int_equal(disassembly.text_count, 1);
    assert_int_equal(disassembly.count, 0x90 / 4 - 1);
    assert_string_equal(disassembly.instructions[2].text, "one [31m <x >");
    assert_int_equal(disassembly.instructions[3].pc, 0x10);
    disassembly_free(&disassembly);
    fixture_object_close(&fixture);
}

static void a_tool_that_does_not_support_the_target_is_reported(void **state)
{
    const char *dir = *state;
    struct fixture_object fixture;
    struct disassembly disassembly;
    fixture_object_open(&fixture, "kernels.gfx1100");
    static const char *const endings[] = {"exit 0", "kill -6 $$", "cat listing"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char code[256];
        snprintf(code, sizeof code,
                 "echo \"'gfx1100' is not a recognized processor for this target (ignoring processor)\" >&2; %s",
                 endings[i]);
        objdump_install(dir, code);
        struct problem problem = read_function(&fixture, "vector_add", &disassembly);
        assert_int_equal(disassembly.text_count, 0);
        if (!strstr(problem.text, "does not support gfx1100") || !strstr(problem.text, "GPUFL_LLVM_OBJDUMP"))
            fail_msg("%s", problem.text);
        disassembly_free(&disassembly);
    }
    fixture_object_close(&fixture);
}

static void the_tool_is_found_in_the_documented_places(void **state)
{
    const char *dir = *state;
    char path[PATH_MAX], expected[600], command[2048];
    struct problem problem = {""};
    char *search_path = strdup(getenv("PATH"));
    objdump_install(dir, "");
    assert_int_equal(disassembler_find(IMAGE_AMD, path, &problem), GPUFL_OK);
    assert_true(disassembler_is_named(IMAGE_AMD) && !disassembler_is_named(IMAGE_NVIDIA));
    setenv("GPUFL_LLVM_OBJDUMP", "/nowhere", 1);
    assert_int_equal(disassembler_find(IMAGE_AMD, path, &problem), GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, "GPUFL_LLVM_OBJDUMP"));
    unsetenv("GPUFL_LLVM_OBJDUMP");

    /* ROCm's before all others, then the highest version. */
    snprintf(command, sizeof command,
             "cd '%s' && mkdir -p rocm/llvm/bin && cp llvm-objdump rocm/llvm/bin && cp llvm-objdump llvm-objdump-9 && "
             "cp llvm-objdump llvm-objdump-14 && cp llvm-objdump llvm-objdump-19",
             dir);
    assert_int_equal(system(command), 0);
    snprintf(expected, sizeof expected, "%s/rocm", dir);
    setenv("ROCM_PATH", expected, 1);
    setenv("PATH", dir, 1);
    assert_int_equal(disassembler_find(IMAGE_AMD, path, &problem), GPUFL_OK);
    snprintf(expected, sizeof expected, "%s/rocm/llvm/bin/llvm-objdump", dir);
    assert_string_equal(path, expected);
    unsetenv("ROCM_PATH");
    if (access("/opt/rocm/llvm/bin/llvm-objdump", X_OK) != 0) {
        assert_int_equal(disassembler_find(IMAGE_AMD, path, &problem), GPUFL_OK);
        snprintf(expected, sizeof expected, "%s/llvm-objdump-19", dir);
        assert_string_equal(path, expected);
    }
    setenv("PATH", search_path, 1);
    free(search_path);
}

static void assert_golden(const char *name, struct bytes *actual)
{
    char dir[512];
    snprintf(dir, sizeof dir, "%s/tests/golden", SOURCE_DIR);
    if (getenv("GPUFL_UPDATE_GOLDEN"))
        fixture_write(dir, name, actual->data, actual->size);
    size_t size;
    char *expected = fixture_read(dir, name, &size);
    if (size != actual->size || memcmp(expected, actual->data, size) != 0)
        fail_msg("%s differs; the report now:\n%s", name, bytes_text(actual));
    free(expected);
}

static struct bytes code_report(const struct session_model *model, const char *function, bool may_run_tools)
{
    struct bytes out = {0};
    struct problem problem = {""};
    struct report_options options = {.columns = 100, .may_run_tools = may_run_tools};
    if (report_code(model, function, &options, &out, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    return out;
}

static void both_kernels_are_reported_as_isa_with_their_registers(void **state)
{
    const char *dir = *state;
    recorded_tool_install(dir, "gfx90a");
    struct golden_session golden = golden_load("amd_code");
    static const char *const names[] = {"vector_add", "block_sum"};
    for (size_t i = 0; i < 2; i++) {
        char file[64];
        struct bytes report = code_report(golden.model, names[i], true);
        snprintf(file, sizeof file, "amd_code.%s.txt", names[i]);
        assert_golden(file, &report);
        bytes_free(&report);
    }
    /* Without a tool the report shows the encodings, and everything else. */
    struct bytes report = code_report(golden.model, "vector_add", false);
    assert_non_null(strstr(bytes_text(&report), " 6 VGPRs · 9 SGPRs "));
    assert_non_null(strstr(bytes_text(&report), "\n       4  0x00000018\n"));
    assert_non_null(strstr(bytes_text(&report), "kernels.cl:18  c[i] = a[i] + scaled(b[i], 2.0f);"));
    bytes_free(&report);
    golden_unload(&golden);
}

static void kernels_that_ran_are_listed_without_samples_longest_first(void **state)
{
    (void)state;
    struct golden_session golden = golden_load("amd_code");
    const struct hot_code *code = &golden.analysis.code;
    assert_int_equal(code->function_count, 2);
    assert_string_equal(code->functions[0].symbol, "block_sum");
    assert_string_equal(code->functions[0].name, "block_sum.kd");
    assert_string_equal(code->functions[1].symbol, "vector_add");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(code->functions[i].vendor, IMAGE_AMD);
        assert_int_equal(code->functions[i].function_id, ID_UNKNOWN);
        assert_int_equal(code->functions[i].cubin_crc, 0x90a);
        assert_string_equal(code->functions[i].problem, "");
    }
    assert_int_equal(code->line_count, 0);
    golden_unload(&golden);
}

static void a_session_gets_the_text_of_the_kernels_that_ran(void **state)
{
    const char *dir = *state;
    char command[1200], session[512];
    recorded_tool_install(dir, "gfx90a");
    snprintf(command, sizeof command, "cp -r '%s/tests/golden/amd_code' '%s/session'", SOURCE_DIR, dir);
    assert_int_equal(system(command), 0);
    fixture_path(session, dir, "session");
    const struct code_listings_options options = {.time_limit_ms = 60000};
    struct code_listings result;
    struct problem problem = {""};
    if (code_listings_add(session, &options, &result, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    assert_int_equal(result.added, 2);
    assert_int_equal(code_listings_add(session, &options, &result, &problem), GPUFL_OK);
    assert_int_equal(result.present, 2);
    assert_int_equal(tool_runs(dir), 2);

    /* Now the tool is not needed, and the report is the same. */
    struct session_model *model;
    assert_int_equal(session_load(&model, session, &problem), GPUFL_OK);
    struct bytes report = code_report(model, "block_sum", false);
    assert_golden("amd_code.block_sum.txt", &report);
    bytes_free(&report);
    struct code_lookup lookup;
    struct code_text text;
    assert_int_equal(code_lookup_open(&lookup, model, CODE_STORED), GPUFL_OK);
    struct code_function function = code_lookup_function(&lookup, 0x90a, "vector_add");
    code_lookup_at(&lookup, &function, 0, &text);
    assert_string_equal(text.words, "0xc0020002 0x00000018");
    assert_false(text.is_raw);
    assert_int_equal(code_function_next(&function, 0), 8);
    assert_int_equal(code_function_next(&function, 0x10), 0x14);
    code_function_close(&function);
    code_lookup_close(&lookup);
    session_free(model);
}

/* A server processes uploaded code only with a tool that its operator configured, and only for that vendor's code. */
static void a_tool_for_nvidias_code_does_not_allow_one_for_amds(void **state)
{
    const char *dir = *state;
    char *search_path = strdup(getenv("PATH"));
    recorded_tool_install(dir, "gfx90a");
    tool_install(dir, "exit 1");
    struct golden_session golden = golden_load("amd_code");
    for (int is_named = 0; is_named < 2; is_named++) {
        char tool[512];
        fixture_path(tool, dir, "llvm-objdump");
        setenv("GPUFL_LLVM_OBJDUMP", is_named ? tool : "", 1);
        setenv("PATH", is_named ? search_path : dir, 1); /* it would be found there */
        struct code_lookup lookup;
        struct code_text text;
        assert_int_equal(code_lookup_open(&lookup, golden.model, CODE_NAMED_TOOLS), GPUFL_OK);
        struct code_function function = code_lookup_function(&lookup, 0x90a, "vector_add");
        code_lookup_at(&lookup, &function, 0, &text);
        assert_int_equal(text.is_raw, !is_named);
        assert_int_equal(lookup.tool_runs, is_named);
        code_function_close(&function);
        code_lookup_close(&lookup);
    }
    setenv("PATH", search_path, 1);
    free(search_path);
    golden_unload(&golden);
}

static void a_missing_tool_is_named(void **state)
{
    const char *dir = *state;
    char command[1200], session[512];
    snprintf(command, sizeof command, "cp -r '%s/tests/golden/amd_code' '%s/session'", SOURCE_DIR, dir);
    assert_int_equal(system(command), 0);
    fixture_path(session, dir, "session");
    setenv("GPUFL_LLVM_OBJDUMP", "/nowhere/llvm-objdump", 1);
    const struct code_listings_options options = {.time_limit_ms = 60000};
    struct code_listings result;
    struct problem problem = {""};
    assert_int_equal(code_listings_add(session, &options, &result, &problem), GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, "GPUFL_LLVM_OBJDUMP"));
    assert_int_equal(result.without_tool, 2);
}

static int teardown(void **state)
{
    unsetenv("GPUFL_LLVM_OBJDUMP");
    unsetenv("GPUFL_NVDISASM");
    unsetenv("XDG_CACHE_HOME");
    return fixture_teardown(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(instructions_of_every_size_follow_each_other),
        TEST(the_tool_is_asked_for_one_function_of_the_right_target),
        TEST(output_that_does_not_match_the_code_is_ignored),
        TEST(a_tool_that_does_not_support_the_target_is_reported),
        TEST(the_tool_is_found_in_the_documented_places),
        TEST(both_kernels_are_reported_as_isa_with_their_registers),
        TEST(kernels_that_ran_are_listed_without_samples_longest_first),
        TEST(a_session_gets_the_text_of_the_kernels_that_ran),
        TEST(a_tool_for_nvidias_code_does_not_allow_one_for_amds),
        TEST(a_missing_tool_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
