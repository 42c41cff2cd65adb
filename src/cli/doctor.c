/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "analysis/message.h"
#include "cli/calibrate.h"
#include "cli/command.h"
#include "format/json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    void (*run)(const struct machine *machine, struct finding *finding);
} checks[] = {
    {"switched on", check_disabled},
    {"recorder", check_recorder},
    {"CUDA driver", check_driver},
    {"GPU", check_gpu},
    {"NVML", check_nvml},
    {"CUPTI", check_cupti},
    {"CUPTI copies", check_cupti_copies},
    {"counter permission", check_permission},
    {"AMD driver", check_amd},
    {"rocprofiler", check_rocprofiler},
    {"other tools", check_other_tools},
    {"container", check_container},
    {"MIG", check_mig},
    {"virtualization", check_virtualization},
    {"clock", check_clock},
    {"log directory", check_log_directory},
    {"variables", check_variables},
};
enum { CHECK_COUNT = sizeof checks / sizeof *checks };

static const char *const level_words[] = {"ok", "warning", "problem"};

void finding_set(struct finding *finding, enum finding_level level, const char *format, ...)
{
    finding->level = level;
    va_list args;
    va_start(args, format);
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
}

void finding_fix(struct finding *finding, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(finding->fix, sizeof finding->fix, format, args);
    va_end(args);
}

bool small_file_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t used = 0;
    while (used < size - 1) {
        ssize_t got = read(fd, text + used, size - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    close(fd);
    while (used && text[used - 1] == '\n')
        used--;
    text[used] = '\0';
    return used > 0;
}

static void print_text(const struct finding *findings, const unsigned *counts)
{
    enum { FIX_COLUMN = 9, TEXT_COLUMN = 29 };
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        char line[sizeof findings->text + TEXT_COLUMN + sizeof findings->fix];
        snprintf(line, sizeof line, "%-8s %-18s  %s\n", level_words[findings[i].level], checks[i].name,
                 findings[i].text);
        message_write(stdout, line, TEXT_COLUMN);
        snprintf(line, sizeof line, "%*sto fix: %s\n", FIX_COLUMN, "", findings[i].fix);
        if (findings[i].fix[0])
            message_write(stdout, line, (int)strlen("to fix: "));
    }
    printf("\n%s: %u problem%s, %u warning%s\n",
           counts[FINDING_PROBLEM] ? "Trace will not record here" : "Trace can record here", counts[FINDING_PROBLEM],
           counts[FINDING_PROBLEM] == 1 ? "" : "s", counts[FINDING_WARNING], counts[FINDING_WARNING] == 1 ? "" : "s");
}

static void append_json(struct bytes *out, const struct finding *findings, const unsigned *counts)
{
    bytes_append_char(out, '{');
    json_key(out, "can_trace");
    json_bool(out, !counts[FINDING_PROBLEM]);
    json_key(out, "problems");
    json_uint(out, counts[FINDING_PROBLEM]);
    json_key(out, "warnings");
    json_uint(out, counts[FINDING_WARNING]);
    json_key(out, "checks");
    bytes_append_char(out, '[');
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        bytes_append_text(out, i ? ",{" : "{");
        json_key(out, "name");
        json_text(out, checks[i].name);
        json_key(out, "level");
        json_text(out, level_words[findings[i].level]);
        json_key(out, "text");
        json_text(out, findings[i].text);
        json_key(out, "fix");
        json_text(out, findings[i].fix[0] ? findings[i].fix : NULL);
        bytes_append_char(out, '}');
    }
    bytes_append_text(out, "]}\n");
}

int command_doctor(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("doctor", argc, argv, &arguments);
    if (code >= 0)
        return code;
    if (arguments_has(&arguments, "calibrate"))
        return calibrate();
    struct machine machine;
    machine_open(&machine);
    struct finding findings[CHECK_COUNT];
    memset(findings, 0, sizeof findings);
    unsigned counts[FINDING_PROBLEM + 1] = {0};
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        checks[i].run(&machine, &findings[i]);
        counts[findings[i].level]++;
    }
    machine_close(&machine);
    struct bytes out = {0};
    if (arguments_has(&arguments, "json"))
        append_json(&out, findings, counts);
    else
        print_text(findings, counts);
    code = counts[FINDING_PROBLEM] ? EXIT_ANSWER_NO : EXIT_GOOD;
    if (out.failed)
        command_error("doctor", "out of memory");
    if (out.failed || fwrite(out.data, 1, out.size, stdout) != out.size)
        code = EXIT_ENVIRONMENT;
    bytes_free(&out);
    return code;
}
