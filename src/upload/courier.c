/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/courier.h"

#include "base/clock.h"
#include "upload/backoff.h"

#include <errno.h>
#include <stdio.h>

enum { PAUSE_FIRST_MS = 500, PAUSE_MAX_MS = 20000, ASK_MAX_MS = 10000 };

gpufl_status courier_open(struct courier *courier, const struct http_server *server, int64_t deadline_mono_ns,
                          struct problem *problem)
{
    *courier = (struct courier){.deadline_mono_ns = deadline_mono_ns};
    return http_client_open(&courier->client, server, problem);
}

void courier_close(struct courier *courier)
{
    http_client_close(courier->client);
    http_answer_free(&courier->answer);
    *courier = (struct courier){0};
}

static int64_t time_left_ms(const struct courier *courier)
{
    return (courier->deadline_mono_ns - clock_mono_ns()) / 1000000;
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        continue;
}

static enum delivery stop(struct courier *courier, gpufl_status status, const char *what)
{
    char said[160];
    http_answer_explain(courier->client, &courier->answer, said, sizeof said);
    courier->stop_status = problem_set(&courier->problem, status, "%.160s %s%s%s", http_client_address(courier->client),
                                       what, *said ? ": " : "", said);
    return DELIVERY_STOPPED;
}

static bool is_worth_another_try(int status)
{
    return status == 0 || status == 408 || status == 429 || status >= 500;
}

/* What an answer that another try would not change means. */
static enum delivery judge(struct courier *courier)
{
    const int status = courier->answer.status;
    char what[160], said[160];
    if (status >= 200 && status < 300)
        return DELIVERY_DONE;
    if (status == 401 || status == 403) {
        snprintf(what, sizeof what,
                 http_client_has_key(courier->client) ? "refused the API key (HTTP %d)"
                                                      : "wants an API key (HTTP %d); set GPUFL_API_KEY",
                 status);
        return stop(courier, GPUFL_E_PERMISSION, what);
    }
    if (status == 404 || status < 400) {
        snprintf(what, sizeof what,
                 status == 404 ? "does not know this upload (HTTP %d): a wrong address or path, or an old server"
                               : "sends us elsewhere (HTTP %d), which is not followed; give the final address",
                 status);
        return stop(courier, GPUFL_E_IO, what);
    }
    http_answer_explain(courier->client, &courier->answer, said, sizeof said);
    const char *meaning = status == 402   ? ", the plan's limit is reached"
                          : status == 409 ? ", the server holds something else in its place, or closed the session"
                          : status == 413 ? ", too large for the server"
                                          : "";
    problem_set(&courier->problem, GPUFL_E_IO, "refused with HTTP %d%s%s%s", status, meaning, *said ? ": " : "", said);
    return DELIVERY_REFUSED;
}

static enum delivery give_up(struct courier *courier, unsigned tries, const char *why)
{
    char what[420];
    if (!tries)
        snprintf(what, sizeof what, "was not asked again: %s", why);
    else if (courier->answer.status)
        snprintf(what, sizeof what, "answered HTTP %d, %u %s; %s", courier->answer.status, tries,
                 tries == 1 ? "try" : "tries", why);
    else
        snprintf(what, sizeof what, "gave no answer, %u %s; %s%s%s", tries, tries == 1 ? "try" : "tries", why,
                 courier->answer.reason[0] ? "; the last: " : "", courier->answer.reason);
    return stop(courier, GPUFL_E_IO, what);
}

enum delivery courier_deliver(struct courier *courier, struct http_request *request)
{
    courier->answer.status = 0;
    courier->answer.reason[0] = '\0';
    bytes_clear(&courier->answer.text);
    for (unsigned tries = 1;; tries++) {
        request->timeout_ms = time_left_ms(courier);
        if (request->timeout_ms < 1)
            return give_up(courier, tries - 1, "the time for the upload is over");
        if (http_post(courier->client, request, &courier->answer))
            return stop(courier, GPUFL_E_NO_MEMORY, "cannot be reached: no memory");
        if (courier->answer.status)
            courier->last_status = courier->answer.status;
        if (!is_worth_another_try(courier->answer.status))
            return judge(courier);
        if (tries == COURIER_TRIES_MAX)
            return give_up(courier, tries, "gave up");
        bool is_told =
            courier->answer.retry_after_s > 0 && (courier->answer.status == 429 || courier->answer.status == 503);
        int64_t wait_s_max = INT32_MAX, wait_ms = backoff_ms(tries, PAUSE_FIRST_MS, PAUSE_MAX_MS);
        if (is_told)
            wait_ms = 1000 * (courier->answer.retry_after_s < wait_s_max ? courier->answer.retry_after_s : wait_s_max);
        if (wait_ms >= time_left_ms(courier))
            return give_up(courier, tries, "the next try would come after the time for the upload is over");
        sleep_ms(wait_ms);
    }
}

void courier_ask(struct courier *courier, const char *path)
{
    const char *const headers[] = {"Accept: application/json", NULL};
    int64_t left_ms = time_left_ms(courier);
    const struct http_request request = {
        .path = path, .headers = headers, .timeout_ms = left_ms < ASK_MAX_MS ? left_ms : ASK_MAX_MS};
    if (http_get(courier->client, &request, &courier->answer))
        courier->answer.status = 0;
    if (courier->answer.status)
        courier->last_status = courier->answer.status;
}
