/* SPDX-License-Identifier: Apache-2.0 */
/* Records CUPTI's raw activity buffers on a machine with a GPU; not part of the
 * build, since it needs CUPTI's own headers:
 *
 *   cc -shared -fPIC -O2 -I$CUDA_HOME/include -o record_activity.so record_activity.c \
 *      -L$CUDA_HOME/lib64 -lcupti -lpthread
 *   CUDA_INJECTION64_PATH=$PWD/record_activity.so RECORD_OUT=train.raw python train.py
 *   cut_recording.py train.raw train.cuptirec 6000 6250
 *
 * Output: blocks of a 4-byte tag, a 4-byte length and the bytes. Tag 1 is a
 * buffer as CUPTI completed it; tag 2 a string, preceded by the 8-byte address
 * that records refer to it by. Meant for CUPTI 13.0 (216-byte kernel records). */
#include <cupti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 1 << 20, NAME_LIMIT = 65536, TAG_BUFFER = 1, TAG_NAME = 2 };

static FILE *out;
static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *names[NAME_LIMIT];
static size_t name_count;

static void block_write(uint32_t tag, const void *address, const void *bytes, uint32_t length)
{
    uint64_t place = (uint64_t)(uintptr_t)address;
    fwrite(&tag, sizeof tag, 1, out);
    fwrite(&length, sizeof length, 1, out);
    if (tag == TAG_NAME)
        fwrite(&place, sizeof place, 1, out);
    fwrite(bytes, 1, length, out);
}

static void name_write(const char *name)
{
    for (size_t i = 0; i < name_count; i++)
        if (names[i] == name)
            return;
    if (name == NULL || name_count == NAME_LIMIT)
        return;
    names[name_count++] = name;
    block_write(TAG_NAME, name, name, (uint32_t)strlen(name));
}

static void CUPTIAPI buffer_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *size = BUFFER_BYTES;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *max_records = 0;
}

static void CUPTIAPI buffer_complete(CUcontext context, uint32_t stream_id, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)stream_id, (void)size;
    pthread_mutex_lock(&out_lock);
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            name_write(((CUpti_ActivityKernel10 *)record)->name);
        if (record->kind == CUPTI_ACTIVITY_KIND_DEVICE)
            name_write(((CUpti_ActivityDevice5 *)record)->name);
    }
    if (valid > 0)
        block_write(TAG_BUFFER, NULL, buffer, (uint32_t)valid);
    pthread_mutex_unlock(&out_lock);
    free(buffer);
}

static void finish(void)
{
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&out_lock);
    fclose(out);
    pthread_mutex_unlock(&out_lock);
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_DEVICE,  CUPTI_ACTIVITY_KIND_CONTEXT,  CUPTI_ACTIVITY_KIND_STREAM,
        CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMSET,   CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,   CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_OVERHEAD,
    };
    const char *path = getenv("RECORD_OUT");
    out = path != NULL ? fopen(path, "wb") : NULL;
    if (out == NULL)
        return 1;
    cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    cuptiActivityRegisterCallbacks(buffer_request, buffer_complete);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (cuptiActivityEnable(kinds[i]) != CUPTI_SUCCESS)
            fprintf(stderr, "record_activity: kind %d is not available\n", (int)kinds[i]);
    atexit(finish);
    return 1;
}
