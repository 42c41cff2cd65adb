/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a session through the public API, without a GPU: every order of calls has a defined result. */
#include "session_fixture.h"

#include <gpufl/gpufl.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static char dir[256];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "%s", fixture_dir());
    unsetenv("GPUFL_DISABLED");
    return 0;
}
static int remove_dir(void **state)
{
    (void)state;
    gpufl_shutdown();
    fixture_remove(dir);
    return 0;
}

static gpufl_options options(void)
{
    gpufl_options given = GPUFL_OPTIONS_INIT;
    given.app_name = "test";
    given.log_path = dir;
    given.backend = GPUFL_BACKEND_NONE;
    return given;
}

struct seen {
    struct log_summary summary;
    uint64_t issues;
    int64_t scope_ends[4];
    int64_t threads[64];
    int thread_count;
};

static bool on_line(void *user, const struct log_line *line)
{
    struct seen *seen = user;
    if (line->type == RECORD_SCOPE_EVENT_BATCH)
        for (uint32_t i = 0; i < line->batch->row_count; i++)
            seen->scope_ends[line->batch->columns[SCOPE_EVENT_TYPE].cells[i] & 3]++;
    return true;
}
static void on_issue(void *user, const struct log_issue *issue)
{
    (void)issue;
    ((struct seen *)user)->issues++;
}

static struct seen read_session(const char *path)
{
    struct seen seen = {0};
    struct problem problem = {""};
    if (log_read(path, on_line, on_issue, &seen, &seen.summary, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    return seen;
}

static int session_count(void)
{
    struct session_list list = {0};
    int count = session_list_find(&list, dir, NULL) == GPUFL_OK ? (int)list.count : 0;
    session_list_free(&list);
    return count;
}

static void scopes_before_init_and_after_shutdown_are_inert(void **state)
{
    (void)state;
    gpufl_scope_begin("too early");
    gpufl_scope_end();
    gpufl_options given = options();
    assert_int_equal(gpufl_init(&given), GPUFL_OK);
    GFL_SCOPE("inside")
    {
        GFL_SCOPE("nested") {}
    }
    gpufl_shutdown();
    gpufl_scope_begin("too late");
    gpufl_scope_end();
    struct seen seen = read_session(gpufl_session_dir());
    assert_int_equal(seen.scope_ends[0], 2);
    assert_int_equal(seen.scope_ends[1], 2);
    assert_int_equal(seen.issues, 0);
    assert_true(seen.summary.has_shutdown);
}

/* The functions behind the inline ones are public, too: without a session they must not touch anything. */
static void pushing_scopes_without_a_session_is_inert(void **state)
{
    (void)state;
    pthread_key_t first;
    assert_int_equal(pthread_key_create(&first, NULL), 0);
    int mine;
    assert_int_equal(pthread_setspecific(first, &mine), 0);
    for (int i = 0; i < 5000; i++) {
        gpufl_scope_push("nobody listens", NULL);
        gpufl_scope_pop();
        gpufl_scope_pop();
    }
    assert_ptr_equal(pthread_getspecific(first), &mine);
    pthread_key_delete(first);
}

static void c_scope_macro_ends_on_break_and_return(void **state)
{
    (void)state;
    gpufl_options given = options();
    assert_int_equal(gpufl_init(&given), GPUFL_OK);
    for (int i = 0; i < 3; i++)
        GFL_SCOPE("loop")
        {
            if (i == 1)
                break;
        }
    gpufl_shutdown();
    struct seen seen = read_session(gpufl_session_dir());
    assert_int_equal(seen.scope_ends[0], 3);
    assert_int_equal(seen.scope_ends[1], 3);
}

static void init_twice_joins_the_session_and_wants_two_shutdowns(void **state)
{
    (void)state;
    gpufl_options given = options();
    assert_int_equal(gpufl_init(&given), GPUFL_OK);
    assert_int_equal(gpufl_init(&given), GPUFL_OK);
    assert_int_equal(session_count(), 1);
    gpufl_shutdown();
    assert_int_equal(gpufl_active_engine(), GPUFL_ENGINE_MONITOR);
    gpufl_shutdown();
    assert_int_equal(gpufl_active_engine(), GPUFL_ENGINE_DEFAULT);
    gpufl_shutdown(); /* without a session: nothing */
}

static void sessions_in_turn_each_have_their_own_directory(void **state)
{
    (void)state;
    gpufl_options given = options();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gpufl_init(&given), GPUFL_OK);
        gpufl_scope_begin("x");
        gpufl_scope_end();
        gpufl_shutdown();
        assert_int_equal(read_session(gpufl_session_dir()).scope_ends[1], 1);
    }
    assert_int_equal(session_count(), 3);
}

static void disabled_makes_no_file_and_every_call_inert(void **state)
{
    (void)state;
    gpufl_options given = options();
    given.enabled = GPUFL_OFF;
    assert_int_equal(gpufl_init(&given), GPUFL_E_DISABLED);
    given.enabled = GPUFL_ON;
    setenv("GPUFL_DISABLED", "yes", 1);
    assert_int_equal(gpufl_init(&given), GPUFL_E_DISABLED);
    gpufl_scope_begin("x");
    gpufl_scope_end();
    gpufl_system_start("x");
    gpufl_system_stop("x");
    gpufl_shutdown();
    unsetenv("GPUFL_DISABLED");
    assert_int_equal(gpufl_recording, 0);
    assert_int_equal(session_count(), 0);
}

static void an_open_scope_is_closed_by_shutdown_as_unfinished(void **state)
{
    (void)state;
    gpufl_options given = options();
    assert_int_equal(gpufl_init(&given), GPUFL_OK);
    gpufl_scope_begin("never ended");
    gpufl_shutdown();
    gpufl_scope_end();
    struct seen seen = read_session(gpufl_session_dir());
    assert_int_equal(seen.scope_ends[0], 1);
    assert_int_equal(seen.scope_ends[3], 1);
}

static int wait_for(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Forks within a session and a scope; the parent's session must not notice. */
static void check_forked_child(bool (*is_good)(const gpufl_options *given))
{
    gpufl_options given = options();
    assert_int_equal(gpufl_init(&given), GPUFL_OK);
    gpufl_scope_begin("parent");
    pid_t child = fork();
    if (child == 0)
        _exit(is_good(&given) ? 0 : 1);
    assert_int_equal(wait_for(child), 0);
    gpufl_scope_end();
    gpufl_shutdown();
    struct seen seen = read_session(gpufl_session_dir());
    assert_int_equal(seen.scope_ends[1], 1);
    assert_int_equal(seen.issues, 0);
}

static bool is_inert(const gpufl_options *given)
{
    (void)given;
    gpufl_scope_begin("in child, not recorded");
    gpufl_scope_end();
    bool has_no_engine = gpufl_active_engine() == GPUFL_ENGINE_DEFAULT;
    gpufl_shutdown();
    return has_no_engine;
}

static bool can_start_a_session(const gpufl_options *given)
{
    bool has_started = is_inert(given) && gpufl_init(given) == GPUFL_OK;
    gpufl_scope_begin("child's own");
    gpufl_scope_end();
    gpufl_shutdown();
    return has_started;
}

static void a_forked_child_is_inert(void **state)
{
    (void)state;
    check_forked_child(is_inert);
    assert_int_equal(session_count(), 1);
}

/* The sanitizers cannot follow the child of a program with threads. The thread sanitizer still knows the parent's
 * threads and aborts when a new one gets the address of one of them ("dup thread with used id"); the address
 * sanitizer's allocator, unlike glibc's, stays locked if a thread of the parent was using it. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZER_DOES_NOT_FORK
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZER_DOES_NOT_FORK
#endif
#endif

static void a_forked_child_may_start_its_own_session(void **state)
{
    (void)state;
#ifdef SANITIZER_DOES_NOT_FORK
    skip();
#endif
    check_forked_child(can_start_a_session);
    assert_int_equal(session_count(), 2);
}

static void exit_without_shutdown_still_finishes_the_session(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        gpufl_options given = options();
        if (gpufl_init(&given) != GPUFL_OK)
            _exit(1);
        gpufl_scope_begin("open at exit");
        exit(0);
    }
    assert_int_equal(wait_for(child), 0);
    struct session_list list = {0};
    assert_int_equal(session_list_find(&list, dir, NULL), GPUFL_OK);
    assert_int_equal(list.count, 1);
    struct seen seen = read_session(list.paths[0]);
    session_list_free(&list);
    assert_true(seen.summary.has_shutdown);
    assert_int_equal(seen.issues, 0);
}

static void gpufl_threads_take_none_of_the_program_s_signals(void **state)
{
    (void)state;
    gpufl_options given = options();
    given.system_sample_rate_ms = 20;
    given.continuous_system_sampling = GPUFL_ON;
    assert_int_equal(gpufl_init(&given), GPUFL_OK);
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1); /* would kill the process if any thread had it unblocked */
    sigpending(&pending);
    assert_int_equal(sigismember(&pending, SIGUSR1), 1);
    struct timespec now = {0, 0};
    assert_int_equal(sigtimedwait(&set, NULL, &now), SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    gpufl_shutdown();
}

static atomic_bool is_over;

static void *use_scopes(void *argument)
{
    while (!is_over) {
        gpufl_scope_begin(argument);
        gpufl_scope_end();
        gpufl_mark(argument);
    }
    return NULL;
}

static void scopes_while_sessions_come_and_go_are_safe(void **state)
{
    (void)state;
    gpufl_options given = options();
    given.system_sample_rate_ms = 10; /* scopes hold the sampler */
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_scopes, "racing"), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(gpufl_init(&given), GPUFL_OK);
        gpufl_shutdown();
        assert_int_equal(read_session(gpufl_session_dir()).summary.damaged_lines, 0);
    }
    is_over = true;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void an_unwritable_path_fails_with_a_message_and_leaves_nothing_running(void **state)
{
    (void)state;
    gpufl_options given = options();
    given.log_path = "/proc/nowhere";
    assert_int_equal(gpufl_init(&given), GPUFL_E_IO);
    assert_non_null(strstr(gpufl_last_error(), "/proc/nowhere"));
    assert_int_equal(gpufl_recording, 0);
}

static void trace_without_a_driver_degrades_to_monitor_and_says_why(void **state)
{
    (void)state;
    setenv("GPUFL_CUPTI_PATH", "/nonexistent/libcupti.so", 1);
    gpufl_options given = options();
    given.profiling_engine = GPUFL_ENGINE_TRACE;
    assert_int_equal(gpufl_init(&given), GPUFL_OK);
    assert_int_equal(gpufl_active_engine(), GPUFL_ENGINE_MONITOR);
    gpufl_shutdown();
    unsetenv("GPUFL_CUPTI_PATH");
}

static void the_report_is_written_to_the_file_that_was_asked_for(void **state)
{
    (void)state;
    gpufl_options given = options();
    assert_int_equal(gpufl_init(&given), GPUFL_OK);
    gpufl_scope_begin("work");
    gpufl_scope_end();
    gpufl_shutdown();
    char path[512];
    fixture_path(path, dir, "report.txt");
    assert_int_equal(gpufl_generate_report(path), GPUFL_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char text[8192];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_non_null(strstr(text, "work"));
    assert_int_equal(gpufl_generate_report("/nonexistent/report.txt"), GPUFL_E_IO);
    assert_string_equal(gpufl_last_error(),
                        "cannot write the report to '/nonexistent/report.txt': No such file or directory");
    assert_int_equal(gpufl_generate_report("/dev/full"), GPUFL_E_IO);
    assert_string_equal(gpufl_last_error(), "cannot write the report to '/dev/full': No space left on device");
    assert_int_equal(gpufl_generate_report(dir), GPUFL_E_IO);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(pushing_scopes_without_a_session_is_inert),  /* first: before any session */
        IN_DIR(scopes_while_sessions_come_and_go_are_safe), /* second: its threads exist before the first session */
        IN_DIR(scopes_before_init_and_after_shutdown_are_inert),
        IN_DIR(c_scope_macro_ends_on_break_and_return),
        IN_DIR(init_twice_joins_the_session_and_wants_two_shutdowns),
        IN_DIR(sessions_in_turn_each_have_their_own_directory),
        IN_DIR(disabled_makes_no_file_and_every_call_inert),
        IN_DIR(an_open_scope_is_closed_by_shutdown_as_unfinished),
        IN_DIR(a_forked_child_is_inert),
        IN_DIR(a_forked_child_may_start_its_own_session),
        IN_DIR(exit_without_shutdown_still_finishes_the_session),
        IN_DIR(gpufl_threads_take_none_of_the_program_s_signals),
        IN_DIR(an_unwritable_path_fails_with_a_message_and_leaves_nothing_running),
        IN_DIR(trace_without_a_driver_degrades_to_monitor_and_says_why),
        IN_DIR(the_report_is_written_to_the_file_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
