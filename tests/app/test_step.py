"""Step through: its numbers are core's, from the message to the page; its links, its small pages, a phone, keys and files."""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any, get_args
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, expect

import core
from app.kit import params as kit_params
from app.kit import words as kit_words
from app.rooms.step import message, words
from app.rooms.step.params import PARAMS, opening
from app.rooms.step.routes import ROUTES
from app.rooms.step.small import small_message
from app.rooms.step.steps import Fold, Step, guesses_words, ids_of, steps_of
from app.transport import messages
from core.labs import worked_examples as small
from core.read.findings import Kind
from core.read.layer_walk import guesses, terms, walk
from core.service import Facts, LocalService
from tests.app.browsing import Screen, box_of, eventually
from tests.app.lab import everywhere, printed, sized
from tests.app.plain import Plain
from tests.app.served import ask, serve
from tests.app.test_accessibility import findings

APP = "app/main.py"
ANIMAL = "The animal didn't cross the street because it was too tired."
WOLF = 'The wolf knocked at the door and said, "Open the'
GERMAN = "Im Wald steht ein braunes Pferd."


@cache
def run_of(model: str, text: str) -> core.Trace:
    return core.trace(core.load(model), text)


@cache
def served(model: str, text: str) -> tuple[LocalService, Facts]:
    return serve(run_of(model, text))


def message_of(
    model: str, text: str, stack: str, layer: int, query: int, head: int = 0
) -> tuple[dict[str, Any], bytes]:
    service, run = served(model, text)
    found = ask(service.walk(run.key, stack, layer, query))
    ends = None if guesses_words(run, stack) else ask(service.point(run.key, f"{stack}.hook_final"))
    return messages.unpack(message.packed(run, found, ask(service.additions(run.key, stack)), head, ends))


def array(header: dict[str, Any], body: bytes, name: str) -> np.ndarray:
    at, shape, kind = header["arrays"][name]
    return np.frombuffer(body, {"f4": "<f4", "f2": "<f2", "u1": "u1"}[kind], int(np.prod(shape)), at).reshape(shape)


# what travels


def test_a_walk_travels_as_core_has_it_and_is_small() -> None:
    header, body = message_of("minilm", ANIMAL, "encoder", 3, 10)
    found = walk(run_of("minilm", ANIMAL), "encoder", 3, 10)
    assert len(body) < 300_000
    for step, values in found.values.items():
        if step != "attn.k":  # which is the same as the keys that the query meets
            assert np.array_equal(array(header, body, step), values.numpy()), step
    assert np.array_equal(array(header, body, "attn.keys"), found.values["attn.k"].numpy())
    before = found.before_norm["attn.norm"].double()
    columns = array(header, body, "attn.norm.columns")
    assert np.allclose(columns[:, 36], [before[:, 36].mean(), before[:, 36].std(correction=0)], atol=1e-6)
    assert np.array_equal(array(header, body, "attn.norm.before"), found.before_norm["attn.norm"].numpy())
    assert array(header, body, "attn.lengths")[1] == pytest.approx(2.63, abs=6e-3)
    rows = array(header, body, "added")
    assert rows.shape == (12, 16) and rows[6, 10] == pytest.approx(6.24, abs=6e-3)


@pytest.mark.parametrize(("model", "text", "stack"), [("minilm", ANIMAL, "encoder"), ("translator", GERMAN, "encoder")])
def test_the_result_is_what_leaves_the_last_layer_whichever_is_looked_at(model: str, text: str, stack: str) -> None:
    run = run_of(model, text)
    final = run.activation(f"{stack}.hook_final").numpy()
    query = len(final) - 2
    for layer in range({str(name): n for name, n in run.config.stacks}[stack]):
        header, body = message_of(model, text, stack, layer, query)
        assert np.array_equal(array(header, body, "end"), final[query])
        assert np.allclose(array(header, body, "end.mean"), final.mean(0), atol=1e-6)
        (end,) = [step for step in header["steps"] if step.get("id") == "end"]
        assert end["value"] == "end"
    if model == "minilm":  # of "it"; layer 3 leaves a vector of length 11.10
        header, body = message_of(model, text, stack, 3, 10)
        assert np.linalg.norm(array(header, body, "end")) == pytest.approx(7.252, abs=6e-4)


def test_rows_of_slips_are_rows_of_a_softmax() -> None:
    for said, true in words.COMPONENT["small_slips_rows"]:
        for row in (said, true):
            shares = [float(part) for part in row.split() if part != "…"]
            assert sum(shares) == pytest.approx(1, abs=2e-4) or "…" in row
        assert said != true


def test_a_stack_that_ends_in_a_next_word_sends_no_vector() -> None:
    header, _ = message_of("storyteller", WOLF, "decoder", 1, 3)
    assert "end" not in header["arrays"]


def test_of_a_long_text_the_keys_of_one_head_travel() -> None:
    text = "the quick brown fox jumps over the lazy dog " * 45
    header, body = message_of("minilm", text, "encoder", 2, 300, head=7)
    found = walk(run_of("minilm", text), "encoder", 2, 300)
    (site,) = header["sites"]
    assert site["head"] == 7 and len(body) < 600_000
    assert np.array_equal(array(header, body, "attn.v")[0], found.values["attn.v"][7].numpy())
    assert np.array_equal(array(header, body, "attn.weights")[0], found.values["attn.weights"][7].numpy())
    norm = header["norms"]["mlp.norm"]
    own = array(header, body, "mlp.norm.before")[300 - norm["first"]]
    assert np.array_equal(own, found.before_norm["mlp.norm"][300].numpy())


def test_steps_stand_where_the_config_puts_them() -> None:
    _, minilm = served("minilm", ANIMAL)
    steps = steps_of(minilm, "encoder", 3)
    lanes = {step.id: step.lane for step in steps if not isinstance(step, Fold)}
    assert len(lanes) == 21 and [s for s in steps if isinstance(s, Fold)] == [Fold(0, 2), Fold(4, 5)]
    assert lanes["norm1"] == lanes["norm2"] == "stream" and lanes["add1"] == "add"  # post
    order = list(ids_of(minilm, "encoder"))
    assert order.index("add1") + 1 == order.index("norm1")
    _, story = served("storyteller", WOLF)
    lanes = {step.id: step.lane for step in steps_of(story, "decoder", 0) if not isinstance(step, Fold)}
    assert lanes["norm1"] == "branch" and "turn" in lanes and len(lanes) == 25  # pre, rotary
    _, pair = served("translator", GERMAN)
    ids = ids_of(pair, "decoder")
    assert "cross-softmax" in ids and ids.index("add1") < ids.index("cross-norm1") < ids.index("norm2")
    assert "cross-softmax" not in ids_of(pair, "encoder")
    texts = {"minilm": ANIMAL, "storyteller": WOLF, "translator": GERMAN}
    for model, stack in (("minilm", "encoder"), ("storyteller", "decoder"), ("translator", "decoder"), ("translator", "encoder")):  # fmt: skip
        service, run = served(model, texts[model])
        values = ask(service.walk(run.key, stack, 1, 0)).values
        for step in steps_of(run, stack, 1):
            if not isinstance(step, Fold) and step.value and step.kind not in ("token", "embed", "result"):
                assert step.value in values, step.id


def test_it_opens_at_what_the_first_example_shows() -> None:
    _, minilm = served("minilm", ANIMAL)
    place = opening(minilm)
    assert (place.layer, place.head, place.query) == (3, 1, 10)
    _, story = served("storyteller", WOLF)
    assert opening(story).query == len(story.source) - 1  # what the next word follows from
    assert [route.path for route in ROUTES] == [
        f"/headlight/step/{name}"
        for name in ("page", "walk", "experts", "terms", "guesses", "classes", "ending", "worth", "residual", "small")
    ]


@pytest.mark.parametrize("model", ["minilm", "storyteller", ""])
def test_any_link_gives_a_room(model: str) -> None:
    """Two hundred random links: every value that is shown can be asked for again, and each that is not has its sentence."""
    run = served(model, {"minilm": ANIMAL, "storyteller": WOLF}[model])[1] if model else None
    draw = random.Random(7)
    said = [
        "",
        "0",
        "1",
        "-1",
        "99999999999",
        "z",
        "softmax",
        "2.10",
        "1e9",
        "nan",
        "inf",
        "3,4",
        "0,1,2,3",
        "🦊",
        "own",
        "batch",
        "٣",
        "1.5",
        "..",
        "²",
    ]
    said += ["temperature_2_encoder_L3_self", "mask_encoder_L9", "x" * 5000, "one", "table", "decoder", "\x00", "<b>"]
    for _ in range(200):
        link = {param.name: draw.choice(said) for param in PARAMS if draw.random() < 0.6}
        values, notes = kit_params.read(PARAMS, run, link)
        again, none = kit_params.read(PARAMS, run, values)
        assert (again, none) == (values, [])
        assert all(note.startswith("This link asks for") for note in notes)
        for name, text in link.items():
            assert text == values[name] or any(f"for {name} " in note for note in notes) or text.strip(), (name, text)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("page", "two", "run, one, batch, reshape"),
        ("at", "pie", "softmax"),
        ("stack", "decoder", "encoder"),
        ("layer", "6", "0 to 5"),
        ("head", "12", "0 to 11"),
        ("query", "16", "0 to 15"),
        ("key", "-1", "0 to 15"),
        ("cell", "3", "as in 2.10"),
        ("divide", "0", "0.05"),
        ("hide", ",".join(map(str, range(16))), "one of them stays"),
        ("act", "tanh", "relu"),
        ("norm", "rms", "batch"),
        ("x", "0-1:10", "-9 to 9"),
        ("x", "3-1:1", "as in 0-1:0.52"),
        ("edits", "nothing", "Run with this change"),
    ],
)
def test_what_is_asked_in_vain_gets_a_sentence_with_what_there_is(name: str, text: str, says: str) -> None:
    run = served("minilm", ANIMAL)[1]
    values, notes = kit_params.read(PARAMS, run, {name: text})
    assert values == kit_params.read(PARAMS, run, {})[0] and len(notes) == 1
    assert f"for {name} " in notes[0] and says in notes[0]


def test_a_sentence_takes_two_lines_at_most_so_that_the_picture_never_jumps() -> None:
    parts = {name: "12" for says in words.SAYS.values() for name in re.findall(r"{(\w+)}", says)}
    parts |= {
        "q": "it",
        "k": "animal",
        "w": "68 %",
        "n": "340",
        "m": "1,196",
        "min": "−0.17",
        "f": "GELU",
        "x": "10.89",
    }
    parts |= {"how": words.SAYS["embed_rotary"], "kind": "sinusoidal", "why": "the future", "model": "MiniLM-L6"}
    parts |= {"sublayer": "attention", "p": "10"}
    long = {name: len(says.replace("*", "").format(**parts)) for name, says in words.SAYS.items()}
    assert max(long.values()) <= 95, long


def test_small_numbers_travel_as_core_has_them() -> None:
    found, _ = messages.unpack(small_message())
    one = small.one_head()
    assert np.allclose(found["one"]["weights"][0], [0.3479, 0.3258, 0.3263], atol=5e-5)
    assert np.allclose(found["one"]["output"][0], [0.3172, 0.0995, 0.3417, 0.4694], atol=5e-5)
    assert np.array_equal(np.float32(found["one"]["x"]), one.x.numpy())
    assert found["batch"]["wrong_by"] == pytest.approx(4.62, abs=5e-3) and "size" in found["batch"]["error"]
    assert found["reshape"]["qkv"][0][2][5] == pytest.approx(0.5029, abs=5e-5)
    assert found["reshape"]["strides"] == [96, 4, 24, 1]


# on the page


def fixed(value: float, digits: int = 2) -> str:
    text = f"{abs(value):.{digits}f}"
    return f"−{text}" if value < 0 and float(text) else text


def percent(p: float) -> str:
    """A share as every screen says it: whole from 10 to 98, else one decimal."""
    if 0 < p < 1e-3:
        return "<0.1 %"
    if 0.999 < p < 1 - 1e-9:
        return ">99.9 %"
    return f"{100 * p:.{int(0 < p < 0.0995 or 0.985 <= p < 0.9995)}f} %"


def long(vector: torch.Tensor) -> str:
    """Three digits of its length."""
    x = vector.norm().item()
    return f"{x:.{0 if x >= 99.95 else 1 if x >= 9.995 else 2}f}"


def go(screen: Screen, step: str) -> None:
    screen.root.locator(f".station[data-step='{step}']").click()
    screen.wait(at=step)


def big(plain: Plain) -> str:
    return plain.root.locator(".big").inner_text().replace("\xa0", " ")


def test_one_token_through_one_layer(plain: Plain) -> None:
    found = walk(run_of("minilm", ANIMAL), "encoder", 3, 10)
    values = found.values
    root, page = plain.root, plain.page
    plain.open("?view=step")
    plain.wait(at="scores", layer="3", head="1", query="10", steps="21")  # opens where q meets the keys
    plain.open("?view=step&at=softmax")  # an older link keeps its station
    plain.wait(at="softmax", layer="3", head="1", query="10", steps="21")
    assert big(plain) == "it gives 68 % of its attention to animal. The 16 weights add up to 1."
    # every number of the ledger that is on the page is core's
    cells = [text.replace("\xa0", " ") for text in root.locator(".lab.num").all_inner_texts()]
    assert cells[:16] == [fixed(v) for v in values["attn.raw"][1].tolist()]
    assert cells[16:32] == [fixed(v) for v in values["attn.scores"][1].tolist()]
    assert cells[64:66] == [percent(v) for v in values["attn.weights"][1][:2].tolist()]
    # keys: right to the next step, whose sum is of the largest number and adds up as it stands
    page.keyboard.press("ArrowRight")
    plain.wait(at="z", cell="2.10")
    assert float(plain.data()["total"]) == pytest.approx(values["attn.z"][1, 10].item(), abs=1e-5)
    shown = root.locator(".from .sum .t").evaluate_all(
        "parts => parts.map((part) => (part.children[2].textContent.trim() || part.children[1].textContent))"
    )
    numbers = [float(text.replace("−", "-")) for text in shown]
    assert shown[0] == "−1.477" and sum(numbers[1:]) == pytest.approx(numbers[0], abs=1e-9)
    # arrows in the picture go from number to number, and say the sum
    root.locator(".pic").focus()
    page.keyboard.press("ArrowRight")
    plain.wait(cell="2.11")
    expect(root.locator(".unseen[role=status]")).to_contain_text(f"is {fixed(values['attn.z'][1, 11].item(), 3)}:")
    # a number whose terms the server works out
    go(plain, "wo")
    plain.until("root.dataset.total")
    j = int(plain.data()["cell"].split(".")[1])
    assert float(plain.data()["total"]) == pytest.approx(terms(found, "attn.out", j).value, abs=1e-5)
    go(plain, "add1")
    assert big(plain) == "Attention does not replace it, it is added: 10.9 long and 6.24 long make 13.4."
    go(plain, "act")
    assert big(plain).endswith("none ends below −0.17.")
    root.get_by_role("button", name="SiLU").click()
    expect(root.locator(".big")).to_contain_text("none ends below −0.28.")
    root.get_by_role("button", name="ReLU").click()
    expect(root.locator(".big")).to_have_text(
        "ReLU keeps the 340 neurons above 0 and sets the other 1,196 to exactly 0."
    )
    go(plain, "norm1")
    expect(root.locator(".stats").first).to_contain_text("mean 0.02   sd 0.68")
    expect(root.locator(".stats").last).to_contain_text("mean 0.00   sd 1.00")
    root.get_by_role("button", name="BatchNorm").click()
    expect(root.locator(".stats").last).to_contain_text("mean 0.01   sd 1.01")
    expect(root.locator(".stats").last).to_contain_text("mean 0.00   sd 1.00")
    # what is done to one head, and the same as a run of its own
    go(plain, "scale")
    assert "spread by 10.1 and animal takes >99.9 %; divided by 5.66 it takes 68 %" in big(plain)
    go(plain, "mask")
    root.locator(".rowhit[data-key='2']").click(position={"x": 12, "y": 6})  # on the name; beside it lie the products
    expect(root.locator(".big")).to_contain_text("You hid animal: −∞")
    assert "68 %" in big(plain)
    root.get_by_role("button", name=words.COMPONENT["run_it"]).click()
    plain.until("root.dataset.edited === 'true'")
    edit = core.edits.EditMask("encoder", 3, queries=[10], keys=[2], head=1)
    after = walk(core.trace(run_of("minilm", ANIMAL).loaded, ANIMAL, interventions=[edit]), "encoder", 3, 10)
    go(plain, "add1")
    assert f"and {long(after.values['attn.out'])} long make" in big(plain)
    root.get_by_role("button", name=words.COMPONENT["run_leave"]).click()
    plain.until("root.dataset.edited === 'false'")
    expect(root.locator(".big")).to_contain_text("and 6.24 long make")
    # another token, another layer: another walk
    root.locator(".tok[data-i='2']").click()
    root.get_by_role("button", name="Layer 3 · Head 1").click()
    root.get_by_label("Go to").fill("0.1")
    page.keyboard.press("Enter")
    plain.wait(query="2", layer="0")
    other = walk(run_of("minilm", ANIMAL), "encoder", 0, 2).values
    assert f"and {long(other['attn.out'])} long make" in big(plain)
    # the code that gives the numbers again
    go(plain, "z")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    root.get_by_role("button", name="Export").click()
    root.get_by_role("dialog").get_by_role("button", name="code").click()
    expect(root.get_by_role("dialog").get_by_role("status")).to_have_text(kit_words.COMPONENT["export_copied"])
    names: dict[str, Any] = {}
    exec(page.evaluate("navigator.clipboard.readText()"), names)
    assert np.allclose(names["numbers"].numpy(), other["attn.z"][1].numpy(), atol=1e-6)
    assert findings(plain) == []
    go(plain, "add1")
    adds = f"and {long(other['attn.out'])} long make"
    everywhere(root, lambda: expect(root.locator(".big")).to_contain_text(adds))


def test_a_choice_is_in_the_address_and_back_takes_it_back(screen: Screen) -> None:
    """Through the application: the address, Back, and a run of its own for what was tried in one head."""
    root, page = screen.root, screen.page
    screen.open("?view=step")
    go(screen, "norm1")
    page.wait_for_url("**at=norm1**")
    screen.idle()
    batch = root.get_by_role("button", name="BatchNorm")
    batch.click()
    page.wait_for_url("**norm=batch**")
    assert "at=norm1" in page.url
    screen.idle()
    page.go_back()
    expect(batch).to_have_attribute("aria-pressed", "false")
    screen.wait(at="norm1")
    go(screen, "mask")
    root.locator(".rowhit[data-key='2']").click(position={"x": 12, "y": 6})
    root.get_by_role("button", name=words.COMPONENT["run_it"]).click()
    screen.until("root.dataset.edited === 'true'")
    page.wait_for_url("**edits=mask**")


def test_a_decoder_ends_on_the_next_word_with_the_guess_behind_every_addition(plain: Plain) -> None:
    plain.open(f"?view=step&model=Storyteller&at=end&head=77&text={WOLF.replace(' ', '+')}")
    expect(plain.root.locator(".big")).to_contain_text("door, 39 %")
    assert "best since layer 3’s attention" in big(plain)
    expect(plain.page.locator(".st-key-sentences")).to_contain_text("This link asks for head “77”")
    found = guesses(run_of("storyteller", WOLF))
    assert plain.root.locator(".rowhit").count() == len(found) == 13
    jump = max(range(1, len(found)), key=lambda i: found[i].final_probability - found[i - 1].final_probability)
    plain.wait(cell=f"{jump}.0")  # it opens where the word gains most
    text = plain.root.locator(".from").inner_text().replace("\xa0", " ")
    gain = f"After layer {found[jump].layer}’s attention: best guess door, {percent(found[jump].probability)}"
    assert gain in text and "a reading, not its output" in text
    plain.root.locator(".rowhit").nth(7).click(position={"x": 12, "y": 6})
    plain.wait(cell="7.0")
    plain.page.mouse.move(0, 0)  # whatever is pointed at is shown, and a line above that comes or goes moves the rows
    best = f"After layer 3’s attention: best guess door, {percent(found[7].probability)}"
    expect(plain.root.locator(".from")).to_contain_text(best)  # drawn with the frame after the click
    door = f"door, {percent(found[-1].probability)}"
    everywhere(plain.root, lambda: expect(plain.root.locator(".big")).to_contain_text(door))


def test_a_copied_link_brings_back_what_was_changed_and_where(plain: Plain) -> None:
    plain.open("?view=step&at=mask")
    go(plain, "scale")
    slider = plain.root.locator(".panel input[type=range]")
    slider.press("ArrowRight")  # one press is seen
    expect(plain.root.locator(".big")).to_contain_text("divided by 5.94 it takes")
    slider.press("ArrowLeft")  # and the way back ends at the model's own
    plain.until("!new URLSearchParams(location.search).get('divide')")
    expect(plain.root.locator(".big")).to_contain_text("divided by 5.66 it takes")
    slider.press("ArrowUp")
    slider.press("ArrowUp")
    plain.until("new URLSearchParams(location.search).get('divide') === '6.22'")
    go(plain, "mask")
    plain.root.locator(".rowhit[data-key='2']").click(position={"x": 12, "y": 6})
    expect(plain.root.locator(".big")).to_contain_text("You hid animal: −∞")
    said = big(plain)
    plain.root.get_by_role("button", name="Copy link", exact=True).click()
    plain.until("root.dataset.link")
    link = plain.data()["link"]
    asked = parse_qs(urlsplit(link).query)
    wanted = {"view": "step", "text": ANIMAL, "at": "mask", "layer": "3", "head": "1", "query": "10", "hide": "2"}
    assert {name: asked[name][0] for name in wanted} == wanted and asked["divide"]
    plain.open("?" + urlsplit(link).query)
    plain.wait(at="mask", layer="3", head="1", query="10")
    assert big(plain) == said
    # the pages of small numbers have an address as well
    plain.root.get_by_role("button", name="3 × 4, every number").click()
    plain.wait(page="one")
    plain.root.get_by_role("button", name="Copy link", exact=True).click()
    plain.until("root.dataset.link.includes('page=one')")


def test_cross_attention_is_a_branch_of_its_own_and_the_projector_shows_it(plain: Plain) -> None:
    plain.open(f"?view=step&model=Translator&at=cross-softmax&projector=true&text={GERMAN.replace(' ', '+')}")
    plain.wait(at="cross-softmax", stack="decoder", projector="true")
    labels = plain.root.locator(".lab.k").all_inner_texts()
    assert "Wald" in labels and "Pferd" in labels  # keys are of the source
    assert plain.root.locator(".station.cross").count() == 11
    plain.page.keyboard.press("PageDown")
    plain.wait(at="cross-z")
    assert plain.root.locator(".from .sum").is_visible()


def clear(root: Locator, css: str) -> None:
    """Nothing that is written there lies on something else that is, or beyond the edge of the page."""
    on_another = root.evaluate(
        """(root, css) => {
          const written = [...root.querySelectorAll(css)].filter((node) => node.offsetParent && node.textContent.trim());
          const boxes = written.map((node) => {
            const [range, box] = [document.createRange(), node.getBoundingClientRect()];
            range.selectNodeContents(node);
            const text = node.matches(".msg, button") ? box : range.getBoundingClientRect();
            return {
              left: Math.max(text.left, box.left), right: Math.min(text.right, box.right),
              top: Math.max(text.top, box.top), bottom: Math.min(text.bottom, box.bottom),
            };
          });
          const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
          return boxes.flatMap((box, i) => [
            ...(box.right > innerWidth ? [`${written[i].textContent} ends beyond the page`] : []),
            ...boxes.flatMap((other, j) => (j > i && over(box, other) ? [`${written[i].textContent} × ${written[j].textContent}`] : [])),
          ]);
        }""",
        css,
    )
    assert on_another == []


@pytest.mark.thorough
def test_pages_of_small_numbers(plain: Plain) -> None:
    root = plain.root
    plain.open("?view=step&page=one&at=output")
    plain.wait(page="one", small="own")
    assert float(plain.data()["total"]) == pytest.approx(0.3172, abs=5e-5)
    assert "0.348 · V[0] + 0.326 · V[1] + 0.326 · V[2] = [0.32, 0.10, 0.34, 0.47]" in big(plain)
    root.get_by_label("x[0, 0]").fill("2.5")
    plain.wait(small="changed")
    x = small.one_head().x.clone()
    x[0, 0] = 2.5
    row = small.one_head(x).output[0].tolist()
    numbers = f"= [{', '.join(fixed(v) for v in row)}]"
    expect(root.locator(".big")).to_contain_text(numbers)
    everywhere(root, lambda: expect(root.locator(".big")).to_contain_text(numbers))
    expect(root.locator(".slips")).to_have_count(0)
    root.get_by_role("button", name="F.softmax(scaled, dim=-1)").click()
    for cell in (".3505 .2858 .3637", ".3872 .2564 .3564", ".2689 .7311", ".1886 .8114"):  # printed, and what it is
        expect(root.locator(".slips").get_by_text(cell, exact=True)).to_be_visible()
    assert findings(plain) == []
    root.get_by_role("button", name=words.COMPONENT["page_batch"]).click()
    plain.wait(page="batch")
    batch = small.batch()
    expect(root.locator(".msg.bad").first).to_contain_text(batch.error)
    wrong_by = f"{batch.wrong_by:.2f}"
    everywhere(root, lambda: expect(root.locator(".msg.bad").last).to_contain_text(wrong_by))
    root.get_by_role("button", name=words.COMPONENT["page_reshape"]).click()
    plain.wait(page="reshape", cell="a0.2.5")
    text = root.locator(".from").inner_text()
    assert "0.5029" in text and "memory 53" in text and "memory 21" in text and "[0, 1, 2, 1]" in text
    number = f"{small.reshape().qkv[0, 2, 5].item():.4f}"
    everywhere(root, lambda: expect(root.locator(".from")).to_contain_text(number))
    root.get_by_role("button", name="Table").click()
    expect(root.locator("tbody tr").nth(2).locator("td").nth(5)).to_have_text(number)
    root.get_by_role("button", name="Picture").click()
    expect(root.locator("tbody")).to_have_count(0)
    page = plain.page
    page.evaluate("headlight.settings.set('projector', 'true')")
    plain.wait(projector="true")
    for name, overlaps in (
        ("reshape", ".lab, .from .h > span"),
        ("batch", ".lab, .msg, .foot button, .from .h > span"),
    ):
        if name == "batch":
            plain.open("?view=step&page=batch&projector=true")
        for size in ((1280, 720), (1920, 1080)):
            sized(page, *size)
            eventually(page, lambda css=overlaps: clear(root, css))
    page.evaluate("headlight.settings.set('projector', null)")
    plain.wait(projector="false")
    assert findings(plain) == []


def test_an_x_that_was_dragged_is_in_the_link(plain: Plain) -> None:
    root = plain.root
    plain.open("?view=step&page=one&at=output")
    plain.wait(page="one", small="own")
    for label, value in (("x[0, 0]", "2.5"), ("x[2, 3]", "-4"), ("x[0, 0]", "1.25")):
        root.get_by_label(label).fill(value)
    plain.page.wait_for_url(lambda url: parse_qs(urlsplit(url).query).get("x") == ["0-0:1.25,2-3:-4"])
    link = plain.page.url
    plain.open("?view=step&page=batch")
    plain.wait(page="batch")
    plain.page.goto(link)
    plain.wait(page="one", small="changed")
    x = small.one_head().x.clone()
    x[0, 0], x[2, 3] = 1.25, -4
    output = small.one_head(x).output[0].tolist()
    expect(root.locator(".big")).to_contain_text(f"= [{', '.join(fixed(v) for v in output)}]")
    expect(root.get_by_label("x[2, 3]")).to_have_value("-4.00")
    root.get_by_role("button", name=words.COMPONENT["small_back"]).click()
    plain.wait(small="own")
    plain.page.wait_for_url(lambda url: "x=" not in url)


def test_files_of_the_small_pages_opened_by_their_links(plain: Plain) -> None:
    """Their code gives what is on the screen: also an x that was dragged, and the number that is followed."""
    root = plain.root

    def saved(name: str) -> str:
        root.get_by_role("button", name="Export").click()
        with plain.page.expect_download() as waiting:
            root.get_by_role("dialog").get_by_role("button", name=name).click()
        plain.page.keyboard.press("Escape")
        return waiting.value.path().read_text("utf-8-sig") if name != "NPZ" else str(waiting.value.path())

    def code() -> str:
        return str(np.load(saved("NPZ"))["snippet"])

    plain.open("?view=step&page=one")
    plain.wait(page="one")
    assert "0.3172" in printed(code())
    root.get_by_label("x[0, 0]").fill("2.5")
    plain.wait(small="changed")
    x = small.one_head().x.clone()
    x[0, 0] = 2.5
    assert str(small.one_head(x).output) in printed(code())
    plain.open("?view=step&page=batch")
    plain.wait(page="batch")
    assert f"{small.batch().wrong_by:.4f}"[:4] in printed(code())
    assert "<svg" in saved("SVG")
    plain.open("?view=step&page=reshape")
    plain.wait(page="reshape", cell="a0.2.5")
    root.locator(".pic").focus()
    plain.page.keyboard.press("ArrowRight")
    plain.wait(cell="a0.2.6")
    assert str(small.follow((2, 4, 24), 2, (0, 2, 6), parts=3)) in printed(code())
    assert "qkv[0]" in saved("CSV")


def between(plain: Plain, step: str, share: float) -> None:
    """Click the line at a share of the way that leads to a step."""
    middles = plain.root.locator(".station").evaluate_all(
        "all => all.map((one) => [one.dataset.step, one.getBoundingClientRect().x + one.getBoundingClientRect().width / 2])"
    )
    at = [name for name, _ in middles].index(step)
    x = middles[at - 1][1] + share * (middles[at][1] - middles[at - 1][1])
    box = box_of(plain.root.locator(".line"))
    plain.page.mouse.click(x, box["y"] + box["height"] / 2)


@pytest.mark.parametrize(
    ("model", "text"),
    [("minilm", ANIMAL), ("Storyteller", WOLF), ("Translator", GERMAN)],
    ids=["post", "rotary", "pair"],
)
def test_the_line_has_a_station_for_every_step_and_is_the_slider(plain: Plain, model: str, text: str) -> None:
    run = served(model.lower(), text)[1]
    stack = run.config.stacks[-1][0]
    ids = list(ids_of(run, stack))
    plain.open(f"?view=step&model={model}&at=x&layer=1&stack={stack}&text={text.replace(' ', '+')}")
    plain.wait(at="x")
    stations = plain.root.locator(".station")
    assert stations.evaluate_all("all => all.map((one) => one.dataset.step)") == ids
    slider = plain.root.get_by_role("slider", name=words.COMPONENT["rail"])
    expect(slider).to_have_attribute("aria-valuemax", str(len(ids)))
    slider.focus()
    for key, at in (
        ("End", ids[-1]),
        ("Home", ids[0]),
        ("ArrowRight", ids[1]),
        ("PageDown", ids[2]),
        ("PageUp", ids[1]),
    ):
        plain.page.keyboard.press(key)
        plain.wait(at=at)
        expect(slider).to_have_attribute("aria-valuenow", str(ids.index(at) + 1))


def test_in_the_middle_of_a_step_its_numbers_are_the_run_s(plain: Plain) -> None:
    found = walk(run_of("minilm", ANIMAL), "encoder", 3, 10).values
    plain.open("?view=step&at=heads")
    plain.wait(at="heads")
    root = plain.root
    between(plain, "scores", 0.53)
    plain.wait(at="scores")
    moment = float(plain.data()["moment"])
    assert 0.4 < moment < 0.6
    cells = root.locator(".lab.num.now").all_inner_texts()
    whole = int(moment * 16)
    raw, q, k = found["attn.raw"][1], found["attn.q"][1].double(), found["attn.k"][1].double()
    assert cells[:whole] == [fixed(v) for v in raw[:whole].tolist()]  # those that the query has passed
    sofar = np.cumsum((q * k[whole]).numpy())  # the score of the key that it is at, as far as its products go
    done = round((moment * 16 - whole) * 32)
    assert cells[whole] in [fixed(v) for v in sofar[done - 3 : done + 3]]
    assert not any(cells[whole + 1 : 16])
    between(plain, "scale", 0.5)
    plain.wait(at="scale")
    shown = [float(text.replace("−", "-")) for text in root.locator(".lab.num.now").all_inner_texts()]
    for value, before, after in zip(shown, raw.tolist(), (raw / 32**0.5).tolist(), strict=True):
        assert min(before, after) - 0.01 <= value <= max(before, after) + 0.01
    between(plain, "scale", 1.0)
    plain.wait(at="scale", moment="1")
    assert root.locator(".lab.num.now").all_inner_texts() == [fixed(v) for v in (raw / 32**0.5).tolist()]


def test_a_second_press_ends_the_motion_and_starts_the_next(plain: Plain) -> None:
    plain.open("?view=step&at=mask")
    plain.wait(at="mask", moment="1")
    next_ = plain.root.get_by_role("button", name=words.COMPONENT["next"])
    next_.click()
    next_.click()
    plain.wait(at="z", moment="1")
    plain.page.keyboard.press("PageUp")
    plain.wait(at="softmax", moment="1")
    found = walk(run_of("minilm", ANIMAL), "encoder", 3, 10).values["attn.weights"][1]
    assert plain.root.locator(".lab.num").all_inner_texts()[64].replace("\xa0", " ") == percent(found[0].item())


def test_on_a_phone_the_line_stays_at_the_bottom_and_a_table_has_the_numbers(plain_phone: Plain) -> None:
    plain_phone.open("?view=step&at=mask")
    assert plain_phone.page.evaluate("document.documentElement.scrollWidth") <= 390
    slider = plain_phone.root.get_by_role("slider", name=words.COMPONENT["rail"])
    steps = len(ids_of(served("minilm", ANIMAL)[1], "encoder"))
    expect(slider).to_have_attribute(
        "aria-valuetext",
        f"step {1 + list(ids_of(served('minilm', ANIMAL)[1], 'encoder')).index('mask')} of {steps}: mask",
    )
    for part in (slider, plain_phone.root.get_by_role("button", name=words.COMPONENT["next"])):
        box = box_of(part)
        assert 844 - 60 < box["y"] + box["height"] <= 844
    sizes = plain_phone.root.evaluate(
        "root => [...root.querySelectorAll('button, select, input[type=range]')].map((n) => n.getBoundingClientRect()).filter((b) => b.width).map((b) => b.height)"
    )
    assert min(sizes) >= 43.5
    assert findings(plain_phone) == []
    slider.focus()
    plain_phone.page.keyboard.press("ArrowRight")
    plain_phone.wait(at="softmax")
    plain_phone.root.get_by_role("button", name="Table").click()
    values = walk(run_of("minilm", ANIMAL), "encoder", 3, 10).values
    cells = plain_phone.root.locator("tbody tr").nth(2).locator("td")
    expect(cells.first).to_have_text("animal")
    row = cells.all_inner_texts()
    assert row[1] == fixed(values["attn.raw"][1, 2].item(), 4)
    assert row[-1] == fixed(values["attn.weights"][1, 2].item(), 4)


def test_a_chip_leads_to_a_step_that_is_worth_it(plain: Plain) -> None:
    plain.open(f"?view=step&model=Storyteller&text={WOLF.replace(' ', '+')}")
    found = ask(served("storyteller", WOLF)[0].worth(served("storyteller", WOLF)[1].key))
    chips = plain.root.get_by_role("group", name=words.COMPONENT["worth"]).get_by_role("button")
    expect(chips).to_have_count(len(found) + 1)  # and the one that asks why the stream is added to
    for i, one in enumerate(found):
        chips.nth(i).click()
        at = message.worth([one])["found"][0]["at"]
        plain.wait(at=at, layer=str(one.layer), query=str(one.query))
        expect(chips.nth(i)).to_have_attribute("aria-pressed", "true")
        if one.head is not None:
            plain.wait(head=str(one.head), key=str(one.key))
        plain.page.wait_for_url(f"**at={at}**")
    chips.last.click()
    plain.wait(at="why")


@pytest.mark.parametrize("model", ["minilm", "storyteller", "translator"])
def test_every_chip_has_a_station_on_its_layer_s_line(model: str) -> None:
    service, run = served(model, {"minilm": ANIMAL, "storyteller": WOLF, "translator": GERMAN}[model])
    found = message.worth(ask(service.worth(run.key)))["found"]
    assert found
    for one in found:
        steps = steps_of(run, one["stack"], one["layer"])
        assert one["at"] in [step.id for step in steps if isinstance(step, Step)]
    assert set(message.STATIONS) == set(get_args(Kind)) | {"the turn decides", "the MLP decides"}


def test_closed_branches_have_less_room_and_each_station_stays_on_the_line(plain: Plain) -> None:
    plain.open(f"?view=step&model=translator&at=cross-softmax&text={GERMAN.replace(' ', '+')}")
    plain.wait(at="cross-softmax")
    stations = plain.root.locator(".station")
    width = "nodes => nodes.map((node) => [node.dataset.step, node.getBoundingClientRect().width])"
    rooms = dict(stations.evaluate_all(width))
    assert len(rooms) == int(plain.data()["steps"])
    assert rooms["cross-mask"] > 2 * rooms["mask"] and rooms["cross-mask"] > 2 * rooms["up"]
    expect(plain.root.locator(".branch")).to_have_text(["attention", "MLP"])
    go(plain, "up")
    rooms = dict(stations.evaluate_all(width))
    assert rooms["up"] > 2 * rooms["cross-mask"]
