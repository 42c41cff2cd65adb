# SPDX-License-Identifier: Apache-2.0
"""What pages take for granted, by name: <!-- given: NAME -->. Each returns variables for the commands that follow."""
import pathlib

EXAMPLE_HOST = "gpufl.example.com"


class UnknownError(Exception):
    """No such thing is given."""


def example_server(machine):
    """A server of ours under the name that the pages use, with TLS and a key."""
    folder = machine.base / "example-server"
    folder.mkdir()
    hosts = pathlib.Path("/etc/hosts")
    hosts.write_text(hosts.read_text() + f"\n127.0.0.1 {EXAMPLE_HOST}\n")
    key = "gpfl_" + "0123456789abcdef" * 2
    (folder / "key").write_text(key + "\n")
    (folder / "key").chmod(0o600)
    commands = (
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={EXAMPLE_HOST}", "-addext", f"subjectAltName=DNS:{EXAMPLE_HOST}",
         "-keyout", folder / "tls-key.pem", "-out", folder / "tls-cert.pem"],
        ["gpufl", "serve", "--listen", ":443", "--data", folder / "data", "--tls-cert", folder / "tls-cert.pem",
         "--tls-key", folder / "tls-key.pem", "--admin-key-file", folder / "key", "--allow-host", EXAMPLE_HOST],
    )
    for command in commands:
        output, status = machine.run(command)
        if status:
            raise UnknownError(f"{command[0]} ended with {status}: {output}")
    return {"GPUFL_API_KEY": key, "GPUFL_CA_FILE": str(folder / "tls-cert.pem")}


def provide(name, machine):
    things = {"example-server": example_server}
    if name not in things:
        raise UnknownError(f"nothing is given as '{name}'; known: {', '.join(things)}")
    return things[name](machine)
