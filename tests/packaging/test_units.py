# SPDX-License-Identifier: Apache-2.0
"""The systemd units are valid, hardened, and start the installed programs with options that they accept."""
import configparser
import re
import shlex
import unittest

import stage
from harness import main, run

UNITS = ("gpufl-monitor", "gpufl-agent", "gpufl-serve")
# Upper limits of systemd's exposure level in tenths, 100 at most. Each is the unit's current level and may only
# decrease.
EXPOSURE_MAX = {"gpufl-monitor": 23, "gpufl-agent": 18, "gpufl-serve": 17}


class Units(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stage.install(stage.PREFIX, "--component", "systemd")
        cls.directory = stage.PREFIX / "lib/systemd/system"

    def test_systemd_reports_no_problem(self):
        for unit in UNITS:
            result = run("systemd-analyze", "verify", "--man=no", self.directory / f"{unit}.service")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""), unit)

    def test_units_stay_hardened(self):
        for unit in UNITS:
            result = run("systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE_MAX[unit]}", "--no-pager",
                         self.directory / f"{unit}.service")
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_the_monitor_keeps_its_devices(self):
        text = (self.directory / "gpufl-monitor.service").read_text()
        settings = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
        self.assertEqual({"PrivateDevices", "ProtectClock", "DeviceAllow", "DevicePolicy", "ProtectProc"} & set(settings), set())

    def test_programs_accept_their_options(self):
        for unit in UNITS:
            command = self.command(unit)
            result = run(*command, "--help")
            self.assertEqual(result.returncode, 0, f"{command}: {result.stderr}")
            self.assertEqual(run(*command, "--no-such-option", "--help").returncode, 2)

    def test_documented_options_are_known(self):
        for unit in UNITS:
            example = re.search(r"OPTIONS=(.*)", (self.directory / f"{unit}.service").read_text()).group(1)
            result = run(*self.command(unit), *shlex.split(example), "--help")
            self.assertEqual(result.returncode, 0, f"{unit}: {example}: {result.stderr}")

    def command(self, unit):
        reader = configparser.RawConfigParser(strict=False)
        reader.optionxform = str
        reader.read(self.directory / f"{unit}.service")
        words = shlex.split(reader["Service"]["ExecStart"])
        self.assertEqual(words[0], f"{stage.PREFIX}/bin/gpufl")
        return [word for word in words if word != "$OPTIONS"]

    def test_the_user_is_declared(self):
        text = (stage.PREFIX / "lib/sysusers.d/gpufl.conf").read_text()
        self.assertRegex(text, r"(?m)^u gpufl ")


if __name__ == "__main__":
    main()
