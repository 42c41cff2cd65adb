/* SPDX-License-Identifier: Apache-2.0 */
/* What src/sdk/nvtx.c declares of NVTX's interface for tools against NVTX's
 * headers. Compiled by tools/check_vendor_abi.sh, never linked. */
#include "../../src/sdk/nvtx.c" // NOLINT: its declarations are private

#include "../../src/sdk/nvtx_event.h"

#include <nvtx3/nvToolsExt.h>

#define VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define AT(member, their_member)                                                                              \
    _Static_assert(offsetof(struct nvtx_attributes, member) == offsetof(nvtxEventAttributes_t, their_member), \
                   "nvtxEventAttributes_t." #their_member)

VALUE(nvtx_table_callbacks, NVTX_ETID_CALLBACKS);
VALUE(nvtx_module_core, NVTX_CB_MODULE_CORE);
VALUE(nvtx_module_core2, NVTX_CB_MODULE_CORE2);
VALUE(nvtx_module_cuda, NVTX_CB_MODULE_CUDA);
VALUE(nvtx_module_cudart, NVTX_CB_MODULE_CUDART);
VALUE(level_unknown, NVTX_NO_PUSH_POP_TRACKING);
VALUE(resource_thread, NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE);
VALUE(core_mark_ex, NVTX_CBID_CORE_MarkEx);
VALUE(core_mark_a, NVTX_CBID_CORE_MarkA);
VALUE(core_mark_w, NVTX_CBID_CORE_MarkW);
VALUE(core_name_category_a, NVTX_CBID_CORE_NameCategoryA);
VALUE(core_name_category_w, NVTX_CBID_CORE_NameCategoryW);
VALUE(core_name_thread_a, NVTX_CBID_CORE_NameOsThreadA);
VALUE(core_name_thread_w, NVTX_CBID_CORE_NameOsThreadW);
VALUE(cuda_name_stream_a, NVTX_CBID_CUDA_NameCuStreamA);
VALUE(cuda_name_stream_w, NVTX_CBID_CUDA_NameCuStreamW);
VALUE(cudart_name_stream_a, NVTX_CBID_CUDART_NameCudaStreamA);
VALUE(cudart_name_stream_w, NVTX_CBID_CUDART_NameCudaStreamW);
VALUE(core2_mark_ex, NVTX_CBID_CORE2_DomainMarkEx);
VALUE(core2_resource_create, NVTX_CBID_CORE2_DomainResourceCreate);
VALUE(core2_name_category_a, NVTX_CBID_CORE2_DomainNameCategoryA);
VALUE(core2_name_category_w, NVTX_CBID_CORE2_DomainNameCategoryW);
VALUE(core_range_start_ex, NVTX_CBID_CORE_RangeStartEx);
VALUE(core_range_start_a, NVTX_CBID_CORE_RangeStartA);
VALUE(core_range_start_w, NVTX_CBID_CORE_RangeStartW);
VALUE(core_range_end, NVTX_CBID_CORE_RangeEnd);
VALUE(core_range_push_ex, NVTX_CBID_CORE_RangePushEx);
VALUE(core_range_push_a, NVTX_CBID_CORE_RangePushA);
VALUE(core_range_push_w, NVTX_CBID_CORE_RangePushW);
VALUE(core_range_pop, NVTX_CBID_CORE_RangePop);
VALUE(core2_range_start_ex, NVTX_CBID_CORE2_DomainRangeStartEx);
VALUE(core2_range_end, NVTX_CBID_CORE2_DomainRangeEnd);
VALUE(core2_range_push_ex, NVTX_CBID_CORE2_DomainRangePushEx);
VALUE(core2_range_pop, NVTX_CBID_CORE2_DomainRangePop);
VALUE(core2_register_string_a, NVTX_CBID_CORE2_DomainRegisterStringA);
VALUE(core2_register_string_w, NVTX_CBID_CORE2_DomainRegisterStringW);
VALUE(core2_domain_create_a, NVTX_CBID_CORE2_DomainCreateA);
VALUE(core2_domain_create_w, NVTX_CBID_CORE2_DomainCreateW);
VALUE(NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
VALUE(NVTX_MESSAGE_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
VALUE(NVTX_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
_Static_assert(sizeof(struct nvtx_callbacks) <= sizeof(NvtxExportTableCallbacks), "NvtxExportTableCallbacks");
AT(category, category);
AT(color, color);
AT(payload, payload);
AT(message_type, messageType);
AT(message, message);
AT(color_type, colorType);
AT(payload_type, payloadType);
_Static_assert(sizeof(struct nvtx_resource) == sizeof(nvtxResourceAttributes_t), "nvtxResourceAttributes_t");
_Static_assert(offsetof(struct nvtx_resource, id) == offsetof(nvtxResourceAttributes_t, identifier), "identifier");
_Static_assert(offsetof(struct nvtx_resource, message) == offsetof(nvtxResourceAttributes_t, message), "message");
VALUE(NVTX_PAYLOAD_DOUBLE, NVTX_PAYLOAD_TYPE_DOUBLE);
VALUE(NVTX_PAYLOAD_FLOAT, NVTX_PAYLOAD_TYPE_FLOAT);
