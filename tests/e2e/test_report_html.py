# SPDX-License-Identifier: Apache-2.0
"""gpufl report --html: one self-contained file with the text report's content, whatever the session contains."""
import base64
import hashlib
import html.parser
import json
import re

from harness import SOURCE, TestCase, gpufl, main

GOLDEN = SOURCE / "tests/golden"
RECORDED = SOURCE / "examples/recorded"
DEMO = RECORDED / "h200-training"
VOID = {"meta", "rect"}
DEMO_BYTES_MAX = 2_000_000
# Attributes that could load a resource or link to another page.
LOADING = {"src", "href", "srcset", "action", "data", "poster", "background", "style"}


class Page(html.parser.HTMLParser):
    """Elements, attributes and the texts of scripts and styles; fails where elements are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.titles, self.scripts, self.styles = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] == ["h2"]:
            self.titles.append(data.strip())
        elif self.open[-1:] == ["script"]:
            self.scripts.append(data)
        elif self.open[-1:] == ["style"]:
            self.styles.append(data)


def source_hash(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


class ReportHtml(TestCase):
    def page(self, session, *options):
        file = self.directory / "report.html"
        result = gpufl("report", session, "--html", file, *options)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        text = file.read_text(encoding="utf-8")
        return text, Page(text)

    def test_every_session_gives_a_whole_page_that_loads_nothing(self):
        sessions = [path for path in (*GOLDEN.iterdir(), *RECORDED.iterdir())
                    if path.is_dir() and (path.parent == RECORDED or path.with_suffix(".txt").exists())]
        self.assertGreater(len(sessions), 15)
        for session in sessions:
            with self.subTest(session=session.name):
                _, page = self.page(session)
                for tag, attributes in page.elements:
                    self.assertFalse(LOADING & set(attributes), (tag, attributes))
                    self.assertFalse([name for name in attributes if name.startswith("on")], (tag, attributes))
                self.assertFalse({"img", "link", "iframe", "object", "embed", "base", "form", "a"} &
                                 {tag for tag, _ in page.elements})

    def test_the_policy_allows_its_own_script_and_style_and_nothing_else(self):
        _, page = self.page(GOLDEN / "hostile")
        policy = next(attributes["content"] for tag, attributes in page.elements
                      if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy")
        executed = [text for text in page.scripts if not text.startswith("{")]
        self.assertEqual(len(executed), 1)
        self.assertEqual(len(page.styles), 1)
        self.assertEqual(policy, "default-src 'none'; base-uri 'none'; form-action 'none'; "
                                 f"style-src {source_hash(page.styles[0])}; script-src {source_hash(executed[0])}")

    def test_names_full_of_html_are_text(self):
        session = self.directory / "session"
        session.mkdir()
        names = ["</script><script>owned()</script>", "<img src=x onerror=owned()>", "'\"><b>&amp;", "<!--", "]]>"]
        lines = [{"type": "job_start", "app": names[0], "pid": 1, "ts_ns": 1, "session_id": "s", "hostname": names[1]},
                 {"type": "dictionary_update", "session_id": "s",
                  "kernel_dict": {str(i + 1): name for i, name in enumerate(names)},
                  "scope_name_dict": {"1": names[0]}},
                 {"type": "kernel_event_batch", "session_id": "s", "batch_id": 1, "base_time_ns": 1000,
                  "columns": ["dt_ns", "duration_ns", "kernel_id", "stream_id", "corr_id"],
                  "rows": [[100 * i, 50, i + 1, 7, i] for i in range(len(names))]},
                 {"type": "shutdown", "session_id": "s", "pid": 1, "app": "x", "ts_ns": 2000}]
        (session / "device.log").write_text("".join(json.dumps({"version": 1, **line}) + "\n" for line in lines))
        text, page = self.page(session)
        tags = {tag for tag, _ in page.elements}
        self.assertFalse({"img", "b"} & tags, tags)
        self.assertEqual(len(page.scripts), 2)
        data = self.data(page)
        self.assertEqual(sorted(data["names"]), sorted(names))
        self.assertNotIn("<!--", text)

    def session(self, kernels, count, scopes=()):
        """A session with `count` executions, of these kernels in turn, and a call of each of these scopes."""
        path = self.directory / "session"
        path.mkdir()
        per_batch = min(count, 2000)
        lines = [{"type": "job_start", "app": "many", "pid": 1, "ts_ns": 0, "hostname": "h"},
                 {"type": "dictionary_update", "kernel_dict": {str(i + 1): name for i, name in enumerate(kernels)},
                  "scope_name_dict": {str(i + 1): name for i, name in enumerate(scopes)}}]
        for batch in range(count // per_batch):
            rows = [[1000 * i, 400, 1 + (batch * per_batch + i) % len(kernels), 7, i] for i in range(per_batch)]
            lines.append({"type": "kernel_event_batch", "batch_id": batch + 1,
                          "base_time_ns": 1000 + batch * per_batch * 1000,
                          "columns": ["dt_ns", "duration_ns", "kernel_id", "stream_id", "corr_id"], "rows": rows})
        scope_lines = [{"type": "scope_event_batch", "batch_id": 1, "base_time_ns": 1000,
                        "columns": ["dt_ns", "scope_instance_id", "name_id", "event_type", "depth"],
                        "rows": [[100 * i + 50 * is_end, i + 1, i + 1, is_end, 0]
                                 for i in range(len(scopes)) for is_end in (0, 1)]}] if scopes else []
        lines.append({"type": "shutdown", "pid": 1, "app": "many", "ts_ns": 1000 * count})
        for channel, channel_lines in (("device", lines), ("scope", scope_lines)):
            (path / f"{channel}.log").write_text(
                "".join(json.dumps({"version": 1, "session_id": "s", **line}) + "\n" for line in channel_lines))
        return path

    def data(self, page):
        return json.loads(next(script for script in page.scripts if script.startswith("{")))

    def test_many_names_and_scopes_do_not_make_it_large(self):
        names = [f"void library::kernel_{i}<{'x' * 150}>(float*)" for i in range(20_000)]
        text, page = self.page(self.session(names, 40_000, [f"step {i}" for i in range(3000)]))
        self.assertLess(len(text.encode()), DEMO_BYTES_MAX)
        data = self.data(page)
        self.assertEqual(data["names"][-1], "(name not in this file)")
        self.assertIn(f"The names of {20_000 + 3000 + 1 - len(data['names']):,} scopes and kernels that took the "
                      "least time are not in this file.", text)
        self.assertIn("(`gpufl report --wide` shows all)", text)

    def test_a_shortened_kernel_has_the_hue_of_its_whole_name(self):
        names = ["void kernel<é😀>(int)", "plain"]
        _, page = self.page(self.session(names, 4))
        data = self.data(page)
        self.assertEqual(sorted(data["names"]), ["kernel<é😀>(int)", "plain"])
        shortened = data["names"].index("kernel<é😀>(int)")
        units = memoryview(names[0].encode("utf-16-le")).cast("H")
        value = 0x811C9DC5
        for unit in units:
            value = (value ^ unit) * 0x01000193 & 0xFFFFFFFF
        value = (value ^ value >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
        self.assertEqual(data["hues"], {str(shortened): (value ^ value >> 12) % 360})

    def test_titles_are_the_text_reports_and_a_timeline(self):
        for session in (GOLDEN / "deep", GOLDEN / "trace", RECORDED / "h200-gemm-kernels"):
            _, page = self.page(session)
            text = gpufl("report", session).stdout
            titles = re.findall(r"^ ([A-Z][A-Z ]+[A-Z])(?=  |$)", text, re.M)
            self.assertEqual([title for title in page.titles if title != "TIMELINE"], titles)
            self.assertIn("TIMELINE", page.titles)

    def numbers(self, text):
        """LEB128 in base64."""
        result, value, shift = [], 0, 0
        for byte in base64.b64decode(text):
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                result.append(value)
                value = shift = 0
        return result

    def test_the_demo_session_is_small_and_its_timeline_has_every_kernel(self):
        text, page = self.page(DEMO)
        self.assertLess(len(text.encode()), DEMO_BYTES_MAX)
        data = self.data(page)
        report = json.loads(gpufl("report", "--json", DEMO).stdout)
        kernels = [track for track in data["tracks"] if track["kind"] == "kernels"]
        self.assertEqual(sum(track["count"] for track in kernels), report["completeness"]["kernels"])
        durations = [number for track in kernels for number in self.numbers(track["events"])[1::3]]
        self.assertEqual(sum(durations), sum(kernel["total_ns"] for kernel in report["kernels"]))
        self.assertRegex(text, r"All [\d,]+ events are shown\.")

    def test_many_events_are_aggregated_and_the_page_says_so(self):
        count = 200_000
        session = self.session(["k"], count)
        text, page = self.page(session)
        self.assertLess(len(text.encode()), DEMO_BYTES_MAX)
        self.assertIn("200,000 of 200,000 events are aggregated into blocks of up to ", text)
        data = self.data(page)
        track = next(track for track in data["tracks"] if track["kind"] == "kernels")
        self.assertEqual(sum(self.numbers(track["blocks"])[3::4]), count)

    def test_options_that_exclude_it_are_refused(self):
        for option in (["--json"], ["--code", "f"], ["-o", "other"]):
            result = gpufl("report", GOLDEN / "trace", "--html", self.directory / "page.html", *option)
            self.assertEqual(result.returncode, 2)
            self.assertIn("--html and --", result.stderr)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_a_dash_is_standard_output(self):
        text, _ = self.page(GOLDEN / "trace")
        self.assertEqual(gpufl("report", GOLDEN / "trace", "--html", "-").stdout, text)

    def test_what_was_in_the_file_stays_until_the_page_is_whole(self):
        file = self.directory / "page.html"
        file.write_text("before", encoding="utf-8")
        empty = self.directory / "empty"
        empty.mkdir()
        for session in (empty, self.directory / "missing"):
            self.assertEqual(gpufl("report", session, "--html", file).returncode, 3)
            self.assertEqual(file.read_text(encoding="utf-8"), "before")
        self.assertEqual(gpufl("report", GOLDEN / "trace", "--html", file).returncode, 0)
        self.assertIn("</html>", file.read_text(encoding="utf-8"))

    def test_a_damaged_session_gives_a_page_that_says_so(self):
        session = self.session(["k"], 4)
        with open(session / "device.log", "a", encoding="utf-8") as log:
            log.write("this is not JSON\n")
        text, _ = self.page(session)
        self.assertIn("device.log:5: byte 1: ", text)

    def test_a_file_that_cannot_be_written_is_an_error(self):
        result = gpufl("report", GOLDEN / "trace", "--html", self.directory / "missing" / "page.html")
        self.assertEqual(result.returncode, 3)
        self.assertIn("gpufl report: ", result.stderr)


if __name__ == "__main__":
    main()
