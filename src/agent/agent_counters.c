/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_counters.h"

void agent_counters_write(const struct agent_counters *counters, enum exposition_format format, struct bytes *out)
{
    struct exposition page;
    exposition_begin(&page, out, format);
#define AGENT_COUNTER_SAMPLE(member, name, kind, help)       \
    exposition_family(&page, name, EXPOSITION_##kind, help); \
    exposition_sample_uint(&page, "", atomic_load(&counters->member));
    AGENT_COUNTER_MAP(AGENT_COUNTER_SAMPLE)
#undef AGENT_COUNTER_SAMPLE
    exposition_end(&page);
}
