"""What if, beside its map: paths between heads, three tests, how good the estimates were, and what heads read; routes, files, screens."""

from __future__ import annotations

import csv
import io
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.kit import params as kit_params
from app.rooms.whatif import changes
from app.shell import routes
from app.transport import messages
from tests.app.plain import AnotherPlain
from tests.app.test_accessibility import findings
from tests.app.test_whatif import DOROTHY, PHONE, STORY, UNCLE, printed, settled, visit
from tests.app.test_whatif_parts import IOI, MARY, SWAPPED, facts, patient

APP = "app/main.py"
NINE = "23.3,29.1,29.0,24.4,20.0,19.2,23.0,17.4,23.2"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.ROUTES), raise_server_exceptions=True) as client:
        yield client


def framed(content: bytes) -> list[dict]:
    """The headers of framed messages."""
    found, rest = [], content
    while rest:
        (length,) = struct.unpack_from("<I", rest)
        found.append(messages.unpack(rest[4 : 4 + length])[0])
        rest = rest[4 + length :]
    return found


def asked(**said: str) -> dict[str, str]:
    return {"run": facts().key, "sweep": "patch", "against": SWAPPED, **said}


@pytest.mark.thorough
def test_paths_of_a_real_model_and_the_code_that_gives_them(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = client.get("/headlight/whatif/paths", params=asked(heads="23.3,29.1,29.0,24.4"))
    assert answer.status_code == 200, answer.text
    *some, about = framed(answer.content)
    edges = {(a, b, part): change for found in some for a, b, part, change in found["edges"]}
    assert len(edges) == some[0]["of"] == sum(len(found["edges"]) for found in some)
    expected = {
        ("z23.3", "z29.1", "v"): -2.185,
        ("z23.3", "z29.0", "v"): 1.828,
        ("z23.3", "z24.4", "q"): 1.768,
        ("z23.3", "", "out"): -6.190,
        ("", "z23.3", "v"): -7.274,
    }
    assert {path: edges[path] for path in expected} == pytest.approx(expected, abs=0.01)
    _, name, text = about["table"]
    rows = list(csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#")))
    assert name == "headlight-whatif-paths" and len(rows) == len(edges) and MARY in about["caption"]
    (row,) = [row for row in rows if (row["from"], row["to"], row["input"]) == ("L23 H3", "L29 H1", "v")]
    assert float(row["change"]) == pytest.approx(-2.185, abs=0.01)
    out = printed(about["snippet"], capsys).splitlines()
    assert len(out) == len(edges)
    (line,) = [line for line in out if line.startswith("(23, 3) (29, 1) v ")]
    assert float(line.split()[-1]) == pytest.approx(-2.185, abs=0.01)


def test_paths_into_one_head(client: TestClient) -> None:
    answer = client.get("/headlight/whatif/paths", params=asked(heads="20.0,19.2,17.4", into="23.2"))
    *some, about = framed(answer.content)
    edges = {(a, part): change for found in some for a, b, part, change in found["edges"] if b == "z23.2"}
    assert len(edges) == some[0]["of"] == 12
    assert edges["z20.0", "q"] == pytest.approx(-1.228, abs=0.01)
    assert "receivers=[(23, 2)]" in about["snippet"]


@pytest.mark.thorough
def test_three_tests_of_a_head_and_an_mlp(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    def found(tested: str, **said: str) -> dict:
        answer = client.get("/headlight/whatif/tests", params=asked(tested=tested, **said))
        assert answer.status_code == 200, answer.text
        return messages.unpack(answer.content)[0]

    head = found("z23.3")
    assert [name for name, _, _ in head["tests"]] == ["other", "zero", "mean"] and head["verdict"] == "same"
    assert [change for _, change, _ in head["tests"]] == pytest.approx([-7.082, -3.044, -2.553], abs=0.01)
    assert [p for _, _, p in head["tests"]] == pytest.approx([0.0962, 0.8729, 0.8862], abs=0.002)
    assert head["lead"] == pytest.approx(6.120, abs=0.01)
    numbers = [float(x) for x in printed(head["snippet"], capsys).split()[:3]]
    assert numbers == pytest.approx([-7.082, -3.044, -2.553], abs=0.01)
    _, _, table = head["table"]
    assert "take from the other,-7.0" in table and "test,change,p_answer" in table
    silent = found("z1.5")
    assert silent["verdict"] == "silence" and silent["tests"][1][1] == pytest.approx(-2.182, abs=0.01)
    assert silent["tests"][1][2] == pytest.approx(0.6544, abs=0.002)
    mlp = found("m21")
    assert mlp["tests"][0][1] == pytest.approx(-1.519, abs=0.01)
    assert "hl.patching.Component('mlp', 21, 0)" in mlp["snippet"]
    # without another sentence there are two
    alone = found("z23.3", against="", how="zero")
    assert [name for name, _, _ in alone["tests"]] == ["zero", "mean"]


@pytest.mark.thorough
def test_what_heads_read(client: TestClient) -> None:
    answer = client.get("/headlight/whatif/notes", params=asked())
    header, body = messages.unpack(answer.content)
    assert (header["layers"], header["each"]) == (30, 9)
    read = {
        name: np.frombuffer(body, "<f4", 270, header[f"{name}_at"]).reshape(30, 9)
        for name in ("acts", "keys", "weights")
    }
    assert [read[name][23, 3] for name in read] == pytest.approx([13, 9, 0.74], abs=0.01)
    pushes = np.frombuffer(body, "<f4", 540, header["pushes_at"]).reshape(30, 9, 2)
    assert pushes[23, 3].tolist() == pytest.approx([-0.08, -2.94], abs=0.02)


def test_what_cannot_be_asked_says_why(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str, **said: str) -> str:
        answer = client.get(f"/headlight/whatif/{path}", params=said)
        assert answer.status_code == 400, answer.text
        return answer.text

    story = facts("storyteller", DOROTHY)
    own = {"run": story.key, "sweep": "patch"}
    assert "another sentence: type one" in refused("paths", **own, heads="0.5")
    assert "another sentence: type one" in refused("paths", **own, heads="0.5", against=UNCLE, how="zero")
    assert "tokens" in refused("paths", **own, heads="0.5", against=f"{DOROTHY} Em")
    for heads in ("x", "99.0", "0", "0.99"):
        assert "such as 23.3" in refused("paths", **own, heads=heads, against=UNCLE)
    assert "at least one" in refused("paths", **own, heads="", against=UNCLE)
    for tested in ("", "r0.3", "z99.0", "x"):
        assert "Three tests are of a head" in refused("tests", **own, tested=tested, against=UNCLE)
    vectors = {"run": facts("minilm", "It was late.").key, "sweep": "patch"}
    for path in ("paths", "tests", "notes"):
        assert "language models that write" in refused(path, **vectors, heads="0.0", tested="z0.0")
    # more runs than one question may have, and less memory than they need: both numbers
    heads = ",".join(f"{layer}.{head}" for layer in range(30) for head in range(9))
    assert re.search(r"would be [\d,]+ runs, and 1,000 are the most", refused("paths", **asked(heads=heads)))
    monkeypatch.setattr("core.device.SMALL", 0)
    monkeypatch.setattr("core.device.free_bytes", lambda _: 1 << 10)
    assert re.search(r"\d.*iB.*\d.*iB", refused("paths", **asked(heads="23.3,29.0")))


def test_words_of_a_link() -> None:
    run = facts("storyteller", DOROTHY)
    values, notes = kit_params.read(changes.PARAMS, run, {"draw": "paths", "low": "check", "into": "1.2"})
    assert (values["draw"], values["low"], values["into"], notes) == ("paths", "check", "1.2", [])
    for said in ({"draw": "x"}, {"low": "x"}, {"into": "99.0"}, {"into": "x"}, {"into": "1"}):
        values, notes = kit_params.read(changes.PARAMS, run, said)
        assert (values["draw"], values["low"], values["into"]) == ("map", "maps", "") and len(notes) == 1


# the screen


def free(page: Page) -> None:
    page.evaluate("document.activeElement?.blur()")


@pytest.mark.thorough
def test_paths_on_the_screen(plain_another: AnotherPlain) -> None:
    screen = patient(plain_another, **IOI)
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, pick="decoder.23.3", rows="450", noted="true")
    rows = root.locator(".board .one")
    expect(rows.first.locator(".does")).to_have_text(re.compile(r"reads John₂ \(74\s%\) · pushes John down"))
    expect(rows.nth(1).locator(".does")).to_have_text(re.compile(r"reads itself \(60\s%\) · pushes Mary up"))
    expect(rows.nth(4).locator(".does")).to_have_text(re.compile(r"reads John₂ \(78\s%\) · tells later heads"))
    root.get_by_role("button", name="paths", exact=True).click()
    settled(page, paths="132")
    page.wait_for_url(lambda url: "draw=paths" in url)
    drawing = root.locator(".board .paths svg")
    for said in ("L23 H3", "reads John₂", "L29 H1", "L24 H4", "−7.3", "−6.2", "+1.8", "−2.2", "⇄ Mary", "6.1 → −5.5"):
        expect(drawing).to_contain_text(said)
    expect(root.locator(".board .paths")).to_contain_text("all else is held as it was, MLPs too")
    label = root.get_by_role("group", name=re.compile("Paths between heads, the strongest")).get_attribute("aria-label")
    assert label and "L23 H3 → the answer, the answer itself: −6.2" in label and "Chosen: L23 H3" in label
    low, foot = (root.locator(what).first.bounding_box() for what in (".board .paths", "footer"))
    assert low and foot and low["y"] + low["height"] <= foot["y"] + 1, "the whole picture is in the window"
    assert findings(screen) == [] and page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # arrows move among heads, and a click chooses one
    free(page)
    page.keyboard.press("ArrowRight")
    settled(page, pick="decoder.24.4")
    drawing.get_by_text("L29 H0").click()
    settled(page, pick="decoder.29.0")
    page.wait_for_url(lambda url: "layer=29" in url and "head=0" in url)
    # as a table, and as files
    root.get_by_role("button", name="as tables").click()
    table = root.get_by_role("region", name=re.compile("Paths between heads"))
    expect(table.locator("tbody tr")).to_have_count(132)
    expect(table.locator("tbody tr").first).to_contain_text("−7.27")
    root.get_by_role("button", name="Export").click()
    menu = page.get_by_role("dialog", name="Export")
    with page.expect_download() as waiting:
        menu.get_by_role("button", name="SVG", exact=True).click()
    drawn = Path(waiting.value.path()).read_text("utf-8")
    assert "reads itself" in drawn and "MLPs too" in drawn and "<path" in drawn
    with page.expect_download() as waiting:
        menu.get_by_role("button", name="CSV: paths").click()
    text = Path(waiting.value.path()).read_text("utf-8")
    assert waiting.value.suggested_filename == "headlight-whatif-paths.csv" and "L23 H3,L29 H1,v,-2.18" in text
    with page.expect_download() as waiting:
        menu.get_by_role("button", name="NPZ", exact=True).click()
    arrays = np.load(waiting.value.path())
    assert arrays["heads_exact"].shape == arrays["heads_estimate"].shape == (30, 9)
    assert arrays["heads_exact"][23, 3] == pytest.approx(-7.082, abs=0.01)
    assert arrays["heads_estimate"][23, 3] == pytest.approx(-5.39, abs=0.01)
    john = list(arrays["watched"]).index("John")
    assert arrays["heads_log_p"][23, 3, john] == pytest.approx(np.log(0.2519), abs=0.01)
    assert arrays["words_exact"].shape == (30, 5) and arrays["mlps_exact"][0] == pytest.approx(-11.568, abs=0.01)
    page.keyboard.press("Escape")
    # G goes back; silence has no paths
    free(page)
    page.keyboard.press("g")
    page.wait_for_url(lambda url: "draw=map" in url)
    expect(root.locator(".board .paths")).to_be_hidden()
    root.get_by_role("button", name="silence", exact=True).click()
    expect(root.get_by_role("button", name="paths", exact=True)).to_be_disabled()


@pytest.mark.thorough
def test_a_link_to_paths_and_tests_opens_the_same(plain_another: AnotherPlain) -> None:
    screen = patient(plain_another, **IOI, draw="paths", low="tests", layer="1", head="5")
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, pick="decoder.1.5", rows="450", paths="132")
    tests = root.locator(".board .test")
    expect(tests).to_have_count(3)
    expect(tests.locator(".value")).to_have_text(["0.0", "−2.2", "0.0"])
    expect(tests.locator(".mute")).to_have_text([re.compile(rf"Mary {p}\s%") for p in ("92", "65", "95")])
    said = root.locator(".board .looks > .said")
    expect(said).to_contain_text("Only silence moves it: the model needs its usual output, not what it says here.")
    expect(said).to_contain_text("Change of Mary − John; the lead is 6.1.")
    root.locator(".board .one").first.click()
    expect(tests.locator(".value")).to_have_text(["−7.1", "−3.0", "−2.6"])
    expect(said).to_contain_text("All three move it the same way.")
    assert findings(screen) == []
    root.get_by_role("button", name="Export").click()
    menu = page.get_by_role("dialog", name="Export")
    with page.expect_download() as waiting:
        menu.get_by_role("button", name="CSV: tests").click()
    assert "silence,-3.04" in Path(waiting.value.path()).read_text("utf-8")
    page.keyboard.press("Escape")
    # an MLP is tested too, a word is not
    root.locator(".kinds").first.get_by_role("button", name="MLPs").click()
    expect(root.locator(".board .one").first).to_contain_text("MLP")
    root.locator(".board .one").first.click()
    settled(page, pick="m0")
    expect(tests.locator(".value").first).to_have_text("−11.6")
    root.locator(".kinds").first.get_by_role("button", name="words").click()
    expect(root.locator(".board .one").first).not_to_contain_text("MLP")
    root.locator(".board .one").first.click()
    expect(root.get_by_role("button", name="3 tests")).to_be_disabled()
    expect(said).to_contain_text("all that earlier layers have written there")


@pytest.mark.thorough
def test_how_good_the_estimates_were(plain_another: AnotherPlain) -> None:
    screen = patient(plain_another, **IOI, low="check")
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, pick="decoder.23.3", rows="450")
    check = root.locator(".board .check")
    expect(check).to_contain_text("Rank agreement 0.95")
    expect(check).to_contain_text("Of the 10 strongest, 9 are in its top 10; wrong signs: 2.")
    expect(check).to_contain_text("Of Mary − John. Furthest off:")
    expect(check.locator(".off").first).to_have_text("L20 H0 ≈ +0.2, is −1.9")
    expect(check.locator("svg circle")).to_have_count(
        270 + 3
    )  # three that are furthest off have a rim, the chosen one among them
    box, foot = (root.locator(what).first.bounding_box() for what in (".board .check", "footer"))
    assert box and foot and box["y"] + box["height"] <= foot["y"] + 1
    assert findings(screen) == []
    check.locator(".off").first.click()
    settled(page, pick="decoder.20.0")
    page.wait_for_url(lambda url: "low=check" in url and "layer=20" in url)


def test_all_that_comes_into_one_head_on_demand(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, (1280, 720), **STORY, sweep="patch", against=UNCLE, draw="paths", layer="1", head="0")
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, pick="decoder.1.0", swept="true")
    button = root.get_by_role("button", name="All that comes into L1 H0")
    button.click()
    page.wait_for_url(lambda url: "into=1.0" in url)
    expect(root.locator(".board .paths")).to_contain_text("into L1 H0, all else held, MLPs too: the strongest of")
    expect(root.locator(".board .paths svg")).to_contain_text("all before it")
    assert findings(screen) == []
    root.get_by_role("button", name="Back to the nine strongest heads").click()
    page.wait_for_url(lambda url: "into=" not in url)
    expect(root.locator(".board .paths")).to_contain_text("one head passes its change to one other")


def test_a_text_that_is_too_long_for_paths_says_so(
    plain_another: AnotherPlain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The picture is refused with a sentence in its place; the map and the rest of the room stay."""
    screen = visit(plain_another, (1280, 720), **STORY, sweep="patch", against=UNCLE)
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, swept="true")
    sentence = (
        "Holding the other parts of a run of 4,000 tokens needs 3.0 GiB, and 1.0 GiB are free. Choose fewer heads."
    )
    page.route("**/headlight/whatif/paths?*", lambda route: route.fulfill(status=400, body=sentence))
    free(page)
    page.keyboard.press("g")
    expect(root.locator(".board .paths")).to_contain_text(sentence)
    expect(root.locator(".board .fact")).to_contain_text("Take only")
    expect(root.locator(".board .paths svg")).to_be_hidden()
    assert "Traceback" not in page.inner_text("body") and findings(screen) == []


@pytest.mark.thorough
def test_paths_and_tests_on_a_phone(plain_another: AnotherPlain) -> None:
    screen = visit(plain_another, PHONE, **STORY, sweep="patch", against=UNCLE, draw="paths", low="tests")
    page, root = screen.page, screen.page.locator(".hl.whatif")
    settled(page, swept="true")
    expect(root.locator(".board .paths svg")).to_contain_text("reads")
    expect(root.locator(".board .test")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = root.evaluate(
        "root => [...root.querySelectorAll('button, select, input')].filter(e => e.offsetParent && e.getBoundingClientRect().height < 43.5).map(e => e.textContent || e.type)"
    )
    assert small == [] and findings(screen) == []
