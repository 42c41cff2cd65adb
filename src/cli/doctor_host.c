/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "base/clock.h"
#include "base/environment.h"
#include "cli/installation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

void check_other_tools(const struct machine *machine, struct finding *finding)
{
    static const char *const injections[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};
    static const char *const tools[] = {"nsys",    "nsight", "ncu", "libToolsInjection", "libInterceptorInjection",
                                        "libcupti"};
    (void)machine;
    const char *preload = getenv("LD_PRELOAD");
    for (size_t i = 0; preload && i < sizeof tools / sizeof *tools; i++)
        if (strcasestr(preload, tools[i])) {
            finding_set(finding, FINDING_PROBLEM, "LD_PRELOAD brings another profiler: %s", preload);
            finding_fix(finding, "unset LD_PRELOAD; only one profiler can own a process's GPU tracing");
            return;
        }
    if (getenv("NSYS_PROFILING_SESSION_ID")) {
        finding_set(finding, FINDING_PROBLEM,
                    "this shell runs under Nsight Systems (NSYS_PROFILING_SESSION_ID is set)");
        finding_fix(finding, "run gpufl outside of nsys");
        return;
    }
    for (size_t i = 0; i < sizeof injections / sizeof *injections; i++) {
        const char *path = getenv(injections[i]);
        if (path && *path && !strstr(path, "libgpufl_inject")) {
            finding_set(finding, FINDING_WARNING, "%s is set to %s; `gpufl trace` replaces it", injections[i], path);
            finding_fix(finding, "unset %s unless that tool is wanted", injections[i]);
            return;
        }
    }
    finding_set(finding, FINDING_OK, "none in the environment");
}

void check_container(const struct machine *machine, struct finding *finding)
{
    bool is_container = !access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK) ||
                        getenv("KUBERNETES_SERVICE_HOST") || getenv("container");
    if (!is_container) {
        finding_set(finding, FINDING_OK, "none seen");
        return;
    }
    const char *granted = getenv("NVIDIA_DRIVER_CAPABILITIES");
    if (machine->has_cuda && granted && *granted && !strstr(granted, "utility") && !strstr(granted, "all")) {
        finding_set(finding, FINDING_WARNING, "yes, without NVML: NVIDIA_DRIVER_CAPABILITIES is '%s'", granted);
        finding_fix(finding, "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility");
        return;
    }
    finding_set(finding, FINDING_OK, "yes; keep the log directory on a volume that outlives it");
}

void check_clock(const struct machine *machine, struct finding *finding)
{
    (void)machine;
    char source[64];
    clock_setup(NULL);
    if (!small_file_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source))
        snprintf(source, sizeof source, "unknown");
    if (atomic_load(&clock_has_counter)) {
        finding_set(finding, FINDING_OK, "the CPU's counter is invariant; clock source %s", source);
        return;
    }
    finding_set(finding, FINDING_WARNING,
                "the CPU's counter is not used, because the kernel does not use it (clock source %s): "
                "each scope costs a clock call",
                source);
    finding_fix(finding, "in a virtual machine, expose invtsc to the guest; on hardware, see why the kernel left tsc: "
                         "dmesg | grep -i clocksource");
}

/* Cuts the path back to the nearest directory that exists. */
static void existing_parent(char *path)
{
    while (access(path, F_OK)) {
        char *slash = strrchr(path, '/');
        if (!slash) {
            memcpy(path, ".", 2);
            return;
        }
        if (slash == path) {
            path[1] = '\0';
            return;
        }
        *slash = '\0';
    }
}

void check_log_directory(const struct machine *machine, struct finding *finding)
{
    enum { WARNING_MIB = 1024, PROBLEM_MIB = 64 };
    (void)machine;
    const char *given = getenv("GPUFL_LOG_DIR");
    const char *directory = given && *given ? given : ".";
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%s", directory);
    if (size < 0 || (size_t)size >= sizeof path) {
        finding_set(finding, FINDING_PROBLEM, "GPUFL_LOG_DIR is longer than a path can be");
        finding_fix(finding, "choose another directory");
        return;
    }
    existing_parent(path);
    if (access(path, W_OK | X_OK)) {
        finding_set(finding, FINDING_PROBLEM, "%.400s: %s", path, strerror(errno));
        finding_fix(finding, "choose another one with GPUFL_LOG_DIR or `gpufl trace -o DIR`");
        return;
    }
    struct statvfs space;
    if (statvfs(path, &space)) {
        finding_set(finding, FINDING_WARNING, "%.400s: free space unknown (%s)", path, strerror(errno));
        return;
    }
    double free_mib = (double)space.f_bavail * (double)space.f_frsize / (1 << 20);
    enum finding_level level = free_mib < PROBLEM_MIB   ? FINDING_PROBLEM
                               : free_mib < WARNING_MIB ? FINDING_WARNING
                                                        : FINDING_OK;
    finding_set(finding, level, "%.400s %s, %.1f GiB free", directory,
                strcmp(path, directory) ? "can be made" : "is writable", free_mib / 1024);
    if (level != FINDING_OK)
        finding_fix(finding, "make room, or choose another one with GPUFL_LOG_DIR or `gpufl trace -o DIR`");
}

void check_recorder(const struct machine *machine, struct finding *finding)
{
    (void)machine;
    char path[PATH_MAX];
    if (installation_find_recorder(path)) {
        finding_set(finding, FINDING_OK, "%.500s", path);
        return;
    }
    finding_set(finding, FINDING_PROBLEM, "libgpufl_inject.so is not in ../lib nor beside this program");
    finding_fix(finding, "install gpufl again, or name the file in GPUFL_INJECT_LIB");
}

void check_variables(const struct machine *machine, struct finding *finding)
{
    (void)machine;
    unsigned known = 0, unknown = 0;
    char first[128] = "";
    for (char **entry = environ; entry && *entry; entry++) {
        if (strncmp(*entry, "GPUFL_", 6))
            continue;
        if (environment_is_known(*entry)) {
            known++;
        } else if (!unknown++) {
            snprintf(first, sizeof first, "%.*s", (int)strcspn(*entry, "="), *entry);
        }
    }
    if (!unknown) {
        finding_set(finding, FINDING_OK, "%u GPUFL_ variable%s set, all known", known, known == 1 ? "" : "s");
        return;
    }
    const char *near = nearest_word(first, environment_names);
    finding_set(finding, FINDING_WARNING, "%s is not a variable of gpufl and has no effect", first);
    if (unknown > 1)
        finding_set(finding, FINDING_WARNING, "%s and %u more are not variables of gpufl and have no effect", first,
                    unknown - 1);
    if (near)
        finding_fix(finding, "did you mean %s?", near);
    else
        finding_fix(finding, "unset it");
}

void check_disabled(const struct machine *machine, struct finding *finding)
{
    (void)machine;
    const char *invalid;
    if (!environment_is_disabled(&invalid)) {
        finding_set(finding, FINDING_OK, "yes");
        return;
    }
    if (invalid)
        finding_set(finding, FINDING_PROBLEM,
                    "no: GPUFL_DISABLED is '%.60s', which is neither on nor off and counts as on: nothing is recorded",
                    invalid);
    else
        finding_set(finding, FINDING_PROBLEM, "no: GPUFL_DISABLED is set, so that nothing is recorded");
    finding_fix(finding, "unset GPUFL_DISABLED");
}
