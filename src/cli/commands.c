/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <string.h>

static const char *const engines[] = {"Monitor", "Trace", "PcSampling", "SassMetrics", "RangeProfiler", "Deep", NULL};
static const char *const metric_types[] = {"counter", "ratio", "throughput", NULL};
static const char *const color_modes[] = {"auto", "always", "never", NULL};

static const struct option_info trace_options[] = {
    {"engine", 'e', OPTION_CHOICE, "ENGINE", "what to record (default Trace)", engines, 0, 0},
    {"name", 'n', OPTION_TEXT, "NAME", "the program's name in the log (default: from CMD)", NULL, 0, 0},
    {"output", 'o', OPTION_TEXT, "DIR", "where session directories go (default ./NAME)", NULL, 0, 0},
    {"stacks", 0, OPTION_FLAG, NULL, "record the CPU stack of each launch and wait", NULL, 0, 0},
    {"memory", 0, OPTION_FLAG, NULL, "record device memory allocations", NULL, 0, 0},
    {"graphs", 0, OPTION_FLAG, NULL, "record CUDA graph launches", NULL, 0, 0},
    {"sample-ms", 0, OPTION_NUMBER, "N", "GPU and host metrics every N ms, 0 never (default 100)", NULL, 0, 3600000},
    {"no-sync", 0, OPTION_FLAG, NULL, "do not record host waits", NULL, 0, 0},
    {"quiet", 'q', OPTION_FLAG, NULL, "print errors only", NULL, 0, 0},
    {"upload", 0, OPTION_TEXT, "URL", "then send the session to a server; key from GPUFL_API_KEY", NULL, 0, 0},
    {0}};
static const struct option_info upload_options[] = {
    {"url", 0, OPTION_TEXT, "URL", "the server (default: GPUFL_BACKEND_URL)", NULL, 0, 0},
    {"key-file", 0, OPTION_TEXT, "FILE", "file whose first line is the key (default: GPUFL_API_KEY)", NULL, 0, 0},
    {"api-path", 0, OPTION_TEXT, "PATH", "path on the server (default: GPUFL_API_PATH, /api/v1)", NULL, 0, 0},
    {"timeout-ms", 0, OPTION_NUMBER, "N", "stop after N ms (default 300000)", NULL, 1, 86400000},
    {"json", 0, OPTION_FLAG, NULL, "for machines", NULL, 0, 0},
    {0}};
static const struct option_info report_options[] = {
    {"json", 0, OPTION_FLAG, NULL, "for machines", NULL, 0, 0},
    {"top", 0, OPTION_NUMBER, "N", "rows per table (default 10)", NULL, 1, 100000},
    {"wide", 0, OPTION_FLAG, NULL, "do not cut names", NULL, 0, 0},
    {"code", 0, OPTION_TEXT, "FUNCTION", "one function's instructions with samples and counters", NULL, 0, 0},
    {"color", 0, OPTION_CHOICE, "WHEN", "auto, always or never (default auto)", color_modes, 0, 0},
    {"output", 'o', OPTION_TEXT, "FILE", "write to FILE instead of standard output", NULL, 0, 0},
    {0}};
static const struct option_info metrics_options[] = {
    {"chip", 0, OPTION_TEXT, "CHIP", "of this chip, like GH100 (default: this machine's first GPU)", NULL, 0, 0},
    {"type", 0, OPTION_CHOICE, "TYPE", "list only metrics of this type", metric_types, 0, 0},
    {"pm", 0, OPTION_FLAG, NULL, "for PM sampling instead of the range profiler", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "for machines", NULL, 0, 0},
    {0}};
static const struct option_info json_options[] = {{"json", 0, OPTION_FLAG, NULL, "for machines", NULL, 0, 0}, {0}};
static const struct option_info no_options[] = {{0}};

const struct command command_table[] = {
    {.name = "trace",
     .summary = "run a program and record what the GPU did for it",
     .usage = "-- CMD...",
     .example = "gpufl trace -- python train.py",
     .about =
         "Runs CMD, unchanged, with the recorder loaded into it and into the programs that it starts. CMD keeps "
         "standard input and output and the terminal; gpufl prints one line to standard error at the end, and what the recorder "
         "could not do.\n\n"
         "The exit status is CMD's own, 128 plus the number of the signal that ended it, 126 when it cannot be "
         "executed, 127 when it does not exist. When DIR cannot be written the program runs all the same, unrecorded.",
     .options = trace_options,
     .operand = "CMD",
     .operand_min = 1,
     .operand_max = -1,
     .stops_at_operand = true,
     .run = command_trace},
    {.name = "report",
     .summary = "where the time went in a recorded session",
     .usage = "DIR",
     .example = "gpufl report ./train",
     .about =
         "Prints time, kernels, scopes, copies, system metrics and losses of one session, and what the deep engines "
         "recorded: stalls, hot lines, counters and metrics. DIR is a session directory, or a directory that holds "
         "exactly one.\n\n"
         "--code FUNCTION prints one sampled or counted function instead; a part of its name is enough. Instructions "
         "that the log holds as raw words are shown as text where nvdisasm is found.",
     .options = report_options,
     .operand = "DIR",
     .operand_min = 1,
     .operand_max = 1,
     .run = command_report},
    {.name = "verify",
     .summary = "prove that a session is complete, or list every hole",
     .usage = "DIR",
     .example = "gpufl verify ./train",
     .about =
         "Checks sequence numbers, checksums, counts, dictionary references and the recorder's own loss records. Exit "
         "status 0: complete. 1: something is missing, each hole with file, line, reason and count.",
     .options = json_options,
     .operand = "DIR",
     .operand_min = 1,
     .operand_max = 1,
     .run = command_verify},
    {.name = "seal",
     .summary = "compress finished sessions",
     .usage = "DIR",
     .example = "gpufl seal ./train",
     .about =
         "Rewrites the session's plain log files as compressed segments with checksums. A session that is still being "
         "written is left alone. DIR is a session directory, or a directory of sessions, which are then all sealed.",
     .options = no_options,
     .operand = "DIR",
     .operand_min = 1,
     .operand_max = 1,
     .run = command_seal},
    {.name = "upload",
     .summary = "send finished sessions to a server",
     .usage = "DIR",
     .example = "gpufl upload ./train --url https://gpufl.example.com",
     .about =
         "Sends a session, or every finished session in DIR, and waits for the server. What it acknowledged is noted "
         "beside the session, so that running it again sends only the rest. The log files are left as they are.\n\n"
         "Exit status 0: the server has everything. 1: something was not sent, and why. 3: there is no session, no "
         "server, or no permission.",
     .options = upload_options,
     .operand = "DIR",
     .operand_min = 1,
     .operand_max = 1,
     .run = command_upload},
    {.name = "metrics",
     .summary = "hardware metrics of a GPU, and what they cost to collect",
     .usage = "chips|list [FILTER]|show NAME|passes NAME...|sets",
     .example = "gpufl metrics list --chip GH100 dram",
     .about =
         "Asks CUPTI, which needs no GPU for it. chips: the chips it knows. list: the metrics of a chip, or those whose "
         "name holds FILTER (or matches it, with * and ?). show: what a metric is and which suffixes it has. passes: how "
         "often a kernel must run to collect these metrics, each and together; names of sets are taken too. sets: "
         "gpufl's own sets of metrics; with --chip also their passes.\n\n"
         "A full name has a suffix, like sm__throughput.avg.pct_of_peak_sustained_elapsed. Exit status 1: no metric "
         "matches. 2: a wrong name, with the nearest right one. 3: CUPTI cannot be used.",
     .options = metrics_options,
     .operand = "ACTION",
     .operand_min = 1,
     .operand_max = -1,
     .run = command_metrics},
    {.name = "info",
     .summary = "GPUs, driver and libraries of this machine",
     .usage = "",
     .example = "gpufl info",
     .about = "Lists each GPU with its limits, and the driver, CUDA and CUPTI versions that gpufl would use.",
     .options = json_options,
     .run = command_info},
    {.name = "doctor",
     .summary = "what can be recorded here, and why something cannot",
     .usage = "",
     .example = "gpufl doctor",
     .about =
         "Tries what each engine needs and explains each refusal with what to do about it. Exit status 1: something "
         "needs attention.",
     .options = json_options,
     .run = command_doctor},
    {.name = "demo",
     .summary = "show a report: live with a GPU, else of a recorded session",
     .usage = "",
     .example = "gpufl demo",
     .about =
         "With a GPU, traces the shipped example program and reports it. Without one, reports a session recorded on an "
         "NVIDIA H200 and says so on the first line.",
     .options = no_options,
     .run = command_demo},
    {.name = "version",
     .summary = "print the version",
     .usage = "",
     .example = "gpufl version",
     .about = "Prints the version of gpufl and of the log format that it writes.",
     .options = json_options,
     .run = command_version},
    {.name = "completion",
     .summary = "print a completion script for a shell",
     .usage = "bash|zsh|fish",
     .example = "source <(gpufl completion bash)",
     .about = "Prints a script that completes commands and options, for bash, zsh or fish.",
     .options = no_options,
     .operand = "SHELL",
     .operand_min = 1,
     .operand_max = 1,
     .run = command_completion},
    {.name = "man",
     .summary = "print a manual page",
     .usage = "[COMMAND]",
     .example = "gpufl man trace | man -l -",
     .about = "Prints the manual page of COMMAND, or of gpufl, as roff source.",
     .options = no_options,
     .operand = "COMMAND",
     .operand_max = 1,
     .is_hidden = true,
     .run = command_man},
    {0}};

const struct command *command_find(const char *name)
{
    for (const struct command *command = command_table; command->name; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    return NULL;
}

const char *const *command_names(void)
{
    static const char *names[sizeof command_table / sizeof command_table[0]];
    size_t count = 0;
    for (const struct command *command = command_table; command->name; command++) {
        if (!command->is_hidden)
            names[count++] = command->name;
    }
    names[count] = NULL;
    return names;
}
