"""Downloads, from a small Hub of our own on this machine: what is fetched, what is reported, and what is said when it fails."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub import constants

from core import checkpoints
from core.checkpoints import find, load
from core.checkpoints import hub as fetching
from core.errors import CheckpointError
from tests.core.published import reference
from tests.core.test_adapter import LLAMA, adapter, same

COMMIT = "0123456789abcdef0123456789abcdef01234567"
EXTRAS = ("README.md", "pytorch_model.bin", "onnx/model.onnx", "model.gguf")


class Hub:
    """Repositories by name, each a dict of files; `refusals` are repositories that answer with a status and an error code."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.refusals: dict[str, tuple[int, str]] = {}
        self.asked: list[str] = []  # the files whose content was sent
        hub = self

        class Answers(BaseHTTPRequestHandler):
            def log_message(self, format: str, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                hub.answer(self, send=False)

            def do_GET(self) -> None:
                hub.answer(self, send=True)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def answer(self, request: BaseHTTPRequestHandler, send: bool) -> None:
        path = request.path.split("?")[0]
        parts = path.removeprefix("/api/models").strip("/").split("/")
        name, rest = "/".join(parts[:2]), parts[2:]
        if name in self.refusals:
            return self.reply(request, *self.refusals[name])
        files = self.repositories.get(name)
        if files is None:
            return self.reply(request, 404, "RepoNotFound")
        revision = rest[1] if len(rest) > 1 else "main"
        if revision not in ("main", COMMIT):
            return self.reply(request, 404, "RevisionNotFound")
        if path.startswith("/api/"):
            siblings = [{"rfilename": file, "size": len(content)} for file, content in files.items()]
            listing = {"id": name, "sha": COMMIT, "siblings": siblings, "tags": [], "private": False, "downloads": 0}
            return self.reply(request, 200, "", json.dumps(listing).encode())
        file = "/".join(rest[2:])
        if file not in files:
            return self.reply(request, 404, "EntryNotFound")
        if send:
            self.asked.append(file)
        self.reply(request, 200, "", files[file], send)

    def reply(
        self, request: BaseHTTPRequestHandler, status: int, code: str, content: bytes = b"", send: bool = True
    ) -> None:
        request.send_response(status)
        if code:
            request.send_header("X-Error-Code", code)
        request.send_header("X-Repo-Commit", COMMIT)
        request.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if send and request.command == "GET":
            request.wfile.write(content)

    def publish(self, name: str, folder: Path, **more: bytes) -> None:
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.repositories[name] = files | dict.fromkeys(EXTRAS, b"x" * 999) | more


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    hub = Hub()
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    yield hub
    hub.close()
    huggingface_hub.close_session()


def agrees(name: str, like: str) -> bool:
    run = reference(like).runs[0]
    with torch.inference_mode():
        return bool((load(name).model(run.source, run.target)[0] - run.out).abs().max() <= 1e-5)


def test_only_what_is_needed_is_fetched(hub: Hub) -> None:
    hub.publish("lab/tiny", reference("gpt2").folder)
    assert agrees("lab/tiny", "gpt2")
    assert set(hub.asked) <= {"config.json", "generation_config.json", "model.safetensors"}
    assert "model.safetensors" in hub.asked


def test_a_second_load_fetches_nothing(hub: Hub) -> None:
    hub.publish("lab/tiny", reference("gpt2").folder)
    load("lab/tiny")
    hub.asked.clear()
    loaded = load("lab/tiny")
    assert hub.asked == []
    spec = loaded.spec
    assert (spec.source, spec.location, spec.family, spec.revision) == ("hub", "lab/tiny", "gpt2", COMMIT)


def test_progress_counts_every_byte_once(hub: Hub) -> None:
    hub.publish("lab/tiny", reference("gpt2").folder)
    files = hub.repositories["lab/tiny"]
    reports: list[tuple[str, int, int]] = []
    load("lab/tiny", progress=lambda what, done, total: reports.append((what, done, total)))
    total = sum(len(files[name]) for name in ("config.json", "generation_config.json", "model.safetensors"))
    counts = [done for _, done, _ in reports]
    assert counts == sorted(counts) and counts[-1] == total
    assert {of for _, _, of in reports} == {total}
    assert reports[-1][0] == "model.safetensors"


def test_shards_are_fetched(hub: Hub, tmp_path: Path) -> None:
    reference("llama gqa").model.save_pretrained(tmp_path / "sharded", max_shard_size="20KB")
    hub.publish("lab/sharded", tmp_path / "sharded", **{"unrelated.safetensors": b"no"})
    assert agrees("lab/sharded", "llama gqa")
    assert "unrelated.safetensors" not in hub.asked


def test_shards_outside_the_repository_are_not_asked_for(hub: Hub, tmp_path: Path) -> None:
    reference("llama gqa").model.save_pretrained(tmp_path / "sharded", max_shard_size="20KB")
    hub.publish("lab/evil", tmp_path / "sharded")
    for name, says in (("../../etc/passwd", "same folder"), ("ghost.safetensors", "does not have")):
        hub.repositories["lab/evil"]["model.safetensors.index.json"] = json.dumps({"weight_map": {"a": name}}).encode()
        shutil.rmtree(constants.HF_HUB_CACHE, ignore_errors=True)
        with pytest.raises(CheckpointError, match=says):
            load("lab/evil")


def test_refused_by_name_before_the_weights_are_fetched(hub: Hub) -> None:
    hub.publish("lab/moe", reference("gpt2").folder, **{"config.json": b'{"model_type": "dbrx"}'})
    with pytest.raises(CheckpointError, match="'dbrx' is not supported"):
        load("lab/moe")
    assert set(hub.asked) == {"config.json"}


def test_repositories_of_pickles(hub: Hub) -> None:
    hub.publish("lab/old", reference("gpt2").folder)
    del hub.repositories["lab/old"]["model.safetensors"]
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin, a Python pickle"):
        load("lab/old")
    assert "pytorch_model.bin" not in hub.asked


def test_repositories_that_hold_no_model(hub: Hub) -> None:
    hub.repositories["lab/data"] = {"README.md": b"x"}
    with pytest.raises(CheckpointError, match=r"lab/data on the Hub has no config\.json"):
        load("lab/data")


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (404, "RepoNotFound", "There is no lab/x on the Hub, or it is private"),
        (401, "RepoNotFound", "There is no lab/x on the Hub, or it is private"),
        (403, "GatedRepo", "agreed to its terms"),
        (403, "", "HTTP 403"),
        (429, "", "HTTP 429"),
        (500, "", "cannot be reached"),
    ],
)
def test_refusals_of_the_hub(status: int, code: str, says: str, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)  # the client waits between its attempts
    hub.refusals["lab/x"] = (status, code)
    with pytest.raises(CheckpointError, match=says):
        load("lab/x")


def test_a_revision_that_is_not_there(hub: Hub) -> None:
    hub.publish("lab/tiny", reference("gpt2").folder)
    assert load("lab/tiny", revision=COMMIT).spec.revision == COMMIT
    with pytest.raises(CheckpointError, match="no revision 'v9'"):
        load("lab/tiny", revision="v9")


def test_offline_what_was_downloaded_before_still_loads(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.publish("lab/tiny", reference("gpt2").folder)
    load("lab/tiny")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # the discard port: nobody answers
    assert agrees("lab/tiny", "gpt2")


def test_offline_and_never_downloaded(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(CheckpointError, match="cannot be reached, and lab/tiny is not among"):
        load("lab/tiny")


def test_no_room_on_the_disk(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.publish("lab/tiny", reference("gpt2").folder)
    full = shutil.disk_usage("/")._replace(free=9999)
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: full)
    with pytest.raises(CheckpointError, match=r"0\.0 GB left"):
        load("lab/tiny")
    assert "model.safetensors" not in hub.asked


def test_minilm_without_its_package_comes_from_the_hub_and_must_be_the_published_file(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints.importlib.util, "find_spec", lambda _: None)
    hub.publish(find("minilm").hub, reference("bert without head").folder)
    with pytest.raises(CheckpointError, match=r"model\.safetensors of minilm is not the published file"):
        load("minilm")


def test_minilm_without_package_and_connection_says_which_command_installs_it(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(CheckpointError, match="`make run` installs it"):
        load("minilm")


# adapters


def published_adapter(hub: Hub, place: Path, base: str = "lab/tiny", **said: Any) -> Path:
    """A LoRA of a small Llama in a repository of its own, and the same folder beside its base."""
    folder = place / "model"
    shutil.copytree(reference("llama gqa").folder, folder)
    made = adapter(folder, LLAMA, base_model_name_or_path=base, **said)
    hub.publish("lab/tiny", folder)
    files = {path.name: path.read_bytes() for path in made.iterdir()}
    hub.repositories["me/tuned"] = files | {"README.md": b"x"}
    return made


@pytest.mark.parametrize("said", [{}, {"use_dora": True}, {"use_rslora": True}], ids=str)
def test_an_adapter_by_its_name_brings_its_base(hub: Hub, tmp_path: Path, said: dict[str, Any]) -> None:
    made = published_adapter(hub, tmp_path, **said)
    loaded = load("me/tuned")
    assert (loaded.spec.source, loaded.spec.location, loaded.spec.revision) == ("hub", "me/tuned", COMMIT)
    assert any("is merged into 3 weights of tiny" in notice for notice in loaded.spec.notices)
    made.parent.joinpath("model").rename(made.parent / "tiny")
    same(loaded, load(made))
    ids = torch.arange(3, 14)[None]
    with torch.inference_mode():
        assert (loaded.model(ids) - load("lab/tiny").model(ids)).abs().max() > 1e-3
    hub.asked.clear()
    load("me/tuned")
    assert hub.asked == []
    hub.close()  # without a connection both are those of the earlier download
    same(load("me/tuned"), loaded)


@pytest.mark.parametrize("base", ["", "/home/me/base", "../base", "no name", "a/b/c"])
def test_an_adapter_whose_base_has_no_name_there_fetches_nothing(hub: Hub, tmp_path: Path, base: str) -> None:
    published_adapter(hub, tmp_path, base)
    with pytest.raises(CheckpointError, match="adapter"):
        load("me/tuned")
    assert set(hub.asked) <= {"adapter_config.json"}


@pytest.mark.parametrize("base", ["me/tuned", "lab/other", "lab/missing"])
def test_a_base_that_is_no_model_is_named(hub: Hub, tmp_path: Path, base: str) -> None:
    published_adapter(hub, tmp_path, base)
    hub.repositories["lab/other"] = hub.repositories["me/tuned"]
    with pytest.raises(CheckpointError, match=f"me/tuned is an adapter of {base}, which does not open"):
        load("me/tuned")
    assert "adapter_model.safetensors" not in hub.asked


def test_adapters_of_other_kinds_are_refused_before_their_base_is_fetched(hub: Hub, tmp_path: Path) -> None:
    published_adapter(hub, tmp_path, peft_type="IA3")
    with pytest.raises(CheckpointError):
        load("me/tuned")
    assert set(hub.asked) <= {"adapter_config.json"}
