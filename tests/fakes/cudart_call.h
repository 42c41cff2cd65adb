/* SPDX-License-Identifier: Apache-2.0 */
/* Traced entry and exit of a call of the look-alike runtime. */
#ifndef FAKES_CUDART_CALL_H
#define FAKES_CUDART_CALL_H

#include "fake_gpu.h"

/* Also initializes the driver and the thread's context, as the runtime does by itself. */
int runtime_call_begin(struct fake_call *call, uint32_t cbid, const char *function, const char *symbol, void *stream);
int runtime_call_end(struct fake_call *call, int result);
#define BEGIN(call, function, symbol) runtime_call_begin(call, FAKE_ID_##function, #function, symbol, NULL)
/* Of a call whose first parameter is a stream. */
#define BEGIN_ON(call, function, stream) runtime_call_begin(call, FAKE_ID_##function, #function, NULL, stream)

static inline struct fake_stream *stream_of(void *handle)
{
    return fake_stream_of(fake_current_context(), handle);
}

#endif
