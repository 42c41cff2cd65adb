/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/ran_kernels.h"

#include "base/demangle.h"

#include <stdlib.h>

/* A name in the log, without the suffix that AMD's runtime appends. */
struct named_time {
    const char *name;
    size_t size;
    uint64_t gpu_ns;
};

struct ran_kernels {
    struct named_time *names; /* by name */
    struct ran_kernel *kernels;
    size_t name_count, kernel_count, kernel_capacity;
};

static int name_compare(const void *left, const void *right)
{
    const struct named_time *a = left, *b = right;
    size_t size = a->size < b->size ? a->size : b->size;
    int order = memcmp(a->name, b->name, size);
    return order ? order : a->size < b->size ? -1 : a->size > b->size;
}

static int time_compare(const void *left, const void *right)
{
    const struct ran_kernel *a = left, *b = right;
    if (a->gpu_ns != b->gpu_ns)
        return a->gpu_ns > b->gpu_ns ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order ? order : a->cubin_crc < b->cubin_crc ? -1 : a->cubin_crc > b->cubin_crc;
}

static bool names_make(struct ran_kernels *ran, const struct session_model *model)
{
    uint32_t count = model->dictionaries[DICTIONARY_KERNEL].count;
    uint64_t *times_ns = calloc((size_t)count + 1, sizeof *times_ns);
    bool *has_run = calloc((size_t)count + 1, sizeof *has_run);
    ran->names = calloc((size_t)count + 1, sizeof *ran->names);
    bool is_done = times_ns && has_run && ran->names;
    for (size_t i = 0; is_done && i < model->kernels.count; i++) {
        uint32_t id = model->kernels.kernel_id[i];
        if (id >= count)
            continue;
        has_run[id] = true;
        times_ns[id] += (uint64_t)model->kernels.duration_ns[i];
    }
    static const char ending[] = ".kd";
    for (uint32_t id = 0; is_done && id < count; id++) {
        const char *name = has_run[id] ? session_text(model, DICTIONARY_KERNEL, id) : NULL;
        if (!name)
            continue;
        size_t size = strlen(name), cut = sizeof ending - 1;
        bool is_descriptor = size > cut && !strcmp(name + size - cut, ending);
        ran->names[ran->name_count++] = (struct named_time){name, is_descriptor ? size - cut : size, times_ns[id]};
    }
    if (is_done)
        qsort(ran->names, ran->name_count, sizeof *ran->names, name_compare);
    free(times_ns);
    free(has_run);
    return is_done;
}

static const struct named_time *name_find(const struct ran_kernels *ran, const char *name)
{
    struct named_time key = {.name = name, .size = strlen(name)};
    return bsearch(&key, ran->names, ran->name_count, sizeof *ran->names, name_compare);
}

static bool kernel_append(struct ran_kernels *ran, const struct ran_kernel *kernel)
{
    if (ran->kernel_count == ran->kernel_capacity) {
        size_t capacity = ran->kernel_capacity ? ran->kernel_capacity * 2 : 32;
        struct ran_kernel *kernels = realloc(ran->kernels, capacity * sizeof *kernels);
        if (!kernels)
            return false;
        ran->kernels = kernels;
        ran->kernel_capacity = capacity;
    }
    ran->kernels[ran->kernel_count++] = *kernel;
    return true;
}

static bool object_read(struct ran_kernels *ran, struct code_lookup *lookup, uint64_t crc, struct bytes *text)
{
    struct code_function any = code_lookup_function(lookup, crc, NULL);
    const struct code_image *image = code_function_image(&any);
    bool is_done = true;
    for (uint32_t i = 0; is_done && image && i < image->function_count; i++) {
        const struct image_function *function = &image->functions[i];
        if (!function->is_entry)
            continue;
        const struct named_time *named = name_find(ran, function->name);
        if (!named) {
            demangle(function->name, text);
            named = name_find(ran, bytes_text(text));
        }
        is_done = !text->failed;
        if (named && is_done) {
            const struct ran_kernel kernel = {crc, function->name, named->name, code_function_line_problem(&any),
                                              named->gpu_ns};
            is_done = kernel_append(ran, &kernel);
        }
    }
    code_function_close(&any);
    return is_done;
}

gpufl_status ran_kernels_visit(struct code_lookup *lookup, ran_kernel_fn on_kernel, void *user)
{
    const struct session_deep *deep = &lookup->model->deep;
    struct ran_kernels ran = {0};
    struct bytes text = {0};
    bool is_done = true, has_names = false;
    for (size_t i = 0; is_done && lookup->effort != CODE_UNREAD && i < deep->object_count; i++) {
        const struct code_object *object = &deep->objects[i];
        if (!object->data || strncmp(object->arch, "gfx", 3) != 0)
            continue;
        if (!has_names)
            is_done = names_make(&ran, lookup->model);
        has_names = true;
        is_done = is_done && object_read(&ran, lookup, object->crc, &text);
    }
    if (is_done && ran.kernel_count)
        qsort(ran.kernels, ran.kernel_count, sizeof *ran.kernels, time_compare);
    for (size_t i = 0; is_done && i < ran.kernel_count; i++)
        on_kernel(user, &ran.kernels[i]);
    bytes_free(&text);
    free(ran.names);
    free(ran.kernels);
    return is_done ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}
