/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: handlers turn an exchange into a subscription, anybody publishes. Each client has a bounded
 * queue; one that does not keep up is disconnected and counted, and comes back by itself. Publishing never waits for
 * a client; any thread, until http_server_stop is called. */
#ifndef GPUFL_HTTP_HTTP_EVENTS_H
#define GPUFL_HTTP_HTTP_EVENTS_H

#include "http/http_exchange.h"

/* Answers with an open stream of the topic's events ("": of every topic). first: events to begin with, as
 * http_event_append wrote them; NULL for none. GET only. */
void http_respond_events(struct http_exchange *exchange, const char *topic, const struct bytes *first);
/* To the clients of the topic and of every topic. name: the event's type; data: any text, split at line ends. */
void http_server_publish(struct http_server *server, const char *topic, const char *name, const void *data,
                         size_t size);
void http_event_append(struct bytes *out, const char *name, const void *data, size_t size);

#endif
