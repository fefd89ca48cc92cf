"""Shapes, Memory and Compute as pages: anybody can use them, from the last row as well, and take away what they show."""

from __future__ import annotations

import contextlib
import io
import json
import re
import struct
import xml.etree.ElementTree as ET
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from app.kit import numbers
from app.kit.theme import PALETTES
from app.rooms.compute import words as compute_words
from app.rooms.memory import words
from app.rooms.shapes import words as shapes_words
from app.sizes import controls as sizes_controls
from app.sizes import words as sizes_words
from app.sizes.setup import Setup
from core.checkpoints import curve
from core.plan import PRESETS, plan
from tests.app.browsing import box_of, digit, go_to, once
from tests.app.planning_screen import PATIENCE, Planner, visiting
from tests.app.script import message
from tests.app.test_accessibility import findings
from tests.app.test_memory import compute_page, memory_page, opened
from tests.app.test_theme import contrast

APP = "app/main.py"
SVG = "{http://www.w3.org/2000/svg}"
LESSON = Setup("lesson", PRESETS["lesson-encoder"].config, 32, 50, 0, training=True)
GPT2 = {"plan_model": "gpt2"}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

# state -> (view, what the link says)
STATES: dict[str, tuple[str, dict[str, str]]] = {
    "does it fit": ("Memory", {"memory_part": "Does it fit"}),
    "where it goes": ("Memory", {"memory_part": "Where it goes"}),
    "longer texts": ("Memory", {"memory_part": "Longer texts", **GPT2}),
    "what is kept": ("Memory", {"memory_part": "What is kept"}),
    "the cache": ("Memory", {"memory_part": "KV cache", **GPT2}),
    "operations": ("Compute", GPT2),
    "the roofline": ("Compute", {"compute_part": "Roofline", **GPT2}),
    "an RNN": ("Compute", {"compute_part": "RNN"}),
    "cost terms": ("Compute", {"compute_part": "Encoder–decoder", "plan_model": "transformer-base"}),
    "parameters": ("Compute", {"compute_part": "Parameters"}),
    "known models": ("Compute", {"compute_part": "Known models"}),
    "how tasks were learnt": ("Training", {"training_part": "Six tasks"}),
    "sizes that do not fit together": ("Memory", {"plan_heads": "12"}),
    "projected": ("Memory", {"projector": "true"}),
}


def parts_of(view: str) -> dict[str, str]:
    return words.MEMORY_PARTS if view == "Memory" else compute_words.COMPUTE_PARTS


def test_the_states_are_all_parts_of_both_views() -> None:
    for view in ("Memory", "Compute"):
        key = f"{view.lower()}_part"
        opened = [params.get(key) for name, params in STATES.values() if name == view]
        first, *_ = parts_of(view).values()
        assert set(parts_of(view).values()) <= {part or first for part in opened}


@pytest.mark.thorough
@pytest.mark.parametrize("view", ["Memory", "Compute"])
def test_on_a_phone_the_sentence_and_its_chart_stand_above_the_sliders(
    browser: Browser, address: str, view: str
) -> None:
    with visiting(browser, address, size=(390, 844)) as screen:
        screen.see(view)
        places = [screen.root.locator("h2"), screen.page.locator(".js-plotly-plot").first, screen.slider("batch")]
        tops = [box_of(place)["y"] for place in places]
        assert tops == sorted(tops) and tops[0] < 300
        assert screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390


@pytest.mark.thorough
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(browser: Browser, address: str, state: str) -> None:
    """Light and dark; every chart has a name, a sentence above and a table below."""
    view, params = STATES[state]
    with visiting(browser, address) as screen:
        if state == "sizes that do not fit together":  # a sentence, and no picture yet
            screen.page.goto(f"{address}/?{urlencode({'view': view, **params})}")
            screen.text("must be a multiple of n_heads")
        else:
            screen.see(view, state != "does it fit", **params)
        found = {}
        for scheme in SCHEMES:
            screen.page.emulate_media(color_scheme=scheme)
            background = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
            wanted = {"light": "rgb(252, 252, 250)", "dark": "rgb(15, 18, 22)"}[scheme]
            once(screen.page, f"{background} === '{wanted}'")
            # Components take the page's colours in a step of their own.
            expect(screen.page.locator(f".hl[data-theme]:not([data-theme={scheme}])")).to_have_count(0)
            found[scheme] = findings(screen)
        assert not any(found.values()), found
        if state in ("does it fit", "sizes that do not fit together", "projected"):
            return
        charts = screen.page.locator("[data-testid=stPlotlyChart]")
        names = charts.evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        assert len(names) == 1 and names[0] == screen.headline
        screen.text(sizes_words.TABLE)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "query", ["", "&as=table", "&of=transformer-base&tensor=decoder.cross.weights", "&projector=true"]
)
def test_axe_finds_nothing_on_shapes(browser: Browser, address: str, query: str) -> None:
    """Light and dark."""
    with visiting(browser, address) as screen:
        screen.page.goto(f"{address}/?view={shapes_words.TITLE}{query}")
        shapes = screen.page.locator(".hl.shapes[data-painted]")
        shapes.wait_for()
        for scheme in SCHEMES:
            screen.page.emulate_media(color_scheme=scheme)
            screen.page.locator(f".hl.shapes[data-theme={scheme}]").wait_for()
            assert findings(screen) == []


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_chosen_from_a_list_can_be_read(browser: Browser, address: str, scheme: str) -> None:
    """The chips of a list of cards: Streamlit writes white on the colour of the theme, 1.9 : 1 on a dark page."""
    with visiting(browser, address, scheme) as screen:
        screen.see("Memory", memory_part="Longer texts")
        chip = screen.page.locator("[data-testid=stMultiSelectTagsContainer] [role=group] > *").first
        ink, ground = chip.evaluate("chip => [getComputedStyle(chip).color, getComputedStyle(chip).backgroundColor]")
        assert hexadecimal(ink) == PALETTES[scheme]["ink"]
        over = mixed(PALETTES[scheme]["panel"], PALETTES[scheme]["ink"], 0.12)
        assert contrast(hexadecimal(ink), over) >= 4.5
        assert "0.12" in ground


def hexadecimal(colour: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in colour[4:-1].split(",")[:3])


def mixed(below: str, above: str, share: float) -> str:
    pairs = [(int(below[i : i + 2], 16), int(above[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(b + (a - b) * share):02x}" for b, a in pairs)


# a slider that is held


@pytest.mark.thorough
def test_the_sentence_follows_a_slider_before_it_is_let_go(browser: Browser, address: str) -> None:
    """While the thumb is held nothing is sent; every place says what core.plan gives for it."""
    with visiting(browser, address) as screen:
        sent: list[str] = []
        screen.page.on("websocket", lambda socket: socket.on("framesent", lambda _: sent.append("frame")))
        screen.see("Memory")
        thumb = "[class*=st-key-box_plan_batch_] [data-testid=stSliderThumbValue]"
        held = box_of(screen.page.locator(thumb))
        x, y = held["x"] + held["width"] / 2, held["y"] + held["height"] + 8
        screen.page.mouse.move(x, y)
        screen.page.mouse.down()
        before = len(sent)
        seen = {}
        # Read at once: of a place that is drawn in between there would be another's sentence.
        both = f"root => [document.querySelector('{thumb}').innerText, root.querySelector('h2').innerText]"
        for step in range(1, 9):
            screen.page.mouse.move(x + step * 8, y)
            screen.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            place, said = screen.root.evaluate(both)
            seen[place] = said
        assert len(sent) == before
        assert len(seen) >= 3
        workload = LESSON.workload
        for batch, said in seen.items():
            workload = replace(LESSON.workload, batch=int(batch))
            assert numbers.both(plan(LESSON.config, workload).total) in said
        screen.page.mouse.up()
        screen.page.locator(
            f".js-plotly-plot text:has-text('{numbers.both(plan(LESSON.config, workload).total)}')"
        ).first.wait_for()
        assert len(sent) > before


@pytest.mark.thorough
def test_the_sentence_follows_a_slider_that_is_made_again_elsewhere(browser: Browser, address: str) -> None:
    """As one that a step back or another text fills is: the sentence may be there before it."""
    with visiting(browser, address) as screen:
        screen.see("Memory")
        made = "slider => { const made = slider.cloneNode(); made.ariaValueText = '64'; slider.replaceWith(made); }"
        screen.slider("batch").evaluate(made)
        workload = replace(LESSON.workload, batch=64)
        expect(screen.root.locator("h2")).to_contain_text(numbers.both(plan(LESSON.config, workload).total))


def test_every_place_of_every_slider_is_what_the_planner_says() -> None:
    found = message(opened(memory_page, plan_model="GPT-2 small"), "planner")["ahead"]
    base = Setup("gpt2", PRESETS["gpt2"].config, 1, 1024, 0, training=True)
    assert {"batch", "source", "d_model", "heads", "kv_heads", "layers", "d_ff", "vocab"} == found.keys()
    for batch in (1, 64, 1024):
        assert numbers.both(plan(base.config, replace(base.workload, batch=batch)).total) in found["batch"][str(batch)]
    assert "n_ctx (1,024)" in found["source"]["2048"]
    assert "d_model (768) must be a multiple of n_heads (10)" in found["heads"]["10"]


# from the last row


@pytest.mark.thorough
@pytest.mark.parametrize(
    "view", ["Memory", *(pytest.param(view, marks=pytest.mark.thorough) for view in ("Compute", shapes_words.TITLE))]
)
def test_projector_mode(browser: Browser, address: str, view: str) -> None:
    """P and the button: large type, controls folded away, in the link; Escape brings everything back."""
    controls = ".st-key-shapes_request" if view == shapes_words.TITLE else "[class*=st-key-box_plan_model_]"
    with visiting(browser, address, size=(1920, 1080)) as screen:
        screen.page.goto(f"{address}/?view={view}")
        hl = screen.page.locator(".hl[data-painted]")
        hl.wait_for()
        size = "parseFloat(getComputedStyle(document.documentElement).fontSize)"
        plain = screen.page.evaluate(size)
        screen.page.get_by_role("button", name="Project", exact=True).click()
        screen.page.locator(controls).wait_for(state="hidden")
        screen.page.wait_for_url(lambda url: "projector=true" in url)
        assert screen.page.evaluate(size) >= 1.4 * plain
        assert not screen.page.locator(".st-key-bar").is_visible()
        link = screen.page.url
        screen.page.keyboard.press("Escape")
        screen.page.locator(controls).wait_for()
        screen.page.wait_for_url(lambda url: "projector" not in url)
        screen.page.goto(link)
        screen.page.locator(".hl[data-projector=true]").wait_for()
        screen.idle()
        screen.page.locator(controls).wait_for(state="hidden")
        assert screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 1920


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("key", "wanted"), [("PageDown", "[data-view=memory]"), (digit("compute"), "[data-view=compute]")]
)
def test_a_part_or_room_chosen_right_after_p_does_not_take_the_projector_back(
    browser: Browser, address: str, key: str, wanted: str
) -> None:
    """The projector is the page's: no script, and none that began before, knows of it. Back takes one step at a time."""
    with visiting(browser, address) as screen:
        screen.see("memory")
        for name in ("p", key):
            screen.page.keyboard.press(name)
        screen.page.wait_for_url(lambda url: "projector=true" in url and ("Longer" in url or "view=compute" in url))
        screen.root.and_(screen.page.locator(f"{wanted}[data-projector=true]")).wait_for()
        screen.idle()
        projected = "document.documentElement.dataset.projector ?? null"
        assert screen.page.evaluate(projected) == "true" and "projector=true" in screen.page.url
        screen.page.go_back()
        screen.page.locator("[data-view=memory][data-projector=true]").wait_for()
        screen.page.wait_for_url(lambda url: "projector=true" in url and "Longer" not in url)
        screen.page.go_back()
        screen.page.locator("[data-view=memory][data-projector=false]").wait_for()
        assert screen.page.evaluate(projected) is None


@pytest.mark.thorough
@pytest.mark.parametrize("title", ["Operations", "Roofline", "RNN", "Longer texts"])
def test_a_projected_chart_has_its_axis_above_the_sliders(browser: Browser, address: str, title: str) -> None:
    """What else is said of it stands under it there."""
    view = "Memory" if title == "Longer texts" else "Compute"
    with visiting(browser, address) as screen:
        screen.see(view, projector="true", **{f"{view.lower()}_part": title})
        axis = screen.page.locator(".js-plotly-plot .xtitle")
        once(
            screen.page,
            """() => {
                const axis = document.querySelector('.js-plotly-plot .xtitle')?.getBoundingClientRect();
                const sliders = document.querySelector('[class*=st-key-box_plan_batch_]')?.getBoundingClientRect();
                const said = document.querySelector('.stElementContainer:has(.js-plotly-plot) + .stElementContainer .stText');
                const note = said?.getBoundingClientRect();
                const isWhole = !note || note.bottom <= sliders?.top || note.top >= sliders?.top; // and not cut in two
                return axis && sliders && axis.height > 0 && axis.bottom <= sliders.top && isWhole;
            }""",
            timeout=PATIENCE,
        )
        assert axis.count() == 1


CHARTS = {"kept": "kept", "Longer": "curves"}  # of a part: what stands below its sentence


@pytest.mark.thorough
def test_a_clicker_goes_through_the_parts(browser: Browser, address: str) -> None:
    with visiting(browser, address) as screen:
        screen.see("Memory", projector="true")
        screen.root.evaluate("root => { root.isFirst = true; }")
        for _ in range(3):  # as fast as they come: each counts, whatever of the part before is still on its way
            screen.page.keyboard.press("PageDown")
        screen.page.wait_for_url(re.compile("KV(.|%20)cache"))
        for part in ("kept", "Longer"):
            screen.page.keyboard.press("PageUp")
            screen.page.wait_for_url(re.compile(part))
            screen.root.and_(screen.page.locator(f"[data-chart=memory_{CHARTS[part]}]")).wait_for()
            screen.idle()
            # What listens for the keys never leaves the page: one pressed while a part is drawn would find nobody.
            assert screen.root.evaluate("root => root.isFirst")
        screen.page.keyboard.press("PageUp")
        screen.page.wait_for_url(lambda url: "memory_part=Where" in url)
        screen.root.and_(screen.page.locator("[data-chart=memory_bars]")).wait_for()
        assert screen.root.evaluate("root => root.isFirst")
        assert "projector=true" in screen.page.url
        for key in ("b", "."):
            screen.page.keyboard.press(key)
            screen.page.locator("html[data-blank]").wait_for(state="attached")
            screen.page.keyboard.press("PageDown")  # brings the page back, and does nothing else
            screen.page.locator("html:not([data-blank])").wait_for(state="attached")
        screen.idle()
        assert "Longer" not in screen.page.url
        for name in sizes_controls.SIZES.keys() - {"target"}:  # in reach, at the bottom of what is to be seen
            box = box_of(screen.slider(name))
            assert box["y"] + box["height"] <= 720, name
        screen.move("batch", 1)
        screen.says(headline_of(48))
        screen.page.keyboard.press("PageDown")  # from a slider too
        screen.page.wait_for_url(lambda url: "Longer" in url)


@pytest.mark.thorough
def test_a_clicker_goes_through_the_tensors_of_shapes_and_the_step_of_a_training_stays(
    browser: Browser, address: str
) -> None:
    with visiting(browser, address) as screen:
        screen.page.goto(f"{address}/?view=shapes&model=Copy&projector=true")
        shapes = screen.page.locator(".hl.shapes[data-painted]")
        shapes.wait_for()
        screen.page.locator("[class*=st-key-box_step_]").get_by_role("slider").wait_for()
        assert not screen.page.get_by_role("textbox", name="Sentence", exact=True).is_visible()
        screen.page.goto(f"{address}/?view=shapes&of=lesson-encoder&projector=true")
        shapes.and_(screen.page.locator("[data-tensor='encoder.attn.weights']")).wait_for()
        screen.idle()
        seen = """root => {
            const detail = root.querySelector(".detail").getBoundingClientRect().top;
            const boxes = [...root.querySelectorAll(".row")].map((row) => row.getBoundingClientRect());
            return boxes.filter((box) => box.top >= 0 && box.bottom <= detail + 1).length;
        }"""
        assert shapes.evaluate(seen) >= 12
        screen.page.keyboard.press("PageDown")
        shapes.and_(screen.page.locator("[data-tensor='encoder.attn.dropout_weights']")).wait_for()
        screen.page.keyboard.press("PageUp")
        shapes.and_(screen.page.locator("[data-tensor='encoder.attn.weights']")).wait_for()


@pytest.mark.thorough
def test_the_type_of_a_chart_grows_with_the_window(browser: Browser, address: str) -> None:
    sizes = {}
    for name, size, more in (
        ("laptop", (1280, 720), {}),
        ("wall", (1920, 1080), {}),
        ("projector", (1920, 1080), {"projector": "true"}),
    ):
        with visiting(browser, address, size=size) as screen:
            screen.see("Memory", **more)
            if more:
                screen.page.locator("html[data-projector]").wait_for(state="attached")
            once(
                screen.page,
                """() => {
                    const size = (of) => parseFloat(getComputedStyle(of).fontSize);
                    const tick = document.querySelector(".js-plotly-plot .xtick text");
                    const wanted = (Math.round(size(document.documentElement) / 1.6) / 10) * 16;
                    return tick !== null && Math.abs(size(tick) - wanted) < 0.6;
                }""",
            )
            root = screen.page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")
            sizes[name] = round(root / 16, 1) * 16
            assert box_of(screen.page.locator(".js-plotly-plot"))["width"] <= size[0]
    assert sizes["laptop"] < sizes["wall"] < sizes["projector"]


# what can be taken away


def run_code(code: str) -> str:
    """Output of the exported code."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "exported", "exec"), {"__name__": "__main__"})
    return printed.getvalue().strip()


@pytest.mark.thorough
def test_training_as_files_and_projected(browser: Browser, address: str) -> None:
    with visiting(browser, address) as screen:
        screen.see("Training", training_part="Where the norm stands", training_measure="tokens right")
        right = {title: curve(name) for title, name in {"Pre-LN": "copy", "Post-LN": "copy-post-ln"}.items()}
        table, about = screen.table("CSV: lines")
        assert list(table.columns) == ["model", "step", "accuracy"] and set(table["model"]) == set(right)
        assert [trace["name"] for trace in screen.traces()] == list(right)
        last = dict(zip(table["model"], table["step"], strict=True))
        assert last == {title: found["step"][-1] for title, found in right.items()}
        code = about[about.index("from headlight") :]
        assert run_code(code).splitlines() == [
            f"{name} {curve(name)['accuracy'][-1]}" for name in ("copy", "copy-post-ln")
        ]
        screen.page.keyboard.press("p")
        screen.page.locator("html[data-projector]").wait_for(state="attached")
        before = screen.headline
        screen.page.keyboard.press("PageDown")
        once(screen.page, "document.querySelector('.js-plotly-plot')?.data?.length === 6")
        screen.idle()
        assert screen.headline != before and len(screen.traces()) == 6
        assert not screen.page.locator(".st-key-training_heads").is_visible()


@pytest.mark.thorough
def test_memory_as_files(browser: Browser, address: str) -> None:
    with visiting(browser, address) as screen:
        screen.see("Memory")
        total = plan(LESSON.config, LESSON.workload).total
        table, about = screen.table("CSV: parts")
        drawn: Any = table.set_index("component").loc["total", "flash MiB"]
        assert round(float(drawn) * (1 << 20)) == total
        assert about.startswith("A textbook encoder · Where it goes · 6 layers, d_model 512") and "Headlight" in about
        code = about[about.index("import headlight") :]
        assert run_code(code) == str(total)
        drawing = ET.parse(screen.save("SVG").path()).getroot()
        said = [" ".join(text.itertext()) for text in drawing.iter(f"{SVG}text")]
        assert {"weights", "gradients", "optimizer", "activations"} <= set(said)
        every = " ".join(" ".join(said).split())
        assert screen.headline in every and f"flash {numbers.both(total)}" in every and "eager" in every
        assert drawing.findtext(f"{SVG}title") == screen.headline
        assert not [node for node in drawing.iter() if node.tag.endswith(("foreignObject", "script"))]
        metadata = next(drawing.iter(f"{SVG}metadata"))
        assert [" ".join((node.text or "").split())[:11] for node in metadata] == ["A textbook ", "import head"]
        picture = Path(screen.save("PNG 2×").path()).read_bytes()
        width, height, texts = png(picture)
        assert width > 1000 and height > 600
        assert texts["Source code"] == metadata[1].text and "Where it goes" in texts["Comment"]


@pytest.mark.thorough
def test_shapes_as_files(browser: Browser, address: str) -> None:
    with visiting(browser, address) as screen:
        screen.page.goto(f"{address}/?view={shapes_words.TITLE}&of=lesson-encoder&batch=32&length=50")
        screen.page.locator(".hl.shapes[data-painted]").wait_for()
        table, about = screen.table(f"CSV: {shapes_words.COMPONENT['table']}")
        found = plan(LESSON.config, batch=32, source_len=50)
        assert sum(table["times"] * table["flops"]) == found.flops
        assert run_code(about[about.index("import headlight") :]) == f"{found.parameters.total} {found.flops}"
        drawing = ET.parse(screen.save("SVG").path()).getroot()
        said = " ".join("".join(text.itertext()) for text in drawing.iter(f"{SVG}text"))
        for shown in ("weights", "softmax", "32", "2,048", "q, k, v", "Headlight"):
            assert shown in said
        assert len(list(drawing.iter(f"{SVG}path"))) >= 3  # the rail
        assert "var(" not in ET.tostring(drawing, encoding="unicode")
        width, height, texts = png(Path(screen.save("PNG 1×").path()).read_bytes())
        assert width > 1000 and height > 400 and "32 × 50 tokens" in texts["Comment"]


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize(
    ("part", "params"), [(name, params) for name, (view, params) in STATES.items() if view == "Compute"]
)
def test_the_code_of_every_part_of_compute_runs(part: str, params: dict[str, str]) -> None:
    about = message(opened(compute_page, **params), "planner")["about"]
    printed = run_code(about["snippet"])
    assert printed and all(float(number) > 0 for number in printed.split())
    assert all(f"# {about['caption']}" in text for _, _, text in about["tables"])


def png(data: bytes) -> tuple[int, int, dict[str, str]]:
    """Width, height and the texts of a PNG whose chunks are whole."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    texts: dict[str, str] = {}
    at, width, height = 8, 0, 0
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        body, (check,) = data[at + 8 : at + 8 + length], struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert zlib.crc32(name + body) == check
        if name == b"IHDR":
            width, height = struct.unpack(">II", body[:8])
        if name == b"iTXt":
            keyword, rest = body.split(b"\0", 1)
            texts[keyword.decode()] = rest[4:].decode()
        at += 12 + length
    return width, height, texts


# links


@pytest.mark.thorough
def test_a_slider_that_is_moved_fast_leaves_one_sentence_that_never_goes_back(browser: Browser, address: str) -> None:
    sizes = [size for size in sizes_controls.SIZES["batch"] if size <= 256]
    with visiting(browser, address) as screen:
        screen.see("Memory", plan_batch="1")
        screen.root.evaluate(
            """root => {
                window.said = [];
                const heading = root.querySelector("h2");
                new MutationObserver(() => said.push(heading.textContent)).observe(heading, { childList: true });
            }"""
        )
        # Each place begins a script, which comes back when the slider is elsewhere.
        screen.move("batch", len(sizes) - 1)
        screen.page.wait_for_url(lambda url: f"plan_batch={sizes[-1]}" in url)
        screen.idle()
        assert screen.headline == headline_of(sizes[-1])  # the one that there is
        order = [headline_of(size) for size in sizes]
        seen = [order.index(sentence) for sentence in screen.page.evaluate("said")]
        assert seen == sorted(seen) and seen[-1] == len(sizes) - 1
        screen.move("batch", -1)
        screen.says(headline_of(sizes[-2]))


@pytest.mark.thorough
def test_every_place_of_a_slider_is_in_the_link_the_models_own_as_well(browser: Browser, address: str) -> None:
    with visiting(browser, address) as screen:
        screen.see("Memory", plan_batch="2")
        screen.move("batch", -1)
        screen.page.wait_for_url(lambda url: "plan_batch=1" in url)
        before = headline_of(1)
        screen.says(before)
        screen.page.reload()
        screen.says(before)
        screen.move("batch", len([size for size in sizes_controls.SIZES["batch"] if size <= 32]) - 1)
        screen.page.wait_for_url(lambda url: "plan_batch=32" in url)
        screen.says(headline_of(32))
        screen.idle()
        assert screen.headline == headline_of(32) != before


def headline_of(batch: int) -> str:
    """What Memory says of the encoder that it opens with."""
    from app.rooms.memory.view import _total

    return _total(replace(LESSON, title=PRESETS[sizes_controls.FIRST].title, batch=batch))


def test_json_of_a_page_is_small() -> None:
    """What the sentence needs for every slider at once."""
    assert len(json.dumps(message(opened(memory_page), "planner")["ahead"])) < 40_000


@pytest.mark.thorough
def test_light_and_dark(browser: Browser, address: str) -> None:
    for scheme in ("light", "dark"):
        with visiting(browser, address, scheme) as screen:
            screen.see("Memory")
            paper = "document.querySelector('.js-plotly-plot')?.layout?.paper_bgcolor"
            once(screen.page, f"wanted => {paper} === wanted", arg=PALETTES[scheme]["background"])
            assert isinstance(screen, Planner)


@pytest.mark.thorough
def test_a_visit_begins_with_the_run_above_and_follows_its_sentence(browser: Browser, address: str) -> None:
    """Memory and Compute count the visitor's own model and sentence, and a known model takes the box away and gives it back."""
    config = PRESETS["minilm"].config
    with visiting(browser, address) as screen:
        screen.page.goto(f"{address}/?view=memory&memory_part=Where+it+goes&text=The+cat+sat+on+the+mat.")
        screen.root.and_(screen.page.locator("[data-painted]")).wait_for()
        takes = numbers.both(plan(config, source_len=9).total)
        screen.text(re.compile(f"^MiniLM-L6 takes {re.escape(takes)} to run"))
        expect(screen.slider("source")).to_have_attribute("aria-valuetext", "9")
        screen.page.wait_for_url(lambda url: "plan_model=run" in url)
        screen.type("A cat.")
        screen.page.locator("[class*=st-key-box_plan_source_] input[aria-valuetext='5']").wait_for(state="attached")
        screen.move("batch", 1)
        screen.page.wait_for_url(lambda url: "plan_batch=2" in url)
        screen.idle()
        link = screen.page.url
        screen.choose("plan_model", "GPT-2 small")
        screen.text(re.compile("^GPT-2 small takes"))
        screen.page.get_by_role("textbox", name="Sentence", exact=True).wait_for(state="hidden")
        screen.choose("plan_model", sizes_words.OF_RUN)
        expect(screen.page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value("A cat.")
        screen.page.locator("[class*=st-key-box_plan_source_] input[aria-valuetext='5']").wait_for(state="attached")
        screen.page.wait_for_url(lambda url: "plan_model=run" in url)
        go_to(screen.page, "Compute")
        screen.root.and_(screen.page.locator("[data-view=compute]")).wait_for()
        work = numbers.count(plan(config, source_len=5).flops)
        screen.text(re.compile(f"^MiniLM-L6, 1 × 5 tokens: {re.escape(work)}FLOP"))
        screen.page.goto(link)
        takes = numbers.both(plan(config, batch=2, source_len=5).total)
        screen.text(re.compile(f"^MiniLM-L6 takes {re.escape(takes)} to run"))


PRESS = "k = (within, i) => document.querySelectorAll(`${within} button`)[i].click()"


@pytest.mark.thorough
def test_what_is_done_right_after_a_preset_is_of_that_preset(browser: Browser, address: str) -> None:
    with visiting(browser, address) as screen:
        screen.see("Memory", plan_heads="16", plan_layers="4")
        screen.page.locator("[class*=st-key-box_plan_model_]").get_by_role("combobox").click()
        screen.page.keyboard.type("Mistral")  # of a long list only a part is in the page
        option = screen.page.get_by_role("option", name="Mistral 7B", exact=True)
        option.wait_for()
        # Before the browser has heard of the preset's sizes, it says once more where the sliders were.
        option.evaluate(
            f"option => {{ {PRESS}; option.click(); setTimeout(() => k('[class*=st-key-box_plan_phase_]', 1), 40); }}"
        )
        preset = next(preset for preset in PRESETS.values() if preset.title == "Mistral 7B")
        screen.text(re.compile("^Mistral 7B takes .* to run"))
        screen.idle()
        expect(screen.slider("layers")).to_have_attribute("aria-valuetext", str(preset.config.n_decoder_layers))
        before = screen.headline
        for says in (r"plan_phase=run", r"plan_layers=32"):  # each comes with an answer of its own
            expect(screen.page).to_have_url(re.compile(says))
        screen.page.reload()
        screen.says(before)
        screen.idle()
        assert screen.headline == before


@pytest.mark.thorough
def test_back_takes_back_a_preset(browser: Browser, address: str) -> None:
    with visiting(browser, address) as screen:
        screen.see("Memory")
        before = headline_of(32)
        screen.says(before)
        screen.choose("plan_model", "Mistral 7B")
        screen.text(re.compile("^Mistral 7B takes"))
        screen.idle()
        screen.page.go_back()
        screen.says(before)
        screen.idle()
        expect(screen.slider("layers")).to_have_attribute("aria-valuetext", "6")
        assert screen.headline == before


@pytest.mark.thorough
@pytest.mark.parametrize("gap", [0, 60])
def test_a_part_and_then_a_view_end_at_the_view(browser: Browser, address: str, gap: int) -> None:
    with visiting(browser, address) as screen:
        screen.see("Memory", plan_model="GPT-2 small")
        screen.page.evaluate(
            f"""gap => {{
                {PRESS};
                k("[class*=st-key-box_memory_part_]", 1);
                setTimeout(() => k("[class*=st-key-box_memory_part_]", 3), gap);
                const bar = document.querySelector(".st-key-bar [data-testid=stBidiComponentIsolated]").shadowRoot;
                setTimeout(() => bar.querySelector("[data-room=compute]").click(), 2 * gap);
            }}""",
            gap,
        )
        screen.root.and_(screen.page.locator("[data-view=compute]")).wait_for()
        screen.idle()
        assert screen.root.get_attribute("data-view") == "compute"
        assert "view=compute" in screen.page.evaluate("location.search")
