"""Models planned from their config.json alone: by a path, a folder, or owner/name on the Hub, where nothing else is fetched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import RemoteEntryNotFoundError, RepositoryNotFoundError

import core
from core import __main__ as command_line
from core.checkpoints import from_config, hub
from core.errors import CheckpointError, ConfigError
from core.plan import PRESETS, kv_cache, memory_plan

LLAMA_3_70B: dict[str, Any] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8192, "intermediate_size": 28_672,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128_256,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500_000.0, "tie_word_embeddings": False,
    "hidden_act": "silu", "torch_dtype": "bfloat16",
}  # fmt: skip
GEMMA_3_1B: dict[str, Any] = {
    "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "hidden_size": 1152, "intermediate_size": 6912,
    "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262_144,
    "max_position_embeddings": 32_768, "sliding_window": 512, "sliding_window_pattern": 6, "query_pre_attn_scalar": 256,
    "rope_theta": 1_000_000, "rope_local_base_freq": 10_000, "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh",
    "torch_dtype": "bfloat16",
}  # fmt: skip
PUBLISHED_70B = 70_553_706_496


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_3_70B))
    return tmp_path


def test_llama_3_70b_from_its_config(folder: Path) -> None:
    for model in (folder, str(folder), folder / "config.json", LLAMA_3_70B):
        found = core.plan(model, source_len=128, dtype="float16")
        assert found.parameters.total == PUBLISHED_70B
        assert f"{found.memory.weights / 1e9:.1f}" == "141.1"
    assert core.read_config(folder) == core.read_config(LLAMA_3_70B)
    assert from_config.describe(folder).dtype == "bfloat16"


def test_the_cache_of_gemma_3_1b() -> None:
    config = core.read_config(GEMMA_3_1B)
    assert kv_cache(config, n=32_768, dtype="bfloat16").total == 1024 * (4 * 32_768 + 22 * 512) == 145_752_064
    assert core.plan(GEMMA_3_1B, source_len=32_768, dtype="bfloat16").memory.kv_cache == 145_752_064


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "float8"),
        ({"quant_method": "aqlm", "bits": [1]}, None),
    ],
)
def test_quantized_weights_can_be_planned_though_not_loaded(
    folder: Path, said: dict[str, Any], wanted: str | None
) -> None:
    (folder / "config.json").write_text(json.dumps(LLAMA_3_70B | {"quantization_config": said}))
    known = from_config.describe(folder)
    assert known.weight_dtype == wanted and known.config == core.read_config(LLAMA_3_70B)
    with pytest.raises(CheckpointError, match="quantized"):
        core.load(folder)


def test_of_a_repository_config_json_is_all_that_is_fetched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str, str | None]] = []

    def download(repository: str, name: str, *, revision: str | None = None, etag_timeout: float = 0) -> str:
        asked.append((repository, name, revision))
        return str(folder / "config.json")

    monkeypatch.setattr(hub, "hf_hub_download", download)
    assert core.plan("some-owner/Llama-70B", source_len=8).parameters.total == PUBLISHED_70B
    assert command_line.main(["plan", "some-owner/Llama-70B", "--revision", "v1"]) == 0
    assert asked == [("some-owner/Llama-70B", "config.json", None), ("some-owner/Llama-70B", "config.json", "v1")]
    said = capsys.readouterr().out
    assert f"{PUBLISHED_70B:,} parameters, bfloat16" in said and "141.11 GB  weights" in said


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            lambda response: RemoteEntryNotFoundError("no", response=response),
            "has no config.json, from which a model could be planned",
        ),
        (
            lambda response: RepositoryNotFoundError("no", response=response),
            "There is no some-owner/nothing on the Hub",
        ),
        (lambda response: OSError("no route"), "The Hub cannot be reached, and the config.json of some-owner/nothing"),
    ],
)
def test_what_the_hub_refuses_is_a_sentence(error: Any, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from httpx2 import Request, Response

    def download(*_: Any, **__: Any) -> str:
        raise error(Response(404, request=Request("GET", "http://hub/config.json")))

    monkeypatch.setattr(hub, "hf_hub_download", download)
    with pytest.raises(CheckpointError, match=sentence):
        core.read_config("some-owner/nothing")


def test_a_preset_and_what_is_no_model(tmp_path: Path) -> None:
    assert core.read_config("gpt2") == PRESETS["gpt2"].config
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="not valid JSON"):
        core.read_config(tmp_path / "config.json")
    with pytest.raises(CheckpointError, match="There is no model"):
        core.read_config("nothing")
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        core.read_config(tmp_path)
    with pytest.raises(CheckpointError, match="1,001 layers"):
        core.read_config(LLAMA_3_70B | {"num_hidden_layers": 1001})
    with pytest.raises(ConfigError, match="source_len"):
        core.plan(LLAMA_3_70B, source_len=0)


def test_what_fits_on_a_card(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["plan", "llama-3-8b", "--source-len", "32768", "--dtype", "float16"]
    assert command_line.main([*base, "--card", "rtx-4090"]) == 0
    said = capsys.readouterr().out
    assert "RTX 4090: 23.99 GiB, 23.64 of them for programs, 23.35 beside a CUDA context. Fits, 0.99 GiB left." in said
    assert command_line.main([*base, "--card", "rtx-4090", "--logits", "all"]) == 0
    assert "Does not fit: 3.94 GiB too much." in capsys.readouterr().out
    assert command_line.main([*base, "--card", "abacus"]) == 2
    assert "There is no card 'abacus' here" in capsys.readouterr().err
    assert command_line.main([*base, "--piece", "2048", "--weights", "Q4_K_M", "--kv", "q8_0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    config = PRESETS["llama-3-8b"].config
    wanted = memory_plan(config, source_len=32_768, dtype="float16", piece=2048, weight_dtype="Q4_K_M", kv_dtype="Q8_0")
    assert found["memory"] == wanted.to_dict()
    assert command_line.main([*base, "--weights", "Q9"]) == 2
    assert "weight_dtype ('Q9') must be one of" in capsys.readouterr().err


DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "vocab_size": 129280,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_shared_experts": 1,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "routed_scaling_factor": 2.5,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "n_group": 8,
    "topk_group": 4,
    "norm_topk_prob": True,
    "max_position_embeddings": 163840,
}
PHI_3_LONG = {
    "model_type": "phi3",
    "vocab_size": 32064,
    "hidden_size": 3072,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "original_max_position_embeddings": 4096,
    "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48},
}


@pytest.mark.parametrize(
    ("values", "parameters"),
    [
        (DEEPSEEK_V3, 671_026_419_200),
        (DEEPSEEK_V3 | {"architectures": ["DeepseekV3ForCausalLM"]}, 671_026_419_200),
        (PHI_3_LONG, 3_821_079_552),
        (PHI_3_LONG | {"rope_scaling": {"type": "yarn", "factor": 4.0}, "rope_theta": 5000.0}, 3_821_079_552),
    ],
)
def test_a_model_that_cannot_run_is_planned_where_its_sizes_are_known(values: dict[str, Any], parameters: int) -> None:
    found = from_config.parse_config(values)
    assert core.plan(found.config, source_len=4096).parameters.total == parameters
    if "rope_theta" in values:
        assert found.config.rotary_base == 5000


def test_what_changes_the_sizes_is_still_refused() -> None:
    with pytest.raises(CheckpointError, match="attention_bias"):
        from_config.parse_config(DEEPSEEK_V3 | {"attention_bias": True})
