/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include "agent/agent_session.h"
#include "agent/discovery.h"
#include "agent/retention.h"
#include "agent/slot_map.h"
#include "agent/status_pages.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "upload/config_fetch.h"
#include "upload/upload.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SESSIONS_MAX = 65536,
    MAP_SPARE = 1024,
    SCAN_MS = 10000,
    CARE_MS = 2000,
    PRUNE_S = 3600,
    STATE_AGE_S = 90 * 86400, /* a root may be unmounted for a while */
    CONFIG_MS = 60000,
    CONFIG_TIMEOUT_MS = 5000,
    EVENTS_PAUSE_MS = 20,
    ONCE_FAILURES_MAX = 5
};

struct agent {
    const struct agent_options *options;
    struct shipper shipper;
    struct state_dir state_dir;
    struct stream_window window;
    struct agent_counters counters;
    struct agent_work work;
    struct retention retention;
    struct discovery discovery;
    struct endpoint *endpoint;
    struct agent_session **sessions; /* owned; NULL: a free slot */
    size_t session_count, session_capacity, free_hint;
    uint64_t duplicate_count; /* directories whose session is also in another directory */
    struct slot_map dirs, session_ids;
    size_t turn; /* slot of the next session to serve */
    int64_t scan_ns, care_ns, config_ns, prune_ns;
    bool has_too_many;
    char quarantine_dir[600];
    char config_trouble[256];
};

static bool is_stopping(const struct agent *agent)
{
    return agent->options->is_stopping && atomic_load(agent->options->is_stopping);
}

static struct agent_session *session_in(const struct agent *agent, uint32_t slot)
{
    return slot < agent->session_count ? agent->sessions[slot] : NULL;
}

/* Returns a slot for a new session; UINT32_MAX: all slots are used. */
static uint32_t find_slot(struct agent *agent)
{
    for (; agent->free_hint < agent->session_count; agent->free_hint++)
        if (!agent->sessions[agent->free_hint])
            return (uint32_t)agent->free_hint;
    if (agent->session_count == agent->session_capacity) {
        size_t capacity = agent->session_capacity ? agent->session_capacity * 2 : 64;
        struct agent_session **sessions =
            capacity > SESSIONS_MAX ? NULL : realloc(agent->sessions, capacity * sizeof *sessions);
        if (!sessions) {
            if (!agent->has_too_many)
                log_message(GPUFL_LOG_ERROR, "more than %zu sessions; the others wait", agent->session_capacity);
            agent->has_too_many = true;
            return UINT32_MAX;
        }
        agent->sessions = sessions;
        agent->session_capacity = capacity;
    }
    agent->sessions[agent->session_count] = NULL;
    return (uint32_t)agent->session_count++;
}

static void add_session(void *user, const char *dir)
{
    struct agent *agent = user;
    const struct agent_session *known = session_in(agent, slot_map_get(&agent->dirs, dir));
    if (known && !strcmp(known->dir, dir))
        return;
    uint32_t slot = find_slot(agent);
    struct agent_session *session = slot == UINT32_MAX ? NULL : malloc(sizeof *session);
    if (!session || !slot_map_put(&agent->dirs, dir, slot)) {
        agent->discovery.is_incomplete = true;
        free(session);
        return;
    }
    agent_session_init(session, dir);
    session->is_watched = discovery_watch(&agent->discovery, dir, (int32_t)slot);
    agent->sessions[slot] = session;
}

static void note_change(void *user, int32_t slot)
{
    struct agent *agent = user;
    size_t first = slot < 0 ? 0 : (size_t)slot, end = slot < 0 ? agent->session_count : first + 1;
    for (size_t i = first; i < end && i < agent->session_count; i++)
        if (agent->sessions[i])
            agent->sessions[i]->is_dirty = true;
}

/* Drops the map entries of sessions that were removed. */
static void tidy_maps(struct agent *agent)
{
    if (agent->dirs.texts.count < 2 * agent->session_count + MAP_SPARE)
        return;
    slot_map_clear(&agent->dirs);
    slot_map_clear(&agent->session_ids);
    for (uint32_t slot = 0; slot < agent->session_count; slot++) {
        const struct agent_session *session = agent->sessions[slot];
        if (session)
            (void)slot_map_put(&agent->dirs, session->dir, slot);
        if (session && session->is_identified && !session->is_duplicate)
            (void)slot_map_put(&agent->session_ids, session->sender.session_id, slot);
    }
}

/* Returns the other directory that represents the same session; NULL: there is none. */
static struct agent_session *other_of(const struct agent *agent, const struct agent_session *session)
{
    const char *id = session->sender.session_id;
    struct agent_session *other = session_in(agent, slot_map_get(&agent->session_ids, id));
    return other && other != session && !strcmp(other->sender.session_id, id) ? other : NULL;
}

/* Of several directories with the same session, only the first is sent while it exists: window ids would repeat. */
static bool claim(struct agent *agent, uint32_t slot)
{
    struct agent_session *session = agent->sessions[slot], *other = other_of(agent, session);
    if (other && agent_session_is_there(other)) {
        log_message(GPUFL_LOG_WARNING, "%s: ignored because it is the same session as %s", session->dir, other->dir);
        return false;
    }
    if (other) {
        log_message(GPUFL_LOG_INFO, "%s: resuming the session that was in %s", session->dir, other->dir);
        agent_session_take_over(session, other);
        agent_session_save(session, &agent->work);
        agent->sessions[slot_map_get(&agent->session_ids, session->sender.session_id)] = NULL;
        free(other);
    }
    return true;
}

/* Duplicates whose first directory is gone are identified again, with the server's current state of the session. */
static void reconsider_duplicates(struct agent *agent)
{
    for (size_t i = 0; i < agent->session_count; i++) {
        struct agent_session *session = agent->sessions[i];
        const struct agent_session *other = session && session->is_duplicate ? other_of(agent, session) : NULL;
        if (session && session->is_duplicate && !session->is_settled && !(other && agent_session_is_there(other))) {
            session->is_identified = session->is_duplicate = false;
            session->due_ns = 0;
        }
    }
}

static void scan(struct agent *agent)
{
    agent->discovery.is_changed = agent->discovery.is_incomplete = false;
    agent->has_too_many = false;
    agent->free_hint = 0;
    tidy_maps(agent);
    for (size_t i = 0; i < agent->options->root_count; i++)
        discovery_scan(&agent->discovery, agent->options->roots[i], add_session, agent);
    reconsider_duplicates(agent);
    agent->scan_ns = clock_mono_ns() + (int64_t)SCAN_MS * 1000000;
}

static bool identify(struct agent *agent, uint32_t slot)
{
    struct agent_session *session = agent->sessions[slot];
    struct problem problem = {""};
    if (session->is_identified)
        return !session->is_duplicate;
    gpufl_status status = agent_session_identify(session, &agent->work, &problem);
    session->is_dirty = false;
    session->due_ns = clock_mono_ns() + agent->work.interval_ns;
    if (status == GPUFL_E_NOT_FOUND) {
        free(session);
        agent->sessions[slot] = NULL;
    }
    if (status)
        return false;
    session->is_duplicate = !claim(agent, slot);
    if (session->is_duplicate || slot_map_put(&agent->session_ids, session->sender.session_id, slot))
        return !session->is_duplicate;
    log_message(GPUFL_LOG_ERROR, "%s: out of memory; trying again later", session->dir);
    return session->is_identified = false;
}

/* When the session must be checked next. */
static int64_t due_ns(const struct agent *agent, const struct agent_session *session)
{
    if (session->is_duplicate)
        return INT64_MAX;
    /* due_ns may be that of a slow poll: after a change, wait at most one interval. */
    int64_t soon_ns = session->looked_ns + agent->work.interval_ns;
    return session->is_dirty && soon_ns < session->due_ns ? soon_ns : session->due_ns;
}

/* Sends one window per channel of every session that is due. STEP_MORE: there is more to send immediately. */
static enum step_result run_round(struct agent *agent)
{
    enum step_result result = STEP_IDLE;
    const size_t first = agent->turn;
    for (size_t k = 0; k < agent->session_count && !is_stopping(agent); k++) {
        uint32_t slot = (uint32_t)((first + k) % agent->session_count);
        struct agent_session *session = agent->sessions[slot];
        int64_t now_ns = clock_mono_ns();
        atomic_store(&agent->counters.tick_mono_ns, now_ns);
        if (!session || now_ns < due_ns(agent, session) || !identify(agent, slot))
            continue;
        if (now_ns < agent->shipper.not_before_ns)
            return STEP_RETRY;
        shipper_ask_version(&agent->shipper);
        session->looked_ns = now_ns;
        enum step_result one = agent_session_step(session, &agent->work);
        agent->turn = slot + 1;
        if (one == STEP_GONE) {
            agent_session_save(session, &agent->work); /* the session may reappear in another directory */
            free(session);
            agent->sessions[slot] = NULL;
        } else if (one == STEP_MORE) {
            result = STEP_MORE;
        } else if (one != STEP_IDLE) {
            return one;
        }
    }
    return result;
}

static void refresh_config(struct agent *agent)
{
    const struct agent_options *options = agent->options;
    struct problem problem = {""};
    bool is_new = false;
    const struct config_fetch fetch = {.struct_size = sizeof fetch,
                                       .server_url = options->server_url,
                                       .api_path = options->api_path,
                                       .api_key = agent->shipper.options.server.api_key,
                                       .ca_file = options->ca_file,
                                       .name = options->remote_config,
                                       .dir = options->remote_config_dir,
                                       .timeout_ms = CONFIG_TIMEOUT_MS};
    agent->config_ns = clock_mono_ns() + (int64_t)CONFIG_MS * 1000000;
    gpufl_status status = gpufl_config_fetch(&fetch, &is_new, &problem);
    if (is_new)
        log_message(GPUFL_LOG_INFO, "configuration '%s' was updated", options->remote_config);
    if (status && strncmp(agent->config_trouble, problem.text, sizeof agent->config_trouble - 1) != 0)
        log_message(GPUFL_LOG_WARNING, "%s", problem.text);
    snprintf(agent->config_trouble, sizeof agent->config_trouble, "%.255s", status ? problem.text : "");
}

static void count_sessions(struct agent *agent)
{
    uint64_t tracked = 0, duplicates = 0, waiting = 0, bytes = 0, backlog = 0;
    for (size_t i = 0; i < agent->session_count; i++) {
        const struct agent_session *session = agent->sessions[i];
        if (!session || session->is_duplicate) {
            duplicates += session != NULL;
            continue;
        }
        tracked++;
        bool is_waiting = !session->is_drained || (!session->is_live && !session->state.is_complete);
        waiting += is_waiting && (session->bytes || !session->is_identified || session->is_unread);
        bytes += session->bytes;
        backlog += session->is_drained ? 0 : session->backlog_bytes;
    }
    atomic_store(&agent->counters.sessions_tracked, tracked);
    atomic_store(&agent->counters.sessions_waiting, waiting + duplicates);
    agent->duplicate_count = duplicates;
    atomic_store(&agent->counters.spool_bytes, bytes);
    atomic_store(&agent->counters.backlog_bytes, backlog);
}

static bool is_tracked(void *user, const char *session_id)
{
    const struct agent *agent = user;
    return session_in(agent, slot_map_get(&agent->session_ids, session_id)) != NULL;
}

static void take_care(struct agent *agent)
{
    int64_t now_ns = clock_mono_ns();
    for (size_t i = 0; i < agent->session_count; i++)
        if (agent->sessions[i])
            agent_session_save(agent->sessions[i], &agent->work);
    discovery_listen(&agent->discovery, note_change, agent); /* nothing is deleted on outdated information */
    retention_run(&agent->retention, &agent->work, agent->sessions, agent->session_count);
    count_sessions(agent);
    if (agent->prune_ns && now_ns >= agent->prune_ns)
        session_state_prune(&agent->state_dir, STATE_AGE_S, is_tracked, agent);
    if (now_ns >= agent->prune_ns)
        agent->prune_ns = now_ns + (int64_t)PRUNE_S * 1000000000;
    agent->care_ns = now_ns + (int64_t)CARE_MS * 1000000;
}

static int64_t wake_ns(const struct agent *agent)
{
    int64_t wake = agent->care_ns < agent->scan_ns ? agent->care_ns : agent->scan_ns;
    for (size_t i = 0; i < agent->session_count; i++) {
        if (!agent->sessions[i])
            continue;
        int64_t due = due_ns(agent, agent->sessions[i]);
        if (due < agent->shipper.not_before_ns)
            due = agent->shipper.not_before_ns;
        wake = due < wake ? due : wake;
    }
    return wake;
}

static void wait_until(const struct agent *agent, int64_t until_ns, bool is_by_events)
{
    struct pollfd fds[2] = {{.fd = agent->options->wake_fd, .events = POLLIN},
                            {.fd = is_by_events ? agent->discovery.fd : -1, .events = POLLIN}};
    int64_t left_ms = (until_ns - clock_mono_ns() + 999999) / 1000000;
    if (left_ms > 0)
        poll(fds, 2, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
}

/* A busy program writes many times a second: pause briefly so that its events are handled together. */
static void rest(const struct agent *agent)
{
    int64_t until_ns = wake_ns(agent), pause_ns = clock_mono_ns() + (int64_t)EVENTS_PAUSE_MS * 1000000;
    wait_until(agent, pause_ns < until_ns ? pause_ns : until_ns, false);
    if (!is_stopping(agent))
        wait_until(agent, until_ns, true);
}

/* A missing root may be a mistake, or may be created later. GPUFL_E_NOT_FOUND: a root is missing. */
static gpufl_status check_roots(const struct agent *agent, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < agent->options->root_count; i++) {
        struct problem why = {""};
        if (discovery_check_root(agent->options->roots[i], &why) == GPUFL_OK)
            continue;
        log_message(GPUFL_LOG_WARNING, "%s", why.text);
        if (!status)
            status = problem_set(problem, GPUFL_E_NOT_FOUND, "nothing was sent from %.300s", agent->options->roots[i]);
    }
    return status;
}

static gpufl_status run_once(struct agent *agent, struct problem *problem)
{
    gpufl_status roots_status = check_roots(agent, problem);
    scan(agent);
    if (agent->discovery.is_incomplete && !roots_status)
        roots_status = problem_set(problem, GPUFL_E_NO_MEMORY,
                                   "cannot search for all sessions: no memory, or a "
                                   "directory cannot be listed; run it again");
    while (!is_stopping(agent)) {
        enum step_result result = run_round(agent);
        if (result == STEP_IDLE)
            break;
        if (result == STEP_REFUSED || (result == STEP_RETRY && agent->shipper.failures >= ONCE_FAILURES_MAX)) {
            *problem = agent->shipper.problem;
            int status = agent->shipper.answer.status;
            return result == STEP_REFUSED && (status == 401 || status == 403) ? GPUFL_E_PERMISSION : GPUFL_E_IO;
        }
        if (result == STEP_RETRY)
            wait_until(agent, agent->shipper.not_before_ns, false);
    }
    return roots_status;
}

static void run_for_ever(struct agent *agent)
{
    const int64_t watchdog_ns = notify_watchdog_ns();
    int64_t watchdog_due_ns = 0;
    struct problem ignored;
    (void)!check_roots(agent, &ignored);
    notify_send("READY=1");
    while (!is_stopping(agent)) {
        int64_t now_ns = clock_mono_ns();
        atomic_store(&agent->counters.tick_mono_ns, now_ns);
        if (watchdog_ns && now_ns >= watchdog_due_ns) {
            notify_send("WATCHDOG=1");
            watchdog_due_ns = now_ns + watchdog_ns / 2;
        }
        discovery_listen(&agent->discovery, note_change, agent);
        if (agent->discovery.is_changed || now_ns >= agent->scan_ns)
            scan(agent);
        enum step_result result = run_round(agent);
        count_sessions(agent);
        if (clock_mono_ns() >= agent->care_ns)
            take_care(agent);
        if (agent->options->remote_config && *agent->options->remote_config && clock_mono_ns() >= agent->config_ns)
            refresh_config(agent);
        if (result != STEP_MORE && !is_stopping(agent))
            rest(agent);
    }
    notify_send("STOPPING=1");
}

static gpufl_status agent_open(struct agent *agent, struct problem *problem)
{
    const struct agent_options *options = agent->options;
    const struct shipper_options shipper = {
        .server = {.url = options->server_url ? options->server_url : "",
                   .api_path = options->api_path && *options->api_path ? options->api_path : UPLOAD_API_PATH_DEFAULT,
                   .api_key = options->api_key,
                   .ca_file = options->ca_file,
                   .is_cancelled = options->is_stopping},
        .api_key_file = options->api_key_file && *options->api_key_file ? options->api_key_file : NULL,
        .rate_bytes_per_s = options->rate_bytes_per_s};
    gpufl_status status = shipper_open(&agent->shipper, &shipper, &agent->counters, problem);
    if (!status)
        status = state_dir_open(&agent->state_dir, options->state_dir, shipper_address(&agent->shipper), problem);
    if (!status && stream_window_open(&agent->window))
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the agent");
    if (!status && options->listen && *options->listen) {
        status = endpoint_start(&agent->endpoint, options->listen, agent_pages, &agent->counters, problem);
        if (!status)
            log_message(GPUFL_LOG_INFO, "metrics at http://%s/metrics", endpoint_address(agent->endpoint));
    }
    if (options->quarantine_dir && *options->quarantine_dir)
        snprintf(agent->quarantine_dir, sizeof agent->quarantine_dir, "%s", options->quarantine_dir);
    else
        snprintf(agent->quarantine_dir, sizeof agent->quarantine_dir, "%s/quarantine", agent->state_dir.path);
    agent->retention = (struct retention){options->keep, options->keep_days, options->spool_bytes_max};
    agent->work = (struct agent_work){
        .shipper = &agent->shipper,
        .state_dir = &agent->state_dir,
        .quarantine_dir = agent->quarantine_dir,
        .window = &agent->window,
        .counters = &agent->counters,
        .interval_ns = 1000000 * (options->interval_ms > 0 ? options->interval_ms : AGENT_INTERVAL_DEFAULT_MS),
        .is_once = options->is_once};
    discovery_open(&agent->discovery);
    return status;
}

static void agent_close(struct agent *agent)
{
    endpoint_stop(agent->endpoint);
    for (size_t i = 0; i < agent->session_count; i++)
        free(agent->sessions[i]);
    free(agent->sessions);
    slot_map_clear(&agent->dirs);
    slot_map_clear(&agent->session_ids);
    discovery_close(&agent->discovery);
    stream_window_close(&agent->window);
    state_dir_close(&agent->state_dir);
    shipper_close(&agent->shipper);
}

gpufl_status gpufl_agent_run(const struct agent_options *options, struct agent_result *result, struct problem *problem)
{
    *result = (struct agent_result){0};
    if (options->struct_size != AGENT_STRUCTS_SIZE)
        return problem_set(problem, GPUFL_E_VERSION, "gpufl and libgpufl-upload.so have different versions");
    if (!options->root_count || !options->state_dir || !*options->state_dir)
        return problem_set(problem, GPUFL_E_INVALID, "no directory to watch, or no state directory");
    struct agent *agent = calloc(1, sizeof *agent);
    if (!agent)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the agent");
    agent->options = options;
    agent->state_dir.fd = agent->state_dir.lock_fd = agent->discovery.fd = -1;
    log_configure(options->log_fn, options->log_user, false, -1);
    gpufl_status status = agent_open(agent, problem);
    if (!status && options->is_once) {
        if (options->remote_config && *options->remote_config)
            refresh_config(agent);
        status = run_once(agent, problem);
    } else if (!status) {
        run_for_ever(agent);
    }
    if (agent->state_dir.fd >= 0)
        take_care(agent);
    result->sessions = atomic_load(&agent->counters.sessions_completed);
    result->windows = atomic_load(&agent->counters.windows_sent);
    result->lines = atomic_load(&agent->counters.lines_sent);
    result->bytes = atomic_load(&agent->counters.bytes_sent);
    result->left_out_lines = atomic_load(&agent->counters.lines_left_out);
    result->missing_lines = atomic_load(&agent->counters.lines_missing);
    result->damaged_sessions = atomic_load(&agent->counters.sessions_damaged);
    result->left_out_windows = atomic_load(&agent->counters.windows_left_out);
    result->quarantined_windows = atomic_load(&agent->counters.windows_quarantined);
    result->rejected_lines = atomic_load(&agent->counters.lines_rejected);
    result->dropped_lines = atomic_load(&agent->counters.lines_dropped);
    result->waiting_sessions = atomic_load(&agent->counters.sessions_waiting) - agent->duplicate_count;
    agent_close(agent);
    log_configure(NULL, NULL, false, -1);
    free(agent);
    return status;
}
