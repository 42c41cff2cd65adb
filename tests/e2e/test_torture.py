# SPDX-License-Identifier: Apache-2.0
"""Allocation failures at each place where gpufl allocates: recorder, agent and server neither crash nor hang, and
whatever they could not do is counted or reported.

Every run tries some places, chosen by TORTURE_SEED (the default is the date); TORTURE_ALL=1 tries all places in every
mode, TORTURE_PLACE=N one place."""
import collections
import http.client
import json
import os
import re
import subprocess
import urllib.parse

from harness import FAKE_APP, FAKES, GPUFL, Session, environment, gpufl, main, run, sessions
from memory_faults import Sweep, expect, places, record
from route_answers import Questions
from serve_process import COMPLETE, STREAM, Serve, ServeTest, window
from test_upload import KEY, canonical
from upload_server import Server

LIMIT_S = 60
SESSION_APP = FAKES / "session_app"
ENGINES = ("Monitor", "Trace", "PcSampling", "SassMetrics", "RangeProfiler", "Deep")
# Record types, and the capability that explains missing records. Scopes need no capability.
KINDS = {"kernel_event_batch": "kernel_events", "memcpy_event_batch": "memcpy_activity",
         "memset_event_batch": "memcpy_activity", "synchronization_event_batch": "sync_activity",
         "memory_alloc_event_batch": "memory_activity", "graph_launch_batch": "graph_activity",
         "profile_sample_batch": "sass_metrics", "perf_metric_event": "range_counters",
         "device_metric_batch": "device_metrics", "host_metric_batch": None, "scope_event_batch": None}
SAMPLED = ("device_metric_batch", "host_metric_batch")  # their number depends on time


def finish(process, what):
    """Output and errors of a process, which must end by itself and not by a signal."""
    try:
        output, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        stacks = subprocess.run(["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all bt 12"], text=True,
                                capture_output=True, check=False).stdout if os.environ.get("TORTURE_GDB") else ""
        process.kill()
        output, errors = process.communicate()
        expect(False, what, "hangs;", errors[-2000:], stacks[-6000:])
    expect(process.returncode >= 0, what, "died of signal", -process.returncode, errors[-2000:])
    return output, errors


def begin(*command, **variables):
    return subprocess.Popen([str(word) for word in command], env=environment(**variables), text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def counts(session):
    """Number of rows by kind; a launch recorded without times counts as its kernel."""
    result = collections.Counter()
    for lines in session.lines.values():
        for line in lines:
            result[line["type"]] += len(line["rows"]) if isinstance(line.get("rows"), list) else 1
    result["kernel_event_batch"] += result.pop("launch_event_batch", 0)
    return result


def capabilities(session):
    records = session.records("capture_capabilities")
    return {entry["feature"]: entry for entry in records[-1]["capabilities"]} if records else {}


def unnamed(session):
    """Rows with a kernel id that no record defines."""
    names = session.dictionary("kernel_dict")
    return [row for kind in ("kernel_event_batch", "launch_event_batch") for row in session.rows(kind)
            if row["kernel_id"] not in names]


def check_session(path, expected):
    """A session that verify reports as complete has every row of a run without faults, or lists what it lacks."""
    verified = gpufl("verify", path, "--json")
    expect(verified.returncode in (0, 1), "verify:", verified.returncode, verified.stderr)
    if not json.loads(verified.stdout)["is_complete"]:
        return
    session = Session(path)
    found, able = counts(session), capabilities(session)
    for kind, feature in KINDS.items():
        wanted = counts(expected)[kind]
        wanted = min(wanted, 1) if kind in SAMPLED else wanted
        if found[kind] >= wanted:
            continue
        said = feature and able.get(feature) != capabilities(expected).get(feature) and able[feature].get("message")
        expect(said, "silent loss:", found[kind], "of", wanted, kind, "in", path, able.get(feature))
    expect(not unnamed(session), "rows without names:", unnamed(session)[:3])


class Recorder(ServeTest):
    def sweep(self, name, sample, command, expected_status, tried=()):
        """Tries the places of one program, except those tried before. Returns all places."""
        clean = self.directory / f"{name}-clean"
        clean.mkdir()
        process = begin(*command(clean), **record(clean / "places"))
        output, errors = finish(process, "the program")
        self.assertEqual(process.returncode, expected_status, errors)
        expected = Session(sessions(clean / "log")[0])
        known = places(clean / "places")

        def attempt(place, mode, directory, variables):
            process = begin(*command(directory), **variables)
            printed, errors = finish(process, "the program")
            self.check_program(process.returncode, expected_status, printed, output, errors)
            refused = "not recording: " in errors
            for session in sessions(directory / "log"):
                if not refused or f"session {session}" in errors:
                    check_session(session, expected)
        troubles = Sweep(name, self.directory, sample).run([place for place in known if place not in tried], attempt)
        self.assertEqual(troubles, [], "\n".join(troubles))
        return known

    @staticmethod
    def check_program(status, expected_status, printed, expected, errors):
        """The program behaves as without faults, or `gpufl trace` reported why it did not start it."""
        if "gpufl trace: " in errors and status and not printed:
            return
        expect(status == expected_status, "exit status", status, errors[-1000:])
        expect(printed == expected, "printed", printed[-500:])
        for answer in re.findall(r"^(?:init \w+|report): (.*)$", errors, re.MULTILINE):
            code, _, message = answer.partition("; ")
            expect(code == "success" or message, "an error without a message:", answer)

    def test_a_program_does_its_work_and_its_log_is_true(self):
        tried = []
        for words in (*((engine,) for engine in ENGINES), ("graphs", "Trace"), ("Trace", "Deep", "Trace")):
            def command(directory, words=words):
                return SESSION_APP, directory / "log", directory / "report.txt", *words
            with self.subTest(words):
                tried += self.sweep("-".join(words), 12, command, 5, tried)

    def test_a_traced_program_does_its_work_and_its_log_is_true(self):
        def command(directory):
            return (GPUFL, "trace", "-q", "--stacks", "--graphs", "-o", directory / "log", "--", FAKE_APP, "--launches",
                    200, "--scopes", "--copies", "--nvtx", "--graphs", "--exit", 7)
        self.sweep("trace", 30, command, 7)


class Agent(ServeTest):
    def test_the_agent_sends_everything_now_or_later_and_nothing_twice(self):
        session = self.record(300)
        expected = canonical(line for lines in Session(session).lines.values() for line in lines)

        def once(server, state, **variables):
            process = begin(GPUFL, "agent", "--once", "--server", server.url, "--state", state, "--interval", 20,
                            "--root", session.parent, GPUFL_API_KEY=KEY, **variables)
            return *finish(process, "the agent"), process.returncode

        def attempt(place, mode, directory, variables):
            with Server() as server:
                _, errors, status = once(server, directory / "state", **variables)
                expect(not status or errors.strip(), "no message, exit status", status)
                if status:
                    _, errors, status = once(server, directory / "state")
                    expect(not status, "the next agent fails:", errors)
                expect(canonical(server.counted_lines()) == expected, "not everything arrived, or something twice")
                expect(not server.breaches, server.breaches)
                expect(server.completed, "the end was not reported")

        with Server() as server:
            _, errors, status = once(server, self.directory / "state", **record(self.directory / "places"))
            self.assertEqual(status, 0, errors)
        troubles = Sweep("agent", self.directory, 40).run(places(self.directory / "places"), attempt)
        self.assertEqual(troubles, [], "\n".join(troubles))


class Service(ServeTest):
    """gpufl serve: acknowledged data is there after a restart, whatever failed before."""

    def setUp(self):
        super().setUp()
        self.session = self.record(300)
        self.other = "11111111-2222-4333-8444-555555555555"
        self.windows = []
        for file in sorted(self.session.glob("*.log")):
            lines = file.read_bytes().splitlines()
            self.windows.append((self.session.name, window(lines, self.session.name, file.stem)))
        lines = [{name: value for name, value in line.items() if name not in ("seq", "crc")}
                 for line in Session(self.session).lines["device"]]
        self.windows.append((self.other, window([dict(line, session_id=self.other) for line in lines], self.other)))

    @staticmethod
    def ask(server, *arguments, **options):
        """The answer; None if the server closed the connection, which it may only do if it could not answer."""
        try:
            return server.ask(*arguments, **options)
        except (ConnectionError, http.client.HTTPException):
            return None

    def send(self, server, sent):
        """Sends the windows and ends that are not in `sent` yet; adds those that were acknowledged."""
        for number, (_, (body, headers)) in enumerate(self.windows):
            if number in sent:
                continue
            answer = self.ask(server, STREAM, "POST", body, headers)
            expect(answer is None or answer.status == 202 or answer.status >= 500, "a window:", answer)
            if answer and answer.status == 202:
                sent.add(number)
        for session_id in (self.session.name, self.other):
            numbers = {number for number, (owner, _) in enumerate(self.windows) if owner == session_id}
            if session_id not in sent and numbers <= sent:
                answer = self.ask(server, COMPLETE, "POST", b"", {"X-GpuFlight-Session-Id": session_id,
                                                                   "X-GpuFlight-Hostname": "node1"})
                expect(answer is None or answer.status < 300 or answer.status >= 500, "an end:", answer)
                if answer and answer.status < 300:
                    sent.add(session_id)

    def use(self, server, questions, sent):
        """Uses all functions of the server; returns whether the second session was deleted."""
        self.send(server, sent)
        for path, query, expected in questions:
            answer = self.ask(server, path + ("?" + query if query else ""))
            if answer is None or answer.status >= 500:
                continue
            if self.session.name in sent and self.other in sent:
                expect(answer.status == expected, path, query, answer)
        answer = self.ask(server, f"/api/v1/sessions/{self.other}", "DELETE")
        return bool(answer and answer.status < 300)

    def questions(self, server):
        result = []
        for path, query in Questions(server, [self.session.name, self.other]).ask_all():
            query = urllib.parse.urlencode(query)
            result.append((path, query, server.ask(path + ("?" + query if query else "")).status))
        return result

    def check_kept(self, data, sent, is_deleted):
        """A server without faults has the acknowledged data and accepts the rest."""
        with Serve(data) as server:
            known = {entry["id"]: entry for entry in server.pages("/api/v1/sessions", "sessions")}
            expect(not (is_deleted and self.other in known), "a deleted session came back")
            if self.session.name in sent:
                self.assert_holds(server, self.session)
            if is_deleted:  # its end is not sent again
                sent.add(self.other)
            self.send(server, sent)
            expect(self.session.name in sent, "a window is refused for ever")
            self.assert_holds(server, self.session)

    def test_what_the_server_acknowledged_is_kept(self):
        with Serve(self.directory / "asked") as server:
            self.send(server, set())
            questions = self.questions(server)
        with Serve(self.directory / "clean", **record(self.directory / "places")) as server:
            self.assertTrue(self.use(server, questions, set()))

        def attempt(place, mode, directory, variables):
            server, sent, is_deleted = Serve(directory / "data", **variables), set(), False
            try:
                server.start()
            except AssertionError:
                status, printed = server.process.returncode, "".join(server.printed)
                expect(status > 0 and printed.strip(), "no start, no message:", status, printed)
            else:
                try:
                    is_deleted = self.use(server, questions, sent)
                    expect(server.process.poll() is None, "the server ended:", server.process.poll())
                    status = server.stop()
                    expect(status >= 0, "died of signal", -status)
                finally:
                    server.process.kill()
                expect("ERROR: AddressSanitizer" not in "".join(server.printed), "".join(server.printed))
            self.check_kept(directory / "data", sent, is_deleted)

        troubles = Sweep("server", self.directory, 40).run(places(self.directory / "places"), attempt)
        self.assertEqual(troubles, [], "\n".join(troubles))


if __name__ == "__main__":
    main()
