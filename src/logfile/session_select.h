/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that knows which session a word means, for every command and for Python:
 *   (nothing)            the last session recorded here (session_scan_find_here)
 *   DIR                  the session in DIR; of several, the newest
 *   latest, latest~2     the newest session here, the second before it
 *   train-3              a session's name (short_name.h)
 *   train                the newest session of the program train
 *   tr, 01a1dda6-bd      the start of one session's name or id
 *   DIR/train-3          any of these words, in DIR
 * Single-threaded. */
#ifndef GPUFL_LOGFILE_SESSION_SELECT_H
#define GPUFL_LOGFILE_SESSION_SELECT_H

#include "logfile/session_scan.h"

struct session_choice {
    struct session_place place; /* its name is filled */
    size_t count;               /* of the sessions of which it is the newest; 1: the word means it alone */
};

/* word NULL: no argument. GPUFL_E_NOT_FOUND: no such session; GPUFL_E_INVALID: the word is ambiguous. The problem is a
 * complete sentence for the user. */
NODISCARD gpufl_status session_select(const char *word, struct session_choice *choice, struct problem *problem);
/* The same in one directory; word NULL: its newest session. */
NODISCARD gpufl_status session_select_in(const char *dir, const char *word, struct session_choice *choice,
                                         struct problem *problem);
/* The same among sessions that were already found. where: the directory for messages; NULL: here. */
NODISCARD gpufl_status session_scan_choose(struct session_scan *scan, const char *where, const char *word,
                                           struct session_choice *choice, struct problem *problem);
/* The previous session of the same program in the same directory. */
NODISCARD gpufl_status session_select_previous(const struct session_place *place, struct session_choice *choice,
                                               struct problem *problem);
/* The shortest word that selects this session from here: its name, else DIR/name, else its path. */
void session_word(const struct session_place *place, char out[SESSION_PATH_SIZE]);

#endif
