"""The Service on Ray Serve: replicas with one or more models. Lost ones are replaced, and their number follows the load."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from ray import serve
from ray.serve.config import RequestRouterConfig
from starlette.requests import Request
from starlette.responses import Response

from app.session import idle, models
from app.transport import logs, metrics, tracebacks
from cluster import answering, token
from core.errors import HeadlightError
from core.service import LocalService
from core.service.engine import Engine

ROOT = Path(__file__).resolve().parents[1]
# Questions about one part of a model's runs go to one replica, which has the traces, and to another one only when it is lost, never
# because it is busy. So many may wait at a replica, and Engine schedules them.
ROUTER = RequestRouterConfig(
    request_router_class="ray.serve.experimental.consistent_hash_router.ConsistentHashRouter",
    request_router_kwargs={"num_fallback_replicas": 0},
)
MOST_QUESTIONS = 1000
BUSY = 8  # requests per replica at which another replica is started
CHECK_SECONDS = 5.0  # between two health checks of a replica


class Models:
    """A replica: the models and traces of one process."""

    def __init__(self, threads: int, warm: str | None) -> None:
        torch.set_num_threads(threads)  # Ray does not enforce num_cpus
        logs.begin()
        tracebacks.keep_texts_out()
        self.token = token.token()
        engine = Engine(load_model=models.load, on_finished=metrics.run_ended, idle_seconds=idle.seconds())
        self.service = LocalService(engine)
        if warm:
            engine.load(warm)

    async def __call__(self, request: Request) -> Response:
        return await answering.answer(self.service, request, self.token)


def headlight(args: dict[str, Any]) -> serve.Application:
    """The application, for serve.run() and for `serve build` and KubeRay: `import_path: cluster.deployment:headlight`.

    `args`: replicas "1-4" or "2"; cpus and gpus of each replica, which may be fractions; the model that a new replica loads.
    Raises Refused.
    """
    fewest, most = counts(str(args.get("replicas", "1")))
    cpus, gpus = share("cpus", args.get("cpus", 1)), share("gpus", args.get("gpus", 0))
    options: dict[str, Any] = (
        {"num_replicas": fewest}
        if fewest == most
        else {
            "autoscaling_config": {
                "min_replicas": fewest,
                "max_replicas": most,
                "target_ongoing_requests": BUSY,
                "upscale_delay_s": 3,
                "downscale_delay_s": 600,  # the traces of a stopped replica are lost
            }
        }
    )
    token.token()  # raises here once for an invalid one, instead of in each replica
    threads = max(1, int(cpus))
    here = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(threads)}
    passed = {name: value for name, value in os.environ.items() if name.startswith("HEADLIGHT_")}
    deployed = serve.deployment(
        name="models",
        ray_actor_options={
            "num_cpus": cpus,
            "num_gpus": gpus,
            "runtime_env": {"env_vars": {**passed, **here}},
        },
        max_ongoing_requests=MOST_QUESTIONS,
        request_router_config=ROUTER,
        health_check_period_s=CHECK_SECONDS,
        health_check_timeout_s=30,
        graceful_shutdown_timeout_s=20,
        **options,
    )(Models)
    return deployed.bind(threads, first_model(args.get("model")))


def first_model(model: object) -> str | None:
    """The model that a new replica loads: the default model of the application, or none for ""."""
    return models.DEFAULT if model is None else str(model) or None


def counts(text: str) -> tuple[int, int]:
    """The fewest and the most replicas. Raises Refused."""
    low, _, high = text.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) < 5 for part in (low, high or low)):
        raise HeadlightError(
            f"replicas is {text[:40]!r}, but it must be a number from 1, such as 2, or two of them, such as 1-4."
        )
    found = int(low), int(high or low)
    if not 1 <= found[0] <= found[1]:
        raise HeadlightError(
            f"replicas is {text[:40]!r}, but it must be from 1 on, and the first number not above the second."
        )
    return found


def share(name: str, value: object) -> float:
    """A number from 0 on. Raises Refused."""
    try:
        found = float(str(value))
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e4:
        raise HeadlightError(f"{name} is {str(value)[:40]!r}, but it must be a number from 0, such as 0.25.")
    return found
