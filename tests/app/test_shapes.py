"""The Shapes view: rows are core.plan's own trace, PyTorch's errors are its own, and a browser does each thing."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
import torch
from playwright.sync_api import Locator, expect
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.rooms.shapes import values, words
from app.rooms.shapes.component import PALETTES
from app.rooms.shapes.diagram import Diagram, diagram
from app.rooms.shapes.values import MOST, described
from app.session import words as session_words
from app.sizes import words as sizes_words
from app.sizes.pasted import config_of
from core.errors import HeadlightError
from core.model.config import ModelConfig
from core.plan import PRESETS, TracedRun, Workload, parameters, trace_shapes
from core.plan.training import saved_layer
from core.service import TensorPlace
from tests.app.browsing import Screen, box_of
from tests.app.plain import AnotherPlain, Plain
from tests.app.script import box, message, said, visit
from tests.app.served import ask, serve
from tests.app.test_theme import contrast

APP = "app/main.py"
LENGTHS: dict[str, Any] = {"batch": 2, "source_len": 7}
SMALL: dict[str, Any] = dict(vocab_size=31, d_model=24, n_heads=4, d_ff=40, n_ctx=64)


def small(**more: Any) -> ModelConfig:
    return ModelConfig(**(SMALL | more))


CONFIGS = {
    "post": small(
        n_encoder_layers=3, norm_order="post", final_norm=False, n_token_types=2, embed_norm=True, head="none"
    ),
    "mlm": small(n_encoder_layers=2, head="mlm"),
    "pair": small(n_encoder_layers=2, n_decoder_layers=3, position="sinusoidal", embed_scale=24**0.5),
    "relative": small(n_encoder_layers=2, n_decoder_layers=2, position="relative", norm="rms"),
    "llama": small(n_decoder_layers=4, n_kv_heads=2, position="rotary", gated=True, activation="silu", norm="rms"),
    "qk_norm": small(n_decoder_layers=2, qk_norm=True, position="rotary", norm_order="sandwich"),
    "parallel": small(n_decoder_layers=2, parallel=True, position="rotary", rotary_fraction=0.34),
    "window": small(n_decoder_layers=4, window=3, windowed_layers=(1, 3), position="alibi"),
}


def drawn(name: str) -> tuple[Diagram, TracedRun]:
    config = CONFIGS[name]
    lengths: dict[str, Any] = LENGTHS | ({"target_len": 5} if config.kind == "encoder-decoder" else {})
    return diagram(config, Workload(**lengths)), trace_shapes(config, **lengths)


# what is drawn is what was traced


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("name", CONFIGS)
def test_layers_times_one_layer_is_the_whole_trace(name: str):
    found, run = drawn(name)
    assert found.flops == run.flops
    assert found.parameters == run.parameters
    assert sum(part.times * len(part.steps) for part in found.parts) == len(run.steps)
    assert sum(part.times * sum(step.bytes for step in part.steps) for part in found.parts) == sum(
        step.bytes for step in run.steps
    )


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("name", CONFIGS)
def test_no_work_is_left_out_of_the_rows(name: str):
    found, run = drawn(name)
    assert sum(part.times * sum(row.flops for row in part.rows) for part in found.parts) == run.flops


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("name", CONFIGS)
def test_every_row_is_read_or_is_a_result_and_reads_what_is_there(name: str):
    found, _ = drawn(name)
    rows = {row.id: row for part in found.parts for row in part.rows}
    assert len(rows) == sum(len(part.rows) for part in found.parts)
    read = {one for row in rows.values() for one in row.reads}
    assert read <= rows.keys()
    unread = {row.kind for row in rows.values() if row.id not in read}
    assert unread <= {"final", "logits", "angles"}
    for row in rows.values():
        assert len(row.step.axes) == len(row.step.shape) and all(row.step.axes), row.id
        assert not re.search(r"\{(?!(?:batch|pos|head|kv_head|query|key|d_model|d_head|d_ff|vocab)\})", row.means)
        assert "{" not in row.title + row.equation + row.code


def test_a_layer_of_every_depth_has_the_same_shapes():
    config = CONFIGS["window"]
    run = trace_shapes(config, **LENGTHS)
    layers = [
        [(s.op, s.axes, s.shape, s.bytes, s.flops) for s in run.steps if f".blocks.{i}." in s.name] for i in range(4)
    ]
    assert layers[0] == layers[1] == layers[2] == layers[3]


@pytest.mark.parametrize("name", CONFIGS)
def test_what_makes_other_numbers_is_no_view(name: str):
    """A view has the numbers of what it looks at: only axes are split, joined, swapped or renamed."""
    found = diagram(
        CONFIGS[name], Workload(batch=3, source_len=20, target_len=12 if CONFIGS[name].kind == "encoder-decoder" else 0)
    )
    rows = [row for part in found.parts for row in part.rows]
    assert not any(
        row.view for row in rows if row.kind in ("scores", "masked", "weights", "z", "norm", "act", "logits")
    )
    for row in rows:
        if row.kind == "weights":
            assert (
                row.step.op == "softmax"
                and row.step.bytes == row.step.shape[0] * row.step.shape[1] * row.step.shape[2] * row.step.shape[3] * 4
            )
    views = {step.op for part in found.parts for step in part.steps if step.view}
    assert views <= {"", "unflatten", "transpose", "mT", "flatten"}, views


def test_the_lessons_rows():
    """Lesson A1: B=32, S=50, D=512, H=8, d_k=64, F=2048, N=6."""
    found = diagram(PRESETS["lesson-encoder"].config, Workload(batch=32, source_len=50))
    rows = {row.id.removeprefix("encoder."): row for part in found.parts for row in part.rows}
    stream, heads, square, hidden = (32, 50, 512), (32, 8, 50, 64), (32, 8, 50, 50), (32, 50, 2048)
    shapes = {
        "tokens": (32, 50),
        "token": stream,
        "embed": stream,
        "attn.norm": stream,
        "attn.qkv": stream,
        "attn.split_qkv": heads,
        "attn.kt": (32, 8, 64, 50),
        "attn.padding": (32, 1, 1, 50),
        "attn.scores": square,
        "attn.weights": square,
        "attn.z": heads,
        "attn.join": stream,
        "attn_out": stream,
        "resid_mid": stream,
        "mlp.norm": stream,
        "mlp.up": hidden,
        "mlp.act": hidden,
        "mlp.mlp_out": stream,
        "resid_post": stream,
        "final": stream,
    }
    assert {name: rows[name].step.shape for name in shapes} == shapes
    assert rows["attn.mask"].step.shape[1] == 1  # one for all heads: broadcast
    assert rows["attn.masked"].step.shape == square and "masked_fill" in rows["attn.masked"].code
    assert "masked_fill" not in rows["attn.mask"].code
    assert rows["attn.weights"].reads == ["encoder.attn.masked"]
    assert {part.section: part.times for part in found.parts}["layer"] == 6
    assert rows["attn.kt"].view and "key_padding_mask" in rows["attn.padding"].means
    alone = diagram(PRESETS["lesson-encoder"].config, Workload(source_len=50))
    assert not any(row.kind == "padding" for part in alone.parts for row in part.rows)


def test_dropout_has_rows_of_its_own_in_training_alone():
    """A1, F7: five places, the bytes of their masks, and autograd keeps as many as Memory says."""
    config = PRESETS["lesson-encoder"].config
    plain, dropped = (diagram(config, Workload(batch=32, source_len=50, dropout=on)) for on in (False, True))
    rows = {row.id: row for part in dropped.parts for row in part.rows if row.kind.startswith("dropout")}
    assert not any("dropout" in row.id for part in plain.parts for row in part.rows)
    shapes = {name.removeprefix("encoder."): row.step.shape for name, row in rows.items()}
    assert shapes == {
        "dropout_embed": (32, 50, 512),
        "attn.dropout_weights": (32, 8, 50, 50),
        "attn.dropout_out": (32, 50, 512),
        "mlp.dropout_hidden": (32, 50, 2048),
        "mlp.dropout_out": (32, 50, 512),
    }
    workload = Workload(batch=32, source_len=50, training=True, dropout=True, attention="eager")
    masks = sum(
        item.bytes for item in saved_layer(config, workload, causal=False, n=50) if item.name.endswith("dropout")
    )
    layer = [row for name, row in rows.items() if name != "encoder.dropout_embed"]
    assert sum(row.step.bytes // 4 for row in layer) == masks
    assert all(f"{row.step.bytes // 4:,} bytes" in row.means for row in rows.values())
    readers = {row.id: row.reads for part in dropped.parts for row in part.rows}
    assert readers["encoder.attn.z"][0] == "encoder.attn.dropout_weights"
    assert readers["encoder.resid_mid"][1] == "encoder.attn.dropout_out"
    assert dropped.flops == plain.flops


def test_gpt3_is_laid_out_whole():
    config = PRESETS["gpt3"].config
    found = diagram(config, Workload(source_len=2048))
    weights = next(row for part in found.parts for row in part.rows if row.kind == "weights")
    assert weights.step.shape == (1, 96, 2048, 2048)
    assert found.parameters == parameters(config).total
    assert found.flops == core.plan(config, source_len=2048).flops


def test_cross_attention_has_neither_bias_nor_turns():
    found, _ = drawn("relative")
    rows = {row.id: row for part in found.parts for row in part.rows}
    assert "bias" in rows["decoder.attn.scores"].equation
    assert "bias" not in rows["decoder.cross.scores"].equation
    turned = diagram(
        small(n_encoder_layers=1, n_decoder_layers=1, position="rotary"), Workload(**LENGTHS, target_len=5)
    )
    rows = {row.id: row for part in turned.parts for row in part.rows}
    assert not rows["decoder.attn.split_qkv"].view and rows["decoder.cross.split_kv"].view
    assert "turned" in rows["decoder.attn.split_qkv"].title and "turned" not in rows["decoder.cross.split_kv"].title


# pasted configs


def test_a_pasted_config_needs_no_weights():
    text = json.dumps({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024, "architectures": ["GPT2LMHeadModel"]})  # fmt: skip
    assert parameters(config_of(text)).total == parameters(PRESETS["gpt2"].config).total


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "1 bracket is still open"),
        ("[1]", "object"),
        ('{"model_type": "dbrx"}', "mixture of experts"),
        ('{"model_type": "gpt2", "vocab_size": 9, "n_embd": "many"}', "n_embd"),
        ("[" * 60_000, "nested too deep"),
        ("x" * 200_000, "characters"),
    ],
)
def test_a_config_that_will_not_do_is_refused_in_words(text: str, says: str):
    with pytest.raises(HeadlightError, match=says):
        config_of(text)


# colours


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("axis", words.COUNTS)
def test_every_axis_can_be_read(name: str, axis: str):
    assert contrast(str(PALETTES[name][axis]), str(PALETTES[name]["background"])) >= 4.5


def test_each_axis_has_a_colour_of_its_own():
    for palette in PALETTES.values():
        assert len({palette[axis] for axis in words.AXES}) == len(words.AXES)


# the whole page, without a browser


def test_a_link_to_what_a_diagram_does_not_have_says_so() -> None:
    asked = {
        "tensor": "nowhere",
        "at": "99",
        "with_head": "x",
        "as": "poem",
        "projector": "maybe",
        "unfold": "all",
        "break": "x",
    }
    app = visit("shapes", of="gpt9", **asked)
    for name, value in asked.items():
        assert f"This link asks for {name} “{value}”" in said(app)
    assert "“gpt9”" in said(app)
    assert message(app, "shapes_stage")["run"]  # the run above is shown


def test_sizes_of_ones_own_are_counted_and_those_that_cannot_be_are_a_sentence() -> None:
    typed = {"of": "typed", "typed_encoder": "0", "typed_decoder": "2"}
    assert "d_model (512) must be a multiple of n_heads (7)" in said(visit("shapes", of="typed", typed_heads="7"))
    norms = {"typed_norms": "RMSNorm", "typed_activation": "SiLU", "typed_gated": "true", "typed_window": "4"}
    found = message(visit("shapes", **typed, **norms, length="10"), "shapes_stage")
    config = ModelConfig(
        vocab_size=32_000,
        d_model=512,
        n_heads=8,
        d_ff=2048,
        n_decoder_layers=2,
        n_ctx=2048,
        position="sinusoidal",  # the first value of the box
        norm="rms",
        activation="silu",
        gated=True,
        window=4,
    )
    of = core.plan(config, source_len=10)
    assert (found["parameters"], found["flops"]) == (of.parameters.total, of.flops)


def test_a_text_longer_than_the_table_of_positions_leaves_the_last_diagram() -> None:
    app = visit("shapes", of="gpt2", length="1024")
    before = message(app, "shapes_stage")
    box(app, words.LENGTH).set_value(1025).run()
    assert "is more than n_ctx" in said(app) and words.LAST_DIAGRAM in said(app)
    assert message(app, "shapes_stage")["lengths"] == before["lengths"]


@pytest.mark.parametrize("query", ["", "run=x&layer=0&head=0", "run=x&layer=-1&head=0", "run=x&layer=٣&head=0"])
def test_the_route_of_values_refuses_in_words(query: str) -> None:
    with TestClient(Starlette(routes=values.ROUTES)) as client:
        answer = client.get(f"/headlight/shapes/values?{query}")
    assert (answer.status_code, answer.text) == (404, words.COMPONENT["values_none"])


# on a plain page


def see(screen: Screen, query: str = "") -> None:
    """Open Shapes by its link."""
    screen.open(f"?view=shapes{query}")


def row(screen: Screen, id: str) -> Locator:
    return screen.root.locator(f'.row[data-id="{id}"]')


def detail(screen: Screen) -> str:
    return screen.root.locator(".detail").inner_text()


@pytest.fixture(scope="module")
def run() -> core.Trace:
    return core.trace(core.load("minilm"), session_words.EXAMPLE)


def test_the_run_on_the_screen_is_spelled_out(plain: Plain, run: core.Trace):
    see(plain)
    data = plain.data()
    n = len(run.source)
    assert (data["tensor"], data["shape"]) == ("encoder.attn.weights", f"1,12,{n},{n}")
    assert int(data["bytes"]) == 12 * n * n * 4
    assert f"12 heads × {n} queries × {n} keys" in detail(plain)
    full = trace_shapes(run.config, source_len=n)
    assert (int(data["flops"]), int(data["parameters"])) == (full.flops, full.parameters)
    scores = next(step for step in full.steps if step.name.endswith("0.attn.matmul"))
    row(plain, "encoder.attn.scores").click()
    plain.wait(tensor="encoder.attn.scores", rowflops=str(scores.flops))
    assert "768 MiB" in detail(plain)  # at 4,096 tokens


@pytest.mark.thorough
def test_the_first_view_shows_the_rail_and_the_detail_without_scrolling(screen: Screen):
    see(screen)
    screen.wait(thumbnail="encoder.attn.weights,0,0")  # which is fetched, and makes room for itself
    for part in (".top", ".detail"):
        box = box_of(screen.root.locator(part))
        assert box["y"] >= 0 and box["y"] + box["height"] <= 720
    width = screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    assert width <= 1280
    assert screen.root.locator(".rail path").count() >= 3  # the stream and two branches


@pytest.mark.thorough
def test_on_a_phone_names_and_shapes_are_whole_and_the_chosen_tensor_leaves_them_room(screen: Screen):
    screen.page.set_viewport_size({"width": 390, "height": 844})
    see(screen)
    screen.wait(thumbnail="encoder.attn.weights,0,0")
    cut = """(root) => [...root.querySelectorAll(".row :is(.name, .shape)")].filter((text) => text.scrollWidth > text.clientWidth)
        .map((text) => text.innerText)"""
    assert screen.root.locator(".row").count() > 9 and screen.root.evaluate(cut) == []
    box, detail = (box_of(screen.page.locator(part)) for part in ("[class*=st-key-box_text_]", ".hl .detail"))
    assert box["width"] > 300 and detail["height"] < 844 / 3
    assert screen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390


def thumbnail(run: core.Trace, stack: str, layer: int, site: str, what: str, head: int) -> dict[str, Any]:
    service, facts = serve(run)
    return described(ask(service.values(facts.key, TensorPlace(stack, layer, site, what, head), MOST)))


def test_values_are_the_run_s(plain: Plain, run: core.Trace):
    see(plain, "&at=3&with_head=1")
    plain.wait(thumbnail="encoder.attn.weights,3,1")
    shown = thumbnail(run, "encoder", 3, "attn", "weights", 1)
    weights = run.attention[3].pattern(1)[0]
    assert shown["values"] == pytest.approx(weights.flatten().tolist(), abs=1e-6)
    assert float(plain.data()["high"]) == pytest.approx(weights.max().item(), abs=1e-4)
    plain.root.get_by_label("next head").click()
    plain.wait(thumbnail="encoder.attn.weights,3,2")
    plain.page.wait_for_url(re.compile("with_head=2"))
    row(plain, "encoder.attn.scores").click()  # which have a sign: purple below 0, blue above
    plain.wait(thumbnail="encoder.attn.scores,3,2", signed="true")
    scores = thumbnail(run, "encoder", 3, "attn", "scores", 2)
    drawn = plain.root.locator(".detail canvas").evaluate(
        """(canvas, [rows, columns]) => Array.from({ length: rows * columns }, (_, i) => [...canvas.getContext("2d").getImageData(
            ((i % columns) + 0.5) * canvas.width / columns, (Math.floor(i / columns) + 0.5) * canvas.height / rows, 1, 1).data])""",
        [scores["rows"], scores["columns"]],
    )
    strong = [(x, colour) for x, colour in zip(scores["values"], drawn, strict=True) if abs(x) > scores["high"] / 3]
    assert {x < 0 for x, _ in strong} == {True, False}
    assert all((red > green) == (x < 0) for x, (red, green, _, _) in strong)


def test_a_thumbnail_is_small_and_of_what_there_is(run: core.Trace):
    z = thumbnail(run, "encoder", 0, "attn", "z", 4)
    assert (z["rows"], z["columns"]) == (len(run.source), 32)
    record = run.attention[0]
    assert z["values"][:32] == pytest.approx((record.pattern(4)[0] @ record.v[4])[0].tolist(), abs=1e-4)
    q = thumbnail(run, "encoder", 0, "attn", "q", 4)
    assert q["all_rows"] == len(run.source) and max(q["rows"], q["columns"]) <= MOST
    assert thumbnail(run, "encoder", 2, "", "resid_mid", 0)["values"] == pytest.approx(
        run.residual_norms["encoder.blocks.2.hook_resid_mid"].tolist(), abs=1e-4
    )
    with pytest.raises(HeadlightError):
        thumbnail(run, "decoder", 0, "attn", "weights", 0)
    with pytest.raises(HeadlightError):
        thumbnail(run, "encoder", 0, "attn", "weights", 12)


def test_the_keyboard_and_the_link(plain: Plain, plain_another: AnotherPlain):
    see(plain)
    row(plain, "encoder.attn.weights").focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight", "ArrowRight"):
        plain.page.keyboard.press(key)
    plain.wait(tensor="encoder.attn.scores", at="2")
    assert plain.page.evaluate("document.activeElement.shadowRoot?.activeElement?.dataset.id ?? document.activeElement.dataset.id") == "encoder.attn.scores"  # fmt: skip
    plain.page.wait_for_url(re.compile("tensor=encoder.attn.scores"))
    plain.page.wait_for_url(re.compile("at=2"))
    plain.wait(thumbnail="encoder.attn.scores,2,0")  # numbers in the detail are fetched
    other = plain_another().open(f"?{urlsplit(plain.page.url).query}")
    other.wait(tensor="encoder.attn.scores", at="2")
    expect(other.root.locator(".detail")).to_have_text(detail(plain), use_inner_text=True)


def test_layers_fold_and_unfold(plain: Plain):
    see(plain)
    per_layer = plain.root.locator('.row[data-layer="0"]').count()
    plain.root.get_by_role("button", name=words.COMPONENT["unfold"]).click()
    plain.until("root.querySelectorAll('.row[data-id=\"encoder.attn.weights\"]').length === 6")
    assert plain.root.locator('.row[data-layer="5"]').count() == per_layer - plain.root.locator('.row[data-id="encoder.final"]').count()  # fmt: skip
    plain.root.get_by_role("button", name="Fold", exact=True).click()
    plain.until("root.querySelectorAll('.row[data-id=\"encoder.attn.weights\"]').length === 1")
    plain.root.get_by_role("button", name=re.compile("Embedding")).click()
    row(plain, "encoder.token").wait_for()


def test_encoder_and_decoder_stand_side_by_side_with_the_cross_arrow(plain: Plain):
    see(plain, "&of=transformer-base&batch=2&length=12&target_length=9&tensor=decoder.cross.weights")
    assert plain.data()["shape"] == "2,8,9,12"
    assert "8 heads × 9 queries × 12 keys" in detail(plain) and "In each of 2 texts" in detail(plain)
    columns = [box_of(plain.root.locator(".column").nth(i)) for i in (0, 1)]
    assert columns[0]["x"] + columns[0]["width"] <= columns[1]["x"]
    assert plain.root.locator(".over path.cross").count() == 1
    scores = row(plain, "decoder.cross.scores")
    code, flops = scores.locator("code"), scores.locator(".flops")
    assert code.is_visible() and code.inner_text().startswith("q @ k.mT * scale")
    assert flops.is_visible() and flops.get_attribute("title") == f"{2 * 2 * 9 * 12 * 512:,} FLOP"
    row(plain, "decoder.cross.kv").click()
    plain.page.wait_for_url(re.compile(r"of=transformer-base"))
    plain.root.locator(".detail").get_by_role("button", name="result of the stack").click()
    plain.wait(tensor="encoder.final")


def test_the_shape_debugger(plain: Plain):
    see(plain, "&tensor=encoder.attn.scores")
    plain.root.get_by_role("button", name=words.COMPONENT["break"]).click()
    plain.wait(verdict="error")
    q, k = torch.zeros(1, 12, 16, 32), torch.zeros(1, 12, 16, 32)
    with pytest.raises(RuntimeError) as raised:
        torch.matmul(q, k)
    assert str(raised.value) in detail(plain)
    plain.root.get_by_role("button", name="q.transpose(1, 2) @ k.transpose(1, 2).mT").click()
    plain.wait(verdict="wrong")
    assert "torch.Size([1, 16, 12, 12])" in detail(plain)
    plain.page.wait_for_url(re.compile("break=3"))
    plain.root.get_by_role("button", name=words.COMPONENT["break_close"]).click()
    plain.wait(**{"break": ""})


def test_one_product_is_shown_and_timed_beside_three(plain: Plain):
    see(plain, "&tensor=encoder.attn.qkv")
    plain.root.get_by_role("button", name=words.COMPONENT["break"]).click()
    plain.wait(verdict="right")
    assert words.ONE_PRODUCT in detail(plain) and "torch.Size([1, 16, 384])" in detail(plain)
    plain.root.get_by_role("button", name="chunk(3, 1)").click()
    plain.wait(verdict="wrong")
    plain.root.locator(".tries button").first.click()
    expect(plain.root.locator(".result")).to_contain_text(words.THREE_PRODUCTS)
    plain.root.get_by_role("button", name=words.COMPONENT["compare"]).click()
    line = plain.root.locator(".compared")
    expect(line).to_contain_text("16 tokens × 384")
    told = {name: float(line.get_attribute(f"data-{name}") or "nan") for name in ("fused", "separate", "difference")}
    assert told["fused"] > 0 and told["separate"] > 0 and told["difference"] < 1e-5


def test_the_table_and_its_file_hold_every_traced_step(plain: Plain):
    see(plain, "&of=lesson-encoder&batch=32&length=50&as=table&dropped=false")
    full = trace_shapes(PRESETS["lesson-encoder"].config, batch=32, source_len=50)
    with plain.page.expect_download() as waiting:
        plain.root.get_by_role("button", name="Export", exact=True).click()
        table = plain.root.get_by_role("button", name="CSV: table")
        table.wait_for()
        assert plain.root.get_by_role("button", name="SVG").count() == 0  # a table is no picture
        table.click()
    text = waiting.value.path().read_text(encoding="utf-8-sig")
    rows = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    assert "Headlight" in text.splitlines()[0] and "hl.plan(config, batch=32, source_len=50)" in text
    lines = [line for line in csv.DictReader(io.StringIO(rows)) if line["traced_as"] != "ids"]
    assert sum(int(line["times"]) for line in lines) == len(full.steps)
    assert sum(int(line["times"]) * int(line["flops"]) for line in lines) == full.flops
    assert sum(int(line["times"]) * int(line["bytes"]) for line in lines) == sum(step.bytes for step in full.steps)
    scores = next(line for line in lines if line["traced_as"].endswith("hook_scores"))
    assert scores["shape"] == "32 × 8 × 50 × 50" and scores["axes"] == "batch × head × query × key"
    assert float(scores["mib"]) == pytest.approx(2.44140625) and float(scores["mb"]) == pytest.approx(2.56)
    assert plain.root.locator("tbody tr").count() == len(lines) + 1 >= 20


@pytest.mark.thorough
def test_sizes_of_ones_own_and_what_cannot_be(screen: Screen):
    screen.page.goto(f"{screen.address}/?view={words.TITLE}&of=typed&typed_heads=7")
    screen.page.get_by_text("d_model (512) must be a multiple of n_heads (7)").wait_for()
    see(screen, "&of=typed&typed_heads=16&typed_kv=4&typed_encoder=0&typed_decoder=2&length=10")
    assert screen.data()["shape"] == "1,16,10,10"
    typed = ModelConfig(
        vocab_size=32_000, d_model=512, n_heads=16, n_kv_heads=4, d_ff=2048, n_decoder_layers=2, n_ctx=2048
    )
    plan = core.plan(typed, source_len=10)
    assert int(screen.data()["flops"]) == plan.flops


def test_sizes_of_ones_own_with_other_norms_a_window_and_a_gate(plain: Plain):
    link = "&of=typed&typed_encoder=0&typed_decoder=2&typed_norms=RMSNorm&typed_activation=SiLU&typed_gated=true&typed_window=4"
    see(plain, f"{link}&length=10&tensor=decoder.attn.mask")
    typed = ModelConfig(
        vocab_size=32_000,
        d_model=512,
        n_heads=8,
        d_ff=2048,
        n_decoder_layers=2,
        n_ctx=2048,
        position="sinusoidal",  # what the boxes begin with
        norm="rms",
        activation="silu",
        gated=True,
        window=4,
    )
    plan = core.plan(typed, source_len=10)
    assert (int(plain.data()["parameters"]), int(plain.data()["flops"])) == (plan.parameters.total, plan.flops)
    assert "beyond 4" in row(plain, "decoder.attn.mask").inner_text()
    assert "RMSNorm" in row(plain, "decoder.attn.norm").inner_text()
    assert row(plain, "decoder.mlp.gate_act").count() == 1


@pytest.mark.thorough
def test_a_text_longer_than_the_table_of_positions(screen: Screen):
    see(screen, "&of=gpt2&length=1024")
    box = screen.page.get_by_label(words.LENGTH, exact=True)
    box.fill("1025")
    box.press("Enter")
    screen.page.get_by_text("is more than n_ctx").wait_for()
    screen.idle()
    assert screen.data()["shape"] == "1,12,1024,1024"  # nothing is lost


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(plain: Plain, scheme: Literal["light", "dark"]):
    plain.page.emulate_media(color_scheme=scheme)
    see(plain)
    expect(plain.root).to_have_attribute("data-theme", scheme)


@pytest.mark.thorough
def test_a_sentence_outlives_a_visit_to_another_model(screen: Screen):
    see(screen, "&text=One+two+three.")
    before = screen.data()["shape"]
    chooser = screen.page.get_by_label(words.OF)
    chooser.click()
    screen.page.get_by_role("option", name="BERT tiny").click()
    screen.until("root.dataset.title.startsWith('BERT tiny')")
    assert screen.data()["run"] == ""
    chooser.click()
    screen.page.get_by_role("option", name=words.OF_RUN).click()
    screen.until("root.dataset.run !== ''")
    assert screen.data()["shape"] == before
    assert screen.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == "One two three."


@pytest.mark.thorough
def test_a_config_is_pasted(screen: Screen):
    see(screen)
    screen.page.get_by_label(words.OF).click()
    screen.page.get_by_role("option", name=words.OF_PASTED).click()
    screen.page.get_by_text("Paste the text").wait_for()
    screen.page.get_by_role("button", name=words.FIELDS).click()
    box = screen.page.get_by_role("textbox", name=sizes_words.PASTE)
    box.fill(
        json.dumps(
            {"model_type": "gpt2", "n_embd": 96, "n_layer": 5, "n_head": 6, "vocab_size": 100, "n_positions": 256}
        )
    )
    box.press("Control+Enter")
    screen.wait(shape="1,6,128,128")
    assert "of 5" in screen.root.inner_text()
    box.fill("<b>no</b>")
    box.press("Control+Enter")
    screen.page.get_by_text("This is a web page, and not the file").wait_for()
    screen.idle()
    assert screen.data()["shape"] == "1,6,128,128"  # nothing is lost


@pytest.mark.thorough
def test_the_weights_are_shown_on_explore(screen: Screen):
    see(screen, "&at=2&with_head=5")
    screen.root.get_by_role("link", name=words.COMPONENT["explore"]).click()
    screen.wait(layer="2", head="5")
    assert screen.tokens()[2] == "animal"
