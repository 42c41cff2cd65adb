/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/session_select.h"

#include "logfile/session_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SEE_LIST "Recent sessions: run 'gpufl ls'."
enum { CANDIDATES_MAX = 5 };

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Parses "latest" and "latest~N"; false: a different word. */
static bool read_latest(const char *word, size_t *back)
{
    static const char latest[] = "latest";
    *back = 0;
    if (strncmp(word, latest, sizeof latest - 1) != 0)
        return false;
    word += sizeof latest - 1;
    if (!*word)
        return true;
    char *end = NULL;
    errno = 0;
    unsigned long number = word[1] ? strtoul(word + 1, &end, 10) : 1;
    if (*word != '~' || (end && (*end || word[1] < '0' || word[1] > '9')) || errno)
        return false;
    *back = number;
    return true;
}

static gpufl_status choose(const struct session_scan *scan, size_t at, size_t count, struct session_choice *choice)
{
    choice->place = scan->items[at];
    choice->count = count;
    return GPUFL_OK;
}

static const char *id_of(const struct session_place *place)
{
    const char *slash = strrchr(place->path, '/');
    return slash ? slash + 1 : place->path;
}

enum match { MATCH_NONE, MATCH_START, MATCH_PROGRAM, MATCH_WHOLE };

static enum match match_of(const struct session_place *place, const char *word)
{
    size_t size = strlen(word), base_size = 0;
    if (strcmp(place->name, word) == 0 || strcmp(id_of(place), word) == 0)
        return MATCH_WHOLE;
    if (short_name_number(place->name, &base_size) && base_size == size && strncmp(place->name, word, size) == 0)
        return MATCH_PROGRAM;
    return strncmp(place->name, word, size) == 0 || strncmp(id_of(place), word, size) == 0 ? MATCH_START : MATCH_NONE;
}

static gpufl_status refuse_several(const struct session_scan *scan, const char *word, enum match best, size_t count,
                                   struct problem *problem)
{
    struct bytes list = {0};
    size_t listed = 0;
    for (size_t i = 0; i < scan->count && listed < CANDIDATES_MAX; i++) {
        const struct session_place *place = &scan->items[i];
        if (match_of(place, word) == best) /* if the names are equal, the paths differ */
            bytes_append_format(&list, "%s%s", listed++ ? ", " : "",
                                best == MATCH_WHOLE || !*place->name ? place->path : place->name);
    }
    if (count > listed)
        bytes_append_format(&list, " and %zu more", count - listed);
    gpufl_status status =
        problem_set(problem, GPUFL_E_INVALID, "cannot open session '%s': ambiguous: it matches %s. " SEE_LIST, word,
                    bytes_text(&list));
    bytes_free(&list);
    return status;
}

static gpufl_status choose_by_name(struct session_scan *scan, const char *word, struct session_choice *choice,
                                   struct problem *problem)
{
    session_scan_name(scan);
    size_t counts[MATCH_WHOLE + 1] = {0}, first[MATCH_WHOLE + 1] = {0};
    for (size_t i = 0; *word && i < scan->count; i++) {
        enum match match = match_of(&scan->items[i], word);
        if (!counts[match]++)
            first[match] = i;
    }
    enum match best = counts[MATCH_WHOLE]     ? MATCH_WHOLE
                      : counts[MATCH_PROGRAM] ? MATCH_PROGRAM
                      : counts[MATCH_START]   ? MATCH_START
                                              : MATCH_NONE;
    if (best == MATCH_NONE)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "cannot open session '%s': no such session. " SEE_LIST, word);
    if (best != MATCH_PROGRAM && counts[best] > 1)
        return refuse_several(scan, word, best, counts[best], problem);
    return choose(scan, first[best], counts[best], choice);
}

gpufl_status session_scan_choose(struct session_scan *scan, const char *where, const char *word,
                                 struct session_choice *choice, struct problem *problem)
{
    size_t back = 0;
    bool is_latest = !word || read_latest(word, &back);
    if (!scan->count && where && word)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "cannot open session '%s%s%s': no such session. " SEE_LIST,
                           where, strcmp(where, "/") == 0 ? "" : "/", word);
    if (!scan->count)
        return where ? problem_set(problem, GPUFL_E_NOT_FOUND,
                                   "there is no session in '%s'. Record one: gpufl trace -- CMD", where)
                     : problem_set(problem, GPUFL_E_NOT_FOUND,
                                   "%s%s%sno session was recorded here. Record one: gpufl trace -- CMD, or give the "
                                   "directory of one",
                                   word ? "cannot open session '" : "", word ? word : "", word ? "': " : "");
    if (!is_latest)
        return choose_by_name(scan, word, choice, problem);
    if (back >= scan->count)
        return problem_set(problem, GPUFL_E_NOT_FOUND,
                           "cannot open session '%s': there %s only %zu session%s. " SEE_LIST, word,
                           scan->count == 1 ? "is" : "are", scan->count, scan->count == 1 ? "" : "s");
    session_scan_name(scan);
    return choose(scan, back, word ? 1 : scan->count, choice);
}

gpufl_status session_select_in(const char *dir, const char *word, struct session_choice *choice,
                               struct problem *problem)
{
    struct session_scan scan;
    gpufl_status status = session_scan_find(&scan, dir, problem);
    if (status)
        return status;
    status = session_scan_choose(&scan, dir, word, choice, problem);
    session_scan_free(&scan);
    return status;
}

/* A session that is in no list: files of the older flat layout, or a session without records. */
static bool choose_as_it_is(const char *dir, struct session_choice *choice)
{
    struct session_files files;
    if (session_files_list(&files, dir, NULL) != GPUFL_OK)
        return false;
    session_files_free(&files);
    struct session_scan scan = {.items = &choice->place, .count = 1};
    *choice = (struct session_choice){.count = 1};
    snprintf(choice->place.path, sizeof choice->place.path, "%.*s", SESSION_PATH_SIZE - 1, dir);
    session_scan_name(&scan);
    return true;
}

gpufl_status session_select(const char *word, struct session_choice *choice, struct problem *problem)
{
    if (word && is_directory(word))
        return choose_as_it_is(word, choice) ? GPUFL_OK : session_select_in(word, NULL, choice, problem);
    const char *slash = word ? strrchr(word, '/') : NULL;
    if (slash) {
        char dir[SESSION_PATH_SIZE];
        int size = snprintf(dir, sizeof dir, "%.*s", slash == word ? 1 : (int)(slash - word), word);
        if (slash[1] && size > 0 && (size_t)size < sizeof dir && is_directory(dir))
            return session_select_in(dir, slash + 1, choice, problem);
        struct stat status;
        const char *why = stat(word, &status) == 0 ? "not a directory"
                          : errno == ENOENT        ? "no such directory"
                                                   : strerror(errno);
        return problem_set(problem, GPUFL_E_NOT_FOUND, "cannot open session '%s': %s. " SEE_LIST, word, why);
    }
    struct session_scan scan;
    gpufl_status status = session_scan_find_here(&scan, problem);
    if (status)
        return status;
    status = session_scan_choose(&scan, NULL, word, choice, problem);
    session_scan_free(&scan);
    return status;
}

gpufl_status session_select_previous(const struct session_place *place, struct session_choice *choice,
                                     struct problem *problem)
{
    char base[SESSION_PATH_SIZE];
    struct session_scan scan;
    size_t size = 0, other_size = 0;
    const char *slash = strrchr(place->path, '/');
    snprintf(base, sizeof base, "%.*s", slash ? (int)(slash - place->path) : 1, slash ? place->path : ".");
    gpufl_status status = session_scan_find(&scan, slash == place->path ? "/" : base, problem);
    if (status)
        return status;
    session_scan_name(&scan);
    status = GPUFL_E_NOT_FOUND;
    size_t at = 0;
    while (at < scan.count && strcmp(id_of(&scan.items[at]), id_of(place)) != 0)
        at++;
    for (at++; status && at < scan.count; at++) {
        const struct session_place *other = &scan.items[at];
        if (short_name_number(place->name, &size) && short_name_number(other->name, &other_size) &&
            size == other_size && strncmp(place->name, other->name, size) == 0)
            status = choose(&scan, at, 1, choice);
    }
    if (status)
        problem_set(problem, status,
                    "there is no session of the same program before '%s' in '%s'; give two sessions to compare",
                    *place->name ? place->name : place->path, base);
    session_scan_free(&scan);
    return status;
}

void session_word(const struct session_place *place, char out[SESSION_PATH_SIZE])
{
    struct session_choice choice;
    char wanted[PATH_MAX], found[PATH_MAX];
    const char *slash = strrchr(place->path, '/');
    snprintf(out, SESSION_PATH_SIZE, "%s", place->name);
    if (!*place->name || !realpath(place->path, wanted))
        snprintf(out, SESSION_PATH_SIZE, "%s", place->path);
    else if (is_directory(out) || session_select(out, &choice, NULL) != GPUFL_OK ||
             !realpath(choice.place.path, found) || strcmp(wanted, found) != 0)
        snprintf(out, SESSION_PATH_SIZE, "%.*s/%s", slash ? (int)(slash - place->path) : 1, slash ? place->path : ".",
                 place->name);
}
