/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the program gives to its threads, streams and event categories, also before a session begins: each
 * session writes all known names. The last 4096 are kept; a name that is evicted before it was written is counted.
 * Any thread may set names, which takes a lock and allocates; the collector's thread writes them. */
#ifndef GPUFL_CAPTURE_GIVEN_NAMES_H
#define GPUFL_CAPTURE_GIVEN_NAMES_H

#include "capture/recorder.h"

enum given_name_kind { GIVEN_CATEGORY, GIVEN_THREAD, GIVEN_STREAM };

struct given_name {
    enum given_name_kind kind;
    uint64_t id;
    const char *domain, *name; /* borrowed; domain "": the default one */
};

enum { GIVEN_NAMES_MAX = 4096, GIVEN_NAME_BYTES_MAX = 4096 };

void given_names_set(const struct given_name *name);
/* Writes the names set since *position, and advances it; 0: all. */
void given_names_write(struct recorder *recorder, uint64_t *position);
void given_names_abandon(void); /* in a forked child: another thread of the parent may have held the lock */
size_t given_names_bytes(void);

#endif
