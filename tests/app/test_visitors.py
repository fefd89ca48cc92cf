"""Visitors have names that nobody makes up, pay for what they ask for, and share an address without sharing anything private."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.shell import routes as shell_routes
from app.transport import rate_limits, visitors, words
from core import secret
from core.errors import TextError
from core.service.queue import VISITORS_PER_ADDRESS, current_askers

ANN, BOB = ("ann", "at school"), ("bob", "at school")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


# what each may ask for


def test_what_a_visitor_has_used_comes_back_with_time() -> None:
    clock = Clock()
    balances = rate_limits.Balances({"seconds": rate_limits.Rate(3, 0.5)}, clock)
    assert [balances.take(ANN, "seconds") for _ in range(4)] == [0, 0, 0, 2]
    assert balances.take(BOB, "seconds") == 0 and balances.take(ANN, "anything") == 0
    clock.now = 1.0
    assert balances.take(ANN, "seconds") == 1
    clock.now = 2.0
    assert balances.take(ANN, "seconds") == 0 and balances.take(ANN, "seconds") == 2
    clock.now = 1e6
    assert [balances.take(ANN, "seconds") for _ in range(4)] == [0, 0, 0, 2]  # never more than at the beginning
    balances.spend(("carol",), "seconds", 10)
    assert balances.take(("carol",), "seconds", 0) == pytest.approx(14)
    balances.spend(("carol",), "seconds", 1000)
    assert balances.take(("carol",), "seconds", 0) == pytest.approx(rate_limits.LONGEST_WAIT)


def test_new_names_are_no_way_around_the_limit_of_an_address() -> None:
    balances = rate_limits.Balances({"seconds": rate_limits.Rate(3, 1e-9)}, Clock())
    got = [balances.take((f"name {i}", "at one place"), "seconds") for i in range(10 * VISITORS_PER_ADDRESS)]
    assert got.count(0) == 3 * VISITORS_PER_ADDRESS and not any(got[: 3 * VISITORS_PER_ADDRESS])
    assert balances.take(("name 1", "at another"), "seconds") == 0


def test_balances_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MOST_ACCOUNTS", 10)
    balances = rate_limits.Balances({"seconds": rate_limits.Rate(1, 0.001)})
    for i in range(1000):
        assert balances.take((f"visitor {i}",), "seconds") == 0
    assert len(balances._left) == 10 * len(rate_limits.RATES)
    assert balances.take(("visitor 999",), "seconds") > 0


def test_two_threads_never_get_more_than_there_is() -> None:
    balances = rate_limits.Balances({"seconds": rate_limits.Rate(500, 1e-9)})
    got: list[float] = []

    def ask() -> None:
        got.extend(balances.take(ANN, "seconds") for _ in range(400))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got.count(0) == 500


# at the routes


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A server whose visitors may have two trainings, two seconds of work and a megabyte."""
    clock = Clock()
    rates = {"trainings": rate_limits.Rate(2, 0.5), "seconds": rate_limits.Rate(2, 0.5), "megabytes": rate_limits.Rate(1, 0.1)}  # fmt: skip
    monkeypatch.setattr(rate_limits, "balances", rate_limits.Balances(rates, clock))

    @rate_limits.costing("trainings")
    async def train(_: Request) -> PlainTextResponse:
        return PlainTextResponse("trained")

    async def large(_: Request) -> PlainTextResponse:
        return PlainTextResponse("x" * 1_500_000)

    async def asker(_: Request) -> JSONResponse:
        return JSONResponse([*current_askers()])

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse("<title></title>")

    routes = [Route("/", page), Route("/headlight/file.html", page)]
    for path, of in {"train": train, "large": large, "asker": asker, "m/1/a.js": page, "classroom/X": page}.items():
        routes.append(Route(f"/headlight/{path}", of))
    middleware = [Middleware(visitors.Named), Middleware(rate_limits.Metered)]
    with TestClient(Starlette(routes=routes, middleware=middleware)) as client:
        client.clock = clock  # type: ignore[attr-defined]
        yield client


def test_a_visitor_who_asks_for_more_hears_how_long_to_wait(limited: TestClient) -> None:
    limited.get("/")
    assert [limited.get("/headlight/train").status_code for _ in range(2)] == [200, 200]
    refused = limited.get("/headlight/train")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
    assert refused.text == words.WAIT.format(seconds=2)
    name = limited.cookies[visitors.COOKIE]
    limited.cookies.clear()
    assert (
        limited.get("/headlight/train").status_code == 200
    )  # a browser that keeps no cookie has its address's account
    limited.cookies.set(visitors.COOKIE, name)
    limited.clock.now = 2.0  # type: ignore[attr-defined]
    assert limited.get("/headlight/train").status_code == 200


def test_bytes_count_too(limited: TestClient) -> None:
    assert limited.get("/headlight/large").status_code == 200
    refused = limited.get("/headlight/large")
    assert refused.status_code == 429 and refused.text == words.WAIT.format(seconds=5)
    limited.clock.now = 6.0  # type: ignore[attr-defined]
    assert limited.get("/headlight/large").status_code == 200


def test_who_has_no_work_left_gets_files_and_classes_and_no_work(limited: TestClient) -> None:
    limited.get("/")
    ((name, address),) = limited.get("/headlight/asker").json()
    assert name == limited.cookies[visitors.COOKIE] and address == "at testclient"
    rate_limits.charge((name, address), 3.0)
    assert limited.get("/headlight/asker").status_code == 429
    assert limited.get("/headlight/m/1/a.js").status_code == limited.get("/headlight/classroom/X").status_code == 200
    limited.cookies.clear()
    assert limited.get("/headlight/asker").json() == [["nameless at testclient", "at testclient"]]


def test_who_asks_too_fast_waits_and_is_not_refused(limited: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"requests": rate_limits.Rate(2, 10)}
    monkeypatch.setattr(rate_limits, "balances", rate_limits.Balances(rates, limited.clock))  # type: ignore[attr-defined]
    waits: list[float] = []

    async def noted(seconds: float) -> None:
        waits.append(round(seconds, 6))

    monkeypatch.setattr(rate_limits, "sleep", noted)
    assert {limited.get("/headlight/asker").status_code for _ in range(5)} == {200}
    limited.get("/headlight/m/1/a.js")
    assert waits == [0.0, 0.0, 0.1, 0.2, 0.3]


COSTS = {
    "free": {
        "classroom/open", "classroom/{code}/join", "classroom/{code}/events", "classroom/{code}/vote", "classroom/{code}/teach",
        "classroom/{code}/picture/{id}", "classroom/{code}/step", "classroom/{code}/class.csv", "classroom/{code}/class.html",
        "classroom/{code}/likeness", "classroom/{code}/votes", "classroom/{code}/votes.csv", "plotly.js", "preview.png", "oembed",
        "m/{digest}/{name}", "writer/{name}",
    },
    "a training": {"train/run", "train/text"},
    "seconds": {
        "tile", "row", "column", "heads", "layers", "small", "norms", "next", "roles", "atlas", "scores", "sink", "findings",
        "additions", "headwords", "looks", "correlations", "metrics", "proof", "strip", "ruler", "room/{id}", "export", "step/page",
        "step/walk", "step/experts", "step/terms", "step/guesses", "step/classes", "step/ending", "step/worth", "step/residual",
        "step/small", "masks/page", "masks/edited", "masks/ladder", "masks/scores", "masks/rows", "masks/kind", "masks/padding",
        "masks/leak", "masks/leak_text", "masks/leak_pair", "masks/scale", "masks/code", "positions/page", "positions/order",
        "positions/swap", "positions/swapped", "positions/guest", "positions/dials", "positions/stretches", "positions/loss",
        "positions/gap", "positions/proof", "positions/shift", "positions/known", "positions/rows", "positions/clock",
        "generate/write", "generate/beams", "generate/lens", "generate/wrote", "generate/layers", "generate/cost", "generate/text",
        "whatif/sweep", "whatif/parts", "whatif/swaps", "whatif/side", "whatif/npz", "whatif/tests", "whatif/notes", "whatif/paths",
        "whatif/set", "train/now", "train/finished", "train/pause", "train/looks", "train/model", "train/text/stop", "train/text/on",
        "train/text/forget", "train/text/keep", "train/text/model", "shapes/values", "shapes/projections", "shapes/config",
        "lessons/check", "lessons/rehearsal", "lessons/own",
    },
}  # fmt: skip


def test_every_route_has_a_declared_cost_and_who_has_nothing_left_is_refused_by_all_that_are_not_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = [route for route in shell_routes.PAGE_ROUTES if route.path.startswith("/headlight/")]
    paths = {route.path.removeprefix("/headlight/") for route in ours}
    declared = set().union(*COSTS.values())
    assert paths == declared, f"declare the cost of {paths ^ declared}"
    monkeypatch.setattr(rate_limits, "balances", rate_limits.Balances({"seconds": rate_limits.Rate(1, 1e-9)}))
    rate_limits.charge(("nameless at testclient", "at testclient"), 2.0)
    served = []

    async def serve(request: Request) -> PlainTextResponse:
        served.append(request.url.path)
        return PlainTextResponse("served")

    routes = [Route(route.path, serve, methods=route.methods) for route in ours]
    with TestClient(Starlette(routes=routes, middleware=[Middleware(rate_limits.Metered)])) as client:
        statuses = {path: client.request("POST" if "POST" in (route.methods or ()) else "GET", f"/headlight/{path}").status_code for route in ours if (path := route.path.removeprefix("/headlight/"))}  # fmt: skip
    assert {path for path, status in statuses.items() if status == 200} == COSTS["free"]
    assert {status for path, status in statuses.items() if path not in COSTS["free"]} == {429}
    assert len(served) == len(COSTS["free"])


# names


def test_the_name_says_nothing_and_is_given_once(limited: TestClient) -> None:
    given = limited.get("/").headers["set-cookie"]
    assert re.fullmatch(r"headlight=[\w-]{43}; Path=/; HttpOnly; SameSite=Lax", given)
    assert (
        "set-cookie" not in limited.get("/").headers and "set-cookie" not in limited.get("/headlight/file.html").headers
    )
    assert visitors.named("headlight=<script>; x=1") == visitors.named("") == visitors.named("headlight") == ""
    assert visitors.named(f"a=b; {given.split(';')[0]}") == given.split(";")[0].removeprefix("headlight=")


def test_a_made_up_name_is_none(limited: TestClient) -> None:
    name = visitors.new_name()
    other = name[:-2] + ("A" if name[-2] != "A" else "B") + name[-1]
    for made_up in ("a" * 22, "a" * 43, other, name[:-1], f"{name}A", secret.signed_name("follower"), secret.signed_name(visitors.PURPOSE, b"another")):  # fmt: skip
        assert visitors.named(f"headlight={made_up}") == "", made_up
        limited.cookies.clear()
        limited.cookies.set(visitors.COOKIE, made_up)
        assert limited.get("/headlight/asker").json() == [["nameless at testclient", "at testclient"]]
        assert "set-cookie" in limited.get("/").headers
    assert visitors.named(f"headlight={other}; headlight={name}") == name  # a frame's own beside another one


@pytest.mark.parametrize(("address", "embedding", "kind"), [
    ("http://lab.example", (), "SameSite=Lax"),
    ("https://lab.example", (), "SameSite=Lax; Secure"),
    ("http://lab.example", ("https://course.example",), "SameSite=Lax"),
    ("https://lab.example", ("https://course.example",), "SameSite=None; Secure; Partitioned"),
    ("http://localhost:8501", ("https://course.example",), "SameSite=None; Secure; Partitioned"),
])  # fmt: skip
def test_a_frame_has_a_name_of_its_own_where_a_browser_keeps_one(
    address: str, embedding: tuple[str, ...], kind: str
) -> None:
    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse("<title></title>")

    middleware = [Middleware(visitors.Named, embedding=embedding)]
    with TestClient(Starlette(routes=[Route("/", page)], middleware=middleware), address) as client:
        given = client.get("/").headers["set-cookie"]
    assert given.partition("; HttpOnly; ")[2] == kind


@pytest.mark.parametrize(("host", "network"), [
    ("192.0.2.7", "192.0.2.7"),
    ("::ffff:192.0.2.7", "192.0.2.7"),
    ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
    ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
    ("2001:db8:1:3::7", "2001:db8:1:3::/64"),
    ("testclient", "testclient"),
])  # fmt: skip
def test_one_host_has_one_address(host: str, network: str) -> None:
    assert visitors.address_of({"client": (host, 5000)}) == visitors.network(host) == network


# secrets


def test_the_secret_is_the_operators_or_random(monkeypatch: pytest.MonkeyPatch) -> None:
    def digests(value: str | None) -> bytes:
        secret.server_secret.cache_clear()
        if value is None:
            monkeypatch.delenv(secret.SETTING, raising=False)
        else:
            monkeypatch.setenv(secret.SETTING, value)
        return secret.digest("run", b"a text")

    try:
        assert digests("sixteen characters") == digests("sixteen characters") != digests("sixteen character.")
        assert digests(None) != digests(None) != digests("")
        with pytest.raises(ValueError, match="HEADLIGHT_SECRET has 5 characters, and needs at least 16"):
            digests("short")
        assert digests("sixteen characters") != secret.digest("visitor", b"a text")
    finally:
        monkeypatch.undo()
        secret.server_secret.cache_clear()


def test_a_route_for_one_visitor_alone_wants_a_name() -> None:
    name = visitors.new_name()
    of = {"type": "http", "client": ("192.0.2.7", 5000)}
    assert visitors.own_name({**of, "headers": [(b"cookie", f"headlight={name}".encode())]}) == name
    for headers in ([], [(b"cookie", b"headlight=" + b"a" * 43)]):
        with pytest.raises(ValueError, match="keeps no cookie of this page"):
            visitors.own_name({**of, "headers": headers})
    assert issubclass(visitors.BadParameter, ValueError) and not issubclass(visitors.BadParameter, TextError)
