# SPDX-License-Identifier: Apache-2.0
"""Stands in for the image clickhouse/clickhouse-server: Debian's server with the user and password that the container's
environment names, on the image's ports, until SIGTERM."""
import os
import signal
import sys

import scratch  # noqa: F401 # it knows where the end-to-end tests are
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
