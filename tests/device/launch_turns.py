# SPDX-License-Identifier: Apache-2.0
"""What a tiny launch costs in several programs. The machine's speed changes within seconds by more than what is measured,
so the programs live at the same time and take turns of a few milliseconds; one core launches for all of them."""
import os
import random
import statistics
import subprocess
import time

TURN_LAUNCHES = 5000
LAUNCHES_A_TURN = TURN_LAUNCHES + TURN_LAUNCHES // 10  # those to warm up
FIRST_LAUNCHES = 1000


def turn_program(work):
    return [work / "launch_rate", "--turns", str(TURN_LAUNCHES)]


class Launcher:
    """launch_rate, which launches when it is its turn."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen([str(part) for part in command], env={**os.environ, **(env or {})}, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.turns_ns = []
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{command} ended")

    def take_turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.turns_ns.append(float(self.process.stdout.readline()))

    def end(self):
        self.process.stdin.close()
        if status := self.process.wait(timeout=60):
            raise RuntimeError(f"{self.process.args} ended with {status}")

    def launches(self):
        return FIRST_LAUNCHES + len(self.turns_ns) * LAUNCHES_A_TURN

    def mean_ns(self):
        return statistics.mean(self.turns_ns)


def take_turns(launchers, turns=None, until_s=None):
    """Takes `turns` turns, or turns until until_s; then the launchers end."""
    start, done = time.monotonic(), 0
    while done < turns if turns else time.monotonic() - start < until_s:
        for launcher in random.sample(launchers, len(launchers)):
            launcher.take_turn()
        done += 1
    for launcher in launchers:
        launcher.end()


def mean_and_error(values):
    return statistics.mean(values), statistics.stdev(values) / len(values) ** 0.5
