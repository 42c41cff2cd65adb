/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the look-alike CUPTI that other tests rely on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fakes/fake_client.h"
#include "base/current_thread.h"

#include <time.h>

/* From the recording, read from its bytes when it was made: duration of all kernels, start of the first. */
#define REPLAY_KERNEL_NS 22006103ull
#define REPLAY_FIRST_KERNEL_NS 1794715042213173675ull

static void flush_body(void)
{
    void *one, *two;
    trace_start();
    CHECK(rt.cudaStreamCreate(&one) == FAKE_SUCCESS && rt.cudaStreamCreate(&two) == FAKE_SUCCESS);
    CHECK(launch(LONG_KERNEL, one) == FAKE_SUCCESS && launch(LONG_KERNEL, one) == FAKE_SUCCESS);
    CHECK(launch(SHORT_KERNEL, two) == FAKE_SUCCESS);
    CHECK(rt.cudaStreamSynchronize(two) == FAKE_SUCCESS);
    CHECK(cupti.flush_all(0) == CUPTI_ABI_SUCCESS);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == 1);
    const struct cupti_abi_kernel *kernel = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, 0);
    CHECK(strcmp(kernel->name, "_Z5shortPf") == 0 && kernel->end - kernel->start == 1000);
    CHECK(cupti.flush_all(CUPTI_ABI_FLUSH_FORCED) == CUPTI_ABI_SUCCESS);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == 3);
    const struct cupti_abi_kernel *running = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, 1);
    CHECK(running->start != 0 && running->end == 0);
    const struct cupti_abi_kernel *queued = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, 2);
    CHECK(queued->start == 0 && queued->end == 0);
    CHECK(cupti.flush_all(CUPTI_ABI_FLUSH_FORCED) == CUPTI_ABI_SUCCESS);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == 3); /* consumed, not repeated */
}

static void a_flush_gives_ended_work_and_a_forced_one_also_running_work(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", flush_body);
}

static void timeline_body(void)
{
    void *streams[2];
    trace_start();
    CHECK(rt.cudaStreamCreate(&streams[0]) == FAKE_SUCCESS && rt.cudaStreamCreate(&streams[1]) == FAKE_SUCCESS);
    for (int i = 0; i < 100; i++)
        CHECK(launch(i == 0 ? HALF_KERNEL : SHORT_KERNEL, streams[0]) == FAKE_SUCCESS);
    CHECK(launch(HALF_KERNEL, streams[1]) == FAKE_SUCCESS);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
    CHECK(cupti.flush_all(0) == CUPTI_ABI_SUCCESS);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == 101);
    uint64_t end = 0;
    const struct cupti_abi_kernel *first = NULL, *other = NULL;
    for (size_t i = 0; i < 101; i++) {
        const struct cupti_abi_kernel *kernel = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, i);
        const struct cupti_abi_api *call = NULL;
        for (size_t c = 0; (call = seen_at(CUPTI_ABI_KIND_RUNTIME, c)) != NULL; c++)
            if (call->correlation_id == kernel->correlation_id)
                break;
        CHECK(call != NULL && call->cbid == FAKE_ID_cudaLaunchKernel && kernel->start >= call->start);
        CHECK(call->thread_id == (uint32_t)(uintptr_t)pthread_self() && call->end >= call->start);
        if (first != NULL && kernel->stream_id != first->stream_id) {
            other = kernel;
            continue;
        }
        CHECK(kernel->start > end);
        end = kernel->end;
        first = first == NULL ? kernel : first;
    }
    CHECK(other != NULL && other->start < first->end && first->start < other->end);
}

static void work_is_in_order_within_a_stream_and_overlaps_between_streams(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", timeline_body);
}

static void worker_body(void)
{
    buffer_bytes = 4096;
    trace_start();
    launches(1000);
    size_t buffers = 0;
    while (buffers < 5) { /* the alarm ends it when nobody completes buffers */
        pthread_mutex_lock(&seen_lock);
        buffers = seen_buffers;
        pthread_mutex_unlock(&seen_lock);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK(cupti.flush_all(0) == CUPTI_ABI_SUCCESS);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == 1000);
}

static void full_buffers_come_back_without_a_flush(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", worker_body);
}

static void dropped_body(void)
{
    size_t dropped = 0;
    gives_no_buffers = true;
    trace_start();
    launches(10);
    CHECK(cupti.flush_all(1) == CUPTI_ABI_SUCCESS && seen_buffers == 0);
    /* 10 launches with a kernel each, a wait with its record, and cuInit. */
    CHECK(cupti.get_dropped(NULL, 0, &dropped) == CUPTI_ABI_SUCCESS && dropped == 23);
    CHECK(cupti.get_dropped(NULL, 0, &dropped) == CUPTI_ABI_SUCCESS && dropped == 0);
}

static void records_without_a_buffer_are_counted(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", dropped_body);
}

static void drop_every_body(void)
{
    size_t dropped = 0;
    trace_start();
    launches(100);
    CHECK(cupti.flush_all(1) == CUPTI_ABI_SUCCESS);
    CHECK(cupti.get_dropped(NULL, 0, &dropped) == CUPTI_ABI_SUCCESS);
    CHECK(dropped == 203 / 7 && seen_count + dropped == 203);
}

static void storm_body(void)
{
    trace_start();
    launches(100);
    CHECK(cupti.flush_all(1) == CUPTI_ABI_SUCCESS);
    CHECK(seen_count == 203 && seen_buffers == 406 && seen_empty == 203);
}

static void absurd_body(void)
{
    trace_start();
    launches(100);
    CHECK(cupti.flush_all(1) == CUPTI_ABI_SUCCESS);
    CHECK(seen_unreadable > 0);
    size_t kernels = 0, nameless = 0;
    for (size_t i = 0; i < seen_of_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL); i++) {
        const struct cupti_abi_kernel *kernel = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, i);
        kernels += kernel->name != NULL;
        nameless += kernel->name == NULL && kernel->end < kernel->start;
    }
    CHECK(kernels == 100 && nameless > 0);
}

static void asked_for_disorder_is_delivered_and_nothing_real_is_lost(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "drop_every=7", drop_every_body);
    in_child("libcupti.so.13", "storm=1", storm_body);
    in_child("libcupti.so.13", "absurd_record_every=10", absurd_body);
}

static void failure_body(void)
{
    CHECK(cupti.enable(10) == CUPTI_ABI_SUCCESS);
    CHECK(cupti.enable(1) == CUPTI_ABI_INSUFFICIENT_PRIVILEGES);
    CHECK(cupti.enable(1) == CUPTI_ABI_SUCCESS);
    CHECK(cupti.flush_all(0) == 8 && cupti.flush_all(0) == 8);
}

static void a_chosen_call_fails_with_the_chosen_result(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "fail=cuptiActivityEnable@2:35; fail=cuptiActivityFlushAll@*:8", failure_body);
}

static void callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    const struct cupti_abi_callback_data *call = data;
    uint32_t *ids = user;
    CHECK(domain == CUPTI_ABI_DOMAIN_RUNTIME && cbid == FAKE_ID_cudaLaunchKernel);
    CHECK(strcmp(call->function_name, "cudaLaunchKernel") == 0 && strcmp(call->symbol_name, "_Z5shortPf") == 0);
    if (call->site == CUPTI_ABI_API_ENTER)
        *call->correlation_data = 42;
    else
        CHECK(*call->correlation_data == 42);
    ids[call->site] = call->correlation_id;
}

static void subscriber_body(void)
{
    void *subscriber, *second;
    uint32_t ids[2] = {0, 0};
    char holder[CUPTI_ABI_OTHER_NAME_BYTES] = "";
    struct cupti_abi_subscriber_params first = {.struct_size = sizeof first, .name = "mine"};
    struct cupti_abi_subscriber_params other = {sizeof other, "other", holder, sizeof holder};
    trace_start();
    CHECK(cupti.subscribe_v2(&subscriber, callback, ids, &first) == CUPTI_ABI_SUCCESS);
    CHECK(cupti.subscribe_v2(&second, callback, ids, &other) == CUPTI_ABI_MULTIPLE_SUBSCRIBERS);
    CHECK(strcmp(holder, "mine") == 0);
    CHECK(cupti.subscribe(&second, callback, ids) == CUPTI_ABI_MULTIPLE_SUBSCRIBERS);
    CHECK(cupti.enable_callback(1, subscriber, CUPTI_ABI_DOMAIN_RUNTIME, FAKE_ID_cudaLaunchKernel) ==
          CUPTI_ABI_SUCCESS);
    launches(1);
    CHECK(cupti.flush_all(0) == CUPTI_ABI_SUCCESS);
    const struct cupti_abi_kernel *kernel = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, 0);
    CHECK(ids[0] != 0 && ids[0] == ids[1] && kernel->correlation_id == ids[0]);
    CHECK(cupti.unsubscribe(subscriber) == CUPTI_ABI_SUCCESS);
    ids[0] = 0;
    launches(1);
    CHECK(ids[0] == 0);
    CHECK(cupti.subscribe(&second, callback, ids) == CUPTI_ABI_SUCCESS);
}

static void other_tool_body(void)
{
    void *subscriber;
    char holder[CUPTI_ABI_OTHER_NAME_BYTES] = "";
    struct cupti_abi_subscriber_params params = {sizeof params, "mine", holder, sizeof holder};
    CHECK(cupti.subscribe_v2(&subscriber, callback, NULL, &params) == CUPTI_ABI_MULTIPLE_SUBSCRIBERS);
    CHECK(strcmp(holder, "OtherTool") == 0);
}

static void there_is_one_subscriber_and_its_name_is_reported(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", subscriber_body);
    in_child("libcupti.so.13", "subscriber=OtherTool", other_tool_body);
}

static void calls_body(void)
{
    const char *name;
    CHECK(cupti.register_callbacks(buffer_request, buffer_complete) == CUPTI_ABI_SUCCESS);
    CHECK(cupti.enable(CUPTI_ABI_KIND_RUNTIME) == CUPTI_ABI_SUCCESS);
    CHECK(cupti.enable(CUPTI_ABI_KIND_EXTERNAL_CORRELATION) == CUPTI_ABI_SUCCESS);
    CHECK(cupti.enable_runtime_api(FAKE_ID_cudaDeviceSynchronize, 0) == CUPTI_ABI_SUCCESS);
    CHECK(cupti.set_thread_id_type(CUPTI_ABI_THREAD_ID_SYSTEM) == CUPTI_ABI_SUCCESS);
    CHECK(cupti.cuptiActivityPushExternalCorrelationId(3, 77) == CUPTI_ABI_SUCCESS);
    launches(1);
    uint64_t last = 0;
    CHECK(cupti.cuptiActivityPopExternalCorrelationId(3, &last) == CUPTI_ABI_SUCCESS && last == 77);
    CHECK(cupti.cuptiActivityPopExternalCorrelationId(3, &last) != CUPTI_ABI_SUCCESS);
    launches(1);
    CHECK(cupti.flush_all(0) == CUPTI_ABI_SUCCESS && seen_count == 3);
    const struct cupti_abi_external *external = (const void *)seen[0];
    const struct cupti_abi_api *call = (const void *)seen[1];
    CHECK(external->kind == CUPTI_ABI_KIND_EXTERNAL_CORRELATION && external->external_id == 77);
    CHECK(call->correlation_id == external->correlation_id && call->thread_id == current_thread_id());
    CHECK(kind_of(seen[2]) == CUPTI_ABI_KIND_RUNTIME);
    CHECK(cupti.disable(CUPTI_ABI_KIND_RUNTIME) == CUPTI_ABI_SUCCESS);
    launches(1);
    CHECK(cupti.flush_all(1) == CUPTI_ABI_SUCCESS && seen_count == 3);
    CHECK(cupti.cuptiGetCallbackName(2, 211, &name) == CUPTI_ABI_SUCCESS &&
          strcmp(name, "cudaLaunchKernel_v7000") == 0);
}

static void calls_can_be_chosen_and_carry_external_ids(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", calls_body);
}

static void graph_body(void)
{
    void *stream, *graph, *executable;
    trace_start();
    CHECK(rt.cudaStreamCreate(&stream) == FAKE_SUCCESS && rt.cudaStreamBeginCapture(stream, 0) == FAKE_SUCCESS);
    CHECK(launch(SHORT_KERNEL, stream) == FAKE_SUCCESS && launch(SHORT_KERNEL, stream) == FAKE_SUCCESS);
    CHECK(rt.cudaStreamEndCapture(stream, &graph) == FAKE_SUCCESS);
    CHECK(rt.cudaGraphInstantiate(&executable, graph, 0) == FAKE_SUCCESS);
    CHECK(rt.cudaGraphLaunch(executable, stream) == FAKE_SUCCESS);
    CHECK(rt.cudaStreamSynchronize(stream) == FAKE_SUCCESS && cupti.flush_all(0) == CUPTI_ABI_SUCCESS);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == 2); /* captured launches do not run */
    const struct cupti_abi_kernel *a = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, 0);
    const struct cupti_abi_kernel *b = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, 1);
    CHECK(a->correlation_id == b->correlation_id && a->graph_id == b->graph_id && a->graph_id != 0);
    CHECK(a->graph_node_id != b->graph_node_id && a->graph_node_id != 0);
}

static void graph_nodes_share_the_id_of_their_launch(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", graph_body);
}

/* Strides of a kernel, a copy, a memory and a synchronization record. */
static void layout_check(uint32_t version, size_t kernel, size_t copy, size_t memory, size_t sync)
{
    uint32_t reported = 0;
    void *device_memory, *host = calloc(1, 64);
    trace_start();
    CHECK(cupti.get_version(&reported) == CUPTI_ABI_SUCCESS && reported == version);
    CHECK(rt.cudaMalloc(&device_memory, 64) == FAKE_SUCCESS);
    CHECK(rt.cudaMemcpy(device_memory, host, 64, FAKE_COPY_TO_DEVICE) == FAKE_SUCCESS);
    launches(1);
    uint8_t buffer[512] = {0};
    const struct {
        uint32_t kind;
        size_t bytes;
    } expected[] = {{CUPTI_ABI_KIND_CONCURRENT_KERNEL, kernel},
                    {CUPTI_ABI_KIND_MEMCPY, copy},
                    {CUPTI_ABI_KIND_MEMORY2, memory},
                    {CUPTI_ABI_KIND_SYNCHRONIZATION, sync}};
    for (size_t i = 0; i < 4; i++) {
        void *record = NULL;
        memcpy(buffer, &expected[i].kind, 4);
        CHECK(cupti.get_next_record(buffer, expected[i].bytes - 1, &record) == CUPTI_ABI_INVALID_KIND);
        CHECK(cupti.get_next_record(buffer, expected[i].bytes, &record) == CUPTI_ABI_SUCCESS);
        CHECK(cupti.get_next_record(buffer, expected[i].bytes, &record) == CUPTI_ABI_MAX_LIMIT_REACHED);
    }
    CHECK(cupti.flush_all(0) == CUPTI_ABI_SUCCESS);
    const struct cupti_abi_memcpy *record = seen_at(CUPTI_ABI_KIND_MEMCPY, 0);
    CHECK(record->bytes == 64 && record->copy_kind == 1 && record->flags == 0);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_MEMORY2) == 1 && seen_of_kind(CUPTI_ABI_KIND_SYNCHRONIZATION) == 1);
    free(host);
}

static void layout_13_body(void)
{
    layout_check(130001, 216, 96, 128, 56);
}

static void layout_12_body(void)
{
    CHECK(cupti.subscribe_v2 == NULL && cupti.enable_runtime_api != NULL);
    layout_check(22, 208, 88, 120, 40);
}

static void layout_12_8_body(void)
{
    layout_check(26, 208, 96, 128, 56);
}

static void layout_old_body(void)
{
    CHECK(cupti.subscribe_v2 == NULL && cupti.enable_runtime_api == NULL && cupti.set_thread_id_type == NULL);
    layout_check(19, 208, 88, 120, 40);
}

static void broken_body(void)
{
    CHECK(cupti.register_callbacks == NULL && cupti.enable != NULL);
}

static void each_version_has_its_own_records_and_symbols(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", layout_13_body);
    in_child("cuda12/libcupti.so.12", "", layout_12_body);
    in_child("cuda12/libcupti.so.12", "version=26", layout_12_8_body);
    in_child("old/libcupti.so.12", "", layout_old_body);
    in_child("broken/libcupti.so.13", "", broken_body);
}

static void replay_check(void)
{
    setenv("FAKE_REPLAY", SOURCE_DIR "/tests/recordings/h200_torch_train.cuptirec.zst", 1);
    trace_start();
    CHECK(cupti.enable(CUPTI_ABI_KIND_OVERHEAD) == CUPTI_ABI_SUCCESS);
    launches(3);
    CHECK(cupti.flush_all(CUPTI_ABI_FLUSH_FORCED) == CUPTI_ABI_SUCCESS);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL) == 2332);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_RUNTIME) == 2361 && seen_of_kind(CUPTI_ABI_KIND_DRIVER) == 122);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_MEMCPY) == 54 && seen_of_kind(CUPTI_ABI_KIND_MEMSET) == 73);
    CHECK(seen_of_kind(CUPTI_ABI_KIND_MEMORY2) == 635 && seen_of_kind(CUPTI_ABI_KIND_OVERHEAD) == 30);
    CHECK(seen_of_kind(8) == 0); /* DEVICE was not enabled */
}

static void replay_body(void)
{
    uint64_t before = 0, duration = 0;
    CHECK(cupti.get_timestamp(&before) == CUPTI_ABI_SUCCESS);
    replay_check();
    for (size_t i = 0; i < 2332; i++) {
        const struct cupti_abi_kernel *kernel = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, i);
        CHECK(kernel->start >= before && kernel->end > kernel->start);
        CHECK(strlen(kernel->name) > 2);
        duration += kernel->end - kernel->start;
    }
    CHECK(duration == REPLAY_KERNEL_NS);
}

static void replay_recorded_times_body(void)
{
    setenv("FAKE_REPLAY_TIMES", "recorded", 1);
    replay_check();
    bool is_found = false; /* buffers may be delivered in any order */
    for (size_t i = 0; i < 2332; i++) {
        const struct cupti_abi_kernel *kernel = seen_at(CUPTI_ABI_KIND_CONCURRENT_KERNEL, i);
        is_found = is_found || kernel->start == REPLAY_FIRST_KERNEL_NS;
    }
    CHECK(is_found);
}

static void a_recording_is_replayed_to_the_last_record(void **state)
{
    (void)state;
    in_child("libcupti.so.13", "", replay_body);
    in_child("libcupti.so.13", "", replay_recorded_times_body);
}

int main(void)
{
    environment_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flush_gives_ended_work_and_a_forced_one_also_running_work),
        cmocka_unit_test(work_is_in_order_within_a_stream_and_overlaps_between_streams),
        cmocka_unit_test(full_buffers_come_back_without_a_flush),
        cmocka_unit_test(records_without_a_buffer_are_counted),
        cmocka_unit_test(asked_for_disorder_is_delivered_and_nothing_real_is_lost),
        cmocka_unit_test(a_chosen_call_fails_with_the_chosen_result),
        cmocka_unit_test(there_is_one_subscriber_and_its_name_is_reported),
        cmocka_unit_test(calls_can_be_chosen_and_carry_external_ids),
        cmocka_unit_test(graph_nodes_share_the_id_of_their_launch),
        cmocka_unit_test(each_version_has_its_own_records_and_symbols),
        cmocka_unit_test(a_recording_is_replayed_to_the_last_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
