/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status_pages.h"

#include "agent/agent_counters.h"
#include "base/clock.h"
#include "format/json.h"

/* A request may take two minutes; after three the agent's thread is considered stuck. */
static const int64_t tick_late_ns = (int64_t)180 * 1000000000;
/* With data waiting, the agent is unhealthy when the server accepted nothing for this time. */
static const uint64_t progress_late_s = 300;

static void render_metrics(void *user, const char *accept, struct endpoint_answer *answer)
{
    enum exposition_format format = exposition_choose(accept);
    answer->content_type = exposition_content_type(format);
    agent_counters_write(user, format, answer->body);
}

/* The agent is healthy while it makes progress. */
static const char *trouble_of(const struct agent_counters *counters)
{
    if (clock_mono_ns() - atomic_load(&counters->tick_mono_ns) > tick_late_ns)
        return "the agent's loop is stuck";
    if (atomic_load(&counters->is_refused))
        return "the server refuses the agent's requests";
    uint64_t now_s = (uint64_t)(clock_wall_ns() / 1000000000), last_s = atomic_load(&counters->last_success_s);
    if (atomic_load(&counters->backlog_bytes) && now_s > last_s + progress_late_s)
        return "data is waiting, and the server does not accept it";
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
