/* SPDX-License-Identifier: Apache-2.0 */
/* PC sampling of the look-alike CUPTI: what it hears of launches, and the
 * recording that it can play instead (FAKE_PC_RECORDING, a .pcrec file of
 * ../recordings). */
#ifndef FAKES_CUPTI_PC_SAMPLING_H
#define FAKES_CUPTI_PC_SAMPLING_H

#include "driver/pc_sampling_abi.h"
#include "fake_gpu.h"

#define PC_SAMPLING_PROTOTYPE(member, symbol, parameters) FAKE_API int symbol parameters;
PC_SAMPLING_ABI_FUNCTIONS(PC_SAMPLING_PROTOTYPE)
#undef PC_SAMPLING_PROTOTYPE

/* A kernel was enqueued. */
void pc_sampling_work(const struct fake_work *work);
/* Kernel records cannot be enabled then. */
bool pc_sampling_is_enabled(void);
/* As CUPTI does where something is disabled after a read of samples failed. */
void pc_sampling_crash_if_damaged(void);

struct pc_recorded_stall {
    uint32_t index;
    const char *name;
};
bool pc_recording_is_wanted(void);
size_t pc_recording_stalls(const struct pc_recorded_stall **stalls);
/* The next answer of GetData (or what Disable left) into data, as many PCs as fit; the result it was recorded with.
 * Names are copies. False: there is no further one. */
bool pc_recording_read(struct pc_sampling_abi_data *data, size_t pc_bytes, bool is_final, int *result);

#endif
