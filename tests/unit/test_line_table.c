/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "code/line_table.h"
#include "cubin_fixture.h"
#include "requirement.h"

#include <dlfcn.h>

struct opened {
    struct fixture_cubin fixture;
    struct line_table table;
};

static void lines_open(struct opened *opened, const char *name, enum line_table_kind kind)
{
    struct problem problem = {""};
    fixture_cubin_open(&opened->fixture, name);
    if (line_table_open(&opened->table, &opened->fixture.cubin, kind, &problem))
        fail_msg("%s: %s", name, problem.text);
}

static void lines_close(struct opened *opened)
{
    line_table_close(&opened->table);
    fixture_cubin_close(&opened->fixture);
}

static size_t frames_at(const struct opened *opened, const char *function_name, uint64_t pc,
                        struct line_frame frames[LINE_FRAMES_MAX])
{
    const struct image_function *function = image_function_find(&opened->fixture.cubin, function_name);
    assert_non_null(function);
    return line_table_find(&opened->table, function->section, function->offset + pc, frames, LINE_FRAMES_MAX);
}

static void assert_frame(const struct line_frame *frame, const char *path, uint32_t line, const char *function)
{
    assert_string_equal(frame->path, path);
    assert_int_equal(frame->line, line);
    if (function)
        assert_string_equal(frame->function, function);
    else
        assert_null(frame->function);
}

#define SOURCES "/tmp/gpufl-cubins/"

static void an_instruction_leads_to_its_line(void **state)
{
    (void)state;
    struct opened opened;
    lines_open(&opened, "vector_add.sm_90", LINE_TABLE_SOURCE);
    struct line_frame frames[LINE_FRAMES_MAX];
    assert_int_equal(frames_at(&opened, "vector_add", 0, frames), 1);
    assert_frame(&frames[0], SOURCES "vector_add.cu", 2, NULL);
    assert_int_equal(frames_at(&opened, "vector_add", 0x10, frames), 1);
    assert_frame(&frames[0], SOURCES "vector_add.cu", 4, NULL);
    const struct image_function *function = image_function_find(&opened.fixture.cubin, "vector_add");
    assert_int_equal(frames_at(&opened, "vector_add", function->size, frames), 0);
    assert_int_equal(frames_at(&opened, "vector_add", UINT64_MAX, frames), 0);
    assert_int_equal(line_table_find(&opened.table, 0, 0, frames, LINE_FRAMES_MAX), 0);
    assert_int_equal(opened.table.skipped_sequences, 0);
    lines_close(&opened);
}

static void inlined_calls_keep_every_frame(void **state)
{
    (void)state;
    struct opened opened;
    lines_open(&opened, "inlined.sm_90", LINE_TABLE_SOURCE);
    struct line_frame frames[LINE_FRAMES_MAX];
    const char *kernel = "_Z9distancesPKfS0_Pfi";
    assert_int_equal(frames_at(&opened, kernel, 0x80, frames), 1);
    assert_frame(&frames[0], SOURCES "inlined.cu", 17, NULL);
    assert_int_equal(frames_at(&opened, kernel, 0x110, frames), 2);
    assert_frame(&frames[0], SOURCES "inlined.cuh", 9, "_Z8distanceff");
    assert_frame(&frames[1], SOURCES "inlined.cu", 17, NULL);
    assert_int_equal(frames_at(&opened, kernel, 0x100, frames), 3);
    assert_frame(&frames[0], SOURCES "inlined.cuh", 4, "_Z6squaref");
    assert_frame(&frames[1], SOURCES "inlined.cuh", 9, "_Z8distanceff");
    assert_frame(&frames[2], SOURCES "inlined.cu", 17, NULL);
    /* With less room the innermost frames are kept. */
    const struct image_function *function = image_function_find(&opened.fixture.cubin, kernel);
    assert_int_equal(line_table_find(&opened.table, function->section, 0x100, frames, 1), 1);
    assert_frame(&frames[0], SOURCES "inlined.cuh", 4, "_Z6squaref");
    /* Rows are relative to each function's first row. */
    assert_int_equal(frames_at(&opened, "_Z7squaresPKfPf", 0x80, frames), 2);
    assert_frame(&frames[0], SOURCES "inlined.cuh", 4, "_Z6squaref");
    assert_frame(&frames[1], SOURCES "inlined.cu", 24, NULL);
    lines_close(&opened);
}

static void a_device_function_in_a_kernels_section_has_lines(void **state)
{
    (void)state;
    struct opened opened;
    lines_open(&opened, "inlined.sm_90", LINE_TABLE_SOURCE);
    struct line_frame frames[LINE_FRAMES_MAX];
    assert_int_equal(frames_at(&opened, "$_Z9distancesPKfS0_Pfi$_Z8slow_sumPKfi", 0x190, frames), 1);
    assert_frame(&frames[0], SOURCES "inlined.cu", 8, NULL);
    lines_close(&opened);
}

static void a_linked_cubin_keeps_lines_but_not_the_names_of_inlined_functions(void **state)
{
    (void)state;
    struct opened opened;
    lines_open(&opened, "linked.sm_90", LINE_TABLE_SOURCE);
    assert_int_equal(opened.table.unit_count, 2);
    struct line_frame frames[LINE_FRAMES_MAX];
    bool has_inlined = false;
    for (uint64_t pc = 0; pc < 0x180; pc += 16) {
        size_t count = frames_at(&opened, "_Z6calleePf", pc, frames);
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++)
            assert_null(frames[i].function);
        assert_string_equal(frames[count - 1].path, SOURCES "linked_callee.cu");
        has_inlined |= count > 1;
    }
    assert_true(has_inlined);
    assert_true(frames_at(&opened, "_Z6callerPf", 0, frames) > 0);
    assert_frame(&frames[0], SOURCES "linked_caller.cu", 9, NULL);
    lines_close(&opened);
}

static void an_instruction_leads_to_its_line_of_ptx(void **state)
{
    (void)state;
    struct opened opened;
    lines_open(&opened, "vector_add.sm_90", LINE_TABLE_PTX);
    struct bytes ptx = {0};
    cubin_ptx(&opened.fixture.cubin, &ptx);
    const struct image_function *function = image_function_find(&opened.fixture.cubin, "vector_add");
    bool has_add = false;
    for (uint64_t pc = 0; pc < function->size; pc += 16) {
        struct line_frame frames[LINE_FRAMES_MAX];
        assert_int_equal(frames_at(&opened, "vector_add", pc, frames), 1);
        assert_string_equal(frames[0].path, "");
        const char *text = bytes_text(&ptx);
        for (uint32_t line = 1; text && line < frames[0].line; line++)
            text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
        assert_non_null(text);
        has_add |= !strncmp(text, "add.f32 ", 8) || !strncmp(text, "add.rn.f32", 10);
    }
    assert_true(has_add);
    bytes_free(&ptx);
    lines_close(&opened);
}

static void a_cubin_without_line_information_reports_how_to_get_it(void **state)
{
    (void)state;
    struct fixture_cubin fixture;
    fixture_cubin_open(&fixture, "no_lines.sm_90");
    struct line_table table;
    struct problem problem = {""};
    assert_int_equal(line_table_open(&table, &fixture.cubin, LINE_TABLE_SOURCE, &problem), GPUFL_E_NOT_FOUND);
    assert_non_null(strstr(problem.text, "-lineinfo"));
    fixture_cubin_close(&fixture);
}

/* cuptiGetSassToSourceCorrelation's parameters. */
struct correlation {
    size_t size;
    const void *cubin;
    const char *function;
    size_t cubin_size;
    uint32_t line;
    uint64_t pc;
    char *file, *directory;
};
typedef int (*correlate_fn)(struct correlation *);

/* CUPTI never frees its allocations; these functions exist only in builds with a leak checker. */
extern void __lsan_disable(void) __attribute__((weak));
extern void __lsan_enable(void) __attribute__((weak));

static correlate_fn correlate_load(void)
{
    static const char *const names[] = {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL); /* stays loaded */
        void *symbol = library ? dlsym(library, "cuptiGetSassToSourceCorrelation") : NULL;
        if (symbol)
            return (correlate_fn)(uintptr_t)symbol;
    }
    return NULL;
}

static void compare_function(correlate_fn correlate, const struct opened *opened, const struct image_function *function)
{
    for (uint64_t pc = 0; pc < function->size; pc += 16) {
        struct correlation asked = {
            .size = sizeof asked,
            .cubin = opened->fixture.bytes,
            .cubin_size = opened->fixture.size,
            .function = function->name,
            .pc = pc,
        };
        if (__lsan_disable)
            __lsan_disable();
        int result = correlate(&asked);
        if (__lsan_enable)
            __lsan_enable();
        assert_int_equal(result, 0);
        char expected[512] = "", found[512] = "";
        if (asked.file)
            snprintf(expected, sizeof expected, "%s/%s:%u", asked.directory, asked.file, asked.line);
        free(asked.file);
        free(asked.directory);
        struct line_frame frame;
        if (line_table_find(&opened->table, function->section, function->offset + pc, &frame, 1))
            snprintf(found, sizeof found, "%s:%u", frame.path, frame.line);
        assert_string_equal(found, expected);
    }
}

static void every_instruction_has_the_same_line_as_in_cupti(void **state)
{
    (void)state;
    correlate_fn correlate = correlate_load();
    REQUIRE(correlate, "libcupti.so.13");
    unsigned functions = 0;
    for (size_t i = 0; i < fixture_cubin_count; i++) {
        if (strstr(fixture_cubins[i], "no_lines"))
            continue;
        struct opened opened;
        lines_open(&opened, fixture_cubins[i], LINE_TABLE_SOURCE);
        for (uint32_t k = 0; k < opened.fixture.cubin.function_count; k++) {
            const struct image_function *function = &opened.fixture.cubin.functions[k];
            if (function->name[0] == '$')
                continue; /* part of its kernel's section; CUPTI does not have the name */
            compare_function(correlate, &opened, function);
            functions++;
        }
        lines_close(&opened);
    }
    assert_int_equal(functions, 23);
}

/* A handmade cubin with one line program. */
struct made_cubin {
    uint8_t bytes[4096];
    struct image_section sections[7];
    struct code_image cubin;
};
enum { MADE_TEXT = 1, MADE_SYMBOLS, MADE_LINES, MADE_RELOCATIONS, MADE_STRINGS, MADE_LINE_STRINGS, MADE_COUNT };
enum { MADE_LINES_AT = 1024 };

static void made_section(struct made_cubin *made, int index, const char *name, uint32_t type, uint64_t offset,
                         uint64_t size)
{
    made->sections[index] = (struct image_section){.name = name, .type = type, .offset = offset, .size = size};
}

/* program: the whole .debug_line; address_at: offset of set_address's operand in it. */
static void make(struct made_cubin *made, const uint8_t *program, size_t size, size_t address_at)
{
    memset(made, 0, sizeof *made);
    made->sections[0].name = "";
    made_section(made, MADE_TEXT, ".text.f", 1, 0, 256);
    made_section(made, MADE_SYMBOLS, ".symtab", 2, 256, 48);
    made_section(made, MADE_LINES, ".debug_line", 1, MADE_LINES_AT, size);
    made_section(made, MADE_RELOCATIONS, ".rela.debug_line", 4, 512, 24);
    made_section(made, MADE_STRINGS, ".debug_str", 1, 600, 8);
    made_section(made, MADE_LINE_STRINGS, ".debug_line_str", 1, 640, 12);
    made->sections[MADE_RELOCATIONS].info = MADE_LINES;
    made->bytes[256 + 24 + 4] = 2; /* symbol 1: a function in section 1 */
    made->bytes[256 + 24 + 6] = MADE_TEXT;
    made->bytes[512] = (uint8_t)address_at;
    made->bytes[512 + 8] = 2;
    made->bytes[512 + 12] = 1;
    memcpy(made->bytes + 600, "f\0in\0", 6);
    memcpy(made->bytes + 640, "/src\0a.cu\0", 11);
    memcpy(made->bytes + MADE_LINES_AT, program, size);
    made->cubin = (struct code_image){
        .bytes = made->bytes,
        .size = sizeof made->bytes,
        .sections = made->sections,
        .section_count = MADE_COUNT,
        .symbol_table = MADE_SYMBOLS,
    };
}

static void version_5_tables_are_read(void **state)
{
    (void)state;
    static const uint8_t program[] = {
        64, 0, 0,    0, 5,    0, 8,   0,            /* size, version, address and segment sizes */
        35, 0, 0,    0, 16,   1, 1,   0xfb, 14, 10, /* header size, ..., line base -5, range 14, opcode base 10 */
        0,  1, 1,    1, 1,    0, 0,   0,    1,      /* operand counts */
        1,  1, 0x1f, 1, 0,    0, 0,   0,            /* directories: line_strp */
        2,  1, 0x08, 2, 0x0b, 2, 'x', 0,    0,  'b', 0, 0, /* files: string and data1 */
        0,  9, 2,    0, 0,    0, 0,   0,    0,  0,   0,    /* set_address */
        4,  1, 3,    6, 1,                                 /* file 1, line 7, copy */
        2,  2, 0,    1, 1,                                 /* 2 instructions on, end */
    };
    struct made_cubin made;
    make(&made, program, sizeof program, 50);
    struct line_table table;
    struct problem problem = {""};
    if (line_table_open(&table, &made.cubin, LINE_TABLE_SOURCE, &problem))
        fail_msg("%s", problem.text);
    struct line_frame frame;
    assert_int_equal(line_table_find(&table, MADE_TEXT, 31, &frame, 1), 1);
    assert_frame(&frame, "/src/b", 7, NULL);
    assert_int_equal(line_table_find(&table, MADE_TEXT, 32, &frame, 1), 0);
    line_table_close(&table);
}

/* Version 2 with one file "s" and the given program; relocated at its first set_address. */
struct made_lines {
    struct made_cubin made;
    struct line_table table;
    struct problem problem;
};

static gpufl_status made_open(struct made_lines *lines, const uint8_t *program, size_t size)
{
    static const uint8_t header[] = {0, 0, 0, 0, 2, 0, 22, 0, 0, 0,   1, 1, 0xfb, 14, 10, 0,
                                     1, 1, 1, 1, 0, 0, 0,  1, 0, 's', 0, 0, 0,    0,  0};
    uint8_t section[256];
    memcpy(section, header, sizeof header);
    section[6] = sizeof header - 10;
    memcpy(section + sizeof header, program, size);
    section[0] = (uint8_t)(sizeof header + size - 4);
    make(&lines->made, section, sizeof header + size, sizeof header + 3);
    lines->problem.text[0] = '\0';
    return line_table_open(&lines->table, &lines->made.cubin, LINE_TABLE_SOURCE, &lines->problem);
}

#define SET_ADDRESS 0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 0
#define END_SEQUENCE 0, 1, 1

static void a_caller_that_does_not_precede_its_row_is_ignored(void **state)
{
    (void)state;
    /* Row 1 claims to be inlined into row 2, row 2 into itself, row 3 into row 1. */
    static const uint8_t program[] = {SET_ADDRESS, 0, 3, 0x90, 2, 0,    1, 0, 3, 0x90, 2, 0, 2,  16,
                                      3,           1, 1, 0,    3, 0x90, 1, 2, 2, 16,   1, 2, 16, END_SEQUENCE};
    struct made_lines lines;
    if (made_open(&lines, program, sizeof program))
        fail_msg("%s", lines.problem.text);
    struct line_frame frames[LINE_FRAMES_MAX];
    assert_int_equal(line_table_find(&lines.table, MADE_TEXT, 0, frames, LINE_FRAMES_MAX), 1);
    assert_frame(&frames[0], "s", 1, NULL);
    assert_int_equal(line_table_find(&lines.table, MADE_TEXT, 16, frames, LINE_FRAMES_MAX), 1);
    assert_frame(&frames[0], "s", 2, NULL);
    assert_int_equal(line_table_find(&lines.table, MADE_TEXT, 32, frames, LINE_FRAMES_MAX), 2);
    assert_frame(&frames[0], "s", 2, "in");
    assert_frame(&frames[1], "s", 1, NULL);
    line_table_close(&lines.table);
}

static void a_sequence_without_a_function_or_that_goes_backwards_is_skipped(void **state)
{
    (void)state;
    struct made_lines lines;
    static const uint8_t no_address[] = {1, 2, 16, END_SEQUENCE};
    assert_int_equal(made_open(&lines, no_address, sizeof no_address), GPUFL_OK);
    assert_int_equal(lines.table.sequence_count, 0);
    assert_int_equal(lines.table.skipped_sequences, 1);
    line_table_close(&lines.table);
    /* Advances by nearly 2^64: backwards. */
    static const uint8_t backwards[] = {SET_ADDRESS, 2,    16,   1,    2,    0xf0, 0xff, 0xff,        0xff,
                                        0xff,        0xff, 0xff, 0xff, 0xff, 1,    1,    END_SEQUENCE};
    assert_int_equal(made_open(&lines, backwards, sizeof backwards), GPUFL_OK);
    assert_int_equal(lines.table.sequence_count, 0);
    assert_int_equal(lines.table.skipped_sequences, 1);
    line_table_close(&lines.table);
    static const uint8_t endless[] = {SET_ADDRESS, 1, 2, 16, 1};
    assert_int_equal(made_open(&lines, endless, sizeof endless), GPUFL_OK);
    assert_int_equal(lines.table.row_count, 0);
    assert_int_equal(lines.table.skipped_sequences, 1);
    line_table_close(&lines.table);
}

static void a_truncated_program_is_rejected_with_the_offset(void **state)
{
    (void)state;
    struct made_lines lines;
    static const uint8_t program[] = {SET_ADDRESS, 1, 2, 0x80};
    assert_int_equal(made_open(&lines, program, sizeof program), GPUFL_E_INVALID);
    assert_non_null(strstr(lines.problem.text, ".debug_line"));
    assert_non_null(strstr(lines.problem.text, "offset 45"));
    static const uint8_t extended[] = {0, 200, 1, 2};
    assert_int_equal(made_open(&lines, extended, sizeof extended), GPUFL_E_INVALID);
}

static void every_damaged_byte_of_a_line_table_is_survived(void **state)
{
    (void)state;
    struct fixture_cubin fixture;
    fixture_cubin_open(&fixture, "inlined.sm_90");
    const struct image_section *section = &fixture.cubin.sections[image_section_find(&fixture.cubin, ".debug_line", 0)];
    unsigned refused = 0;
    for (uint64_t i = 0; i < section->size; i++) {
        uint8_t *byte = &fixture.bytes[section->offset + i];
        uint8_t before = *byte;
        *byte = 0xff;
        struct line_table table;
        struct problem problem = {""};
        if (line_table_open(&table, &fixture.cubin, LINE_TABLE_SOURCE, &problem)) {
            assert_true(problem.text[0]);
            refused++;
        } else {
            struct line_frame frames[LINE_FRAMES_MAX];
            for (uint32_t k = 0; k < fixture.cubin.function_count; k++)
                assert_true(line_table_find(&table, fixture.cubin.functions[k].section, 0x100, frames,
                                            LINE_FRAMES_MAX) <= LINE_FRAMES_MAX);
            line_table_close(&table);
        }
        *byte = before;
    }
    assert_true(refused > 0);
    fixture_cubin_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instruction_leads_to_its_line),
        cmocka_unit_test(inlined_calls_keep_every_frame),
        cmocka_unit_test(a_device_function_in_a_kernels_section_has_lines),
        cmocka_unit_test(a_linked_cubin_keeps_lines_but_not_the_names_of_inlined_functions),
        cmocka_unit_test(an_instruction_leads_to_its_line_of_ptx),
        cmocka_unit_test(a_cubin_without_line_information_reports_how_to_get_it),
        cmocka_unit_test(every_instruction_has_the_same_line_as_in_cupti),
        cmocka_unit_test(version_5_tables_are_read),
        cmocka_unit_test(a_caller_that_does_not_precede_its_row_is_ignored),
        cmocka_unit_test(a_sequence_without_a_function_or_that_goes_backwards_is_skipped),
        cmocka_unit_test(a_truncated_program_is_rejected_with_the_offset),
        cmocka_unit_test(every_damaged_byte_of_a_line_table_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
