"""core.peers: the calls of bertviz and CircuitsVis, with their signatures and on their own examples."""

from __future__ import annotations

import inspect
import re
from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor

import core
from core import peers
from core.peers import head_view, model_view
from core.peers.views import Shown

# name=default in their order, as inspect.signature gives them for bertviz 1.4.1 and circuitsvis 1.43.3
SIGNATURES = {
    head_view: "attention=None, tokens=None, sentence_b_start=None, prettify_tokens=True, layer=None, heads=None, "
    "encoder_attention=None, decoder_attention=None, cross_attention=None, encoder_tokens=None, decoder_tokens=None, "
    "include_layers=None, html_action='view'",
    model_view: "attention=None, tokens=None, sentence_b_start=None, prettify_tokens=True, display_mode='dark', "
    "encoder_attention=None, decoder_attention=None, cross_attention=None, encoder_tokens=None, decoder_tokens=None, "
    "include_layers=None, include_heads=None, html_action='view'",
    peers.neuron_view.show: "model, model_type, tokenizer, sentence_a, sentence_b=None, display_mode='dark', layer=None, "
    "head=None, html_action='view'",
    peers.attention.attention_heads: "attention, tokens, attention_head_names=None, max_value=None, min_value=None, "
    "negative_color=None, positive_color=None, mask_upper_tri=None",
    peers.attention.attention_patterns: "tokens, attention",
    peers.attention.attention_pattern: "tokens, attention, max_value=None, min_value=None, negative_color=None, "
    "show_axis_labels=None, positive_color=None, mask_upper_tri=None",
    peers.tokens.colored_tokens: "tokens, values, min_value=None, max_value=None, negative_color=None, positive_color=None",
}
TEXT = ["The", "cat", "sat", "on", "the", "mat"]
N = len(TEXT)


class Words(HTMLParser):
    """The text of a page, and whether its elements close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("br", "meta", "rect", "path", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("br", "meta", "rect", "path", "input"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def words_of(shown: Shown | None) -> str:
    assert isinstance(shown, Shown)
    parser = Words()
    parser.feed(shown.data)
    assert not parser.open
    return " ".join("".join(parser.text).split())


def softmax(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__name__)
def test_the_signature_is_the_peers_own(function: Any) -> None:
    found = inspect.signature(function).parameters.values()
    written = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in found)
    assert written == SIGNATURES[function]
    assert {p.kind for p in found} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    assert re.match(r"(bertviz|circuitsvis)\.[\w.]+ \(1\.\d+\.\d+\)", function.__doc__)


# bertviz


@cache
def bert() -> tuple[Any, Any]:
    """A small BERT with random weights, and a tokenizer of a few words."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "mat", "lay", "rug", "a", ".", "dog"]
    vocabulary = {word: i for i, word in enumerate(words)}
    spelled = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    spelled.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    spelled.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = hf.PreTrainedTokenizerFast(
        tokenizer_object=spelled, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]"
    )
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "attn_implementation": "eager",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    config = hf.BertConfig(vocab_size=len(words), **sizes)
    return hf.BertModel(config).eval(), tokenizer


def test_bertviz_example() -> None:
    """README of bertviz, "Head view and model view", but for where model and tokenizer come from."""
    model, tokenizer = bert()
    input_text = "the cat sat on the mat"
    inputs = tokenizer.encode(input_text, return_tensors="pt")
    outputs = model(inputs, output_attentions=True)
    attention = outputs[
        -1
    ]  # as the example has it; where a version puts empty cross-attentions last, a sentence says so
    tokens = tokenizer.convert_ids_to_tokens(inputs[0])
    if not attention:
        with pytest.raises(core.HeadlightError, match=r"give outputs\.attentions"):
            head_view(attention, tokens)
        attention = outputs.attentions
    first = head_view(attention, tokens)
    assert isinstance(first, Shown) and "cat" in first.data
    shown = model_view(attention, tokens)
    assert isinstance(shown, Shown) and shown.run is not None
    assert shown.run.source.strings == ("[CLS]", "the", "cat", "sat", "on", "the", "mat", "[SEP]")
    torch.testing.assert_close(shown.run.attention[1].pattern(), attention[1][0].detach())
    assert "display_mode='dark'" in words_of(shown)


def test_bertviz_sentence_pair() -> None:
    """README of bertviz, "Specifying sentence pairs"."""
    model, tokenizer = bert()
    sentence_a, sentence_b = "the rabbit sat on the mat", "the cat lay on the rug"
    inputs = tokenizer(sentence_a, sentence_b, return_tensors="pt")
    outputs = model(**inputs, output_attentions=True)
    tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    sentence_b_start = inputs["token_type_ids"][0].tolist().index(1)
    assert f"the second sentence begins at token {sentence_b_start}" in words_of(
        head_view(outputs.attentions, tokens, sentence_b_start)
    )


def test_bertviz_encoder_and_decoder() -> None:
    """README of bertviz, "Encoder-decoder models (BART, T5, etc.)", and what it says of encoder, decoder or cross alone."""
    encoder, decoder, cross = [softmax(1, 4, 6, 6)] * 2, [softmax(1, 4, 3, 3)] * 2, [softmax(1, 4, 3, 6)] * 2
    target = ["<s>", "▁x", "▁y"]
    shown = head_view(
        encoder_attention=encoder,
        decoder_attention=decoder,
        cross_attention=cross,
        encoder_tokens=TEXT,
        decoder_tokens=target,
        html_action="return",
    )
    assert isinstance(shown, Shown) and shown.run is not None and len(shown.run.attention) == 6
    for only in (
        {"encoder_attention": encoder, "encoder_tokens": TEXT},
        {"decoder_attention": decoder, "decoder_tokens": target},
        {"cross_attention": cross, "encoder_tokens": TEXT, "decoder_tokens": target},
    ):
        some = model_view(**only, html_action="return")
        assert isinstance(some, Shown) and some.run is not None and len(some.run.attention) == 2


def test_bertviz_neuron_view() -> None:
    """README of bertviz, "Neuron view", with transformers' own model and tokenizer."""
    model, tokenizer = bert()
    shown = peers.neuron_view.show(model, "bert", tokenizer, "the cat sat", "a dog lay", layer=1, head=3)
    assert isinstance(shown, Shown) and shown.run is not None
    record = shown.run.attention.at(1)
    assert record.q.shape == (4, 9, 8) and record.receipt().fused_error is not None
    with torch.no_grad():
        theirs = model(**tokenizer("the cat sat", "a dog lay", return_tensors="pt"), output_attentions=True).attentions
    torch.testing.assert_close(record.pattern(), theirs[1][0], rtol=1e-4, atol=1e-5)
    alone = peers.neuron_view.show(model, "bert", tokenizer, "the cat sat")
    assert isinstance(alone, Shown) and "model_type='bert' is not needed" in words_of(alone)


def test_every_argument_is_followed_or_named() -> None:
    weights = [softmax(1, 4, N, N, seed=i) for i in range(3)]
    shown = head_view(weights, ["Ġa", "b", "Ġc", "d", "e", "f"], 3, False, heads=[2, 3], include_layers=[1, 2])
    assert isinstance(shown, Shown) and shown.run is not None
    assert shown.run.source.labels[0] == "Ġa"
    said = words_of(shown)
    assert "sentence_b_start=3" in said and "include_layers=[1, 2]" in said and "heads=[2, 3]" in said
    assert "include_heads=[1]" in words_of(model_view(weights, TEXT, include_heads=[1]))
    pretty = head_view(weights, ["Ġa", "b", "Ġc", "d", "e", "f"])
    assert isinstance(pretty, Shown) and pretty.run is not None and pretty.run.source.labels[0] == "a"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"attention": [softmax(1, 1, 2, 2)]}, "tokens is required beside attention"),
    ({}, "There is no attention"),
    ({"attention": [softmax(1, 1, 2, 2)], "tokens": ["a", "b"], "encoder_tokens": ["a"]}, "one or the other"),
    ({"encoder_attention": [softmax(1, 1, 2, 2)]}, "encoder_tokens is required beside encoder_attention."),
    ({"cross_attention": [softmax(1, 1, 2, 2)], "encoder_tokens": ["a", "b"]}, "decoder_tokens is required"),
    (
        {"attention": [softmax(1, 1, 2, 2)], "tokens": ["a", "b"], "layer": 4},
        "There is no layer 4: these weights are of",
    ),
    ({"attention": [softmax(1, 1, 2, 2)], "tokens": ["a", "b"], "heads": [4]}, "There is no head 4 in layer 0"),
    (
        {"attention": [softmax(1, 1, 2, 2)], "tokens": ["a", "b"], "html_action": "show"},
        "html_action is 'view' or 'return'",
    ),
    (
        {"attention": [softmax(1, 1, 2, 2)], "tokens": ["a"]},
        r"tokens has 1 tokens, and .* has the shape \[1, 1, 2, 2\]",
    ),
]


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED)
def test_what_does_not_go_together(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(core.HeadlightError, match=sentence):
        head_view(**arguments)
    assert issubclass(core.HeadlightError, ValueError), "which the peer raises"


def test_view_displays_in_a_notebook_and_return_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Display:
        seen: list[object] = []  # noqa: RUF012

        @classmethod
        def display(cls, what: object) -> None:
            cls.seen.append(what)

    class Notebook:
        display = Display

        @staticmethod
        def get_ipython() -> object:
            return object()

    weights = [softmax(1, 4, N, N)]
    assert isinstance(head_view(weights, TEXT), Shown)
    monkeypatch.setitem(__import__("sys").modules, "IPython", Notebook)
    assert head_view(weights, TEXT) is None and isinstance(Display.seen[0], Shown)
    returned = head_view(weights, TEXT, html_action="return")
    assert isinstance(returned, Shown) and returned.data == returned._repr_html_() == str(returned)
    assert len(Display.seen) == 1


# CircuitsVis


@pytest.mark.parametrize("as_array", [list, np.asarray, torch.tensor])
def test_circuitsvis_example(as_array: Any) -> None:
    """The example of CircuitsVis' documentation: random patterns."""
    cv = peers
    attention = as_array(np.random.default_rng(0).random((8, N, N), dtype=np.float32).tolist())
    shown = cv.attention.attention_heads(tokens=TEXT, attention=attention)
    assert shown.run is not None and shown.run.attention[0].n_heads == 8
    assert "Are they attention scores before the softmax?" in words_of(shown)
    assert cv.attention.attention_patterns(TEXT, attention).data == shown.data
    assert cv.attention.attention_pattern(TEXT, attention[0]).run is not None


def test_negative_numbers_are_purple() -> None:
    weights = torch.zeros(1, N, N)
    weights[0, 2, 1], weights[0, 4, 0] = -4.0, 2.0
    shown = peers.attention.attention_heads(weights, TEXT, positive_color="red", max_value=3)
    fills = re.findall(r'fill="(#\w+)" fill-opacity="([\d.]+)"', shown.data)
    assert sorted(fills) == [("#2f74b5", "0.50"), ("#86479c", "1.00")]
    assert "max_value=3, positive_color='red'" in words_of(shown)


def test_heads_have_their_names_and_later_tokens_are_said() -> None:
    shown = peers.attention.attention_heads(softmax(2, N, N), TEXT, ["L0H3", "L5H1"])
    said = words_of(shown)
    assert "0 is L0H3, 1 is L5H1" in said and "mask_upper_tri=True hides them" in said
    hidden = peers.attention.attention_heads(softmax(2, N, N), TEXT, mask_upper_tri=True)
    assert hidden.run is not None and float(hidden.run.attention[0].pattern().triu(1).abs().max()) == 0
    assert "mask_upper_tri" not in words_of(
        peers.attention.attention_heads(softmax(2, N, N), TEXT, mask_upper_tri=False)
    )
    with pytest.raises(core.HeadlightError, match=r"1 names, and attention has the shape \[2, 6, 6\]"):
        peers.attention.attention_heads(softmax(2, N, N), TEXT, ["one"])
    with pytest.raises(core.HeadlightError, match=r"attention has the shape \[1, 2, 2, 6, 6\]"):
        peers.attention.attention_heads(softmax(1, 2, 2, N, N), TEXT)


def test_colored_tokens() -> None:
    """README of CircuitsVis: tokens=["My", "tokens"], values=[0.123, -0.226]."""
    shown = peers.tokens.colored_tokens(["My", "tokens"], [0.123, -0.226])
    assert [float(n) for n in re.findall(r'title="\w+: ([-\d.]+)"', shown.data)] == [0.123, -0.226]
    colours = re.findall(r"background:(#\w{6})(\w\w)", shown.data)
    assert [colour for colour, _ in colours] == ["#2f74b5", "#86479c"]
    assert int(colours[0][1], 16) / int(colours[1][1], 16) == pytest.approx(0.123 / 0.226, abs=0.01)
    assert "0 My 0.123" in re.sub(r"<[^>]*>", " ", shown.data).replace("  ", " ")
    assert words_of(shown).startswith("Mytokens")


@pytest.mark.parametrize(
    ("tokens", "values", "sentence"),
    [
        (["a", "b"], [1.0], r"There are 2 tokens, and values have the shape \[1\]"),
        ([], [1.0], r"There are 0 tokens, and values have the shape \[1\]"),
        (["a"], torch.ones(1, 1), r"values have the shape \[1, 1\]"),
        (["a"], None, "of the type NoneType"),
    ],
)
def test_tokens_and_values_go_together(tokens: list[str], values: Any, sentence: str) -> None:
    with pytest.raises(core.HeadlightError, match=sentence):
        peers.tokens.colored_tokens(tokens, values)


def test_scale_of_colored_tokens() -> None:
    def depths(*arguments: Any, **options: Any) -> list[int]:
        return [
            int(x, 16)
            for x in re.findall(r"background:#\w{6}(\w\w)", peers.tokens.colored_tokens(*arguments, **options).data)
        ]

    half, full = depths(["a", "b"], [1.0, 2.0])
    assert full == 2 * half + 1 or full == 2 * half
    assert depths(["a"], [1.0], max_value=2.0) == [half]
    assert depths(["a"], [-1.0], min_value=-2.0) == [half]
    assert depths(["a"], [9.0], max_value=2.0) == [full], "no more than full"
    assert depths(["a", "b"], [0.0, 0.0]) == [0, 0]
    assert depths(["a", "b"], [torch.nan, 1.0]) == [0, full]


def test_text_is_never_markup() -> None:
    hostile = "<script>alert(1)</script>\"'&"
    for data in (
        peers.tokens.colored_tokens([hostile], [1.0]).data,
        peers.attention.attention_heads(torch.ones(1, 1, 1), [hostile]).data,
        peers.attention.attention_heads(torch.ones(1, 1, 1), ["a"], [hostile], negative_color=hostile).data,
    ):
        assert "<script>alert" not in data


def test_a_run_of_a_wrapped_model_has_its_page() -> None:
    model, tokenizer = bert()
    shown = peers.neuron_view.show(model, "bert", tokenizer, "the cat sat", layer=1, head=2)
    assert isinstance(shown, Shown) and "srcdoc=" in shown.data
