/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/clock_event.h"

enum { NVIDIA = 1 << GPU_VENDOR_NVIDIA, AMD = 1 << GPU_VENDOR_AMD };

const struct clock_event clock_events[CLOCK_EVENT_COUNT] = {
    {GPU_THROTTLE_IDLE, "idle", NVIDIA},
    {GPU_THROTTLE_APPLICATION_CLOCKS, "application_clocks", NVIDIA},
    {GPU_THROTTLE_SOFTWARE_POWER_CAP, "software_power_cap", NVIDIA | AMD},
    {GPU_THROTTLE_HARDWARE, "hardware", NVIDIA | AMD},
    {GPU_THROTTLE_SYNC_BOOST, "sync_boost", NVIDIA},
    {GPU_THROTTLE_SOFTWARE_THERMAL, "software_thermal", NVIDIA | AMD},
    {GPU_THROTTLE_HARDWARE_THERMAL, "hardware_thermal", NVIDIA | AMD},
    {GPU_THROTTLE_HARDWARE_POWER_BRAKE, "hardware_power_brake", NVIDIA},
    {GPU_THROTTLE_DISPLAY_CLOCKS, "display_clocks", NVIDIA},
    {GPU_THROTTLE_CURRENT_LIMIT, "current_limit", AMD},
};
