# SPDX-License-Identifier: Apache-2.0
"""The quick start and every form of a scope, as printed in the guides, in projects that use the installed gpufl."""
import os

import stage
from harness import FAKES, Session, gpufl, environment, main, run, sessions
from serve_process import ServeTest

QUICK_START = """\
#include <gpufl/gpufl.hpp>

int main() {
    gpufl::InitOptions opts;
    opts.app_name = "my_app";
    opts.continuous_system_sampling = true;
    opts.system_sample_rate_ms = 50;
    gpufl::init(opts);

    GFL_SCOPE("training") {
        // GPU kernels here
    }

    gpufl::shutdown();
    gpufl::generateReport(); // prints performance summary to console
}
"""
# Parts that the guides leave to the reader: a model, a loader, a launch.
READERS_OWN = """\
#include <vector>

extern "C" int cudaDeviceSynchronize();

struct Tensor { void backward() {} };
struct Model { Tensor forward(int) { cudaDeviceSynchronize(); return {}; } };
struct Optimizer { void step() {} };
struct Batch { int input = 0, target = 0; };
using DataLoader = std::vector<Batch>;

static Model model;
static Optimizer optimizer;
static Tensor output, loss, result;
static int launches, input;
static Tensor criterion(const Tensor &, int) { return {}; }
static void my_kernel() { launches++; }
"""
SCOPES = """\
void train_epoch(DataLoader& loader) {
    for (auto& batch : loader) {
        GFL_SCOPE("batch") {

            GFL_SCOPE("forward_pass") {
                output = model.forward(batch.input);
            }

            GFL_SCOPE("loss") {
                loss = criterion(output, batch.target);
            }

            GFL_SCOPE("backward_pass") {
                loss.backward();
            }

            GFL_SCOPE("optimizer_step") {
                optimizer.step();
            }
        }
    }
}

void load() {
    {
        gpufl::ScopedMonitor scope("data_loading");
        // ... load and preprocess data ...
    } // scope ends here, when `scope` is destroyed
}

void infer() {
    gpufl::monitor("inference", [&]() {
        result = model.forward(input);
    });
}

void benchmark() {
    // Runs the body 3 warmup times BEFORE the scope opens (excluded from
    // the measured window), then 10 measured times inside it.
    GFL_BENCH("matmul", gpufl::ScopeMeta{}.setRepeat(10).setWarmup(3)) {
        my_kernel();
        cudaDeviceSynchronize();
    }; // the trailing ';' is required
}

void phases() {
    gpufl::systemStart("phase_name");
    // ... GPU work ...
    gpufl::systemStop("phase_name");
}
"""
FORMS = '#include <gpufl/gpufl.hpp>\n' + READERS_OWN + SCOPES + """
int main() {
    gpufl::InitOptions opts;
    opts.app_name = "my_app";
    opts.profiling_engine = gpufl::ProfilingEngine::Trace;
    opts.backend = gpufl::BackendKind::Auto;
    if (!gpufl::init(opts))
        return 1;
    DataLoader loader(2);
    train_epoch(loader);
    load();
    infer();
    benchmark();
    phases();
    gpufl::shutdown();
    return launches == 13 ? 0 : 2;
}
"""
SCOPE_NAMES = {"batch", "batch|forward_pass", "batch|loss", "batch|backward_pass", "batch|optimizer_step",
               "data_loading", "inference", "matmul"}
PROJECT = """\
cmake_minimum_required(VERSION 3.22)
project(outside LANGUAGES CXX)
find_package(gpufl 1 REQUIRED)
add_executable(quick_start quick_start.cpp)
target_link_libraries(quick_start PRIVATE gpufl::gpufl)
"""


class Outside(ServeTest):
    def setUp(self):
        super().setUp()
        (self.directory / "quick_start.cpp").write_text(QUICK_START)
        (self.directory / "forms.cpp").write_text(FORMS)

    def build(self, *command, **variables):
        result = run(*command, cwd=self.directory, env={**os.environ, **variables})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def flags(self):
        where = {"PKG_CONFIG_PATH": str(stage.PREFIX / "lib/pkgconfig")}
        return self.build("pkg-config", "--cflags", "--libs", "gpufl", **where).split()

    def recorded(self, program, **variables):
        """The session that the program recorded, and what it printed."""
        log = self.directory / (program.name + "-log")
        variables |= {"LD_LIBRARY_PATH": f"{stage.PREFIX}/lib:{FAKES}", "GPUFL_LOG_DIR": log}
        result = run(program, cwd=self.directory, env=environment(**variables))
        self.assertEqual(result.returncode, 0, result.stderr)
        session, = sessions(log)
        self.assertEqual(gpufl("verify", session).returncode, 0)
        return Session(session), result.stdout

    def assert_quick_start_works(self, program):
        session, printed = self.recorded(program)
        self.assertIn("training", session.dictionary("scope_name_dict").values())
        self.assertIn("my_app", printed)
        self.assertIn("training", printed)

    def test_the_quick_start_with_find_package(self):
        (self.directory / "CMakeLists.txt").write_text(PROJECT)
        self.build("cmake", "-S", ".", "-B", "out", f"-DCMAKE_PREFIX_PATH={stage.PREFIX}")
        self.build("cmake", "--build", "out")
        self.assert_quick_start_works(self.directory / "out/quick_start")

    def test_the_quick_start_with_pkg_config(self):
        self.build("c++", "quick_start.cpp", "-o", "quick_start", *self.flags())
        self.assert_quick_start_works(self.directory / "quick_start")

    def test_the_engine_is_changed_without_a_rebuild(self):
        self.build("c++", "quick_start.cpp", "-o", "quick_start", *self.flags())
        session, _ = self.recorded(self.directory / "quick_start", GPUFL_PROFILING_ENGINE="Trace")
        self.assertEqual(session.first("capture_capabilities")["selected_engine"], "Trace")

    def test_every_form_of_a_scope_with_both_compilers_and_standards(self):
        for compiler in ("g++", "clang++"):
            for standard in ("c++17", "c++20"):
                name = f"{compiler}-{standard}"
                self.build(compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "forms.cpp",
                           "-o", name, *self.flags(), FAKES / "libcudart.so")
                session, _ = self.recorded(self.directory / name)
                self.assertEqual(session.first("capture_capabilities")["selected_engine"], "Trace")
                self.assertTrue(session.rows("synchronization_event_batch"), name)
                self.assertEqual(SCOPE_NAMES - set(session.dictionary("scope_name_dict").values()), set(), name)


if __name__ == "__main__":
    main()
