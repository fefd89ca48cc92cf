"""A run that the server does not have: 404, and 429 to a visitor who tries many keys. A run that it has is always answered."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from app.transport import metrics, rate_limits, words
from app.transport.routes import answering
from core.errors import UnknownRun

KNOWN, UNKNOWN = "/headlight/tile?run=known", "/headlight/tile?run=unknown"


@answering
async def tile(request: Request) -> Response:
    if request.query_params["run"] != "known":
        raise UnknownRun("unknown")
    return PlainTextResponse("its tile")


async def no_class(_: Request) -> Response:
    return PlainTextResponse("no class", 404)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Starlette:
    now = [0.0]
    balances = rate_limits.Balances({"unknown": rate_limits.Rate(3, 0.5)}, lambda: now[0])
    monkeypatch.setattr(rate_limits, "balances", balances)
    routes = [Route("/headlight/tile", tile), Route("/headlight/classroom/{code}/events", no_class)]
    found = Starlette(routes=routes, middleware=[Middleware(rate_limits.Metered)])
    found.state.now = now
    return found


def test_many_unknown_keys_are_refused_and_known_ones_answered(app: Starlette) -> None:
    client, before = TestClient(app), metrics.LIMITED.labels("unknown")._value.get()
    said = [client.get(UNKNOWN) for _ in range(5)]
    assert [answer.status_code for answer in said] == [404] * 3 + [429] * 2
    assert (said[3].text, said[3].headers["retry-after"]) == (words.WAIT.format(seconds=2), "2")
    assert said[0].text == words.TILE_UNKNOWN_RUN and metrics.LIMITED.labels("unknown")._value.get() == before + 2
    assert client.get(KNOWN).text == "its tile"
    assert TestClient(app, client=("10.0.0.2", 1)).get(UNKNOWN).status_code == 404, "another address"
    app.state.now[0] = 2.0
    assert [client.get(UNKNOWN).status_code for _ in range(2)] == [404, 429]


def test_a_class_that_is_over_is_no_unknown_run(app: Starlette) -> None:
    client = TestClient(app)
    assert {client.get("/headlight/classroom/BBBBBBBB/events").status_code for _ in range(9)} == {404}
    assert client.get(UNKNOWN).status_code == 404


def test_a_class_whose_server_has_restarted_reloads_its_pages() -> None:
    """60 pupils at one address, whose names the new process does not know: each old page asks for 20 things."""
    balances = rate_limits.Balances(rate_limits.RATES)
    accounts = ("nameless at 10.0.0.1", "at 10.0.0.1")
    assert {balances.take(accounts, "unknown") for _ in range(60 * 20)} == {0.0}
