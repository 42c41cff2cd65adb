/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query_cache.h"

#include "base/clock.h"
#include "store/store_catalog.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A growing session is reloaded at the earliest after refresh_factor times the duration of the last load. */
enum { refresh_factor = 8, entries_max = 256 };
#define REFRESH_MIN_NS INT64_C(1000000000)
/* Memory per kernel of a model with its tracks, to enforce the limit. */
#define KERNEL_BYTES UINT64_C(70)

struct query_cache {
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t ready; /* a load ended */
    pthread_mutex_t load; /* one load at a time bounds memory */
    struct query_session *first;
    uint64_t bytes_max, bytes, clock;
    struct query_metrics metrics;
};

gpufl_status query_cache_open(struct query_cache **out, uint64_t bytes_max)
{
    struct query_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return GPUFL_E_NO_MEMORY;
    cache->bytes_max = bytes_max;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_mutex_init(&cache->load, NULL);
    pthread_cond_init(&cache->ready, NULL);
    *out = cache;
    return GPUFL_OK;
}

static void session_destroy(struct query_session *session)
{
    track_set_free(&session->tracks);
    analysis_free(&session->analysis);
    session_free(session->model);
    free(session);
}

void query_cache_close(struct query_cache *cache)
{
    if (!cache)
        return;
    while (cache->first) {
        struct query_session *session = cache->first;
        cache->first = session->next;
        session_destroy(session);
    }
    pthread_mutex_destroy(&cache->lock);
    pthread_mutex_destroy(&cache->load);
    pthread_cond_destroy(&cache->ready);
    free(cache);
}

void query_cache_metrics(struct query_cache *cache, struct query_metrics *metrics)
{
    pthread_mutex_lock(&cache->lock);
    *metrics = cache->metrics;
    metrics->bytes = cache->bytes;
    metrics->sessions = 0;
    for (const struct query_session *at = cache->first; at; at = at->next)
        metrics->sessions += at->state == QUERY_READY;
    pthread_mutex_unlock(&cache->lock);
}

static void unlink_session(struct query_cache *cache, struct query_session *session)
{
    struct query_session **link = &cache->first;
    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    cache->bytes -= session->bytes;
    session_destroy(session);
}

/* Requires the lock. Frees the least recently used sessions that nobody holds. */
static void evict(struct query_cache *cache)
{
    for (;;) {
        struct query_session *oldest = NULL;
        unsigned count = 0;
        for (struct query_session *at = cache->first; at; at = at->next, count++)
            if (!at->holders && (!oldest || at->used_at < oldest->used_at))
                oldest = at;
        if (!oldest || (cache->bytes <= cache->bytes_max && count <= entries_max && oldest->state == QUERY_READY))
            return;
        cache->metrics.evicted += oldest->state == QUERY_READY;
        unlink_session(cache, oldest);
    }
}

/* A session's catalog entry. */
struct catalog_entry {
    int64_t revision, created_ns, kernels, rows, lines, bytes, start_ns, end_ns;
    bool is_live;
};

struct store_reading {
    struct store *store;
    const struct store_range *range;
    const struct catalog_entry *entry; /* NULL: not needed */
    log_line_fn on_line;
    void *line_user;
    struct log_summary *summary;
};

static bool count_line(void *user, const struct log_line *line)
{
    struct store_reading *reading = user;
    log_summary_add(reading->summary, line);
    return reading->on_line(reading->line_user, line);
}

static gpufl_status read_store(void *user, log_line_fn on_line, log_issue_fn on_issue, void *line_user,
                               struct log_summary *summary, struct problem *problem)
{
    (void)on_issue; /* damaged lines were rejected when they were delivered */
    struct store_reading *reading = user;
    *summary = (struct log_summary){.is_part = reading->range->to_ns || reading->range->columns};
    for (unsigned type = 0; type < RECORD_TYPE_COUNT; type++)
        summary->is_part |= !record_set_has(&reading->range->types, type);
    /* A session that was live when the catalog was read may have received more rows and its end since then. */
    summary->has_batch_rows = reading->entry && !reading->entry->is_live;
    summary->batch_rows = summary->has_batch_rows ? (uint64_t)reading->entry->rows : 0;
    reading->on_line = on_line;
    reading->line_user = line_user;
    reading->summary = summary;
    return store_read(reading->store, reading->range, count_line, reading, problem);
}

gpufl_status query_load(struct store *store, const struct store_range *range, int64_t kernels_expected,
                        struct session_model **out, struct problem *problem)
{
    struct store_reading reading = {.store = store, .range = range};
    return session_load_from(out, read_store, &reading, kernels_expected > 0 ? (size_t)kernels_expected : 0, problem);
}

static bool take_entry(void *user, const struct store_session *session)
{
    *(struct catalog_entry *)user = (struct catalog_entry){.revision = session->revision,
                                                           .created_ns = session->created_ns,
                                                           .kernels = session->kernels,
                                                           .rows = session->rows,
                                                           .lines = session->lines,
                                                           .bytes = session->bytes,
                                                           .start_ns = session->start_ns,
                                                           .end_ns = session->end_ns,
                                                           .is_live = session->state == STORE_SESSION_LIVE};
    return false;
}

static gpufl_status fill(struct query_session *session, struct store *store, const struct catalog_entry *entry,
                         struct problem *problem)
{
    struct store_range range = {.session_id = session->id};
    for (unsigned type = 0; session->is_light && type < RECORD_TYPE_COUNT; type++)
        if (!record_catalogue[type].is_batch)
            record_set_add(&range.types, type);
    struct store_reading reading = {.store = store, .range = &range, .entry = entry};
    size_t kernels_expected = session->is_light || entry->kernels < 0 ? 0 : (size_t)entry->kernels;
    gpufl_status status = session_load_from(&session->model, read_store, &reading, kernels_expected, problem);
    if (status != GPUFL_OK)
        return status;
    struct log_summary *summary = &session->model->summary;
    summary->is_live = entry->is_live && !summary->has_shutdown;
    summary->lines = entry->lines > 0 ? (uint64_t)entry->lines : 0;
    summary->bytes = entry->bytes > 0 ? (uint64_t)entry->bytes : 0;
    if (session->is_light) {
        session->model->first_ns = entry->start_ns;
        session->model->last_ns = entry->end_ns;
    } else {
        session->kernels = (int64_t)session->model->kernels.count;
    }
    status = analysis_make_with(&session->analysis, session->model, session->is_light ? CODE_UNREAD : CODE_STORED);
    if (status != GPUFL_OK)
        problem_set(problem, status, "no memory to analyse the session");
    return status;
}

/* Requires the lock, and releases it meanwhile. */
static void load(struct query_cache *cache, struct query_session *session, struct store *store,
                 const struct catalog_entry *entry)
{
    pthread_mutex_unlock(&cache->lock);
    pthread_mutex_lock(&cache->load);
    int64_t start_ns = clock_mono_ns();
    session->status = fill(session, store, entry, &session->problem);
    int64_t end_ns = clock_mono_ns();
    pthread_mutex_unlock(&cache->load);
    uint64_t bytes = session->model ? session_bytes(session->model) : 0;
    pthread_mutex_lock(&cache->lock);
    session->loaded_ns = end_ns;
    session->load_ns = end_ns - start_ns;
    session->bytes = bytes;
    session->state = session->status == GPUFL_OK ? QUERY_READY : QUERY_FAILED;
    cache->bytes += bytes;
    cache->metrics.loads++;
    pthread_cond_broadcast(&cache->ready);
}

/* True when the loaded session may still answer for a newer revision. */
static bool is_fresh(const struct query_session *session, int64_t revision)
{
    if (session->revision >= revision || session->state == QUERY_LOADING)
        return session->state != QUERY_FAILED;
    int64_t wait_ns = session->load_ns * refresh_factor;
    return session->state == QUERY_READY &&
           clock_mono_ns() - session->loaded_ns < (wait_ns > REFRESH_MIN_NS ? wait_ns : REFRESH_MIN_NS);
}

static struct query_session *find(struct query_cache *cache, const char *id, bool is_light, int64_t revision,
                                  int64_t created_ns)
{
    struct query_session *best = NULL;
    for (struct query_session *at = cache->first; at; at = at->next) {
        /* A fully loaded session also serves requests for a light one. */
        if ((at->is_light && !is_light) || at->created_ns != created_ns || strcmp(at->id, id) != 0 ||
            !is_fresh(at, revision))
            continue;
        if (!best || at->revision > best->revision)
            best = at;
    }
    return best;
}

static struct query_session *insert(struct query_cache *cache, const char *id, bool is_light,
                                    const struct catalog_entry *entry)
{
    struct query_session *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    snprintf(session->id, sizeof session->id, "%s", id);
    session->is_light = is_light;
    session->revision = entry->revision;
    session->created_ns = entry->created_ns;
    session->kernels = entry->kernels;
    session->next = cache->first;
    cache->first = session;
    return session;
}

void query_cache_release(struct query_cache *cache, struct query_session *session)
{
    if (!session)
        return;
    pthread_mutex_lock(&cache->lock);
    session->holders--;
    evict(cache);
    pthread_mutex_unlock(&cache->lock);
}

gpufl_status query_cache_hold(struct query_cache *cache, struct store *store, const char *session_id, bool is_light,
                              struct query_session **out, struct problem *problem)
{
    struct catalog_entry entry = {0};
    if (strlen(session_id) > STORE_SESSION_ID_MAX)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "no such session");
    gpufl_status status = store_session(store, session_id, take_entry, &entry, problem);
    if (status != GPUFL_OK)
        return status;
    if (!is_light && entry.kernels > 0 && (uint64_t)entry.kernels > cache->bytes_max / KERNEL_BYTES)
        return problem_set(problem, GPUFL_E_LIMIT,
                           "the session has %lld kernels, more than fit into the server's cache of %llu MiB",
                           (long long)entry.kernels, (unsigned long long)(cache->bytes_max >> 20));
    pthread_mutex_lock(&cache->lock);
    struct query_session *session = find(cache, session_id, is_light, entry.revision, entry.created_ns);
    bool is_found = session != NULL;
    if (!is_found)
        session = insert(cache, session_id, is_light, &entry);
    if (!session) {
        pthread_mutex_unlock(&cache->lock);
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to load the session");
    }
    session->holders++;
    session->used_at = ++cache->clock;
    if (!is_found)
        load(cache, session, store, &entry);
    else if (session->state == QUERY_READY)
        cache->metrics.hits++;
    else
        cache->metrics.busy++;
    while (session->state == QUERY_LOADING)
        pthread_cond_wait(&cache->ready, &cache->lock);
    status = session->status;
    if (status != GPUFL_OK) {
        problem_set(problem, status, "%s", session->problem.text);
        session->holders--;
        session = NULL;
    }
    evict(cache);
    pthread_mutex_unlock(&cache->lock);
    *out = session;
    return status;
}

struct query_session *query_cache_peek(struct query_cache *cache, const char *session_id, int64_t revision,
                                       int64_t created_ns)
{
    pthread_mutex_lock(&cache->lock);
    struct query_session *session = find(cache, session_id, false, revision, created_ns);
    if (session && session->state == QUERY_READY) {
        session->holders++;
        session->used_at = ++cache->clock;
        cache->metrics.hits++;
    } else {
        session = NULL;
    }
    pthread_mutex_unlock(&cache->lock);
    return session;
}

const struct track_set *query_cache_tracks_peek(struct query_cache *cache, const struct query_session *session)
{
    pthread_mutex_lock(&cache->lock);
    bool has_tracks = session->has_tracks;
    pthread_mutex_unlock(&cache->lock);
    return has_tracks ? &session->tracks : NULL;
}

const struct track_set *query_cache_tracks(struct query_cache *cache, struct query_session *session)
{
    const struct track_set *tracks = query_cache_tracks_peek(cache, session);
    if (tracks)
        return tracks;
    pthread_mutex_lock(&cache->load);
    /* Another request may have made them meanwhile. */
    tracks = query_cache_tracks_peek(cache, session);
    if (!tracks && track_set_make(&session->tracks, session->model) == GPUFL_OK) {
        tracks = &session->tracks;
        pthread_mutex_lock(&cache->lock);
        session->has_tracks = true;
        session->bytes += track_set_bytes(tracks);
        cache->bytes += track_set_bytes(tracks);
        pthread_mutex_unlock(&cache->lock);
    }
    pthread_mutex_unlock(&cache->load);
    return tracks;
}
