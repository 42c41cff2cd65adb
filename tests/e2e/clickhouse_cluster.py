# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse cluster on loopback, from Debian's clickhouse-server and libzookeeper-java: two shards of two replicas.

    with Cluster() as cluster:
        url = cluster.url()        # for gpufl serve --store
        cluster.kill(0, 1)         # shard, replica: SIGKILL
        cluster.start(0, 1)        # restarts it and returns when it answers
"""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

SERVER = shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")
ZOOKEEPER_JAR = "/usr/share/java/zookeeper.jar"
NAME = "fleet"
HTTP_PORT = 8123
START_S = 120
CRASHES_MAX = 3

SERVER_XML = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><log>{root}/server.log</log><errorlog>{root}/error.log</errorlog></logger>
  <listen_host>{host}</listen_host>
  <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
  <interserver_http_port>{interserver}</interserver_http_port><interserver_http_host>{host}</interserver_http_host>
  <path>{root}/data/</path><tmp_path>{root}/tmp/</tmp_path><format_schema_path>{root}/formats/</format_schema_path>
  <users_config>{users}</users_config><default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>16777216</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
  <max_concurrent_queries>200</max_concurrent_queries><keep_alive_timeout>30</keep_alive_timeout>
  <merge_tree><max_suspicious_broken_parts>5</max_suspicious_broken_parts></merge_tree>
  <zookeeper><node><host>127.0.0.1</host><port>{zookeeper}</port></node>
    <session_timeout_ms>4000</session_timeout_ms></zookeeper>
  <macros><shard>{shard}</shard><replica>{replica}</replica></macros>
  <distributed_ddl><path>/clickhouse/ddl</path></distributed_ddl>
  <remote_servers><{name}>{shards}</{name}></remote_servers>
</yandex>
"""

USERS_XML = """<?xml version="1.0"?>
<yandex>
  <profiles><default><max_threads>2</max_threads><max_memory_usage>1000000000</max_memory_usage>
    <background_pool_size>4</background_pool_size><background_schedule_pool_size>4</background_schedule_pool_size>
    <log_queries>0</log_queries></default></profiles>
  <users><default><password></password><networks><ip>127.0.0.0/8</ip></networks><profile>default</profile>
    <quota>default</quota></default>
    <gpufl><password>{password}</password><networks><ip>127.0.0.0/8</ip></networks><profile>default</profile>
    <quota>default</quota></gpufl></users>
  <quotas><default></default></quotas>
</yandex>
"""


def is_installed():
    """Whether the packages that a cluster needs are installed."""
    return bool(SERVER and os.path.exists(ZOOKEEPER_JAR) and shutil.which("java"))


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class _Node:
    """One clickhouse-server."""

    def __init__(self, root, shard, replica, host, ports):
        self.root, self.shard, self.replica, self.host = root, shard, replica, host
        self.http, self.tcp, self.interserver = ports
        self.process = None

    def answers(self):
        """Whether it serves and has a ZooKeeper session."""
        try:
            question = b"SELECT count() > 0 FROM system.zookeeper WHERE path = '/'"
            with urllib.request.urlopen(f"http://{self.host}:{self.http}/", data=question, timeout=10) as answer:
                return answer.read() == b"1\n"
        except OSError:
            return False


class Cluster:
    """A context manager: starts on entry (or start_all), ends and removes its files on exit (or stop)."""

    password = "fleet-secret"

    def __init__(self, shards=2, replicas=2, name=NAME, hosts=None):
        """hosts: an address for each node, shard by shard; the nodes then use ClickHouse's default HTTP port."""
        self.root = tempfile.mkdtemp(prefix="gpufl-clickhouse-")
        self.name = name
        ports = _free_ports(1 + 3 * shards * replicas)
        self.zookeeper_port = ports.pop()
        self.zookeeper = None
        self.nodes = {}
        for shard in range(shards):
            for replica in range(replicas):
                root = os.path.join(self.root, f"node-{shard}-{replica}")
                host = hosts[shard * replicas + replica] if hosts else "127.0.0.1"
                own = [ports.pop() for _ in range(3)]
                self.nodes[shard, replica] = _Node(root, shard, replica, host, [HTTP_PORT, *own[1:]] if hosts else own)
        self._configure(shards)

    def _configure(self, shards):
        users = os.path.join(self.root, "users.xml")
        with open(users, "w", encoding="utf-8") as out:
            out.write(USERS_XML.format(password=self.password))
        described = "".join(
            "<shard><internal_replication>true</internal_replication>" + "".join(
                f"<replica><host>{node.host}</host><port>{node.tcp}</port></replica>"
                for (at, _), node in self.nodes.items() if at == shard) + "</shard>" for shard in range(shards))
        for node in self.nodes.values():
            for part in ("data", "tmp", "formats"):
                os.makedirs(os.path.join(node.root, part))
            with open(os.path.join(node.root, "config.xml"), "w", encoding="utf-8") as out:
                out.write(SERVER_XML.format(root=node.root, http=node.http, tcp=node.tcp, interserver=node.interserver,
                                            users=users, zookeeper=self.zookeeper_port, shard=node.shard, host=node.host,
                                            name=self.name, replica=node.replica, shards=described))
        os.makedirs(os.path.join(self.root, "zookeeper"))
        with open(os.path.join(self.root, "zookeeper.cfg"), "w", encoding="utf-8") as out:
            out.write(f"tickTime=1000\ninitLimit=10\nsyncLimit=5\ndataDir={self.root}/zookeeper\nclientPortAddress=127.0.0.1\n"
                      f"clientPort={self.zookeeper_port}\nmaxClientCnxns=0\nminSessionTimeout=2000\n")

    def __enter__(self):
        try:
            self.start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def _spawn(self, command, log):
        with open(log, "ab") as out:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.root)

    def _zookeeper_start(self):
        self.zookeeper = self._spawn(
            ["java", "-Xmx128m", "-XX:+UseSerialGC", "-Dzookeeper.admin.enableServer=false",
             "-Dzookeeper.forceSync=no", "-cp", ZOOKEEPER_JAR,
             "org.apache.zookeeper.server.ZooKeeperServerMain", os.path.join(self.root, "zookeeper.cfg")],
            os.path.join(self.root, "zookeeper.log"))
        self._wait(self.zookeeper, self._zookeeper_answers, "zookeeper", os.path.join(self.root, "zookeeper.log"))

    def _zookeeper_answers(self):
        """ZooKeeper accepts connections before it creates sessions, and a node that gets no session crashes."""
        try:
            with socket.create_connection(("127.0.0.1", self.zookeeper_port), timeout=10) as connection:
                connection.sendall(b"srvr")
                return b"Mode: " in connection.makefile("rb").read()
        except OSError:
            return False

    @staticmethod
    def _wait(process, is_there, what, log):
        deadline = time.monotonic() + START_S
        while not is_there():
            if process.poll() is not None or time.monotonic() > deadline:
                with open(log, "rb") as text:
                    raise RuntimeError(f"{what} did not start: {text.read()[-2000:].decode(errors='replace')}")
            time.sleep(0.05)

    def start_all(self):
        self._zookeeper_start()
        for node in self.nodes.values():
            self._node_spawn(node)
        for node in self.nodes.values():
            self._node_wait(node)

    def _node_spawn(self, node):
        node.process = self._spawn([SERVER, f"--config-file={node.root}/config.xml"],
                                   os.path.join(node.root, "console.log"))

    def _node_wait(self, node):
        # On a busy machine ZooKeeper's answer may come too late, and this release of ClickHouse then crashes.
        for _ in range(CRASHES_MAX):
            while node.process.poll() is None and not node.answers():
                time.sleep(0.05)
            if node.process.poll() is None:
                return
            self._node_spawn(node)
        self._wait(node.process, node.answers, f"clickhouse {node.shard}-{node.replica}",
                   os.path.join(node.root, "console.log"))

    def start(self, shard, replica):
        """Starts a replica again and waits until it answers."""
        node = self.nodes[shard, replica]
        self._node_spawn(node)
        self._node_wait(node)

    def kill(self, shard, replica):
        """Sends SIGKILL: nothing is flushed, no connection is closed."""
        node = self.nodes[shard, replica]
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()

    def stop(self):
        processes = [node.process for node in self.nodes.values()] + [self.zookeeper]
        for process in processes:
            if process and process.poll() is None:
                process.kill()
        for process in processes:
            if process:
                process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def hosts(self, first=(0, 0)):
        """Every node's HTTP address, starting with `first`."""
        order = sorted(self.nodes.values(), key=lambda node: (node.shard, node.replica) != tuple(first))
        return ",".join(f"{node.host}:{node.http}" for node in order)

    def url(self, database="gpufl", first=(0, 0), user="default"):
        """The URL for gpufl serve --store. The password of user "gpufl" is Cluster.password."""
        return f"clickhouse://{user}@{self.hosts(first)}/{database}?cluster={self.name}"

    def sync(self, database, shard, replica):
        """Waits for the replica to synchronize; returns whether it has all data of the others."""
        try:
            tables = self.query(f"SELECT name FROM system.tables WHERE database = '{database}' AND engine LIKE"
                                " 'Replicated%'", shard, replica).split()
            for table in tables:
                self.query(f"SYSTEM SYNC REPLICA {database}.{table}", shard, replica)
        except (OSError, RuntimeError):
            return False
        return bool(tables)

    def query(self, text, shard=0, replica=0):
        """The answer of one node as text."""
        node = self.nodes[shard, replica]
        request = urllib.request.Request(f"http://{node.host}:{node.http}/", data=text.encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as failure:
            raise RuntimeError(failure.read().decode(errors="replace")) from failure
