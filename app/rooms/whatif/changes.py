"""What is changed in the room, as the texts of its link say it: what is swept, and what the changed run is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from app.kit import numbers
from app.kit.params import Param, one_of, pinned, whole
from app.rooms.whatif import words
from app.session import examples, resolving, screen
from app.session.models import MODELS, spec_of
from core.edits import Ablate, Edit, EditMask, from_text, to_text
from core.errors import InterventionError
from core.run.request import Request
from core.service import MAX_EDGES, AblateHeads, BlockEdges, Component, Facts, PatchHeads, PatchRequest, SweepRequest

ROOM = "whatif"  # in links
SWEEPS = ("heads", "looks", "patch", "parts")  # of a decoder that writes, heads and patch are parts as well
KINDS: dict[str, Literal["head", "mlp", "resid"]] = {"z": "head", "m": "mlp", "r": "resid"}  # of parts, in links
LONGEST = 2_000  # characters of another sentence in a link


@dataclass(frozen=True)
class Place:
    """One kind of attention whose heads are swept."""

    id: str
    stack: str
    site: Literal["attn", "cross_attn"]
    layers: int
    heads: int
    kv_heads: int
    query: str
    key: str


def places(shown: Facts) -> tuple[Place, ...]:
    """The kinds of attention of a run, in its order."""
    found = []
    for site in shown.sites:
        record = shown.records[site.records[0]]
        found.append(
            Place(
                site.id,
                record.stack,
                record.site,
                len(site.records),
                site.n_heads,
                site.n_kv_heads,
                site.query,
                site.key,
            )
        )
    return tuple(found)


def place_of(shown: Facts, site: str) -> Place:
    """One of them; the last where it is not named. Raises KeyError."""
    found = {place.id: place for place in places(shown)}
    return found[site] if site else places(shown)[-1]


def _site(text: str, shown: Facts) -> str:
    return place_of(shown, text).id if text else ""


def _edits(text: str, _: Any) -> str:
    try:
        return to_text(from_text(text))
    except InterventionError as error:
        raise ValueError from error


async def run_of(linked: Request, there: screen.Screen) -> Request:
    """The run that a link to the room shows: with the changes that are kept there. Raises InterventionError."""
    return resolving.edited(linked, base(there.params))


def _against(text: str, _: Any) -> str:
    if screen.is_link(text):
        try:
            there = screen.from_link(text)  # of a model that there is, with edits that can be read
            if there.room == ROOM:
                base(there.params)
        except InterventionError as error:
            raise ValueError from error
    elif len(text) > LONGEST:
        raise ValueError
    return text


def beside(said: Mapping[str, str], shown: Facts, own: tuple[Edit, ...] = ()) -> Request:
    """The run of another sentence, and of another model where one is chosen, that is held against the one on the screen.

    It is before what is changed in it, with the edits of the one on the screen, its `own`.
    """
    against, other = said["against"], said["other"]
    model = other or shown.spec.id
    if shown.conversation is None:
        target = None if shown.target is None else shown.target.text
        return Request(model, (against or shown.source.text,), target, own)
    text, answer = shown.conversation
    return Request(model, (against or text,), answer or None, own, chat=True)


def model_ids() -> dict[str, str]:
    """What `other` may say -> its title: every model, and every step of the training of one that has any."""
    found = {}
    for name, spec in MODELS.items():
        found[name] = spec.title
        for point, _ in spec.points[:-1]:
            found[f"{name}@{point}"] = words.AT_STEP.format(title=spec.title, step=numbers.whole(int(point)))
    return found


def steps(shown: Request) -> list[tuple[str, str]]:
    """The points along the training of the model on the screen that another run may be of: (what `other` says, the step)."""
    model = screen.model_of(shown)
    points = [point for point, _ in spec_of(model).points]
    found = [(f"{model}@{point}", point) for point in points[:-1]] + [(model, point) for point in points[-1:]]
    return [(name, numbers.whole(int(point))) for name, point in found if name != shown.model_id]


def _other(text: str, _: Any) -> str:
    if text and text not in model_ids():
        raise ValueError
    return text


def _head(text: str, shown: Facts) -> str:
    """ "decoder.5.3": a head by its kind of attention, layer and number."""
    if not text:
        return ""
    site, layer, head = text.split(".")
    place = place_of(shown, site)
    if not (site and int(layer) < place.layers and int(head) < place.heads):
        raise ValueError
    return f"{place.id}.{int(layer)}.{int(head)}"


def _part(text: str, shown: Facts) -> str:
    """An MLP or the stream at a word; a head is chosen by its layer and number, as everywhere."""
    found = part_of(text, shown)
    if found is not None and found.kind == "head":
        raise ValueError
    return part_id(found) if found else ""


def _into(text: str, shown: Facts) -> str:
    """A head by its layer and number, such as 23.3, whose paths from all earlier ones are drawn."""
    if not text:
        return ""
    found = part_of(f"z{text}", shown)
    return part_id(found)[1:] if found else ""


def _tokens(shown: Facts) -> int:
    return max(len(shown.source), len(shown.target or ()))


def _place(name: str, below: Callable[[Facts], int]) -> Param:
    """A whole number, or nothing; Explore writes "none" for a query that is let go."""
    param = whole(name, "", below, empty=True)
    return replace(param, read=lambda text, shown: param.read("" if text == "none" else text, shown))


def own_pair(shown: Facts) -> str:
    """The text that opens beside an example; "" where no part can be taken from it, and for a text of one's own."""
    if not has_parts(shown) or shown.conversation is not None:
        return ""
    return examples.other_of(shown.spec.id, shown.source.text)


def _how(said: Mapping[str, str]) -> str:
    """How heads are silenced by older links."""
    return said.get("by", "zero") if said.get("sweep") == "heads" else ""


def _measure(said: Mapping[str, str]) -> str:
    """Older links of silent heads are in points; with another sentence there is a lead, which does not saturate."""
    return "ld" if said.get("against") else "p" if said.get("sweep") == "heads" else ""


PARAMS = (
    replace(one_of("sweep", *SWEEPS), default=lambda shown: "parts" if has_parts(shown) else "heads"),
    one_of("by", "zero", "mean"),
    one_of("group", "off", "on"),
    one_of("pick", "on", "off"),
    one_of("only", "all", "one"),
    one_of("where", "all", "last"),
    Param("site", "", _site, lambda shown: ", ".join(place.id for place in places(shown))),
    _place("layer", lambda shown: max(place.layers for place in places(shown))),
    _place("head", lambda shown: shown.config.n_heads),
    _place("query", _tokens),
    pinned(),
    _place("key", _tokens),
    whole("at", "", lambda shown: len(shown.target or shown.source), empty=True),
    Param("edits", "", _edits, words.EDITS_ALLOWED),
    Param("against", own_pair, _against, words.AGAINST_ALLOWED),
    Param("other", "", _other, words.OTHER_ALLOWED),
    Param("moved", "", _head, words.MOVED_ALLOWED),
    replace(one_of("how", "patch", "zero", "mean"), implied=_how),
    replace(
        one_of("measure", "ld", "lp", "p"), default=lambda shown: "ld" if own_pair(shown) else "lp", implied=_measure
    ),
    whole("answer", "", lambda shown: shown.config.vocab_size, empty=True),
    whole("rival", "", lambda shown: shown.config.vocab_size, empty=True),
    Param("part", "", _part, words.PART_ALLOWED),
    one_of("list", "z", "m", "r"),
    one_of("draw", "map", "paths"),
    Param("into", "", _into, words.INTO_ALLOWED),
    one_of("low", "maps", "tests", "check"),
)


def has_parts(shown: Facts) -> bool:
    """Whether each part of the model can be taken from another run: of a decoder that writes."""
    return shown.config.kind == "decoder" and shown.writes


def has_map(said: Mapping[str, str], shown: Facts) -> bool:
    """Whether the map of all parts is on the screen, and not what one change does to the whole run. As browser/opening.js."""
    is_beside = said["pick"] == "off" and (said["edits"] or said["against"] not in ("", own_pair(shown)))
    return has_parts(shown) and said["sweep"] != "looks" and said["group"] == "off" and not (said["other"] or is_beside)


def asked_parts(said: Mapping[str, str], shown: Facts, other: str | None) -> PatchRequest:
    """The lead, and what every part is set to; `other` is the key of the run that parts are taken from."""
    answer, rival = number(said.get("answer")), number(said.get("rival"))
    to = cast(Any, {"patch": "other"}.get(said["how"], said["how"]))
    return PatchRequest(other, to, asked_behind(said, shown), answer, rival)


def part_of(text: str, shown: Facts) -> Component | None:
    """ "z23.3" is a head, "m21" an MLP, "r23.13" the stream at a token after a layer: of the last stack. Raises ValueError."""
    if not text:
        return None
    kind, numbers = KINDS[text[0]], [int(one) for one in text[1:].split(".")]
    layer, at = (*numbers, 0) if kind == "mlp" else numbers
    below = {"head": shown.config.n_heads, "mlp": 1, "resid": _tokens(shown)}[kind]
    if not (0 <= layer < shown.config.stacks[-1][1] and 0 <= at < below):
        raise ValueError
    return Component(kind, layer, at)


def part_id(part: Component) -> str:
    """The text that part_of() reads."""
    letter = next(letter for letter, kind in KINDS.items() if kind == part.kind)
    return f"{letter}{part.layer}" if part.kind == "mlp" else f"{letter}{part.layer}.{part.at}"


def is_long(shown: Facts) -> bool:
    """Whether there are too many looks to cut them all."""
    return _tokens(shown) > MAX_EDGES


def asked_behind(said: Mapping[str, str], shown: Facts) -> int | None:
    """The position whose prediction is asked about; None for the last, and for a model that answers with vectors."""
    return number(said.get("at")) if shown.writes else None


def classes(shown: Facts) -> dict[str, Any] | None:
    """How a classifier answers: the number of its classes, how its numbers are read, and from which token; None for other models."""
    found = shown.spec.classes
    if found is None:
        return None
    at = {"first": 0, "last": len(shown.source) - 1}.get(found.reads)
    return {"n": len(found.names), "kind": found.kind, "at": at}


def sorts(shown: Facts) -> bool:
    """Whether the answer is a class with a probability."""
    return shown.spec.classes is not None and shown.spec.classes.kind != "numbers"


def number(text: str | None) -> int | None:
    return int(text) if text else None


def base(said: Mapping[str, str]) -> tuple[Edit, ...]:
    """The edits that hold in every row of the sweep. Raises InterventionError."""
    return from_text(said.get("edits", ""))


def picked(said: Mapping[str, str], shown: Facts) -> tuple[Edit, ...]:
    """The edits that are looked at: a silenced head, or several that share keys and values, or a look that is cut.

    None for a head of another run, and for none.
    """
    if said.get("pick") == "off" or said.get("sweep") == "patch":
        return ()
    place = place_of(shown, said.get("site", ""))
    stack, layer, head = cast(Any, place.stack), number(said.get("layer")), number(said.get("head"))
    if said.get("sweep") == "looks":
        query, key = number(said.get("query")), number(said.get("key"))
        if query is None or key is None:
            return ()
        if said.get("only") == "one":
            return (EditMask(stack, layer, query, key, head=head, site=place.site),)
        return (EditMask(stack, None, query, key, site=place.site),)
    if layer is None or head is None:
        return ()
    size = place.heads // place.kv_heads if said.get("group") == "on" else 1
    first, by = head - head % size, cast(Any, said.get("by", "zero"))
    return tuple(Ablate(stack, layer, one, place.site, by) for one in range(first, first + size))


def asked(said: Mapping[str, str], shown: Facts, other: str, token: int | None = None) -> SweepRequest:
    """What is swept; `other` is the key of the run that heads are taken from, `token` the answer, None for the likeliest."""
    position = asked_behind(said, shown)
    if said.get("sweep") == "patch":
        return PatchHeads(other, cast(Any, said.get("where", "all")), position, token)
    if said.get("sweep") != "looks":
        return AblateHeads(cast(Any, said.get("by", "zero")), position, token, said.get("group") == "on")
    place = place_of(shown, said.get("site", ""))
    one = said.get("only") == "one"
    query = number(said.get("query")) if is_long(shown) else None
    layer, head = (number(said.get(name)) if one else None for name in ("layer", "head"))
    return BlockEdges(place.site, place.stack, layer, head, query, position, token)
