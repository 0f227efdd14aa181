"""A real Ray cluster of two nodes on this machine, small enough to run beside other tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

OBJECT_STORE = 80 * 2**20


@contextmanager
def two_nodes(cores: int = 1) -> Iterator[tuple[Any, Any]]:
    """The cluster and its second node; this process is connected to it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        cluster.add_node(num_cpus=cores, object_store_memory=OBJECT_STORE, include_dashboard=False)
        second = cluster.add_node(num_cpus=cores, object_store_memory=OBJECT_STORE)
        yield cluster, second
    finally:
        ray.shutdown()
        cluster.shutdown()
