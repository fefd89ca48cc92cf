"""What can be chosen in the room, as links say it, and the edits of a run that the choices stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.kit.params import Param, one_of, pinned, whole
from app.rooms.masks import words
from core.edits import Edit, EditMask, MaskAfterSoftmax, MaskFill, NoScale, SetMask
from core.service import Facts, Site

LABS = ("paint", "padding", "leak", "kinds", "scale")
WHOLE = 32  # tokens up to which three whole maps stand beside each other; above, they scroll, and no batch is drawn
SHOWN = 96  # tokens up to which the maps of all heads are there at once; above, rows of one head are asked for
BLOCK = 64  # rows of one answer: from any multiple of STEP on, so that a tile of WHOLE rows always lies in one
STEP = BLOCK - WHOLE
MOST_ROWS = 1_500_000  # bytes of one such answer: scores, and why cells are hidden
WIDEST = 64  # tokens of a window
MOST_TEXTS = 4  # of a batch
MOST_PARTNER = 400  # characters of the sentences that are added to a batch
CELL = re.compile(r"([0-9]{1,4})-([0-9]{1,4})(?:\.\.([0-9]{1,4}))?")
STOPS = ("1", "2", "3", "4", "5", "6", "7")  # of the walk through Paint a mask
FORBIDDING = ("1", "2", "3", "7")  # those at which the look of the demonstration is forbidden
RUNGS = 4  # runs of one answer about more and more heads
FILLS = {"inf": None, "1e9": -1e9}
LEAKY = "storyteller"  # the model whose last layer learnt again without its mask
KINDS = {"encoder": "minilm", "decoder": "smollm2", "cross": "translator"}  # a model that has this kind of attention
NO_SCALE = NoScale()


@dataclass(frozen=True)
class Look:
    """From a query to a key in one head of one kind of attention."""

    site: str
    layer: int
    head: int
    query: int
    key: int


@dataclass(frozen=True)
class Shown:
    """What the choices are of: a run, and the head and row that its picture opens with, of each site."""

    facts: Facts
    openings: Mapping[str, tuple[int, int, int]]  # site -> layer, head, query
    look: Look | None = None  # the look that the room forbids to show what a mask does
    is_shown: bool = False  # whether it opens with that

    @property
    def site(self) -> str:
        """The kind of attention that is painted by default: how the model reads what it writes, or its text."""
        if self.look is not None:
            return self.look.site
        return "decoder" if "decoder" in self.openings else "encoder"

    def widest(self, name: str) -> int:
        """The most layers, heads, queries or keys that any site has."""
        sizes = {
            "layer": lambda site: len(site.records),
            "head": lambda site: site.n_heads,
            "query": lambda site: site.n_query,
            "key": lambda site: site.n_key,
        }
        return max(sizes[name](site) for site in self.facts.sites)

    def place(self, site: str) -> str:
        if len(self.openings) < 2:
            return ""
        layer, head, _ = self.openings.get(site, (0, 0, 0))
        return f"{layer}.{head}"


def cells(text: str) -> list[tuple[int, range]]:
    """Cells of a link, "11-3,11-5..7", as queries and runs of keys. Raises ValueError for anything else."""
    found = []
    for part in text.split(",") if text else []:
        match = CELL.fullmatch(part)
        if match is None:
            raise ValueError(part)
        first = int(match[2])
        last = int(match[3] or first)
        if last < first:
            raise ValueError(part)
        found.append((int(match[1]), range(first, last + 1)))
    return found


def written(found: list[tuple[int, range]]) -> str:
    """Cells as a link says them."""
    return ",".join(f"{query}-{keys.start}" + (f"..{keys.stop - 1}" if len(keys) > 1 else "") for query, keys in found)


def within(found: list[tuple[int, range]], n_query: int, n_key: int) -> list[tuple[int, range]]:
    """Those cells that a map of this size has."""
    cut = [(query, range(keys.start, min(keys.stop, n_key))) for query, keys in found if query < n_query]
    return [(query, keys) for query, keys in cut if keys]


def left_out(text: str | None, shown: Shown) -> bool:
    """Whether a link names cells that no map of this run has."""
    try:
        found = cells(text or "")
    except ValueError:
        return False  # the link is told so in another sentence
    return within(found, shown.widest("query"), shown.widest("key")) != found


def _cells(name: str) -> Param:
    def read(text: str, shown: Shown) -> str:
        return written(within(cells(text), shown.widest("query"), shown.widest("key")))

    return Param(name, "", read, words.CELLS)


def _window() -> Param:
    def read(text: str, _: Shown) -> str:
        if not (text.isascii() and text.isdecimal() and len(text) <= 3 and 1 <= int(text) <= WIDEST):
            raise ValueError
        return str(int(text))

    return Param("window", "3", read, words.WINDOW_SIZES.format(most=WIDEST))


def _place(site: str) -> Param:
    """Layer and head of one kind of attention, "2.3"; "" is the head that stands out, where another model shows this kind."""

    def read(text: str, shown: Shown) -> str:
        if not text and len(shown.openings) < 2:
            return text
        found, at = site_of(shown.facts, site), re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", text)
        if at is None or (found is not None and not (int(at[1]) < len(found.records) and int(at[2]) < found.n_heads)):
            raise ValueError
        return f"{int(at[1])}.{int(at[2])}"

    return Param(site, lambda shown: shown.place(site), read, words.PLACES)


def _site() -> Param:
    def read(text: str, shown: Shown) -> str:
        if site_of(shown.facts, text) is None:
            raise ValueError
        return text

    return Param("site", lambda shown: shown.site, read, lambda shown: ", ".join(s.id for s in shown.facts.sites))


def _text(name: str) -> Param:
    """A text that is written in the room; "" is one of the room's own."""

    def read(text: str, _: Shown) -> str:
        if len(text) > MOST_PARTNER:
            raise ValueError
        return text

    return Param(name, "", read, words.PARTNERS.format(most=MOST_PARTNER))


def _in_batch() -> Param:
    """Layer and head that are seen in a batch; "" is the head that would give padding most."""

    def read(text: str, shown: Shown) -> str:
        found = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", text)
        site = shown.facts.sites[0]
        if text and (found is None or int(found[1]) >= len(site.records) or int(found[2]) >= site.n_heads):
            raise ValueError
        return text

    return Param("at", "", read, words.PLACES)


def _key() -> Param:
    def default(shown: Shown) -> str:
        return "" if shown.look is None else str(shown.look.key)

    plain = whole("key", default, lambda shown: shown.widest("key"), empty=True)

    def read(text: str, shown: Shown) -> str:
        """A room without keys says none: then the row's own look is meant."""
        return plain.read(text, shown) or default(shown)

    return replace(plain, read=read)


def _stop() -> Param:
    """Where the walk through the masks stands; 0 is beside it."""

    def read(text: str, _: Shown) -> str:
        if text not in ("0", *STOPS):
            raise ValueError
        return text

    return Param("stop", lambda shown: "1" if shown.is_shown else "0", read, f"0 to {STOPS[-1]}")


def _scope() -> Param:
    def read(text: str, _: Shown) -> str:
        if text not in ("all", "one"):
            raise ValueError
        return text

    return Param("scope", lambda shown: "one" if shown.is_shown else "all", read, "all, one")


def _leaky() -> Param:
    """Whose leak is shown: of this model with its mask taken away, or of the one that learnt without."""

    def read(text: str, _: Shown) -> str:
        if text not in ("taken", "taught"):
            raise ValueError
        return text

    return Param("leaky", lambda shown: "taught" if shown.facts.spec.id == LEAKY else "taken", read, "taken, taught")


def _at(name: str, i: int) -> Param:
    def default(shown: Shown) -> str:
        if shown.look is not None:
            return str((shown.look.layer, shown.look.head, shown.look.query)[i])
        return str(shown.openings[shown.site][i])

    return whole(name, default, lambda shown: shown.widest(name))


PARAMS: tuple[Param, ...] = (
    one_of("lab", *LABS),
    _site(),
    _at("layer", 0),
    _at("head", 1),
    _at("query", 2),
    pinned(),
    _key(),
    _stop(),
    one_of("mask", "model", "none", "causal", "window"),
    _window(),
    one_of("first", "off", "on"),
    one_of("when", "before", "after"),
    one_of("fill", *FILLS),
    _scope(),
    _cells("forbid"),
    _cells("allow"),
    one_of("show", "weights", "scores"),
    one_of("whose", "yours", "model"),
    _text("partner"),
    one_of("side", "right", "left"),
    one_of("pad", "on", "off"),
    _in_batch(),
    whole("sentence", "", lambda _: MOST_TEXTS, empty=True),
    _leaky(),
    _text("written"),
    _text("instead"),
    one_of("sentence_of", "example", "yours"),
    _place("encoder"),
    _place("decoder"),
    _place("cross"),
    whole("row", "", lambda shown: max(shown.widest("query"), 1), empty=True),
    one_of("scale", "on", "off"),
    one_of("table", "off", "on"),
    one_of("code", "off", "attn_mask", "key_padding_mask", "attention_mask", "mask_mod"),
    one_of("sink", "in", "out"),  # whether colours leave out the token that heads rest on
)


def block_bytes(n_key: int) -> int:
    """Bytes of the rows of one head that are sent at once, of a text that is shown by row."""
    return BLOCK * n_key * (4 + 1)


def site_of(facts: Facts, name: str) -> Site | None:
    """The kind of attention of this name that the run has."""
    return next((site for site in facts.sites if site.id == name), None)


def demonstrated(values: Mapping[str, str], site: Site) -> tuple[int, int] | None:
    """The query and the key whose look the walk forbids where it stands; None where it forbids none."""
    query, key = int(values["query"]), values["key"]
    if values["stop"] not in FORBIDDING or not key or query >= site.n_query or int(key) >= site.n_key:
        return None
    return query, int(key)


def ladder(heads: int) -> list[int]:
    """In how many heads a look is forbidden, step by step: one by one at first, then in larger strides, up to all."""
    some = [*range(11), 12, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000, 5000]
    return [n for n in some if n < heads] + [heads]


def forbidden_in(facts: Facts, site: Site, cell: tuple[int, int], heads: Sequence[tuple[int, int]]) -> tuple[Edit, ...]:
    """One look forbidden in these heads (layer, head), or in every one where these are all."""
    stack = ("encoder" if site.id == "encoder" else "decoder") if len(facts.sites) > 1 else None
    at = "cross_attn" if site.id == "cross" else "attn"
    if len(heads) == len(site.records) * site.n_heads:
        return (EditMask(stack, site=at, cells=(cell,)),)
    return tuple(EditMask(stack, layer, head=head, site=at, cells=(cell,)) for layer, head in sorted(heads))


def edits(values: Mapping[str, str], facts: Facts) -> tuple[Edit, ...]:
    """What the choices ask of the run: none where it is the model's own mask. Raises KeyError for a site that it does not have."""
    site = site_of(facts, values["site"])
    if site is None:
        raise KeyError(values["site"])
    several = len(facts.sites) > 1
    stack = ("encoder" if site.id == "encoder" else "decoder") if several else None
    at = "cross_attn" if site.id == "cross" else "attn"
    layer = int(values["layer"]) if values["scope"] == "one" else None
    head = int(values["head"]) if values["scope"] == "one" else None
    found: list[Edit] = []
    kind = values["mask"]
    if site.id != "cross" and kind != "model":
        if kind == "window":
            found.append(SetMask("window", int(values["window"]), stack=stack, layer=layer, head=head))
        else:
            found.append(SetMask("none" if kind == "none" else "causal", stack=stack, layer=layer, head=head))
    if kind == "window" and values["first"] == "on" and site.id != "cross":
        first = tuple((query, range(1)) for query in range(site.n_query))
        found.append(EditMask(stack, layer, allowed=True, head=head, site=at, cells=first))
    if (look := demonstrated(values, site)) is not None:
        found.append(EditMask(stack, layer, head=head, site=at, cells=(look,)))
    for name, allowed in (("forbid", False), ("allow", True)):
        if painted := within(cells(values[name]), site.n_query, site.n_key):
            found.append(EditMask(stack, layer, allowed=allowed, head=head, site=at, cells=tuple(painted)))
    where = at if several else None
    if values["when"] == "after":
        found.append(MaskAfterSoftmax(stack, layer, where))
    elif (fill := FILLS[values["fill"]]) is not None:
        found.append(MaskFill(fill, stack, layer, where))
    return tuple(found)


def sentences(text: str, partner: str) -> tuple[str, ...]:
    """The texts of a batch: the lines of the box, and those that were added in the room; at most MOST_TEXTS."""
    return tuple(line.strip() for line in (*text.splitlines(), *partner.splitlines()) if line.strip())[:MOST_TEXTS]
