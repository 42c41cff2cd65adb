/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/uploader.h"

#include "base/clock.h"
#include "upload/backoff.h"

#include <errno.h>
#include <stdio.h>

enum { PAUSE_FIRST_MS = 500, PAUSE_MAX_MS = 20000, ASK_MAX_MS = 10000 };

gpufl_status uploader_open(struct uploader *uploader, const struct http_server *server, int64_t deadline_mono_ns,
                           struct problem *problem)
{
    *uploader = (struct uploader){.deadline_mono_ns = deadline_mono_ns};
    return http_client_open(&uploader->client, server, problem);
}

void uploader_close(struct uploader *uploader)
{
    http_client_close(uploader->client);
    http_answer_free(&uploader->answer);
    *uploader = (struct uploader){0};
}

static int64_t time_left_ms(const struct uploader *uploader)
{
    return (uploader->deadline_mono_ns - clock_mono_ns()) / 1000000;
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        continue;
}

static enum delivery stop(struct uploader *uploader, gpufl_status status, const char *what)
{
    char text[160];
    http_answer_explain(uploader->client, &uploader->answer, text, sizeof text);
    uploader->stop_status = problem_set(&uploader->problem, status, "%.160s %s%s%s",
                                        http_client_address(uploader->client), what, *text ? ": " : "", text);
    return DELIVERY_STOPPED;
}

static bool is_retryable(int status)
{
    return status == 0 || status == 408 || status == 429 || status >= 500;
}

/* Interprets an answer that a retry would not change. */
static enum delivery judge(struct uploader *uploader)
{
    const int status = uploader->answer.status;
    char what[160], text[160];
    if (status >= 200 && status < 300)
        return DELIVERY_DONE;
    if (status == 401 || status == 403) {
        snprintf(what, sizeof what,
                 http_client_has_key(uploader->client) ? "refused the API key (HTTP %d)"
                                                       : "requires an API key (HTTP %d); set GPUFL_API_KEY",
                 status);
        return stop(uploader, GPUFL_E_PERMISSION, what);
    }
    if (status == 404 || status < 400) {
        snprintf(what, sizeof what,
                 status == 404 ? "does not accept uploads here (HTTP %d): wrong address or path, or an older server"
                               : "redirects (HTTP %d), which is not followed; use the final address",
                 status);
        return stop(uploader, GPUFL_E_IO, what);
    }
    http_answer_explain(uploader->client, &uploader->answer, text, sizeof text);
    const char *meaning = status == 402   ? ", the plan's limit is reached"
                          : status == 409 ? ", the server has other data under this name, or the session is closed"
                          : status == 413 ? ", too large for the server"
                                          : "";
    problem_set(&uploader->problem, GPUFL_E_IO, "refused with HTTP %d%s%s%s", status, meaning, *text ? ": " : "", text);
    return DELIVERY_REFUSED;
}

static enum delivery stop_trying(struct uploader *uploader, unsigned tries, const char *why)
{
    char what[420];
    if (!tries)
        snprintf(what, sizeof what, "was not contacted again: %s", why);
    else if (uploader->answer.status)
        snprintf(what, sizeof what, "answered HTTP %d (%u %s)%s%s", uploader->answer.status, tries,
                 tries == 1 ? "try" : "tries", *why ? "; " : "", why);
    else
        snprintf(what, sizeof what, "did not answer (%u %s)%s%s%s%s", tries, tries == 1 ? "try" : "tries",
                 *why ? "; " : "", why, uploader->answer.reason[0] ? "; last error: " : "", uploader->answer.reason);
    return stop(uploader, GPUFL_E_IO, what);
}

enum delivery uploader_send(struct uploader *uploader, struct http_request *request)
{
    uploader->answer.status = 0;
    uploader->answer.reason[0] = '\0';
    bytes_clear(&uploader->answer.text);
    for (unsigned tries = 1;; tries++) {
        request->timeout_ms = time_left_ms(uploader);
        if (request->timeout_ms < 1)
            return stop_trying(uploader, tries - 1, "the upload timed out");
        if (http_post(uploader->client, request, &uploader->answer))
            return stop(uploader, GPUFL_E_NO_MEMORY, "cannot be reached: no memory");
        if (uploader->answer.status)
            uploader->last_status = uploader->answer.status;
        if (!is_retryable(uploader->answer.status))
            return judge(uploader);
        if (tries == UPLOADER_TRIES_MAX)
            return stop_trying(uploader, tries, "");
        bool has_retry_after =
            uploader->answer.retry_after_s > 0 && (uploader->answer.status == 429 || uploader->answer.status == 503);
        int64_t wait_s_max = INT32_MAX, wait_ms = backoff_ms(tries, PAUSE_FIRST_MS, PAUSE_MAX_MS);
        if (has_retry_after)
            wait_ms =
                1000 * (uploader->answer.retry_after_s < wait_s_max ? uploader->answer.retry_after_s : wait_s_max);
        if (wait_ms >= time_left_ms(uploader))
            return stop_trying(uploader, tries, "the next try would be after the timeout");
        sleep_ms(wait_ms);
    }
}

void uploader_get(struct uploader *uploader, const char *path)
{
    const char *const headers[] = {"Accept: application/json", NULL};
    int64_t left_ms = time_left_ms(uploader);
    const struct http_request request = {
        .path = path, .headers = headers, .timeout_ms = left_ms < ASK_MAX_MS ? left_ms : ASK_MAX_MS};
    if (http_get(uploader->client, &request, &uploader->answer))
        uploader->answer.status = 0;
    if (uploader->answer.status)
        uploader->last_status = uploader->answer.status;
}
