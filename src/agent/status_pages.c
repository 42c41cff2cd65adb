/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status_pages.h"

#include "agent/agent_counters.h"
#include "base/clock.h"
#include "format/json.h"

/* One request may take two minutes; beyond that the agent's thread is stuck. */
static const int64_t beat_late_ns = (int64_t)180 * 1000000000;
/* Something waits, and the server has not taken anything for so long. */
static const uint64_t progress_late_s = 300;

static void render_metrics(void *user, const char *accept, struct endpoint_answer *answer)
{
    enum exposition_format format = exposition_choose(accept);
    answer->content_type = exposition_content_type(format);
    agent_counters_write(user, format, answer->body);
}

/* Healthy is who makes progress, not who is merely there. */
static const char *trouble_of(const struct agent_counters *counters)
{
    if (clock_mono_ns() - atomic_load(&counters->beat_mono_ns) > beat_late_ns)
        return "the agent does not move";
    if (atomic_load(&counters->is_refused))
        return "the server refuses us";
    uint64_t now_s = (uint64_t)(clock_wall_ns() / 1000000000), last_s = atomic_load(&counters->last_success_s);
    if (atomic_load(&counters->backlog_bytes) && now_s > last_s + progress_late_s)
        return "data waits, and the server takes none";
    return NULL;
}

static void render_health(void *user, const char *accept, struct endpoint_answer *answer)
{
    const struct agent_counters *counters = user;
    const char *trouble = trouble_of(counters);
    (void)accept;
    answer->status = trouble ? 503 : 200;
    answer->content_type = "application/json";
    bytes_append_char(answer->body, '{');
    json_key(answer->body, "status");
    json_text(answer->body, trouble ? trouble : "ok");
    json_key(answer->body, "sessions");
    json_uint(answer->body, atomic_load(&counters->sessions_tracked));
    json_key(answer->body, "waiting");
    json_uint(answer->body, atomic_load(&counters->sessions_waiting));
    json_key(answer->body, "backlog_bytes");
    json_uint(answer->body, atomic_load(&counters->backlog_bytes));
    bytes_append_text(answer->body, "}\n");
}

const struct endpoint_page agent_pages[] = {{"/metrics", render_metrics}, {"/healthz", render_health}, {NULL, NULL}};
