/* SPDX-License-Identifier: Apache-2.0 */
/* libgpufl.so must never block or crash the program that loads it, nor block its children, whatever NVIDIA's libraries
 * and other threads do at that moment. Each program is a child with an alarm. */
#include "../unit/session_fixture.h"

#include "../fakes/cuda_fake.h"
#include "../unit/sanitizer.h"

#include <gpufl/gpufl.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { PROGRAM_S = 900, CHILD_S = 600, CUDA_START_MS = 400 };

#define LIBRARY BUILD_DIR "/lib/libgpufl.so"
#define API(X)             \
    X(gpufl_init)          \
    X(gpufl_shutdown)      \
    X(gpufl_scope_push)    \
    X(gpufl_scope_pop)     \
    X(gpufl_active_engine) \
    X(gpufl_last_error)

/* For child programs, in which cmocka's assertions do not work. */
#define CHECK(claim)                                                            \
    do {                                                                        \
        if (!(claim)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim); \
            _exit(1);                                                           \
        }                                                                       \
    } while (0)

static struct {
#define MEMBER(symbol) __typeof__(&symbol) symbol;
    API(MEMBER)
#undef MEMBER
} api;
static void *library, *driver;
static __typeof__(&cuInit) cuda_init;
static char dir[256];

/* Loads the shared library as a program does, so that it can be closed. */
static void libraries_load(void)
{
    driver = dlopen(FAKES_DIR "/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    library = dlopen(LIBRARY, RTLD_NOW);
    CHECK(driver && library);
    *(void **)&cuda_init = dlsym(driver, "cuInit");
#define LOAD(symbol) *(void **)&api.symbol = dlsym(library, #symbol);
    API(LOAD)
#undef LOAD
}

static int end_of(pid_t child)
{
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

static void check_program(const char *faults, void (*body)(void))
{
    fflush(NULL);
    pid_t program = fork();
    assert_true(program >= 0);
    if (program == 0) {
        static const char *const paths[] = {"GPUFL_CUDA_PATH", "GPUFL_CUPTI_PATH", "GPUFL_NVML_PATH"};
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
            setenv(paths[i], FAKES_DIR, 1);
        setenv("GPUFL_SYSFS_ROOT", "/nonexistent", 1);
        setenv("GPUFL_LOG_DIR", dir, 1);
        setenv("FAKE_FAULTS", faults, 1);
        alarm(PROGRAM_S);
        body();
        _exit(0);
    }
    assert_int_equal(end_of(program), 0);
}

static gpufl_options options_of(gpufl_engine engine)
{
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.profiling_engine = engine;
    return options;
}

static gpufl_options options_without_gpu(void)
{
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.backend = GPUFL_BACKEND_NONE;
    return options;
}

/* A child of the program that records a session itself. */
static void check_recording_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        gpufl_options options = options_without_gpu();
        alarm(CHILD_S);
        gpufl_status status = api.gpufl_init(&options);
        api.gpufl_shutdown();
        _exit(status);
    }
    CHECK(end_of(child) == GPUFL_OK);
}

/* ---- starting beside CUDA ---- */

static atomic_bool has_cuda;

static void *start_cuda_in_the_midst(void *argument)
{
    (void)argument;
    usleep(CUDA_START_MS / 2 * 1000);
    CHECK(cuda_init(0) == FAKE_SUCCESS);
    atomic_store(&has_cuda, true);
    return NULL;
}

static void start_beside_cuda(void)
{
    gpufl_options options = options_of(GPUFL_ENGINE_TRACE);
    pthread_t other;
    setenv("CUDA_INJECTION64_PATH", BUILD_DIR "/lib/libgpufl_inject.so", 1);
    libraries_load();
    CHECK(!pthread_create(&other, NULL, start_cuda_in_the_midst, NULL));
    CHECK(api.gpufl_init(&options) == GPUFL_OK);
    CHECK(!pthread_join(other, NULL));
    CHECK(api.gpufl_active_engine() == GPUFL_ENGINE_TRACE);
    api.gpufl_shutdown();
    /* It is traced from outside, whichever started first, until its end. */
    CHECK(api.gpufl_active_engine() == GPUFL_ENGINE_TRACE);
}

static void an_init_beside_the_injection_of_cuinit_does_not_hang(void **state)
{
    (void)state;
    char faults[64];
    snprintf(faults, sizeof faults, "subscribe_starts_cuda_ms=%d", CUDA_START_MS);
    check_program(faults, start_beside_cuda);
}

static void come_and_go_beside_cuda(void)
{
    gpufl_options options = options_of(GPUFL_ENGINE_TRACE);
    pthread_t other;
    setenv("CUDA_INJECTION64_PATH", BUILD_DIR "/lib/libgpufl_inject.so", 1);
    libraries_load();
    CHECK(api.gpufl_init(&options) == GPUFL_OK);
    CHECK(!pthread_create(&other, NULL, start_cuda_in_the_midst, NULL));
    while (!atomic_load(&has_cuda)) {
        api.gpufl_shutdown();
        CHECK(api.gpufl_init(&options) == GPUFL_OK);
    }
    CHECK(!pthread_join(other, NULL));
    api.gpufl_shutdown();
    CHECK(api.gpufl_active_engine() != GPUFL_ENGINE_DEFAULT);
}

static void an_injection_beside_inits_and_shutdowns_is_never_forgotten(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        check_program("", come_and_go_beside_cuda);
}

/* ---- NVIDIA's libraries fork ---- */

static void start_and_stop_and_start(void)
{
    libraries_load();
    for (int i = 0; i < 3; i++) {
        CHECK(api.gpufl_init(NULL) == GPUFL_OK);
        api.gpufl_shutdown();
    }
}

static void an_nvml_that_forks_while_it_starts_does_not_hang_an_init(void **state)
{
    (void)state;
    check_program("nvml_init_forks=1", start_and_stop_and_start);
}

/* ---- locks that a child inherits ---- */

static atomic_bool is_blocked;

static void block_at_level(void *user, gpufl_log_level level, const char *message)
{
    (void)message;
    if (level != *(const gpufl_log_level *)user)
        return;
    atomic_store(&is_blocked, true);
    while (true)
        pause();
}

static void *start_and_block(void *options)
{
    (void)api.gpufl_init(options);
    return NULL;
}

/* In a program that may have had a session before: gpufl registers its fork handlers with the first session. */
static void fork_beside_a_blocked_message(gpufl_options *options, gpufl_log_level level, bool is_first)
{
    gpufl_options first = options_without_gpu();
    pthread_t other;
    libraries_load();
    if (!is_first) {
        CHECK(api.gpufl_init(&first) == GPUFL_OK);
        api.gpufl_shutdown();
    }
    options->log_fn = block_at_level;
    options->log_user = &level;
    CHECK(!pthread_create(&other, NULL, start_and_block, options));
    while (!atomic_load(&is_blocked))
        usleep(1000);
    check_recording_child();
}

static void fork_beside_a_failed_init(void)
{
    gpufl_options options = options_without_gpu();
    options.log_path = "/proc/none";
    fork_beside_a_blocked_message(&options, GPUFL_LOG_ERROR, false);
}

/* The message is sent from within init, which holds the session's lock. */
static void fork_beside_an_init(void)
{
    gpufl_options options = options_without_gpu();
    fork_beside_a_blocked_message(&options, GPUFL_LOG_INFO, false);
}

static void fork_beside_the_first_init(void)
{
    gpufl_options options = options_without_gpu();
    options.profiling_engine = GPUFL_ENGINE_TRACE; /* unavailable here: causes a warning during the start */
    fork_beside_a_blocked_message(&options, GPUFL_LOG_WARNING, true);
}

static void a_child_forked_while_a_message_is_being_taken_may_start_a_session(void **state)
{
    (void)state;
    if (IS_SANITIZED)
        skip();
    check_program("", fork_beside_a_failed_init);
}

static void a_fork_beside_an_init_that_never_ends_does_not_hang_nor_does_its_child(void **state)
{
    (void)state;
    if (IS_SANITIZED)
        skip();
    check_program("", fork_beside_an_init);
}

static void a_fork_beside_the_first_init_leaves_no_lock_to_the_child(void **state)
{
    (void)state;
    if (IS_SANITIZED)
        skip();
    check_program("", fork_beside_the_first_init);
}

static atomic_bool is_over;

static void *use_scopes(void *argument)
{
    (void)argument;
    while (!atomic_load(&is_over)) {
        api.gpufl_scope_push("scope", NULL);
        api.gpufl_scope_pop();
    }
    return NULL;
}

static void fork_beside_scopes(void)
{
    enum { thread_count = 2, child_count = 100 };
    gpufl_options options = options_of(GPUFL_ENGINE_RANGE_PROFILER);
    pthread_t threads[thread_count];
    libraries_load();
    CHECK(cuda_init(0) == FAKE_SUCCESS);
    CHECK(api.gpufl_init(&options) == GPUFL_OK);
    CHECK(api.gpufl_active_engine() == GPUFL_ENGINE_RANGE_PROFILER);
    for (int i = 0; i < thread_count; i++)
        CHECK(!pthread_create(&threads[i], NULL, use_scopes, NULL));
    for (int i = 0; i < child_count; i++)
        check_recording_child();
    atomic_store(&is_over, true);
    for (int i = 0; i < thread_count; i++)
        CHECK(!pthread_join(threads[i], NULL));
    api.gpufl_shutdown();
}

static void children_forked_beside_counted_scopes_may_start_sessions(void **state)
{
    (void)state;
    if (IS_SANITIZED)
        skip();
    check_program("", fork_beside_scopes);
}

/* ---- closing the library ---- */

static pthread_barrier_t turn;

static void *outlive_the_library(void *argument)
{
    (void)argument;
    api.gpufl_scope_push("scope", NULL);
    api.gpufl_scope_pop();
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    return NULL;
}

static void close_the_library(void)
{
    pthread_t other;
    gpufl_options options = options_without_gpu();
    libraries_load();
    CHECK(api.gpufl_init(&options) == GPUFL_OK);
    CHECK(!pthread_barrier_init(&turn, NULL, 2));
    CHECK(!pthread_create(&other, NULL, outlive_the_library, NULL));
    pthread_barrier_wait(&turn);
    api.gpufl_shutdown();
    CHECK(!dlclose(library));
    pthread_barrier_wait(&turn);
    CHECK(!pthread_join(other, NULL));
}

static void a_thread_may_end_after_the_library_was_closed(void **state)
{
    (void)state;
    check_program("", close_the_library);
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "%s", fixture_dir());
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    fixture_remove(dir);
    return 0;
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    unsetenv("GPUFL_DISABLED");
    unsetenv("CUDA_INJECTION64_PATH");
    const struct CMUnitTest tests[] = {
        IN_DIR(an_init_beside_the_injection_of_cuinit_does_not_hang),
        IN_DIR(an_injection_beside_inits_and_shutdowns_is_never_forgotten),
        IN_DIR(an_nvml_that_forks_while_it_starts_does_not_hang_an_init),
        IN_DIR(a_child_forked_while_a_message_is_being_taken_may_start_a_session),
        IN_DIR(a_fork_beside_an_init_that_never_ends_does_not_hang_nor_does_its_child),
        IN_DIR(a_fork_beside_the_first_init_leaves_no_lock_to_the_child),
        IN_DIR(children_forked_beside_counted_scopes_may_start_sessions),
        IN_DIR(a_thread_may_end_after_the_library_was_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
