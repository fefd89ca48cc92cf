"""The page of a run that was made of weights alone shows these and claims nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page
from torch import Tensor

import core
from app.notebook.page import page_of

WORDS = ["<s>", "▁The", "▁animal", "▁was", "▁too", "▁tired"]
N = len(WORDS)


def softmax(*shape: int, causal: bool = False) -> Tensor:
    scores = torch.randn(*shape, generator=torch.Generator().manual_seed(3))
    return (scores.masked_fill(torch.ones(N, N).triu(1).bool(), -torch.inf) if causal else scores).softmax(-1)


def opened(browser: Browser, tmp_path: Path, run: core.Trace, query: int) -> Page:
    path = tmp_path / "run.html"
    path.write_text(page_of(run, layer=1, head=2, query=query), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(path.as_uri())
    page.wait_for_selector(".hl[data-painted]")
    return page


def test_an_encoder_of_weights(browser: Browser, tmp_path: Path) -> None:
    weights = [softmax(1, 4, N, N), softmax(1, 4, N, N).flip(-1)]
    page = opened(browser, tmp_path, core.from_attentions(weights, WORDS), 2)
    text = page.locator(".hl.explore").inner_text()
    assert "Nothing here is known to be masked." in text and "sees both sides" not in text
    assert "6 tokens · weights alone" in text and " ms" not in text
    assert "rows sum to 1" in text and "fused kernel" not in text and "asks no server" not in text
    key = int(weights[1][0, 2, 2].argmax())
    assert f"{float(weights[1][0, 2, 2, key]):.1%}".replace("%", " %") in text
    page.get_by_role("button", name="Options").first.click()
    page.get_by_text("rollout").first.wait_for()
    assert page.get_by_text("value-weighted").count() == 0, "which needs the values"
    assert "hl.from_attentions(attentions, tokens)" in (page.locator("#snippet").text_content() or "")
    page.close()


def test_a_decoder_of_weights_has_the_mask_that_is_certain(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, core.from_attentions([softmax(1, 4, N, N, causal=True)] * 2, WORDS), 2)
    assert "3 of 6 keys are masked: in the future." in page.locator(".hl.explore").inner_text()
    page.close()


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (torch.rand(1, 3, N, N), "no weights as a softmax leaves them"),
        ([softmax(1, 4, N, N), softmax(1, 3, N, N)], "different numbers of heads"),
    ],
)
def test_what_is_not_drawn_is_said(weights: Tensor | list[Tensor], sentence: str) -> None:
    run = core.from_attentions(weights, WORDS)
    with pytest.raises(core.HeadlightError, match=sentence):
        page_of(run)
    assert "<svg" in run._repr_html_()


def test_layers_that_are_missing_are_no_page() -> None:
    run = core.from_cache({"blocks.5.attn.hook_pattern": softmax(1, 2, N, N)}, WORDS)
    with pytest.raises(core.HeadlightError, match="were not brought"):
        page_of(run)


def test_a_cache_with_values_has_a_page() -> None:
    values = {f"blocks.0.attn.hook_{name}": torch.randn(1, N, 2, 4) for name in "qkvz"}
    run = core.from_cache(values | {"blocks.0.attn.hook_pattern": softmax(1, 2, N, N)}, WORDS)
    assert len(page_of(run)) > 100_000 and run.attention[0].v.shape == (2, N, 4)
