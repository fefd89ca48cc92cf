"""Requests that a server refuses before anything else reads them: foreign names, Streamlit's metrics, and visitors without the password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.web.server.starlette.starlette_routes import ROUTE_METRICS

from app.streamlit_edge import hosts
from app.transport import admission, bad_requests, closed, password, rate_limits, words

PASSWORD = "correct horse"
HTML = {"accept": "text/html"}


async def page(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"the page {request.url.query}")


async def socket(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text("a visit")


def visited(*middleware: Middleware, **options: str) -> TestClient:
    paths = ("/", "/healthz", "/readyz", "/headlight/row", "/_stcore/health", closed.METRICS)
    routes = [*(Route(path, page, methods=["GET", "POST"]) for path in paths), WebSocketRoute(admission.SOCKET, socket)]
    return TestClient(Starlette(routes=routes, middleware=middleware), **options)  # type: ignore[arg-type]


@contextmanager
def options(address: str, allowed: list[str]) -> Iterator[None]:
    """Streamlit's options of a server for the time of a test."""
    values = {"server.address": address, hosts.OPTION: allowed}
    before = {name: config.get_option(name) for name in values}
    for name, value in values.items():
        config.set_option(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            config.set_option(name, value)


def opens(client: TestClient, **headers: str) -> bool:
    """True if a websocket is accepted."""
    try:
        with client.websocket_connect(admission.SOCKET, headers=headers) as websocket:
            return websocket.receive_text() == "a visit"
    except WebSocketDisconnect:
        return False


# names


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1", "::1"])
def test_a_person_s_own_machine_answers_under_its_own_names_only(address: str):
    with options(address, []):
        hosts.allow_own(is_own_machine=True)
        client = visited(Middleware(closed.Closed))
        for own in ("localhost:8501", "LOCALHOST", "127.0.0.1:8501", "[::1]:8501", "headlight.localhost"):
            assert client.get("/headlight/row", headers={"host": own}).status_code == 200, own
            assert opens(client, host=own), own
        for foreign in (
            "evil.example",
            "evil.example:8501",
            "localhost.evil.example",
            "192.168.0.7:8501",
            "127.0.0.1@evil.example",
        ):
            refused = client.get("/headlight/row", headers={"host": foreign})
            assert (refused.status_code, refused.text) == (closed.MISDIRECTED, words.OTHER_HOST), foreign
            assert client.post("/", headers={"host": foreign}).status_code == closed.MISDIRECTED, foreign
            assert not opens(client, host=foreign), foreign


@pytest.mark.parametrize(("address", "is_own_machine"), [("0.0.0.0", False), ("127.0.0.1", False), ("0.0.0.0", True)])
def test_a_host_answers_under_any_name_until_its_operator_names_some(address: str, is_own_machine: bool):
    with options(address, []):
        hosts.allow_own(is_own_machine)
        client = visited(Middleware(closed.Closed))
        assert client.get("/", headers={"host": "headlight.example.org"}).status_code == 200
        assert opens(client, host="headlight.example.org")
    with options(address, ["headlight.example.org"]):
        hosts.allow_own(is_own_machine)
        assert client.get("/", headers={"host": "headlight.example.org:443"}).status_code == 200
        assert client.get("/", headers={"host": "evil.example"}).status_code == closed.MISDIRECTED
        assert client.get("/readyz", headers={"host": "10.1.2.3:8501"}).status_code == 200  # a probe of Kubernetes
        assert client.get("/healthz", headers={"host": "10.1.2.3:8501"}).status_code == 200


def test_streamlits_metrics_are_not_served():
    assert f"/{ROUTE_METRICS}" == closed.METRICS
    client = visited(Middleware(closed.Closed))
    assert [client.get(f"{closed.METRICS}{end}").status_code for end in ("", "/", "?x=1")] == [404, 404, 404]
    assert client.get("/_stcore/health").status_code == 200
    below = visited(Middleware(closed.Closed, base="/lab"))
    assert below.get(f"/lab{closed.METRICS}").text == words.NO_MODULE


def test_a_message_that_asks_for_nothing_does_not_reach_streamlit():
    """It would log 'No handler for "None"' for each."""
    read: list[bytes] = []

    async def reading(websocket: WebSocket) -> None:
        await websocket.accept()
        read.append(await websocket.receive_bytes())
        await websocket.send_text("read")

    heartbeat = BackMsg(app_heartbeat=True).SerializeToString()
    routes = [WebSocketRoute(admission.SOCKET, reading)]
    client = TestClient(Starlette(routes=routes, middleware=[Middleware(bad_requests.Strange)]))
    with client.websocket_connect(admission.SOCKET) as websocket:
        for nothing in (b"", b"\xa0\x1f\x01"):  # and a field of a newer Streamlit
            websocket.send_bytes(nothing)
        websocket.send_bytes(heartbeat)
        assert websocket.receive_text() == "read"
    assert read == [heartbeat]


# the password


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def private(clock: Clock | None = None, sites: tuple[str, ...] = (), **options: str) -> TestClient:
    balances = rate_limits.Balances({"guesses": rate_limits.Rate(2, 0.1)}, clock or Clock())
    return visited(Middleware(password.Password, password=PASSWORD, sites=sites, balances=balances), **options)


def test_without_the_password_only_probes_answer():
    client = private()
    for path in ("/", "/headlight/row", closed.METRICS):
        assert (client.get(path).status_code, client.get(path).text) == (403, words.NEEDS_PASSWORD)
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    assert (
        not opens(client)
        and not opens(client, cookie=f"{password.COOKIE}=x")
        and not opens(client, cookie=password.COOKIE)
    )
    asked = client.get("/?q=<b>", headers=HTML)
    assert asked.status_code == 403 and words.PASSWORD in asked.text and "<b>" not in asked.text
    assert '<form method="post">' in asked.text and "'unsafe-inline'" in asked.headers["content-security-policy"]


def test_whoever_types_it_once_comes_in_with_the_link_s_sentence():
    client = private()
    sent = client.post("/?q=The+cat", data={"password": PASSWORD}, follow_redirects=False)
    assert (sent.status_code, sent.headers["location"]) == (303, "?q=The+cat")
    given = sent.headers["set-cookie"]
    assert re.fullmatch(r"headlight_password=[\w-]{43}; Path=/; HttpOnly; SameSite=Lax", given)
    assert PASSWORD not in given
    client.cookies.clear()
    cookies = f'other={{"a": "b"}}; {given.partition(";")[0]}'  # beside one that no parser of cookies reads
    assert client.get("/?q=The+cat", headers={"cookie": cookies}).text == "the page q=The+cat"
    assert opens(client, cookie=cookies)
    assert client.get("/", headers={"cookie": cookies[:-1]}).status_code == 403


def test_its_cookie_is_of_the_password_and_fits_a_frame():
    def cookie(client: TestClient) -> str:
        return client.post("/", data={"password": PASSWORD}, follow_redirects=False).headers["set-cookie"]

    plain, secure = cookie(private()), cookie(private(base_url="https://testserver"))
    assert secure.endswith("; HttpOnly; Secure; SameSite=Lax") and secure.partition(";")[0] == plain.partition(";")[0]
    framed = cookie(private(sites=("https://course.example.edu",), base_url="https://testserver"))
    assert framed.endswith("; HttpOnly; Secure; SameSite=None; Partitioned")
    changed = visited(Middleware(password.Password, password="another one"))
    assert not opens(changed, cookie=plain.partition(";")[0])


def test_wrong_passwords_of_an_address_are_limited():
    clock = Clock()
    client = private(clock)
    for _ in range(3):
        wrong = client.post("/", data={"password": "correct mouse"}, headers=HTML)
        assert wrong.status_code == 403 and words.WRONG_PASSWORD in wrong.text
    limited = client.post("/", data={"password": PASSWORD})
    assert limited.status_code == 429 and words.WAIT_TO_GUESS.format(seconds=10) in limited.text
    assert client.get("/", auth=("prometheus", PASSWORD)).headers["retry-after"] == "10"
    clock.now = 10.0
    assert client.post("/?q=1", data={"password": PASSWORD}).text == "the page q=1"


def test_a_program_sends_it_by_basic_authentication():
    client = private()
    assert client.get(closed.METRICS, auth=("prometheus", PASSWORD)).status_code == 200
    assert client.get("/", auth=("prometheus", "wrong one")).text == words.WRONG_PASSWORD
    assert client.get("/", headers={b"authorization": b"Basic \xff"}).status_code == 403
    assert client.get("/", headers={"authorization": "Bearer x"}).status_code == 403


def test_what_is_no_form_of_the_page_is_no_guess():
    client = private()
    for body in (b"", b"password", b"\xff=", b"password=" + b"x" * password.LONGEST, b"&" * 50):
        assert client.post("/", content=body).text == words.NEEDS_PASSWORD, body[:20]


def test_everybody_enters_without_a_password_and_a_short_one_is_refused_at_the_start():
    assert visited(Middleware(password.Password, password=password.required(""))).get("/").text == "the page "
    assert password.required("eight888") == "eight888"
    with pytest.raises(ValueError, match="HEADLIGHT_PASSWORD must have at least 8 characters"):
        password.required("seven77")
