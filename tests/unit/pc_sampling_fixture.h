/* SPDX-License-Identifier: Apache-2.0 */
/* Reading PC samples from the look-alike CUPTI, each case in a separate process, since the look-alike reads its
 * faults once. */
#ifndef PC_SAMPLING_FIXTURE_H
#define PC_SAMPLING_FIXTURE_H

#include "session_fixture.h"

#include "../fakes/fake_client.h"
#include "driver/cupti_table.h"
#include "driver/pc_sampling.h"
#include "driver/pc_sampling_abi.h"
#include "requirement.h"

#include <time.h>

static struct cupti product; /* the look-alike, as the product's code sees it */

static inline void product_open(const char *file, uint32_t version)
{
    product.library.handle = library_load(file);
    product.version = version;
    *(void **)&product.call.get_result_string = dlsym(product.library.handle, "cuptiGetResultString");
}

struct sum {
    uint64_t samples, in_long_scoreboard;
    uint32_t calls, long_scoreboard, correlation_id;
    bool has_two_ids;
    char function[256];
};

static inline void take(void *user, const struct pc_sample *samples, size_t count)
{
    struct sum *sum = user;
    sum->calls++;
    for (size_t i = 0; i < count; i++) {
        sum->samples += samples[i].samples;
        if (samples[i].stall_index == sum->long_scoreboard)
            sum->in_long_scoreboard += samples[i].samples;
        sum->has_two_ids |= sum->correlation_id && sum->correlation_id != samples[i].correlation_id;
        sum->correlation_id = samples[i].correlation_id;
        snprintf(sum->function, sizeof sum->function, "%s", samples[i].function);
    }
}

static inline void *current_context(void)
{
    struct fake_context *(*current)(void);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
    *(void **)&current = dlsym(RTLD_DEFAULT, "fake_current_context");
    return current();
}

static const struct pc_sampling_options usual = {
    .period_exponent = 16, .hardware_buffer_bytes = 32 << 20, .scratch_bytes = 1 << 20};

static inline struct pc_sampling *open_usual(const struct pc_sampling_options *options)
{
    struct pc_sampling *sampling = NULL;
    struct problem problem = {""};
    gpufl_status status = pc_sampling_open(&sampling, &product, current_context(), options, &problem);
    if (status != GPUFL_OK)
        fprintf(stderr, "%s\n", problem.text);
    CHECK(status == GPUFL_OK);
    return sampling;
}

static inline uint32_t stall_index(const struct pc_sampling *sampling, const char *word)
{
    const struct stall_reasons *stalls = pc_sampling_stall_reasons(sampling);
    for (uint32_t i = 0; i < stalls->count; i++)
        if (strstr(stalls->reasons[i].name, word))
            return stalls->reasons[i].index;
    return UINT32_MAX;
}

/* Runs kernels that take at least one period, to their end. */
static inline void run_kernels(int count)
{
    static const struct fake_kernel kernel = {"_Z6samplePf", 32, 0, 0, 2000000};
    static const struct fake_image image = {FAKE_IMAGE_MAGIC, 1, &kernel};
    static bool is_registered;
    if (!is_registered) {
        void **handle = rt.__cudaRegisterFatBinary((void *)(uintptr_t)&image);
        rt.__cudaRegisterFunction(handle, (const char *)&kernel, NULL, kernel.name, -1, NULL, NULL, NULL, NULL, NULL);
        rt.__cudaUnregisterFatBinary(handle);
        is_registered = true;
    }
    for (int i = 0; i < count; i++)
        CHECK(launch(&kernel, NULL) == FAKE_SUCCESS);
    CHECK(rt.cudaDeviceSynchronize() == FAKE_SUCCESS);
}

#endif
