/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a config file: accepted input gives valid options, and errors have a position. */
#include "sdk/options.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void text_check(const char *text, size_t size)
{
    if (!memchr(text, '\0', size))
        abort();
}

static void options_check(const struct options *options)
{
    if (options->profiling_engine < GPUFL_ENGINE_MONITOR || options->profiling_engine > GPUFL_ENGINE_DEEP)
        abort();
    if (options->backend < GPUFL_BACKEND_AUTO || options->backend > GPUFL_BACKEND_NONE)
        abort();
    if (options->system_sample_rate_ms < -1 || options->max_log_bytes < 0 || options->log_rotate_bytes < 0 ||
        options->log_rotate_after_ms < 0)
        abort();
    text_check(options->app_name, sizeof options->app_name);
    text_check(options->log_path, sizeof options->log_path);
    text_check(options->backend_url, sizeof options->backend_url);
    text_check(options->api_key, sizeof options->api_key);
    text_check(options->api_path, sizeof options->api_path);
    text_check(options->config_file, sizeof options->config_file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct options options;
    struct problem problem = {""};
    options_set_defaults(&options);
    gpufl_status status = options_apply_json(&options, (const char *)data, size, "config.json", &problem);
    if (status == GPUFL_OK)
        options_check(&options);
    else if (strncmp(problem.text, "config.json:", strlen("config.json:")) != 0)
        abort();
    return 0;
}
