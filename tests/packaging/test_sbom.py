# SPDX-License-Identifier: Apache-2.0
"""The bill of materials lists what the built files really contain and need, and conforms to its schema."""
import json
import re
import subprocess
import unittest

from packages import BUILD, DIRECTORY, SOURCE, built

VALIDATOR = ("@cyclonedx/cyclonedx-library@10.3.0", "ajv@8.17.1", "ajv-formats@3.0.1", "ajv-formats-draft2019@1.6.1")


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def linkage(component):
    return next((entry["value"] for entry in component.get("properties", []) if entry["name"] == "gpufl:linkage"), None)


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        result = run(SOURCE / "tools/sbom.py", built(), DIRECTORY / "sbom")
        if result.returncode:
            raise AssertionError(result.stdout + result.stderr)
        cls.file = DIRECTORY / "sbom/gpufl.cdx.json"
        cls.document = json.loads(cls.file.read_text())
        cls.components = cls.document["components"]

    def names(self, kind):
        return {component["name"] for component in self.components if linkage(component) == kind}

    def test_the_schema_is_kept(self):
        modules = BUILD / "cyclonedx"
        modules.mkdir(exist_ok=True)
        fetched = run("npm", "install", "--no-save", "--no-audit", "--no-fund", "--legacy-peer-deps",
                      "--prefix", modules, *VALIDATOR)
        self.assertEqual(fetched.returncode, 0, fetched.stderr)
        validate = SOURCE / "tests/packaging/validate_sbom.mjs"
        result = run("node", validate, modules, self.file)
        self.assertEqual(result.returncode, 0, result.stderr)
        wrong = DIRECTORY / "wrong.json"
        wrong.write_text(json.dumps({**self.document, "components": [{"type": "no such type", "name": "x"}]}))
        self.assertEqual(run("node", validate, modules, wrong).returncode, 1)

    def test_embedded_archives_are_listed(self):
        self.assertEqual(self.names("static"), {"libzstd-dev", "zlib1g-dev"})

    def test_libraries_are_those_that_the_files_need(self):
        owners = []
        for name in ("bin/gpufl", "lib/libgpufl.so.1", "lib/libgpufl-upload.so.1", "lib/libgpufl-server.so.1"):
            for library in re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", built() / name).stdout):
                listed = run("dpkg-query", "-S", f"*/{library}").stdout
                owners.append({line.split(":")[0] for line in listed.splitlines()})
        for packages in owners:  # of several architectures, perhaps
            self.assertTrue(self.names("dynamic") & packages, packages)
        self.assertEqual(self.names("dynamic") - set().union(*owners), set())

    def test_bundled_packages_match_the_lock_file(self):
        locked = json.loads((SOURCE / "web/package-lock.json").read_text())["packages"]
        direct = set(json.loads((SOURCE / "web/package.json").read_text())["dependencies"])
        self.assertLessEqual(direct, self.names("bundled"))
        for component in self.components:
            if linkage(component) == "bundled":
                self.assertEqual(locked[f"node_modules/{component['name']}"]["version"], component["version"])

    def test_everything_has_version_and_licence(self):
        for component in self.components:
            self.assertTrue(component.get("version") and component.get("licenses"), component)

    def test_references_can_be_resolved(self):
        known = {component["bom-ref"] for component in self.components} | {"gpufl"}
        for entry in self.document["dependencies"]:
            self.assertLessEqual({entry["ref"], *entry["dependsOn"]}, known)

    def test_licences_of_embedded_parts_are_included(self):
        text = (DIRECTORY / "sbom/third-party-licenses.txt").read_text()
        for component in self.components:
            if linkage(component) in ("static", "bundled"):
                self.assertIn(f"\n{component['name']} {component['version']}\n", text)
        self.assertNotIn("No licence file", text)

    def test_it_is_installed_with_the_program(self):
        package, = (built() / "packages").glob("gpufl_*.deb")
        self.assertIn("./usr/share/doc/gpufl/gpufl.cdx.json", run("dpkg-deb", "-c", package).stdout)

    def test_a_stripped_file_is_an_error_and_not_an_empty_list(self):
        build = DIRECTORY / "stripped"
        (build / "bin").mkdir(parents=True)
        (build / "CMakeCache.txt").write_text((built() / "CMakeCache.txt").read_text())
        run("strip", "-o", build / "bin/gpufl", built() / "bin/gpufl")
        result = run(SOURCE / "tools/sbom.py", build, DIRECTORY / "unused")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("bin/gpufl has no symbols", result.stderr)


if __name__ == "__main__":
    unittest.main()
