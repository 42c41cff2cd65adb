/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/session_facts.h"

#include "analysis/engine_word.h"
#include "logfile/session_ends.h"

#include <stdio.h>
#include <string.h>

static void text_copy(char *out, size_t size, const struct json_value *object, const char *key)
{
    snprintf(out, size, "%s", json_get_text(object, key, ""));
}

static void start_read(struct session_facts *facts, const struct json_value *start)
{
    text_copy(facts->session_id, sizeof facts->session_id, start, "session_id");
    text_copy(facts->app, sizeof facts->app, start, "app");
    text_copy(facts->kind, sizeof facts->kind, start, "session_kind");
    text_copy(facts->hostname, sizeof facts->hostname, start, "hostname");
    text_copy(facts->command, sizeof facts->command, start, "command");
    const char *engine = json_get_text(start, "profiling_engine", ""), *word = engine_word(engine);
    snprintf(facts->engine, sizeof facts->engine, "%s", word ? word : engine);
    facts->pid = json_get_int(start, "pid", FACT_UNKNOWN);
    facts->start_ns = json_get_int(start, "ts_ns", FACT_UNKNOWN);
}

static int64_t lost_sum(const struct json_value *lost)
{
    int64_t sum = lost ? 0 : FACT_UNKNOWN;
    for (const struct json_value *reason = lost ? lost->child : NULL; reason; reason = reason->next)
        if (reason->kind == JSON_INT && reason->integer > 0 && __builtin_add_overflow(sum, reason->integer, &sum))
            sum = INT64_MAX;
    return sum;
}

static void shutdown_read(struct session_facts *facts, const struct json_value *shutdown)
{
    const struct json_value *rows = json_member(shutdown, "rows");
    facts->kernels = rows ? json_get_int(rows, "kernel_event_batch", 0) : FACT_UNKNOWN;
    facts->untimed_kernels = rows ? json_get_int(rows, "launch_event_batch", 0) : FACT_UNKNOWN;
    facts->lost = lost_sum(json_member(shutdown, "lost"));
}

static enum session_state state_of(const struct session_facts *facts, const struct session_ends *ends)
{
    if (json_get_int(ends->start.root, "version", 0) > record_catalogue[RECORD_JOB_START].version)
        return SESSION_UNREADABLE;
    if (!ends->start.root)
        return ends->is_live ? SESSION_RUNNING : SESSION_UNREADABLE;
    if (!ends->shutdown.root || json_get_bool(ends->shutdown.root, "synthetic", false))
        return ends->is_live ? SESSION_RUNNING : SESSION_CUT_OFF;
    return facts->lost == FACT_UNKNOWN ? SESSION_CLOSED : facts->lost ? SESSION_LOSSES : SESSION_COMPLETE;
}

void session_facts_read(struct session_facts *facts, const struct session_place *place, int64_t now_ns)
{
    struct session_ends ends;
    *facts = (struct session_facts){.place = *place,
                                    .pid = FACT_UNKNOWN,
                                    .start_ns = FACT_UNKNOWN,
                                    .duration_ns = FACT_UNKNOWN,
                                    .kernels = FACT_UNKNOWN,
                                    .untimed_kernels = FACT_UNKNOWN,
                                    .lost = FACT_UNKNOWN,
                                    .state = SESSION_UNREADABLE};
    if (session_ends_read(&ends, place->path, NULL) != GPUFL_OK)
        return;
    facts->bytes = ends.bytes;
    if (ends.start.root)
        start_read(facts, ends.start.root);
    bool is_synthetic = json_get_bool(ends.shutdown.root, "synthetic", false);
    if (ends.shutdown.root && !is_synthetic)
        shutdown_read(facts, ends.shutdown.root);
    facts->state = state_of(facts, &ends);
    int64_t end_ns = facts->state == SESSION_RUNNING ? now_ns : json_get_int(ends.shutdown.root, "ts_ns", FACT_UNKNOWN);
    if (facts->start_ns > 0 && end_ns >= facts->start_ns)
        facts->duration_ns = end_ns - facts->start_ns;
    session_ends_free(&ends);
}

const char *session_state_word(enum session_state state)
{
    static const char *const words[] = {"complete", "losses", "closed", "running", "cut off", "unreadable"};
    return words[state];
}

static void member_text(struct bytes *out, const char *key, const char *text)
{
    json_key(out, key);
    json_text(out, *text ? text : NULL);
}

static void member_number(struct bytes *out, const char *key, int64_t number)
{
    json_key(out, key);
    if (number == FACT_UNKNOWN)
        json_text(out, NULL);
    else
        json_int(out, number);
}

void session_facts_json(struct bytes *out, const struct session_facts *facts)
{
    bytes_append_char(out, '{');
    member_text(out, "name", facts->place.name);
    member_text(out, "path", facts->place.path);
    member_text(out, "session_id", facts->session_id);
    member_text(out, "program", facts->app);
    member_text(out, "command", facts->command);
    member_text(out, "engine", facts->engine);
    member_text(out, "kind", facts->kind);
    member_text(out, "hostname", facts->hostname);
    member_number(out, "pid", facts->pid);
    member_number(out, "start_ns", facts->start_ns);
    member_number(out, "duration_ns", facts->duration_ns);
    member_number(out, "kernels", facts->kernels);
    member_number(out, "untimed_kernels", facts->untimed_kernels);
    member_number(out, "lost_records", facts->lost);
    member_text(out, "state", session_state_word(facts->state));
    json_key(out, "bytes");
    json_uint(out, facts->bytes);
    bytes_append_char(out, '}');
}
