# SPDX-License-Identifier: Apache-2.0
"""Renders the Helm chart as Helm does, with Helm's libraries from Debian (render_chart.go)."""
import os
import pathlib
import subprocess

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CHART = SOURCE / "packaging/helm/gpufl"


def renderer_build(program, build):
    """Compiles the renderer, with the compiler's cache in a build directory."""
    subprocess.run(["go", "build", "-o", program, SOURCE / "tests/packaging/render_chart.go"], check=True,
                   env={**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOPATH": "/usr/share/gocode",
                        "GOCACHE": str(build / "gocache")})


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]
