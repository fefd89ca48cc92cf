"""The request box: sentence, model, target, training step, and what a model can write. In the URL, so that a link reproduces it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import languages
from app.kit import edits as kit_edits
from app.kit import held, numbers
from app.session import answer as session_answer
from app.session import boxes, chosen, examples, found, notices, own_texts, room, screen, service
from app.session import models as session_models
from app.session.models import MODELS, TITLES
from app.session.session_state import EDITS, FILLED, TRAINED, WRITING, WRITTEN, Key
from app.shell import registry, words
from app.streamlit_edge import history
from core import checkpoints
from core.checkpoints import ModelSpec
from core.edits import Edit, InterventionError, from_text, to_text
from core.errors import CheckpointError
from core.learn import text_training
from core.run.request import Request
from core.service import Facts
from core.write.continuation import CONTINUATION

HERE = "?here"  # among the models: those of other programs on this machine. No model has such an id
ALL = "?all"  # among the models: the list of all of them. No model has such an id
OPTIONS = {HERE: words.HERE_OPTION, ALL: words.ALL_OPTION}
ALL_LISTED: Key[bool] = Key("all_models")  # in the session: the visitor wants to see that list
LISTING: Key[bool] = Key("already_here")  # in the session: the visitor wants to see their list
WRITTEN_AT_ONCE = 20  # tokens
MOST_TRAINED = 4  # runs of Train among the models of a visitor
FILLED_FROM = "request_arrivals"  # in the session: chosen.arrivals() when the boxes were filled


def request() -> tuple[Request, DeltaGenerator]:
    """The sentence, the model, and the target of an encoder–decoder; and the place of what stands beneath them.

    What a link asks for and does not exist gets a notice.
    """
    offered = titles()
    notes: list[str] = []
    is_link = _fill_boxes(offered, notes)
    place = st.container(key="request", gap="xsmall")
    row = place.container(horizontal=True, gap="small", key="request_row")
    texts, chooser, shown = row.container(width="stretch"), row.container(width=230), row.container(width="content")
    ids = [*((HERE,) if found.offered() else ()), ALL, *offered]
    model = chooser.selectbox(
        words.MODEL,
        ids,
        index=next((i for i, name in enumerate(ids) if name == boxes.opened("model")), 0),
        format_func=lambda name: offered[name] if name in offered else languages.translated(OPTIONS[name]),
        key=boxes.key("model"),
        label_visibility="collapsed",
        on_change=_model_changed,
    )
    boxes.keep("model", model)
    spec = session_models.spec_of(model)
    shown.menu_button(
        words.EXAMPLES,
        [languages.translated(example.title) for example in examples.shown_for(model)],
        key="examples",
        help=words.EXAMPLES_HELP,
        on_click=_take_chosen,
    )
    _fill(model)
    config = service.calls().result(service.service().model(model))
    is_chat, line = _as_chat(place, model, config is not None, notes)
    two = is_chat or (config is not None and config.kind == "encoder-decoder")
    columns = texts.columns(2 if two else 1, gap="small")
    numbers_alone = session_models.reads_numbers(spec)
    text = columns[0].text_area(
        words.NUMBERS if numbers_alone else words.TEXT,
        boxes.opened("text"),
        key=boxes.key("text"),
        placeholder=words.NUMBERS_PLACEHOLDER if numbers_alone else words.TEXT_PLACEHOLDER,
        label_visibility="collapsed",
        height="content",
    )
    boxes.keep("text", text)
    target = None
    if config is None:
        # No one knows yet whether it reads a target: what the link or the box before said waits until that is known.
        target = boxes.held("target") or chosen.run().get("target")
    elif two:
        target = columns[1].text_area(
            words.ANSWER if is_chat else words.TARGET,
            boxes.opened("target"),
            key=boxes.key("target"),
            placeholder=words.ANSWER_PLACEHOLDER if is_chat else words.TARGET_PLACEHOLDER,
            label_visibility="collapsed",
            height="content",
        )
        boxes.keep("target", target)
    else:
        boxes.fill("target", "")
    if not spec.points:
        boxes.fill("step", None)
    model_id = _at_step(place, spec) if spec.points else model
    asked = Request(model_id, (text or "",), target or None, EDITS.get() or (), chat=is_chat)
    chosen.ask(screen.spelled_out(asked), is_link)
    notices.add(*notes)
    _filled()
    return _with_what_to_write(asked), (line or st).container(key="beneath", gap=None)


def _fill_boxes(titles: Mapping[str, str], notes: list[str]) -> bool:
    """The boxes are to hold what they held; where the address decides, or where they hold nothing, what it says.

    Returns whether it decided.
    """
    is_link = st.session_state.get(FILLED_FROM, 0) != chosen.arrivals()
    said = chosen.run()

    def fill(name: str, opens: Callable[[], object]) -> None:
        now = boxes.held(name)
        boxes.fill(name, opens() if is_link or now is None else now)

    asked = said.get("model", session_models.OF_OLD_LINKS if is_link and is_of_old(chosen.address()) else None)
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


def is_of_old(said: Mapping[str, str]) -> bool:
    """Whether an address that names no model was written when another one opened: it says a text, a place or an option of its room.

    An address of a room that shows a run has named its model ever since. A lesson's step brings its own.
    """
    shown = room.shown()
    own = () if held.holds(shown) else registry.params().get(shown, ())
    return any(name in said for name in (*screen.OF_THE_RUN, *chosen.SHARED, *own))


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


def _filled() -> None:
    """The boxes are drawn as they were to be filled. A script that is broken off before leaves that to the next one."""
    st.session_state[FILLED_FROM] = chosen.arrivals()
    FILLED.take()


def _model_changed() -> None:
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


def _as_chat(place: DeltaGenerator, model: str, is_known: bool, notes: list[str]) -> tuple[bool, DeltaGenerator | None]:
    """Whether the model is to read the text as a conversation: a choice where it has a template, and else never. And its line.

    Of a model that is not loaded yet no one knows: a link that asks for a conversation is taken at its word.
    """
    asked = boxes.held(screen.AS) == screen.CHAT
    if not is_known:
        return asked, None
    if not service.calls().result(service.service().chats(model)):
        if asked:
            notes.append(words.NO_CHAT.format(title=session_models.spec_of(model).title))
            boxes.fill(screen.AS, "")
        return False, None
    row = place.container(horizontal=True, gap="medium", key="as_row", vertical_alignment="center")
    row.text(words.AS, help=words.AS_HELP, width="content")
    said = row.segmented_control(
        words.AS,
        list(words.AS_OPTIONS),
        default=screen.CHAT if boxes.opened(screen.AS) == screen.CHAT else "",
        format_func=words.AS_OPTIONS.__getitem__,
        key=boxes.key(screen.AS),
        label_visibility="collapsed",
        required=True,
    )
    boxes.keep(screen.AS, said or "")
    return said == screen.CHAT, row


def _at_step(place: DeltaGenerator, spec: ModelSpec) -> str:
    """The step of its training at which a visitor wants to see a model, as the id of that point."""
    points = {int(point): point for point, _ in spec.points}
    last = max(points)
    if boxes.held("step") not in points:
        boxes.fill("step", last)
    row = place.container(horizontal=True, gap="medium", key="training_row", vertical_alignment="center")
    row.text(words.STEP, help=words.STEP_HELP, width="content")
    step = row.select_slider(
        words.STEP,
        list(points),
        boxes.opened("step"),
        key=boxes.key("step"),
        label_visibility="collapsed",
        width=300,
    )
    boxes.keep("step", step)
    row.text(_learnt(spec, step, last), width="stretch")
    return spec.id if step == last else f"{spec.id}@{points[step]}"


def _logged(spec: ModelSpec, step: int) -> str:
    """The losses that a Trainer wrote down for a step, in words; what is wrong with its file; "" where there is none."""
    try:
        found = checkpoints.trainer_losses(spec).get(step)
    except CheckpointError as error:
        return words.STEP_NO_LOSS.format(reason=error)
    if found is None or (found.training is None and found.evaluation is None):
        return ""
    if found.evaluation is None or found.training is None:
        word = words.STEP_LOSS if found.evaluation is None else words.STEP_EVALUATED
        return word.format(loss=_loss(found.training if found.training is not None else found.evaluation))
    return words.STEP_LOSSES.format(loss=_loss(found.training), evaluation=_loss(found.evaluation))


def _loss(loss: float | None) -> str:
    assert loss is not None
    return languages.decimal(f"{loss:.3f}") if abs(loss) >= 0.001 or not loss else numbers.scientific(loss)


def _learnt(spec: ModelSpec, step: int, last: int) -> str:
    """How far the training was at a step, in words, by the record that it left."""
    curve = checkpoints.curve(spec.id)
    columns = (curve.get(name, ()) for name in ("step", "loss", "accuracy"))
    rows = {int(at): (loss, accuracy) for at, loss, accuracy in zip(*columns, strict=False)}
    if step not in rows and spec.source == "folder":
        return words.STEP_SAYS.format(step=numbers.whole(step), last=numbers.whole(last)) + _logged(spec, step)
    if step not in rows:
        return (
            words.STEP_UNTRAINED
            if step == 0
            else words.STEP_SAYS.format(step=numbers.whole(step), last=numbers.whole(last))
        )
    loss, accuracy = rows[step]
    said = words.STEP_SAYS.format(step=numbers.whole(step), last=numbers.whole(last))
    return said + words.STEP_LEARNT.format(
        loss=languages.decimal(f"{loss:.3f}") if loss >= 0.001 else numbers.scientific(loss),
        share=numbers.share(accuracy, 1),
    )


def beneath(asked: Request, answer: session_answer.Answer) -> None:
    """One line about the model, what the visitor can have it write, what of its files takes no part in the numbers, and what of the
    text was read that is none."""
    spec = session_models.spec_of(screen.model_of(asked))
    run = answer.facts if answer.request is not None and answer.request.model_id == asked.model_id else None
    # The target is the model's own; of a classifier it is the text once more.
    own = run is not None and run.target is not None and asked.target_text is None and run.spec.classes is None
    if run is None and not spec.note and not asked.interventions:
        return
    edits = EDITS.get()
    # That a run is changed is said in the projector as well.
    row = st.container(horizontal=True, gap="medium", key="edited" if edits else "about", vertical_alignment="center")
    if edits:
        row.text(words.EDITED.format(edits=kit_edits.listed(edits)), width="stretch")
        row.button(words.UNEDIT, key="unedit", type="tertiary", on_click=take_edits, args=((),))
    elif spec.note:
        row.text(languages.said(spec.note), width="stretch")
    if own and run is not None and run.target is not None and run.target.text:
        row.text(
            words.TARGET_UNCHANGED if asked.interventions else words.TARGET_WRITTEN,
            help=words.TARGET_WRITTEN_HELP,
            width="content",
        )
        filled = (screen.model_of(asked), {"target": run.target.text})
        row.button(words.TARGET_EDIT, key="edit_target", type="tertiary", on_click=_put, args=filled)
    elif run is not None and run.writes and run.spec.classes is None and not (own or asked.write or asked.chat):
        more = words.WRITE_ON_HELP.format(n=WRITTEN_AT_ONCE, k=CONTINUATION["top_k"], t=CONTINUATION["temperature"])
        more += f" {words.WRITE_ON_EDITED}" if asked.interventions else ""
        row.button(words.WRITE_ON, key="write_on", type="tertiary", help=more, on_click=_write_on, args=(asked,))
    if base := session_models.BASES.get(spec.id):
        help = words.COMPARE_BASE_HELP.format(title=spec.title, base=session_models.spec_of(base).title)
        row.button(
            words.COMPARE_BASE, key="compare_base", type="tertiary", help=help, on_click=_compare, args=(base, spec.id)
        )
    if run is not None and (run.spec.notices or run.notices):
        said = st.container(key="model_notices", gap="small")
        for notice in (*run.spec.notices, *run.notices):
            said.text(notice)  # never markdown: it names files, tensors and tokens


def _compare(base: str, model: str) -> None:
    """A model above, and another one beside it, in What if; for a callback."""
    choose_model(base)
    room.go("whatif")
    history.write({"other": model, "against": None, "edits": None, "pick": "off", "moved": None})


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
    _put(screen.model_of(asked), {name: now})
    WRITING.take()  # last: a script that is broken off before leaves it to the next
    st.rerun()


def _with_what_to_write(asked: Request) -> Request:
    """A request with what the visitor wants written after it: after this very text and model, not when they come back."""
    more = replace(asked, write=WRITTEN_AT_ONCE)
    if WRITING.get() == more:
        return more
    WRITING.take()
    return asked


def _write_on(asked: Request) -> None:
    """Let the model go on with a text; for a callback."""
    WRITING.put(replace(asked, write=WRITTEN_AT_ONCE))


def _put(model: str, texts: dict[str, str]) -> None:
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
    _model_changed()


def take_model(model: str) -> None:
    """Choose a model from a view that does not show the choice; for a callback."""
    choose_model(model)


def _take_chosen() -> None:
    chosen = st.session_state["examples"]
    for example in examples.shown_for(boxes.held("model")):
        if languages.translated(example.title) == chosen:
            take(example)


def titles() -> dict[str, str]:
    """The models that this visitor may choose: those on offer, and the runs of Train that a link of theirs has named."""
    own = TRAINED.get() or {}
    asked = session_models.trained(chosen.run().get("model", ""))
    key = asked and text_training.key_of(asked.id)
    if key and not own_texts.is_of(key, session_answer.visitor()):
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
