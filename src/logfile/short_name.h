/* SPDX-License-Identifier: Apache-2.0 */
/* The name by which people call a session: train-3. The program's name and a number that counts the sessions of a
 * directory. It is claimed when the session begins, written into the lock file, where readers find it quickly, and into
 * job_start, which travels with the session. Any thread. */
#ifndef GPUFL_LOGFILE_SHORT_NAME_H
#define GPUFL_LOGFILE_SHORT_NAME_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define SHORT_NAME_SIZE 64

/* train.py, 3: "train-3". What a shell would not take as it is becomes an underscore. */
void short_name_make(char out[SHORT_NAME_SIZE], const char *app, uint64_t number);
/* The number at the end, 0 for what is not a short name; *base_size (may be NULL): how much is before "-3". */
uint64_t short_name_number(const char *name, size_t *base_size);

/* From now on nobody else claims a name in this directory of sessions, until the descriptor is closed. Waits for others
 * at most a quarter of a second and goes on without: then two sessions can have the same name. */
void short_name_lock(int base_fd);
/* The next free name for a session that is in the directory already. false: the directory cannot be read. */
bool short_name_next(int base_fd, const char *app, const char *session_id, char out[SHORT_NAME_SIZE]);
bool short_name_write(int lock_fd, const char *name);
/* From the session's lock file; false: an old session, or one whose lock file did not travel with it. */
bool short_name_read(int base_fd, const char *session_id, char out[SHORT_NAME_SIZE]);

#endif
