/* SPDX-License-Identifier: Apache-2.0 */
#include "base/environment.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORD_SIZE_MAX = 128 };

const char *const environment_names[] = {
    "GPUFL_API_KEY",
    "GPUFL_API_PATH",
    "GPUFL_APP_NAME",
    "GPUFL_BACKEND",
    "GPUFL_BACKEND_URL",
    "GPUFL_CALIBRATION_FILE",
    "GPUFL_CA_FILE",
    "GPUFL_CLICKHOUSE_PASSWORD",
    "GPUFL_CODE_BYTES_MAX",
    "GPUFL_CONFIG_FILE",
    "GPUFL_CONTINUOUS_SYSTEM_SAMPLING",
    "GPUFL_CUDA_PATH",
    "GPUFL_CUPTI_PATH",
    "GPUFL_DEBUG",
    "GPUFL_DEEP_COUNTING_MS",
    "GPUFL_DEEP_SAMPLING_MS",
    "GPUFL_DISABLED",
    "GPUFL_ENABLE_CUDA_GRAPHS_TRACKING",
    "GPUFL_ENABLE_EXTERNAL_CORRELATION",
    "GPUFL_ENABLE_MEMORY_TRACKING",
    "GPUFL_ENABLE_SOURCE_COLLECTION",
    "GPUFL_ENABLE_STACK_TRACE",
    "GPUFL_ENABLE_SYNCHRONIZATION",
    "GPUFL_EXCLUSIVE",
    "GPUFL_EXIT_TIMEOUT_MS",
    "GPUFL_FLUSH_LOGS_ALWAYS",
    "GPUFL_INJECT",
    "GPUFL_INJECT_LIB",
    "GPUFL_LLVM_OBJDUMP",
    "GPUFL_LOG_DIR",
    "GPUFL_LOG_ROTATE_AFTER_MS",
    "GPUFL_LOG_ROTATE_BYTES",
    "GPUFL_MAX_LOG_BYTES",
    "GPUFL_MESSAGE_FD",
    "GPUFL_MIN_FREE_BYTES",
    "GPUFL_MONITOR_APP",
    "GPUFL_MONITOR_INTERVAL_MS",
    "GPUFL_MONITOR_LOG_DIR",
    "GPUFL_NVDISASM",
    "GPUFL_NVML_PATH",
    "GPUFL_PC_SAMPLING_CYCLE_MS",
    "GPUFL_PC_SAMPLING_DRAIN_MS",
    "GPUFL_PC_SAMPLING_MODE",
    "GPUFL_PC_SAMPLING_PERIOD",
    "GPUFL_PC_SAMPLING_RATE_HZ",
    "GPUFL_PC_SAMPLING_SHARE",
    "GPUFL_PM_INTERVAL_US",
    "GPUFL_PM_METRICS",
    "GPUFL_PROFILING_ENGINE",
    "GPUFL_QUIET",
    "GPUFL_RANGE_METRICS",
    "GPUFL_RANGE_MODE",
    "GPUFL_RANGE_SCOPES",
    "GPUFL_REMOTE_CONFIG",
    "GPUFL_REMOTE_UPLOAD",
    "GPUFL_ROCM_SMI_PATH",
    "GPUFL_ROCPROFILER_PATH",
    "GPUFL_SASS_METRICS",
    "GPUFL_SERVE_ADMIN_KEY",
    "GPUFL_START_TIMEOUT_MS",
    "GPUFL_SYSFS_ROOT",
    "GPUFL_SYSTEM_SAMPLE_RATE_MS",
    "GPUFL_TRACE_GIVEN",
    NULL,
};

bool environment_is_known(const char *entry)
{
    size_t size = strcspn(entry, "=");
    for (const char *const *name = environment_names; *name; name++)
        if (strlen(*name) == size && !memcmp(*name, entry, size))
            return true;
    return false;
}

bool word_is_true(const char *word)
{
    static const char *const words[] = {"1", "true", "yes", "on"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(word, words[i]))
            return true;
    return false;
}

bool word_is_false(const char *word)
{
    static const char *const words[] = {"0", "false", "no", "off"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(word, words[i]))
            return true;
    return false;
}

bool environment_is_disabled(const char **invalid)
{
    const char *value = getenv("GPUFL_DISABLED");
    bool is_set = value && *value && !word_is_false(value);
    if (invalid)
        *invalid = is_set && !word_is_true(value) ? value : NULL;
    return is_set;
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool is_same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edits are insertion, deletion, replacement and the swap of two neighbours: the usual typing errors. */
static unsigned edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    unsigned rows[3][WORD_SIZE_MAX + 1];
    unsigned *above_that = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_size; j++)
        above[j] = (unsigned)j;
    for (size_t i = 1; i <= a_size; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_size; j++) {
            unsigned replaced = above[j - 1] + !is_same_letter(a[i - 1], b[j - 1]);
            row[j] = smaller(replaced, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && is_same_letter(a[i - 1], b[j - 2]) && is_same_letter(a[i - 2], b[j - 1]))
                row[j] = smaller(row[j], above_that[j - 2] + 1);
        }
        unsigned *oldest = above_that;
        above_that = above;
        above = row;
        row = oldest;
    }
    return above[b_size];
}

const char *nearest_word(const char *word, const char *const *words)
{
    size_t size = strlen(word);
    if (!size || size > WORD_SIZE_MAX)
        return NULL;
    const char *nearest = NULL;
    /* One error per three letters, at least one: more distant suggestions are noise. */
    unsigned best = (unsigned)(size < 3 ? 1 : size / 3) + 1;
    for (; *words; words++) {
        size_t candidate_size = strlen(*words);
        if (candidate_size > WORD_SIZE_MAX)
            continue;
        unsigned distance = edit_distance(word, size, *words, candidate_size);
        if (distance < best) {
            best = distance;
            nearest = *words;
        }
    }
    return nearest;
}
