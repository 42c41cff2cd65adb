# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, the plain manifests rendered from it, and the example of a recorded workload."""
import copy
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import yaml

import stage
import kubernetes_schema
from chart import CHART, documents, renderer_build
from harness import FAKE_APP, FAKES, GPUFL, environment, main, run, sessions
from serve_process import Serve, ServeTest

PACKAGING = stage.SOURCE / "packaging"
PLAIN = PACKAGING / "kubernetes/gpufl.yaml"
WORKLOAD = PACKAGING / "kubernetes/workload.yaml"
RENDER = stage.DIRECTORY / "render_chart"
HEADER = "# SPDX-License-Identifier: Apache-2.0\n# The chart in packaging/helm/gpufl with its default values.\n"
EVERYTHING = {"secret": {"create": True, "adminKey": "gpfl_a", "ingestKey": "gpfl_i", "readKey": "gpfl_r",
                         "clickhousePassword": "p"},
              "image": {"repository": "registry.example.com/gpufl", "pullSecrets": [{"name": "pull"}]},
              "monitor": {"options": ["--dcgm-names"]},
              "server": {"store": "clickhouse://gpufl@ch:8123/gpufl", "replicas": 3, "allowHosts": ["a.example.com", "b"]},
              "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}


def setUpModule():
    renderer_build(RENDER, stage.BUILD)


def render(values=None):
    with tempfile.NamedTemporaryFile("w", dir=stage.DIRECTORY, suffix=".yaml") as file:
        yaml.safe_dump(values or {}, file)
        file.flush()
        return run(RENDER, CHART, "gpufl", file.name)


def rendered_text(values=None):
    result = render(values)
    if result.returncode:
        raise AssertionError(result.stderr)
    return result.stdout


def rendered(values=None):
    return {(d["kind"], d["metadata"]["name"]): d for d in documents(rendered_text(values))}


def pod_specs(objects):
    return {name: d["spec"]["template"]["spec"] for (_, name), d in objects.items() if "template" in d.get("spec", {})}


class Chart(unittest.TestCase):
    def test_yamllint_finds_nothing(self):
        rules = "{extends: default, rules: {line-length: {max: 120}, document-start: disable, braces: {max-spaces-inside: 0}}}"
        for number, values in enumerate(({}, EVERYTHING)):
            (stage.DIRECTORY / f"rendered-{number}.yaml").write_text(rendered_text(values))
        result = run("yamllint", "--strict", "-d", rules, *stage.DIRECTORY.glob("rendered-*.yaml"), PLAIN, WORKLOAD,
                     *CHART.glob("*.yaml"), *(PACKAGING / "docker").glob("*.yml"))
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_every_object_is_valid(self):
        for values in ({}, EVERYTHING, {"server": {"enabled": False}, "agent": {"server": "https://x"}},
                       {"monitor": {"enabled": False}, "networkPolicy": {"scrapers": [], "clients": []}}):
            for (kind, name), document in rendered(values).items():
                if kind != "ServiceMonitor":
                    self.assertEqual(kubernetes_schema.problems(document), [], name)

    def test_the_check_finds_planted_faults(self):
        sound = rendered()[("DaemonSet", "gpufl-monitor")]
        for plant, word in ((lambda c: c.update(imagee="x"), "imagee"), (lambda c: c.update(image=7), "not a str"),
                            (lambda c: c.pop("name"), "name"), (lambda c: c.update(args="monitor"), "not a list"),
                            (lambda c: c["resources"]["limits"].update(memory="much"), "quantity")):
            broken = copy.deepcopy(sound)
            plant(broken["spec"]["template"]["spec"]["containers"][0])
            found = kubernetes_schema.problems(broken)
            self.assertTrue(found and word in " ".join(found), (word, found))

    def test_the_plain_manifests_are_the_chart_with_its_defaults(self):
        self.assertEqual(PLAIN.read_text(), HEADER + rendered_text())

    def test_pods_are_confined(self):
        for name, spec in pod_specs(rendered(EVERYTHING)).items():
            self.assertTrue(spec["securityContext"]["runAsNonRoot"], name)
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, name)
            self.assertFalse(spec["automountServiceAccountToken"], name)
            self.assertFalse([volume for volume in spec["volumes"] if "hostPath" in volume], name)
            for container in spec["containers"]:
                context = container["securityContext"]
                self.assertTrue(context["readOnlyRootFilesystem"])
                self.assertFalse(context["allowPrivilegeEscalation"])
                self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
                self.assertIn("memory", container["resources"]["limits"])
                self.assertTrue(container["image"].endswith(":1.0.0"), container["image"])

    def test_programs_know_their_options(self):
        for values in ({}, EVERYTHING):
            for spec in pod_specs(rendered(values)).values():
                for container in spec["containers"]:
                    result = run(GPUFL, *container["args"], "--help")
                    self.assertEqual(result.returncode, 0, f"{container['args']}: {result.stderr}")

    def test_selectors_services_ports_and_secrets_match(self):
        objects = rendered(EVERYTHING)
        secret = objects[("Secret", "gpufl")]["stringData"]
        for name, spec in pod_specs(objects).items():
            workload = next(d for (kind, n), d in objects.items() if n == name and kind in ("DaemonSet", "Deployment"))
            labels = workload["spec"]["template"]["metadata"]["labels"]
            service = objects[("Service", name)]["spec"]
            for selector in (workload["spec"]["selector"]["matchLabels"], service["selector"],
                             objects[("NetworkPolicy", name)]["spec"]["podSelector"]["matchLabels"]):
                self.assertLessEqual(selector.items(), labels.items())
            ports = {port["name"] for container in spec["containers"] for port in container["ports"]}
            self.assertLessEqual({port["targetPort"] for port in service["ports"]}, ports)
            monitor = objects[("ServiceMonitor", name)]["spec"]
            self.assertLessEqual({end["port"] for end in monitor["endpoints"]}, {port["name"] for port in service["ports"]})
            self.assertLessEqual(monitor["selector"]["matchLabels"].items(), objects[("Service", name)]["metadata"]["labels"].items())
            for variable in (v for container in spec["containers"] for v in container["env"]):
                reference = variable.get("valueFrom", {}).get("secretKeyRef")
                self.assertTrue(not reference or reference["key"] in secret, variable)

    def test_values_that_cannot_work_are_refused(self):
        for values, word in (({"server": {"replicas": 2}}, "server.store"), ({"server": {"enabled": False}}, "agent.server"),
                             ({"secret": {"create": True}}, "secret.adminKey")):
            result = render(values)
            self.assertNotEqual(result.returncode, 0, values)
            self.assertIn(word, result.stderr)


class Workload(ServeTest):
    """Runs the example's containers one after the other on this machine, with /gpufl in a directory."""

    def here(self, text):
        return text.replace("/gpufl/", f"{self.directory}/gpufl/").replace("/usr/local/lib", f"{stage.PREFIX}/lib")

    def test_it_is_valid(self):
        job, = documents(WORKLOAD.read_text())
        self.assertEqual(kubernetes_schema.problems(job), [])

    def test_a_program_is_recorded_by_its_environment_and_everything_is_sent_before_the_agent_ends(self):
        job, = documents(WORKLOAD.read_text())
        recorder, sidecar = job["spec"]["template"]["spec"]["initContainers"]
        copied = run(*map(self.here, recorder["command"]))
        self.assertEqual(copied.returncode, 0, copied.stderr)
        settings = {name: self.here(value) for name, value in rendered()[("ConfigMap", "gpufl-injection")]["data"].items()}
        with Serve(self.data) as server:
            path = f"{stage.PREFIX}/bin:{os.environ['PATH']}"
            agent = subprocess.Popen([self.here(word) for word in sidecar["command"]], stdin=subprocess.DEVNULL,
                                     env=environment(PATH=path, GPUFL_BACKEND_URL=server.url, HOME=self.directory),
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
            try:
                server.wait_for("the agent's state", lambda: (self.directory / "gpufl/agent/.lock").exists())
                program = run(FAKE_APP, "--launches", "500", env=environment(FAKES, GPUFL_APP_NAME="train", **settings))
                self.assertEqual(program.returncode, 0, program.stderr)
                agent.send_signal(signal.SIGTERM)
                printed, _ = agent.communicate(timeout=60)
            finally:
                if agent.poll() is None:
                    os.killpg(agent.pid, signal.SIGKILL)
                    agent.wait()
            self.assertEqual(agent.returncode, 0, printed)
            session, = sessions(pathlib.Path(settings["GPUFL_LOG_DIR"]))
            catalog = self.assert_holds(server, session)
            self.assertEqual((catalog["app"], catalog["kernels"], catalog["state"]), ("train", 500, "complete"))


if __name__ == "__main__":
    main()
