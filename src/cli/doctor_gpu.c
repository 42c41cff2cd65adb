/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* On a machine with AMD's GPUs alone, what NVIDIA's need is not missing. */
static bool is_not_needed(const struct machine *machine, struct finding *finding)
{
    if (machine_is_amd_only(machine))
        finding_set(finding, FINDING_OK, "not needed: the GPUs here are AMD's");
    return machine_is_amd_only(machine);
}

void check_driver(const struct machine *machine, struct finding *finding)
{
    if (is_not_needed(machine, finding))
        return;
    int version = machine_cuda_version(machine);
    if (machine->has_cuda) {
        const char *driver = machine_driver_version(machine);
        finding_set(finding, FINDING_OK, "driver %s, CUDA %d.%d", driver[0] ? driver : "of unknown version",
                    version / 1000, version % 1000 / 10);
        return;
    }
    finding_set(finding, FINDING_PROBLEM, "%s", machine->cuda_problem.text);
    if (machine->cuda && access("/dev/nvidiactl", F_OK))
        finding_fix(finding,
                    "there is no /dev/nvidiactl: in a container start it with --gpus all, else load the nvidia module");
    else if (!machine->cuda)
        finding_fix(finding, "install the NVIDIA driver, or name libcuda.so.1 in GPUFL_CUDA_PATH");
    else
        finding_fix(finding, "see what `nvidia-smi` says");
}

void check_nvml(const struct machine *machine, struct finding *finding)
{
    if (is_not_needed(machine, finding))
        return;
    if (machine->nvml && nvml_device_count(machine->nvml)) {
        finding_set(finding, FINDING_OK, "%" PRIu32 " GPU%s", nvml_device_count(machine->nvml),
                    nvml_device_count(machine->nvml) == 1 ? "" : "s");
        return;
    }
    finding_set(finding, FINDING_WARNING, "no GPU utilization, power or temperature: %s",
                machine->nvml ? "NVML shows no GPU" : machine->nvml_problem.text);
    finding_fix(finding, "install the driver's libnvidia-ml.so.1, or name it in GPUFL_NVML_PATH");
}

void check_gpu(const struct machine *machine, struct finding *finding)
{
    uint32_t visible = 0, amd = 0;
    const char *name = "";
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        amd += machine->gpus[i].vendor == GPU_VENDOR_AMD;
        if (machine->gpus[i].has_cuda && !visible++)
            name = machine->gpus[i].name;
    }
    if (machine_is_amd_only(machine)) {
        finding_set(finding, FINDING_OK, "%s, %" PRIu32 " of AMD", machine->gpus[0].name, amd);
        return;
    }
    if (visible) {
        finding_set(finding, FINDING_OK, "%s%s%" PRIu32 " of %" PRIu32 " visible to CUDA", name, name[0] ? ", " : "",
                    visible, machine->gpu_count - amd);
        if (amd)
            snprintf(finding->text + strlen(finding->text), sizeof finding->text - strlen(finding->text),
                     "; %" PRIu32 " of AMD", amd);
        return;
    }
    const char *mask = getenv("CUDA_VISIBLE_DEVICES");
    finding_set(finding, FINDING_PROBLEM, "CUDA sees no GPU%s",
                machine->gpu_count > amd ? ", though the machine has one" : "");
    if (mask)
        finding_fix(finding, "CUDA_VISIBLE_DEVICES is set to '%s': unset it, or name a GPU that exists", mask);
    else
        finding_fix(finding, "run on a machine with an NVIDIA GPU; in a container start it with --gpus all");
}

void check_cupti(const struct machine *machine, struct finding *finding)
{
    if (is_not_needed(machine, finding))
        return;
    if (!machine->cupti) {
        finding_set(finding, FINDING_PROBLEM, "%s", machine->cupti_problem.text);
        finding_fix(
            finding,
            "install the CUDA toolkit or `pip install nvidia-cuda-cupti`, or name libcupti.so in GPUFL_CUPTI_PATH");
        return;
    }
    uint32_t api_version = cupti_version(machine->cupti);
    int release = cuda_release_of_cupti(api_version), driver = machine_cuda_version(machine);
    if (release && driver && release / 1000 > driver / 1000) {
        finding_set(finding, FINDING_PROBLEM, "%s is of CUDA %d.%d, newer than the driver's %d.%d",
                    cupti_path(machine->cupti), release / 1000, release % 1000 / 10, driver / 1000, driver % 1000 / 10);
        finding_fix(finding, "update the driver, or name an older libcupti.so in GPUFL_CUPTI_PATH");
        return;
    }
    finding_set(finding, FINDING_OK, "API version %" PRIu32 ", %s", api_version, cupti_path(machine->cupti));
}

struct copies {
    char paths[16][PATH_MAX];
    size_t count;
};

static void copies_add(struct copies *copies, const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc && copies->count < sizeof copies->paths / sizeof *copies->paths; i++) {
        char *real = realpath(found.gl_pathv[i], NULL);
        bool is_new = real && strlen(real) < PATH_MAX;
        for (size_t j = 0; is_new && j < copies->count; j++)
            is_new = strcmp(copies->paths[j], real) != 0;
        if (is_new)
            snprintf(copies->paths[copies->count++], PATH_MAX, "%s", real);
        free(real);
    }
    globfree(&found);
}

void check_cupti_copies(const struct machine *machine, struct finding *finding)
{
    static const char *const patterns[] = {
        "/usr/local/cuda*/lib64/libcupti.so.[0-9]*",
        "/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.[0-9]*",
        "/usr/local/cuda*/targets/*/lib/libcupti.so.[0-9]*",
        "/usr/lib/*-linux-gnu/libcupti.so.[0-9]*",
        "/usr/lib64/libcupti.so.[0-9]*",
        "/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcupti.so.[0-9]*",
        "/usr/lib/python3*/*-packages/nvidia/*/lib/libcupti.so.[0-9]*",
    };
    static const char *const environments[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    (void)machine;
    struct copies *copies = calloc(1, sizeof *copies);
    if (!copies) {
        finding_set(finding, FINDING_WARNING, "not looked for: no memory left");
        return;
    }
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        copies_add(copies, patterns[i]);
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
        const char *prefix = getenv(environments[i]);
        char pattern[PATH_MAX];
        int size = prefix && *prefix ? snprintf(pattern, sizeof pattern,
                                                "%s/lib/python3*/site-packages/nvidia/*/lib/libcupti.so.[0-9]*", prefix)
                                     : 0;
        if (size > 0 && (size_t)size < sizeof pattern)
            copies_add(copies, pattern);
    }
    if (copies->count > 1) {
        finding_set(finding, FINDING_WARNING, "%zu on this machine, such as %.200s and %.200s", copies->count,
                    copies->paths[0], copies->paths[1]);
        finding_fix(finding, "only if a program loads another one than gpufl: name that program's in GPUFL_CUPTI_PATH");
    } else if (copies->count) {
        finding_set(finding, FINDING_OK, "one: %.500s", copies->paths[0]);
    } else {
        finding_set(finding, FINDING_OK, "none in the usual places");
    }
    free(copies);
}

/* The effective capabilities of this process; 0 when they cannot be read. */
static uint64_t capabilities_read(void)
{
    char text[4096];
    if (!small_file_read("/proc/self/status", text, sizeof text))
        return 0;
    const char *line = strstr(text, "\nCapEff:");
    return line ? strtoull(line + strlen("\nCapEff:"), NULL, 16) : 0;
}

void check_permission(const struct machine *machine, struct finding *finding)
{
    enum { CAPABILITY_SYS_ADMIN = 21, CAPABILITY_PERFMON = 38 };
    (void)machine;
    char text[4096];
    if (!small_file_read("/proc/driver/nvidia/params", text, sizeof text)) {
        finding_set(finding, FINDING_OK, "unknown (no /proc/driver/nvidia/params); Trace does not need it");
        return;
    }
    const char *key = "RmProfilingAdminOnly:";
    const char *line = strstr(text, key);
    if (!line || strtol(line + strlen(key), NULL, 10) == 0) {
        finding_set(finding, FINDING_OK, "everybody may read hardware counters");
        return;
    }
    if (capabilities_read() & (UINT64_C(1) << CAPABILITY_SYS_ADMIN | UINT64_C(1) << CAPABILITY_PERFMON)) {
        finding_set(finding, FINDING_OK, "administrators may read hardware counters, and this is one");
        return;
    }
    finding_set(finding, FINDING_WARNING,
                "hardware counters are for administrators (RmProfilingAdminOnly=1); Trace does not need them");
    finding_fix(finding,
                "run as root, grant CAP_PERFMON (driver 565 or newer) or CAP_SYS_ADMIN, or load the module with "
                "NVreg_RestrictProfilingToAdminUsers=0");
}

void check_mig(const struct machine *machine, struct finding *finding)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        count += machine->gpus[i].is_mig;
    if (!count) {
        finding_set(finding, FINDING_OK, "%s", machine->gpu_count ? "off" : "no GPU to ask");
        return;
    }
    finding_set(finding, FINDING_WARNING,
                "on for %" PRIu32 " GPU%s: kernels are recorded; utilization and memory by process are not available",
                count, count == 1 ? "" : "s");
}

void check_virtualization(const struct machine *machine, struct finding *finding)
{
    char text[4096];
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        if (strstr(machine->gpus[i].name, "GRID ") || strstr(machine->gpus[i].name, "vGPU")) {
            finding_set(finding, FINDING_WARNING,
                        "%s is a virtual GPU: hardware counters and some metrics may be missing",
                        machine->gpus[i].name);
            finding_fix(finding, "set the vGPU plugin parameter enable_profiling=1 on the host");
            return;
        }
    if (small_file_read("/proc/version", text, sizeof text) &&
        (strstr(text, "Microsoft") || strstr(text, "microsoft"))) {
        finding_set(finding, FINDING_WARNING,
                    "Windows Subsystem for Linux: memory by process and counters are limited");
        return;
    }
    bool is_virtual = small_file_read("/proc/cpuinfo", text, sizeof text) && strstr(text, " hypervisor");
    finding_set(finding, FINDING_OK, "%s", is_virtual ? "virtual machine" : "none seen");
}
