/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of a store's catalog: small sessions, and what the catalog holds about them. */
#ifndef GPUFL_TESTS_CATALOG_FIXTURE_H
#define GPUFL_TESTS_CATALOG_FIXTURE_H

#include "store_fixture.h"

static inline void session_add(struct store *store, const char *id, const char *app, const char *host, int64_t start_ns,
                               bool is_complete)
{
    char text[1024];
    struct delivery delivery = {.store = store, .has_identity = true};
    snprintf(delivery.session_id, sizeof delivery.session_id, "%s", id);
    delivery_begin(&delivery, CHANNEL_SYSTEM);
    snprintf(text, sizeof text,
             "{\"version\":1,\"type\":\"job_start\",\"session_id\":\"%s\",\"pid\":1,\"app\":\"%s\",\"ts_ns\":%lld,"
             "\"hostname\":\"%s\",\"session_kind\":\"trace\",\"profiling_engine\":\"nvidia.trace\","
             "\"devices\":[{\"id\":0,\"name\":\"NVIDIA H200\",\"uuid\":\"GPU-%s\"}]}",
             id, app, (long long)start_ns, host, host);
    delivery_line(&delivery, CHANNEL_SYSTEM, text, strlen(text));
    if (is_complete) {
        snprintf(text, sizeof text,
                 "{\"type\":\"shutdown\",\"session_id\":\"%s\",\"ts_ns\":%lld,\"lost\":{\"ring_full\":%lld},"
                 "\"rows\":{\"kernel_event_batch\":40,\"memcpy_event_batch\":2,\"scope_event\":7}}",
                 id, (long long)start_ns + 100, (long long)start_ns % 7);
        delivery_line(&delivery, CHANNEL_SYSTEM, text, strlen(text));
    }
    delivery_commit(&delivery);
    batch_view_free(&delivery.view);
}

struct seen {
    char ids[64][64];
    size_t count;
    struct store_session last; /* its strings are no longer valid */
    char tags[128];
    char gpu[64];
};

static inline bool see(void *user, const struct store_session *session)
{
    struct seen *seen = user;
    assert_true(seen->count < 64);
    snprintf(seen->ids[seen->count++], sizeof *seen->ids, "%s", session->session_id);
    seen->last = *session;
    seen->tags[0] = '\0';
    for (size_t i = 0; i < session->tag_count; i++)
        snprintf(seen->tags + strlen(seen->tags), sizeof seen->tags - strlen(seen->tags), "%s,", session->tags[i]);
    snprintf(seen->gpu, sizeof seen->gpu, "%s", session->gpu_count ? session->gpus[0].uuid : "");
    return true;
}

#endif
