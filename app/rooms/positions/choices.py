"""What a link to Positions may say, and the edits that it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.kit import params as kit_params
from app.kit.params import Param
from app.rooms.positions import words
from app.session import examples
from app.transport import limits
from core.edits import DropPositions, Intervention, SetMask, SetPositions, StackName, SwapWords
from core.edits.edit import Places
from core.errors import InterventionError
from core.model.text import Tokens
from core.service import Facts, Site, shuffled_words

SEEDS = 1_000_000
LONGEST_LINE = 4096  # places on the line of Clocks; a score further apart says nothing new
FEATURES = (0, 4, 10, 20)
LABS = ("swap", "clocks", "beyond", "kinds", "order", "two", "clock", "binary")
FINDINGS = {
    "swap": ("word", "place", "drop", "free"),
    "clocks": ("fast", "slow", "both"),
    "beyond": ("turns", "rules", "cost", "gap"),
    "kinds": ("sin", "lrn", "alibi", "t5", "none"),
}
OF_ORDER = (
    "order",
    "places",
    "seed",
)  # options by which a link without a lab means Order, with which the room opened once
FARTHEST = 65_536  # words apart, of Clocks
FACTORS = ("4", "1", "2", "8", "16")  # of Beyond: the first by default
GAPS = (0, *(2**i for i in range(4, 18)))  # places left empty
MOST_FEATURES = 6


def stacks_of(run: Facts) -> tuple[StackName, ...]:
    """The stacks whose words can be moved."""
    return tuple(name for name, layers in run.config.stacks if layers)


def tokens_of(run: Facts, stack: str) -> Tokens:
    return run.tokens("target" if stack == "decoder" else "source")


def words_of(tokens: Tokens) -> list[int]:
    """The tokens that can be moved: no special ones, and no padding."""
    return [i for i in range(len(tokens)) if not (tokens.special[i] or tokens.padding[i])]


def opening_site(run: Facts) -> Site:
    """Where the room opens: the words of a text look at each other there."""
    return next(site for site in run.sites if site.id != "cross")


def opening_head(run: Facts) -> tuple[int, int]:
    """Layer and head by default: those of the model's first example that is about this attention."""
    site = opening_site(run)
    shown = examples.shown_for(run.spec.id.partition("@")[0])
    found = next((one for one in shown if one.site in ("", site.id)), shown[0])
    return min(found.layer, len(site.records) - 1), min(found.head, site.n_heads - 1)


def opening_query(run: Facts) -> int:
    """The query that is locked by default: the example's token, or the last word."""
    tokens = run.tokens(opening_site(run).query)
    found = examples.shown_for(run.spec.id.partition("@")[0])[0].query_among(list(tokens.labels))
    spoken = [i for i in words_of(tokens) if any(letter.isalnum() for letter in tokens.labels[i])]
    return found if found is not None else (spoken or [0])[-1]


def longest(run: Facts) -> int:
    return max(len(run.source), 0 if run.target is None else len(run.target))


def _layers(run: Facts) -> int:
    return max(len(site.records) for site in run.sites)


def _site(text: str, run: Facts) -> str:
    if text not in {site.id for site in run.sites}:
        raise ValueError
    return text


def _stack(text: str, run: Facts) -> str:
    if text not in stacks_of(run):
        raise ValueError
    return text


def _query(text: str, run: Facts) -> str:
    """Explore, whose links may come here, has none locked where it says so."""
    return str(opening_query(run)) if text == "none" else str(limits.whole(text, 0, longest(run) - 1))


def _swap(text: str, run: Facts) -> str:
    if not text:
        return ""
    first, second = sorted(limits.read(part) or 0 for part in text.split("-"))
    if not any({first, second} <= set(words_of(tokens_of(run, stack))) for stack in stacks_of(run)) or first == second:
        raise ValueError
    return f"{first}-{second}"


def swap_allowed(run: Facts, stack: str = "") -> str:
    """Which two words of a stack may change places, as a sentence says it."""
    movable = words_of(tokens_of(run, stack or stacks_of(run)[0]))
    if len(movable) < 2:
        return words.SWAP_NONE
    return words.SWAP_ALLOWED.format(example=f"{movable[0]}-{movable[-1]}")


def read_places(text: str) -> tuple[int, ...]:
    """Places as core writes them in a link. Raises ValueError for anything else."""
    try:
        found = Places().read(text)
        return () if found is None else Places().kept(found, "places")
    except InterventionError as error:
        raise ValueError(str(error)) from None


def _places(text: str, run: Facts) -> str:
    if not text:
        return ""
    found = read_places(text)
    if not any(sorted(found) == list(range(len(tokens_of(run, stack)))) for stack in stacks_of(run)):
        raise ValueError
    return Places().text_of(found)


def _places_allowed(run: Facts) -> str:
    n = len(tokens_of(run, stacks_of(run)[0]))
    return words.PLACES_ALLOWED.format(most=n - 1, example=Places().text_of((*range(1, n), 0)))


def _features(text: str, run: Facts) -> str:
    found = sorted({limits.whole(part, 0, run.config.d_model - 1) for part in text.split(",")})
    if not 1 <= len(found) <= MOST_FEATURES:
        raise ValueError
    return ",".join(map(str, found))


def line(run: Facts) -> int:
    """The last place on the line of Clocks."""
    return min(LONGEST_LINE, max(40, -(-longest(run) // 10) * 10))


def _place(name: str) -> Param:
    def read(text: str, run: Facts) -> str:
        return str(limits.whole(text, 0, line(run))) if text else ""

    return Param(name, "", read, lambda run: words.PLACE_ALLOWED.format(most=line(run)))


def _row(name: str, default: int) -> Param:
    """A row of a table; of models without one, a place all the same."""

    def opening(run: Facts) -> str:
        return str(min(default, max(0, run.config.n_ctx - 1)))

    return kit_params.whole(name, opening, lambda run: max(1, run.config.n_ctx))


def _meant(said: Mapping[str, str]) -> str:
    """The lab of a link that names none: that of its finding, or Order where it says something of an order."""
    named = next((lab for lab, found in FINDINGS.items() if said.get("find", "") in found), "")
    return named or ("order" if any(said.get(name) for name in OF_ORDER) else "")


PARAMS = (
    replace(kit_params.one_of("lab", *LABS), implied=_meant),
    kit_params.one_of("find", "", *(name for found in FINDINGS.values() for name in found)),
    kit_params.one_of("order", "drop", "trained", "words"),
    Param("swap", "", _swap, swap_allowed),
    kit_params.whole("seed", "", lambda _: SEEDS, empty=True),
    Param("places", "", _places, _places_allowed),
    Param("stack", lambda run: stacks_of(run)[0], _stack, lambda run: ", ".join(stacks_of(run))),
    Param("site", lambda run: opening_site(run).id, _site, lambda run: ", ".join(site.id for site in run.sites)),
    kit_params.whole("layer", "", _layers, empty=True),
    kit_params.whole("head", "", lambda run: max(site.n_heads for site in run.sites), empty=True),
    Param(
        "query",
        lambda run: str(opening_query(run)),
        _query,
        lambda run: words.PLACE_ALLOWED.format(most=longest(run) - 1),
    ),
    kit_params.whole("key", "", longest, empty=True),
    kit_params.pinned(),
    Param(
        "kind",
        lambda run: run.config.position,
        kit_params.one_of("kind", "learned", "sinusoidal", "rotary", "alibi", "relative").read,
        "learned, sinusoidal, rotary, alibi, relative",
    ),
    _row("i", 20),
    _row("j", 26),
    _row("first", 0),
    Param(
        "features",
        lambda run: ",".join(str(feature) for feature in FEATURES if feature < run.config.d_model),
        _features,
        lambda run: words.FEATURES_ALLOWED.format(most=run.config.d_model - 1),
    ),
    kit_params.one_of("alike", "row", "distance"),
    kit_params.whole("q", lambda run: str(longest(run) - 1), longest),
    kit_params.whole("k", lambda run: str(max(0, longest(run) - 2)), longest),
    _place("m"),
    _place("n"),
    kit_params.whole("t", "7", lambda _: 16),
    kit_params.one_of("cond", "trained", "drop", "free"),  # of two words that change places: with what the model is run
    kit_params.whole("d", "", lambda _: FARTHEST + 1, empty=True),  # words apart; "": as in the text
    kit_params.one_of("shift", "0", "100"),  # places by which both words are moved on
    kit_params.one_of("scaling", "none", "linear", "dynamic", "yarn", "llama3"),  # of longer texts; none: all of them
    kit_params.one_of("factor", *FACTORS),
    kit_params.one_of("gap", "1024", *(str(gap) for gap in GAPS if gap != 1024)),
    kit_params.one_of("sink", "in", "out"),  # whether colours leave out the token that heads rest on
)


def places_of(run: Facts, values: Mapping[str, str]) -> tuple[int, ...]:
    """The place of every token of the stack whose words are moved, as a link asks for it; of another stack's length, in order."""
    tokens = tokens_of(run, values["stack"])
    order = tuple(range(len(tokens)))
    if values["order"] != "words":
        return order
    if values["places"]:
        found = read_places(values["places"])
        return found if len(found) == len(order) else order
    if values["swap"]:
        a, b = map(int, values["swap"].split("-"))
        movable = words_of(tokens)
        return tuple({a: b, b: a}.get(i, i) for i in order) if a in movable and b in movable else order
    return shuffled_words(tokens, int(values["seed"])) if values["seed"] else order


def edits_of(run: Facts, values: Mapping[str, str], places: Sequence[int]) -> tuple[Intervention, ...]:
    """The edits that give the order of a link; none where it is as trained. Of one stack alone where a model has two."""
    stacks = stacks_of(run)
    stack = stacks[stacks.index(values["stack"])] if len(stacks) > 1 else None
    if values["order"] == "drop":
        return (DropPositions(stack),)
    if list(places) == list(range(len(places))):
        return ()
    return (SetPositions(tuple(places), stack),)


def condition(run: Facts, cond: str, stack: StackName) -> tuple[Intervention, ...]:
    """The edits under which two words change places: none, without positions, or without what tells order at all."""
    if cond == "trained":
        return ()
    return (
        DropPositions(stack),
        *((SetMask("none", stack=stack),) if cond == "free" and has_order(run, stack) else ()),
    )


def has_order(run: Facts, stack: str) -> bool:
    """Whether the mask of a stack tells early from late, or near from far, whatever the positions are."""
    return run.config.window is not None or (stack == "decoder" and run.config.causal)


def swap_edits(run: Facts, values: Mapping[str, str], pair: tuple[int, int]) -> tuple[Intervention, ...]:
    """All edits of the run on the text in which two words have changed places."""
    stack = stack_of(run, values)
    return (*condition(run, cond_of(values), stack), SwapWords(*pair, stack))


def cond_of(values: Mapping[str, str]) -> str:
    """With what the model is run: a finding may say so itself."""
    return values["find"] if values["find"] in ("drop", "free") else values["cond"]


def stack_of(run: Facts, values: Mapping[str, str]) -> StackName:
    """The stack whose words a link is about."""
    stacks = stacks_of(run)
    return stacks[stacks.index(values["stack"])]


def pair_of(values: Mapping[str, str], pairs: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """The two words that change places: those of a link, else the first of `pairs`; None where the text has not two."""
    if values["swap"]:
        first, second = map(int, values["swap"].split("-"))
        return first, second
    return next(iter(pairs), None)
