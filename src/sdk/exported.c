/* SPDX-License-Identifier: Apache-2.0 */
/* The inline functions of gpufl.h as functions of the library, for languages that call C without its headers (Rust, Go,
 * Julia, Python's ctypes). The inline ones have other names in this file. */
#define gpufl_is_recording inline_is_recording
#define gpufl_scope_begin inline_scope_begin
#define gpufl_scope_begin_meta inline_scope_begin_meta
#define gpufl_scope_end inline_scope_end
#define gpufl_scope_end_counted inline_scope_end_counted
#include <gpufl/gpufl.h>
#undef gpufl_is_recording
#undef gpufl_scope_begin
#undef gpufl_scope_begin_meta
#undef gpufl_scope_end
#undef gpufl_scope_end_counted

GPUFL_API int gpufl_is_recording(void);
GPUFL_API void gpufl_scope_begin(const char *name);
GPUFL_API void gpufl_scope_begin_meta(const char *name, const gpufl_scope_meta *meta);
GPUFL_API void gpufl_scope_end(void);
GPUFL_API void gpufl_scope_end_counted(uint32_t iterations);

int gpufl_is_recording(void)
{
    return inline_is_recording();
}
void gpufl_scope_begin(const char *name)
{
    inline_scope_begin(name);
}
void gpufl_scope_begin_meta(const char *name, const gpufl_scope_meta *meta)
{
    inline_scope_begin_meta(name, meta);
}
void gpufl_scope_end(void)
{
    inline_scope_end();
}
void gpufl_scope_end_counted(uint32_t iterations)
{
    inline_scope_end_counted(iterations);
}
