/* SPDX-License-Identifier: Apache-2.0 */
/* AMDGPU code objects: kernels, their descriptors and metadata, their lines; and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "code/amdgpu.h"
#include "code/line_table.h"
#include "code_object_fixture.h"

static const uint32_t none = AMDGPU_UNKNOWN;

static void targets_and_features_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *name, *arch;
    } cases[] = {
        {"kernels.gfx906", "gfx906"},   {"kernels.gfx90a", "gfx90a:sramecc+:xnack-"},
        {"kernels.gfx1030", "gfx1030"}, {"kernels.gfx1100", "gfx1100"},
        {"stripped.gfx90a", "gfx90a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture_object fixture;
        fixture_object_open(&fixture, cases[i].name);
        assert_int_equal(fixture.image.vendor, IMAGE_AMD);
        assert_string_equal(fixture.image.arch, cases[i].arch);
        assert_int_equal(image_vendor_of(fixture.bytes, fixture.size), IMAGE_AMD);
        fixture_object_close(&fixture);
    }
}

static void a_target_that_is_not_known_is_still_read(void **state)
{
    (void)state;
    struct fixture_object fixture;
    struct amdgpu_kernel kernel;
    fixture_object_open(&fixture, "stripped.gfx90a");
    image_close(&fixture.image);
    fixture.bytes[48] = 0xee;
    struct problem problem = {""};
    assert_int_equal(image_open(&fixture.image, fixture.bytes, fixture.size, &problem), GPUFL_OK);
    assert_string_equal(fixture.image.arch, "gfx? (number 0xee)");
    const struct image_function *function = image_function_find(&fixture.image, "vector_add");
    assert_non_null(function);
    assert_true(amdgpu_kernel_read(&fixture.image, function, &kernel));
    assert_int_equal(kernel.vgpr_count, 8); /* the metadata does not depend on it */
    fixture_object_close(&fixture);
}

static void names_of_targets_become_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct amdgpu_target target;
    } cases[] = {
        {"gfx90a:sramecc+:xnack-", {9, 0, 10, false}},
        {"gfx90c", {9, 0, 12, false}},
        {"gfx942", {9, 4, 2, false}},
        {"gfx1030", {10, 3, 0, false}},
        {"gfx1151", {11, 5, 1, false}},
        {"gfx11-generic", {11, 0, 0, true}},
        {"gfx10-3-generic", {10, 3, 0, true}},
        {"gfx9-4-generic", {9, 4, 0, true}},
    };
    struct amdgpu_target target;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(amdgpu_target_parse(cases[i].name, &target));
        assert_int_equal(target.major, cases[i].target.major);
        assert_int_equal(target.minor, cases[i].target.minor);
        assert_int_equal(target.stepping, cases[i].target.stepping);
        assert_int_equal(target.is_generic, cases[i].target.is_generic);
    }
    static const char *const bad[] = {"",       "sm_90",   "gfx",         "gfx9",    "gfxabc", "gfx? (number 0xee)",
                                      "gfx90g", "gfx9 0a", "gfx-generic", "gfx12345"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (amdgpu_target_parse(bad[i], &target))
            fail_msg("'%s' is taken for a target", bad[i]);
}

static void kernels_are_the_functions_with_descriptors(void **state)
{
    (void)state;
    for (size_t i = 0; i < fixture_object_count; i++) {
        struct fixture_object fixture;
        fixture_object_open(&fixture, fixture_objects[i]);
        const struct image_function *add = image_function_find(&fixture.image, "vector_add");
        const struct image_function *sum = image_function_find(&fixture.image, "block_sum");
        assert_int_equal(fixture.image.function_count, 2);
        assert_non_null(add);
        assert_non_null(sum);
        assert_true(add->is_entry && sum->is_entry);
        assert_string_equal(fixture.image.sections[add->section].name, ".text");
        assert_int_equal(add->offset, 0);
        assert_int_equal(sum->offset, 0x100);
        assert_int_equal(sum->descriptor - add->descriptor, 64);
        fixture_object_close(&fixture);
    }
}

static void registers_and_memory_of_kernels_are_what_the_compiler_says(void **state)
{
    (void)state;
    /* Of vector_add, then of block_sum. */
    static const struct {
        const char *name;
        uint32_t vgprs[2], agprs[2], sgprs[2], wave_size;
        bool is_wgp_mode;
    } cases[] = {
        {"kernels.gfx906", {8, 4}, {AMDGPU_UNKNOWN, AMDGPU_UNKNOWN}, {10, 10}, 64, false},
        {"kernels.gfx90a", {6, 4}, {0, AMDGPU_UNKNOWN}, {9, 10}, 64, false},
        {"kernels.gfx1030", {6, 4}, {AMDGPU_UNKNOWN, AMDGPU_UNKNOWN}, {9, 10}, 32, true},
        {"kernels.gfx1100", {6, 4}, {AMDGPU_UNKNOWN, AMDGPU_UNKNOWN}, {18, 18}, 32, true},
        {"stripped.gfx90a", {8, 4}, {0, AMDGPU_UNKNOWN}, {10, 10}, 64, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture_object fixture;
        fixture_object_open(&fixture, cases[i].name);
        for (unsigned k = 0; k < 2; k++) {
            const char *name = k ? "block_sum" : "vector_add";
            struct amdgpu_kernel kernel;
            assert_true(amdgpu_kernel_read(&fixture.image, image_function_find(&fixture.image, name), &kernel));
            assert_int_equal(kernel.vgpr_count, cases[i].vgprs[k]);
            assert_int_equal(kernel.agpr_count, cases[i].agprs[k]);
            assert_int_equal(kernel.sgpr_count, cases[i].sgprs[k]);
            assert_int_equal(kernel.wave_size, cases[i].wave_size);
            assert_int_equal(kernel.is_wgp_mode, cases[i].is_wgp_mode);
            assert_int_equal(kernel.lds_bytes, k ? 1024 : 0);
            assert_int_equal(kernel.scratch_bytes, 0);
            assert_int_equal(kernel.vgpr_spills, 0);
            assert_int_equal(kernel.group_size_max, 256);
            assert_int_equal(kernel.group_size[0], k ? 256 : 0);
            assert_int_equal(kernel.kernarg_bytes, k ? 16 : 28);
            assert_false(kernel.is_allocation);
        }
        fixture_object_close(&fixture);
    }
}

/* The object without its metadata: the descriptor alone must do. */
static void without_metadata_the_descriptor_tells_what_is_allocated(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t vgprs, sgprs;
    } cases[] = {
        {"kernels.gfx906", 8, 16},
        {"kernels.gfx90a", 8, 16},
        {"kernels.gfx1030", 8, AMDGPU_UNKNOWN},
        {"kernels.gfx1100", 8, AMDGPU_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture_object fixture;
        fixture_object_open(&fixture, cases[i].name);
        uint32_t note = image_section_find(&fixture.image, ".note", 0);
        assert_true(note != 0);
        fixture.bytes[fixture.image.sections[note].offset + 8] = 99; /* the note's type */
        struct amdgpu_kernel kernel;
        assert_true(amdgpu_kernel_read(&fixture.image, image_function_find(&fixture.image, "vector_add"), &kernel));
        assert_true(kernel.is_allocation);
        assert_int_equal(kernel.vgpr_count, cases[i].vgprs);
        assert_int_equal(kernel.sgpr_count, cases[i].sgprs);
        assert_int_equal(kernel.kernarg_bytes, 28);
        assert_int_equal(kernel.vgpr_spills, none);
        assert_int_equal(kernel.group_size[0], 0);
        fixture_object_close(&fixture);
    }
}

static uint32_t line_at(const struct fixture_object *fixture, const struct line_table *table, const char *name,
                        uint64_t pc)
{
    const struct image_function *function = image_function_find(&fixture->image, name);
    struct line_frame frames[LINE_FRAMES_MAX];
    assert_non_null(function);
    size_t count = line_table_find(table, function->section, function->offset + pc, frames, LINE_FRAMES_MAX);
    if (!count)
        return none;
    /* Before DWARF 5 the table does not say where the compiler ran. */
    if (strcmp(frames[0].path, "/kernels/kernels.cl") != 0 && strcmp(frames[0].path, "kernels.cl") != 0)
        fail_msg("the path is '%s'", frames[0].path);
    return frames[0].line;
}

static void instructions_lead_to_their_lines(void **state)
{
    (void)state;
    static const char *const names[] = {"kernels.gfx906", "kernels.gfx90a", "kernels.gfx1030", "kernels.gfx1100",
                                        "dwarf_4.gfx906"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fixture_object fixture;
        struct line_table table;
        struct problem problem = {""};
        fixture_object_open(&fixture, names[i]);
        if (line_table_open(&table, &fixture.image, LINE_TABLE_SOURCE, &problem))
            fail_msg("%s: %s", names[i], problem.text);
        assert_int_equal(table.skipped_sequences, 0);
        bool has_sum = false, has_loop = false;
        for (uint64_t pc = 0; pc < 0x80; pc += 4) {
            uint32_t line = line_at(&fixture, &table, "vector_add", pc);
            assert_true(line <= 19);
            has_sum = has_sum || line == 18;
        }
        for (uint64_t pc = 0; pc < 0x100; pc += 4) {
            uint32_t line = line_at(&fixture, &table, "block_sum", pc);
            assert_true(line <= 35);
            has_loop = has_loop || line == 30;
        }
        assert_true(has_sum && has_loop);
        line_table_close(&table);
        assert_int_equal(line_table_open(&table, &fixture.image, LINE_TABLE_PTX, &problem), GPUFL_E_NOT_FOUND);
        fixture_object_close(&fixture);
    }
}

/* Each line of the file: an offset, then the lines from the innermost to the outermost, as llvm-symbolizer has them. */
static void calls_that_were_inlined_are_those_that_llvm_names(void **state)
{
    (void)state;
    static const char *const names[] = {"inlined.gfx90a", "inlined_4.gfx90a"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fixture_object fixture;
        struct line_table table;
        struct problem problem = {""};
        fixture_object_open(&fixture, names[i]);
        assert_int_equal(line_table_open(&table, &fixture.image, LINE_TABLE_SOURCE, &problem), GPUFL_OK);
        const struct image_function *function = image_function_find(&fixture.image, "blur");
        assert_non_null(function);
        size_t size, inlined = 0;
        uint8_t *bytes = fixture_object_read(names[i], ".frames.txt", &size);
        char *text = strndup((const char *)bytes, size);
        for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line;) {
            char *at = line;
            uint64_t pc = strtoull(at, &at, 16);
            struct line_frame frames[LINE_FRAMES_MAX];
            size_t count = line_table_find(&table, function->section, function->offset + pc, frames, LINE_FRAMES_MAX);
            if (!strtoul(at, NULL, 10))
                continue; /* the compiler has no line for it */
            for (size_t k = 0; *at; k++) {
                unsigned long expected = strtoul(at, &at, 10);
                if (k >= count || frames[k].line != expected)
                    fail_msg("%s: frame %zu of '%s' is line %u", names[i], k, line, k < count ? frames[k].line : 0);
                inlined += k > 0;
                count -= !*at ? k + 1 : 0;
            }
            assert_int_equal(count, 0);
        }
        assert_true(inlined > 200);
        free(text);
        free(bytes);
        line_table_close(&table);
        fixture_object_close(&fixture);
    }
}

static void code_without_lines_says_how_to_get_them(void **state)
{
    (void)state;
    struct fixture_object fixture;
    struct line_table table;
    struct problem problem = {""};
    fixture_object_open(&fixture, "stripped.gfx90a");
    assert_int_equal(line_table_open(&table, &fixture.image, LINE_TABLE_SOURCE, &problem), GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, "-gline-tables-only"));
    fixture_object_close(&fixture);

    fixture_object_open(&fixture, "kernels.gfx906");
    uint32_t section = image_section_find(&fixture.image, ".debug_line", 0);
    fixture.image.sections[section].flags |= 0x800;
    assert_int_equal(line_table_open(&table, &fixture.image, LINE_TABLE_SOURCE, &problem), GPUFL_E_UNSUPPORTED);
    assert_non_null(strstr(problem.text, "compressed"));
    fixture_object_close(&fixture);
}

/* Everything that is asked of a code object, however damaged it is. */
static void object_use(const uint8_t *bytes, size_t size)
{
    struct code_image image;
    struct problem problem = {""};
    if (image_open(&image, bytes, size, &problem)) {
        assert_true(problem.text[0] != '\0');
        return;
    }
    for (uint32_t i = 0; i < image.function_count; i++) {
        struct amdgpu_kernel kernel;
        char words[IMAGE_WORDS_SIZE];
        (void)amdgpu_kernel_read(&image, &image.functions[i], &kernel);
        (void)image_words_print(&image, &image.functions[i], 0, 8, words);
    }
    struct line_table table;
    if (!line_table_open(&table, &image, LINE_TABLE_SOURCE, &problem)) {
        struct line_frame frames[LINE_FRAMES_MAX];
        for (uint64_t pc = 0; pc < 0x800; pc += 4)
            (void)line_table_find(&table, 7, pc, frames, LINE_FRAMES_MAX);
        line_table_close(&table);
    }
    image_close(&image);
}

static void every_truncation_is_refused_or_read_within_its_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"kernels.gfx906",  "kernels.gfx90a", "kernels.gfx1100",
                                        "stripped.gfx90a", "inlined.gfx90a", "inlined_4.gfx90a"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t size;
        uint8_t *bytes = fixture_object_read(names[i], ".co", &size);
        for (size_t kept = 0; kept < size; kept++) {
            /* A separate copy, so that a read past the end is detected. */
            uint8_t *copy = malloc(kept ? kept : 1);
            assert_non_null(copy);
            memcpy(copy, bytes, kept);
            object_use(copy, kept);
            free(copy);
        }
        free(bytes);
    }
}

static void every_damaged_byte_is_refused_or_read_within_its_bytes(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = fixture_object_read("inlined.gfx90a", ".co", &size);
    static const uint8_t values[] = {0x00, 0x7f, 0xff};
    for (size_t at = 0; at < size; at++) {
        uint8_t before = bytes[at];
        for (size_t i = 0; i < sizeof values; i++) {
            bytes[at] = values[i];
            object_use(bytes, size);
        }
        bytes[at] = before;
    }
    free(bytes);
}

static void bundles_are_named_for_what_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *words;
    } cases[] = {
        {"__CLANG_OFFLOAD_BUNDLE__\1", "a bundle of code"},
        {"CCOB\1", "a compressed bundle"},
        {"plain text", "no ELF magic"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct code_image image;
        struct problem problem = {""};
        assert_int_equal(image_open(&image, cases[i].bytes, strlen(cases[i].bytes), &problem), GPUFL_E_INVALID);
        assert_non_null(strstr(problem.text, cases[i].words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_and_features_are_named),
        cmocka_unit_test(a_target_that_is_not_known_is_still_read),
        cmocka_unit_test(names_of_targets_become_numbers),
        cmocka_unit_test(kernels_are_the_functions_with_descriptors),
        cmocka_unit_test(registers_and_memory_of_kernels_are_what_the_compiler_says),
        cmocka_unit_test(without_metadata_the_descriptor_tells_what_is_allocated),
        cmocka_unit_test(instructions_lead_to_their_lines),
        cmocka_unit_test(calls_that_were_inlined_are_those_that_llvm_names),
        cmocka_unit_test(code_without_lines_says_how_to_get_them),
        cmocka_unit_test(every_truncation_is_refused_or_read_within_its_bytes),
        cmocka_unit_test(every_damaged_byte_is_refused_or_read_within_its_bytes),
        cmocka_unit_test(bundles_are_named_for_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
