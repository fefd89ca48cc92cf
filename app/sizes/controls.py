"""What the rooms about sizes share: sliders bound to the URL, which answer with a Setup that fits together; the page around a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.export import about
from app.kit import charts, cover
from app.kit import headline as kit_headline
from app.kit import words as kit_words
from app.kit.numbers import quoted
from app.session import notices, room
from app.sizes import export, pasted, seen, words
from app.sizes.setup import Setup, Sizes, layers, planned, shaped
from app.streamlit_edge.history import is_history_navigation
from app.transport.limits import bounded
from core.errors import ConfigError, Refused
from core.model.config import ModelConfig
from core.plan import PRESETS
from core.plan.dtypes import BYTES, CACHE
from core.plan.plan import check_positions
from core.plan.weights import WEIGHT_FORMATS
from core.service import Facts

RUN, PASTED = words.OF_RUN, words.PASTED
TITLES = {preset.title: preset for preset in PRESETS.values()}
IDS = {"run": RUN, "pasted": PASTED} | {name: preset.title for name, preset in PRESETS.items()}  # links may say either
FIRST = PRESETS["lesson-encoder"].title  # of a link that names sizes and no model
MODELS = (RUN, PASTED, *TITLES)
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
    "phase": ("training", "inference"),
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
# What links meant that said nothing of it, before the fused kernel and the last row of logits were where every count begins.
OLD = {"plan_attention": "eager", "plan_logits": "every position"}
TEXT = {"batch": 32, "source": 50}  # where the textbook encoder begins
ENDS = {"encoder": (32, 50, 50), "decoder": (1, 1024, 50), "encoder-decoder": (32, 50, 50)}  # batch, source, target


OF_THE_PAGE = ("view", "theme", "projector")  # what an address says of the page and not of what is in it
COVERS = ("bar", "headline", "number", "curve")  # what a lesson may cover here: the chart with all that is said of it
MOST_PROJECTED = (
    265  # pixels of a projected chart's height, at a type of 16: such a page is 490 high, whatever its screen
)
NOTE_HEIGHT = 24  # of it that a line under the chart takes, which the sliders would cut in two

SHOWN = "plan_shown"  # in the session: what every control said in the script before

Said = Mapping[str, Any]  # what the controls say, by the names of LABELS


@dataclass(frozen=True)
class Look:
    """How a part of a view is shown, and what its controls say."""

    view: str
    part: str
    place: DeltaGenerator  # of the sentence above its chart
    theme: str
    scale: float  # of the type on the page, in units of 16 pixels
    said: Said
    training: bool
    projected: bool = False


Parts = Mapping[str, Callable[[Setup, Look], None]]


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


def show(
    view: str,
    titles: dict[str, str],
    parts: Parts,
    choices: charts.Choices,
    *,
    training: bool,
    above: Callable[[bool], Facts | None],
) -> None:
    """Draw a view: its controls, and the part of it that was chosen. `training` offers the choice to train.

    `choices` are what a link may choose for the controls that are the view's own. `above(True)` draws the request box and says what
    runs there; it is asked so where the visitor's own model and sentence are chosen, which a visit begins with.
    """
    if "plan_extra" not in st.session_state and not any(
        name.startswith("plan_") and name not in OLD for name in st.query_params
    ):
        # Said in the address before any widget owns it: a link with sizes and no model is of the textbook encoder.
        st.query_params.update({"plan_model": RUN} | ({"plan_phase": words.PHASES["inference"]} if training else {}))
        st.session_state["plan_model"] = RUN
        st.session_state["plan_phase"] = "inference"
    asked = IDS.get(st.query_params.get("plan_model", ""), st.query_params.get("plan_model", FIRST))
    # Where the visitor goes back, or on to a step of a lesson, the address wins over what the session says.
    is_run = (asked if is_history_navigation() else st.session_state.get("plan_model", asked)) == RUN
    facts = above(is_run)
    if is_run:
        if facts is None:
            return
        _take_run(facts)
    _show(view, titles, parts, choices, training, is_run)


@st.fragment
def _show(
    view: str, titles: dict[str, str], parts: Parts, choices: charts.Choices, training: bool, is_run: bool
) -> None:
    if room.is_left(view):
        st.rerun()  # another view was chosen in the same moment as something here, and this came instead of it
    wrong = charts.unknown_choices(view, {**_known_choices(view, titles), **choices})
    left, right = st.columns([1, 2.05], gap="large")
    with right:
        scale = kit_headline.scale(view)
        chosen = charts.part(titles, f"{view}_part")
        sentences = st.container(key="plan_sentences", gap=None)
        body = st.container(key=f"{view}_body", gap="small")
    for note in [*notices.take(), *wrong]:
        sentences.text(note)  # never markdown: it quotes what a link says
    with left:
        found, said = setup(sentences, training=training, is_run=is_run)
    if found is not None:
        with body, cover.over(*COVERS):
            # One place for the sentence of every part: it stays in the page from one part to the next, and so do its keys.
            place = st.container(key=f"{view}_headline", gap=None)
            theme, projected = st.context.theme.type or "light", kit_headline.is_projected(view)
            look = Look(view, titles[chosen], place, theme, scale, said, found.training, projected)
            parts[chosen](found, look)


def _take_run(facts: Facts) -> None:
    """Where the sliders begin is now this run. Of another text of the same model only the lengths are new."""
    target = 0 if facts.target is None else len(facts.target)
    given = Given(facts.spec.title, facts.config, facts.texts, len(facts.source), target)
    before: Given | None = st.session_state.get("plan_run")
    st.session_state["plan_run"] = given
    if "plan_extra" not in st.session_state:
        return  # a visit begins, and the link may say more
    if before is None or before.config != given.config:
        take(RUN)
    elif before != given:
        st.session_state.update({"plan_source": given.source, "plan_target": given.target})


def given_by(title: str) -> Given:
    """What is offered under this title: the run above as it was last seen, the pasted config.json, or a known model."""
    if title == RUN and (run := st.session_state.get("plan_run")) is not None:
        return run
    preset = TITLES.get(title, TITLES[FIRST])
    config, name = preset.config, preset.title
    if title == PASTED and (pasted_one := st.session_state.get("plan_config")) is not None:
        config, name = pasted_one, words.PASTED_TITLE
    batch, source, target = ENDS[config.kind]
    if config.has_position_table and config.position == "learned":
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
    counted = chart.counted or found
    sentence = sentence_of(found)
    data: dict[str, Any] = {"sentence": sentence, "scale": look.scale}
    if live:
        data["ahead"] = ahead(look.said, look.training, sentence_of)
        data["at"] = {name: str(look.said[name]) for name in data["ahead"]}
    code = export.snippet(counted.config, counted.workload, chart.wanted)
    caption = export.caption(counted, look.part, date.today())
    file = f"headlight-{look.view}-{chart.name}"
    data["chart"] = f"{look.view}_{chart.name}"
    data["about"] = about.about(file, sentence, chart.note, caption, code, chart.tables)
    said = {**data["about"], "sentence": sentence, "note": chart.note}
    kept = seen.keep(look.view, chart.name, said, _linked(), chart.figure)
    with look.place:
        kit_headline.headline(look.view, data, kept)
    return sentence


def _linked() -> dict[str, str]:
    """What the address says of the room."""
    return {name: text for name, text in st.query_params.to_dict().items() if name not in OF_THE_PAGE}


def draw(look: Look, name: str, figure: Callable[..., Any], alt: str, *, note: str = "", above: int | None = 0) -> None:
    """Draw the chart figure(theme=, scale=), with `alt` for those who do not see it; the same as a table stands below.

    A projected one leaves room for the sliders and for a control of its own that is `above` pixels high. None: it stays as high
    as it is, with a row of type for each of many things. `note` stands over it, and where it is projected under it, so that its axis is
    on the screen.
    """
    key = f"{look.view}_{name}"
    drawn = figure(theme=look.theme, scale=look.scale)
    if look.projected and above is not None:
        taken = above + (NOTE_HEIGHT if note else 0)
        drawn.update_layout(height=min(drawn.layout.height, (MOST_PROJECTED - taken) * look.scale))
    if note and not look.projected:
        st.text(note)
    st.plotly_chart(drawn, theme=None, key=key, config={"displayModeBar": False}, alt=alt)
    if note and look.projected:
        st.text(note)


def ahead(said: Said, training: bool, sentence_of: Callable[[Setup], str]) -> dict[str, dict[str, str]]:
    """What the sentence would be at every place of every slider, the others left where they are."""
    places = tuple((name, tuple(_places(name))) for name in SIZES if name in said)
    return _ahead(given_by(said["model"]), tuple(said.items()), places, training, sentence_of)


@lru_cache(maxsize=128)  # visitors who have just come all ask for the same
def _ahead(
    given: Given,
    said: tuple[tuple[str, Any], ...],
    places: tuple[tuple[str, tuple[int, ...]], ...],
    training: bool,
    sentence_of: Callable[[Setup], str],
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    others = dict(said)
    for name, sizes in places:
        found[name] = {}
        for value in sizes:
            try:
                there = _read(given, {**others, name: value}, training)
                check_positions(there.config, source_len=there.source_len, target_len=there.target_len)
                sentence = sentence_of(there)
            except ConfigError as error:
                sentence = _ended(error)
            found[name][str(value)] = sentence
    return found


def setup(said_in: DeltaGenerator, *, training: bool, is_run: bool = False) -> tuple[Setup | None, Said]:
    """Draw the controls; the setup they say, or the last one that fits together, and what they say.

    Sentences go into `said_in`, among them what is wrong with the newest sizes.
    `training` offers the choice between running and training; `is_run` says that the run above is on the page. None where there has never been one that fits.
    """
    notices.add(*_remember())
    sentences = notices.take()
    place = st.container(key="planning", gap="small")
    st.session_state.setdefault("plan_model", FIRST)
    _take_again()
    place.selectbox(
        words.PRESET,
        MODELS,
        index=MODELS.index(FIRST),
        key="plan_model",
        bind="query-params",
        persist_state="session",
        help=words.PRESET_HELP,
        on_change=_chosen,
        label_visibility="collapsed",
    )
    if (st.session_state["plan_model"] == RUN) != is_run:
        st.rerun()  # the whole page: the request box comes or goes
    try:
        _pasted(place, sentences)
    except Refused as refusal:
        found = st.session_state.get("plan_last")
        sentences.append(f"{refusal} {words.LAST_PICTURE}" if found is not None else str(refusal))
        for sentence in sentences:
            said_in.text(sentence)
        return found, st.session_state.get("plan_said", {})
    given = given_by(st.session_state["plan_model"])
    kind = given.config.kind
    phase = _segmented(place, "phase") if training else "inference"
    lengths = ("batch", "source", "target") if kind == "encoder-decoder" else ("batch", "source")
    formats = ("optimizer", "recompute", "dropout") if phase == "training" else ("weights", "kv")
    if training and phase == "inference" and kind != "encoder":  # how a prompt is read is a question of memory
        formats += ("logits",) if kind == "encoder-decoder" else ("piece", "logits")
    fields = [*lengths, "attention", "dtype", *formats, "d_model", "heads", "kv_heads", "layers", "d_ff", "vocab"]
    columns = place.columns(2, gap="medium")
    said: dict[str, Any] = {"model": st.session_state["plan_model"]}
    for i, name in enumerate(fields):
        said[name] = _slider(columns[i % 2], name) if name in SIZES else _choice(columns[i % 2], name)
    st.session_state[SHOWN] = {f"plan_{name}": value for name, value in (said | {"phase": phase}).items()}
    try:
        found = _read(given, said, phase == "training")
        planned(found)
        st.session_state["plan_last"], st.session_state["plan_said"] = found, said
    except ConfigError as error:
        found = st.session_state.get("plan_last")
        wrong = _ended(error)
        sentences.append(f"{wrong} {words.LAST_PICTURE}" if found is not None else wrong)
    for sentence in sentences:
        said_in.text(sentence)  # never markdown: it may quote what a link says
    return found, said


def _pasted(place: DeltaGenerator, sentences: list[str]) -> None:
    """The box of a config.json, where that is what is counted; the sliders then begin where it says. Raises Refused."""
    if st.session_state["plan_model"] != PASTED:
        pasted.leave()
        return
    with place.popover(words.PASTE_BOX):
        config = pasted.box("plan", sentences)
    before: ModelConfig | None = st.session_state.get("plan_config")
    st.session_state["plan_config"] = config
    if config != before:
        take()
        given = given_by(PASTED)
        st.session_state.update({"plan_batch": given.batch, "plan_source": given.source, "plan_target": given.target})


def _ended(error: ConfigError) -> str:
    return str(error) if str(error).endswith(".") else f"{error}."


def take(title: str | None = None) -> None:
    """Set the sliders to a preset; for a callback, before any widget is drawn."""
    if title is not None:
        st.session_state["plan_model"] = title
    if st.session_state["plan_model"] == RUN and "plan_run" not in st.session_state:
        return  # its sizes come with it
    sizes = {f"plan_{name}": value for name, value in given_by(st.session_state["plan_model"]).sizes.items()}
    before = {key: st.session_state.get(key) for key in sizes}
    st.session_state["plan_taken"] = (st.session_state["plan_model"], before, sizes)
    st.session_state.update(sizes)


def _chosen() -> None:
    """Another model was chosen; what runs above is run, not trained."""
    chosen = st.session_state["plan_model"]
    if chosen == RUN:
        st.session_state["plan_phase"] = "inference"
    take(chosen)  # set here too: else the address that comes with the request box says the model before


def _take_again() -> None:
    """What a visitor does right after a preset or a link leaves the browser before it knows the sizes: it brings the ones before.

    A visitor moves one slider at a time, so two that are back where they were are no visitor's doing.
    """
    session = st.session_state
    if is_history_navigation():
        linked = {f"plan_{name}": session[f"plan_{name}"] for name in (*SIZES, *CHOICES) if f"plan_{name}" in session}
        session["plan_taken"] = (session["plan_model"], session.get(SHOWN, {}), linked)
    if (taken := session.get("plan_taken")) is None:
        return
    title, before, sizes = taken
    moved = [key for key, size in sizes.items() if session.get(key) != size]
    is_back = sum(session.get(key) == before.get(key) for key in moved) > 1
    if is_back and session["plan_model"] == title:
        session.update(sizes)
    elif moved:
        del session["plan_taken"]


def _known_choices(view: str, titles: Mapping[str, str]) -> charts.Choices:
    """What a link may choose for the controls that these rooms share."""
    named = {f"plan_{name}": (words.LABELS[name][0], CHOICES[name]) for name in CHOICES if name != "phase"}
    named["plan_phase"] = (words.PHASE, tuple(words.PHASES.values()))
    named[f"{view}_part"] = (kit_words.PART, tuple(titles.values()))
    return named


def one_of(name: str, options: Sequence[str], key: str, first: str = "") -> str:
    """A select box of a view's own, bound to the URL; `first` is what it says by default."""
    label, more = words.LABELS[name]
    at = options.index(first) if first else 0
    return st.selectbox(label, options, index=at, key=key, bind="query-params", persist_state="session", help=more)


def show_table(table: Any, name: str, title: str = words.TABLE) -> None:
    """The numbers of a picture: folded, drawn when a visitor opens them. As files they are in the menu above the chart."""
    with st.expander(title, key=f"table_{name}", on_change="rerun") as box:
        if box.open:
            st.dataframe(table, hide_index=True, column_config=columns(table), key=f"frame_{name}")


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


def _remember() -> list[str]:
    """Where a link is followed, read what it says: any whole number within reason is a value of a slider."""
    notes: list[str] = []
    arrives = is_history_navigation()
    if "plan_extra" in st.session_state and not arrives:
        return notes
    asked = st.query_params
    title = asked.get("plan_model", FIRST if arrives else st.session_state.get("plan_model", FIRST))
    if title not in MODELS:
        notes.append(kit_words.UNREADABLE.format(name=words.PRESET, asked=quoted(title), shown=FIRST))
        title = FIRST
    if title == PASTED and (said := asked.get(pasted.CONFIG.name)) is not None:
        with suppress(ValueError, Refused):  # the box says what is wrong with it
            st.session_state["plan_config"] = pasted.config_of(pasted.from_link(said))
    values = given_by(title).sizes
    extra: dict[str, int] = {}
    for name in SIZES:
        text = asked.get(f"plan_{name}")
        if text is None:
            continue
        try:
            extra[name] = values[name] = bounded(f"plan_{name}", text)
        except ValueError:
            notes.append(
                kit_words.UNREADABLE.format(name=words.LABELS[name][0], asked=quoted(text), shown=f"{values[name]:,}")
            )
    st.session_state["plan_extra"] = extra
    for name, value in values.items():
        st.session_state[f"plan_{name}"] = value
    return notes


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
    )


def _slider(place: Any, name: str) -> int:
    """A link leaves out what is as the model has it, so that is where the slider begins."""
    key, (label, more) = f"plan_{name}", words.LABELS[name]
    own = given_by(st.session_state["plan_model"]).sizes[name]
    return place.select_slider(
        label, _places(name), own, key=key, bind="query-params", persist_state="session", help=more
    )


def _places(name: str) -> list[int]:
    """Where a slider can stand: round sizes, those of the known models, and what the link asked for."""
    sizes = {getattr(preset.config, _FIELD[name]) for preset in TITLES.values()} if name in _FIELD else set()
    own = given_by(st.session_state["plan_model"]).sizes[name]
    sizes |= {*SIZES[name], own, st.session_state["plan_extra"].get(name, own)}
    return sorted(sizes | {st.session_state.get(f"plan_{name}", own)})


_FIELD = {"d_model": "d_model", "heads": "n_heads", "kv_heads": "n_kv_heads", "d_ff": "d_ff", "vocab": "vocab_size"}


def _choice(place: Any, name: str) -> str:
    label, more = words.LABELS[name]
    return place.selectbox(
        label, CHOICES[name], key=f"plan_{name}", bind="query-params", persist_state="session", help=more
    )


def _segmented(place: Any, name: str) -> str:
    return place.segmented_control(
        words.PHASE,
        CHOICES[name],
        format_func=words.PHASES.__getitem__,
        default=CHOICES[name][0],
        required=True,
        key=f"plan_{name}",
        bind="query-params",
        persist_state="session",
        label_visibility="collapsed",
    )
