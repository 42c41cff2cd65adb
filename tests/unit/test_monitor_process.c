/* SPDX-License-Identifier: Apache-2.0 */
/* Identification of processes: cgroup texts of real container runtimes, and a made-up /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "monitor/process_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "3f4b8c2d9e1a7f6054d3c2b1a0987654321fedcba0123456789abcdef0123456"
#define OTHER "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999"
#define UID "0e1f2a3b-4c5d-6e7f-8091-a2b3c4d5e6f7"
#define UID_LOW "0e1f2a3b_4c5d_6e7f_8091_a2b3c4d5e6f7"

static const struct {
    const char *text, *container, *runtime, *pod;
} cases[] = {
    /* nothing */
    {"", "", "", ""},
    {"0::/\n", "", "", ""},
    {"0::/user.slice/user-1000.slice/session-3.scope\n", "", "", ""},
    /* version 2, systemd */
    {"0::/system.slice/docker-" ID ".scope\n", ID, "docker", ""},
    {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_LOW ".slice/cri-containerd-" ID
     ".scope\n",
     ID, "containerd", UID},
    {"0::/kubepods.slice/kubepods-pod" UID_LOW ".slice/crio-" ID ".scope\n", ID, "cri-o", UID},
    {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container\n", ID, "podman", ""},
    {"0::/system.slice/nerdctl-" ID ".scope", ID, "containerd", ""},
    /* seen from inside another cgroup namespace */
    {"0::/../kubepods-besteffort-pod" UID_LOW ".slice/cri-containerd-" ID ".scope\n", ID, "containerd", UID},
    /* version 1 */
    {"12:memory:/docker/" ID "\n11:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/docker/" ID "\n", ID, "docker", ""},
    {"5:devices:/kubepods/besteffort/pod" UID "/" ID "\n0::/\n", ID, "", UID},
    {"5:devices:/kubepods.slice/kubepods-pod" UID_LOW ".slice:cri-containerd:" ID "\n", ID, "containerd", ""},
    {"3:pids:/libpod_parent/" ID "\n", ID, "podman", ""},
    /* a static pod's uid is a hash */
    {"0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" ID "\n", ID, "", "0123456789abcdef0123456789abcdef"},
    /* the innermost container wins */
    {"0::/kubepods.slice/kubepods-pod" UID_LOW ".slice/cri-containerd-" OTHER ".scope/docker/" ID "\n", ID, "docker",
     UID},
    /* similar names that are not containers */
    {"0::/kubepods.slice/crio-conmon-" ID ".scope\n", "", "", ""},
    {"0::/system.slice/x" ID ".scope\n", "", "", ""},
    {"0::/docker/3F4B8C2D9E1A7F6054D3C2B1A0987654321FEDCBA0123456789ABCDEF0123456\n", "", "", ""},
    {"0::/docker/3f4b8c2d\n", "", "", ""},
    {"0::/kubepods/podnot-a-uid/x\n", "", "", ""},
    {"no colons at all", "", "", ""},
    {"::\n:\n0:\n", "", "", ""},
};

static void containers_and_pods_are_read_from_cgroups(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cgroup_identity identity;
        /* A copy of the exact size, so that reading past its end is detected. */
        size_t size = strlen(cases[i].text);
        char *text = malloc(size ? size : 1);
        memcpy(text, cases[i].text, size);
        cgroup_identify(&identity, text, size);
        free(text);
        if (strcmp(identity.container_id, cases[i].container) || strcmp(identity.runtime, cases[i].runtime) ||
            strcmp(identity.pod_uid, cases[i].pod))
            fail_msg("%s: container '%s' of '%s', pod '%s'", cases[i].text, identity.container_id, identity.runtime,
                     identity.pod_uid);
    }
}

static void any_truncated_text_is_read_safely(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t size = 0; size < strlen(cases[i].text); size++) {
            struct cgroup_identity identity;
            char *text = malloc(size ? size : 1);
            memcpy(text, cases[i].text, size);
            cgroup_identify(&identity, text, size);
            free(text);
            assert_true(strlen(identity.container_id) == 0 || strlen(identity.container_id) == 64);
        }
}

static char root[] = "/tmp/gpufl-process-XXXXXX";

static void proc_write(unsigned pid, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/proc", root);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/proc/%u", root, pid);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/proc/%u/%s", root, pid, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void process_make(unsigned pid, const char *name, unsigned long start, const char *cgroup)
{
    char text[512];
    snprintf(text, sizeof text, "%s\n", name);
    proc_write(pid, "comm", text);
    snprintf(text, sizeof text, "%u (%s) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %lu 20 21\n", pid, name, start);
    proc_write(pid, "stat", text);
    proc_write(pid, "cgroup", cgroup);
}

static void a_pid_is_looked_up_once_until_another_process_has_it(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    struct process_table *table = malloc(sizeof *table);
    process_table_init(table, root);
    process_make(41, "train) S 1", 1000, "0::/system.slice/docker-" ID ".scope\n");
    process_table_next_round(table);
    const struct process_identity *entry = process_table_find(table, 41);
    assert_string_equal(entry->name, "train) S 1");
    assert_int_equal(entry->start_ticks, 1000);
    assert_string_equal(entry->cgroup.container_id, ID);
    assert_true(process_table_mark_recorded(table, entry));
    assert_false(process_table_mark_recorded(table, entry));
    proc_write(41, "comm", "renamed\n"); /* the same process: not read again */
    assert_string_equal(process_table_find(table, 41)->name, "train) S 1");

    process_make(41, "other", 2000, "0::/\n");
    process_table_next_round(table);
    entry = process_table_find(table, 41);
    assert_string_equal(entry->name, "other");
    assert_string_equal(entry->cgroup.container_id, "");
    assert_true(process_table_mark_recorded(table, entry));
    process_table_forget_recorded(table); /* a new session */
    assert_true(process_table_mark_recorded(table, process_table_find(table, 41)));

    entry = process_table_find(table, 99); /* a process that cannot be seen */
    assert_int_equal(entry->pid, 99);
    assert_string_equal(entry->name, "");
    assert_int_equal(table->count, 2);
    process_table_next_round(table);
    process_table_find(table, 99);
    process_table_next_round(table); /* 41 left the GPU */
    assert_int_equal(table->count, 1);
    free(table);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

static void a_full_table_is_reported(void **state)
{
    (void)state;
    struct process_table *table = malloc(sizeof *table);
    process_table_init(table, "/nonexistent");
    for (uint32_t i = 0; i < PROCESS_TABLE_MAX; i++)
        assert_non_null(process_table_find(table, 1000 + i));
    assert_null(process_table_find(table, 1));
    process_table_next_round(table);
    process_table_next_round(table);
    assert_non_null(process_table_find(table, 1));
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(containers_and_pods_are_read_from_cgroups),
        cmocka_unit_test(any_truncated_text_is_read_safely),
        cmocka_unit_test(a_pid_is_looked_up_once_until_another_process_has_it),
        cmocka_unit_test(a_full_table_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
