# SPDX-License-Identifier: Apache-2.0
"""Runs programs in which one allocation of gpufl's code fails (tests/fault/memory_preload.c), for each call site."""
import collections
import concurrent.futures
import datetime
import os
import random
import subprocess
import threading
import time

from harness import BUILD, FAKES

PRELOAD = FAKES / "libmemory.so"
TORTURE_ALL = os.environ.get("TORTURE_ALL") == "1"
SEED = os.environ.get("TORTURE_SEED") or datetime.datetime.now(datetime.timezone.utc).date().isoformat()
WORKERS = 2
# Failures of a call site: only the first allocation; every allocation; every allocation after the first.
MODES = {"once": {"GPUFL_TEST_FAIL_TO": 1}, "always": {}, "later": {"GPUFL_TEST_FAIL_FROM": 2}}

Place = collections.namedtuple("Place", "number function frames")


class Trouble(Exception):
    """Behaviour that is not allowed when memory runs out."""


def expect(is_true, *words):
    if not is_true:
        raise Trouble(" ".join(str(word) for word in words))


def record(file):
    """Environment of a program that records its allocation call sites."""
    return {"LD_PRELOAD": PRELOAD, "GPUFL_TEST_PLACES": file}


def failing(place, mode, file):
    return {"LD_PRELOAD": PRELOAD, "GPUFL_TEST_FAIL": place.number, "GPUFL_TEST_FAILED": file, **MODES[mode]}


def places(file):
    """The recorded places in the order in which they were first reached, each once."""
    found = {}
    for line in file.read_text().splitlines():
        number, function, *frames = line.split()
        found.setdefault(number, Place(number, function, frames))
    return list(found.values())


def described(place):
    """Function and line of every frame of a place, innermost first."""
    words = []
    for frame in place.frames:
        name, offset = frame.split("+")
        path = next((path for path in (BUILD / "lib" / name, BUILD / "bin" / name) if path.exists()), None)
        lines = path and subprocess.run(["addr2line", "-f", "-s", "-e", path, hex(int(offset, 16) - 1)], text=True,
                                        capture_output=True, check=False).stdout.split("\n")
        words.append(f"{lines[0]} ({lines[1]})" if lines and len(lines) > 1 else frame)
    return f"{place.number} {place.function}: " + " < ".join(words)


class Sweep:
    """Tries all places, or a sample chosen by the seed; attempt(place, mode, directory) raises Trouble."""

    def __init__(self, name, directory, sample):
        self.name = name
        self.directory = directory
        self.sample = sample
        self.tried = self.failed = 0
        self.lock = threading.Lock()

    def choose(self, known):
        only = os.environ.get("TORTURE_PLACE")
        if only:
            return [(place, mode) for place in known if place.number in only for mode in MODES]
        if TORTURE_ALL:
            return [(place, mode) for place in known for mode in MODES]
        chance = random.Random(f"{SEED} {self.name}")
        chosen = chance.sample(known, min(self.sample, len(known)))
        return [(place, chance.choice(list(MODES))) for place in chosen]

    def run(self, known, attempt):
        """Runs the attempts; returns the failures as texts."""
        start, chosen = time.monotonic(), self.choose(known)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            troubles = [text for text in pool.map(lambda pair: self._try(attempt, *pair), chosen) if text]
        print(f"\n{self.name}: {len(known)} places, {self.tried} of them tried, {self.failed} failed as asked, "
              f"{time.monotonic() - start:.0f} s, TORTURE_SEED={SEED}", end=" ", flush=True)
        return troubles

    def _try(self, attempt, place, mode):
        directory = self.directory / f"{self.name}-{place.number}-{mode}"
        directory.mkdir()
        mark = directory / "failed"
        try:
            attempt(place, mode, directory, failing(place, mode, mark))
            trouble = None
        except (Trouble, AssertionError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            trouble = f"{mode} {described(place)}\n    {type(error).__name__}: {error}"
        with self.lock:
            self.tried += 1
            self.failed += mark.exists()
        if not trouble:
            subprocess.run(["rm", "-rf", directory], check=False)
        elif os.environ.get("TORTURE_VERBOSE"):
            print(trouble, flush=True)
        return trouble
