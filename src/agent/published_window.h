/* SPDX-License-Identifier: Apache-2.0 */
/* GPUFlight's own windows: published .log.gz files go as they are, under the name that their sidecar gives them. What a
 * killed program left unpublished in .tmp follows once nobody writes there any more. One thread. */
#ifndef GPUFL_AGENT_PUBLISHED_WINDOW_H
#define GPUFL_AGENT_PUBLISHED_WINDOW_H

#include "agent/channel_stream.h"

/* Does the channel hold such windows at all? */
bool published_window_is_next(const struct channel_stream *stream, const struct stream_source *source,
                              const struct channel_state *state);
/* The window's fields, coder included, are as channel_stream_read leaves them. */
enum stream_result published_window_read(const struct channel_stream *stream, const struct stream_source *source,
                                         const struct channel_state *state, struct stream_window *window);

#endif
