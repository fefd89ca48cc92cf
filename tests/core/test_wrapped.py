"""core.wrap: a person's own model of transformers gives the records, and the numbers, that it has without us."""

from __future__ import annotations

import copy
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn

import core
from benchmarks import wrapped as table
from benchmarks.coverage import PATTERNS, ROWS, VOCAB, Row, made
from core.checkpoints import Loaded
from core.read import layer_walk, next_token_loss, report
from core.read.comparison import answer_change
from core.run import call_records
from core.run.wrapped_trace import Wrapped
from tests.thorough import part

NAMED = {row.name: row for row in ROWS}
IDS = list(range(5, 18))
TARGET = [7, 9, 11, 6]
SHARE = 8  # one row in so many is tried where not all are
SEEN = [row for row in ROWS if row.name not in table.REFUSED | table.IN_PART]
ALWAYS = ("Gemma 2", "gpt-oss", "T5", "DiffLlama")  # soft-cap, sinks, bias, values in two parts
TRIED = [row for row in SEEN if row.name in ALWAYS or row in part(SEEN, SHARE)]


@cache
def model_of(name: str) -> Any:
    return made(NAMED[name])


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After every test transformers' registries hold nothing of ours, and no config has another class."""
    yield
    assert call_records.NAME not in hf.AttentionInterface._global_mapping
    assert call_records.NAME not in hf.AttentionMaskInterface._global_mapping
    assert not call_records._watched


def run_of(name: str, interventions: Sequence[core.edits.Intervention] = ()) -> core.Trace:
    model = model_of(name)
    target = TARGET if model.config.is_encoder_decoder else None
    return core.trace(core.wrap(model), ids=IDS, target_ids=target, interventions=interventions)


def logits(run: core.Trace) -> Tensor:
    found = run.activation("head.hook_logits")
    assert isinstance(found, Tensor)
    return found


# parity


@pytest.mark.parametrize("row", TRIED, ids=lambda row: row.name)
def test_a_row_of_the_table(row: Row) -> None:
    """Patterns of every head against eager attention, all logits, what each call returned, and a silenced head."""
    found = table.tried(row)
    assert found.at_parity, found
    assert found.silenced is not None and found.silenced > 1e-2


@pytest.mark.parametrize("name", part(sorted(table.REFUSED), SHARE))
def test_a_refused_row_says_why(name: str) -> None:
    found = table.tried(NAMED[name])
    assert found.pattern is None
    assert re.search("by hand|no attention", found.sentence) and "headlight.load" in found.sentence


def test_the_table_counts_at_least_79() -> None:
    names = {row.name for row in ROWS}
    assert names >= table.REFUSED | table.IN_PART
    assert len(names) - len(table.REFUSED | table.IN_PART) >= 79


def test_what_is_in_part_is_said() -> None:
    wrapped = core.wrap(model_of("LongT5"))
    assert "3 attentions of this model are written out by hand" in wrapped.notices[0]
    run = run_of("LongT5")
    assert {record.stack for record in run.attention} == {"decoder"} and run.config.kind == "encoder-decoder"
    assert run.warnings == wrapped.notices


DAMAGES: dict[str, Callable[[Any], Any]] = {
    "scale": lambda rule: replace(rule, scale=rule.scale * 1.02),
    "soft-cap": lambda rule: replace(rule, softcap=None),
    "sinks": lambda rule: replace(rule, sinks=None),
    "bias": lambda rule: replace(rule, bias=None),
    "mask": lambda rule: replace(rule, mask=type(rule.mask)(rule.mask.n_heads, rule.mask.n_query, rule.mask.n_key)),
}


@pytest.mark.parametrize(
    ("name", "damage"),
    [("Llama", "scale"), ("Gemma 2", "soft-cap"), ("gpt-oss", "sinks"), ("T5", "bias"), ("Gemma 3 (text)", "mask")],
)
def test_a_damaged_record_is_seen(name: str, damage: str) -> None:
    """That patterns agree to the last bit is no accident: a record with one part wrong does not."""
    found = 0.0
    for record in run_of(name).attention:
        other = replace(record, batch_rule=DAMAGES[damage](record.batch_rule))
        found = max(
            found, (other.pattern() - record.pattern()).abs().max().item(), abs(other.receipt().fused_error or 0)
        )
    assert found > 20 * PATTERNS


# the same as our own engine


@cache
def both(name: str, folder: Path) -> tuple[Loaded, Wrapped]:
    model = model_of(name)
    model.save_pretrained(folder)
    return core.load(folder), core.wrap(model)


@pytest.mark.parametrize("name", ["Mistral", "BERT", "T5", "Gemma 3 (text)", "ModernBERT"])
def test_same_names_reasons_and_numbers_as_our_own_engine(name: str, tmp_path: Path) -> None:
    ours, theirs = both(name, tmp_path)
    target = TARGET if ours.config.kind == "encoder-decoder" else None
    a, b = (core.trace(loaded, ids=IDS, target_ids=target) for loaded in (ours, theirs))
    assert [(r.name, r.stack, r.layer, r.site) for r in a.attention] == [
        (r.name, r.stack, r.layer, r.site) for r in b.attention
    ]
    assert all(head.moved < PATTERNS for head in core.compare(a, b).heads)
    for mine, other in zip(a.attention, b.attention, strict=True):
        queries, keys = torch.arange(mine.n_query), torch.arange(mine.n_key)
        assert torch.equal(mine.rule.mask.reasons(queries, keys), other.rule.mask.reasons(queries, keys)), mine.name
        assert other.rule.mask.custom is None  # a rule, no tensor
    assert a.config.kind == b.config.kind and a.config.writes == b.config.writes and a.config.stacks == b.config.stacks
    if a.config.writes:
        assert np.allclose(a.predictions(k=5).probs, b.predictions(k=5).probs, atol=1e-5)
        change = answer_change(a, b)
        assert change.kl is not None and abs(change.kl) < 1e-6
        losses = [next_token_loss.given(run).losses for run in (a, b)]
        assert (losses[0] - losses[1]).abs().max() < 1e-4
    n = len(TARGET) if target else len(IDS)
    assert (a.last_residual(torch.arange(n)) - b.last_residual(torch.arange(n))).abs().max() < 1e-4


EDITS: list[core.edits.Intervention] = [
    core.edits.Ablate("decoder", 1, 2),
    core.edits.Ablate("decoder", 0, 4, to="mean"),
    core.edits.ScaleHead(-1.0, "decoder", 0, 1),
    core.edits.NoScale(),
    core.edits.Temperature(2.0),
    core.edits.EditMask(keys=2),
    core.edits.Window(3),
    core.edits.DropCausalMask(),
    core.edits.MaskAfterSoftmax(),
]


@pytest.mark.parametrize("edit", EDITS, ids=repr)
def test_edits_do_what_they_do_in_our_own_engine(edit: core.edits.Intervention, tmp_path: Path) -> None:
    ours, theirs = both("Mistral", tmp_path)
    runs = [core.trace(loaded, ids=IDS, interventions=[edit]) for loaded in (ours, theirs)]
    assert (logits(runs[0]) - logits(runs[1])).abs().max() < 1e-4
    assert (logits(runs[1]) - logits(core.trace(theirs, ids=IDS))).abs().max() > 1e-2
    for mine, other in zip(runs[0].attention, runs[1].attention, strict=True):
        assert (mine.pattern() - other.pattern()).abs().max() < PATTERNS
        assert (mine.z() - other.z()).abs().max() < 1e-4


def test_a_silenced_head_writes_nothing() -> None:
    """Held against the model itself, whose output projection is shown zeros in that head's place."""
    model = model_of("Qwen3")
    run = run_of("Qwen3", interventions=[core.edits.Ablate("decoder", 1, 4)])
    width = run.attention[1].batch_q.shape[-1]

    def zeroed(_: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
        x = args[0].clone()
        x[..., 4 * width : 5 * width] = 0
        return (x,)

    handle = model.model.layers[1].self_attn.o_proj.register_forward_pre_hook(zeroed)
    try:
        with torch.no_grad():
            expected = model(torch.tensor([IDS])).logits[0]
    finally:
        handle.remove()
    assert (logits(run) - expected).abs().max() < 1e-5
    assert run.attention[1].z()[4].abs().max() == 0


# masks


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["Mistral", "BERT", "Gemma 3 (text)"])
def test_padding_window_and_future_are_told_apart(name: str, implementation: str) -> None:
    model = copy.deepcopy(model_of(name))
    model.set_attn_implementation(implementation)
    wrapped = core.wrap(model, tokenizer())
    run = core.trace(wrapped, ["w5 w6 w7 w8 w9 w10 w11 w12", "w7 w8 w9"])
    record = run.text(1).attention[0]
    assert record.why_masked(0, 6) == "padding"
    assert record.why_masked(0, 1) == ("future" if name != "BERT" else None)
    if name != "BERT":
        assert run.text(0).attention[0].why_masked(7, 1) == "outside the window"
    keep = torch.tensor([[1] * 8, [1] * 3 + [0] * 5])
    with torch.no_grad():
        expected = model(torch.tensor([t.ids for t in run.sources]), attention_mask=keep).logits
    assert torch.equal(logits(run.text(0)), expected[0]) and torch.equal(logits(run.text(1)), expected[1])
    for text in range(2):
        receipts = [record.receipt() for record in run.text(text).attention]
        assert all(receipt.fused_error is not None and receipt.fused_error < 1e-5 for receipt in receipts)
        # Eager attention gives weights to rows of padding that see nothing, and these are told as they are.
        assert all(receipt.masked_max == 0 or (receipt.blocked and implementation == "eager") for receipt in receipts)


def test_rows_that_see_nothing_have_the_weights_that_the_model_gave_them() -> None:
    """Padding on the left leaves rows in which all is hidden, and eager attention spreads them evenly."""
    model = model_of("Llama")
    wrapped = core.wrap(model, tokenizer())
    run = core.trace(wrapped, ["w5 w6 w7 w8", "w7 w8"], padding_side="left")
    record = run.text(1).attention[0]
    with torch.no_grad():
        out = model(
            torch.tensor([t.ids for t in run.sources]),
            attention_mask=torch.tensor([[1] * 4, [0, 0, 1, 1]]),
            output_attentions=True,
        )
    assert (record.pattern() - out.attentions[0][1]).abs().max() <= PATTERNS
    assert record.blocked_rows().tolist() == [True, True, False, False]
    assert record.why_masked(2, 0) == "padding" and record.why_masked(2, 3) == "future"


def test_a_mask_of_ones_own_is_the_callers() -> None:
    model = model_of("Llama")
    wrapped = core.wrap(model)
    own = torch.zeros(1, 1, 5, 5)
    own[..., 3, 1] = torch.finfo(torch.float32).min
    with wrapped.recording() as records, torch.no_grad():
        out = model(torch.tensor([IDS[:5]]), attention_mask=own, output_attentions=True)
    assert records[0].why_masked(3, 1) == "masked by the caller" and records[0].why_masked(0, 4) is None
    assert (records[0].pattern() - out.attentions[0][0]).abs().max() <= PATTERNS


# everything is left as it was


def test_sdpa_gives_its_own_numbers_to_the_last_bit() -> None:
    model = copy.deepcopy(model_of("Llama"))
    model.set_attn_implementation("sdpa")
    with torch.no_grad():
        expected = model(torch.tensor([IDS]), use_cache=False).logits[0]
    run = core.trace(core.wrap(model), ids=IDS)
    assert torch.equal(logits(run), expected)
    assert run.attention[0].rule.mask.is_causal_only  # sdpa is told so without a mask
    assert model.config._attn_implementation == "sdpa" and type(model.config) is hf.LlamaConfig


def test_other_threads_see_nothing_of_it() -> None:
    """One thread records while another runs the same model: that one's config, numbers and class of config are its own."""
    model = copy.deepcopy(model_of("Llama"))
    model.set_attn_implementation("sdpa")
    wrapped, ids = core.wrap(model), torch.tensor([IDS])
    with torch.no_grad():
        expected = model(ids).logits
    inside, done, found = threading.Event(), threading.Event(), []

    def other() -> None:
        inside.wait()
        found.append(model.config._attn_implementation)
        with torch.no_grad():
            found.append(torch.equal(model(ids).logits, expected))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with wrapped.recording() as records, torch.no_grad():
        assert model.config._attn_implementation == call_records.NAME
        model(ids)
        inside.set()
        done.wait()
        seen = len(records)
    thread.join()
    assert found == ["sdpa", True] and seen == len(records) == model.config.num_hidden_layers


def test_two_threads_record_one_model_at_once() -> None:
    model = model_of("Gemma 2")
    wrapped = core.wrap(model)
    texts = [IDS, IDS[::-1], IDS[3:], IDS[:2]] * 4
    expected = [logits(core.trace(wrapped, ids=ids)) for ids in texts]
    found: dict[int, Tensor] = {}
    start = threading.Barrier(2)

    def work(mine: range) -> None:
        start.wait()
        for i in mine:
            run = core.trace(wrapped, ids=texts[i])
            assert len(run.attention) == 3 and run.attention[0].n_key == len(texts[i])
            found[i] = logits(run)

    threads = [threading.Thread(target=work, args=(range(first, len(texts), 2),)) for first in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(found[i], expected[i]) for i in range(len(texts)))
    assert type(model.config) is hf.Gemma2Config


def test_everything_is_put_back_when_the_model_raises() -> None:
    model = model_of("Llama")
    wrapped = core.wrap(model)

    def fails(*_: Any) -> None:
        raise RuntimeError("in the middle")

    handle = model.model.layers[1].register_forward_pre_hook(fails)
    try:
        with pytest.raises(RuntimeError, match="in the middle"):
            core.trace(wrapped, ids=IDS)
        assert type(model.config) is hf.LlamaConfig and model.config._attn_implementation == "eager"
        assert call_records.NAME not in hf.AttentionInterface._global_mapping
    finally:
        handle.remove()
    assert len(core.trace(wrapped, ids=IDS).attention) == 3


def test_generate_writes_the_same_and_every_step_is_there() -> None:
    model = model_of("Llama")
    wrapped, ids = core.wrap(model), torch.tensor([IDS])
    expected = model.generate(ids, max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0)
    with wrapped.recording() as records:
        got = model.generate(ids, max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0)
    assert torch.equal(got, expected)
    assert len(records) == 5 * 3
    first = [record for record in records if record.name == "model.layers.0.self_attn"]
    assert [record.call for record in first] == list(range(5)) and all(record.layer == 0 for record in first)
    assert [(record.n_query, record.n_key) for record in first] == [(13, 13), *((1, 14 + i) for i in range(4))]
    assert sum(record.keys.nbytes for record in first) == first[0].batch_k[:1].nbytes // 13 * 17, (
        "a row of a cache is kept once"
    )
    with torch.no_grad():
        whole = model(got[:, :-1], output_attentions=True).attentions[0][0]
    assert (first[-1].pattern()[:, 0] - whole[:, -1]).abs().max() <= PATTERNS


def test_training_goes_on_as_without_it() -> None:
    """Dropout's random numbers, the loss and the gradients are the same; weights are those before dropout."""
    model = copy.deepcopy(model_of("BERT")).train()
    wrapped, ids = core.wrap(model), torch.tensor([IDS])

    def step() -> tuple[float, Tensor]:
        torch.manual_seed(3)
        model.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        grad = model.bert.encoder.layer[0].attention.self.query.weight.grad
        return loss.item(), grad.clone()

    expected = step()
    with wrapped.recording() as records:
        got = step()
    assert got[0] == expected[0] and torch.equal(got[1], expected[1])
    assert all(
        (record.pattern().sum(-1) - 1).abs().max() < 1e-5 and not record.batch_q.requires_grad for record in records
    )
    assert model.training and "training mode" in wrapped.notices[-1]
    run = core.trace(wrapped, ids=IDS)
    assert run.attention[0].receipt().fused_error is not None  # of pattern · v, since what was returned had dropout
    with torch.no_grad():
        next(iter(model.parameters())).add_(1.0)
    with pytest.raises(core.errors.StaleTrace):
        run.predictions()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype: torch.dtype) -> None:
    model = copy.deepcopy(model_of("Qwen3")).to(dtype)
    run = core.trace(core.wrap(model), ids=IDS)
    with torch.no_grad():
        out = model(torch.tensor([IDS]), output_attentions=True)
    assert torch.equal(logits(run), out.logits[0]) and run.dtype == str(dtype).removeprefix("torch.")
    for record, theirs in zip(run.attention, out.attentions, strict=True):
        assert record.batch_q.dtype == dtype
        assert (record.pattern() - theirs[0].float()).abs().max() < 2 * torch.finfo(dtype).eps
    edited = core.trace(core.wrap(model), ids=IDS, interventions=[core.edits.Window(3)])
    assert edited.attention[0].why_masked(9, 2) == "outside the window"


def test_random_numbers_are_not_used_up() -> None:
    model = copy.deepcopy(model_of("BERT")).train()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    core.wrap(model)
    assert torch.equal(torch.rand(3), expected)


# texts


def tokenizer() -> Any:
    found = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCAB)}, unk_token="w4"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    return hf.PreTrainedTokenizerFast(tokenizer_object=found, pad_token="w0", eos_token="w2")


def test_a_text_is_read_by_its_own_tokenizer() -> None:
    model, theirs = model_of("Llama"), tokenizer()
    theirs.chat_template = "{% for m in messages %}{{ m['role'] and 'w7 ' }}{{ m['content'] }} {% endfor %}"
    wrapped = core.wrap(model, theirs)
    run = core.trace(wrapped, "w5 w6 w30")
    assert list(run.source.ids) == theirs("w5 w6 w30")["input_ids"] and run.source.labels == ("w5", "w6", "w30")
    assert "w5" in run._repr_html_() and "w6" in report.html(run)
    messages = [{"role": "user", "content": "w8 w9"}]
    chat = core.trace_chat(wrapped, messages, add_generation_prompt=False)
    assert list(chat.source.ids) == theirs.apply_chat_template(messages, tokenize=True, return_dict=False)
    plain = core.trace(core.wrap(model, theirs.backend_tokenizer), "w5 w6 w30")
    assert plain.source.ids == run.source.ids


class Slow(hf.PythonBackend):
    """A tokenizer without a fast part."""

    @property
    def vocab_size(self) -> int:
        return VOCAB

    def get_vocab(self) -> dict[str, int]:
        return {f"w{i}": i for i in range(VOCAB)}

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return text.split()

    def _convert_token_to_id(self, token: str) -> int:
        return int(token[1:])

    def _convert_id_to_token(self, index: int) -> str:
        return f"w{index}"


def test_a_tokenizer_without_a_fast_part() -> None:
    theirs = Slow(unk_token="w4", pad_token="w0", eos_token="w2")
    run = core.trace(core.wrap(model_of("Llama"), theirs), "w5 w6 w30")
    assert list(run.source.ids) == theirs("w5 w6 w30")["input_ids"]
    assert run.source.strings[:3] == ("w5", "w6", "w30") and run.predictions(k=1).strings[0][0].startswith("w")


def test_a_long_run_keeps_few_logits_and_gives_all(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_of("Llama")
    monkeypatch.setattr("core.run.wrapped_trace.HELD_BYTES", 0)
    for name in ("Llama", "GPT-2", "T5"):  # the second and third take all positions, whatever is asked for
        run = run_of(name)
        assert isinstance(run.logits, object) and run.logits.held.shape[1] == 1  # type: ignore[attr-defined]
        assert (logits(run)[-1] - run.activation("head.hook_logits", [len(logits(run)) - 1])[0]).abs().max() < 1e-5
    assert (logits(run_of("Llama")) - logits(whole)).abs().max() < 1e-5


# exports and what cannot be


def test_exports(tmp_path: Path) -> None:
    run = run_of("gpt-oss")
    report.write_npz(run, tmp_path / "run.npz")
    held = np.load(tmp_path / "run.npz")
    assert np.array_equal(held["decoder.blocks.1.attn"], run.attention[1].pattern().numpy())
    found = report.summary(run)
    assert found["config"]["kind"] == "decoder" and "norm" not in found["config"]
    assert found["attention"][0]["receipt"]["fused_error"] < 1e-5 and found["predictions"]["ids"]
    assert "3 decoder layers" in report.words(run) and "decoder.blocks.2.attn" in report.html(run)
    assert len(run.to_frame()) == 3 * 4 and run.nbytes > 0
    assert core.measures.entropy(run.attention[0].pattern()).shape == (6, 13)
    assert run.attention[0].thumbnail(4).values.shape == (6, 4, 4)
    for point in ("q", "k", "v", "z", "scores", "pattern"):
        at = run.activation(f"decoder.blocks.1.attn.hook_{point}", [2])
        assert at.shape[1 if point in ("scores", "pattern") else 0] == 1
    with pytest.raises(IndexError):
        run.activation("decoder.blocks.1.attn.hook_q", [13])
    with pytest.raises(KeyError):
        run["nonsense"]


CANNOT: dict[str, Callable[[Wrapped, core.Trace], object]] = {
    "Step": lambda wrapped, run: layer_walk.walk(run, "decoder", 0, 3),
    "a point between": lambda wrapped, run: run["decoder.blocks.0.hook_resid_post"],
    "logit lens": lambda wrapped, run: run.logit_lens(),
    "contributions": lambda wrapped, run: run.logit_attribution(),
    "each head": lambda wrapped, run: run.ablate_heads(),
    "sweep of heads": lambda wrapped, run: core.sweep_heads(run),
    "sweep of looks": lambda wrapped, run: core.sweep_edges(run),
    "patching": lambda wrapped, run: core.patch_heads(run, run),
    "looks": lambda wrapped, run: core.edge_attribution(run),
    "generate": lambda wrapped, run: core.generate(wrapped, ids=IDS),
    "beams": lambda wrapped, run: core.beam_search(wrapped, ids=IDS),
    "positions": lambda wrapped, run: core.trace(wrapped, ids=IDS, interventions=[core.edits.ShiftPositions(1)]),
    "a norm": lambda wrapped, run: wrapped.config.norm,
    "save": lambda wrapped, run: core.save(wrapped, "nowhere"),
    "plan": lambda wrapped, run: core.plan(wrapped.config, source_len=8),
    "hook points": lambda wrapped, run: core.hook_points(wrapped.model),
    "no such head": lambda wrapped, run: core.trace(
        wrapped, ids=IDS, interventions=[core.edits.Ablate("decoder", 0, 6)]
    ),
    "no such layer": lambda wrapped, run: core.trace(
        wrapped, ids=IDS, interventions=[core.edits.Ablate("decoder", 9, 0)]
    ),
    "no tokenizer": lambda wrapped, run: core.trace(wrapped, "a text"),
    "no such token": lambda wrapped, run: core.trace(wrapped, ids=[VOCAB]),
}


@pytest.mark.parametrize("what", CANNOT)
def test_what_it_cannot_do_is_a_sentence(what: str) -> None:
    run = run_of("Llama")
    assert isinstance(run.loaded, Wrapped)
    with pytest.raises(core.HeadlightError) as refusal:
        CANNOT[what](run.loaded, run)
    assert len(str(refusal.value).split()) > 6 and str(refusal.value).endswith((".", "!"))


def test_the_list_of_what_it_cannot_do() -> None:
    run = run_of("Llama")
    assert isinstance(run.loaded, Wrapped) and len(run.loaded.cannot) >= 5
    text = " ".join(run.loaded.cannot)
    assert all(word in text for word in ("step by step", "chunks", "Memory", "positions"))


def test_heads_differ_in_a_hybrid_and_layers_keep_their_numbers() -> None:
    assert [record.layer for record in run_of("LFM2").attention] == [0, 2]


def test_layers_that_share_weights_are_numbered() -> None:
    run = run_of("ALBERT")
    assert [record.name for record in run.attention] == [f"encoder.blocks.{i}.attn" for i in range(3)]


def test_a_head_in_several_parts_is_silenced_in_all() -> None:
    run = run_of("DiffLlama", interventions=[core.edits.Ablate("decoder", 0, 3)])
    first, second = run.attention[:2]
    assert (first.name, second.name) == ("decoder.blocks.0.attn", "decoder.blocks.0.attn.part1")
    assert first.z()[3].abs().max() == second.z()[3].abs().max() == 0 and first.z()[2].abs().max() > 0


# models that are refused


def compiled(in_place: bool) -> Any:
    """Not run: it is the wrapper around the model that matters."""
    model = copy.deepcopy(model_of("Llama"))
    if in_place:
        model.compile(backend="eager")
        return model
    return torch.compile(model, backend="eager")


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "compiled": (lambda: compiled(False), "compiled"),
    "compiled in place": (lambda: compiled(True), "compiled"),
    "on several devices": (lambda: nn.DataParallel(model_of("Llama")), r"Wrap its \.module"),
    "without memory": (lambda: copy.deepcopy(model_of("Llama")).to("meta"), "several devices"),
    "of torch": (lambda: nn.Linear(2, 2), "headlight.capture"),
    "without attention": (lambda: made(NAMED["Mamba 1"]), "no attention"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_model_that_is_refused(what: str) -> None:
    make, sentence = REFUSED[what]
    with pytest.raises(core.HeadlightError, match=sentence):
        core.wrap(make())


def test_a_name_or_a_wrong_tokenizer_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match=r"headlight\.load"):
        core.wrap("gpt2")
    with pytest.raises(TypeError, match="tokenizer"):
        core.wrap(model_of("Llama"), 3)


def test_an_older_transformers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.run.wrapped.OLDEST", (99, 1))
    with pytest.raises(core.HeadlightError, match=r"transformers 99\.1 and newer, and this is"):
        core.wrap(model_of("Llama"))


def test_a_kernel_that_cannot_be_looked_into_is_run_as_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    model = copy.deepcopy(model_of("Llama"))
    model.config._attn_implementation_internal = "flash_attention_2"
    wrapped = core.wrap(model)
    assert "flash_attention_2" in wrapped.notices[0]
    assert torch.equal(logits(core.trace(wrapped, ids=IDS)), logits(run_of("Llama")))


def test_an_attention_that_does_more_than_is_recorded_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    names = vars(sys.modules[hf.LlamaForCausalLM.__module__])
    own = names["eager_attention_forward"]

    def louder(*args: Any, **kwargs: Any) -> Any:
        out, weights = own(*args, **kwargs)
        return out * 1.01, weights

    monkeypatch.setitem(names, "eager_attention_forward", louder)
    wrapped = core.wrap(model_of("Llama"))
    assert "does more than is recorded" in wrapped.notices[0]
    receipt = core.trace(wrapped, ids=IDS).attention[0].receipt()
    assert receipt.fused_error is not None and receipt.fused_error > 1e-3


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "wrap.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    record, run = names["record"], names["run"]
    assert record.name == "decoder.blocks.1.attn" and record.why_masked(query=2, key=5) == "future"
    assert record.receipt().fused_error < 1e-5 and len(run.predictions(k=3).strings[0]) == 3
    assert names["silent"].attention.at(1).z()[3].abs().max() == 0
    assert [one.call for one in names["records"] if one.layer == 0] == [0, 1, 2]


def test_images_are_recorded_though_not_traced() -> None:
    torch.manual_seed(0)
    config = hf.ViTConfig(
        hidden_size=20, num_hidden_layers=2, num_attention_heads=4, intermediate_size=9, image_size=8, patch_size=4
    )
    model = hf.ViTModel(config).eval()
    model.set_attn_implementation("eager")
    wrapped, image = core.wrap(model), torch.randn(1, 3, 8, 8)
    with wrapped.recording() as records, torch.no_grad():
        out = model(image, output_attentions=True)
    assert [record.layer for record in records] == [0, 1]
    assert (records[1].pattern() - out.attentions[1][0]).abs().max() <= PATTERNS
    with pytest.raises(core.errors.TextError, match="pixel_values"):
        core.trace(wrapped, ids=IDS)


def test_capture_of_an_eager_model_points_here() -> None:
    model = model_of("Llama")
    with (
        pytest.raises(core.HeadlightError, match=r"headlight\.wrap\(model, tokenizer\)"),
        core.capture(model),
        torch.no_grad(),
    ):
        model(torch.tensor([IDS]))


def test_nothing_in_a_recording_is_an_error() -> None:
    wrapped = core.wrap(model_of("Llama"))
    with pytest.raises(core.HeadlightError, match="Nothing was recorded"), wrapped.recording():
        pass
