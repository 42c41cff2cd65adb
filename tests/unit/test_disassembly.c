/* SPDX-License-Identifier: Apache-2.0 */
#include "session_fixture.h"

#include "code/disassembler.h"
#include "code/disassembly.h"
#include "cubin_fixture.h"

static const char kernel_name[] = "_Z9distancesPKfS0_Pfi";
static const char inner_name[] = "$_Z9distancesPKfS0_Pfi$_Z8slow_sumPKfi";

/* Output in the form of `nvdisasm -c`: a section before the function's, the function's, and one after it; with and
 * without encodings. */
static const char listing[] =
    "\\t.headerflags\\t@\\\"EF_CUDA_SM90\\\"\\n"
    "//--------------------- .text._Z7squaresPKfPf     --------------------------\\n"
    "\\t.section\\t.text._Z7squaresPKfPf,\\\"ax\\\",@progbits\\n"
    "        /*0000*/                   NOP ;\\n"
    "\\t.section\\t.text._Z9distancesPKfS0_Pfi,\\\"ax\\\",@progbits\\n"
    "_Z9distancesPKfS0_Pfi:\\n"
    ".text._Z9distancesPKfS0_Pfi:\\n"
    "        /*0000*/                   LDC R1, c[0x0][0x28] ;           /* 0x00000a00ff017b82 */\\n"
    "                                                                    /* 0x000fe20000000800 */\\n"
    "        /*0010*/              @!P0 BRA \\`(.L_x_0) ;\\n"
    ".L_x_0:\\n"
    "        /*0020*/                   EXIT ;\\r\\n"
    "        /*0028*/                   BETWEEN ;\\n"
    "        /*0370*/                   MOV R2, R4 ;\\n"
    "        /*ffff0*/                  BEYOND ;\\n"
    "\\t.section\\t.text._Z9distancesPKfS0_Pfi_more,\\\"ax\\\",@progbits\\n"
    "        /*0030*/                   NOP ;\\n";

struct bench {
    char *dir, cache[512], tool[512];
    struct fixture_cubin fixture;
    const struct image_function *kernel;
};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    bench->dir = strdup(fixture_dir());
    fixture_path(bench->cache, bench->dir, "cache");
    fixture_path(bench->tool, bench->dir, "nvdisasm");
    assert_int_equal(mkdir(bench->cache, 0700), 0);
    fixture_cubin_open(&bench->fixture, "inlined.sm_90");
    bench->kernel = image_function_find(&bench->fixture.cubin, kernel_name);
    assert_non_null(bench->kernel);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    fixture_cubin_close(&bench->fixture);
    fixture_remove(bench->dir);
    free(bench->dir);
    free(bench);
    return 0;
}

/* Writes a look-alike nvdisasm with this shell code, which records each run. */
static void tool_write(const struct bench *bench, const char *code)
{
    char script[4096];
    int size = snprintf(script, sizeof script, "#!/bin/sh\necho ran >> '%s/runs'\n%s\n", bench->dir, code);
    fixture_write(bench->dir, "nvdisasm", script, (size_t)size);
    assert_int_equal(chmod(bench->tool, 0755), 0);
}

static size_t tool_runs(const struct bench *bench)
{
    size_t size = 0;
    if (!fixture_exists(bench->dir, "runs"))
        return 0;
    free(fixture_read(bench->dir, "runs", &size));
    return size / 4;
}

static void tool_write_listing(const struct bench *bench)
{
    char code[3500];
    snprintf(code, sizeof code, "printf \"%s\"", listing);
    tool_write(bench, code);
}

static struct problem read_with(const struct bench *bench, struct disassembly *disassembly,
                                const struct image_function *function, const char *cache, unsigned time_limit_ms)
{
    struct problem problem = {"unset"};
    struct disassembly_options options = {.tool = bench->tool, .cache_dir = cache, .time_limit_ms = time_limit_ms};
    assert_int_equal(disassembly_read(disassembly, &bench->fixture.cubin, function, &options, &problem), GPUFL_OK);
    assert_int_equal(disassembly->count, function->size / 16);
    return problem;
}

static void assert_words_only(const struct bench *bench, const char *reason, unsigned time_limit_ms)
{
    struct disassembly disassembly;
    struct problem problem = read_with(bench, &disassembly, bench->kernel, bench->cache, time_limit_ms);
    if (!strstr(problem.text, reason))
        fail_msg("'%s' does not say: %s", problem.text, reason);
    assert_int_equal(disassembly.text_count, 0);
    for (size_t i = 0; i < disassembly.count; i++) {
        assert_null(disassembly.instructions[i].text);
        assert_int_equal(disassembly.instructions[i].pc, 16 * i);
        assert_int_equal(disassembly.instructions[i].size, 16);
    }
    disassembly_free(&disassembly);
}

static void instructions_get_the_text_of_their_section(void **state)
{
    struct bench *bench = *state;
    tool_write_listing(bench);
    struct disassembly disassembly;
    struct problem problem = read_with(bench, &disassembly, bench->kernel, "", 0);
    assert_string_equal(problem.text, "");
    assert_int_equal(disassembly.text_count, 4);
    assert_string_equal(disassembly.instructions[0].text, "LDC R1, c[0x0][0x28]");
    assert_string_equal(disassembly.instructions[1].text, "@!P0 BRA `(.L_x_0)");
    assert_string_equal(disassembly.instructions[2].text, "EXIT");
    assert_null(disassembly.instructions[3].text);
    assert_string_equal(disassembly_at(&disassembly, 0x370)->text, "MOV R2, R4");
    assert_null(disassembly_at(&disassembly, bench->kernel->size));
    disassembly_free(&disassembly);
}

static void a_device_function_is_read_from_its_kernels_listing(void **state)
{
    struct bench *bench = *state;
    tool_write_listing(bench);
    const struct image_function *inner = image_function_find(&bench->fixture.cubin, inner_name);
    assert_non_null(inner);
    struct disassembly disassembly;
    read_with(bench, &disassembly, inner, "", 0);
    assert_int_equal(disassembly.text_count, 1);
    assert_string_equal(disassembly.instructions[0].text, "MOV R2, R4");
    disassembly_free(&disassembly);
}

static void the_tool_is_given_the_cubin_and_the_functions_index(void **state)
{
    struct bench *bench = *state;
    char code[1024], line[64];
    snprintf(code, sizeof code, "echo \"$1 $2 $3\" > '%s/args'; cp \"$4\" '%s/given'", bench->dir, bench->dir);
    tool_write(bench, code);
    struct disassembly disassembly;
    read_with(bench, &disassembly, bench->kernel, "", 0);
    disassembly_free(&disassembly);
    size_t size;
    char *args = fixture_read(bench->dir, "args", &size);
    snprintf(line, sizeof line, "-c -fun %u\n", (unsigned)bench->kernel->symbol_index);
    assert_string_equal(args, line);
    free(args);
    char *given = fixture_read(bench->dir, "given", &size);
    assert_int_equal(size, bench->fixture.size);
    assert_memory_equal(given, bench->fixture.bytes, size);
    free(given);
}

static void the_tool_runs_once_and_again_after_it_changes(void **state)
{
    struct bench *bench = *state;
    tool_write_listing(bench);
    struct disassembly disassembly;
    for (int i = 0; i < 3; i++) {
        read_with(bench, &disassembly, bench->kernel, bench->cache, 0);
        assert_int_equal(disassembly.text_count, 4);
        disassembly_free(&disassembly);
    }
    assert_int_equal(tool_runs(bench), 1);
    char code[3600];
    snprintf(code, sizeof code, "# another version\nprintf \"%s\"", listing);
    tool_write(bench, code);
    read_with(bench, &disassembly, bench->kernel, bench->cache, 0);
    disassembly_free(&disassembly);
    assert_int_equal(tool_runs(bench), 2);
    /* No partial file is left, and no other user may read the files. */
    DIR *dir = opendir(bench->cache);
    assert_non_null(dir);
    unsigned files = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        assert_null(strstr(entry->d_name, ".part"));
        struct stat status;
        assert_int_equal(fstatat(dirfd(dir), entry->d_name, &status, 0), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        files++;
    }
    closedir(dir);
    assert_int_equal(files, 2);
}

static void a_failing_tool_leaves_raw_words_and_its_error(void **state)
{
    struct bench *bench = *state;
    tool_write(bench, "echo 'nvdisasm fatal : unsupported' >&2; exit 3");
    assert_words_only(bench, "exit code 3): nvdisasm fatal : unsupported", 0);
    tool_write(bench, "kill -9 $$");
    assert_words_only(bench, "signal", 0);
    assert_int_equal(tool_runs(bench), 2);
}

static void a_tool_that_hangs_is_stopped(void **state)
{
    struct bench *bench = *state;
    tool_write(bench, "echo '        /*0000*/ NOP ;'; sleep 1000");
    assert_words_only(bench, "took longer than 200 ms", 200);
    /* A tool that closes its output but does not exit. */
    tool_write(bench, "exec >&- 2>&-; sleep 1000");
    assert_words_only(bench, "took longer than 200 ms", 200);
}

static void garbage_printed_by_the_tool_is_ignored(void **state)
{
    struct bench *bench = *state;
    tool_write(bench, "head -c 100000 /dev/zero");
    assert_words_only(bench, "no text", 0);
    tool_write(bench, "echo '/*zz*/ NOP ;'; echo '/*'; echo '/*00000000000000000000*/ NOP'; echo '/*0000*/ ;'; echo");
    assert_words_only(bench, "no instruction of", 0);
    tool_write(bench, "");
    assert_words_only(bench, "no text", 0);
    assert_int_equal(tool_runs(bench), 3);
}

static void a_missing_tool_leaves_raw_words(void **state)
{
    struct bench *bench = *state;
    assert_words_only(bench, "cannot run", 0);
}

static void the_tool_is_found_in_the_documented_places(void **state)
{
    struct bench *bench = *state;
    tool_write(bench, "");
    char path[PATH_MAX], other[512];
    struct problem problem = {""};
    setenv("GPUFL_NVDISASM", bench->tool, 1);
    assert_int_equal(disassembler_find(IMAGE_NVIDIA, path, &problem), GPUFL_OK);
    assert_string_equal(path, bench->tool);
    setenv("GPUFL_NVDISASM", bench->cache, 1);
    assert_int_equal(disassembler_find(IMAGE_NVIDIA, path, &problem), GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, "GPUFL_NVDISASM"));
    unsetenv("GPUFL_NVDISASM");

    char *search_path = strdup(getenv("PATH"));
    setenv("PATH", bench->dir, 1);
    assert_int_equal(disassembler_find(IMAGE_NVIDIA, path, &problem), GPUFL_OK);
    assert_string_equal(path, bench->tool);

    /* A Python with Triton: bin/ in PATH, the tool below lib/. */
    char command[2048];
    fixture_path(other, bench->dir, "env");
    snprintf(
        command, sizeof command,
        "PATH=/bin:/usr/bin; d='%s/lib/python3.12/site-packages/triton/backends/nvidia/bin'; mkdir -p \"$d\" '%s/bin' "
        "&& mv '%s' \"$d\"",
        other, other, bench->tool);
    assert_int_equal(system(command), 0);
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
    char bin[600];
    snprintf(bin, sizeof bin, "%s/bin", other);
    setenv("PATH", bin, 1);
    if (access("/usr/local/cuda/bin/nvdisasm", X_OK) != 0) {
        assert_int_equal(disassembler_find(IMAGE_NVIDIA, path, &problem), GPUFL_OK);
        assert_non_null(strstr(path, "triton/backends/nvidia/bin/nvdisasm"));
    }
    setenv("PATH", search_path, 1);
    free(search_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(instructions_get_the_text_of_their_section, setup, teardown),
        cmocka_unit_test_setup_teardown(a_device_function_is_read_from_its_kernels_listing, setup, teardown),
        cmocka_unit_test_setup_teardown(the_tool_is_given_the_cubin_and_the_functions_index, setup, teardown),
        cmocka_unit_test_setup_teardown(the_tool_runs_once_and_again_after_it_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failing_tool_leaves_raw_words_and_its_error, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tool_that_hangs_is_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(garbage_printed_by_the_tool_is_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_tool_leaves_raw_words, setup, teardown),
        cmocka_unit_test_setup_teardown(the_tool_is_found_in_the_documented_places, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
