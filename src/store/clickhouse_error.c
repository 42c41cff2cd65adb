/* SPDX-License-Identifier: Apache-2.0 */
#include "store/clickhouse_error.h"

#include <stdlib.h>

int ch_error_code(struct bytes *body)
{
    const char *at = strstr(bytes_text(body), "Code: ");
    return at ? (int)strtol(at + 6, NULL, 10) : 0;
}

bool ch_error_is_of_host(int code)
{
    return code == CODE_NO_ZOOKEEPER || code == CODE_READ_ONLY || code == CODE_NO_CONNECTION ||
           code == CODE_ZOOKEEPER || code == CODE_TOO_MANY_QUERIES || code == CODE_EOF ||
           (code >= CODE_NETWORK_FIRST && code <= CODE_NETWORK_LAST);
}

bool ch_error_is_refusal(int code)
{
    return code == CODE_NO_ZOOKEEPER || code == CODE_READ_ONLY || code == CODE_TOO_MANY_QUERIES;
}

gpufl_status ch_error_status(int code, long http_status, struct bytes *body, struct problem *problem)
{
    char text[240];
    const char *from = bytes_text(body);
    size_t used = 0;
    for (; *from && used + 1 < sizeof text; from++)
        text[used++] = *from < ' ' || *from > '~' ? ' ' : *from;
    text[used] = '\0';
    bool is_refused = code == CODE_UNKNOWN_USER || code == CODE_WRONG_PASSWORD || code == CODE_PASSWORD_NEEDED ||
                      code == CODE_AUTHENTICATION || http_status == 401;
    if (is_refused)
        return problem_set(problem, GPUFL_E_PERMISSION, "ClickHouse rejects the user or the password");
    if (ch_error_is_of_host(code) || code == CODE_TIMEOUT || code == CODE_TOO_MANY_PARTS ||
        code == CODE_TOO_FEW_REPLICAS || code == CODE_QUORUM_PREVIOUS || code == CODE_QUORUM_UNKNOWN)
        return problem_set(problem, GPUFL_E_BUSY, "ClickHouse is not available: %s", text);
    if (code == CODE_MEMORY_LIMIT)
        return problem_set(problem, GPUFL_E_LIMIT, "ClickHouse has too little memory: %s", text);
    return problem_set(problem, GPUFL_E_IO, "ClickHouse: %s", *text ? text : "an error without a message");
}
