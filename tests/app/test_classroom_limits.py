"""A class cannot be taken from others: a right code always enters, and no address can hold every place."""

from __future__ import annotations

from collections import Counter

import pytest

from app.classroom import routes as classroom
from app.classroom import sentences
from app.classroom.school import MOST_CLASSES, MOST_OF_ADDRESS, School
from app.classroom.state import FIRST_WAIT, WAITS
from app.transport import metrics, rate_limits
from app.transport import words as transport_words
from core.errors import ServerBusy
from tests.app.school import Teacher, call, teaching
from tests.app.served import ask
from tests.app.test_classroom_state import SCREEN, Clock, bytes_of

SHOWN = {"view": "lessons", "run": "", "with": {}, "cover": ""}
WRONG = "BBBBBBBB/join"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The limits of a server that has begun."""
    clock = Clock()
    monkeypatch.setattr(rate_limits, "balances", rate_limits.Balances(rate_limits.RATES, clock))
    return clock


async def guess(address: str, n: int) -> Counter[int]:
    return Counter([(await call(WRONG, {}, address=address)).status for _ in range(n)])


async def enters(teacher: Teacher, address: str) -> bool:
    return (await call(f"{teacher.code}/join", {}, address=address)).status == 200


# codes


def test_a_right_code_enters_where_many_were_wrong(clock: Clock) -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            before = metrics.CLASS_REFUSED.labels("codes")._value.get()
            assert await guess("10.0.2.1", 330) == {404: 30, 429: 300}
            assert metrics.CLASS_REFUSED.labels("codes")._value.get() == before + 300
            limited = await call(WRONG, {}, address="10.0.2.1")
            assert (limited.text, limited.headers["retry-after"]) == (sentences.WRONG_CODES, "2")
            assert [await enters(teacher, "10.0.2.1") for _ in range(60)] == [True] * 60, "a school is one address"
            clock.now += 2
            assert await guess("10.0.2.1", 2) == {404: 1, 429: 1}

    ask(lesson())


def test_a_right_code_enters_while_many_addresses_guess(clock: Clock) -> None:
    async def lesson() -> None:
        async with teaching() as teacher:
            for i in range(10):
                assert await guess(f"10.0.3.{i}", 301) == {404: 30, 429: 271}
            assert await enters(teacher, "10.0.3.200") and await enters(teacher, "10.0.3.1")

    ask(lesson())


def test_addresses_of_one_host_guess_together(clock: Clock) -> None:
    async def guesses() -> None:
        said = [(await call(WRONG, {}, address=f"2001:db8::{i:x}")).status for i in range(32)]
        assert Counter(said) == {404: 30, 429: 2}
        assert (await call(WRONG, {}, address="2001:db8:0:1::1")).status == 404, "another network"

    ask(guesses())


# opening


def test_one_visitor_opens_a_few_classes_at_once(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classroom, "school", School(bytes_of(5), clock))

    async def lesson() -> None:
        said = [await call("open", {"screen": SHOWN}, address="10.0.4.1") for _ in range(9)]
        assert [answer.status for answer in said] == [201] * 8 + [429]
        assert said[-1].text == transport_words.WAIT.format(seconds=50)
        assert (await call("open", {"screen": SHOWN}, address="10.0.4.2")).status == 201
        clock.now += 50
        assert (await call("open", {"screen": SHOWN}, address="10.0.4.1")).status == 201
        for found in classroom.school.classes():
            found.end()

    ask(lesson())


def test_one_address_holds_its_share_of_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    school = School(bytes_of(6), Clock())
    opened = [school.open(SCREEN, "10.0.5.1") for _ in range(MOST_OF_ADDRESS)]
    assert 3 * MOST_OF_ADDRESS < MOST_CLASSES, "three addresses leave places to others"
    with pytest.raises(ServerBusy) as full:
        school.open(SCREEN, "10.0.5.1")
    assert str(full.value) == sentences.FULL_ADDRESS.format(n=MOST_OF_ADDRESS)
    assert school.open(SCREEN, "10.0.5.2")
    monkeypatch.setattr(classroom, "school", school)
    answer = ask(call("open", {"screen": SHOWN}, address="10.0.5.1"))
    assert (answer.status, answer.text) == (503, str(full.value))
    opened[0].end()
    assert school.open(SCREEN, "10.0.5.1")


def test_a_class_without_its_teacher_is_closed_soon() -> None:
    clock = Clock()
    school = School(bytes_of(7), clock)
    never, taught = school.open(SCREEN, "10.0.6.1"), school.open(SCREEN, "10.0.6.1")
    taught.teacher_enters()
    taught.teacher_leaves(clock.now)
    clock.now += FIRST_WAIT - 1
    assert school.find(never.code) is never
    clock.now += 1
    assert school.find(never.code) is None and school.find(taught.code) is taught
    clock.now += WAITS - FIRST_WAIT
    assert school.classes() == []
