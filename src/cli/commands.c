/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/top.h"
#include "export/export.h"

#include <limits.h>

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
    {"engine", 'e', OPTION_CHOICE, "ENGINE", "record with ENGINE (default Trace)", engines, 0, 0},
    {"name", 'n', OPTION_TEXT, "NAME", "name of the program in the log (default: from CMD)", NULL, 0, 0},
    {"output", 'o', OPTION_TEXT, "DIR", "write session directories to DIR (default ./NAME)", NULL, 0, 0},
    {"stacks", 0, OPTION_FLAG, NULL, "record the CPU stack of each launch and wait", NULL, 0, 0},
    {"memory", 0, OPTION_FLAG, NULL, "record device memory allocations", NULL, 0, 0},
    {"graphs", 0, OPTION_FLAG, NULL, "record CUDA graph launches", NULL, 0, 0},
    {"sample-ms", 0, OPTION_NUMBER, "N", "sample GPU and host metrics every N ms, 0 never (default 100)", NULL, 0,
     3600000},
    {"no-sync", 0, OPTION_FLAG, NULL, "do not record host waits", NULL, 0, 0},
    {"exclusive", 0, OPTION_FLAG, NULL, "keep other profilers in CMD from using CUPTI", NULL, 0, 0},
    {"max-size", 0, OPTION_TEXT, "SIZE", "limit the session to SIZE (500M, 2G): drop the oldest records", NULL, 0, 0},
    {"quiet", 'q', OPTION_FLAG, NULL, "print errors only", NULL, 0, 0},
    {"pc-rate", 0, OPTION_NUMBER, "HZ", "target number of PC samples per second and busy SM", NULL, 1, 10000000},
    {"pc-period", 0, OPTION_NUMBER, "N", "take a PC sample every 2^N cycles instead (5 to 31)", NULL, 5, 31},
    {"pc-mode", 0, OPTION_CHOICE, "MODE", "continuous (default), or serialized: run one kernel at a time", pc_modes, 0,
     0},
    {"pc-share", 0, OPTION_NUMBER, "PCT", "sample during PCT % of the run (default 10)", NULL, 1, 100},
    {"sass-metrics", 0, OPTION_TEXT, "LIST", "count per instruction: default, all-memory or metric names", NULL, 0, 0},
    {"range-metrics", 0, OPTION_METRICS, "LIST", "measure sets or metrics per scope or kernel (default overview)", NULL,
     0, 0},
    {"range-mode", 0, OPTION_CHOICE, "MODE", "measure per scope or per kernel (default auto)", range_modes, 0, 0},
    {"range-scopes", 0, OPTION_TEXT, "LIST", "measure these scopes (default: the outermost)", NULL, 0, 0},
    {"pm", 0, OPTION_PM_METRICS, "LIST", "also sample these sets or metrics over time (engine Trace)", NULL, 0, 0},
    {"pm-interval", 0, OPTION_NUMBER, "US", "take a PM sample every US microseconds (default 1000)", NULL, 1, 1000000},
    {"upload", 0, OPTION_TEXT, "URL", "then send the session to a server (key: GPUFL_API_KEY)", NULL, 0, 0},
    {"view", 0, OPTION_FLAG, NULL, "then show the session in a browser, as `gpufl view` does", NULL, 0, 0},
    {"no-disassemble", 0, OPTION_FLAG, NULL, "do not disassemble kernels at the end", NULL, 0, 0},
    {0}};
static const struct option_info view_options[] = {
    {"no-browser", 0, OPTION_FLAG, NULL, "print the URL only, start no browser", NULL, 0, 0},
    {"port", 0, OPTION_NUMBER, "N", "listen on this port (default: any free one)", NULL, 1, 65535},
    {0}};
static const struct option_info disassemble_options[] = {
    {"all", 0, OPTION_FLAG, NULL, "disassemble all functions, not only those with samples or counts", NULL, 0, 0},
    {"timeout-ms", 0, OPTION_NUMBER, "N", "spend at most N ms on each session (default 60000)", NULL, 1, 86400000},
    {0}};
static const struct option_info upload_options[] = {
    {"server", 0, OPTION_TEXT, "URL", "server address (default: GPUFL_BACKEND_URL)", NULL, 0, 0},
    {"key-file", 0, OPTION_TEXT, "FILE", "read the API key from the first line of FILE (default: GPUFL_API_KEY)", NULL,
     0, 0},
    {"api-path", 0, OPTION_TEXT, "PATH", "path of the API on the server (default: GPUFL_API_PATH, /api/v1)", NULL, 0,
     0},
    {"timeout-ms", 0, OPTION_NUMBER, "N", "stop after N ms (default 300000)", NULL, 1, 86400000},
    {"json", 0, OPTION_FLAG, NULL, "print as JSON", NULL, 0, 0},
    {0}};
static const struct option_info monitor_options[] = {
    {"interval", 'i', OPTION_NUMBER, "MS", "sample every MS milliseconds (default 1000)", NULL, 50, 3600000},
    {"output", 'o', OPTION_TEXT, "DIR", "write session directories to DIR (default ./NAME)", NULL, 0, 0},
    {"name", 'n', OPTION_TEXT, "NAME", "name of the monitor in the log (default gpufl-monitor)", NULL, 0, 0},
    {"roll", 0, OPTION_CHOICE, "WHEN", "start a new session daily (default), hourly or never", roll_periods, 0, 0},
    {"listen", 0, OPTION_TEXT, "ADDR", "serve /metrics at ADDR, or none (default 127.0.0.1:9400)", NULL, 0, 0},
    {"backend", 0, OPTION_CHOICE, "VENDOR", "monitor GPUs of Nvidia, Amd, None or Auto (default: all)",
     monitor_backends, 0, 0},
    {"dcgm-names", 0, OPTION_FLAG, NULL, "also export the metrics under DCGM's names", NULL, 0, 0},
    {"otlp", 0, OPTION_TEXT, "URL", "send metrics to an OTLP/HTTP collector (http://localhost:4318)", NULL, 0, 0},
    {"upload", 0, OPTION_TEXT, "URL", "send finished sessions to a server (key: GPUFL_API_KEY)", NULL, 0, 0},
    {"once", 0, OPTION_FLAG, NULL, "print one sample and exit", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "with --once: print as JSON", NULL, 0, 0},
    {0}};
static const struct option_info agent_options[] = {
    {"root", 0, OPTION_TEXT, "DIR", "send the sessions below DIR (repeatable)", NULL, 0, 0},
    {"server", 0, OPTION_TEXT, "URL", "server address (default: GPUFL_BACKEND_URL)", NULL, 0, 0},
    {"key-file", 0, OPTION_TEXT, "FILE", "read the API key from the first line of FILE (default: GPUFL_API_KEY)", NULL,
     0, 0},
    {"api-path", 0, OPTION_TEXT, "PATH", "path of the API on the server (default: GPUFL_API_PATH, /api/v1)", NULL, 0,
     0},
    {"config", 0, OPTION_TEXT, "FILE", "read settings from a JSON file; options override it", NULL, 0, 0},
    {"state", 0, OPTION_TEXT, "DIR", "keep upload progress in DIR (default ~/.local/state/gpufl/agent)", NULL, 0, 0},
    {"quarantine", 0, OPTION_TEXT, "DIR", "move rejected data to DIR (default STATE/quarantine)", NULL, 0, 0},
    {"keep", 0, OPTION_FLAG, NULL, "never delete sessions (default)", NULL, 0, 0},
    {"delete-after-ack", 0, OPTION_FLAG, NULL, "delete files that the server has acknowledged", NULL, 0, 0},
    {"keep-days", 0, OPTION_NUMBER, "N", "delete acknowledged sessions after N days", NULL, 0, 36500},
    {"spool-bytes", 0, OPTION_NUMBER, "N", "delete the oldest sessions above N bytes in all", NULL, 1, LONG_MAX},
    {"rate", 0, OPTION_NUMBER, "N", "send at most N bytes per second", NULL, 1, LONG_MAX},
    {"interval", 'i', OPTION_NUMBER, "MS", "send new records every MS milliseconds (default 1000)", NULL, 10, 3600000},
    {"listen", 0, OPTION_TEXT, "ADDR", "serve the agent's /metrics and /healthz at ADDR", NULL, 0, 0},
    {"remote-config", 0, OPTION_TEXT, "NAME", "download configuration NAME from the server (GPUFL_REMOTE_CONFIG)", NULL,
     0, 0},
    {"remote-config-dir", 0, OPTION_TEXT, "DIR", "save it in DIR (default ~/.config/gpufl/remote)", NULL, 0, 0},
    {"once", 0, OPTION_FLAG, NULL, "send what is there, then exit", NULL, 0, 0},
    {"quiet", 'q', OPTION_FLAG, NULL, "print errors only", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "with --once: print as JSON", NULL, 0, 0},
    {0}};
static const struct option_info serve_options[] = {
    {"listen", 0, OPTION_TEXT, "ADDR", "listen on this address and port (default 127.0.0.1:8080)", NULL, 0, 0},
    {"data", 0, OPTION_TEXT, "DIR", "data directory (default ~/.local/share/gpufl/server)", NULL, 0, 0},
    {"store", 0, OPTION_TEXT, "URL", "use this store instead of the embedded one in --data", NULL, 0, 0},
    {"tls-cert", 0, OPTION_TEXT, "FILE", "serve HTTPS with this certificate (PEM)", NULL, 0, 0},
    {"tls-key", 0, OPTION_TEXT, "FILE", "private key of the certificate (PEM)", NULL, 0, 0},
    {"config", 0, OPTION_TEXT, "FILE", "read settings from a JSON file; options override it", NULL, 0, 0},
    {"retention-days", 0, OPTION_NUMBER, "N", "delete sessions after N days, 0 never (default 0)", NULL, 0, 36500},
    {"retention-bytes", 0, OPTION_NUMBER, "N", "delete the oldest sessions above N bytes, 0 never (default 0)", NULL, 0,
     LONG_MAX},
    {"allow-host", 0, OPTION_TEXT, "LIST", "accept these host names in requests from browsers", NULL, 0, 0},
    {"cors-origin", 0, OPTION_TEXT, "LIST", "allow pages of these origins to use the API (CORS)", NULL, 0, 0},
    {"admin-key-file", 0, OPTION_TEXT, "FILE", "read the admin key from FILE (also GPUFL_SERVE_ADMIN_KEY)", NULL, 0, 0},
    {"verbose", 'v', OPTION_FLAG, NULL, "print a line for each request", NULL, 0, 0},
    {"name", 0, OPTION_TEXT, "NAME", "keys create: name of the key", NULL, 0, 0},
    {"scope", 0, OPTION_CHOICE, "SCOPE", "keys create: permission of the key", key_scopes, 0, 0},
    {"expires-days", 0, OPTION_NUMBER, "N", "keys create, rotate: expire after N days (default never)", NULL, 1, 36500},
    {"rate", 0, OPTION_NUMBER, "N", "keys create, rotate: allow N requests per second", NULL, 1, 1000000},
    {"quota-bytes", 0, OPTION_NUMBER, "N", "keys create, rotate: allow N bytes per day", NULL, 1, LONG_MAX},
    {"grace-hours", 0, OPTION_NUMBER, "N", "keys rotate: accept the old key for N more hours", NULL, 0, 8760},
    {"limit", 0, OPTION_NUMBER, "N", "audit: print the newest N entries (default 100)", NULL, 1, 1000},
    {"json", 0, OPTION_FLAG, NULL, "keys, backup, check, audit: print as JSON", NULL, 0, 0},
    {0}};
static const struct option_info report_options[] = {
    {"html", 0, OPTION_TEXT, "FILE", "write one self-contained HTML file with a timeline", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "print as JSON", NULL, 0, 0},
    {"top", 0, OPTION_NUMBER, "N", "print N rows per table (default 10)", NULL, 1, 100000},
    {"wide", 0, OPTION_FLAG, NULL, "print names in full", NULL, 0, 0},
    {"code", 0, OPTION_TEXT, "FUNCTION", "print a function's instructions with samples and counters", NULL, 0, 0},
    {"color", 0, OPTION_CHOICE, "WHEN", "use colour auto, always or never (default auto)", color_modes, 0, 0},
    {"output", 'o', OPTION_TEXT, "FILE", "write to FILE instead of standard output", NULL, 0, 0},
    {0}};
static const struct option_info diff_options[] = {
    {"json", 0, OPTION_FLAG, NULL, "print as JSON", NULL, 0, 0},
    {"threshold", 0, OPTION_NUMBER, "PCT", "ignore changes below PCT % (default 5)", NULL, 0, 10000},
    {"allow-incomplete", 0, OPTION_FLAG, NULL, "also compare incomplete sessions", NULL, 0, 0},
    {"allow-unrelated", 0, OPTION_FLAG, NULL, "also compare sessions with few kernels in common", NULL, 0, 0},
    {"top", 0, OPTION_NUMBER, "N", "print N rows per table (default 10)", NULL, 1, 100000},
    {"wide", 0, OPTION_FLAG, NULL, "print names in full", NULL, 0, 0},
    {"color", 0, OPTION_CHOICE, "WHEN", "use colour auto, always or never (default auto)", color_modes, 0, 0},
    {0}};
static const struct option_info export_options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", "write to FILE (- for standard output; csv: a directory)", NULL, 0, 0},
    {"format", 'f', OPTION_CHOICE, "FORMAT", "output format (default: from the extension of FILE)", export_format_names,
     0, 0},
    {"force", 0, OPTION_FLAG, NULL, "overwrite FILE", NULL, 0, 0},
    {"table", 0, OPTION_TEXT, "NAME", "csv: export this table only", NULL, 0, 0},
    {"scope", 0, OPTION_TEXT, "SCOPE", "export only work launched in scopes of this name or path", NULL, 0, 0},
    {"from", 0, OPTION_TEXT, "MS", "export only work that ends after MS milliseconds", NULL, 0, 0},
    {"to", 0, OPTION_TEXT, "MS", "export only work that starts before MS milliseconds", NULL, 0, 0},
    {"by", 0, OPTION_CHOICE, "WHAT", "pprof, speedscope, collapsed: group kernels by scope or call stack",
     export_groupings, 0, 0},
    {0}};
static const struct option_info top_options[] = {
    {"interval", 'i', OPTION_NUMBER, "MS", "refresh every MS milliseconds (default 1000)", NULL, 100, 3600000},
    {"sort", 's', OPTION_CHOICE, "COLUMN", "sort processes by COLUMN (default memory)", top_order_names, 0, 0},
    {"once", 0, OPTION_FLAG, NULL, "print one page and exit", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "print one page as JSON and exit", NULL, 0, 0},
    {0}};
static const struct option_info metrics_options[] = {
    {"chip", 0, OPTION_CHIP, "CHIP", "show metrics of CHIP, such as GH100 (default: the first GPU)", NULL, 0, 0},
    {"type", 0, OPTION_CHOICE, "TYPE", "list only metrics of this type", metric_types, 0, 0},
    {"pm", 0, OPTION_FLAG, NULL, "show metrics for PM sampling, not for the range profiler", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "print as JSON", NULL, 0, 0},
    {0}};
static const struct option_info demo_options[] = {
    {"once", 0, OPTION_FLAG, NULL, "exit after checking that everything works", NULL, 0, 0},
    {"stay", 0, OPTION_FLAG, NULL, "run until Ctrl-C or SIGTERM even without a terminal", NULL, 0, 0},
    {"port", 0, OPTION_NUMBER, "N", "port of the server, 0 for any (default 8080, or any if in use)", NULL, 0, 65535},
    {"no-server", 0, OPTION_FLAG, NULL, "print the report only", NULL, 0, 0},
    {0}};
static const struct option_info json_options[] = {{"json", 0, OPTION_FLAG, NULL, "print as JSON", NULL, 0, 0}, {0}};
static const struct option_info doctor_options[] = {
    {"calibrate", 0, OPTION_FLAG, NULL, "measure CUPTI's overhead on this host and save it", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "print as JSON", NULL, 0, 0},
    {0}};
static const struct option_info cost_options[] = {
    {"pairs", 0, OPTION_NUMBER, "N", "run the program N times without and N times with recording (default 5)", NULL, 1,
     100},
    {"engine", 'e', OPTION_CHOICE, "ENGINE", "record with ENGINE (default Trace)", engines, 0, 0},
    {"stacks", 0, OPTION_FLAG, NULL, "record the CPU stack of each launch", NULL, 0, 0},
    {"json", 0, OPTION_FLAG, NULL, "print as JSON", NULL, 0, 0},
    {0}};
static const struct option_info no_options[] = {{0}};

const struct command command_table[] = {
    {.name = "trace",
     .summary = "run a program and record its GPU work",
     .usage = "-- CMD...",
     .example = "gpufl trace -- python train.py",
     .about =
         "Runs CMD unchanged, with the recorder loaded into it and into every program that it starts. CMD keeps "
         "standard input, standard output and the terminal. When CMD ends, gpufl prints one line to standard error.\n\n"
         "The exit status is CMD's: 128 plus the signal number if a signal ended it, 126 if it cannot be executed, "
         "127 if it does not exist. If DIR cannot be written, CMD runs without being recorded.\n\n"
         "Engine settings are checked before CMD starts; a setting of another engine is an error. LIST is separated "
         "by commas; `gpufl metrics sets` prints the available sets.",
     .options = trace_options,
     .operand = "CMD",
     .operand_min = 1,
     .operand_max = -1,
     .stops_at_operand = true,
     .run = command_trace},
    {.name = "cost",
     .summary = "measure how much recording slows a program down",
     .usage = "-- CMD [ARG]...",
     .example = "gpufl cost -- python train.py",
     .about = "Runs the program alternately with and without recording and compares the run times. Standard output of "
              "the program is discarded. Also prints the slowdown that the sessions estimate. Exit status: that of the "
              "program if it fails.",
     .options = cost_options,
     .operand = "CMD",
     .operand_min = 1,
     .operand_max = -1,
     .stops_at_operand = true,
     .run = command_cost},
    {.name = "ls",
     .summary = "list recorded sessions, newest first",
     .usage = "[DIR]",
     .example = "gpufl ls",
     .about =
         "Lists the sessions in DIR and in its subdirectories, newest first; without DIR those below the working "
         "directory and in GPUFL_LOG_DIR. Prints name, start, program, engine, duration, number of kernels, state and "
         "size.\n\n"
         "State is what the session's last record says: complete; N lost (records the recorder counted as lost); "
         "running; cut off (the program was killed before it could close the session); closed (GPUFlight's, which does not count losses); "
         "unreadable. `gpufl verify` checks every line.\n\n"
         "Commands that take a SESSION accept a name such as train-3; a program's name (its newest session); the start of one "
         "session's name or id; latest or latest~N (the Nth before it); a directory (its newest session); DIR/NAME; or "
         "nothing, which means the last session recorded here.",
     .options = json_options,
     .operand = "DIR",
     .operand_max = 1,
     .run = command_ls},
    {.name = "report",
     .summary = "print where the time went in a session",
     .usage = "[SESSION]",
     .example = "gpufl report train-3",
     .about =
         "Prints time, kernels, scopes, copies, system metrics and losses of one session, and what the deep engines "
         "recorded: stalls, hot lines, counters and metrics. Without SESSION, reports the last session recorded "
         "here; `gpufl ls` lists sessions and says what SESSION can be.\n\n"
         "--html writes the same as one HTML file that loads nothing, with a zoomable timeline, and 50 rows per table; an "
         "existing file is replaced, - is standard output. "
         "--code FUNCTION prints one sampled or counted function instead; a part of its name is enough. "
         "Instructions are disassembled if nvdisasm (for AMD: llvm-objdump) is found, or else shown as raw words.",
     .options = report_options,
     .operand = "SESSION",
     .operand_max = 1,
     .run = command_report},
    {.name = "view",
     .summary = "show a session in the browser",
     .usage = "[SESSION]",
     .example = "gpufl view train-3",
     .about =
         "Serves one session on a free port of the loopback, prints the URL of its page, and opens a browser: the first "
         "program of BROWSER, or xdg-open on a graphical desktop. Ctrl-C ends it with status 0. Without SESSION, "
         "shows the last session recorded here.\n\n"
         "The session is only read. What is needed to answer the dashboard is kept in a directory below TMPDIR, which is "
         "removed at the end. Nothing can be uploaded to this server, changed or deleted, and no key is needed: every user "
         "of this machine can open the URL while the command runs.\n\n"
         "Exit status 3: there is no session, or no server in this installation; "
         "`gpufl report --html FILE` needs none.",
     .options = view_options,
     .operand = "SESSION",
     .operand_max = 1,
     .run = command_view},
    {.name = "diff",
     .summary = "compare two sessions: what became slower or faster",
     .usage = "[[BASE] NEW]",
     .example = "gpufl diff train-2 train-3",
     .about =
         "Compares kernels by name and scopes by path: the medians of their durations, their calls, and their part "
         "in the change. Without BASE, compares NEW with the previous session of the same program in its "
         "directory; without NEW, the last session recorded here. `gpufl ls` says how sessions are named. A change counts if it exceeds both "
         "the threshold and the noise of the two sessions.\n\n"
         "Exit status 1: regression: a kernel or scope with at least 1 % of the time became slower, or total kernel "
         "time grew by more than the threshold. 3: no session, or no verdict: kernels were not timed in one of the "
         "sessions (engine Monitor or SassMetrics), a session is incomplete, or the sessions are not comparable "
         "because the kernels in both take less than 25 % of the kernel time of either.",
     .options = diff_options,
     .operand = "SESSION",
     .operand_max = 2,
     .run = command_diff},
    {.name = "export",
     .summary = "convert a session to another tool's format",
     .usage = "[SESSION]",
     .example = "gpufl export train-3 -o train.pftrace",
     .about = "Writes a session (default: the last one recorded here) as chrome (Trace Event JSON), perfetto, sqlite, "
              "csv, pprof, speedscope, collapsed (flame graphs) or otlp (OpenTelemetry JSON lines). The extension of "
              "FILE selects the format: .json, .pftrace, .sqlite, .csv, .pb.gz, .speedscope.json, .folded, .jsonl; a "
              "further .gz compresses. csv without --table fills a directory.\n\n"
              "Times are nanoseconds since 1970 unless the format defines otherwise. Unknown values are omitted, never "
              "zero; losses are exported too. FILE is written atomically.\n\n"
              "Exit status 2: wrong usage. 3: no session, no such scope, FILE exists or cannot be written.",
     .options = export_options,
     .operand = "SESSION",
     .operand_max = 1,
     .run = command_export},
    {.name = "mcp",
     .summary = "let a coding assistant read sessions (MCP server)",
     .usage = "[DIR]",
     .example = "claude mcp add gpufl -- gpufl mcp",
     .about =
         "Runs a read-only Model Context Protocol server on standard input and output. A coding assistant starts it and "
         "asks it about the sessions in DIR (default: the working directory): their list, a summary, insights, kernels, "
         "scopes, stalls, hot lines, instructions, hardware metrics, slices of the timeline, and what changed between "
         "two sessions.\n\n"
         "It reads nothing outside of DIR, follows no symbolic links below it, writes nothing, starts no program and "
         "uses no network. docs/mcp.md shows the configuration of common assistants. Ends when standard input ends. "
         "Exit status 3: DIR cannot be read.",
     .options = no_options,
     .operand = "DIR",
     .operand_max = 1,
     .run = command_mcp},
    {.name = "verify",
     .summary = "check that a session is complete, or list what is missing",
     .usage = "[SESSION]",
     .example = "gpufl verify train-3",
     .about =
         "Checks sequence numbers, checksums, counts, dictionary references and the recorder's loss records. "
         "Without SESSION, checks the last session recorded here. Exit status 0: complete. 1: data is missing; each gap is "
         "listed with file, line, reason and count.",
     .options = json_options,
     .operand = "SESSION",
     .operand_max = 1,
     .run = command_verify},
    {.name = "seal",
     .summary = "compress finished sessions",
     .usage = "[SESSION]",
     .example = "gpufl seal ./train",
     .about =
         "Rewrites the plain log files of a session as compressed segments with checksums. A session that is still "
         "being written is skipped. SESSION is one session (default: the last one recorded here), or a directory, whose "
         "sessions are all sealed.",
     .options = no_options,
     .operand = "SESSION",
     .operand_max = 1,
     .run = command_seal},
    {.name = "disassemble",
     .summary = "disassemble the kernels of finished sessions",
     .usage = "[SESSION]...",
     .example = "gpufl disassemble ./train",
     .about = "Runs nvdisasm on the functions that were sampled or counted, and llvm-objdump on AMD kernels that ran, "
              "and adds the listings to the session, hottest first, so that a server or another machine can show them "
              "without the vendor's tools. Existing listings are kept. `gpufl trace` does this at the end of a run if "
              "the tool is found. SESSION is one session (default: the last one recorded here), or a directory of "
              "sessions. A session that is still being "
              "written is refused.\n\n"
              "Exit status 1: some functions could not be disassembled; the reason is printed. 3: no session, no "
              "disassembler for its code, or the session cannot be written.",
     .options = disassemble_options,
     .operand = "SESSION",
     .operand_max = -1,
     .run = command_disassemble},
    {.name = "upload",
     .summary = "send finished sessions to a server",
     .usage = "[SESSION]",
     .example = "gpufl upload --server https://gpufl.example.com",
     .about =
         "Sends one session (default: the last one recorded here), or every finished session of a directory, and waits for the server. What the server acknowledged "
         "is noted beside the session, so that a second run sends only the rest. The log files do not change.\n\n"
         "Exit status 0: the server has everything. 1: something was not sent; the reason is printed. 3: no "
         "session, no server, or no permission.",
     .options = upload_options,
     .operand = "SESSION",
     .operand_max = 1,
     .run = command_upload},
    {.name = "monitor",
     .summary = "monitor this machine's GPUs",
     .usage = "",
     .example = "gpufl monitor -o /var/lib/gpufl",
     .about =
         "Samples all GPUs, the processes on them and the host, without touching any program. Writes sessions that "
         "`gpufl report` reads, a new one each day, and serves the values to Prometheus at /metrics. By default it "
         "listens on the loopback interface only and sends nothing.\n\n"
         "SIGTERM and SIGINT end the session and the program with status 0; SIGHUP starts a new session. If the "
         "driver is reloaded or a GPU is lost, the monitor waits for it and records the gap. A program called "
         "gpufl-monitor is the same command. Exit status 3: the directory or the address cannot be used.",
     .options = monitor_options,
     .run = command_monitor},
    {.name = "agent",
     .summary = "send sessions to a server while they are written",
     .usage = "",
     .example = "gpufl agent --root . --server https://gpufl.example.com",
     .about = "Finds session directories, follows their files line by line, and sends new records, compressed and in "
              "order. Progress is saved in --state, so that the agent continues exactly where it stopped, even after a "
              "crash; data that was in flight is sent again under the same name and counted once by the server. Data "
              "that the server rejects permanently is moved to --quarantine with the reason.\n\n"
              "SIGTERM and SIGINT end it with status 0. A program called gpufl-agent is the same command. With --once: "
              "exit status 1 if something could not be sent, 3 if the server cannot be reached or rejects the key.",
     .options = agent_options,
     .run = command_agent},
    {.name = "serve",
     .summary = "run the server and dashboard",
     .usage = "[keys create|list|rotate KEY|revoke KEY | backup FILE | check | audit]",
     .example = "gpufl serve --data ./sessions",
     .about =
         "Receives sessions from `gpufl upload`, `gpufl agent` and GPUFlight agents, stores them in one directory, "
         "and serves the dashboard and the HTTP API. On SIGTERM or SIGINT it finishes the requests in progress and "
         "exits.\n\n"
         "On the loopback interface no key is needed until one exists. On any other address a key is required for "
         "everything but /healthz and /readyz; without a key the server does not start.\n\n"
         "keys create prints a new key once; only its fingerprint is stored. KEY is a key's id, prefix or name. "
         "audit lists changes and rejected keys, newest first. keys, backup, check and audit work with and without "
         "a running server. Exit status 1: check found damage.",
     .options = serve_options,
     .operand = "ACTION",
     .operand_max = 3,
     .run = command_serve},
    {.name = "top",
     .summary = "show GPUs and the programs on them, live",
     .usage = "",
     .example = "gpufl top",
     .about =
         "Shows each GPU's utilization, memory, power, temperature and clock, and the processes on it. For programs "
         "that gpufl traces, also shows kernels per second and the kernel that takes most time.\n\n"
         "Keys: q quits; m, k, p, n and g sort by memory, kernels per second, pid, name and GPU. If standard output "
         "is not a terminal, one page is printed, as with --once. NO_COLOR is respected.",
     .options = top_options,
     .run = command_top},
    {.name = "metrics",
     .summary = "list hardware metrics and how many passes they need",
     .usage = "chips|list [FILTER]|show NAME|passes NAME...|sets",
     .example = "gpufl metrics list --chip GH100 dram",
     .about =
         "Lists metrics from CUPTI; no GPU is needed. chips: print the known chips. list: print the metrics of a "
         "chip, or those whose name contains FILTER (or matches it, with * and ?). show: describe a metric and its "
         "suffixes. passes: print how often a kernel must run to collect these metrics or sets, each and together. "
         "sets: print gpufl's metric sets; with --chip also their passes.\n\n"
         "A full name has a suffix, such as sm__throughput.avg.pct_of_peak_sustained_elapsed. Exit status 1: no "
         "metric matches. 2: unknown name; the nearest one is printed. 3: CUPTI is unavailable.",
     .options = metrics_options,
     .operand = "ACTION",
     .operand_min = 1,
     .operand_max = -1,
     .run = command_metrics},
    {.name = "info",
     .summary = "print GPUs, driver and library versions",
     .usage = "",
     .example = "gpufl info",
     .about = "Prints each GPU with its limits, and the driver, CUDA and CUPTI versions that gpufl uses.",
     .options = json_options,
     .run = command_info},
    {.name = "doctor",
     .summary = "check what can be recorded here, and why not",
     .usage = "",
     .example = "gpufl doctor",
     .about = "Tries what each engine needs and prints, for each failure, the reason and how to fix it. Exit status 1: "
              "something needs attention.\n\n"
              "--calibrate measures how long CUPTI takes to record a kernel on this host: it launches small kernels "
              "alternately with and without tracing for some seconds, and saves the result in "
              "~/.cache/gpufl/calibration.json (GPUFL_CALIBRATION_FILE). Reports use it to estimate how much recording "
              "slowed a program down.",
     .options = doctor_options,
     .run = command_doctor},
    {.name = "demo",
     .summary = "show a report and the dashboard, live or of a recorded session",
     .usage = "",
     .example = "gpufl demo",
     .about =
         "With a GPU, traces the shipped example program and reports it. Without one, reports a session recorded on "
         "an NVIDIA H200 and says so on the first line. If the live trace fails, it says so and reports that session too.\n\n"
         "Then starts `gpufl serve` on the loopback interface, sends the sessions there with `gpufl agent` and this "
         "host's metrics with `gpufl monitor`, checks that they arrived, prints the address and waits for Ctrl-C. "
         "All files are in one temporary directory, which is removed at the end. Without a terminal, or with CI "
         "set, it exits after the check. Exit status 3: something failed.",
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
     .about =
         "Prints a script that completes commands, options, engines, sessions, metrics and chips, for bash, zsh or fish.",
     .options = no_options,
     .operand = "SHELL",
     .operand_min = 1,
     .operand_max = 1,
     .run = command_completion},
    {.name = "man",
     .summary = "show a manual page",
     .usage = "[COMMAND]",
     .example = "gpufl man trace",
     .about =
         "Shows the manual page of COMMAND, or of gpufl, in a pager: `man` formats it and starts MANPAGER, PAGER or "
         "less. Prints roff source if standard output is not a terminal.",
     .options = no_options,
     .operand = "COMMAND",
     .operand_max = 1,
     .run = command_man},
    {0}};
