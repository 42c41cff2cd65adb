/* SPDX-License-Identifier: Apache-2.0 */
/* The short name of a session: train-3. It consists of the program's name and a number that counts the sessions of a
 * directory. It is claimed when the session begins, and written into the lock file for quick access and into job_start,
 * which stays with the session when it is copied. Any thread. */
#ifndef GPUFL_LOGFILE_SHORT_NAME_H
#define GPUFL_LOGFILE_SHORT_NAME_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define SHORT_NAME_SIZE 64

/* train.py, 3: "train-3". Characters that need quoting in a shell become underscores. */
void short_name_make(char out[SHORT_NAME_SIZE], const char *app, uint64_t number);
/* The number at the end, 0: not a short name; *base_size (may be NULL): the size of the part before "-3". */
uint64_t short_name_number(const char *name, size_t *base_size);

/* Prevents other processes from claiming a name in this directory of sessions until the descriptor is closed. Waits for
 * others at most a quarter of a second and then continues without the lock, so that two sessions may get the same
 * name. */
void short_name_lock(int base_fd);
/* The next free name for a session that already has its directory. false: the directory cannot be read. */
bool short_name_next(int base_fd, const char *app, const char *session_id, char out[SHORT_NAME_SIZE]);
bool short_name_write(int lock_fd, const char *name);
/* From the session's lock file; false: an old session, or a copy without the lock file. */
bool short_name_read(int base_fd, const char *session_id, char out[SHORT_NAME_SIZE]);

#endif
