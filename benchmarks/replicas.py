"""The Service over Ray against the same in this process: what one answer takes, and how many runs a second 1 and 2 replicas make.

    .venv-cluster/bin/python -m benchmarks.replicas [--runs 200] [--seconds 20]

A cluster of two nodes with a core each on this machine, MiniLM and sentences of about 16 tokens, one thread for each process. A run is
submit, follow to its end, and facts, as the page asks for it. The front end speaks HTTP to Ray Serve's proxy on the same machine, so no
network is in it. Throughput is of eight visitors who do not think.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from statistics import quantiles
from typing import Any

import torch

from cluster import remote
from core.run.request import Request
from core.service import LocalService, MapTransform, Service
from core.service.engine import Engine

STORE = 100 << 20  # bytes of each node's object store
VISITORS = 8
WARM = 20  # answers that do not count
HEAD = MapTransform(1, 1)


def sentence(*words: object) -> Request:
    return Request(
        "minilm", (f"The animal {' '.join(map(str, words))} did not cross the street because it was tired.",)
    )


async def run(service: Service, request: Request) -> str:
    key = await service.submit(request)
    async with aclosing(service.follow(key)) as progress:
        async for _ in progress:
            pass
    await service.facts(key)
    return key


async def latencies(service: Service, name: str, n: int) -> dict[str, str]:
    """p50 / p95 in ms of single answers, one after the other."""

    async def timed(ask: Callable[[int], Awaitable[Any]]) -> str:
        took = []
        for i in range(WARM + n):
            begun = time.perf_counter()
            await ask(i)
            took.append(time.perf_counter() - begun)
        cuts = quantiles(took[WARM:], n=20, method="inclusive")
        return f"{1000 * cuts[9]:.1f} / {1000 * cuts[18]:.1f}"

    key = await run(service, sentence(name))
    long = await run(service, Request("minilm", (" ".join(f"word{i}" for i in range(120)),)))
    return {
        "run": await timed(lambda i: run(service, sentence(name, i))),
        "row": await timed(lambda i: service.row(key, HEAD, i % 16)),
        "heads": await timed(lambda _: service.heads(key)),
        "tile 256 x 256": await timed(lambda _: service.tile(long, HEAD, (0, 256), (0, 256))),
    }


async def throughput(service: Service, name: str, seconds: float) -> float:
    """Runs a second of visitors who do not think."""
    until, done = time.monotonic() + seconds, 0

    async def visitor(number: int) -> None:
        nonlocal done
        i = 0
        while time.monotonic() < until:
            await run(service, sentence(name, number, i))
            i, done = i + 1, done + 1

    await asyncio.gather(*map(visitor, range(VISITORS)))
    return done / seconds


@contextmanager
def on_ray(replicas: int) -> Iterator[Service]:
    """A cluster of two nodes on this machine, with so many replicas."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    from cluster.deployment import headlight

    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE}
    nodes = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        nodes.add_node(**node)
        ray.init(address=nodes.address, log_to_driver=False, logging_level="warning")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
        serve.run(headlight({"replicas": str(replicas), "cpus": "0.8"}), name="headlight", route_prefix="/")
        yield remote.service(f"http://127.0.0.1:{port}")
    finally:
        serve.shutdown()
        ray.shutdown()
        nodes.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    print(f"ms, p50 / p95; {len(os.sched_getaffinity(0))} cores, load before {load:.1f}", flush=True)

    async def measure(service: Service, name: str) -> None:
        found = await latencies(service, name, asked.runs)
        print(f"{name:12}", *(f"{what}: {value:15}" for what, value in found.items()), end=" ", flush=True)
        print(f"runs a second: {await throughput(service, name, asked.seconds):.1f}", flush=True)

    asyncio.run(measure(LocalService(Engine()), "in process"))
    for replicas in (1, 2):
        with on_ray(replicas) as service:
            asyncio.run(measure(service, f"Ray, {replicas}"))


if __name__ == "__main__":
    main()
