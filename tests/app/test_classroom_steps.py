"""A step of a lesson that a class is asked: its stages, votes and rounds, what phones know and when, and what is kept of it."""

from __future__ import annotations

import asyncio
import gc
import html.parser
import json
import random
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from app import languages
from app.classroom import channel, sentences, steps
from app.classroom import routes as classroom
from app.classroom.state import MOST_FOLLOWERS, MOST_ROUNDS, WAITS
from app.classroom.steps import MOST_ASKED, MOST_REPLIES, Reply, Step, StepQuestion, offer, offered
from app.rooms.lessons import evidence, opening, room, words
from app.rooms.lessons.step import Candidate, Mistake, Truth
from tests.app.school import Teacher, call, reading, teaching
from tests.app.served import ask
from tests.app.test_classroom import room_of
from tests.app.test_classroom_state import followers, taught
from tests.app.test_lesson_steps import shown

CITIES = ("Paris", "London", "=Rome", "<b>Bonn</b>")


def step_of(key: str = "cities", **more: Any) -> Step:
    """Which city, of four: the second is right."""
    said: dict[str, Any] = {
        "number": "1.2",
        "title": "A <step>",
        "question": 'Which "city", then?',
        "options": CITIES,
        "unit": "",
        "digits": 0,
        "true": "London",
        "right": (1,),
        "value": 0.0,
        "values": (0.1, 0.783, 0.1, 0.017),
        "words": ("It is 78.3 %.",),
        "reply": lambda said: Reply(said == 1, (f"You chose {CITIES[said]}.",)),
        "mistake": lambda said: None if said == 1 else Reply(False, (f"{CITIES[said]} is elsewhere.",), "Elsewhere."),
    }
    return Step(key=key, **(said | more))


def number_of(key: str = "MiB", **more: Any) -> Step:
    """How many MiB: 1,024."""
    said: dict[str, Any] = {
        "options": (),
        "unit": "MiB",
        "value": 1024.0,
        "true": "1,024 MiB",
        "right": (),
        "values": (),
    }
    reply = lambda said: Reply(abs(said - 1024) <= 30, ("It is 1,024 MiB.",))  # noqa: E731
    return step_of(key, **(said | {"reply": reply, "mistake": lambda _: None} | more))


def test_the_wall_alone_hears_the_commonest_mistake_and_nothing_of_the_answer_before_it_is_shown() -> None:
    question = StepQuestion(1, step_of(), votes={"a": 1, "b": 1, "c": 1, "d": 3, "e": 3, "f": 0})
    assert "mistake" not in question.on_wall(), "not while answers come"
    question.close()
    wall = question.on_wall()
    assert wall["mistake"] == [3, 2, "Elsewhere.", ["<b>Bonn</b> is elsewhere."]], "the commonest of the wrong ones"
    assert not {"true", "right", "values", "replies"} & wall.keys()
    assert "mistake" not in question.asked()
    every = StepQuestion(2, step_of(), votes={"a": 1})
    every.close()
    assert every.on_wall()["mistake"] is None, "no one was wrong"


def test_phones_get_a_picture_with_the_question_and_what_the_run_gives_with_the_answer() -> None:
    rows = {"queries": ["a", "b"], "keys": ["a", "b"], "row": 1, "rows": ["z0", ""]}

    async def picture() -> dict[str, Any]:
        return rows

    async def lesson() -> None:
        step = offer(step_of(picture=picture))
        async with teaching() as teacher, AsyncExitStack() as streams:
            key = await teacher.join()
            await streams.enter_async_context(reading(teacher.code, key))
            q = await asked(teacher, step)
            told = await body(teacher, key, q)
            assert told["picture"] == rows and "values" not in told
            await teacher.do("votes", q=q)
            assert "values" not in await body(teacher, key, q)
            await teacher.do("answer", q=q)
            assert (await body(teacher, key, q))["values"] == [0.1, 0.783, 0.1, 0.017]

    ask(lesson())


def test_of_the_row_that_is_asked_about_phones_get_no_weight() -> None:
    step = opening.steps()["1.2"]
    rows = ask(evidence.rows(shown(step)))
    assert rows is not None
    asked_row = rows["row"]
    assert [query for query, row in enumerate(rows["rows"]) if row == ""] == [asked_row]
    assert all(len(row) == len(rows["keys"]) for query, row in enumerate(rows["rows"]) if query != asked_row)
    assert ask(evidence.rows(shown(step, query="1")))["rows"][1] == "", "another row on the screen is another question"  # type: ignore[index]
    rests = rows["rows"][0]
    assert rests[0] == max(rests) > "h", "the first word looks at itself"
    assert len(json.dumps(rows)) < 800, "a phone gets it with the question"


def test_a_text_that_is_too_long_for_a_phone_has_no_rows() -> None:
    step = opening.steps()["1.2"]
    long = (
        "The animal didn't cross the street because it was too tired to walk and the street was wide, so it sat down."
    )
    assert ask(evidence.rows(shown(step, text=long))) is None


def test_phones_hear_how_many_have_answered_at_longer_pauses_than_the_wall_and_of_a_stage_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert channel.PAUSES[False] > channel.PAUSES[True]
    monkeypatch.setitem(channel.PAUSES, True, 0.0)
    monkeypatch.setitem(channel.PAUSES, False, 600.0)

    async def lesson() -> None:
        step = offer(step_of())
        async with teaching() as teacher, AsyncExitStack() as streams:
            keys = [await teacher.join() for _ in range(12)]
            board = await streams.enter_async_context(reading(teacher.code, teacher.key))
            phones = [await streams.enter_async_context(reading(teacher.code, key)) for key in keys]
            q = await asked(teacher, step)
            for listener in (board, *phones):
                await listener.until("question", q=q)
            for count, key in enumerate(keys, 1):
                assert (await say(teacher, key, q, 1, 1)).status == 204
                await board.until("votes", said=count)
            counts = [[data["said"] for name, data in phone.take() if name == "votes"] for phone in phones]
            assert all(len(told) <= 2 for told in counts), f"with the question, and perhaps once after it: {counts}"
            assert all(12 not in told for told in counts), counts
            monkeypatch.setitem(channel.PAUSES, False, 0.01)
            await say(teacher, keys[0], q, 1, 2)
            for phone in phones:
                assert (await phone.until("votes", said=12))["votes"] is None, "the last count comes, if later"
            monkeypatch.setitem(channel.PAUSES, False, 600.0)
            await say(teacher, keys[0], q, 1, 3)
            await teacher.do("votes", q=q)
            for phone in phones:
                await phone.until("question", stage="votes")  # a stage waits for no pause

    ask(lesson())


async def asked(teacher: Teacher, step: Step) -> int:
    answer = await teacher.do("step", offer=step.key)
    assert answer.status == 200, answer.text
    return answer.json()["q"]


async def say(teacher: Teacher, key: str, q: int, r: int, a: object) -> Any:
    return await call(f"{teacher.code}/vote", {"q": q, "r": r, "a": a}, key)


async def body(teacher: Teacher, key: str, q: int) -> dict[str, Any]:
    answer = await call(f"{teacher.code}/step?q={q}", key=key)
    assert answer.status == 200, answer.text
    return answer.json()


# what is asked


def test_a_step_from_asked_to_answered_with_a_second_round() -> None:
    async def lesson() -> None:
        step = offer(step_of())
        async with teaching() as teacher, AsyncExitStack() as streams:
            keys = [await teacher.join() for _ in range(4)]
            board = await streams.enter_async_context(reading(teacher.code, teacher.key))
            phones = [await streams.enter_async_context(reading(teacher.code, key)) for key in keys]
            q = await asked(teacher, step)
            for listener in (board, *phones):
                assert await listener.until("question", q=q) == {"q": q, "round": 1, "stage": "ask"}
            for key, answer in zip(keys, (0, 0, 1, 3), strict=True):
                assert (await say(teacher, key, q, 1, answer)).status == 204
            assert (await say(teacher, keys[0], q, 1, 2)).status == 204, "changed: the last one counts"
            assert await board.until("votes", said=4) == {"q": q, "said": 4, "of": 4, "votes": None, "others": 0}
            assert (await body(teacher, teacher.key, q))["votes"] is None, "no votes are seen while they come"
            assert (await teacher.do("answer", q=q)).status == 400, "votes are shown first"
            assert (await teacher.do("votes", q=q)).status == 204
            await phones[0].until("question", stage="votes")
            assert (await body(teacher, teacher.key, q))["votes"] == [[0, 1], [1, 1], [2, 1], [3, 1]]
            assert "votes" not in await body(teacher, keys[0], q)
            assert (await teacher.do("again", q=q)).status == 204
            assert await phones[3].until("question", round=2) == {"q": q, "round": 2, "stage": "ask"}
            for key in keys[:3]:
                assert (await say(teacher, key, q, 2, 1)).status == 204
            assert (await say(teacher, keys[3], q, 1, 1)).status == 409, "the round before is over"
            await teacher.do("votes", q=q)
            assert (await teacher.do("answer", q=q)).status == 204
            for listener in (board, *phones):
                assert (await listener.until("question", stage="answer"))["round"] == 2
            wall = await body(teacher, teacher.key, q)
            assert wall["before"] == [[0, 1], [1, 1], [2, 1], [3, 1]] and wall["votes"] == [[1, 3]]
            assert wall["values"] == list(step.values) and wall["right"] == [1]
            phone = await body(teacher, keys[0], q)
            assert phone["replies"] == [[1, 3, True, ["You chose London."], ""]] and phone["words"] == ["It is 78.3 %."]
            assert (await teacher.do("again", q=q)).status == 400, "who knows the answer is not asked"
            assert (await teacher.do("back")).status == 204
            assert (await call(f"{teacher.code}/step?q={q}", key=keys[0])).status == 409

    ask(lesson())


def test_no_phone_gets_anything_of_what_is_true_before_the_answer() -> None:
    async def lesson() -> None:
        step = offer(step_of(true="SECRET-1", words=("SECRET-2",), values=(0.111111, 0.777777, 0.0, 0.0)))
        async with teaching() as teacher:
            key = await teacher.join()
            async with reading(teacher.code, key) as phone:
                q = await asked(teacher, step)
                await phone.until("question", q=q)
                await say(teacher, key, q, 1, 1)
                heard = [await body(teacher, key, q)]
                await teacher.do("votes", q=q)
                heard += [await phone.until("question", stage="votes"), await body(teacher, key, q), phone.take()]
                text = json.dumps(heard)
                assert not [secret for secret in ("SECRET", "0.111", "0.777", "right", "replies") if secret in text]
                assert max(size for size in phone.sizes) < 1000
                await teacher.do("answer", q=q)
                await phone.until("question", stage="answer")
                assert (await body(teacher, key, q))["true"] == "SECRET-1"

    ask(lesson())


def test_what_travels_at_a_change_of_stage_is_small() -> None:
    question = StepQuestion(4_000, step_of(), round=MOST_ASKED, stage="answer")
    assert len(json.dumps(question.told(), separators=(",", ":"))) <= 80


@pytest.mark.parametrize("said", [4, -1, 1.0, 1.5, "1", None, True, [1], {"a": 1}])
def test_what_is_no_option_is_no_vote(said: object) -> None:
    assert not step_of().takes(said)


@pytest.mark.parametrize("said", [float("nan"), float("inf"), -float("inf"), 1e13, 10**400, "5", None, False])
def test_what_is_no_number_is_no_vote(said: object) -> None:
    assert not number_of().takes(said)
    assert number_of().takes(-2.5) and number_of().takes(0) and number_of().takes(1024)


def test_a_vote_that_is_none_changes_nothing_and_a_late_one_hears_the_stage() -> None:
    async def lesson() -> None:
        step = offer(number_of())
        async with teaching() as teacher:
            key = await teacher.join()
            async with reading(teacher.code, key):
                q = await asked(teacher, step)
                for raw in (b'{"q": 1, "r": 1, "a": NaN}', b'{"q": 1, "r": 1, "a": "5"}', b'{"q": 1, "a": 5}'):
                    assert (await call(f"{teacher.code}/vote", raw=raw, key=key)).status == 400, raw
                wrong = await call(f"{teacher.code}/vote", {"q": q, "t": 1}, key)
                assert wrong.status == 400, "a word's place is no answer to a step"
                assert (await say(teacher, teacher.key, q, 1, 5)).status == 404, "a teacher has no vote"
                assert (await say(teacher, key, q, 1, 512.5)).status == 204
                await teacher.do("votes", q=q)
                late = await say(teacher, key, q, 1, 1024)
                assert (late.status, late.json()) == (409, {"q": q, "round": 1, "stage": "votes"})
                assert (await body(teacher, teacher.key, q))["votes"] == [[512.5, 1]]
                await teacher.do("back")
                gone = await say(teacher, key, q, 1, 1024)
                assert (gone.status, gone.json()) == (409, None)

    ask(lesson())


def test_only_what_is_on_a_screen_is_asked_and_only_by_the_teacher() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            unknown = await teacher.do("step", offer="0" * 32)
            assert (unknown.status, unknown.text) == (409, sentences.NO_OFFER)
            step = offer(step_of("held"))
            key = await teacher.join()
            q = await asked(teacher, step)
            for command in (
                {"do": "step", "offer": step.key},
                *({"do": do, "q": q} for do in ("votes", "again", "answer")),
            ):
                assert (await call(f"{teacher.code}/teach", command, key)).status == 403
            for path in ("class.csv", "class.html"):
                assert (await call(f"{teacher.code}/{path}", key=key)).status == 403
                assert (await call(f"{teacher.code}/{path}", key=teacher.key)).status == 400, "nothing was answered"
            del step
            gc.collect()
            assert offered("held") is not None, "the class holds what it is asked"
        await asyncio.sleep(0)

    ask(lesson())
    gc.collect()
    assert offered("held") is None


# late, lost, returning, asleep


def test_phones_that_come_late_get_lost_or_return() -> None:
    async def lesson() -> None:
        step = offer(step_of())
        async with teaching() as teacher:
            loser, late = await teacher.join(), await teacher.join()
            async with reading(teacher.code, loser) as phone:
                q = await asked(teacher, step)
                await phone.until("question", q=q)
                await say(teacher, loser, q, 1, 3)
            # The stream is gone, the vote is kept, and it may still be changed.
            assert (await say(teacher, loser, q, 1, 1)).status == 204
            async with reading(teacher.code, loser) as phone:
                assert (await phone.next("question"))["mine"] == 1, "it came back to what it said"
                await teacher.do("votes", q=q)
                assert "mine" not in await phone.until("question", stage="votes")
            async with reading(teacher.code, loser) as phone:
                assert await phone.next("question") == {"q": q, "round": 1, "stage": "votes"}
            async with reading(teacher.code, late) as phone:
                assert (await phone.next("question"))["stage"] == "votes"
                assert (await say(teacher, late, q, 1, 0)).status == 409
                await teacher.do("again", q=q)
                await phone.until("question", round=2)
                assert (await say(teacher, late, q, 2, 0)).status == 204
            await teacher.do("votes", q=q)
            assert (await body(teacher, teacher.key, q))["votes"] == [[0, 1]]

    ask(lesson())


def test_votes_count_while_the_teacher_sleeps() -> None:
    async def lesson() -> None:
        step = offer(step_of())
        async with teaching() as teacher:
            async with reading(teacher.code, teacher.key) as board:
                q = await asked(teacher, step)
                await board.until("question", q=q)
            keys = [await teacher.join() for _ in range(9)]
            assert room_of(teacher).left(classroom.school.clock()) is not None
            async with AsyncExitStack() as streams:
                phones = [await streams.enter_async_context(reading(teacher.code, key)) for key in keys]
                assert (await phones[0].until("class", away=True))["left"] <= WAITS
                for key in keys:
                    assert (await say(teacher, key, q, 1, 2)).status == 204
                async with reading(teacher.code, teacher.key) as board:
                    assert (await board.next("question"))["stage"] == "ask"
                    assert (await board.until("votes", said=9))["votes"] is None
                    await phones[0].until("class", away=False)

    ask(lesson())


def test_forty_phones_answer_while_the_stages_change() -> None:
    """Each says several things at once with the others; what counts is the last one before voting was closed."""

    async def lesson() -> None:
        step = offer(number_of())
        draw = random.Random(5)
        async with teaching() as teacher, AsyncExitStack() as streams:
            keys = [await teacher.join() for _ in range(40)]
            phones = [await streams.enter_async_context(reading(teacher.code, key)) for key in keys]
            q = await asked(teacher, step)
            last: dict[str, float] = {}

            async def answers(key: str) -> None:
                for _ in range(draw.randrange(1, 4)):
                    said = draw.choice([256, 512, 768, 1024, 65536.5])
                    assert (await say(teacher, key, q, 1, said)).status == 204
                    last[key] = said

            await asyncio.gather(*map(answers, keys))
            closing, *late = await asyncio.gather(
                teacher.do("votes", q=q), *(say(teacher, key, q, 1, 7) for key in keys[:5])
            )
            assert closing.status == 204 and {answer.status for answer in late} <= {204, 409}
            for key, answer in zip(keys, late, strict=False):
                if answer.status == 204:
                    last[key] = 7
            wall = await body(teacher, teacher.key, q)
            assert dict(map(tuple, wall["votes"])) == Counter(last.values())
            await teacher.do("answer", q=q)
            for phone in phones:
                assert (await phone.until("question", stage="answer"))["q"] == q
            told = await body(teacher, keys[0], q)
            assert sum(n for _, n, *_ in told["replies"]) == 40
            assert {answer for answer, _, right, *_ in told["replies"] if right} <= {1024}

    ask(lesson())


# privacy and bounds


def linked(found: object, key: str, seen: set[int] | None = None) -> bool:
    """Whether a key is anywhere in what an object holds."""
    seen = set() if seen is None else seen
    if id(found) in seen:
        return False
    seen.add(id(found))
    if isinstance(found, str):
        return found == key
    if isinstance(found, dict):
        return any(linked(part, key, seen) for pair in found.items() for part in pair)
    if isinstance(found, list | tuple | set | frozenset):
        return any(linked(part, key, seen) for part in found)
    return linked(vars(found), key, seen) if isinstance(found, StepQuestion | Step) else False


def test_after_the_votes_are_shown_nothing_links_an_answer_to_a_phone() -> None:
    classroom_ = taught()
    keys = followers(classroom_, 3)
    q = classroom_.ask_step(step_of())
    for key in keys:
        assert classroom_.answer(key, q, 1, 3, 0) == "counted"
    question = classroom_.step(q)
    assert question is not None and all(linked(question, key) for key in keys), "until then it may be changed"
    assert classroom_.move(q, "votes")
    assert not any(linked(question, key) for key in keys) and question.tally() == {3: 3}
    assert all(classroom_.told_question(key) == {"q": q, "round": 1, "stage": "votes"} for key in keys)
    classroom_.move(q, "answer")
    assert not any(linked(classroom_.steps, key) for key in keys)
    classroom_.end()
    assert not classroom_.steps and classroom_.step(q) is None


def test_what_a_class_keeps_of_its_steps_is_bounded() -> None:
    classroom_ = taught()
    keys = followers(classroom_, MOST_FOLLOWERS)
    for i in range(MOST_ROUNDS + 5):
        q = classroom_.ask_step(number_of())
        for round in range(1, MOST_ASKED + 3):
            for j, key in enumerate(keys[:: 1 if i == 3 else 50]):
                classroom_.answer(key, q, round, j + i / 100, 100.0 * (10 * i + round))
            classroom_.move(q, "votes")
            classroom_.move(q, "again")
        assert classroom_.move(q, "answer")
    assert len(classroom_.steps) == MOST_ROUNDS
    assert all(len(question.counted) == MOST_ASKED for question in classroom_.steps.values())
    full = classroom_.ask_step(number_of())
    for key in keys:
        assert classroom_.answer(key, full, 1, random.random(), 1e6) == "counted"
    assert classroom_.answer("stranger", full, 1, 1, 1e6) == "outside"
    classroom_.move(full, "votes")
    classroom_.move(full, "answer")
    question = classroom_.step(full)
    assert question is not None and len(question.asked()["replies"]) == MOST_REPLIES
    assert len(json.dumps(question.asked())) < 8 << 10, "what every phone fetches"


def test_a_row_and_a_step_do_not_take_each_others_messages() -> None:
    classroom_ = taught()
    (key,) = followers(classroom_, 1)
    q = classroom_.ask_step(step_of())
    assert classroom_.vote(key, q, 1, 0) == "closed" and not classroom_.reveal(q) and not classroom_.hide(True)
    assert not classroom_.move(q + 1, "votes") and not classroom_.move(q, "again") and classroom_.move(q, "votes")
    assert not classroom_.move(q, "votes"), "no vote is counted twice"


# files


class Outline(html.parser.HTMLParser):
    """Tags of a page, and what they would load."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]


def test_a_class_as_a_table_and_as_a_page_to_keep() -> None:
    async def lesson() -> None:
        cities, memory = offer(step_of()), offer(number_of(number="3.7"))
        async with teaching() as teacher:
            keys = [await teacher.join() for _ in range(3)]
            for key in keys:
                assert room_of(teacher).enter(key)
            q = await asked(teacher, cities)
            for key, said in zip(keys, (1, 2, 3), strict=True):
                await say(teacher, key, q, 1, said)
            await teacher.do("votes", q=q)
            assert (await call(f"{teacher.code}/class.csv", key=teacher.key)).status == 400, "before the answer"
            await teacher.do("again", q=q)
            await say(teacher, keys[0], q, 2, 1)
            await teacher.do("votes", q=q)
            await teacher.do("answer", q=q)
            q = await asked(teacher, memory)
            await say(teacher, keys[0], q, 1, 512)
            await teacher.do("votes", q=q)
            await teacher.do("answer", q=q)
            table = await call(f"{teacher.code}/class.csv", key=teacher.key)
            assert table.headers["content-disposition"] == 'attachment; filename="class.csv"'
            assert table.text.split("\r\n") == [
                "step,round,question,answer,votes,right",
                '"1.2",1,"Which ""city"", then?","London",1,yes',
                '"1.2",1,"Which ""city"", then?","\'=Rome",1,no',
                '"1.2",1,"Which ""city"", then?","<b>Bonn</b>",1,no',
                '"1.2",2,"Which ""city"", then?","London",1,yes',
                '"3.7",1,"Which ""city"", then?",512,1,no',
                "",
            ]
            page = await call(f"{teacher.code}/class.html", key=teacher.key)
            outline = Outline()
            outline.feed(page.text)
            assert (outline.tags["table"], outline.tags["h2"], outline.tags["b"], outline.tags["step"]) == (3, 2, 0, 0)
            assert not outline.loads and not outline.tags["script"], "it works without the server"
            assert "&lt;b&gt;Bonn&lt;/b&gt;" in page.text and "A &lt;step&gt;" in page.text and "512 MiB" in page.text
            assert not [key for key in (*keys, teacher.key, teacher.code) if key in page.text + table.text]

    ask(lesson())


# which steps


def truth(kind: Any, **more: Any) -> Truth:
    return Truth(kind, "Which?", "Because.", "Checked here.", **more)


def test_steps_that_a_phone_can_answer_and_those_that_it_cannot() -> None:
    point = truth("point", candidates=(Candidate("London", (7,), 0.8), Candidate("Italy", (2,), 0.2)), share=True)
    asked = room.askable("1.2", "A title", point)
    assert isinstance(asked, Step) and asked.options == ("Italy", "London"), "in their order in the text"
    assert (asked.right, asked.values, asked.true) == ((1,), (0.2, 0.8), "London")
    assert asked.reply(1).right and not asked.reply(0).right
    assert asked.reply(0).words == ("You chose Italy: 20.0 %, rank 2 of 2.", "This head gives most to London: 80.0 %.")
    assert asked.words == ("Because.", "Checked here.")

    drag = room.askable("3.7", "A title", truth("drag", number=1024.0, unit="MiB", tolerance=30.0, high=4096.0))
    assert isinstance(drag, Step) and not drag.options and drag.true == "1,024 MiB"
    assert drag.reply(1000).right and drag.reply(512).words[0] == "You chose 512 MiB: 512 MiB too low."

    choose = room.askable("1.3", "A title", truth("choose", options=("a", "b", "c"), right=(2,)))
    assert isinstance(choose, Step) and choose.right == (2,) and choose.reply(2).right
    again = room.askable("1.3", "A title", truth("choose", options=("a", "b", "c"), right=(2,)))
    assert again is choose, "two screens of one run offer one question"

    many = tuple(Candidate(str(i), (i,), 1 / (i + 1)) for i in range(steps.MOST_OPTIONS + 1))
    assert room.askable("1.2", "", truth("point", candidates=many)) == words.ROOM_CANNOT["many"].format(
        n=steps.MOST_OPTIONS
    )
    assert (
        room.askable("1.6", "", truth("choose", options=("a", "b"), right=(0, 1), all_of=True))
        == words.ROOM_CANNOT["several"]
    )
    for kind in ("shape", "do"):
        assert room.askable("1.5", "", truth(kind, axes=("2", "3"))) == words.ROOM_CANNOT[kind]


def test_a_wrong_answer_of_a_class_hears_which_mistake_it_is() -> None:
    twice = Mistake(512.0, "You forgot the values.", "The keys alone take 512 MiB.")
    drag = truth("drag", number=1024.0, unit="MiB", tolerance=30.0, step=1.0, high=4096.0, mistakes=(twice,))
    asked = room.askable("3.7", "", drag)
    assert isinstance(asked, Step)
    assert asked.reply(512) == Reply(
        False, ("The keys alone take 512 MiB.", "It is 1,024 MiB."), "You forgot the values."
    )
    assert asked.reply(700).name == "" and asked.reply(700).words[0] == "You chose 700 MiB: 324 MiB too low."
    assert asked.reply(1024).name == "" and asked.reply(1024).right

    itself = Mistake("2", "You took the word that looks.", "Italy gets 20.0 % here.")
    candidates = (Candidate("London", (7,), 0.8), Candidate("Italy", (2,), 0.2), Candidate("in", (4,), 0.0))
    point = room.askable("1.2", "", truth("point", candidates=candidates, share=True, mistakes=(itself,)))
    assert isinstance(point, Step) and point.options == ("Italy", "in", "London")
    assert (point.reply(0).name, point.reply(0).words[0]) == (itself.name, itself.sentence)
    assert [point.reply(i).name for i in (1, 2)] == ["", ""]

    choose = truth("choose", options=("a", "b"), right=(1,), mistakes=(Mistake("0", "Named.", "Said."),))
    chosen = room.askable("1.3", "", choose)
    assert isinstance(chosen, Step) and chosen.reply(0) == Reply(False, ("Said.", "The answer is b."), "Named.")


def test_the_words_of_a_written_step_reach_a_class_as_its_teacher_wrote_them() -> None:
    remarks = (("Yes", "Well seen."),)
    written = truth("choose", options=("Yes", "No"), right=(0,), remarks=remarks, is_written=True)
    with languages.speaking("de"):
        asked = room.askable("file-pronouns.2", "Order and depth", written, "en")
        own = room.askable("1.3", "Order and depth", replace(written, is_written=False))
    assert isinstance(asked, Step) and isinstance(own, Step)
    assert (asked.number, asked.title, asked.language) == ("2", "Order and depth", "en") and asked.options == (
        "Yes",
        "No",
    )
    assert (own.number, own.title, own.language) == ("1.3", "Reihenfolge und Tiefe", "")
    assert asked.reply(0).words[-1] == "Well seen." and asked.words == ("Because.", "Checked here.")


def test_most_steps_of_the_lessons_are_of_a_kind_that_a_class_can_be_asked() -> None:
    kinds = Counter(step.kind for step in opening.steps().values())
    assert kinds["choose"] + kinds["drag"] + kinds["point"] > 0.8 * kinds.total()
