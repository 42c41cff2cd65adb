/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/given_names.h"

#include "base/clock.h"
#include "format/json.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct kept_name {
    enum given_name_kind kind;
    uint32_t domain_size; /* of text: the domain, '\0', the name */
    uint64_t id;
    size_t bytes;
    char text[];
};

static struct {
    pthread_mutex_t mutex;
    struct kept_name *names[GIVEN_NAMES_MAX]; /* the name with number n is at n % GIVEN_NAMES_MAX */
    uint64_t count;                           /* number of names set so far, and of the next one */
    size_t bytes;
} given = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const char *const kinds[] = {"category", "thread", "stream"};

static size_t bounded_size(const char *text)
{
    return strnlen(text, GIVEN_NAME_BYTES_MAX);
}

static struct kept_name *keep(const struct given_name *name)
{
    size_t domain_size = bounded_size(name->domain), name_size = bounded_size(name->name);
    struct kept_name *kept = calloc(1, sizeof *kept + domain_size + name_size + 2);
    if (!kept)
        return NULL;
    kept->kind = name->kind;
    kept->id = name->id;
    kept->domain_size = (uint32_t)domain_size;
    kept->bytes = domain_size + name_size + 2;
    memcpy(kept->text, name->domain, domain_size);
    memcpy(kept->text + domain_size + 1, name->name, name_size);
    return kept;
}

/* Whether the object already has this name; with the mutex held. */
static bool is_known(const struct kept_name *name)
{
    uint64_t first = given.count > GIVEN_NAMES_MAX ? given.count - GIVEN_NAMES_MAX : 0;
    for (uint64_t i = given.count; i > first; i--) {
        const struct kept_name *other = given.names[(i - 1) % GIVEN_NAMES_MAX];
        if (other && other->kind == name->kind && other->id == name->id && !strcmp(other->text, name->text))
            return other->bytes == name->bytes && !memcmp(other->text, name->text, name->bytes);
    }
    return false;
}

void given_names_set(const struct given_name *name)
{
    struct kept_name *kept = keep(name);
    if (!kept)
        return;
    struct kept_name *old = kept;
    pthread_mutex_lock(&given.mutex);
    if (!is_known(kept)) {
        struct kept_name **place = &given.names[given.count % GIVEN_NAMES_MAX];
        old = *place;
        *place = kept;
        given.count++;
        given.bytes += kept->bytes - (old ? old->bytes : 0);
    }
    pthread_mutex_unlock(&given.mutex);
    free(old);
}

static void write_name(struct recorder *recorder, const struct kept_name *name)
{
    struct bytes *line = recorder_begin(recorder, RECORD_GIVEN_NAME);
    json_key(line, "ts_ns");
    json_int(line, clock_log_ns());
    json_key(line, "kind");
    json_text(line, kinds[name->kind]);
    json_key(line, "id");
    json_uint(line, name->id);
    json_key(line, "domain");
    json_text(line, name->text);
    json_key(line, "name");
    json_text(line, name->text + name->domain_size + 1);
    recorder_end(recorder, RECORD_GIVEN_NAME);
}

/* A copy of the name with that number, or of the next one still kept; NULL: there is none. */
static struct kept_name *copy_from(uint64_t *number)
{
    struct kept_name *copy = NULL;
    pthread_mutex_lock(&given.mutex);
    if (given.count > *number + GIVEN_NAMES_MAX)
        *number = given.count - GIVEN_NAMES_MAX;
    if (*number < given.count) {
        const struct kept_name *name = given.names[*number % GIVEN_NAMES_MAX];
        copy = malloc(sizeof *copy + name->bytes);
        if (copy)
            memcpy(copy, name, sizeof *copy + name->bytes);
    }
    pthread_mutex_unlock(&given.mutex);
    return copy;
}

void given_names_write(struct recorder *recorder, uint64_t *position)
{
    for (uint64_t number = *position;; *position = ++number) {
        struct kept_name *name = copy_from(&number);
        recorder_lose(recorder, LOSS_GIVEN_NAMES, number - *position);
        *position = number;
        if (!name)
            return;
        write_name(recorder, name);
        free(name);
    }
}

void given_names_abandon(void)
{
    pthread_mutex_init(&given.mutex, NULL);
}

size_t given_names_bytes(void)
{
    pthread_mutex_lock(&given.mutex);
    size_t bytes = sizeof given + given.bytes;
    pthread_mutex_unlock(&given.mutex);
    return bytes;
}
