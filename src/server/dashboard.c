/* SPDX-License-Identifier: Apache-2.0 */
#include "server/dashboard.h"

#include <stdio.h>

static void file_respond(struct http_exchange *exchange, const char *folder)
{
    char path[256];
    int size = snprintf(path, sizeof path, "%s%s", folder, http_exchange_path_value(exchange, "path"));
    const struct http_static_file *file =
        size > 0 && (size_t)size < sizeof path ? http_static_find(dashboard_files, dashboard_file_count, path) : NULL;
    if (file)
        http_respond_static(exchange, file);
    else
        http_respond_error(exchange, 404, "not_found", "no such file in the dashboard; reload the page");
}

/* Every view has a URL; the browser decides what to show. */
static void page_respond(struct http_exchange *exchange, void *user)
{
    (void)user;
    file_respond(exchange, "index.html");
}

static void asset_respond(struct http_exchange *exchange, void *user)
{
    (void)user;
    file_respond(exchange, "assets/");
}

static void icon_respond(struct http_exchange *exchange, void *user)
{
    (void)user;
    file_respond(exchange, "icon.svg");
}

#define OPEN_ROUTE(path, respond)                                                                                    \
    {                                                                                                                \
        .method = HTTP_GET, .pattern = path, .scope = HTTP_SCOPE_NONE, .flags = HTTP_ROUTE_INLINE, .handle = respond \
    }

const struct http_route *dashboard_routes(size_t *count)
{
    static const struct http_route routes[] = {
        OPEN_ROUTE("/", page_respond),
        OPEN_ROUTE("/fleet", page_respond),
        OPEN_ROUTE("/sessions", page_respond),
        OPEN_ROUTE("/sessions/{id}", page_respond),
        OPEN_ROUTE("/sessions/{id}/{page}", page_respond),
        OPEN_ROUTE("/compare", page_respond),
        OPEN_ROUTE("/settings", page_respond),
        OPEN_ROUTE("/icon.svg", icon_respond),
        OPEN_ROUTE("/assets/{path...}", asset_respond),
    };
    *count = sizeof routes / sizeof *routes;
    return routes;
}
