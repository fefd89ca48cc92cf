"""Edits as text: what is written is read back, what is fuzzed is refused with a sentence, and a new kind is one class."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, cast
from urllib.parse import parse_qs, quote, urlencode

import pytest

import core
from core.checkpoints import Loaded
from core.edits import KINDS, Edit, InterventionError, edit_text, from_text, to_text
from core.edits import fields as field_kinds
from core.edits.edit import kinds_of, may_be_none
from core.run.request import Request

EXAMPLES = {
    core.edits.Ablate("decoder", 0, 5): "ablate_decoder_L0_H5",
    core.edits.Ablate("decoder", 0, 5, "cross_attn", to="mean"): "ablate_decoder_L0_H5_cross_mean",
    core.edits.ScaleHead(-0.5, "encoder", 11, 2): "scale_-0.5_encoder_L11_H2",
    core.edits.EditMask("decoder", 3, cells=[(11, 3), (11, 10)], head=6): "mask_decoder_L3_H6_11x3.11x10",
    core.edits.EditMask(None, 3, range(4, 8), [2, *range(5, 10)], True): "mask_L3_q4-7_k2.5-9_allow",
    core.edits.EditMask(keys=5): "mask_k5",
    core.edits.EditMask(distances=(1, None)): "mask_d1..",
    core.edits.EditMask(distances=(-3, 3), allowed=True): "mask_allow_d-3..3",
    core.edits.AsPadding(range(3, 6)): "aspadding_t3-5",
    core.edits.SetMask("causal"): "setmask_causal",
    core.edits.SetMask("window", 8, layer=2): "setmask_window_8_L2",
    core.edits.Window(8, head=1): "window_8_H1",
    core.edits.DropCausalMask(1): "nocausal_L1",
    core.edits.DropPadding(): "nopadding",
    core.edits.MaskAfterSoftmax("encoder"): "aftersoftmax_encoder",
    core.edits.MaskFill(): "fill",
    core.edits.MaskFill(-5e4): "fill_-50000",
    core.edits.NoScale(site="attn"): "noscale_self",
    core.edits.Temperature(2): "temperature_2",
    core.edits.Temperature(1e-20): "temperature_1e-20",
    core.edits.Temperature(1e300): "temperature_1e300",
    core.edits.DropPositions("encoder"): "nopositions_encoder",
    core.edits.ShufflePositions(3): "shuffle_3",
    core.edits.SetPositions([0, 8, *range(2, 8), 1, 9]): "positions_0.8.2-7.1.9",
    core.edits.ShiftPositions(-4): "shift_-4",
    core.edits.SwapWords(1, 3): "swap_a1_b3",
    core.edits.SwapWords(0, 12, "decoder"): "swap_a0_b12_decoder",
}


def test_text_is_short_and_readable() -> None:
    for edit, text in EXAMPLES.items():
        assert to_text([edit]) == text
        assert from_text(text) == (edit,)
    assert {type(edit) for edit in EXAMPLES} == set(KINDS.values()), "every kind has an example"
    assert to_text([]) == "" and from_text("") == ()


def random_value(kind: Any, chance: random.Random) -> Any:
    """Some value that a field of this kind may hold."""

    def spans() -> list[Any]:
        starts = [chance.randrange(40) for _ in range(chance.randint(1, 4))]
        return [chance.choice([start, range(start, start + chance.randint(1, 9))]) for start in starts]

    match kind:
        case field_kinds.Word():
            return chance.choice(list(kind.words.values()))
        case field_kinds.Whole():
            return chance.randint(kind.lowest, chance.choice([3, 100, 10**9]) + max(kind.lowest, 0))
        case field_kinds.Number():
            size = chance.choice([0.5, 3, chance.random(), 10 ** chance.uniform(-300, 300)])
            return size if kind.above == 0 or chance.random() < 0.5 else -size
        case field_kinds.Several():
            return spans()
        case field_kinds.SingleCells():
            return [(chance.randrange(40), part) for part in spans()]
        case field_kinds.Distances():
            ends = sorted(chance.randint(-40, 40) for _ in range(2))
            return chance.choice([tuple(ends), (None, ends[0]), (ends[1], None)])
        case field_kinds.Places():
            return chance.choice([list(range(9)), [chance.randrange(30) for _ in range(9)], [range(4), 7, range(2)]])
    raise AssertionError(f"no values for {kind}: add them here")


def random_edit(chance: random.Random) -> Edit:
    while True:
        kind = chance.choice(list(KINDS.values()))
        needed = {field.name for field in fields(kind) if repr(field.default).startswith("<dataclasses._MISSING")}
        values = {
            name: random_value(of, chance)
            for name, of in kinds_of(kind).items()
            if name in needed or chance.random() < 0.4
        }
        try:
            return kind(**values)
        except InterventionError as error:  # some fields do not go together, and the sentence says which
            assert re.search("says which cells|SetMask has a size|SwapWords has the place", str(error))


def test_every_edit_is_read_back_as_it_was_written() -> None:
    chance = random.Random(0)
    seen = set()
    for _ in range(1500):
        edits = tuple(random_edit(chance) for _ in range(chance.randint(1, 4)))
        seen.update(type(edit) for edit in edits)
        text = to_text(edits)
        assert from_text(text) == edits
        assert re.fullmatch(r"[A-Za-z0-9._~-]+", text)
        assert quote(text, safe="") == text, "stands in an address as it is"
        assert parse_qs(urlencode({"edits": text}))["edits"] == [text]
        for edit in edits:
            assert eval(f"core.edits.{edit!r}", {"core": core, "range": range}) == edit, "the call in an exported snippet"
            assert hash(edit) == hash(replace(edit))
    assert seen == set(KINDS.values())


def test_equal_edits_have_one_text_however_they_were_spelled() -> None:
    same = [
        core.edits.EditMask(keys=[5, 3, 4, 4]),
        core.edits.EditMask(keys=range(3, 6)),
        core.edits.EditMask(keys=(range(3, 5), range(4, 6))),
        core.edits.EditMask(keys=range(5, 2, -1)),
    ]
    assert len({to_text([edit]) for edit in same}) == len(set(same)) == 1
    cells = [(1, 2), (1, 3), (0, range(1, 3)), (0, 2)]
    assert core.edits.EditMask(cells=cells) == core.edits.EditMask(cells=[(0, range(1, 3)), (1, range(2, 4))])
    one, other = (Request("m", ("a",), interventions=(edit,)) for edit in same[:2])
    assert one.key == other.key
    assert one.key != Request("m", ("a",), interventions=(core.edits.EditMask(keys=range(3, 7)),)).key


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("abalte_decoder_L0_H5", "no edit “abalte”. There are: ablate, "),
        ("ablate_decoder_L0", "does not say its head. It takes stack as encoder or decoder, layer as L3, head as H3"),
        ("ablate_decoder_L0_H5_H6", "says twice what its head is"),
        ("ablate_decoder_L0_H5_loud", "“loud” says nothing of ablate. It takes"),
        ("ablate_decoder_L-1_H5", "layer of Ablate must be a whole number from 0"),
        ("ablate_decoder_L٣_H5", "says nothing"),
        ("temperature_0", "above 0"),
        ("temperature_1e999", "finite"),
        ("temperature_nan", "says nothing"),
        ("temperature", "does not say its value"),
        ("mask", "says which cells"),
        ("mask_k5_3x3", "says which cells"),
        ("mask_k5-3", "goes from 5 to 3"),
        ("mask_k5-", "is no list of places"),
        ("mask_k5..7", "is no list of places"),
        ("mask_3x", "says nothing of mask"),
        ("mask_3x4x5", "is no list of places"),
        ("mask_d..", "one may be None"),
        ("mask_d3..1", "lower one first"),
        ("mask_k9999999999", "from 0 to 1,000,000,000"),
        ("positions_0-999999999", "more than 1,048,576"),
        ("window_0", "from 1 to"),
        ("setmask_window", "has a size"),
        ("~", "no edit “”"),
        ("ablate_decoder_L0_H5~", "no edit “”"),
        ("__class__", "no edit “”"),
        ("<script>alert(1)</script>", "no edit “<script>alert(1)</script>”"),
        ("x" * 4001, "4,001 characters, and 4,000 is the most"),
        ("~".join(["fill"] * 501), "501 edits, and 500 is the most"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(text: str, words: str) -> None:
    with pytest.raises(InterventionError, match=re.escape(words)) as refused:
        from_text(text)
    assert len(str(refused.value)) < 700


def test_fuzzed_text_is_read_or_refused_and_never_anything_else(tiny: Callable[..., Loaded]) -> None:
    chance, refused = random.Random(1), 0
    loaded = tiny()
    letters = "abdefhklmLHqkt0123456789.-_~x+e \n\0é٣😀'\"<"
    for i in range(3000):
        text = "~".join(edit_text(random_edit(chance)) for _ in range(chance.randint(1, 3)))
        for _ in range(chance.randint(1, 6)):
            at, what = chance.randrange(len(text) + 1), chance.random()
            new = chance.choice(letters) if what < 0.7 else ""
            text = text[:at] + new + text[at + (what > 0.4) :]
        try:
            edits = from_text(text)
            assert from_text(to_text(edits)) == edits
            if i % 10 == 0:
                core.trace(loaded, ids=[1, 2, 3], interventions=edits)
        except (InterventionError, core.errors.TooLarge) as error:
            assert str(error).rstrip().endswith((".", ")"))
            refused += 1
    assert 500 < refused < 2990


def test_what_no_link_can_hold_is_refused() -> None:
    class Own:
        def hooks(self, model: Any) -> dict[str, Any]:
            return {}

    with pytest.raises(InterventionError, match="Own cannot be written as text"):
        to_text([Own()])
    scattered = core.edits.EditMask(cells=[(i, 2 * j) for i in range(40) for j in range(30)])
    with pytest.raises(InterventionError, match="characters; a link holds"):
        to_text([scattered])
    assert Request("m", ("a",), interventions=(scattered,)).key, "but it can be run"


def test_a_new_kind_is_one_class() -> None:
    @dataclass(frozen=True, repr=False)
    class Loud(Edit, word="loud"):
        head: field_kinds.OneHead
        by: Annotated[float, field_kinds.Number()] = 2.0

    # A class in a function knows its annotations only here.
    Loud.__annotations__ = {"head": field_kinds.OneHead, "by": Annotated[float, field_kinds.Number()]}
    try:
        assert from_text("loud_H3_0.5") == (Loud(3, 0.5),)
        assert to_text([Loud(3)]) == "loud_H3"
        assert not may_be_none(Loud, "by")
        with pytest.raises(InterventionError, match="head of Loud must be a whole number"):
            cast(Any, Loud)("third")
    finally:
        del KINDS["loud"]
