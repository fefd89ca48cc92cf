"""What is on a screen: a room, the run that it is of, and what is chosen there. A link says it, and it can be read from a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from app.session import room as session_room
from app.session.link_names import AS, CHAT, EDITS, OF_THE_RUN
from app.session.models import DEFAULT, MODELS, OF_OLD_LINKS, TITLES, opened, spec_of, trained
from core.edits import InterventionError, from_text, to_text
from core.run.request import Request
from core.service import Facts

OF_THE_PAGE = ("theme", "projector", "frozen", "spotlight", "lang")


@dataclass(frozen=True)
class Screen:
    """One screen. Two that are equal show the same."""

    room: str  # "" is the one in which a visit begins
    request: Request
    params: Mapping[str, str] = field(default_factory=dict)  # of the room: what is chosen, as a link says it

    def said(self) -> dict[str, str]:
        """What a link to it says."""
        room = {session_room.PARAM: self.room} if self.room else {}
        return room | link(self.request) | dict(self.params)


def model_of(request: Request) -> str:
    """The id of the model that a request is for, also where it asks for a point along its training."""
    return request.model_id if request.model_id in MODELS else request.model_id.partition("@")[0]


def link(request: Request) -> dict[str, str]:
    """What a link says of the run alone."""
    model = model_of(request)
    point = request.model_id[len(model) + 1 :]
    said = {"model": spec_of(model).title, "text": request.texts[0]}
    said |= {AS: CHAT} if request.chat else {}
    said |= {"target": request.target_text} if request.target_text else {}
    said |= {EDITS: to_text(request.interventions)} if request.interventions else {}
    return said | ({"step": str(int(point))} if point else {})


def spelled_out(request: Request) -> dict[str, str]:
    """The same with nothing left out because it is as the model opens."""
    spec = spec_of(model_of(request))
    last = {"step": str(max(int(point) for point, _ in spec.points))} if spec.points else {}
    return last | link(request)


def texts_said(facts: Facts) -> dict[str, str]:
    """What a link says of the texts of a run."""
    if facts.conversation is not None:
        text, answer = facts.conversation
        return {"text": text, AS: CHAT} | ({"target": answer} if answer else {})
    target = {"target": facts.target.text} if facts.target is not None and facts.target.text else {}
    return {"text": facts.source.text} | target


def is_link(text: str) -> bool:
    """Whether this is the address of a screen that names its text, and not a text itself."""
    address = text.strip()
    return address.startswith(("http://", "https://", "?")) and "text" in _parts(address)


def carries_old_head(said: Mapping[str, str]) -> bool:
    """Whether a link without a model selects a head of the former default model."""
    layer, head, site = (said.get(name, "") for name in ("layer", "head", "site"))
    has = all(part.isdecimal() and int(part) < most for part, most in ((layer, 6), (head, 12)) if part)
    return bool(layer or head) and has and site in ("", "encoder")


def from_link(address: str) -> Screen:
    """The screen that a link leads to. Raises ValueError for one that names no text, or a model or a step that does not exist.

    Links of this server and of any other say the same. What a link leaves out of the room is as the room opens.
    """
    said = _parts(address)
    text = said.get("text", "")
    if not text:
        raise ValueError("the link names no text")
    model = _model(said.get("model", OF_OLD_LINKS if carries_old_head(said) else DEFAULT))
    if step := said.get("step"):
        points = {str(int(point)): point for point, _ in spec_of(model).points[:-1]}
        last = {str(int(point)) for point, _ in spec_of(model).points[-1:]}
        if step not in points and step not in last:
            raise ValueError(f"{model} has no step {step[:20]!r}")
        model = f"{model}@{points[step]}" if step in points else model
    try:
        edits = from_text(said.get(EDITS, ""))
    except InterventionError as error:
        raise ValueError(str(error)) from error
    request = Request(model, (text,), said.get("target") or None, edits, chat=said.get(AS) == CHAT)
    own = {n: t for n, t in said.items() if n not in (*OF_THE_RUN, *OF_THE_PAGE, session_room.PARAM)}
    return Screen(said.get(session_room.PARAM, ""), request, own)


def _parts(address: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(urlsplit(address.strip()).query, keep_blank_values=True, max_num_fields=100))
    except ValueError:  # an address that is none, or that says a hundred things
        return {}


def _model(named: str) -> str:
    """A model by its id or its title."""
    if named in MODELS or named in opened():
        return named
    found = next((name for name, title in TITLES.items() if title == named), None)
    own = None if found else trained(named)
    if found is None and own is None:
        raise ValueError(f"there is no model {named[:40]!r}")
    return found or str(own and own.id)
