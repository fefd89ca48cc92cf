"""What if, parts taken from another sentence: its numbers on a real language model against the reference, its routes, links and screen."""

from __future__ import annotations

import csv
import io
import re
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.kit import params as kit_params
from app.rooms.whatif import changes
from app.session import examples, service
from app.shell import routes
from app.transport import messages
from core.run.request import Request
from core.service import Component, Facts
from tests.app.browsing import Screen
from tests.app.lab import everywhere
from tests.app.plain import AnotherPlain, Plain
from tests.app.test_accessibility import findings
from tests.app.test_whatif import DOROTHY, PHONE, STORY, UNCLE, printed, settled, visit

APP = "app/main.py"
PATIENCE = 90_000  # ms
MARY = "When Mary and John went to the store, John gave a drink to"
SWAPPED = "When Mary and John went to the store, Mary gave a drink to"
IOI = {"model": "SmolLM2-135M", "text": MARY, "sweep": "patch", "against": SWAPPED}


@cache
def facts(model: str = "smollm2", text: str = MARY) -> Facts:
    ask = service.calls()
    return ask.result(service.service().facts(ask.result(service.service().submit(Request(model, (text,))))))


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.ROUTES), raise_server_exceptions=True) as client:
        yield client


class Found:
    """An answer of the route: the words, the estimates, and by part log p with it changed."""

    def __init__(self, content: bytes) -> None:
        found, rest = [], content
        while rest:
            (length,) = struct.unpack_from("<I", rest)
            found.append(messages.unpack(rest[4 : 4 + length]))
            rest = rest[4 + length :]
        (self.known, body), self.about = found[0], found[-1][0]
        n = len(self.known["watched"])
        places = [self.known.get(f"{name}_at") for name in ("before", "there")]
        self.before, self.there = [
            np.empty(0, "<f4") if at is None else np.frombuffer(body, "<f4", n, at) for at in places
        ]
        heads = np.frombuffer(body, "<f4", (self.known["mlps_at"] - self.known["heads_at"]) // 4)
        self.heads = heads.reshape(-1, self.known["heads_each"])
        self.rows: dict[str, np.ndarray] = {}
        for header, numbers in found[1:]:
            if "parts" in header:
                log_p = np.frombuffer(numbers, "<f4", n * len(header["parts"]), header["log_p_at"]).reshape(-1, n)
                self.rows |= dict(zip(header["parts"], log_p, strict=True))

    def change(self, part: str) -> float:
        return float(self.rows[part][0] - self.rows[part][1] - self.before[0] + self.before[1])


def parts(client: TestClient, run: Facts, **said: str) -> Found:
    answer = client.get("/headlight/whatif/parts", params={"run": run.key, "sweep": "patch", **said})
    assert answer.status_code == 200, answer.text
    return Found(answer.content)


@pytest.mark.thorough
def test_the_parts_of_a_real_model_and_the_code_that_gives_them(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    found = parts(client, facts(), against=SWAPPED)
    labels = [found.known["labels"][str(token)] for token in found.known["watched"]]
    assert labels == ["Mary", "John", "the", "his", "a", "her"]
    assert np.exp(found.before[:3]) == pytest.approx([0.9229, 0.0020, 0.0216], abs=0.002)
    assert float(np.exp(found.there[1])) == pytest.approx(0.7496, abs=0.002)
    lead, there = (float(x[0] - x[1]) for x in (found.before, found.there))
    assert (lead, there) == pytest.approx((6.120, -5.485), abs=0.01)
    exact = {
        "z23.3": -7.082,
        "z29.1": -3.032,
        "z29.0": 2.336,
        "z24.4": 2.143,
        "z20.0": -1.868,
        "m0": -11.568,
        "m21": -1.519,
    }
    assert {part: found.change(part) for part in exact} == pytest.approx(exact, abs=0.01)
    assert np.exp(found.rows["z23.3"][:2]) == pytest.approx([0.0962, 0.2519], abs=0.002)
    shares = {"r17.9": 1.022, "r22.9": 0.613, "r23.9": 0.040, "r22.13": 0.401, "r23.13": 0.976}
    assert {part: found.change(part) / (there - lead) for part in shares} == pytest.approx(shares, abs=0.002)
    assert found.known["tokens"] == [9, 10, 11, 12, 13] and len(found.rows) == found.known["of"] == 450
    for (layer, head), estimate in {(23, 3): -5.39, (20, 0): 0.18, (24, 4): 2.57}.items():
        assert found.heads[layer, head] == pytest.approx(estimate, abs=0.01)
    # the file and the code say the same
    _, name, text = found.about["table"]
    lines = [line for line in csv.reader(io.StringIO(text.lstrip("\ufeff"))) if line and not line[0].startswith("#")]
    table = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    assert name == "headlight-whatif-parts" and len(table) == 450 and MARY in found.about["caption"]
    (row,) = [row for row in table if (row["part"], row["layer"], row["head"]) == ("head", "23", "3")]
    assert float(row["exact"]) == pytest.approx(-7.082, abs=0.01)
    assert float(row["estimate"]) == pytest.approx(-5.39, abs=0.01)
    assert float(row["log_p John"]) == pytest.approx(float(np.log(0.2519)), abs=0.01)
    out = [line.split() for line in printed(found.about["snippet"], capsys).splitlines()]
    assert len(out) == 450
    for kind, layer, at, _, change in out:
        id_ = changes.part_id(Component(kind, int(layer), int(at)))  # type: ignore[arg-type]
        assert float(change) == pytest.approx(found.change(id_), abs=1e-3)


@pytest.mark.parametrize(
    "how, exact, p",
    [
        (
            "zero",
            {"z23.3": -3.044, "z1.5": -2.182, "z29.1": -1.677, "z24.4": 0.723, "z29.0": 1.281, "m11": -7.287},
            0.6544,
        ),
        ("mean", {"z0.0": -3.711, "z23.3": -2.553, "z1.5": 0.009}, 0.9462),
    ],
)
@pytest.mark.thorough
def test_silence_and_the_mean_of_a_real_model(
    client: TestClient, capsys: pytest.CaptureFixture[str], how: str, exact: dict[str, float], p: float
) -> None:
    found = parts(client, facts(), how=how, against=SWAPPED)
    assert {part: found.change(part) for part in exact} == pytest.approx(exact, abs=0.01)
    assert float(np.exp(found.rows["z1.5"][0])) == pytest.approx(p, abs=0.002)
    assert len(found.rows) == 300 and found.known["tokens"] == []
    out = [line.split() for line in printed(found.about["snippet"], capsys).splitlines()]
    assert len(out) == 300 and "other" not in found.about["snippet"]
    (change,) = [float(line[4]) for line in out if line[:3] == ["head", "23", "3"]]
    assert change == pytest.approx(exact["z23.3"], abs=0.01)


@pytest.mark.thorough
def test_silence_needs_no_other_sentence(client: TestClient) -> None:
    run = facts("storyteller", DOROTHY)
    found = parts(client, run, how="zero")
    a, b = found.known["watched"][:2]
    ids = service.calls().result(service.service().predictions(run.key, None, 2)).ids[0]
    assert (a, b) == tuple(ids) and "there_at" not in found.known
    assert float(np.exp(found.rows["z0.5"][0])) == pytest.approx(0.0284, abs=5e-5)
    assert "r0.3" not in found.rows and len(found.rows) == found.known["of"]


@pytest.mark.thorough
def test_swaps_are_sentences_that_change_the_answer(client: TestClient) -> None:
    answer = client.get("/headlight/whatif/swaps", params={"run": facts().key})
    assert answer.status_code == 200, answer.text
    offers = messages.unpack(answer.content)[0]["offers"]
    word, other, text, following, p = offers[0]
    assert (word, other, text, following) == ("John", "Mary", SWAPPED, "John") and p == pytest.approx(0.75, abs=0.002)
    assert 1 < len(offers) <= 3 and all(offer[3] != "Mary" for offer in offers)
    refused = client.get("/headlight/whatif/swaps", params={"run": facts("minilm", "It was late.").key})
    assert refused.status_code == 400 and "language models that write" in refused.text


def test_one_part_alone_and_another_pair_of_words(client: TestClient) -> None:
    run = facts("storyteller", DOROTHY)
    whole = parts(client, run, against=UNCLE)
    one = parts(client, run, against=UNCLE, alone="m1")
    assert list(one.rows) == ["m1"] and one.change("m1") == pytest.approx(whole.change("m1"), abs=1e-4)
    a, b, c = whole.known["watched"][:3]
    turned = parts(client, run, against=UNCLE, answer=str(b), rival=str(c), alone="m1")
    assert turned.known["watched"][:2] == [b, c]
    assert turned.change("m1") == pytest.approx(
        float(np.subtract(*whole.rows["m1"][1:3]) - np.subtract(*whole.before[1:3])), abs=1e-4
    )
    assert a in turned.known["watched"]


def test_a_kept_change_holds_in_both_sentences(client: TestClient) -> None:
    run = facts("storyteller", DOROTHY)
    plain, edited = parts(client, run, against=UNCLE), parts(client, run, against=UNCLE, edits="temperature_2")
    assert abs(plain.before[0] - edited.before[0]) > 0.01 and len(edited.rows) == len(plain.rows)
    assert "Temperature(" in edited.about["snippet"]


def test_what_cannot_be_taken_says_why(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(run: Facts, **said: str) -> str:
        answer = client.get("/headlight/whatif/parts", params={"run": run.key, "sweep": "patch", **said})
        assert answer.status_code == 400
        return answer.text

    run = facts("storyteller", DOROTHY)
    assert "Type another sentence" in refused(run)
    assert "tokens" in refused(run, against=f"{DOROTHY} Em")
    assert "language models that write" in refused(facts("minilm", "It was late."), against="It was red.")
    for alone in ("z99.0", "z0", "q1.1", "", "r0.99"):
        assert "m21" in refused(run, against=UNCLE, alone=alone)


def test_a_part_in_a_link() -> None:
    run = facts("storyteller", DOROTHY)
    for text in ("", "m1", "r0.3"):
        assert kit_params.read(changes.PARAMS, run, {"part": text})[0]["part"] == text
        assert kit_params.read(changes.PARAMS, run, {"part": text})[1] == []
    assert changes.part_of("z1.2", run) == Component("head", 1, 2)
    for text in ("z1.2", "m99", "r0.99", "r1", "m1.2.3", "x", "m-1"):
        values, notes = kit_params.read(changes.PARAMS, run, {"part": text})
        assert values["part"] == "" and len(notes) == 1


# the screen


def patient(plain_another: AnotherPlain, **said: str) -> Plain:
    """A page on the room for a test whose runs take long."""
    screen = plain_another(reduced_motion="reduce")
    screen.page.set_default_timeout(PATIENCE)
    screen.arrive(f"?{urlencode({'view': 'whatif', **said})}")
    return screen


@pytest.mark.thorough
def test_the_screen_says_what_the_runs_say(plain_another: AnotherPlain) -> None:
    screen = patient(plain_another, **IOI)  # 450 runs of a real model
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, pick="decoder.23.3", rows="450", swept="true")
    fact = root.locator(".board .fact")
    expect(fact).to_have_text(
        "Take only L23 H3 from the other sentence, and Mary falls from 92 % to 9.6 %; John is likelier now, 25 %. "
        "It carries 61 % of the difference between the two sentences."
    )
    expect(root.locator(".board .legend")).to_contain_text("falls: carries it")
    expect(root.locator(".board .legend b")).to_contain_text("all 450 exact")
    bars = root.locator(".board .bar")
    expect(bars.locator(".label")).to_have_text(["Mary", "John", "the", "his", "a", "her"])
    expect(bars.nth(1).locator(".value")).to_have_text(re.compile(r"0\.2 → 25\s%"))
    names = root.locator(".board .one > b")
    expect(names).to_have_text(["L23 H3", "L29 H1", "L29 H0", "L24 H4", "L20 H0"])  # seven in a higher window
    expect(root.locator(".board .one .value")).to_have_text(["−7.1", "−3.0", "+2.3", "+2.1", "−1.9"])
    expect(root.locator(".board figcaption").first).to_contain_text(re.compile(r"John₂ 74\s%"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("(main) => main.scrollHeight - main.clientHeight") == 0, "one screen has all of it"
    low, foot = (root.locator(what).first.bounding_box() for what in (".board .parts svg", "footer"))
    assert low and foot and low["y"] + low["height"] <= foot["y"], "the whole map is in the window"
    # the other way, almost nothing, and a word
    root.get_by_role("button", name="L24 H4").click()
    settled(page, pick="decoder.24.4")
    expect(fact).to_have_text(
        "Take only L24 H4 from the other sentence, and Mary rises from 92 % to 97 %. "
        "It pulls the other way, by 18 % of the difference."
    )
    page.wait_for_url(lambda url: "layer=24" in url and "head=4" in url)
    root.locator(".kinds").get_by_role("button", name="words").click()
    expect(names.first).to_contain_text("after layer")
    page.evaluate("document.activeElement?.blur()")
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    settled(page, pick="decoder.24.8")
    page.keyboard.press("ArrowDown")
    settled(page, pick="m24")
    expect(fact).to_contain_text("Take only MLP 24 from the other sentence")
    page.keyboard.press("ArrowDown")
    settled(page, pick="r24.9")
    expect(fact).to_contain_text("Take only John₂ after layer 24")
    page.wait_for_url(lambda url: "part=r24.9" in url)
    # measures
    page.keyboard.press("m")
    page.wait_for_url(lambda url: "measure=lp" in url)
    expect(root.locator(".board .legend")).to_contain_text("change of log p of Mary")
    page.keyboard.press("m")
    page.keyboard.press("m")
    page.wait_for_url(lambda url: "measure=ld" in url)
    assert findings(screen) == []
    # another word is what stands against the answer
    bars.nth(2).click()
    settled(page, rows="450")
    expect(bars.locator(".label").nth(1)).to_have_text("the")
    expect(root.locator(".board .legend")).to_contain_text("change of Mary − the")
    expect(root.locator(".board .legend b")).to_contain_text("all 450 exact", timeout=PATIENCE)
    settled(page, rows="450")
    # files
    root.get_by_role("button", name="Export").click()
    menu = page.get_by_role("dialog", name="Export")
    with page.expect_download() as waiting:
        menu.get_by_role("button", name=re.compile("CSV: parts")).click()
    assert waiting.value.suggested_filename == "headlight-whatif-parts.csv"
    assert "part,layer,head,token,estimate,exact" in Path(waiting.value.path()).read_text("utf-8")
    with page.expect_download() as waiting:
        menu.get_by_role("button", name="SVG", exact=True).click()
    assert "after layer 24" in Path(waiting.value.path()).read_text("utf-8")
    page.keyboard.press("Escape")

    def check() -> None:
        expect(fact).to_be_visible()
        assert findings(screen) == [] and page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    everywhere(root, check)


@pytest.mark.thorough
def test_a_swap_is_offered_and_never_chosen(plain_another: AnotherPlain) -> None:
    screen = patient(plain_another, **IOI | {"against": ""})
    page, root = screen.page, screen.page.locator(".hl.whatif")
    offer = root.get_by_role("button", name="John → Mary", exact=True)
    offer.wait_for()
    assert "against=When" not in page.url
    settled(page, pick="decoder.23.3", rows="300", swept="true")
    expect(root.locator(".board .fact")).to_contain_text("Without L23 H3, Mary falls from 92 % to 87 %")
    offer.click()
    settled(page, pick="decoder.23.3", rows="450")
    expect(root.locator(".problem")).to_be_hidden()
    expect(root.locator(".offers")).to_be_hidden()
    expect(root.get_by_label("Another sentence")).to_have_value(SWAPPED)


def test_silence_is_one_switch_away_and_keeps_the_part(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, (1280, 720), **STORY, sweep="patch", against=UNCLE)
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, pick="decoder.0.5", swept="true")
    root.get_by_role("button", name="silence", exact=True).click()
    fact = root.locator(".board .fact")
    expect(fact).to_contain_text("Without L0 H5, Em falls from 89 % to 2.8 %")
    expect(fact).to_contain_text("This answer changes; other heads may make up for a silent one.")
    expect(root.locator(".board .legend")).to_contain_text("falls: the answer leans on it")
    expect(root.locator(".kinds")).not_to_contain_text("words")
    settled(page, pick="decoder.0.5", swept="true")
    page.wait_for_url(lambda url: "how=zero" in url and "sweep=patch" in url)
    root.get_by_role("button", name="set to its mean").click()
    expect(fact).to_contain_text("Set L0 H5 to its mean, and Em")
    assert findings(screen) == []
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("s")
    page.wait_for_url(lambda url: "how=zero" in url)
    page.keyboard.press("s")
    expect(fact).to_contain_text("Take only L0 H5 from the other sentence")
    # without another sentence nothing can be taken, and silence is still there
    root.get_by_label("Another sentence").fill("")
    root.get_by_label("Another sentence").press("Enter")
    expect(root.get_by_role("button", name="take from the other")).to_be_disabled()
    expect(fact).to_contain_text("Without L0 H5, Em falls from 89 % to 2.8 %")
    expect(root.locator(".problem")).to_be_hidden()
    expect(root.locator(".lines .says")).to_have_count(1)


def test_estimates_are_no_facts(own_plain: Plain) -> None:
    """While runs are held back, the map has estimates and the sentence says that the run is to come."""
    page = own_plain.page
    page.evaluate(
        """() => { const fetched = window.fetch; window.fetch = async (url, ...more) => {
          const answer = await fetched(url, ...more);
          if (!String(url).includes("whatif/parts")) return answer;
          const all = new Uint8Array(await answer.arrayBuffer());
          const first = 4 + new DataView(all.buffer).getUint32(0, true);
          return new Response(new ReadableStream({ start(sink) {
            sink.enqueue(all.slice(0, first));
            window.release = () => { sink.enqueue(all.slice(first)); sink.close(); };
          } }));
        }; }"""
    )
    own_plain.arrive(f"?{urlencode({'view': 'whatif', **STORY, 'sweep': 'patch', 'against': UNCLE})}")
    root = page.locator('.hl.whatif[data-estimates="true"]')
    expect(root.locator(".board .legend b")).to_contain_text("0 exact")
    expect(root.locator(".board .legend b")).to_contain_text("estimates (small)")
    expect(root.locator(".board .fact")).to_have_text("The parts with the strongest estimates are run first.")
    values = root.locator(".board .one .value").all_text_contents()
    assert len(values) == 5 and all(value.startswith("≈ ") for value in values)
    root.locator(".board .one").nth(2).click()
    expect(root.locator(".board .fact")).to_contain_text("its run has not come yet.")
    assert "%" not in (root.locator(".board .fact").text_content() or "")


@pytest.mark.thorough
def test_unequal_sentences_and_a_phone(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, PHONE, **STORY, sweep="patch", against=f"{DOROTHY} Em")
    root = screen.page.locator(".hl.whatif")
    expect(root.locator(".problem")).to_contain_text("tokens")
    expect(root.locator(".board .parts")).to_be_hidden()
    root.get_by_label("Another sentence").fill(UNCLE)
    root.get_by_label("Another sentence").press("Enter")
    settled(screen.page, pick="decoder.0.5", swept="true")
    expect(root.locator(".problem")).to_be_hidden()
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = root.evaluate(
        "root => [...root.querySelectorAll('button, select, input')].filter(e => e.offsetParent && e.getBoundingClientRect().height < 43.5).map(e => e.textContent || e.type)"
    )
    assert small == [] and findings(screen) == []
    low, top = (root.locator(what).first.bounding_box() for what in (".board .bar", ".board .parts"))
    assert low and top and top["y"] < low["y"], "the map comes before the words"
    root.get_by_role("button", name="weaker").first.click()
    expect(root.locator(".board .fact")).not_to_contain_text("L0 H5")


# how the room opens


@pytest.mark.parametrize(
    "said, shown, expected",
    [
        ({}, MARY, {"sweep": "parts", "against": SWAPPED, "how": "patch", "measure": "ld"}),
        ({}, "The big dog chased the cat up the", {"sweep": "parts", "against": "", "how": "patch", "measure": "lp"}),
        ({"against": ""}, MARY, {"sweep": "parts", "against": "", "measure": "ld"}),
        ({"against": "The big dog ran after the cat up a"}, "The big dog chased the cat up the", {"measure": "ld"}),
        ({"sweep": "heads", "by": "mean"}, MARY, {"sweep": "heads", "how": "mean", "measure": "p"}),
        ({"sweep": "heads"}, "It was", {"sweep": "heads", "how": "zero", "measure": "p"}),
        ({"sweep": "patch", "against": SWAPPED}, MARY, {"sweep": "patch", "how": "patch", "measure": "ld"}),
    ],
)
def test_what_a_link_leaves_out_is_chosen_by_the_text(
    said: dict[str, str], shown: str, expected: dict[str, str]
) -> None:
    values, notes = kit_params.read(changes.PARAMS, facts(text=shown), said)
    assert {name: values[name] for name in expected} == expected and notes == []


def test_the_pairs_of_examples_have_one_length_and_two_answers() -> None:
    ask = service.calls()
    found = [(model, one) for model, all_ in examples.EXAMPLES.items() for one in all_ if one.other]
    assert len(found) >= 4
    for model, one in found:
        both = [facts(model, text) for text in (one.text, one.other)]
        assert len(both[0].source) == len(both[1].source), one.other
        answers = [ask.result(service.service().predictions(run.key, None, 1)).ids[0][0] for run in both]
        assert answers[0] != answers[1], one.other
        assert changes.own_pair(both[0]) == one.other and changes.own_pair(both[1]) == ""


def test_an_encoder_opens_as_it_did() -> None:
    values, _ = kit_params.read(changes.PARAMS, facts("minilm", "It was late."), {})
    assert (values["sweep"], values["against"]) == ("heads", "")


@pytest.mark.parametrize(
    "more, how, part",
    [
        ({"sweep": "heads", "by": "mean", "layer": "0", "head": "5"}, "set to its mean", "Set L0 H5 to its mean"),
        ({"sweep": "heads", "layer": "0", "head": "6"}, "silence", "Without L0 H6, Em falls from 89 % to 66 %"),
        ({}, "silence", "Without L0 H5, Em falls from 89 % to 2.8 %"),
    ],
)
def test_older_links_and_a_text_of_ones_own_open_the_map(
    plain_another: AnotherPlain, more: dict[str, str], how: str, part: str
) -> None:
    screen = visit(plain_another, (1280, 720), **STORY, **more)
    root = screen.page.locator(".hl.whatif")
    settled(screen.page, sweep="parts", swept="true")
    expect(root.locator(".board .fact")).to_contain_text(part)
    expect(root.get_by_role("button", name=how, exact=True)).to_have_attribute("aria-pressed", "true")
    expect(root.locator(".columns")).to_be_hidden()


@pytest.mark.thorough
def test_an_example_opens_with_its_own_pair_and_another_text_lets_it_go(own_screen: Screen) -> None:
    page, root = own_screen.page, own_screen.page.locator(".hl.whatif")
    page.set_default_timeout(PATIENCE)
    said = {"view": "whatif", "model": "SmolLM2-135M", "text": "The capital of France is"}
    page.goto(f"{own_screen.address}/?{urlencode(said)}")
    settled(page, sweep="parts")
    expect(root.get_by_label("Another sentence")).to_have_value("The capital of Italy is")
    page.wait_for_url(lambda url: "against=The+capital+of+Italy+is" in url and "rule=against" in url)
    box = page.get_by_role("textbox", name="Sentence").first
    box.fill("The big dog chased the cat up the")
    box.press("Enter")
    page.wait_for_url(lambda url: "against=&" in url)
    settled(page, sweep="parts")
    expect(root.get_by_role("button", name="log p", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(root.locator(".board .fact")).to_contain_text("Without L")


@pytest.mark.thorough
def test_what_the_map_lacks_is_one_step_away(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, (1280, 720), **STORY, against=UNCLE)
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, sweep="parts", swept="true")
    scale = root.get_by_role("button", name="no 1/√d")
    expect(scale).to_be_hidden()
    root.get_by_role("button", name="the whole run").click()
    scale.click()
    settled(page, sweep="heads", pick="")
    expect(root.locator(".columns .fact")).to_contain_text("With no 1/√d")
    root.get_by_role("button", name="each part in turn").click()
    settled(page, sweep="parts", swept="true")
    page.wait_for_url(lambda url: "edits=noscale" in url and "pick=on" in url)
    root.locator("label.other", has_text="another model").locator("select").select_option(index=1)
    expect(root.locator(".columns")).to_be_visible()
    root.get_by_role("button", name="each part in turn").click()
    settled(page, sweep="parts", swept="true")
    # a link is compared as a whole; its parts can be taken one by one all the same
    box = root.get_by_label("Another sentence")
    box.fill(f"?{urlencode({'model': 'Storyteller', 'text': UNCLE})}")
    box.press("Enter")
    settled(page, sweep="heads", pick="")
    expect(root.locator(".middle h2")).to_contain_text("looks elsewhere there")
    root.get_by_role("button", name="each part in turn").click()
    settled(page, sweep="parts", pick="decoder.0.5")
    expect(root.locator(".board .fact")).to_contain_text("Take only L0 H5 from the other sentence")


@pytest.mark.thorough
def test_the_pair_of_an_example_stays_on_the_map(plain_another: AnotherPlain) -> None:
    said = {"model": "SmolLM2-135M", "text": "The capital of France is", "edits": "noscale", "pick": "off"}
    screen = patient(plain_another, **said)
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, sweep="heads", pick="")
    expect(root.locator(".columns .fact")).to_contain_text("With no 1/√d, Paris")
    expect(root.locator(".lines .name")).to_have_text(["as it is", "changed"])
