/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of PC sampling against CUPTI's header, where a CUDA toolkit
 * is on the include path. The checks happen at compile time; the test says
 * whether they did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/pc_sampling_abi.h"

#if defined(__has_include)
#if __has_include(<cupti_pcsampling.h>) && __has_include(<cuda.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>
#pragma GCC diagnostic pop
#define HAS_VENDOR_HEADERS 1
#endif
#endif

#ifdef HAS_VENDOR_HEADERS

#define AT(ours, member, theirs, their_member)                                                    \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&             \
                       sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->their_member), \
                   #theirs "." #their_member)
#define VALUE(ours, theirs) _Static_assert((unsigned)(ours) == (unsigned)(theirs), #theirs)

VALUE(PC_SAMPLING_ABI_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
VALUE(PC_SAMPLING_ABI_STALL_NAME_BYTES, CUPTI_STALL_REASON_STRING_SIZE);
VALUE(PC_SAMPLING_ABI_CONTINUOUS, CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS);
VALUE(PC_SAMPLING_ABI_SERIALIZED, CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED);
VALUE(PC_SAMPLING_ABI_PERIOD, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
VALUE(PC_SAMPLING_ABI_STALL_REASONS, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON);
VALUE(PC_SAMPLING_ABI_SCRATCH_BYTES, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE);
VALUE(PC_SAMPLING_ABI_HARDWARE_BYTES, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE);
VALUE(PC_SAMPLING_ABI_MODE, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
VALUE(PC_SAMPLING_ABI_START_STOP, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL);
VALUE(PC_SAMPLING_ABI_OUTPUT_FORMAT, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT);
VALUE(PC_SAMPLING_ABI_DATA_BUFFER, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
VALUE(PC_SAMPLING_ABI_WORKER_SLEEP_MS, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN);

AT(pc_sampling_abi_stall, index, CUpti_PCSamplingStallReason, pcSamplingStallReasonIndex);
AT(pc_sampling_abi_stall, samples, CUpti_PCSamplingStallReason, samples);
VALUE(sizeof(struct pc_sampling_abi_stall), sizeof(CUpti_PCSamplingStallReason));

AT(pc_sampling_abi_pc, size, CUpti_PCSamplingPCData, size);
AT(pc_sampling_abi_pc, cubin_crc, CUpti_PCSamplingPCData, cubinCrc);
AT(pc_sampling_abi_pc, pc_offset, CUpti_PCSamplingPCData, pcOffset);
AT(pc_sampling_abi_pc, function_index, CUpti_PCSamplingPCData, functionIndex);
AT(pc_sampling_abi_pc, function_name, CUpti_PCSamplingPCData, functionName);
AT(pc_sampling_abi_pc, stall_count, CUpti_PCSamplingPCData, stallReasonCount);
AT(pc_sampling_abi_pc, stalls, CUpti_PCSamplingPCData, stallReason);
#if CUPTI_API_VERSION >= 22
AT(pc_sampling_abi_pc, correlation_id, CUpti_PCSamplingPCData, correlationId);
VALUE(PC_SAMPLING_ABI_PC_BYTES_12_4, sizeof(CUpti_PCSamplingPCData));
#else
VALUE(PC_SAMPLING_ABI_PC_BYTES_12_0, sizeof(CUpti_PCSamplingPCData));
#endif

AT(pc_sampling_abi_data, size, CUpti_PCSamplingData, size);
AT(pc_sampling_abi_data, collect_pcs, CUpti_PCSamplingData, collectNumPcs);
AT(pc_sampling_abi_data, total_samples, CUpti_PCSamplingData, totalSamples);
AT(pc_sampling_abi_data, dropped_samples, CUpti_PCSamplingData, droppedSamples);
AT(pc_sampling_abi_data, total_pcs, CUpti_PCSamplingData, totalNumPcs);
AT(pc_sampling_abi_data, remaining_pcs, CUpti_PCSamplingData, remainingNumPcs);
AT(pc_sampling_abi_data, range_id, CUpti_PCSamplingData, rangeId);
AT(pc_sampling_abi_data, pcs, CUpti_PCSamplingData, pPcData);
AT(pc_sampling_abi_data, non_user_samples, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
AT(pc_sampling_abi_data, is_hardware_buffer_full, CUpti_PCSamplingData, hardwareBufferFull);
VALUE(sizeof(struct pc_sampling_abi_data), sizeof(CUpti_PCSamplingData));

AT(pc_sampling_abi_attribute, type, CUpti_PCSamplingConfigurationInfo, attributeType);
AT(pc_sampling_abi_attribute, status, CUpti_PCSamplingConfigurationInfo, attributeStatus);
AT(pc_sampling_abi_attribute, value, CUpti_PCSamplingConfigurationInfo, attributeData);
AT(pc_sampling_abi_attribute, value.number, CUpti_PCSamplingConfigurationInfo,
   attributeData.samplingPeriodData.samplingPeriod);
AT(pc_sampling_abi_attribute, value.bytes, CUpti_PCSamplingConfigurationInfo,
   attributeData.hardwareBufferSizeData.hardwareBufferSize);
AT(pc_sampling_abi_attribute, value.pointer, CUpti_PCSamplingConfigurationInfo,
   attributeData.samplingDataBufferData.samplingDataBuffer);
AT(pc_sampling_abi_attribute, value.stalls.count, CUpti_PCSamplingConfigurationInfo,
   attributeData.stallReasonData.stallReasonCount);
AT(pc_sampling_abi_attribute, value.stalls.indexes, CUpti_PCSamplingConfigurationInfo,
   attributeData.stallReasonData.pStallReasonIndex);

VALUE(sizeof(struct pc_sampling_abi_context_params), CUpti_PCSamplingEnableParamsSize);
VALUE(sizeof(struct pc_sampling_abi_context_params), CUpti_PCSamplingDisableParamsSize);
AT(pc_sampling_abi_context_params, context, CUpti_PCSamplingEnableParams, ctx);
VALUE(sizeof(struct pc_sampling_abi_configuration_params), CUpti_PCSamplingConfigurationInfoParamsSize);
AT(pc_sampling_abi_configuration_params, context, CUpti_PCSamplingConfigurationInfoParams, ctx);
AT(pc_sampling_abi_configuration_params, attribute_count, CUpti_PCSamplingConfigurationInfoParams, numAttributes);
AT(pc_sampling_abi_configuration_params, attributes, CUpti_PCSamplingConfigurationInfoParams,
   pPCSamplingConfigurationInfo);
VALUE(sizeof(struct pc_sampling_abi_data_params), CUpti_PCSamplingGetDataParamsSize);
AT(pc_sampling_abi_data_params, data, CUpti_PCSamplingGetDataParams, pcSamplingData);
VALUE(sizeof(struct pc_sampling_abi_stall_count_params), CUpti_PCSamplingGetNumStallReasonsParamsSize);
AT(pc_sampling_abi_stall_count_params, count, CUpti_PCSamplingGetNumStallReasonsParams, numStallReasons);
VALUE(sizeof(struct pc_sampling_abi_stall_params), CUpti_PCSamplingGetStallReasonsParamsSize);
AT(pc_sampling_abi_stall_params, count, CUpti_PCSamplingGetStallReasonsParams, numStallReasons);
AT(pc_sampling_abi_stall_params, indexes, CUpti_PCSamplingGetStallReasonsParams, stallReasonIndex);
AT(pc_sampling_abi_stall_params, names, CUpti_PCSamplingGetStallReasonsParams, stallReasons);

/* The functions exist under the names that we look up. */
#define NAMED(member, symbol, parameters) (void)sizeof(&(symbol));

#endif

static void declarations_equal_those_of_the_toolkit(void **state)
{
    (void)state;
#ifdef HAS_VENDOR_HEADERS
    PC_SAMPLING_ABI_FUNCTIONS(NAMED)
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(declarations_equal_those_of_the_toolkit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
