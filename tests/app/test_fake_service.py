"""The application needs nothing but a Service: here one that has no engine, no model and no run, only recorded answers."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

import core
from app.attention import in_progress
from app.rooms.lessons import opening
from app.rooms.lessons.step import Shown
from app.rooms.lessons.written import table
from app.session import service
from app.shell import routes
from app.transport import messages
from core.errors import UnknownRun
from core.run.request import Progress, Request
from core.service import Column, Facts, LocalService, MapTransform, Row, Service, SyncCalls, TensorPlace, Tile
from core.service.engine import Engine

TEXT = "A recorded cat sat."
REQUEST = Request(service.DEFAULT_MODEL, (TEXT,))


class Recorded:
    """A Service that plays back what another one said of one run, as it comes over a wire; everything else is Unknown."""

    def __init__(self, recorded: bytes) -> None:
        self.said: dict[str, Any] = pickle.loads(recorded)
        self.asked: list[str] = []

    def _check(self, key: str) -> None:
        if key != REQUEST.key:
            raise UnknownRun("This run is no longer known.")

    def _weights(self, key: str, of: MapTransform) -> np.ndarray:
        self._check(key)
        return self.said["heads"]["encoder"].weights[of.record, of.head]

    async def submit(self, request: Request) -> str:
        self.asked.append("submit")
        self._check(request.key)
        return request.key

    async def follow(self, key: str) -> AsyncGenerator[Progress]:
        self._check(key)
        yield Progress("running", layers_done=1, layers_total=6)
        await asyncio.sleep(0)
        yield Progress("done")

    async def model(self, model_id: str) -> core.ModelConfig | None:
        return self.said["facts"].config

    async def chats(self, model_id: str) -> bool:
        return False

    async def facts(self, key: str) -> Facts:
        self._check(key)
        return self.said["facts"]

    async def facts_so_far(self, key: str) -> None:
        return None

    async def tile(self, key: str, of: MapTransform, rows: Any, columns: Any, cells: int = 512) -> Tile:
        values = self._weights(key, of)[slice(*rows), slice(*columns)]
        return Tile(values, np.zeros(values.shape, "u1"), True, "")

    async def row(self, key: str, of: MapTransform, query: int) -> Row:
        values = self._weights(key, of)[query]
        return Row(values, np.zeros(values.shape, "u1"), 1.5, None)

    async def column(self, key: str, of: MapTransform, at: int) -> Column:
        values = self._weights(key, of)[:, at]
        return Column(values, np.zeros(values.shape, "u1"))

    async def cells(self, key: str, of: MapTransform, rows: Any, columns: Any) -> Tile:
        return await self.tile(key, of, rows, columns)

    async def status(self) -> dict[str, Any]:
        return {"models": ["recorded"], "traces": 1}

    def __getattr__(self, name: str) -> Any:
        async def answer(key: str, *_: Any) -> Any:
            self._check(key)
            return self.said[name]

        if name not in self.said:
            raise AttributeError(name)
        return answer


@pytest.fixture(scope="module")
def recording() -> bytes:
    async def record() -> dict[str, Any]:
        asked: Service = LocalService(Engine(load_model=core.load))
        key = await asked.submit(REQUEST)
        return {
            "facts": replace(await asked.facts(key), seconds=1.234),
            "heads": await asked.heads(key),
            "whole": await asked.whole(key),
            "thumbnails": await asked.thumbnails(key),
            "measures": await asked.measures(key, "encoder"),
            "norms": await asked.norms(key, "encoder"),
            "roles": await asked.roles(key),
            "openings": await asked.openings(key),
            "opening_look": await asked.opening_look(key),
            "findings": await asked.findings(key),
            "sink": await asked.sink(key, "encoder"),
            "proof": await asked.proof(key, 0),
            "scores": await asked.scores(key, 0, 0, 1),
            "values": await asked.values(key, TensorPlace("encoder", 0, "attn", "weights", 0), 48),
        }

    with ThreadPoolExecutor(1) as apart:  # a thread in which no loop of the browser's tests runs
        return pickle.dumps(apart.submit(lambda: asyncio.run(record())).result())


@pytest.fixture
def recorded(recording: bytes, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    fake = Recorded(recording)
    monkeypatch.setattr(service, "service", lambda: fake)
    monkeypatch.setattr(service, "calls", cache(lambda: SyncCalls(fake)))  # type: ignore[arg-type]
    return fake


@pytest.fixture
def client(recorded: Recorded) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.ROUTES)) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("tile", {"record": 2, "head": 3, "q0": 0, "q1": 4, "k0": 1, "k1": 3}),
        ("row", {"record": 2, "head": 3, "query": 1}),
        ("column", {"record": 2, "head": 3, "key": 1}),
        ("heads", {}),
        ("norms", {"site": "encoder"}),
        ("scores", {"record": 0, "head": 0, "query": 1}),
        ("metrics", {"site": "encoder"}),
        ("proof", {"record": 0}),
        ("shapes/values", {"stack": "encoder", "layer": 0, "site": "attn", "what": "weights", "head": 0}),
        ("export", {"format": "about", "site": "encoder", "layer": 1, "head": 2}),
        ("export", {"format": "csv", "site": "encoder", "layer": 1, "head": 2}),
        ("export", {"format": "npz", "site": "encoder", "layer": 1, "head": 2}),
    ],
)
def test_routes_answer_from_recorded_answers(client: TestClient, path: str, params: dict[str, Any]) -> None:
    answer = client.get(f"/headlight/{path}", params={"run": REQUEST.key} | params)
    assert answer.status_code == 200 and answer.content
    unknown = client.get(f"/headlight/{path}", params={"run": "0" * 64} | params)
    assert unknown.status_code == 404


def test_the_numbers_on_the_way_are_those_that_were_recorded(client: TestClient, recorded: Recorded) -> None:
    answer = client.get("/headlight/row", params={"run": REQUEST.key, "record": 2, "head": 3, "query": 1})
    header, body = messages.unpack(answer.content)
    weights = recorded.said["heads"]["encoder"].weights[2, 3, 1]
    assert header["entropy"] == 1.5 and np.abs(np.frombuffer(body, "<u2", len(weights)) / 65535 - weights).max() < 1e-5


def screen() -> None:
    import streamlit as st

    from app.rooms.explore import view

    st.session_state.setdefault("text", "A recorded cat sat.")
    view.show()


def test_explore_draws_a_recorded_run(recorded: Recorded) -> None:
    app = AppTest.from_function(screen, default_timeout=30).run()
    assert not app.exception
    assert app.session_state["last_good"] == REQUEST
    assert app.session_state["explore_drawn"] and service.awaited(in_progress.made_of(REQUEST)).header[
        "ms"
    ] == pytest.approx(1234)
    assert "submit" in recorded.asked


def test_the_picture_is_made_of_recorded_answers(recorded: Recorded) -> None:
    header = service.awaited(in_progress.made_of(REQUEST)).header
    assert header["whole"] and header["tokens"]["source"][1:-1] == ["A", "recorded", "cat", "sat", "."]


def about_the_model() -> None:
    """The lines beneath the request of a run, in every room that has one."""
    from app.session import service
    from app.session.answer import Answer
    from app.shell import request_box
    from tests.app import test_fake_service

    request = test_fake_service.REQUEST
    facts = service.calls().result(service.service().facts(request.key))
    request_box.beneath(request, Answer(request, facts, None, None))


def test_tensors_that_take_no_part_are_told_beneath_the_request(recorded: Recorded) -> None:
    notices = (
        "The weight files hold 1 tensor that config.json has no place for: <b>q_proj.bias</b>.",
        "lora.safetensors was not read.",
    )
    facts = recorded.said["facts"]
    said = [element.value for element in AppTest.from_function(about_the_model).run().text]
    assert not any("tensor" in text for text in said)
    recorded.said["facts"] = replace(facts, spec=replace(facts.spec, notices=notices))
    app = AppTest.from_function(about_the_model).run()
    assert not app.exception
    assert tuple(element.value for element in app.text)[-2:] == notices  # as text, never as markup


@pytest.mark.parametrize("name", opening.written_steps())
def test_a_written_step_whose_run_is_not_to_be_had_says_so(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(table, "_rows", {})
    step = opening.written_steps()[name]
    service.calls().result(table.open_row(name, recorded))  # type: ignore[arg-type]
    assert opening.written_steps()[name].state == step.state
    with pytest.raises(UnknownRun, match=r"This run is no longer known\."):
        service.calls().result(step.truth(Shown(recorded, step.state)))  # type: ignore[arg-type]
