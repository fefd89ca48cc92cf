"""A run on the screen of a room: the request box, the wait, what there is to say, and the run that can be shown."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.kit import stage
from app.kit.room import Message, Run
from app.kit.stage import Followed, Stage
from app.session import answer as session_answer
from app.session import chosen, examples, notices, resolving, screen, service
from app.session import models as session_models
from app.shell import request as shell_request
from app.shell import request_box, waiting, words
from core.edits import Intervention
from core.run.request import Request
from core.service import Facts, RunHandle

Made = TypeVar("Made", bound=Message)
Picture = TypeVar("Picture")


@dataclass(frozen=True)
class OnScreen(Generic[Picture]):
    """A run that can be shown: the newest, or the last one that worked where that did not."""

    request: Request
    facts: Facts
    picture: Picture
    notes: list[str]

    def say(self, *notes: str) -> None:
        """Show sentences above the room, as text: they may quote what the visitor typed."""
        self.notes.extend(notes)


@contextmanager
def on_screen(
    draw: session_answer.Draw[Picture] = session_answer.no_picture,
    so_far: Callable[[RunHandle[None]], bool] = lambda _: False,
) -> Iterator[OnScreen[Picture] | None]:
    """Draw the request box, wait for its run, and draw the room inside the `with` block. None if there is no run to show yet.

    Everything else that belongs to the run is sent after the room, which is what a visitor waits for. `so_far` is called while the
    run continues, and returns True if it has drawn the room: the script then starts again to draw the finished run there.
    """
    asked, beneath = ask()
    request = asked.request
    # Both keep their position among the elements of the page, whatever is drawn in them.
    working, place = st.empty(), st.empty()

    def surround(answer: session_answer.Answer[Picture], notes: Sequence[str]) -> DeltaGenerator:
        with beneath:
            request_box.beneath(request, answer)
        sentences = place.container(key="sentences", gap=None)
        for note in notes:
            sentences.text(note)  # never markdown: it may quote what the visitor typed
        return sentences

    is_drawn = False

    def look(before: session_answer.Answer[Picture]) -> None:
        nonlocal is_drawn
        if not is_drawn and before.waiting is not None and so_far(before.waiting):
            is_drawn = True
            surround(before, notices.waiting())  # nothing may move when the room is drawn again

    answer = answered(request, working, draw, look)
    if is_drawn or (asked.config is None and has_other_boxes(request, answer)):
        st.rerun()
    if request.write and answer.waiting is None and not answer.stopped:
        shell_request.was_written(request, answer.facts if answer.request == request else None)
    notes = notices.take() + ([answer.sentence] if answer.sentence else [])
    if answer.request is None or answer.facts is None:
        yield None
        nothing_yet(asked.model)
    else:
        yield OnScreen(answer.request, answer.facts, cast(Picture, answer.picture), notes)
    working.empty()
    sentences = surround(answer, notes)
    if answer.unreadable and answer.request is not None:
        offer_example(asked.model, sentences)
    if answer.stopped:
        waiting.run_again(sentences)


def ask() -> tuple[shell_request.Asked, DeltaGenerator]:
    """Start the run of the request box, and then draw the box. Returns the place beneath it."""
    asked = shell_request.asked()
    session_answer.begin_early(asked.request)
    chosen.ask(screen.spelled_out(asked.request), asked.is_link)
    return asked, request_box.draw(asked)


def answered(
    request: Request,
    place: DeltaGenerator,
    draw: session_answer.Draw[Picture] = session_answer.no_picture,
    look: Callable[[session_answer.Answer[Picture]], object] = lambda _: None,
    side: str = "",
) -> session_answer.Answer[Picture]:
    """Run a request for a side of the room, and show its progress at this place.

    `look` is called at each check with the answer until then, which has the last run that worked.
    """
    answer = session_answer.answer(request, draw, waiting.SOON, side)
    if answer.waiting is not None:
        waiting.wait(answer.waiting, place, partial(look, answer), side)
        answer = session_answer.answer(request, draw, side=side)
    return answer


def draw(
    shown: OnScreen[Any], on: Stage, message: Callable[[Run, Mapping[str, str]], Coroutine[Any, Any, Made]]
) -> tuple[Followed, Made]:
    """Draw a room by the message of the run on the screen, for what the visitor has chosen. Raises Refused."""
    found: list[Made] = []

    def shown_for(said: Mapping[str, str]) -> object:
        found.append(service.awaited(message(Run(shown.request, shown.facts), said)))
        return found[-1].shown

    followed = stage.follow(on, shown_for, shown.facts)
    made = found[-1]
    shown.say(*followed.notes)
    stage.draw(on, followed, made.header, made.body)
    return followed, made


def has_other_boxes(request: Request, answer: session_answer.Answer) -> bool:
    """Whether a model that no one knew when the boxes were drawn turns out to have others: it reads a target, or conversations."""
    model = screen.model_of(request)
    if answer.waiting is not None or service.calls().result(service.service().model(model)) is None:
        return False
    two = answer.request == request and answer.facts is not None and answer.facts.target is not None
    return two or request.chat or service.calls().result(service.service().chats(model))


def if_wanted(wanted: bool) -> Facts | None:
    """What runs on the screen, in a room that also goes without a run: then the boxes are not drawn, and keep what they hold."""
    if not wanted:
        return None
    with on_screen() as shown:
        return None if shown is None else shown.facts


def edited(shown: OnScreen[Any], edits: tuple[Intervention, ...]) -> Facts | None:
    """The run on the screen with these interventions as well, as side b of the room: waited for, and cancelled when the visitor goes on.

    The text that the model reads stays the same, also a target that it has written itself. None, with a sentence, where it was
    refused.
    """
    request = resolving.edited_as_read(shown.request, shown.facts, edits)
    working = st.empty()
    answer = answered(request, working, side="b")
    working.empty()
    if answer.request == request:
        return answer.facts
    if answer.sentence:
        shown.say(answer.sentence)
    return None


def nothing_yet(model: str) -> None:
    """What stands where a picture will be, with a text one click away."""
    st.text(words.NOTHING_YET)
    st.button(words.TAKE_EXAMPLE, on_click=shell_request.take_text, args=(model,))


def offer_example(model: str, place: DeltaGenerator) -> None:
    """A text that this model reads, one click away."""
    row = place.container(horizontal=True, gap="small", key="fitting", vertical_alignment="center")
    row.text(words.TRY_EXAMPLE.format(example=examples.first_text(session_models.spec_of(model))), width="content")
    row.button(words.TAKE_FITTING, key="take_fitting", type="tertiary", on_click=shell_request.take_text, args=(model,))
