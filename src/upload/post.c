/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/post.h"

#include "upload/http_client.h"

#include <stdio.h>
#include <stdlib.h>

gpufl_status gpufl_upload_post(const struct upload_post *post, char *message, size_t message_size)
{
    const struct http_server server = {.url = post->url, .api_path = "/", .ca_file = getenv("GPUFL_CA_FILE")};
    struct problem problem = {""};
    struct http_client *client = NULL;
    struct http_answer answer = {0};
    char type[128], explanation[160] = "";
    snprintf(type, sizeof type, "Content-Type: %s", post->content_type);
    const char *const headers[] = {type, NULL};
    const struct http_request request = {
        .path = post->path,
        .headers = headers,
        .body = post->body,
        .size = post->size,
        .timeout_ms = post->timeout_ms,
    };
    gpufl_status status = http_client_open(&client, &server, &problem);
    if (status == GPUFL_OK)
        status = http_post(client, &request, &answer);
    if (status != GPUFL_OK) {
        snprintf(message, message_size, "%s", problem.text[0] ? problem.text : "no memory");
    } else if (answer.status < 200 || answer.status > 299) {
        http_answer_explain(client, &answer, explanation, sizeof explanation);
        status = GPUFL_E_IO;
        if (answer.status)
            snprintf(message, message_size, "%s answered %d%s%s", post->url, answer.status, *explanation ? ": " : "",
                     explanation);
        else
            snprintf(message, message_size, "%s: %s", post->url, answer.reason);
    }
    http_answer_free(&answer);
    http_client_close(client);
    return status;
}
