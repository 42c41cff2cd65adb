/* SPDX-License-Identifier: Apache-2.0 */
/* What src/sdk/nvtx.c declares of NVTX's interface for tools against NVTX's
 * headers. Compiled by tools/check_vendor_abi.sh, never linked. */
#include "../../src/sdk/nvtx.c" // NOLINT: its declarations are private

#include <nvtx3/nvToolsExt.h>

#define VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define AT(member, their_member)                                                                              \
    _Static_assert(offsetof(struct nvtx_attributes, member) == offsetof(nvtxEventAttributes_t, their_member), \
                   "nvtxEventAttributes_t." #their_member)

VALUE(nvtx_table_callbacks, NVTX_ETID_CALLBACKS);
VALUE(nvtx_module_core, NVTX_CB_MODULE_CORE);
VALUE(nvtx_module_core2, NVTX_CB_MODULE_CORE2);
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
VALUE(message_ascii, NVTX_MESSAGE_TYPE_ASCII);
VALUE(message_unicode, NVTX_MESSAGE_TYPE_UNICODE);
VALUE(message_registered, NVTX_MESSAGE_TYPE_REGISTERED);
_Static_assert(sizeof(struct nvtx_callbacks) <= sizeof(NvtxExportTableCallbacks), "NvtxExportTableCallbacks");
AT(category, category);
AT(color, color);
AT(payload, payload);
AT(message_type, messageType);
AT(message, message);
