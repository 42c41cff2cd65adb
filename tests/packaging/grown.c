/* SPDX-License-Identifier: Apache-2.0 */
/* Uses each structure of the public headers. Built with one version of the headers and linked with a libgpufl that was
 * built with another one, it must print the same. usage: grown DIRECTORY */
#include <gpufl/profiler_host.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    gpufl_options options = GPUFL_OPTIONS_INIT;
    options.app_name = "grown";
    options.log_path = argc > 1 ? argv[1] : "grown";
    options.profiling_engine = GPUFL_ENGINE_TRACE;
    printf("init %d\n", gpufl_init(&options));
    const gpufl_scope_meta meta = {.struct_size = sizeof meta, .repeat = 7, .warmup = 3, .tag = "the tag"};
    gpufl_scope_begin_meta("scope", &meta);
    gpufl_scope_end();
    gpufl_shutdown();

    struct {
        gpufl_upload_result result;
        unsigned char guard[64];
    } room;
    memset(&room, 0xa5, sizeof room);
    room.result.struct_size = sizeof room.result;
    gpufl_upload_options upload = GPUFL_UPLOAD_OPTIONS_INIT;
    upload.backend_url = "http://127.0.0.1:1"; /* nobody answers */
    upload.timeout_ms = 200;
    gpufl_status status = gpufl_upload_logs(&upload, &room.result);
    int is_guarded = 1;
    for (size_t i = 0; i < sizeof room.guard; i++)
        is_guarded &= room.guard[i] == 0xa5;
    printf("upload %d success %d uploaded %d said %d guard %d\n", status, room.result.success,
           (int)room.result.files_uploaded, room.result.message[0] != 0, is_guarded);

    gpufl_name_list chips = GPUFL_NAME_LIST_INIT;
    gpufl_metric_properties properties = GPUFL_METRIC_PROPERTIES_INIT;
    gpufl_config_image image = GPUFL_CONFIG_IMAGE_INIT;
    const char *metrics[] = {"dram__bytes_read.sum"};
    gpufl_profiler_host *host = NULL;
    int error = gpufl_profiler_host_chips(&chips);
    printf("chips %d %s\n", error, error ? gpufl_last_error() : chips.names[0]);
    error = gpufl_profiler_host_open(&host, "GH100", GPUFL_PROFILER_RANGE, NULL, 0);
    error |= gpufl_profiler_host_metric_properties(host, metrics[0], &properties);
    error |= gpufl_profiler_host_config_image(host, metrics, 1, &image);
    printf("metric %d %s %d image %zu bytes, %zu passes\n", error, error ? gpufl_last_error() : properties.unit,
           properties.type, image.size, image.passes);
    gpufl_config_image_free(&image);
    gpufl_metric_properties_free(&properties);
    gpufl_name_list_free(&chips);
    gpufl_profiler_host_close(host);
    return 0;
}
