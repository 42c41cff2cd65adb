/* SPDX-License-Identifier: Apache-2.0 */
/* Names and registers of AMD kernels by id; ids count up from 1 with every loaded kernel. A page of the table is
 * allocated with the first id in it. Kernels are never removed: pending records point to their names. */
#include "driver/rocprofiler_table.h"

#include <stdlib.h>
#include <string.h>

enum { name_bytes_max = 16384, bytes_max_default = 128 << 20 };

static struct rocprofiler_kernel_page *page_of(const struct rocprofiler *rocprofiler, uint64_t kernel_id)
{
    uint64_t number = kernel_id / ROCPROFILER_KERNELS_PER_PAGE;
    return number < ROCPROFILER_KERNEL_PAGES ? atomic_load(&rocprofiler->kernels.pages[number]) : NULL;
}

const struct rocprofiler_kernel *rocprofiler_kernel_find(const struct rocprofiler *rocprofiler, uint64_t kernel_id)
{
    struct rocprofiler_kernel_page *page = page_of(rocprofiler, kernel_id);
    return page ? atomic_load(&page->kernels[kernel_id % ROCPROFILER_KERNELS_PER_PAGE]) : NULL;
}

/* False: the limit of a process's kernels is reached. */
static bool take_bytes(struct rocprofiler_kernels *kernels, size_t size)
{
    size_t bytes_max = kernels->bytes_max ? kernels->bytes_max : (size_t)bytes_max_default;
    if (atomic_fetch_add(&kernels->bytes, size) + size <= bytes_max)
        return true;
    atomic_fetch_sub(&kernels->bytes, size);
    return false;
}

static struct rocprofiler_kernel_page *page_make(struct rocprofiler *rocprofiler, uint64_t kernel_id)
{
    struct rocprofiler_kernels *kernels = &rocprofiler->kernels;
    struct rocprofiler_kernel_page *page = page_of(rocprofiler, kernel_id), *none = NULL;
    uint64_t number = kernel_id / ROCPROFILER_KERNELS_PER_PAGE;
    if (page || number >= ROCPROFILER_KERNEL_PAGES || !take_bytes(kernels, sizeof *page))
        return page;
    page = calloc(1, sizeof *page);
    if (page && atomic_compare_exchange_strong(&kernels->pages[number], &none, page))
        return page;
    free(page); /* another thread was faster */
    atomic_fetch_sub(&kernels->bytes, sizeof *page);
    return none;
}

static struct rocprofiler_kernel *kernel_make(struct rocprofiler_kernels *kernels,
                                              const struct rocprofiler_abi_kernel_symbol *symbol)
{
    static const char descriptor[] = ".kd"; /* the symbol is that of the kernel's descriptor */
    size_t size = strnlen(symbol->kernel_name, name_bytes_max), suffix = strlen(descriptor);
    if (size > suffix && !memcmp(symbol->kernel_name + size - suffix, descriptor, suffix))
        size -= suffix;
    if (!take_bytes(kernels, sizeof(struct rocprofiler_kernel) + size + 1))
        return NULL;
    struct rocprofiler_kernel *kernel = calloc(1, sizeof *kernel + size + 1);
    if (!kernel)
        return NULL;
    kernel->regs = symbol->arch_vgpr_count;
    kernel->sgprs = symbol->sgpr_count;
    kernel->accum_vgprs = symbol->accum_vgpr_count;
    kernel->group_bytes = symbol->group_segment_size;
    memcpy(kernel->name, symbol->kernel_name, size);
    return kernel;
}

void rocprofiler_kernel_add(struct rocprofiler *rocprofiler, const struct rocprofiler_abi_kernel_symbol *symbol)
{
    const size_t needed = offsetof(struct rocprofiler_abi_kernel_symbol, accum_vgpr_count) + sizeof(uint32_t);
    if (symbol->size < needed || !symbol->kernel_name || rocprofiler_kernel_find(rocprofiler, symbol->kernel_id))
        return;
    struct rocprofiler_kernel_page *page = page_make(rocprofiler, symbol->kernel_id);
    struct rocprofiler_kernel *kernel = page ? kernel_make(&rocprofiler->kernels, symbol) : NULL, *none = NULL;
    if (!kernel)
        atomic_fetch_add(&rocprofiler->kernels.nameless, 1);
    else if (!atomic_compare_exchange_strong(&page->kernels[symbol->kernel_id % ROCPROFILER_KERNELS_PER_PAGE], &none,
                                             kernel))
        free(kernel);
}

uint64_t rocprofiler_take_nameless(struct rocprofiler *rocprofiler)
{
    return atomic_exchange(&rocprofiler->kernels.nameless, 0);
}
