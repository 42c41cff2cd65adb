/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/message.h"
#include "cli/command.h"
#include "cli/machine.h"
#include "format/catalogue.h"
#include "format/json.h"

#include <inttypes.h>

struct engine_state {
    const char *name, *reason; /* reason NULL: available */
};
enum { ENGINE_COUNT = 6, LABEL_COLUMNS = 10 };

static void engines_list(const struct machine *machine, struct engine_state engines[ENGINE_COUNT])
{
    static const char *const counting[] = {"PcSampling", "SassMetrics", "RangeProfiler", "Deep"};
    const char *why;
    engines[0].name = "Monitor";
    (void)machine_can_monitor(machine, &engines[0].reason);
    engines[1].name = "Trace";
    (void)machine_can_trace(machine, &engines[1].reason);
    why = machine_is_amd_only(machine) && !engines[1].reason
              ? "for NVIDIA GPUs; AMD's are traced and counted by dispatch"
              : engines[1].reason;
    for (size_t i = 0; i < sizeof counting / sizeof *counting; i++)
        engines[2 + i] = (struct engine_state){counting[i], why};
}

static void append_release(struct bytes *out, int release)
{
    if (release)
        bytes_append_format(out, "%d.%d", release / 1000, release % 1000 / 10);
    else
        bytes_append_text(out, "unknown");
}

static void append_gpu(struct bytes *out, uint32_t index, const struct machine_gpu *gpu)
{
    bytes_append_format(out, "GPU %-6" PRIu32 "%s", index, gpu->name[0] ? gpu->name : "name unknown");
    if (gpu->compute_major)
        bytes_append_format(out, " · compute capability %" PRIu32 ".%" PRIu32, gpu->compute_major, gpu->compute_minor);
    if (gpu->architecture[0])
        bytes_append_format(out, " (%s)", gpu->architecture);
    if (gpu->memory_bytes)
        bytes_append_format(out, " · %.1f GiB", (double)gpu->memory_bytes / (1 << 30));
    if (gpu->multiprocessors)
        bytes_append_format(out, " · %" PRIu32 " %s", gpu->multiprocessors,
                            gpu->vendor == GPU_VENDOR_AMD ? "CUs" : "SMs");
    if (gpu->is_mig)
        bytes_append_text(out, " · MIG");
    if (!gpu->has_cuda && gpu->vendor == GPU_VENDOR_NVIDIA)
        bytes_append_text(out, " · not visible to CUDA");
    bytes_append_format(out, "\n          %s%s%s\n", gpu->uuid, gpu->uuid[0] && gpu->pci_bus_id[0] ? " · " : "",
                        gpu->pci_bus_id);
}

static void append_amd(struct bytes *out, const struct machine *machine)
{
    bytes_append_format(out, "AMD       amdgpu %s\n", amdgpu_driver_version(machine->amd));
    if (machine->rocprofiler) {
        uint32_t version = rocprofiler_version(machine->rocprofiler);
        bytes_append_format(out, "ROCm      rocprofiler-sdk %" PRIu32 ".%" PRIu32 ".%" PRIu32 " · %s\n",
                            version / 10000, version / 100 % 100, version % 100,
                            rocprofiler_path(machine->rocprofiler));
    } else {
        bytes_append_format(out, "ROCm      no rocprofiler-sdk: %s\n", machine->rocprofiler_problem.text);
    }
}

static void append_nvidia(struct bytes *out, const struct machine *machine)
{
    const char *driver = machine_driver_version(machine);
    if (machine->has_cuda || driver[0]) {
        bytes_append_format(out, "driver    %s, CUDA ", driver[0] ? driver : "version unknown");
        append_release(out, machine_cuda_version(machine));
        bytes_append_char(out, '\n');
    } else {
        bytes_append_format(out, "driver    none: %s\n", machine->cuda_problem.text);
    }
    if (!machine->nvml)
        bytes_append_format(out, "NVML      none: %s\n", machine->nvml_problem.text);
    if (machine->cupti) {
        bytes_append_text(out, "CUPTI     CUDA ");
        append_release(out, cuda_release_of_cupti(cupti_version(machine->cupti)));
        bytes_append_format(out, " (API version %" PRIu32 ") · %s\n", cupti_version(machine->cupti),
                            cupti_path(machine->cupti));
    } else {
        bytes_append_format(out, "CUPTI     none: %s\n", machine->cupti_problem.text);
    }
}

static void append_text(struct bytes *out, const struct machine *machine)
{
    bytes_append_format(out, "gpufl     %s (log format %s)\n", GPUFL_VERSION_STRING, WIRE_VERSION);
    if (!machine_is_amd_only(machine))
        append_nvidia(out, machine);
    if (machine->amd)
        append_amd(out, machine);
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        append_gpu(out, i, &machine->gpus[i]);
    if (!machine->gpu_count)
        bytes_append_text(out, "GPU       none; `gpufl doctor` says what is missing\n");
    struct engine_state engines[ENGINE_COUNT];
    engines_list(machine, engines);
    for (size_t i = 0; i < ENGINE_COUNT; i++)
        bytes_append_format(out, "%s%-14s%s\n", i ? "          " : "engines   ", engines[i].name,
                            engines[i].reason ? engines[i].reason : "available");
}

static void member_text(struct bytes *out, const char *key, const char *text)
{
    json_key(out, key);
    json_text(out, text && text[0] ? text : NULL);
}

static void member_number(struct bytes *out, const char *key, uint64_t number)
{
    json_key(out, key);
    if (number)
        json_uint(out, number);
    else
        json_text(out, NULL);
}

static void member_release(struct bytes *out, const char *key, int release)
{
    json_key(out, key);
    if (release)
        bytes_append_format(out, "\"%d.%d\"", release / 1000, release % 1000 / 10);
    else
        json_text(out, NULL);
}

static void append_gpu_json(struct bytes *out, uint32_t index, const struct machine_gpu *gpu)
{
    bytes_append_text(out, index ? ",{" : "{");
    json_key(out, "index");
    json_uint(out, index);
    member_text(out, "vendor", gpu_vendor_name(gpu->vendor));
    member_text(out, "name", gpu->name);
    member_text(out, "uuid", gpu->uuid);
    member_text(out, "pci_bus_id", gpu->pci_bus_id);
    member_text(out, "architecture", gpu->architecture);
    json_key(out, "compute_capability");
    if (gpu->compute_major)
        bytes_append_format(out, "\"%" PRIu32 ".%" PRIu32 "\"", gpu->compute_major, gpu->compute_minor);
    else
        json_text(out, NULL);
    member_number(out, "memory_bytes", gpu->memory_bytes);
    member_number(out, "multiprocessors", gpu->multiprocessors);
    json_key(out, "is_mig");
    json_bool(out, gpu->is_mig);
    json_key(out, "is_visible_to_cuda");
    json_bool(out, gpu->has_cuda);
    bytes_append_char(out, '}');
}

static void append_json(struct bytes *out, const struct machine *machine)
{
    bytes_append_char(out, '{');
    member_text(out, "version", GPUFL_VERSION_STRING);
    member_text(out, "wire_version", WIRE_VERSION);
    member_text(out, "driver_version", machine_driver_version(machine));
    member_release(out, "cuda_version", machine_cuda_version(machine));
    member_text(out, "driver_problem", machine->has_cuda ? NULL : machine->cuda_problem.text);
    member_text(out, "nvml_problem", machine->nvml ? NULL : machine->nvml_problem.text);
    member_text(out, "amd_driver_version", machine->amd ? amdgpu_driver_version(machine->amd) : NULL);
    member_text(out, "amd_problem", machine->amd ? NULL : machine->amd_problem.text);
    member_text(out, "rocprofiler_path", machine->rocprofiler ? rocprofiler_path(machine->rocprofiler) : NULL);
    json_key(out, "cupti");
    if (machine->cupti) {
        bytes_append_char(out, '{');
        member_text(out, "path", cupti_path(machine->cupti));
        member_number(out, "api_version", cupti_version(machine->cupti));
        member_release(out, "cuda_version", cuda_release_of_cupti(cupti_version(machine->cupti)));
        bytes_append_char(out, '}');
    } else {
        json_text(out, NULL);
    }
    member_text(out, "cupti_problem", machine->cupti ? NULL : machine->cupti_problem.text);
    json_key(out, "gpus");
    bytes_append_char(out, '[');
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        append_gpu_json(out, i, &machine->gpus[i]);
    bytes_append_char(out, ']');
    json_key(out, "engines");
    bytes_append_char(out, '[');
    struct engine_state engines[ENGINE_COUNT];
    engines_list(machine, engines);
    for (size_t i = 0; i < ENGINE_COUNT; i++) {
        bytes_append_text(out, i ? ",{" : "{");
        member_text(out, "name", engines[i].name);
        json_key(out, "is_available");
        json_bool(out, !engines[i].reason);
        member_text(out, "reason", engines[i].reason);
        bytes_append_char(out, '}');
    }
    bytes_append_text(out, "]}\n");
}

int command_info(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("info", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct machine machine;
    machine_open(&machine);
    struct bytes out = {0};
    if (arguments_has(&arguments, "json"))
        append_json(&out, &machine);
    else
        append_text(&out, &machine);
    code = machine.gpu_count ? EXIT_GOOD : EXIT_ENVIRONMENT;
    if (out.failed)
        command_error("info", "out of memory");
    if (out.failed)
        code = EXIT_ENVIRONMENT;
    else if (arguments_has(&arguments, "json"))
        fwrite(out.data, 1, out.size, stdout);
    else
        message_write(stdout, bytes_text(&out), LABEL_COLUMNS);
    bytes_free(&out);
    machine_close(&machine);
    return code;
}
