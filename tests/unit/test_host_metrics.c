/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host_metrics.h"

static const int64_t second_ns = 1000000000;
static const char *const file_names[] = {"stat", "meminfo", "self/stat", "self/statm"};

/* A /proc made for the test. */
struct tree {
    char root[64];
    struct host_metrics metrics;
};

static int tree_make(void **state)
{
    static struct tree tree;
    char path[128];
    snprintf(tree.root, sizeof tree.root, "/tmp/gpufl-proc-XXXXXX");
    if (!mkdtemp(tree.root))
        return -1;
    snprintf(path, sizeof path, "%s/proc", tree.root);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/proc/self", tree.root);
    mkdir(path, 0700);
    host_metrics_init(&tree.metrics, tree.root);
    tree.metrics.ticks_per_second = 100;
    tree.metrics.page_bytes = 4096;
    *state = &tree;
    return 0;
}

static int tree_remove(void **state)
{
    const struct tree *tree = *state;
    char path[128];
    for (size_t i = 0; i < sizeof file_names / sizeof *file_names; i++) {
        snprintf(path, sizeof path, "%s/proc/%s", tree->root, file_names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/proc/self", tree->root);
    rmdir(path);
    snprintf(path, sizeof path, "%s/proc", tree->root);
    rmdir(path);
    return rmdir(tree->root);
}

static void file_write(const struct tree *tree, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/proc/%s", tree->root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

static void cpu_share_is_the_difference_of_two_readings(void **state)
{
    struct tree *tree = *state;
    file_write(tree, "stat", "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3 4\n");
    assert_int_equal(host_metrics_sample(&tree->metrics, 0).cpu_pct_x100, CELL_UNKNOWN);
    /* 25 busy ticks of 100: steal counts as busy, iowait as idle */
    file_write(tree, "stat", "cpu  110 0 55 870 55 0 0 10 0 0\n");
    assert_int_equal(host_metrics_sample(&tree->metrics, second_ns).cpu_pct_x100, 2500);
    /* no tick has passed */
    assert_int_equal(host_metrics_sample(&tree->metrics, second_ns).cpu_pct_x100, CELL_UNKNOWN);
    file_write(tree, "stat", "cpu  210 0 55 870 55 0 0 10 0 0\n");
    assert_int_equal(host_metrics_sample(&tree->metrics, 2 * second_ns).cpu_pct_x100, 10000);
}

static void counters_that_run_backwards_are_unknown_once(void **state)
{
    struct tree *tree = *state;
    file_write(tree, "stat", "cpu  1000 0 0 1000\n");
    (void)host_metrics_sample(&tree->metrics, 0);
    file_write(tree, "stat", "cpu  10 0 0 10\n");
    assert_int_equal(host_metrics_sample(&tree->metrics, second_ns).cpu_pct_x100, CELL_UNKNOWN);
    file_write(tree, "stat", "cpu  20 0 0 20\n");
    assert_int_equal(host_metrics_sample(&tree->metrics, second_ns).cpu_pct_x100, 5000);
}

static void after_a_reset_shares_are_unknown(void **state)
{
    struct tree *tree = *state;
    file_write(tree, "stat", "cpu  100 0 0 100\n");
    file_write(tree, "self/stat", "1 (x) S 0 0 0 0 0 0 0 0 0 0 5 5 0\n");
    (void)host_metrics_sample(&tree->metrics, 0);
    host_metrics_reset(&tree->metrics);
    file_write(tree, "stat", "cpu  200 0 0 200\n");
    struct host_sample sample = host_metrics_sample(&tree->metrics, second_ns);
    assert_int_equal(sample.cpu_pct_x100, CELL_UNKNOWN);
    assert_int_equal(sample.process_cpu_pct_x100, CELL_UNKNOWN);
}

static void process_share_survives_a_hostile_name(void **state)
{
    struct tree *tree = *state;
    file_write(tree, "self/stat", "42 (a) b (c 1 2 3) S 1 42 42 0 -1 4194304 100 0 0 0 70 30 0 0 20 0 1 0 5\n");
    assert_int_equal(host_metrics_sample(&tree->metrics, 0).process_cpu_pct_x100, CELL_UNKNOWN);
    /* 150 ticks in one second: one and a half cores */
    file_write(tree, "self/stat", "42 (a) b (c 1 2 3) S 1 42 42 0 -1 4194304 100 0 0 0 170 80 0 0 20 0 1 0 5\n");
    assert_int_equal(host_metrics_sample(&tree->metrics, second_ns).process_cpu_pct_x100, 15000);
    /* shorter than a tick: unknown */
    assert_int_equal(host_metrics_sample(&tree->metrics, second_ns + 1).process_cpu_pct_x100, CELL_UNKNOWN);
}

static void memory_is_total_minus_available(void **state)
{
    struct tree *tree = *state;
    file_write(tree, "meminfo", "MemTotal:       16384000 kB\nMemFree:  1 kB\nMemAvailable:    6144000 kB\n");
    file_write(tree, "self/statm", "100000 51200 300 1 0 2 0\n");
    struct host_sample sample = host_metrics_sample(&tree->metrics, 0);
    assert_int_equal(sample.ram_total_mib, 16000);
    assert_int_equal(sample.ram_used_mib, 10000);
    assert_int_equal(sample.process_rss_mib, 200);
}

static void what_is_missing_is_unknown(void **state)
{
    struct tree *tree = *state;
    struct host_sample unknown = host_sample_unknown();
    struct host_sample sample = host_metrics_sample(&tree->metrics, 0);
    assert_memory_equal(&sample, &unknown, sizeof sample);
    /* an old kernel without MemAvailable */
    file_write(tree, "meminfo", "MemTotal: 2048 kB\nMemFree: 1024 kB\n");
    sample = host_metrics_sample(&tree->metrics, 0);
    assert_int_equal(sample.ram_total_mib, 2);
    assert_int_equal(sample.ram_used_mib, CELL_UNKNOWN);
}

static void malformed_files_are_unknown(void **state)
{
    struct tree *tree = *state;
    static const char *const texts[] = {
        "",
        "\n",
        "cpu",
        "cpu ",
        "cpu  1 2 3",
        "cpu  a b c d",
        "cpu  99999999999999999999 0 0 0",
        "cpu  18446744073709551615 18446744073709551615 0 0",
        "1 (",
        "1 )",
        "1 (x) S 1 2 3",
        "1 (x) S 1 1 1 1 1 1 1 1 1 1 18446744073709551615 1 0",
        "MemTotal:",
        "MemTotal: -5 kB\nMemAvailable: 99",
        "MemTotal: 1024 kB\nMemAvailable: 2048 kB",
        "-1 -1",
        "1 99999999999999999999999",
        "1 18446744073709551615",
    };
    struct host_sample unknown = host_sample_unknown();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t file = 0; file < sizeof file_names / sizeof *file_names; file++)
            file_write(tree, file_names[file], texts[i]);
        for (int64_t time = 0; time < 3; time++) {
            struct host_sample sample = host_metrics_sample(&tree->metrics, time * second_ns);
            sample.ram_total_mib = CELL_UNKNOWN; /* one of the texts has it */
            assert_memory_equal(&sample, &unknown, sizeof sample);
        }
    }
}

static void a_file_without_end_is_read_in_part(void **state)
{
    struct tree *tree = *state;
    char *text = malloc(100001);
    assert_non_null(text);
    memset(text, '7', 100000);
    text[100000] = '\0';
    for (size_t file = 0; file < sizeof file_names / sizeof *file_names; file++)
        file_write(tree, file_names[file], text);
    free(text);
    struct host_sample unknown = host_sample_unknown();
    struct host_sample sample = host_metrics_sample(&tree->metrics, 0);
    assert_memory_equal(&sample, &unknown, sizeof sample);
}

static void this_machine_can_be_read(void **state)
{
    (void)state;
    struct host_metrics metrics;
    host_metrics_init(&metrics, "");
    struct host_sample sample = host_metrics_sample(&metrics, 0);
    assert_true(sample.ram_total_mib > 0);
    assert_true(sample.ram_used_mib >= 0 && sample.ram_used_mib <= sample.ram_total_mib);
    assert_true(sample.process_rss_mib >= 0);
    struct host_identity identity;
    host_identity_read(&identity);
    assert_true(strlen(identity.hostname) > 0);
}

int main(void)
{
#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        IN_TREE(cpu_share_is_the_difference_of_two_readings),
        IN_TREE(counters_that_run_backwards_are_unknown_once),
        IN_TREE(after_a_reset_shares_are_unknown),
        IN_TREE(process_share_survives_a_hostile_name),
        IN_TREE(memory_is_total_minus_available),
        IN_TREE(what_is_missing_is_unknown),
        IN_TREE(malformed_files_are_unknown),
        IN_TREE(a_file_without_end_is_read_in_part),
        cmocka_unit_test(this_machine_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
