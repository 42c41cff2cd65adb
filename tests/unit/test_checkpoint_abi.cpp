/* SPDX-License-Identifier: Apache-2.0 */
/* Our declaration of a checkpoint against CUPTI's header, which is C++, where a
 * CUDA toolkit is on the include path. All at compile time. */
#include "driver/checkpoint_abi.h"

#if defined(__has_include)
#if __has_include(<cupti_checkpoint.h>) && __has_include(<cuda.h>)
#include <cupti_checkpoint.h>
#define HAS_VENDOR_HEADERS 1
#endif
#endif

#ifdef HAS_VENDOR_HEADERS
using namespace NV::Cupti::Checkpoint;

#define AT(member, their_member)                                                                  \
    static_assert(offsetof(checkpoint_abi, member) == offsetof(CUpti_Checkpoint, their_member) && \
                      sizeof(checkpoint_abi::member) == sizeof(CUpti_Checkpoint::their_member),   \
                  #their_member)

static_assert(sizeof(checkpoint_abi) == CUpti_Checkpoint_STRUCT_SIZE, "CUpti_Checkpoint");
AT(struct_bytes, structSize);
AT(context, ctx);
AT(reserve_device_mib, reserveDeviceMB);
AT(reserve_host_mib, reserveHostMB);
AT(allow_overwrite, allowOverwrite);
AT(optimizations, optimizations);
AT(priv, pPriv);
static_assert((int)CHECKPOINT_ABI_OPTIMIZE_NONE == (int)CUPTI_CHECKPOINT_OPT_NONE, "none");
static_assert((int)CHECKPOINT_ABI_OPTIMIZE_TRANSFER == (int)CUPTI_CHECKPOINT_OPT_TRANSFER, "transfer");
#endif

int main()
{
    return 0;
}
