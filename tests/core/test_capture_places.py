"""capture(): what a record says of its place (site, layer, call) is what the pass shows, and otherwise left open."""

from __future__ import annotations

import gc
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers as hf
from torch import Tensor, nn

import core

D, HEADS = 16, 4
IDS = torch.tensor([[5, 6, 7, 8, 9]])
OTHER = torch.tensor([[1, 3, 4, 5, 2]])  # as long as IDS: lengths tell nothing


def x(n: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(2, n, D, generator=torch.Generator().manual_seed(seed))


def split(y: Tensor) -> Tensor:
    """[batch, pos, d_model] -> [batch, head, pos, d_head]"""
    return y.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def merged(z: Tensor) -> Tensor:
    return z.transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Attention of one sequence to another, or to itself, as most code has it."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, here: Tensor, there: Tensor | None = None) -> Tensor:
        there = here if there is None else there
        return self.o(
            merged(F.scaled_dot_product_attention(split(self.q(here)), split(self.k(there)), split(self.v(there))))
        )


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn, self.norm = Attention(), nn.LayerNorm(D)

    def forward(self, here: Tensor) -> Tensor:
        return here + self.attn(self.norm(here))


def places(module: nn.Module, *given: Any, **named: Any) -> list[tuple[str, str, int | None, int]]:
    with torch.no_grad(), core.capture(module) as records:
        module(*given, **named)
    return [(record.name, record.site, record.layer, record.call) for record in records]


def sites(module: nn.Module, *given: Any, **named: Any) -> list[str]:
    return [site for _, site, _, _ in places(module, *given, **named)]


def layers(module: nn.Module, *given: Any, **named: Any) -> list[int | None]:
    return [layer for _, _, layer, _ in places(module, *given, **named)]


# one sequence or two


class Fused(nn.Module):
    """One projection for queries, keys and values, turned by rotary angles that both share."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D)

    def forward(self, here: Tensor) -> Tensor:
        q, k, v = (split(part) for part in self.qkv(here).chunk(3, dim=-1))
        turn = torch.cos(torch.arange(here.shape[1]).float())[:, None]
        return F.scaled_dot_product_attention(q * turn, k * turn, v)


class TurnedCross(Attention):
    """Both sequences turned by the same angles: what they share is no sequence."""

    def forward(self, here: Tensor, there: Tensor | None = None) -> Tensor:
        assert there is not None
        turn = torch.cos(torch.arange(5).float())[:, None]
        q, k, v = split(self.q(here)) * turn, split(self.k(there)) * turn, split(self.v(there))
        return F.scaled_dot_product_attention(q, k, v)


class LowRank(nn.Module):
    """Queries and keys each through a narrow vector of their own (DeepSeek's latent attention)."""

    def __init__(self) -> None:
        super().__init__()
        self.q_down, self.kv_down, self.q_up, self.k_up = (nn.Linear(D, D) for _ in range(4))
        self.norm = nn.LayerNorm(D)

    def forward(self, here: Tensor) -> Tensor:
        latent = self.norm(self.kv_down(here))
        q, k = self.q_up(self.norm(self.q_down(here))), self.k_up(latent)
        return F.scaled_dot_product_attention(split(q), split(k), split(latent))


class TwoNorms(nn.Module):
    """Queries and keys normed apart, outside of the attention."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.attn = nn.LayerNorm(D), nn.LayerNorm(D), Attention()

    def forward(self, here: Tensor) -> Tensor:
        return self.attn(self.a(here), self.b(here))


class Inner(nn.Module):
    """The call in a submodule that gets queries and keys ready-made."""

    class Core(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v)

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.core = nn.Linear(D, D), nn.Linear(D, D), Inner.Core()

    def forward(self, here: Tensor, there: Tensor) -> Tensor:
        return self.core(split(self.q(here)), split(self.k(there)), split(there))


class Cached(Attention):
    """A step at a time, with a cache of its own: of a fixed size, or grown."""

    def __init__(self, fixed: bool) -> None:
        super().__init__()
        self.fixed, self.n = fixed, 0
        self.cache: Tensor
        self.register_buffer("cache", torch.zeros(2, HEADS, 8, D // HEADS), persistent=False)
        self.grown: Tensor | None = None

    def forward(self, here: Tensor, there: Tensor | None = None) -> Tensor:
        new = split(self.k(here))
        if self.fixed:
            self.cache[:, :, self.n : self.n + new.shape[2]] = new
            keys = self.cache[:, :, : self.n + new.shape[2]]
        else:
            keys = self.grown = new if self.grown is None else torch.cat([self.grown, new], dim=2)
        self.n += new.shape[2]
        return F.scaled_dot_product_attention(split(self.q(here)), keys, keys)


class KeptMemory(Attention):
    """Cross-attention that projects the memory once and keeps it."""

    kept: Tensor | None = None

    def forward(self, here: Tensor, there: Tensor | None = None) -> Tensor:
        if self.kept is None:
            assert there is not None
            self.kept = split(self.k(there))
        return F.scaled_dot_product_attention(split(self.q(here)), self.kept, self.kept)


class Both(nn.Module):
    """Self-attention and cross-attention called in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, here: Tensor, memory: Tensor) -> Tensor:
        for there in (None, memory):
            q, k = split(self.q(here)), split(self.k(here if there is None else there))
            here = here + merged(F.scaled_dot_product_attention(q, k, k))
        return here


class Plain(nn.Module):
    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, k)


class Latents(Attention):
    """Learned queries that read a text (Perceiver), by themselves, or with the text and themselves as keys (Flamingo)."""

    def __init__(self, with_themselves: bool) -> None:
        super().__init__()
        self.latents, self.with_themselves = nn.Parameter(torch.randn(2, 3, D)), with_themselves

    def forward(self, here: Tensor, there: Tensor | None = None) -> Tensor:
        return super().forward(self.latents, torch.cat([here, self.latents], 1) if self.with_themselves else here)


@pytest.mark.parametrize(
    ("make", "given", "expected"),
    [
        (Attention, (x(),), ["attn"]),
        (Attention, (x(), x(5, 1)), ["cross_attn"]),
        (Attention, (x(), x(7, 1)), ["cross_attn"]),
        (Fused, (x(),), ["attn"]),
        (TurnedCross, (x(), x(5, 1)), ["cross_attn"]),
        (LowRank, (x(),), ["attn"]),
        (TwoNorms, (x(),), ["attn"]),
        (Inner, (x(), x(5, 1)), ["cross_attn"]),
        (Inner, (y := x(), y), ["attn"]),
        (Both, (x(), x(5, 1)), ["attn", "cross_attn"]),
        (lambda: Latents(False), (x(),), ["cross_attn"]),
        (lambda: Latents(True), (x(),), ["unknown"]),  # neither the one nor the other
        (Plain, (q := split(x()), q), ["attn"]),
        (Plain, (q[:, :, -1:], q), ["attn"]),  # one row of them
        (Plain, (q, split(x(5, 1))), ["unknown"]),  # no one can say where these come from
        (Plain, (q, q.clone()), ["unknown"]),
    ],
)
def test_one_sequence_or_two(make: Callable[[], nn.Module], given: tuple[Tensor, ...], expected: list[str]) -> None:
    assert sites(make(), *given) == expected


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_torchs_own_attention_is_what_it_is_called_with(batch_first: bool, weights: bool) -> None:
    def called(*given: Tensor, **settings: Any) -> list[str]:
        module = nn.MultiheadAttention(D, HEADS, batch_first=batch_first, **settings)
        return sites(module, *given, need_weights=weights)

    a, b = x(), x(5, 1)
    assert called(a, a, a) == ["attn"]
    assert called(a, b, b) == ["cross_attn"]
    assert called(a, a, b) == ["attn"]  # DETR: positions on queries and keys, and not on values
    assert called(a, a.clone(), a.clone()) == ["attn"]
    assert called(a, a, a, add_zero_attn=True) == called(a, a, a, add_bias_kv=True) == ["attn"]  # 5 queries, 6 keys
    last = a[:, -1:] if batch_first else a[-1:]
    assert called(last, a, a) == ["attn"]  # a step of a cache
    assert called(x(), x(7, 1) if batch_first else x(), x(7, 1) if batch_first else x()) == [
        "cross_attn" if batch_first else "attn"
    ]


def test_steps_with_a_cache_are_self_attention() -> None:
    for fixed in (False, True):
        module = Cached(fixed)
        with torch.no_grad(), core.capture(module) as records:
            module(x(5))
            module(x(1, 1))
            module(x(1, 2))
        assert [(r.site, r.n_query, r.n_key, r.call) for r in records] == [
            ("attn", 5, 5, 0),
            ("attn", 1, 6, 1),
            ("attn", 1, 7, 2),
        ]


def test_keys_that_were_kept_are_what_they_were_when_they_were_made() -> None:
    module = KeptMemory()
    with torch.no_grad(), core.capture(module) as records:
        module(x(), x(7, 1))
        module(x(1, 2))
    assert [record.site for record in records] == ["cross_attn", "cross_attn"]
    with torch.no_grad(), core.capture(module) as records:
        module(x(1, 2))
    assert [record.site for record in records] == ["unknown"]  # made before the capture began


# which layer


class Looped(nn.Module):
    """One block, run several times: as many layers with the same weights."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.blocks, self.times = nn.ModuleList([Block()]), times

    def forward(self, here: Tensor) -> Tensor:
        for _ in range(self.times):
            here = self.blocks[0](here)
        return here


class Twice(nn.Module):
    """A stack that reads one text and then another."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.stack = nn.ModuleList(Block() for _ in range(n))

    def forward(self, *texts: Tensor) -> list[Tensor]:
        found = []
        for here in texts:
            for block in self.stack:
                here = block(here)
            found.append(here)
        return found


class Stages(nn.Module):
    """Blocks in blocks: no single number."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(nn.Sequential(Block(), Block()) for _ in range(2))

    def forward(self, here: Tensor) -> Tensor:
        for stage in self.stages:
            here = stage(here)
        return here


class Heads(nn.Module):
    """A list of single heads, as first lessons have it."""

    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k = nn.Linear(D, 8), nn.Linear(D, 8)

        def forward(self, here: Tensor) -> Tensor:
            k = self.k(here)
            return F.scaled_dot_product_attention(self.q(here)[:, None], k[:, None], k[:, None])[:, 0]

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Heads.Head() for _ in range(2))

    def forward(self, here: Tensor) -> Tensor:
        return torch.cat([head(here) for head in self.heads], -1)


class Unnumbered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Block(), Block()

    def forward(self, here: Tensor) -> Tensor:
        return self.second(self.first(here))


def test_layers_are_numbered_as_the_module_numbers_them() -> None:
    assert layers(nn.Sequential(*(Block() for _ in range(3))), x()) == [0, 1, 2]
    assert layers(nn.Sequential(nn.Linear(D, D), Block(), Block(), nn.LayerNorm(D)), x()) == [0, 1]
    assert layers(nn.Sequential(nn.Linear(D, D), Block(), nn.LayerNorm(D)), x()) == [None]
    assert layers(nn.TransformerEncoder(nn.TransformerEncoderLayer(D, HEADS, batch_first=True), 3), x()) == [0, 1, 2]
    transformer = nn.Transformer(D, HEADS, 1, 2, batch_first=True)
    assert layers(transformer, x(7), x(5, 1)) == [0, 0, 0, 1, 1]
    assert layers(nn.Sequential(*(Heads() for _ in range(2))), x()) == [0, 0, 1, 1]


def test_layers_of_shared_weights_are_counted() -> None:
    assert layers(Looped(3), x()) == [0, 1, 2]
    assert layers(nn.Sequential(*[Block()] * 3), x()) == [0, 1, 2]
    a, b = Block(), Block()
    found = places(nn.Sequential(a, b, a, b), x())
    assert [(layer, call) for _, _, layer, call in found] == [(0, 0), (1, 0), (2, 1), (3, 1)]


def test_layers_that_nothing_numbers_are_unknown() -> None:
    assert layers(nn.MultiheadAttention(D, HEADS), *[x()] * 3, need_weights=False) == [None]
    assert layers(Unnumbered(), x()) == [None, None]
    assert layers(Stages(), x()) == [None] * 4
    assert layers(Heads(), x()) == [None, None]  # two heads, or two layers of one
    assert layers(Twice(1), x(), x(5, 1)) == [0, None]  # the same layer once more, or the next one


def test_two_texts_through_one_stack_are_two_calls_of_each_layer() -> None:
    found = places(Twice(2), x(), x(5, 1))
    assert [(layer, call) for _, _, layer, call in found] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    found = places(nn.Sequential(Both2(), Both2()), x())
    assert [(name, layer, call) for name, _, layer, call in found] == [
        ("0", 0, 0),
        ("0", 0, 1),
        ("1", 1, 0),
        ("1", 1, 1),
    ]


class Both2(Both):
    """Two calls in one module, of one layer."""

    def forward(self, here: Tensor, memory: Tensor | None = None) -> Tensor:
        return super().forward(here, here)


# published models


def tiny(kind: type, config: type, **sizes: Any) -> Any:
    torch.manual_seed(0)
    model = kind(config(vocab_size=99, **sizes)).eval()
    model.set_attn_implementation("sdpa")
    return model


LLAMA: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "eos_token_id": None,
}
GPT2: dict[str, Any] = {
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 200,
    "bos_token_id": 1,
    "eos_token_id": None,
}
T5: dict[str, Any] = {
    "d_model": 32,
    "d_kv": 8,
    "num_heads": 4,
    "num_layers": 2,
    "d_ff": 48,
    "decoder_start_token_id": 0,
    "eos_token_id": None,
}
BART: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
}
BERT: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
ALBERT: dict[str, Any] = BERT | {"embedding_size": 16, "num_hidden_layers": 6}
WRITING: dict[str, Any] = {"do_sample": False, "pad_token_id": 0}


@pytest.mark.parametrize("kind", ["t5", "bart", "bert pair"])
def test_encoder_decoders_with_texts_of_one_length(kind: str) -> None:
    if kind == "bert pair":
        both = hf.EncoderDecoderConfig.from_encoder_decoder_configs(hf.BertConfig(**BERT), hf.BertConfig(**BERT))
        torch.manual_seed(0)
        model: Any = hf.EncoderDecoderModel(both).eval()
    elif kind == "t5":
        model = tiny(hf.T5ForConditionalGeneration, hf.T5Config, **T5)
    else:
        model = tiny(hf.BartForConditionalGeneration, hf.BartConfig, **BART)
    found = places(model, input_ids=IDS, decoder_input_ids=OTHER)
    # The same text on both sides is still two sequences.
    assert [one[1] for one in found] == sites(model, input_ids=IDS, decoder_input_ids=IDS.clone())
    assert [(site, layer) for _, site, layer, _ in found] == [
        ("attn", 0),
        ("attn", 1),
        ("attn", 0),
        ("cross_attn", 0),
        ("attn", 1),
        ("cross_attn", 1),
    ]


def test_shared_layers_of_albert() -> None:
    assert layers(tiny(hf.AlbertModel, hf.AlbertConfig, **ALBERT), IDS) == [0, 1, 2, 3, 4, 5]
    grouped = tiny(hf.AlbertModel, hf.AlbertConfig, **ALBERT, num_hidden_groups=2)
    assert layers(grouped, IDS) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("gpt2", {}),
        ("gpt2", {"num_beams": 2}),
        ("gpt2", {"cache_implementation": "static"}),
        ("llama", {}),
        ("mistral", {}),
        ("bart", {"num_beams": 2}),
        ("t5", {}),
    ],
)
def test_every_step_of_generate_is_placed(kind: str, settings: dict[str, Any]) -> None:
    make = {
        "gpt2": lambda: tiny(hf.GPT2LMHeadModel, hf.GPT2Config, **GPT2),
        "llama": lambda: tiny(hf.LlamaForCausalLM, hf.LlamaConfig, **LLAMA),
        "mistral": lambda: tiny(hf.MistralForCausalLM, hf.MistralConfig, **LLAMA, sliding_window=3),
        "bart": lambda: tiny(hf.BartForConditionalGeneration, hf.BartConfig, **BART),
        "t5": lambda: tiny(hf.T5ForConditionalGeneration, hf.T5Config, **T5),
    }
    model = make[kind]()
    with torch.no_grad(), core.capture(model) as records:
        model.generate(IDS, max_new_tokens=4, **(settings if kind in ("bart", "t5") else settings | WRITING))
    own, cross = (("attn", 0), ("attn", 1)), (("attn", 0), ("cross_attn", 0), ("attn", 1), ("cross_attn", 1))
    steps = 2 * own if kind not in ("bart", "t5") else own + cross
    assert [(record.site, record.layer) for record in records][: len(steps)] == list(steps)
    assert {record.site for record in records} == {site for site, _ in steps}
    assert [record.layer for record in records if record.name == records[-1].name] == [1] * (records[-1].call + 1)
    assert [record.call for record in records if record.name == records[-1].name] == list(range(records[-1].call + 1))


def test_padded_steps_of_grouped_heads_have_their_heads() -> None:
    """transformers lays the heads of a group below each other for a step with a mask; the record has them side by side."""
    model = tiny(hf.LlamaForCausalLM, hf.LlamaConfig, **LLAMA)
    ids, mask = torch.tensor([[0, 0, 7, 8, 9], [5, 6, 7, 8, 9]]), torch.tensor([[0, 0, 1, 1, 1], [1] * 5])
    with torch.no_grad(), core.capture(model) as records:
        model.generate(ids, attention_mask=mask, max_new_tokens=3, **WRITING)
    model.set_attn_implementation("eager")
    out = model.generate(
        ids, attention_mask=mask, max_new_tokens=3, output_attentions=True, return_dict_in_generate=True, **WRITING
    )
    exact = [layer for step in out.attentions for layer in step]
    assert len(records) == len(exact) == 6
    for record, theirs in zip(records, exact, strict=True):
        real = mask.bool()[:, None, :, None].expand_as(theirs) if record.n_query > 1 else theirs >= 0
        assert (record.n_heads, record.n_kv_heads) == (4, 2 if record.n_query == 1 else 4)
        assert (record.patterns() - theirs)[real].abs().max() <= 1e-6
        assert record.of(0).why_masked(record.n_query - 1, 1) == "masked by the caller"
        assert all((record.of(text).receipt().fused_error or 0) <= 1e-6 for text in range(2))


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}, {"cache_implementation": "static"}], ids=str)
def test_generate_keeps_what_each_step_adds(settings: dict[str, Any]) -> None:
    model = tiny(hf.GPT2LMHeadModel, hf.GPT2Config, **GPT2)
    kept = []
    for n in (16, 64):
        with torch.no_grad(), core.capture(model) as records:
            model.generate(IDS, max_new_tokens=n, **WRITING, **settings)
        gc.collect()
        mine: dict[int, int] = {}
        for record in records:
            assert not isinstance(record.keys, Tensor)
            pools = [record.keys.pool, record.values.pool]  # type: ignore[attr-defined]
            mine |= {id(pool): pool.buffer.nbytes for pool in pools if pool.buffer is not None}
        rows = settings.get("num_beams", 1)
        cache = 2 * 2 * rows * (n + 5) * 32 * 4  # layers, keys and values, tokens, d_model, bytes
        assert sum(mine.values()) <= 2.5 * cache
        kept.append(sum(record.nbytes for record in records))
        last = records[-1]
        assert last.n_key >= n and last.batch_k.shape == (rows, 4, last.n_key, 8)
    assert kept[1] <= 6 * kept[0]  # four times the tokens


# nothing seen


class ByHand(Attention):
    def forward(self, here: Tensor, there: Tensor | None = None) -> Tensor:
        q, k = split(self.q(here)), split(self.k(here))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return merged((scores + 0.0).softmax(-1) @ k)


class Routed(nn.Module):
    """A softmax that is no attention: over the experts, and over the vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        self.attn, self.router = Attention(), nn.Linear(D, 3)

    def forward(self, here: Tensor) -> Tensor:
        return F.softmax(self.router(self.attn(here)), dim=-1)


def test_a_module_that_writes_attention_out_is_refused_with_its_place_and_the_cure() -> None:
    with pytest.raises(
        core.HeadlightError,
        match=r"Nothing was recorded: 0, 1 write attention out by hand.*attn_implementation=\"sdpa\"",
    ):
        places(nn.Sequential(ByHand(), ByHand()), x())
    with pytest.raises(
        core.HeadlightError, match=r"Nothing was recorded: this Linear ran without.*attn_implementation=\"sdpa\""
    ):
        places(nn.Linear(D, D), x())
    with (
        pytest.raises(core.HeadlightError, match="this Linear did not run in this thread while the capture was open"),
        core.capture(nn.Linear(2, 2)),
    ):
        pass
    with pytest.raises(ZeroDivisionError), core.capture(nn.Linear(2, 2)):  # what went wrong inside comes first
        raise ZeroDivisionError


def test_where_some_attentions_are_not_seen_a_warning_says_which() -> None:
    module = nn.Sequential(Attention(), ByHand(), Attention(), *(ByHand() for _ in range(10)))
    with pytest.warns(
        UserWarning, match=r"1, 3, 4 and 8 more write attention out by hand and are not among the 2 records"
    ):
        assert len(layers(module, x())) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(layers(Routed(), x())) == 1
        assert len(layers(nn.MultiheadAttention(D, HEADS), *[x()] * 3, need_weights=True)) == 1


@pytest.mark.parametrize(
    ("kind", "config", "sizes", "implementation", "says"),
    [
        (
            hf.LlamaForCausalLM,
            hf.LlamaConfig,
            LLAMA,
            "eager",
            'load it with attn_implementation="sdpa", or call set_attn',
        ),
        (
            hf.BloomForCausalLM,
            hf.BloomConfig,
            {"hidden_size": 32, "n_layer": 2, "n_head": 4},
            None,
            "does not have in transf",
        ),
        (
            hf.Gemma2ForCausalLM,
            hf.Gemma2Config,
            LLAMA | {"head_dim": 8},
            None,
            "Gemma2ForCausalLM does not have in transf",
        ),
    ],
)
def test_models_of_transformers_that_do_not_call_the_fused_function(
    kind: Any, config: Any, sizes: dict[str, Any], implementation: str | None, says: str
) -> None:
    torch.manual_seed(0)
    model = kind(config(vocab_size=99, **sizes)).eval()
    if implementation is not None:
        model.set_attn_implementation(implementation)
    with pytest.raises(core.HeadlightError, match=says), torch.no_grad(), core.capture(model):
        model(IDS)
