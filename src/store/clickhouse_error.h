/* SPDX-License-Identifier: Apache-2.0 */
/* ClickHouse's errors: from the text of an answer to its error number and to our status. Private to the ClickHouse
 * engine. */
#ifndef GPUFL_STORE_CLICKHOUSE_ERROR_H
#define GPUFL_STORE_CLICKHOUSE_ERROR_H

#include "base/bytes.h"
#include "base/status.h"

/* ClickHouse's error numbers, the same in every version. */
enum {
    CODE_EOF = 32,
    CODE_UNKNOWN_FORMAT = 73,
    CODE_TIMEOUT = 159,
    CODE_TOO_MANY_QUERIES = 202,
    CODE_NETWORK_FIRST = 209,
    CODE_NETWORK_LAST = 210,
    CODE_NO_ZOOKEEPER = 225,
    CODE_MEMORY_LIMIT = 241,
    CODE_READ_ONLY = 242,
    CODE_TOO_MANY_PARTS = 252,
    CODE_NO_CONNECTION = 279,
    CODE_TOO_FEW_REPLICAS = 285,
    CODE_QUORUM_PREVIOUS = 286,
    CODE_QUORUM_UNKNOWN = 319,
    CODE_ZOOKEEPER = 999,
    CODE_UNKNOWN_USER = 192,
    CODE_WRONG_PASSWORD = 193,
    CODE_PASSWORD_NEEDED = 194,
    CODE_AUTHENTICATION = 516
};

/* The number in "Code: 60, e.displayText() = ..."; 0: none. */
int ch_error_code(struct bytes *body);
/* True when another host may succeed. */
bool ch_error_is_of_host(int code);
/* True when the host rejected the request without carrying out any of it. */
bool ch_error_is_refusal(int code);
/* Sets a message with the server's text on one line. */
gpufl_status ch_error_status(int code, long http_status, struct bytes *body, struct problem *problem);

#endif
