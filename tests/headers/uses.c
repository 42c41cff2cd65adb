/* SPDX-License-Identifier: Apache-2.0 */
/* Every function and macro of gpufl.h, as programs write them; compiled by tools/check_headers.sh in every mode. */
#include <gpufl/gpufl.h>

#if GPUFL_VERSION < 10000
#error "GPUFL_VERSION is not a number"
#endif

static int early(int n)
{
    GFL_FUNCTION();
    GFL_BLOCK("block");
    for (int i = 0; i < n; i++)
        GFL_SCOPE("iteration")
        {
            if (i == 2)
                continue;
            GFL_SCOPE("inner")
            {
                if (i == 3)
                    return i;
            }
        }
    if (n)
        GFL_SCOPE("if") n++;
    else
        n--;
    return n;
}

int main(void)
{
    gpufl_options options = GPUFL_OPTIONS_INIT;
    gpufl_upload_options upload = GPUFL_UPLOAD_OPTIONS_INIT;
    gpufl_upload_result result = {0};
    gpufl_scope_meta meta = {sizeof meta, 1, 0, "tag"};
    result.struct_size = sizeof result;
    gpufl_status status = gpufl_init(&options);
    gpufl_thread_name("main");
    gpufl_scope_begin("a");
    gpufl_scope_begin_meta("b", &meta);
    gpufl_scope_push_sized("cd", 1, "tag", 3, 0, 0);
    gpufl_scope_pop();
    gpufl_scope_end_counted(1);
    gpufl_scope_end();
    gpufl_system_start("phase");
    gpufl_mark("mark");
    gpufl_counter("counter", 0.5);
    gpufl_range_end(gpufl_range_start("range"));
    gpufl_system_stop("phase");
    if (gpufl_yield("other") == GPUFL_OK)
        gpufl_resume();
    int sum = early(2) + (gpufl_active_engine() == GPUFL_ENGINE_DEFAULT) + (*gpufl_session_dir() == 0) +
              (*gpufl_last_error() == 0) + (*gpufl_version() == 0) + (*gpufl_status_string(status) == 0);
    gpufl_shutdown();
    return sum + (int)gpufl_generate_report("report.txt") + (int)gpufl_upload_logs(&upload, &result);
}
