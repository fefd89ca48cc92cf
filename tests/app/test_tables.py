"""The table of shapes holds the run's own steps, in both units, and says what never existed."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import torch

import core
from app.export import files
from app.kit import numbers, theme
from app.rooms.explore import tables, words
from app.session.words import GUARDED
from tests.app.served import serve


@pytest.fixture(scope="module")
def run() -> core.Trace:
    config = core.ModelConfig(vocab_size=31, d_model=22, n_heads=4, d_head=8, d_ff=29, n_ctx=37, n_decoder_layers=2)
    return core.trace(core.build(config), ids=range(13))


def test_a_row_for_every_step_in_order(run):
    table = tables.steps(serve(run)[1])
    assert list(table["name"]) == [step.name for step in run.steps]
    assert list(table.columns) == list(words.STEPS_COLUMNS)


def test_both_units_of_the_same_bytes(run):
    table = tables.steps(serve(run)[1])
    sizes = [step.bytes for step in run.steps]
    assert (table["mib"] * (1 << 20)).round().tolist() == sizes
    assert (table["mb"] * 1e6).round().tolist() == sizes


def test_scores_are_shown_as_never_materialised(run):
    table = tables.steps(serve(run)[1]).set_index("name")
    row = table.loc["decoder.blocks.0.attn.hook_scores"]
    assert row["held"] == words.NEVER
    assert row["shape"] == "1 × 4 × 13 × 13"
    assert row["axes"] == "batch × head × query × key"


def test_what_never_existed_is_grey_and_only_that(run):
    table = tables.steps(serve(run)[1])
    styled: Any = tables.muted(table, theme.LIGHT["mute"])
    never = list(table["held"]).count(words.NEVER)
    assert 0 < never < len(table)
    assert len(styled._compute().ctx) == never * len(table.columns)
    assert f"color: {theme.LIGHT['mute']}" in styled.to_html()


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (301_989_888, "288.0 MiB"),
        (5 << 40, "5.0 TiB"),
        (5 << 50, "5,120.0 TiB"),
    ],
)
def test_sizes_in_words(n, text):
    assert numbers.size(n) == text


def test_where_numbers_end_is_said_with_its_layer(run):
    assert tables.non_finite(serve(run)[1]) == []
    broken = core.build(run.config)
    with torch.no_grad():
        broken.model.get_parameter("decoder.blocks.1.mlp.down.weight")[0, 0] = float("nan")
    (sentence,) = tables.non_finite(serve(core.trace(broken, ids=range(13)))[1])
    assert sentence.startswith("From decoder layer 1 on, this run has numbers that are not numbers (NaN)")
    assert "no result of the model" in sentence


@pytest.mark.parametrize("text", ["-", "=1+1", "+", "@x", "\t", "＝1", "＋", "－", "＠x", "'-", "''="])
def test_a_text_that_a_spreadsheet_may_take_for_a_formula_is_guarded_and_its_file_says_so(text: str) -> None:
    made = files.table_csv(pd.DataFrame({"token": [text, "a-b"]}), "tokens", "import core")
    assert f"# {GUARDED}\r\n" in made and f"'{text}" in made
    assert files.safe(text)[1:] == text, "one apostrophe taken off gives the token"


def test_a_table_without_such_texts_says_nothing_of_them() -> None:
    made = files.table_csv(pd.DataFrame({"token": ["a-b", "it's"], "n": [-1, 2]}), "tokens", "import core")
    assert GUARDED not in made and "it's" in made and "-1" in made
