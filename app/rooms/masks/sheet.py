"""What the browser gets of a run: the scores of its heads before any mask, its masks, and what it makes of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from app import languages
from app.attention import picture
from app.kit import numbers
from app.rooms.masks import choices, export, words
from app.rooms.masks.choices import MOST_ROWS, SHOWN, WHOLE, Look, Shown
from app.session import examples
from app.transport.messages import Body, float32
from core.errors import HeadlightError
from core.model.rules import REASONS
from core.service import Facts, Outcome, ScoresAndMasks, Service, Site

AT_ONCE = 300_000  # bytes of scores that come with the room; other layers are asked for later
LATER = 1_500_000  # of one answer
NOTHING_SENT: dict[str, Any] = {"sent": [], "offset": 0, "masks": [], "mask_of": []}
SHORT = 4  # letters: shorter words are mostly grammar, and no head's business with them is worth opening on


Place = tuple[str, int, int, int]  # site, layer, head, query


@dataclass(frozen=True, eq=False)
class Opened:
    """A run, ready to be drawn."""

    shown: Shown
    masked: dict[str, ScoresAndMasks]  # empty for a text that is shown by row
    outcome: Outcome

    look: Look | None = None  # which the room forbids to begin with
    # Of a text that is shown by row: whether a kind of attention hides the future, and the rows [key] that are known, scores and reasons
    causal: Mapping[str, bool] = field(default_factory=dict)
    rows: Mapping[Place, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @property
    def is_by_row(self) -> bool:
        return not self.masked

    def look_of(self, site: str, layer: int, head: int, query: int, key: str = "") -> Look | None:
        """The look of a row that is forbidden to show what a mask does: the one chosen, or else its strongest at another word of the
        text, that is not the first one. None in a row that has no such look."""
        keys = self.shown.facts.tokens(site_named(self.shown.facts, site).key)
        if self.is_by_row:
            scores, reasons = self.rows[site, layer, head, query]
        else:
            found = self.masked[site]
            mask, scores = mask_of(found, layer, head), found.scores[layer][head][query]
            reasons = np.zeros(len(scores), np.uint8) if mask is None else mask[query]
        row = weights_of(scores[None], reasons[None])[0]
        own = site != "cross"
        hidden = reasons > 0
        if key and int(key) < len(row) and not hidden[int(key)] and not (own and int(key) == query):
            return Look(site, layer, head, query, int(key))
        row[hidden | np.array(keys.special, bool)] = -1.0
        if own:
            row[[0, query]] = -1.0
        at = int(np.argmax(row))
        return Look(site, layer, head, query, at) if row[at] >= 0 else None


def site_named(facts: Facts, name: str) -> Site:
    """The kind of attention of this name. Raises KeyError where the run has none of it."""
    site = choices.site_of(facts, name)
    if site is None:
        raise KeyError(name)
    return site


async def with_row(service: Service, found: Opened, place: Place) -> Opened:
    """The same with one more row, where a text is shown by row. Raises IndexError for a place that the run does not have."""
    site, layer, head, query = place
    if not found.is_by_row or place in found.rows:
        return found
    of = site_named(found.shown.facts, site)
    if not (layer < len(of.records) and head < of.n_heads and query < of.n_query):
        raise IndexError(place)
    scores, reasons = await service.masked_rows(found.shown.facts.key, of.id, layer, head, (query, query + 1))
    return replace(found, rows={**found.rows, place: (scores[0], reasons[0])})


async def _by_row(service: Service, facts: Facts) -> Opened:
    """A long text: no map as a whole, but the row that the room opens on. Raises Refused where even a few rows are too much to send."""
    longest = max(len(facts.source), len(facts.target or ()))
    if (size := choices.block_bytes(longest)) > MOST_ROWS:
        own = {
            "n": numbers.whole(longest),
            "size": languages.decimal(f"{size / 1e6:.1f}"),
            "most": numbers.fixed(MOST_ROWS / 1e6, 1),
        }
        raise HeadlightError(words.TOO_LONG.format(tokens=numbers.whole(longest_shown()), **own))
    links = {picture.id_of(link): (link.layer, link.head, link.query) for link in await service.openings(facts.key)}
    found = await service.opening_look(facts.key)
    name = picture.id_of(found)
    openings: dict[str, tuple[int, int, int]] = {
        site.id: example_of(facts, site) or links.get(site.id, (0, 0, 0)) for site in facts.sites
    }
    example = None if name == "decoder" and facts.writes else example_of(facts, site_named(facts, name))
    layer, head, query = openings[name] = example or (found.layer, found.head, found.query)
    first = {site.id: (await service.masked_rows(facts.key, site.id, 0, 0, (0, 1)))[1][0] for site in facts.sites}
    causal: dict[str, bool] = {name: len(row) > 1 and REASONS[row[1]] == "future" for name, row in first.items()}
    made = Opened(Shown(facts, openings), {}, await service.outcome(facts.key), causal=causal)
    made = await with_row(service, made, (name, layer, head, query))
    return replace(made, look=made.look_of(name, layer, head, query, "" if example else str(found.key)))


def longest_shown() -> int:
    """Tokens of the longest text that is shown by row."""
    return MOST_ROWS // choices.block_bytes(1)


async def opened(service: Service, facts: Facts) -> Opened:
    """A run with the scores of all its heads; of a long text with a row. Raises Refused for one that is too long for that."""
    if max(len(facts.source), len(facts.target or ())) > SHOWN:
        return await _by_row(service, facts)
    masked: dict[str, ScoresAndMasks] = {site.id: await service.masked(facts.key, site.id) for site in facts.sites}
    links = {picture.id_of(link): (link.layer, link.head, link.query) for link in await service.openings(facts.key)}
    openings: dict[str, tuple[int, int, int]] = {}
    for site in facts.sites:
        # the decoder of a model that writes opens on its last row, where a mask changes the next word
        known = None if site.id == "decoder" and facts.writes else example_of(facts, site) or links.get(site.id)
        if known is None:
            rest = await service.sink(facts.key, site.id)
            known = opening(facts, site, masked[site.id], rest.key if rest and rest.is_sink else None)
        openings[site.id] = known
    found = await service.opening_look(facts.key)
    name = picture.id_of(found)
    example = (
        None if name == "decoder" and facts.writes else example_of(facts, site_named(facts, name))
    )  # as on Explore
    openings[name] = example or (found.layer, found.head, found.query)
    first = Opened(Shown(facts, openings), masked, await service.outcome(facts.key))
    layer, head, query = openings[name]
    return replace(first, look=first.look_of(name, layer, head, query, "" if example else str(found.key)))


def beginning(facts: Facts, most: int) -> str:
    """The beginning of a long text, in whole words: at most so many of its tokens; "" where not the text is too long."""
    source = facts.source
    if len(source) <= most:
        return ""
    end = max(stop for _, stop in source.offsets[: most - sum(source.special)])
    return source.text[:end].rsplit(maxsplit=1)[0]


def example_of(facts: Facts, site: Site) -> tuple[int, int, int] | None:
    """Layer, head and query of the example whose text this is, where it is about this attention."""
    shown = examples.EXAMPLES.get(facts.spec.id.partition("@")[0], ())
    own = (one for one in shown if one.text == facts.source.text and (one.site or facts.sites[0].id) == site.id)
    found = next(own, None)
    query = None if found is None else found.query_among(list(facts.tokens(site.query).labels))
    return None if found is None or query is None else (found.layer, found.head, query)


def opening(facts: Facts, site: Site, found: ScoresAndMasks, rest: int | None) -> tuple[int, int, int]:
    """Layer, head and query where the picture of a site opens whose last row is what the model writes after: the strongest look
    at a word of the text, in that row. No special token, no neighbour, not the word itself, and not `rest`, on which most heads rest
    whatever the words are; short words only where there is no longer one.
    """
    queries, keys = facts.tokens(site.query), facts.tokens(site.key)
    weights = np.stack(
        [
            [weights_of(scores, mask_of(found, at, head)) for head, scores in enumerate(layer)]
            for at, layer in enumerate(found.scores)
        ]
    )
    rows = range(len(queries))
    if site.id == "decoder" and facts.writes:
        rows = range(len(queries) - 1, len(queries))
    for least in (SHORT, 1):
        allowed = np.zeros(weights.shape[2:], bool)
        for q in rows:
            for k, label in enumerate(keys.labels):
                away = site.query != site.key or (abs(q - k) > 1 and label != queries.labels[q] and k != rest)
                allowed[q, k] = (
                    away and not keys.special[k] and not queries.special[q] and sum(c.isalpha() for c in label) >= least
                )
        if allowed.any():
            break
    at = int(np.argmax(np.where(allowed, weights, -1.0) if allowed.any() else weights))
    layer, head, query, _ = np.unravel_index(at, weights.shape)
    return int(layer), int(head), int(query)


def mask_of(found: ScoresAndMasks, layer: int, head: int) -> np.ndarray | None:
    """The reasons [query, key] of a head of the layers that were asked for; None where nothing is hidden."""
    which = found.mask_index[layer]
    at = which[head if len(which) > 1 else 0]
    return None if at < 0 else found.masks[at]


def weights_of(scores: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """[query, key] from the scores of one head; a row that may look at nothing is zeros."""
    hidden = scores if mask is None else np.where(mask > 0, -np.inf, scores)
    top = hidden.max(-1, keepdims=True)
    risen = np.exp(hidden - np.where(np.isfinite(top), top, 0))
    total = risen.sum(-1, keepdims=True)
    return risen / np.where(total > 0, total, 1)


def packed(
    found: Opened, values: Mapping[str, str], link: Mapping[str, str], text: str
) -> tuple[dict[str, Any], bytes]:
    """The room as it opens: header and numbers."""
    facts, body = found.shown.facts, Body()
    every = sum(masked.scores.nbytes for masked in found.masked.values())
    sites = []
    for site in facts.sites:
        known = {**described(site), "opening": found.shown.openings[site.id]}
        if found.is_by_row:
            sites.append({**known, "causal": found.causal[site.id], **NOTHING_SENT})
            continue
        masked, layer = found.masked[site.id], int(values["layer"])
        some = range(len(site.records)) if every <= AT_ONCE else [min(layer, len(site.records) - 1)]
        sites.append({**known, **packed_scores(masked, some, body)})
    header = {
        "key": facts.key,
        "title": facts.spec.title,
        "model": facts.spec.id,
        "kind": facts.config.kind,
        "writes": facts.writes,
        "d": facts.config.d_head,
        "divided": facts.config.attn_scale is None,
        "biased": facts.config.position in ("alibi", "relative"),
        "labels": {"source": facts.source.labels, "target": None if facts.target is None else facts.target.labels},
        "turns": picture.turns(facts.source),
        "sites": sites,
        "outcome": outcome(found.outcome),
        "classes": None if facts.spec.classes is None else facts.spec.classes.kind,
        "lines": len(choices.sentences(text, "")),
        "text": text,
        "link": dict(link),
        "about": export.painted(facts, values["site"]),
        "partner": words.PARTNER,
        "isByRow": found.is_by_row,
        "beginnings": {str(most): beginning(facts, most) for most in (WHOLE, SHOWN)} if found.is_by_row else {},
        "look": None if found.shown.look is None else asdict(found.shown.look),
    }
    return header, body.bytes()


def described(site: Site) -> dict[str, Any]:
    return {
        "id": site.id,
        "layers": len(site.records),
        "heads": site.n_heads,
        "kv_heads": site.n_kv_heads,
        "query": site.query,
        "key": site.key,
        "n_query": site.n_query,
        "n_key": site.n_key,
    }


def packed_scores(found: ScoresAndMasks, layers: Any, body: Body) -> dict[str, Any]:
    """Scores of these layers into a body, and where they lie; masks go along."""
    at = [found.layers.index(layer) for layer in layers]
    return {
        "sent": [found.layers[i] for i in at],
        "offset": body.add(float32(found.scores[at])),
        "masks": [body.add(mask.astype("u1")) for mask in found.masks],
        "mask_of": [found.mask_index[i] for i in at],
    }


def outcome(found: Outcome) -> dict[str, Any]:
    """What a run makes of its text, for a header."""
    losses = [round(float(loss), 6) for loss in found.losses]
    return {
        "words": [[i, label, round(chance, 7)] for i, label, chance in found.words],
        "asked": [round(chance, 7) for chance in found.asked],
        "losses": losses,
        "loss": float(found.losses.mean()) if losses else None,
        "numbers": [[name, float(number)] for name, number in found.numbers],
    }


def has_mask(facts: Facts) -> bool:
    """Whether a model continues a text under a causal mask, which can be taken away."""
    return facts.writes and [site.id for site in facts.sites] == ["decoder"] and facts.config.causal
