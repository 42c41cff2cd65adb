# SPDX-License-Identifier: Apache-2.0
"""Replaces kubectl, helm and a cluster of one node with a GPU: stores objects that pass the API's models, and runs the
containers of their pods here. Unsupported fields and commands are errors.
usage: lookalike_kubernetes.py helm install RELEASE CHART
       lookalike_kubernetes.py kubectl create secret generic NAME --from-literal=KEY=VALUE... | apply -f FILE |
           rollout status deploy/NAME | exec deploy/NAME -- COMMAND... | patch secret NAME -p JSON"""
import argparse
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.request

import engine
import service
from scratch import BASE, harness

sys.path.insert(0, str(harness.SOURCE / "tests/packaging"))
import chart  # noqa: E402
import kubernetes_schema  # noqa: E402

OBJECTS = BASE / "cluster.json"
NODE_LABELS = {"nvidia.com/gpu.present": "true"}
WORKLOADS = ("Deployment", "DaemonSet")
UNMODELLED = ("ServiceMonitor",)  # of an operator, not of the API


def refuse(message):
    sys.exit(f"{sys.argv[1]}: {message}")


def objects_read():
    listed = json.loads(OBJECTS.read_text()) if OBJECTS.exists() else []
    return {(document["kind"], document["metadata"]["name"]): document for document in listed}


def objects_put(documents):
    """Keeps objects, and starts what can run now."""
    objects = objects_read()
    for document in documents:
        problems = [] if document["kind"] in UNMODELLED else kubernetes_schema.problems(document)
        if problems:
            refuse("; ".join(problems))
        objects[document["kind"], document["metadata"]["name"]] = document
    OBJECTS.write_text(json.dumps(list(objects.values())))
    for kind, name in objects:
        if kind == "Service":
            engine.host_name(name)
    for (kind, name), document in objects.items():
        if kind in WORKLOADS:
            pod_start(name, document["spec"]["template"]["spec"], objects)


def secret_value(objects, name, key):
    """None: the kubelet waits until it is there."""
    return objects.get(("Secret", name), {}).get("stringData", {}).get(key)


def environment_of(container, objects):
    """The container's variables, or None while a secret is missing."""
    result = {}
    for variable in container.get("env", []):
        source = variable.get("valueFrom", {})
        if "secretKeyRef" in source:
            value = secret_value(objects, source["secretKeyRef"]["name"], source["secretKeyRef"]["key"])
            if value is None and not source["secretKeyRef"].get("optional"):
                return None
        elif source.get("fieldRef") == {"fieldPath": "spec.nodeName"}:
            value = socket.gethostname()
        elif source:
            refuse(f"{variable['name']}: {source}")
        else:
            value = variable["value"]
        if value is not None:
            result[variable["name"]] = value
    return result


def volume_of(pod, name, spec):
    """The volume's name, made with the pod's group as its own, as the kubelet does."""
    volume = next(one for one in spec["volumes"] if one["name"] == name)
    if "persistentVolumeClaim" in volume:
        result, mode = f"claim-{volume['persistentVolumeClaim']['claimName']}", 0o2775
        if ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) not in objects_read():
            refuse(f"{pod}: no such claim: {volume}")
    elif "emptyDir" in volume:
        result, mode = f"volume-{pod}-{name}", 0o2777
    else:
        refuse(f"{pod}: {volume}")
    place = engine.STATE / result
    if not place.exists():
        place.mkdir(parents=True)
        os.chown(place, 0, spec["securityContext"]["fsGroup"])
        place.chmod(mode)
    return result


def pod_start(name, spec, objects):
    """Starts those of the pod's containers that do not run yet and have their secrets."""
    if not spec.get("nodeSelector", {}).items() <= NODE_LABELS.items():
        return
    who = spec["securityContext"]
    for container in spec["containers"]:
        own, context = f"{name}-{container['name']}", container["securityContext"]
        variables = environment_of(container, objects)
        if variables is None or engine.is_running(own):
            continue
        if context["capabilities"] != {"drop": ["ALL"]} or context["allowPrivilegeEscalation"]:
            refuse(f"{own}: only containers without privileges are known")
        arguments = [re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), word)
                     for word in container["args"]]
        volumes = [(volume_of(name, one["name"], spec), one["mountPath"]) for one in container["volumeMounts"]]
        engine.container_start(own, container["image"], arguments, variables, volumes, [],
                               context["readOnlyRootFilesystem"], f"{who['runAsUser']}:{who['runAsGroup']}")


def deployment(reference):
    kind, _, name = reference.partition("/")
    found = objects_read().get(("Deployment", name))
    if kind not in ("deploy", "deployment") or not found:
        refuse(f'deployments.apps "{reference}" not found')
    return name, found["spec"]["template"]["spec"]["containers"][0]


def create(words):
    parser = argparse.ArgumentParser(prog="kubectl create")
    parser.add_argument("kind", choices=["secret"])
    parser.add_argument("type", choices=["generic"])
    parser.add_argument("name")
    parser.add_argument("--from-literal", action="append", required=True)
    options = parser.parse_args(words)
    if ("Secret", options.name) in objects_read():
        refuse(f'secrets "{options.name}" already exists')
    objects_put([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": options.name},
                  "stringData": dict(literal.split("=", 1) for literal in options.from_literal)}])


def apply(words):
    parser = argparse.ArgumentParser(prog="kubectl apply")
    parser.add_argument("-f", "--filename", required=True)
    objects_put(chart.documents(pathlib.Path(parser.parse_args(words).filename).read_text()))


def rollout(words):
    """Asks as the kubelet does, until the answer is good."""
    if words[:1] != ["status"] or len(words) != 2:
        refuse(f"rollout {words}")
    _, container = deployment(words[1])
    probe = container["readinessProbe"]["httpGet"]
    port = next(port["containerPort"] for port in container["ports"] if probe["port"] == port["name"])
    end = time.monotonic() + service.DEADLINE_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{probe['path']}", timeout=10):
                return
        except OSError as problem:
            if time.monotonic() > end:
                refuse(f"{words[1]} is not ready: {problem}")
        time.sleep(0.05)


def execute(words):
    if len(words) < 3 or words[1] != "--":
        refuse(f"exec {words}")
    name, container = deployment(words[0])
    sys.exit(engine.execute(f"{name}-{container['name']}", words[2:]))


def patch(words):
    parser = argparse.ArgumentParser(prog="kubectl patch")
    parser.add_argument("kind", choices=["secret"])
    parser.add_argument("name")
    parser.add_argument("-p", "--patch", type=json.loads, required=True)
    options = parser.parse_args(words)
    found = objects_read().get(("Secret", options.name))
    if not found or set(options.patch) != {"stringData"}:
        refuse(f"secret {options.name}: {options.patch}")
    objects_put([{**found, "stringData": {**found["stringData"], **options.patch["stringData"]}}])


def install(words):
    parser = argparse.ArgumentParser(prog="helm install")
    parser.add_argument("release")
    parser.add_argument("chart")
    options = parser.parse_args(words)
    renderer = BASE / "render_chart"
    if not renderer.exists():
        chart.renderer_build(renderer, harness.BUILD)
    done = subprocess.run([renderer, options.chart, options.release], capture_output=True, text=True, check=False)
    if done.returncode:
        refuse(done.stderr)
    objects_put(chart.documents(done.stdout))


def main():
    actions = {("helm", "install"): install, ("kubectl", "create"): create, ("kubectl", "apply"): apply,
               ("kubectl", "rollout"): rollout, ("kubectl", "exec"): execute, ("kubectl", "patch"): patch}
    action = actions.get(tuple(sys.argv[1:3]))
    if not action:
        refuse(f"not known here: {' '.join(sys.argv[2:])}")
    action(sys.argv[3:])


if __name__ == "__main__":
    main()
