"""A step of a lesson on the wall and on phones: asked, answered, shown, asked again, and kept as files."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from app.classroom import words
from app.rooms.lessons import words as lessons_words
from tests.app.browsing import PATIENCE, Another, Screen
from tests.app.test_accessibility import findings
from tests.app.test_classroom_screen import PHONE, follow, main, over, text, without_connection

APP = "app/main.py"
MANY = 40

expect.set_options(timeout=PATIENCE)


def ask_button(teacher: Screen) -> Locator:
    return teacher.page.locator(".hl.lessons").get_by_role("button", name=lessons_words.COMPONENT["ask_room"])


def at_step(teacher: Screen, step: str) -> None:
    teacher.page.goto(f"{teacher.address}/?view=lessons&lesson={step}")
    expect(ask_button(teacher)).to_be_enabled()


def code_of(teacher: Screen) -> str:
    """R opens a class, whose code comes first."""
    teacher.page.keyboard.press("r")
    code = over(teacher).locator(".share .code")
    expect(code).to_have_text(re.compile(r"\w{4} \w{4}"))
    return code.inner_text().replace(" ", "")


def stage(teacher: Screen, name: str) -> Locator:
    page = over(teacher).locator(f".stepping[data-stage={name}]")
    expect(page).to_be_visible()
    return page


def option(phone: Screen, label: str) -> Locator:
    return phone.page.locator(".follow .options").get_by_role("button", name=label, exact=True)


def tap(phone: Screen, label: str) -> None:
    option(phone, label).click()
    expect(option(phone, label)).to_have_attribute("aria-pressed", "true")


def types(phone: Screen, number: str) -> None:
    for key in number:
        phone.page.locator(".follow .keypad").get_by_role("button", name=key, exact=True).click()
    phone.page.locator(".follow .keypad").get_by_role("button", name=text("step_send")).click()
    expect(phone.page.locator(".follow .note").first).to_contain_text(number)


def answered(teacher: Screen, n: int) -> None:
    expect(over(teacher).locator(".stepping .said em")).to_have_text(str(n))


class Simulated:
    """Phones that are no browsers: each has a key, holds a stream, and says what it is told to."""

    def __init__(self, address: str, code: str, n: int) -> None:
        self.root = f"{address}/headlight/classroom/{code}"
        self.keys = [json.loads(self._sent("join", {}, "")[1])["key"] for _ in range(n)]
        self.streams = [urllib.request.urlopen(self._asked("events", key)) for key in self.keys]

    def _asked(self, path: str, key: str, body: object = None) -> urllib.request.Request:
        headers = {"Content-Type": "application/json", **({"Headlight-Key": key} if key else {})}
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.Request(f"{self.root}/{path}", data, headers)

    def _sent(self, path: str, body: object, key: str) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(self._asked(path, key, body)) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()

    def question(self, q: int) -> dict[str, Any]:
        """As the first of them gets it."""
        with urllib.request.urlopen(self._asked(f"step?q={q}", self.keys[0])) as answer:
            return json.load(answer)

    def say(self, q: int, round: int, answers: list[float]) -> list[int]:
        """All at once; the status of each answer."""

        async def all_at_once() -> list[int]:
            return await asyncio.gather(
                *(
                    asyncio.to_thread(lambda key=key, a=a: self._sent("vote", {"q": q, "r": round, "a": a}, key)[0])
                    for key, a in zip(self.keys, answers, strict=True)
                )
            )

        found: list[int] = []
        # In a thread of its own: Playwright has the event loop of this one.
        thread = threading.Thread(target=lambda: found.extend(asyncio.run(all_at_once())))
        thread.start()
        thread.join(60)
        return found

    def leave(self) -> None:
        for stream in self.streams:
            stream.close()


@contextmanager
def simulated(teacher: Screen, code: str, n: int = MANY) -> Iterator[Simulated]:
    phones = Simulated(teacher.address, code, n)
    try:
        yield phones
    finally:
        phones.leave()


@pytest.mark.thorough
def test_a_step_is_asked_answered_asked_again_and_shown(screen: Screen, another: Another):
    teacher = screen.open()
    at_step(teacher, "1.2&said=1")  # the teacher's own answer is wrong, which keeps no answer from the class
    code = code_of(teacher)
    phone, loser = follow(another(PHONE), code), follow(another(PHONE, "dark"), code)
    with simulated(teacher, code) as many:
        teacher.page.keyboard.press("r")
        wall = stage(teacher, "ask")
        expect(wall.locator("h2")).to_have_text("Which word will “it” take most from?")
        expect(teacher.page.locator(".hl.explore[data-painted]")).to_be_visible()  # over the same picture
        told = many.question(1)
        assert told["stage"] == "ask" and not {"true", "right", "replies", "values"} & told.keys()
        tap(phone, "animal")
        tap(loser, "street")
        answered(teacher, 2)
        for follower in (phone, loser):
            assert "%" not in follower.page.locator("body").inner_text()
            rows = follower.page.locator(".follow .evidence")
            expect(rows.locator("rect.covered")).to_have_count(1)
            expect(rows.locator("rect.cell")).to_have_count(
                15 * 16
            )  # 16 words, and the row that is asked about has not been sent
        places = [told["options"].index(label) for label in ("animal", "street", "it", "[CLS]")]
        assert set(many.say(1, 1, [places[i % 4] for i in range(MANY)])) == {204}
        answered(teacher, MANY + 2)
        assert "%" not in over(teacher).inner_text(), "the votes are hidden until they are shown"
        with without_connection(loser):
            expect(main(loser)).to_have_attribute("data-state", "lost")
            tap(loser, "animal")
            expect(loser.page.locator(".follow .banner")).to_contain_text(text("lost_word"))
        expect(main(loser)).to_have_attribute("data-state", "vote")
        teacher.page.keyboard.press("PageDown")
        votes = stage(teacher, "votes")
        piles = over(teacher).get_by_role("img", name=re.compile(r"animal: 12;.*street: 10"))
        expect(piles.locator(".pile")).to_have_text(
            ["10", "12", "10", "10"]
        )  # above the words of the picture, from left to right
        assert "%" not in over(teacher).inner_text(), "nothing of the run before the answer"
        assert set(many.say(1, 1, [0] * MANY)) == {409}, "the voting is closed"
        expect(phone.page.locator(".follow .panel")).to_contain_text(text("step_wait"))
        late = follow(another(PHONE), code)
        expect(late.page.locator(".follow .panel h1")).to_have_text(text("on_wall"))

        teacher.page.keyboard.press("h")
        expect(votes).to_contain_text(text("step_hidden"))
        teacher.page.keyboard.press("h")
        expect(piles).to_be_visible()
        teacher.page.keyboard.press("m")
        mistake = votes.locator(".mistake")
        expect(mistake).to_contain_text(re.compile(r"^10 said"))
        assert "67.7" not in mistake.inner_text() and "animal" not in mistake.inner_text()
        teacher.page.keyboard.press("a")
        stage(teacher, "ask")
        answered(teacher, 2)  # the answer of the round before is kept on the phone, and sent again
        tap(late, "animal")
        phone.page.reload()
        expect(option(phone, "animal")).to_have_attribute("aria-pressed", "true")
        answered(teacher, 3)
        teacher.page.keyboard.press(" ")
        stage(teacher, "votes")
        teacher.page.keyboard.press(" ")
        shown = stage(teacher, "answer")
        expect(shown.locator("h2")).to_have_text("The answer: animal")
        piles = over(teacher).get_by_role("img", name="animal: 3")
        expect(piles.locator("b.run").filter(has_text="68")).to_have_count(1)
        expect(piles.locator("b.room")).to_have_text(["100"])
        expect(teacher.page.locator(".hl.explore .facts")).to_contain_text("67.7 %")  # the picture is uncovered
        expect(phone.page.locator(".follow .reply").first).to_contain_text("That is where it looks most.")
        expect(phone.page.locator(".follow .panel .note").last).to_have_text("2 others chose the same.")

        with teacher.page.expect_download() as download:
            shown.get_by_role("button", name=text("step_csv"), exact=True).click()
        lines = download.value.path().read_text(encoding="utf-8").splitlines()
        assert lines[0] == "step,round,question,answer,votes,right"
        assert '"1.2",1,"Which word will “it” take most from?","animal",12,yes' in lines
        assert sum(int(line.split(",")[-2]) for line in lines[1:]) == MANY + 2 + 3
        with teacher.page.expect_download() as download:
            shown.get_by_role("button", name=text("step_page"), exact=True).click()
        page = download.value.path().read_text(encoding="utf-8")
        assert "<script" not in page and "The answer: animal" in page

        teacher.page.keyboard.press("Escape")
        expect(over(teacher)).to_be_hidden()
        expect(phone.page.locator(".follow .place .hl.explore")).to_be_visible()


@pytest.mark.thorough
def test_numbers_from_phones_are_dots_on_a_line_and_the_truth_is_a_line(screen: Screen, another: Another):
    teacher = screen.open()
    at_step(teacher, "3.7")
    code = code_of(teacher)
    phone = follow(another(PHONE), code)
    over(teacher).get_by_role("button", name=text("begin")).click()
    stage(teacher, "ask")
    assert phone.page.locator(".follow .keypad button").evaluate_all("nodes => nodes.every(n => n.offsetHeight >= 44)")
    types(phone, "512")
    answered(teacher, 1)
    with simulated(teacher, code) as many:
        assert set(many.say(1, 1, [256, 1024, 512, 65536.5] * (MANY // 4))) == {204}
        answered(teacher, MANY + 1)
        teacher.page.keyboard.press("PageDown")
        votes = stage(teacher, "votes")
        expect(votes.locator("svg circle")).to_have_count(MANY + 1 - MANY // 4)
        expect(votes.locator("svg line.truth")).to_have_count(0)
        expect(votes).to_contain_text("65,536.5")
        teacher.page.keyboard.press("PageDown")
        shown = stage(teacher, "answer")
        expect(shown.locator("svg line.truth")).to_have_count(1)
        truth, right = (
            shown.locator(f"svg {node}").first.evaluate(
                "node => node.getBoundingClientRect().x + node.getBoundingClientRect().width / 2"
            )
            for node in ("line.truth", "circle")
        )
        assert truth == pytest.approx(right, abs=2), "256 of the room stands at 256 of the run"
        expect(phone.page.locator(".follow .reply").first).to_contain_text("too high")
        expect(phone.page.locator(".follow .panel .note").last).to_have_text("10 others chose the same.")


@pytest.mark.thorough
def test_answers_of_a_phone_that_come_back_too_late_leave_the_one_that_had_arrived(screen: Screen, another: Another):
    teacher = screen.open()
    at_step(teacher, "1.2")
    phone = follow(another(PHONE), code_of(teacher))
    teacher.page.keyboard.press("r")
    stage(teacher, "ask")
    tap(phone, "animal")
    answered(teacher, 1)
    with without_connection(phone):
        expect(main(phone)).to_have_attribute("data-state", "lost")
        tap(phone, "street")
        tap(phone, "cross")
        teacher.page.keyboard.press("PageDown")
        stage(teacher, "votes")
    expect(phone.page.locator(".follow .banner")).to_have_text(text("step_late"))
    expect(phone.page.locator(".follow .panel h1")).to_have_text("You said animal.")
    expect(over(teacher).get_by_role("img", name="animal: 1", exact=True)).to_be_visible()


@pytest.mark.thorough
def test_the_wall_says_which_mistake_the_commonest_wrong_answer_is(screen: Screen, another: Another):
    teacher = screen.open()
    at_step(teacher, "1.2")
    phone = follow(another(PHONE), code_of(teacher))
    teacher.page.keyboard.press("r")
    stage(teacher, "ask")
    tap(phone, "it")
    answered(teacher, 1)
    teacher.page.keyboard.press("PageDown")
    stage(teacher, "votes")
    teacher.page.keyboard.press("PageDown")
    mistake = lessons_words.ROW_MISTAKES["itself"]
    expect(stage(teacher, "answer").locator("dd b")).to_have_text(mistake)
    expect(phone.page.locator(".follow .reply .b").first).to_have_text(mistake)
    expect(phone.page.locator(".follow .reply").first).to_contain_text(re.compile(r"“it” gets [\d.]+ % here, rank \d"))


@pytest.mark.thorough
def test_a_step_that_no_phone_can_answer_says_why(screen: Screen):
    teacher = screen.open()
    teacher.page.goto(f"{teacher.address}/?view=lessons&lesson=1.5")
    rail = teacher.page.locator(".hl.lessons")
    expect(rail.get_by_text(lessons_words.ROOM_CANNOT["shape"])).to_be_visible()
    expect(ask_button(teacher)).to_be_hidden()
    teacher.page.keyboard.press("r")
    teacher.page.keyboard.press("j")
    expect(over(teacher).locator(".share .code")).to_be_visible()
    expect(over(teacher).get_by_role("button", name=text("begin"))).to_have_count(0)


@pytest.mark.thorough
def test_votes_count_while_the_teacher_has_no_connection(screen: Screen, another: Another):
    teacher = screen.open()
    at_step(teacher, "1.3")
    code = code_of(teacher)
    phone = follow(another(PHONE), code)
    teacher.page.keyboard.press("r")
    stage(teacher, "ask")
    options = phone.page.locator(".follow .options button")
    expect(options).to_have_count(4)
    with without_connection(teacher):
        expect(teacher.page.locator(".badge")).to_have_text(text("no_connection"))
        options.nth(1).click()
        expect(phone.page.locator(".follow .note").first).to_contain_text("You said")
        expect(phone.page.locator(".follow .count")).to_have_text(text("have_said").format(n=1, of=1))  # it has arrived
    said = words.COMPONENT["step_slept"]
    assert isinstance(said, str)
    expect(teacher.page.locator(".classroom .toast")).to_have_text(said.format(n=1))
    answered(teacher, 1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.thorough
def test_axe_finds_nothing_while_a_step_is_asked(another: Another, scheme: str):
    teacher = another((1280, 720), scheme, reduced_motion="reduce").open()
    at_step(teacher, "3.7")
    phone = follow(another(PHONE, scheme, reduced_motion="reduce"), code_of(teacher))
    teacher.page.keyboard.press("r")
    stage(teacher, "ask")
    expect(phone.page.locator(".follow .keypad")).to_be_visible()
    found = {"asked": findings(teacher), "keypad": findings(phone)}
    types(phone, "512")
    answered(teacher, 1)
    for key, name in (("PageDown", "votes"), ("PageDown", "answer")):
        teacher.page.keyboard.press(key)
        stage(teacher, name)
        expect(main(phone)).to_have_attribute("data-state", "wait" if name == "votes" else "result")
        found |= {name: findings(teacher), f"{name} on a phone": findings(phone)}
    assert not any(found.values()), found
