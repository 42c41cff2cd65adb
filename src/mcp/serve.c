/* SPDX-License-Identifier: Apache-2.0 */
/* Requests are answered one after the other. Before each request, all input that has arrived is read, so that a waiting
 * request can be cancelled. */
#include "mcp/line_input.h"
#include "mcp/mcp.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { waiting_max = 64, read_bytes = 1 << 16 };

struct waiting_line {
    struct bytes text;
    bool is_too_long;
};

struct connection {
    struct mcp_server *server;
    int in_fd, out_fd;
    bool is_ended;
    struct line_input input;
    struct waiting_line lines[waiting_max]; /* oldest first */
    size_t count;
};

static gpufl_status write_all(int fd, const struct bytes *text, bool *is_closed, struct problem *problem)
{
    for (size_t done = 0; done < text->size;) {
        ssize_t size = write(fd, text->data + done, text->size - done);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno == EPIPE) {
            *is_closed = true;
            return GPUFL_OK;
        }
        if (size < 0)
            return problem_set(problem, GPUFL_E_IO, "cannot write an answer: %s", strerror(errno));
        done += (size_t)size;
    }
    return GPUFL_OK;
}

static void line_remove(struct connection *connection, size_t at)
{
    bytes_free(&connection->lines[at].text);
    connection->count--;
    memmove(&connection->lines[at], &connection->lines[at + 1], (connection->count - at) * sizeof *connection->lines);
}

/* A cancellation notice removes the request that it names from the queue. */
static void line_add(struct connection *connection, const char *line, size_t size, bool is_too_long)
{
    struct waiting_line added = {.is_too_long = is_too_long};
    bytes_append(&added.text, line, is_too_long ? 0 : size);
    for (size_t i = 0; i < connection->count; i++) {
        if (mcp_is_cancelled(&connection->lines[i].text, &added.text)) {
            line_remove(connection, i);
            break;
        }
    }
    connection->lines[connection->count++] = added;
}

static void lines_split(struct connection *connection)
{
    const char *line = NULL;
    size_t size = 0;
    while (connection->count < waiting_max) {
        enum line_result result = line_input_take(&connection->input, connection->is_ended, &line, &size);
        if (result == LINE_NONE)
            break;
        line_add(connection, line, size, result == LINE_TOO_LONG);
    }
}

/* Waits for input if no line is waiting; otherwise reads only what is available. */
static gpufl_status input_read(struct connection *connection, struct problem *problem)
{
    char buffer[read_bytes];
    lines_split(connection);
    while (!connection->is_ended && connection->count < waiting_max) {
        struct pollfd ready = {.fd = connection->in_fd, .events = POLLIN};
        if (connection->count && poll(&ready, 1, 0) <= 0)
            return GPUFL_OK;
        ssize_t size = read(connection->in_fd, buffer, sizeof buffer);
        if (size < 0 && (errno == EINTR || errno == EAGAIN)) {
            if (errno == EAGAIN)
                (void)poll(&ready, 1, -1);
            continue;
        }
        if (size < 0)
            return problem_set(problem, GPUFL_E_IO, "cannot read a request: %s", strerror(errno));
        connection->is_ended = size == 0;
        if (!line_input_feed(&connection->input, buffer, (size_t)size))
            return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
        lines_split(connection);
    }
    return GPUFL_OK;
}

gpufl_status mcp_serve(struct mcp_server *server, int in_fd, int out_fd, struct problem *problem)
{
    struct connection connection = {.server = server, .in_fd = in_fd, .out_fd = out_fd};
    struct bytes answer = {0};
    bool is_closed = false;
    gpufl_status status = input_read(&connection, problem);
    while (status == GPUFL_OK && !is_closed && connection.count) {
        const struct waiting_line *line = &connection.lines[0];
        bytes_clear(&answer);
        if (line->is_too_long)
            mcp_refuse_long_line(&answer);
        else
            mcp_answer(server, line->text.data, line->text.size, &answer);
        line_remove(&connection, 0);
        status = answer.failed ? problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory")
                               : write_all(out_fd, &answer, &is_closed, problem);
        if (status == GPUFL_OK && !is_closed)
            status = input_read(&connection, problem);
    }
    while (connection.count)
        line_remove(&connection, 0);
    bytes_free(&answer);
    line_input_free(&connection.input);
    return status;
}
