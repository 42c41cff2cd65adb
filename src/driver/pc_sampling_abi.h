/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's PC sampling interface: our own declarations for 64-bit machines, compared with the toolkit's header, where
 * installed, by tests/unit/test_pc_sampling_abi.c. A parameter struct's size ends with its last member. */
#ifndef GPUFL_DRIVER_PC_SAMPLING_ABI_H
#define GPUFL_DRIVER_PC_SAMPLING_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { PC_SAMPLING_ABI_OUT_OF_MEMORY = 8 }; /* of cuptiPCSamplingGetData: the hardware buffer is full */
enum { PC_SAMPLING_ABI_STALL_NAME_BYTES = 128 };
enum { PC_SAMPLING_ABI_CONTINUOUS = 1, PC_SAMPLING_ABI_SERIALIZED = 2 };
enum { PC_SAMPLING_ABI_PERIOD_MIN = 5, PC_SAMPLING_ABI_PERIOD_MAX = 31 };

/* CUpti_PCSamplingConfigurationAttributeType */
enum {
    PC_SAMPLING_ABI_PERIOD = 1,
    PC_SAMPLING_ABI_STALL_REASONS = 2,
    PC_SAMPLING_ABI_SCRATCH_BYTES = 3,
    PC_SAMPLING_ABI_HARDWARE_BYTES = 4,
    PC_SAMPLING_ABI_MODE = 5,
    PC_SAMPLING_ABI_START_STOP = 6,
    PC_SAMPLING_ABI_OUTPUT_FORMAT = 7,
    PC_SAMPLING_ABI_DATA_BUFFER = 8,
    PC_SAMPLING_ABI_WORKER_SLEEP_MS = 9
};

struct pc_sampling_abi_stall {
    uint32_t index, samples;
};

struct pc_sampling_abi_pc {
    size_t size;
    uint64_t cubin_crc, pc_offset;
    uint32_t function_index, padding;
    char *function_name;
    size_t stall_count;
    struct pc_sampling_abi_stall *stalls;
    uint32_t correlation_id, padding_end; /* 12.4 */
};
enum { PC_SAMPLING_ABI_PC_BYTES_12_0 = 56, PC_SAMPLING_ABI_PC_BYTES_12_4 = 64 };

struct pc_sampling_abi_data {
    size_t size, collect_pcs;
    uint64_t total_samples, dropped_samples;
    size_t total_pcs, remaining_pcs;
    uint64_t range_id;
    void *pcs; /* elements of pc_sampling_abi_pc.size bytes */
    uint64_t non_user_samples;
    uint8_t is_hardware_buffer_full, padding[7];
};

struct pc_sampling_abi_attribute {
    uint32_t type, status;
    union {
        uint64_t data[3];
        uint32_t number;
        size_t bytes;
        void *pointer;
        struct {
            size_t count;
            uint32_t *indexes;
        } stalls;
    } value;
};

struct pc_sampling_abi_context_params { /* of Enable and Disable */
    size_t size;
    void *priv, *context;
};
struct pc_sampling_abi_configuration_params {
    size_t size;
    void *priv, *context;
    size_t attribute_count;
    struct pc_sampling_abi_attribute *attributes;
};
struct pc_sampling_abi_data_params {
    size_t size;
    void *priv, *context;
    struct pc_sampling_abi_data *data;
};
struct pc_sampling_abi_stall_count_params {
    size_t size;
    void *priv, *context;
    size_t *count;
};
struct pc_sampling_abi_stall_params {
    size_t size;
    void *priv, *context;
    size_t count;
    uint32_t *indexes;
    char **names; /* of PC_SAMPLING_ABI_STALL_NAME_BYTES each */
};

_Static_assert(sizeof(struct pc_sampling_abi_stall) == 8, "stall reason");
_Static_assert(sizeof(struct pc_sampling_abi_pc) == PC_SAMPLING_ABI_PC_BYTES_12_4, "PC data");
_Static_assert(offsetof(struct pc_sampling_abi_pc, correlation_id) == PC_SAMPLING_ABI_PC_BYTES_12_0, "PC data");
_Static_assert(sizeof(struct pc_sampling_abi_data) == 80, "sampling data");
_Static_assert(sizeof(struct pc_sampling_abi_attribute) == 32, "attribute");
_Static_assert(sizeof(struct pc_sampling_abi_context_params) == 24, "context parameters");
_Static_assert(sizeof(struct pc_sampling_abi_configuration_params) == 40, "configuration parameters");
_Static_assert(sizeof(struct pc_sampling_abi_data_params) == 32, "data parameters");
_Static_assert(sizeof(struct pc_sampling_abi_stall_count_params) == 32, "stall count parameters");
_Static_assert(sizeof(struct pc_sampling_abi_stall_params) == 48, "stall parameters");

/* X(member, symbol, parameters): every function we call; all return a CUptiResult. */
#define PC_SAMPLING_ABI_FUNCTIONS(X)                                                                               \
    X(enable, cuptiPCSamplingEnable, (struct pc_sampling_abi_context_params * params))                             \
    X(disable, cuptiPCSamplingDisable, (struct pc_sampling_abi_context_params * params))                           \
    X(configure, cuptiPCSamplingSetConfigurationAttribute, (struct pc_sampling_abi_configuration_params * params)) \
    X(get_data, cuptiPCSamplingGetData, (struct pc_sampling_abi_data_params * params))                             \
    X(get_stall_count, cuptiPCSamplingGetNumStallReasons, (struct pc_sampling_abi_stall_count_params * params))    \
    X(get_stalls, cuptiPCSamplingGetStallReasons, (struct pc_sampling_abi_stall_params * params))

#endif
