/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "sdk/options.h"

void options_warn(const struct options *options)
{
    if (options->remote_upload)
        log_message(GPUFL_LOG_WARNING,
                    "remote_upload is deprecated and has no effect; upload the finished session instead");
    if (options->kernel_sample_rate_ms)
        log_message(GPUFL_LOG_WARNING,
                    "kernel_sample_rate_ms is deprecated and has no effect; every kernel is recorded");
    if (options->remote_problem.text[0])
        log_message(GPUFL_LOG_WARNING, "%s", options->remote_problem.text);
}
