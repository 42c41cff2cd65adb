/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/shipping.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "logfile/segment.h"
#include "monitor/monitor.h"
#include "monitor/otlp.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAITING_MAX = 16, SEAL_GRACE_MS = 5000, OTLP_TIMEOUT_MS = 10000 };

static const int64_t second_ns = 1000000000, upload_pause_first_ns = 5000000000, upload_pause_max_ns = 600000000000;

struct shipping {
    struct shipping_options options;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t news;                 /* on CLOCK_MONOTONIC */
    char waiting[WAITING_MAX][PATH_MAX]; /* sessions to seal */
    size_t waiting_count;
    bool must_search; /* some did not fit, or belong to a monitor that was killed */
    bool is_stopping;
    unsigned deadline_ms;

    /* Used by the thread only. */
    bool has_sealed; /* there is something new to upload */
    int64_t upload_ns, upload_pause_ns, otlp_ns;
    bool is_otlp_failing;
    struct bytes body;
};

static void session_seal(void *user, const char *dir)
{
    struct shipping *shipping = user;
    struct problem problem = {""};
    shipping->has_sealed = true;
    if (seal_session(dir, &problem) != GPUFL_OK)
        log_message(GPUFL_LOG_WARNING, "cannot seal %s: %s", dir, problem.text);
}

/* Seals one waiting session, without holding the lock during disk access. */
static void waiting_seal(struct shipping *shipping)
{
    for (;;) {
        char dir[PATH_MAX];
        pthread_mutex_lock(&shipping->mutex);
        bool must_search = shipping->must_search, has_one = shipping->waiting_count > 0;
        shipping->must_search = false;
        if (has_one)
            memcpy(dir, shipping->waiting[--shipping->waiting_count], sizeof dir);
        pthread_mutex_unlock(&shipping->mutex);
        if (must_search)
            monitor_recover(shipping->options.dir, shipping->options.app_name, session_seal, shipping);
        if (!has_one)
            return;
        session_seal(shipping, dir);
    }
}

static void upload_run(struct shipping *shipping, int64_t now_ns, unsigned timeout_ms)
{
    gpufl_upload_options options = GPUFL_UPLOAD_OPTIONS_INIT;
    gpufl_upload_result result = {.struct_size = sizeof result};
    options.log_path = shipping->options.dir;
    options.backend_url = shipping->options.upload_url;
    options.api_key = shipping->options.api_key;
    options.api_path = shipping->options.api_path;
    options.timeout_ms = (int32_t)timeout_ms;
    gpufl_status status = shipping->options.upload(&options, &result);
    if (status == GPUFL_OK) {
        shipping->has_sealed = false;
        shipping->upload_pause_ns = upload_pause_first_ns;
        log_message(GPUFL_LOG_INFO, "uploaded: %s", result.message);
        return;
    }
    shipping->upload_ns = now_ns + shipping->upload_pause_ns;
    shipping->upload_pause_ns *= 2;
    if (shipping->upload_pause_ns > upload_pause_max_ns)
        shipping->upload_pause_ns = upload_pause_max_ns;
    log_message(GPUFL_LOG_WARNING, "upload failed: %s; trying again later", result.message);
}

static void otlp_send(struct shipping *shipping, int64_t now_ns)
{
    char message[400] = "";
    shipping->otlp_ns = now_ns + (int64_t)shipping->options.otlp_interval_ms * 1000000;
    bytes_clear(&shipping->body);
    otlp_request(&shipping->body, shipping->options.view);
    const struct upload_post post = {
        .url = shipping->options.otlp_server,
        .path = shipping->options.otlp_path,
        .content_type = "application/json",
        .body = shipping->body.data,
        .size = shipping->body.size,
        .timeout_ms = OTLP_TIMEOUT_MS,
    };
    bool is_good = !shipping->body.failed && shipping->options.post(&post, message, sizeof message) == GPUFL_OK;
    if (is_good == shipping->is_otlp_failing) {
        shipping->is_otlp_failing = !is_good;
        log_message(is_good ? GPUFL_LOG_INFO : GPUFL_LOG_WARNING, "OTLP: %s",
                    is_good ? "sending works again" : message);
    }
}

static void wait_until(struct shipping *shipping, int64_t until_ns)
{
    struct timespec until = {until_ns / second_ns, until_ns % second_ns};
    pthread_mutex_lock(&shipping->mutex);
    while (!shipping->is_stopping && !shipping->waiting_count && !shipping->must_search) {
        if (until_ns == INT64_MAX)
            pthread_cond_wait(&shipping->news, &shipping->mutex);
        else if (pthread_cond_timedwait(&shipping->news, &shipping->mutex, &until))
            break;
    }
    pthread_mutex_unlock(&shipping->mutex);
}

static void *shipping_main(void *argument)
{
    struct shipping *shipping = argument;
    for (bool is_last = false; !is_last;) {
        pthread_mutex_lock(&shipping->mutex);
        is_last = shipping->is_stopping;
        pthread_mutex_unlock(&shipping->mutex);
        waiting_seal(shipping);
        int64_t now_ns = clock_mono_ns();
        bool has_upload = shipping->options.upload && shipping->has_sealed;
        if (has_upload && (is_last || now_ns >= shipping->upload_ns))
            upload_run(shipping, now_ns, is_last ? shipping->deadline_ms : 0);
        if (shipping->options.post && !is_last && now_ns >= shipping->otlp_ns)
            otlp_send(shipping, now_ns);
        int64_t until_ns = shipping->options.post ? shipping->otlp_ns : INT64_MAX;
        if (shipping->options.upload && shipping->has_sealed && shipping->upload_ns < until_ns)
            until_ns = shipping->upload_ns;
        if (!is_last)
            wait_until(shipping, until_ns);
    }
    return NULL;
}

static void shipping_free(struct shipping *shipping)
{
    pthread_mutex_destroy(&shipping->mutex);
    pthread_cond_destroy(&shipping->news);
    bytes_free(&shipping->body);
    free(shipping);
}

gpufl_status shipping_start(struct shipping **out, const struct shipping_options *options, struct problem *problem)
{
    struct shipping *shipping = calloc(1, sizeof *shipping);
    if (!shipping)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    shipping->options = *options;
    shipping->must_search = true; /* a previous monitor may have been killed */
    shipping->has_sealed = true;  /* or may have failed to upload */
    shipping->upload_pause_ns = upload_pause_first_ns;
    pthread_mutex_init(&shipping->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&shipping->news, &attributes);
    pthread_condattr_destroy(&attributes);
    /* The first values are sent after one interval. */
    shipping->otlp_ns = clock_mono_ns() + (int64_t)options->otlp_interval_ms * 1000000;
    if (!own_thread_start(&shipping->thread, "gpufl-shipping", OWN_THREAD_STACK_SMALL, shipping_main, shipping)) {
        shipping_free(shipping);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "cannot start the monitor's background thread");
    }
    *out = shipping;
    return GPUFL_OK;
}

void shipping_add(struct shipping *shipping, const char *dir)
{
    pthread_mutex_lock(&shipping->mutex);
    if (shipping->waiting_count < WAITING_MAX)
        snprintf(shipping->waiting[shipping->waiting_count++], PATH_MAX, "%s", dir);
    else
        shipping->must_search = true;
    pthread_cond_signal(&shipping->news);
    pthread_mutex_unlock(&shipping->mutex);
}

bool shipping_stop(struct shipping *shipping, unsigned deadline_ms)
{
    if (!shipping)
        return true;
    pthread_mutex_lock(&shipping->mutex);
    shipping->is_stopping = true;
    shipping->deadline_ms = deadline_ms;
    pthread_cond_signal(&shipping->news);
    pthread_mutex_unlock(&shipping->mutex);
    /* An upload that is already running has a separate time limit of several minutes. */
    int64_t until_ns = clock_wall_ns() + (deadline_ms + SEAL_GRACE_MS) * INT64_C(1000000);
    const struct timespec until = {until_ns / second_ns, until_ns % second_ns};
    if (pthread_timedjoin_np(shipping->thread, NULL, &until)) {
        pthread_detach(shipping->thread);
        return false;
    }
    shipping_free(shipping);
    return true;
}
