/* SPDX-License-Identifier: Apache-2.0 */
/* Whether HIP will find rocprofiler-sdk. HIP is linked to librocprofiler-register, which loads rocprofiler-sdk as
 * soon as a tool is named in ROCP_TOOL_LIBRARIES or forced, and aborts the program (status 134) if the library
 * cannot be loaded. A tool is therefore named only after the same search succeeded. */
#ifndef GPUFL_DRIVER_ROCPROFILER_LOOKUP_H
#define GPUFL_DRIVER_ROCPROFILER_LOOKUP_H

#include "driver/library.h"

#define ROCPROFILER_REGISTER_LIBRARY "ROCPROFILER_REGISTER_LIBRARY"

struct rocprofiler_lookup {
    char library[512]; /* value for ROCPROFILER_REGISTER_LIBRARY; "": not needed */
};

/* Opens rocprofiler-sdk for our own calls. */
NODISCARD gpufl_status rocprofiler_library_open(struct library *library, struct problem *problem);
/* For a program that is started later with this environment. Loads the library in a child process, which is killed
 * after ten seconds, so that it leaves nothing behind in this one; call it while there is a single thread.
 * GPUFL_E_NOT_FOUND: do not name a tool. */
NODISCARD gpufl_status rocprofiler_lookup_probe(struct rocprofiler_lookup *lookup, struct problem *problem);
/* For this process, before a tool is forced: makes HIP, here and in child processes, use the library that we opened.
 * Sets ROCPROFILER_REGISTER_LIBRARY if the loader does not find that library by name. */
NODISCARD gpufl_status rocprofiler_lookup_ensure(const struct library *library, struct problem *problem);

#endif
