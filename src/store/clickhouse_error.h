/* SPDX-License-Identifier: Apache-2.0 */
/* ClickHouse's errors: from the text of an answer to its number and to our status. Private to the ClickHouse engine. */
#ifndef GPUFL_STORE_CLICKHOUSE_ERROR_H
#define GPUFL_STORE_CLICKHOUSE_ERROR_H

#include "base/bytes.h"
#include "base/status.h"

/* ClickHouse's own numbers, the same in every version. */
enum {
    CODE_EOF = 32,
    CODE_UNKNOWN_FORMAT = 73,
    CODE_TIMEOUT = 159,
    CODE_TOO_MANY_QUERIES = 202,
    CODE_NETWORK_FIRST = 209,
    CODE_NETWORK_LAST = 210,
    CODE_NO_KEEPER = 225,
    CODE_MEMORY_LIMIT = 241,
    CODE_READ_ONLY = 242,
    CODE_TOO_MANY_PARTS = 252,
    CODE_NO_CONNECTION = 279,
    CODE_TOO_FEW_REPLICAS = 285,
    CODE_QUORUM_PREVIOUS = 286,
    CODE_QUORUM_UNKNOWN = 319,
    CODE_KEEPER = 999,
    CODE_UNKNOWN_USER = 192,
    CODE_WRONG_PASSWORD = 193,
    CODE_PASSWORD_NEEDED = 194,
    CODE_AUTHENTICATION = 516
};

/* Of "Code: 60, e.displayText() = ..."; 0: there is none. */
int ch_error_code(struct bytes *body);
/* Another host may be able to do it. */
bool ch_error_is_of_host(int code);
/* The host looked at it and did nothing. */
bool ch_error_is_refusal(int code);
/* With what the server said, on one line. */
gpufl_status ch_error_status(int code, long http_status, struct bytes *body, struct problem *problem);

#endif
