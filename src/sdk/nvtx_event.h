/* SPDX-License-Identifier: Apache-2.0 */
/* Converts NVTX events to the form that the threads' logs use. Events are read within the sizes they declare. */
#ifndef GPUFL_SDK_NVTX_EVENT_H
#define GPUFL_SDK_NVTX_EVENT_H

#include "capture/nvtx_handles.h"
#include "capture/thread_log.h"

#include <wchar.h>

union nvtx_message {
    const char *ascii;
    const wchar_t *unicode;
    const void *registered;
};
enum { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_UNICODE = 2, NVTX_MESSAGE_REGISTERED = 3 };

struct nvtx_attributes { /* nvtxEventAttributes_t, versions 1 to 3 */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved0;
    uint64_t payload;
    int32_t message_type;
    int32_t reserved1;
    union nvtx_message message;
};
_Static_assert(offsetof(struct nvtx_attributes, message) == 40, "nvtxEventAttributes_t, message");

struct nvtx_scratch { /* buffer for converting wide messages */
    char text[NVTX_TEXT_BYTES_MAX];
};

/* Converts to UTF-8, truncated between characters; returns the size. */
size_t nvtx_narrow(const wchar_t *wide, char *out, size_t capacity);
/* The message, truncated at NVTX_TEXT_BYTES_MAX; "(unnamed)": there is none, or it is unknown. */
void nvtx_read_message(int32_t type, const union nvtx_message *message, struct nvtx_scratch *scratch, const char **text,
                       size_t *size);
/* Reads message, category, color and payload. */
void nvtx_read_event(const struct nvtx_attributes *attributes, struct nvtx_scratch *scratch, struct scope_text *text);
/* Finds where the domain's ranges are recorded. False: an unknown handle. */
bool nvtx_read_domain(const void *domain, struct scope_text *text, bool *has_stack);

#endif
