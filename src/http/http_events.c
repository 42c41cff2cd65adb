/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_events.h"

#include "http/http_core.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOPIC_SIZE = 96 };

/* Owned by its answer; guarded by the events' lock. */
struct http_events_client {
    struct http_events *events;
    struct http_events_client *next, *previous;
    struct http_connection *connection;
    char topic[TOPIC_SIZE];
    struct bytes queue;
    size_t sent; /* of the queue */
    bool is_closed;
};

void http_events_init(struct http_events *events)
{
    pthread_mutex_init(&events->lock, NULL);
}

void http_events_destroy(struct http_events *events)
{
    pthread_mutex_destroy(&events->lock);
}

void http_event_append(struct bytes *out, const char *name, const void *data, size_t size)
{
    bytes_append_format(out, "event: %s\n", name);
    const char *at = data, *end = at + size;
    do {
        /* Readers treat each of these as a line end; no line of data may start another field. */
        const char *stop = at;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        bytes_append_text(out, "data: ");
        bytes_append(out, at, (size_t)(stop - at));
        bytes_append_char(out, '\n');
        at = stop + (stop < end);
    } while (at < end);
    bytes_append_char(out, '\n');
}

static int64_t client_read(void *state, void *data, size_t size)
{
    struct http_events_client *client = state;
    struct bytes *queue = &client->queue;
    int64_t result = HTTP_SOURCE_WAIT;
    pthread_mutex_lock(&client->events->lock);
    size_t left = queue->size - client->sent;
    if (left) {
        size = left < size ? left : size;
        memcpy(data, queue->data + client->sent, size);
        client->sent += size;
        result = (int64_t)size;
    } else if (client->is_closed) {
        result = 0;
    }
    if (client->sent == queue->size) {
        bytes_clear(queue);
        client->sent = 0;
    }
    pthread_mutex_unlock(&client->events->lock);
    return result;
}

static void client_close(void *state)
{
    struct http_events_client *client = state;
    struct http_events *events = client->events;
    pthread_mutex_lock(&events->lock);
    if (client->previous)
        client->previous->next = client->next;
    else
        events->first = client->next;
    if (client->next)
        client->next->previous = client->previous;
    pthread_mutex_unlock(&events->lock);
    atomic_fetch_sub_explicit(&events->client_count, 1, memory_order_relaxed);
    bytes_free(&client->queue);
    free(client);
}

void http_respond_events(struct http_exchange *exchange, const char *topic, const struct bytes *first)
{
    static const struct http_source source = {.read = client_read, .close = client_close};
    struct http_events *events = &exchange->server->events;
    struct http_events_client *client = calloc(1, sizeof *client);
    if (!client) {
        http_respond_error(exchange, 503, "no_memory", "no memory for the answer");
        return;
    }
    client->events = events;
    client->connection = exchange->connection;
    snprintf(client->topic, sizeof client->topic, "%s", topic);
    /* The first line tells proxies and clients that the stream is open, and when to reconnect. */
    bytes_append_text(&client->queue, "retry: 2000\n\n");
    if (first)
        bytes_append(&client->queue, first->data, first->size);
    pthread_mutex_lock(&events->lock);
    client->is_closed = events->is_closed;
    client->next = events->first;
    if (client->next)
        client->next->previous = client;
    events->first = client;
    pthread_mutex_unlock(&events->lock);
    atomic_fetch_add_explicit(&events->client_count, 1, memory_order_relaxed);
    http_respond_header(exchange, "X-Accel-Buffering", "no");
    http_respond_source(exchange, 200, "text/event-stream", &source, client);
}

/* Requires the events' lock. */
static void client_push(struct http_server *server, struct http_events_client *client, const struct bytes *text)
{
    struct bytes *queue = &client->queue;
    if (client->is_closed)
        return;
    if (client->sent) {
        memmove(queue->data, queue->data + client->sent, queue->size - client->sent);
        queue->size -= client->sent;
        client->sent = 0;
    }
    bool has_room = !text->failed && queue->size + text->size <= server->options.events_bytes_max;
    if (has_room)
        bytes_append(queue, text->data, text->size);
    if (!has_room || queue->failed) {
        /* Unread events would only be outdated: the client reconnects. */
        client->is_closed = true;
        bytes_clear(queue);
        atomic_fetch_add_explicit(&server->events.dropped_count, 1, memory_order_relaxed);
        http_connection_abandon(client->connection);
    } else {
        atomic_fetch_add_explicit(&server->events.sent_count, 1, memory_order_relaxed);
    }
    http_connection_wake(client->connection);
}

void http_server_publish(struct http_server *server, const char *topic, const char *name, const void *data, size_t size)
{
    struct http_events *events = &server->events;
    if (!atomic_load_explicit(&events->client_count, memory_order_relaxed))
        return;
    struct bytes text = {0};
    http_event_append(&text, name, data, size);
    pthread_mutex_lock(&events->lock);
    for (struct http_events_client *at = events->first; at; at = at->next)
        if (!at->topic[0] || !strcmp(at->topic, topic))
            client_push(server, at, &text);
    pthread_mutex_unlock(&events->lock);
    bytes_free(&text);
}

void http_events_heartbeat(struct http_server *server)
{
    static char comment[] = ":\n\n";
    const struct bytes text = {.data = comment, .size = sizeof comment - 1};
    pthread_mutex_lock(&server->events.lock);
    for (struct http_events_client *at = server->events.first; at; at = at->next)
        client_push(server, at, &text);
    pthread_mutex_unlock(&server->events.lock);
}

void http_events_close(struct http_events *events)
{
    pthread_mutex_lock(&events->lock);
    events->is_closed = true;
    for (struct http_events_client *at = events->first; at; at = at->next) {
        at->is_closed = true;
        http_connection_wake(at->connection);
    }
    pthread_mutex_unlock(&events->lock);
}
