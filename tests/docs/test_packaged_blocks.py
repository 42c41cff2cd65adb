#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pages about packages, systemd, containers and clusters: their commands run, with apt and systemd themselves, and with
stand-ins for docker, kubectl and helm that do what is asked of them or refuse."""
import unittest

import pages
from scratch import harness

DOCKERFILE = "packaging/docker/Dockerfile"


class Pages(unittest.TestCase):
    @pages.needs_machines
    def test_every_block_does_what_it_says(self):
        found = pages.problems(pages.run_all([page for page in pages.runnable() if pages.needs_packages(page)]))
        self.assertFalse(found, "\n\n".join(found))


class StandIns(unittest.TestCase):
    """They find what they are there to find."""

    @pages.needs_machines
    def test_what_is_unknown_or_wrong_is_refused(self):
        step = f"sed -i 's|^RUN tools/setup.sh build|RUN tools/setup.sh nothing|' {DOCKERFILE}"
        faults = (
            ("docker run gpufl/agent:1.0.0", "not known|only build"),
            (f"docker build --no-cache -f {DOCKERFILE} --target agent -t x .", "--no-cache"),
            (f"docker build -f {DOCKERFILE} --target nothing -t x .", "no stage nothing"),
            (f"({step}; docker build -f {DOCKERFILE} --target build -t x .)", "no job 'nothing'"),
            ("docker compose -f packaging/docker/docker-compose.yml up -d", "GPUFL_SERVE_ADMIN_KEY"),
            ("export GPUFL_SERVER=http://x GPUFL_API_KEY=x\n"
             "docker compose -f packaging/docker/docker-compose.monitor.yml up -d", "no such image"),
            ("kubectl delete secret gpufl", "not known"),
            ("kubectl exec deploy/nothing -- ls", "not found"),
            ("sed 's/containerPort/containerHarbour/' packaging/kubernetes/gpufl.yaml >x.yaml; kubectl apply -f x.yaml",
             "containerHarbour"),
            ("helm upgrade gpufl packaging/helm/gpufl", "not known"),
            ("printf '[Service]\\nExecStart=/bin/false\\nType=oneshot\\n' >/etc/systemd/system/bad.service\n"
             "systemctl start bad", "bad.service failed"),
            ("systemctl start nothing", "nothing.service not found"),
            ("sudo apt install ./nothing.deb", "nothing.deb"),
        )
        text = "".join(f"<!-- given: {name} -->\n" for name in ("packages", "docker", "kubernetes", "systemd"))
        outcomes = pages.outcomes_of(text + "".join(f"```sh\n{commands}\n```\n" for commands, _ in faults))
        self.assertEqual([kind for kind, _ in outcomes], ["failed"] * len(faults), outcomes)
        for (commands, pattern), (_, output) in zip(faults, outcomes):
            self.assertRegex(output, pattern, commands)


if __name__ == "__main__":
    harness.main()
