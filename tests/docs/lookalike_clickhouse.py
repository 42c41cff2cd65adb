# SPDX-License-Identifier: Apache-2.0
"""Replaces the image clickhouse/clickhouse-server: runs Debian's server with the user and password of the container's
environment, on the image's ports, until SIGTERM."""
import os
import signal
import sys

import scratch  # noqa: F401 # adds the end-to-end tests to sys.path
from clickhouse_cluster import Cluster

READY = "ready for connections"


def main():
    # The image's user can be any; the tests' configuration has this one.
    if os.environ.get("CLICKHOUSE_USER") != "gpufl" or not os.environ.get("CLICKHOUSE_PASSWORD"):
        sys.exit("lookalike_clickhouse: CLICKHOUSE_USER=gpufl and CLICKHOUSE_PASSWORD are wanted")
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    Cluster.password = os.environ["CLICKHOUSE_PASSWORD"]
    with Cluster(shards=1, replicas=1, hosts=["127.0.0.1"]):
        print(READY, flush=True)
        signal.sigwait(signals)


if __name__ == "__main__":
    main()
