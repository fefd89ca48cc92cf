"""The steps of the lessons: that what each asks about opens, what is true of it, and what is said to an answer."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise
from typing import Any, cast, get_args

import pytest
from streamlit.testing.v1 import AppTest

from app.attention import params as attention_params
from app.attention import picture
from app.kit import params as kit_params
from app.rooms.lessons import races, truths, words
from app.rooms.lessons.checks import check, number_words
from app.rooms.lessons.step import Candidate, Shown, Step, Truth, Unanswerable
from app.rooms.lessons.steps import LESSONS, true_of
from app.rooms.masks import sheet
from app.rooms.train import records
from app.session import past_trainings
from app.session import service as session_service
from app.session.words import EXAMPLE
from app.shell import registry
from app.transport import messages
from core.errors import HeadlightError
from core.learn import watched_training
from core.learn.watched_training import Spec
from core.model.config import Position
from core.plan import PRESETS, kv_cache
from core.plan.training import lesson_terms
from core.run.request import Request
from core.service import Facts, FrameFacts, TrainingUpdate
from tests.app.served import ask

STEPS = {f"{i}.{k}": step for i, lesson in enumerate(LESSONS, 1) for k, step in enumerate(lesson.steps, 1)}
TRAINED = ("4.3", "5.3", "5.4", "5.5")  # that are about a training
SIZES = ("memory", "compute", "shapes")


@cache
def run(model: str, text: str) -> Facts:
    """A run as the room has it on the screen."""
    service = session_service.service()

    async def facts() -> Facts:
        key = await service.submit(Request(model, (text,)))
        async for _ in service.follow(key):
            pass
        return await service.facts(key)

    return ask(facts())


def shown(step: Step, text: str = "", model: str = "", **values: str) -> Shown:
    """What is on the screen at a step, with the visitor's own text, model and changes."""
    facts = run(model or step.model, text or step.sentence) if step.model else None
    return Shown(session_service.service(), {**step.state, **values}, facts, text or step.sentence)


def found(name: str, text: str = "", model: str = "", **values: str) -> Truth | Unanswerable:
    return ask(true_of(STEPS[name], shown(STEPS[name], text, model, **values)))


def truth(name: str, text: str = "", model: str = "", **values: str) -> Truth:
    is_so = found(name, text, model, **values)
    assert isinstance(is_so, Truth), is_so
    return is_so


def sentence(name: str, text: str = "", model: str = "", **values: str) -> str:
    """Why what is on the screen cannot answer; the step's own text is offered with it."""
    why = found(name, text, model, **values)
    assert isinstance(why, Unanswerable)
    assert (why.model, why.text) == (STEPS[name].model, STEPS[name].sentence)
    return why.sentence


# the table


def test_the_lessons_have_52_steps_in_seven() -> None:
    """Steps that were looked at are kept by their place in the table: new lessons and steps come at its end."""
    assert [len(lesson.steps) for lesson in LESSONS] == [8, 7, 8, 7, 9, 7, 6]
    assert len({step.title for step in STEPS.values()}) == 52


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_short_and_says_where_it_comes_from(name: str) -> None:
    step = STEPS[name]
    assert 8 <= len(step.text.split()) <= 40
    assert step.source and step.question.endswith(("?", "."))
    assert step.cover == step.cover.strip().lower()


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if step.sentence])
def test_a_step_opens_on_the_visitors_own_text_and_names_no_word_of_ours(name: str) -> None:
    """A truth has the words of the run in its question; title, text and question of a step stand over any run."""
    step = STEPS[name]
    quoted = re.findall("“([^”]+)”", f"{step.title} {step.text} {step.question}")
    assert not {word.lower() for word in quoted if " " not in word} & set(step.sentence.lower().split())


def test_every_row_of_the_plan_is_on_the_path() -> None:
    rows = {row for step in STEPS.values() for row in step.rows}
    counts = {"A": 7, "B": 6, "C": 6, "D": 7, "E": 11, "F": 23}
    assert rows == {f"{part}{i}" for part, n in counts.items() for i in range(1, n + 1)}


# what a step opens


def notes(step: Step) -> list[str]:
    """A sentence for each parameter of a step that its room does not follow."""
    facts = run(step.model, step.sentence) if step.model else None
    if step.room == "explore":
        assert facts is not None
        header = picture.outline(facts)
        shown = attention_params.Shown(header, step.state)
        _, found = kit_params.read(attention_params.PARAMS, shown, step.state)
        return [*found, *(step.state.keys() - {param.name for param in attention_params.PARAMS})]
    params = next(room for room in registry.rooms() if room.id == step.room).params
    of: Any = ask(sheet.opened(session_service.service(), cast(Facts, facts))).shown if step.room == "masks" else facts
    values, found = kit_params.read(params, of, step.state)
    assert {name: values.get(name) for name in step.state} == dict(step.state)
    return found


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if step.room not in SIZES])
def test_a_room_follows_every_parameter_of_its_steps(name: str) -> None:
    assert not notes(STEPS[name])


def memory_page() -> None:
    from app.rooms.memory import view
    from app.session import chosen

    chosen.begin()
    view.show()


def compute_page() -> None:
    from app.rooms.compute import view
    from app.session import chosen

    chosen.begin()
    view.show()


def shapes_page() -> None:
    from app.rooms.shapes import view
    from app.session import chosen

    chosen.begin()
    view.show()


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if step.room in SIZES and not step.model])
def test_a_room_of_sizes_opens_as_its_step_asks(name: str) -> None:
    """No sentence says that a link asks for something in vain, and what was asked for is still in the address."""
    step = STEPS[name]
    page = {"memory": memory_page, "compute": compute_page, "shapes": shapes_page}[step.room]
    app = AppTest.from_function(page, default_timeout=60)
    app.query_params.update(step.state)
    app.run()
    assert not app.exception
    said = "\n".join(item.value for item in app.text)
    assert "link" not in said, said
    shown = {name: text if isinstance(text, str) else text[0] for name, text in app.query_params.items()}
    assert {key: shown[key] for key in step.state} == dict(step.state)


# what is true


@pytest.mark.thorough(but=16)
@pytest.mark.parametrize("name", [name for name in STEPS if name not in TRAINED])
def test_the_default_text_has_one_best_answer(name: str) -> None:
    """Or all that tie; and the right answer is right, the others are not, and each gets its words."""
    is_so = truth(name)
    assert is_so.kind == STEPS[name].kind
    assert "{" not in is_so.question + is_so.reason + is_so.footer
    if is_so.kind == "point":
        values = [candidate.value for candidate in is_so.candidates]
        assert values == sorted(values, reverse=True)
        assert 1 <= is_so.best < len(values)
        assert is_so.all_of or is_so.best == 1
        assert len({candidate.place for candidate in is_so.candidates}) == len(values)
        right: Any = [list(one.place) for one in is_so.candidates[: is_so.best]]
        wrong: Any = [list(is_so.candidates[-1].place)]
    elif is_so.kind == "drag":
        assert is_so.low <= is_so.number <= is_so.high
        assert is_so.step <= 2 * is_so.tolerance  # near enough is two steps away at most
        right, wrong = is_so.number, is_so.low if is_so.number - is_so.low > is_so.tolerance else is_so.high
    elif is_so.kind == "shape":
        assert set(is_so.axes) <= set(is_so.options) and len(set(is_so.options)) == len(is_so.options)
        right, wrong = list(is_so.axes), [is_so.options[0]] * (len(is_so.axes) + 1)
    else:
        assert is_so.right and len(is_so.right) < len(is_so.options)
        assert is_so.all_of or len(is_so.right) == 1
        right, wrong = list(is_so.right), [next(i for i in range(len(is_so.options)) if i not in is_so.right)]
    yes, no = check(is_so, right), check(is_so, wrong)
    assert yes.right and not no.right
    for checked in (yes, no):
        assert checked.true == yes.true and checked.words[-1] == is_so.footer
        assert is_so.reason in checked.words and all(line.strip() for line in checked.words)


def test_where_it_looks() -> None:
    is_so = truth("1.2")
    assert [(one.label, round(one.value, 3)) for one in is_so.candidates[:2]] == [("animal", 0.677), ("[CLS]", 0.102)]
    assert is_so.footer == "Checked against this run: layer 3, head 1, row 10."
    street = next(one for one in is_so.candidates if one.label == "street")
    said = check(is_so, [list(street.place)])
    assert said.words[:2] == ("You chose street: 5.0 %, rank 4 of 16.", "This head gives most to animal: 67.7 %.")
    said = check(is_so, [[2]])
    assert said.words[:2] == ("You chose animal: 67.7 %, rank 1 of 16.", "That is where it looks most.")


def test_the_visitors_own_sentence_is_asked_about() -> None:
    is_so = truth("1.2", EXAMPLE.replace("tired", "wide"))
    assert [one.label for one in is_so.candidates[:2]] == ["[CLS]", "animal"]
    assert round(is_so.candidates[0].value, 2) == 0.33
    is_so = truth("1.2", "The keys to the old cabinet are lost.", query="8")
    assert "“lost”" in is_so.question


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize(
    ("name", "number", "digits"),
    [("1.1", 0.3172, 4), ("1.4", 0.339, 3), ("2.6", 13.42, 2), ("5.2", 0.554, 3), ("3.5", 12.5, 3), ("3.6", 52.466, 3), ("3.7", 256, 3), ("3.8", 623, 0), ("4.5", 66.6, 1)],
)  # fmt: skip
def test_numbers(name: str, number: float, digits: int) -> None:
    assert round(truth(name).number, digits) == number


@pytest.mark.thorough(but=8)
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("1.1", ".3505 .2858 .3637 for this row of weights; its own code gives .3479 .3258 .3263"),
        ("1.3", "0.8808 and 0.1192"),
        ("1.4", "2.30 bits"),
        ("3.5", "30.566 MiB"),
        ("3.5", "183.4 MiB"),
        ("3.7", "× 104.9"),
        ("3.8", "By an upper bound 623 takes 8,573,400,064 bytes, 624 would take 8,591,663,104; by what is alive at once 703 fit, 704 do not. To run it alone: 1,950 tokens; with fused attention: 1,043."),
        ("3.8", "5,000 rows of positions, float32, adam, eager"),
        ("4.5", "The lesson says ~65 M; this class has 93,324,544."),
        ("4.5", "2,099,712 of 3,152,384"),
        ("4.5", "twice as wide as the stream the MLP would have 49.9 %, with one eight times as wide 80.0 %."),
        ("5.7", "18,874,368 numbers"),
        ("5.8", "4,718,592 FLOPs"),
        ("5.8", "Share of the card's arithmetic, this product alone: 0.652 % at a batch of 1, 19.9 % at 32; all of one token, with its cache: 0.652 % and 4.05 %."),
        ("5.9", "All that it knows of the text is one vector, and 20 steps back"),
        ("1.1", "= 0.3172."),
        ("2.2", "each about half as often"),
        ("5.2", "It gives “great” 11.0 %. Once that is written, its likeliest next word is “lake”: 5.0 %."),
        ("2.6", "√(10.9² + 6.2²) = 12.6"),
        ("2.6", "The longest vector is added by layer 4, MLP: 16.8."),
        ("6.1", "it adds up to 0. With −1e9 for −∞ it adds up to 1, 6.2 % for every key alike"),
        ("6.3", "10 of 15 keys of the source are padding."),
        ("6.3", "With the mask they get 0 %, without it"),
        ("6.4", "is 0.18 in Pre-LN, and without the residual connection 1.00, in Post-LN 1.00."),
        ("6.5", "3.02, 1.76, 1.72, 2.37, 2.08, 2.84"),
        ("6.7", "has length 1.00, the position’s √(512 ÷ 2) = 16.0"),
        ("7.1", "3,152,384 → 12,596,224"),
        ("7.2", "88.2 million: a word brings 512 numbers and its position as many, so that the stream is 1,024 wide"),
        ("7.3", "4 · 197,760 + 1,000 · 128 + 256 of the last norm = 919,296"),
        ("7.3", "at width 768: 108,460,032"),
        ("7.4", "4,831,838,208 FLOPs"),
        ("7.5", "The maps have 10.0 %, 64.0 %, 96.6 %."),
        ("7.6", "after 8,192: cache 25,167,360 bytes, weights 14,175,744"),
    ],
)  # fmt: skip
def test_figures_that_are_said(name: str, part: str) -> None:
    is_so = truth(name)
    assert part in " ".join((is_so.question, is_so.reason, is_so.slip, is_so.footer))


@pytest.mark.parametrize(
    ("name", "shape"),
    [("1.5", "4 3 2"), ("2.5", "384"), ("3.1", "1 12 16 32"), ("3.2", "32 8 50 64"), ("3.4", "1 12 100 100"), ("4.4", "16 1536")],
)  # fmt: skip
def test_shapes(name: str, shape: str) -> None:
    assert truth(name).axes == tuple(shape.split())


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("1.8", "K of head 1, number 1"),
        ("2.2", "the digit worth 1"),
        ("2.7", "layer 0, head 2"),
        ("4.2", "rennt"),
        ("4.6", "row 3"),
        ("5.1", "great"),
    ],
)
def test_what_is_pointed_at(name: str, label: str) -> None:
    assert truth(name).candidates[0].label == label


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("1.3", "0.88 v₁ + 0.12 v₂"),
        ("2.1", "Their rows and columns swap too, and no number changes"),
        ("2.3", "No: the higher the feature, the slower its wave"),
        ("2.4", "It is refused, and the text is kept"),
        ("4.1", "Q from the decoder, K and V from the encoder"),
        ("5.7", "2 · n · d · L"),
        ("5.8", "2 · m · k FLOPs, and it waits for memory"),
        ("5.9", "O(n²) + O(m²) + O(n · m)"),
        ("6.1", "Not a number: NaN"),
        ("6.2", "Some: those whose hidden scores are all above 0"),
        ("6.4", "no norms, without it"),
        ("6.5", "No: the later half is spread as widely, or more"),
        ("6.6", "They stay as they are, up to rounding"),
        ("6.7", "The position’s"),
        ("7.1", "Four times in each layer, twice in the embedding"),
        ("7.3", "919,296"),
        ("7.4", "2 · n · m · k FLOPs, and n · k numbers are written"),
        ("7.5", "In these products at 512, in the maps from 8,192 on"),
        ("7.6", "More of the weights after 1,024, more of the cache after 8,192"),
    ],
)
def test_quizzes(name: str, option: str) -> None:
    is_so = truth(name)
    assert [is_so.options[i] for i in is_so.right] == [option]


def test_what_is_trained_is_what_has_parameters() -> None:
    is_so = truth("4.7")
    assert [is_so.options[i] for i in is_so.right] == ["W_q", "W_k and W_v", "the embedding", "W₁ and W₂ of the MLP"]
    assert check(is_so, [3, 1, 0, 2]).right and not check(is_so, [0, 1]).right


def test_a_causal_row_and_what_a_late_mask_leaves_of_it() -> None:
    is_so = truth("1.6")
    assert [one.label for one in is_so.candidates[: is_so.best]] == ["<s>", "Once"]
    assert [one.label for one in truth("1.6", query="2").candidates[:3]] == ["<s>", "Once", "upon"]
    late = truth("1.7")
    assert 0 < late.number < 0.9
    assert "Nothing is hidden" in sentence("1.7", query="4")


def test_the_measured_difference_of_a_swap_is_said() -> None:
    assert "with positions 1.00" in truth("2.1").reason and "·10⁻" in truth("2.1").reason


def test_a_text_longer_than_the_table_is_answered_by_the_engine() -> None:
    assert truth("2.4").reason.startswith("This text is 513 tokens long, and MiniLM-L6 has positions for 512.")


def test_padding_is_right_only_where_padding_is_asked_for() -> None:
    is_so = truth("3.3")
    assert {one.label for one in is_so.candidates[: is_so.best]} == {"[PAD]"} and is_so.best == 10
    assert "longest of the batch" in sentence("3.3", sentence="0")
    for name in ("1.2", "1.6"):
        assert "[PAD]" not in [one.label for one in truth(name).candidates[: truth(name).best]]


def test_padding_is_nowhere_to_look() -> None:
    on = shown(STEPS["1.2"])
    assert on.facts is not None
    filled = tuple(label == "animal" for label in on.facts.source.labels)
    on = replace(on, facts=replace(on.facts, source=replace(on.facts.source, padding=filled)))
    is_so = ask(true_of(STEPS["1.2"], on))
    assert isinstance(is_so, Truth)
    assert "animal" not in [one.label for one in is_so.candidates]


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if step.kind == "drag" and name not in TRAINED])
def test_a_slider_does_not_rest_at_the_answer(name: str) -> None:
    """It rests in the middle: who touches nothing has not said what is so."""
    is_so = truth(name)
    assert not check(is_so, (is_so.low + is_so.high) / 2).right
    assert is_so.low < is_so.number < is_so.high


def test_no_answer_is_in_the_middle_of_its_slider() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        high = 10 ** chance.uniform(-1, 4)
        number = chance.uniform(0.02, 0.99) * high
        is_so = truths.dragging("", "", "", number, (0, high), tolerance=chance.uniform(0.001, 0.08) * number)
        assert not check(is_so, (is_so.low + is_so.high) / 2).right, is_so
        assert number + is_so.tolerance <= is_so.high * 1.001


@pytest.mark.parametrize(
    ("text", "model"),
    [("The keys to the old cabinet are lost.", "minilm"), ("Sie schläft.", "translator"), ("Tom ran to the park", "storyteller")],
)  # fmt: skip
def test_claims_are_tried_on_any_text(text: str, model: str) -> None:
    """Each has one answer that is right of that run, or a sentence why there is none."""
    for name in ("6.1", "6.2", "6.5", "6.6"):
        is_so = found(name, text, model)
        if isinstance(is_so, Truth):
            assert len(is_so.right) == 1, name
            assert "nan" not in is_so.reason and "inf" not in is_so.reason, is_so.reason


def test_rows_of_a_mask_that_multiplies_are_right_or_no_numbers() -> None:
    for head in range(4):
        is_so = truth("6.2", "Lily and Tom went to the old house by the sea", layer="2", head=str(head))
        right, of, lost = map(int, re.findall(r"(\d+) of (\d+); NaN: (\d+)", is_so.reason)[0])
        assert right + lost == of


# statements that hold for whatever is on the screen


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("name", ["4.7", "5.7", "5.8", "5.9", "7.1", "7.4", "7.5", "7.6"])
def test_of_every_model_that_is_counted_one_answer_is_right(name: str) -> None:
    """Or there is a sentence why none is; never two because two sizes of it happen to be equal, never an error of the planner."""
    for model in PRESETS:
        is_so = found(name, plan_model=model)
        if isinstance(is_so, Unanswerable):
            assert is_so.sentence.startswith(PRESETS[model].title), is_so.sentence
        else:
            assert is_so.all_of or len(is_so.right) == 1, model


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("5.7", {"plan_source": "768"}),  # n = d
        ("5.7", {"plan_layers": "1"}),
        ("5.7", {"plan_layers": "1", "plan_source": "768"}),
        ("5.7", {"plan_source": "1"}),
        ("5.7", {"plan_model": "mistral-7b", "plan_source": "8192"}),  # more than its window keeps
        ("7.4", {"plan_d_ff": "768"}),  # m = k
        ("7.4", {"plan_d_ff": "1024"}),  # n = k
        ("7.4", {"plan_source": "768"}),  # n = m
    ],
)
def test_a_formula_is_not_right_because_two_sizes_are_equal(name: str, changed: dict[str, str]) -> None:
    assert len(truth(name, **changed).right) == 1


def test_what_a_token_reads_is_said_of_the_model_that_is_counted() -> None:
    """Not of one with heads of their own: Llama 3 shares its keys, and has an MLP of three matrices."""
    for model in ("gpt2", "llama-3-8b", "qwen2.5-0.5b", "transformer-base"):
        config = PRESETS[model].config
        kept = kv_cache(config, n=1, dtype="float32").self_attention // 4 // config.n_decoder_layers
        reason = truth("7.6", plan_model=model).reason
        assert f"a cache has {kept:,} for each token that it keeps" in reason
        weights = int(re.findall(r"weights ([\d,]+);", reason)[0].replace(",", ""))
        assert f"The weights are {weights / 2 / config.d_model**2:.1f} · d²" in reason


@pytest.mark.parametrize("model", PRESETS)
def test_what_is_said_of_positions_is_so_of_the_model(model: str) -> None:
    is_so = truth("4.7", plan_model=model)
    kind = PRESETS[model].config.position
    assert [text for text in words.POSITIONS.values() if text in is_so.reason] == [words.POSITIONS[kind]]
    names = [is_so.options[i] for i in is_so.right]
    assert ("the positions" in names) == (kind == "learned") and "the table of sinusoids" not in names


def test_every_kind_of_position_has_its_sentence() -> None:
    assert set(words.POSITIONS) == set(get_args(Position))


def test_scores_alone_grow_with_the_square_of_a_text() -> None:
    assert "Scores grow with its square" in STEPS["3.7"].text
    of = truths.setup(shown(STEPS["3.7"]))
    short, long = (lesson_terms(of.config, replace(of.workload, source_len=n)) for n in (50, 500))
    grown = {name: long[name] / short[name] for name in short if name != "total"}
    assert grown.pop("scores") == 100
    assert set(grown.values()) == {10}


@pytest.mark.parametrize("text", [STEPS["5.1"].sentence, "Tom ran to the park", "The little cat"])
def test_no_two_words_to_choose_from_are_near(text: str) -> None:
    """Each is at most a quarter as likely as the one before: a guess among equals teaches nothing."""
    chances = [one.value for one in truth("5.1", text).candidates]
    assert 2 <= len(chances) <= 5
    assert all(4 * after <= before for before, after in pairwise(chances))


@pytest.mark.parametrize("text", [STEPS["5.2"].sentence, "Tom ran to the park"])
def test_two_words_together_are_as_likely_as_the_model_that_writes_them_says(text: str) -> None:
    is_so = truth("5.2", text)
    first, second = map(float, re.findall(r"([\d.]+) %", is_so.question))
    assert is_so.number == pytest.approx(first * second / 100, rel=0.02)
    assert is_so.number < min(first, second)
    for mistake in (first, second, first + second):
        assert not check(is_so, mistake).right


@pytest.mark.parametrize(
    ("text", "model"), [("", ""), ("The keys to the old cabinet are lost.", "minilm"), ("Tom ran to the park", "storyteller")]
)  # fmt: skip
def test_two_vectors_are_added_and_not_their_lengths(text: str, model: str) -> None:
    is_so = truth("2.6", text, model)
    before, added = map(float, re.findall(r"([\d.]+) long", is_so.question))
    cosine = float(re.findall(r"is (−?-?[\d.]+)\. At", is_so.reason)[0].replace("−", "-"))
    assert is_so.number == pytest.approx(math.sqrt(before**2 + added**2 + 2 * cosine * before * added), rel=0.02)
    assert check(is_so, is_so.number).right and not check(is_so, before + added).right


def test_a_row_to_be_pointed_at_is_not_named_in_the_question() -> None:
    for query in ("0", "3", "9"):
        is_so = truth("4.6", query=query)
        assert is_so.candidates[0].label == f"row {query}"
        assert all(one.label not in is_so.question for one in is_so.candidates if one.label != "row 0")
        assert f"has {query} tokens before it" in is_so.question


# what cannot answer


@pytest.mark.parametrize(
    ("name", "text", "model", "part"),
    [
        ("1.6", "[]", "brackets", ""),
        ("2.1", "Once upon a time", "storyteller", "needs an encoder"),
        ("2.1", "Hi", "minilm", "fewer than two words"),
        ("4.1", EXAMPLE, "minilm", "no cross-attention"),
        ("4.2", "Once upon a time", "storyteller", "no cross-attention"),
        ("5.1", EXAMPLE, "minilm", "does not write"),
        ("5.2", EXAMPLE, "minilm", "does not write"),
        ("5.6", EXAMPLE, "minilm", "does not write"),
    ],
)
def test_a_text_that_cannot_answer_is_told_why(name: str, text: str, model: str, part: str) -> None:
    if not part:
        assert isinstance(found(name, text, model), Truth)
        return
    assert part in sentence(name, text, model)


def test_one_token_is_nothing_to_choose_between() -> None:
    assert "one token only" in sentence("1.2", "Once upon a time", "storyteller", layer="1", head="1", query="0")


def test_without_a_run_nothing_is_true() -> None:
    for step in STEPS.values():
        if step.model:
            assert ask(true_of(step, Shown(session_service.service(), step.state))) == Unanswerable(
                words.NO_RUN, step.model, step.sentence
            )


@pytest.mark.parametrize("name", ["3.5", "3.8", "4.5", "5.7", "5.9", "3.2"])
def test_sizes_that_a_step_cannot_be_about(name: str) -> None:
    changed = {"of": "run"} if STEPS[name].room == "shapes" else {"plan_model": "run"}
    assert sentence(name, **changed) == words.NO_SIZES


def test_sizes_that_the_visitor_moved_are_those_that_count() -> None:
    assert round(truth("3.5", plan_batch="64").number, 3) == 25
    assert "one stack" in sentence("5.9", plan_model="gpt2")
    assert "keeps no keys" in sentence("5.7", plan_model="bert-base")
    assert "Not even one token" in sentence("3.8", memory_budget="0.1")


# trainings


class Trained:
    """A service that has trained some runs, and begins none."""

    def __init__(self, *known: tuple[Spec, list[float], list[FrameFacts]]) -> None:
        self.known = {spec: (losses, frames) for spec, losses, frames in known}

    async def training(self, spec: Spec) -> TrainingUpdate:
        if spec not in self.known:
            raise HeadlightError("There is no such training yet.")
        losses, frames = self.known[spec]
        points = tuple(watched_training.Point(i, loss, 0.5) for i, loss in enumerate(losses, 1))
        return TrainingUpdate("ended", points=points, frames=tuple(frames))


def frames(whole: int, *given: tuple[int, float]) -> list[FrameFacts]:
    return [FrameFacts(step, (share,), (share,), whole, ()) for step, share in given]


def asked(name: str, service: Trained) -> Truth | Unanswerable:
    step = STEPS[name]
    return ask(true_of(step, Shown(cast(Any, service), step.state)))


@pytest.mark.parametrize("name", TRAINED)
def test_a_run_that_was_not_trained_is_not_begun(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = Trained()
    assert isinstance(asked(name, nothing), Truth)  # it ended before, and Train has it
    monkeypatch.setattr(past_trainings, "_sources", {})
    why = asked(name, nothing)
    assert isinstance(why, Unanswerable)
    assert "has not been trained here yet" in why.sentence


def test_a_race_is_judged_by_its_frames() -> None:
    own, twin = Spec("copy"), Spec("copy", "nomask")
    end = frames(48, (0, 0.1), (167, 0.85), (185, 0.9), (600, 1.0)), frames(0, (0, 0.1), (600, 1.0))
    service = Trained((own, [0.01] * 600, end[0]), (twin, [0.001] * 600, end[1]))
    is_so = asked("5.4", service)
    assert isinstance(is_so, Truth)
    assert is_so.options[is_so.right[0]].startswith("At most 4: ")
    assert "0 of 48 words on its own against 48" in is_so.reason
    is_so = asked("5.3", service)
    assert isinstance(is_so, Truth) and is_so.number == 185
    assert check(is_so, 300).words[0] == "You chose 300: 115 too high."
    late = asked("5.4", Trained((own, [0.01] * 40, end[0][:1]), (twin, [0.001] * 40, end[1][:1])))
    assert isinstance(late, Unanswerable) and "has not reached step 600 yet" in late.sentence


@pytest.mark.parametrize(
    ("own", "twin"), [(48, 0), (48, 4), (48, 5), (48, 47), (48, 48), (40, 45), (0, 0), (3, 0), (1, 1)]
)
def test_whatever_two_runs_come_to_one_answer_about_the_mask_is_right(own: int, twin: int) -> None:
    for losses in ((0.01, 0.001), (0.001, 0.01)):
        known = (Spec("copy"), [losses[0]] * 600, frames(own, (600, 1.0))), (Spec("copy", "nomask"), [losses[1]] * 600, frames(twin, (600, 1.0)))  # fmt: skip
        is_so = asked("5.4", Trained(*known))
        assert isinstance(is_so, Truth) and len(is_so.right) == 1
        lengths = [len(option) for option in is_so.options]
        assert max(lengths) < 1.4 * min(lengths), "an answer that is told by its length"


@pytest.mark.parametrize("share", [0.896, 0.8996, 0.89999])
def test_what_is_not_yet_90_per_cent_is_not_called_so(share: float) -> None:
    own = Spec("copy"), [0.01] * 600, frames(48, (0, 0.1), (185, share), (204, 0.91), (600, 1.0))
    is_so = asked("5.3", Trained(own))
    assert isinstance(is_so, Truth) and is_so.number == 204
    before, after = map(float, re.findall(r"([\d.]+) %", is_so.reason))
    assert before < 90 <= after == 91


def test_runs_within_one_per_cent_are_both_right() -> None:
    end = frames(48, (600, 1.0))
    service = Trained((Spec("copy"), [1.0] * 600, end), (Spec("copy", "heads1"), [1.005] * 600, end))
    is_so = asked("5.5", service)
    assert isinstance(is_so, Truth) and is_so.right == (0, 1)
    for answer in (0, 1):
        assert check(is_so, answer).right


def test_many_heads_end_lower_than_one_and_one_seed_is_one_draw() -> None:
    """The ends are those that core/test_races.py holds."""
    many = Spec("copy"), [0.005] * 600, frames(48, (600, 1.0))
    single = Spec("copy", "heads1"), [0.025] * 600, frames(47, (600, 0.99))
    is_so = asked("5.5", Trained(many, single))
    assert isinstance(is_so, Truth)
    assert [is_so.options[i] for i in is_so.right] == ["The run as it is"]
    said = "0.0050 as it is, 0.0250 with the change; unseen words right on its own: 48 and 47 of 48. One seed is one draw: try another."
    checked = [check(is_so, i) for i in range(len(is_so.options))]
    assert [one.right for one in checked] == [i in is_so.right for i in range(len(checked))]
    assert all(said in one.words for one in checked)


def kept(twin: str) -> tuple[Spec, list[float], list[FrameFacts]]:
    """A whole run of Copy, as Train keeps it."""
    header, _ = messages.unpack(records.read(Spec("copy", twin)))
    facts = [FrameFacts(f["step"], tuple(f["given"]), tuple(f["own"]), f["whole"], ()) for f in header["frames"]]
    return Spec("copy", twin), [loss for _, loss, _ in header["points"]], facts


@pytest.mark.parametrize("name", TRAINED)
def test_a_step_about_a_race_is_asked_and_answered_of_whole_runs(name: str) -> None:
    """Those that end as any does, without the minutes that a browser would wait for them."""
    is_so = asked(name, Trained(*map(kept, ("none", "postln", "nomask", "heads1"))))
    assert isinstance(is_so, Truth)
    if is_so.kind == "choose":
        assert len(is_so.right) == 1, "one best answer"
        verdicts = [check(is_so, i).right for i in range(len(is_so.options))]
        assert verdicts == [i in is_so.right for i in range(len(is_so.options))]
    else:
        assert 0 < is_so.number < 600
        assert check(is_so, is_so.number).right and not check(is_so, 0).right


@pytest.mark.thorough
def test_post_ln_learns_more_slowly_at_first() -> None:
    """The first 50 steps, as Train has them."""

    def losses(twin: str) -> list[float]:
        points: Iterator[Any] = (
            one for one in watched_training.run(Spec("copy", twin)) if isinstance(one, watched_training.Point)
        )
        return [point.loss for point in islice(points, 50)]

    end = frames(0, (0, 0.0))
    service = Trained((Spec("copy"), losses("none"), end), (Spec("copy", "postln"), losses("postln"), end))
    is_so = asked("4.3", service)
    assert isinstance(is_so, Truth)
    assert [is_so.options[i] for i in is_so.right] == ["The run as it is"]
    assert is_so.reason.startswith("2.18 as it is and 2.69 with the change.")
    assert "the run as it is, the run with Post-LN, seed 0" in is_so.footer


def test_every_twin_of_the_room_has_a_name() -> None:
    assert set(words.RACES) == set(watched_training.VARIANTS)
    assert races.spec_of(Shown(cast(Any, None), {"task": "copy", "twin": "heads1", "seed": "3"})) == Spec(
        "copy", "heads1", 3
    )


# answers

ROW = Truth(
    "point",
    "Which?",
    "Why.",
    "Checked.",
    candidates=(Candidate("a", (0,), 0.5), Candidate("b", (1,), 0.4999), Candidate("c", (2,), 0.0002)),
    best=2,
    share=True,
)


def test_a_tie_is_right_both_ways() -> None:
    for place in (0, 1):
        checked = check(ROW, [[place]])
        assert checked.right and checked.rank == 1
        assert checked.words[1] == "a and b are within 1 % of each other: each of them is right."
    assert check(ROW, [[2]]).words[:2] == (
        "You chose c: 0.0 %, rank 3 of 3.",
        "This head gives most to a and b: 50.0 %.",
    )


def test_an_answer_is_a_sentence_whatever_is_sent() -> None:
    chance = random.Random(1)

    def anything(depth: int = 0) -> Any:
        kind = chance.randrange(9 if depth < 3 else 6)
        plain = (
            None,
            True,
            chance.randrange(-5, 20),
            chance.uniform(-1e20, 1e20),
            "x" * chance.randrange(60),
            math.nan,
        )
        if kind < 6:
            return plain[kind]
        if kind == 6:
            return {chance.choice("ab"): anything(depth + 1)}
        return [anything(depth + 1) for _ in range(chance.randrange(5))]

    drag = Truth("drag", "", "Why.", "Checked.", number=3, high=9, tolerance=1)
    shape = Truth("shape", "", "Why.", "Checked.", axes=("2", "3"), options=("2", "3"))
    choose = Truth("choose", "", "Why.", "Checked.", options=("a", "b"), right=(1,))
    do = Truth("do", "", "Why.", "Checked.", values={"a": "1"})
    for is_so in (ROW, replace(ROW, all_of=True), drag, shape, choose, replace(choose, all_of=True), do):
        for _ in range(400):
            checked = check(is_so, anything())
            assert checked.words and all(isinstance(line, str) and line for line in checked.words)
            assert len(checked.words) == 1 or checked.words[-1] == "Checked."


def test_numbers_in_words() -> None:
    assert number_words(30.56640625, "MiB", 3) == "30.566 MiB"
    assert number_words(-0.25, "", 1) == "−0.2" and number_words(8573400064, "bytes", 0) == "8,573,400,064 bytes"


def test_shares_lie_percentage_points_apart() -> None:
    share = Truth("drag", "", "", "", number=10, unit="%", high=100, tolerance=0.5)
    assert check(share, 12).words[0] == "You chose 12 %: 2 percentage points too high."
    assert check(share, 9).words[0] == "You chose 9 %: 1 percentage point too low."
