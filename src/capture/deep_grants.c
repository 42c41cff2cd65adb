/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/deep_grants.h"

#include "base/log.h"

static const char *const part_names[DEEP_PART_COUNT] = {"PC sampling", "SASS counters", "range counters", "PM sampling",
                                                        "code collection"};

void deep_grants_init(struct deep_grants *grants)
{
    pthread_mutex_init(&grants->mutex, NULL);
    atomic_init(&grants->has_news, false);
}

void deep_grants_destroy(struct deep_grants *grants)
{
    pthread_mutex_destroy(&grants->mutex);
}

void deep_grants_request(struct deep_grants *grants, enum deep_part part)
{
    pthread_mutex_lock(&grants->mutex);
    grants->grants[part].state = DEEP_WAITING;
    pthread_mutex_unlock(&grants->mutex);
}

static void change(struct deep_grants *grants, enum deep_part part, gpufl_status status, const struct problem *problem)
{
    struct deep_grant *grant = &grants->grants[part];
    grant->state = status == GPUFL_OK ? DEEP_RUNNING : DEEP_REFUSED;
    grant->status = status;
    grant->problem = *problem;
    atomic_store(&grants->has_news, true);
}

/* The problem text is empty if memory was exhausted. */
static const struct problem *in_words(gpufl_status status, const struct problem *problem)
{
    static const struct problem no_memory = {"out of memory"};
    return status == GPUFL_E_NO_MEMORY && !problem->text[0] ? &no_memory : problem;
}

void deep_grants_answer(struct deep_grants *grants, enum deep_part part, gpufl_status status,
                        const struct problem *problem)
{
    problem = in_words(status, problem);
    pthread_mutex_lock(&grants->mutex);
    enum deep_state state = grants->grants[part].state;
    bool is_news = state == DEEP_WAITING || (status == GPUFL_OK && state == DEEP_REFUSED);
    if (is_news)
        change(grants, part, status, problem);
    pthread_mutex_unlock(&grants->mutex);
    if (status != GPUFL_OK && is_news) /* what decides the engine is reported with the engine */
        log_message(part <= DEEP_RANGE_COUNTERS ? GPUFL_LOG_INFO : GPUFL_LOG_WARNING, "no %s: %s", part_names[part],
                    problem->text);
}

void deep_grants_revoke(struct deep_grants *grants, enum deep_part part, gpufl_status status,
                        const struct problem *problem)
{
    problem = in_words(status, problem);
    pthread_mutex_lock(&grants->mutex);
    if (grants->grants[part].state == DEEP_RUNNING)
        change(grants, part, status, problem);
    pthread_mutex_unlock(&grants->mutex);
}

void deep_grants_close(struct deep_grants *grants)
{
    static const struct problem problem = {"the program ended before it began"};
    for (int part = 0; part < DEEP_PART_COUNT; part++) {
        struct deep_grant grant;
        deep_grants_get(grants, (enum deep_part)part, &grant);
        if (grant.state == DEEP_WAITING)
            deep_grants_answer(grants, (enum deep_part)part, GPUFL_E_NOT_RUNNING, &problem);
    }
}

void deep_grants_get(struct deep_grants *grants, enum deep_part part, struct deep_grant *grant)
{
    pthread_mutex_lock(&grants->mutex);
    *grant = grants->grants[part];
    pthread_mutex_unlock(&grants->mutex);
}

bool deep_grants_take_news(struct deep_grants *grants)
{
    return atomic_exchange(&grants->has_news, false);
}

static bool is_refused(struct deep_grants *grants, enum deep_part part, struct problem *why)
{
    struct deep_grant grant;
    deep_grants_get(grants, part, &grant);
    bool is_refused = grant.state == DEEP_REFUSED;
    if (is_refused && why)
        *why = grant.problem;
    return is_refused;
}

bool deep_grants_is_refused(struct deep_grants *grants, enum deep_part part)
{
    return is_refused(grants, part, NULL);
}

gpufl_engine deep_grants_engine(struct deep_grants *grants, gpufl_engine wanted, struct problem *why)
{
    if (wanted == GPUFL_ENGINE_RANGE_PROFILER)
        return is_refused(grants, DEEP_RANGE_COUNTERS, why) ? GPUFL_ENGINE_TRACE : wanted;
    if (wanted == GPUFL_ENGINE_SASS_METRICS)
        return is_refused(grants, DEEP_SASS_METRICS, why) ? GPUFL_ENGINE_TRACE : wanted;
    if (wanted == GPUFL_ENGINE_DEEP && is_refused(grants, DEEP_SASS_METRICS, why))
        wanted = GPUFL_ENGINE_PC_SAMPLING;
    if (wanted >= GPUFL_ENGINE_PC_SAMPLING && is_refused(grants, DEEP_PC_SAMPLING, why))
        return GPUFL_ENGINE_TRACE;
    return wanted;
}
