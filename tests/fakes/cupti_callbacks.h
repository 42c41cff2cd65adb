/* SPDX-License-Identifier: Apache-2.0 */
/* The one subscriber of the look-alike CUPTI and what it wants to be called for. */
#ifndef FAKES_CUPTI_CALLBACKS_H
#define FAKES_CUPTI_CALLBACKS_H

#include "cupti_fake.h"

/* Hooks into the fake driver, loading it when necessary; in libcupti.c. */
int cupti_attach(void);
/* False: the subscriber has not enabled that call. */
bool callbacks_call(struct fake_call *call, uint32_t site);
void callbacks_resource(uint32_t cbid, void *context, void *stream, void *descriptor);
/* The same, and the module that comes with a new context. */
void callbacks_context(uint32_t cbid, void *context, void *stream);
/* Forgets the subscriber. */
void callbacks_reset(void);
void callbacks_after_fork(void); /* in the child, when it finalizes: what the parent's threads held is free */

#endif
