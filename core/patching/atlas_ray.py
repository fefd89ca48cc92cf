"""An atlas on a Ray cluster: several processes, each with a model, compute the parts. Needs Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from ray import data, is_initialized
from ray import init as join

from ..checkpoints import Loaded
from .atlas import SCHEMA, SurveyResult, table_of_part

STORE = 100 << 20  # bytes of the object store of a local Ray; parts are small


class Surveyor:
    """The model of one process, which computes the table of a part as bytes."""

    def __init__(self, load: Callable[[], Loaded], most_tokens: int) -> None:
        torch.set_num_threads(1)  # each core has its own process
        self.loaded, self.most_tokens = load(), most_tokens

    def __call__(self, part: dict[str, Any]) -> dict[str, Any]:
        table = table_of_part(self.loaded, int(part["first"]), [str(text) for text in part["texts"]], self.most_tokens)
        return {"first": part["first"], "table": bytes(as_bytes(table))}


def on_ray(load: Callable[[], Loaded], most_tokens: int, processes: int = 2) -> SurveyResult:
    """The `surveyed` argument of atlas.survey(), on the cluster of RAY_ADDRESS, or on a local one.

    `load` is sent to each process and loads its model.
    """

    def surveyed(parts: Sequence[tuple[int, Sequence[str]]]) -> Iterator[tuple[int, pa.Table]]:
        if not parts:
            return
        begin(processes)
        items = data.from_items(
            [{"first": first, "texts": [*texts]} for first, texts in parts], override_num_blocks=len(parts)
        )
        done = items.map(
            Surveyor,
            fn_constructor_args=(load, most_tokens),
            compute=data.ActorPoolStrategy(size=processes),
            num_cpus=1,
        )
        for row in done.iter_rows():
            with pa.ipc.open_stream(row["table"]) as stream:
                yield int(row["first"]), stream.read_all().cast(SCHEMA)

    return surveyed


def begin(processes: int) -> None:
    """Join the cluster of RAY_ADDRESS, or start a local one."""
    if is_initialized():
        return
    root = str(Path(__file__).resolve().parents[2])
    options: dict[str, Any] = {"runtime_env": {"env_vars": {"PYTHONPATH": root}}, "log_to_driver": False}
    if not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {"address": "local", "num_cpus": processes, "include_dashboard": False, "object_store_memory": STORE}
    join(**options)


def as_bytes(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()
