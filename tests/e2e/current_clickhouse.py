# SPDX-License-Identifier: Apache-2.0
"""A current ClickHouse on loopback. tests/clickhouse installs it as a library, so this file implements the part of its
HTTP interface that the store uses, on one host without a cluster. Run as a program, this file is the server; it handles
one request at a time.

    with CurrentClickHouse() as server:
        url = server.url("database")   # for gpufl serve --store
"""
import ctypes
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

INSTALL = pathlib.Path(__file__).resolve().parent.parent / "clickhouse/install.sh"
NOT_SETTINGS = {"database", "query", "wait_end_of_query", "user", "password"}


class CurrentClickHouse:
    """The server in a separate process, removed with its files on exit."""

    def __init__(self):
        installed = subprocess.run([INSTALL], text=True, stdout=subprocess.PIPE, check=True, timeout=600)
        self.root = tempfile.mkdtemp(prefix="gpufl-clickhouse-")
        self.process = subprocess.Popen([sys.executable, __file__, installed.stdout.strip(), self.root], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.version, _, self.host = self.process.stdout.readline().strip().partition(" ")
        if not self.host:
            self.stop()
            raise RuntimeError("the current ClickHouse did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def url(self, database=""):
        return f"clickhouse://{self.host}/{database}"

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.root, ignore_errors=True)


class ClickHouseError(Exception):
    pass


class Engine:
    """The ClickHouse library: one session, one query at a time."""

    def __init__(self, library, root):
        pointer = ctypes.c_void_p
        self.lib = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self.lib.chdb_connect.restype = ctypes.POINTER(pointer)
        self.lib.chdb_connect.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
        self.lib.chdb_query_n.restype = pointer
        self.lib.chdb_query_n.argtypes = [pointer, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        for name, kind in (("buffer", pointer), ("length", ctypes.c_size_t), ("error", ctypes.c_char_p)):
            function = getattr(self.lib, "chdb_result_" + name)
            function.restype, function.argtypes = kind, [pointer]
        self.lib.chdb_destroy_query_result.argtypes = [pointer]
        arguments = (ctypes.c_char_p * 2)(b"clickhouse", f"--path={root}/data".encode())
        self.connection = self.lib.chdb_connect(2, arguments)[0]
        self.body_file = f"{root}/body"
        self.database, self.settings = None, {}
        self.tables = {}  # their columns, once read

    def query(self, sql, output_format="TSV"):
        text, output_format = sql.encode() if isinstance(sql, str) else sql, output_format.encode()
        result = self.lib.chdb_query_n(self.connection, text, len(text), output_format, len(output_format))
        try:
            error = self.lib.chdb_result_error(result)
            if error:
                raise ClickHouseError(error.decode(errors="replace"))
            size = self.lib.chdb_result_length(result)
            return ctypes.string_at(self.lib.chdb_result_buffer(result), size) if size else b""
        finally:
            self.lib.chdb_destroy_query_result(result)

    def use(self, parameters):
        """The database and the settings of a request."""
        database = parameters.get("database", "default")
        if database != self.database:
            self.query(f"USE {database}")
            self.database = database
        for name, value in parameters.items():
            if name not in NOT_SETTINGS and self.settings.get(name) != value:
                self.query(f"SET {name} = {value}")
                self.settings[name] = value

    def select(self, sql):
        text, _, output_format = sql.rpartition(b" FORMAT ")
        if not sql.startswith(b"SELECT "):
            self.tables.clear()
        return self.query(text, output_format.decode()) if text else self.query(sql)

    def columns(self, table):
        """Their types by their names."""
        key = self.database, table
        if key not in self.tables:
            described = (line.split("\t")[:2] for line in self.query(f"DESCRIBE TABLE {table}").decode().splitlines())
            self.tables[key] = {name: kind.replace("\\'", "'") for name, kind in described}
        return self.tables[key]

    def insert(self, statement, rows):
        """Inserts rows from a file in the types of the table's columns, because the library takes no data with a
        statement."""
        into, columns = re.fullmatch(r"INSERT INTO ([\w.]+) \(([\w, ]+)\) FORMAT RowBinary", statement).groups()
        with open(self.body_file, "wb") as file:
            file.write(rows)
        types = self.columns(into)
        structure = ", ".join(f"{name} {types[name]}" for name in re.split(", *", columns)).replace("'", "\\'")
        return self.query(f"INSERT INTO {into} ({columns}) SELECT * FROM"
                          f" file('{self.body_file}', 'RowBinary', '{structure}')")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    engine, lock = None, threading.Lock()

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        status = 200
        with self.lock:
            try:
                self.engine.use(parameters)
                if "query" in parameters:
                    content = self.engine.insert(parameters["query"], body)
                else:
                    content = self.engine.select(body.rstrip(b"\0"))
            except ClickHouseError as error:
                status, content = 500, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def serve(library, root):
    Handler.engine = Engine(library, root)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    version = Handler.engine.query("SELECT version()").decode().strip()
    print(version, f"127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(*sys.argv[1:])
