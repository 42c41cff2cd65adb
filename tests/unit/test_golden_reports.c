/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the handmade sessions in tests/golden, byte for byte. After a
 * wanted change: GPUFL_UPDATE_GOLDEN=1 test_golden_reports, then read the diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report.h"

struct golden {
    const char *name, *extension;
    struct report_options options;
    bool is_json;
};

static struct bytes file_read(const char *path)
{
    struct bytes content = {0};
    FILE *file = fopen(path, "rb");
    char block[4096];
    for (size_t size; file && (size = fread(block, 1, sizeof block, file)) > 0;)
        bytes_append(&content, block, size);
    if (file)
        fclose(file);
    return content;
}

static void file_write(const char *path, const struct bytes *content)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content->data, 1, content->size, file), content->size);
    assert_int_equal(fclose(file), 0);
}

/* Names the first line that differs, with both versions of it. */
static void assert_same_text(const char *path, struct bytes *expected, struct bytes *actual)
{
    if (expected->size == actual->size && (!actual->size || !memcmp(expected->data, actual->data, actual->size)))
        return;
    const char *left = bytes_text(expected), *right = bytes_text(actual);
    unsigned line = 1;
    for (;; line++) {
        size_t left_size = strcspn(left, "\n"), right_size = strcspn(right, "\n");
        if (left_size != right_size || memcmp(left, right, left_size) != 0 || !left[left_size] || !right[right_size]) {
            print_error("%s:%u\n  expected: %.*s\n  actual:   %.*s\nthe whole report now:\n%s\n", path, line,
                        (int)left_size, left, (int)right_size, right, actual->data);
            fail_msg("%s line %u differs; GPUFL_UPDATE_GOLDEN=1 accepts the new text", path, line);
        }
        left += left_size + 1;
        right += right_size + 1;
    }
}

static void report_is_as_expected(void **state)
{
    const struct golden *golden = *state;
    char dir[512], path[600];
    snprintf(dir, sizeof dir, "%s/tests/golden/%s", SOURCE_DIR, golden->name);
    snprintf(path, sizeof path, "%s.%s", dir, golden->extension);
    struct session_model *model;
    struct problem problem = {""};
    if (session_load(&model, dir, &problem) != GPUFL_OK)
        fail_msg("%s: %s", dir, problem.text);
    struct bytes actual = {0};
    gpufl_status status =
        golden->is_json ? report_json(model, &golden->options, &actual) : report_text(model, &golden->options, &actual);
    assert_int_equal(status, GPUFL_OK);
    session_free(model);
    if (getenv("GPUFL_UPDATE_GOLDEN"))
        file_write(path, &actual);
    struct bytes expected = file_read(path);
    assert_same_text(path, &expected, &actual);
    bytes_free(&expected);
    bytes_free(&actual);
}

int main(void)
{
    static struct golden cases[] = {
        {.name = "trace", .extension = "txt"},
        {.name = "trace", .extension = "wide.txt", .options = {.is_wide = true, .top = 2}},
        {.name = "trace", .extension = "color.txt", .options = {.use_color = true, .top = 1, .columns = 80}},
        {.name = "trace", .extension = "json", .is_json = true},
        {.name = "training_steps", .extension = "txt"},
        {.name = "training_steps", .extension = "wide.txt", .options = {.is_wide = true}},
        {.name = "training_steps", .extension = "json", .is_json = true},
        {.name = "launch_bound", .extension = "txt"},
        {.name = "monitor", .extension = "txt"},
        {.name = "killed", .extension = "txt"},
        {.name = "killed", .extension = "json", .is_json = true},
        {.name = "v1", .extension = "txt"},
        {.name = "v1", .extension = "json", .is_json = true},
        {.name = "empty", .extension = "txt"},
        {.name = "bench", .extension = "txt"},
        {.name = "two_gpus", .extension = "txt"},
        {.name = "masked_gpu", .extension = "txt"},
        {.name = "degraded", .extension = "txt"},
        {.name = "refused", .extension = "txt"},
        {.name = "sync_loop", .extension = "txt"},
        {.name = "hostile", .extension = "txt"},
        {.name = "hostile", .extension = "json", .is_json = true},
        {.name = "pc_sampling", .extension = "txt"},
        {.name = "pc_sampling", .extension = "json", .is_json = true},
        {.name = "sass_metrics", .extension = "txt"},
        {.name = "sass_metrics", .extension = "json", .is_json = true},
        {.name = "range_metrics", .extension = "txt"},
        {.name = "range_metrics", .extension = "json", .is_json = true},
        {.name = "deep", .extension = "txt"},
        {.name = "deep", .extension = "json", .is_json = true},
        {.name = "deep_hostile", .extension = "txt"},
        {.name = "deep_hostile", .extension = "json", .is_json = true},
        {.name = "amd_code", .extension = "txt"},
        {.name = "amd_code", .extension = "json", .is_json = true},
        {.name = "deep_v1", .extension = "txt"},
        {.name = "deep_v1", .extension = "json", .is_json = true},
    };
    enum { count = sizeof cases / sizeof *cases };
    struct CMUnitTest tests[count];
    char names[count][64];
    for (unsigned i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "report_of_%s_is_%s.%s", cases[i].name, cases[i].name, cases[i].extension);
        tests[i] =
            (struct CMUnitTest){.name = names[i], .test_func = report_is_as_expected, .initial_state = &cases[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
