"""A lesson from a visitor's own file: its faults with their lines, whose it is, where it opens, and the screen on which it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.rooms.lessons import opening, routes
from app.rooms.lessons.written import file, folder, own, table
from app.session import settings
from app.transport import visitors
from tests.app.axe import faults
from tests.app.browsing import PATIENCE, serving
from tests.app.pages import lend
from tests.app.rail import rail, ready
from tests.servers import Server

GOOD = """---
lesson: Keys & <b>cabinets</b>
model: smollm2
---

# Is, or <i>are</i>?
text: The keys to the cabinet
show: next are is
A verb agrees with its subject.

? Which verb is likelier next?
check: next
- are
- is | You followed the noun next to it. {said} gets {p}.
> {best} has {p.best}, {second} {p.second}.

# And one key?
text: The key to the cabinet

? Which verb is likelier now?
check: next
- are
- is
> {best} has {p.best}.
"""
# what is changed -> the line and the beginning of what is said of it
BROKEN: dict[str, tuple[str, str, int, str]] = {
    "no head": ("---\nlesson", "lesson", 1, "A lesson begins with a line of three dashes"),
    "a key of the head": ("model:", "modle:", 3, "“modle” is no key of the head. Did you mean “model”?"),
    "a model": ("smollm2", "smolm2", 3, "There is no model “smolm2” here."),
    "a key of a step": ("show:", "shwo:", 8, "“shwo” is no key of a step. Did you mean “show”?"),
    "no text": ("text: The keys to the cabinet\n", "", 6, "“Is, or <i>are</i>?” has no “text:” to run."),
    "a check": ("check: next", "check: nxt", 12, "“nxt” is no check."),
    "a field": ("{p}.", "{prob}.", 14, "{prob} is unknown."),
    "an open brace": ("{said}", "{said", 14, "A brace is not closed."),
    "one option": ("- are\n", "", 13, "One option only: a question needs two or more."),
    "a sign that no one sees": ("Which verb", "Which\u202everb", 11, "Character 8 of this line cannot be seen"),
}
TIED = GOOD.replace("- are\n- is |", "- are\n- cabinetcabinet |", 1)  # which a reading takes, and no run
LARGE = "This file has 65,537 bytes, and a lesson has 65,536 at most. Divide it into two lessons."
NO_TEXT = "This file is not text in UTF-8. Save it as plain text, in UTF-8, and open it again."
ELSEWHERE = "This server runs no lesson of your own."


def broken(name: str) -> str:
    before, after, _, _ = BROKEN[name]
    assert before in GOOD
    return GOOD.replace(before, after, 1)


# the routes


ANN, BOB = visitors.new_name(), visitors.new_name()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A server on a machine of one's own, and a browser of that machine."""
    monkeypatch.setenv(settings.OWN_MACHINE, "1")
    monkeypatch.delenv("HEADLIGHT_SERVICE", raising=False)
    monkeypatch.setattr(routes, "desk", own.Desk())
    with TestClient(Starlette(routes=routes.ROUTES), base_url="http://localhost") as client:
        client.cookies.set("headlight", ANN)
        yield client


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("path", ["check", "own?name=keys.md", "rehearsal"])
def test_a_broken_file_has_its_sentence_at_its_line(client: TestClient, path: str, name: str) -> None:
    found = client.post(f"/headlight/lessons/{path}", content=broken(name).encode()).json()
    _, _, line, said = BROKEN[name]
    assert any(one["line"] == line and one["said"].startswith(said) for one in found["faults"]), found["faults"]
    assert "step" not in found and "truth" not in found
    assert not routes.desk.lessons(ANN)


@pytest.mark.parametrize("path", ["check", "own?name=keys.md", "rehearsal"])
def test_what_is_too_large_or_no_text_gets_a_sentence(client: TestClient, path: str) -> None:
    place = f"/headlight/lessons/{path}"
    large = client.post(place, content=b"#" * 65_537)
    assert (large.status_code, large.text) == (413, LARGE)
    parts = client.post(place, content=(b"#" * 1000 for _ in range(70)))
    assert (parts.status_code, parts.text) == (413, "It is larger than 65,536 bytes.")
    for body in (b"\x89PNG\r\n\x1a\n\xff", "Ä".encode("utf-16"), "Grüße".encode("latin-1")):
        refused = client.post(place, content=body)
        assert (refused.status_code, refused.text) == (400, NO_TEXT)
    assert client.post(place, content=b"").json()["faults"][0]["line"] == 1
    assert client.get(place).status_code == 405


def test_what_a_reading_takes_and_no_run_is_a_fault_as_well(client: TestClient) -> None:
    assert client.post("/headlight/lessons/check", content=TIED).json()["faults"] == []
    found = client.post("/headlight/lessons/own?name=a.md", content=TIED).json()
    assert [(one["line"], one["said"].partition(" ")[0]) for one in found["faults"]] == [(14, "“cabinetcabinet”")]
    assert not routes.desk.lessons(ANN)


def test_a_lesson_is_its_visitors_alone_and_one_of_the_same_name_takes_its_place(client: TestClient) -> None:
    brought = client.post("/headlight/lessons/own?name=My%20Keys.md", content=GOOD).json()
    assert (brought["step"], brought["faults"]) == ("own-my-keys.1", [])
    mine, other = routes.desk.lessons(ANN), routes.desk.lessons(BOB)
    assert [lesson.title for lesson in mine.values()] == ["Keys & <b>cabinets</b>"] and other == {}
    assert next(iter(table.listed(mine))) == "own-my-keys" and "own-my-keys" not in table.listed(other)
    assert opening.read({"lesson": "own-my-keys", "at": "2"}, mine).step == "own-my-keys.2"
    gone = opening.read({"lesson": "own-my-keys.1"}, other)
    assert gone.step == "1.1" and gone.note.startswith("“own-my-keys.1” is a lesson from a file of a visitor’s own")
    again = GOOD.replace("lesson: Keys", "lesson: More keys")
    assert client.post("/headlight/lessons/own?name=my-keys.txt", content=again).json()["step"] == "own-my-keys.1"
    assert [one.title for one in routes.desk.lessons(ANN).values()] == ["More keys & <b>cabinets</b>"]
    client.cookies.set("headlight", BOB)
    client.post("/headlight/lessons/own?name=.md", content=GOOD)
    assert len(routes.desk.lessons(ANN)) == 1 == len(routes.desk.lessons(BOB))


def test_a_visitor_has_so_many_lessons_and_a_server_so_many_visitors() -> None:
    lesson = file.parse(GOOD)
    assert not isinstance(lesson, list)
    desk = own.Desk()
    for i in range(own.MOST_LESSONS + 2):
        desk.put("one", str(i), lesson)
    assert list(desk.lessons("one")) == [str(i) for i in range(2, own.MOST_LESSONS + 2)]
    for i in range(own.MOST_VISITORS - 1):
        desk.put(f"other {i}", "a", lesson)
    assert desk.lessons("one")
    desk.put("last", "a", lesson)
    assert not desk.lessons("one") and desk.lessons("last")


def test_on_a_server_of_others_a_lesson_is_read_and_not_run(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = [("own?name=a.md", {}), ("rehearsal", {})]
    for path, _ in ways:
        passed_on = client.post(f"/headlight/lessons/{path}", content=GOOD, headers={"X-Forwarded-For": "10.0.0.1"})
        assert passed_on.status_code == 403 and passed_on.text.startswith(ELSEWHERE)
    monkeypatch.delenv(settings.OWN_MACHINE)
    for path, _ in ways:
        refused = client.post(f"/headlight/lessons/{path}", content=GOOD)
        assert refused.status_code == 403 and "HEADLIGHT_LESSONS" in refused.text
    assert client.post("/headlight/lessons/check", content=GOOD).json()["faults"] == []
    monkeypatch.setenv(settings.OWN_MACHINE, "1")
    client.cookies.clear()  # as a page of another site asks
    refused = client.post("/headlight/lessons/own?name=a.md", content=GOOD)
    assert refused.status_code == 403 and "cookies" in refused.text


def test_a_rehearsal_says_what_is_right_and_what_each_answer_hears(client: TestClient) -> None:
    found = client.post("/headlight/lessons/rehearsal?at=0", content=GOOD).json()
    truth = found["truth"]
    assert truth["options"] == ["are", "is"] and truth["right"] == [0] and found["faults"] == []
    assert any(one["sentence"] == "You followed the noun next to it. is gets 0.5 %." for one in truth["mistakes"])
    (picture,) = found["pictures"]
    assert [(word, round(p, 3)) for word, p in picture["words"]] == [("are", 0.159), ("is", 0.005)]
    assert client.post("/headlight/lessons/rehearsal?at=1", content=GOOD).json()["truth"]["right"] == [1]
    assert client.post("/headlight/lessons/rehearsal?at=2", content=GOOD).json() == {"faults": []}
    assert client.post("/headlight/lessons/rehearsal?at=20", content=GOOD).status_code == 400
    assert client.post("/headlight/lessons/rehearsal?at=x", content=GOOD).status_code == 400


def test_a_reading_tells_the_steps_as_they_stand(client: TestClient) -> None:
    found = client.post("/headlight/lessons/check", content=broken("a key of the head")).json()
    assert [(one["line"], one["title"], one["options"]) for one in found["steps"]] == [
        (6, "Is, or <i>are</i>?", ["are", "is"]),
        (17, "And one key?", ["are", "is"]),
    ]
    assert found["steps"][0]["question"] == "Which verb is likelier next?"
    assert found["steps"][0]["text"] == "A verb agrees with its subject."


# the screen


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(settings.OWN_MACHINE, "1")
        patch.delenv("HEADLIGHT_SERVICE", raising=False)
        log = tmp_path_factory.mktemp("own") / "log"
        with serving("app/main.py", log) as address:
            yield address
        said = log.read_text(encoding="utf-8")
        assert "Traceback" not in said and "cabinet" not in said, "nothing of a visitor's text is logged"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        yield page


def drop(page: Page, name: str, body: bytes) -> None:
    """Drop a file onto the page, as a hand does."""
    page.evaluate(
        """([name, body]) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(body)], name));
            const target = document.querySelector("[data-testid=stMain]");
            for (const type of ["dragover", "drop"])
                target.dispatchEvent(new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        [name, list(body)],
    )


def at_lessons(page: Page, address: str) -> Locator:
    page.goto(f"{address}/?view=lessons&lesson=1&at=1")
    ready(page, "1.1")
    return rail(page)


def writing(page: Page, address: str) -> Locator:
    page.goto(f"{address}/?view=lessons&write=1")
    on = page.locator(".hl.write[data-painted]")
    expect(on).not_to_have_attribute("data-steps", "0")
    return on


def told(on: Locator) -> list[str]:
    return [re.sub(r"\s+", " ", said) for said in on.locator(".faults li").all_inner_texts()]


@pytest.mark.thorough
def test_a_dropped_file_tells_its_faults_then_opens_and_is_answered(page: Page, address: str) -> None:
    on = at_lessons(page, address)
    drop(page, "keys.md", broken("a key of the head").replace("{p}.", "{prob}.", 1).encode())
    expect(on.locator(".own .state")).to_have_text("keys.md has 2 faults:")
    assert told(on.locator(".own")) == [
        "Line 3 “modle” is no key of the head. Did you mean “model”?",
        "Line 14 {prob} is unknown. Known: {said} {p} {n} {best} {second} {swap}.",
    ]
    assert "lesson=1.1" in page.url, "nothing else happens"
    drop(page, "keys.md", b"#" * 65_537)
    expect(on.locator(".own .state")).to_have_text(LARGE)
    drop(page, "picture.png", b"\x89PNG\xff\x00")
    expect(on.locator(".own .state")).to_have_text(NO_TEXT)
    assert not told(on.locator(".own"))
    drop(page, "keys.md", GOOD.encode())
    ready(page, "own-keys.1", "generate")
    expect(on.locator("h2")).to_have_text("Keys & <b>cabinets</b>")
    assert on.locator("b, i").count() == 0, "no text of a lesson is markup"
    on.locator(".place").get_by_role("button", name="is", exact=True).click()
    on.get_by_role("button", name="Look", exact=True).click()
    expect(on.locator(".reply p").first).to_have_text("You followed the noun next to it. is gets 0.5 %.")
    on.locator(".place").get_by_role("button", name="are", exact=True).click()
    on.get_by_role("button", name="Look", exact=True).click()
    expect(on).to_have_attribute("data-right", "true")
    expect(on.locator(".answer")).to_contain_text("are has 16 %, is 0.5 %.")
    drop(page, "keys.md", GOOD.replace("# Is, or", "# Mended: is, or").encode())
    expect(on.locator(".now > .title")).to_have_text("Mended: is, or <i>are</i>?")
    expect(on).to_have_attribute("data-seen", "false")  # it is another question now
    on.get_by_role("button", name="All lessons").click()
    expect(on.locator(".lessons-all h3", has_text="Keys &")).to_have_count(1)
    expect(on.locator(".lessons-all .yours")).to_have_text("yours")


@pytest.mark.thorough
def test_a_file_is_chosen_by_keyboard(page: Page, address: str) -> None:
    on = at_lessons(page, address)
    on.get_by_role("button", name="All lessons").press("Enter")
    with page.expect_file_chooser() as chosen:
        on.get_by_role("button", name="Open a file").press("Enter")
    chosen.value.set_files([{"name": "chosen.txt", "mimeType": "text/plain", "buffer": GOOD.encode()}])
    ready(page, "own-chosen.1", "generate")
    page.reload()
    ready(page, "own-chosen.1", "generate")
    expect(on.locator("h2")).to_have_text("Keys & <b>cabinets</b>")


@pytest.mark.thorough
def test_two_visitors_do_not_see_each_others(browser: Browser, page: Page, address: str) -> None:
    at_lessons(page, address)
    drop(page, "mine.md", GOOD.encode())
    ready(page, "own-mine.1", "generate")
    other = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce").new_page()
    try:
        other.goto(f"{address}/?view=lessons&lesson=own-mine&at=1")
        ready(other, "1.1")
        expect(other.get_by_text("“own-mine” is a lesson from a file of a visitor’s own")).to_be_visible()
        rail(other).get_by_role("button", name="All lessons").click()
        expect(rail(other).locator(".lessons-all h3", has_text="Keys &")).to_have_count(0)
    finally:
        other.context.close()


@pytest.mark.thorough
def test_what_is_wrong_is_mended_in_write(page: Page, address: str) -> None:
    on = at_lessons(page, address)
    drop(page, "keys.md", broken("a key of the head").encode())
    on.get_by_role("button", name="Mend it in Write").press("Enter")
    write = page.locator(".hl.write")
    expect(write.locator(".state")).to_have_text("1 fault")
    text = page.get_by_label("The lesson as text")
    expect(text).to_have_value(broken("a key of the head"))
    write.locator(".fault").press("Enter")
    expect(text).to_be_focused()
    assert text.evaluate("one => one.value.slice(0, one.selectionStart).split('\\n').length") == 3
    text.fill(GOOD)
    expect(write.locator(".state")).to_have_text("2 steps, no faults")
    assert not told(write)
    with page.expect_download() as saved:
        write.get_by_role("button", name="Save as a file").click()
    assert saved.value.suggested_filename == "keys.md"
    assert Path(saved.value.path()).read_bytes() == GOOD.encode()
    write.get_by_role("button", name="Try it").click()
    ready(page, "own-keys.1", "generate")
    on = rail(page)
    on.locator(".place").get_by_role("button", name="are", exact=True).click()
    on.get_by_role("button", name="Look", exact=True).click()
    expect(on).to_have_attribute("data-right", "true")
    on.get_by_role("button", name="Next", exact=True).click()
    ready(page, "own-keys.2", "generate")
    page.goto(f"{address}/?view=lessons&write=1")
    expect(text).to_have_value(GOOD)
    write.get_by_role("button", name="Try it").click()
    ready(page, "own-keys.1", "generate")
    expect(on.locator("li.done")).to_have_count(0)  # it is another lesson now
    page.go_back()
    expect(text).to_have_value(GOOD)


@pytest.mark.thorough
def test_a_text_that_is_typed_is_kept_read_and_rehearsed(page: Page, address: str) -> None:
    write = writing(page, address)
    text = page.get_by_label("The lesson as text")
    expect(text).to_have_value(folder.examples()["agreement"])
    assert not faults(page, ".st-key-lessons_write")
    text.fill(GOOD)
    expect(write).to_have_attribute("data-steps", "2")
    page.reload()
    expect(text).to_have_value(GOOD)
    expect(write).to_have_attribute("data-steps", "2")
    expect(write.locator(".made h3")).to_have_text("Is, or <i>are</i>?")
    expect(write.locator(".made .options li")).to_have_text(["are", "is"])
    write.get_by_role("button", name="Rehearse this step").click()
    expect(write.locator(".options .right")).to_have_text(re.compile(r"^are\s*right$"))
    expect(write.locator(".options li").nth(1)).to_contain_text("You followed the noun next to it. is gets 0.5 %.")
    expect(write.locator(".answer")).to_contain_text("are has 16 %, is 0.5 %.")
    assert write.locator("tr").all_inner_texts()[0].split() == ["are", "16", "%"]
    write.get_by_role("button", name="2", exact=True).click()
    expect(write.locator(".made h3")).to_have_text("And one key?")
    expect(write.locator(".options .right")).to_have_count(0)  # this one is not run yet
    text.fill(broken("a check"))
    expect(write.locator(".state")).to_have_text("1 fault")
    expect(write.get_by_role("button", name="Rehearse this step")).to_be_hidden()
    expect(write.locator(".gutter .marked")).to_have_text("12")
    assert not faults(page, ".st-key-lessons_write")
    write.get_by_role("button", name="pronouns.md").click()
    expect(text).to_have_value(folder.examples()["pronouns"])
    write.get_by_role("button", name="Back to my text").click()
    expect(text).to_have_value(broken("a check"))
    drop(page, "bad.md", b"\xff\xfe")
    expect(write.locator(".note")).to_have_text(NO_TEXT)
    drop(page, "large.md", b"#" * 65_537)
    expect(write.locator(".note")).to_have_text(LARGE)
    expect(text).to_have_value(broken("a check"))
    text.fill("x" * 200_001)
    expect(write).to_contain_text("This text has 200,001 characters, and this browser keeps 200,000 at most")


@pytest.mark.thorough
def test_a_server_of_others_says_what_to_do(page: Page, server: Callable[[str], Server]) -> None:
    hosted = server("app/main.py").address
    on = at_lessons(page, hosted)
    drop(page, "keys.md", GOOD.encode())
    expect(on.locator(".own .state")).to_contain_text(ELSEWHERE)
    write = writing(page, hosted)
    expect(write.locator(".result")).to_contain_text("folder HEADLIGHT_LESSONS")
    expect(write.get_by_role("button", name="Rehearse this step")).to_be_hidden()
    page.get_by_label("The lesson as text").fill(broken("a model"))
    expect(write.locator(".state")).to_have_text("1 fault")
