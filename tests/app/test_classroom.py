"""The classroom's routes: a lesson from its code to its end, who may do what, and what strangers send and what comes of it."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import AsyncExitStack
from typing import Any
from xml.etree import ElementTree

import pytest
import streamlit as st
from starlette import requests

from app.classroom import page, sentences, square
from app.classroom import routes as classroom
from app.classroom.channel import MOST_SAID, Channel
from app.classroom.state import MOST_FOLLOWERS, WAITS, Asked, Classroom, Question, Screen
from app.kit import params as kit_params
from app.kit import stage
from app.session import service
from app.transport import admission, metrics, security_headers
from core.run.request import Request
from tests.app.school import PLACE, TIRED, WIDE, Teacher, call, reading, screen, teaching
from tests.app.served import ask
from tests.app.test_classroom_state import SCREEN, Clock, bytes_of

VOTES = {2: 5, 7: 1, 8: 9, 9: 1, 10: 1, 11: 2, 13: 3}


def counted(why: str) -> float:
    return metrics.CLASS_REFUSED.labels(why)._value.get()


def room_of(teacher: Teacher) -> Classroom:
    found = classroom.school.find(teacher.code)
    assert found is not None
    return found


async def voters(teacher: Teacher, votes: dict[int, int], q: int) -> None:
    """Followers come in and say."""
    for place, n in votes.items():
        for _ in range(n):
            key = await teacher.join()
            assert room_of(teacher).enter(key)
            assert (await call(f"{teacher.code}/vote", {"q": q, "t": place}, key)).status == 204


def test_a_lesson_from_its_code_to_its_end() -> None:
    async def lesson() -> None:
        async with teaching() as teacher, AsyncExitStack() as streams:
            keys = [await teacher.join() for _ in range(3)]
            board = await streams.enter_async_context(reading(teacher.code, teacher.key))
            phones = [await streams.enter_async_context(reading(teacher.code, key)) for key in keys]
            assert board.headers["content-type"].startswith("text/event-stream")
            assert board.headers["x-accel-buffering"] == "no" and board.headers["cache-control"] == "no-store"
            first = await phones[0].next("screen")
            assert (first["view"], first["picture"], first["cover"]) == ("explore", teacher.run, "")
            # A screen that says nothing of the sink is an old one, whose colours have it.
            assert first["with"] == {name: str(value) for name, value in PLACE.items()} | {"sink": "in", "pinned": ""}
            await board.until("class", of=3, away=False)

            assert (await teacher.do("screen", screen=screen(teacher.run, **{"with": {"layer": "0", "head": "6"}}, cover="head"))).status == 204  # fmt: skip
            for phone in phones:
                assert (await phone.until("screen", cover="head"))["with"]["head"] == "6"
            q = await teacher.ask()
            asked = await phones[1].until("question", q=q)
            assert asked == {"q": 1, "open": True, "hidden": True, "keys": 16, "picture": teacher.run, **PLACE}
            for key, place in zip(keys, (8, 8, 2), strict=True):
                assert (await call(f"{teacher.code}/vote", {"q": q, "t": place}, key)).status == 204
            assert (await board.until("votes", said=3))["votes"] is None
            assert (await teacher.do("hide", on=False)).status == 204
            assert (await board.until("question", hidden=False))["q"] == q
            assert (await board.until("votes", votes=[[8, 2], [2, 1]]))["said"] == 3
            assert (await phones[0].until("votes", said=3))["votes"] is None
            assert (await call(f"{teacher.code}/vote", {"q": q, "t": 2}, keys[0])).status == 204
            assert (await board.until("votes", votes=[[2, 2], [8, 1]]))["said"] == 3
            assert (await teacher.do("hide", on=True)).status == 204
            assert (await board.until("question", hidden=True))["q"] == q
            assert (await board.until("votes", votes=None))["said"] == 3

            assert (await teacher.do("reveal", q=q)).status == 204
            for listener in (board, *phones):
                assert (await listener.until("votes", votes=[[2, 2], [8, 1]]))["others"] == 0
            assert (await call(f"{teacher.code}/votes?q=1", key=keys[0])).json() == {"q": 1, "said": 3, "votes": [[2, 2], [8, 1]]}  # fmt: skip
            late = await teacher.join()
            async with reading(teacher.code, late) as came_late:
                assert (await came_late.next("question"))["open"] is False
                assert (await came_late.next("votes"))["votes"] == [[2, 2], [8, 1]]
            assert await teacher.ask() == 2
            assert (await call(f"{teacher.code}/votes?q=1", key=keys[0])).json()["said"] == 3
            assert (await teacher.do("back")).status == 204
            assert (await teacher.do("end")).status == 204
            for listener in (board, *phones):
                assert await listener.next("ended") == {"why": "end"}
                await asyncio.wait_for(listener.ended.wait(), 60)
            assert (await call(f"{teacher.code}/votes?q=1", key=teacher.key)).status == 404
            assert teacher.code not in classroom._channels

    ask(lesson())


def test_the_class_as_a_head() -> None:
    """The numbers of the drawing: 22 votes beside layer 3 head 1, and again with another word in the sentence."""

    async def lesson() -> None:
        async with teaching() as teacher:
            assert (await call(f"{teacher.code}/likeness?q=1", key=teacher.key)).status == 400
            await voters(teacher, VOTES, await teacher.ask())
            assert (await call(f"{teacher.code}/likeness?q=1", key=teacher.key)).status == 400, "before the reveal"
            await teacher.do("reveal", q=1)
            found = (await call(f"{teacher.code}/likeness?q=1", key=teacher.key)).json()
            assert (found["said"], found["layers"], found["heads"]) == (22, 6, 12)
            assert found["best"] == [0, 6, pytest.approx(0.594, abs=5e-4)]
            assert found["this"] == [3, 1, pytest.approx(0.350, abs=5e-4), 19]
            assert found["agree"][3][1] == found["this"][2]
            assert [key for key, _ in found["weights"][:2]] == [2, 0]
            street = found["words"]["8"]
            assert (street["weight"], street["rank"]) == (pytest.approx(0.050, abs=5e-4), 4)
            assert street["most"] == [5, 5, pytest.approx(0.222, abs=5e-4)] and street["own"] is None
            assert found["words"]["2"]["own"][2] > 0.6 and found["before"] is None

            wide = await service.service().submit(WIDE)
            assert await teacher.ask(wide) == 2
            await voters(teacher, {0: 1, 8: 1}, 2)
            await teacher.do("reveal", q=2)
            again = (await call(f"{teacher.code}/likeness?q=2", key=teacher.key)).json()
            assert again["before"] == {"q": 1, "votes_moved": pytest.approx(1 - 9 / 22, abs=1e-4), "weight_moved": pytest.approx(0.453, abs=5e-4)}  # fmt: skip

    ask(lesson())


def test_a_round_in_which_nobody_said_anything() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            await teacher.ask()
            await teacher.do("reveal", q=1)
            answer = await call(f"{teacher.code}/likeness?q=1", key=teacher.key)
            assert (answer.status, answer.text) == (400, sentences.NOBODY_SAID)
            assert (await call(f"{teacher.code}/votes.csv?q=1", key=teacher.key)).text.count(",0,0,") == 16

    ask(lesson())


def test_the_votes_as_a_table() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            await voters(teacher, VOTES, await teacher.ask())
            assert (await call(f"{teacher.code}/votes.csv?q=1", key=teacher.key)).status == 400
            await teacher.do("reveal", q=1)
            assert (await call(f"{teacher.code}/votes.csv?q=1", key=await teacher.join())).status == 403
            answer = await call(f"{teacher.code}/votes.csv?q=1", key=teacher.key)
            assert answer.headers["content-disposition"] == 'attachment; filename="votes-1.csv"'
            lines = answer.text.split("\r\n")
            assert (
                lines[0]
                == "# Where will “it” look? 22 votes of a class, and the weights of layer 3, head 1 of MiniLM-L6."
            )
            assert lines[2] == "place,word,votes,share,weight" and len(lines) == 3 + 16 + 1
            place, word, votes, share, weight = lines[3 + 8].split(",")
            assert (place, word, votes, share) == ("8", '"street"', "9", "0.409091")
            assert round(100 * float(weight), 1) == 5.0

    ask(lesson())


# who may do what

COMMANDS: list[dict[str, Any]] = [
    {"do": "screen", "screen": {"view": "explore", "run": TIRED.key, "with": {"layer": "5"}}},
    {"do": "ask", "run": TIRED.key, **PLACE},
    {"do": "hide", "on": True},
    {"do": "reveal", "q": 1},
    {"do": "back"},
    {"do": "door", "open": False},
    {"do": "end"},
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command["do"])
def test_nobody_but_the_teacher_steers(command: dict[str, Any]) -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            await teacher.ask()
            room, before = room_of(teacher), counted("teacher")
            versions, key = dict(room.versions), await teacher.join()
            answer = await call(f"{teacher.code}/teach", command, key)
            assert (answer.status, answer.text) == (403, sentences.ONLY_TEACHER)
            assert room.versions == versions and room.door and not room.why_ended
            assert counted("teacher") == before + 1
            assert (await call(f"{teacher.code}/teach", command, teacher.key)).status in (200, 204), (
                "but the teacher may"
            )

    ask(lesson())


def test_a_wrong_code_a_wrong_key_and_a_closed_door_get_one_answer() -> None:
    async def lesson() -> None:
        async with teaching() as teacher, teaching() as other:
            inside = await teacher.join()
            before = counted("key")
            stranger = await other.join()
            said = set()
            for code, key in (
                (teacher.code, ""),
                (teacher.code, "A" * 43),
                (teacher.code, stranger),
                (teacher.code, other.key),
                (teacher.code, "\xe9" * 43),
                ("BBBBBBBB", inside),
                ("nothing", inside),
            ):
                for path, body in (("events", None), ("vote", {"q": 1, "t": 1}), ("teach", {"do": "end"}), ("votes?q=1", None), (f"picture/{teacher.run}", None)):  # fmt: skip
                    answer = await call(f"{code}/{path}", body, key)
                    said.add((answer.status, answer.text))
            assert said == {(404, sentences.NO_CLASS)} and counted("key") == before + 35
            assert (await teacher.do("door", open=False)).status == 204
            closed = await call(f"{teacher.code}/join", {}, address="10.0.1.1")
            unknown = await call("BBBBBBBB/join", {}, address="10.0.1.1")
            assert (closed.status, closed.text) == (unknown.status, unknown.text) == (404, sentences.NO_CLASS)
            again = await call(f"{teacher.code}/join", {}, inside, address="10.0.1.1")
            assert again.json() == {"code": teacher.code, "key": inside}, "who is in stays in"

    ask(lesson())


BAD: list[tuple[str, Any]] = [
    ("vote", {"q": 1}),
    ("vote", {"q": 1, "t": 8, "name": "x"}),
    ("vote", {"q": 1, "t": "8"}),
    ("vote", {"q": 1, "t": 8.0}),
    ("vote", {"q": True, "t": 8}),
    ("vote", {"q": 1, "t": -1}),
    ("vote", {"q": 1, "t": 16}),
    ("vote", {"q": 1, "t": 1 << 40}),
    ("vote", {"q": 2, "t": 8}),
    ("vote", [1, 8]),
    ("vote", "<script>"),
    ("vote", None),
    ("teach", {}),
    ("teach", {"do": "fly"}),
    ("teach", {"do": ["end"]}),
    ("teach", {"do": "end", "why": "x"}),
    ("teach", {"do": "hide", "on": 1}),
    ("teach", {"do": "reveal", "q": 2}),
    ("teach", {"do": "door"}),
    ("teach", {"do": "ask", "run": TIRED.key, **PLACE, "head": 12}),
    ("teach", {"do": "ask", "run": TIRED.key, **PLACE, "layer": 6}),
    ("teach", {"do": "ask", "run": TIRED.key, **PLACE, "query": 16}),
    ("teach", {"do": "ask", "run": TIRED.key, **PLACE, "site": "cross"}),
    ("teach", {"do": "screen", "screen": {"view": "../x", "run": "", "with": {}}}),
    ("teach", {"do": "screen", "screen": {"view": "explore", "run": TIRED.key, "with": {"layer": 3}}}),
    ("teach", {"do": "screen", "screen": {"view": "explore", "run": TIRED.key, "with": {}, "cover": "all"}}),
    ("teach", {"do": "screen", "screen": {"view": "explore", "run": TIRED.key}}),
    ("teach", {"do": "screen", "screen": "explore"}),
]
WORSE = [b"", b"{", b"[" * 1500, b'{"q": ' + b"9" * 1900 + b"}", b"\xff\xfe", b"NaN", b'{"q": 1, "t": 8, "t": 9']


def test_messages_that_are_none_change_nothing() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            key, room = await teacher.join(), room_of(teacher)
            assert room.enter(key)
            await teacher.ask()
            versions, reasons = dict(room.versions), ("message", "place", "closed")
            before = sum(map(counted, reasons))
            for path, body in BAD:
                answer = await call(f"{teacher.code}/{path}", raw=json.dumps(body).encode(), key=key if path == "vote" else teacher.key)  # fmt: skip
                assert (answer.status, room.versions) == (400, versions), (body, answer.text)
                assert answer.headers["content-type"].startswith("text/plain") and "Traceback" not in answer.text
            for raw in WORSE:
                assert (await call(f"{teacher.code}/vote", raw=raw, key=key)).status == 400, raw
            assert sum(map(counted, reasons)) == before + len(BAD) + len(WORSE)
            assert (await call(f"{teacher.code}/vote", raw=b" " * 4096, key=key)).status == 413
            long = screen(teacher.run, **{"with": {"hide": ",".join("1" * 900)}})
            assert (await teacher.do("screen", screen=long)).status == 413
            form = await call(f"{teacher.code}/vote", {"q": 1, "t": 8}, key, kind="text/plain")
            assert form.status == 400, "a form of another site can send text, but no JSON"
            for run in ("0" * 64, ""):
                unknown = await teacher.do("screen", screen=screen(run))
                # 404 would say that the class is over
                assert (unknown.status, unknown.text) == (409, sentences.NO_RUN) and room.versions == versions

    ask(lesson())


def test_what_a_screen_says_is_read_as_a_link_is() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            chosen = {"layer": "99", "head": "1", "<b>": "x", "kind": "value", "hide": "nothing"}
            assert (await teacher.do("screen", screen=screen(teacher.run, **{"with": chosen}))).status == 204
            told = room_of(teacher).told_screen()["with"]
            assert told["kind"] == "value" and told["head"] == "1" and "<b>" not in told and "hide" not in told
            assert int(told["layer"]) < 6

    ask(lesson())


def test_words_that_the_mask_hides_cannot_be_said() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            row = await service.service().submit(Request("storyteller", ("Once upon a time there was a cat.",)))
            answer = await teacher.do("ask", run=row, site="decoder", layer=0, head=0, query=3)
            assert answer.status == 200, answer.text
            question = room_of(teacher).question
            assert (
                isinstance(question, Question)
                and question.asked.places == frozenset(range(4))
                and question.asked.keys > 4
            )

    ask(lesson())


def test_ten_thousand_joins_take_no_place_and_lock_nobody_out() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            room = room_of(teacher)
            keys = {room.join() for _ in range(9_500)} | {await teacher.join() for _ in range(500)}
            assert len(keys) == 10_000 and not room._inside and room.of == 0
            key = await teacher.join()
            async with reading(teacher.code, key) as phone:
                assert phone.status == 200 and (await phone.next("class"))["of"] == 1

    ask(lesson())


def test_nobody_fits_into_a_full_class() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            room = room_of(teacher)
            for _ in range(MOST_FOLLOWERS):
                assert room.enter(room.join())
            async with reading(teacher.code, await teacher.join()) as phone:
                assert phone.status == 503

    ask(lesson())


def test_a_picture_is_had_by_who_is_in_and_only_of_what_is_shown() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            wide = await service.service().submit(WIDE)
            key = await teacher.join()
            found = await call(f"{teacher.code}/picture/{teacher.run}", key=key)
            assert found.status == 200 and b'"chosen"' in found.body and len(found.body) > 30_000
            hidden = await call(f"{teacher.code}/picture/{wide}", key=key)
            assert (hidden.status, hidden.text) == (404, sentences.NO_PICTURE)
            assert (await teacher.do("screen", screen=screen(wide))).status == 204
            assert (await call(f"{teacher.code}/picture/{wide}", key=key)).status == 200
            assert (await call(f"{teacher.code}/picture/{teacher.run}", key=key)).status == 404

    ask(lesson())


def test_a_room_is_followed_as_it_was_drawn_with_what_is_chosen_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    params = (kit_params.one_of("show", "map", "lines"), kit_params.whole("layer", "0", lambda layers: layers))
    monkeypatch.setattr(st, "session_state", session := {})
    on = stage.Stage("masks", params, lambda **_: None, is_followed=True)
    followed = stage.Followed({"show": "map", "layer": "0"}, frozenset(), {}, [], 6)
    stage.draw(on, followed, {"title": "MiniLM"}, b"numbers")
    seen = session[stage.DRAWN][0]

    async def lesson() -> None:
        async with teaching() as teacher, reading(teacher.code, teacher.key) as board:
            key = await teacher.join()
            shown = {"view": "masks", "run": seen.digest, "with": {"layer": "4", "show": "nothing", "<b>": "x"}}
            for wrong in ({**shown, "run": "0" * 32}, {**shown, "view": "step"}, {**shown, "run": teacher.run}):
                refused = await teacher.do("screen", screen=wrong)
                assert (refused.status, refused.text) == (409, sentences.NO_RUN)
            assert (await teacher.do("screen", screen={**shown, "cover": "lesson:row:10"})).status == 204
            told = await board.until("screen", view="masks")
            assert (told["picture"], told["with"], told["cover"]) == (seen.digest, {"layer": "4"}, "lesson:row:10")
            assert max(board.sizes) < 1000
            found = await call(f"{teacher.code}/picture/{seen.digest}", key=key)
            assert found.body == seen.message and found.headers["cache-control"].startswith("private")
            memory = {"view": "memory", "run": "", "with": {"text": "a"}}
            assert (await teacher.do("screen", screen=memory)).status == 204
            assert room_of(teacher).told_screen()["with"] == {"text": "a"}, "for a link"
            assert (await call(f"{teacher.code}/picture/{seen.digest}", key=key)).status == 404

    ask(lesson())


def test_a_sentence_stands_in_for_a_picture_and_never_beside_one() -> None:
    async def lesson() -> None:
        async with teaching() as teacher, reading(teacher.code, teacher.key) as board:
            refused = {"view": "masks", "run": "", "with": {}, "said": "Masks shows <b>64</b> tokens. …"}
            assert (await teacher.do("screen", screen=refused)).status == 204
            told = await board.until("screen", view="masks")
            assert (told["said"], told["picture"]) == ("Masks shows <b>64</b> tokens. …", "")
            assert (await teacher.do("screen", screen={**refused, "said": "ü" * 120})).status == 204
            await board.until("screen", said="ü" * 120)
            assert max(board.sizes) < 1000
            assert (await teacher.do("screen", screen={**refused, "said": "ü" * 150})).status == 413
            assert (await teacher.do("screen", screen={**refused, "run": teacher.run})).status == 400
            assert (await teacher.do("screen", screen={**refused, "said": 1})).status == 400
            assert (await teacher.do("screen", screen=screen(teacher.run))).status == 204
            assert (await board.until("screen", picture=teacher.run))["said"] == ""

    ask(lesson())


def test_nothing_of_a_class_is_logged(caplog) -> None:
    async def lesson() -> list[str]:
        async with teaching() as teacher:
            key = await teacher.join()
            await call(f"{teacher.code}/vote", {"q": 1, "t": 99}, key, address="192.0.2.77")
            await call(f"{teacher.code}/teach", {"do": "end"}, key, address="192.0.2.77")
            return [teacher.code, teacher.key, key, "192.0.2.77", "animal"]

    with caplog.at_level(logging.DEBUG):
        secret = ask(lesson())
    assert not [said for said in secret if said in caplog.text]
    assert not [said for said in secret if said in ask(call("/metrics")).text]
    assert "headlight_classes " in ask(call("/metrics")).text


# what travels


def test_every_change_is_below_a_kilobyte() -> None:
    async def lesson() -> None:
        async with teaching() as teacher, reading(teacher.code, teacher.key) as board:
            room, n = room_of(teacher), 500
            number = room.ask(Asked("0" * 64, "encoder", 3, 1, 10, 4096, frozenset(range(4096))))
            room.hide(False)
            for i in range(n):
                key = room.join()
                room.enter(key)
                assert room.vote(key, number, 3500 + i, 0.0) == "counted"
            told = await board.until("votes", said=n)
            assert len(told["votes"]) == MOST_SAID and told["others"] == n - MOST_SAID
            hide = ",".join(str(i) for i in range(15))
            await teacher.do("screen", screen=screen(teacher.run, **{"with": {"hide": hide, "kind": "mean", "members": "3.1,3.2,3.3"}}))  # fmt: skip
            await board.until("screen", n=2)
            assert max(board.sizes) < 1000

    ask(lesson())


def test_a_slow_reader_holds_nothing_and_gets_the_newest() -> None:
    async def lesson() -> None:
        async with teaching() as teacher, AsyncExitStack() as streams:
            slow = await streams.enter_async_context(reading(teacher.code, await teacher.join(), slow=True))
            quick = await streams.enter_async_context(reading(teacher.code, await teacher.join()))
            room, channel = room_of(teacher), classroom._channels[teacher.code]
            for n in range(2, 300):
                room.show(Screen("explore", str(n), {"with": {"filler": "x" * 500}}))
                await quick.until("screen", n=n)
            held = [sum(map(len, listener._waiting.values())) for listener in channel.listeners]
            assert max(held) < 2000, "what a slow reader did not read is kept"
            slow.may_read.set()
            await slow.until("screen", n=299)
            assert len([data for name, data in slow.take() if name == "screen"]) == 0
            assert len(slow.sizes) < 12, "it was sent what was overtaken"

    ask(lesson())


def test_votes_are_told_at_most_four_times_a_second_and_none_is_missing_at_the_end() -> None:
    async def lesson() -> None:
        async with teaching() as teacher, reading(teacher.code, teacher.key) as board:
            room, number = room_of(teacher), await teacher.ask()
            await board.until("question", q=number)
            room.hide(False)
            board.take()
            for i in range(200):
                key = room.join()
                room.enter(key)
                room.vote(key, number, i % 16, 0.0)
                await asyncio.sleep(0)
            told = await board.until("votes", said=200)
            assert sum(n for _, n in told["votes"]) == 200
            assert len(board.sizes) < 100, "a message for each vote"

    ask(lesson())


def test_a_class_is_forgotten_ten_minutes_after_its_teacher_has_gone() -> None:
    async def lesson() -> None:
        clock, done = Clock(), asyncio.Event()
        room = Classroom("KXRM7TQD", bytes_of(7), SCREEN, clock.now)
        channel = Channel(room, clock, done.set)
        room.teacher_enters()
        key = room.join()
        room.enter(key)
        listener = channel.listen(False, key)
        messages = listener.messages()
        assert b'"away":false' in await anext(messages)
        clock.now += 1  # the pause between two messages of one kind
        room.teacher_leaves(clock.now)
        while b'"away":true,"left":600' not in await anext(messages):
            pass
        clock.now += WAITS
        room.changed()
        assert b'event: ended\ndata: {"why":"forgotten"}' in b"".join([part async for part in messages])
        await asyncio.wait_for(done.wait(), 60)

    ask(lesson())


# the page and its link


def test_the_page_is_the_same_for_every_code() -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            before = counted("code")
            pages = [await call(path) for path in (f"/r/{teacher.code}", f"/R/{teacher.code}", "/r/BBBBBBBB", "/r", "/r/%3Cscript%3E")]  # fmt: skip
            assert {answer.status for answer in pages} == {200}
            below = page.text("en").replace(page.ABOVE, "../")
            assert {answer.text for answer in pages} == {below, page.text("en").replace(page.ABOVE, "./")}
            assert {answer.text for answer in pages[:3]} == {below}
            assert counted("code") == before and teacher.code not in pages[0].text
            assert pages[0].headers["content-security-policy"] == security_headers.policy((), ())
            assert pages[0].text.count("<script") == 1, "a script that stands in the page would not run"
            views = json.loads(page.text("en").split('data-views="')[1].split('"')[0].replace("&quot;", '"'))
            assert {"explore", "masks", "positions", "step"} <= views.keys()
            for address in views.values():
                assert (await call(f"/{address}")).status == 200

    ask(lesson())


def test_what_a_page_is_filled_with_is_text() -> None:
    found = page.filled("{{SCRIPT}} {{VIEWS}}", "x<b.js", {"explore": 'y"'})
    assert found == "x&lt;b.js {&quot;explore&quot;: &quot;y\\&quot;&quot;}"


def test_who_follows_takes_no_place_of_a_visitor() -> None:
    scope = {"type": "http", "method": "GET", "path": "/r/KXRM7TQD", "headers": [(b"accept", b"text/html")]}
    assert not admission.is_page(scope) and not admission.is_page(scope | {"path": "/R"})
    assert not admission.is_page(scope | {"path": "/lab/r/KXRM7TQD"}, "/lab") and admission.is_page(
        scope | {"path": "/reading"}
    )


def test_the_square_of_a_link() -> None:
    async def lesson() -> None:
        run = await service.service().submit(TIRED)
        answer = await call("open", {"screen": screen(run)})
        told = answer.json()
        try:
            root = ElementTree.fromstring(told["square"])
            assert root.get("viewBox") == "0 0 33 33", "25 modules and four of margin on either side"
            ground = root.find("{*}path")
            assert ground is not None and ground.get("fill") == "#fff" and ground.get("d") == "M0 0h33v33h-33z"
            assert told["square"] == square.svg(f"HTTP://HEADLIGHT.EXAMPLE/R/{told['code']}").decode()
        finally:
            await Teacher(told["code"], told["key"], run).do("end")

    ask(lesson())


NO_ADDRESS, NO_OUTSIDE = sentences.NO_ADDRESS, sentences.NO_OUTSIDE_ADDRESS


@pytest.mark.parametrize(
    ("host", "listens_at", "base", "link", "shown", "unreachable"),
    [
        ("headlight.example", None, "", "HTTP://HEADLIGHT.EXAMPLE/R/KXRM7TQD", "headlight.example/r", ""),
        ("10.1.2.3:8501", "0.0.0.0", "", "HTTP://10.1.2.3:8501/R/KXRM7TQD", "10.1.2.3:8501/r", ""),
        ("uni.example", None, "/lab", "http://uni.example/lab/r/KXRM7TQD", "uni.example/lab/r", ""),
        ("localhost:8501", "localhost", "", "HTTP://LOCALHOST:8501/R/KXRM7TQD", "localhost:8501/r", NO_ADDRESS),
        ("[::1]:8501", "127.0.0.1", "", "HTTP://[::1]:8501/R/KXRM7TQD", "[::1]:8501/r", NO_ADDRESS),
        ("localhost:8501", "0.0.0.0", "", "HTTP://192.168.1.9:8501/R/KXRM7TQD", "192.168.1.9:8501/r", ""),
        ("localhost:8501", None, "/lab", "http://192.168.1.9:8501/lab/r/KXRM7TQD", "192.168.1.9:8501/lab/r", ""),
        ("localhost:9000", "0.0.0.0", "", "HTTP://LOCALHOST:9000/R/KXRM7TQD", "localhost:9000/r", NO_OUTSIDE),
        ('a"><script>', "localhost", "", "HTTP://LOCALHOST/R/KXRM7TQD", "localhost/r", NO_OUTSIDE),
    ],
)
def test_the_link_that_others_can_open(host, listens_at, base, link, shown, unreachable, monkeypatch) -> None:
    monkeypatch.setattr(square, "_own_address", lambda: "192.168.1.9")
    request = asking(host)
    for seen in ("", f"http://{host}{base}/"):  # a browser that says nothing, and one that came straight here
        found = square.link(request, seen, base, listens_at, 8501)
        assert (found.of("KXRM7TQD"), found.shown, found.unreachable) == (link, shown, unreachable)


def test_a_computer_without_a_network_says_so(monkeypatch) -> None:
    monkeypatch.setattr(square, "_own_address", lambda: "")
    assert square.link(asking("localhost:8501"), "", "", None, 8501).unreachable == sentences.NO_NETWORK


def asking(host: str) -> requests.Request:
    """A request that came to this host."""
    return requests.Request({"type": "http", "method": "GET", "scheme": "http", "path": "/", "query_string": b"", "server": ("localhost", 80), "headers": [(b"host", host.encode())]})  # fmt: skip


def test_the_server_ends_its_streams() -> None:
    async def lesson() -> None:
        async with teaching() as teacher, reading(teacher.code, await teacher.join()) as phone:
            await phone.next("class")
            classroom.close()
            await asyncio.wait_for(phone.ended.wait(), 60)
            assert "ended" not in dict(phone.take()), "it comes again, to the next server"

    ask(lesson())
