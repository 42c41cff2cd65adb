/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cubin_fixture.h"

static void put(uint8_t *bytes, size_t offset, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        bytes[offset + i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *bytes, size_t offset, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)bytes[offset + i] << (8 * i);
    return value;
}

static size_t section_header(const uint8_t *bytes, uint32_t index)
{
    return (size_t)get(bytes, 40, 8) + (size_t)index * 64;
}

static void assert_refused(const uint8_t *bytes, size_t size, const char *word)
{
    struct code_image cubin;
    struct problem problem = {""};
    assert_int_equal(image_open(&cubin, bytes, size, &problem), GPUFL_E_INVALID);
    if (!strstr(problem.text, word))
        fail_msg("'%s' does not name %s", problem.text, word);
    assert_null(cubin.sections);
    assert_null(cubin.functions);
}

static void the_architecture_is_named(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"vector_add.sm_80", "sm_80"}, {"vector_add.sm_90", "sm_90"}, {"vector_add.sm_100", "sm_100"}};
    for (size_t i = 0; i < 3; i++) {
        struct fixture_cubin fixture;
        fixture_cubin_open(&fixture, names[i][0]);
        assert_string_equal(fixture.cubin.arch, names[i][1]);
        fixture_cubin_close(&fixture);
    }
}

static void older_toolkits_keep_the_architecture_in_the_low_byte(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = fixture_cubin_read("vector_add.sm_90", &size);
    struct code_image cubin;
    bytes[8] = 7;
    put(bytes, 48, 0x5a055a, 4);
    assert_int_equal(image_open(&cubin, bytes, size, NULL), GPUFL_OK);
    assert_string_equal(cubin.arch, "sm_90");
    image_close(&cubin);
    put(bytes, 48, 0x5a0d5a, 4);
    assert_int_equal(image_open(&cubin, bytes, size, NULL), GPUFL_OK);
    assert_string_equal(cubin.arch, "sm_90a");
    image_close(&cubin);
    bytes[8] = 8;
    put(bytes, 48, 0x600640a, 4);
    assert_int_equal(image_open(&cubin, bytes, size, NULL), GPUFL_OK);
    assert_string_equal(cubin.arch, "sm_100a");
    image_close(&cubin);
    free(bytes);
}

static void kernels_and_device_functions_are_found(void **state)
{
    (void)state;
    struct fixture_cubin fixture;
    fixture_cubin_open(&fixture, "inlined.sm_90");
    const struct code_image *cubin = &fixture.cubin;
    assert_int_equal(cubin->function_count, 4);
    const struct image_function *kernel = image_function_find(cubin, "_Z9distancesPKfS0_Pfi");
    assert_non_null(kernel);
    assert_true(kernel->is_entry);
    assert_int_equal(kernel->offset, 0);
    assert_int_equal(kernel->size, 3968);
    assert_ptr_equal(image_function_at(cubin, kernel->symbol_index), kernel);
    const struct image_function *inner = image_function_find(cubin, "$_Z9distancesPKfS0_Pfi$_Z8slow_sumPKfi");
    assert_non_null(inner);
    assert_false(inner->is_entry);
    assert_int_equal(inner->section, kernel->section);
    assert_int_equal(inner->offset, 0x370);
    assert_ptr_equal(image_function_host(cubin, inner), kernel);
    assert_ptr_equal(image_function_host(cubin, kernel), kernel);
    assert_null(image_function_find(cubin, "_Z9distances"));
    assert_null(image_function_at(cubin, 1));
    fixture_cubin_close(&fixture);
}

static void instructions_are_read_up_to_the_functions_end(void **state)
{
    (void)state;
    struct fixture_cubin fixture;
    fixture_cubin_open(&fixture, "vector_add.sm_90");
    const struct image_function *function = image_function_find(&fixture.cubin, "vector_add");
    assert_non_null(function);
    char words[IMAGE_WORDS_SIZE], expected[IMAGE_WORDS_SIZE];
    assert_true(image_words_print(&fixture.cubin, function, 0, 16, words));
    const uint8_t *code = image_code(&fixture.cubin, function);
    snprintf(expected, sizeof expected, "0x%016llx 0x%016llx", (unsigned long long)get(code, 8, 8),
             (unsigned long long)get(code, 0, 8));
    assert_string_equal(words, expected);
    assert_true(image_words_print(&fixture.cubin, function, function->size - 16, 16, words));
    assert_false(image_words_print(&fixture.cubin, function, function->size - 15, 16, words));
    assert_string_equal(words, "");
    assert_false(image_words_print(&fixture.cubin, function, function->size, 16, words));
    assert_false(image_words_print(&fixture.cubin, function, UINT64_MAX, 16, words));
    fixture_cubin_close(&fixture);
}

static void ptx_and_toolkit_are_returned_if_present(void **state)
{
    (void)state;
    struct fixture_cubin fixture;
    char toolkit[128];
    struct bytes ptx = {0};
    fixture_cubin_open(&fixture, "vector_add.sm_90");
    assert_true(cubin_has_ptx(&fixture.cubin));
    cubin_ptx(&fixture.cubin, &ptx);
    assert_non_null(strstr(bytes_text(&ptx), "\n.target sm_90\n"));
    assert_non_null(strstr(bytes_text(&ptx), ".visible .entry vector_add(\n"));
    cubin_toolkit(&fixture.cubin, toolkit, sizeof toolkit);
    assert_string_equal(toolkit, "ptxas Cuda compilation tools, release 13.0, V13.0.88");
    bytes_free(&ptx);
    fixture_cubin_close(&fixture);

    fixture_cubin_open(&fixture, "no_lines.sm_90");
    assert_false(cubin_has_ptx(&fixture.cubin));
    cubin_ptx(&fixture.cubin, &ptx);
    assert_int_equal(ptx.size, 0);
    fixture_cubin_close(&fixture);

    fixture_cubin_open(&fixture, "linked.sm_90");
    assert_true(cubin_has_ptx(&fixture.cubin));
    fixture_cubin_close(&fixture);
}

static void a_file_that_is_not_a_cubin_is_rejected_with_the_offset(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = fixture_cubin_read("vector_add.sm_90", &size);
    assert_refused(bytes, 0, "ELF header");
    assert_refused(bytes, 63, "63 bytes");
    bytes[0] = 'x';
    assert_refused(bytes, size, "offset 0");
    bytes[0] = 0x7f;
    bytes[4] = 1;
    assert_refused(bytes, size, "offset 4");
    bytes[4] = 2;
    put(bytes, 18, 62, 2);
    assert_refused(bytes, size, "machine 62");
    put(bytes, 18, 190, 2);
    put(bytes, 40, size, 8);
    assert_refused(bytes, size, "section headers");
    free(bytes);
}

static void damaged_sections_and_symbols_are_rejected_with_the_offset(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = fixture_cubin_read("vector_add.sm_90", &size);
    struct code_image cubin;
    assert_int_equal(image_open(&cubin, bytes, size, NULL), GPUFL_OK);
    uint32_t symbol_table = cubin.symbol_table;
    uint32_t symbol = cubin.functions[0].symbol_index;
    size_t symbol_at = (size_t)cubin.sections[symbol_table].offset + (size_t)symbol * 24;
    image_close(&cubin);

    size_t header = section_header(bytes, 5);
    uint64_t before = get(bytes, header + 32, 8);
    put(bytes, header + 32, UINT64_MAX - 8, 8);
    assert_refused(bytes, size, "section 5");
    put(bytes, header + 32, before, 8);

    before = get(bytes, header, 4);
    put(bytes, header, 0xfffffff0, 4);
    assert_refused(bytes, size, "name of section 5");
    put(bytes, header, before, 4);

    before = get(bytes, symbol_at + 16, 8);
    put(bytes, symbol_at + 16, 1 << 20, 8);
    assert_refused(bytes, size, "beyond its section");
    put(bytes, symbol_at + 16, before, 8);

    before = get(bytes, symbol_at, 4);
    put(bytes, symbol_at, 0xfffffff0, 4);
    assert_refused(bytes, size, "string table");
    put(bytes, symbol_at, before, 4);

    assert_int_equal(image_open(&cubin, bytes, size, NULL), GPUFL_OK);
    image_close(&cubin);
    free(bytes);
}

static void a_count_of_sections_beyond_16_bits_is_read_from_the_first_section(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = fixture_cubin_read("vector_add.sm_90", &size);
    uint64_t count = get(bytes, 60, 2), names = get(bytes, 62, 2);
    put(bytes, 60, 0, 2);
    put(bytes, 62, 0xffff, 2);
    put(bytes, section_header(bytes, 0) + 32, count, 8);
    put(bytes, section_header(bytes, 0) + 40, names, 4);
    struct code_image cubin;
    assert_int_equal(image_open(&cubin, bytes, size, NULL), GPUFL_OK);
    assert_int_equal(cubin.section_count, count);
    assert_non_null(image_function_find(&cubin, "vector_add"));
    image_close(&cubin);
    put(bytes, section_header(bytes, 0) + 32, UINT64_MAX, 8);
    assert_refused(bytes, size, "beyond the end");
    free(bytes);
}

static void every_truncation_is_survived(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = fixture_cubin_read("vector_add.sm_80", &size);
    size_t accepted = 0;
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1);
        assert_non_null(exact);
        memcpy(exact, bytes, cut);
        struct code_image cubin;
        if (image_open(&cubin, exact, cut, NULL) == GPUFL_OK) {
            accepted++;
            image_close(&cubin);
        }
        free(exact);
    }
    /* Program headers are at the end, and nothing here needs them. */
    assert_true(accepted < 512);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_architecture_is_named),
        cmocka_unit_test(older_toolkits_keep_the_architecture_in_the_low_byte),
        cmocka_unit_test(kernels_and_device_functions_are_found),
        cmocka_unit_test(instructions_are_read_up_to_the_functions_end),
        cmocka_unit_test(ptx_and_toolkit_are_returned_if_present),
        cmocka_unit_test(a_file_that_is_not_a_cubin_is_rejected_with_the_offset),
        cmocka_unit_test(damaged_sections_and_symbols_are_rejected_with_the_offset),
        cmocka_unit_test(a_count_of_sections_beyond_16_bits_is_read_from_the_first_section),
        cmocka_unit_test(every_truncation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
