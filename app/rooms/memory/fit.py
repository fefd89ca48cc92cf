"""Does it fit: what the picture of Memory's first part is sent, and what was chosen in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app import languages
from app.kit import charts, numbers, widgets
from app.kit.numbers import MIB, short
from app.kit.params import Param
from app.kit.widgets import Control
from app.rooms.memory import question as asking
from app.rooms.memory import scale as scaling
from app.rooms.memory import tabs, words
from app.rooms.memory.component import KEY, VIEW
from app.rooms.memory.component import fit as draw
from app.rooms.memory.question import Choice, Question
from app.rooms.memory.tabs import Beside
from app.session import boxes
from app.sizes import controls
from app.sizes import words as sizes_words
from app.sizes.controls import Look
from app.sizes.setup import Setup
from core.plan import DEVICES, Verdict, kv_cache, parameters
from core.plan.verdict import curve, widest

FIGURES = f"{__package__}.figures"
PART = controls.part_of(VIEW, words.MEMORY_PARTS)
BUDGETS = (0.001, 1e6)  # GB that a visitor may type
FIRST_OWN = 8.0  # GB, as in exercises
ANSWERED = "fit_answered"  # in the session: the last of its questions
TYPED = "fit_typed"  # in the session: a text that is no number, with the name of its field and the sentence about it
ABOUT = "fit_typed_about"  # in the session: the question that stayed as it was
EXAMPLES: dict[str, dict[str, str]] = {
    "llama": {"model": "llama-3-8b", "phase": "inference", "bits": "16", "source": "32768", "batch": "1", "card": "RTX 4090"},
    "four": {"model": "llama-3-8b", "phase": "inference", "bits": "16", "source": "32768", "batch": "4", "card": "RTX 4090"},
    "train": {"model": "gpt2-medium", "phase": "training", "bits": "32", "source": "1024", "batch": "1", "card": "T4"},
    "lora": {"model": "llama-3-8b", "phase": "adapters", "bits": "16", "source": "2048", "batch": "1", "card": "RTX 4090", "rank": "16"},
    "textbook": {"model": "llama-3-8b", "phase": "inference", "bits": "16", "source": "32768", "batch": "1", "card": "A100 80 GB"},
}  # fmt: skip


def _one(name: str, ids: Iterable[str], title: str) -> Control:
    return widgets.choice(name, {one: one for one in ids}, title)


CARD = _one("memory_card", (asking.MACHINE, asking.OWN, *(device.name for device in DEVICES)), words.FIT_LABELS["card"])
CARDS = _one("memory_cards", map(str, tabs.SEVERAL), words.FIT_LABELS["cards"])
FRAGMENTS = _one("memory_fragments", map(str, tabs.FRAGMENTS), words.ASSUME_LABELS["fragments"])
TAB = _one("memory_tab", words.FIT_TABS, words.TAB)
ZOOM = _one("memory_zoom", words.ZOOM, words.FIT_LABELS["zoom"])


def _read_guess(text: str, _: Any) -> str:
    if text in ("", "on"):
        return text
    return str(max(1, min(asking.MOST_TOKENS, int(text))))


def _read_budget(text: str, _: Any) -> str:
    if text and not BUDGETS[0] <= float(text) <= BUDGETS[1]:
        raise ValueError
    return _budget_said(float(text)) if text else ""


def _budget_said(own: float | None) -> str:
    return "" if own is None else f"{own:.12g}"


BUDGET = Control(
    Param("memory_budget", "", _read_budget, words.BUDGET_ALLOWED, words.BUDGET),
    lambda text: float(text) if text else None,
    _budget_said,
)
PREDICT = Control(Param("memory_predict", "", _read_guess, words.PREDICT_ALLOWED, words.PREDICT), str)
OWN = (CARD, CARDS, FRAGMENTS, TAB, ZOOM, PREDICT)

# what the picture asks for, and the box of it; of the others _put() says more
BOXES = {
    "phase": controls.PHASE.name,
    "card": CARD.name,
    "cards": CARDS.name,
    "fragments": FRAGMENTS.name,
    "tab": TAB.name,
    "zoom": ZOOM.name,
    "recompute": "plan_recompute",
    "optimizer": "plan_optimizer",
    "rank": "plan_rank",
}
KERNELS = {"fused": "flash", "eager": "eager"}
LOGITS = {value: text for text, value in sizes_words.LOGITS.items()}


def take(is_link: bool) -> None:
    """Put what was chosen in the picture into the boxes, once; not where a link, or the way back, decides what they hold."""
    asks = (st.session_state.get(KEY) or {}).get("asks")
    if not isinstance(asks, Mapping) or not isinstance(asks.get("set"), Mapping):
        return
    if asks.get("id") == st.session_state.get(ANSWERED):
        return
    st.session_state[ANSWERED] = asks.get("id")
    if is_link:
        return
    _forget_typed()
    wanted = {str(name): str(text) for name, text in asks["set"].items()}
    if wanted.get("model") in controls.TITLES:  # first: it sets the sliders, and the others follow
        boxes.fill(controls.MODEL.name, wanted["model"])
        controls.follow_model()
    for name, text in wanted.items():
        _put(name, text)


def _put(name: str, text: str) -> None:
    """One of them; a text that its box does not know is left out."""
    if name in ("source", "target"):
        _put_tokens(name, text)
    elif name in ("batch", "kv_heads"):
        _fill(f"plan_{name}", text)
    elif name == "bits":
        _put_bits(text)
    elif name == "kernel":
        _fill("plan_attention", KERNELS.get(text, ""))
    elif name == "logits":
        _fill("plan_logits", LOGITS.get(text, ""))  # type: ignore[call-overload]
    elif name == "piece":
        _fill("plan_piece", asking.pieces_box(text) or "")
    elif name == "kv":
        _fill("plan_kv", tabs.KV.get(text, text) if text not in ("32", "16") else sizes_words.SAME)
    elif name == "as_in" and text in asking.AS_IN:
        kernel, logits, piece = asking.AS_IN[text]
        _fill("plan_attention", kernel)
        _fill("plan_logits", LOGITS[logits])  # type: ignore[index]
        _fill("plan_piece", asking.pieces_box(asking.PIECES[piece]) or "")
    elif name == "predict" and text in ("", "first"):
        _fill(PREDICT.name, "on" if text else "")
    elif name == "guess":
        _fill(PREDICT.name, text)
    elif name == "part":
        _fill(PART.name, text)
    elif name == "own":
        _put_own(text)
    elif name in BOXES:
        _fill(BOXES[name], text)
        if text == asking.OWN and boxes.held(BUDGET.name) is None:
            boxes.fill(BUDGET.name, FIRST_OWN)


def _put_tokens(name: str, text: str) -> None:
    n = asking.tokens_asked(text)
    if n is None:
        most = numbers.whole(asking.MOST_TOKENS)
        wrong = words.TOKENS_WRONG.format(said=numbers.quoted(text), low=1, high=most)
        st.session_state[TYPED] = (name, numbers.quoted(text), wrong)
    else:
        boxes.fill(f"plan_{name}", n)


def _put_own(text: str) -> None:
    try:
        boxes.fill(BUDGET.name, float(_read_budget(re.sub(r"(?i)\s*gb\s*$", "", text.strip()), None)))
    except ValueError:
        wrong = words.OWN_WRONG.format(said=numbers.quoted(text), allowed=words.BUDGET_ALLOWED)
        st.session_state[TYPED] = ("own", numbers.quoted(text), wrong)


def _typed(question: Question) -> tuple[str, str, str] | None:
    """The text that was refused, with the name of its field and the sentence about it, until the question is another."""
    if TYPED in st.session_state and st.session_state.setdefault(ABOUT, question) != question:
        _forget_typed()
    return st.session_state.get(TYPED)


def _forget_typed() -> None:
    for key in (TYPED, ABOUT):
        st.session_state.pop(key, None)


def _put_bits(bits: str) -> None:
    if bits not in asking.BITS and bits not in asking.GGUF:
        return
    dtype = boxes.held("plan_dtype")
    if bits == "32":
        boxes.fill("plan_dtype", "float32")
    elif dtype == "float32":
        boxes.fill("plan_dtype", "float16")
    kind = sizes_words.SAME if bits in ("32", "16") else asking.QUANTIZED.get(bits, bits)
    boxes.fill("plan_weights", kind)


def _fill(name: str, text: str) -> None:
    control = KNOWN[name]
    try:
        said = control.param.read(text, None)
    except (ValueError, KeyError):
        return
    boxes.fill(name, control.value(said))


KNOWN = {control.name: control for control in (*controls.SHARED.controls, *OWN, PART)}

# what is sent


def show(setup: Setup, look: Look) -> None:
    """Draw the part."""
    question = _question(setup)
    place = question.place
    found = asking.answered(question, place)
    beside = Beside(question, found, place)
    guess = boxes.held(PREDICT.name)
    zoom, tab = boxes.held(ZOOM.name), boxes.held(TAB.name)
    shown = _picture(question, found, zoom, bool(guess))
    verdict = asking.said(question, found)
    file = pd.DataFrame(
        [
            {"n": one["n"], **dict(zip(shown["names"], (n / MIB for n in one["bytes"]), strict=True))}
            for one in shown["places"]
        ]
    )
    sentence = str(verdict["plain"])
    figure = partial(charts.figures(FIGURES).fit, file, found.budget / MIB, setup.source_len)
    chart = controls.Chart("fit", words.FIT_NOTE, [(words.FILE_FIT, "headlight-memory-fit", file)], figure)
    about, kept = controls.leaves(look, setup, sentence, chart)
    typed = _typed(question)
    data = {
        "scale": look.scale,
        "about": about,
        "answered": st.session_state.get(ANSWERED, 0),
        "sentence": _sentence(question, typed),
        "verdict": verdict,
        "offers": _offers(found),
        "note": typed[2] if typed else "" if guess == "on" else _note(question, found),
        "examples": _examples(question),
        "predict": _predict(question, found, guess),
        "row": _row(question),
        "tabs": [
            {
                "id": name,
                "title": languages.translated(words.FIT_TABS[name]),
                "blocks": tabs.blocks(name, beside) if name == tab else [],
            }
            for name in words.FIT_TABS
        ],
        "tab": tab,
        "foot": _foot(setup),
        "table_of": _table_of(shown),
        **{name: value for name, value in shown.items() if name != "names"},
    }
    with look.place:
        draw(data, kept)


def _question(setup: Setup) -> Question:
    held = {control.name: boxes.held(control.name) for control in OWN}
    card, own = held[CARD.name], boxes.held("memory_budget")
    if card == asking.OWN and own is None:
        card = asking.MACHINE
    many = int(held[CARDS.name]) if card not in (asking.MACHINE, asking.OWN) else 1
    built = controls.given_by(boxes.held(controls.MODEL.name)).config.n_kv_heads
    return Question(setup, card, many, int(held[FRAGMENTS.name]), own, built)


# the sentence at the top


def _text(name: str) -> dict[str, Any]:
    return {"kind": "text", "text": words.FIT_SENTENCE[name]}


def _item(kind: str, name: str, value: str, options: Sequence[tuple[str, str]]) -> dict[str, Any]:
    offered = [{"value": one, "text": said} for one, said in options]
    return {"kind": kind, "name": name, "label": words.FIT_LABELS[name], "value": value, "options": offered}


def _sentence(question: Question, typed: tuple[str, str, str] | None) -> list[dict[str, Any]]:
    setup = question.setup
    config, bits = setup.config, asking.bits_of(setup)
    plain = setup.training and not setup.rank  # all weights are trained, in the format of the pass
    offered = asking.BITS[:2] if plain else asking.BITS
    gguf = [("", words.GGUF), *((name, name) for name in asking.GGUF)]
    if bits not in asking.BITS and bits not in asking.GGUF:
        gguf.append((bits, bits))
    found = [_item("select", "model", boxes.held(controls.MODEL.name), _models()), _text("in")]
    found.append(_item("row", "bits", bits if bits in offered else "", [(one, one) for one in offered]))
    if not setup.training:
        found.append(_item("select", "gguf", "" if bits in asking.BITS else bits, gguf) | {"name": "bits"})
        if bits in asking.BITS:
            found[-1]["plain"] = ""
    found += [_text("bit" if bits in asking.BITS else "comma"), _number("source", setup.source_len, typed)]
    if config.kind == "encoder-decoder":
        found += [_text("to"), _number("target", setup.target_len, typed)]
    found += [_text("tokens"), _text("times"), _stepper(setup)]
    chats = config.kind != "encoder" and not setup.training
    found.append(_text(("chat" if chats else "text") + ("" if setup.batch == 1 else "s")))
    phases = words.FIT_PHASES_READ if config.kind == "encoder" else words.FIT_PHASES
    phase = "adapters" if setup.rank else "training" if setup.training else "inference"
    found += [_item("row", "phase", phase, list(phases.items())), _text("on")]
    places = [(one, languages.translated(said)) for one, said in asking.card_titles().items()]
    places.append((asking.OWN, words.OWN_MEMORY))
    found.append(_item("select", "card", question.card, places))
    if question.card == asking.OWN and question.own is not None:
        found[-1]["plain"] = ""
        own = typed[1] if typed and typed[0] == "own" else numbers.filled(words.OWN_CARD, n=question.own)
        label, more = words.BUDGET, words.BUDGET_HELP
        found.append({"kind": "number", "name": "own", "label": label, "value": own, "help": more})
    if question.device is not None:
        said = [(str(n), words.ONE_CARD if n == 1 else words.SEVERAL.format(n=n)) for n in tabs.SEVERAL]
        found.append(_item("select", "cards", str(question.cards), said))
        if question.cards == 1:
            found[-1]["plain"] = ""
    return found


def _models() -> list[tuple[str, str]]:
    """The run above by its own name, and all that are known."""
    run = controls.given_by(controls.RUN).title
    own = {controls.RUN: words.MODEL_OF_RUN.format(title=run), controls.PASTED: words.OF_CONFIG}
    return [(name, own.get(name, languages.translated(title))) for name, title in controls.TITLES.items()]


def _number(name: str, n: int, typed: tuple[str, str, str] | None) -> dict[str, Any]:
    """The field of a number of tokens; one that is none stays in it."""
    value = typed[1] if typed and typed[0] == name else numbers.whole(n)
    return {"kind": "number", "name": name, "label": words.FIT_LABELS[name], "value": value, "help": words.TOKENS_HELP}


def _stepper(setup: Setup) -> dict[str, Any]:
    n = setup.batch
    return {
        "kind": "stepper",
        "name": "batch",
        "label": words.FIT_LABELS["batch"],
        "value": numbers.whole(n),
        "less": str(n - 1) if n > 1 else None,
        "more": str(n + 1),
        "n": n,
    }


# the verdict and what follows from it


def _offers(found: Verdict) -> dict[str, Any]:
    listed = [one.to_dict() | {"first": i == 0} for i, one in enumerate(asking.offers(found))]
    label = words.ROOM_FOR if found.fits else words.FITS_WITH if listed else words.NOTHING_FITS
    return {"label": label if listed or not found.fits else "", "list": listed}


def _note(question: Question, found: Verdict) -> str:
    said = asking.note(question, found, widest(found.set_up))
    if found.fits and found.chats == question.setup.batch and question.setup.batch == 1 and not found.unlimited:
        second = asking.totals(question, [replace(question.setup, batch=2)], found.set_up.place)[0]
        said = f"{said} {words.NOTE_SECOND.format(size=short(second))}"
    return said


def _examples(question: Question) -> list[dict[str, Any]]:
    """The model of the other rooms, the visitor's sentence, and five that each show something."""
    found: list[tuple[str, dict[str, str]]] = []
    here = {"model": controls.RUN, "phase": "inference", "bits": "32", "card": asking.MACHINE}
    if "plan_run" in st.session_state:
        run = controls.given_by(controls.RUN)
        whole = run.config.n_ctx if run.config.kind == "decoder" else run.source
        here |= {"batch": str(run.batch)}
        found = [("here", here | {"source": str(whole)}), ("text", here | {"source": str(run.source)})]
    else:
        found = [("here", here)]  # as long as it was taught, once it is known
    found += list(EXAMPLES.items())
    now = _now(question)
    shown = []
    for name, asked in found:
        wanted = {"kernel": "fused", "logits": "last", "piece": "2,048", "fragments": "0", "cards": "1"} | asked
        if name == "textbook":
            wanted |= {"kernel": "eager", "logits": "all", "piece": "whole"}
        if wanted.get("phase") != "inference":
            del wanted["piece"], wanted["logits"]
        is_on = all(now.get(key) == text for key, text in wanted.items())
        shown.append(Choice(words.EXAMPLES[name], "", wanted).to_dict() | {"on": is_on})
    return shown


def _now(question: Question) -> dict[str, str]:
    """The question by the names that examples ask by."""
    setup = question.setup
    return {
        "model": boxes.held(controls.MODEL.name),
        "phase": "adapters" if setup.rank else "training" if setup.training else "inference",
        "bits": asking.bits_of(setup),
        "source": str(setup.source_len),
        "batch": str(setup.batch),
        "card": question.card,
        "cards": str(question.cards),
        "fragments": str(question.fragments),
        "kernel": "eager" if setup.attention == "eager" else "fused",
        "logits": setup.logits,
        "piece": asking.PIECES.get(setup.piece, ""),
        "rank": str(setup.rank),
    }


def _predict(question: Question, found: Verdict, guess: str) -> dict[str, Any]:
    config, setup = question.setup.config, question.setup
    answer, n = None, None
    if guess and guess != "on":
        n = int(guess)
        said = numbers.whole(n)
        if found.unlimited:
            answer = words.PREDICT_NEVER.format(guess=said)
        elif not found.longest:
            answer = words.PREDICT_NOTHING.format(guess=said)
        elif asking.ends_first(found):
            answer = words.PREDICT_TABLE.format(n=numbers.whole(config.n_ctx), guess=said)
        else:
            answer = words.PREDICT_STOPS.format(n=asking.tokens_said(found.longest), guess=said)
    each = kv_cache(config, batch=1, n=1, dtype=setup.kv_dtype or setup.dtype).per_token * setup.batch
    return {
        "on": bool(guess),
        "ask": words.PREDICT_ASK.format(weights=short(found.need.weights), token=short(each)),
        "see": words.PREDICT_SEE,
        "again": words.PREDICT_AGAIN,
        "starts": 1,
        "answer": answer,
        "guess": n,
        "button": words.PREDICT,
    }


# the picture


def _picture(question: Question, found: Verdict, zoom: str, predicted: bool) -> dict[str, Any]:
    """The lengths with all their bytes, and what stands around them."""
    setup, config = question.setup, question.setup.config
    scaled = scaling.scale(question, found, zoom, predicted)
    crossing = found.longest if found.longest and not found.unlimited and not asking.ends_first(found) else None
    also = [setup.source_len, *([crossing] if crossing and crossing <= scaled.ends else [])]
    lengths = scaling.lengths(scaled.ends, *also)
    rows = [(n, memory.to_dict() | {"lost": lost}) for n, memory, lost in curve(found.set_up, lengths)]
    names = [name for name in words.FIT_PARTS if any(parts[name] for _, parts in rows)]
    places = []
    for n, parts in rows:
        sizes = [parts[name] for name in names]
        total = sum(sizes)
        places.append(
            {
                "n": n,
                "tokens": numbers.whole(n),
                "bytes": sizes,
                "sizes": [short(size) for size in sizes],
                "all": total,
                "total": short(total),
                "verdict": asking.headline(question, found, total),
                "over": total > found.budget,
            }
        )
    place = found.set_up.place
    kept = place.total - place.budget
    titles = {name: component[1] for name, component in words.COMPONENTS.items()} | {"lost": words.LOST_HELP}
    taught = config.kind == "decoder" and config.position != "learned" and config.n_ctx <= scaled.ends
    by = words.KEPT_BY_DRIVER if place.device is not None else words.KEPT_BY_OTHERS
    is_table = config.position == "learned" and config.n_ctx <= scaled.ends
    return {
        "names": names,
        "parts": [{"id": name, "title": words.FIT_PARTS[name], "help": titles[name]} for name in names],
        "places": places,
        "at": scaling.place_of(lengths, setup.source_len),
        "budget": {
            "bytes": found.budget,
            "label": scaling.budget_line(question, found),
            "kept": {"bytes": kept, "label": by.format(size=short(kept))} if kept else None,
        },
        "axis": {
            "top": scaled.top,
            "ticks": scaling.byte_ticks(scaled.top),
            "more": scaling.over(question, found, scaled),
            "ends": scaled.ends,
            "nticks": scaling.token_ticks(scaled.ends),
            "name": words.TOKENS_AXIS,
        },
        "crossing": {"n": crossing, "text": asking.tokens_said(crossing)}
        if crossing and crossing <= scaled.ends
        else None,
        "taught": {"n": config.n_ctx, "text": words.TAUGHT_TO.format(n=numbers.whole(config.n_ctx))}
        if taught
        else None,
        "table": {"n": config.n_ctx, "text": words.TABLE_TO.format(n=numbers.whole(config.n_ctx))}
        if is_table
        else None,
    }


def _row(question: Question) -> list[dict[str, Any]]:
    """Under the figure: chats as a slider, and the scale."""
    setup = question.setup
    batches = sorted({*(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128), setup.batch})
    at = batches.index(setup.batch)
    titles = words.ZOOM if question.device is not None else words.ZOOM_MACHINE
    return [
        {
            "kind": "slider",
            "name": "batch",
            "label": words.FIT_LABELS["batch"],
            "values": [str(n) for n in batches],
            "at": at,
        },
        _item(
            "row", "zoom", boxes.held(ZOOM.name), [(name, languages.translated(said)) for name, said in titles.items()]
        ),
    ]


def _foot(setup: Setup) -> list[str]:
    n = numbers.whole(parameters(setup.config).total)
    forms = words.FOOT_PIECES if setup.workload.piece else words.FOOT_FORMS
    return [forms, words.FOOT_WEIGHTS.format(n=n), words.FOOT_UNIT, words.FOOT_PAPER]


def _table_of(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The picture as a table: lengths, parts, and whether they fit."""
    columns = [words.TOKENS_AXIS, *(part["title"] for part in shown["parts"]), words.IN_ALL, words.FITS_COLUMN]
    rows = [
        [one["tokens"], *one["sizes"], one["total"], words.NO if one["over"] else words.YES] for one in shown["places"]
    ]
    return {"columns": columns, "rows": rows}
