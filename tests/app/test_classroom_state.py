"""A class without a server: votes are neither lost nor doubled, whatever comes in whatever order, and nothing grows without end."""

from __future__ import annotations

import base64
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from app.classroom import codes, routes
from app.classroom.school import MOST_CLASSES, School
from app.classroom.state import FIRST_WAIT, MESSAGES, MOST_FOLLOWERS, MOST_ROUNDS, PER, WAITS, Asked, Classroom, Screen
from core import secret
from core.errors import ServerBusy

SCREEN = Screen("explore", "run", {"with": {"layer": "3"}})
ASKED = Asked("run", "encoder", 3, 1, 10, 16, frozenset(range(16)))


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def bytes_of(seed: int) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


def taught(seed: int = 0, now: float = 0.0) -> Classroom:
    return Classroom("KXRM7TQD", bytes_of(seed), SCREEN, now)


def followers(classroom: Classroom, n: int) -> list[str]:
    keys = [classroom.join() for _ in range(n)]
    assert all(classroom.enter(key) for key in keys)
    return keys


def test_a_question_from_asked_to_revealed() -> None:
    room = taught()
    one, two, three = followers(room, 3)
    assert room.ask(ASKED) == 1
    assert [room.vote(one, 1, 8, 0), room.vote(two, 1, 8, 0), room.vote(two, 1, 2, 0)] == ["counted"] * 3
    assert room.told_votes(False, 80) == {"q": 1, "said": 2, "of": 3, "votes": None, "others": 0}
    assert (room.told_votes(True, 80) or {})["votes"] is None, "hidden until the teacher shows them"
    assert room.hide(False)
    assert (room.told_votes(True, 80) or {})["votes"] == [[2, 1], [8, 1]]
    assert room.told_question(two) == {**(room.told_question() or {}), "mine": 2}
    assert room.hide(True)
    assert (room.told_votes(True, 80) or {})["votes"] is None
    assert room.reveal(1) and not room.reveal(1) and not room.hide(False)
    assert room.told_votes(False, 80) == {"q": 1, "said": 2, "of": 3, "votes": [[2, 1], [8, 1]], "others": 0}
    assert room.vote(three, 1, 8, 0) == "closed"
    question = room.round(1)
    assert question is not None and question.votes == {}, "whose vote it was is still known"


@pytest.mark.parametrize(
    ("number", "place", "outcome"), [(2, 8, "closed"), (0, 8, "closed"), (1, 16, "place"), (1, 3, "place")]
)
def test_what_is_no_vote(number: int, place: int, outcome: str) -> None:
    room = taught()
    (key,) = followers(room, 1)
    room.ask(Asked("run", "encoder", 3, 1, 10, 16, frozenset(range(16)) - {3}))
    assert room.vote(key, number, place, 0) == outcome
    assert (room.told_votes(True, 80) or {})["said"] == 0


def test_who_never_came_in_has_no_vote() -> None:
    room = taught()
    room.ask(ASKED)
    assert room.vote(room.join(), 1, 8, 0) == "outside"


def test_a_follower_who_votes_without_end_is_held_back() -> None:
    room = taught()
    (key,) = followers(room, 1)
    room.ask(ASKED)
    room.hide(False)
    assert [room.vote(key, 1, i % 16, 0) for i in range(MESSAGES + 1)] == ["counted"] * MESSAGES + ["often"]
    assert room.vote(key, 1, 7, PER + 1) == "counted"
    assert (room.told_votes(True, 80) or {})["votes"] == [[7, 1]]


def test_rounds_are_kept_and_what_was_not_revealed_is_dropped() -> None:
    room = taught()
    (key,) = followers(room, 1)
    for i in range(MOST_ROUNDS + 4):
        number = room.ask(ASKED)
        room.vote(key, number, i % 16, 100.0 * i)
        if i != 5:
            room.reveal(number)
    assert len(room.rounds) == MOST_ROUNDS and room.round(6) is None and room.round(1) is None
    assert room.before(MOST_ROUNDS + 4) is room.round(MOST_ROUNDS + 3) is not None
    assert (before := room.before(7)) is not None and before.number == 5
    room.back()
    assert room.told_question() is None and room.told_votes(True, 80) is None


def test_ten_minutes_without_its_teacher() -> None:
    room = taught(now=50.0)
    assert not room.ended(50 + FIRST_WAIT - 1)
    room.teacher_enters()
    room.teacher_enters()  # a second window
    assert room.left(1e9) is None and not room.ended(1e9)
    room.teacher_leaves(2000.0)
    assert room.left(5000.0) is None
    room.teacher_leaves(3000.0)
    assert room.left(3000.0 + 400) == WAITS - 400
    room.teacher_enters()
    room.teacher_leaves(4000.0)
    room.ask(ASKED)
    room.reveal(1)
    assert not room.ended(4000.0 + WAITS - 1) and room.ended(4000.0 + WAITS)
    assert room.why_ended == "forgotten" and not room.rounds and not room.runs() and room.told_question() is None


def test_a_lost_connection_loses_no_vote_and_a_place_is_given_up_only_to_who_needs_it() -> None:
    room = taught()
    keys = followers(room, MOST_FOLLOWERS)
    room.ask(ASKED)
    room.hide(False)
    assert room.vote(keys[3], 1, 8, 0) == "counted"
    assert not room.enter(room.join()), "one more than there are places"
    room.leave(keys[3])
    assert room.of == MOST_FOLLOWERS - 1
    assert room.vote(keys[3], 1, 9, 0) == "counted", "who lost the stream may still say"
    assert room.told_votes(True, 80) == {"q": 1, "said": 1, "of": MOST_FOLLOWERS, "votes": [[9, 1]], "others": 0}
    newcomer = room.join()
    assert room.enter(newcomer) and not room.enter(keys[3])
    assert (room.told_votes(True, 80) or {})["votes"] == [[9, 1]]
    room.leave(newcomer)
    assert room.enter(keys[3])
    assert (room.told_question(keys[3]) or {})["mine"] == 9


def test_no_more_votes_than_places() -> None:
    room = taught()
    room.ask(ASKED)
    said = Counter[str]()
    for _ in range(MOST_FOLLOWERS + 50):
        key = room.join()
        room.enter(key)
        said[room.vote(key, 1, 8, 0)] += 1
        room.leave(key)
    assert said == {"counted": MOST_FOLLOWERS, "full": 50}


@pytest.mark.parametrize("seed", range(25))
def test_no_vote_is_lost_or_doubled_in_any_order(seed: int) -> None:
    """Against a dictionary: the last word of each follower before the reveal, and nothing of anybody else's."""
    draw, room = random.Random(seed), taught(seed)
    keys, inside = [room.join() for _ in range(12)], Counter[str]()
    known: set[str] = set()
    expected: dict[str, int] = {}
    now, number, is_open = 0.0, 0, False
    for _ in range(600):
        now += PER  # nobody is held back
        key = draw.choice(keys)
        match draw.choice(["enter", "leave", "vote", "vote", "vote", "ask", "reveal", "back", "hide", "door", "show"]):
            case "enter":
                assert room.enter(key)
                inside[key] += 1
                known.add(key)
            case "leave" if inside[key]:
                room.leave(key)
                inside[key] -= 1
            case "vote":
                asked, place = draw.choice([number, number, number + 1, number - 1]), draw.randrange(-1, 17)
                outcome = room.vote(key, asked, place, now)
                counts = key in known and is_open and asked == number and 0 <= place < 16
                assert (outcome == "counted") == counts
                if counts:
                    expected[key] = place
            case "ask" if draw.random() < 0.3:
                number, is_open, expected = room.ask(ASKED), True, {}
            case "reveal" if draw.random() < 0.3:
                assert room.reveal(number) == is_open
                if is_open:
                    found = room.round(number)
                    assert found is not None and found.tally() == Counter(expected.values())
                is_open = False
            case "back" if draw.random() < 0.2:
                room.back()
                is_open = False
            case "hide":
                assert room.hide(draw.random() < 0.5) == is_open
            case "door":
                room.set_door(draw.random() < 0.5)
            case "show":
                room.show(Screen("explore", str(draw.random())))
        assert room.of == sum(1 for n in inside.values() if n)
        if is_open and room.question is not None:
            assert room.question.tally() == Counter(expected.values())
            assert room.question.said == len(expected)


def test_two_threads_lose_nothing() -> None:
    room = taught()
    keys = followers(room, 400)
    room.ask(ASKED)
    outcomes: list[str] = []
    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:

        def say(part: list[str], place: int) -> None:
            for key in part:
                outcomes.append(room.vote(key, 1, place, 0))
                room.leave(key)
                room.enter(key)

        threads = [threading.Thread(target=say, args=(keys[i::4], i)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(every)
    assert outcomes == ["counted"] * 400 and room.of == 400
    assert room.question is not None and room.question.tally() == {0: 100, 1: 100, 2: 100, 3: 100}


# codes and keys


def test_codes_are_of_25_signs_each_as_likely() -> None:
    draw = bytes_of(1)
    found = [codes.new(draw) for _ in range(4000)]
    assert len(set(found)) == 4000 and all(len(code) == 8 for code in found)
    seen = Counter("".join(found))
    assert set(seen) == set(codes.ALPHABET) and len(codes.ALPHABET) == 25
    assert not set("AEIOU012568") & set(codes.ALPHABET)
    assert max(seen.values()) < 1.25 * min(seen.values())


def test_the_codes_of_one_of_several_processes_begin_with_its_own_signs() -> None:
    draw, school = bytes_of(2), School(bytes_of(2), Clock())
    found = [codes.new(draw, "QRST") for _ in range(2000)]
    first, second = Counter(code[0] for code in found), Counter(code[1] for code in found)
    assert set(first) == set("QRST") and max(first.values()) < 1.25 * min(first.values())
    assert set(second) == set(codes.ALPHABET), "only the first sign says where"
    school.first = "B"
    assert all(school.open(SCREEN, f"10.0.0.{i}").code[0] == "B" for i in range(20))


def test_what_an_operator_says_of_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert codes.ours("") == codes.ALPHABET and codes.ours("KXR") == "KXR"
    for value in ("A", "b", "BB", "B C", "B,C", "0", codes.ALPHABET + "B"):
        with pytest.raises(ValueError, match="HEADLIGHT_CODES is the first characters of the codes"):
            codes.ours(value)
    monkeypatch.setattr(routes.school, "first", codes.ALPHABET)
    monkeypatch.setenv(codes.OURS, "KXR")
    routes.begin()
    assert routes.school.first == "KXR"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("KXRM7TQD", "KXRM7TQD"),
        ("kxrm 7tqd", "KXRM7TQD"),
        (" kx-rm-7t-qd ", "KXRM7TQD"),
        *[
            (wrong, "")
            for wrong in ("KXRM7TQ", "KXRM7TQDD", "KXRM7TQA", "ＫＸＲＭ７ＴＱＤ", "K" * 9999, None, 7, ["KXRM7TQD"])
        ],
    ],
)
def test_a_code_is_read_as_people_type_it(said: object, code: str) -> None:
    assert codes.read(said) == code


def test_keys_belong_to_their_class() -> None:
    one, two = taught(1), taught(2)
    key = one.join()
    assert len(key) == 43 and key != one.join()
    assert one.is_follower(key) and not two.is_follower(key) and not one.is_teacher(key)
    assert (
        one.is_teacher(one.teacher_key) and not one.is_follower(one.teacher_key) and not two.is_teacher(one.teacher_key)
    )
    last = base64.urlsafe_b64decode(key + "=")
    twin = key[:-1] + next(s for s in "ABCDEFGHIJKLMNOP" if s != key[-1])
    for wrong in ("", "é" * 43, key[:-1], key + "A", "A" * 43, twin, secret.spelled(last[:-1] + bytes([last[-1] ^ 1]))):
        assert not one.is_follower(wrong), wrong


def test_one_key_has_one_spelling() -> None:
    """43 signs have two bits more than 32 bytes: a second spelling would be a second vote."""
    room = taught()
    key = room.join()
    assert [room.is_follower(key[:-1] + sign) for sign in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"].count(True) == 1  # fmt: skip


# classes


def test_a_server_holds_so_many_classes() -> None:
    clock = Clock()
    school = School(bytes_of(3), clock)
    opened = [school.open(SCREEN, f"10.0.0.{i}") for i in range(MOST_CLASSES)]
    with pytest.raises(ServerBusy, match=f"This server holds {MOST_CLASSES} classes"):
        school.open(SCREEN, "10.0.0.99")
    assert school.find(opened[0].code) is opened[0]
    opened[0].end()
    assert school.find(opened[0].code) is None and school.open(SCREEN, "10.0.0.99")
    clock.now += WAITS
    assert school.classes() == []


def test_what_a_full_class_takes_is_bounded() -> None:
    room = taught()
    keys = followers(room, MOST_FOLLOWERS)
    for number in range(1, 60):
        room.ask(ASKED)
        for i, key in enumerate(keys):
            room.vote(key, number, i % 16, 100.0 * number)
        room.reveal(number)
    assert len(room._inside) == MOST_FOLLOWERS and len(room.rounds) == MOST_ROUNDS
    assert all(len(question.tally()) <= 16 and not question.votes for question in room.rounds.values())
    assert max(len(follower.recent) for follower in room._inside.values()) <= MESSAGES
