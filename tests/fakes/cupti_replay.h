/* SPDX-License-Identifier: Apache-2.0 */
/* Replay of a recording (FAKE_REPLAY) through the look-alike CUPTI: the records
 * of a real GPU instead of made-up ones. See tests/recordings/README.md. */
#ifndef FAKES_CUPTI_REPLAY_H
#define FAKES_CUPTI_REPLAY_H

#include <stdbool.h>

/* Whether a recording is to be replayed; then the driver's own events are not recorded. */
bool replay_is_wanted(void);
/* The client's kinds are enabled and its program runs: begin, once. */
void replay_begin(void);
/* Delivers what is due by now; all_of_it waits for the end. True: some is left. */
bool replay_advance(bool all_of_it);

#endif
