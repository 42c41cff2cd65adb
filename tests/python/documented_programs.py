# SPDX-License-Identifier: Apache-2.0
"""The programs of the public documentation, as they are written there. tests/python runs them beside the fake GPU,
tests/device on a real one; what they take for granted (a model, a kernel) comes from there."""

CORE = """
import gpufl as gfl

# Function-style init — every InitOptions field is a kwarg.
gfl.init(
    app_name="my_app",
    continuous_system_sampling=True,
    system_sample_rate_ms=50,
    backend=gfl.BackendKind.Auto,
    profiling_engine=gfl.ProfilingEngine.PcSampling,
)

with gfl.Scope("phase_name"):
    # GPU work here
    pass

gfl.system_start("sampling")
gfl.system_stop("sampling")

gfl.shutdown()
"""

# The next two are written for a program that has imported gpufl as gfl.
SWITCHED_OFF = """
gfl.init(app_name="my_app", enabled=False)   # init returns False; Scope/upload_logs/etc. all no-op
"""

NO_BACKEND = """
# "No backend" — for stub / test sessions.
gfl.init(app_name="m", backend=gfl.BackendKind.None_)
"""

SCOPES = """
import gpufl

# Initialize once at app startup. profiling_engine selects what kind
# of in-scope sampling runs; pick Monitor for telemetry-only sessions
# (no CUPTI) or Trace for kernel timing without sampling.
gpufl.init(
    app_name="my_training",
    log_path="./logs",
    continuous_system_sampling=True,
    system_sample_rate_ms=50,
    profiling_engine=gpufl.ProfilingEngine.PcSampling,
)

# Context manager
with gpufl.Scope("forward_pass"):
    output = model(input)

# Optional tag — second positional arg, shown next to the name in the
# dashboard so you can distinguish "forward_pass / batch_42" etc.
with gpufl.Scope("backward_pass", "batch_42"):
    loss.backward()

gpufl.shutdown()
"""

# For a program that has imported gpufl; matmul_kernel is any kernel that is launched so.
LOOP = """
# warmup iterations yield negative indices (-warmup .. -1);
# measured iterations yield 0 .. repeat-1.
for i in gpufl.Scope("matmul", "math", repeat=10, warmup=3):
    matmul_kernel[bpg, tpb](A, B, C)
    # if i >= 0: # only true for measured iterations
"""

# log_dir is where sessions are.
ANALYZER = """
from gpufl.analyzer import GpuFlightSession

session = GpuFlightSession(log_dir, log_prefix="my_app", session_id=None)

session.print_summary() # Executive summary
session.inspect_scopes() # Scope timing analysis
session.inspect_hotspots(top_n=5) # Top kernels by GPU time
session.inspect_stalls() # PC sampling stall distribution
session.inspect_profile_samples() # SASS/PC sample details
session.inspect_perf_metrics() # Hardware counter results
"""

REPORT = """
from gpufl.report import generate_report, TextReport

# One-liner
text = generate_report(log_dir, log_prefix="my_app", top_n=10, output_path=None)

# Class-based
from gpufl.analyzer import GpuFlightSession
session = GpuFlightSession(log_dir, log_prefix="my_app")
report = TextReport(session, top_n=10)
report.print() # stdout
report.save("report.txt") # file
text = report.generate() # string
"""

VISUALIZATION = """
import gpufl.viz as viz   # v1.0.0+ only — see warning below

viz.init("./logs/*.log")
viz.show()
"""

DATA_FRAMES = ("kernels", "memcpy", "scopes", "scope_events", "device_metrics", "host_metrics", "perf")
