/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of ROCm SMI against AMD's header, where it is installed. The
 * checks happen at compile time; the test says whether they did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/rocm_smi_abi.h"

#if defined(__has_include)
#if __has_include(<rocm_smi/rocm_smi.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <rocm_smi/rocm_smi.h>
#pragma GCC diagnostic pop
#define HAS_HEADER 1
#endif
#endif

#ifdef HAS_HEADER
_Static_assert(sizeof(struct rocm_smi_abi_errors) == sizeof(rsmi_error_count_t), "rsmi_error_count_t");
_Static_assert(offsetof(struct rocm_smi_abi_errors, correctable) == offsetof(rsmi_error_count_t, correctable_err), "");
_Static_assert(offsetof(struct rocm_smi_abi_errors, uncorrectable) == offsetof(rsmi_error_count_t, uncorrectable_err),
               "");
_Static_assert(sizeof(rsmi_gpu_block_t) == sizeof(uint64_t), "a block is a bit of 64");
_Static_assert(RSMI_GPU_BLOCK_LAST == UINT64_C(1) << (ROCM_SMI_ABI_BLOCK_COUNT - 1), "how many blocks there are");
_Static_assert((int)RSMI_STATUS_SUCCESS == ROCM_SMI_ABI_SUCCESS && sizeof(rsmi_status_t) == sizeof(int), "");
/* Their parameters, where no struct of ours is in between. */
_Static_assert(_Generic(&rsmi_dev_energy_count_get, rsmi_status_t (*)(uint32_t, uint64_t *, float *, uint64_t *) : 1,
                        default : 0),
               "rsmi_dev_energy_count_get");
_Static_assert(_Generic(&rsmi_dev_pci_id_get, rsmi_status_t (*)(uint32_t, uint64_t *) : 1, default : 0),
               "rsmi_dev_pci_id_get");
_Static_assert(_Generic(&rsmi_dev_ecc_enabled_get, rsmi_status_t (*)(uint32_t, uint64_t *) : 1, default : 0),
               "rsmi_dev_ecc_enabled_get");
#endif

static void declarations_are_those_of_the_header(void **state)
{
    (void)state;
#ifndef HAS_HEADER
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(declarations_are_those_of_the_header)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
