/* SPDX-License-Identifier: Apache-2.0 */
/* Plays FAKE_SASS_RECORDING, a .sassrec file (../recordings/README.md): each
 * flush of the look-alike is the next flush that was recorded. */
#include "cupti_sass.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS_MAX = 128, FUNCTIONS_MAX = 1024, NAME_BYTES = 4096 };

struct recorded_function {
    uint32_t cubin_crc, function_index;
    char *symbol;
};
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static FILE *file;
static uint64_t metric_ids[METRICS_MAX];
static struct recorded_function functions[FUNCTIONS_MAX];
static size_t next_records, next_instances; /* of the flush whose records follow in the file */

/* Reads up to and including the next "flush" line. */
static void header_read(void)
{
    static char line[NAME_BYTES + 64], name[NAME_BYTES];
    next_records = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned number, crc, index;
        if (sscanf(line, "metric %u %4095s", &number, name) == 2 && number < METRICS_MAX)
            metric_ids[number] = sass_metric_id(name);
        else if (sscanf(line, "function %u %u %u %4095s", &number, &crc, &index, name) == 4 && number < FUNCTIONS_MAX)
            functions[number] = (struct recorded_function){crc, index, strdup(name)};
        else if (sscanf(line, "flush %zu %zu", &next_records, &next_instances) == 2)
            return;
    }
}

static void recording_open(void)
{
    const char *path = getenv("FAKE_SASS_RECORDING");
    file = path != NULL ? fopen(path, "r") : NULL;
    header_read();
}

bool sass_recording_is_wanted(void)
{
    pthread_once(&opened, recording_open);
    return getenv("FAKE_SASS_RECORDING") != NULL;
}

void sass_recording_size(size_t *record_count, size_t *instance_count)
{
    *record_count = next_records;
    *instance_count = next_records != 0 ? next_instances : 0;
}

void sass_recording_take(struct sass_abi_record *records, size_t record_count, size_t instance_count)
{
    for (size_t i = 0; i < record_count && i < next_records; i++) {
        unsigned function = 0, pc_offset = 0;
        if (fscanf(file, " record %u %u", &function, &pc_offset) != 2 || function >= FUNCTIONS_MAX)
            break;
        const struct recorded_function *from = &functions[function];
        records[i].cubin_crc = from->cubin_crc;
        records[i].function_index = from->function_index;
        records[i].function_name = from->symbol != NULL ? strdup(from->symbol) : NULL;
        records[i].pc_offset = pc_offset;
        for (size_t j = 0; j < next_instances; j++) {
            unsigned metric;
            unsigned long long value;
            if (fscanf(file, " %u:%llu", &metric, &value) == 2 && metric < METRICS_MAX && j < instance_count)
                records[i].values[j] = (struct sass_abi_value){metric_ids[metric], value};
        }
    }
    header_read();
}
