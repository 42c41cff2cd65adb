/* SPDX-License-Identifier: Apache-2.0 */
#include "format/counter_members.h"

const char *const counter_members[COUNTER_MEMBER_COUNT] = {
    "sm_throughput_pct",
    "l1_hit_rate_pct",
    "l2_hit_rate_pct",
    "dram_read_bytes",
    "dram_write_bytes",
    "tensor_active_pct",
    "achieved_occupancy_pct",
    "shared_load_bank_conflicts",
    "shared_store_bank_conflicts",
    "shared_bank_conflicts",
    "shared_wavefronts",
    "shared_bank_conflict_overhead_pct",
    "shared_bank_conflict_nway",
};
