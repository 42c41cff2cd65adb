/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: handlers turn an exchange into a subscription, any thread publishes. Each client has a bounded
 * queue; a client that is too slow is disconnected and counted, and reconnects by itself. Publishing never waits for a
 * client. Thread-safe until http_server_stop is called. */
#ifndef GPUFL_HTTP_HTTP_EVENTS_H
#define GPUFL_HTTP_HTTP_EVENTS_H

#include "http/http_exchange.h"

/* Answers with an open stream of the topic's events ("": of all topics). first: initial events, written by
 * http_event_append; NULL for none. GET only. */
void http_respond_events(struct http_exchange *exchange, const char *topic, const struct bytes *first);
/* Sends to the clients of the topic and of all topics. name: the event's type; data: any text, split at line ends. */
void http_server_publish(struct http_server *server, const char *topic, const char *name, const void *data,
                         size_t size);
void http_event_append(struct bytes *out, const char *name, const void *data, size_t size);

#endif
