"""`python -m core`: what it writes is what core gives."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import core
from core import __main__ as command_line
from core.read import report

TEXT = "The animal didn't cross the street because it was too tired."


@pytest.fixture(scope="module")
def minilm_run() -> core.Trace:
    return core.trace(core.load("minilm"), TEXT)


def test_npz_holds_every_heads_weights(minilm_run: core.Trace, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    assert command_line.main(["trace", TEXT, "--model", "minilm", "--npz", str(file)]) == 0
    with np.load(file) as arrays:
        assert arrays["source.labels"].tolist() == list(minilm_run.source.labels)
        assert len([name for name in arrays if name.endswith(".attn")]) == 6
        for record in minilm_run.attention:
            assert np.abs(arrays[record.name] - record.pattern().numpy()).max() <= 1e-6


def test_json_holds_tokens_shapes_measures_and_receipts(
    minilm_run: core.Trace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["trace", TEXT, "--model", "minilm", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["source"]["labels"][2] == "animal" and found["config"]["kind"] == "encoder"
    assert found["attention"][0]["heads"][2]["previous_token_share"] == pytest.approx(
        minilm_run.attention[0].pattern(2)[0].diagonal(-1).mean().item(), abs=1e-5
    )
    assert all(a["receipt"]["fused_error"] <= 1e-5 for a in found["attention"])
    assert found["steps"][0]["shape"] == [1, 16] and found["model"]["parameters"] > 22_000_000


def test_the_page_is_whole_and_holds_text_as_data(minilm_run: core.Trace) -> None:
    page = report.html(core.trace(minilm_run.loaded, "</script><img src=x onerror=alert(1)>"))
    assert page.count("</script>") == 1 and "<img" not in page
    assert "http://" not in page and "https://" not in page
    data = json.loads(page.split("const D = ")[1].split(";\nconst $")[0])
    assert data["text"] == "</script><img src=x onerror=alert(1)>" and len(data["records"]) == 6


def test_models_lists_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["models"]) == 0
    assert "minilm" in capsys.readouterr().out
    assert command_line.main(["models", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["id"] == "smollm2"


def test_plan_says_what_a_model_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["plan", "minilm", "--source-len", "64"]) == 0
    assert "22,565,376 parameters" in capsys.readouterr().out
    assert command_line.main(["plan", "minilm", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["total"] == 22_565_376 and found["memory"]["weights"] == 4 * 22_565_376
    for wrong in (["--dtype", "float5"], ["--attention", "weird"], ["--source-len", "0"], ["--batch", "-1"]):
        assert command_line.main(["plan", "minilm", *wrong]) == 2
        assert capsys.readouterr().err.startswith("headlight: ")


def test_what_takes_no_part_is_said_beside_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mixed"
    core.save(core.load("minilm"), folder)
    (folder / "adapter_config.json").write_text("{}")
    assert command_line.main(["trace", TEXT, "--model", str(folder), "--json", "-"]) == 0
    said = capsys.readouterr()
    assert "headlight: mixed: adapter_config.json lies beside the model and is not used" in said.err
    assert "adapter_config.json" in json.loads(said.out)["model"]["notices"][0]


LOOKS = r"^  {}\.blocks\.\d+\.attn head \d+: (\S+) looks at (\S+), \d+%$"


def test_a_trace_says_what_it_saw(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["trace", TEXT, "--model", "minilm"]) == 0
    said = capsys.readouterr().out
    assert "16 tokens: [CLS] The animal" in said and "6 encoder layers" in said
    looks = re.findall(LOOKS.format("encoder"), said, re.MULTILINE)
    assert len(looks) == 6


@pytest.mark.thorough
def test_it_starts_as_a_program_with_the_default_model() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "core", "trace", TEXT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "13 tokens: The animal" in done.stdout and "30 decoder layers" in done.stdout
    looks = re.findall(LOOKS.format("decoder"), done.stdout, re.MULTILINE)
    assert len(looks) == 30 and not any(key in ("'The'", query) for query, key in looks)


def test_long_heads_are_measured_on_evenly_spaced_rows(monkeypatch: pytest.MonkeyPatch, minilm_run: core.Trace) -> None:
    monkeypatch.setattr(report, "MEASURED_ROWS", 8)
    found = report.summary(minilm_run)["attention"][0]
    assert found["rows_measured"] == 8
    rows = torch.arange(0, 16, 2)
    pattern = minilm_run.attention[0].pattern(2, rows)[0]
    previous = [pattern[i, q - 1].item() for i, q in enumerate(rows.tolist()) if q]
    assert found["heads"][2]["previous_token_share"] == pytest.approx(sum(previous) / len(previous), abs=1e-6)


def test_a_run_without_numbers_is_told_in_json_that_anybody_reads(tiny: Any) -> None:
    loaded = tiny()
    loaded.model.get_parameter("decoder.blocks.1.attn.q.weight").fill_(torch.nan)
    edits = [core.edits.Ablate("decoder", 0, 1)]
    run = core.trace(loaded, ids=[3, 1, 4], interventions=edits)
    found = json.loads(json.dumps(report.summary(run), allow_nan=False))
    assert found["non_finite"]["layer"] == 1 and found["non_finite"]["kind"] == "nan"
    assert found["interventions"] == [repr(edits[0])]
    assert found["residual_norms"]["decoder.blocks.1.hook_attn_out"] == [None] * 3
    said = "numbers end at token 0, in attention of layer 1 of the decoder: nan from there on"
    assert said in report.words(run) and said in report.html(run)
    assert report.summary(core.trace(tiny(), ids=[3, 1, 4]))["non_finite"] is None
