"""The controls that the rooms about sizes share: sliders, which answer with a Setup that fits together; the page around a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache, partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import languages
from app.export import about
from app.kit import cover, frames, widgets
from app.kit import headline as kit_headline
from app.kit import words as kit_words
from app.kit.widgets import Control, Panel
from app.session import boxes, chosen, notices, room
from app.sizes import export, pasted, seen, words
from app.sizes.setup import Setup, Sizes, ended, layers, planned, shaped
from app.transport.limits import BOUNDS
from core.errors import ConfigError, HeadlightError
from core.model.config import ModelConfig
from core.plan import PRESETS
from core.plan.plan import check_positions
from core.plan.workload import BYTES, CACHE, WEIGHT_FORMATS
from core.service import Facts

RUN, PASTED = "run", "pasted"
TITLES = {RUN: words.OF_RUN, PASTED: words.PASTED} | {name: preset.title for name, preset in PRESETS.items()}
FIRST = "lesson-encoder"  # of a link that names sizes and no model
FORMATS = ("float32", "bfloat16", "float16")
CHOICES: dict[str, tuple[str, ...]] = {
    "dtype": FORMATS,
    "attention": ("flash", "efficient", "eager"),
    "optimizer": ("adamw", "adam", "momentum", "sgd"),
    "recompute": ("none", "attention", "full"),
    "weights": (words.SAME, *FORMATS, *(name for name in WEIGHT_FORMATS if name not in BYTES)),
    "kv": (words.SAME, *FORMATS, *(name for name in CACHE if name not in BYTES)),
    "piece": tuple(words.PIECES),
    "logits": tuple(words.LOGITS),
    "rank": ("4", "8", "16", "32", "64", "128"),
    "dropout": ("off", "on"),
}
_LENGTHS = (1, 2, 4, 8, 16, 32, 50, 64, 100, 128, 200, 256, 384, 512, 768, *(2**i for i in range(10, 18)))
_WIDTHS = (64, 128, 192, 256, 384, 512, 768, 896, *(1024 * i for i in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)), 1280, 1600)
SIZES: dict[str, tuple[int, ...]] = {
    "batch": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024),
    "source": _LENGTHS,
    "target": _LENGTHS,
    "d_model": _WIDTHS,
    "heads": (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 25, 32, 40, 48, 64, 96, 128),
    "kv_heads": (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 25, 32, 40, 48, 64, 96, 128),
    "layers": (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 18, 24, 32, 36, 40, 48, 64, 80, 96, 126),
    "d_ff": (128, 256, 512, 1024, 1536, 2048, 3072, 4096, 4864, 5120, 6400, 8192, 11_008, 14_336, 16_384, 28_672, 49_152, 53_248),
    "vocab": (100, 1000, 10_000, 30_522, 32_000, 32_128, 37_000, 50_257, 64_000, 100_000, 128_256, 151_936, 256_000),
}  # fmt: skip
OPENS: dict[str, str | Callable[[Any], str]] = {  # of the choices that do not open with their first
    "rank": "16",
    # A text as long as a model was taught is read as servers read it.
    "piece": lambda opening: list(words.PIECES)[2 if opening.whole and opening.given.config.kind == "decoder" else 0],
}
# What links meant that said nothing of it, before the fused kernel and the last row of logits were where every count begins.
OLD = {"plan_attention": "eager", "plan_logits": "every position"}
TEXT = {"batch": 32, "source": 50}  # where the textbook encoder begins
ENDS = {"encoder": (32, 50, 50), "decoder": (1, 1024, 50), "encoder-decoder": (32, 50, 50)}  # batch, source, target


# Parts of each chart that a lesson may cover: its figure without that is figure(covered=)
COVERS: dict[str, tuple[str, ...]] = {
    "kept": ("bar", "headline"),
    "curves": ("curve", "number"),
    "cache": ("headline",),
    "roofline": ("curve",),
    "cross": ("bar",),
}
NOTES = {**COVERS, "depth": ("number",)}  # and of the notes above them, which are covered as a whole
MOST_PROJECTED = (
    265  # pixels of a projected chart's height, at a type of 16: such a page is 490 high, whatever its screen
)
NOTE_HEIGHT = 24  # of it that a line under the chart takes, which the sliders would cut in two

Said = Mapping[str, Any]  # what the controls say, by the names of LABELS


@dataclass(frozen=True)
class Look:
    """How a part of a view is shown, and what its controls say."""

    own: Panel  # the controls that are the view's alone
    part: str
    place: DeltaGenerator  # of the sentence above its chart
    theme: str
    scale: float  # of the type on the page, in units of 16 pixels
    said: Said
    training: bool
    projected: bool = False

    @property
    def view(self) -> str:
        return self.own.id


Parts = Mapping[str, Callable[[Setup, Look], None]]


@dataclass(frozen=True)
class Wide:
    """A part that takes the whole width, the sliders folded beneath it: `take` puts into the boxes what was chosen in its picture,
    the component of this key; not where a link decides."""

    part: str
    key: str
    take: Callable[[bool], None]


@dataclass(frozen=True)
class Shown:
    """A view: the controls that are its alone, the titles of its parts and what draws them, and the one that is wide."""

    own: Panel
    titles: dict[str, str]
    parts: Parts
    wide: Wide | None


@dataclass(frozen=True)
class Given:
    """A model and how much of it there is to begin with."""

    title: str
    config: ModelConfig
    batch: int
    source: int
    target: int

    @property
    def sizes(self) -> dict[str, int]:
        """Where each slider begins."""
        config = self.config
        return {
            "batch": self.batch,
            "source": self.source,
            "target": self.target,
            "d_model": config.d_model,
            "heads": config.n_heads,
            "kv_heads": config.n_kv_heads,
            "layers": layers(config),
            "d_ff": config.d_ff,
            "vocab": config.vocab_size,
        }


@dataclass(frozen=True)
class Opening:
    """What the controls open with where a link says nothing of them."""

    given: Given
    is_run: bool  # a visit begins with the run on the screen, and not with sizes that a link names
    whole: bool = False  # and with a text as long as its model was taught

    @property
    def sizes(self) -> dict[str, int]:
        """Where each slider begins."""
        sizes, config = self.given.sizes, self.given.config
        return sizes | {"source": config.n_ctx} if self.whole and config.kind == "decoder" else sizes


def _size(name: str) -> Control:
    return widgets.whole(
        f"plan_{name}", BOUNDS[f"plan_{name}"], lambda opening: str(opening.sizes[name]), words.LABELS[name][0]
    )


def _of(name: str, title: str, options: Sequence[str]) -> Control:
    return widgets.choice(f"plan_{name}", {one: one for one in options}, title, OPENS.get(name, ""))


MODEL = Control(
    replace(
        widgets.choice(
            "plan_model",
            {name: name for name in TITLES},
            words.PRESET,
            also={title: name for name, title in TITLES.items()},
        ).param,
        default=lambda begins: RUN if begins else FIRST,
        allowed=", ".join(TITLES.values()),
    ),
    str,
)
PHASE = widgets.choice(
    "plan_phase", words.PHASES, words.PHASE, lambda opening: words.PHASES["inference" if opening.is_run else "training"]
)
CONTROLS = {name: _size(name) for name in SIZES} | {
    name: _of(name, words.LABELS[name][0], options) for name, options in CHOICES.items()
}
# KV heads follow heads while they are equal, and d_ff follows d_model while it is 4 · d_model.
FOLLOWERS = {"heads": ("kv_heads", 1), "d_model": ("d_ff", 4)}
FOLLOWED = {
    name: widgets.lead(CONTROLS[name], (CONTROLS[follower], times)) for name, (follower, times) in FOLLOWERS.items()
}
SHARED = Panel("sizes", (MODEL, pasted.CONTROL, PHASE, *CONTROLS.values()))
LATER = [PHASE.name, *(control.name for control in CONTROLS.values())]  # open by what the model is


def part_of(view: str, titles: Mapping[str, str]) -> Control:
    """The choice of a part of a view; a link says its title."""
    return widgets.choice(f"{view}_part", titles, kit_words.PART)


def show(
    own: Panel,
    titles: dict[str, str],
    parts: Parts,
    *,
    training: bool,
    above: Callable[[bool], Facts | None],
    wide: Wide | None = None,
) -> None:
    """Draw a view: its controls, and the part of it that was chosen. `training` offers the choice to train.

    `own` are the controls that are the view's alone, whose name is its own; the first chooses a part. `above(True)` draws the request
    box and says what runs there; it is asked so where the visitor's own model and sentence are chosen, which a visit begins with.
    """
    asked = SHARED.asked()
    begins = not any(name.startswith("plan_") and name not in OLD for name in asked)
    notes, own_notes = SHARED.fill(begins, [MODEL.name]), own.fill(None)
    is_run, is_wide = boxes.held(MODEL.name) == RUN, _is_wide(own, wide)
    place = (
        st.container(key=f"{own.id}_wide", gap="small") if is_wide else None
    )  # the sentence and the sliders come after it
    facts = above(is_run)
    if is_run:
        if facts is None:
            return
        _take_run(facts, is_wide)
    model = boxes.held(MODEL.name)
    notes += pasted.fill(SHARED, model == PASTED)
    if SHARED.is_link and model == PASTED:
        st.session_state["plan_config"] = pasted.held()
    opening = Opening(given_by(model), begins and is_run, begins and is_run and is_wide)
    notes += SHARED.fill(opening, LATER)
    with nullcontext() if place is None else place:
        _show(Shown(own, titles, parts, wide), training, is_run, is_wide, (notes, own_notes))


def _is_wide(own: Panel, wide: Wide | None) -> bool:
    return wide is not None and boxes.held(own.controls[0].name) == wide.part


@st.fragment
def _show(shown: Shown, training: bool, is_run: bool, was_wide: bool, notes: tuple[list[str], list[str]]) -> None:
    own, titles, wide = shown.own, shown.titles, shown.wide
    view = own.id
    if room.is_left(view):
        st.rerun()  # another view was chosen in the same moment as something here, and this came instead of it
    if wide is not None and was_wide:
        wide.take(own.is_link)
    is_wide = _is_wide(own, wide)
    if is_wide != was_wide or (is_wide and (boxes.held(MODEL.name) == RUN) != is_run):
        st.rerun()  # the whole page: the sliders and the request box stand elsewhere
    left, right = (st.container(), st.container()) if is_wide else st.columns([1, 2.05], gap="large")
    if is_wide:
        left, right = right, left
    with right:
        key = wide.key if wide is not None and is_wide else kit_headline.key(view)
        scale = kit_headline.scale(key)
        chosen_part = widgets.row(st, own.controls[0], kit_words.PART, list(titles), titles.__getitem__)
        pasting = (
            st.container(gap=None) if is_wide else None
        )  # the box of a config.json, which is seen where the sliders are not
        sentences = st.container(key="plan_sentences", gap=None)
        body = st.container(key=f"{view}_body", gap="small")
    with left.expander(words.CHANGE) if is_wide else left:
        found, said, wrong = setup(training=training, is_run=is_run, pasting=pasting)
    if found is not None:
        with body:
            # One place for the sentence of every part: it stays in the page from one part to the next, and so do its keys.
            place = st.container(key=f"{view}_headline", gap=None)
            theme, projected = st.context.theme.type or "light", kit_headline.is_projected(key)
            look = Look(own, titles[chosen_part], place, theme, scale, said, found.training, projected)
            shown.parts[chosen_part](found, look)
    unread = SHARED.keep(_said(), notes[0]) + own.keep(own.said(), notes[1])
    for note in [*notices.take(), *unread, *wrong]:
        sentences.text(note)  # never markdown: it quotes what a link says


def _said() -> dict[str, str]:
    """The shared controls as a link says them."""
    is_pasted = boxes.held(MODEL.name) == PASTED
    return SHARED.said(None if is_pasted else [MODEL.name, *LATER])


def _take_run(facts: Facts, whole: bool) -> None:
    """Where the sliders begin is now this run, or with `whole` texts as long as it was taught. Of another text of the same model
    only the lengths are new."""
    target = 0 if facts.target is None else len(facts.target)
    given = Given(facts.spec.title, facts.config, facts.texts, len(facts.source), target)
    before: Given | None = st.session_state.get("plan_run")
    st.session_state["plan_run"] = given
    if SHARED.is_link:
        return  # which may say more
    if before is None or before.config != given.config:
        take(RUN)
        opening = Opening(given, True, whole)
        boxes.fill("plan_source", opening.sizes["source"])
        boxes.fill("plan_piece", CONTROLS["piece"].param.default(opening))  # type: ignore[operator]
    elif before != given:
        for name, length in (("plan_source", given.source), ("plan_target", given.target)):
            boxes.fill(name, length)


def given_by(model: str) -> Given:
    """What is offered by this id: the run above as it was last seen, the pasted config.json, or a known model."""
    if model == RUN and (run := st.session_state.get("plan_run")) is not None:
        return run
    preset = PRESETS.get(model, PRESETS[FIRST])
    config, name = preset.config, preset.title
    if model == PASTED and (pasted_one := st.session_state.get("plan_config")) is not None:
        config, name = pasted_one, words.PASTED_TITLE
    batch, source, target = ENDS[config.kind]
    if config.longest_text is not None:
        source = min(source, config.n_ctx)
    return Given(name, config, batch, source, target)


@dataclass(frozen=True, eq=False)
class Chart:
    """The chart of a part as it leaves the page: in files, and for a class that follows."""

    name: str
    note: str  # said under it
    tables: Sequence[tuple[str, str, Any]]  # (label, file name, DataFrame)
    figure: Callable[..., Any]  # figure(theme=, scale=) draws it
    wanted: str = "plan.total"  # the expression that the exported code prints
    counted: Setup | None = None  # what it shows, where that is another setup than the sliders'


def headline(look: Look, found: Setup, sentence_of: Callable[[Setup], str], chart: Chart, *, live: bool = True) -> str:
    """Draw the sentence of a part, which follows a slider while it is held, and the files of its chart. Returns it."""
    sentence = sentence_of(found)
    data: dict[str, Any] = {"sentence": sentence, "scale": look.scale, "chart": f"{look.view}_{chart.name}"}
    if live:
        data["ahead"] = ahead(look.said, look.training, sentence_of)
        data["at"] = {name: str(look.said[name]) for name in data["ahead"]}
    data["about"], kept = leaves(look, chart.counted or found, sentence, chart)
    with look.place:
        kit_headline.headline(look.view, data, kept)
    return sentence


def leaves(look: Look, counted: Setup, sentence: str, chart: Chart) -> tuple[dict[str, Any], str]:
    """The words of a chart's files, and the digest of all that others see who follow."""
    code = export.snippet(counted.config, counted.workload, chart.wanted)
    caption = export.caption(counted, look.part, date.today())
    file = f"headlight-{look.view}-{chart.name}"
    found = about.about(file, sentence, chart.note, caption, code, chart.tables)
    said = {**found, "sentence": sentence, "note": chart.note}
    return found, seen.keep(look.view, chart.name, said, _linked(look), chart.figure)


def _linked(look: Look) -> dict[str, str]:
    """What a link says of the room."""
    run = chosen.run() if boxes.held(MODEL.name) == RUN else {}
    return {**run, **_said(), **look.own.said()}


def draw(look: Look, name: str, figure: Callable[..., Any], alt: str, *, note: str = "", above: int | None = 0) -> None:
    """Draw the chart figure(theme=, scale=), with `alt` for those who do not see it; the same as a table stands below.

    A projected one leaves room for the sliders and for a control of its own that is `above` pixels high. None: it stays as high
    as it is, with a row of type for each of many things. `note` stands over it, and where it is projected under it, so that its axis is
    on the screen.
    """
    key = f"{look.view}_{name}"
    covers = COVERS.get(name, ())
    notes = NOTES.get(name, ())
    if note and not look.projected:
        with cover.over("note", *notes):
            st.text(note)
    height = None if above is None else above + (NOTE_HEIGHT if note else 0)
    with cover.instead(key, *covers) as other:
        if part := cover.asked(*covers):
            with other():
                _plot(look, f"{key}_covered", partial(figure, covered=part), kit_words.COVERED_CHART, height)
        _plot(look, key, figure, alt, height)
    if note and look.projected:
        with cover.over("note", *notes):
            st.text(note)


def _plot(look: Look, key: str, figure: Callable[..., Any], alt: str, taken: int | None) -> None:
    """`taken` are the pixels of a projected page that other things take of the chart's height; None: it stays as high as it is."""
    drawn = figure(theme=look.theme, scale=look.scale)
    if look.projected and taken is not None:
        drawn.update_layout(height=min(drawn.layout.height, (MOST_PROJECTED - taken) * look.scale))
    st.plotly_chart(drawn, theme=None, key=key, config={"displayModeBar": False}, alt=alt)


def ahead(said: Said, training: bool, sentence_of: Callable[[Setup], str]) -> dict[str, dict[str, str]]:
    """What the sentence would be at every place of every slider, the others left where they are."""
    places = tuple((name, tuple(_places(name))) for name in SIZES if name in said)
    key = (training, languages.current())
    return _ahead(given_by(said["model"]), tuple(said.items()), places, key, sentence_of)


def _moved(said: Said, name: str, value: int) -> dict[str, Any]:
    """The values of all controls once this slider is at `value`."""
    moved = {**said, name: value}
    follower, times = FOLLOWERS.get(name, ("", 1))
    if follower and said[follower] == times * said[name]:
        moved[follower] = times * value
    return moved


@lru_cache(maxsize=128)  # visitors who have just come all ask for the same
def _ahead(
    given: Given,
    said: tuple[tuple[str, Any], ...],
    places: tuple[tuple[str, tuple[int, ...]], ...],
    key: tuple[bool, str],
    sentence_of: Callable[[Setup], str],
) -> dict[str, dict[str, str]]:
    training, _ = key  # and the language of the sentences
    found: dict[str, dict[str, str]] = {}
    others = dict(said)
    for name, sizes in places:
        found[name] = {}
        for value in sizes:
            try:
                there = _read(given, _moved(others, name, value), training)
                check_positions(there.config, source_len=there.source_len, target_len=there.target_len)
                sentence = sentence_of(there)
            except ConfigError as error:
                sentence = ended(error)
            found[name][str(value)] = sentence
    return found


def setup(
    *, training: bool, is_run: bool = False, pasting: DeltaGenerator | None = None
) -> tuple[Setup | None, Said, list[str]]:
    """Draw the controls; the setup they say, or the last one that fits together, what they say, and sentences on what is wrong.

    `training` offers the choice between running and training; `is_run` says that the run above is on the page. None where there has
    never been one that fits.
    """
    place = st.container(key="planning", gap="small")
    model = widgets.select(
        place,
        MODEL,
        words.PRESET,
        list(TITLES),
        TITLES.__getitem__,
        help=words.PRESET_HELP,
        on_change=follow_model,
        label_visibility="collapsed",
    )
    if (model == RUN) != is_run:
        st.rerun()  # the whole page: the request box comes or goes
    wrong: list[str] = []
    last: Setup | None = st.session_state.get("plan_last")
    try:
        if model == PASTED:
            _pasted(pasting or place, wrong)
    except HeadlightError as refusal:
        return last, st.session_state.get("plan_said", {}), [*wrong, _instead(languages.said(refusal), last)]
    kind = given_by(model).config.kind
    phase = "inference"
    if training:
        phase = widgets.row(place, PHASE, words.PHASE, ("training", "inference", "adapters"), words.PHASES.__getitem__)
    lengths = ("batch", "source", "target") if kind == "encoder-decoder" else ("batch", "source")
    formats = {
        "inference": ("weights", "kv"),
        "training": ("optimizer", "recompute", "dropout"),
        "adapters": ("weights", "rank", "optimizer", "recompute", "dropout"),
    }[phase]
    if training and phase == "inference" and kind != "encoder":  # how a prompt is read is a question of memory
        formats += ("logits",) if kind == "encoder-decoder" else ("piece", "logits")
    fields = [*lengths, "attention", "dtype", *formats, "d_model", "heads", "kv_heads", "layers", "d_ff", "vocab"]
    columns = place.columns(2, gap="medium")
    said: dict[str, Any] = {"model": model}
    for i, name in enumerate(fields):
        said[name] = _slider(columns[i % 2], name) if name in SIZES else _choice(columns[i % 2], name)
    try:
        found = _read(given_by(model), said, phase != "inference")
        planned(found)
        st.session_state["plan_last"], st.session_state["plan_said"] = found, said
    except ConfigError as error:
        found = last
        wrong.append(_instead(ended(error), last))
    return found, said, wrong


def _instead(wrong: str, last: Setup | None) -> str:
    return f"{wrong} {words.LAST_PICTURE}" if last is not None else wrong


def _pasted(place: DeltaGenerator, wrong: list[str]) -> None:
    """The box of a config.json, where that is what is counted; the sliders then begin where it says. Raises Refused."""
    with place.popover(words.PASTE_BOX):
        config = pasted.box(wrong)
    before: ModelConfig | None = st.session_state.get("plan_config")
    st.session_state["plan_config"] = config
    if config != before:
        take()


def take(model: str | None = None) -> None:
    """Set the sliders to a model; for a callback, or before they are drawn."""
    if model is not None:
        boxes.fill(MODEL.name, model)
    now: str = boxes.held(MODEL.name)
    if now == RUN and "plan_run" not in st.session_state:
        return  # its sizes come with it
    for name, value in given_by(now).sizes.items():
        boxes.fill(f"plan_{name}", value)


def follow_model() -> None:
    """Another model was chosen: set the sliders to it; what runs above is run, not trained."""
    if boxes.held(MODEL.name) == RUN:
        boxes.fill(PHASE.name, "inference")
    take()


def one_of(name: str, control: Control, options: Sequence[str]) -> str:
    """A select box of a view's own, by the name of its label."""
    label, more = words.LABELS[name]
    return widgets.select(st, control, label, options, help=more)


def show_table(table: Any, name: str, title: str = "", covers: Sequence[str] = ()) -> None:
    """The numbers of a picture: folded, drawn when a visitor opens them. As files they are in the menu above the chart.

    All of them are out of sight as long as a lesson covers one of `covers`.
    """
    with (
        cover.over(f"table_{name}", *covers),
        st.expander(title or words.TABLE, key=f"table_{name}", on_change="rerun") as box,
    ):
        if box.open:
            frames.show(table, columns(table), key=f"frame_{name}")


def columns(table: Any) -> dict[str, Any]:
    """How Streamlit is to show the columns of a table, by words.COLUMNS."""
    found: dict[str, Any] = {}
    for name in table.columns:
        label = words.COLUMNS.get(name, name)
        whole = table[name].dtype.kind in "iu"
        if table[name].dtype.kind in "fiu":
            found[name] = st.column_config.NumberColumn(label, format="localized" if whole else "%.3f")
        else:
            found[name] = label
    return found


def _read(given: Given, said: dict[str, Any], training: bool) -> Setup:
    target = said.get("target", 0)
    sized = shaped(
        given.config,
        Sizes(
            d_model=said["d_model"],
            n_heads=said["heads"],
            n_kv_heads=said["kv_heads"],
            n_layers=said["layers"],
            d_ff=said["d_ff"],
            vocab_size=said["vocab"],
        ),
        longest=max(said["source"], target),
    )

    def stored(name: str) -> str | None:
        return None if said.get(name, words.SAME) == words.SAME else said[name]

    return Setup(
        given.title,
        sized,
        said["batch"],
        said["source"],
        target,
        dtype=said["dtype"],
        attention=said["attention"],
        training=training,
        optimizer=said.get("optimizer", "adamw"),
        recompute=said.get("recompute", "none"),
        dropout=said.get("dropout") == "on",
        weight_dtype=stored("weights"),
        kv_dtype=stored("kv"),
        logits=words.LOGITS[said["logits"]] if "logits" in said else "last",
        piece=words.PIECES[said["piece"]] if "piece" in said else 0,
        rank=int(said["rank"]) if "rank" in said else 0,
    )


def _slider(place: Any, name: str) -> int:
    alone = name == "source" and given_by(boxes.held(MODEL.name)).config.kind != "encoder-decoder"
    control, (label, more) = CONTROLS[name], words.LABELS["tokens" if alone else name]
    opened, key, lead = widgets.opens(control), boxes.key(control.name), FOLLOWED.get(name)
    return widgets.holds(control, place.select_slider(label, _places(name), opened, key=key, help=more, on_change=lead))


def _places(name: str) -> list[int]:
    """Where a slider can stand: round sizes, those of the known models, and what a link asked for."""
    sizes = {getattr(preset.config, _FIELD[name]) for preset in PRESETS.values()} if name in _FIELD else set()
    own, key = given_by(boxes.held(MODEL.name)).sizes[name], f"plan_{name}"
    return sorted(sizes | {*SIZES[name], own, boxes.opened(key), boxes.held(key)})


_FIELD = {"d_model": "d_model", "heads": "n_heads", "kv_heads": "n_kv_heads", "d_ff": "d_ff", "vocab": "vocab_size"}


def _choice(place: Any, name: str) -> str:
    label, more = words.LABELS[name]
    return widgets.select(place, CONTROLS[name], label, CHOICES[name], help=more)
