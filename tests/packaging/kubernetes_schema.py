# SPDX-License-Identifier: Apache-2.0
"""Checks Kubernetes objects against the API's models (Debian's python3-kubernetes): unknown fields, wrong types,
missing fields and values outside an enumeration, each with its path."""
import re

import kubernetes.client

MODELS = {("v1", kind): "V1" + kind for kind in ("ConfigMap", "Secret", "Service", "PersistentVolumeClaim")}
MODELS |= {("apps/v1", kind): "V1" + kind for kind in ("DaemonSet", "Deployment")}
MODELS |= {("batch/v1", "Job"): "V1Job", ("networking.k8s.io/v1", "NetworkPolicy"): "V1NetworkPolicy"}
# Kinds of a newer API than the package's.
NEWER_FIELDS = {("V1Container", "restartPolicy"): str}
SCALARS = {"str": str, "bool": bool, "int": int, "float": (int, float)}


def problems(document):
    """A list of sentences; empty for a valid object."""
    key = (document.get("apiVersion"), document.get("kind"))
    if key not in MODELS:
        return [f"no model of {key}"]
    found = []
    _check_model(document, getattr(kubernetes.client, MODELS[key]), key[1], found)
    if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", str((document.get("metadata") or {}).get("name"))):
        found.append(f"{key[1]}.metadata.name: {document.get('metadata')}")
    return found


def _check_model(value, model, place, found):
    if not isinstance(value, dict):
        found.append(f"{place}: {value!r} is not a {model.__name__}")
        return
    names = {json_name: name for name, json_name in model.attribute_map.items()}
    for name, part in value.items():
        newer = NEWER_FIELDS.get((model.__name__, name))
        if newer and isinstance(part, newer):
            continue
        if name not in names:
            found.append(f"{place}.{name}: {model.__name__} has no such field")
            continue
        _check(part, model.openapi_types[names[name]], f"{place}.{name}", found)
    try:
        # The setters check required fields and allowed words.
        model(**{names[name]: part for name, part in value.items() if name in names})
    except ValueError as error:
        found.append(f"{place}: {error}")


def _check(value, kind, place, found):
    if kind == "object":
        # An IntOrString, the only union type here.
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            found.append(f"{place}: {value!r} is neither a number nor a text")
    elif kind in SCALARS:
        if not isinstance(value, SCALARS[kind]) or (kind != "bool" and isinstance(value, bool)):
            found.append(f"{place}: {value!r} is not a {kind}")
    elif kind.startswith("list["):
        _check_list(value, kind[5:-1], place, found)
    elif kind.startswith("dict("):
        _check_map(value, kind[5:-1].split(", ")[1], place, found)
    else:
        _check_model(value, getattr(kubernetes.client, kind), place, found)


def _check_list(value, kind, place, found):
    if not isinstance(value, list):
        found.append(f"{place}: {value!r} is not a list")
        return
    for index, part in enumerate(value):
        _check(part, kind, f"{place}[{index}]", found)


def _check_map(value, kind, place, found):
    if not isinstance(value, dict):
        found.append(f"{place}: {value!r} is not a map")
        return
    for name, part in value.items():
        if place.endswith((".limits", ".requests")):
            # Quantities may also be numbers.
            if not re.fullmatch(r"\d+(\.\d+)?(m|[kMGT]i?|)", str(part)):
                found.append(f"{place}.{name}: {part!r} is not a quantity")
            continue
        _check(part, kind, f"{place}.{name}", found)
