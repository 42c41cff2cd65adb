/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and restores device memory with the look-alike libcheckpoint, in children that have the look-alike CUPTI
 * next to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fakes/fake_client.h"
#include "driver/checkpoint.h"

static char device_memory[16];

static void device_memory_set(const char *text)
{
    snprintf(device_memory, sizeof device_memory, "%s", text);
}

static struct checkpoint *open_checkpoint(const struct checkpoint_options *options)
{
    struct cupti *loaded;
    struct checkpoint *checkpoint;
    struct problem problem = {""};
    CHECK(cupti_load(&loaded, NULL) == GPUFL_OK);
    CHECK(checkpoint_open(&checkpoint, loaded, options, &problem) == GPUFL_OK);
    void (*call_it_device_memory)(void *, size_t);
    *(void **)&call_it_device_memory = dlsym(library_load("libcheckpoint.so"), "fake_checkpoint_memory");
    CHECK(call_it_device_memory != NULL);
    call_it_device_memory(device_memory, sizeof device_memory);
    return checkpoint;
}

static void round_trip_body(void)
{
    const struct checkpoint_options options = {.reserve_device_mib = CHECKPOINT_RESERVE_ALL, .has_fixed_point = true};
    struct checkpoint *checkpoint = open_checkpoint(&options);
    device_memory_set("before");
    CHECK(checkpoint_save(checkpoint, NULL) == GPUFL_OK);
    for (int i = 0; i < 3; i++) {
        device_memory_set("after");
        CHECK(checkpoint_restore(checkpoint, NULL) == GPUFL_OK);
        CHECK(!strcmp(device_memory, "before"));
    }
    device_memory_set("later");
    CHECK(checkpoint_save(checkpoint, NULL) == GPUFL_OK);
    device_memory_set("after");
    CHECK(checkpoint_restore(checkpoint, NULL) == GPUFL_OK && !strcmp(device_memory, "later"));
    checkpoint_close(checkpoint);
    checkpoint_close(NULL);
}

static void memory_is_restored_as_often_as_wanted_and_saved_anew(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", round_trip_body);
}

static void empty_body(void)
{
    const struct checkpoint_options options = {0};
    struct checkpoint *checkpoint = open_checkpoint(&options);
    struct problem problem = {""};
    CHECK(checkpoint_restore(checkpoint, &problem) == GPUFL_E_INVALID && strstr(problem.text, "saved"));
    checkpoint_close(checkpoint);
}

static void nothing_saved_cannot_be_restored(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", empty_body);
}

static void failing_body(void)
{
    const struct checkpoint_options options = {0};
    struct checkpoint *checkpoint = open_checkpoint(&options);
    struct problem problem = {""};
    device_memory_set("before");
    bool is_saved = checkpoint_save(checkpoint, &problem) == GPUFL_OK;
    device_memory_set("after");
    bool is_restored = is_saved && checkpoint_restore(checkpoint, &problem) == GPUFL_OK;
    CHECK(is_restored == !strcmp(device_memory, "before"));
    CHECK(strstr(getenv("FAKE_FAULTS"), "Free") ? is_restored
                                                : !is_restored && strstr(problem.text, "cuptiCheckpoint"));
    checkpoint_close(checkpoint);
}

static void every_call_that_fails_says_so_and_changes_nothing(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "fail=cuptiCheckpointSave@1:8", failing_body);
    in_child("libcupti.so.13", "fail=cuptiCheckpointRestore@1:999", failing_body);
    in_child("libcupti.so.13", "fail=cuptiCheckpointFree@1:3", failing_body);
}

static void missing_body(void)
{
    const struct checkpoint_options options = {0};
    struct cupti *loaded;
    struct checkpoint *checkpoint = NULL;
    struct problem problem = {""};
    CHECK(cupti_load(&loaded, NULL) == GPUFL_OK);
    CHECK(checkpoint_open(&checkpoint, loaded, &options, &problem) == GPUFL_E_NOT_FOUND && checkpoint == NULL);
    CHECK(strstr(problem.text, "libcheckpoint.so") && strstr(problem.text, "/old"));
}

static void a_missing_library_is_named_with_the_place(void **state)
{
    (void)state;
    in_child("old/libcupti.so.12", "", missing_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_restored_as_often_as_wanted_and_saved_anew),
        cmocka_unit_test(nothing_saved_cannot_be_restored),
        cmocka_unit_test(every_call_that_fails_says_so_and_changes_nothing),
        cmocka_unit_test(a_missing_library_is_named_with_the_place),
    };
    environment_clear();
    unsetenv("LD_LIBRARY_PATH"); /* where the real one may be */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
