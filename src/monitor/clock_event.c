/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/clock_event.h"

const struct clock_event clock_events[CLOCK_EVENT_COUNT] = {
    {0x001, "idle"},
    {0x002, "application_clocks"},
    {0x004, "software_power_cap"},
    {0x008, "hardware"},
    {0x010, "sync_boost"},
    {0x020, "software_thermal"},
    {0x040, "hardware_thermal"},
    {0x080, "hardware_power_brake"},
    {0x100, "display_clocks"},
};
