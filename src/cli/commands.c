/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/top.h"
#include "export/export.h"

#include <limits.h>
#include <string.h>

static const char *const engines[] = {"Monitor", "Trace", "PcSampling", "SassMetrics", "RangeProfiler", "Deep", NULL};
static const char *const metric_types[] = {"counter", "ratio", "throughput", NULL};
static const char *const pc_modes[] = {"continuous", "serialized", NULL};
static const char *const range_modes[] = {"auto", "scope", "kernel", NULL};
static const char *const monitor_backends[] = {"Auto", "Nvidia", "Amd", "None", NULL};
static const char *const roll_periods[] = {"daily", "hourly", "never", NULL};
static const char *const key_scopes[] = {"ingest", "read", "admin", NULL};
static const char *const color_modes[] = {"auto", "always", "never", NULL};
static const char *const export_groupings[] = {"scope", "stack", NULL};

static const struct option_info trace_options[] = {
    {"engine", 'e', OPTION_CHOICE, "ENGINE", "what to record (default Trace)", engines, 0, 0},
    {"name", 'n', OPTION_TEXT, "NAME", "the program's name in the log (default: from CMD)", NULL, 0, 0},
    {"output", 'o', OPTION_TEXT, "DIR", "where session directories go (default ./NAME)", NULL, 0, 0},
    {"stacks", 0, OPTION_FLAG, NULL, "record the CPU stack of each launch and wait", NULL, 0, 0},
    {"memory", 0, OPTION_FLAG, NULL, "record device memory allocations", NULL, 0, 0},
    {"graphs", 0, OPTION_FLAG, NULL, "record CUDA graph launches", NULL, 0, 0},
    {"sample-ms", 0, OPTION_NUMBER, "N", "GPU and host metrics every N ms, 0 never (default 100)", NULL, 0, 3600000},
    {"no-sync", 0, OPTION_FLAG, NULL, "do not record host waits", NULL, 0, 0},
    {"exclusive", 0, OPTION_FLAG, NULL, "do not let other profilers in CMD use CUPTI", NULL, 0, 0},
    {"max-size", 0, OPTION_TEXT, "SIZE", "drop the session's oldest records above SIZE, as 500M or 2G", NULL, 0, 0},
    {"quiet", 'q', OPTION_FLAG, NULL, "print errors only", NULL, 0, 0},
    {"pc-rate", 0, OPTION_NUMBER, "HZ", "PC samples per second and busy SM to aim at", NULL, 1, 10000000},
    {"pc-period", 0, OPTION_NUMBER, "N", "a PC sample every 2^N cycles instead, N from 5 to 31", NULL, 5, 31},
    {"pc-mode", 0, OPTION_CHOICE, "MODE", "continuous (default), or serialized: one kernel at a time", pc_modes, 0, 0},
    {"pc-share", 0, OPTION_NUMBER, "PCT", "take PC samples in so much of the time (default 10)", NULL, 1, 100},
    {"sass-metrics", 0, OPTION_TEXT, "LIST", "counts per instruction: default, all-memory or metrics", NULL, 0, 0},
    {"range-metrics", 0, OPTION_TEXT, "LIST", "sets or metrics per scope or kernel (default overview)", NULL, 0, 0},
    {"range-mode", 0, OPTION_CHOICE, "MODE", "auto (default), scope or kernel", range_modes, 0, 0},
    {"range-scopes", 0, OPTION_TEXT, "LIST", "scopes to measure (default: the outermost)", NULL, 0, 0},
    {"pm", 0, OPTION_TEXT, "LIST", "also sample these sets or metrics over time (engine Trace)", NULL, 0, 0},
    {"pm-interval", 0, OPTION_NUMBER, "US", "PM samples every so many microseconds (default 1000)", NULL, 1, 1000000},
    {"upload", 0, OPTION_TEXT, "URL", "then send the session to a server; key from GPUFL_API_KEY", NULL, 0, 0},
    {"no-disassemble", 0, OPTION_FLAG, NULL, "do not add the text of instructions at the end", NULL, 0, 0},
    {0}};
static const struct option_info disassemble_options[] = {
    {"all", 0, OPTION_FLAG, NULL, "every function, not only those with samples or counts", NULL, 0, 0},
    {"timeout-ms", 0, OPTION_NUMBER, "N", "stop after N ms for a session (default 60000)", NULL, 1, 86400000},
    {0}};
static const struct option_info upload_options[] = {
    {"url", 0, OPTION_TEXT, "URL", "the server (default: GPUFL_BACKEND_URL)", NULL, 0, 0},
    {"key-file", 0, OPTION_TEXT, "FILE", "file whose first line is the key (default: GPUFL_API_KEY)", NULL, 0, 0},
    {"api-path", 0, OPTION_TEXT, "PATH", "path on the server (default: GPUFL_API_PATH, /api/v1)", NULL, 0, 0},
    {"timeout-ms", 0, OPTION_NUMBER, "N", "stop after N ms (default 300000)", NULL, 1, 86400000},
    {"json", 0, OPTION_FLAG, NULL, "for machines", NULL, 0, 0},
    {0}};
static const struct option_info monitor_options[] = {
    {"interval", 'i', OPTION_NUMBER, "MS", "sample every MS milliseconds (default 1000)", NULL, 50, 3600000},
    {"output", 'o', OPTION_TEXT, "DIR", "where session directories go (default ./NAME)", NULL, 0, 0},
    {"name", 'n', OPTION_TEXT, "NAME", "the monitor's name in the log (default gpufl-monitor)", NULL, 0, 0},
    {"roll", 0, OPTION_CHOICE, "WHEN", "a new session daily (default), hourly or never", roll_periods, 0, 0},
    {"listen", 0, OPTION_TEXT, "ADDR", "serve /metrics here, or none (default 127.0.0.1:9400)", NULL, 0, 0},
    {"backend", 0, OPTION_CHOICE, "VENDOR", "GPUs of Auto (default: all), Nvidia, Amd or None", monitor_backends, 0, 0},
    {"dcgm-names", 0, OPTION_FLAG, NULL, "also offer the metrics under DCGM's names", NULL, 0, 0},
    {"otlp", 0, OPTION_TEXT, "URL", "send values to an OTLP/HTTP collector, like http://localhost:4318", NULL, 0, 0},
    {"upload", 0, OPTION_TEXT, "URL", "send finished sessions to a server; key from GPUFL_API_KEY", NULL, 0, 0},
    {"once", 0, OPTION_FLAG, NULL, "print one sample and end", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "with --once: for machines", NULL, 0, 0},
    {0}};
static const struct option_info agent_options[] = {
    {"root", 0, OPTION_TEXT, "DIR", "look for sessions below DIR; may be given again", NULL, 0, 0},
    {"server", 0, OPTION_TEXT, "URL", "the server (default: GPUFL_BACKEND_URL)", NULL, 0, 0},
    {"api-key-file", 0, OPTION_TEXT, "FILE", "file whose first line is the key (default: GPUFL_API_KEY)", NULL, 0, 0},
    {"api-path", 0, OPTION_TEXT, "PATH", "path on the server (default: GPUFL_API_PATH, /api/v1)", NULL, 0, 0},
    {"config", 0, OPTION_TEXT, "FILE", "these settings as JSON; the command line beats it", NULL, 0, 0},
    {"state", 0, OPTION_TEXT, "DIR", "what was sent is noted here (default ~/.local/state/gpufl/agent)", NULL, 0, 0},
    {"quarantine", 0, OPTION_TEXT, "DIR", "refused windows go here (default quarantine in --state)", NULL, 0, 0},
    {"keep", 0, OPTION_FLAG, NULL, "delete nothing (the default)", NULL, 0, 0},
    {"delete-after-ack", 0, OPTION_FLAG, NULL, "delete what the server has acknowledged", NULL, 0, 0},
    {"keep-days", 0, OPTION_NUMBER, "N", "delete acknowledged sessions after N days", NULL, 0, 36500},
    {"spool-bytes", 0, OPTION_NUMBER, "N", "delete the oldest when sessions take more than N bytes", NULL, 1, LONG_MAX},
    {"rate", 0, OPTION_NUMBER, "N", "send at most N bytes per second", NULL, 1, LONG_MAX},
    {"interval-ms", 0, OPTION_NUMBER, "N", "send what is new every N ms (default 1000)", NULL, 10, 3600000},
    {"listen", 0, OPTION_TEXT, "ADDR", "serve the agent's own /metrics and /healthz here", NULL, 0, 0},
    {"remote-config", 0, OPTION_TEXT, "NAME", "keep this configuration current (GPUFL_REMOTE_CONFIG)", NULL, 0, 0},
    {"remote-config-dir", 0, OPTION_TEXT, "DIR", "in DIR (default ~/.config/gpufl/remote)", NULL, 0, 0},
    {"once", 0, OPTION_FLAG, NULL, "send what is there, then end", NULL, 0, 0},
    {"quiet", 'q', OPTION_FLAG, NULL, "print errors only", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "with --once: for machines", NULL, 0, 0},
    {0}};
static const struct option_info serve_options[] = {
    {"listen", 0, OPTION_TEXT, "ADDR", "address and port (default 127.0.0.1:8080)", NULL, 0, 0},
    {"data", 0, OPTION_TEXT, "DIR", "where everything is kept (default ~/.local/share/gpufl/server)", NULL, 0, 0},
    {"store", 0, OPTION_TEXT, "URL", "another store than the embedded one in --data", NULL, 0, 0},
    {"tls-cert", 0, OPTION_TEXT, "FILE", "certificate (PEM): serve HTTPS", NULL, 0, 0},
    {"tls-key", 0, OPTION_TEXT, "FILE", "the certificate's key (PEM)", NULL, 0, 0},
    {"config", 0, OPTION_TEXT, "FILE", "these settings as JSON; the command line beats it", NULL, 0, 0},
    {"retention-days", 0, OPTION_NUMBER, "N", "delete sessions after N days, 0 never (default 0)", NULL, 0, 36500},
    {"retention-bytes", 0, OPTION_NUMBER, "N", "delete the oldest beyond N bytes, 0 never (default 0)", NULL, 0,
     LONG_MAX},
    {"allow-host", 0, OPTION_TEXT, "LIST", "names that browsers may know this server by", NULL, 0, 0},
    {"cors-origin", 0, OPTION_TEXT, "LIST", "sites whose pages may use this server from a browser", NULL, 0, 0},
    {"admin-key-file", 0, OPTION_TEXT, "FILE", "a key for everything (also GPUFL_SERVE_ADMIN_KEY)", NULL, 0, 0},
    {"verbose", 'v', OPTION_FLAG, NULL, "print a line for each request", NULL, 0, 0},
    {"name", 0, OPTION_TEXT, "NAME", "keys create: what the key is called", NULL, 0, 0},
    {"scope", 0, OPTION_CHOICE, "SCOPE", "keys create: what the key is for", key_scopes, 0, 0},
    {"expires-days", 0, OPTION_NUMBER, "N", "keys create, rotate: ends after N days (default never)", NULL, 1, 36500},
    {"rate", 0, OPTION_NUMBER, "N", "keys create, rotate: at most N requests per second", NULL, 1, 1000000},
    {"quota-bytes", 0, OPTION_NUMBER, "N", "keys create, rotate: at most N bytes per day", NULL, 1, LONG_MAX},
    {"grace-hours", 0, OPTION_NUMBER, "N", "keys rotate: the old key works for N hours more", NULL, 0, 8760},
    {"limit", 0, OPTION_NUMBER, "N", "audit: the newest N entries (default 100)", NULL, 1, 1000},
    {"json", 0, OPTION_FLAG, NULL, "keys, backup, check, audit: for machines", NULL, 0, 0},
    {0}};
static const struct option_info report_options[] = {
    {"json", 0, OPTION_FLAG, NULL, "for machines", NULL, 0, 0},
    {"top", 0, OPTION_NUMBER, "N", "rows per table (default 10)", NULL, 1, 100000},
    {"wide", 0, OPTION_FLAG, NULL, "do not cut names", NULL, 0, 0},
    {"code", 0, OPTION_TEXT, "FUNCTION", "one function's instructions with samples and counters", NULL, 0, 0},
    {"color", 0, OPTION_CHOICE, "WHEN", "auto, always or never (default auto)", color_modes, 0, 0},
    {"output", 'o', OPTION_TEXT, "FILE", "write to FILE instead of standard output", NULL, 0, 0},
    {0}};
static const struct option_info diff_options[] = {
    {"json", 0, OPTION_FLAG, NULL, "for machines", NULL, 0, 0},
    {"threshold", 0, OPTION_NUMBER, "PCT", "ignore changes below PCT % (default 5)", NULL, 0, 10000},
    {"allow-incomplete", 0, OPTION_FLAG, NULL, "also judge sessions that are not complete", NULL, 0, 0},
    {"allow-unrelated", 0, OPTION_FLAG, NULL, "also judge sessions with few kernels in common", NULL, 0, 0},
    {"top", 0, OPTION_NUMBER, "N", "rows per table (default 10)", NULL, 1, 100000},
    {"wide", 0, OPTION_FLAG, NULL, "do not cut names", NULL, 0, 0},
    {"color", 0, OPTION_CHOICE, "WHEN", "auto, always or never (default auto)", color_modes, 0, 0},
    {0}};
static const struct option_info export_options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", "where it goes; - is standard output; of csv also a directory", NULL, 0, 0},
    {"format", 'f', OPTION_CHOICE, "FORMAT", "the format (default: from FILE's ending)", export_format_names, 0, 0},
    {"force", 0, OPTION_FLAG, NULL, "replace FILE when it is there", NULL, 0, 0},
    {"table", 0, OPTION_TEXT, "NAME", "csv: this table only", NULL, 0, 0},
    {"scope", 0, OPTION_TEXT, "SCOPE", "only what scopes of this name or path launched", NULL, 0, 0},
    {"from", 0, OPTION_TEXT, "MS", "only what was going on later than MS after the start", NULL, 0, 0},
    {"to", 0, OPTION_TEXT, "MS", "only what began earlier than MS after the start", NULL, 0, 0},
    {"by", 0, OPTION_CHOICE, "WHAT", "pprof, speedscope, collapsed: above kernels stands scope or stack",
     export_groupings, 0, 0},
    {0}};
static const struct option_info top_options[] = {
    {"interval", 'i', OPTION_NUMBER, "MS", "look again every MS milliseconds (default 1000)", NULL, 100, 3600000},
    {"sort", 's', OPTION_CHOICE, "COLUMN", "order of processes (default memory)", top_order_names, 0, 0},
    {"once", 0, OPTION_FLAG, NULL, "print one page and end", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "the same for machines", NULL, 0, 0},
    {0}};
static const struct option_info metrics_options[] = {
    {"chip", 0, OPTION_TEXT, "CHIP", "of this chip, like GH100 (default: this machine's first GPU)", NULL, 0, 0},
    {"type", 0, OPTION_CHOICE, "TYPE", "list only metrics of this type", metric_types, 0, 0},
    {"pm", 0, OPTION_FLAG, NULL, "for PM sampling instead of the range profiler", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "for machines", NULL, 0, 0},
    {0}};
static const struct option_info demo_options[] = {
    {"once", 0, OPTION_FLAG, NULL, "end as soon as everything was seen to work", NULL, 0, 0},
    {"stay", 0, OPTION_FLAG, NULL, "run until Ctrl-C or SIGTERM even where there is no terminal", NULL, 0, 0},
    {"port", 0, OPTION_NUMBER, "N", "the server's port, 0 any (default 8080, or any when taken)", NULL, 0, 65535},
    {"no-server", 0, OPTION_FLAG, NULL, "show the report only", NULL, 0, 0},
    {0}};
static const struct option_info json_options[] = {{"json", 0, OPTION_FLAG, NULL, "for machines", NULL, 0, 0}, {0}};
static const struct option_info doctor_options[] = {
    {"calibrate", 0, OPTION_FLAG, NULL, "measure what CUPTI costs on this host, and keep it", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "print as JSON", NULL, 0, 0},
    {0}};
static const struct option_info cost_options[] = {
    {"pairs", 'n', OPTION_NUMBER, "N", "run the program N times alone and N times recorded (default 5)", NULL, 1, 100},
    {"engine", 'e', OPTION_CHOICE, "ENGINE", "record with ENGINE (default Trace)", engines, 0, 0},
    {"stacks", 0, OPTION_FLAG, NULL, "record the CPU stack of each launch", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "print as JSON", NULL, 0, 0},
    {0}};
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
         "executed, 127 when it does not exist. When DIR cannot be written the program runs all the same, unrecorded.\n\n"
         "Settings of an engine are checked before CMD starts; one that belongs to another engine than the chosen one is "
         "refused. LIST is separated by commas; `gpufl metrics sets` shows what there is.",
     .options = trace_options,
     .operand = "CMD",
     .operand_min = 1,
     .operand_max = -1,
     .stops_at_operand = true,
     .run = command_trace},
    {.name = "cost",
     .summary = "measure how much recording slows a program down",
     .usage = "-- CMD [ARG]...",
     .example = "gpufl cost --pairs 5 -- python train.py --steps 50",
     .about =
         "Runs the program alone and recorded, by turns, and compares the times from its start to its end. What the "
         "program prints to standard output is discarded. Also prints the sessions' own estimate. Exit status: that "
         "of the program when it fails.",
     .options = cost_options,
     .operand = "CMD",
     .operand_min = 1,
     .operand_max = -1,
     .stops_at_operand = true,
     .run = command_cost},
    {.name = "report",
     .summary = "where the time went in a recorded session",
     .usage = "DIR",
     .example = "gpufl report ./train",
     .about =
         "Prints time, kernels, scopes, copies, system metrics and losses of one session, and what the deep engines "
         "recorded: stalls, hot lines, counters and metrics. DIR is a session directory, or a directory of them, "
         "of which the newest is reported.\n\n"
         "--code FUNCTION prints one sampled or counted function instead; a part of its name is enough. Instructions "
         "that the log holds as raw words are shown as text where nvdisasm, or for AMD llvm-objdump, is found.",
     .options = report_options,
     .operand = "DIR",
     .operand_min = 1,
     .operand_max = 1,
     .run = command_report},
    {.name = "diff",
     .summary = "what became slower or faster between two sessions",
     .usage = "BASE NEW",
     .example = "gpufl diff ./before ./after",
     .about =
         "Compares kernels by name and scopes by path: medians of the durations, calls, and what each adds to the "
         "change. Of a directory with several sessions the newest is compared. A change counts when it is larger than the threshold and larger than the noise of both sessions.\n\n"
         "Exit status 1: there is a regression, that is a kernel or scope with at least 1 % of the time that became "
         "slower, or kernel time that grew in all by more than the threshold. 3: no session, or no verdict: kernels "
         "were not timed in one of them (engine Monitor or SassMetrics); a session is not complete; or the sessions are "
         "not comparable, because the kernels that are in both take less than 25 % of the kernel time of either.",
     .options = diff_options,
     .operand = "DIR",
     .operand_min = 2,
     .operand_max = 2,
     .run = command_diff},
    {.name = "export",
     .summary = "put a session into another tool's format",
     .usage = "DIR",
     .example = "gpufl export ./train -o train.pftrace",
     .about =
         "Writes a session (of a directory with several, the newest) as chrome (Trace Event JSON), perfetto, sqlite, csv, pprof, speedscope, collapsed (flame "
         "graphs) or otlp (OpenTelemetry's JSON lines). FILE's ending tells the format: .json, .pftrace, .sqlite, .csv, "
         ".pb.gz, .speedscope.json, .folded, .jsonl; .gz after it compresses. csv without --table fills a directory.\n\n"
         "Times are nanoseconds since 1970 unless the format has its own. What is not known is left out, never zero; "
         "what was lost is exported too. FILE appears when it is whole.\n\n"
         "Exit status 2: wrong use. 3: no session, no such scope, FILE is there already or cannot be written.",
     .options = export_options,
     .operand = "DIR",
     .operand_min = 1,
     .operand_max = 1,
     .run = command_export},
    {.name = "verify",
     .summary = "prove that a session is complete, or list every hole",
     .usage = "DIR",
     .example = "gpufl verify ./train",
     .about =
         "Checks sequence numbers, checksums, counts, dictionary references and the recorder's own loss records. Exit "
         "status 0: complete. 1: something is missing, each hole with file, line, reason and count. Of a directory with "
         "several sessions the newest is checked.",
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
    {.name = "disassemble",
     .summary = "put the text of instructions into finished sessions",
     .usage = "DIR...",
     .example = "gpufl disassemble ./train",
     .about =
         "Lets nvdisasm print the functions that were sampled or counted, and llvm-objdump the AMD kernels that ran, and "
         "adds what they printed to the session, hottest first, so that a server or another machine shows it without "
         "the vendor's tools. What the session has already is left as it is. `gpufl trace` does this by itself when the "
         "tool is found. DIR is a session directory, or a directory of sessions. A session that is still being written "
         "is refused.\n\n"
         "Exit status 1: functions were left without text, and why. 3: there is no session, no tool for its code, or it "
         "cannot be written.",
     .options = disassemble_options,
     .operand = "DIR",
     .operand_min = 1,
     .operand_max = -1,
     .run = command_disassemble},
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
    {.name = "monitor",
     .summary = "watch this machine's GPUs around the clock",
     .usage = "",
     .example = "gpufl monitor -o /var/lib/gpufl",
     .about =
         "Samples all GPUs, the processes on them and the host, without touching any program. Writes sessions that "
         "`gpufl report` reads, a new one each day, and serves the values to Prometheus at /metrics. The network it uses "
         "is what it is told to: by default it listens on the loopback and sends nothing.\n\n"
         "SIGTERM and SIGINT end the session and the program with status 0; SIGHUP starts a new session. A driver that is "
         "reloaded and a GPU that is lost are waited for; what was not sampled meanwhile is a gap in the log. "
         "A program called gpufl-monitor is the same command. Exit status 3: the directory or the address cannot be used.",
     .options = monitor_options,
     .run = command_monitor},
    {.name = "agent",
     .summary = "send sessions to a server while they are written",
     .usage = "",
     .example = "gpufl agent --root /var/log/gpufl --server https://gpufl.example.com",
     .about =
         "Finds session directories, follows their files line by line, and sends what is new, compressed and in order. "
         "What the server acknowledged is noted in --state, so that after a crash at any moment it goes on exactly "
         "there; a window that was on its way is sent again under the same name, which the server counts once. What the "
         "server refuses for good is put into --quarantine, with the reason.\n\n"
         "SIGTERM and SIGINT end it with status 0. A program called gpufl-agent is the same command. With --once: exit "
         "status 1 when something could not be sent, 3 when the server cannot be reached or refuses the key.",
     .options = agent_options,
     .run = command_agent},
    {.name = "serve",
     .summary = "keep sessions of many machines, and answer questions about them",
     .usage = "[keys create|list|rotate KEY|revoke KEY | backup FILE | check | audit]",
     .example = "gpufl serve --data ./sessions",
     .about =
         "Takes sessions from `gpufl upload`, `gpufl agent` and GPUFlight's own agents, keeps them in one directory, and "
         "answers over HTTP. Ends on SIGTERM or SIGINT when what is under way is finished.\n\n"
         "On this machine alone no key is needed until one exists. An address that others can reach needs one for "
         "everything but /healthz and /readyz: without any the server does not start.\n\n"
         "keys create prints a new key, once; only its fingerprint is kept. KEY is a key's id, prefix or name. audit "
         "lists who changed what, and keys that were refused, newest first. keys, backup, check and audit work beside a "
         "running server and without one. Exit status 1: check found damage.",
     .options = serve_options,
     .operand = "ACTION",
     .operand_max = 3,
     .run = command_serve},
    {.name = "top",
     .summary = "this machine's GPUs and the programs on them, live",
     .usage = "",
     .example = "gpufl top",
     .about =
         "Shows each GPU's use, memory, power, temperature and clock, and the processes on it. Of programs that gpufl "
         "traces also the kernels per second and the kernel that takes most time, read from the log that they are "
         "writing.\n\n"
         "Keys: q quits; m, k, p, n and g sort by memory, kernels per second, pid, name and GPU. Where standard output "
         "is no terminal one page is printed, as with --once. NO_COLOR is respected.",
     .options = top_options,
     .run = command_top},
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
         "needs attention.\n\n"
         "--calibrate measures what CUPTI's record of a kernel costs on this host: it launches small kernels alone and "
         "traced, by turns, for some seconds, and keeps the result in ~/.cache/gpufl/calibration.json "
         "(GPUFL_CALIBRATION_FILE). Reports use it to estimate how much recording slowed a program down.",
     .options = doctor_options,
     .run = command_doctor},
    {.name = "demo",
     .summary = "show a report and a server: live with a GPU, else of a recorded session",
     .usage = "",
     .example = "gpufl demo",
     .about =
         "With a GPU, traces the shipped example program and reports it. Without one, reports a session recorded on an "
         "NVIDIA H200 and says so on the first line.\n\n"
         "Then starts `gpufl serve` on the loopback, sends the sessions there with `gpufl agent` and this host's metrics "
         "with `gpufl monitor`, asks the server for them, prints its address and waits for Ctrl-C. Everything is in one "
         "temporary directory, which is removed at the end. Without a terminal, or with CI set, it ends as soon as "
         "everything was seen to work. Exit status 3: something did not.",
     .options = demo_options,
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
    for (const struct command *command = command_table; command->name; command++)
        names[count++] = command->name;
    names[count] = NULL;
    return names;
}
