"""Every step answered right, wrong, and wrong twice, as it opens and on two other texts: which mistake it is, with its number, and never what is true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest

from app.rooms.lessons import small, words
from app.rooms.lessons.checks import check
from app.rooms.lessons.replies import Reply, reply, written
from app.rooms.lessons.step import Truth, Unanswerable
from tests.app.test_lesson_steps import STEPS, TRAINED, Trained, asked, found, kept, truth

# Two other texts for each model, and other sizes for what reads none
TEXTS = {
    "minilm": (
        "The nurse thanked the pilot because she had landed safely.",
        "My old dog sleeps on the warm stove all day.",
    ),
    "storyteller": ("Lily and Tom went to the old house by the sea", "The king had three sons and a very small horse"),
    "translator": ("Eine Frau liest ein Buch.", "Zwei Hunde spielen im Schnee."),
    "": ("", ""),
}
SIZES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "memory": (
        {"plan_source": "64", "plan_heads": "4", "plan_kv_heads": "4", "plan_batch": "16"},
        {"plan_source": "128", "plan_heads": "16", "plan_kv_heads": "16", "plan_batch": "8"},
    ),
    "compute": ({"plan_model": "transformer-big"}, {"plan_model": "gpt2-large"}),
    "shapes": ({"batch": "3", "length": "70"}, {"batch": "2", "length": "24"}),
}
ASKED = [name for name in STEPS if name not in TRAINED]


def on(name: str, own: int) -> Truth | Unanswerable:
    """The truth of a step as it opens, with 0, or of another text, with 1 and 2."""
    step = STEPS[name]
    if not own:
        return truth(name)
    sizes = {} if step.model or step.room not in SIZES else SIZES[step.room][own - 1]
    return found(name, TEXTS[step.model][own - 1], **sizes)


def own_address(name: str, own: int) -> str:
    """The same in an address."""
    step = STEPS[name]
    return urlencode({"text": TEXTS[step.model][own - 1]} if step.model else SIZES[step.room][own - 1])


def right_answer(is_so: Truth) -> Any:
    """The right answer, as the browser sends it."""
    if is_so.kind == "point":
        return [list(one.place) for one in is_so.candidates[: is_so.best if is_so.all_of else 1]]
    if is_so.kind == "choose":
        return [*is_so.right] if is_so.all_of else [is_so.right[0]]
    return is_so.number if is_so.kind == "drag" else list(is_so.axes)


def wrong_answers(is_so: Truth) -> Iterator[Any]:
    """Every wrong thing to point at and every wrong option; the number of each mistake, and the ends; some shapes."""
    given: list[Any] = []
    if is_so.kind == "point":
        given = [[list(one.place)] for one in is_so.candidates]
        given += [
            [list(one.place) for one in is_so.candidates],
            [list(one.place) for one in is_so.candidates[is_so.best :]],
        ]
        given = [some for some in given if len(some) == 1 or is_so.all_of]
    elif is_so.kind == "choose":
        given = [[i] for i in range(len(is_so.options))]
        given += [[*range(len(is_so.options))]] if is_so.all_of else []
    elif is_so.kind == "drag":
        given = [float(one.answer) for one in is_so.mistakes] + [
            is_so.low,
            is_so.high,
            is_so.number * 2.5,
            is_so.number / 30,
        ]
    elif is_so.kind == "shape":
        given = [one.answer.split(",") for one in is_so.mistakes if isinstance(one.answer, str)]
        given += [list(sizes) for sizes in product(is_so.options[:3], repeat=len(is_so.axes))]
        given += [list(is_so.axes[:-1]), [*is_so.axes, is_so.options[0]], list(reversed(is_so.axes))]
    return (answer for answer in given if answer and not check(is_so, answer).right)


def answers_in(is_so: Truth, said: str, sentence: str) -> list[str]:
    """The words of the answer that are in a sentence; `said` is what the visitor said, which may be said again."""
    if is_so.kind == "drag":
        true = [check(is_so, is_so.number).true]
    elif is_so.kind == "shape":
        true = [check(is_so, list(is_so.axes)).true]
    elif is_so.kind == "choose":
        true = [is_so.options[i] for i in is_so.right]
    else:
        true = [one.label for one in is_so.candidates[: is_so.best]]
    if is_so.all_of:  # each of them is a word like any other: what would name it is in quotes
        true = [f"“{text}”" for text in true]
    return [
        text
        for text in true
        if re.search(r"\w", text)
        and text not in said + is_so.question
        and re.search(rf"(?<![\w.,]){re.escape(text)}(?!\w)", sentence)
    ]


@pytest.mark.thorough(but=36)
@pytest.mark.parametrize("own", [0, 1, 2])
@pytest.mark.parametrize("name", ASKED)
def test_a_wrong_answer_gets_a_reply_of_its_own_and_never_the_answer(name: str, own: int) -> None:
    is_so = on(name, own)
    if isinstance(is_so, Unanswerable):
        assert own and is_so.sentence
        return
    right = right_answer(is_so)
    assert check(is_so, right).right and reply(is_so, right) is None
    replies = []
    for answer in wrong_answers(is_so):
        first = reply(is_so, answer)
        assert first is not None and first.name and first.sentence, answer
        assert "{" not in first.name + first.sentence, first
        checked = check(is_so, answer)  # what a second wrong answer gets: the answer, and why
        assert checked.true and not answers_in(is_so, checked.said, f"{first.name} {first.sentence}"), first
        assert checked.true in " ".join(checked.words) and is_so.reason in checked.words
        replies.append(first)
    assert replies
    assert len(set(replies)) > 1 or len(is_so.options) == 2, "one sentence for every wrong answer"


@pytest.mark.parametrize("name", TRAINED)
def test_a_wrong_answer_about_a_training_gets_a_reply(name: str) -> None:
    is_so = asked(name, Trained(*map(kept, ("none", "postln", "nomask", "heads1"))))
    assert isinstance(is_so, Truth)
    for answer in wrong_answers(is_so):
        first = reply(is_so, answer)
        assert first is not None and first.name and first.sentence
        assert not answers_in(is_so, check(is_so, answer).said, f"{first.name} {first.sentence}"), first


def of(name: str, answer: Any, *own: str) -> Reply:
    found = reply(truth(name, *own), answer)
    assert found is not None
    return found


def test_three_wrong_softmaxes() -> None:
    """Beside .2372 .4445 .3183, which is right of the middle row."""
    undivided, by_d, shares = ([round(weight, 4) for weight in row] for row in small.wrong_softmaxes(1))
    assert undivided == [0.1585, 0.5562, 0.2853] and by_d == [0.2835, 0.3881, 0.3284]
    assert shares == pytest.approx([0.1287, 0.5467, 0.3245], abs=2e-4)


@pytest.mark.thorough(but=6)
@pytest.mark.parametrize(
    ("name", "answer", "mistake", "part"),
    [
        ("1.4", 2.3, "That is the run as it is.", "2.30 bits"),
        ("1.7", 0.4, "Counted, not weighed.", "2 of 5 keys"),
        ("3.5", 3.1, "As wide as the stream.", "4 times as wide"),
        ("3.5", 13.1, "That is in megabytes.", "1,048,576"),
        ("3.6", 30.6, "The five terms alone.", "Autograd keeps these"),
        ("3.7", 25, "In proportion to the length.", "50 × 10.24 = 512"),
        ("3.7", 2621, "Counted three times.", "meet in pairs"),
        ("3.7", 47.6, "The corner is missing.", "each other too"),
        ("3.7", 5.96, "You squared the memory.", "2.44² = 5.96"),
        ("3.7", 0.25, "That is in GiB.", "1,024"),
        ("3.7", 100, "Too low.", "100.000 MiB is off by a factor of more than two."),
        ("3.7", 300, "Too high.", "300.000 MiB is off by a factor of less than two."),
        ("3.8", 1950, "That is to run it.", "1,950 tokens"),
        ("4.5", 33, "That is attention’s share.", "1,050,624"),
        ("5.2", 11.0, "That is the first alone.", "“great”"),
        ("6.3", 66.7, "Counted, not weighed.", "10 of 15 keys"),
        ("7.2", 44.1, "As many as before.", "44.1 million"),
    ],
)
def test_a_number_names_the_mistake_that_gives_it(name: str, answer: float, mistake: str, part: str) -> None:
    first = of(name, answer)
    assert first.name == mistake and part in first.sentence, first


def test_bytes_are_right_within_three_per_cent() -> None:
    for name in ("3.5", "3.6", "3.7"):
        is_so = truth(name)
        assert check(is_so, 1.029 * is_so.number).right and not check(is_so, 1.031 * is_so.number).right


@pytest.mark.parametrize(
    ("word", "mistake"),
    [
        ("[CLS]", "rests"),
        ("it", "itself"),
        ("The", "twice"),
        ("because", "before"),
        ("street", "stands_out"),
    ],
)
def test_a_word_names_the_mistake_that_it_is(word: str, mistake: str) -> None:
    is_so = truth("1.2")
    place = next(one.place for one in is_so.candidates if one.label == word)
    first = of("1.2", [list(place)])
    assert first.name == words.ROW_MISTAKES[mistake]
    assert re.match(rf"“{re.escape(word)}”( \(\d+\))? gets \d+\.\d % here, rank \d+ of 16\.", first.sentence)


def test_the_same_word_earlier_and_the_head_that_does_look() -> None:
    text = "When Mary and John went to the store, John gave a drink to John"
    is_so = truth("1.2", text, query="15", layer="3", head="1")
    labels = {one.place[0]: one.label for one in is_so.candidates}
    assert labels[15].lower() == "john"
    earlier = [at for at, label in labels.items() if label == labels[15] and at < 15]
    for at in earlier:
        if (at,) not in {one.place for one in is_so.candidates[: is_so.best]}:
            first = reply(is_so, [[at]])
            assert first is not None and first.name == words.ROW_MISTAKES["earlier"] and f"({at})" in first.sentence
    assert len(earlier) == 2


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("1.5", ["2", "4", "3"], "Each sentence by itself."),
        ("3.1", ["1", "16", "12", "32"], "Cut, and not yet transposed."),
        ("3.4", ["1", "12", "100", "64"], "That is q."),
        ("4.4", ["16", "384"], "As wide as the stream."),
        ("4.4", ["16"], "It has another number of axes."),
        ("1.5", ["3", "4", "3"], "Not these sizes."),
    ],
)
def test_a_shape_names_the_mistake_that_gives_it(name: str, answer: list[str], mistake: str) -> None:
    assert of(name, answer).name == mistake


def test_several_places_are_told_what_does_not_belong_and_never_what_is_missing() -> None:
    later = of("1.6", [[0], [1], [2]])
    assert later.name == "That one is written later." and "“upon”" in later.sentence
    assert of("1.6", [[0]]) == Reply(
        words.REPLY["missing"], "You found 1 of 2, and pointed at 0 that do not belong there."
    )
    assert of("1.6", [[2], [3], [4]]).name == "The other way round."


def test_what_is_no_answer_gets_its_sentence_and_a_right_one_no_reply() -> None:
    is_so = truth("3.7")
    assert reply(is_so, "x") == Reply("", words.NO_ANSWER["drag"])
    assert reply(is_so, is_so.number) is None
    assert written([[1, 0], [1, 1]]) == "1.0,1.1" and written(["4", "3"]) == "4,3"
