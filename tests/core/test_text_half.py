"""The text half of models that also read pictures or sound: the same patterns and logits as the whole has on a text alone."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from benchmarks.coverage import LOGITS, PATTERNS, perturb
from core import trace
from core.checkpoints import load
from core.checkpoints.family import LEFT_OUT, SAME_AS, WHOLES, SourceConfig, text_backbone
from core.checkpoints.files import SINGLE
from core.checkpoints.from_config import parse_config
from core.checkpoints.loading import FAMILIES, config_from
from core.errors import CheckpointError
from tests.core.folders import change_config, change_tensors, renamed, without
from tests.core.published import GEMMA3, LLAMA, NO_HEAD_DIM, VOCAB

SIZES: dict[str, Any] = {"vocab_size": VOCAB, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
VIT = {
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 8,
    "patch_size": 4,
}
CLIP, PIXTRAL = VIT | {"model_type": "clip_vision_model"}, VIT | {"model_type": "pixtral"}
SIGLIP = VIT | {"model_type": "siglip_vision_model"}
WHISPER = {
    "d_model": 16,
    "encoder_layers": 1,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 20,
    "num_mel_bins": 4,
    "max_source_positions": 8,
}
MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "mrope_section": [2, 1, 2]}}
QWEN_VL = {k: v for k, v in LLAMA.items() if k != "head_dim"} | {"hidden_size": 60} | MROPE
QWEN_VIT = {"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 60, "mlp_ratio": 2, "patch_size": 4}
QWEN25_VIT = {
    "depth": 1,
    "hidden_size": 16,
    "num_heads": 2,
    "intermediate_size": 20,
    "out_hidden_size": 60,
    "patch_size": 4,
    "fullatt_block_indexes": [0],
}
QWEN3_VIT = {
    "depth": 1,
    "hidden_size": 16,
    "num_heads": 2,
    "intermediate_size": 20,
    "out_hidden_size": 42,
    "patch_size": 4,
    "num_position_embeddings": 16,
    "deepstack_visual_indexes": [0],
}
LLAMA_TEXT, MISTRAL_TEXT = LLAMA | {"model_type": "llama"}, LLAMA | {"model_type": "mistral", "sliding_window": 4}
QWEN_TEXT = NO_HEAD_DIM | {"model_type": "qwen2"}
# model_type -> its class, and the numbers of its two halves
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gemma3": (
        "Gemma3ForConditionalGeneration",
        {"text_config": GEMMA3, "vision_config": SIGLIP, "mm_tokens_per_image": 4},
    ),
    "got_ocr2": (
        "GotOcr2ForConditionalGeneration",
        {
            "text_config": QWEN_TEXT,
            "vision_config": {
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "mlp_dim": 20,
                "output_channels": 8,
                "image_size": 32,
                "window_size": 2,
                "global_attn_indexes": [0],
            },
        },
    ),
    "idefics3": (
        "Idefics3ForConditionalGeneration",
        {"text_config": LLAMA_TEXT, "vision_config": VIT, "scale_factor": 2},
    ),
    "internvl": (
        "InternVLForConditionalGeneration",
        {"text_config": QWEN_TEXT, "vision_config": VIT | {"image_size": [8, 8], "patch_size": [4, 4]}},
    ),
    "llava": ("LlavaForConditionalGeneration", {"text_config": LLAMA_TEXT, "vision_config": CLIP}),
    "llava_next": ("LlavaNextForConditionalGeneration", {"text_config": MISTRAL_TEXT, "vision_config": CLIP}),
    "llava_onevision": ("LlavaOnevisionForConditionalGeneration", {"text_config": QWEN_TEXT, "vision_config": SIGLIP}),
    "mistral3": ("Mistral3ForConditionalGeneration", {"text_config": MISTRAL_TEXT, "vision_config": PIXTRAL}),
    "qwen2_5_vl": ("Qwen2_5_VLForConditionalGeneration", {"text_config": QWEN_VL, "vision_config": QWEN25_VIT}),
    "qwen2_audio": ("Qwen2AudioForConditionalGeneration", {"text_config": QWEN_TEXT, "audio_config": WHISPER}),
    "qwen2_vl": ("Qwen2VLForConditionalGeneration", {"text_config": QWEN_VL, "vision_config": QWEN_VIT}),
    "qwen3_vl": ("Qwen3VLForConditionalGeneration", {"text_config": LLAMA | MROPE, "vision_config": QWEN3_VIT}),
    "smolvlm": (
        "SmolVLMForConditionalGeneration",
        {"text_config": LLAMA_TEXT, "vision_config": VIT, "scale_factor": 2},
    ),
    "vipllava": (
        "VipLlavaForConditionalGeneration",
        {"text_config": LLAMA_TEXT, "vision_config": CLIP, "vision_feature_layers": [-1, -2]},
    ),
    "voxtral": (
        "VoxtralForConditionalGeneration",
        {
            "text_config": LLAMA_TEXT,
            "audio_config": {
                "hidden_size": 16,
                "intermediate_size": 20,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "num_mel_bins": 4,
                "max_source_positions": 8,
            },
        },
    ),
}


@cache
def whole(name: str) -> Any:
    """A tiny model of both halves, every parameter moved."""
    kind, sizes = CASES[name]
    sizes = {key: value | SIZES if key == "text_config" else value for key, value in sizes.items()}
    cls = getattr(hf, kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = cls(cls.config_class(**sizes)).eval()
        model.set_attn_implementation("eager")
        perturb(model)
    return model


def agrees(folder: Path, name: str) -> Any:
    """The model that the folder holds, proved to compute what the whole does on a text alone."""
    loaded = load(folder)
    ids = torch.randint(3, VOCAB, (1, 11), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = whole(name)(input_ids=ids, attention_mask=torch.ones_like(ids), output_attentions=True)
        ours = loaded.model(ids)
    assert (ours - expected.logits).abs().max() <= LOGITS
    run = trace(loaded, ids=ids[0].tolist())
    assert len(run.attention) == len(expected.attentions)
    for record, pattern in zip(run.attention, expected.attentions, strict=True):
        assert (record.pattern() - pattern[0]).abs().max() <= PATTERNS
    return loaded


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    whole(request.param).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_each_has_a_case() -> None:
    assert CASES.keys() == WHOLES.keys()


@pytest.mark.thorough(but=5)
@pytest.mark.parametrize(("folder", "name"), [(name, name) for name in CASES], indirect=["folder"])
def test_the_text_half_is_what_the_whole_computes(folder: Path, name: str) -> None:
    loaded = agrees(folder, name)
    said = loaded.notices[0]
    part = "audio tower" if name in ("qwen2_audio", "voxtral") else "vision tower"
    assert said.startswith(f"This is the text half of {WHOLES[name][0]}: it reads texts alone. Left out: ")
    assert len(loaded.notices) == 1, loaded.notices
    tensors = load_file(folder / SINGLE)
    count, size = re.search(rf"its {part} \((\d+) tensors?, ([\d.]+) kB", said.replace("MB", "kB")).groups()  # type: ignore[union-attr]
    assert 0 < int(count) < len(tensors) and float(size) > 0
    assert "projector" in said or name in ("qwen3_vl", "got_ocr2", "idefics3", "smolvlm")


def test_names_and_bytes_of_the_parts_are_told(tmp_path: Path) -> None:
    whole("gemma3").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / SINGLE)
    tower = {k: v for k, v in tensors.items() if "vision_tower" in k}
    n_bytes = sum(v.numel() * v.element_size() for v in tower.values())
    (said,) = load(tmp_path).notices
    assert f"vision tower ({len(tower)} tensors, {n_bytes / 1e3:.1f} kB: {min(tower)} …)" in said
    assert set(tower) <= set(load(tmp_path).unused)


NEWER = {"language_model.model.": "model.language_model.", "language_model.lm_head": "lm_head"}
OLDER = {"model.language_model.": "model.", "model.visual": "visual"}


def spelt(name: str, names: dict[str, str]) -> str:
    return next((new + name.removeprefix(old) for old, new in names.items() if name.startswith(old)), name)


OTHER_NAMES = {  # than those of transformers' writer
    "llava": lambda n: spelt(n, NEWER),
    "gemma3": lambda n: spelt(n, NEWER),
    "qwen2_vl": lambda n: spelt(n, OLDER),
    "qwen2_5_vl": lambda n: spelt(
        n, {"model.": "model.language_model."} if n.startswith(("model.e", "model.l", "model.n")) else {}
    ),
    "mistral3": lambda n: f"_orig_mod.{n}",
}


@pytest.mark.parametrize(("folder", "name"), [(name, name) for name in OTHER_NAMES], indirect=["folder"])
def test_other_names(folder: Path, name: str) -> None:
    assert agrees(change_tensors(folder, renamed(OTHER_NAMES[name])), name)


@pytest.mark.parametrize("folder", ["qwen2_vl"], indirect=True)
def test_a_config_without_a_half_of_its_own(folder: Path) -> None:
    """Qwen2-VL's first files keep the keys of the text half among the others, and turn by mrope."""
    config = json.loads((folder / "config.json").read_text())
    text = config.pop("text_config")
    rope = text.pop("rope_parameters")
    flat = text | config | {"rope_theta": rope["rope_theta"]}
    flat["rope_scaling"] = {"type": "mrope", "mrope_section": rope["mrope_section"]}
    (folder / "config.json").write_text(json.dumps(flat))
    assert agrees(folder, "qwen2_vl")


@pytest.mark.parametrize("folder", ["llava"], indirect=True)
def test_whose_head_is_tied_is_seen_in_the_files(folder: Path) -> None:
    """Whole and half may say different things of the head; the file that has none means the token table."""
    tensors = load_file(folder / SINGLE)
    table, head = (
        next(v for k, v in tensors.items() if k.endswith(n)) for n in ("embed_tokens.weight", "lm_head.weight")
    )
    for stated in (True, False, None):  # with a head, which counts whatever is stated
        loaded = load(change_config(folder, tie_word_embeddings=stated))
        assert not loaded.config.tied and torch.equal(loaded.model.head.unembed.weight, head)  # type: ignore[union-attr]
    change_tensors(folder, without("lm_head"))
    for stated in (True, None):
        loaded = load(change_config(folder, tie_word_embeddings=stated))
        assert loaded.config.tied and torch.equal(loaded.model.head.unembed.weight, table)  # type: ignore[union-attr]
    with pytest.raises(CheckpointError, match=r"hold no tensor lm_head\.weight"):
        load(change_config(folder, tie_word_embeddings=False))


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_keys_that_are_left_out_are_those_of_the_class(kind: str) -> None:
    """A text_config with nothing in it is the class's own default."""
    config = hf.AutoConfig.for_model(kind).to_dict()
    family = FAMILIES[SAME_AS.get(kind, kind)]
    outer = (
        next(name for name, (_, usual) in WHOLES.items() if usual == kind)
        if any(usual == kind for _, usual in WHOLES.values())
        else "llava"
    )
    values = {"model_type": outer, "text_config": {"model_type": kind}}
    ours = config_from(family, text_backbone(SourceConfig(values)))
    assert ours == config_from(family, SourceConfig(config))


def test_planning_reads_the_text_half() -> None:
    values = {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
        "vision_config": {},
    }
    config = parse_config(values).config
    assert (config.d_model, config.n_decoder_layers, config.n_kv_heads, config.vocab_size) == (2560, 34, 4, 262208)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"text_config": 3}, "text_config is 3, but it must be an object in braces"),
        (
            {"text_config": {"model_type": "mamba"}},
            "text_config: the model type 'mamba' is not supported.*no attention",
        ),
        ({"text_config": {"hidden_size": "wide"}}, "text_config: hidden_size is 'wide', but it must be a whole number"),
        (
            {"text_config": {"num_hidden_layers": 999}},
            "text_config speaks of 999 layers, but the weight files hold only",
        ),
        ({"model_type": "llama4"}, "'llama4' is not supported. Its attention within chunks"),
        ({"model_type": "paligemma"}, "'paligemma' is not supported. It reads what comes before the answer both ways"),
        ({"quantization_config": {"quant_method": "new-one"}}, "quantized with new-one"),
    ],
)
@pytest.mark.parametrize("folder", ["llava"], indirect=True)
def test_refused(change: dict[str, Any], says: str, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    if isinstance(change.get("text_config"), dict):
        change = {"text_config": config["text_config"] | change["text_config"]}
    with pytest.raises(CheckpointError, match=says):
        load(change_config(folder, **change))


@pytest.mark.parametrize("folder", ["llava"], indirect=True)
def test_a_tensor_of_the_text_half_that_is_missing_or_there_twice(folder: Path) -> None:
    tensors = load_file(folder / SINGLE)
    name = next(n for n in tensors if n.endswith("layers.1.mlp.up_proj.weight"))
    save_file({k: v for k, v in tensors.items() if k != name}, folder / SINGLE)
    with pytest.raises(CheckpointError, match=r"hold no tensor layers\.1\.mlp\.up_proj\.weight"):
        load(folder)
    save_file(tensors | {f"module.{name}": tensors[name].clone()}, folder / SINGLE)
    with pytest.raises(CheckpointError, match=f"holds both .*{re.escape(name)}; only one can be meant"):
        load(folder)
