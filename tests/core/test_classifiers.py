"""Classifiers: the class of a text by each published head, what a head or a look does to it, and heads that cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES as CLASSES_OF

import core
from benchmarks.coverage import ROWS, Row, config_of, perturb
from core.checkpoints import Loaded
from core.checkpoints.families import FAMILIES
from core.errors import CheckpointError, TextError
from core.model.text import from_ids
from core.read import report
from core.read.comparison import answer_change
from core.run.request import padded, source_as_target
from tests.core.published import RELATIVES
from tests.thorough import part

IDS = [7, 30, 11, 45, 23, 8, 50, 12, 19]
LABELS = {0: "calm", 1: "<b>angry</b>", 2: "glad"}
OF_TWO = {
    "BartForSequenceClassification": "BART",
    "MBartForSequenceClassification": "mBART",
    "T5ForSequenceClassification": "T5",
    "MT5ForSequenceClassification": "mT5",
    "UMT5ForSequenceClassification": "UMT5",
    "PLBartForSequenceClassification": "PLBart",
    "MvpForSequenceClassification": "MVP",
}
NOT_TRIED = {"ESM-2"}  # whose config reads a list of amino acids; its head is tried below


def class_of(row: Row) -> Any:
    """The classifier of a row's architecture in transformers; None where it has none, or where it is of two stacks."""
    kind = getattr(hf, row.model)
    name = CLASSES_OF.get(kind.config_class.model_type)
    family = FAMILIES.get(kind.config_class.model_type)
    return None if name is None or family is None or family.start_token else getattr(hf, name)


HEADS = {row.name: row for row in (*ROWS, *RELATIVES) if row.name not in NOT_TRIED and class_of(row) is not None}


def made(row: Row, **more: Any) -> Any:
    """Their classifier with every parameter moved."""
    kind = class_of(row)
    config = config_of(row, kind)
    config.id2label = dict(LABELS)
    for name, value in more.items():
        setattr(config, name, value)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = kind(config).eval()
        perturb(model)
    return model


def saved(model: Any, folder: Path) -> Loaded:
    model.save_pretrained(folder)
    return core.load(folder)


def theirs(model: Any, ids: list[int] = IDS) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0]


def bert(folder: Path, **more: Any) -> Loaded:
    return saved(made(HEADS["BERT"], **more), folder)


@pytest.mark.thorough(but=8)
@pytest.mark.parametrize("name", part(list(HEADS), 3))
def test_logits_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    model = made(HEADS[name])
    loaded = saved(model, tmp_path)
    found = core.trace(loaded, ids=IDS).classes()
    assert found.names == tuple(LABELS.values()) and found.kind == "one" and not loaded.notices
    expected = theirs(model)
    assert torch.tensor(found.logits) == pytest.approx(expected, abs=1e-5)
    assert found.probabilities == pytest.approx(expected.softmax(-1).tolist(), abs=1e-6)
    assert found.likeliest == found.names[int(expected.argmax())]
    # A head that reads another token, or leaves a layer out, would give others.
    assert (theirs(model, [*reversed(IDS)]) - expected).abs().max() > 1e-3
    assert not loaded.unused or all("rotary" in name or "bias" in name for name in loaded.unused), loaded.unused
    assert loaded.config.head == "none" and loaded.model.head is None


def test_enough_architectures_are_tried() -> None:
    assert {
        *(
            "BERT",
            "RoBERTa",
            "XLM-R",
            "CamemBERT",
            "DistilBERT",
            "ALBERT",
            "ELECTRA discriminator",
            "MPNet",
            "ModernBERT",
        ),
        *(
            "NomicBERT",
            "EuroBERT",
            "RemBERT",
            "GPT-2",
            "Llama",
            "Qwen2",
            "Qwen3",
            "Mistral",
            "ModernBERT decoder",
            "CTRL",
        ),
    } <= HEADS.keys()


@pytest.mark.parametrize(
    ("name", "pooling"),
    [("ModernBERT", "mean"), ("ModernBERT", "cls"), ("EuroBERT", "bos"), ("EuroBERT", "mean"), ("EuroBERT", "late")],
)
def test_what_is_read_of_the_text(name: str, pooling: str, tmp_path: Path) -> None:
    model = made(HEADS[name], classifier_pooling=pooling, classifier_bias=True)
    found = core.trace(saved(model, tmp_path), ids=IDS).classes()
    assert torch.tensor(found.logits) == pytest.approx(theirs(model), abs=1e-5)


def test_esm_reads_its_first_token(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.name == "ESM-2")
    config = config_of(row, hf.EsmForSequenceClassification)
    config.is_folding_model = False
    torch.manual_seed(0)
    model = hf.EsmForSequenceClassification(config).eval()
    perturb(model)
    found = core.trace(saved(model, tmp_path), ids=IDS).classes()
    with torch.no_grad():
        expected = model(torch.tensor([IDS]), attention_mask=torch.ones(1, len(IDS), dtype=torch.long)).logits[0]
    assert torch.tensor(found.logits) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["BERT", "ModernBERT", "EuroBERT", "Llama", "GPT-2", "ModernBERT decoder"])
def test_a_text_in_a_batch_has_the_classes_that_it_has_alone(name: str, tmp_path: Path) -> None:
    loaded = saved(made(HEADS[name], classifier_pooling="mean"), tmp_path)
    short = from_ids(None, IDS[:4])
    long = from_ids(None, IDS)
    both = core.trace_tokens(loaded, padded(loaded, (short, long), "right"), None, ())
    for i, alone in enumerate((IDS[:4], IDS)):
        expected = core.trace(loaded, ids=alone).classes().logits
        assert both.text(i).classes().logits == pytest.approx(expected, abs=1e-5)


def test_the_last_token_is_the_last_that_is_no_padding_token(tmp_path: Path) -> None:
    """As transformers reads it where no mask is given: by the number of the token."""
    model = made(HEADS["Llama"], pad_token_id=12)
    loaded, ids = saved(model, tmp_path), [*IDS[:5], 12, 12]
    found = core.trace(loaded, ids=ids, keep=[1] * 7).classes()
    assert torch.tensor(found.logits) == pytest.approx(theirs(model, ids), abs=1e-5)
    assert torch.tensor(found.logits) != pytest.approx(theirs(model, [*ids[:-1], 13]), abs=1e-3)


@pytest.mark.parametrize(
    ("stated", "n", "kind"),
    [
        (None, 3, "one"),
        ("single_label_classification", 1, "one"),
        ("multi_label_classification", 3, "several"),
        ("regression", 3, "numbers"),
        (None, 1, "numbers"),
    ],
)
def test_how_numbers_are_read(stated: str | None, n: int, kind: str, tmp_path: Path) -> None:
    model = made(HEADS["BERT"], problem_type=stated, id2label={i: f"c{i}" for i in range(n)})
    found = core.trace(saved(model, tmp_path), ids=IDS).classes()
    logits = theirs(model)
    assert (found.kind, len(found.names)) == (kind, n)
    expected = {"one": logits.softmax(-1), "several": logits.sigmoid(), "numbers": None}[kind]
    assert found.probabilities == (None if expected is None else pytest.approx(expected.tolist(), abs=1e-6))
    assert (found.likeliest is None) == (expected is None)
    assert list(found.to_frame().columns) == (["class", "logit"] if expected is None else ["class", "logit", "prob"])


# --- what an edit does to the class ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "problem"), [("BERT", None), ("Llama", None), ("DistilBERT", "multi_label_classification")]
)
def test_rows_of_a_sweep_are_runs_of_their_own(name: str, problem: str | None, tmp_path: Path) -> None:
    loaded = saved(made(HEADS[name], problem_type=problem), tmp_path)
    run = core.trace(loaded, ids=IDS)
    plain = run.classes()
    heads = core.sweep_heads(run)
    before, after = heads.before, heads.after
    assert heads.position is None and after.distance is None
    assert (
        after.probability is not None and after.ids is not None and after.kl is not None and after.likeliest is not None
    )
    assert before.probability is not None and plain.probabilities is not None
    (answer,) = heads.watched
    assert plain.names[answer] == plain.likeliest == heads.labels[answer]
    assert before.probability[0, 0] == pytest.approx(plain.probabilities[answer], abs=1e-6)
    for row in (0, len(heads.places) // 2, len(heads.places) - 1):
        place: Any = heads.places[row]
        alone = core.trace(loaded, ids=IDS, interventions=[core.edits.Ablate(place.stack, place.layer, place.head)])
        chances = alone.classes().probabilities
        assert chances is not None
        assert after.probability[row, 0] == pytest.approx(chances[answer], abs=1e-5)
        np.testing.assert_allclose(after.likeliest[row], np.array(chances)[after.ids[row]], atol=1e-5)
        p, q = (np.array(x, float) for x in (plain.probabilities, chances))
        kl = (p * np.log(p / q)).sum()
        if problem:
            kl += ((1 - p) * np.log((1 - p) / (1 - q))).sum()
        assert after.kl[row] == pytest.approx(kl, abs=1e-5)
    assert np.abs(after.probability[:, 0] - before.probability[0, 0]).max() > 1e-3
    looks = core.sweep_edges(run)
    assert looks.after.probability is not None and looks.watched == (answer,)
    assert "class" in repr(heads)


def test_the_answer_may_be_named_by_its_number(tmp_path: Path) -> None:
    run = core.trace(bert(tmp_path), ids=IDS)
    found, chances = core.sweep_heads(run, token=2), run.classes().probabilities
    assert found.watched == (2,) and found.before.probability is not None and chances is not None
    assert found.before.probability[0, 0] == pytest.approx(chances[2], abs=1e-6)
    with pytest.raises(TextError, match=r"Class number 3 is none of .* which has 0 to 2"):
        core.sweep_heads(run, token=3)
    effects = run.ablate_heads(token=2)
    assert (effects.position, effects.token, effects.string) == (None, 2, "glad")
    assert effects.probability == pytest.approx(chances[2], abs=1e-6)
    assert found.after.probability is not None
    assert effects.heads[0].probability == pytest.approx(
        float(found.after.probability[0, 0] - found.before.probability[0, 0]),
        abs=1e-6,
    )


def test_heads_of_another_text_carry_its_class(tmp_path: Path) -> None:
    loaded = bert(tmp_path)
    run, other = core.trace(loaded, ids=IDS), core.trace(loaded, ids=IDS[::-1])
    found = core.patch_heads(run, other)
    theirs_ = other.classes()
    assert [found.labels[i] for i in found.watched][1] == theirs_.likeliest


def test_a_regression_is_swept_by_its_vector(tmp_path: Path) -> None:
    run = core.trace(bert(tmp_path, id2label={0: "score"}), ids=IDS)
    assert core.sweep_heads(run).after.distance is not None
    edited = core.trace(run.loaded, ids=IDS, interventions=[core.edits.Ablate("encoder", 1, 2)])
    change = answer_change(run, edited)
    (word,) = change.words
    assert (word.label, word.before, word.after) == ("score", run.classes().logits[0], edited.classes().logits[0])
    assert change.kl is None and change.distance is not None and change.distance > 0


@pytest.mark.parametrize("problem", [None, "multi_label_classification"])
def test_the_change_of_an_answer_is_that_of_the_classes(problem: str | None, tmp_path: Path) -> None:
    loaded = bert(tmp_path, problem_type=problem)
    a = core.trace(loaded, ids=IDS)
    b = core.trace(
        loaded, ids=IDS, interventions=[core.edits.Ablate("encoder", 0, 1), core.edits.Ablate("encoder", 2, 3)]
    )
    change, p, q = answer_change(a, b), a.classes().probabilities, b.classes().probabilities
    assert p is not None and q is not None
    assert {word.id: (word.label, word.before, word.after) for word in change.words} == {
        i: (a.classes().names[i], p[i], q[i]) for i in range(3)
    }
    assert [word.before for word in change.words] == sorted(p, reverse=True)
    assert change.likeliest is not None and change.likeliest[1].label == b.classes().likeliest
    kl = sum(x * np.log(x / y) for x, y in zip(p, q, strict=True))
    if problem:
        kl += sum((1 - x) * np.log((1 - x) / (1 - y)) for x, y in zip(p, q, strict=True))
    assert change.kl == pytest.approx(kl, abs=1e-5) and kl > 1e-4
    assert change.losses is None and change.distance is None


def test_classifiers_with_other_classes_share_none(tmp_path: Path) -> None:
    a = core.trace(bert(tmp_path / "a"), ids=IDS)
    b = core.trace(bert(tmp_path / "b", id2label={0: "x", 1: "y"}), ids=IDS)
    change = answer_change(a, b)
    assert not change.shared and change.kl is None and change.likeliest is not None
    assert change.likeliest[0].after is None and change.likeliest[1].before is None
    assert {word.label for word in change.words} == {*LABELS.values(), "x", "y"}
    with pytest.raises(TextError, match="other classes"):
        core.patch_heads(a, b)


def test_a_report_has_the_classes(tmp_path: Path) -> None:
    run = core.trace(bert(tmp_path), ids=IDS)
    found = report.summary(run)["classes"]
    assert found["names"] == [*LABELS.values()] and found["probabilities"] == pytest.approx(run.classes().probabilities)
    assert f"classes: {run.classes().likeliest!r} " in report.words(run)


# --- heads that cannot be ------------------------------------------------------------------------------------------


def changed(
    folder: Path,
    config: Callable[[dict[str, Any]], Any] = lambda _: None,
    tensors: Callable[[dict[str, Any]], Any] = lambda _: None,
) -> Path:
    """A BERT with three classes, with something changed in its files."""
    made(HEADS["BERT"]).save_pretrained(folder)
    values, held = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    config(values)
    tensors(held)
    (folder / "config.json").write_text(json.dumps(values))
    save_file(held, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"id2label": {"0": "a", "1": "b"}}, r"id2label names 2, but classifier\.weight has 3 rows"),
        (
            {"id2label": {"0": "a", "1": "b", "2": "c", "3": "d"}},
            r"id2label names 4, but classifier\.weight has 3 rows",
        ),
        ({"id2label": None, "num_labels": 2}, r"num_labels is 2, but classifier\.weight has 3 rows"),
        (
            {"id2label": {"0": "a", "1": "b", "3": "c"}},
            r"id2label has the number '3', but its 3 classes have the numbers 0 to 2",
        ),
        ({"id2label": {"0": "a", "1": "b", "x": "c"}}, r"id2label has the number 'x'"),
        ({"id2label": {"0": "a", "1": None, "2": "c"}}, r"id2label calls class 1 None, but a name must be text"),
        ({"id2label": ["a", "b", "c"]}, r"id2label is .* must be an object in braces"),
        ({"problem_type": "ranking"}, r"problem_type is 'ranking', but it must be one of single_label_classification"),
    ],
)
def test_classes_that_do_not_fit(stated: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = changed(tmp_path, lambda values: values.update(stated))
    with pytest.raises(CheckpointError, match=said):
        core.load(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda t: t.pop("classifier.weight"),
            r"BertForSequenceClassification.*hold no tensor classifier\.weight.*such as BertModel",
        ),
        (
            lambda t: t.pop("classifier.bias"),
            r"hold no tensor classifier\.bias, which BertForSequenceClassification needs",
        ),
        (lambda t: t.pop("bert.pooler.dense.weight"), r"hold no tensor pooler\.dense\.weight"),
        (
            lambda t: t.update({"classifier.weight": torch.ones(3, 34)}),
            r"classifier\.weight is \[3, 34\], but it must have a row of 35",
        ),
        (
            lambda t: t.update({"classifier.bias": torch.ones(2)}),
            r"classifier\.bias is \[2\], but config\.json makes it \[3\]",
        ),
        (lambda t: t["classifier.weight"].fill_(torch.nan), r"classifier\.weight holds numbers that are not finite"),
        (lambda t: t.update({"bert.pooler.dense.bias": torch.ones(7)}), r"pooler\.dense\.bias is \[7\]"),
    ],
)
def test_heads_that_are_damaged(change: Callable[[dict[str, Any]], Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=said):
        core.load(changed(tmp_path, tensors=change))


def test_pooling_that_is_not_known(tmp_path: Path) -> None:
    made(HEADS["ModernBERT"]).save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | {"classifier_pooling": "max"}))
    with pytest.raises(
        CheckpointError, match="classifier_pooling is 'max', but it must be one of cls, bos, mean, late"
    ):
        core.load(tmp_path)


def test_without_names_the_classes_have_numbers(tmp_path: Path) -> None:
    loaded = core.load(changed(tmp_path, lambda values: values.pop("id2label")))
    assert loaded.spec.classes is not None and loaded.spec.classes.names == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_names_of_a_base_open_it_without_classes(tmp_path: Path) -> None:
    loaded = core.load(changed(tmp_path, lambda values: values.update(architectures=["BertModel"])))
    assert loaded.classifier is None and loaded.spec.classes is None
    with pytest.raises(TextError, match="no classification head"):
        core.trace(loaded, ids=IDS).classes()


def two_stacks(kind: str, folder: Path, **more: Any) -> tuple[Any, Loaded]:
    """Their classifier of two stacks with every parameter moved, and what was loaded of it."""
    row = next(row for row in (*ROWS, *RELATIVES) if row.name == OF_TWO[kind])
    config = config_of(row, getattr(hf, kind))
    config.id2label = dict(LABELS)
    for name, value in more.items():
        setattr(config, name, value)
    torch.manual_seed(0)
    model = getattr(hf, kind)(config).eval()
    perturb(model)
    return model, saved(model, folder)


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("kind", OF_TWO)
def test_a_decoder_reads_the_text_once_more_and_says_its_class(kind: str, tmp_path: Path) -> None:
    model, loaded = two_stacks(kind, tmp_path)
    assert not loaded.notices and loaded.model.head is None
    for ids in (
        [*IDS, 2],
        [7, 2, 30, 11, 2],
        [7, 30, 2, 11, 45],
    ):  # mBART's end with a language after the end of the text
        found = core.trace(loaded, ids=ids).classes()
        assert torch.tensor(found.logits) == pytest.approx(theirs(model, ids), abs=1e-5)
    assert (theirs(model, [*reversed(IDS), 2]) - theirs(model, [*IDS, 2])).abs().max() > 1e-3
    assert loaded.spec.n_params == sum(p.numel() for p in model.parameters())
    with pytest.raises(TextError, match=r"end token, number 2, and this text has none"):
        core.trace(loaded, ids=IDS).classes()
    with pytest.raises(TextError, match=r"text of 10 tokens ends, and the target has 1\. Leave the target out"):
        core.trace(loaded, ids=[*IDS, 2], target_ids=[2]).classes()


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_no_class_of_two_stacks(side: Any, tmp_path: Path) -> None:
    _, loaded = two_stacks("BartForSequenceClassification", tmp_path)
    keep = [1] * 5 + [0] * 3 if side == "right" else [0] * 3 + [1] * 5
    ids, pads = [7, 30, 11, 45, 2], [loaded.pad_id] * 3
    alone = core.trace(loaded, ids=ids).classes()
    run = core.trace(loaded, ids=[*ids, *pads] if side == "right" else [*pads, *ids], keep=keep, padding_side=side)
    assert run.target is not None and run.target.padding == run.source.padding
    assert run.classes().logits == pytest.approx(alone.logits, abs=1e-5)
    batch = padded(loaded, [from_ids(None, ids), from_ids(None, [*IDS, 2])], side)
    again = core.trace_tokens(loaded, batch, source_as_target(loaded, batch), ())
    assert again.text(0).classes().logits == pytest.approx(alone.logits, abs=1e-5)


def test_a_sweep_of_two_stacks_is_of_its_class(tmp_path: Path) -> None:
    _, loaded = two_stacks("T5ForSequenceClassification", tmp_path)
    run = core.trace(loaded, ids=[*IDS, 2])
    effects = run.ablate_heads()
    silent = core.trace(loaded, ids=[*IDS, 2], interventions=[core.edits.Ablate("decoder", 0, 2)]).classes()
    best = run.classes().logits.index(max(run.classes().logits))
    mine = next(e for e in effects.heads if (e.stack, e.layer, e.site, e.head) == ("decoder", 0, "attn", 2))
    assert silent.probabilities is not None and mine.logit is not None
    assert silent.logits[best] - run.classes().logits[best] == pytest.approx(mine.logit, abs=1e-4)


@pytest.mark.parametrize(("said", "found"), [(None, "left out"), ("</s>", "'</s>'")])
def test_a_head_of_two_stacks_needs_the_number_of_its_end(said: Any, found: str, tmp_path: Path) -> None:
    two_stacks("BartForSequenceClassification", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": said}))
    with pytest.raises(
        CheckpointError, match=f"eos_token_id is {found}, but it must be the number of the token that ends"
    ):
        core.load(tmp_path)


def test_a_classifier_is_not_saved_without_its_head(tmp_path: Path) -> None:
    loaded = bert(tmp_path / "a")
    with pytest.raises(CheckpointError, match="is a classifier, and save"):
        core.save(loaded, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_its_parameters_and_format_are_those_of_the_file(tmp_path: Path) -> None:
    model = made(HEADS["BERT"])
    model.save_pretrained(tmp_path)
    loaded = core.load(tmp_path, dtype=torch.bfloat16)
    assert loaded.classifier is not None
    assert {p.dtype for p in loaded.classifier.parameters()} == {torch.bfloat16}
    n_mine = sum(p.numel() for p in model.parameters())
    assert loaded.spec.n_params == n_mine
    found = core.trace(loaded, ids=IDS).classes()
    assert torch.tensor(found.logits) == pytest.approx(theirs(model), abs=0.1)
