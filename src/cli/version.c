/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "format/catalogue.h"
#include "format/json.h"

int command_version(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("version", argc, argv, &arguments);
    if (code >= 0)
        return code;
    if (!arguments_has(&arguments, "json")) {
        printf("gpufl %s (log format %s)\n", GPUFL_VERSION_STRING, WIRE_VERSION);
        return EXIT_GOOD;
    }
    struct bytes out = {0};
    bytes_append_char(&out, '{');
    json_key(&out, "version");
    json_text(&out, GPUFL_VERSION_STRING);
    json_key(&out, "wire_version");
    json_text(&out, WIRE_VERSION);
    bytes_append_text(&out, "}\n");
    code = out.failed || fwrite(out.data, 1, out.size, stdout) != out.size ? EXIT_ENVIRONMENT : EXIT_GOOD;
    bytes_free(&out);
    return code;
}
