/* SPDX-License-Identifier: Apache-2.0 */
/* GPUFlight's windows: published .log.gz files are sent unchanged, under the id in their sidecar. Lines that a killed
 * program left unpublished in .tmp are sent once nobody writes there any more. Single-threaded. */
#ifndef GPUFL_AGENT_PUBLISHED_WINDOW_H
#define GPUFL_AGENT_PUBLISHED_WINDOW_H

#include "agent/channel_stream.h"

/* Whether the channel has such windows. */
bool published_window_is_next(const struct channel_stream *stream, const struct stream_source *source,
                              const struct channel_state *state);
/* window's fields and coder have the same meaning as after channel_stream_read. */
enum stream_result published_window_read(const struct channel_stream *stream, const struct stream_source *source,
                                         const struct channel_state *state, struct stream_window *window);

#endif
