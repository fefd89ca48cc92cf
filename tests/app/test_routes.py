"""Routes answer with core's numbers, refuse with a sentence, and never leave Streamlit's own folder."""

from __future__ import annotations

import asyncio
import gzip
import re
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.attention import picture, words
from app.kit import headline
from app.rooms.explore import component as explore
from app.rooms.shapes import component as shapes
from app.session import models, service
from app.shell import routes
from app.transport import build, compress, messages, modules
from app.transport import routes as transport_routes
from core.errors import HeadlightError, ServerBusy
from core.read.measures import Sink
from core.run.attention import AttentionRecord
from core.run.request import Request
from core.service import AnswerCache, HeadAdditions, LocalService
from core.service.engine import Engine
from core.trace import Trace
from core.version import __version__
from tests.app.served import ask as answered
from tests.app.served import local, serve

ENTRIES = (explore.ENTRY, shapes.ENTRY, headline.ENTRY)
REQUEST = Request(service.DEFAULT_MODEL, ("The cat sat on the mat.",))


def served() -> list[str]:
    """The modules of all components, by their names."""
    return list(dict.fromkeys(name for entry in ENTRIES for name in modules.closure(entry)))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return local().engine.run(REQUEST)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    def rest(_):
        return PlainTextResponse("from Streamlit")

    application = Starlette(
        routes=[*routes.ROUTES, Route("/{rest:path}", rest)], middleware=[Middleware(compress.Gzipped)]
    )
    with TestClient(application) as client:
        yield client


def ask(client: TestClient, path: str, **params):
    return client.get(f"/headlight/{path}", params={"run": REQUEST.key} | params)


def test_what_is_busy_may_be_asked_again_and_what_is_wrong_may_not() -> None:
    """The browser keeps what 400 says and asks again after 503."""
    assert [transport_routes.refusal(error).status_code for error in (ServerBusy("later"), HeadlightError("no"))] == [
        503,
        400,
    ]


def test_a_tile_is_what_core_says(client: TestClient, trace: Trace):
    answer = ask(client, "tile", record=4, head=7, q0=1, q1=6, k0=0, k1=9)
    header, body = messages.unpack(answer.content)
    sent = np.frombuffer(body, "<u2", 45).reshape(5, 9) / 65535
    assert header["exact"] and header["rows"] == 5
    assert np.abs(sent - trace.attention[4].pattern(7, slice(1, 6), slice(0, 9))[0].numpy()).max() < 1e-5


def test_a_row_is_what_core_says(client: TestClient, trace: Trace):
    header, body = messages.unpack(ask(client, "row", record=2, head=3, query=4).content)
    row = trace.attention[2].row(3, 4)
    assert np.abs(np.frombuffer(body, "<u2", len(row)) / 65535 - row.numpy()).max() < 1e-5
    assert header["entropy"] == pytest.approx(float(-(row * row.log2()).sum()), abs=1e-4)


def receipt(record: AttentionRecord) -> dict[str, Any]:
    found = record.receipt()
    return {"sums": found.rows_sum_error, "masked": found.masked_max, "fused": found.fused_error, "rows": found.rows}


def test_heads_and_norms_are_what_pack_says(client: TestClient, trace: Trace):
    shared, facts = serve(trace)
    assert ask(client, "heads").content == picture.heads_message(facts, answered(shared.heads(facts.key)))
    norms = answered(shared.norms(facts.key, "encoder"))
    assert ask(client, "norms", site="encoder").content == picture.norms_message(norms)
    assert "site must be one of encoder" in ask(client, "norms", site="cross").text


def test_the_likeness_of_heads_is_what_core_says_and_small_for_the_largest_model(client: TestClient, trace: Trace):
    shared, facts = serve(trace)
    answer = ask(client, "correlations", site="encoder", layer=2, head=3)
    header, body = messages.unpack(answer.content)
    sent = np.frombuffer(body, "<f4").reshape(header["layers"], header["heads"])
    assert np.array_equal(sent, answered(shared.correlations(facts.key, "encoder", 2, 3)), equal_nan=True)
    assert "must be from 0 to 5" in ask(client, "correlations", site="encoder", layer=99, head=3).text
    assert len(picture.heads_numbers_message(np.zeros((80, 64), np.float32))) <= 25_000


def test_the_shares_of_the_sink_are_what_core_says_and_small_for_the_largest_model(client: TestClient, trace: Trace):
    shared, facts = serve(trace)
    header, body = messages.unpack(ask(client, "sink", site="encoder").content)
    found = answered(shared.sink(facts.key, "encoder"))
    assert found is not None
    sent = np.frombuffer(body, "<f4").reshape(header["layers"], header["heads"])
    assert (header["key"], header["is"]) == (found.key, found.is_sink)
    assert sent == pytest.approx(found.shares, abs=1e-4) and header["between"] == list(found.between)
    assert len(picture.sink_packed(Sink(0, np.ones((80, 64), np.float32), 9))) <= 25_000
    nowhere, none = messages.unpack(picture.sink_packed(None))
    assert (nowhere["key"], nowhere["layers"], len(none)) == (None, 0, 0)


def test_what_heads_add_to_one_candidate_is_a_part_of_what_they_add_to_all():
    values = np.arange(30, dtype=np.float32).reshape(5, 2, 3)
    found = HeadAdditions(tuple((name, 0.1) for name in "abcde"), values)
    for asked, of in ((0, 0), (3, 3), (4, 4)):
        header, body = messages.unpack(picture.additions_message(found, asked))
        assert np.array_equal(np.frombuffer(body, "<f4").reshape(2, 3), values[of]) and len(header["words"]) == 5
    fewer = replace(found, words=found.words[:2], values=values[:2])
    assert np.array_equal(
        np.frombuffer(messages.unpack(picture.additions_message(fewer, 4))[1], "<f4"), values[1].ravel()
    )
    assert messages.unpack(picture.additions_message(found))[1] == values.tobytes()
    large = HeadAdditions(found.words, np.ones((5, 80, 64), np.float32))
    assert len(picture.additions_message(large, 0)) <= 25_000


def test_who_asks_the_same_gets_the_same_which_was_worked_out_and_packed_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transport_routes, "ANSWERS", AnswerCache(1 << 20, len))
    made, body = [], bytes(range(256)) * 99

    @transport_routes.cached_route
    async def slow(request: HttpRequest) -> bytes:
        made.append(request.url.query)
        if request.query_params["of"] == "none":
            raise transport_routes.BadParameter("There is none.")
        await asyncio.sleep(0.05)
        return body + request.url.query.encode()

    crowd = ["a"] * 20 + ["b"] * 3
    with TestClient(Starlette(routes=[Route("/slow", slow)])) as client, ThreadPoolExecutor(len(crowd)) as visitors:
        answers = [*visitors.map(lambda of: client.get("/slow", params={"of": of}), crowd)]
        plain = client.get("/slow", params={"of": "a"}, headers={"Accept-Encoding": "identity"})
        refused = [client.get("/slow", params={"of": "none"}) for _ in range(2)]
    assert {answer.content for answer in answers[:20]} == {plain.content} == {body + b"of=a"}
    assert {answer.content for answer in answers[20:]} == {body + b"of=b"}
    assert answers[0].headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert all((answer.status_code, answer.text) == (400, "There is none.") for answer in refused)
    assert sorted(made) == ["of=a", "of=b", "of=none", "of=none"]


@pytest.mark.parametrize("path", ["heads", "norms"])
def test_what_a_large_run_has_of_every_head_is_never_worked_out(
    client: TestClient, trace: Trace, path: str, monkeypatch: pytest.MonkeyPatch
):
    weights = serve(trace)[1].weights
    monkeypatch.setattr(LocalService, path, None)  # who asked it would get no answer at all
    monkeypatch.setattr(transport_routes, "ANSWERS", AnswerCache(1 << 20, len))
    monkeypatch.setattr(picture, "WHOLE", weights - 1)
    answer = ask(client, path, site="encoder")
    assert (answer.status_code, answer.text) == (400, words.ROUTE_LARGE)


def test_everything_lies_below_the_path_that_the_page_is_served_at(trace: Trace):
    application = Starlette(routes=transport_routes.placed(routes.PAGE_ROUTES, "/tools/headlight"))
    with TestClient(application) as client:
        answer = client.get("/tools/headlight/headlight/proof", params={"run": REQUEST.key, "record": 1})
        assert answer.json() == receipt(trace.attention[1])
        answer = client.get(f"/tools/headlight/headlight/m/{modules.address(ENTRIES[0])}")
        assert answer.status_code == 200 and "export default" in answer.text
    sources = [*map(modules.loader, ENTRIES), *(modules.source(name) for name in served())]
    addresses = [line for source in sources for line in source.splitlines() if "headlight/" in line]
    asked = [line for line in addresses if "new URL(" in line]
    assert asked and all("document.baseURI" in line and '"/' not in line and "`/" not in line for line in asked)


def test_a_proof_is_the_record_s_receipt(client: TestClient, trace: Trace):
    assert ask(client, "proof", record=1).json() == receipt(trace.attention[1])


@pytest.mark.parametrize(
    ("path", "params", "said"),
    [
        ("tile", {"record": 99}, "record (99) must be from 0 to 5."),
        ("tile", {"record": 0, "head": 12}, "head (12) must be from 0 to 11."),
        ("tile", {"record": 0, "head": 0, "q0": 5, "q1": 5}, "q1 (5) must be from 6 to 9."),
        ("tile", {"record": 0, "head": 0, "q0": 0, "q1": 10}, "q1 (10) must be from 1 to 9."),
        ("tile", {"record": 0, "head": 0, "q0": 0, "q1": 1, "k0": "0x3"}, "k0 must be a whole number; it is “0x3”."),
        ("tile", {"record": "-1"}, "record must be a whole number; it is “-1”."),
        ("tile", {"record": "9" * 5000}, "must be a whole number"),
        ("tile", {}, "record is missing."),
        ("row", {"record": 0, "head": 0, "query": 9}, "query (9) must be from 0 to 8."),
        ("proof", {"record": "<b>"}, "record must be a whole number; it is “<b>”."),
    ],
)
def test_a_wrong_parameter_gets_a_sentence(client: TestClient, trace: Trace, path, params, said):
    answer = ask(client, path, **params)
    assert answer.status_code == 400
    assert said in answer.text
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("path", ["tile", "row", "column", "heads", "norms", "proof"])
@pytest.mark.parametrize("key", ["", "0" * 64, "../../etc/passwd"])
def test_an_unknown_run_is_not_found(client: TestClient, path: str, key: str):
    answer = client.get(f"/headlight/{path}", params={"run": key, "record": 0})
    assert answer.status_code == 404
    assert "Reload the page" in answer.text


def test_a_proof_of_a_record_that_does_not_exist_is_refused(client: TestClient, trace: Trace):
    assert ask(client, "proof", record=6).status_code == 404


def test_the_modules_are_those_that_the_components_ask_for(client: TestClient):
    for entry in ENTRIES:
        loader = modules.loader(entry)
        for name in modules.closure(entry):
            assert f'"headlight/m/{modules.address(name)}"' in loader
            answer = client.get(f"/headlight/m/{modules.address(name)}")
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/javascript")
            assert "immutable" in answer.headers["cache-control"]
            imported = re.findall(r'^import [^;]* from "\.\./([^"]+)";', answer.text, re.MULTILINE)
            assert imported == [modules.address(other) for other in modules.imports(name)]


@pytest.mark.parametrize("wrong", ["0123456789abcdef/dom.js", "shapes/dom.js", "{digest}/map.js", "{digest}/dom.py"])
def test_an_address_of_no_module_of_today_is_not_found_and_not_remembered(client: TestClient, wrong: str):
    digest = modules.address("kit/browser/dom.js").split("/")[0]
    answer = client.get(f"/headlight/m/{wrong.format(digest=digest)}")
    assert answer.status_code == 404
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.usefixtures("own_modules")
def test_a_changed_module_changes_the_addresses_of_those_that_need_it_and_of_no_other(
    tmp_path: Path, client: TestClient
):
    def write(**sources: str) -> None:
        for name, source in sources.items():
            (tmp_path / f"{name}.js").write_text(source, encoding="utf-8")
        modules.add("rooms/test/browser", tmp_path)

    names = [f"rooms/test/browser/{name}.js" for name in ("above", "below", "beside")]
    write(
        above='import { x } from "./below.js";\nexport const y = x;\n',
        below="export const x = 1;\n",
        beside="export {};\n",
    )
    before = [modules.address(name) for name in names]
    write(below="export const x = 2;\n")
    above, below, beside = (modules.address(name) for name in names)
    assert above != before[0] and below != before[1] and beside == before[2]
    assert f'"../{below}"' in client.get(f"/headlight/m/{above}").text
    stale = client.get(f"/headlight/m/{before[1]}")
    assert (stale.status_code, stale.headers["cache-control"]) == (404, "no-store")


def test_modules_of_one_name_do_not_stand_in_for_each_other(tmp_path: Path, client: TestClient):
    tables = [f"{folder}/browser/table.js" for folder in ("attention", "rooms/shapes")]
    first, second = (client.get(f"/headlight/m/{modules.address(name)}").text for name in tables)
    assert first != second
    (tmp_path / "dom.js").write_text("export {};", encoding="utf-8")
    with pytest.raises(ValueError, match="two folders"):
        modules.add("kit/browser", tmp_path)


def test_modules_are_sent_compressed_to_whoever_reads_that(client: TestClient):
    address = f"/headlight/m/{modules.address('kit/browser/dom.js')}"
    packed = client.get(address, headers={"accept-encoding": "gzip"})
    plain = client.get(address, headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert packed.text == plain.text and packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


def test_modules_never_write_markup():
    for name in served():
        if not name.endswith(("constants.js", "words.js")):
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", modules.source(name)), name


def test_health_and_counts_say_nothing_of_anybody_s_text(client: TestClient, trace: Trace):
    health = client.get("/healthz").json()
    assert (health.pop("status"), health) == ("ok", build.build()) and health["version"] == __version__
    counts = client.get("/metrics")
    (kept,) = re.findall(r"^headlight_traces (\d+)\.0$", counts.text, re.MULTILINE)
    assert int(kept) >= 1 and counts.headers["content-type"].startswith("text/plain")
    assert client.get("/readyz").json()["status"] == "ready"
    assert "cat" not in counts.text and REQUEST.key not in counts.text


def test_streamlit_s_scripts_are_compressed_and_the_same(client: TestClient):
    path = next(compress.STATIC.glob("js/index.*.js"))
    answer = client.get(f"/static/js/{path.name}", headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.content == path.read_bytes()
    assert len(gzip.compress(path.read_bytes(), 6)) == int(answer.headers["content-length"])


@pytest.mark.parametrize(
    "path",
    [
        "/static/../index.html",
        "/static/..%2f..%2f..%2fcore%2fconfig.py",
        "/static/js/%00.js",
        "/static//etc/hosts.js",
        "/static/js",
        "/static/js/none.js",
        "/static/media/",
    ],
)
def test_anything_else_is_left_to_streamlit(client: TestClient, path: str):
    answer = client.get(path, headers={"accept-encoding": "gzip"})
    assert answer.text == "from Streamlit"


def test_a_browser_that_takes_no_gzip_gets_none(client: TestClient):
    path = next(compress.STATIC.glob("js/index.*.js"))
    answer = client.get(f"/static/js/{path.name}", headers={"accept-encoding": "identity"})
    assert answer.text == "from Streamlit"


def test_routes_answer_side_by_side(client: TestClient, trace: Trace):
    sizes: list[int] = []

    def get(head: int) -> None:
        sizes.append(len(ask(client, "tile", record=0, head=head, q0=0, q1=9, k0=0, k1=9).content))

    threads = [threading.Thread(target=get, args=(head,)) for head in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sizes) == 12 and len(set(sizes)) == 1


LONG = Request(service.DEFAULT_MODEL, ("The cat sat on the mat, and the dog lay beside it.",))


@pytest.fixture
def long_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Trace, list[str]]]:
    """A run whose values come from another pass, and the points that were asked of one."""
    monkeypatch.setattr(sys.modules["core.run.trace"], "HELD_BYTES", 0)  # core.trace itself is the function
    own, asked = LocalService(Engine(load_model=models.load)), []
    monkeypatch.setattr(service, "service", lambda: own)
    run = own.engine.run(LONG)
    values: Any = run.records[0].values
    again = values.func

    def counted(point: str) -> torch.Tensor:
        asked.append(point)
        return again(point, *values.args[1:])

    for record in run.records:
        object.__setattr__(record, "values", partial(counted, f"{record.name}.hook_v"))
    yield run, asked


def test_what_values_write_is_worked_out_once_for_all_rows_of_a_long_run(client: TestClient, long_run):
    run, asked = long_run
    of = {"run": LONG.key, "record": 2, "head": 5, "kind": "value"}
    norms = run.attention[2].pattern(5)[0] * run.attention[2].value_norms()[5]
    asked.clear()
    for query in (3, 4, 5):
        _, body = messages.unpack(ask(client, "row", **of, query=query).content)
        assert np.frombuffer(body, "<f4", len(norms)) == pytest.approx(norms[query].numpy(), rel=1e-5)
    assert ask(client, "tile", **of, q0=0, q1=9, k0=0, k1=9).status_code == 200
    assert asked == ["encoder.blocks.2.attn.hook_v"]


def test_a_proof_that_runs_the_pass_once_more_keeps_no_tile_waiting(client: TestClient, long_run):
    run, _ = long_run
    begun, open_, proofs = threading.Event(), threading.Event(), []
    values = run.records[3].values

    def slow() -> torch.Tensor:
        begun.set()
        assert open_.wait(20)
        return values()

    object.__setattr__(run.records[3], "values", slow)
    thread = threading.Thread(target=lambda: proofs.append(ask(client, "proof", run=LONG.key, record=3)))
    thread.start()
    assert begun.wait(20)
    assert ask(client, "row", run=LONG.key, record=2, head=5, query=3).status_code == 200
    assert ask(client, "tile", run=LONG.key, record=2, head=5, q0=0, q1=9, k0=0, k1=9).status_code == 200
    assert not proofs
    open_.set()
    thread.join(20)
    assert proofs[0].json()["fused"] < 1e-4


def test_a_storm_of_slow_tiles_stalls_no_other_route(monkeypatch: pytest.MonkeyPatch, trace: Trace):
    """More tiles than the server has threads wait; health, exports' words and module files are answered meanwhile."""
    own = LocalService(Engine(load_model=models.load))
    run = Request(service.DEFAULT_MODEL, ("The cat sat in a storm.",))
    own.engine.run(run)
    monkeypatch.setattr(service, "service", lambda: own)
    gate = threading.Event()
    held = [turns.submit(partial(gate.wait, 30)) for turns in (own._quick, own._slow) for _ in range(turns.workers)]
    storm = 100  # anyio gives a server 40 threads

    of = {"run": run.key, "record": 0, "head": 1, "q0": 0, "q1": 5, "k0": 0, "k1": 5}
    with TestClient(Starlette(routes=routes.ROUTES)) as client, ThreadPoolExecutor(storm) as visitors:
        tiles = [visitors.submit(client.get, "/headlight/tile", params=of) for _ in range(storm)]
        while own._slots.taken < storm:  # until all of them are in line
            time.sleep(0.01)
        others = [
            client.get("/healthz"),
            client.get("/metrics"),
            client.get(f"/headlight/m/{modules.address(ENTRIES[0])}"),
            client.get("/headlight/export", params={"format": "page"}),
        ]
        assert not any(tile.done() for tile in tiles)
        gate.set()
        answers = [*others, *(tile.result() for tile in tiles)]
    assert {answer.status_code for answer in answers} == {200}
    assert all(future.result() for future in held)


def test_a_route_keeps_its_methods_below_a_path() -> None:
    """Train's Pause is told by POST, and nothing that only looks is."""
    known = {route.path: route.methods for route in transport_routes.placed(routes.PAGE_ROUTES, "/tools")}
    assert known["/tools/headlight/train/pause"] == {"POST"}
    assert known["/tools/headlight/train/run"] == {"GET", "HEAD"}
