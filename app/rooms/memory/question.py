"""The question of Memory: which model, in which format, with how many tokens, on which card; what can be asked of it, and how it is answered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from app.kit import numbers
from app.kit.numbers import short
from app.rooms.memory import words
from app.sizes import words as sizes_words
from app.sizes.setup import Setup
from core.plan import DEVICES, Device, MemoryBudget, Offer, SetUp, Verdict, of_bytes, on_card, on_machine, verdict
from core.plan.operations import device_named
from core.plan.verdict import total

MACHINE, OWN = "machine", "own"
BITS = ("32", "16", "8", "4")
QUANTIZED = {"8": "int8", "4": "nf4"}
NAMED = {"float32": "32", "float16": "16", "bfloat16": "16"} | {kind: bits for bits, kind in QUANTIZED.items()}
GGUF = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "Q3_K_M", "Q2_K")
PIECES = {0: "whole", 512: "512", 2048: "2,048", 8192: "8,192"}
SERVER_PIECE = 2048
UNITS = {"k": 1 << 10, "m": 1 << 20}
MOST_TOKENS = 1 << 20  # that the boxes hold
AS_IN = {
    "server": ("flash", "last", SERVER_PIECE),
    "transformers": ("flash", "last", 0),
    "textbook": ("eager", "all", 0),
}
GB = 10**9


@dataclass(frozen=True)
class Question:
    """A setup, and where it is to fit: the id of a card, how many of them, and the share in per cent that fragments take."""

    setup: Setup
    card: str  # MACHINE, OWN or the name of a device
    cards: int
    fragments: int
    own: float | None = None  # GB of a memory of the visitor's own
    built: int = 0  # sets of keys of the model as it is known; 0: as in the setup

    @property
    def device(self) -> Device | None:
        """The card, where it is one."""
        return device_named(self.card)

    @property
    def place(self) -> MemoryBudget:
        if self.card == OWN and self.own is not None:
            return of_bytes(round(self.own * GB), numbers.filled(words.OWN_CARD, n=self.own))
        return on_machine() if self.device is None else on_card(self.device, self.cards)

    def on(self, place: MemoryBudget) -> SetUp:
        """As core is asked it, of a memory that is looked at once for all that is said of it: what is free is another every moment."""
        return SetUp(self.setup.config, self.setup.workload, place, fragments=self.fragments)


@dataclass(frozen=True)
class Choice:
    """A button that asks for something: `set` is what, by the names of the question's parts."""

    title: str
    beside: str
    set: Mapping[str, str]

    def to_dict(self) -> dict[str, object]:
        return {"title": self.title, "beside": self.beside, "set": dict(self.set)}


def bits_of(setup: Setup) -> str:
    """32, 16, 8 or 4, or the GGUF type."""
    if setup.weight_dtype is None:
        return bits_named(setup.dtype)
    return bits_named(setup.weight_dtype)


def bits_named(kind: str) -> str:
    """The same of a format: "nf4" -> "4"."""
    return NAMED.get(kind, kind)


def bits_said(bits: str) -> str:
    return words.OFFERS["bits"].format(n=bits) if bits in BITS else bits


def tokens_asked(said: str) -> int | None:
    """A number of tokens as people type it: "32,768", "32k", "1M". None where it is none that can be asked about."""
    found = re.fullmatch(r"\s*(\d[\d,. \u202f\u00a0]*)\s*([kKmM]?)\s*", said)
    if found is None:
        return None
    typed, unit = found[1].strip(), found[2].lower()
    if unit and (whole := re.fullmatch(r"(\d+)(?:[.,](\d))?", typed)) is not None:
        number = round(float(f"{whole[1]}.{whole[2] or 0}") * UNITS[unit])
    elif re.fullmatch(r"\d+|\d{1,3}(?:[,. \u202f\u00a0]\d{3})+", typed):
        number = int(re.sub(r"\D", "", typed)) * UNITS.get(unit, 1)
    else:
        return None
    return number if 1 <= number <= MOST_TOKENS else None


def tokens_said(n: int) -> str:
    """A number of tokens that fits, rounded down to three digits."""
    return numbers.whole(numbers.rounded_down(n))


# the answer


def ends_first(found: Verdict) -> bool:
    """Whether a learned table of positions ends before the memory does."""
    return found.ceiling is not None and found.longest >= found.ceiling


def said(question: Question, found: Verdict) -> dict[str, object]:
    """The verdict in words, in pieces."""
    return headline(question, found, found.total)


def headline(question: Question, found: Verdict, total: int) -> dict[str, object]:
    """The same for a need of `total` bytes, that of another length; all but the need itself is as here."""
    budget, fits = found.budget, total <= found.budget
    sizes = total, budget
    took, had = map(short, sizes) if short(total) != short(budget) else numbers.apart(*sizes)
    if took.rpartition(" ")[2] == had.rpartition(" ")[2]:
        took = took.rpartition(" ")[0]  # the unit is said once
    rest = [{"text": took, "strong": True}]
    of = words.OF_BUDGET if found.set_up.place.cards == 1 else words.OF_BUDGET_EACH
    rest.append({"text": of.format(budget=had, n=found.set_up.place.cards)})
    if not fits:
        lead = words.TOO_MUCH.format(size=short(total - budget))
        if found.need.weights > budget:
            rest.append({"text": words.WEIGHTS_ALONE.format(size=short(found.need.weights))})
    else:
        lead = words.FITS
        rest += _up_to(question, found)
    return {
        "fits": fits,
        "lead": lead,
        "rest": rest,
        "plain": " ".join([lead, "".join(str(piece["text"]) for piece in rest)]),
    }


def _up_to(question: Question, found: Verdict) -> list[dict[str, object]]:
    config = question.setup.config
    if found.unlimited:
        return [{"text": words.NO_MORE}]
    if ends_first(found):
        return [
            {"text": words.ALL_ROWS},
            {"text": words.ALL_ROWS_TOKENS.format(n=numbers.whole(config.n_ctx)), "strong": True},
            {"text": words.ALL_ROWS_END},
        ]
    if not found.longest:
        return []
    taught = config.kind == "decoder" and config.position != "learned"
    return [
        {"text": words.UP_TO},
        {"text": words.TOKENS.format(n=tokens_said(found.longest)), "strong": True},
        {"text": words.TAUGHT.format(n=numbers.whole(config.n_ctx)) if taught else ".", "quiet": True},
    ]


def note(question: Question, found: Verdict, widest: str) -> str:
    """n fits and n + 1 does not, exactly; the widest moment; and what memory says nothing about."""
    setup = question.setup
    config, parts = setup.config, []
    if found.unlimited:
        pass
    elif not found.longest:
        parts.append(words.NOTE_NONE)
    elif ends_first(found):
        parts.append(words.NOTE_TABLE.format(n=numbers.whole(config.n_ctx)))
    else:
        n = found.longest
        parts.append(words.NOTE_FITS.format(n=numbers.whole(n), more=numbers.whole(n + 1)))
    if config.kind == "decoder" and config.position != "learned" and setup.source_len > config.n_ctx:
        of = {"n": numbers.whole(setup.source_len), "taught": numbers.whole(config.n_ctx)}
        parts.append(words.NOTE_BEYOND.format(**of))
    elif (moment := moment_said(widest)) is not None:
        parts.append(words.NOTE_WIDEST.format(moment=moment))
    return " ".join(parts)


def moment_said(widest: str) -> str | None:
    """The widest moment in words, None for one that has none."""
    return next((said for name, said in words.MOMENTS.items() if widest == name or widest.endswith(f" {name}")), None)


def offers(found: Verdict) -> list[Choice]:
    """Room for more, or each change that makes it fit by itself."""
    many = found.set_up.place.cards
    return [_offer(one, found, many) for one in found.offers]


def _offer(one: Offer, found: Verdict, many: int) -> Choice:
    value, before = one.value, found.set_up.work
    title = words.OFFERS.get(one.kind, one.kind)
    fill: dict[str, str]
    if one.kind == "tokens":
        n = min(numbers.rounded_down(int(value)), MOST_TOKENS)
        return Choice(title.format(n=numbers.whole(n)), short(one.total), {"source": str(n)})
    if one.kind == "chats":
        of = "chats" if found.set_up.config.writes and not before.training else "texts"
        how = "_one" if int(value) == 1 else "_fewer" if int(value) < before.batch else ""
        title = words.OFFERS[f"{of}{how}"]
        title = title.format(n=numbers.whole(int(value)), before=numbers.whole(before.batch))
        fill = {"batch": str(value)}
    elif one.kind == "bits":
        bits = bits_named(str(value))
        title, fill = bits_said(bits), {"bits": bits}
    elif one.kind == "card":
        title, fill = title.format(n=value), {"card": str(value), "cards": "1"}
    elif one.kind == "cards":
        title, fill = title.format(n=value), {"cards": str(value)}
    elif one.kind == "rank":
        fill = {"phase": "adapters", "rank": str(value)}
    elif one.kind == "piece":
        title, fill = title.format(n=PIECES.get(int(value), str(value))), {"piece": PIECES.get(int(value), str(value))}
    elif one.kind == "wasteful":
        fill = {"kernel": "fused", "logits": "last", "piece": PIECES[SERVER_PIECE]}
        fill = {
            name: text
            for name, text in fill.items()
            if {"kernel": "attention"}.get(name, name) in str(value).split(",")
        }
    else:
        name = {"attention": "kernel", "cache": "kv"}.get(one.kind, one.kind)
        fill = {name: {"flash": "fused"}.get(str(value), str(value))}
    takes = short(one.total)
    return Choice(title, words.EACH_CARD.format(size=takes) if one.kind == "cards" or many > 1 else takes, fill)


# the same question with one thing changed


def with_bits(setup: Setup, bits: str) -> Setup:
    """In another format: 32 and 16 bit are those of the whole pass, fewer those of the weights of one in 16 bit."""
    if bits == "32":
        return replace(setup, dtype="float32", weight_dtype=None)
    half = setup.dtype if setup.dtype != "float32" else "float16"
    return replace(setup, dtype=half, weight_dtype=None if bits == "16" else QUANTIZED.get(bits, bits))


def totals(question: Question, setups: Iterable[Setup], place: MemoryBudget) -> list[int]:
    """Bytes that each takes in all, on the fullest card."""
    return [total(replace(question, setup=setup).on(place)) for setup in setups]


def answered(question: Question, place: MemoryBudget) -> Verdict:
    return verdict(question.on(place))


def card_titles() -> dict[str, str]:
    """The places to choose from, by id."""
    return {MACHINE: words.MACHINE} | {device.name: device.name for device in DEVICES}


def kv_bits(setup: Setup) -> str:
    kept = setup.kv_dtype or setup.dtype
    return {
        "float32": "32",
        "float16": "16",
        "bfloat16": "16",
        "Q8_0": "8",
        "int8": "8",
        "float8": "8",
        "Q4_0": "4",
    }.get(kept, kept)


def pieces_box(said: str) -> str | None:
    """The box of "how a prompt is read" for a text of PIECES."""
    by_text = {text: n for n, text in PIECES.items()}
    n = by_text.get(said)
    return next((box for box, value in sizes_words.PIECES.items() if value == n), None) if n is not None else None
