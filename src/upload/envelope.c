/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/envelope.h"

#include "format/json.h"
#include "logfile/session_origin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Makes text from a log, which is not trusted, safe for a header. */
static void header_text(char *out, size_t size, const char *text)
{
    size_t used = 0;
    for (; *text && used + 1 < size; text++) {
        bool is_plain = (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
                        (*text >= 'A' && *text <= 'Z') || strchr("-._:", *text);
        out[used++] = is_plain ? *text : '_';
    }
    out[used] = '\0';
}

gpufl_status sender_identify(struct sender *sender, const char *dir, struct problem *problem)
{
    *sender = (struct sender){.session_id = ""};
    struct session_origin origin;
    gpufl_status status = session_origin_read(&origin, dir, problem);
    if (status)
        return status;
    char host[256] = "";
    header_text(sender->session_id, sizeof sender->session_id, origin.id);
    header_text(sender->hostname, sizeof sender->hostname, origin.host);
    if (!sender->hostname[0] && !gethostname(host, sizeof host - 1))
        header_text(sender->hostname, sizeof sender->hostname, host);
    return GPUFL_OK;
}

PRINTF_LIKE(2, 3)
static void header_add(struct request_headers *headers, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(headers->text[headers->count], HEADER_SIZE, format, args);
    va_end(args);
    headers->list[headers->count] = headers->text[headers->count];
    headers->list[++headers->count] = NULL;
}

static void headers_start(struct request_headers *headers, const struct sender *sender)
{
    headers->count = 0;
    header_add(headers, "X-GpuFlight-Session-Id: %s", sender->session_id);
    if (sender->hostname[0])
        header_add(headers, "X-GpuFlight-Hostname: %s", sender->hostname);
    header_add(headers, "X-GpuFlight-Client-Version: %s", GPUFL_VERSION_STRING);
    header_add(headers, "X-GpuFlight-Wire-Version: 1");
}

void headers_for_window(struct request_headers *headers, const struct sender *sender, const struct window_name *name)
{
    headers_start(headers, sender);
    header_add(headers, "Content-Type: application/x-ndjson");
    header_add(headers, "Content-Encoding: %s", body_coding_names[name->coding]);
    header_add(headers, "X-GpuFlight-Window-Id: %s", name->id);
    header_add(headers, "X-GpuFlight-Window-Channel: %s", channel_names[name->channel]);
    header_add(headers, "X-GpuFlight-Window-Sequence: %" PRIu64, name->sequence);
    header_add(headers, "X-GpuFlight-Window-CRC32: %" PRIu32, name->crc32);
}

void headers_for_completion(struct request_headers *headers, const struct sender *sender)
{
    headers_start(headers, sender);
    header_add(headers, "Content-Type:"); /* removes libcurl's default: there is no content */
}

uint64_t answer_rejected_lines(const struct http_client *client, const struct http_answer *answer, char *reason,
                               size_t size)
{
    struct json_document document;
    reason[0] = '\0';
    if (!answer->text.size || json_parse(&document, answer->text.data, answer->text.size, NULL))
        return 0;
    int64_t rejected = json_get_int(document.root, "rejected", 0);
    if (rejected > 0) {
        const struct json_value *errors = json_member(document.root, "errors");
        const struct json_value *first = errors && errors->kind == JSON_ARRAY ? errors->child : NULL;
        http_text_clean(client, json_get_text(first, "reason", ""), reason, size);
    }
    json_free(&document);
    return rejected > 0 ? (uint64_t)rejected : 0;
}
