/* SPDX-License-Identifier: Apache-2.0 */
/* Data for the dashboard's settings page: the server, what it stores and for how long, and its keys. */
#include "server/server.h"

#include "format/json.h"
#include "http/http_exchange.h"
#include "server/admin.h"

static void number_write(struct bytes *out, const char *name, int64_t value, bool is_known)
{
    json_key(out, name);
    if (is_known)
        json_int(out, value);
    else
        json_text(out, NULL);
}

static void about(struct http_exchange *exchange, void *user)
{
    struct server *server = user;
    const struct server_config *config = server->config;
    struct server_health health;
    struct bytes out = {0};
    size_t active_keys;
    server_health_read(server, &health);
    const struct store_stats *stats = &health.stats;
    bool has_stats = stats->engine;
    size_t keys = key_ring_count(server->keys, &active_keys);
    bytes_append_char(&out, '{');
    json_key(&out, "version");
    json_text(&out, GPUFL_VERSION_STRING);
    json_key(&out, "store");
    json_text(&out, stats->engine);
    number_write(&out, "uptime_s", health.uptime_s, true);
    number_write(&out, "schema_version", stats->schema_version, has_stats);
    number_write(&out, "sessions", (int64_t)stats->sessions, has_stats);
    number_write(&out, "rows", (int64_t)stats->rows, has_stats);
    number_write(&out, "bytes", (int64_t)(stats->bytes + stats->log_bytes), has_stats);
    number_write(&out, "free_bytes", (int64_t)stats->free_bytes, has_stats);
    number_write(&out, "retention_days", config->retention_days, config->retention_days > 0);
    number_write(&out, "retention_bytes", config->retention_bytes, config->retention_bytes > 0);
    number_write(&out, "sessions_retired", (int64_t)atomic_load(&server->sessions_retired), true);
    number_write(&out, "keys", (int64_t)keys, true);
    number_write(&out, "active_keys", (int64_t)active_keys, true);
    json_key(&out, "is_key_needed");
    bytes_append_text(&out, atomic_load(&server->is_key_needed) ? "true}" : "false}");
    http_respond_bytes(exchange, 200, "application/json", &out);
}

static void keys_list(struct http_exchange *exchange, void *user)
{
    static const char request[] = "{\"action\":\"keys.list\"}", prefix[] = "{\"answer\":";
    struct server *server = user;
    struct bytes answer = {0}, out = {0};
    admin_execute(server->store, request, sizeof request - 1, &answer);
    if (answer.size > sizeof prefix && !memcmp(answer.data, prefix, sizeof prefix - 1)) {
        bytes_append_text(&out, "{\"keys\":");
        bytes_append(&out, answer.data + sizeof prefix - 1, answer.size - (sizeof prefix - 1));
        http_respond_bytes(exchange, 200, "application/json", &out);
    } else {
        http_respond_error(exchange, 503, "store_unavailable", "the keys cannot be read");
    }
    bytes_free(&answer);
}

struct api_table about_table(void)
{
    static const struct api_route routes[] = {
        {.http = {.method = HTTP_GET, .pattern = "/api/v1/server", .scope = HTTP_SCOPE_READ, .handle = about},
         .name = "getServer",
         .summary = "The server: version, what it stores and for how long",
         .schema = "Server"},
        {.http = {.method = HTTP_GET, .pattern = "/api/v1/keys", .scope = HTTP_SCOPE_ADMIN, .handle = keys_list},
         .name = "listKeys",
         .summary = "Keys without their secrets",
         .schema = "Keys"},
    };
    return (struct api_table){routes, sizeof routes / sizeof *routes};
}
