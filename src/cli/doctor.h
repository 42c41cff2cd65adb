/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `gpufl doctor`. Each looks at one thing and says how it is in
 * one line, and what to do when it is not well. Single-threaded. */
#ifndef GPUFL_CLI_DOCTOR_H
#define GPUFL_CLI_DOCTOR_H

#include "cli/machine.h"

enum finding_level {
    FINDING_OK,
    FINDING_WARNING, /* Trace works; something else does not, or is worth knowing */
    FINDING_PROBLEM  /* Trace would not record */
};

struct finding {
    enum finding_level level; /* FINDING_OK unless the check says otherwise */
    char text[600];
    char fix[300]; /* "" for none */
};

void finding_set(struct finding *finding, enum finding_level level, const char *format, ...) PRINTF_LIKE(3, 4);
void finding_fix(struct finding *finding, const char *format, ...) PRINTF_LIKE(2, 3);
/* The beginning of a small text file, without its last line end; false when it cannot be read. */
bool small_file_read(const char *path, char *text, size_t size);

/* doctor_gpu.c */
void check_driver(const struct machine *machine, struct finding *finding);
void check_nvml(const struct machine *machine, struct finding *finding);
void check_gpu(const struct machine *machine, struct finding *finding);
void check_cupti(const struct machine *machine, struct finding *finding);
void check_cupti_copies(const struct machine *machine, struct finding *finding);
void check_permission(const struct machine *machine, struct finding *finding);
void check_mig(const struct machine *machine, struct finding *finding);
void check_virtualization(const struct machine *machine, struct finding *finding);
/* doctor_amd.c */
void check_amd(const struct machine *machine, struct finding *finding);
void check_rocprofiler(const struct machine *machine, struct finding *finding);
/* doctor_host.c */
void check_other_tools(const struct machine *machine, struct finding *finding);
void check_container(const struct machine *machine, struct finding *finding);
void check_clock(const struct machine *machine, struct finding *finding);
void check_log_directory(const struct machine *machine, struct finding *finding);
void check_recorder(const struct machine *machine, struct finding *finding);
void check_variables(const struct machine *machine, struct finding *finding);
void check_disabled(const struct machine *machine, struct finding *finding);

#endif
