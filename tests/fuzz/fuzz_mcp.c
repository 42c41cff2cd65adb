/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as the input of `gpufl mcp` with a golden session: every answer is one line of JSON-RPC, and each
 * input line has at most one answer. */
#include "mcp/line_input.h"
#include "mcp/mcp.h"

#include "format/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mcp_server *server;

static void server_close(void)
{
    mcp_close(server);
}

static void message_check(const struct json_value *message)
{
    const struct json_value *result = json_member(message, "result"), *error = json_member(message, "error");
    if (message->kind != JSON_OBJECT || strcmp(json_get_text(message, "jsonrpc", ""), "2.0") != 0 ||
        !json_member(message, "id") || !result == !error)
        abort();
    if (error && (!json_get_int(error, "code", 0) || !*json_get_text(error, "message", "")))
        abort();
}

static void answer_check(const struct bytes *answer)
{
    struct json_document document;
    if (!answer->size)
        return;
    if (answer->failed || memchr(answer->data, '\n', answer->size) != answer->data + answer->size - 1 ||
        json_parse(&document, answer->data, answer->size, NULL) != GPUFL_OK)
        abort();
    if (document.root->kind == JSON_ARRAY) {
        for (const struct json_value *message = document.root->child; message; message = message->next)
            message_check(message);
    } else {
        message_check(document.root);
    }
    json_free(&document);
}

static void lines_answer(struct line_input *input, bool is_end, struct bytes *before)
{
    const char *line;
    size_t size;
    enum line_result result;
    while ((result = line_input_take(input, is_end, &line, &size)) != LINE_NONE) {
        struct bytes answer = {0}, own = {0};
        if (result == LINE_TOO_LONG) {
            mcp_refuse_long_line(&answer);
        } else {
            bytes_append(&own, line, size);
            (void)mcp_is_cancelled(before, &own);
            mcp_answer(server, own.data, own.size, &answer);
        }
        answer_check(&answer);
        bytes_free(&answer);
        bytes_free(before);
        *before = own;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct line_input input = {.taken = 0};
    struct bytes before = {0};
    if (!server) {
        if (mcp_open(&server, SESSION_DIR, NULL) != GPUFL_OK)
            abort();
        atexit(server_close);
    }
    size_t half = size / 2;
    if (!line_input_feed(&input, (const char *)data, half))
        abort();
    lines_answer(&input, false, &before);
    if (!line_input_feed(&input, (const char *)data + half, size - half))
        abort();
    lines_answer(&input, true, &before);
    bytes_free(&before);
    line_input_free(&input);
    return 0;
}
