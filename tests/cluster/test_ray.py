"""The Service on a Ray cluster of two nodes: the same numbers as in this process, and machines that may be lost under load."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch

ray = pytest.importorskip("ray", reason="`make test-cluster` installs Ray")

from ray import serve  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

from app.session import models  # noqa: E402
from cluster import deployment, remote, wire  # noqa: E402
from core.edits import Ablate  # noqa: E402
from core.errors import HeadlightError  # noqa: E402
from core.run.request import Request  # noqa: E402
from core.service import AblateHeads, LocalService, MapTransform, Service  # noqa: E402
from core.service.engine import Engine  # noqa: E402
from core.write.generate import Sampling  # noqa: E402
from tests.cluster.test_remote import rows, untimed  # noqa: E402

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]
STORE = 80 << 20  # bytes: the least that Ray takes
HEAD = MapTransform(1, 1)
VISITORS, SENTENCES = 6, 12
PATIENCE = 600.0  # seconds for a machine to be replaced: tested is what is lost, and not how soon it is back


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes with room for one replica each."""
    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    before = {name: os.environ.get(name) for name in ("RAY_USAGE_STATS_ENABLED",)}
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Cluster(initialize_head=True, head_node_args=node)
    try:
        nodes.add_node(num_cpus=1, object_store_memory=STORE)
        ray.init(address=nodes.address, log_to_driver=False, logging_level="warning")
        yield nodes
    finally:
        serve.shutdown()
        ray.shutdown()
        nodes.shutdown()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="module")
def there(nodes: Cluster) -> Service:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
    serve.run(deployment.headlight({"replicas": "2", "cpus": "0.8"}), name="headlight", route_prefix="/")
    return remote.service(f"http://127.0.0.1:{port}", patience=PATIENCE)


@pytest.fixture(scope="module")
def here() -> LocalService:
    torch.set_num_threads(1)
    return LocalService(Engine(device=torch.device("cpu"), dtype=torch.float32))


def test_a_new_replica_loads_what_the_application_opens_with() -> None:
    assert deployment.first_model(None) == models.DEFAULT == os.environ["HEADLIGHT_DEFAULT"]
    assert deployment.first_model("copy") == "copy" and deployment.first_model("") is None


def sentence(*numbers: int) -> Request:
    return Request("minilm", (f"Visitor {numbers} did not cross the street because it was too tired.",))


async def all_of(stream: AsyncGenerator[Any]) -> list[Any]:
    async with aclosing(stream) as found:
        return [value async for value in found]


def replicas() -> set[str]:
    """The names of the replicas that are there."""
    names = {one["name"] for one in ray.util.list_named_actors(all_namespaces=True)}
    return {name for name in names if name.startswith("SERVE_REPLICA::headlight#models#")}


def test_each_node_has_a_replica(there: Service) -> None:
    assert len(replicas()) == 2
    free = [node["Resources"].get("CPU") for node in ray.nodes() if node["Alive"]]
    assert free == [1.0, 1.0]  # two shares of 0.8 fit on none


def test_the_numbers_are_those_of_this_process_bit_for_bit(here: Service, there: Service) -> None:
    texts = [sentence(i) for i in range(4)]
    story = Request("storyteller", ("Once upon a time there was a",))

    async def numbers(of: Service) -> list[bytes]:
        found = []
        for request in texts:
            key = await of.submit(request)
            await all_of(of.follow(key))
            found += [
                await of.heads(key),
                await of.row(key, HEAD, 3),
                await of.thumbnails(key),
                await of.measures(key, "encoder"),
            ]
        key = await of.submit(story)
        found += [
            await of.predictions(key),
            await of.logit_lens(key),
            await of.contributions(key),
            await of.ablate_each(key),
        ]
        edited = await of.edited(key, (Ablate("decoder", 1, 1),))
        found += [
            edited,
            await of.predictions(edited),
            await of.compare(key, edited),
            await of.answer_change(key, edited),
        ]
        packed = [wire.packed(value) for value in found]
        written = await all_of(of.write(key, (), 6, Sampling(temperature=1.0, seed=3)))
        packed += [untimed(value) for value in written]
        swept = rows(await all_of(of.sweep(key, AblateHeads())))
        return [*packed, repr(swept).encode()]

    one, other = asyncio.run(numbers(here)), asyncio.run(numbers(there))
    assert len(one) > 20 and one == other


async def load(there: Service, disturb: Any) -> tuple[dict[str, list[bytes]], list[float]]:
    """Visitors who type sentences and read rows of them, while something happens: what each saw, and how long each answer took."""
    seen: dict[str, list[bytes]] = {}
    took: list[float] = []

    async def visitor(number: int) -> None:
        for i in range(SENTENCES):
            begun = time.monotonic()
            key = await there.submit(sentence(number, i))
            await all_of(there.follow(key))
            found = [await there.row(key, HEAD, query) for query in range(4)]
            took.append(time.monotonic() - begun)
            seen[key] = [wire.packed(row) for row in found]
            await asyncio.sleep(0.2)

    async def disturbance() -> None:
        while len(took) < VISITORS * SENTENCES // 3:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(disturb)

    await asyncio.gather(*map(visitor, range(VISITORS)), disturbance())
    return seen, took


async def expected(here: Service) -> dict[str, list[bytes]]:
    found = {}
    for number in range(VISITORS):
        for i in range(SENTENCES):
            key = await here.submit(sentence(number, i))
            found[key] = [wire.packed(await here.row(key, HEAD, query)) for query in range(4)]
    return found


def said(what: str, took: list[float]) -> str:
    return f"{what}: {len(took)} answers, none lost; median {median(took) * 1000:.0f} ms, slowest {max(took):.2f} s"


def test_a_replica_that_is_killed_under_load_loses_nothing(
    here: Service, there: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    before = replicas()

    def kill() -> None:
        ray.kill(ray.get_actor(min(before), namespace="serve"), no_restart=True)

    seen, took = asyncio.run(load(there, kill))
    assert seen == asyncio.run(expected(here)) and len(took) == VISITORS * SENTENCES
    with capsys.disabled():
        print(f"\n{said('a replica killed', took)}")
    until = time.monotonic() + PATIENCE
    while len(now := replicas()) < 2 or min(before) in now:  # it is replaced
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_node_that_is_killed_under_load_loses_nothing(
    nodes: Cluster, here: Service, there: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(all_of(there.follow(asyncio.run(there.submit(sentence(0, 0))))))
    worker = next(iter(nodes.worker_nodes))
    seen, took = asyncio.run(load(there, lambda: nodes.remove_node(worker, allow_graceful=False)))
    assert seen == asyncio.run(expected(here)) and len(took) == VISITORS * SENTENCES
    with capsys.disabled():
        print(f"\n{said('a node killed', took)}")


@pytest.mark.parametrize(
    "args", [{"replicas": "0"}, {"replicas": "4-1"}, {"replicas": "many"}, {"cpus": "-1"}, {"gpus": "half"}]
)
def test_a_setting_that_says_nothing_is_refused(args: dict[str, str]) -> None:
    with pytest.raises(HeadlightError, match="but it must be"):
        deployment.headlight(args)


def test_fractions_of_a_gpu_and_autoscaling_are_settings() -> None:
    found = deployment.headlight({"replicas": "1-4", "gpus": "0.25"})._bound_deployment
    assert found.ray_actor_options["num_gpus"] == 0.25
    scaling = found._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (1, 4)


def test_a_checkout_is_what_replicas_run() -> None:
    assert Path(deployment.__file__).resolve() == (deployment.ROOT / "cluster" / "deployment.py")
