"""Lessons that teachers write: faults with their lines, expressions that are read and never run, and the two examples on real runs."""

from __future__ import annotations

import logging
import math
import os
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app import languages
from app.rooms.lessons import opening
from app.rooms.lessons.checks import check
from app.rooms.lessons.replies import Reply, reply
from app.rooms.lessons.step import Shown, Truth
from app.rooms.lessons.written import expressions, folder, table
from app.rooms.lessons.written.__main__ import main
from app.rooms.lessons.written.decide import Decided, decide, share, trial
from app.rooms.lessons.written.expressions import Measure, Unreadable
from app.rooms.lessons.written.faults import Fault, Unfit, changes, nearest
from app.rooms.lessons.written.file import MOST, MOST_LINE, MOST_OPTIONS, MOST_STEPS, Offered, offered, parse
from app.rooms.lessons.written.lesson import WrittenLesson, ended, swapped
from app.rooms.lessons.written.runs import Runs, best_head
from app.rooms.lessons.written.steps import between, row, row_key, step_of, truth_of
from app.session import service as session_service
from core.errors import HeadlightError
from tests.app.served import ask

MODELS = Offered({"smollm2": "SmolLM2-135M", "minilm": "MiniLM-L6"}, {"smollm2": (30, 9), "minilm": (6, 12)}.get)
WHOLE = """---
lesson: Agreement
model: smollm2
---

# Is, or are?
text: The keys to the cabinet
show: next are is were was
A verb agrees with its subject.

? Which verb is likelier next?
check: next
- are
- is | You followed the noun next to it. {said} gets {p}.
> {best} has {p.best}, {second} {p.second}.
"""
LOOK = WHOLE.replace("check: next\n- are\n- is |", "head: 26.0\nat: cabinet\ncheck: look\n- keys\n- cabinet |")
NUMBER = """---
lesson: Counting
model: smollm2
---
# How large?
text: The keys to the cabinet
? How many times as likely as is are?
check: number p.are / p.is
within: 5 %
- p.is / p.are | You divided the other way round.
> It is {best}.
"""
SHAPE = (
    NUMBER.replace("number p.are / p.is", "shape heads, tokens, d_head")
    .replace("within: 5 %\n", "")
    .replace("- p.is / p.are |", "- tokens, heads, d_head |")
)
LONG = " ".join(["word"] * 41)


def changed(*pairs: tuple[str, str], of: str = WHOLE) -> str:
    for before, after in pairs:
        assert before in of, before
        of = of.replace(before, after, 1)
    return of


def faults(text: str) -> list[Fault]:
    found = parse(text, MODELS)
    assert isinstance(found, list), found
    return found


def lesson(text: str) -> WrittenLesson:
    found = parse(text, MODELS)
    assert isinstance(found, WrittenLesson), [(fault.line, str(fault)) for fault in found]
    return found


# A name, the text, and the line and the whole sentence of its first fault.
BROKEN: dict[str, tuple[str, int, str]] = {
    "no head": (
        WHOLE.removeprefix("---\n"),
        1,
        "A lesson begins with a line of three dashes, then “lesson:” and “model:”.",
    ),
    "a head without an end": (
        changed(("smollm2\n---", "smollm2")),
        5,
        "The head is not closed. A line of three dashes ends it.",
    ),
    "a key of the head": (changed(("model:", "modle:")), 3, "“modle” is no key of the head. Did you mean “model”?"),
    "no title": (changed(("lesson: Agreement\n", "")), 1, "The head has no “lesson:”."),
    "a model": (
        changed(("smollm2", "smolm2")),
        3,
        "There is no model “smolm2” here. There are: smollm2, minilm. Did you mean “smollm2”?",
    ),
    "a language": (
        changed(("smollm2", "smollm2\nlanguage: deutsch!")),
        4,
        "“deutsch!” is no code of a language, such as en or de.",
    ),
    "a line before the steps": (
        changed(("---\n\n#", "---\nHello\n#")),
        5,
        "A step begins with “# ” and its title, and this line is in none.",
    ),
    "no step": (WHOLE.partition("# ")[0], 6, "There is no step yet. A step begins with “# ” and its title."),
    "a key of a step": (changed(("show:", "shwo:")), 8, "“shwo” is no key of a step. Did you mean “show”?"),
    "a key twice": (changed(("show:", "text: Another\nshow:")), 8, "“text:” is there already, in line 7."),
    "a key without a value": (changed(("check: next", "check:")), 12, "“check:” says nothing."),
    "no text": (changed(("text: The keys to the cabinet\n", "")), 6, "“Is, or are?” has no “text:” to run."),
    "a text without a word": (
        changed(("The keys to the cabinet", "… !")),
        7,
        "“Is, or are?” has no “text:” to run.",
    ),
    "no question": (
        changed(("? Which verb is likelier next?\n", "")),
        6,
        "“Is, or are?” asks nothing. A question begins with “? ”.",
    ),
    "two questions": (
        changed(("check:", "? And why?\ncheck:")),
        12,
        "A step asks one question, and this is another one.",
    ),
    "no check": (
        changed(("check: next\n", "")),
        11,
        "No “check:” says how the run decides: next, look, heads, number or shape.",
    ),
    "a check": (
        changed(("check: next", "check: nxt")),
        12,
        "“nxt” is no check. They are next, look, heads, number and shape. Did you mean “next”?",
    ),
    "a check with more": (changed(("check: next", "check: next are")), 12, "After “check: next” comes nothing more."),
    "a picture": (
        changed(("show: next", "show: nest")),
        8,
        "“show:” begins with next or heads, and then come the words that are shown. Did you mean “next”?",
    ),
    "too many words": (
        changed(("A verb agrees", f"{LONG} A verb agrees")),
        6,
        "A step explains itself in at most 40 words. These are 47.",
    ),
    "a word that is not there": (
        changed(("at: cabinet", "at: cabinets"), of=LOOK),
        13,
        "“cabinets” is not among the 5 words: The, keys, to, the, cabinet. Did you mean “cabinet”?",
    ),
    "a word that is there twice": (
        changed(("text: The", "text: the"), ("at: cabinet", "at: the"), of=LOOK),
        13,
        "“the” is there 2 times. Write which one is meant, as in “the 2”.",
    ),
    "a third of two": (
        changed(("text: The", "text: the"), ("at: cabinet", "at: the 3"), of=LOOK),
        13,
        "“the” is there 2 times, so there is no number 3 of it.",
    ),
    "a head that is not written": (changed(("26.0", "26"), of=LOOK), 12, "A head is written layer.head, as in 26.0."),
    "a head that is not there": (
        changed(("26.0", "26.12"), of=LOOK),
        12,
        "SmolLM2-135M has layers 0 to 29 and heads 0 to 8.",
    ),
    "a look without a head": (
        changed(("head: 26.0\n", ""), of=LOOK),
        13,
        "“check: look” needs “head:” and “at:”, the head and the word that looks.",
    ),
    "one option": (changed(("- are\n", "")), 13, "One option only: a question needs two or more."),
    "no option": (
        changed(("- are\n", ""), ("- is | You followed the noun next to it. {said} gets {p}.\n", "")),
        11,
        "This question has no options. Each is a line that begins with “- ”.",
    ),
    "an option twice": (changed(("- is |", "- are |")), 14, "“are” is an option already, in line 13."),
    "an option of two words": (changed(("- are", "- are not")), 13, "“are not” is 2 words, and the next word is one."),
    "an option that is not in the text": (
        changed(("- keys", "- key"), of=LOOK),
        15,
        "“key” is not among the 5 words: The, keys, to, the, cabinet. Did you mean “keys”?",
    ),
    "a line that belongs to nothing": (
        changed(("- are\n", "- are\nSo it is.\n")),
        14,
        "This line belongs to nothing. An option begins with “- ”, and its reply follows “|”.",
    ),
    "a field": (
        changed(("{p}", "{bset}")),
        14,
        "{bset} is unknown. Known: {said} {p} {n} {best} {second} {swap}. Did you mean “best”?",
    ),
    "a field in a second line": (
        changed(("{second} {p.second}.", "{second}\n  and {prob}.")),
        16,
        "{prob} is unknown. Known: {said} {p} {n} {best} {second} {swap}.",
    ),
    "code in a field": (
        changed(("{p}", "{__import__('os').system('true')}")),
        14,
        "{__import__('os').system('true')} is unknown. Known: {said} {p} {n} {best} {second} {swap}.",
    ),
    "an open brace": (changed(("{p}", "{p")), 14, "A brace is not closed."),
    "a brace too many": (changed(("{p}", "p}")), 14, "A brace is closed that was not opened."),
    "the answer where none was chosen": (
        changed(("{best} has", "{said} has")),
        15,
        "{said} is about the answer that was chosen. It is known in a reply, after “|”.",
    ),
    "heads with another check": (changed(("{p}", "{n}")), 14, "{n} says nothing with “check: next”."),
    "swapped words without any": (changed(("{p}", "{swap}")), 14, "“{swap}” needs “swap:” and two words of the text."),
    "a text of one word": (
        changed(("{p}", "{p.are@keys}")),
        14,
        "“@keys” is neither @swap nor @ with the word of “also:”, and another text has two words or more.",
    ),
    "one word to swap": (
        changed(("show:", "swap: keys\nshow:")),
        8,
        "“swap:” has two words of the text and a comma between them, as in “swap: nurse, pilot”.",
    ),
    "a word to swap that is not there": (
        changed(("show:", "swap: keys, door\nshow:")),
        8,
        "“door” is not among the 5 words: The, keys, to, the, cabinet.",
    ),
    "two last words": (
        changed(("show:", "also: the boxes\nshow:")),
        8,
        "“also:” is one word, which takes the place of the last word of the text.",
    ),
    "a number without an expression": (
        changed((" p.are / p.is", ""), of=NUMBER),
        8,
        "“check: number” needs what is to be computed, as in “check: number p.are / p.is”.",
    ),
    "half an expression": (changed((" / p.is", " /"), of=NUMBER), 8, "The expression ends too early."),
    "a function": (
        changed((" / p.is", " / sqr(4)"), of=NUMBER),
        8,
        "“sqr” is unknown. Known: tokens, layers, heads, kv_heads, d_model, d_head, d_ff, vocab, sqrt, exp, ln, log2, abs,"
        " round, p.word, n.word, look.word. Did you mean “sqrt”?",
    ),
    "an open bracket": (changed(("p.are / p.is", "(p.are / p.is"), of=NUMBER), 8, "A bracket is not closed."),
    "a mistake without a reply": (
        changed((" | You divided the other way round.", ""), of=NUMBER),
        10,
        "A mistake needs a reply after “|”, which says what went wrong.",
    ),
    "how far off": (
        changed(("5 %", "a little"), of=NUMBER),
        9,
        "“within:” is a number or a share that an answer may be off, as in 0.5 or 3 %.",
    ),
    "a weight without a head": (
        changed(("p.are / p.is", "look.keys"), of=NUMBER),
        8,
        "“look.keys” needs “head:” and “at:”, the head and the word that looks.",
    ),
    "heads that count nothing": (
        changed(("p.are / p.is", "n.keys"), of=NUMBER),
        8,
        "“n.keys” counts heads, and needs “show: heads” with two words or more.",
    ),
    "a letter that turns the order": (
        changed(("A verb", "A \u202everb")),
        9,
        "Character 3 of this line cannot be seen (U+202E). Delete it.",
    ),
    "a zero": (changed(("A verb", "A \0verb")), 9, "Character 3 of this line cannot be seen (U+0000). Delete it."),
    "a long line": (
        changed(("A verb", "x" * MOST_LINE + " A verb")),
        9,
        f"This line has {MOST_LINE + 32} characters, and a line has at most {MOST_LINE}.",
    ),
    "a long file": (
        WHOLE + "\n" * MOST,
        1,
        f"A lesson has at most 60,000 characters. This one has {len(WHOLE) + MOST:,}.",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_has_its_line_and_its_sentence(name: str) -> None:
    text, line, sentence = BROKEN[name]
    found = faults(text)
    assert (found[0].line, str(found[0])) == (line, sentence)
    assert found == sorted(found)


def test_all_faults_of_a_file_are_told_at_once() -> None:
    text = changed(
        ("model: smollm2", "modle: smollm2"),
        ("show: next are is were was\nA verb", "at: cabinets\nhead: 26.12\nA verb"),
        ("{said} gets {p}.", "{prob}."),
    )
    text += "\n# She, or he?\ntext: The nurse thanked the pilot because\n? Which is likelier?\ncheck: next\n- she\n"
    assert [(fault.line, str(fault)) for fault in faults(text)] == [
        (3, "“modle” is no key of the head. Did you mean “model”?"),
        (8, "“cabinets” is not among the 5 words: The, keys, to, the, cabinet. Did you mean “cabinet”?"),
        (9, "SmolLM2-135M has layers 0 to 29 and heads 0 to 8."),
        (15, "{prob} is unknown. Known: {said} {p} {n} {best} {second} {swap}."),
        (19, "One order of two nouns shows little. Add “swap: nurse, pilot”, and both are run."),
        (22, "One option only: a question needs two or more."),
    ]


def test_a_reply_that_tells_what_is_right_is_a_hint_and_no_fault() -> None:
    found = lesson(changed(("{said} gets {p}.", "Not {best}, with {p.best}?")))
    told = "tells what is right, and a reply comes before a second try. Say it at the end, after “>”."
    assert [(hint.line, str(hint)) for hint in found.hints] == [(14, f"{{best}} {told}"), (14, f"{{p.best}} {told}")]
    assert not lesson(WHOLE).hints and not lesson(NUMBER).hints


def test_a_pronoun_with_one_order_of_two_nouns_is_a_hint_and_no_fault() -> None:
    text = changed(
        ("The keys to the cabinet", "The nurse thanked the pilot because"), ("- are", "- she"), ("- is", "- he")
    )
    found = lesson(text)
    assert [(hint.line, str(hint)) for hint in found.hints] == [
        (7, "One order of two nouns shows little. Add “swap: nurse, pilot”, and both are run.")
    ]
    assert not lesson(text.replace("show:", "swap: nurse, pilot\nshow:")).hints
    assert not lesson(text.replace("The nurse thanked the pilot", "The nurse slept")).hints


def test_a_lesson_is_read_whole() -> None:
    for text in (WHOLE, WHOLE.replace("\n", "\r\n"), "\ufeff" + WHOLE):
        found = lesson(text)
        (step,) = found.steps
        assert (found.title, found.model, found.language) == ("Agreement", "smollm2", "en")
        assert (step.title, step.question, step.check) == ("Is, or are?", "Which verb is likelier next?", "next")
        assert (step.line, step.line_of("text"), step.line_of("care")) == (6, 7, 6)
        assert step.show == ("next", "are", "is", "were", "was")
        assert [option.said for option in step.options] == ["are", "is"]
        assert step.options[1].reply[0] == "You followed the noun next to it. "
    assert lesson(WHOLE.replace("smollm2", "SmolLM2-135M")).model == "smollm2", "by its title"


def test_as_many_steps_and_options_as_there_may_be() -> None:
    step = WHOLE[WHOLE.index("# Is") :]
    whole = WHOLE + step * (MOST_STEPS - 1)
    assert len(lesson(whole).steps) == MOST_STEPS
    assert str(faults(whole + step)[0]) == f"A lesson has at most {MOST_STEPS} steps. This is one more."
    more = "".join(f"- word{i}\n" for i in range(MOST_OPTIONS - 2))
    text = WHOLE.replace("- are\n", more + "- are\n")
    assert len(lesson(text).steps[0].options) == MOST_OPTIONS
    assert (
        str(faults(text.replace("- are", "- more\n- are"))[0])
        == f"A question has at most {MOST_OPTIONS} options. This is one more."
    )


def test_a_text_stays_as_it_was_written() -> None:
    """Markup, code and formats in it are letters like any others."""
    given = "<b>{0}</b> & %s [a](javascript:x)"
    text = changed(
        ("A verb agrees with its subject.", given), ("text: The keys to the cabinet", "text: The <i>keys</i> to $HOME")
    )
    (step,) = lesson(text).steps
    assert step.paragraph == given and step.text == "The <i>keys</i> to $HOME"


def test_any_change_of_a_file_gives_a_lesson_or_faults_with_lines_of_it() -> None:
    draw = random.Random(41)
    signs = '{}@.|"#?->:,+*/^() \n\t0189pnsé💡'
    for text in (*folder.examples().values(), NUMBER, LOOK):
        for _ in range(150):
            given = list(text)
            for _ in range(draw.randint(1, 8)):
                at = draw.randrange(len(given))
                given[at : at + draw.randint(0, 3)] = draw.choices(signs, k=draw.randint(0, 3))
            found = parse("".join(given), MODELS)
            if isinstance(found, list):
                n = "".join(given).count("\n") + 1
                assert found and all(1 <= fault.line <= n and fault.sentence for fault in found)
            else:
                assert found.steps


# expressions


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) × 3", 9.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", 4.0),
        ("8 ÷ 4 ÷ 2", 1.0),
        ("5 − 2 - 1", 2.0),
        ("sqrt(d_head) / log2(tokens)", 4.0),
        ("round(2.5) + abs(-1)", 4.0),
        ("p.are / p.is", 30.0),
        ('p.are@"The key" * 10 + n.pilot@he', 177.5),
        ("look.don’t", 0.25),
        ("look.the 2", 0.125),
    ],
)
def test_an_expression_has_the_value_that_is_expected(said: str, value: float) -> None:
    measured = {
        Measure("p", "are"): 0.3,
        Measure("p", "is"): 0.01,
        Measure("p", "are", "The key"): 0.05,
        Measure("n", "pilot", "he"): 177,
        Measure("look", "don’t"): 0.25,
        Measure("look", "the 2"): 0.125,
    }
    read = expressions.read(said)
    assert expressions.value(read, {"d_head": 64, "tokens": 4}, measured) == pytest.approx(value)
    assert {*expressions.measures(read)} <= {*measured}


@pytest.mark.parametrize(
    "said",
    [
        "",
        "1 +",
        "1 2",
        ")",
        "sqrt 4",
        "sqrt(4",
        "__import__('os')",
        "tokens.__class__",
        "lambda: 1",
        'p.are@"open',
        "1e9",
        "0x10",
        "9" * 13,
        "1 if 1 else 2",
        "[1][0]",
        "(" * 20 + "1" + ")" * 20,
        "-" * 20 + "1",
        "2" + "^2" * 20,
        "1" + "+1" * 40,
        "1 " * 300,
    ],
)
def test_whatever_else_is_no_expression(said: str) -> None:
    with pytest.raises(Unreadable):
        expressions.read(said)


@pytest.mark.parametrize(
    "said", ["1 / 0", "9 ^ 9 ^ 9", "ln(0)", "sqrt(0 - 1)", "exp(1000)", "999999999999 * 999", "(0-1)^0.5"]
)
def test_what_has_no_value_is_refused_at_once(said: str) -> None:
    with pytest.raises((ArithmeticError, ValueError)):
        expressions.value(expressions.read(said), {}, {})


def test_words_change_places_and_ends_with_the_punctuation_where_it_was() -> None:
    assert swapped("The nurse, said the pilot.", "nurse", "pilot") == "The pilot, said the nurse."
    assert swapped("nurses and nurse", "nurse", "pilot") == "nurses and pilot"
    assert ended("“So said she.”", "he") == "“So said he.”"


def test_the_nearest_word_is_one_that_was_meant() -> None:
    assert changes("modle", "model") == 2 and changes("", "abc") == 3
    assert nearest("modle", ("lesson", "model")) == "model"
    assert nearest("x", ("is", "at")) == "" and nearest("picture", ("show", "at")) == ""


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (0.0005, "less than 0.1 %"),
        (0.0053, "0.5 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
        (0.733, "73 %"),
        (0.997, "99.7 %"),
        (1.0, "100 %"),
        (0.0, "0.0 %"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_nothing(p: float, said: str) -> None:
    assert share(p) == said


# runs


def decided(of: WrittenLesson, at: int = 0) -> Decided:
    return ask(decide(of, at, session_service.service()))


@cache
def example(name: str) -> tuple[WrittenLesson, tuple[Decided, ...]]:
    found = parse(folder.examples()[name])
    assert isinstance(found, WrittenLesson)
    return found, tuple(decided(found, i) for i in range(len(found.steps)))


def test_the_example_of_agreement_says_what_the_runs_say() -> None:
    whole, steps = example("agreement")
    assert not whole.hints and ask(trial(whole, session_service.service())) == []
    keys, look, key = steps
    assert keys.options == ("are", "is") and keys.right == (0,)
    assert keys.values == pytest.approx((0.159, 0.0053), abs=5e-4)
    assert keys.reply(1) == "You followed the noun next to it. is gets 0.5 %."
    assert keys.ending.startswith("are has 16 %, is 0.5 %. The word before is cabinet;")
    assert keys.footer == "Checked against this run: the word after “The keys to the cabinet”."
    (picture,) = keys.pictures
    assert [word for word, _ in picture.words] == ["are", "is", "were", "was"] and not look.pictures
    assert dict(picture.words)["were"] == pytest.approx(0.027, abs=5e-4)
    assert look.options == ("The", "keys", "to", "the", "cabinet") and look.right == (1,)
    assert look.values[1] == pytest.approx(0.733, abs=5e-4) and sum(look.values) == pytest.approx(1, abs=1e-4)
    assert look.ending.startswith("keys gets 73 %. One head of 270")
    assert key.right == (1,) and key.values == pytest.approx((0.0283, 0.265), abs=5e-4)
    assert key.reply(0) == "The noun beside it pulls: 2.8 %, against 0.2 % without its s."
    assert key.ending == "is has 27 %, are 2.8 %. The pull is there, and it does not win."
    assert key.footer == "Checked against 2 runs of SmolLM2-135M: the word after “The key to the cabinets”."


def test_the_example_of_pronouns_runs_both_orders_and_both_pronouns() -> None:
    whole, (pronoun, heads) = example("pronouns")
    assert not whole.hints and ask(trial(whole, session_service.service())) == []
    assert pronoun.options == ("she", "he") and pronoun.right == (1,)
    assert pronoun.values == pytest.approx((0.237, 0.305), abs=1e-3)
    assert pronoun.ending.startswith("he 31 %, she 24 %. The same nouns, swapped: she 43 %, he 8.7 %.")
    assert pronoun.care.startswith("One model, two sentences.")
    assert heads.values == (98, 172) and heads.right == (1,)
    assert heads.reply(0) == "nurse gets more in 98 of 270; it is the farther one."
    assert heads.ending.startswith(
        "The pilot, in 172 of 270. With he for she: 177 of 270. With the nouns swapped: 69 of 270."
    )
    assert heads.care == "Where heads look is not whom the model means."
    assert [(picture.text, dict(picture.words)) for picture in heads.pictures] == [
        ("The nurse thanked the pilot because she", {"nurse": 98, "pilot": 172}),
        ("The nurse thanked the pilot because he", {"nurse": 93, "pilot": 177}),
        ("The pilot thanked the nurse because she", {"nurse": 201, "pilot": 69}),
        ("The pilot thanked the nurse because he", {"nurse": 194, "pilot": 76}),
    ]
    assert [picture.text for picture in pronoun.pictures] == [
        "The nurse thanked the pilot because",
        "The pilot thanked the nurse because",
    ]
    assert dict(pronoun.pictures[1].words) == pytest.approx({"she": 0.430, "he": 0.087}, abs=1e-3)
    assert "4 runs" in heads.footer
    # The end says that the nearer noun wins whichever the pronoun: in the fourth run, too.
    text = folder.examples()["pronouns"].replace("because she", "because he").replace("also: he", "also: she")
    found = parse(text)
    assert isinstance(found, WrittenLesson)
    assert "With the nouns swapped: 76 of 270." in decided(found, 1).ending


def test_the_word_chances_are_those_of_the_next_word() -> None:
    async def both() -> tuple[Any, Any]:
        service = session_service.service()
        runs = Runs(example("agreement")[0].steps[0], "smollm2", service)
        facts = await runs.facts("The keys to the cabinet")
        return await service.token_probabilities(facts.key, ["are", "cabinetmaker", "of"], 1), await service.next_words(
            facts.key, [1], 3
        )

    chances, (found,) = ask(both())
    assert chances[1] is None and dict(found.words)["of"] == pytest.approx(chances[2]), found.words


def test_the_head_that_looks_most_at_a_word() -> None:
    text = "When Mary and John went to the store, John gave a drink to"
    of = lesson(WHOLE.replace("The keys to the cabinet", text)).steps[0]

    async def rows() -> Any:
        return await Runs(of, "smollm2", session_service.service()).every_head(text)

    found, keys = ask(rows())
    at = [i for i, label in enumerate(keys.labels) if label == "John"][1]
    best = best_head(found, at)
    assert (best.layer, best.head) == (25, 2) and best.weight == pytest.approx(0.789, abs=5e-4)


def test_a_wrong_token_is_told_its_own_weight_and_never_the_answer() -> None:
    _, (_, look, _) = example("agreement")
    assert look.reply(4) == "cabinet gets 5.6 % here. Layer 29, head 1 looks there most: 85 %."
    assert not any("keys" in reply for i, reply in enumerate(look.replies) if i != 1)


def test_a_number_has_its_mistakes() -> None:
    found = decided(lesson(NUMBER))
    ratio = 0.15916 / 0.0052606
    assert found.number == pytest.approx(ratio, rel=1e-3) and found.tolerance == pytest.approx(0.05 * ratio, rel=1e-3)
    assert found.is_right(ratio * 1.04) and not found.is_right(ratio * 1.06)
    assert found.reply(1 / ratio) == "You divided the other way round." and found.reply(7) == "" == found.reply(ratio)
    assert found.ending == "It is 30.25."


def test_a_shape_has_its_mistakes() -> None:
    found = decided(lesson(SHAPE))
    assert found.shape == (9, 5, 64) and found.ending == "It is [9, 5, 64]."
    assert found.is_right((9, 5, 64)) and found.reply((5, 9, 64)) == "You divided the other way round."
    assert found.reply((1, 2, 3)) == ""


def test_a_step_shows_what_it_names_with_any_check() -> None:
    found = decided(lesson(NUMBER.replace("? How", "show: next are is\n? How")))
    assert [dict(picture.words) for picture in found.pictures] == [
        pytest.approx({"are": 0.159, "is": 0.0053}, abs=5e-4)
    ]
    assert not decided(lesson(NUMBER)).pictures


# Texts that can be read, and the line and sentence of what only a run finds.
UNFIT: dict[str, tuple[str, int, str]] = {
    "a word of several tokens": (
        changed(("- are", "- cabinetmaker")),
        13,
        "“cabinetmaker” is several tokens for SmolLM2-135M, and the next word is one. Take another word.",
    ),
    "a division by nothing": (
        changed(("p.are / p.is", "p.are / (tokens - 5)"), of=NUMBER),
        8,
        "This is no finite number: number.",
    ),
    "half a head": (
        changed(("number p.are / p.is\nwithin: 5 %", "shape heads / 2"), ("p.is / p.are", "heads"), of=NUMBER),
        8,
        "A size is a whole number from 1, and one of these is not.",
    ),
    "a mistake that is right": (
        changed(("p.is / p.are", "p.are / p.is * 1.01"), of=NUMBER),
        10,
        "“p.are / p.is * 1.01” is as right as the answer, so it cannot be a mistake.",
    ),
    "a tie": (
        changed(("- are", "- will"), ("- is |", "- could |")),
        12,
        "will and could are within 1 % of each other. Take another text, or other words.",
    ),
    "a word that is hidden": (
        changed(("at: cabinet", "at: keys"), ("- keys", "- to"), of=LOOK),
        15,
        "“keys” may not look at “to”: the mask hides it.",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_only_a_run_can_find_has_its_line_too(name: str) -> None:
    text, line, sentence = UNFIT[name]
    assert [(fault.line, str(fault)) for fault in ask(trial(lesson(text), session_service.service()))] == [
        (line, sentence)
    ]


def test_a_head_of_a_model_whose_sizes_are_unknown_is_found_by_its_run() -> None:
    unknown = Offered(MODELS.titles, lambda _: None)
    found = parse(changed(("26.0", "26.12"), of=LOOK), unknown)
    assert isinstance(found, WrittenLesson)
    with pytest.raises(Unfit, match=r"SmolLM2-135M has layers 0 to 29 and heads 0 to 8\.") as raised:
        decided(found)
    assert raised.value.fault.line == 12


def test_a_lesson_in_german_has_german_numbers() -> None:
    found = lesson(changed(("smollm2", "smollm2\nlanguage: de")))
    assert decided(found).reply(1).endswith("is gets 0,5 %.")
    with languages.speaking("de"):
        assert decided(lesson(WHOLE)).reply(1).endswith("is gets 0.5 %."), "an English lesson stays English"


# as steps of the room


def test_the_examples_become_steps_that_are_answered_right_and_wrong() -> None:
    service = session_service.service()
    for name in folder.examples():
        whole, known = example(name)
        for at, (of, found) in enumerate(zip(whole.steps, known, strict=True)):
            step = step_of(whole, at, {})
            assert (step.source, step.title, step.question) == (whole.title, of.title, of.question)
            assert len(step.text.split()) <= 40 and step.sentence == of.text
            truth = ask(step.truth(Shown(service, step.state)))
            assert isinstance(truth, Truth)
            right, wrong = found.right[0], next(i for i in range(len(found.options)) if i not in found.right)
            said = [[[found.places[i]] if found.places else i] for i in (right, wrong)]
            assert [check(truth, answer[0]).right for answer in said] == [True, False]
            assert truth.reason.startswith(found.ending) and truth.reason.endswith(found.care)
    whole = example("agreement")[0]
    look = step_of(whole, 1, {})
    assert (look.room, look.cover, look.state) == ("explore", "row", {"layer": "26", "head": "0"})
    known_row = {row_key(whole, 1): ask(row(whole, 1, service))}
    assert step_of(whole, 1, known_row).state == {"layer": "26", "head": "0", "query": "4"}


def test_an_answer_is_told_the_sentence_that_the_file_has_for_it() -> None:
    (of,) = lesson(WHOLE).steps
    truth = truth_of(of, decided(lesson(WHOLE)))
    assert reply(truth, [1]) == Reply("It is not this one.", "You followed the noun next to it. is gets 0.5 %.")
    assert reply(truth, [0]) is None and not truth.remarks
    assert not [said for at in (0, 1) for said in check(truth, [at]).words if "noun" in said or " gets " in said]
    assert truth.reason == "are has 16 %, is 0.5 %. Also: were 2.7 %, was less than 0.1 %."
    (of,) = lesson(NUMBER).steps
    truth = truth_of(of, decided(lesson(NUMBER)))
    wrong, right = decided(lesson(NUMBER)).mistakes[0].value[0], truth.number
    assert reply(truth, round(wrong, 2)) == Reply("Too low.", "You divided the other way round.")
    assert reply(truth, right) is None
    assert reply(truth, 2.5 * right) == Reply("Too high.", "75.6 is off by a factor of more than two.")
    shape = lesson(SHAPE)
    truth = truth_of(shape.steps[0], decided(shape))
    (mistake,) = decided(shape).mistakes
    assert reply(truth, list(mistake.value)) == Reply("The right sizes, in another order.", mistake.reply)
    assert reply(truth, [int(size) for size in truth.axes]) is None
    whole, (_, look, _) = example("agreement")
    told = "cabinet gets 5.6 % here. Layer 29, head 1 looks there most: 85 %."
    assert reply(truth_of(whole.steps[1], look), [[4]]) == Reply("It is not this one.", told)


def test_a_right_answer_is_told_its_own_sentence_after_the_answer() -> None:
    found = lesson(WHOLE.replace("- are\n", "- are | It agrees with keys: {p}.\n"))
    truth = truth_of(found.steps[0], decided(found))
    assert check(truth, [0]).words[2] == "It agrees with keys: 16 %." and reply(truth, [0]) is None
    assert "It agrees with keys: 16 %." not in check(truth, [1]).words


def test_what_a_teacher_wrote_is_the_same_in_every_language() -> None:
    (of,) = lesson(WHOLE).steps
    with languages.speaking("de"):
        told = truth_of(of, decided(lesson(WHOLE))).json()
        (mistake,) = told["mistakes"]
        assert (mistake["name"], mistake["sentence"]) == (
            languages.translated("It is not this one."),
            "You followed the noun next to it. is gets 0.5 %.",
        )
        assert mistake["name"] != "It is not this one."
    assert told["question"] == of.question and "are has 16 %, is 0.5 %." in told["reason"]
    assert told["options"] == ("are", "is")


def test_what_only_a_run_finds_is_told_the_operator_with_its_line_and_a_visitor_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text, line, sentence = UNFIT["a word of several tokens"]
    step = step_of(lesson(text), 0, {}, "tokens")
    for _ in range(2):
        with pytest.raises(HeadlightError) as refused:
            ask(step.truth(Shown(session_service.service(), step.state)))
        assert "Take another step" in str(refused.value) and sentence not in str(refused.value)
    assert [said for said in caplog.messages if f"tokens, line {line}: {sentence}" in said] == caplog.messages
    assert len(caplog.messages) == 1


def test_a_number_and_a_shape_become_truths() -> None:
    (of,) = lesson(NUMBER).steps
    truth = truth_of(of, Decided(number=30.26, tolerance=1.5, ending="It is 30.26."))
    assert check(truth, 30.0).right and not check(truth, 40.0).right
    shape = truth_of(of, Decided(shape=(9, 5, 64)))
    assert check(shape, [9, 5, 64]).right and not check(shape, [5, 9, 64]).right


@pytest.mark.parametrize("number", [0.0, 1e-9, 0.003, 0.5, 1.0, 30.26, 172.0, 49152.0, -4.0])
def test_a_number_has_room_on_both_sides_and_is_right_as_it_is_said(number: float) -> None:
    low, high, digits = between(number)
    assert low <= number < high and math.isfinite(high)
    truth = truth_of(lesson(NUMBER).steps[0], Decided(number=number, tolerance=0.0))
    assert check(truth, round(number, digits)).right and not check(truth, number + 2 * 10**-digits).right


# the folder


def test_a_folder_gives_the_lessons_that_are_in_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "deeper").mkdir(parents=True)
    outside.mkdir()
    (inside / "b.md").write_text(WHOLE, encoding="utf-8")
    (inside / "a.md").write_text(WHOLE.replace("Agreement", "First"), encoding="utf-8")
    (inside / "deeper" / "c.md").write_text(WHOLE, encoding="utf-8")
    (inside / "d.txt").write_text(WHOLE, encoding="utf-8")
    (inside / ".e.md").write_text(WHOLE, encoding="utf-8")
    (inside / "faulty.md").write_text(WHOLE.replace("model:", "modle:"), encoding="utf-8")
    (inside / "large.md").write_text(WHOLE + "\n" * folder.MOST_BYTES, encoding="utf-8")
    (inside / "latin.md").write_bytes("é".encode("latin-1"))
    (inside / "folder.md").mkdir()
    (outside / "secret.md").write_text(WHOLE, encoding="utf-8")
    os.symlink(outside / "secret.md", inside / "link.md")
    os.symlink(inside / "b.md", inside / "own.md")
    with caplog.at_level(logging.WARNING, "headlight"):
        found = folder.read(str(inside), MODELS)
    assert {name: one.title for name, one in found.items()} == {"a": "First", "b": "Agreement", "own": "Agreement"}
    said = "\n".join(caplog.messages)
    assert "faulty.md is left out: line 3: “modle” is no key of the head. Did you mean “model”?" in said
    assert "large.md is left out: It is larger than 65,536 bytes." in said
    assert "latin.md is left out: It is not text in UTF-8." in said
    assert said.count("It is not a file of this folder") == 2 and str(outside) not in said


def test_a_folder_has_so_many_files_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(folder, "MOST_FILES", 2)
    for name in "abc":
        (tmp_path / f"{name}.md").write_text(WHOLE, encoding="utf-8")
    assert list(folder.read(str(tmp_path), MODELS)) == ["a", "b"]
    assert "has 3 files; those after b.md are left out" in caplog.text


def test_without_a_folder_there_are_no_lessons(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert folder.read("") == {} == folder.read("  ")
    assert not caplog.messages
    assert folder.read(str(tmp_path / "none")) == {}
    assert "there is no folder" in caplog.text


def test_a_folder_is_read_as_it_is_now_and_each_fault_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "own.md").write_text(WHOLE, encoding="utf-8")
    monkeypatch.setenv(folder.LESSONS, str(tmp_path))
    assert list(folder.lessons()) == ["own"]
    own = folder.lessons()["own"]
    (tmp_path / "more.md").write_text(WHOLE.replace("model:", "modle:"), encoding="utf-8")
    for _ in range(3):
        assert folder.lessons() == {"own": own} and folder.lessons()["own"] is own
    assert caplog.text.count("more.md is left out: line 3") == 1
    (tmp_path / "more.md").write_text(WHOLE.replace("Agreement", "Mended"), encoding="utf-8")
    assert folder.lessons()["more"].title == "Mended"
    (tmp_path / "own.md").unlink()
    assert list(folder.lessons()) == ["more"]
    with languages.speaking("de"):
        (tmp_path / "more.md").write_text("---", encoding="utf-8")
        assert folder.lessons() == {}
    assert "more.md is left out: line 1: The head is not closed." in caplog.text, "the log is the operator's"
    monkeypatch.setenv(folder.LESSONS, str(tmp_path / "none"))
    assert folder.lessons() == {} == folder.lessons()
    assert caplog.text.count("there is no folder") == 1


# as the room lists them


def test_the_room_lists_the_files_and_then_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("agreement", "1", "Ä b.c", "ä-b-c", "--"):
        (tmp_path / f"{name}.md").write_text(WHOLE, encoding="utf-8")
    monkeypatch.setenv(folder.LESSONS, str(tmp_path))
    names = ["file", "file-1", "file-agreement", "file-ä-b-c", "file-ä-b-c-2", "example-agreement", "example-pronouns"]
    assert list(table.listed()) == names
    known = opening.written_steps()
    assert [name for name in known if name.startswith("example")] == [
        *(f"example-agreement.{n}" for n in (1, 2, 3)),
        *(f"example-pronouns.{n}" for n in (1, 2)),
    ]
    assert not known.keys() & opening.steps().keys() and len(opening.steps()) == 52
    for name in known:
        lesson_name, _, at = name.rpartition(".")
        for address in ({"lesson": name}, {"lesson": lesson_name, "at": at}):
            asked = opening.read(address)
            assert (asked.step, asked.fresh, asked.note) == (name, True, "")
        assert opening.read({"lesson": name, "seen": "1"}).seen


@pytest.mark.parametrize("lesson_name", ["file-gone", "file-gone.1", "example-agreement.4", "example-", "file"])
def test_a_written_step_that_there_is_not_gives_way_to_the_first_and_says_so(lesson_name: str) -> None:
    asked = opening.read({"lesson": lesson_name, "seen": "0"})
    assert (asked.step, asked.fresh) == ("1.1", True) and f"“{lesson_name}”" in asked.note


def test_a_row_is_found_once_and_then_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_rows", {})
    service = session_service.service()
    assert "query" not in opening.written_steps()["example-agreement.2"].state
    for name in ("example-agreement.2", "example-agreement.1", "file-gone.1", "1.1"):
        ask(table.open_row(name, service))
    assert opening.written_steps()["example-agreement.2"].state["query"] == "4"
    assert opening.written_steps()["example-agreement.1"].state == {"n": "0", "how": "greedy"}


def test_a_terminal_gets_the_faults_with_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, faulty, tied = (tmp_path / name for name in ("a.md", "b.md", "c.md"))
    whole.write_text(WHOLE, encoding="utf-8")
    faulty.write_text(changed(("check: next", "check: nxt")), encoding="utf-8")
    tied.write_text(UNFIT["a tie"][0], encoding="utf-8")
    assert main([str(whole)]) == 0
    assert capsys.readouterr().out == f"{whole}: Steps: 1. Runs of SmolLM2-135M: 1. No faults.\n"
    assert main([str(tmp_path)]) == 1
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{whole}: Steps: 1.")
    assert second == f"{faulty}:12: {BROKEN['a check'][2]}"
    assert third == f"{tied}:12: {UNFIT['a tie'][2]}"
    assert main([str(tmp_path / "none")]) == 1 == main([])


def test_the_sizes_of_models_that_are_here_are_known() -> None:
    assert offered().sizes("smollm2") == (30, 9)
    assert "smollm2" in offered().titles
