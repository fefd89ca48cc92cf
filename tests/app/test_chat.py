"""A sentence as a chat: a choice where the model has a template, in the address, in every room, with the turns over the tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from app.attention.picture import turns
from app.export import about
from app.rooms.generate import export as generate_export
from app.rooms.generate.message import marks
from app.rooms.whatif import changes
from app.session import models
from app.session import screen as session_screen
from app.session.screen import Screen as Shown
from app.shell import words
from core.model.text import Tokens
from core.run.request import Request
from core.service import Facts
from core.write import writer
from tests.app import script
from tests.app.browsing import Another, Screen, eventually, go_to
from tests.app.served import ask
from tests.core.chats import chat_model, write_chat_model

APP = "tests/app/chatting.py"
MODEL, TEXT = "chatter", "Hello there"


def facts_of(**more: str | None) -> Facts:
    """A run of the small chat model on the text as a chat."""
    import torch

    from core.service import LocalService, engine

    loaded = chat_model()
    service = LocalService(engine.Engine(device=torch.device("cpu"), load_model=lambda *_, **__: loaded))
    request = Request("chatter", (TEXT,), chat=True, target_text=more.get("target"))
    return ask(service.facts(ask(service.submit(request))))


def choice(screen: Screen, said: str) -> Locator:
    return screen.page.get_by_role("radio", name=words.AS_OPTIONS[said], exact=True)


def choose(screen: Screen, said: str) -> None:
    choice(screen, said).click()
    screen.idle()


def address(screen: Screen) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(screen.page.url).query).items()}


def named(screen: Screen) -> list[str]:
    return screen.page.locator(".hl .strip small.turn").all_inner_texts()


# without a browser


def test_turns_of_a_conversation_and_of_a_text_as_it_is() -> None:
    tokens = chat_model().chat_tokens([{"role": "user", "content": TEXT}])
    found = turns(tokens)
    assert [role for _, role in found] == ["system", "user", "assistant"]
    assert all(tokens.strings[at] == "<|im_start|>" for at, _ in found)
    assert turns(chat_model().tokens(TEXT)) == []


def test_marks_of_a_conversation_are_its_form_and_no_part_of_a_message() -> None:
    tokens = chat_model().chat_tokens([{"role": "user", "content": TEXT}])
    found = dict(marks(tokens))
    assert all(i in found for i, special in enumerate(tokens.special) if special)
    assert not any(i in found for i, is_form in enumerate(tokens.from_template) if not is_form)
    for begins, role in turns(tokens):
        header = [i for i in range(begins, len(tokens)) if all(found.get(k) == role for k in range(begins, i + 1))]
        text = tokens.text[tokens.offsets[header[0]][0] : tokens.offsets[header[-1]][1]]
        assert text == f"<|im_start|>{role}\n"  # the system's own words are none of it
    assert marks(chat_model().tokens(TEXT)) == []


def test_a_link_says_that_a_text_is_read_as_a_chat() -> None:
    request = Request("storyteller", (TEXT,), "The answer", chat=True)
    said = Shown("explore", request).said()
    assert said["as"] == "chat"
    assert session_screen.from_link(f"?model=storyteller&text={TEXT}&as=chat&target=The+answer").request == request
    assert not session_screen.from_link(f"?model=storyteller&text={TEXT}").request.chat
    assert "as" not in session_screen.link(Request("storyteller", (TEXT,)))


def test_what_leaves_the_app_is_of_the_conversation() -> None:
    facts = facts_of(target="I am")
    assert facts.conversation == (TEXT, "I am")
    assert facts.source.text.endswith("<|im_start|>assistant\nI am")
    assert facts.source.roles[-1] == "assistant" and not facts.source.from_template[-1]
    assert session_screen.texts_said(facts) == {"text": TEXT, "as": "chat", "target": "I am"}
    beside = changes.beside({"against": "Other words", "other": ""}, facts)
    assert (beside.texts, beside.target_text, beside.chat) == (("Other words",), "I am", True)
    line = about.trace_line(facts)
    assert line == 'run = hl.trace_chat(loaded, [{"role": "user", "content": \'Hello there\'}], answer=\'I am\')'
    snippet = generate_export.snippet(facts, Request("chatter", (TEXT,), "I am", chat=True))
    compile(snippet, "snippet", "exec")
    assert "loaded.chat_tokens([" in snippet


def test_code_gives_the_same_run() -> None:
    import core

    facts, loaded = facts_of(target="I am"), chat_model()
    names: dict[str, object] = {"hl": core, "loaded": loaded}
    exec(about.trace_line(facts), names)
    run = names["run"]
    assert isinstance(run, core.Trace)
    assert run.source == facts.source
    lines = generate_export.snippet(facts, Request("chatter", (TEXT,), "I am", chat=True)).splitlines()
    names |= {"loaded": loaded}
    exec("\n".join(line.replace("[PATH]", "[]") for line in lines if not line.startswith("loaded")), names)
    opened = names["opening"]
    assert isinstance(opened, writer.Opening)
    assert opened.readings[-1].position == len(facts.source) - 1
    assert isinstance(facts.source, Tokens)


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chat model is on offer."""
    for name, spec in models.read(str(write_chat_model(tmp_path / MODEL)), ()).items():
        monkeypatch.setitem(models.MODELS, name, spec)
        monkeypatch.setitem(models.TITLES, name, spec.title)


@pytest.mark.usefixtures("offered")
def test_a_page_reads_a_sentence_as_it_is_or_as_a_chat_as_its_link_says() -> None:
    app = script.visit("explore", model=MODEL, text=TEXT)
    (how,) = cast(Any, app.get("button_group"))
    assert how.value == "" and script.message(app, "explore_stage")["turns"]["source"] == []
    how.set_value("chat").run()
    assert [role for _, role in script.message(app, "explore_stage")["turns"]["source"]] == [
        "system",
        "user",
        "assistant",
    ]
    assert script.box(app, words.TEXT).value == TEXT and script.box(app, words.ANSWER).value == ""
    answered = script.visit("explore", model=MODEL, text=TEXT, target="model", **{"as": "chat"})
    assert script.box(answered, words.ANSWER).value == "model"
    (how,) = cast(Any, answered.get("button_group"))
    assert how.value == "chat"
    how.set_value("").run()
    assert words.ANSWER not in [area.label for area in answered.text_area]


def test_a_page_of_a_model_without_a_template_says_so_and_offers_no_choice() -> None:
    app = script.visit("explore", model="storyteller", text=TEXT, **{"as": "chat"})
    assert words.NO_CHAT.format(title="Storyteller") in script.said(app) and not app.get("button_group")


# in a browser


@pytest.mark.thorough
def test_switching_keeps_the_sentence_and_is_in_the_address(screen: Screen) -> None:
    screen.open(f"?model={MODEL}&text={TEXT}")
    expect(choice(screen, "")).to_be_checked()  # as an older link opened it
    assert named(screen) == []
    assert "as" not in address(screen)
    choose(screen, "chat")
    eventually(screen.page, lambda: _is(named(screen), ["system", "user", "assistant"]))
    eventually(screen.page, lambda: _is(address(screen).get("as"), "chat"))
    box = screen.page.get_by_role("textbox", name=words.TEXT, exact=True)
    expect(box).to_have_value(TEXT)
    marks = screen.page.locator('.hl .strip span[role="option"]', has_text="<|im_start|>")
    expect(marks).to_have_count(3)
    expect(marks.first).to_have_attribute("title", "The turn of system begins")
    screen.page.go_back()
    eventually(screen.page, lambda: _is(named(screen), []))
    expect(choice(screen, "")).to_be_checked()
    expect(box).to_have_value(TEXT)


@pytest.mark.thorough
def test_every_room_that_runs_a_text_reads_the_conversation(another: Callable[..., Screen]) -> None:
    screen = another()
    screen.open(f"?model={MODEL}&text={TEXT}&as=chat")
    assert named(screen) == ["system", "user", "assistant"]
    for room in ("Step through", "Masks", "Positions", "Generate", "What if", "Explore"):
        go_to(screen.page, room)
        screen.idle()
        expect(choice(screen, "chat")).to_be_checked()
        # Which fold a long text around two words, name only some of its rows, or say whose turn it is in place of marks
        if room not in ("Positions", "Masks", "Generate"):
            expect(screen.page.get_by_text("<|im_end|>").first).to_be_attached()
        assert address(screen)["as"] == "chat"
        assert address(screen)["text"] == TEXT


@pytest.mark.thorough
def test_the_turns_are_named_in_rooms_that_write_the_text_in_their_own_way(screen: Screen) -> None:
    page, link = screen.page, f"model={MODEL}&text={TEXT}&as=chat"
    for room, names in (
        ("positions&lab=order", ".slots small.turn"),
        ("whatif", ".hl .aligned small.turn, .hl .tokens small.turn"),
    ):
        screen.arrive(f"?view={room}&{link}")
        found = page.locator(names)
        eventually(page, lambda found=found: _is(found.all_inner_texts()[:3], ["system", "user", "assistant"]))
    screen.arrive(f"?view=generate&n=0&{link}")
    generate = page.locator(".hl.generate")
    expect(generate.locator("svg path title")).to_have_text(["system", "user", "assistant"])
    expect(generate.locator(".fact .big")).to_contain_text(re.compile("^After assistant "))
    screen.arrive(f"?view=masks&{link}")
    first = turns(chat_model().chat_tokens([{"role": "user", "content": TEXT}]))
    said = page.locator(".hl .turns.note")
    expect(said).to_have_text(f"The turns of the chat: {', '.join(f'{role} from token {i}' for i, role in first)}.")
    screen.arrive(f"?view=masks&model={MODEL}&text={TEXT}")
    expect(said).to_be_hidden()


@pytest.mark.thorough
def test_answer_so_far_is_read_after_the_conversation(screen: Screen) -> None:
    screen.open(f"?model={MODEL}&text={TEXT}&as=chat&target=model")
    answer = screen.page.get_by_role("textbox", name=words.ANSWER, exact=True)
    expect(answer).to_have_value("model")
    expect(screen.page.locator(".hl .strip").first).to_have_text(re.compile(r"m ?o ?d ?e ?l$"))  # in pieces
    choose(screen, "")
    expect(answer).to_have_count(0)
    eventually(screen.page, lambda: _is("target" in address(screen), False))


@pytest.mark.thorough
def test_a_model_without_a_template_offers_no_choice_and_says_so(screen: Screen) -> None:
    screen.open(f"?model=storyteller&text={TEXT}&as=chat")
    expect(choice(screen, "chat")).to_have_count(0)
    said = words.NO_CHAT.format(title="Storyteller")
    expect(screen.page.get_by_text(said)).to_be_visible()
    eventually(screen.page, lambda: _is("as" in address(screen), False))


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(390, 844), (1920, 1080)])
def test_names_of_turns_are_seen_whole(another: Another, size: tuple[int, int]) -> None:
    screen = another(size, scheme="dark")
    screen.open(f"?model={MODEL}&text={TEXT}&as=chat")
    strip = screen.page.locator(".hl .strip.chat").first
    strip.scroll_into_view_if_needed()
    assert strip.evaluate(
        """strip => !(strip.scrollTop = 0) && [...strip.querySelectorAll("small.turn b")].every((name) => {
            const [inner, outer] = [name.getBoundingClientRect(), strip.getBoundingClientRect()];
            return strip.classList.contains("over") || inner.top >= outer.top - 1;
        })"""
    )


def _is(found: object, expected: object) -> None:
    assert found == expected
