# SPDX-License-Identifier: Apache-2.0
"""`gpufl mcp`: the Model Context Protocol on the program's standard input and output. tests/mcp has the official client."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import GPUFL, SOURCE, TIMEOUT_S, TestCase, environment, gpufl

RECORDED = SOURCE / "examples" / "recorded"
GOLDEN = SOURCE / "tests" / "golden"
LINE_MAX = 1 << 20


def converse(directory, *lines):
    """Sends lines, closes the input, and returns the parsed lines of the answer."""
    text = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    result = subprocess.run([GPUFL, "mcp", directory], input=text, env=environment(), capture_output=True, check=False,
                            timeout=TIMEOUT_S)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


class Client:
    """A server that gets one request at a time."""

    def __init__(self, directory):
        self.process = subprocess.Popen([GPUFL, "mcp", directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment())
        self.number = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(TIMEOUT_S)

    def ask(self, method, **params):
        self.number += 1
        self.process.stdin.write(json.dumps(request(self.number, method, **params)).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.number, answer
        return answer

    def call(self, tool, **arguments):
        """The structured answer of a tool, which must equal its text."""
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert not result["isError"], result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    def refusal(self, tool, **arguments):
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert result["isError"] and "structuredContent" not in result, result
        return result["content"][0]["text"]


class Protocol(TestCase):
    def test_a_known_version_is_agreed_to_and_any_other_gets_the_newest(self):
        for asked, agreed in (("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
                              ("2025-11-25", "2025-11-25"), ("2031-01-01", "2025-11-25"), ("", "2025-11-25")):
            answer, = converse(self.directory, request(1, "initialize", protocolVersion=asked, capabilities={}))
            self.assertEqual(answer["result"]["protocolVersion"], agreed)
            self.assertEqual(answer["result"]["serverInfo"]["name"], "gpufl")

    def test_notifications_and_empty_lines_are_not_answered(self):
        self.assertEqual(converse(self.directory, {"jsonrpc": "2.0", "method": "notifications/initialized"}, b"", b"  ",
                                  {"jsonrpc": "2.0", "method": "notifications/never-heard-of", "params": [1]},
                                  {"jsonrpc": "2.0", "id": 7, "result": {}}), [])

    def test_ids_come_back_as_they_were(self):
        answers = converse(self.directory, request("a\u0000\u20ac\"", "ping"), request(-5, "ping"), request(2**63, "ping"))
        self.assertEqual([answer["id"] for answer in answers], ["a\u0000\u20ac\"", -5, 2**63])
        self.assertEqual([answer["result"] for answer in answers], [{}, {}, {}])

    def test_what_is_not_a_request_is_refused_and_the_server_goes_on(self):
        deep = b"[" * 100000
        answers = converse(self.directory, b"{", b"\xff\xfe", b"nothing", deep, b"[]", b"5", {"id": 1, "method": "ping"},
                           {"jsonrpc": "2.0", "id": 2}, {"jsonrpc": "2.0", "id": None, "method": "ping"},
                           {"jsonrpc": "2.0", "id": {}, "method": "ping"},
                           {"jsonrpc": "2.0", "id": 3, "method": "ping", "params": [1]},
                           request(4, "resources/list"), request(5, "tools/call", name="rm"),
                           request(6, "tools/call", name="summary", arguments=[]), request(7, "ping"))
        codes = [answer.get("error", {}).get("code") for answer in answers]
        self.assertEqual(codes, [-32700] * 4 + [-32600] * 6 + [-32602, -32601, -32602, -32602, None])
        self.assertIn("column", answers[0]["error"]["message"])
        self.assertIn("tools are sessions, summary", answers[12]["error"]["message"])

    def test_a_line_over_the_limit_is_skipped(self):
        answers = converse(self.directory, b"x" * (LINE_MAX + 1), b" " * (3 * LINE_MAX), request(1, "ping"))
        self.assertEqual([answer.get("error", {}).get("code") for answer in answers], [-32600, -32600, None])

    def test_a_last_line_without_a_line_feed_is_answered(self):
        result = subprocess.run([GPUFL, "mcp", self.directory], input=json.dumps(request(1, "ping")).encode(),
                                env=environment(), capture_output=True, check=True, timeout=TIMEOUT_S)
        self.assertEqual(json.loads(result.stdout)["result"], {})

    def test_batches_are_answered_in_the_versions_that_have_them(self):
        batch = [request(1, "ping"), {"jsonrpc": "2.0", "method": "notifications/initialized"}, request(2, "nothing"), 5]
        _, answers = converse(self.directory, request(0, "initialize", protocolVersion="2025-03-26"), batch)
        self.assertEqual([answer["id"] for answer in answers], [1, 2, None])
        _, answer = converse(self.directory, request(0, "initialize", protocolVersion="2025-06-18"), batch)
        self.assertEqual(answer["error"]["code"], -32600)

    def test_a_request_that_waits_can_be_cancelled(self):
        answers = converse(self.directory, request(1, "ping"), request(2, "ping"), request(3, "ping"),
                           {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
                           {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "9"}})
        self.assertEqual([answer["id"] for answer in answers], [1, 2])

    def test_a_client_may_close_its_end_at_any_time(self):
        process = subprocess.Popen([GPUFL, "mcp", self.directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment())
        process.stdout.close()
        _, errors = process.communicate((json.dumps(request(1, "tools/list")) + "\n").encode() * 100, TIMEOUT_S)
        self.assertEqual((process.returncode, errors), (0, b""))

    def test_a_directory_that_is_not_there_is_an_error_before_the_first_request(self):
        result = gpufl("mcp", os.path.join(self.directory, "none"))
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertIn("No such file or directory", result.stderr)

    def test_every_tool_is_read_only_and_has_both_schemas(self):
        answer, = converse(self.directory, request(1, "tools/list"))
        tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
        self.assertEqual(set(tools), {"sessions", "summary", "insights", "kernels", "scopes", "stalls", "lines",
                                      "instructions", "metrics", "timeline", "diff"})
        for tool in tools.values():
            self.assertTrue(tool["annotations"]["readOnlyHint"])
            self.assertEqual(tool["inputSchema"]["type"], "object")
            self.assertFalse(tool["inputSchema"]["additionalProperties"])
            self.assertTrue(set(tool["outputSchema"]["required"]) <= set(tool["outputSchema"]["properties"]))


class Arguments(unittest.TestCase):
    def test_wrong_arguments_are_refused_with_what_is_right(self):
        with Client(RECORDED) as client:
            self.assertIn("has no argument 'limt'; its arguments are session, filter, limit, cursor",
                          client.refusal("kernels", limt=3))
            self.assertIn("an integer from 1 to 100", client.refusal("kernels", limit=0))
            self.assertIn("an integer from 1 to 100", client.refusal("kernels", limit="many"))
            self.assertIn("must be one of gpu_time, wall_time, tree", client.refusal("scopes", order="size"))
            self.assertIn("must be a string", client.refusal("summary", session=7))
            self.assertIn("next_cursor", client.refusal("kernels", cursor="-1"))
            self.assertIn("needs the argument 'function'", client.refusal("instructions"))
            self.assertIn("the slice is empty", client.refusal("timeline", session="h200-pipeline", from_ns=10**15))
            self.assertIn("fits several functions", client.refusal("instructions", session="h200-gemm-deep", function="gemm"))
            self.assertIn("engine Trace", client.refusal("lines", session="h200-pipeline"))
            self.assertIn("engine Trace", client.refusal("metrics", session="h200-pipeline"))


class Boundaries(TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.directory) / "root"
        self.outside = pathlib.Path(self.directory) / "outside"
        self.root.mkdir()
        shutil.copytree(GOLDEN / "trace", self.root / "inside")
        shutil.copytree(GOLDEN / "bench", self.outside)
        (self.root / "link").symlink_to(self.outside)
        (self.root / "folder").mkdir()
        (self.root / "folder" / "link").symlink_to(self.outside)

    def test_nothing_outside_of_the_directory_can_be_named(self):
        with Client(self.root) as client:
            for word in (str(self.outside), "../outside", "inside/../../outside", "..", "/", "/etc", str(self.root) + "x",
                         str(self.root / ".." / "outside")):
                self.assertIn("is outside of", client.refusal("summary", session=word))
            for word in ("link", "folder/link", str(self.root / "link")):
                self.assertIn("no such session", client.refusal("summary", session=word))
            self.assertEqual([row["name"] for row in client.call("sessions")["sessions"]], ["inside"])

    def test_a_session_inside_has_many_names(self):
        with Client(self.root) as client:
            ids = {client.call("summary", **arguments)["session"]["id"]
                   for arguments in ({}, {"session": "latest"}, {"session": "inside"}, {"session": "insi"},
                                     {"session": "inside/"}, {"session": str(self.root / "inside")})}
            self.assertEqual(len(ids), 1)
            self.assertIn("there is only 1 session", client.refusal("summary", session="latest~1"))

    def test_a_link_inside_of_a_session_is_not_followed(self):
        log = next((self.root / "inside").glob("device*"))
        moved = self.outside / ("secret-" + log.name)
        log.rename(moved)
        log.symlink_to(moved)
        with Client(self.root) as client:
            answer = client.call("summary", session="inside")
            self.assertEqual(answer["evidence"]["kernels_timed"], 0)
            self.assertFalse(answer["evidence"]["is_complete"])
            self.assertIn("symbolic link", json.dumps(answer["evidence"]["damage"]))


class Answers(TestCase):
    def test_damage_is_reported_with_its_place(self):
        session = pathlib.Path(self.directory) / "broken"
        shutil.copytree(GOLDEN / "trace", session)
        log = session / "device.log"
        lines = log.read_bytes().split(b"\n")
        lines[4] = lines[4][:-9] + b"}"
        log.write_bytes(b"\n".join(lines))
        with Client(self.directory) as client:
            evidence = client.call("kernels", session="broken")["evidence"]
        self.assertFalse(evidence["is_complete"])
        self.assertIn(("device.log", 5), [(one["file"], one["line"]) for one in evidence["damage"]])

    def test_a_session_without_any_record_is_an_error_that_names_it(self):
        session = pathlib.Path(self.directory) / "01a1e01d-8448-7937-8baa-652e49e04d70"
        session.mkdir()
        (session / "device.log").write_bytes(b"\x00garbage\n")
        with Client(self.directory) as client:
            self.assertEqual(client.call("sessions")["sessions"][0]["state"], "unreadable")

    def test_pages_hold_every_kernel_once(self):
        with Client(RECORDED) as client:
            whole = [row["name"] for row in client.call("kernels", session="h200-training", limit=100)["kernels"]]
            names, arguments = [], {"session": "h200-training", "limit": 7}
            while arguments:
                page = client.call("kernels", **arguments)
                names += [row["name"] for row in page["kernels"]]
                following = [one["arguments"] for one in page["more"] if one["tool"] == "kernels"]
                self.assertEqual(len(following), 1 if page["page"]["next_cursor"] else 0)
                arguments = following[0] if following else None
            self.assertEqual(len(names), page["page"]["total"])
            self.assertEqual(len(set(names)), len(names))
            self.assertEqual(names[:len(whole)], whole)

    def test_answers_to_default_arguments_are_small(self):
        with Client(RECORDED) as client:
            for name in ("h200-gemm-deep", "h200-training", "h200-training-pm", "h200-gemm-scopes"):
                for tool in ("sessions", "summary", "insights", "kernels", "scopes", "stalls", "lines", "metrics", "timeline"):
                    arguments = {} if tool == "sessions" else {"session": name}
                    result = client.ask("tools/call", name=tool, arguments=arguments)["result"]
                    self.assertLess(len(result["content"][0]["text"]), 40 << 10, (name, tool))

    def assert_same(self, answer, report):
        """Equal but for digits after the sixth."""
        self.assertEqual(type(answer) if not isinstance(report, float) else float, type(report))
        if isinstance(report, dict):
            self.assertEqual(answer.keys(), report.keys())
            for key, value in report.items():
                self.assert_same(answer[key], value)
        elif isinstance(report, list):
            self.assertEqual(len(answer), len(report))
            for left, right in zip(answer, report):
                self.assert_same(left, right)
        elif isinstance(report, float):
            self.assertAlmostEqual(answer, report, delta=abs(report) * 1e-5)
        else:
            self.assertEqual(answer, report)

    def test_figures_have_no_more_digits_than_they_are_good_for(self):
        with Client(RECORDED) as client:
            for tool in ("summary", "kernels", "lines", "stalls", "timeline"):
                text = client.ask("tools/call", name=tool, arguments={"session": "h200-gemm-deep"})
                self.assertEqual(re.findall(r"[0-9]\.[0-9]{10,}", text["result"]["content"][0]["text"]), [])

    def test_counters_that_an_instruction_lacks_are_left_out(self):
        with Client(RECORDED) as client:
            for row in client.call("instructions", session="h200-gemm-deep", function="gemm_naive")["instructions"]:
                self.assertNotIn(None, row["counters"].values())
                self.assertIn("inst_executed", row["counters"])

    def test_metrics_have_units_and_zeros_are_only_named(self):
        with Client(RECORDED) as client:
            kernel = client.call("metrics", session="h200-gemm-kernels", limit=1)["metrics"][0]
        self.assertEqual(kernel["metrics"]["gpu__time_duration.sum"]["mean_text"], "35.3 ms")
        self.assertEqual(kernel["metrics"]["l1tex__throughput.avg.pct_of_peak_sustained_active"]["mean_text"], "99.0 %")
        self.assertIn("sm__sass_thread_inst_executed_op_fadd_pred_on.sum", kernel["zero"])
        self.assertFalse(set(kernel["zero"]) & set(kernel["metrics"]))
        self.assertGreater(kernel["flops_per_second"], 1e11)

    def test_an_empty_directory_says_how_to_record(self):
        with Client(self.directory) as client:
            answer = client.call("sessions")
            self.assertEqual(answer["sessions"], [])
            self.assertIn("gpufl trace -o", answer["advice"])
            for tool in ("summary", "diff"):
                self.assertIn("gpufl trace -o", client.refusal(tool))

    def test_figures_are_those_of_the_report(self):
        report = json.loads(gpufl("report", "--json", RECORDED / "h200-gemm-deep").stdout)
        with Client(RECORDED) as client:
            answer = client.call("kernels", session="h200-gemm-deep", limit=100)
            self.assert_same(answer["kernels"], report["kernels"])
            scopes = client.call("scopes", session="h200-gemm-deep", order="tree", limit=200)
            self.assert_same(scopes["scopes"], report["scopes"])
            insights = client.call("insights", session="h200-gemm-deep", limit=64)
            self.assert_same(insights["insights"], report["insights"])
            summary = client.call("summary", session="h200-gemm-deep")
            self.assert_same(summary["time"], report["time"])
            self.assert_same(summary["completeness"], report["completeness"])

    def test_a_slice_shows_single_events_once_it_is_narrow(self):
        with Client(RECORDED) as client:
            wide = client.call("timeline", session="h200-pipeline", kind="kernels")
            self.assertFalse(wide["tracks"][0]["is_exact"])
            first = wide["tracks"][0]["rows"][0]
            narrow = client.call("timeline", session="h200-pipeline", track=wide["tracks"][0]["id"], rows=200,
                                 from_ns=first["start_ns"], to_ns=first["start_ns"] + first["duration_ns"] // 50)
            self.assertEqual(len(narrow["tracks"]), 1)
            self.assertTrue(narrow["tracks"][0]["is_exact"])
            for row in narrow["tracks"][0]["rows"]:
                self.assertLess(row["start_ns"], narrow["to_ns"])
                self.assertGreaterEqual(row["start_ns"] + row["duration_ns"], narrow["from_ns"])

    def test_diff_says_what_changed_and_why_there_is_no_verdict(self):
        with Client(RECORDED) as client:
            answer = client.call("diff", base="h200-training", new="h200-training-pm", limit=3)
            self.assertEqual(len(answer["comparison"]["kernels"]), 3)
            self.assertGreater(answer["kernels_total"], 3)
            verdicts = [row["verdict"] for row in client.call("diff", base="h200-training", new="h200-training-pm",
                                                              limit=100)["comparison"]["kernels"]]
            changed = [verdict for verdict in verdicts if verdict != "same"]
            self.assertEqual(verdicts[:len(changed)], changed)
            self.assertEqual(len(changed), answer["kernels_changed"])
            answer = client.call("diff", base="h200-gemm-deep", new="h200-gemm-scopes")
            self.assertEqual(answer["comparison"]["no_verdict"], "times missing")
            self.assertIn("same session", client.refusal("diff", base="h200-training", new="h200-training"))

    def test_a_session_that_grows_is_read_anew(self):
        session = pathlib.Path(self.directory) / "growing"
        shutil.copytree(GOLDEN / "trace", session)
        log = session / "device.log"
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:-2]))
        with Client(self.directory) as client:
            before = client.call("summary")["evidence"]
            log.write_bytes(b"".join(lines))
            after = client.call("summary")["evidence"]
        self.assertFalse(before["is_complete"])
        self.assertTrue(after["is_complete"])


class Gemm(unittest.TestCase):
    def test_a_conversation_finds_the_hottest_line_and_its_cause(self):
        """As an assistant would: list, summary, then follow the pointers."""
        with Client(RECORDED) as client:
            rows = client.call("sessions", filter="gemm")["sessions"]
            session = next(row["name"] for row in rows if row["engine"] == "Deep")
            summary = client.call("summary", session=session)
            self.assertIn("gemm_naive", summary["top_kernels"][0]["name"])
            pointer = next(one for one in summary["more"] if one["tool"] == "lines")
            line = client.call("lines", **pointer["arguments"])["lines"][0]
            self.assertTrue(line["file"].endswith("1_naive.cuh"))
            source = (SOURCE / "examples" / "gemm" / "1_naive.cuh").read_text().splitlines()
            self.assertEqual(line["source"].strip(), source[line["line"] - 1].strip())
            self.assertEqual(line["cause"]["name"], "lg_throttle")
            self.assertGreater(line["cause"]["share"], 0.9)
            self.assertIn("queue for global and local memory", line["cause"]["words"])
            self.assertLess(line["counters"]["coalescing"], 0.2)
            listing = client.call("instructions", session=session, function=line["function"], line=line["line"],
                                  show="sampled")
            hottest = max(listing["instructions"], key=lambda one: one["samples"])
            self.assertIn("LDG", hottest["sass"])
            self.assertEqual(max(hottest["stalls"], key=hottest["stalls"].get), "lg_throttle")
            texts = " ".join(one["text"] for one in client.call("insights", session=session)["insights"])
            self.assertIn("1_naive.cuh:11", texts)


if __name__ == "__main__":
    unittest.main()
