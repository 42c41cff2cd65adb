/* SPDX-License-Identifier: Apache-2.0 */
/* A route with the data for its description. These tables are the only list of the HTTP interface: the server mounts
 * their http part, and /api/v1/openapi.json is generated from them. Constant data. */
#ifndef GPUFL_SERVER_API_ROUTE_H
#define GPUFL_SERVER_API_ROUTE_H

#include "base/bytes.h"
#include "http/http_server.h"

struct api_route {
    struct http_route http;
    const char *name;              /* operationId */
    const char *summary;           /* one line */
    const char *const *parameters; /* query parameters: names of api_parameters, NULL-terminated; NULL: none */
    const char *schema;            /* of the answer: a name of api_schemas; NULL: no content */
    const char *body;              /* of the request: a name of api_schemas; NULL: none */
    const char *type;              /* of the answer; NULL: application/json */
};

struct api_table {
    const struct api_route *routes;
    size_t count;
};

struct api_parameter {
    const char *name, *type, *about; /* type: string, integer, number or boolean */
};
/* fields: "name:type ..." of the object's members: s string, i integer, n number, b boolean, o object, a array, x
 * anything. A ? follows where null is possible, then =Name where an object or a list's elements have a schema, or =s
 * (i, n, b) where elements are plain. A member that may be missing begins with '-'; "*:type" stands for all other
 * members. NULL: not JSON. */
struct api_schema {
    const char *name, *about, *fields;
};
extern const struct api_parameter api_parameters[]; /* ends with name NULL, like the next two */
extern const struct api_schema api_schemas[];       /* of whole answers and bodies */
extern const struct api_schema api_elements[];      /* of objects inside them */

/* The OpenAPI 3.1 document of all tables. */
void openapi_write(const struct api_table *tables, size_t count, struct bytes *out);

#endif
