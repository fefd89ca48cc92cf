"""A visitor's own text belongs to a browser by its signed name, and never to a network address."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from app.rooms.train import own_text
from app.transport import visitors, words
from core.service import TextTrainer
from core.service.text_training import NONE

TEXT = "/headlight/train/text"
STORY = "The small cat sat on the mat and looked at the moon. " * 60
SLEEPS = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Iterator[TextTrainer]:
    made = TextTrainer(SLEEPS)
    monkeypatch.setattr(own_text, "TRAINER", made)
    yield made
    made.close()


@pytest.fixture
def client(trainer: TextTrainer) -> Iterator[TestClient]:
    """A browser without a cookie; all of them have one address."""
    app = Starlette(routes=own_text.ROUTES, middleware=[Middleware(visitors.Named)])
    with TestClient(app) as client:
        yield client


def named() -> dict[str, str]:
    return {"Cookie": f"{visitors.COOKIE}={visitors.new_name()}"}


@pytest.mark.parametrize(
    "headers", [{}, {"Cookie": f"{visitors.COOKIE}={secrets.token_urlsafe(32)}"}], ids=["no cookie", "made up"]
)
def test_nothing_is_kept_for_a_browser_without_a_name_of_ours(
    client: TestClient, trainer: TextTrainer, headers: dict[str, str]
) -> None:
    refused = client.post(TEXT, content=STORY, headers=headers)
    assert (refused.status_code, refused.text) == (400, words.NO_NAME)
    assert not trainer._runs
    for path in ("", "/model"):
        assert client.get(TEXT + path, headers=headers).text == words.NO_NAME, path
    for act in ("stop", "on", "forget", "keep"):
        assert client.post(f"{TEXT}/{act}", headers=headers).text == words.NO_NAME, act


def test_a_text_is_neither_read_nor_deleted_by_another_browser_at_the_same_address(client: TestClient) -> None:
    mine, others = named(), named()
    assert client.post(TEXT, content=STORY, headers=mine).status_code == 204
    assert client.post(f"{TEXT}/stop", headers=mine).status_code == 204
    for headers in (others, {}, {"Cookie": f"{visitors.COOKIE}=made-up"}):
        news = client.get(TEXT, headers=headers)
        assert news.text in ("", words.NO_NAME)
        assert client.get(f"{TEXT}/model", headers=headers).status_code == 400
        client.post(f"{TEXT}/forget", headers=headers)
    assert client.post(f"{TEXT}/on", headers=others).text == NONE
    (line,) = client.get(TEXT, headers=mine).text.splitlines()
    assert json.loads(line)["state"] == "stopped"


def test_texts_that_scripts_send_take_no_process(client: TestClient, trainer: TextTrainer) -> None:
    for _ in range(14):
        assert client.post(TEXT, content=STORY, headers=named()).status_code == 204
    assert [run.process for run in trainer._runs.values()] == [None] * 14
