# SPDX-License-Identifier: Apache-2.0
"""Dockerfile and compose files, checked against the build as far as that is possible without a container engine."""
import functools
import os
import re
import shutil
import unittest

import yaml

import stage
from dockerfile import DIRECTORY, context_files, instructions, stages
from harness import GPUFL, main, run

OUR_BYTES_MAX = 30 * 1000 * 1000
COMPOSE_VARIABLES = {
    "docker-compose.yml": {"GPUFL_SERVE_ADMIN_KEY": "gpfl_x", "CLICKHOUSE_PASSWORD": "secret"},
    "docker-compose.monitor.yml": {"GPUFL_SERVER": "https://gpufl.example.com", "GPUFL_API_KEY": "gpfl_x"},
}


class Dockerfile(unittest.TestCase):
    def test_bases_are_pinned_to_a_release(self):
        for name, (base, _) in stages().items():
            self.assertRegex(base, r"^[a-z/]+:\d+\.\d+[\w.-]*$", name)

    def test_images_run_as_a_numbered_user_that_is_not_root(self):
        for name in ("agent", "server"):
            users = [rest for word, rest in stages()[name][1] if word == "USER"]
            self.assertEqual(users, ["65532:65532"], name)
            order = [word for word, _ in stages()[name][1]]
            self.assertLess(order.index("RUN"), order.index("USER"))
            self.assertGreater(order.index("ENTRYPOINT"), order.index("USER"))

    def test_only_the_package_manager_downloads_and_no_secret_is_built_in(self):
        for word, rest in instructions():
            self.assertNotEqual(word, "ADD")
            self.assertNotRegex(rest, r"curl |wget |(?i:api_key|password|secret)=")
            if "apt-get install" in rest:
                self.assertIn("--no-install-recommends", rest)
                self.assertIn("rm -rf /var/lib/apt/lists/*", rest)

    def test_copied_files_exist(self):
        files = context_files()
        components = set(re.findall(r"--component (\w+) --prefix /stage/(\w+)", build_commands()))
        for name, (_, lines) in stages().items():
            for rest in (rest for word, rest in lines if word == "COPY"):
                words = rest.split()
                if words[0] == "--from=build":
                    staged = re.fullmatch(r"/stage/(\w+)/", words[1]).group(1)
                    self.assertIn((staged, staged), components)
                elif words[0] != ".":
                    self.assertIn(words[0], files, name)

    def test_the_context_is_enough_to_configure_the_build(self):
        context = stage.DIRECTORY / "context"
        for name in context_files():
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(stage.SOURCE / name, context / name)
        options = re.findall(r"-D\w+=\w+", build_commands())
        result = run("cmake", "-S", context, "-B", stage.DIRECTORY / "context-build", "-G", "Ninja", *options, env=dict(os.environ))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for name in ("examples/recorded", "docs/man", "packaging/systemd", "packaging/cmake", "web/dist/index.html"):
            self.assertTrue((context / name).exists(), name)

    def test_images_contain_every_library_that_the_files_need(self):
        for name, components in (("agent", ["runtime"]), ("server", ["runtime", "server"])):
            prefix = stage.DIRECTORY / f"image-{name}"
            for component in components:
                stage.install(prefix, "--strip", "--component", component)
            packages = re.search(r"--no-install-recommends ([\w\s.+-]+?) *&&",
                                 " ".join(rest for word, rest in stages()[name][1] if word == "RUN")).group(1).split()
            for path in (p for p in prefix.rglob("*") if p.is_file() and not p.is_symlink()):
                if path.read_bytes()[:4] == b"\x7fELF" and path.name != "gpufl-demo-app":
                    self.assert_needs_are_met(path, packages, prefix)
            size = sum(p.stat().st_size for p in prefix.rglob("*") if p.is_file() and not p.is_symlink())
            self.assertLess(size, OUR_BYTES_MAX, name)
            print(f"{name}: {size / 1e6:.1f} MB of our files")

    def assert_needs_are_met(self, path, packages, prefix):
        for library in re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path).stdout):
            if (prefix / "lib" / library).exists():
                continue
            owners = {line.split(":")[0] for line in run("dpkg", "-S", f"*/{library}").stdout.splitlines()}
            self.assertTrue(owners & {*packages, "libc6"}, f"{path.name} needs {library} of {owners}, not in {packages}")

    def test_programs_accept_the_arguments_of_the_images(self):
        for name in ("agent", "server"):
            lines = dict(stages()[name][1])
            self.assertEqual(yaml.safe_load(lines["ENTRYPOINT"]), ["/usr/local/bin/gpufl"])
            result = run(GPUFL, *yaml.safe_load(lines["CMD"]), "--help")
            self.assertEqual(result.returncode, 0, result.stderr)


def build_commands():
    """All commands of the build stage."""
    return " ".join(rest for word, rest in stages()["build"][1] if word == "RUN")


class Compose(unittest.TestCase):
    @staticmethod
    @functools.cache
    def services(name):
        result = run("docker-compose", "-f", DIRECTORY / name, "config", env={**os.environ, **COMPOSE_VARIABLES[name]})
        if result.returncode:
            raise AssertionError(result.stderr)
        return yaml.safe_load(result.stdout)["services"]

    def test_files_are_valid_and_programs_accept_their_options(self):
        for name in COMPOSE_VARIABLES:
            for service, settings in self.services(name).items():
                if settings["image"].startswith("gpufl/"):
                    result = run(GPUFL, *settings["command"], "--help")
                    self.assertEqual(result.returncode, 0, f"{name}: {service}: {result.stderr}")

    def test_secrets_have_no_default(self):
        for name, variables in COMPOSE_VARIABLES.items():
            for missing in variables:
                given = {key: value for key, value in variables.items() if key != missing}
                environment = {key: value for key, value in os.environ.items() if key not in variables}
                result = run("docker-compose", "-f", DIRECTORY / name, "config", "-q", env={**environment, **given})
                self.assertNotEqual(result.returncode, 0, missing)
                self.assertIn(missing, result.stderr)

    def test_our_containers_are_confined_and_reachable_from_this_host_only(self):
        for name in COMPOSE_VARIABLES:
            for service, settings in self.services(name).items():
                self.assertRegex(settings["image"], r":\d+\.\d+")
                for port in settings.get("ports", []):
                    self.assertTrue(str(port).startswith("127.0.0.1:"), port)
                if settings["image"].startswith("gpufl/"):
                    self.assertTrue(settings["read_only"], service)
                    self.assertEqual(settings["cap_drop"], ["ALL"], service)
                    self.assertIn("no-new-privileges:true", settings["security_opt"], service)

    def test_only_the_server_reaches_the_store(self):
        services = self.services("docker-compose.yml")
        self.assertEqual(list(services["clickhouse"]["networks"]), ["store"])
        self.assertNotIn("ports", services["clickhouse"])


if __name__ == "__main__":
    main()
