"""core.from_attentions and core.from_cache: a run made of weights that a person brings, and what it says that it does not know."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from torch import Tensor

import core
from core.model.text import tokens_from_strings
from core.read import head_roles, measures, report
from core.read.edge_attribution import edge_in_all_heads

WORDS = ["[CLS]", "the", "cat", "sat", "##s", "[SEP]"]
N = len(WORDS)
IDS = [5, 9, 7, 5, 9, 11, 6, 5]


def softmax(*shape: int, causal: bool = False, seed: int = 0) -> Tensor:
    scores = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    if causal:
        scores = scores.masked_fill(torch.ones(shape[-2:]).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)


def said(make: Callable[[], object]) -> str:
    with pytest.raises(core.HeadlightError) as caught:
        make()
    return str(caught.value)


class Arrayed:
    """An array of another library that numpy can read."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.x.numpy().astype(dtype or np.float32)


class Packed:
    """An array of another library that torch can read."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> object:
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self) -> object:
        return self.x.__dlpack_device__()


# shapes and kinds of arrays

LAYER = softmax(1, 4, N, N)
FORMS: dict[str, Callable[[Tensor], Any]] = {
    "a tuple of torch": lambda x: (x, x),
    "a list without a batch": lambda x: [x[0], x[0]],
    "one array of layers": lambda x: torch.stack([x[0], x[0]]),
    "one array of layers and texts": lambda x: torch.stack([x, x]),
    "numpy": lambda x: [x.numpy(), x.numpy()],
    "numpy, one array": lambda x: np.stack([x[0].numpy()] * 2),
    "numpy, read-only and of the other byte order": lambda x: [np.broadcast_to(x.numpy().astype(">f4"), x.shape)] * 2,
    "__array__": lambda x: [Arrayed(x), Arrayed(x)],
    "__dlpack__": lambda x: [Packed(x), Packed(x)],
    "lists": lambda x: [x[0].tolist(), x[0].tolist()],
    "lists of arrays": lambda x: [list(x[0]), list(x[0].numpy())],
    "with a gradient": lambda x: [x.clone().requires_grad_(), x],
    "a view": lambda x: [x.mT.contiguous().mT, x],
    "float64": lambda x: [x.double(), x.double()],  # of the test's own numbers
    "an output": lambda x: SimpleNamespace(attentions=(x, x), logits=None),
    "a mapping": lambda x: {"attentions": (x, x), "logits": None},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_run(form: str) -> None:
    run = core.from_attentions(FORMS[form](LAYER), WORDS)
    assert [record.name for record in run.attention] == ["encoder.blocks.0.attn", "encoder.blocks.1.attn"]
    for record in run.attention:
        torch.testing.assert_close(record.pattern(), LAYER[0], rtol=0, atol=1e-7)
    assert run.source.labels == ("[CLS]", "the", "cat", "sat", "s", "[SEP]")
    assert run.warnings == ()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_kept_as_it_came_and_read_as_float32(dtype: torch.dtype) -> None:
    run = core.from_attentions([LAYER.to(dtype)], WORDS)
    assert run.dtype == str(dtype).removeprefix("torch.")
    assert run.attention[0].pattern().dtype == torch.float32
    torch.testing.assert_close(run.attention[0].pattern(), LAYER[0].to(dtype).float())
    assert run.warnings == (), "rounding is no fault of the rows"


def test_the_run_keeps_a_copy() -> None:
    mine = LAYER.clone()
    run = core.from_attentions([mine], WORDS)
    mine.zero_()
    torch.testing.assert_close(run.attention[0].pattern(), LAYER[0])


def test_one_head_and_one_layer() -> None:
    assert core.from_attentions(LAYER[0], WORDS).attention[0].n_heads == 4
    assert core.from_attentions(LAYER[0, 0], WORDS).attention[0].n_heads == 1
    assert core.from_attentions(softmax(1, 1, 1, 1), ["a"]).attention[0].n_key == 1


def test_layers_may_have_different_numbers_of_heads() -> None:
    run = core.from_attentions([softmax(1, 4, N, N), softmax(1, 2, N, N, seed=1), softmax(1, 3, N, N, seed=2)], WORDS)
    assert [record.n_heads for record in run.attention] == [4, 2, 3]
    assert "2 to 4 heads" in repr(run) and "2 to 4 heads" in report.words(run)
    found = core.strongest_edges(run, k=2)
    assert found.keys.shape == (3, 4, 1, 2)
    assert bool(found.weights[1, 2:].isnan().all()) and bool((found.keys[1, 2:] == -1).all())
    assert bool(found.weights[1, :2].isfinite().all())
    assert edge_in_all_heads(run, 1, 2).weights[2, 3].isnan()
    assert all(finding.head < run.attention[finding.layer].n_heads for finding in core.findings(run))
    assert [len(roles) for roles in head_roles.run_roles(run)] == [4, 2, 3]
    resting = measures.sink(run.attention)
    assert resting is not None and np.isnan(resting.shares[1, 2:]).all() and np.isfinite(resting.between).all()


def test_a_batch_and_one_text_of_it() -> None:
    both = torch.cat([softmax(1, 2, N, N), softmax(1, 2, N, N, seed=9)])
    texts = [WORDS, ["[CLS]", "a", "dog", "ran", "off", "[SEP]"]]
    run = core.from_attentions([both], texts)
    assert run.texts == 2 and run.text(1).source.labels[2] == "dog"
    torch.testing.assert_close(run.text(1).attention[0].pattern(), both[1])
    for tokens in (texts, texts[1]):
        one = core.from_attentions([both], tokens, batch=1)
        assert one.texts == 1 and one.source.labels[2] == "dog"
        torch.testing.assert_close(one.attention[0].pattern(), both[1])
    assert core.from_attentions([both], batch=-1).source.labels == tuple("012345")


def test_encoder_and_decoder() -> None:
    source, target = ["Hello", "you", "</s>"], ["<pad>", "▁Ha", "llo", "▁du"]
    encoder, decoder, cross = softmax(1, 2, 3, 3), softmax(1, 2, 4, 4, causal=True), softmax(1, 2, 4, 3)
    output = SimpleNamespace(encoder_attentions=(encoder,), decoder_attentions=(decoder,), cross_attentions=(cross,))
    runs = [
        core.from_attentions(output, source, target_tokens=target),
        core.from_attentions(
            [encoder], source, target_tokens=target, decoder_attentions=[decoder], cross_attentions=[cross]
        ),
    ]
    for run in runs:
        assert run.config.kind == "encoder-decoder"
        assert [record.site for record in run.attention] == ["attn", "attn", "cross_attn"]
        torch.testing.assert_close(run.attention.at(0, "cross_attn").pattern(), cross[0])
        queries, keys = run.tokens_of(run.attention.at(0, "cross_attn"))
        assert (len(queries), len(keys)) == (4, 3) and queries.labels[1:] == ("Ha", "llo", "du")
        assert not any(queries.padding), "a start token that is called padding and is looked at is none"
        assert run.attention[1].why_masked(0, 2) == "future" and run.attention[0].why_masked(0, 2) is None
        assert core.opening_finding(run).site == "cross_attn"
    alone = core.from_attentions(None, source, target_tokens=target, cross_attentions=[cross])
    assert [record.name for record in alone.attention] == ["decoder.blocks.0.cross_attn"]
    own = core.from_attentions(None, target_tokens=target, decoder_attentions=[decoder])
    assert core.from_attentions(None, target, decoder_attentions=[decoder]).source.labels[1] == "Ha"
    assert own.config.kind == "decoder" and own.source.labels[1] == "Ha" and own.target is None
    two = core.from_attentions([encoder], source, target_tokens=target, decoder_attentions=[decoder])
    assert core.strongest_edges(two).keys.shape == (1, 2, 1, 4) and core.findings(two)[0].stack == "decoder"


# what does not go together

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "tokens and keys": (
        lambda: core.from_attentions([LAYER], WORDS[:4]),
        "tokens has 4 tokens, and encoder.blocks.0.attn has the shape [1, 4, 6, 6], which is of 6. Give the tokens that the model "
        "read, with special ones and padding.",
    ),
    "layers of other lengths": (
        lambda: core.from_attentions([LAYER, softmax(1, 4, 3, 3)], WORDS),
        "encoder.blocks.1.attn has the shape [1, 4, 3, 3] and encoder.blocks.0.attn [1, 4, 6, 6]: 3 and 6 tokens of one text. Give "
        "layers that saw the same text whole.",
    ),
    "batches": (
        lambda: core.from_attentions([LAYER, softmax(2, 4, N, N)]),
        "encoder.blocks.1.attn has the shape [2, 4, 6, 6] and encoder.blocks.0.attn [1, 4, 6, 6]: their batches differ.",
    ),
    "a rank": (
        lambda: core.from_attentions([LAYER[None, None]], WORDS),
        "The attentions[0] has the shape [1, 1, 1, 4, 6, 6], and the weights of a layer are [batch, head, query, key] or [head, "
        "query, key].",
    ),
    "a vector": (
        lambda: core.from_attentions(torch.ones(3)),
        "The attentions has the shape [3], and the weights of a layer are [batch, head, query, key] or [head, query, key].",
    ),
    "a step with a cache": (
        lambda: core.from_attentions([softmax(1, 4, 1, N)], WORDS),
        "encoder.blocks.0.attn has the shape [1, 4, 1, 6], 1 queries and 6 keys, as in a step with a cache. Give the weights of a "
        "pass over the whole text, or as cross_attentions where queries and keys are of two texts.",
    ),
    "cross-attention and its source": (
        lambda: core.from_attentions([LAYER], WORDS, cross_attentions=[softmax(1, 4, 2, 5)]),
        "decoder.blocks.0.cross_attn has the shape [1, 4, 2, 5] and encoder.blocks.0.attn [1, 4, 6, 6]: 5 and 6 tokens of one text. "
        "Give layers that saw the same text whole.",
    ),
    "texts": (
        lambda: core.from_attentions([softmax(2, 4, N, N)], WORDS),
        "tokens are of 1 text and the weights of 2: encoder.blocks.0.attn has the shape [2, 4, 6, 6]. Give a list of tokens for each "
        "text, or batch=0 for the first one.",
    ),
    "a text that is not there": (
        lambda: core.from_attentions([LAYER], WORDS, batch=3),
        "There is no text 3 in a batch of 1: the weights have the shape [1, 4, 6, 6].",
    ),
    "nothing in it": (
        lambda: core.from_attentions([softmax(1, 0, N, N)]),
        "The attentions[0] has the shape [1, 0, 6, 6], which holds no weight.",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_go_together_is_said_with_both_shapes(what: str) -> None:
    make, sentence = REFUSED[what]
    assert said(make) == sentence


HINTS: dict[str, tuple[Callable[[], Any], str]] = {
    "no list": (lambda: core.from_attentions([]), "empty list. outputs[-1]"),
    "nothing": (lambda: core.from_attentions(None), "No attentions were given"),
    "fused attention": (lambda: core.from_attentions((None, None)), "layer 0 are None: the model's fused attention"),
    "an output without weights": (lambda: core.from_attentions(SimpleNamespace(logits=1)), "holds no attentions"),
    "an output with None": (lambda: core.from_attentions(SimpleNamespace(attentions=None)), "holds no attentions"),
    "generate()": (lambda: core.from_attentions(((LAYER, LAYER), (LAYER, LAYER))), "as generate() returns them"),
    "lists that are ragged": (lambda: core.from_attentions([[[[1.0], [0.5, 0.5]]]]), "lists of different lengths"),
    "another thing": (lambda: core.from_attentions(7j), "of the type complex"),
    "complex numbers": (lambda: core.from_attentions([LAYER.to(torch.complex64)]), "complex numbers"),
    "sparse": (lambda: core.from_attentions([LAYER.to_sparse()]), "to_dense()"),
    "no numbers": (lambda: core.from_attentions([LAYER.to("meta")]), "the device meta"),
    "words": (lambda: core.from_attentions(np.array([[["a"]]])), "weights are numbers"),
    "a text": (lambda: core.from_attentions([LAYER], "the cat"), "not str 'the cat'"),
    "ids": (lambda: core.from_attentions([LAYER], [1, 2, 3, 4, 5, 6]), "convert_ids_to_tokens"),  # type: ignore[list-item]
    "a target without a decoder": (
        lambda: core.from_attentions([LAYER], WORDS, target_tokens=WORDS),
        "no weights|neither",
    ),
    "a source without an encoder": (
        lambda: core.from_attentions(None, WORDS, target_tokens=WORDS, decoder_attentions=[LAYER]),
        "tokens name the tokens of an encoder",
    ),
    "all that a model returns": (
        lambda: core.from_attentions((torch.ones(1, N, 8), (LAYER, LAYER))),
        "return_dict=False",
    ),
    "texts of other number": (
        lambda: core.from_attentions([softmax(4, 2, N, N)], [WORDS] * 3, batch=3),
        "tokens are of 3 texts and the weights of 1",
    ),
    "a cache without items": (lambda: core.from_cache(LAYER), "run_with_cache"),
    "a cache without weights": (lambda: core.from_cache({"blocks.0.attn.hook_z": LAYER}), "names_filter"),
}


@pytest.mark.parametrize("what", HINTS)
def test_what_cannot_be_read_is_said_with_what_helps(what: str) -> None:
    make, words = HINTS[what]
    assert any(part in said(make) for part in words.split("|"))


# what it knows and what it does not


def test_what_is_not_known_says_where_it_comes_from() -> None:
    run = core.from_attentions([softmax(1, 4, N, N, causal=True)], WORDS)
    record = run.attention[0]
    asked: tuple[Callable[[], object], ...] = (
        run.predictions,
        run.classes,
        run.class_logits,
        run.logit_lens,
        run.logit_attribution,
        run.ablate_heads,
        lambda: run.positions,
        lambda: run.final_residual([0]),
        lambda: run.last_residual(torch.tensor([0])),
        lambda: run.activation("decoder.blocks.0.attn.hook_q"),
        lambda: run.activation("decoder.blocks.0.hook_resid_pre"),
        lambda: run.activation("head.hook_logits"),
        lambda: run.config.d_model,
        lambda: run.loaded.model.blocks,
        lambda: run.forward.run({}),
        lambda: core.trace(run.loaded, "a text"),
        lambda: core.trace(run.loaded, ids=[1, 2]),
        lambda: core.generate(run.loaded, "a text"),
        lambda: core.edge_attribution(run),
        lambda: list(core.patch_components(run, None, (), (), to="zero")),
        lambda: record.q,
        lambda: record.k,
        lambda: record.v,
        record.z,
        record.scores,
        record.raw,
        record.result,
        record.output_norms,
    )
    for ask in asked:
        assert "hl.wrap(model, tokenizer)" in said(ask) and "from_attentions" in said(ask)
    assert len(run.cannot) == 4
    with pytest.raises(KeyError, match=r"decoder\.blocks\.0\.attn"):
        run.activation("decoder.blocks.7.attn.hook_pattern")


def test_zeros_have_a_reason_only_where_it_is_certain() -> None:
    certain = core.from_attentions([softmax(1, 4, N, N, causal=True)], WORDS)
    assert certain.config.kind == "decoder" and certain.attention[0].why_masked(1, 3) == "future"
    assert "causal mask" in certain.warnings[0]
    holes = softmax(1, 4, N, N, causal=True)
    holes[0, 0, 4, 1] = 0
    unsure = core.from_attentions([holes], WORDS)
    assert unsure.config.kind == "decoder" and unsure.attention[0].why_masked(1, 3) is None
    assert any("no mask is named" in notice for notice in unsure.warnings)
    one = softmax(1, 4, N, N, causal=True)
    one[0, 3, 0, 5] = 1e-30
    assert core.from_attentions([one], WORDS).config.kind == "encoder"
    assert core.from_attentions([softmax(1, 2, 2, 2, causal=True)], ["a", "b"]).config.kind == "encoder"


def test_padding_is_what_is_called_so_and_not_looked_at() -> None:
    weights = softmax(2, 2, 4, 4)
    weights[1, :, :3, 3] = 0
    weights[1] /= weights[1].sum(-1, keepdim=True)
    run = core.from_attentions([weights], [["a", "b", "c", "[PAD]"]] * 2)
    assert run.text(0).source.padding == (False,) * 4
    assert run.text(1).source.padding == (False, False, False, True)
    assert run.text(1).attention[0].why_masked(0, 3) == "padding"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda x: x * 3,
            "rows sum to between 1 and 3, and the least number is 0. Are they attention scores before the softmax?",
        ),
        (lambda x: x.log(), "Are they attention scores before the softmax?"),
        (lambda x: x * 0.5, "Some rows sum to less than 1, the least to 0.5"),
        (lambda x: x.index_fill(-1, torch.tensor([0]), torch.nan), "holds NaN or infinite numbers"),
    ],
)
def test_numbers_that_are_no_weights_are_said_once(change: Callable[[Tensor], Tensor], sentence: str) -> None:
    run = core.from_attentions([change(LAYER)] * 3, WORDS)
    assert sum(sentence in notice for notice in run.warnings) == 1
    assert sentence in repr(run)
    assert report.summary(run)["notices"] == list(run.warnings)


def test_rows_of_zeros_are_rows_that_see_nothing() -> None:
    weights = LAYER.clone()
    weights[0, :, 2] = 0
    run = core.from_attentions([weights], WORDS)
    assert run.warnings == () and run.attention[0].receipt().blocked == 1


def test_where_numbers_end() -> None:
    weights = LAYER.clone()
    weights[0, 1, 3, 2] = torch.nan
    found = core.from_attentions([LAYER, weights], WORDS).non_finite
    assert found is not None and (found.layer, found.kind, found.position) == (1, "nan", 3)


def test_exports_hold_the_weights_and_no_invented_ids(tmp_path: Path) -> None:
    run = core.from_attentions([LAYER], WORDS)
    summary = json.loads(json.dumps(report.summary(run)))
    assert summary["source"]["ids"] is None and summary["source"]["strings"] == WORDS
    assert summary["predictions"] is None and summary["attention"][0]["shape"] == [4, N, N]
    assert summary["attention"][0]["receipt"]["rows_sum_error"] < 1e-6
    report.write_npz(run, tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as arrays:
        np.testing.assert_array_equal(arrays["encoder.blocks.0.attn"], LAYER[0].numpy())
        assert "source.ids" not in arrays
    assert "[CLS]" in report.html(run) and "[CLS]" in run._repr_html_()
    assert list(run.to_frame()["name"]) == ["encoder.blocks.0.attn.hook_pattern"]
    assert core.compare(run, core.from_attentions([LAYER * 1.0], WORDS)).heads[0].moved == 0


def test_the_page_about_it_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "from-weights.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile("\n".join(code), "from-weights.md", "exec"), names)
    assert names["run"].source.labels[2] == "cat" and names["run"].attention[0].n_heads == 4


# spellings


@pytest.mark.parametrize(
    ("strings", "text", "labels"),
    [
        (
            ["[CLS]", "un", "##aff", "##able", ",", "yes", "[SEP]"],
            "unaffable, yes",
            ("[CLS]", "un", "aff", "able", ",", "yes", "[SEP]"),
        ),
        (
            ["The", "Ġcaf", "Ã©", "ĠðŁ", "İ", "ī", "Ċ"],
            "The café 🎉\n",
            ("The", "caf", "é", "🎉 1/3", "🎉 2/3", "🎉 3/3", "↵"),
        ),
        (["<s>", "▁The", "▁cat", "s", "<0x0A>"], "The cats<0x0A>", ("<s>", "The", "cat", "s", "<0x0A>")),
        (["the</w>", "ca", "ts</w>"], "the cats ", ("the", "ca", "ts")),
        (["<|endoftext|>", "The", " cat", " sat"], "The cat sat", ("<|endoftext|>", "The", "cat", "sat")),
        (["A", "person", "walks"], "A person walks", ("A", "person", "walks")),
        (["[UNK]", "x"], "[UNK] x", ("[UNK]", "x")),
    ],
)
def test_spellings_give_the_text(strings: list[str], text: str, labels: tuple[str, ...]) -> None:
    tokens = tokens_from_strings(strings)
    assert tokens.text == text
    assert tuple(label.strip() for label in tokens.labels) == labels
    assert len(set(tokens.ids)) == len(set(strings)) and all(i < 0 for i in tokens.ids)


# parity with runs of the same model


@cache
def small(kind: str) -> Any:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {
        "attn_implementation": "eager",
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "hidden_size": 32,
        "intermediate_size": 48,
        "vocab_size": 64,
    }
    if kind == "bert":
        model = hf.BertModel(hf.BertConfig(**sizes))
    elif kind == "qwen":
        config = hf.Qwen3Config(**sizes, num_key_value_heads=2, head_dim=8)
        model = hf.Qwen3ForCausalLM(config)
    else:
        t5: dict[str, Any] = {
            "decoder_start_token_id": 0,
            "attn_implementation": "eager",
            "vocab_size": 64,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 2,
            "num_heads": 4,
        }
        model = hf.T5ForConditionalGeneration(hf.T5Config(**t5))
    return model.eval()


@pytest.mark.parametrize("kind", ["bert", "qwen", "t5"])
def test_the_same_measures_as_a_run_of_the_model(kind: str) -> None:
    model = small(kind)
    target = [0, 7, 9, 7, 11] if kind == "t5" else None
    given = {"input_ids": torch.tensor([IDS])} | (
        {} if target is None else {"decoder_input_ids": torch.tensor([target])}
    )
    with torch.no_grad():
        output = model(**given, output_attentions=True)
    wrapped = core.trace(core.wrap(model), ids=IDS, target_ids=target)
    tokens = [f"w{i}" for i in IDS]
    run = core.from_attentions(output, tokens, target_tokens=None if target is None else [f"w{i}" for i in target])
    assert run.config.kind == wrapped.config.kind and run.config.stacks == wrapped.config.stacks
    assert [record.name for record in run.attention] == [record.name for record in wrapped.attention]
    for mine, theirs in zip(run.attention, wrapped.attention, strict=True):
        torch.testing.assert_close(mine.pattern(), theirs.pattern(), rtol=1e-4, atol=1e-5)
        for measure in (measures.entropy, measures.mean_received, measures.sink_share):
            torch.testing.assert_close(measure(mine.pattern()), measure(theirs.pattern()), rtol=1e-4, atol=1e-4)
        assert torch.equal(mine.mask(), theirs.mask()), "the causal mask is read from the weights"
    ours, own = core.strongest_edges(run, k=3), core.strongest_edges(wrapped, k=3)
    torch.testing.assert_close(ours.weights, own.weights, rtol=1e-4, atol=1e-5)
    shares, other = measures.sink(run.attention[:2]), measures.sink(wrapped.attention[:2])
    assert shares is not None and other is not None and shares.rows == other.rows
    np.testing.assert_allclose(shares.shares, other.shares, atol=1e-5)
    moved = max(head.moved for head in core.compare(run, wrapped).heads)
    assert moved < 1e-5


def test_repeats_are_known_by_their_spelling() -> None:
    weights = softmax(1, 2, len(IDS), len(IDS), causal=True)
    run = core.from_attentions([weights], [f"w{i}" for i in IDS])
    torch.testing.assert_close(measures.induction(weights[0], run.source.ids), measures.induction(weights[0], IDS))


# TransformerLens' caches


def activations(layer: int, n_heads: int = 4, kv_heads: int = 2, d: int = 8) -> dict[str, Tensor]:
    name = f"blocks.{layer}.attn.hook_"
    pattern, v = softmax(1, n_heads, N, N, causal=True, seed=layer), torch.randn(1, N, kv_heads, d)
    z = pattern[0] @ v[0].transpose(0, 1).repeat_interleave(n_heads // kv_heads, 0)  # [head, query, d_head]
    return {
        f"{name}q": torch.randn(1, N, n_heads, d),
        f"{name}k": torch.randn(1, N, kv_heads, d),
        f"{name}v": v,
        f"{name}pattern": pattern,
        f"{name}z": z.transpose(0, 1)[None],
        f"{name}attn_scores": torch.zeros(1, n_heads, N, N),
        f"blocks.{layer}.hook_resid_pre": torch.zeros(1, N, 32),
    }


@pytest.mark.parametrize("batched", [True, False])
def test_a_cache_gives_weights_values_and_z(batched: bool) -> None:
    cache = activations(0) | activations(1)
    run = core.from_cache(cache if batched else {name: x[0] for name, x in cache.items()}, WORDS)
    assert [record.name for record in run.attention] == ["decoder.blocks.0.attn", "decoder.blocks.1.attn"]
    record = run.attention[1]
    torch.testing.assert_close(record.pattern(), cache["blocks.1.attn.hook_pattern"][0])
    torch.testing.assert_close(record.q, cache["blocks.1.attn.hook_q"][0].transpose(0, 1))
    torch.testing.assert_close(record.v, cache["blocks.1.attn.hook_v"][0].transpose(0, 1))
    torch.testing.assert_close(record.z(), cache["blocks.1.attn.hook_z"][0].transpose(0, 1))
    torch.testing.assert_close(run.activation("decoder.blocks.1.attn.hook_z"), cache["blocks.1.attn.hook_z"][0])
    assert record.n_kv_heads == 2
    assert "from_cache" in said(record.scores)
    without_z = core.from_cache({name: x for name, x in cache.items() if not name.endswith("hook_z")}, WORDS)
    torch.testing.assert_close(without_z.attention[1].z(), record.z())


def test_a_cache_of_some_layers_keeps_their_numbers() -> None:
    run = core.from_cache({name: x for name, x in activations(5).items() if "pattern" in name}, WORDS)
    assert run.attention[0].layer == 5 and core.opening_finding(run).layer == 5
    turned = activations(0) | {"blocks.0.attn.hook_rot_q": torch.ones(1, N, 4, 8)}
    assert bool((core.from_cache(turned, WORDS).attention[0].q == 1).all())


def test_a_cache_of_an_encoder_and_a_decoder() -> None:
    cache = {
        "encoder.0.attn.hook_pattern": softmax(1, 2, 3, 3),
        "decoder.0.attn.hook_pattern": softmax(1, 2, 4, 4, causal=True),
        "decoder.0.cross_attn.hook_pattern": softmax(1, 2, 4, 3),
    }
    run = core.from_cache(cache, list("abc"), target_tokens=list("wxyz"))
    assert [record.site for record in run.attention] == ["attn", "attn", "cross_attn"]
    assert run.target is not None and run.target.labels == tuple("wxyz")
    assert re.search("a pattern is", said(lambda: core.from_cache({"blocks.0.attn.hook_pattern": torch.ones(3)})))
