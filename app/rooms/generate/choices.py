"""What a link to Generate may say: how words are chosen, and the words that were taken."""

from __future__ import annotations

from app.kit.params import Param, number, one_of, whole
from app.rooms.generate import words
from app.transport import limits
from core.service import MAX_WRITTEN, Facts

SEEDS = 1_000_000
MOST_K = 256  # of the likeliest tokens, which the browser knows by name
BEAMS = (2, 5)
BRANCHES = 3  # that are kept beside the one on the screen
OPENS, MOST_OPENED = 26, MAX_WRITTEN  # words that are written at once where nothing is
BETWEEN, APART = ".", "_"  # tokens of a path, and paths


def ids_of(text: str, facts: Facts | None = None) -> tuple[int, ...]:
    """The tokens of a path. Raises ValueError for what is none, or has tokens that the model does not know."""
    most = (1 << 31) if facts is None else facts.config.vocab_size
    found = tuple(limits.whole(part, 0, most - 1) for part in text.split(BETWEEN)) if text else ()
    if len(found) > MAX_WRITTEN:
        raise ValueError
    return found


def _path(text: str, facts: Facts) -> str:
    return BETWEEN.join(map(str, ids_of(text, facts)))


def _others(text: str, facts: Facts) -> str:
    paths = [ids_of(part, facts) for part in text.split(APART)] if text else []
    if len(paths) > BRANCHES or not all(paths):
        raise ValueError
    return APART.join(BETWEEN.join(map(str, path)) for path in paths)


def _path_allowed(facts: Facts) -> str:
    return words.PATH_ALLOWED.format(n=MAX_WRITTEN, most=facts.config.vocab_size - 1)


def _tenth(text: str, _: Facts) -> str:
    """A temperature at which the weight of the words without a name is known."""
    value = float(text) if len(text) <= 12 else float("nan")
    if not 0.1 <= value <= 3:
        raise ValueError
    return f"{round(value, 1):g}"


def _beams(text: str, _: Facts) -> str:
    return str(limits.whole(text, *BEAMS))


def _layers(facts: Facts) -> int:
    return facts.config.n_decoder_layers


OF_TEXT = ("path", "other", "f", "n")  # words after one text are none after another
PARAMS = (
    one_of("how", "sample", "greedy", "beam"),
    Param("t", "0.8", _tenth, words.TEMPERATURE_ALLOWED),
    whole("k", "0", lambda _: MOST_K + 1),
    number("p", 1, 0.05, 1),
    number("minp", 0, 0, 1),
    whole("seed", "3", lambda _: SEEDS),
    Param("beams", "3", _beams, lambda _: words.BEAMS_ALLOWED.format(low=BEAMS[0], high=BEAMS[1])),
    whole("n", str(OPENS), lambda _: MOST_OPENED + 1),  # words that are written where the path has none
    Param("path", "", _path, _path_allowed),
    Param("other", "", _others, _path_allowed),
    whole("f", "", lambda facts: max(len(facts.source), len(facts.target or ())) + MAX_WRITTEN, empty=True),
    whole("layer", "", _layers, empty=True),
    whole("head", "", lambda facts: facts.config.n_heads, empty=True),
    one_of("page", "columns", "layers", "cache", "beams"),
    one_of("show", "own", "set"),  # whether columns are the model's own, or as words are drawn
    one_of("predict", "off", "on"),
    one_of("cache", "with", "without"),
    one_of("sink", "in", "out"),  # whether colours leave out the token that heads rest on
)
