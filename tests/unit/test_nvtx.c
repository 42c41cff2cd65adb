/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX as a program's headers call it: levels, domains, marks, names, and invalid calls. Sources of the numbers and
 * layouts: NVTX 3, nvtxDetail/nvtxTypes.h and nvToolsExt.h. */
#include "session_fixture.h"

#include "sdk/nvtx.h"

#include <gpufl/gpufl.h>

#include <wchar.h>

enum { callbacks_id = 1, module_core = 1, module_core2 = 5, slots = 16 };
struct callbacks {
    size_t struct_size;
    int (*get_module)(uint32_t module, void ***table, unsigned *size);
};
struct event { /* nvtxEventAttributes_t */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    int64_t payload;
    int32_t message_type;
    const void *message;
};

typedef void function(void);
static function *core[slots], *core2[slots]; /* filled in by the tool */
static void *core_table[slots], *core2_table[slots];
static char dir[256];

static int get_module(uint32_t module, void ***table, unsigned *size)
{
    *table = module == module_core ? core_table : core2_table;
    *size = slots;
    return module == module_core || module == module_core2;
}

static const void *get_table(uint32_t id)
{
    static const struct callbacks callbacks = {sizeof callbacks, get_module};
    return id == callbacks_id ? &callbacks : NULL;
}

#define CORE(index, type) ((type)core[index])
#define CORE2(index, type) ((type)core2[index])
typedef int push_a_fn(const char *);
typedef int pop_fn(void);
typedef void *create_fn(const char *);
typedef void *register_fn(void *, const char *);
typedef int push_ex_fn(void *, const void *);
typedef int domain_pop_fn(void *);
typedef void mark_ex_fn(void *, const void *);
typedef uint64_t start_ex_fn(void *, const void *);
typedef void end_fn(void *, uint64_t);
typedef void name_category_fn(void *, uint32_t, const char *);
typedef void name_thread_fn(uint32_t, const char *);

static int push(const char *name)
{
    return CORE(9, push_a_fn *)(name);
}
static int pop(void)
{
    return CORE(11, pop_fn *)();
}
static int domain_push(void *domain, const void *event)
{
    return CORE2(4, push_ex_fn *)(domain, event);
}
static int domain_pop(void *domain)
{
    return CORE2(5, domain_pop_fn *)(domain);
}
static void *domain_create(const char *name)
{
    return CORE2(12, create_fn *)(name);
}

static const struct event plain = {.version = 3, .size = sizeof plain, .message_type = 1, .message = "plain"};

static int open_session(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "%s", fixture_dir());
    unsetenv("GPUFL_DISABLED");
    for (int i = 1; i < slots; i++) {
        core_table[i] = &core[i];
        core2_table[i] = &core2[i];
    }
    assert_int_equal(nvtx_attach(get_table), 1);
    gpufl_options given = GPUFL_OPTIONS_INIT;
    given.app_name = "test";
    given.log_path = dir;
    given.backend = GPUFL_BACKEND_NONE;
    return gpufl_init(&given) == GPUFL_OK ? 0 : -1;
}

static int close_session(void **state)
{
    (void)state;
    gpufl_shutdown();
    fixture_remove(dir);
    return 0;
}

struct seen {
    uint64_t begins, ends, closed, marks, categories, colors, names;
    int64_t payload;
};

static bool on_line(void *user, const struct log_line *line)
{
    struct seen *seen = user;
    seen->names += line->type == RECORD_GIVEN_NAME;
    if (line->type != RECORD_SCOPE_EVENT_BATCH)
        return true;
    for (uint32_t i = 0; i < line->batch->row_count; i++) {
        const struct batch_view *view = line->batch;
        int64_t type = view->columns[SCOPE_EVENT_TYPE].cells[i];
        seen->begins += type == 0;
        seen->ends += type == 1;
        seen->closed += type == 3;
        if (type || view->columns[SCOPE_SOURCE].cells[i] != 6)
            continue;
        seen->marks++;
        seen->categories += view->columns[SCOPE_CATEGORY].present && view->columns[SCOPE_CATEGORY].cells[i] == 5;
        seen->colors += view->columns[SCOPE_COLOR].present && view->columns[SCOPE_COLOR].cells[i] == 0xff112233;
        seen->payload = view->columns[SCOPE_PAYLOAD_INT].present ? view->columns[SCOPE_PAYLOAD_INT].cells[i] : 0;
    }
    return true;
}

static struct seen shut_down(void)
{
    struct seen seen = {0};
    struct log_summary summary;
    struct problem problem = {""};
    gpufl_shutdown();
    if (log_read(gpufl_session_dir(), on_line, NULL, &seen, &summary, &problem) != GPUFL_OK)
        fail_msg("%s", problem.text);
    return seen;
}

static void levels_are_those_of_the_domain_and_thread(void **state)
{
    (void)state;
    void *domain = domain_create("library");
    assert_ptr_equal(domain_create("library"), domain);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(push("outer"), 0);
        assert_int_equal(push("inner"), 1);
        assert_int_equal(domain_push(domain, &plain), 0);
        assert_int_equal(pop(), 1);
        assert_int_equal(pop(), 0);
        assert_int_equal(pop(), -1);
        assert_int_equal(domain_pop(domain), 0);
        assert_int_equal(domain_pop(domain), -1);
    }
    struct seen seen = shut_down();
    assert_int_equal(seen.begins, 9);
    assert_int_equal(seen.ends, 9);
    assert_int_equal(push("nobody records"), -2); /* NVTX_NO_PUSH_POP_TRACKING */
    assert_int_equal(pop(), -2);
}

static void no_pop_of_nvtx_ends_a_scope_of_the_program(void **state)
{
    (void)state;
    void *domain = domain_create("library");
    gpufl_scope_push("step", NULL);
    assert_int_equal(domain_pop(domain), -1);
    assert_int_equal(pop(), -1);
    struct seen seen = shut_down();
    assert_int_equal(seen.begins, 1);
    assert_int_equal(seen.ends, 0);
    assert_int_equal(seen.closed, 1);
}

static void marks_keep_their_category_colour_and_payload(void **state)
{
    (void)state;
    struct event event = plain;
    event.category = 5;
    event.color_type = 1;
    event.color = 0xff112233;
    event.payload_type = 5; /* int32 */
    event.payload = (int64_t)(uint32_t)-7;
    CORE2(1, mark_ex_fn *)(NULL, &event);
    CORE2(8, name_category_fn *)(NULL, 5, "io");
    CORE(14, name_thread_fn *)(1234, "worker");
    struct seen seen = shut_down();
    assert_int_equal(seen.marks, 1);
    assert_int_equal(seen.categories, 1);
    assert_int_equal(seen.colors, 1);
    assert_int_equal(seen.payload, -7);
    assert_true(seen.names >= 2);
}

static void more_strings_than_once_fitted_all_have_their_names(void **state)
{
    (void)state;
    char text[32];
    void *first = NULL;
    for (int i = 0; i < 20000; i++) {
        snprintf(text, sizeof text, "string %d", i);
        void *handle = CORE2(10, register_fn *)(NULL, text);
        assert_non_null(handle);
        first = first ? first : handle;
        assert_true(i == 0 || handle != first);
    }
    assert_ptr_equal(CORE2(10, register_fn *)(NULL, "string 0"), first);
}

static void calls_that_no_good_program_makes_do_no_harm(void **state)
{
    (void)state;
    static char huge[100000];
    memset(huge, 'h', sizeof huge - 1);
    struct event event = plain;
    void *wild = (void *)(uintptr_t)0x1234;
    assert_int_equal(domain_push(wild, &event), -1);
    assert_int_equal(domain_pop(wild), -1);
    CORE2(1, mark_ex_fn *)(wild, &event);
    CORE2(3, end_fn *)(NULL, CORE2(2, start_ex_fn *)(wild, &event));
    CORE2(3, end_fn *)(NULL, 0);
    event.message_type = 3; /* registered */
    event.message = wild;
    assert_int_equal(domain_push(NULL, &event), 0);
    event.message_type = 99;
    assert_int_equal(domain_push(NULL, &event), 1);
    event.message_type = 1;
    event.message = NULL;
    assert_int_equal(domain_push(NULL, &event), 2);
    event.size = 4;
    event.message = wild;
    assert_int_equal(domain_push(NULL, &event), 3);
    assert_int_equal(domain_push(NULL, NULL), 4);
    assert_int_equal(push(NULL), 5);
    assert_int_equal(push(huge), 6);
    for (int level = 6; level >= 0; level--)
        assert_int_equal(pop(), level);
    assert_null(domain_create(NULL));
    assert_null(CORE2(10, register_fn *)(NULL, NULL));
    CORE2(8, name_category_fn *)(wild, 1, "x");
    CORE2(8, name_category_fn *)(NULL, 1, NULL);
    CORE(14, name_thread_fn *)(1, NULL);
    struct seen seen = shut_down();
    assert_int_equal(seen.begins, 7);
    assert_int_equal(seen.ends, 7);
}

#define WITH_SESSION(test) cmocka_unit_test_setup_teardown(test, open_session, close_session)
int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SESSION(levels_are_those_of_the_domain_and_thread),
        WITH_SESSION(no_pop_of_nvtx_ends_a_scope_of_the_program),
        WITH_SESSION(marks_keep_their_category_colour_and_payload),
        WITH_SESSION(more_strings_than_once_fitted_all_have_their_names),
        WITH_SESSION(calls_that_no_good_program_makes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
