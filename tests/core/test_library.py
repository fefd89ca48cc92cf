"""A run in a notebook: short names and reprs, one text of a batch, frames, a still picture."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
import torch
from torch import nn

import core
from core.checkpoints import Loaded
from core.read.comparison import answer_change
from tests.core.conftest import make_loaded
from tests.core.test_trace import reader

Tiny = Callable[..., Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def test_reprs_are_short(tiny: Tiny) -> None:
    run = core.trace(reader(tiny()), ["the cat sat on it " * 7, "it ran"], interventions=[core.edits.NoScale()])
    assert len(repr(run)) < 400 and "2 attentions of 4 heads, 1 edit;" in repr(run) and "float32 on cpu" in repr(run)
    for thing in (run.attention, run.attention[0], run.positions[0], run.forward, run.forward.weights, run.text(1)):
        assert len(repr(thing)) < 400, repr(thing)[:500]
    assert repr(run.text(1).attention[0]).endswith("text 1 of 2>")
    loaded = run.loaded
    assert (
        repr(loaded)
        == f"<{loaded.spec.title}: 2 decoder layers of 4 heads, {loaded.spec.n_params:,} parameters; float32 on cpu>"
    )
    assert "the first of 2 texts" in repr(run) and "text 1 of 2" in repr(run.text(1))
    single = core.trace(loaded, ids=IDS)
    assert repr(core.sweep_heads(single)) == "<Sweep over 8 heads: the effect of each on the prediction after token 7>"
    assert "over 35 edges" in repr(core.sweep_edges(single))
    assert len(repr(core.trace(reader(tiny()), "the\n\ncat"))) < 400 and "\n" not in repr(run)


def test_a_batchs_map_is_never_silently_the_first_texts(tiny: Tiny) -> None:
    run = core.trace(reader(tiny()), ["the cat sat", "it ran far away"])
    record = run.attention[0]
    asks = [record.pattern, record.scores, record.raw, record.mask, record.thumbnail, record.z, record.result]
    asks += [record.output_norms, record.value_norms, record.receipt, record.blocked_rows]
    asks += [lambda: record.row(0, 1), lambda: record.why_masked(0, 1), lambda: run.tokens_of(record)]
    asks += [partial(getattr, record, name) for name in ("q", "k", "v", "rule", "text")]
    for ask in asks:
        with pytest.raises(ValueError, match=r"saw 2 texts. Say which: record.of\(0\) to record.of\(1\), or run.text"):
            ask()
    every = record.patterns(heads=[1, 2])
    assert every.shape == (2, 2, 4, 4)
    point = f"{record.name}.hook_pattern"
    assert torch.equal(run.activation(point), run.text(0).activation(point))
    for text in range(2):
        seen = run.text(text).attention[0]
        assert torch.equal(seen.pattern(), record.pattern(text=text))
        assert torch.equal(seen.scores(), record.scores(text=text)) and torch.equal(seen.raw(), record.raw(text=text))
        assert torch.equal(every[text], seen.pattern([1, 2]))
    assert record.pattern(text=0)[0, 2, 3] == 0 and not torch.equal(record.pattern(text=0), record.pattern(text=1))
    with pytest.raises(IndexError, match="text 2 of a batch of 2"):
        record.pattern(text=2)
    assert core.trace(reader(tiny()), ["the cat"]).attention[0].pattern().shape == (4, 2, 2)  # one text needs no word
    module = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with core.capture(module) as records, torch.no_grad():
        module(*[torch.randn(3, 5, 8)] * 3)
    with pytest.raises(ValueError, match="saw 3 texts"):
        records[0].pattern()
    assert records[0].patterns().shape == (3, 2, 5, 5)


def test_parts_of_a_run_are_found_by_name(tiny: Tiny) -> None:
    run = core.trace(tiny(n_encoder_layers=2, n_decoder_layers=2), ids=IDS, target_ids=IDS[:3])
    record = run["encoder.blocks.1.attn"]
    assert isinstance(record, core.AttentionRecord) and record.name == "encoder.blocks.1.attn"
    numbers = run["decoder.blocks.1.hook_resid_mid"]
    assert isinstance(numbers, torch.Tensor) and numbers.shape == (3, 20)
    with pytest.raises(KeyError, match="no attention and no hook point"):
        run["encoder.blocks.7.attn"]
    assert run.attention.at(1, "cross_attn").name == "decoder.blocks.1.cross_attn"
    assert run.attention.at(0, stack="encoder").name == run.attention[0].name == "encoder.blocks.0.attn"
    with pytest.raises(KeyError, match="no attn in decoder layer 5; there are: encoder"):
        run.attention.at(5)
    assert [r.name for r in run.attention][-1] == run.attention[-1].name and len(run.attention) == 6


def test_what_has_rows_makes_a_frame_of_them(tiny: Tiny) -> None:
    loaded = reader(tiny())
    run = core.trace(loaded, "the cat sat on it")
    frame = run.to_frame()
    assert len(frame) == len(run.steps) and list(frame.columns[:3]) == ["name", "axes", "shape"]
    assert frame["bytes"].tolist() == [step.bytes for step in run.steps]

    words = run.predictions([1, 4], k=3)
    frame = words.to_frame()
    assert list(frame.columns) == ["position", "rank", "id", "string", "prob"]
    assert frame["position"].tolist() == [1, 1, 1, 4, 4, 4] and frame["rank"].tolist() == [1, 2, 3] * 2
    for name, column in (("id", words.ids), ("string", words.strings), ("prob", words.probs)):
        assert frame[name].tolist() == [*column[0], *column[1]]

    lens = run.logit_lens(2)
    frame = pd.concat(layer.to_frame() for layer in lens)
    assert frame["point"].tolist() == [layer.point for layer in lens for _ in range(2)]
    assert frame["prob"].tolist() == [prob for layer in lens for prob in layer.predictions.probs[0]]

    found = run.logit_attribution()
    frame = found.to_frame()
    assert sum(frame["value"].tolist()) == pytest.approx(found.logit, abs=1e-4) and len(frame) == len(found.parts)
    heads = frame[frame["part"] == "head"]
    assert heads["head"].tolist() == [0, 1, 2, 3] * 2

    effects = run.ablate_heads()
    frame = effects.to_frame()
    assert (
        frame["kl"].tolist() == [effect.kl for effect in effects.heads] and frame["layer"].tolist() == [0] * 4 + [1] * 4
    )

    changed = core.trace(loaded, "the cat sat on it", interventions=[core.edits.Ablate("decoder", 0, 1)])
    differences = core.compare(run, changed)
    assert differences.to_frame()["moved"].tolist() == [head.moved for head in differences.heads]
    assert differences.to_frame("stream")["point"].tolist() == [point.point for point in differences.stream]
    answer = answer_change(run, changed)
    assert answer.to_frame()["after"].tolist() == [word.after for word in answer.words]

    plan = core.plan(loaded.config, batch=2, source_len=5)
    frame = plan.to_frame()
    assert sum((frame["times"] * frame["flops"]).tolist()) == plan.flops and frame["name"].tolist() == [
        o.name for o in plan.prefill
    ]


def test_a_sweep_makes_a_frame_of_its_edits(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=IDS)
    silenced, cut = core.sweep_heads(run), core.sweep_edges(run)
    frame = silenced.to_frame()
    assert list(frame.columns) == ["stack", "layer", "site", "head", "logit", "probability", "kl", "length"]
    assert silenced.after.logit is not None and silenced.before.logit is not None
    assert frame["logit"].tolist() == silenced.after.logit[:, 0].tolist()
    row = frame.iloc[5]
    alone = core.trace(
        run.loaded, ids=IDS, interventions=[core.edits.Ablate("decoder", int(row["layer"]), int(row["head"]))]
    )
    logits = alone.activation("head.hook_logits", [len(IDS) - 1])[0]
    assert row["logit"] == pytest.approx(logits[silenced.watched[0]].item(), abs=1e-4)
    frame = cut.to_frame()
    assert list(zip(frame["query"], frame["key"], strict=True)) == [(p.query, p.key) for p in cut.places]  # type: ignore[union-attr]
    vectors = core.sweep_heads(core.trace(tiny(n_encoder_layers=1), ids=IDS)).to_frame()
    assert list(vectors.columns) == ["stack", "layer", "site", "head", "distance", "length"] and len(vectors) == 4


def test_only_a_frame_needs_pandas(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # as where it is not installed
    run = core.trace(tiny(), ids=IDS)
    assert run.predictions().positions == (7,)
    with pytest.raises(ImportError, match=r"headlight-attention\[pandas\]"):
        run.to_frame()


@pytest.mark.parametrize("n", [1, 8, 300])
def test_a_still_picture_is_small_well_formed_and_true(n: int) -> None:
    loaded = make_loaded(position="rotary", n_ctx=400)
    run = core.trace(loaded, ids=[1 + i % 60 for i in range(n)])
    page = run._repr_html_()
    assert len(page.encode()) < 100_000
    tree = ElementTree.fromstring(page)  # nothing is left open, no entity is unknown
    shown = min(n, 48)
    space = "{http://www.w3.org/2000/svg}"
    assert len(tree.findall(f".//{space}text")) == 2 * shown
    named = re.search(r"decoder\.blocks\.(\d+)\.attn, head (\d+)", page)
    assert named
    pattern = run.attention[int(named[1])].pattern(int(named[2]))[0]
    drawn = sum(path.attrib["d"].count("M") for path in tree.findall(f".//{space}path"))
    assert drawn == int((pattern[:shown, :shown] * 16 >= 0.5).sum())
    assert ("the first 48" in page) == (n > 48)
    assert f"{pattern[:shown, :shown].max():.0%}" in page


def test_a_still_picture_of_a_word_without_end_is_small(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    run = core.trace(reader(tiny()), "the cat sat")
    monkeypatch.setattr(type(run.source), "labels", ("x" * 60_000,) * 3)
    page = run._repr_html_()
    assert len(page.encode()) < 100_000 and "looks at “xxxx" in page


def test_a_still_picture_holds_text_as_text(tiny: Tiny, monkeypatch: Any) -> None:
    evil = '<script>alert("1")</script>&'
    loaded = reader(tiny())
    run = core.trace(loaded, "the cat sat")
    monkeypatch.setattr(type(run.source), "labels", (evil, evil, "]]>"))
    page = core.Trace._repr_html_(run)
    ElementTree.fromstring(page)
    assert "<script" not in page and not re.search(r"\son\w+=|javascript:|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "&lt;script&gt;" in page


def test_what_was_probably_meant_is_said(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=IDS)
    with pytest.raises(KeyError, match=r"Is decoder.blocks.1.attn meant\?"):
        run["decoder.block.1.attn"]
    with pytest.raises(KeyError, match=r"run\.attention and headlight"):
        run[3]  # type: ignore[index]
    with pytest.raises(TypeError, match=r"headlight.load\(name\) gives it, and not 'minilm'"):
        core.trace("minilm", "the cat")  # type: ignore[arg-type]
    with pytest.raises(core.errors.TextError, match=r"a text, or a list of texts, not 3"):
        core.trace(reader(tiny()), 3)  # type: ignore[arg-type]
    with pytest.raises(core.errors.InterventionError, match=r"\[NoScale\(\)\]"):
        core.trace(tiny(), ids=IDS, interventions=core.edits.NoScale())  # type: ignore[arg-type]
