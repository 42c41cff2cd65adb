/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/writer_options.h"

struct log_writer_options writer_options_of(const struct options *options, const char *session_id)
{
    return (struct log_writer_options){
        .base_dir = options->log_path,
        .session_id = session_id,
        .app_name = options->app_name,
        .rotate_bytes = (uint64_t)options->log_rotate_bytes,
        .rotate_age_ms = (uint64_t)options->log_rotate_after_ms,
        .fsync_always = options->flush_logs_always,
        .seal = true,
        .max_bytes = (uint64_t)options->max_log_bytes,
        .min_free_bytes = options->min_free_bytes,
        .in_background = true,
    };
}
