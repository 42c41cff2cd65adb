/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/message.h"
#include "analysis/quantity.h"
#include "analysis/report.h"
#include "analysis/session_facts.h"
#include "base/clock.h"
#include "base/server_library.h"
#include "cli/command.h"
#include "cli/recording.h"
#include "logfile/session_select.h"

#include <stdlib.h>
#include <string.h>

static const char module_mark[] = "an address in this program";

/* The place with its name. */
static void place_of(const char *path, struct session_place *place)
{
    struct session_choice choice;
    if (session_select(path, &choice, NULL) == GPUFL_OK)
        *place = choice.place;
    snprintf(place->path, sizeof place->path, "%.*s", SESSION_PATH_SIZE - 1, path);
}

static void append_look(struct bytes *line, const struct session_place *place)
{
    char word[SESSION_PATH_SIZE];
    session_word(place, word);
    bytes_append_format(line, ". Look: gpufl %s ", server_library_find(module_mark, NULL) ? "view" : "report");
    shell_word_append(line, word);
}

static bool append_one(struct bytes *line, const struct recording *recording, struct problem *problem)
{
    const char *path = recording->found.paths[0];
    struct session_place place = {.name = ""};
    place_of(path, &place);
    bytes_append_format(line, "%s in %s: ", place.name, recording->dir);
    if (recording_is_written(path))
        bytes_append_text(line, "still being written, so far ");
    if (report_headline(path, line, problem) != GPUFL_OK)
        return false;
    append_look(line, &place);
    return true;
}

struct totals {
    uint64_t kernels, lost, count_by_state[SESSION_UNREADABLE + 1];
    struct session_place first, last; /* by their numbers */
    struct session_place own;         /* the first of the list */
    bool have_one_base;
};

static void totals_add(struct totals *totals, const struct session_facts *facts, bool is_first)
{
    const struct session_place *place = &facts->place;
    size_t base_size = 0, other_size = 0;
    uint64_t number = short_name_number(place->name, &base_size);
    if (is_first)
        totals->first = totals->last = totals->own = *place;
    uint64_t first = short_name_number(totals->first.name, &other_size);
    totals->have_one_base = (is_first || totals->have_one_base) && number && base_size == other_size &&
                            strncmp(place->name, totals->first.name, base_size) == 0;
    if (number < first)
        totals->first = *place;
    if (number > short_name_number(totals->last.name, NULL))
        totals->last = *place;
    totals->kernels += facts->kernels > 0 ? (uint64_t)facts->kernels : 0;
    totals->kernels += facts->untimed_kernels > 0 ? (uint64_t)facts->untimed_kernels : 0;
    totals->lost += facts->lost > 0 ? (uint64_t)facts->lost : 0;
    totals->count_by_state[facts->state]++;
}

static void append_many(struct bytes *line, const struct recording *recording)
{
    struct totals totals = {.kernels = 0};
    size_t count = recording->found.count;
    for (size_t i = 0; i < count; i++) {
        struct session_facts facts;
        struct session_place place = {.name = ""};
        place_of(recording->found.paths[i], &place);
        session_facts_read(&facts, &place, clock_wall_ns());
        totals_add(&totals, &facts, i == 0);
    }
    uint64_t span = short_name_number(totals.last.name, NULL) - short_name_number(totals.first.name, NULL) + 1;
    bytes_append_format(line, "%zu processes in %s", count, recording->dir);
    if (totals.have_one_base && span == count)
        bytes_append_format(line, ", %s to %s", totals.first.name, totals.last.name);
    bytes_append_format(line, ": %s kernels, %s lost", quantity_count(totals.kernels).text,
                        quantity_count(totals.lost).text);
    static const struct {
        enum session_state state;
        const char *words;
    } counted[] = {{SESSION_RUNNING, "still being written"},
                   {SESSION_CUT_OFF, "cut off and not counted"},
                   {SESSION_UNREADABLE, "unreadable"}};
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (totals.count_by_state[counted[i].state])
            bytes_append_format(line, ", %llu %s", (unsigned long long)totals.count_by_state[counted[i].state],
                                counted[i].words);
    append_look(line, recording->own_count ? &totals.own : &totals.first);
}

void recording_print(const struct recording *recording)
{
    struct bytes line = {0};
    struct problem problem = {""};
    bool is_good = true;
    if (!recording->found.count)
        return;
    if (recording->found.count == 1)
        is_good = append_one(&line, recording, &problem);
    else
        append_many(&line, recording);
    if (is_good && !line.failed)
        message_print(stderr, "gpufl: %s", bytes_text(&line));
    else
        message_print(stderr, "gpufl: recorded into %s, but it cannot be read: %s", recording->dir,
                      is_good ? "out of memory" : problem.text);
    bytes_free(&line);
}
