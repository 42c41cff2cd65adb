/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that begin and end while callbacks may be in progress on other threads: for the thread sanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/captures.h"
#include "driver/cupti_calls.h"
#include "driver/cupti_events.h"
#include "driver/cupti_subscription.h"
#include "driver/cupti_table.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { RUNTIME_LAUNCH = 211, THREADS = 2, SESSIONS = 200 };

static struct cupti cupti;
static _Atomic(cupti_abi_callback_fn *) callback;
static atomic_bool is_over;
static atomic_uint calls_seen;

static int subscribe(void **subscriber, cupti_abi_callback_fn *function, void *user)
{
    (void)user;
    *subscriber = &cupti;
    atomic_store(&callback, function);
    return CUPTI_ABI_SUCCESS;
}

static int unsubscribe(void *subscriber)
{
    (void)subscriber;
    return CUPTI_ABI_SUCCESS;
}

static int enable_callback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid)
{
    (void)enable, (void)subscriber, (void)domain, (void)cbid;
    return CUPTI_ABI_SUCCESS;
}

static int external_pop(uint32_t kind, uint64_t *id)
{
    (void)kind, (void)id;
    return CUPTI_ABI_INVALID_PARAMETER; /* there is none */
}

static int external_push(uint32_t kind, uint64_t id)
{
    (void)kind, (void)id;
    return CUPTI_ABI_SUCCESS;
}

static int id_of(void *context, uint32_t *id)
{
    (void)context;
    *id = 1;
    return CUPTI_ABI_SUCCESS;
}

static void on_call(const struct user_call *call, bool is_enter)
{
    (void)call, (void)is_enter;
    atomic_fetch_add(&calls_seen, 1);
}

static void *launch_on(void *nothing)
{
    static int success;
    struct cupti_abi_callback_data data = {.function_return_value = &success, .symbol_name = "k", .context_uid = 9};
    while (!atomic_load(&is_over))
        for (int is_exit = 0; is_exit < 2; is_exit++) {
            data.site = is_exit ? CUPTI_ABI_API_EXIT : CUPTI_ABI_API_ENTER;
            atomic_load (&callback)(NULL, CUPTI_ABI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, &data);
        }
    return nothing;
}

static void session_begin(bool with_external)
{
    static const struct cupti_listener nobody = {.user = NULL};
    char other[64];
    assert_int_equal(cupti_claim(&cupti, other, sizeof other, NULL), GPUFL_OK);
    assert_int_equal(cupti_listen(&cupti, &nobody, NULL), GPUFL_OK);
    assert_true(cupti_listen_calls(&cupti, CUPTI_CALL_LAUNCH, with_external, on_call));
}

static void session_end(void)
{
    cupti_silence(&cupti);
    cupti_release(&cupti);
}

static void sessions_begin_and_end_beside_threads_that_launch(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    session_begin(true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_on, NULL), 0);
    for (int i = 0; i < SESSIONS; i++) {
        unsigned before = atomic_load(&calls_seen);
        while (atomic_load(&calls_seen) == before)
            sched_yield();
        session_end();
        session_begin(i % 2);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    session_end();
    assert_false(captures_any());
}

int main(void)
{
    cupti.call = (struct cupti_table){.subscribe = subscribe,
                                      .unsubscribe = unsubscribe,
                                      .enable_callback = enable_callback,
                                      .get_context_id = id_of,
                                      .get_device_id = id_of,
                                      .pop_external = external_pop,
                                      .push_external = external_push};
    const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_begin_and_end_beside_threads_that_launch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
