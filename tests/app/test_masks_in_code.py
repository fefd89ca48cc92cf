"""The mask of a head as code: run, and compared with the mask that the model had, in each of the four forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

import core
from app.rooms.masks import in_code
from core.edits import EditMask, SetMask
from tests.app.test_masks import answer, client, king  # noqa: F401 (fixtures)

RANDOM = np.random.default_rng(3)
SHAPES = [(1, 1), (2, 2), (5, 5), (7, 4), (12, 12)]


def run(snippet: in_code.Snippet) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(snippet.code, names)
    return names


def masks() -> list[np.ndarray]:
    """Rules, rules with cells painted, and masks of no rule at all; no query of them sees nothing."""
    found = []
    for n_query, n_key in SHAPES:
        found += [rule.visible.copy() for rule in in_code.rules(n_query, n_key, (1, 3))]
        painted = found[-1] ^ (RANDOM.random((n_query, n_key)) < 0.2)
        found += [painted, RANDOM.random((n_query, n_key)) < 0.5]
    for mask in found:
        mask[~mask.any(1), 0] = True
    return found


@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask", "attention_mask", "mask_mod"])
def test_code_gives_the_mask_that_it_stands_for(name: str) -> None:
    for mask in masks():
        (one,) = [one for one in in_code.snippets(mask, (1, 3)) if one.name == name]
        names = run(one)
        assert np.array_equal(names["visible"].numpy(), mask), one.code
        n_query, n_key = mask.shape
        if name == "attn_mask":
            q, k, v = (torch.randn(1, 1, n, 4) for n in (n_query, n_key, n_key))
            scores = (q @ k.transpose(-1, -2) / 2).masked_fill(~torch.tensor(mask), -torch.inf)
            torch.testing.assert_close(names["attend"](q, k, v), scores.softmax(-1) @ v)
        elif name == "key_padding_mask" and n_query == n_key:
            attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
            _, weights = names["attend"](attention, torch.randn(1, n_key, 8))
            assert np.array_equal(weights[0].detach().numpy() > 0, mask)
        elif name == "attention_mask":
            weights = (torch.randn(1, 1, n_query, n_key) + names["four"]).softmax(-1)
            assert np.array_equal(weights[0, 0].numpy() > 0, mask)
            assert np.array_equal(names["kept"][0].numpy() == 1, mask.any(0))
        elif name == "mask_mod":
            rows, columns = torch.arange(n_query)[:, None], torch.arange(n_key)
            assert np.array_equal(names["mask_mod"](0, 0, rows, columns).expand(n_query, n_key).numpy(), mask)


def test_hugging_face_and_flex_take_it(tmp_path: Any) -> None:
    """A published model reads the four dimensions as this one reads its edit; FlexAttention gives SDPA's numbers."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        num_hidden_layers=2,
        vocab_size=50,
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(tmp_path)
    loaded = core.load(tmp_path)
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    edits = [SetMask("window", 3), EditMask(cells=[(7, range(6, 7))])]
    ours = core.trace(loaded, ids=ids, interventions=edits)
    q, k = np.arange(8)[:, None], np.arange(8)
    visible = (k <= q) & (q - k < 3)
    visible[7, 6] = False
    snippets = {one.name: run(one) for one in in_code.snippets(visible, (3,))}
    with torch.no_grad():
        logits = snippets["attention_mask"]["attend"](model, torch.tensor([ids])).logits[0, -1]
    probs = logits.softmax(-1)
    best = ours.predictions(k=3)
    assert best.probs[0] == pytest.approx([probs[i].item() for i in best.ids[0]], abs=1e-5)
    query, key, value = (torch.randn(1, 2, 8, 16) for _ in range(3))
    with pytest.warns(UserWarning, match="without torch.compile"):
        flex = snippets["mask_mod"]["attend"](query, key, value)
    torch.testing.assert_close(flex, snippets["attn_mask"]["attend"](query, key, value), atol=1e-5, rtol=1e-4)


def test_the_room_s_code_is_of_the_mask_on_the_screen(client: TestClient, king: Any) -> None:  # noqa: F811
    key = king.shown.facts.key
    place = {"layer": "3", "head": "6", "query": "11"}
    n = len(king.shown.facts.source)

    def visible(**said: str) -> np.ndarray:
        found = answer(client, "code", run=key, **place, **said)[0]["snippets"]
        made = [run(in_code.Snippet(**one))["visible"].numpy() for one in found]
        assert all(np.array_equal(one, made[0]) for one in made) and len(made) == 4
        return made[0]

    causal = np.tril(np.ones((n, n), bool))
    assert np.array_equal(visible(), causal)
    assert visible(mask="none").all()
    one = causal.copy()
    one[11, 3] = False
    assert np.array_equal(visible(forbid="11-3", when="after"), one), "after the softmax it is the same mask"
    q, k = np.arange(n)[:, None], np.arange(n)
    assert np.array_equal(visible(mask="window", window="3", first="on"), causal & ((q - k < 3) | (k == 0)))
    other = answer(client, "code", run=key, forbid="11-3", scope="one", layer="3", head="6")[0]["snippets"]
    assert "visible[11, [3]] = False" in other[0]["code"]
