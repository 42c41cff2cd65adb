# SPDX-License-Identifier: Apache-2.0
"""What test_command_outputs.py runs: for every command, its help, its usual answers, and what it says when something is
wrong. A command without an entry here fails the test."""
from dataclasses import dataclass, field

TERMINALS = ("60", "80", "200")
ALL = TERMINALS + ("piped", "no_color")
NARROW = ("60", "80", "piped")
ONCE = ("80",)
# Each is a word for a session, relative to the working directory: missing, empty, damaged, of a newer format, without end.
BAD_SESSIONS = ("nowhere", "../empty_dir", "../no_kernels", "../damaged", "../newer", "../killed")


@dataclass
class Case:
    words: str  # what follows `gpufl`, split at spaces
    modes: tuple = ALL
    stop_at: str = ""  # when this is printed, Ctrl-C follows
    is_loose: bool = False  # numbers and spacing differ from run to run
    is_exempt: bool = False  # lines that a program reads are not wrapped
    program: str = field(default="")  # what follows `--`


def help_of(command):
    return [Case(f"{command} --help")]


def wrong(command, option="--jsn", extra="a b c"):
    cases = [Case(f"{command} {option}", NARROW), Case(f"{command} -Z", ONCE)]
    return cases + ([Case(f"{command} {extra}", NARROW)] if extra else [])


def of_sessions(command, sessions=BAD_SESSIONS, options="", **more):
    return [Case(f"{command} {session}{options}", NARROW, **more) for session in sessions]


CASES = {
    "help": [Case("help"), Case(""), Case("trce", NARROW), Case("zzzz", NARROW), Case("help nothing", NARROW),
             Case("record --help", ONCE), Case("--version", ONCE), Case("help ls extra", ONCE)],
    "trace": help_of("trace") + wrong("trace", "--engin", "") + [
        Case("trace", NARROW),
        Case("trace -n again", NARROW, program="fake_app --launches 20"),
        Case("trace -n again -q", ONCE, program="fake_app --launches 20"),
        Case("trace -n many", NARROW, program="four_apps"),
        Case("trace", NARROW, program="./app --launches 20"),
        Case("trace -e Trce", NARROW, program="true"),
        Case("trace --pc-rate 100", NARROW, program="true"),
        Case("trace -e RangeProfiler --range-metrics nothing", NARROW, program="true"),
        Case("trace --max-size lots", ONCE, program="true"),
        Case("trace --upload nonsense", NARROW, program="true"),
        Case("trace", NARROW, program="no_such_program"),
        Case("trace -o /dev/null/x", NARROW, program="true"),
        Case("trace -n idle", NARROW, program="true")],
    "cost": help_of("cost") + wrong("cost", "--pair", "") + [
        Case("cost", NARROW), Case("cost --pairs 1", NARROW, is_loose=True, program="fake_app --launches 20"),
        Case("cost --pairs 1", NARROW, program="no_such_program"), Case("cost --pairs 1", ONCE, program="false")],
    "ls": help_of("ls") + wrong("ls") + [Case("ls"), Case("ls ..")] + of_sessions("ls", BAD_SESSIONS) + [
        Case("ls --json", ("piped",), is_exempt=True)],
    "report": help_of("report") + wrong("report") + [
        Case(f"report {session}") for session in (
            "", "../deep", "../pc_sampling", "../sass_metrics", "../range_metrics", "../two_gpus", "../monitor",
            "../degraded", "../refused", "../hostile", "../amd_code")
    ] + of_sessions("report") + [
        Case("report train", NARROW), Case("report /nonexistent", NARROW), Case("report latest~7", NARROW),
        Case("report tr", NARROW), Case("report ../train/train-1 --top 2", ONCE), Case("report --html a.html", ONCE),
        Case("report --html a.html --json", NARROW), Case("report --code nothing", NARROW),
        Case("report ../deep --code gemm", NARROW), Case("report -o /nonexistent/x", NARROW), Case("report --top 0", ONCE),
        Case("report --color often", NARROW), Case("report --json ../no_kernels", ("piped",), is_exempt=True)],
    "view": help_of("view") + wrong("view", "--prt") + of_sessions("view", ("nowhere", "../empty_dir", "../newer")) + [
        Case("view --no-browser", NARROW, stop_at="Ctrl-C"),
        Case("view --no-browser ../damaged", NARROW, stop_at="Ctrl-C"),
        Case("view --no-browser ../no_kernels", ONCE, stop_at="Ctrl-C"),
        Case("view --no-browser ../killed", ONCE, stop_at="Ctrl-C")],
    "diff": help_of("diff") + wrong("diff") + [
        Case("diff"), Case("diff train-1 train-2", ONCE), Case("diff train-1 ../deep"), Case("diff train-1 ../range_metrics"),
        Case("diff train-1 ../monitor", NARROW), Case("diff ../train/train-1", NARROW),
        Case("diff train-1 ../killed --allow-incomplete", NARROW)
    ] + of_sessions("diff train-1"),
    "export": help_of("export") + wrong("export") + [
        Case("export", NARROW), Case("export -o out", NARROW), Case("export -o out.json", ONCE),
        Case("export -o out.json", NARROW), Case("export -o out.json --force", NARROW),
        Case("export -o - --table nothing", NARROW), Case("export -o x.csv", NARROW),
        Case("export -o x.json --scope nothing", NARROW), Case("export -o x.json --from 5 --to 1", NARROW),
        Case("export -o x.json --from soon", NARROW), Case("export -o x.json --by stack", NARROW),
        Case("export -o /nonexistent/x.json", NARROW), Case("export -o - --table scopes", ONCE, is_exempt=True)
    ] + of_sessions("export", options=" --force -o x.pftrace"),
    "mcp": help_of("mcp") + wrong("mcp") + [Case("mcp", NARROW), Case("mcp nowhere", NARROW)],
    "verify": help_of("verify") + wrong("verify") + [
        Case("verify"), Case("verify ../hostile", NARROW), Case("verify --json", ("piped",), is_exempt=True)
    ] + of_sessions("verify"),
    "seal": help_of("seal") + wrong("seal") + [Case("seal ../to_seal", ONCE), Case("seal ../to_seal", NARROW)]
            + of_sessions("seal", BAD_SESSIONS[:2]),
    "disassemble": help_of("disassemble") + wrong("disassemble", "--al", "") + [
        Case("disassemble", NARROW), Case("disassemble ../deep", NARROW)]
            + of_sessions("disassemble", BAD_SESSIONS[:3] + ("../newer",)),
    "upload": help_of("upload") + wrong("upload") + [
        Case("upload", NARROW), Case("upload --server ftp://x", NARROW), Case("upload --server http://127.0.0.1:1", ONCE),
        Case("upload --key-file nowhere --server http://127.0.0.1:1", NARROW)
    ] + of_sessions("upload", BAD_SESSIONS[:2], " --server http://127.0.0.1:1"),
    "monitor": help_of("monitor") + wrong("monitor") + [
        Case("monitor --once", is_loose=True), Case("monitor --interval 1", NARROW), Case("monitor --json", NARROW),
        Case("monitor --listen nonsense", NARROW), Case("monitor -o /dev/null/x", NARROW)],
    "agent": help_of("agent") + wrong("agent") + [
        Case("agent", NARROW), Case("agent --root .", NARROW), Case("agent --root nowhere --server http://127.0.0.1:1 --once", NARROW),
        Case("agent --config nowhere", NARROW), Case("agent --root . --server http://127.0.0.1:1 --json", NARROW)],
    "serve": help_of("serve") + wrong("serve", "--liste", "a b c d") + [
        Case("serve nothing", NARROW), Case("serve --data data --listen 127.0.0.1:0", NARROW, stop_at="data in data"),
        Case("serve --data data --listen 0.0.0.0:0", NARROW), Case("serve --data data --listen nonsense", NARROW),
        Case("serve --data /dev/null/x", NARROW), Case("serve --data data keys", NARROW),
        Case("serve --data data keys create", NARROW), Case("serve --data data keys list", NARROW),
        Case("serve --data data keys revoke nothing", NARROW), Case("serve --data data check", NARROW),
        Case("serve --data data audit", NARROW), Case("serve --data data backup", NARROW)],
    "top": help_of("top") + wrong("top") + [Case("top --once", is_loose=True), Case("top --sort size", NARROW)],
    "metrics": help_of("metrics") + wrong("metrics", "--chp", "") + [
        Case("metrics", NARROW), Case("metrics sets"), Case("metrics chips", NARROW), Case("metrics list dram"),
        Case("metrics list nothing", NARROW), Case("metrics show sm__throughput"), Case("metrics show dram__byts", NARROW),
        Case("metrics passes overview", NARROW), Case("metrics lst", NARROW), Case("metrics list --chip GH10", NARROW)],
    "info": help_of("info") + wrong("info", extra="a") + [Case("info"), Case("info --json", ("piped",), is_exempt=True)],
    "doctor": help_of("doctor") + wrong("doctor", extra="a") + [Case("doctor")],
    "demo": help_of("demo") + wrong("demo", extra="a") + [Case("demo --once --stay", NARROW)],
    "version": help_of("version") + wrong("version", extra="a") + [Case("version"), Case("version --json", ("piped",))],
    "completion": help_of("completion") + wrong("completion", extra="a b") + [
        Case("completion", NARROW), Case("completion bsh", NARROW), Case("completion tcsh", NARROW)],
    "man": help_of("man") + wrong("man", extra="a b") + [
        Case("man ls", ("60", "80", "200")), Case("man trce", NARROW), Case("man zzzz", NARROW), Case("man open", ONCE)],
}
