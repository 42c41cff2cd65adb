/* SPDX-License-Identifier: Apache-2.0 */
/* The names of gpufl's environment variables, the values they accept, and the nearest-word search for "did you mean".
 * Constant data and pure functions: any thread. */
#ifndef GPUFL_BASE_ENVIRONMENT_H
#define GPUFL_BASE_ENVIRONMENT_H

#include <stdbool.h>

/* Full names ("GPUFL_LOG_DIR"), NULL-terminated. */
extern const char *const environment_names[];

/* Whether "NAME" or "NAME=value" is one of environment_names. */
bool environment_is_known(const char *entry);
/* 1, true, yes or on, in any case. */
bool word_is_true(const char *word);
bool word_is_false(const char *word); /* 0, false, no or off */
/* GPUFL_DISABLED must work for users in trouble, so any value that is not a "no" disables. *invalid (may be NULL): the
 * value if it is neither yes nor no, else NULL. */
bool environment_is_disabled(const char **invalid);
/* The most likely intended word by edit distance, ignoring case; NULL: none is similar enough. words:
 * NULL-terminated. */
const char *nearest_word(const char *word, const char *const *words);

#endif
