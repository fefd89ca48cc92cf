"""The token that machines with models require of front ends."""

from __future__ import annotations

import asyncio

import pytest
import torch
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from cluster import answering, remote, token
from core.errors import ServerBusy
from core.run.request import Request
from core.service import LocalService
from core.service.engine import Engine
from tests.cluster.serving import served

TEXT = Request("induction", ("nhpcgojbalim|cgoj",))
SECRET = "0123456789abcdef"


def test_a_front_end_without_the_token_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    asked: list[str] = []
    service = LocalService(Engine(device=torch.device("cpu"), dtype=torch.float32))

    async def answers(request: HttpRequest) -> Response:
        asked.append(request.url.path)
        return await answering.answer(service, request, SECRET)

    async def refused() -> None:
        stranger = remote.service(address)
        with pytest.raises(ServerBusy, match="do not answer just now"):
            await stranger.submit(TEXT)
        with pytest.raises(ServerBusy, match="do not answer just now"):
            await anext(stranger.follow(TEXT.key))
        assert (await stranger.status())["models"] == []
        await stranger.close()  # type: ignore[attr-defined]

    async def submitted() -> str:
        friend = remote.service(address)
        found = await friend.submit(TEXT)
        await friend.close()  # type: ignore[attr-defined]
        return found

    with served(answers) as address:
        for wrong in ("", "0123456789abcdeg", "0123456789abcdef0"):
            monkeypatch.setenv(token.SETTING, wrong)
            asked.clear()
            asyncio.run(refused())
            assert asked == ["/submit", "/follow", "/status"]  # what is refused is not asked again
        monkeypatch.setenv(token.SETTING, SECRET)
        assert asyncio.run(submitted()) == TEXT.key
        with remote.httpx2.Client() as client:
            assert client.get(f"{address}/healthz").text == "ok"
            assert client.post(f"{address}/facts").status_code == token.DENIED
    assert "another HEADLIGHT_SERVICE_TOKEN" in caplog.text and SECRET not in caplog.text


@pytest.mark.parametrize("wrong", ["short", "with a space in it", "ümlaut-0123456789", "x" * 2000])
def test_a_token_that_no_header_can_hold_is_refused_at_the_start(wrong: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(token.SETTING, wrong)
    with pytest.raises(ValueError, match="HEADLIGHT_SERVICE_TOKEN must be") as said:
        remote.service("http://10.0.0.5:8000")
    assert wrong not in str(said.value)
