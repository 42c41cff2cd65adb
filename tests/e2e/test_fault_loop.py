# SPDX-License-Identifier: Apache-2.0
"""All faults at once: programs write sessions, some until they are killed, some onto a full disk, while agent and
server are killed repeatedly, their disks fill up, their clocks jump, and the network between them fails, slows down and
returns errors. At the end every written kernel is in the store exactly once, or counted in a loss record.

FAULT_LOOP_KILLS: how often the agent and the server are each killed (100). FAULT_LOOP_SEED repeats the same choices."""
import collections
import itertools
import mmap
import os
import random
import signal
import struct
import subprocess
import threading
import time

from faulty_proxy import MOODS, Proxy
from flow_fixture import Written, stored_kernels
from harness import FAKE_APP, FAKES, GPUFL, TIMEOUT_S, TestCase, environment, gpufl, main, printed_counts, sessions
from serve_process import Serve

KILLS = int(os.environ.get("FAULT_LOOP_KILLS", "100"))
SEED = int(os.environ.get("FAULT_LOOP_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
ENOSPC, CLOCK = FAKES / "libenospc.so", FAKES / "libclock.so"
DAY_NS = 86400 * 10 ** 9
JUMPS_NS = (0, DAY_NS, -DAY_NS, 400 * DAY_NS, -400 * DAY_NS, 10 ** 9, -10 ** 9)
LIFE_S = (0.02, 1.0)
NO_ROOM_STATUS = 3


class JumpingClock:
    """Environment variables for a process whose wall clock the test can change."""

    def __init__(self, path):
        path.write_bytes(bytes(8))
        self.variables = {"GPUFL_TEST_CLOCK_FILE": path}
        with open(path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 8)

    def jump(self, ns):
        self.page[:] = struct.pack("=q", ns)

    def close(self):
        self.page.close()


class Program:
    """One run of a recorded program, and its output."""

    def __init__(self, directory, kind, chance):
        arguments = ["--run-ms", chance.randrange(2000, 5000), "--pause-us", 300, "--scopes", "--copies"]
        self.kind, words = kind, []
        if kind == "killed":
            arguments += ["--crash", int(signal.SIGKILL)]
        if kind == "full disk":
            # With the SDK only, not under `gpufl trace`.
            words = ["env", f"LD_PRELOAD={ENOSPC}", f"GPUFL_TEST_DISK_DIR={directory}",
                     f"GPUFL_TEST_DISK_BYTES={chance.randrange(9000, 20000)}",
                     f"GPUFL_TEST_DISK_RECOVER_MS={chance.randrange(200, 1500)}"]
        command = [GPUFL, "trace", "-q", "-o", directory, "--", *words, FAKE_APP, *arguments]
        result = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL, check=False,
                                capture_output=True, env=environment(GPUFL_LOG_ROTATE_BYTES=65536), timeout=TIMEOUT_S)
        self.status, self.text = result.returncode, result.stdout + result.stderr
        self.launched = printed_counts(result.stdout).get("kernels")
        self.sessions = sessions(directory)


class FaultLoop(TestCase):
    def setUp(self):
        super().setUp()
        self.log, self.state, self.data = (self.directory / name for name in ("log", "state", "data"))
        self.is_over = threading.Event()
        self.errors = []
        self.counts = collections.Counter()
        self.numbers = itertools.count()
        self.programs = []
        self.kinds = ("usual", "killed", "usual", "full disk")
        self.kills, self.agent_options = KILLS, ()
        self.clocks = [JumpingClock(self.directory / name) for name in ("agent.clock", "server.clock")]
        for clock in self.clocks:
            self.addCleanup(clock.close)
        self.server = Serve(self.data)
        self.agent_text = open(self.directory / "agent.txt", "w+", encoding="utf-8")
        self.addCleanup(self.agent_text.close)

    def troubled(self, clock, directory, chance):
        """Environment of a process whose clock jumps and whose disk may be full for a while."""
        variables = {"LD_PRELOAD": CLOCK, **clock.variables}
        if chance.random() < 0.25:
            self.counts[f"full disks of {directory.name}"] += 1
            variables |= {"LD_PRELOAD": f"{CLOCK} {ENOSPC}", "GPUFL_TEST_DISK_DIR": directory,
                          "GPUFL_TEST_DISK_BYTES": chance.randrange(200000),
                          "GPUFL_TEST_DISK_RECOVER_MS": chance.randrange(100, 800)}
        return variables

    def agent_command(self, url, *options):
        return [str(word) for word in (GPUFL, "agent", "--server", url, "--root", self.log, "--state", self.state,
                                       "--interval", 20, *self.agent_options, *options)]

    def count_end(self, who, code):
        """Without disk space a process may fail to start, with a message; any other end except our kill is a bug."""
        self.counts[f"{who} killed" if code == -signal.SIGKILL else f"{who} without room"] += 1
        self.assertIn(code, (-signal.SIGKILL, NO_ROOM_STATUS), "".join(self.server.printed[-20:]))

    def kill_agents(self, url, chance):
        while self.counts["agents killed"] < self.kills:
            env = environment(**self.troubled(self.clocks[0], self.state, chance))
            with subprocess.Popen(self.agent_command(url), stdin=subprocess.DEVNULL, stdout=self.agent_text,
                                  stderr=subprocess.STDOUT, env=env) as agent:
                time.sleep(chance.uniform(*LIFE_S))
                agent.kill()
            self.count_end("agents", agent.returncode)

    def server_end(self, before, life_s):
        """Kills the server a while after it was started, ready or not."""
        while self.server.process is before:
            time.sleep(0.001)
        time.sleep(life_s)
        self.server.process.kill()

    def kill_servers(self, chance):
        while self.counts["servers killed"] < self.kills:
            self.server.listen = "127.0.0.1:0"
            self.server.variables = self.troubled(self.clocks[1], self.data, chance)
            killer = threading.Thread(target=self.server_end, args=(self.server.process, chance.uniform(*LIFE_S)),
                                      daemon=True)
            killer.start()
            try:
                self.server.start()
                self.server.process.wait()
            except AssertionError:
                pass  # killed before it was ready, or no disk space
            killer.join()
            self.server.kill()
            self.count_end("servers", self.server.process.returncode)

    def write(self, chance):
        while not self.is_over.is_set():
            number = next(self.numbers)
            kind = self.kinds[number % len(self.kinds)]
            self.programs.append(Program(self.log / str(number), kind, chance))

    def trouble(self, proxy, chance):
        while not self.is_over.is_set():
            # Every other time there is a chance for something to arrive.
            proxy.turn("pass" if proxy.mood != "pass" else chance.choice(MOODS))
            for clock in self.clocks:
                if chance.random() < 0.3:
                    clock.jump(chance.choice(JUMPS_NS))
            self.is_over.wait(chance.uniform(0.1, 0.5))

    def in_threads(self, *calls):
        def guarded(call, arguments):
            try:
                call(*arguments)
            except BaseException as error:  # pylint: disable=broad-except # the test reports it
                self.errors.append(error)
                raise
        threads = [threading.Thread(target=guarded, args=(call, arguments)) for call, *arguments in calls]
        for thread in threads:
            thread.start()
        return threads

    def storm(self, proxy):
        """Runs until agent and server have been killed often enough."""
        always = self.in_threads((self.write, random.Random(SEED + 1)), (self.write, random.Random(SEED + 2)),
                                 (self.trouble, proxy, random.Random(SEED + 3)))
        try:
            for thread in self.in_threads((self.kill_agents, proxy.url, random.Random(SEED + 4)),
                                          (self.kill_servers, random.Random(SEED + 5))):
                thread.join()
        finally:
            self.is_over.set()
            for thread in always:
                thread.join()
            proxy.turn("pass")

    def assert_stored(self, program):
        """Compares rows and losses of a program's session in the files, in the store, and in the program's counts."""
        self.assertEqual(len(program.sessions), 1, program.text)
        session = program.sessions[0]
        written = Written(session)
        kernels, stored = written.kernels(), stored_kernels(self.server, session.name)
        self.counts["kernels written"] += kernels.total()
        self.counts["kernels stored"] += stored.total()
        self.counts["kernels double"] += (stored - kernels).total()
        self.counts["kernels lost"] += (kernels - stored).total()
        lost = written.lost_kernels()
        self.counts["kernels named in losses"] += lost
        losses = self.server.get(f"/api/v1/sessions/{session.name}/losses")["completeness"]["losses"]
        named = sum(loss["count"] for loss in losses if loss["record_type"] == "kernel_event_batch")
        self.assertEqual(named, lost, session)
        if program.kind == "killed":
            return
        self.assertEqual(program.status, 0, program.text)
        ends = written.records("shutdown")
        self.assertTrue(ends, session)
        # If the disk is still full at the end, the session's end is not written; `gpufl trace` records it.
        if any(end.get("synthetic") for end in ends) and program.kind == "full disk":
            self.counts["programs whose disk stayed full"] += 1
        else:
            self.assertEqual(kernels.total() + lost, program.launched, f"{session}: {program.kind}")

    def settle(self, proxy, compare):
        """Without faults: the remaining data arrives, and everything is compared."""
        self.server.variables = {}
        with self.server:
            sent = subprocess.run(self.agent_command(proxy.url, "--once"), capture_output=True, text=True,
                                  timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL, env=environment())
            self.assertEqual(sent.returncode, 0, sent.stderr)
            compare()
            checked = gpufl("serve", "check", "--data", self.data)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def loop(self, compare):
        print(f"FAULT_LOOP_SEED={SEED}", flush=True)
        with Proxy(lambda: self.server.port, SEED) as proxy:
            self.storm(proxy)
            self.assertEqual(self.errors, [])
            self.settle(proxy, compare)
        print(f"{dict(self.counts)}, requests {dict(proxy.moods)}, answers {dict(proxy.answers)}")
        # No upload was rejected as invalid, and some arrived in spite of the faults.
        for directory in (self.state / "quarantine", self.data / "quarantine"):
            self.assertEqual(list(directory.iterdir()) if directory.exists() else [], [])
        self.assertGreater(proxy.answers[202], 0)
        self.assertEqual(proxy.answers.keys() - {200, 202, 503}, set(), proxy.answers)
        self.agent_text.seek(0)
        for line in self.agent_text:
            self.assertNotIn("did not keep", line)

    def test_every_kernel_is_stored_once_or_named_in_a_loss(self):
        def compare():
            for program in self.programs:
                self.assert_stored(program)
        self.loop(compare)
        counts = self.counts
        print(f"{counts['agents killed']} + {counts['servers killed']} kills, {len(self.programs)} sessions, "
              f"{counts['kernels written']} kernels written, {counts['kernels stored']} stored, "
              f"{counts['kernels double']} double, {counts['kernels lost']} lost, "
              f"{counts['kernels named in losses']} more named in losses", flush=True)
        self.assertEqual((counts["kernels double"], counts["kernels lost"]), (0, 0))

    def test_what_was_deleted_after_its_acknowledgement_is_stored_once(self):
        stored = collections.Counter()

        def compare():
            listed = self.server.pages("/api/v1/sessions", "sessions")
            self.assertEqual(len(listed), len(self.programs))
            for entry in listed:
                stored.update(stored_kernels(self.server, entry["id"]))
        self.kills, self.kinds, self.agent_options = -(-KILLS // 4), ("usual",), ("--delete-after-ack",)
        self.loop(compare)
        launched = sum(program.launched for program in self.programs)
        left = sum(len(sessions(directory)) for directory in self.log.iterdir())
        print(f"{self.counts['agents killed']} + {self.counts['servers killed']} kills, {len(self.programs)} sessions, "
              f"{left} not deleted yet, {launched} kernels launched, {stored.total()} stored", flush=True)
        self.assertEqual((stored.total(), len(stored)), (launched, launched))
        self.assertLess(left, len(self.programs))


if __name__ == "__main__":
    main()
