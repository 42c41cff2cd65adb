# SPDX-License-Identifier: Apache-2.0
"""What pages take for granted, by name: <!-- given: NAME [ARGUMENT] -->. Each returns variables for the commands that follow."""
import pathlib
import shutil

from scratch import harness, loopback_add, mount
from clickhouse_cluster import Cluster
import init_system

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = '#!/bin/sh\nexec /usr/bin/python3 -B {here}/lookalike_{name}.py {options} "$@"\n'
TOOLKIT = pathlib.Path("/usr/local/cuda")
EXAMPLE_HOST = "gpufl.example.com"


class UnknownError(Exception):
    """No such thing is given."""


def done(machine, *command):
    output, status = machine.run(command)
    if status:
        raise UnknownError(f"{command[0]} ended with {status}: {output}")


def host_name(name, address="127.0.0.1"):
    hosts = pathlib.Path("/etc/hosts")
    hosts.write_text(f"{hosts.read_text().rstrip()}\n{address} {name}\n")


def certificate_make(machine, folder, name):
    done(machine, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem")


def example_server(machine):
    """A server of ours under the name that the pages use, with TLS and a key."""
    folder = machine.base / "example-server"
    folder.mkdir()
    host_name(EXAMPLE_HOST)
    certificate_make(machine, folder, EXAMPLE_HOST)
    trusted = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
    trusted.write_text(trusted.read_text() + (folder / "cert.pem").read_text())
    key = "gpfl_" + "0123456789abcdef" * 2
    (folder / "key").write_text(key + "\n")
    (folder / "key").chmod(0o600)
    done(machine, "gpufl", "serve", "--listen", ":443", "--data", folder / "data", "--tls-cert", folder / "cert.pem",
         "--tls-key", folder / "key.pem", "--admin-key-file", folder / "key", "--allow-host", EXAMPLE_HOST)
    return {"GPUFL_API_KEY": key}


def certificate(machine):
    """The reader's own, cert.pem and key.pem."""
    certificate_make(machine, machine.work, "localhost")
    return {}


def clickhouse_cluster(machine):
    """Two shards of two replicas, on hosts ch1 to ch4; the password of the user `gpufl` is in the environment."""
    hosts = {f"ch{number}": f"127.0.0.{10 + number}" for number in range(1, 5)}
    for name, address in hosts.items():
        host_name(name, address)
        loopback_add(address)  # a node looks there for which part of the cluster it is
    cluster = Cluster(name="prod", hosts=list(hosts.values()))
    machine.at_end.append(cluster.stop)
    cluster.start_all()
    return {"GPUFL_CLICKHOUSE_PASSWORD": cluster.password}


def amd_host(machine):
    """A host with AMD GPUs whose files are mounted at /host."""
    done(machine, harness.FAKES / "fake_amd_tree", "/host", "mi300x@0000:03:00.0", "rx7900@0000:c3:00.0")
    return {}


def source(machine):
    """The working directory is the source tree, already built, so that a build takes seconds; it is a layer too."""
    if harness.BUILD != harness.SOURCE / "build":
        raise UnknownError(f"the source is built in {harness.BUILD}, and pages build it in its directory build")
    machine.work = harness.SOURCE
    machine.hand_over(machine.work)
    # pip takes the C parts from the build, too.
    return {"PYTHONPATH": f"{harness.BUILD / 'python'}:{machine.work}", "PIP_CONFIG_SETTINGS": "build-dir=build"}


def packages(machine):
    """The source, of which packages were built before, and an administrator who answers yes. Of gpufl there is nothing
    but what the page installs."""
    if not (harness.BUILD / "deb" / "packages").is_dir():
        raise UnknownError("there are no packages to begin with; tools/build_deb.sh build/deb makes them")
    for path in machine.bin.glob("gpufl*"):
        path.unlink()
    machine.program("sudo", '#!/bin/sh\nexec "$@"\n')
    pathlib.Path("/etc/apt/apt.conf.d/99documented").write_text('APT::Get::Assume-Yes "true";\n')
    return {**source(machine), **libraries([harness.FAKES]), "PYTHONPATH": str(machine.work)}


def systemd(machine):
    init_system.boot(machine)
    return {}


def docker(machine):
    machine.program("docker", PROGRAM.format(here=HERE, name="docker", options=""))
    return {}


def kubernetes(machine):
    for name in ("kubectl", "helm"):
        machine.program(name, PROGRAM.format(here=HERE, name="kubernetes", options=name))
    return {}


def coding_assistant(machine):
    for name in ("claude", "codex", "npx"):
        machine.program(name, PROGRAM.format(here=HERE, name="assistant", options=name))
    return {}


def libraries(places):
    """Variables with which GPU libraries are found in the first of these places alone."""
    return {"LD_LIBRARY_PATH": ":".join(map(str, places)),
            **{f"GPUFL_{name}_PATH": str(places[0]) for name in ("CUDA", "CUPTI", "NVML")}}


def gpu(machine):
    """The look-alike one, which every page has anyway."""
    return libraries([harness.FAKES, harness.BUILD / "lib"])


def no_gpu(machine):
    return libraries(["/nonexistent", harness.BUILD / "lib"])


def cuda_toolkit(machine):
    """One without a compiler, on the look-alike runtime, in place of any that this machine has: what that one would
    compile cannot run here."""
    for path in (*TOOLKIT.parent.glob("cuda*"), *TOOLKIT.parent.glob("bin/nvcc"), pathlib.Path("/usr/bin/nvcc")):
        if path.is_dir() and not path.is_symlink():
            mount("-t", "tmpfs", "own", path)
        else:
            path.unlink(missing_ok=True)
    TOOLKIT.mkdir(exist_ok=True)
    shutil.copytree(HERE / "toolkit", TOOLKIT / "include")
    (TOOLKIT / "include/version.txt").rename(TOOLKIT / "version.txt")
    (TOOLKIT / "lib64").mkdir()
    (TOOLKIT / "lib64/libcudart.so").symlink_to(harness.FAKES / "libcudart.so.13")
    return {}


def program(machine, name):
    """The reader's own program under the name that the page uses. It launches kernels on the look-alike GPU."""
    shutil.copy(harness.FAKE_APP, machine.work / name)
    return {}


def fault(machine, name):
    """A fault of the GPU libraries (tests/fakes/faults.h) that the page describes, or `none`."""
    return {"FAKE_FAULTS": "" if name == "none" else name}


def gemm_program(machine):
    """What CUDA's compiler would make of an example: a program that launches kernels, here on the look-alike GPU."""
    folder = machine.work / "build/examples"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "gemm"
    program.unlink(missing_ok=True)
    program.write_text(f"#!/bin/sh\nexec {harness.FAKE_APP} --launches 60\n")  # whatever it is asked to multiply
    program.chmod(0o755)
    return {}


THINGS = {"amd-host": amd_host, "certificate": certificate, "clickhouse-cluster": clickhouse_cluster,
          "coding-assistant": coding_assistant, "cuda-toolkit": cuda_toolkit, "docker": docker,
          "example-server": example_server, "fault": fault, "gemm-program": gemm_program, "gpu": gpu,
          "kubernetes": kubernetes, "no-gpu": no_gpu, "packages": packages, "program": program, "source": source,
          "systemd": systemd}


def provide(text, machine):
    """Provides what `NAME` or `NAME ARGUMENT` asks for."""
    name, *argument = text.split(maxsplit=1)
    if name not in THINGS:
        raise UnknownError(f"nothing is given as '{name}'; known: {', '.join(THINGS)}")
    return THINGS[name](machine, *argument)
