/* SPDX-License-Identifier: Apache-2.0 */
/* The list of sessions. */
#include "analysis/session_facts.h"
#include "base/clock.h"
#include "mcp/tool.h"

static void member_fact(struct bytes *out, const char *key, int64_t value)
{
    member_int(out, key, value == FACT_UNKNOWN ? CELL_UNKNOWN : value);
}

static void session_write(struct tool_call *call, const struct session_place *place, const char *label)
{
    struct session_facts facts;
    struct bytes *out = call->out;
    session_facts_read(&facts, place, clock_wall_ns());
    element(out, '{');
    member_text(out, "name", label);
    member_text(out, "id", facts.session_id);
    member_text(out, "app", facts.app);
    member_text(out, "command", facts.command);
    member_text(out, "engine", facts.engine);
    member_text(out, "host", facts.hostname);
    member_time(out, "start_time", facts.start_ns == FACT_UNKNOWN ? place->start_ns : facts.start_ns);
    member_fact(out, "duration_ns", facts.duration_ns);
    member_fact(out, "kernels_timed", facts.kernels);
    member_fact(out, "launches_not_timed", facts.untimed_kernels);
    member_text(out, "state", session_state_word(facts.state));
    member_fact(out, "lost", facts.lost);
    member_uint(out, "log_bytes", facts.bytes);
    bytes_append_char(out, '}');
}

bool tool_sessions(struct tool_call *call)
{
    const struct session_root *root = &call->server->root;
    const char *filter = argument_text(call, "filter");
    char label[SESSION_PATH_SIZE];
    struct session_scan found;
    struct answer_page page;
    if (!answer_page_open(call, &page) || session_root_list(root, &found, &call->problem) != GPUFL_OK)
        return false;
    member_text(call->out, "directory", root->path);
    list_open(call->out, "sessions");
    for (size_t i = 0; i < found.count; i++) {
        session_root_label(root, &found, &found.items[i], label);
        if (text_holds(label, filter) && answer_page_takes(&page, call->out))
            session_write(call, &found.items[i], label);
    }
    bytes_append_char(call->out, ']');
    answer_page_close(call, &page);
    char advice[512];
    answer_advice(call, advice, sizeof advice);
    member_text(call->out, "advice", found.count ? NULL : advice);
    more_open(call);
    if (found.count) {
        session_root_label(root, &found, &found.items[0], label);
        more_add(call, "summary", "the newest session at a glance", "session", label);
    }
    more_next_page(call, &page, "sessions");
    more_close(call);
    session_scan_free(&found);
    return true;
}
