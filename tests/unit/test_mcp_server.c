/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the above first. */
#include <cmocka.h>

#include "requirement.h"

#include "format/json.h"
#include "mcp/line_input.h"
#include "mcp/mcp.h"
#include "mcp/session_root.h"
#include "mcp/tool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const char golden[] = SOURCE_DIR "/tests/golden";

static void assert_line(struct line_input *input, bool is_end, const char *expected)
{
    const char *line = NULL;
    size_t size = 0;
    assert_int_equal(line_input_take(input, is_end, &line, &size), LINE_WHOLE);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(line, expected, size);
}

static void lines_come_out_whole_however_they_went_in(void **state)
{
    (void)state;
    static const char text[] = "one\r\n\ntwo\nthree";
    for (size_t step = 1; step < sizeof text; step++) {
        struct line_input input = {.taken = 0};
        struct bytes seen = {0};
        for (size_t at = 0; at < sizeof text - 1; at += step) {
            size_t size = sizeof text - 1 - at < step ? sizeof text - 1 - at : step;
            const char *line;
            assert_true(line_input_feed(&input, text + at, size));
            while (line_input_take(&input, false, &line, &size) == LINE_WHOLE)
                bytes_append_format(&seen, "<%.*s>", (int)size, line);
        }
        assert_string_equal(bytes_text(&seen), "<one><><two>");
        assert_line(&input, true, "three");
        bytes_free(&seen);
        line_input_free(&input);
    }
}

static void a_line_over_the_limit_is_reported_once_and_its_rest_skipped(void **state)
{
    (void)state;
    struct line_input input = {.taken = 0};
    char *block = malloc(LINE_INPUT_MAX);
    const char *line;
    size_t size;
    assert_non_null(block);
    memset(block, 'x', LINE_INPUT_MAX);
    assert_true(line_input_feed(&input, block, LINE_INPUT_MAX));
    assert_int_equal(line_input_take(&input, false, &line, &size), LINE_NONE); /* exactly as long as allowed */
    for (int i = 0; i < 3; i++) {
        assert_true(line_input_feed(&input, block, LINE_INPUT_MAX));
        assert_int_equal(line_input_take(&input, false, &line, &size), i ? LINE_NONE : LINE_TOO_LONG);
        assert_int_equal(line_input_take(&input, false, &line, &size), LINE_NONE);
        assert_true(input.pending.size - input.taken == 0); /* memory is bounded */
    }
    assert_true(line_input_feed(&input, "x\nping\n", 7));
    assert_line(&input, false, "ping");
    free(block);
    line_input_free(&input);
}

/* The answer to one line, parsed; the caller frees. */
static struct json_document answered(const char *root, const char *line)
{
    struct mcp_server *server;
    struct json_document document;
    struct bytes out = {0};
    assert_int_equal(mcp_open(&server, root, NULL), GPUFL_OK);
    mcp_answer(server, line, strlen(line), &out);
    assert_false(out.failed);
    assert_true(out.size > 0 && out.data[out.size - 1] == '\n');
    assert_int_equal(json_parse(&document, out.data, out.size, NULL), GPUFL_OK);
    bytes_free(&out);
    mcp_close(server);
    return document;
}

static void every_schema_of_the_table_is_json_with_the_required_members(void **state)
{
    (void)state;
    struct bytes out = {0};
    struct json_document document;
    tools_list(&out);
    assert_int_equal(json_parse(&document, out.data, out.size, NULL), GPUFL_OK);
    const struct json_value *tools = json_member(document.root, "tools");
    assert_int_equal(tools->count, 11);
    for (const struct json_value *tool = tools->child; tool; tool = tool->next) {
        const struct json_value *schema = json_member(tool, "outputSchema");
        const struct json_value *required = json_member(schema, "required");
        assert_true(required->count > 1);
        for (const struct json_value *name = required->child; name; name = name->next)
            assert_non_null(json_member(json_member(schema, "properties"), name->text));
    }
    json_free(&document);
    bytes_free(&out);
}

static void a_failed_tool_has_a_text_and_no_structure(void **state)
{
    (void)state;
    struct json_document answer =
        answered(golden, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"summary\","
                         "\"arguments\":{\"session\":\"nowhere\"}}}");
    const struct json_value *result = json_member(answer.root, "result");
    assert_true(json_get_bool(result, "isError", false));
    assert_null(json_member(result, "structuredContent"));
    assert_non_null(strstr(json_get_text(json_member(result, "content")->child, "text", ""), "nowhere"));
    json_free(&answer);
}

static void assert_choice(const struct session_root *root, struct session_scan *found, const char *word,
                          gpufl_status status)
{
    struct session_choice choice;
    struct problem problem = {""};
    assert_int_equal(session_root_choose(root, found, word, &choice, &problem), status);
    assert_true(status == GPUFL_OK || *problem.text);
}

static void words_that_lead_out_of_the_root_are_refused(void **state)
{
    (void)state;
    struct session_root root;
    struct session_scan found;
    assert_int_equal(session_root_open(&root, golden, NULL), GPUFL_OK);
    assert_int_equal(session_root_list(&root, &found, NULL), GPUFL_OK);
    static const char *const outside[] = {
        "..",          "../golden/trace",           "trace/..",         "trace/../trace", "/",
        "/etc/passwd", SOURCE_DIR "/tests/goldenx", SOURCE_DIR "/tests"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_choice(&root, &found, outside[i], GPUFL_E_PERMISSION);
    static const char *const inside[] = {"trace", "trace/", SOURCE_DIR "/tests/golden/trace", "latest", NULL};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        assert_choice(&root, &found, inside[i], GPUFL_OK);
    static const char *const nowhere[] = {"...",        "trace..",  "..trace",
                                          "latest~999", "tracer/x", SOURCE_DIR "/tests/golden"};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++)
        assert_choice(&root, &found, nowhere[i], GPUFL_E_NOT_FOUND);
    assert_choice(&root, &found, "d", GPUFL_E_INVALID); /* deep, degraded, ... */
    session_scan_free(&found);
}

static bool cancels(const char *line, const char *notice)
{
    struct bytes request = {0}, cancelling = {0};
    bytes_append_text(&request, line);
    bytes_append_text(&cancelling, notice);
    bool is_cancelled = mcp_is_cancelled(&request, &cancelling);
    bytes_free(&request);
    bytes_free(&cancelling);
    return is_cancelled;
}

#define CANCEL(id) "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"

static void only_the_request_that_is_named_is_cancelled(void **state)
{
    (void)state;
    assert_true(cancels("{\"id\":7,\"method\":\"ping\"}", CANCEL("7")));
    assert_true(cancels("{\"id\":\"7\",\"method\":\"ping\"}", CANCEL("\"7\"")));
    assert_false(cancels("{\"id\":\"7\",\"method\":\"ping\"}", CANCEL("7")));
    assert_false(cancels("{\"id\":8,\"method\":\"ping\"}", CANCEL("7")));
    assert_false(cancels("{\"method\":\"ping\"}", CANCEL("null")));
    assert_false(cancels("{\"id\":7,\"method\":\"initialize\"}", CANCEL("7")));
    assert_false(cancels("{\"id\":7,\"method\":\"ping\"}", "{\"id\":7,\"method\":\"notifications/cancelled\"}"));
    assert_false(cancels("notifications/cancelled", "notifications/cancelled"));
}

static void serving_ends_with_the_input_and_answers_what_came_before(void **state)
{
    (void)state;
    int in[2], out[2];
    struct mcp_server *server;
    char text[256] = {0};
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    assert_int_equal(write(in[1], request, sizeof request - 1), sizeof request - 1);
    close(in[1]);
    assert_int_equal(mcp_open(&server, golden, NULL), GPUFL_OK);
    assert_int_equal(mcp_serve(server, in[0], out[1], NULL), GPUFL_OK);
    close(out[1]);
    assert_true(read(out[0], text, sizeof text - 1) > 0);
    assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    close(in[0]);
    close(out[0]);
    mcp_close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_out_whole_however_they_went_in),
        cmocka_unit_test(a_line_over_the_limit_is_reported_once_and_its_rest_skipped),
        cmocka_unit_test(every_schema_of_the_table_is_json_with_the_required_members),
        cmocka_unit_test(a_failed_tool_has_a_text_and_no_structure),
        cmocka_unit_test(words_that_lead_out_of_the_root_are_refused),
        cmocka_unit_test(only_the_request_that_is_named_is_cancelled),
        cmocka_unit_test(serving_ends_with_the_input_and_answers_what_came_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
