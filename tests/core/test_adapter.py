"""LoRA folders: merged weights equal to peft's published formula, and a sentence for each way in which one does not fit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from core.checkpoints import load
from core.checkpoints.files import SINGLE
from core.errors import CheckpointError

LLAMA = ["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj", "model.layers.2.self_attn.v_proj"]
GPT2 = ["transformer.h.0.attn.c_attn", "transformer.h.1.mlp.c_proj"]
Change = Callable[[dict[str, Tensor]], dict[str, Tensor]]


def adapter(place: Path, modules: list[str], ranks: dict[str, int] | None = None, **said: Any) -> Path:
    """An adapter's folder beside its base, as peft writes it."""
    config: dict[str, Any] = {
        "peft_type": "LORA",
        "base_model_name_or_path": "owner/model",
        "r": 3,
        "lora_alpha": 6,
        **said,
    }
    base = load_file(place / SINGLE)
    draw = torch.Generator().manual_seed(0)
    tensors: dict[str, Tensor] = {}
    for module in modules:
        n_out, n_in = base[f"{module}.weight"].shape
        if said.get("fan_in_fan_out"):
            n_out, n_in = n_in, n_out
        rank = int((ranks or {}).get(module) or config["r"])
        tensors[f"base_model.model.{module}.lora_A.weight"] = torch.randn(rank, n_in, generator=draw)
        tensors[f"base_model.model.{module}.lora_B.weight"] = torch.randn(n_out, rank, generator=draw)
        if said.get("use_dora"):
            tensors[f"base_model.model.{module}.lora_magnitude_vector"] = torch.rand(n_out, generator=draw) + 0.5
    out = place.parent / "adapter"
    out.mkdir()
    (out / "adapter_config.json").write_text(json.dumps(config))
    save_file(tensors, out / "adapter_model.safetensors")
    return out


def same(loaded: Any, other: Any) -> None:
    ids = torch.arange(3, 14)[None]
    with torch.inference_mode():
        assert (loaded.model(ids) - other.model(ids)).abs().max() <= 1e-5


def by_hand(place: Path, out: Path, scale: Callable[[str], float], turned: bool = False, dora: bool = False) -> Path:
    """The base with each weight replaced: W + scale · B A, by peft's formula (tuners/lora/layer.py, get_delta_weight and merge)."""
    added, base = load_file(out / "adapter_model.safetensors"), load_file(place / SINGLE)
    for name in list(added):
        if not name.endswith(".lora_A.weight"):
            continue
        key = name.removesuffix(".lora_A.weight")
        module = key.removeprefix("base_model.model.")
        delta = added[f"{key}.lora_B.weight"] @ added[name] * scale(module)
        weight = base[f"{module}.weight"] + (delta.T if turned else delta)
        if dora:
            rows = weight.T if turned else weight
            factor = added[f"{key}.lora_magnitude_vector"] / torch.linalg.norm(rows, dim=1)
            weight = (factor[:, None] * rows).T if turned else factor[:, None] * rows
        base[f"{module}.weight"] = weight.contiguous()
    whole = shutil.copytree(place, place.parent / "whole")
    save_file(base, whole / SINGLE)
    return whole


@pytest.mark.parametrize("dora", [False, True])
@pytest.mark.parametrize(("name", "modules", "turned"), [("llama gqa", LLAMA, False), ("gpt2", GPT2, True)])
def test_merged(name: str, modules: list[str], turned: bool, dora: bool, folder: Callable[[str], Path]) -> None:
    place = folder(name)
    out = adapter(place, modules, fan_in_fan_out=turned, use_dora=dora)
    loaded = load(out)
    same(loaded, load(by_hand(place, out, lambda _: 6 / 3, turned, dora)))
    with torch.inference_mode():  # and it is not the base
        assert (
            loaded.model(torch.arange(3, 14)[None]) - load(place).model(torch.arange(3, 14)[None])
        ).abs().max() > 0.01
    leaves = ", ".join(sorted({module.rpartition(".")[2] for module in modules}))
    kind = "DoRA" if dora else "LoRA"
    assert loaded.notices == (f"{kind} of rank 3 (alpha 6) is merged into {len(modules)} weights of model: {leaves}.",)
    assert loaded.spec.title == "adapter"


def test_rslora_and_patterns(folder: Callable[[str], Path]) -> None:
    place = folder("llama gqa")
    patterns: dict[str, Any] = {"rank_pattern": {"q_proj": 5}, "alpha_pattern": {r"layers.1.mlp.down_proj": 7.0}}
    out = adapter(place, LLAMA, {LLAMA[0]: 5}, use_rslora=True, **patterns)
    scales = {LLAMA[0]: 6 / 5**0.5, LLAMA[1]: 7 / 3**0.5, LLAMA[2]: 6 / 3**0.5}
    loaded = load(out)
    same(loaded, load(by_hand(place, out, lambda module: scales[module])))
    assert "rank 3 or 5 (alpha 6 or 7, rslora)" in loaded.notices[0]


def test_tables_and_modules_that_are_saved_whole(folder: Callable[[str], Path]) -> None:
    place = folder("llama gqa")
    out = adapter(place, LLAMA[:1], modules_to_save=["lm_head", "norm"])
    base, added = load_file(place / SINGLE), load_file(out / "adapter_model.safetensors")
    head, norm = torch.randn_like(base["lm_head.weight"]), torch.rand_like(base["model.norm.weight"])
    table = base["model.embed_tokens.weight"]
    a, b = torch.randn(3, table.shape[0]), torch.randn(table.shape[1], 3)
    key = "base_model.model.model.embed_tokens.lora_embedding_"
    more = {
        "base_model.model.lm_head.weight": head,
        "base_model.model.model.norm.weight": norm,
        f"{key}A": a,
        f"{key}B": b,
    }
    save_file(added | more, out / "adapter_model.safetensors")
    whole = by_hand(place, out, lambda _: 2.0)
    tensors = load_file(whole / SINGLE)
    tensors |= {
        "lm_head.weight": head,
        "model.norm.weight": norm,
        "model.embed_tokens.weight": (table + (b @ a).T * 2).contiguous(),
    }
    save_file(tensors, whole / SINGLE)
    loaded = load(out)
    same(loaded, load(whole))
    assert "2 of its tensors take the place of the base's own" in loaded.notices[0]


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"r": 4}, "of rank 4 do not make model.layers.0.self_attn.q_proj.weight"),
        ({"r": 0}, "r is 0, but a rank is at least 1"),
        ({"lora_alpha": "six"}, "lora_alpha is 'six', but it must be a finite number"),
        ({"fan_in_fan_out": True}, "do not make model.layers.0.self_attn.q_proj.weight"),
        ({"use_dora": True}, "has no lengths of DoRA"),
        ({"peft_type": "LOHA"}, "holds an adapter (LoHa) and no model"),
        ({"init_lora_weights": "pissa_niter_4"}, "which changes the weights of the base as well"),
        ({"layer_replication": [[0, 2]]}, "layer_replication is not supported"),
        ({"rank_pattern": {"(a+)+": 3}}, "only names of modules are read there"),
        ({"rank_pattern": 3}, "rank_pattern is 3, but it must be an object"),
        ({"base_model_name_or_path": "owner/elsewhere"}, "lay the folder of that model beside this one"),
        ({"base_model_name_or_path": "/etc/.."}, "lay the folder of that model beside this one"),
    ],
)
def test_refused(said: dict[str, Any], says: str, folder: Callable[[str], Path]) -> None:
    out = adapter(folder("llama gqa"), LLAMA)
    config = json.loads((out / "adapter_config.json").read_text())
    (out / "adapter_config.json").write_text(json.dumps(config | said))
    with pytest.raises(CheckpointError, match=re.escape(says)):
        load(out)


CUT: dict[str, tuple[Change, str]] = {
    "half": (
        lambda t: {k: v for k, v in t.items() if not k.endswith("q_proj.lora_B.weight")},
        "the adapter is not whole",
    ),
    "another model": (
        lambda t: {k.replace("layers.2", "layers.9"): v for k, v in t.items()},
        "which the base does not have",
    ),
    "another width": (
        lambda t: {k: v[:, :-1].contiguous() if "lora_A" in k else v for k, v in t.items()},
        "do not make",
    ),
    "whole numbers": (lambda t: {k: v.to(torch.int8) for k, v in t.items()}, "is stored as I8"),
    "nothing": (lambda t: {}, "holds no weights of an adapter"),
    "a norm of another width": (
        lambda t: t | {"base_model.model.model.norm.weight": torch.ones(3)},
        "takes the place of",
    ),
}


@pytest.mark.parametrize("cut", CUT)
def test_damaged(cut: str, folder: Callable[[str], Path]) -> None:
    out = adapter(folder("llama gqa"), LLAMA)
    change, says = CUT[cut]
    save_file(change(load_file(out / "adapter_model.safetensors")), out / "adapter_model.safetensors")
    with pytest.raises(CheckpointError, match=says):
        load(out)
    (out / "adapter_model.safetensors").write_bytes(b"xx")
    with pytest.raises(CheckpointError, match=r"adapter_model\.safetensors is not a whole safetensors file"):
        load(out)


HEADS = {
    "BertForSequenceClassification": ("bert", "bert.encoder.layer.1.attention.self.query", ("classifier",)),
    "RobertaForSequenceClassification": (
        "roberta",
        "roberta.encoder.layer.1.attention.self.query",
        ("classifier.dense", "classifier.out_proj"),
    ),
    "LlamaForSequenceClassification": ("llama", "model.layers.1.self_attn.q_proj", ("score",)),
}


def classifying(kind: str, tmp_path: Path, **said: Any) -> tuple[Any, Path]:
    """A classifier of transformers, and a LoRA of it as peft writes one for a sequence classification (modules_to_save: the head),
    beside a base without the head. The LoRA adds nothing, so that theirs is what ours must be."""
    import transformers as hf

    from benchmarks.coverage import ROWS, config_of, perturb

    model_type, module, heads = HEADS[kind]
    row = next(row for row in ROWS if getattr(hf, row.model).config_class.model_type == model_type)
    config = config_of(row, getattr(hf, kind))
    config.id2label = {0: "a", 1: "b", 2: "c"}
    torch.manual_seed(0)
    model = getattr(hf, kind)(config).eval()
    perturb(model)
    place = tmp_path / "model"
    model.save_pretrained(place)
    tensors = load_file(place / SINGLE)
    head = {name: t for name, t in tensors.items() if name.rpartition(".")[0] in heads}
    save_file({name: t for name, t in tensors.items() if name not in head}, place / SINGLE)
    values = json.loads((place / "config.json").read_text())
    values = {key: value for key, value in values.items() if key not in ("id2label", "label2id")}
    (place / "config.json").write_text(json.dumps(values | {"architectures": [row.model]}))
    out = adapter(place, [module], task_type="SEQ_CLS", modules_to_save=["classifier", "score"], **said)
    added = load_file(out / "adapter_model.safetensors")
    added = {name: t * 0 if "lora_B" in name else t for name, t in added.items()}
    added |= {f"base_model.model.{name}": t for name, t in head.items()}
    save_file(added, out / "adapter_model.safetensors")
    return model, out


@pytest.mark.parametrize("kind", HEADS)
def test_an_adapter_brings_the_head_of_its_classes(kind: str, tmp_path: Path) -> None:
    import core

    model, out = classifying(kind, tmp_path)
    loaded, ids = load(out), [7, 30, 11, 45, 23, 8]
    found = core.trace(loaded, ids=ids).classes()
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0]
    assert torch.tensor(found.logits) == pytest.approx(expected, abs=1e-5)
    assert found.names == ("LABEL_0", "LABEL_1", "LABEL_2") and loaded.unused == ()
    assert "The head that gives a text its class is the adapter's." in loaded.notices[-1]


def test_the_base_lends_its_names_where_they_are_as_many(tmp_path: Path) -> None:
    _, out = classifying("BertForSequenceClassification", tmp_path)
    path = tmp_path / "model" / "config.json"
    values = json.loads(path.read_text()) | {"id2label": {"0": "x", "1": "y", "2": "z"}}
    path.write_text(json.dumps(values))
    classes = load(out).spec.classes
    assert classes is not None and classes.names == ("x", "y", "z")


def test_a_head_of_another_width_is_refused(tmp_path: Path) -> None:
    _, out = classifying("BertForSequenceClassification", tmp_path)
    path = out / "adapter_model.safetensors"
    tensors = load_file(path)
    name = next(name for name in tensors if name.endswith("classifier.weight"))
    save_file(tensors | {name: tensors[name][:, :-1].contiguous()}, path)
    with pytest.raises(CheckpointError, match=r"classifier\.weight is \[3, 34\], but it must have a row of 35 numbers"):
        load(out)
