"""The end of the pass in Step through: the last norm, ten words with their logits, the losses; and the station "why add?"."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from playwright.sync_api import expect

import core
from app.rooms.step import message
from app.rooms.step.steps import Step, steps_of
from app.session.examples import MARY
from app.transport import messages
from core.labs.worked_examples import residual_gradients
from core.read.next_token_loss import ending
from core.service.facts import facts_of
from tests.app.plain import Plain
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2

APP = "app/main.py"


@cache
def mary() -> core.Trace:
    return core.trace(smollm2(), MARY)


@needs_smollm2
def test_the_message_of_an_ending_gives_its_norm_again() -> None:
    header, body = messages.unpack(message.ending(ending(mary(), 13, 10)))

    def array(name: str) -> np.ndarray:
        at, (n,), _ = header["arrays"][name]
        return np.frombuffer(body, "<f4", n, at)

    centre, scale = header["norm"]
    assert "shift" not in header["arrays"] and np.allclose(
        (array("before") - centre) / scale * array("gain"), array("after"), atol=1e-4
    )
    assert header["words"][0] == ["Mary", pytest.approx(11.037, abs=0.005), pytest.approx(0.923, abs=0.002)]
    assert header["losses"][-1] is None and header["losses"][9] == pytest.approx(3.413, abs=0.01)


@pytest.mark.parametrize(
    ("model", "ends"),
    [
        ("smollm2", ["lastnorm", "words", "loss", "end"]),
        ("storyteller", ["lastnorm", "words", "loss", "end"]),
        ("minilm", ["end"]),
    ],
)
def test_a_model_has_the_stations_of_its_own_end(model: str, ends: list[str]) -> None:
    run = core.trace(core.load(model), "The wolf")
    facts, stack = facts_of(run, "key"), run.config.stacks[-1][0]
    steps = [step for step in steps_of(facts, stack, 1) if isinstance(step, Step)]
    assert [step.id for step in steps[-len(ends) :]] == ends
    assert steps[-len(ends) - 1].id in ("add2", "norm2")
    ids = [step.id for step in steps]
    assert ids.index("why") == ids.index("add1") + (2 if run.config.norm_order == "post" else 1)


@pytest.mark.thorough
@needs_smollm2
def test_the_end_of_the_pass_is_walked_word_by_word(plain: Plain) -> None:
    plain.open("?view=step&model=smollm2&layer=23&head=0&query=13&at=lastnorm")
    root, keys = plain.root, plain.page.keyboard
    found, big, summed = ending(mary(), 13), root.locator(".big"), root.locator(".from")
    expect(big).to_have_text(
        "The 6 layers after it do the same. Then to₂ is 884 long, and the last norm divides by 36.85."
    )
    j = int(np.abs(found.after).argmax())
    expect(summed).to_contain_text(f"h[{j}]")
    expect(summed).to_contain_text(f"{abs(found.after[j].item()):.3f}")
    keys.press("PageDown")
    plain.wait(at="words")
    expect(big).to_have_text(
        "49,152 words get a logit each, their own 576 numbers · h. Softmax makes chances: Mary 92 %."
    )
    expect(root.locator(".pic .rowhit")).to_have_count(10)
    expect(root.locator(".pic")).to_contain_text("11.04")
    expect(summed).to_contain_text("e^(11.04 − 11.12)")
    expect(summed).to_contain_text("mean −9.67, standard deviation 3.70, lowest −32.29. All but the 10 share 3.0 %.")
    root.get_by_role("button", name="Table").click()
    expect(root.locator(".tablebox tbody tr")).to_have_count(10)
    keys.press("PageDown")
    plain.wait(at="loss", show="table")
    expect(root.locator(".tablebox tbody tr")).to_have_count(13)
    root.get_by_role("button", name="Picture").click()
    expect(big).to_have_text("If Mary follows, the loss is 0.08; with the it is 3.84.")
    root.locator(".pic .rowhit").nth(9).click()  # after John: gave
    plain.wait(query="9", at="loss")
    expect(big).to_have_text(
        "Here the text has gave: 3.3 %, so the loss is 3.41. Had it been bought, the loss would be 2.48."
    )
    plain.page.wait_for_url("**at=loss**")


@pytest.mark.thorough
@needs_smollm2
def test_why_add_shows_a_backward_pass_with_and_without_the_residual(plain: Plain) -> None:
    plain.open("?view=step&model=smollm2&at=why")
    root = plain.root
    expect(root.locator(".big")).to_have_text(
        "Without residual or norm the gradient fades to 6·10⁻⁹. With norms, words become alike instead.", timeout=60_000
    )
    expect(root.locator(".pic svg path[stroke-dasharray]")).to_have_count(6)  # two charts of three without the residual
    expect(root.locator(".from")).to_contain_text("not through this model")
    root.get_by_role("button", name="Table").click()
    expect(root.locator(".tablebox tbody tr")).to_have_count(25)


@pytest.mark.thorough
def test_the_backward_passes_travel_in_four_digits() -> None:
    facts = residual_gradients()
    sent = message.residual(facts)["paths"]
    assert [(one["norm"], one["residual"]) for one in sent] == [(one.norm, one.residual) for one in facts]
    for one, own in zip(sent, facts, strict=True):
        assert one["gradients"] == pytest.approx(own.gradients, rel=1e-3) and len(one["alike"]) == 25
