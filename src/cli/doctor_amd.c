/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include <inttypes.h>

/* Takes one sample, because what gpu_metrics holds is known only then. */
static bool has_trouble(const struct machine *machine, uint32_t index, struct finding *finding)
{
    struct gpu_sample sample;
    struct gpu_device_info info;
    if (!amdgpu_device_describe(machine->amd, index, &info))
        return false;
    amdgpu_device_sample(machine->amd, index, false, &sample);
    const char *problem = amdgpu_device_metrics_problem(machine->amd, index);
    if (*problem)
        finding_set(finding, FINDING_WARNING, "%s (%s): %s; energy, throttling and PCIe traffic are not recorded",
                    info.name, info.pci_bus_id, problem);
    else if (info.pcie_lanes < info.pcie_lanes_max) {
        finding_set(finding, FINDING_WARNING, "%s (%s) uses %" PRIu32 " of %" PRIu32 " PCIe lanes", info.name,
                    info.pci_bus_id, info.pcie_lanes, info.pcie_lanes_max);
        finding_fix(finding,
                    "seat the card again, or use a slot that has them; an idle or sleeping card may give some up");
    }
    return finding->level != FINDING_OK;
}

void check_amd(const struct machine *machine, struct finding *finding)
{
    if (!machine->amd) {
        finding_set(finding, FINDING_OK, "not needed: %s", machine->amd_problem.text);
        return;
    }
    uint32_t count = amdgpu_device_count(machine->amd);
    for (uint32_t i = 0; i < count; i++)
        if (has_trouble(machine, i, finding))
            return;
    finding_set(finding, FINDING_OK, "amdgpu %s, %" PRIu32 " GPU%s", amdgpu_driver_version(machine->amd), count,
                count == 1 ? "" : "s");
}

void check_rocprofiler(const struct machine *machine, struct finding *finding)
{
    if (!machine->amd) {
        finding_set(finding, FINDING_OK, "not needed: there is no AMD GPU");
        return;
    }
    if (machine->rocprofiler) {
        uint32_t version = rocprofiler_version(machine->rocprofiler);
        finding_set(finding, FINDING_OK, "%" PRIu32 ".%" PRIu32 ".%" PRIu32 ", %s", version / 10000,
                    version / 100 % 100, version % 100, rocprofiler_path(machine->rocprofiler));
        return;
    }
    /* Where there is an NVIDIA GPU too, Trace still has something to record. */
    finding_set(finding, machine_is_amd_only(machine) ? FINDING_PROBLEM : FINDING_WARNING, "%s",
                machine->rocprofiler_problem.text);
    finding_fix(finding, "install ROCm's rocprofiler-sdk (of ROCm 6.3 or newer), or name librocprofiler-sdk.so in "
                         "GPUFL_ROCPROFILER_PATH; the monitor does not need it");
}
