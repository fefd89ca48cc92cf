"""What a link to a request says."""

from __future__ import annotations

from app.session.models import MODELS, spec_of
from core.interventions import to_text
from core.request import Request

EDITS = "with"  # in the address: the edits of the run, as core.interventions writes them


def model_of(request: Request) -> str:
    """The id of the model that a request is for, also where it asks for a point along its training."""
    return request.model_id if request.model_id in MODELS else request.model_id.partition("@")[0]


def link(request: Request) -> dict[str, str]:
    """What a link to this request says."""
    model = model_of(request)
    point = request.model_id[len(model) + 1 :]
    said = {"model": spec_of(model).title, "text": request.texts[0]}
    said |= {"target": request.target_text} if request.target_text else {}
    said |= {EDITS: to_text(request.interventions)} if request.interventions else {}
    return said | ({"step": str(int(point))} if point else {})
