/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting the text of a frame into function, file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/stack_frame.h"

static void expect(const char *text, const char *function, const char *file, uint32_t line)
{
    struct stack_frame frame = stack_frame_split(text, strlen(text));
    assert_int_equal(frame.function_size, strlen(function));
    assert_memory_equal(text, function, strlen(function));
    assert_int_equal(frame.file_size, file ? strlen(file) : 0);
    if (file)
        assert_memory_equal(frame.file, file, strlen(file));
    assert_int_equal(frame.line, line);
}

static void a_frame_has_function_file_and_line(void **state)
{
    (void)state;
    expect("main@/src/train.py:13", "main", "/src/train.py", 13);
    expect("Net.forward@model.py:8", "Net.forward", "model.py", 8);
    expect("main@/data/kim@corp.com/python@3.12/train.py:3", "main", "/data/kim@corp.com/python@3.12/train.py", 3);
    expect("operator@()@a:b.cu:4294967295", "operator@()", "a:b.cu", 4294967295u);
}

static void an_invalid_line_number_belongs_to_the_module(void **state)
{
    (void)state;
    expect("addmm@libtorch.so+0x1c0", "addmm", "libtorch.so+0x1c0", 0);
    expect("f@file.py:", "f", "file.py:", 0);
    expect("f@file.py:0", "f", "file.py:0", 0);
    expect("f@file.py:12x", "f", "file.py:12x", 0);
    expect("f@file.py:4294967296", "f", "file.py:4294967296", 0);
    expect("f@file.py:99999999999999999999", "f", "file.py:99999999999999999999", 0);
    expect("f@:7", "f", ":7", 0);
}

static void a_name_alone_has_no_file(void **state)
{
    (void)state;
    expect("", "", NULL, 0);
    expect("vectorAdd", "vectorAdd", NULL, 0);
    expect("f@", "f@", NULL, 0);
    expect("@file:1", "@file:1", NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_has_function_file_and_line),
        cmocka_unit_test(an_invalid_line_number_belongs_to_the_module),
        cmocka_unit_test(a_name_alone_has_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
