"""The request: sentence, model, target, training step, and what a model is to write. In the URL, so that a link reproduces it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import streamlit as st

from app import languages
from app.kit import numbers
from app.session import answer as session_answer
from app.session import boxes, chosen, examples, notices, own_texts, screen, service
from app.session import models as session_models
from app.session.models import MODELS, TITLES
from app.session.session_state import EDITS, FILLED, TRAINED, WRITING, WRITTEN, Key
from app.shell import words
from core.checkpoints import ModelSpec
from core.edits import Edit, InterventionError, from_text, to_text
from core.learn import text_training
from core.model.config import ModelConfig
from core.run.request import Request
from core.service import Facts

HERE = "?here"  # among the models: those of other programs on this machine. No model has such an id
ALL = "?all"  # among the models: the list of all of them. No model has such an id
OPTIONS = {HERE: words.HERE_OPTION, ALL: words.ALL_OPTION}
ALL_LISTED: Key[bool] = Key("all_models")  # in the session: the visitor wants to see that list
LISTING: Key[bool] = Key("already_here")  # in the session: the visitor wants to see their list
WRITTEN_AT_ONCE = 20  # tokens
MOST_TRAINED = 4  # runs of Train among the models of a visitor
FILLED_FROM = "request_arrivals"  # in the session: chosen.arrivals() when the boxes were filled


@dataclass(frozen=True)
class Asked:
    """The request of the boxes, read before they are drawn, and what there is to know for drawing them."""

    request: Request
    model: str  # in the box: its id, without a step
    is_link: bool  # whether the URL has filled the boxes
    titles: Mapping[str, str]  # of the models that this visitor may choose, by id
    config: ModelConfig | None  # None while the model is not in memory
    chats: bool  # whether it is known to read conversations

    @property
    def two(self) -> bool:
        """Whether there is a box for a second text."""
        return self.request.chat or (self.config is not None and self.config.kind == "encoder-decoder")


def asked() -> Asked:
    """Read the request from the boxes, or from a link. What a link asks for and does not exist gets a notice."""
    offered = titles()
    notes: list[str] = []
    is_link = _fill_boxes(offered, notes)
    model = boxes.held("model")
    _fill(model)
    config, chats = service.calls().result(_known(model))
    chat = _is_chat(model, config is not None, chats, notes)
    found = Asked(
        Request(_at_step(model), (boxes.held("text") or "",), chat=chat), model, is_link, offered, config, chats
    )
    if config is not None and not found.two:
        boxes.fill("target", "")
    # While no one knows whether the model reads a target, what the link or the box before said waits.
    target = boxes.held("target") or (chosen.run().get("target") if config is None else None)
    notices.add(*notes)
    request = replace(found.request, target_text=target or None, interventions=EDITS.get() or ())
    return replace(found, request=_with_what_to_write(request))


async def _known(model: str) -> tuple[ModelConfig | None, bool]:
    """The config of a model that is in memory, and whether it reads conversations."""
    return await asyncio.gather(service.service().model(model), service.service().chats(model))


def _is_chat(model: str, is_known: bool, chats: bool, notes: list[str]) -> bool:
    """Whether the model is to read the text as a conversation: a choice where it has a template, and else never.

    Of a model that is not loaded yet no one knows: a link that asks for a conversation is taken at its word.
    """
    is_asked = boxes.held(screen.AS) == screen.CHAT
    if is_asked and is_known and not chats:
        notes.append(words.NO_CHAT.format(title=session_models.spec_of(model).title))
        boxes.fill(screen.AS, "")
        return False
    return is_asked


def _at_step(model: str) -> str:
    """The id of a model at the step of its training at which the visitor wants to see it."""
    spec = session_models.spec_of(model)
    points = {int(point): point for point, _ in spec.points}
    if not points:
        boxes.fill("step", None)
        return model
    last = max(points)
    if (step := boxes.held("step")) not in points:
        boxes.fill("step", step := last)
    return spec.id if step == last else f"{spec.id}@{points[step]}"


def _fill_boxes(titles: Mapping[str, str], notes: list[str]) -> bool:
    """The boxes are to hold what they held; where the address decides, or where they hold nothing, what it says.

    Returns whether it decided.
    """
    is_link = st.session_state.get(FILLED_FROM, 0) != chosen.arrivals()
    said = chosen.run()

    def fill(name: str, opens: Callable[[], object]) -> None:
        now = boxes.held(name)
        boxes.fill(name, opens() if is_link or now is None else now)

    asked = said.get(
        "model", session_models.OF_OLD_LINKS if is_link and screen.carries_old_head(chosen.address()) else None
    )
    fill("model", lambda: _model_of(asked, titles, notes if is_link else []))
    spec = session_models.spec_of(boxes.held("model"))
    fill("text", lambda: said.get("text", examples.first_text(spec)))  # which a link may leave out
    fill("target", lambda: said.get("target", ""))
    fill(screen.AS, lambda: said.get(screen.AS, ""))
    if spec.points:
        fill("step", lambda: _step_of(said.get("step"), spec, notes if is_link else []))
    if is_link or EDITS.get() is None:
        EDITS.put(_edits_of(said.get(screen.EDITS, ""), notes))
    return is_link


def _edits_of(text: str, notes: list[str]) -> tuple[Edit, ...]:
    """The edits that a link asks for; none, and a sentence, where it asks for what cannot be."""
    try:
        return from_text(text)
    except InterventionError as error:
        notes.append(words.UNKNOWN_EDITS.format(why=error))
        return ()


def take_edits(edits: tuple[Edit, ...]) -> None:
    """Have the run of the request box changed in this way, in every room; for a callback. Raises InterventionError if a link cannot hold it."""
    to_text(edits)
    EDITS.put(edits)


def _fill(model: str) -> None:
    """What the model wrote, put into the boxes before they are drawn; not where another one was chosen meanwhile."""
    writer, texts = FILLED.get() or (model, {})
    for name, text in texts.items():
        if writer == model:
            boxes.fill(name, text)


def filled() -> None:
    """The boxes are drawn as they were to be filled. A script that is broken off before leaves that to the next one."""
    st.session_state[FILLED_FROM] = chosen.arrivals()
    FILLED.take()


def model_changed() -> None:
    """Another model gets a text that fits it, unless the visitor has typed one; what a model wrote is not typed."""
    if (asked := boxes.held("model")) in OPTIONS:  # which is no model: the box shows again what it showed
        boxes.fill("model", st.session_state["model"])
        (LISTING if asked == HERE else ALL_LISTED).put(True)
        return
    spec = session_models.spec_of(boxes.held("model"))
    if EDITS.get():
        take_edits(())
        notices.add(words.EDITS_LEFT.format(now=spec.title))
    text = boxes.held("text") or ""
    typed = examples.was_typed(text, MODELS) and text != WRITTEN.get()
    if not typed and not examples.fits(text, spec):
        boxes.fill("text", examples.first_text(spec))
        boxes.fill("target", "")


def was_written(asked: Request, run: Facts | None) -> None:
    """Put what the model wrote into its box and begin again with it. No run: it was refused, and will not be tried again."""
    if run is None:
        WRITING.take()
        return
    if run.target is None:
        now, before, name = run.source.text, asked.texts[0], "text"
    else:
        now, before, name = run.target.text, asked.target_text, "target"
    if now == before:
        full = run.config.has_position_table and len(run.target or run.source) >= run.config.n_ctx
        notices.add((words.NO_ROOM if full else words.NOTHING_WRITTEN).format(title=run.spec.title))
    if name == "text":
        WRITTEN.put(now)
    put(screen.model_of(asked), {name: now})
    WRITING.take()  # last: a script that is broken off before leaves it to the next
    st.rerun()


def _with_what_to_write(asked: Request) -> Request:
    """A request with what the visitor wants written after it: after this very text and model, not when they come back."""
    more = replace(asked, write=WRITTEN_AT_ONCE)
    if WRITING.get() == more:
        return more
    WRITING.take()
    return asked


def write_on(asked: Request) -> None:
    """Let the model go on with a text; for a callback."""
    WRITING.put(replace(asked, write=WRITTEN_AT_ONCE))


def put(model: str, texts: dict[str, str]) -> None:
    """What a model wrote into the boxes, before they are drawn next."""
    FILLED.put((model, texts))


def take(example: examples.Example) -> None:
    """Put one of the examples on the screen; for a callback, before any widget is drawn."""
    model = examples.owner_of(example)
    boxes.fill("model", model)
    take_edits(())
    boxes.fill("text", example.text)
    boxes.fill("target", example.target or "")
    boxes.fill(screen.AS, screen.CHAT if example.chat else "")
    if MODELS[model].points:
        boxes.fill("step", max(int(point) for point, _ in MODELS[model].points))
    st.session_state["explore_wish"] = example


def take_words(text: str) -> None:
    """Put a text into the box; for a callback."""
    boxes.fill("text", text)


def take_text(model: str) -> None:
    """Put a text into the box that this model was made for; for a callback."""
    boxes.fill("text", examples.first_text(session_models.spec_of(model)))


def choose_model(model: str) -> None:
    """Choose a model beside the box that shows the choice; for a callback."""
    st.session_state[FILLED_FROM] = chosen.arrivals()
    boxes.fill("model", model)
    model_changed()


def take_chosen() -> None:
    chosen = st.session_state["examples"]
    for example in examples.shown_for(boxes.held("model")):
        if languages.translated(example.title) == chosen:
            take(example)


def titles() -> dict[str, str]:
    """The models that this visitor may choose: those on offer, and the runs of Train that a link of theirs has named."""
    own = TRAINED.get() or {}
    asked = session_models.trained(chosen.run().get("model", ""))
    key = asked and text_training.key_of(asked.id)
    if key and not own_texts.is_of(key, session_answer.name()):
        asked = None  # of another visitor's text, or let go by now
    if asked is not None and asked.id not in own:
        own = {**dict([*own.items()][1 - MOST_TRAINED :]), asked.id: asked.title}
        if (now := boxes.held("model")) not in own and session_models.trained(now or "") is not None:
            boxes.fill("model", asked.id)
        TRAINED.put(own)
    return TITLES | {id: spec.title for id, spec in session_models.opened().items()} | own


def _model_of(asked: str | None, titles: Mapping[str, str], notes: list[str]) -> str:
    """The id of the model that a link names by its id or its title; the default, and a sentence, where there is none of that name."""
    if asked is None:
        if session_models.DEFAULT_IS_MISSING:
            notes.append(session_models.DEFAULT_IS_MISSING)
        return service.DEFAULT_MODEL
    found = next((name for name, title in titles.items() if asked in (name, title)), None)
    if found is None:
        known, title = ", ".join(TITLES.values()), TITLES[service.DEFAULT_MODEL]
        if text_training.key_of(asked) is not None:
            notes.append(words.NO_TEXT_MODEL.format(title=title))
            return service.DEFAULT_MODEL
        notes.append(words.UNKNOWN_MODEL.format(name=numbers.quoted(asked), title=title, titles=known))
    return found or service.DEFAULT_MODEL


def _step_of(asked: str | None, spec: ModelSpec, notes: list[str]) -> int:
    """The step of its training at which a link shows a model; the last one, and a sentence, where it has no such step."""
    points = [int(point) for point, _ in spec.points]
    last = max(points)
    if asked is None or asked in map(str, points):
        return last if asked is None else int(asked)
    known = ", ".join(numbers.whole(step) for step in points)
    notes.append(words.UNKNOWN_STEP.format(asked=numbers.quoted(asked), shown=numbers.whole(last), known=known))
    return last
