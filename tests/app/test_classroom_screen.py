"""A teacher and those who follow: the screen is shared, a question asked, said, uncovered and asked again; and each of their states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, expect

from app.classroom import codes, words
from app.kit import words as kit_words
from app.rooms.compute import words as compute_words
from app.rooms.generate import words as generate_words
from app.rooms.masks import words as masks_words
from app.rooms.memory import words as memory_words
from app.rooms.shapes import words as shapes_words
from app.rooms.train import words as train_words
from app.rooms.whatif import words as whatif_words
from tests.app.browsing import PATIENCE, Another, Screen, digit, eventually, go_to
from tests.app.test_accessibility import findings

APP = "app/main.py"
SAID = words.COMPONENT
PHONE = (390, 844)
SIGNS = re.compile(r"[BCDFGHJKLMNPQRSTVWXYZ3479]{4} [BCDFGHJKLMNPQRSTVWXYZ3479]{4}")

SHADES = "nodes => nodes.map(node => node.style.backgroundColor)"

expect.set_options(timeout=PATIENCE)


def text(name: str) -> str:
    """A caption of the classroom that has no parts."""
    said = SAID[name]
    assert isinstance(said, str)
    return said


def over(teacher: Screen) -> Locator:
    """What lies over the teacher's room."""
    return teacher.page.locator(".classroom .over")


def share(teacher: Screen) -> str:
    """The screen is shared; the code."""
    expect(teacher.page.locator(".st-key-bar a[aria-current=page]").first).to_be_attached()  # which opens the class
    teacher.root.get_by_role("button", name=kit_words.COMPONENT["share_screen"]).click()
    code = over(teacher).locator(".share .code")
    expect(code).to_have_text(SIGNS)
    return code.inner_text()


def follow(follower: Screen, code: str) -> Screen:
    """By the link that is in the square."""
    follower.page.goto(f"{follower.address}/r/{code.replace(' ', '')}")
    expect(main(follower)).not_to_have_attribute("data-state", "join")
    return follower


def main(follower: Screen) -> Locator:
    return follower.page.locator(".follow")


def word(follower: Screen, label: str) -> Locator:
    return follower.page.locator(".follow .words").get_by_role("button", name=label, exact=True)


def tap(follower: Screen, label: str) -> None:
    word(follower, label).click()
    expect(word(follower, label)).to_have_attribute("aria-pressed", "true")


def ask(teacher: Screen, label: str = "it") -> None:
    """The teacher clicks the word that is to look."""
    teacher.page.keyboard.press("a")
    expect(teacher.page.locator(".classroom .card")).to_be_visible()
    teacher.root.locator(".strip [data-axis=query]").get_by_text(label, exact=True).first.click()
    expect(over(teacher).locator(".asking .column").first).to_be_visible()


def counted(teacher: Screen, n: int) -> None:
    expect(over(teacher).locator(".said em")).to_have_text(str(n))


@contextmanager
def without_connection(follower: Screen) -> Iterator[None]:
    follower.page.context.set_offline(True)
    try:
        yield
    finally:
        follower.page.context.set_offline(False)


def test_a_class_follows_says_sees_and_is_asked_again(screen: Screen, another: Another):
    teacher = screen.open()
    code = share(teacher)
    expect(over(teacher).locator(".share .followers")).to_have_text(text("nobody_yet"))
    phone, loser, late = (another(PHONE, scheme) for scheme in ("light", "dark", "light"))
    follow(phone, code)
    follow(loser, code)
    expect(over(teacher).locator(".share .followers b")).to_have_text("2")
    for follower in (phone, loser):  # while the code is on the wall, no phone shows what the class is about to be asked
        expect(follower.page.locator(".follow .panel h1")).to_have_text(text("in_now"))
        expect(follower.page.locator(".follow .panel p")).to_have_text(text("in_now_next"))
        expect(follower.root).to_have_count(0)
        assert "%" not in follower.page.locator("body").inner_text()
    over(teacher).get_by_role("button", name=text("show_sentence")).click()
    expect(over(teacher)).to_be_hidden()
    phone.painted()
    loser.painted()
    assert phone.data()["head"] == teacher.data()["head"] and phone.data()["query"] == teacher.data()["query"]
    assert (phone.data()["theme"], loser.data()["theme"]) == ("light", "dark")

    ask(teacher)
    assert "%" not in (
        teacher.root.locator(".facts").text_content() or ""
    )  # what is asked is covered below as well, and in the words above the map
    assert len(set(teacher.root.locator(".strip [data-axis=query]").evaluate_all(SHADES))) == 1
    for follower in (phone, loser):  # who has no question yet when the connection goes gets none
        expect(word(follower, "it")).to_be_visible()
    tap(phone, "animal")
    counted(teacher, 1)
    with without_connection(loser):
        expect(main(loser)).to_have_attribute("data-state", "lost")
        tap(loser, "was")
        expect(loser.page.locator(".follow .banner")).to_have_text(f"{text('lost')} {text('lost_word')}")
        follow(late, code)
        expect(late.page.locator(".follow .note").first).to_contain_text(text("late"))
        tap(late, "was")
        counted(teacher, 2)
        tap(loser, "street")  # changed while it waits: the last one goes out
    counted(teacher, 3)
    expect(main(loser)).to_have_attribute("data-state", "vote")
    hidden = expect(over(teacher).get_by_role("img", name=text("votes_hidden")))  # until they are asked for
    hidden.to_be_visible()
    teacher.page.keyboard.press("h")
    expect(over(teacher).locator(".column .bar.room u").filter(has_text="1")).to_have_count(3)
    expect(over(teacher).get_by_role("img", name="animal: 1; street: 1; was: 1")).to_be_visible()

    teacher.page.keyboard.press("h")
    expect(over(teacher).locator(".legend")).to_have_text(text("votes_hidden"))
    hidden.to_be_visible()
    expect(over(teacher).locator(".column .bar.room u").filter(has_text="1")).to_have_count(0)
    counted(teacher, 3)
    assert "%" not in over(teacher).inner_text()  # nothing of the head before it is uncovered
    teacher.page.keyboard.press("PageDown")
    fact = over(teacher).locator(".fact")
    expect(fact).to_have_text(re.compile(r"The room: animal, street, was, 33 % each\. The head: 68 % animal\."))
    expect(over(teacher).locator(".grid [role=option]")).to_have_count(72)
    expect(phone.page.locator(".follow .result")).to_have_text(
        re.compile(r"You chose animal: 67\.\d %, rank 1 of 16\.")
    )
    expect(loser.page.locator(".follow .result")).to_have_text(
        re.compile(r"You chose street: 5\.\d %, rank \d of 16\.")
    )
    expect(late.page.locator(".follow .own").last).to_have_text(
        re.compile(r"(Your word has a head of its own|No head of 72)")
    )

    over(teacher).get_by_role("button", name="Ask again with “wide”").click()
    expect(word(phone, "wide")).to_be_visible()
    tap(phone, "street")
    tap(loser, "street")
    counted(teacher, 2)
    teacher.page.keyboard.press("r")
    expect(over(teacher).locator(".moved")).to_have_text(
        re.compile(r"tired → wide: the room moved 66\.7 % of its votes, the head 45\.3 % of its weight\.")
    )
    expect(over(teacher).locator(".before.head:not([hidden])").first).to_be_attached()

    over(teacher).get_by_role("button", name=text("end")).click()
    expect(teacher.page.locator(".classroom .toast")).to_have_text(text("ended"))  # which goes after some seconds
    expect(over(teacher)).to_be_hidden()
    for follower in (phone, loser, late):
        expect(follower.page.get_by_role("heading", name=text("closed_title"))).to_be_visible()
    assert "%" in teacher.facts()


@pytest.mark.thorough
def test_a_follower_looks_around_and_comes_back(screen: Screen, another: Another):
    teacher = screen.open("?layer=3&head=1&query=10")
    phone = follow(another(PHONE), share(teacher))
    over(teacher).get_by_role("button", name=text("show_sentence")).click()
    phone.painted()
    phone.page.get_by_role("button", name=text("look_around")).click()
    expect(main(phone)).to_have_attribute("data-state", "own")
    teacher.root.locator(".strip [data-i='13']").click()
    teacher.wait(locked="13")
    phone.root.locator(".strip [data-i='8']").click()
    phone.wait(locked="8")
    phone.page.get_by_role("button", name=text("to_teacher")).click()
    phone.wait(locked="13")
    teacher.root.locator(".strip [data-i='2']").click()
    phone.wait(locked="2")
    phone.root.locator(".strip [data-i='5']").click()  # a touch of the picture is a look around
    expect(main(phone)).to_have_attribute("data-state", "own")


@pytest.mark.thorough
def test_rooms_and_lessons_are_followed_and_what_is_not_gets_a_link(screen: Screen, another: Another):
    teacher = screen.open()
    desk = follow(another((1280, 800), "dark"), share(teacher))
    over(teacher).get_by_role("button", name=text("show_sentence")).click()
    place, panel = desk.page.locator(".follow .place"), desk.page.locator(".follow .panel")
    go_to(teacher.page, masks_words.TITLE)
    expect(place.locator(".hl.masks .fact")).to_contain_text("may not look at")
    expect(place.get_by_text("Layer 3 · Head 1", exact=True)).to_be_visible()
    teacher.root.get_by_role("button", name=masks_words.COMPONENT["next_head"]).click()
    expect(place.get_by_text("Layer 3 · Head 2", exact=True)).to_be_visible()

    place.get_by_role("button", name=masks_words.COMPONENT["previous_head"]).click()  # a look around
    expect(main(desk)).to_have_attribute("data-state", "own")
    expect(place.get_by_text("Layer 3 · Head 1", exact=True)).to_be_visible()
    expect(teacher.root.get_by_text("Layer 3 · Head 2", exact=True)).to_be_visible()
    desk.page.get_by_role("button", name=text("to_teacher")).click()
    expect(place.get_by_text("Layer 3 · Head 2", exact=True)).to_be_visible()

    # A text that Masks shows by row is followed as any other.
    teacher.type("so long " * 60)
    expect(place.locator(".hl.masks")).to_have_attribute("data-fresh", "true")
    expect(place.locator(".hl.masks")).to_contain_text("122 tokens")
    expect(place.get_by_text("Layer 3 · Head 2", exact=True)).to_be_visible()
    expect(panel).to_be_hidden()
    teacher.type("The animal was tired.")
    expect(place.locator(".hl.masks .fact")).to_contain_text(" may not look at ")
    expect(place.get_by_text("Layer 3 · Head 2", exact=True)).to_be_visible()

    # Rooms of charts: the sentence and the chart of the part that the teacher has chosen.
    sentence = teacher.page.locator(".hl.planner h2")
    for title, room, part in (
        (memory_words.TITLE, "memory", memory_words.MEMORY_PARTS["kept"]),
        (compute_words.TITLE, "compute", compute_words.COMPUTE_PARTS["roofline"]),
    ):
        go_to(teacher.page, title)
        seen = place.locator(f".hl.{room}")
        expect(seen).to_have_attribute("data-theme", "dark")
        teacher.idle()  # the room before has gone from the teacher's page
        before = sentence.inner_text()
        expect(seen.locator("h2")).to_have_text(before)
        teacher.page.get_by_role("radio", name=part).click()
        expect(seen.locator("h2")).not_to_have_text(before)
        expect(seen.locator("h2")).to_have_text(sentence.inner_text())
        expect(seen.locator(".main-svg").first).to_be_visible()

    teacher.page.goto(f"{teacher.address}/?view=train&recorded=on")
    expect(panel).to_contain_text(text("no_picture"))
    link = panel.get_by_role("link", name=text("open_tab"))
    expect(link).to_have_attribute("href", re.compile(r"\?.*view=train"))

    # The picture of a step comes to no one before its teacher looks, and a row of it can be asked.
    teacher.page.goto(f"{teacher.address}/?view=lessons&lesson=1.2")
    expect(panel).to_contain_text(text("step_covered"))
    expect(place.locator(".hl")).to_have_count(0)
    teacher.page.locator(".hl.explore[data-painted]").wait_for()
    ask(teacher)
    expect(word(desk, "animal")).to_be_visible()
    tap(desk, "animal")
    counted(teacher, 1)  # the word that is to be uncovered has come
    teacher.page.keyboard.press("r")
    expect(desk.page.locator(".follow .result")).to_have_text(re.compile(r"You chose animal: 67\.\d %, rank 1 of 16\."))


@pytest.mark.parametrize(
    ("link", "room", "choice", "said"),
    [
        ("", shapes_words.TITLE, ".row[data-id='encoder.attn.scores']", ("run", "tensor", "shape", "bytes")),
        ("", whatif_words.TITLE, ".racks button:has-text('no 1/√d')", ("run", "settled", "pick", "change", "answer")),
        (
            "?model=storyteller&text=Once+upon+a+time",
            generate_words.TITLE,
            f".controls button:has-text('{generate_words.COMPONENT['beam']}')",
            ("run", "how", "path", "focus", "columns", "steps", "complete"),
        ),
    ],
)
@pytest.mark.thorough
def test_a_phone_shows_what_the_teacher_chooses_in_a_room(
    screen: Screen, another: Another, link: str, room: str, choice: str, said: tuple[str, ...]
):
    teacher = screen.open(link)
    phone = follow(another(PHONE), share(teacher))
    over(teacher).get_by_role("button", name=text("show_sentence")).click()
    go_to(teacher.page, room)
    teacher.root.locator(choice).click()
    expect(phone.page.locator(".follow .place").locator(choice)).to_have_attribute("aria-pressed", "true")
    teacher.idle()  # the room before has gone from the teacher's page

    def same() -> None:
        shown, seen = teacher.data(), phone.data()
        assert {name: shown.get(name) for name in said} == {name: seen.get(name) for name in said}
        assert None not in [shown.get(name) for name in said]
        assert shown.get("settled") != "false"

    eventually(phone.page, same)
    expect(main(phone)).to_have_attribute("data-state", "follow")
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.thorough
def test_a_race_is_watched_as_long_as_its_teacher_lets_it_go_on(screen: Screen, another: Another):
    teacher = screen.open()
    code = share(teacher)
    phone = follow(another(PHONE), code)
    over(teacher).get_by_role("button", name=text("show_sentence")).click()
    go_to(teacher.page, train_words.TITLE)
    taught, watched = teacher.page.locator(".hl.train"), phone.page.locator(".follow .place .hl.train")
    for seed in (1, 2, 3):  # a race that nobody else has run on this server: one that has ended is there at once
        taught.get_by_role("button", name=f"seed {seed - 1}").click()
        expect(taught.get_by_role("button", name=f"seed {seed}")).to_be_visible()
    taught.get_by_role("button", name=train_words.COMPONENT["race"]).click()
    taught.locator(".chip.nomask").click()
    expect(watched).to_have_attribute("data-twin", "nomask")
    expect(watched).to_have_attribute("data-state", "none")
    taught.locator(".go").click()
    for races in (taught, watched):
        expect(races).to_have_attribute("data-state", "running")
        for name in ("data-last", "data-twinlast"):
            expect(races).not_to_have_attribute(name, "0", timeout=60_000)  # trained beside other tests
    taught.locator(".go").click()
    for races in (taught, watched):  # the server lets a run rest once nobody watches it any longer
        expect(races).to_have_attribute("data-state", "paused")
        expect(races).to_have_attribute("data-twinstate", "paused")
    late = follow(another(PHONE), code).page.locator(".follow .place .hl.train")
    expect(late).to_have_attribute("data-twinstate", "paused")
    for name in ("data-last", "data-twinlast"):  # whoever comes now sees how far they are, and has not let them go on
        expect(late).not_to_have_attribute(name, "0")
        # Steps that were made while the teacher's word to pause was on its way are seen by those who come later.
        assert int(late.get_attribute(name) or 0) >= int(taught.get_attribute(name) or 0)
    expect(taught).to_have_attribute("data-twinstate", "paused")
    expect(main(phone)).to_have_attribute("data-state", "follow")
    go_to(teacher.page, "Explore")
    expect(watched).to_have_count(0)


@pytest.mark.thorough
def test_a_code_is_typed_and_a_wrong_one_is_answered_in_a_sentence(screen: Screen, another: Another):
    code = share(screen.open())
    follower = another(PHONE)
    follower.page.goto(f"{follower.address}/r")
    field = follower.page.get_by_label(text("join_label"))
    field.fill("BBBB BBBB")
    follower.page.get_by_role("button", name=text("join"), exact=True).click()
    expect(follower.page.get_by_role("alert")).to_have_text(re.compile(r"\w+.*\."))
    field.fill(code.lower().replace(" ", "-"))
    field.press("Enter")
    expect(main(follower)).to_have_attribute("data-state", "wait")
    assert follower.page.url.endswith(f"/r/{code.replace(' ', '')}")
    over(screen).get_by_role("button", name=text("close_door")).click()
    expect(over(screen).locator(".share .code")).to_have_text(text("door_closed"))
    stranger = another(PHONE, "dark")
    stranger.page.goto(f"{stranger.address}/r/{code.replace(' ', '')}")
    expect(stranger.page.get_by_role("alert")).to_be_visible()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("ABCD EFGH", ("never has “A” or “E”", "For “A” try", "For “E” try")),
        ("0O1I-BCDF", ("never has “0” or “O” or “1”", "For “0” try D or Q")),
        ("BCD2", ("never has “2”", "For “2” try Z or 7")),
        ("éБ#BCDFG", ("never has “É” or “Б” or “#”",)),
        ("BCDF", ("has 8 characters, and this has 4",)),
        ("BCDFGHJKL", ("has 8 characters, and this has 9",)),
        ("", ("has 8 characters, and this has 0",)),
        ("ｂｃｄｆ ｇｈｊｋ", ("No class has this code",)),
        ("https://headlight.example/lab/r/BCDFGHJK?theme=dark", ("No class has this code",)),
    ],
)
@pytest.mark.thorough
def test_what_is_no_code_says_what_is_wrong_with_it(another: Another, typed: str, said: tuple[str, ...]):
    """In the field, by the button and by Enter; and in the address, where it may be typed as well."""
    follower = another(PHONE)
    follower.page.goto(f"{follower.address}/r")
    alert = follower.page.get_by_role("alert")
    field = follower.page.get_by_label(text("join_label"))
    button = follower.page.get_by_role("button", name=text("join"), exact=True)
    field.fill(typed)
    is_strange = "never" in said[0]
    if is_strange:
        expect(alert).to_contain_text("B C D F G H J K L M N P Q R S T V W X Y Z 3 4 7 9")  # at once
    else:
        expect(alert).to_be_hidden()  # a code that is not all there yet is no mistake
    for sends in (button.click, lambda: field.press("Enter")):
        field.fill(typed)
        sends()
        for part in said:
            expect(alert).to_contain_text(part)
        expect(field).to_have_value(typed)
    assert follower.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    if typed and "/" not in typed:
        follower.page.goto(f"{follower.address}/r/{quote(typed)}")
        for part in said:
            expect(alert).to_contain_text(part)
        expect(field).to_have_value(typed)
    field.fill("BCDFGHJK")
    expect(alert).to_be_hidden()


@pytest.mark.thorough
def test_an_address_that_is_no_text_is_no_code(another: Another):
    follower = another(PHONE)
    follower.page.goto(f"{follower.address}/r/%E0%A4%A")
    expect(follower.page.get_by_role("alert")).to_contain_text("A code never has “%”")


def test_every_sign_that_no_code_has_and_looks_like_one_has_a_hint():
    likely = words.CODE_LIKELY
    assert not {*likely} & {*codes.ALPHABET}
    assert {*likely} == {*"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"} - {*codes.ALPHABET}
    for others in likely.values():
        assert {*re.sub(r", | or ", "", others)} <= {*codes.ALPHABET}, others


LEAVES = {
    "the bar": lambda teacher: go_to(teacher.page, masks_words.TITLE),
    "a key": lambda teacher: teacher.page.keyboard.press(digit("masks")),
    "the code, and the sentence": lambda teacher: (
        teacher.page.locator(".badge").click(),
        over(teacher).get_by_role("button", name=text("show_sentence")).click(),
        go_to(teacher.page, masks_words.TITLE),
    ),
    "the code, and a key": lambda teacher: (
        teacher.page.keyboard.press("j"),
        teacher.page.keyboard.press(digit("masks")),
    ),
    "the browser's Back": lambda teacher: (teacher.page.go_back(), go_to(teacher.page, masks_words.TITLE)),
    "back to the sentence": lambda teacher: (
        over(teacher).get_by_role("button", name=text("back_to_sentence")).click(),
        go_to(teacher.page, masks_words.TITLE),
    ),
}


# The bar is clicked and A pressed before anything else can happen: Explore has no picture yet.
BACK_AND_ASK = """() => {
    const bar = [...document.querySelectorAll("*")].find((node) => node.shadowRoot?.querySelector("a[data-room=explore]"));
    (bar?.shadowRoot ?? document).querySelector("a[data-room=explore]").click();
    dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true, cancelable: true }));
}"""


@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.thorough
def test_however_the_answer_leaves_the_wall_the_phones_go_on(screen: Screen, another: Another, how: str):
    """And those who come in while it is there wait for what comes next."""
    teacher = screen.open("?view=explore&layer=3&head=1")
    go_to(teacher.page, masks_words.TITLE)
    go_to(teacher.page, "Explore")
    teacher.page.locator(".hl.explore[data-painted]").wait_for()  # Masks may still be beside it
    teacher.idle()
    code = share(teacher)
    phone = follow(another(PHONE), code)
    over(teacher).get_by_role("button", name=text("show_sentence")).click()
    ask(teacher)
    tap(phone, "animal")
    counted(teacher, 1)
    teacher.page.keyboard.press("r")
    expect(phone.page.locator(".follow .result")).to_contain_text("You chose animal")
    late = follow(another(PHONE, "dark"), code)
    expect(late.page.locator(".follow .panel h1")).to_have_text(text("on_wall"))
    assert "%" not in late.page.locator("body").inner_text()
    phone.page.reload()  # a phone that slept: it was asked, and sees what came of it
    expect(phone.page.locator(".follow .result")).to_contain_text("gives")
    LEAVES[how](teacher)
    for follower in (phone, late):
        expect(follower.page.locator(".follow .place .hl.masks .fact")).to_contain_text("may not look at")
        expect(main(follower)).to_have_attribute("data-state", "follow")
    teacher.page.evaluate(BACK_AND_ASK)
    expect(teacher.page.locator(".classroom .card")).to_be_visible()
    teacher.page.keyboard.press("Escape")
    expect(teacher.page.locator(".classroom .card")).to_be_hidden()
    teacher.page.locator(".hl.explore[data-painted]").wait_for()
    teacher.idle()
    ask(teacher)
    for follower in (phone, late):
        tap(follower, "street")
    counted(teacher, 2)


@pytest.mark.thorough
def test_a_class_that_was_cut_off_hears_that_the_answer_has_left_the_wall(screen: Screen, another: Another):
    teacher = screen.open()
    phone = follow(another(PHONE), share(teacher))
    over(teacher).get_by_role("button", name=text("begin")).click()
    teacher.root.locator(".strip [data-axis=query]").get_by_text("it", exact=True).first.click()
    tap(phone, "animal")
    counted(teacher, 1)
    teacher.page.keyboard.press("r")
    expect(phone.page.locator(".follow .result")).to_contain_text("You chose animal")
    with without_connection(teacher):
        expect(teacher.page.locator(".badge")).to_have_text(text("no_connection"))
        over(teacher).get_by_role("button", name=text("back_to_sentence")).click()
        expect(over(teacher)).to_be_hidden()
    expect(main(phone)).to_have_attribute("data-state", "follow")
    expect(over(teacher)).to_be_hidden()


@pytest.mark.thorough
def test_the_projector_has_the_code_in_a_corner_and_a_reload_keeps_the_class(screen: Screen):
    teacher = screen.open()
    code = share(teacher)
    teacher.page.reload()
    teacher.painted()
    expect(teacher.page.locator(".badge")).to_contain_text(code)
    teacher.page.keyboard.press("p")
    expect(teacher.page.locator(".classroom .corner")).to_be_visible()
    expect(teacher.page.locator(".classroom .corner")).to_contain_text(code)
    teacher.page.keyboard.press("j")
    expect(over(teacher).locator(".share .code")).to_have_text(code)


INSIDE = """node => {
    const [box, page] = [node.getBoundingClientRect(), document.documentElement];
    return node.scrollWidth <= node.clientWidth && box.left >= 0 && box.right <= page.clientWidth && box.bottom <= page.clientHeight;
}"""


@pytest.mark.parametrize("size", [(1280, 720), (1024, 768), (1920, 1080)])
@pytest.mark.thorough
def test_the_last_row_can_read_the_whole_code(another: Another, size: tuple[int, int]):
    teacher = another(size, reduced_motion="reduce").open()
    share(teacher)
    code = over(teacher).locator(".share .code")
    assert code.evaluate(INSIDE)
    before = code.evaluate("node => node.getBoundingClientRect().height")
    over(teacher).get_by_role("button", name=text("project"), exact=True).click()
    expect(teacher.page.locator(".classroom.projected")).to_be_attached()

    def fits() -> None:
        assert code.evaluate(INSIDE) and code.evaluate("node => node.getBoundingClientRect().height") >= before
        assert over(teacher).locator("img.square").evaluate(INSIDE)

    eventually(teacher.page, fits)  # type grows behind the click


@pytest.mark.thorough
def test_the_link_of_a_class_is_copied_or_stands_there_to_be_copied(own_screen: Screen, another: Another):
    for teacher, allowed in ((own_screen, False), (another(permissions=["clipboard-read", "clipboard-write"]), True)):
        teacher.open()
        code = share(teacher).replace(" ", "")
        if not allowed:  # as in a page that came by http from another computer
            teacher.page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error()))")
        over(teacher).get_by_role("button", name=text("copy_link"), exact=True).click()
        if allowed:
            expect(teacher.page.locator(".classroom .toast")).to_have_text(text("link_copied"))
            link = teacher.page.evaluate("navigator.clipboard.readText()")
        else:
            link = over(teacher).get_by_label(text("copy_by_hand")).input_value()
        assert link == f"{teacher.address}/R/{code}"


@pytest.mark.thorough
def test_who_chooses_a_room_sees_it_and_the_bar_leads_back_to_the_question(screen: Screen, another: Another):
    teacher = screen.open("?layer=3&head=1&query=10")
    phone = follow(another(PHONE), share(teacher))
    go_to(teacher.page, masks_words.TITLE)
    expect(over(teacher)).to_be_hidden()
    expect(phone.page.locator(".follow .place .hl.masks .fact")).to_contain_text("may not look at")
    go_to(teacher.page, "Explore")
    expect(teacher.page.get_by_role("button", name=text("ask"), exact=True)).to_be_visible()
    ask(teacher)
    tap(phone, "street")
    counted(teacher, 1)
    go_to(teacher.page, masks_words.TITLE)
    expect(over(teacher)).to_be_hidden()
    expect(word(phone, "street")).to_be_visible()  # it is still asked
    teacher.page.get_by_role("button", name=text("back_to_question"), exact=True).click()
    counted(teacher, 1)
    go_to(teacher.page, "Explore")
    expect(over(teacher)).to_be_hidden()
    expect(teacher.page.locator(".hl.masks")).to_have_count(0)  # whose keys are others
    teacher.painted()
    teacher.page.keyboard.press("a")
    counted(teacher, 1)
    teacher.page.keyboard.press("r")
    expect(phone.page.locator(".follow .result")).to_contain_text("You chose street")
    expect(phone.page.get_by_role("button", name=text("look"), exact=True)).to_be_visible()
    go_to(teacher.page, masks_words.TITLE)
    expect(phone.page.locator(".follow .place .hl.masks .fact")).to_contain_text("may not look at")
    expect(main(phone)).to_have_attribute("data-state", "follow")


@pytest.mark.thorough
def test_a_question_says_its_kind_of_attention_and_its_word_in_full(screen: Screen, another: Another):
    teacher = screen.open("?model=translator")
    phone = follow(another(PHONE), share(teacher))
    over(teacher).get_by_role("button", name=text("begin")).click()
    teacher.root.locator(".strip [data-axis=query]").get_by_text("through", exact=True).click()
    expect(over(teacher).locator(".line .of")).to_have_text(
        re.compile(r"cross-attention, layer \d head \d of Translator")
    )
    expect(phone.page.locator(".follow .panel h2")).to_contain_text("cross-attention")
    assert over(teacher).locator(".rowname").evaluate("node => node.scrollWidth <= node.clientWidth")
    # Pieces that stand together in the sentence do so among the words to tap.
    pieces = phone.page.locator(".follow .words .pieces").evaluate_all(
        "spans => spans.map(span => span.innerText.split(/\\s+/))"
    )
    assert pieces == [["Ein"], ["Hund"], ["rennt"], ["durch"], ["den"], ["Schnee", "."], ["</s>"]]


@pytest.mark.thorough
def test_words_that_are_read_from_the_right_stand_so_and_move_no_number(screen: Screen, another: Another):
    teacher = screen.open("?text=%D7%94%D7%97%D7%AA%D7%95%D7%9C")  # five letters, a token each
    phone = follow(another(PHONE), share(teacher))
    over(teacher).get_by_role("button", name=text("begin")).click()
    teacher.root.locator(".strip [data-axis=query]").nth(3).click()
    words_to_tap = phone.page.locator(".follow .words button")
    expect(words_to_tap).to_have_count(7)
    first, second = (words_to_tap.nth(i).evaluate("node => node.getBoundingClientRect().left") for i in (1, 2))
    assert first > second
    words_to_tap.nth(2).click()
    counted(teacher, 1)
    left = "nodes => nodes.map(node => node.getBoundingClientRect().left)"
    columns = over(teacher).locator(".column").evaluate_all(left)
    assert columns == sorted(columns, reverse=True)
    teacher.page.keyboard.press("r")
    said = phone.page.locator(".follow .result em")
    expect(said).to_have_count(2)
    label, number = said.evaluate_all(left)
    assert label < number, "the number stands behind the word it is of"


@pytest.mark.thorough
def test_what_the_mask_hides_is_no_word_of_a_question(screen: Screen, another: Another):
    teacher = screen.open("?model=storyteller&text=Once+upon+a+time+there+was+a+cat")
    phone = follow(another(PHONE), share(teacher))
    over(teacher).get_by_role("button", name=text("begin")).click()
    teacher.root.locator(".strip [data-axis=query]").get_by_text("there", exact=True).click()
    expect(over(teacher).locator(".word.hidden")).to_have_text(["was", "a", "cat"])
    for hidden in ("was", "cat"):
        expect(word(phone, hidden)).to_be_disabled()
    tap(phone, "upon")
    counted(teacher, 1)
    teacher.page.keyboard.press("r")
    expect(over(teacher).locator(".legend")).to_contain_text("% of 1 vote")
    expect(over(teacher).locator(".legend")).not_to_contain_text("votes")
    expect(phone.page.locator(".follow .result")).to_contain_text("You chose upon")
    shown = phone.page.get_by_role("table", name=text("table_label")).get_by_role("rowheader").all_inner_texts()
    assert {label.split("\n")[0] for label in shown} == {"<s>", "Once", "upon", "a", "time", "there"}


@pytest.mark.thorough
def test_the_marks_of_the_round_before_stand_in_the_chart_and_the_menu_of_files_over_it(
    screen: Screen, another: Another
):
    teacher = screen.open("?layer=3&head=1&query=10")
    phone = follow(another(PHONE), share(teacher))
    over(teacher).get_by_role("button", name=text("show_sentence")).click()
    ask(teacher)
    for label, end in (("animal", False), ("street", True)):
        tap(phone, label)
        counted(teacher, 1)
        teacher.page.keyboard.press("r")
        expect(over(teacher).locator(".fact")).to_contain_text(label)
        if not end:
            over(teacher).get_by_role("button", name="Ask again with “wide”").click()
            expect(word(phone, "wide")).to_be_visible()
    expect(over(teacher).locator(".legend")).to_contain_text("before, with “tired”")
    tops = (
        over(teacher)
        .locator(".chart")
        .evaluate(
            """chart => [".legend", ".before:not([hidden])", ".bar u"].map(which =>
            [...chart.querySelectorAll(which)].filter(node => node.textContent || which[1] === "b").map(node => node.getBoundingClientRect()))
        .map((boxes, i) => i ? Math.min(...boxes.map(box => box.top)) : boxes[0].bottom)"""
        )
    )
    assert tops[0] <= min(tops[1:]) + 1, "what is drawn lies over the legend"
    over(teacher).get_by_role("button", name=kit_words.COMPONENT["export"]).click()
    menu = over(teacher).get_by_role("dialog")
    expect(menu).to_be_visible()
    assert menu.evaluate(INSIDE) and over(teacher).evaluate("node => node.scrollTop") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.thorough
def test_axe_finds_nothing_on_any_page_of_the_class(another: Another, scheme: str):
    teacher = another((1280, 720), scheme, reduced_motion="reduce").open()
    code = share(teacher)
    phone = follow(another(PHONE, scheme, reduced_motion="reduce"), code)
    expect(main(phone)).to_have_attribute("data-state", "wait")
    waiting = findings(phone)
    teacher.page.keyboard.press("j")
    phone.painted()
    teacher.page.keyboard.press("j")
    expect(over(teacher)).to_be_visible()
    # a phone that follows shows the room alone; a heading comes with a question
    followed = [line for line in findings(phone) if not line.startswith("page-has-heading-one ")]
    found = {"share": findings(teacher), "follow": followed, "wait": waiting}
    over(teacher).get_by_role("button", name=text("begin")).click()
    expect(teacher.page.locator(".classroom .card")).to_be_visible()
    found["choose"] = findings(teacher)
    teacher.root.locator(".strip [data-axis=query]").get_by_text("it", exact=True).first.click()
    tap(phone, "street")
    counted(teacher, 1)
    found |= {"votes": findings(teacher), "vote": findings(phone)}
    teacher.page.keyboard.press("r")
    expect(over(teacher).locator(".fact")).to_contain_text("street")
    expect(phone.page.locator(".follow .result")).to_be_visible()
    found |= {"reveal": findings(teacher), "result": findings(phone)}
    assert not any(found.values()), found


@pytest.mark.thorough
def test_what_a_finger_hits_is_large_enough(screen: Screen, another: Another):
    teacher = screen.open()
    phone = follow(another(PHONE), share(teacher))
    over(teacher).get_by_role("button", name=text("begin")).click()
    teacher.root.locator(".strip [data-axis=query]").get_by_text("it", exact=True).first.click()
    expect(word(phone, "it")).to_be_visible()
    sizes = phone.page.locator(".follow :is(.words, .low) button").evaluate_all(
        "nodes => nodes.map(node => { const box = node.getBoundingClientRect(); return [node.textContent, box.width, box.height]; })"
    )
    assert len(sizes) == 17
    assert not [size for size in sizes if size[1] < 44 or size[2] < 44]
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
