#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.viz: the pictures as they were looked at, what they are made of, and what wrong use leads to."""
import json
import os
import shutil
import warnings

import fixture
import matplotlib

matplotlib.use("Agg")
import matplotlib.image  # noqa: E402
import numpy  # noqa: E402
import viz_golden  # noqa: E402
import viz_sessions  # noqa: E402
import gpufl.viz as viz  # noqa: E402
from gpufl.analyzer import GpuFlightSession  # noqa: E402
from gpufl.viz import _compare, _coverage, _figure, _palette, _roofline, _source  # noqa: E402

# Other releases of FreeType and matplotlib move letters by a pixel; a bar of another colour or length is far more.
DIFFERENCE_MAX = 0.012


def difference(figure, name, folder):
    """How far a figure is from the picture that was kept, 0 to 1, on average; 1: it has another size."""
    figure.savefig(folder / "drawn.png", dpi=viz_golden.DPI)
    drawn = matplotlib.image.imread(folder / "drawn.png")[..., :3]
    kept = matplotlib.image.imread(viz_golden.FOLDER / f"{name}.png")[..., :3]
    return 1.0 if drawn.shape != kept.shape else float(numpy.abs(drawn - kept).mean())


class Viz(fixture.TestCase):
    def setUp(self):
        super().setUp()
        warnings.simplefilter("ignore", UserWarning)

    def texts(self, figure):
        return [text.get_text() for axes in figure.axes for text in axes.texts] + [t.get_text() for t in figure.texts]

    def test_pictures_look_as_they_did(self):
        for name, figure in viz_golden.pictures(self.directory).items():
            self.assertLess(difference(figure, name, self.directory), DIFFERENCE_MAX, name)

    def test_the_comparison_sees_a_changed_picture(self):
        session = viz_sessions.write(self.directory / "slow", speed=1.6)
        for name, figure in (("overview", viz.show(session, theme="dark")), ("hotspots", viz.hotspots(session)),
                             ("timeline_dark", viz.timeline(session, start_s=0.03, end_s=0.06, theme="dark")),
                             ("stalls_dark", viz.stalls(fixture.GOLDEN / "deep", theme="dark"))):
            self.assertGreater(difference(figure, name, self.directory), DIFFERENCE_MAX, name)

    def test_the_documented_lines_run(self):
        viz_sessions.write(self.directory / "logs")
        printed = self.output("import gpufl.viz as viz   # v1.0.0+ only — see warning below\n\n"
                              "viz.init(\"./logs/*.log\")\nviz.show()\n", MPLBACKEND="Agg")
        self.assertEqual(printed, "")

    def test_a_pattern_means_the_sessions_of_its_directory(self):
        first = viz_sessions.write(self.directory / "logs" / "train" / "0192f300-0000-7000-8000-000000000001", steps=1)
        second = self.directory / "logs" / "train" / "0192f300-0000-7000-8000-000000000002"
        shutil.copytree(first, second)
        os.utime(first, (1, 1))
        for pattern in ("logs/*.log", "logs", "logs/*/*/*.log", "logs/**/*.log"):
            found = _source.session_of(self.directory / pattern)
            self.assertEqual(os.path.realpath(found.path), os.path.realpath(second), pattern)
        self.assertEqual(os.path.realpath(_source.session_of(first / "*.log").path), os.path.realpath(first))
        self.assertEqual(os.path.realpath(_source.session_of(first / "device.log").path), os.path.realpath(first))

    def test_every_session_at_hand_can_be_drawn(self):
        for path in fixture.GOLDEN_SESSIONS:
            for draw in (viz.show, viz.timeline, viz.hotspots, viz.stalls, viz.roofline):
                self.assertTrue(draw(path)._repr_png_().startswith(b"\x89PNG"), (path, draw))
            viz.compare(path, fixture.GOLDEN / "trace")._repr_png_()

    def test_what_was_not_recorded_is_said(self):
        trace = fixture.GOLDEN / "trace"
        self.assertIn("engine Trace has no stalls", " ".join(self.texts(viz.stalls(trace))))
        sampled = self.directory / "0192f300-0000-7000-8000-000000000001"
        sampled.mkdir()
        (sampled / "device.log").write_text(json.dumps({
            "version": 1, "type": "job_start", "session_id": sampled.name, "pid": 7, "app": "a", "ts_ns": 1000000,
            "profiling_engine": "nvidia.pc_sampling", "devices": []}) + "\n")
        self.assertIn("engine PcSampling recorded no PC sample", " ".join(self.texts(viz.stalls(sampled))))
        self.assertIn("RangeProfiler", " ".join(self.texts(viz.roofline(trace))))
        self.assertIn("not recorded: stalls", " ".join(self.texts(viz.show(trace))))
        self.assertIn("incomplete", " ".join(self.texts(viz.show(fixture.GOLDEN / "killed"))))

    def test_wrong_use_is_named(self):
        session = GpuFlightSession(fixture.GOLDEN / "trace")
        for error, word, call in (
                (FileNotFoundError, "nowhere", lambda: viz.init(self.directory / "nowhere" / "*.log")),
                (FileNotFoundError, "does not exist", lambda: viz.init(str(self.directory / "no.log"))),
                (TypeError, "int", lambda: viz.init(3)), (TypeError, "bytes", lambda: viz.init(b"logs/*.log")),
                (ValueError, "'blue'", lambda: viz.init(session, theme="blue")),
                (ValueError, "start_s", lambda: viz.timeline(session, start_s=5, end_s=1)),
                (TypeError, "end_s", lambda: viz.timeline(session, end_s="1")),
                (ValueError, "top_n", lambda: viz.hotspots(session, top_n=0)),
                (TypeError, "top_n", lambda: viz.show(session, top_n="3"))):
            with self.assertRaisesRegex(error, word):
                call()
        self.assertIn("viz.init", self.program("import gpufl.viz\ngpufl.viz.show()", MPLBACKEND="Agg").stderr)

    def test_a_window_opens_where_there_are_windows_and_a_notebook_shows_the_figure_once(self):
        (self.directory / "windows.py").write_text("""
from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_agg import FigureCanvasAgg

class FigureCanvas(FigureCanvasAgg):
    required_interactive_framework = "headless"

def show(*, block=None):
    import matplotlib.pyplot
    print("windows:", len(matplotlib.pyplot.get_fignums()))
""")
        viz_sessions.write(self.directory / "logs", steps=1)
        text = "import gpufl.viz as viz\nviz.init('./logs/*.log')\nviz.show()\n"
        printed = self.output(text, MPLBACKEND="module://windows", PYTHONPATH=str(self.directory))
        self.assertEqual(printed, "windows: 1\n")
        result = self.program(text, MPLBACKEND="Agg")
        self.assertIn("savefig", result.stderr)
        notebook = ("import types\nimport matplotlib.pyplot as pyplot\npyplot.close(pyplot.figure())\n"
                    "sys.modules['IPython'] = types.SimpleNamespace(get_ipython=lambda: True)\n" + text +
                    "print(pyplot.get_fignums())\n")
        result = self.program(notebook, MPLBACKEND="Agg")
        self.assertEqual((result.stdout, result.stderr), ("[]\n", ""))

    def test_the_programs_own_settings_stay(self):
        before = dict(matplotlib.rcParams)
        viz.show(fixture.GOLDEN / "trace")
        self.assertEqual(dict(matplotlib.rcParams), before)

    def test_colours_are_the_dashboards(self):
        # Values that web/src/colour.ts gives for the same names.
        self.assertEqual(_palette.name_hash("vector_add") % 360, 257)
        red, green, blue = (round(255 * part) for part in _palette.Palette("light").kernel("vector_add"))
        self.assertEqual((red, green, blue), (90, 135, 200))

    def test_coverage_counts_what_each_bin_was_busy(self):
        starts, ends = numpy.array([0.0, 0.5, 2.25, 9.0]), numpy.array([0.25, 1.5, 2.5, 10.0])
        track = _coverage.Track("", starts, ends, numpy.array([0, 1, 0, 1]), ["a", "b"], [])
        share, winner = _coverage.coverage(track, numpy.ones(4, dtype=bool), numpy.arange(0.0, 5.0))
        numpy.testing.assert_allclose(share, [0.75, 0.5, 0.25, 0])
        self.assertEqual(winner[:3].tolist(), [1, 1, 0])

    def test_the_roofline_holds_the_counted_work(self):
        session = GpuFlightSession(viz_sessions.write(self.directory / "s", steps=1))
        points = {point.name: point for point in _roofline.roofline_points(session)}
        for id_, (operations, moved, duration_ns) in viz_sessions.WORK.items():
            point = points[viz_sessions.KERNELS[id_]]
            self.assertAlmostEqual(point.intensity / (operations / moved), 1)
            self.assertAlmostEqual(point.per_second / (operations / duration_ns * 1e9), 1)

    def test_the_roofline_has_the_tensor_cores_roof_where_they_were_used(self):
        session = GpuFlightSession(viz_sessions.write(self.directory / "s", steps=1))
        texts = " ".join(self.texts(viz.roofline(session)))
        self.assertIn("tensor cores, 16 bit", texts)
        self.assertNotIn("not known", texts)

    def test_compared_kernels_are_those_that_changed_most(self):
        slow = GpuFlightSession(viz_sessions.write(self.directory / "a"))
        fast = GpuFlightSession(viz_sessions.write(self.directory / "b", speed=0.5, seed=9))
        name, before, after = _compare.kernel_changes(slow, fast)[0]
        sums = [session.kernels[session.kernels.name == name].duration_ns.sum() for session in (slow, fast)]
        self.assertEqual([before, after], sums)
        self.assertEqual(name, "layer_norm_backward")

    def test_kernels_that_a_session_did_not_record_are_not_gone(self):
        trace, monitor = fixture.GOLDEN / "trace", fixture.GOLDEN / "monitor"
        for first, second, side in ((trace, monitor, "after"), (monitor, trace, "before")):
            texts = " ".join(self.texts(viz.compare(first, second)))
            self.assertIn(f"no kernels recorded: {side}", texts)
            for word in ("gone", "new", "GPU busy", "gemm"):
                self.assertNotIn(word, texts)

    def test_names_from_logs_are_text(self):
        self.assertEqual(_figure.plain("a$b$\x1b[31m"), r"a\$b\$" + "\ufffd[31m")
        self.assertEqual(_figure.kernel_words("void (anonymous namespace)::f<int (*)(a::b)>(float*)"), "f<int (*)(b)>")
        self.assertEqual(_figure.kernel_words(
            "void at::native::vectorized_elementwise_kernel<4, at::native::lerp_kernel(at::TensorIteratorBase&)"
            "::{lambda()#1}::operator()() const::{lambda(float, float)#2}, std::array<char*, 3ul> >(int, float)"),
            "vectorized_elementwise_kernel<4, lerp_kernel(TensorIteratorBase&)>")
        self.assertEqual(_figure.cut("abcdefghij", 6), "abc…ij")
        figure = viz.hotspots(viz_sessions.write(self.directory / "s"))
        self.assertIn("reduce_kernel<512, 1, MaxOps>", self.texts(figure))


if __name__ == "__main__":
    fixture.main()
