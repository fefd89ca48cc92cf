"""A screen is one value: a link says it, and what is read from the link is the same screen."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from app.session import screen, service
from app.session.models import MODELS, TITLES
from app.session.screen import Screen
from core.edits import Ablate, EditMask
from core.run.request import Request

TEXT = "Ä bär & <b>a cat</b> = 100 % #1?"
POINT = f"copy@{MODELS['copy'].points[0][0]}"


@pytest.mark.parametrize(
    "shown",
    [
        Screen("", service.DEFAULT_REQUEST),
        Screen("masks", Request("storyteller", (TEXT,)), {"lab": "paint", "forbid": ""}),
        Screen("whatif", Request("translator", (TEXT,), "A dog."), {"sweep": "looks", "layer": "1"}),
        Screen("step", Request(POINT, ("abc=abc",)), {"layer": "0"}),
        Screen(
            "explore", Request("storyteller", ("A\nB",), None, (Ablate("decoder", 0, 5), EditMask("decoder", 1, 3, 2)))
        ),
    ],
    ids=lambda shown: shown.room or "first",
)
def test_what_is_read_from_a_link_is_the_screen_that_it_was_made_of(shown: Screen) -> None:
    for base in ("http://localhost:8501/", "https://school.test/base/", ""):
        address = f"{base}?{urlencode(shown.said())}"
        assert screen.is_link(address) and screen.from_link(f" {address}\n") == shown


def test_a_link_may_name_a_model_by_id_or_title_and_has_what_is_of_the_page_left_out() -> None:
    for named in ("storyteller", TITLES["storyteller"]):
        found = screen.from_link(f"?model={named}&text=A+cat&theme=dark&projector=true&layer=2")
        assert found == Screen("", Request("storyteller", ("A cat",)), {"layer": "2"})
    assert screen.from_link("?text=A+cat").request.model_id == service.DEFAULT_MODEL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A cat sat.",
        "http://example.test/",
        "https://school.test/?view=memory&batch=8",
        "text=A+cat",
        "http://[",
        "? Why text=this",
    ],
)
def test_a_text_is_no_link(text: str) -> None:
    assert not screen.is_link(text)


@pytest.mark.parametrize(
    "address",
    ["?text=", "?text=A&model=nobody", "?text=A&model=Copy&step=7", "?text=A&with=nonsense_1", "?text=A&step=1"],
)
def test_a_link_that_cannot_be_followed_is_refused(address: str) -> None:
    with pytest.raises(ValueError):
        screen.from_link(address)
