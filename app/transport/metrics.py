"""Counts for the operator in Prometheus' format, and a record in the log for every run. Nothing here holds anybody's text."""

from __future__ import annotations

import logging
from dataclasses import asdict

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from core.run.request import RunFinished

REGISTRY = CollectorRegistry()
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
RUNS = Counter("headlight_runs", "Runs that have ended, by model and outcome.", ["model", "outcome"], registry=REGISTRY)
RAN = Histogram("headlight_run_seconds", "How long a pass took.", buckets=SECONDS, registry=REGISTRY)
WAITED = Histogram("headlight_wait_seconds", "How long a run waited for its turn.", buckets=SECONDS, registry=REGISTRY)
ANSWERS = Counter("headlight_answers", "Answers of the routes, by status.", ["status"], registry=REGISTRY)
LIMITED = Counter("headlight_limited", "Requests beyond what one visitor may ask for.", ["what"], registry=REGISTRY)
TURNED_AWAY = Counter("headlight_turned_away", "Visits while all places were taken.", registry=REGISTRY)
STALLED = Counter("headlight_stalled", "Connections that were closed because they stalled.", registry=REGISTRY)
CLASS_REFUSED = Counter(
    "headlight_classroom_refused", "Messages of classes that changed nothing, by why.", ["why"], registry=REGISTRY
)
CLASSES = Gauge("headlight_classes", "Classes that are open now.", registry=REGISTRY)
FOLLOWERS = Gauge("headlight_followers", "Who follows a class now.", registry=REGISTRY)
VISITORS = Gauge("headlight_visitors", "Pages that are open now.", registry=REGISTRY)
HELD = {
    name: Gauge(f"headlight_{name}", says, registry=REGISTRY)
    for name, says in {
        "traces": "Runs that are kept.",
        "trace_bytes": "What they take.",
        "running_or_waiting": "Runs that have not ended.",
        "free_bytes": "Memory that is free on the device.",
    }.items()
}
MODELS = Gauge("headlight_models", "Models in memory.", registry=REGISTRY)

runs = logging.getLogger("headlight.runs")


def run_ended(told: RunFinished) -> None:
    """Count a run, and write its line."""
    model = "trained" if told.model_id.startswith("trained-") else told.model_id  # one label for any number of them
    RUNS.labels(model, told.outcome).inc()
    if told.outcome == "done":
        RAN.observe(told.ran)
        WAITED.observe(told.waited)
    if runs.isEnabledFor(logging.INFO):
        said = asdict(told) | {"waited": round(told.waited, 4), "ran": round(told.ran, 4)}
        runs.info("A run ended", extra={"run": said})


def text(held: dict[str, object], visitors: int) -> bytes:
    """All of it now: `held` is Service.status()."""
    VISITORS.set(visitors)
    for name, gauge in HELD.items():
        value = held[name]
        assert isinstance(value, int | float)
        gauge.set(value)
    models = held["models"]
    assert isinstance(models, list)
    MODELS.set(len(models))
    return generate_latest(REGISTRY)
