/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the user's options to those of the log writer. */
#ifndef GPUFL_SDK_WRITER_OPTIONS_H
#define GPUFL_SDK_WRITER_OPTIONS_H

#include "logfile/writer.h"
#include "sdk/options.h"

/* Borrows the options' and the id's texts. */
struct log_writer_options writer_options_of(const struct options *options, const char *session_id);

#endif
