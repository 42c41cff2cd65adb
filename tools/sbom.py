#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is inside of a build, and whose: a bill of materials (CycloneDX 1.6) and the licences of what others wrote.

usage: sbom.py BUILD_DIRECTORY OUTPUT_DIRECTORY

Reads the built files: libraries they ask the loader for, archives whose functions they contain, npm packages in the
dashboard. Writes gpufl.cdx.json and third-party-licenses.txt. SOURCE_DATE_EPOCH, where set, is the document's time.
"""
import datetime
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BUILT = ("bin/gpufl", "lib/libgpufl.so.*.*.*", "lib/libgpufl_inject.so", "lib/libgpufl_preload.so", "lib/libgpufl-upload.so.*.*.*",
         "lib/libgpufl-server.so.*.*.*", "python/gpufl/*.abi3.so")
# By the name of Debian's source package, whose own files do not say it in one word.
LICENCES = {"libzstd": "BSD-3-Clause OR GPL-2.0-only", "zlib": "Zlib", "glibc": "LGPL-2.1-or-later", "curl": "curl",
            "libmicrohttpd": "LGPL-2.1-or-later", "sqlite3": "blessing", "mbedtls": "Apache-2.0 OR GPL-2.0-or-later",
            "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1"}
# What tools/bundled_libraries.sh makes, and Debian's source packages of it.
BUNDLED = {"libz.a": ["zlib"], "libzstd.a": ["libzstd"], "libsqlite3.a": ["sqlite3"], "libmicrohttpd.a": ["libmicrohttpd"],
           "libcurl.a": ["curl", "mbedtls"]}
NAMESPACE = uuid.UUID("5f0c1a52-8f0e-5d3c-9b1d-0d9d6f6f4c1e")


def output_of(*command):
    """Standard output; empty where the command fails or does not exist."""
    try:
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C"}).stdout
    except FileNotFoundError:
        return ""


def version():
    header = (SOURCE / "include/gpufl/gpufl.h").read_text()
    return re.search(r'GPUFL_VERSION_STRING "(.*)"', header).group(1)


@functools.cache
def loader_paths():
    """Name of a shared library: where the loader finds it."""
    listed = re.findall(r"^\s*(\S+) \(([^)]*)\) => (\S+)$", output_of("/sbin/ldconfig", "-p"), re.M)
    wanted = [row for row in listed if "x86-64" in row[1] or "AArch64" in row[1]] or listed
    return {name: path for name, _, path in reversed(wanted)}


@functools.cache
def distribution():
    with open("/etc/os-release", encoding="utf-8") as lines:
        return re.search(r'^ID="?(\w+)', lines.read(), re.M).group(1)


def names_of(path):
    """What packages may call a file: where /lib is a link to /usr/lib, either."""
    real = os.path.realpath(path)
    return (path, real, "/usr" + real, re.sub("^/usr/", "/", real))


def debian_packages(paths):
    """path: (name, version, source package, architecture) of those that a package owns."""
    listed = output_of("dpkg-query", "-S", *{name for path in paths for name in names_of(path)})
    owners = {path: owner.split(",")[0] for owner, path in re.findall(r"^(.+): (/.*)$", listed, re.M)}
    fields = "${binary:Package}\t${Package}\t${Version}\t${source:Package}\t${Architecture}\n"
    rows = output_of("dpkg-query", "-W", "-f", fields, *set(owners.values())) if owners else ""
    known = {row.split("\t")[0]: tuple(row.split("\t")[1:]) for row in rows.splitlines()}
    found = {path: next((owners[name] for name in names_of(path) if name in owners), None) for path in paths}
    return {path: known[owner] for path, owner in found.items() if owner in known}


def library_component(path, owner, linkage):
    """One that others wrote, of the C world. Where no package owns it, its version is not known and not said."""
    name = re.sub(r"\.(so[.\d]*|a)$", "", os.path.basename(path))
    component = {"type": "library", "bom-ref": f"file:{os.path.basename(path)}", "name": name}
    if owner:
        package, number, source, architecture = owner
        url = f"pkg:deb/{distribution()}/{package}@{number.replace('+', '%2B').replace(':', '%3A')}?arch={architecture}"
        component |= {"bom-ref": url, "name": package, "version": number, "purl": url}
        if source in LICENCES:
            component["licenses"] = licences(LICENCES[source])
    component["properties"] = [{"name": "gpufl:linkage", "value": linkage}]
    return component


def licences(text):
    return [{"expression": text}] if " " in text else [{"license": {"id": text}}]


def npm_components(build):
    """What the dashboard contains, which is part of the server."""
    has_server = any(build.glob("lib/libgpufl-server.so.*"))
    for entry in json.loads((SOURCE / "web/dist/licenses.json").read_text()) if has_server else []:
        url = f"pkg:npm/{entry['name'].replace('@', '%40')}@{entry['version']}"
        component = {"type": "library", "bom-ref": url, "name": entry["name"], "version": entry["version"], "purl": url}
        if entry.get("identifier"):
            component["licenses"] = licences(entry["identifier"])
        component["properties"] = [{"name": "gpufl:linkage", "value": "bundled"}]
        yield component, entry.get("text")


def static_archives(build):
    cache = (build / "CMakeCache.txt").read_text()
    return sorted({path for path in re.findall(r"^\w+:\w+=(.*\.a)$", cache, re.M) if os.path.exists(path)})


def bundled_sources(archive):
    """(source package, version, copyright file) of an archive of tools/bundled_libraries.sh; others have none."""
    share = pathlib.Path(archive).parent.parent / "share"
    for name in BUNDLED.get(os.path.basename(archive), []):
        if (share / f"{name}.version").exists():
            yield name, (share / f"{name}.version").read_text().strip(), share / f"{name}.copyright"


def bundled_components(archive):
    for name, number, _ in bundled_sources(archive):
        url = f"pkg:deb/{distribution()}/{name}@{number.replace('+', '%2B').replace(':', '%3A')}?arch=source"
        yield {"type": "library", "bom-ref": url, "name": name, "version": number, "purl": url,
               "licenses": licences(LICENCES[name]), "properties": [{"name": "gpufl:linkage", "value": "static"}]}


@functools.cache
def functions_of(path, *options):
    """Functions that a built file or an archive holds."""
    found = set(re.findall(r"^\S+ [Tt] (\w+)$", output_of("nm", "--defined-only", *options, path), re.M))
    if not found:
        sys.exit(f"sbom: {path} has no symbols, so what is linked into it is unknown: is it stripped, or nm missing?")
    return found


def linked(build):
    """file: [(path of a library, how it is linked)] of everything that was built."""
    result = {}
    for path in sorted(path for pattern in BUILT for path in build.glob(pattern)):
        needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", path))
        result[path] = [(loader_paths().get(name, name), "dynamic") for name in needed if "gpufl" not in name]
        result[path] += [(archive, "static") for archive in static_archives(build)
                         if functions_of(path) & functions_of(archive, "-g")]
    return result


def contents(build):
    """(file, components) of everything that was built."""
    libraries = linked(build)
    owners = debian_packages({library for found in libraries.values() for library, _ in found})
    npm = [component for component, _ in npm_components(build)]
    for path, found in libraries.items():
        components = [component for library, linkage in found for component in
                      list(bundled_components(library)) or [library_component(library, owners.get(library), linkage)]]
        yield path, components + (npm if "gpufl-server" in path.name else [])


def document(build):
    product = {"type": "application", "bom-ref": "gpufl", "name": "gpufl", "version": version(),
               "licenses": licences("Apache-2.0")}
    components, dependencies = {}, []
    for path, found in contents(build):
        name = str(path.relative_to(build))
        components[name] = {"type": "file", "bom-ref": name, "name": name, "version": version(),
                            "licenses": licences("Apache-2.0")}
        dependencies.append({"ref": name, "dependsOn": sorted({component["bom-ref"] for component in found})})
        components |= {component["bom-ref"]: component for component in found}
    dependencies.insert(0, {"ref": "gpufl", "dependsOn": [entry["ref"] for entry in dependencies]})
    result = {"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX",
              "specVersion": "1.6", "version": 1, "metadata": {"component": product},
              "components": [components[name] for name in sorted(components)], "dependencies": dependencies}
    if os.environ.get("SOURCE_DATE_EPOCH"):
        moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
        result["metadata"]["timestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    # Of the content, so that the same build has the same name everywhere.
    result["serialNumber"] = uuid.uuid5(NAMESPACE, json.dumps(result, sort_keys=True)).urn
    return result


def licence_texts(build):
    """What must go along with parts of others inside of our files."""
    archives = static_archives(build)
    owners = debian_packages(archives)
    for archive in archives:
        if list(bundled_sources(archive)):
            yield from ((f"{name} {number}", text.read_text()) for name, number, text in bundled_sources(archive))
            continue
        owner = owners.get(archive)
        path = pathlib.Path("/usr/share/doc", owner[0], "copyright") if owner else None
        if path and path.exists():
            yield f"{owner[0]} {owner[1]}", path.read_text()
        else:
            yield os.path.basename(archive), "The licence is in the package that this archive came with."
    for component, text in npm_components(build):
        yield f"{component['name']} {component['version']}", text or "No licence file in the package."


def write_whole(path, text):
    """Never half a file, also where two installations from one build run at once."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(path)


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    build, out = map(pathlib.Path, arguments)
    if not (build / "CMakeCache.txt").exists():
        sys.exit(f"sbom: {build} is no build directory")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "gpufl.cdx.json", json.dumps(document(build.resolve()), indent=1) + "\n")
    texts = [f"{'=' * 78}\n{name}\n{'=' * 78}\n\n{text.strip()}\n" for name, text in licence_texts(build.resolve())]
    intro = "Parts of these are contained in the programs and libraries of gpufl, or in its dashboard.\n\n"
    write_whole(out / "third-party-licenses.txt", intro + "\n\n".join(texts))


if __name__ == "__main__":
    main(sys.argv[1:])
