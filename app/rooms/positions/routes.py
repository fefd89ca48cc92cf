"""What the browser asks for once the room is drawn: the change of an order, maps, the proofs, rows of a table, and clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.export import offline
from app.kit import params as kit_params
from app.rooms.positions import choices, export, message, words
from app.rooms.positions.component import OFFLINE
from app.session import examples, models, resolving, service
from app.session.screen import Screen
from app.shell import style
from app.transport import routes
from core.edits import SwapWords
from core.errors import HeadlightError
from core.plan.parameters import concatenated
from core.run.request import Request as RunRequest
from core.service import RULES, Facts, Rule, paper_rules

REACH = 8  # tokens to either side, of the bars by distance
MOST_PROVEN = 256  # tokens: five passes, and every weight of each
BY = 100  # places that a whole text is moved on by
LONGEST = 1 << 20
# The beginning of Lewis Carroll's Alice's Adventures in Wonderland (1865), shortened
ALICE = Path(__file__).with_name("alice.txt").read_text(encoding="utf-8")


async def run_of(linked: RunRequest, there: Screen) -> RunRequest:
    """The run that a link to the room shows: with another order of the words, where that is what it shows."""
    facts = await resolving.facts_of(linked)
    values, _ = kit_params.read(choices.PARAMS, facts, there.params)
    if values["lab"] == "swap":
        pairs = await service.service().pairs_to_swap(linked.key, _side(facts, values))
        pair = choices.pair_of(values, pairs)
        return linked if pair is None else resolving.edited(linked, choices.swap_edits(facts, values, pair))
    if values["lab"] != "order":
        return linked
    return resolving.edited(linked, choices.edits_of(facts, values, choices.places_of(facts, values)))


@routes.cached_route
async def order(request: Request) -> bytes:
    """How far the heads of a site move when the words stand in the order that the parameters ask for, and the edited run's key.

    The parameters are those of a link, and `site` is one of the run's.
    """
    params = request.query_params
    key = params.get("run", "")
    facts = await service.service().facts(key)
    values, notes = kit_params.read(choices.PARAMS, facts, params)
    if notes:
        raise routes.BadParameter(notes[0])
    site = next(site for site in facts.sites if site.id == values["site"])
    places = choices.places_of(facts, values)
    edits = choices.edits_of(facts, values, places)
    other = await service.service().edited(key, edits) if edits else key
    now = await service.service().facts(other) if edits else facts
    change = await service.service().order_change(key, other, site.id, REACH)
    before = after = None
    if message.has_all(site):
        before, after = [(await service.service().heads(run))[site.id] for run in (key, other)]
    about = {"other": other, **export.edited(now)}
    return message.change_message(about, change, before, after, places)


@routes.cached_route
async def swap(request: Request) -> bytes:
    """Two words change places, as the parameters of a link ask for it: which heads follow the word and which the place, and what
    the model would write next."""
    params, ask = request.query_params, service.service()
    key = params.get("run", "")
    facts = await ask.facts(key)
    values, notes = kit_params.read(choices.PARAMS, facts, params)
    if notes:
        raise routes.BadParameter(notes[0])
    side = _side(facts, values)
    pairs = await ask.pairs_to_swap(key, side)
    pair = choices.pair_of(values, pairs)
    if pair is None:
        raise routes.BadParameter(words.NOTHING_TO_SWAP)
    if not set(pair) <= set(choices.words_of(facts.tokens(side))):
        raise routes.BadParameter(words.NOT_TWO.format(allowed=choices.swap_allowed(facts, values["stack"])))
    edits = choices.condition(facts, choices.cond_of(values), choices.stack_of(facts, values))
    before = await ask.edited(key, edits) if edits else key
    after = await ask.edited(key, choices.swap_edits(facts, values, pair))
    site = next(site for site in facts.sites if site.id == values["stack"])
    found = await ask.word_swap(before, after, site.id, pair)
    was = await ask.outcome(before)
    now = await ask.outcome(after, [i for i, _, _ in was.words])
    about = {
        "before": before,
        "after": after,
        "pair": list(pair),
        "pairs": [list(two) for two in pairs],
        "words": [
            [label, float(chance), float(then)] for (_, label, chance), then in zip(was.words, now.asked, strict=True)
        ],
        **export.edited(await ask.facts(after)),
        "condition": export.edited(await ask.facts(before))["again"],
    }
    return message.swap_message(about, found)


@routes.cached_route
async def swapped(request: Request) -> bytes:
    """One head on the text as it was and on the one in which two words have changed places: run, other, record, head, query,
    and the two words as a and b."""
    params = request.query_params
    record, head, query, a, b = (
        routes.number(request, name, 0, LONGEST) for name in ("record", "head", "query", "a", "b")
    )
    run = params.get("run", "")
    found = await service.service().swapped_maps(run, params.get("other") or run, record, head, query, (a, b))
    return message.maps_message(found)


def _side(facts: Facts, values: Mapping[str, str]) -> Literal["source", "target"]:
    """Whose words change places."""
    return "target" if values["stack"] == "decoder" and facts.target is not None else "source"


@routes.answering
async def guest(request: Request) -> Response:
    """A run of a model whose positions are of this kind, where those of the run are not: the same text, if it can be read."""
    params, ask = request.query_params, service.service()
    kind, key = params.get("kind", ""), params.get("run", "")
    facts = await ask.facts(key)
    if facts.config.position != kind:
        facts = await _guest(kind, facts)
    return JSONResponse(message.header(facts) | {"about": export.described(facts, date.today())}, headers=routes.KEPT)


async def _guest(kind: str, facts: Facts) -> Facts:
    """The model that opens, if its positions are of this kind, else one that ships. Raises BadParameter where there is none."""
    names = [models.DEFAULT] if kind == "rotary" else []
    if (home := message.HOMES.get(kind, "")) in models.MODELS:
        names.append(home)
    for name in names:
        for text in (facts.source.text, examples.first_text(models.MODELS[name])):
            try:
                found = await resolving.facts_of(RunRequest(name, (text,)))
            except HeadlightError:
                continue
            if found.config.position == kind:
                return found
            break
    raise routes.BadParameter(words.NO_GUEST.format(kind=kind[:20]))


@routes.answering
async def dials(request: Request) -> Response:
    """The two heads that Clocks opens with: the one that follows the place most, and the one that follows the word, with the query
    and the key that show it best. Null where the text has no two words."""
    key, ask = request.query_params.get("run", ""), service.service()
    facts = await ask.facts(key)
    stack = choices.opening_site(facts).id
    side: Literal["source", "target"] = "target" if stack == "decoder" and facts.target is not None else "source"
    pairs = await ask.pairs_to_swap(key, side)
    if not pairs:
        return JSONResponse({"fast": None, "slow": None}, headers=routes.KEPT)
    edit = SwapWords(*pairs[0], choices.stacks_of(facts)[0])
    found = await ask.word_swap(key, await ask.edited(key, (edit,)), stack, pairs[0])
    return JSONResponse({"fast": asdict(found.place), "slow": asdict(found.word)}, headers=routes.KEPT)


@routes.answering
async def stretches(request: Request) -> Response:
    """The frequencies of rotary positions under each rule for longer texts."""
    found = await service.service().context_extensions(request.query_params.get("run", ""), _factor(request))
    return JSONResponse(message.stretches(found), headers=routes.KEPT)


@routes.answering
async def loss(request: Request) -> Response:
    """The loss at the end of a page of Alice's Adventures in Wonderland, by a rule for longer texts or (drop) without positions."""
    params = request.query_params
    dropped = params.get("rule") == "drop"
    rule = "none" if dropped else _rule(request)
    found = await service.service().end_loss(params.get("run", ""), ALICE, rule, _factor(request), dropped)
    return JSONResponse(asdict(found), headers=routes.KEPT)


@routes.answering
async def gap(request: Request) -> Response:
    """The chance of the next word by how many places are left empty in the text, under one rule for longer texts."""
    key = request.query_params.get("run", "")
    found = await service.service().position_gap(key, _rule(request), _factor(request), choices.GAPS)
    return JSONResponse(asdict(found), headers=routes.KEPT)


def _rule(request: Request) -> Rule:
    asked = request.query_params.get("rule", "")
    if asked not in RULES:
        raise routes.BadParameter(words.NO_RULE.format(asked=asked[:20], rules=", ".join(RULES)))
    return RULES[RULES.index(asked)]


def _factor(request: Request) -> float:
    asked = request.query_params.get("factor", "")
    if asked not in choices.FACTORS:
        allowed = ", ".join(sorted(choices.FACTORS, key=int))
        raise routes.BadParameter(words.NO_FACTOR.format(asked=asked[:20], allowed=allowed))
    return float(asked)


@routes.answering
async def proof(request: Request) -> Response:
    """Words moved without positions, with them, and positions moved: the largest differences."""
    params = request.query_params
    key = params.get("run", "")
    facts = await service.service().facts(key)
    if len(facts.source) > MOST_PROVEN:
        raise routes.BadParameter(words.TOO_MANY.format(most=MOST_PROVEN, n=len(facts.source)))
    try:
        places = choices.read_places(params.get("places", ""))
    except ValueError:
        places = ()
    if not places:
        raise routes.BadParameter(words.NOT_PLACES)
    found = await service.service().equivariance(key, places)
    said = {"without": found.without, "trained": found.trained, "same": found.same, "masked": found.masked}
    return JSONResponse(said, headers=routes.KEPT)


@routes.answering
async def shift(request: Request) -> Response:
    """What it does to move the whole text on by so many places."""
    key = request.query_params.get("run", "")
    facts = await service.service().facts(key)
    if len(facts.source) > MOST_PROVEN:
        raise routes.BadParameter(words.TOO_MANY.format(most=MOST_PROVEN, n=len(facts.source)))
    found = await service.service().moved_on(key, BY)
    return JSONResponse({"by": found.by, "scores": found.scores, "weights": found.weights}, headers=routes.KEPT)


@routes.answering
async def known(request: Request) -> Response:
    """How each stack of a run knows the order of its tokens, and the rules that it has not."""
    found = await service.service().positions(request.query_params.get("run", ""))
    said: dict[str, object] = {
        "stacks": [message.stack_message(stack) for stack in found],
        "rules": message.rules(paper_rules()),
    }
    said["beside"] = asdict(concatenated((await service.service().facts(request.query_params.get("run", ""))).config))
    return JSONResponse(said, headers=routes.KEPT)


@routes.answering
async def rows(request: Request) -> Response:
    """Rows of a stack's own table of positions."""
    first = routes.number(request, "first", 0, LONGEST)
    most = routes.number(request, "rows", 1, LONGEST)
    params = request.query_params
    found = await service.service().position_rows(params.get("run", ""), params.get("stack", ""), first, most)
    return routes.message(message.rows_message(found, first))


@routes.answering
async def clock(request: Request) -> Response:
    """One query and one key of a head before they were turned."""
    record, head, query, key = (routes.number(request, name, 0, LONGEST) for name in ("record", "head", "query", "key"))
    found = await service.service().rotary_pairs(request.query_params.get("run", ""), record, head, query, key)
    return JSONResponse(message.clock_message(found), headers=routes.KEPT)


ROUTES = [
    Route("/headlight/positions/page", offline.answer(OFFLINE, style.page_style)),
    Route("/headlight/positions/order", order),
    Route("/headlight/positions/swap", swap),
    Route("/headlight/positions/swapped", swapped),
    Route("/headlight/positions/guest", guest),
    Route("/headlight/positions/dials", dials),
    Route("/headlight/positions/stretches", stretches),
    Route("/headlight/positions/loss", loss),
    Route("/headlight/positions/gap", gap),
    Route("/headlight/positions/proof", proof),
    Route("/headlight/positions/shift", shift),
    Route("/headlight/positions/known", known),
    Route("/headlight/positions/rows", rows),
    Route("/headlight/positions/clock", clock),
]
