"""Folders that hold something else than a model, as people have them: each says what lies there and what helps, and that helps."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.checkpoints import load
from core.checkpoints.diagnose import of_hub, without_config
from core.checkpoints.files import HARMLESS, INDEX, SINGLE
from core.errors import CheckpointError, TextError
from core.trace import trace
from tests.core.folders import Tensors, change_config, change_tensors, plus, renamed
from tests.core.published import reference
from tests.core.test_checkpoints import agrees
from tests.thorough import THOROUGH

LORA = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "some-owner/Llama-3.2-1B", "r": 8}


def refusal(place: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load(place)
    sentence = str(caught.value)
    assert str(place.parent) not in sentence  # where a folder lies stays with its owner
    for line in helping(sentence):
        if line.startswith(("import ", "from ", "core.", "model.")):
            ast.parse(line)
    return sentence


def helping(sentence: str) -> list[str]:
    """The lines of code and the commands of a sentence."""
    return re.findall(r"`([^`]+)`", sentence)


def follow(sentence: str, place: Path) -> None:
    """Run what the sentence says, in the folder that holds the model's.

    A line of Python gets a process of its own with THOROUGH=1 only: importing torch takes four seconds.
    """
    (line,) = [line for line in helping(sentence) if not line.startswith(("hf ", "headlight.load("))]
    if re.match(r"(mv|python) ", line):
        command: str | list[str] = line.replace("python ", f"{sys.executable} ", 1)
    elif THOROUGH:
        command = [sys.executable, "-c", line]
    else:
        with contextlib.chdir(place.parent):
            exec(line, {})
        return
    done = subprocess.run(
        command, shell=isinstance(command, str), cwd=place.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def files(place: Path, **contents: object) -> Path:
    """A folder of these files: a dict is JSON, anything else a few bytes."""
    for name, content in contents.items():
        path = place / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(json.dumps(content).encode() if isinstance(content, dict) else b"xxxx")
    return place


# adapters


@pytest.mark.parametrize(
    ("said", "says", "line"),
    [
        (
            LORA,
            r"adapter \(LoRA\).*some-owner/Llama-3.2-1B",
            'AutoModelForCausalLM.from_pretrained("some-owner/Llama-3.2-1B")',
        ),
        (LORA | {"task_type": "SEQ_2_SEQ_LM"}, "adapter", "AutoModelForSeq2SeqLM"),
        (LORA | {"task_type": None}, "adapter", "merge_and_unload"),
        (LORA | {"peft_type": "IA3"}, "IA³", "merge_and_unload"),
        (LORA | {"base_model_name_or_path": "/home/alice/secret/tiny"}, "the model called tiny.*for BASE", '"BASE"'),
        (LORA | {"base_model_name_or_path": "C:\\Users\\alice\\tiny"}, "the model called tiny", '"BASE"'),
        (LORA | {"base_model_name_or_path": None}, "another model", '"BASE"'),
        (
            LORA | {"peft_type": "PROMPT_TUNING"},
            "prompt tuning.*nothing to merge",
            'headlight.load("some-owner/Llama-3.2-1B")',
        ),
        (LORA | {"peft_type": "PREFIX_TUNING", "base_model_name_or_path": ""}, "prefix tuning", "headlight.load(BASE)"),
        ({}, "adapter", "merge_and_unload"),
        ({"base_model_name_or_path": ["x"], "peft_type": 5}, "adapter", "merge_and_unload"),
    ],
)
@pytest.mark.parametrize("file", ["adapter_model.safetensors", "adapter_model.bin"])
@pytest.mark.parametrize("with_config", [False, True])
def test_an_adapter_alone(said: dict, says: str, line: str, file: str, with_config: bool, tmp_path: Path) -> None:
    place = files(tmp_path / "lora", **{"adapter_config.json": said, file: 0, "tokenizer.json": 0})
    if with_config:
        shutil.copy(reference("llama gqa").folder / "config.json", place)
    sentence = refusal(place)
    assert re.search(says, sentence) and "alice" not in sentence
    assert any(line in code for code in helping(sentence)), sentence


def test_a_damaged_adapter_config_is_still_an_adapter(tmp_path: Path) -> None:
    place = files(tmp_path / "lora", **{"adapter_config.json": 0, "adapter_model.safetensors": 0})
    assert "holds an adapter (LoRA) and no model" in refusal(place)


# other forms


@pytest.mark.parametrize("file", ["ggml-model-q4_0.bin", "llama.ggmlv3.q4_0.bin"])
def test_llama_cpp_before_gguf(file: str, tmp_path: Path) -> None:
    sentence = refusal(files(tmp_path / "packed", **{file: 0, "README.md": 0}))
    assert file in sentence and "llama.cpp" in sentence and "model that it was made from" in sentence


@pytest.mark.parametrize("with_config", [False, True])
def test_a_gguf_file_that_is_none(with_config: bool, tmp_path: Path) -> None:
    place = files(tmp_path / "packed", **{"tiny-Q4_K_M.gguf": 0, "README.md": 0})
    if with_config:
        shutil.copy(reference("llama gqa").folder / "config.json", place)
    assert refusal(place).startswith("tiny-Q4_K_M.gguf is no GGUF file: it begins with b'xxxx'")


def test_gguf_files_on_the_hub() -> None:
    found = of_hub("lab/tiny-GGUF", ["tiny-Q8_0.gguf", "tiny-Q4_0.gguf", "README.md"], lambda name: Path(name))
    assert without_config(found) == (
        "lab/tiny-GGUF on the Hub holds GGUF files, tiny-Q4_0.gguf, tiny-Q8_0.gguf. Choose one, download it, and open it: "
        '`hf download lab/tiny-GGUF tiny-Q4_0.gguf --local-dir tiny-GGUF`, and then `headlight.load("tiny-GGUF/tiny-Q4_0.gguf")`.'
    )


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        ({}, "has no config.json: it holds no files"),
        ({"model.safetensors": 0}, "has no config.json, which says what kind of model model.safetensors"),
        ({"model-00001-of-00002.safetensors": 0}, "has no config.json.*model-00001-of-00002"),
        ({"pytorch_model.bin": 0}, "pytorch_model.bin, a Python pickle.*no config.json either"),
        ({"tokenizer.json": {}, "tokenizer_config.json": {}}, "holds a tokenizer .* and no model"),
        ({"tokenizer.model": 0}, "holds a tokenizer"),
        ({"params.json": {}, "consolidated.00.pth": 0, "tokenizer.model": 0}, "Meta and Mistral publish"),
        ({"params.json": {}, "consolidated.safetensors": 0, "tekken.json": {}}, "Meta and Mistral publish"),
        ({"tf_model.h5": 0}, "tf_model.h5.*TensorFlow"),
        ({"onnx__model.onnx": 0}, "onnx/model.onnx.*ONNX"),
        ({"model.ckpt-500.index": 0, "model.ckpt-500.meta": 0}, "TensorFlow 1"),
        ({"training_args.bin": 0, "optimizer.pt": 0, "rng_state_0.pth": 0}, "from which a training continues"),
        ({"notes.txt": 0}, "has no config.json, so it is not a model.*notes.txt"),
        ({"fp16.safetensors": 0}, "fp16.safetensors, and that is not read by that name.*no config.json either"),
    ],
)
def test_no_config(contents: dict, says: str, tmp_path: Path) -> None:
    (tmp_path / "thing").mkdir()
    sentence = refusal(files(tmp_path / "thing", **contents))
    assert re.search(says, sentence), sentence
    assert helping(sentence) or "Choose" in sentence or "Open" in sentence


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        ({}, r"says how large the model is, but no weights.*no model\.safetensors"),
        ({"tf_model.h5": 0}, r"no model\.safetensors.*tf_model\.h5.*TensorFlow.*"),
        ({"flax_model.msgpack": 0}, "Flax"),
        ({"onnx__model.onnx": 0}, "ONNX"),
        ({"zero_to_fp32.py": 0, "latest": 0, "global_step5__x.pt": 0}, "DeepSpeed"),
        ({"pytorch_model_fsdp_0____0_0.distcp": 0}, "FSDP"),
        ({"checkpoint-500__config.json": {}}, "saved by a training: checkpoint-500"),
        ({"model.safetensors.part": 0}, "no weights"),
    ],
)
def test_a_config_without_weights(contents: dict, says: str, tmp_path: Path) -> None:
    place = tmp_path / "thing"
    place.mkdir()
    shutil.copy(reference("gpt2").folder / "config.json", place)
    sentence = refusal(files(place, **contents))
    assert re.search(says, sentence), sentence
    assert helping(sentence)


# folders inside


def test_checkpoints_of_a_training(tmp_path: Path) -> None:
    """The newest is named by its number: as words, 1500 comes before 500."""
    place = files(tmp_path / "out", **{"trainer_state.json": {}, "training_args.bin": 0})
    for step in (500, 1000, 1500):
        shutil.copytree(reference("gpt2").folder, place / f"checkpoint-{step}")
    sentence = refusal(place)
    assert "3 saved by a training" in sentence and "checkpoint-1500 is the newest" in sentence
    assert helping(sentence) == ['headlight.load("out/checkpoint-1500")']
    assert agrees(load(tmp_path / "out/checkpoint-1500"), "gpt2")


def test_checkpoints_of_an_adapter(tmp_path: Path) -> None:
    place = files(tmp_path / "out", **{f"checkpoint-{n}__adapter_config.json": LORA for n in (9, 10)})
    sentence = refusal(place)
    assert "checkpoint-10 is the newest" in sentence and "out/checkpoint-10 holds an adapter (LoRA)" in sentence


@pytest.mark.parametrize("inside", ["0_Transformer", "model", "a/b/c", "snapshots/0123abc"])
def test_a_model_in_a_folder_inside(inside: str, tmp_path: Path) -> None:
    name = "models--some-owner--tiny" if inside.startswith("snapshots") else "outer"
    shutil.copytree(reference("gpt2").folder, tmp_path / name / inside)
    files(tmp_path / name, **{"modules.json": {}})
    sentence = refusal(tmp_path / name)
    assert f"{inside} in it has" in sentence and f'headlight.load("{name}/{inside}")' in helping(sentence)
    assert ('headlight.load("some-owner/tiny")' in sentence) == inside.startswith("snapshots")


def test_links_to_nothing_are_told(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / SINGLE).unlink()
    (place / SINGLE).symlink_to("../blobs/gone")
    assert re.search(r"model\.safetensors in model is a link to a file that is not there.*cp -rL", refusal(place))


@pytest.mark.parametrize("file", [SINGLE, "config.json", "tokenizer.json"])
def test_pointers_of_git_lfs(file: str, folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / file).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 548105171\n")
    sentence = refusal(place)
    assert file in sentence and "git -C model lfs pull" in sentence


@pytest.mark.parametrize("packed", ["model.zip", "model.tar.gz"])
def test_archives_are_unpacked_by_the_command(packed: str, tmp_path: Path) -> None:
    place = tmp_path / "thing"
    place.mkdir()
    made = place / packed
    source = reference("gpt2").folder
    if packed.endswith("zip"):
        with zipfile.ZipFile(made, "w") as archive:
            [archive.write(file, f"m/{file.name}") for file in source.iterdir()]
    else:
        with tarfile.open(made, "w:gz") as archive:
            archive.add(source, "m")
    follow(refusal(place), place)
    assert "m in it has" in refusal(place)
    assert agrees(load(place / "m"), "gpt2")


# the lines, followed


@pytest.mark.parametrize("name", ["llama gqa", "bert", "bart"])
def test_a_pickle_is_converted_with_its_head(name: str, folder: Callable[[str], Path]) -> None:
    place = folder(name)
    torch.save(load_file(place / SINGLE), place / "pytorch_model.bin")
    (place / SINGLE).unlink()
    sentence = refusal(place)
    assert "pytorch_model.bin, a Python pickle" in sentence and type(reference(name).model).__name__ in sentence
    follow(sentence, place)
    loaded = load(place)
    assert agrees(loaded, name) and loaded.model.head is not None


@pytest.mark.parametrize("file", ["model.pt", "ckpt.pth", "weights.bin"])
def test_a_pickle_of_another_name(file: str, folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    torch.save(load_file(place / SINGLE), place / file)
    (place / SINGLE).unlink()
    follow(refusal(place), place)
    assert agrees(load(place), "gpt2")


@pytest.mark.parametrize("file", ["pytorch_model.safetensors", "model.fp16.safetensors", "my model's.safetensors"])
def test_another_name_for_the_weights(file: str, folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / SINGLE).rename(place / file)
    (place / "adapter_model.safetensors").write_bytes(b"x")  # beside the model, and read by no one
    loaded = load(place)
    assert agrees(loaded, "gpt2") and len(loaded.notices) == 1
    (place / file).write_bytes((place / file).read_bytes()[:-9])
    assert re.search(f"{re.escape(file)} is not a whole safetensors file", refusal(place))


def test_two_names_for_the_weights(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    shutil.copy(place / SINGLE, place / "best.safetensors")
    (place / SINGLE).rename(place / "last.safetensors")
    sentence = refusal(place)
    assert "It has best.safetensors, last.safetensors, and it is not known which of them is meant" in sentence
    follow(sentence, place)
    assert agrees(load(place), "gpt2")


def test_mistrals_own_names_are_refused(folder: Callable[[str], Path]) -> None:
    place = folder("mistral")
    (place / SINGLE).rename(place / "consolidated.safetensors")
    assert "consolidated.safetensors, which is not read: its tensors have the names under which Mistral" in refusal(
        place
    )


@pytest.mark.parametrize(
    ("index", "shard"),
    [
        ("model.safetensors.index.fp16.json", "model-0000{}-of-00002.fp16.safetensors"),
        ("model.fp16.safetensors.index.json", "model.fp16-0000{}-of-00002.safetensors"),
        ("pytorch_model.safetensors.index.json", "pytorch_model-0000{}-of-00002.safetensors"),
    ],
)
def test_shards_of_a_variant(index: str, shard: str, folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    tensors = load_file(place / SINGLE)
    (place / SINGLE).unlink()
    halves = {shard.format(i + 1): dict(list(tensors.items())[i::2]) for i in range(2)}
    for name, half in halves.items():
        save_file(half, place / name)
    placed = {tensor: name for name, half in halves.items() for tensor in half}
    (place / index).write_text(json.dumps({"weight_map": placed}))
    loaded = load(place)
    assert agrees(loaded, "gpt2") and loaded.notices == ()
    (place / shard.format(2)).unlink()
    assert f"{index} names the file {shard.format(2)}, which is not there" in refusal(place)


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    reference("gpt2").model.save_pretrained(tmp_path / "model", max_shard_size="20KB")
    return tmp_path / "model"


def test_shards_without_their_index(sharded: Path) -> None:
    (sharded / INDEX).unlink()
    sentence = refusal(sharded)
    assert re.search(r"has the \d parts of its weights, but no model\.safetensors\.index\.json", sentence)
    follow(sentence, sharded)
    assert agrees(load(sharded), "gpt2")


def test_shards_that_are_missing(sharded: Path) -> None:
    shards = sorted(path.name for path in sharded.glob("*.safetensors"))
    (sharded / shards[1]).unlink()
    assert re.search(
        f"names the file {shards[1]}, which is not there.*hf download OWNER/NAME {shards[1]}", refusal(sharded)
    )
    (sharded / f"{shards[1]}.incomplete").write_bytes(b"x")
    assert f"{shards[1]}.incomplete was not downloaded to its end" in refusal(sharded)
    for name in shards[2:]:
        (sharded / name).unlink()
    assert f"{len(shards) - 1} of them are not there: {shards[1]}, {shards[2]}" in refusal(sharded)
    (sharded / INDEX).unlink()
    assert re.search(f"has 1 of the {len(shards)} parts.*parts 2, 3", refusal(sharded))


def test_an_index_that_names_files_of_another_name(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / SINGLE).rename(place / "merged.safetensors")
    placed = {f"t{i}": f"model-0000{i}-of-00002.safetensors" for i in (1, 2)}
    (place / INDEX).write_text(json.dumps({"weight_map": placed}))
    sentence = refusal(place)
    assert "2 of them are not there" in sentence and "There is merged.safetensors, which it does not name" in sentence
    follow(sentence, place)
    assert agrees(load(place), "gpt2")


@pytest.mark.parametrize("file", [SINGLE, "config.json", "x.bin", "x.zip", "x.h5", "x.txt"])
def test_a_file_instead_of_a_folder(file: str, folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    if not (place / file).exists():
        (place / file).write_bytes(b"x")
    sentence = refusal(place / file)
    assert f"'{file}' is a file" in sentence
    assert ('headlight.load("model")' in sentence) == (file in (SINGLE, "config.json"))


# prefixes


WRAPS: dict[str, Callable[[str], str]] = {
    "torch.compile": lambda name: f"_orig_mod.{name}",
    "DataParallel": lambda name: f"module.{name}",
    "DataParallel and torch.compile": lambda name: f"module._orig_mod.{name}",
    "compiled layer by layer": lambda name: re.sub(r"(\.\d+\.)", r"\1_orig_mod.", name),
    "FSDP": lambda name: re.sub(r"(\.\d+\.)", r"\1_fsdp_wrapped_module._checkpoint_wrapped_module.", name),
    "multimodal": lambda name: f"language_model.{name}",
    "of PEFT": lambda name: f"base_model.model.{name}",
    "multimodal and DataParallel": lambda name: f"module.model.language_model.{name}",
}
NAMED: dict[str, Callable[[str], str]] = {  # by what a program called its model, which could be anything
    "Lightning": lambda name: f"net.{name}",
    "two of it": lambda name: f"model.{name}",
    "wrapped and named": lambda name: f"module.net.{name}",
}


@pytest.mark.thorough(but=8)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", ["gpt2", "llama gqa", "bert", "t5 v1.0"])
def test_wrapped_weights_open(wrap: str, name: str, folder: Callable[[str], Path]) -> None:
    loaded = load(change_tensors(folder(name), renamed(WRAPS[wrap])))
    assert agrees(loaded, name)
    assert loaded.notices == ()


def test_a_tensor_that_is_there_wrapped_and_bare(folder: Callable[[str], Path]) -> None:
    place = change_tensors(folder("gpt2"), lambda t: t | {f"module.{name}": tensor for name, tensor in t.items()})
    assert re.search(r"holds both (module\.)?transformer\.\S+ and \S+; only one can be meant", refusal(place))


def test_a_wrapped_tensor_that_is_missing(folder: Callable[[str], Path]) -> None:
    place = change_tensors(folder("gpt2"), renamed(WRAPS["torch.compile"]))
    change_tensors(place, lambda t: {k: v for k, v in t.items() if "h.1.ln_1" not in k})
    assert "hold no tensor h.1.ln_1.weight" in refusal(place)


@pytest.mark.parametrize("wrap", NAMED)
@pytest.mark.parametrize("name", ["gpt2", "llama gqa", "bert", "t5 v1.0"])
def test_prefixed_weights(wrap: str, name: str, folder: Callable[[str], Path]) -> None:
    place = change_tensors(folder(name), renamed(NAMED[wrap]))
    sentence = refusal(place)
    assert "the names of the tensors" in sentence, sentence
    follow(sentence, place)
    assert agrees(load(place), name)


def test_prefixed_shards(sharded: Path) -> None:
    names = {}
    for file in sharded.glob("*.safetensors"):
        tensors = {f"module.{name}": tensor.clone() for name, tensor in load_file(file).items()}
        save_file(tensors, file)
        names |= dict.fromkeys(tensors, file.name)
    (sharded / INDEX).write_text(json.dumps({"weight_map": names}))
    assert agrees(load(sharded), "gpt2")


def test_half_of_an_encoder_decoder_is_called_that(folder: Callable[[str], Path]) -> None:
    place = change_config(folder("bart"), architectures=["BartForCausalLM"])
    change_tensors(place, lambda t: {k: v for k, v in t.items() if ".encoder." not in k})
    assert re.search("BartForCausalLM, the decoder of BART alone", refusal(place))


# quantized


@pytest.mark.parametrize(
    ("said", "says", "line"),
    [
        ({"quant_method": "gptq", "bits": 3}, "quantized with GPTQ to 3 bits", "headlight.load("),
        ({"quant_method": "gptq", "bits": 4}, "rounded by gptq, but no tensor is called qweight", "headlight.load("),
        ({"quant_method": "awq", "bits": 4}, "rounded by awq, but no tensor is called qweight", "headlight.load("),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True},
            "rounded by bitsandbytes to 4 bits, but no tensor is called weight.absmax",
            "headlight.load(",
        ),
        ({"load_in_8bit": True}, "rounded by bitsandbytes, but no tensor is called SCB", "headlight.load("),
        ({"quant_method": "mxfp4"}, "MXFP4", "Mxfp4Config(dequantize=True)"),
        ({"quant_method": "fp8"}, "rounded by fp8, but no tensor is called weight_scale", "headlight.load("),
        ({"quant_method": "compressed-tensors"}, "compressed-tensors", "CompressedTensorsConfig"),
        ({"quant_method": "new-one"}, "quantized with new-one", "headlight.load("),
        ({"bits": 4}, "quantized to 4 bits", "headlight.load("),
        (["odd"], "quantized", "headlight.load("),
    ],
)
def test_quantized_configs(said: object, says: str, line: str, folder: Callable[[str], Path]) -> None:
    sentence = refusal(change_config(folder("llama gqa"), quantization_config=said))
    assert re.search(says, sentence) and any(line in code for code in helping(sentence)), sentence


def test_mlx_is_told_by_its_own_key(folder: Callable[[str], Path]) -> None:
    assert "quantized with MLX to 4 bits" in refusal(change_config(folder("llama gqa"), quantization={"bits": 4}))


@pytest.mark.parametrize(
    "said", [{}, None, {"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": False}]
)
def test_a_plain_model_whose_config_names_a_quantizer_loads(said: object, folder: Callable[[str], Path]) -> None:
    assert agrees(load(change_config(folder("llama gqa"), quantization_config=said)), "llama gqa")


def packed_linears(*leaves: str, dtype: torch.dtype = torch.int32) -> Callable[[Tensors], Tensors]:
    """Linear layers replaced by a quantizer's tensors."""

    def change(tensors: Tensors) -> Tensors:
        found: Tensors = {}
        for name, tensor in tensors.items():
            if not name.endswith("_proj.weight"):
                found[name] = tensor
                continue
            base = name.removesuffix(".weight")
            found |= {
                f"{base}.{leaf}": torch.ones(2, 2, dtype=dtype if i == 0 else torch.float32)
                for i, leaf in enumerate(leaves)
            }
        return found

    return change


@pytest.mark.parametrize(
    ("leaves", "dtype", "says"),
    [
        (("qweight", "qzeros", "scales", "g_idx"), torch.int32, "quantized with GPTQ"),
        (("qweight", "qzeros", "scales"), torch.int32, "quantized with AWQ"),
        (("weight", "weight.absmax", "weight.quant_map"), torch.uint8, "bitsandbytes"),
        (("weight", "SCB"), torch.int8, "bitsandbytes"),
        (("weight_packed", "weight_scale"), torch.int32, "compressed-tensors"),
        (("weight", "scales", "biases"), torch.int32, "MLX"),
        (("W_q", "scale"), torch.uint8, "HQQ"),
        (("weight", "weight_scale"), torch.float8_e4m3fn, "FP8"),
    ],
)
def test_quantized_tensors_without_a_word_in_the_config(
    leaves: tuple[str, ...], dtype: torch.dtype, says: str, folder: Callable[[str], Path]
) -> None:
    place = change_tensors(folder("llama gqa"), packed_linears(*leaves, dtype=dtype))
    sentence = refusal(place)
    assert re.search(says, sentence), sentence


# a tokenizer of another kind


@pytest.mark.parametrize(
    ("files_there", "says"),
    [
        (("tokenizer.model",), r"tokenizer\.model \(SentencePiece\)"),
        (("spiece.model",), r"spiece\.model \(SentencePiece\)"),
        (("source.spm", "target.spm", "vocab.json"), r"source\.spm, target\.spm"),
        (("tekken.json",), "Mistral"),
        (("qwen.tiktoken",), "tiktoken"),
        (("vocab.json", "merges.txt"), "an older tokenizer"),
        ((), "no tokenizer among its files"),
    ],
)
def test_a_tokenizer_that_is_not_read(files_there: tuple[str, ...], says: str, folder: Callable[[str], Path]) -> None:
    place = files(folder("gpt_neox parallel"), **{key: {} for key in files_there})
    loaded = load(place)
    assert loaded.tokenizer is None and re.search(says, repr(loaded))
    with pytest.raises(TextError, match=rf"cannot read a text.*{says}.*AutoTokenizer\.from_pretrained\("):
        trace(loaded, "the cat")
    assert trace(loaded, ids=[3, 4, 5]).source.ids == (3, 4, 5)


# loaded, and something is left


def layers(name: str, tensor: torch.Tensor) -> Tensors:
    return {name.format(i): tensor for i in range(3)}


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        (
            "llama gqa",
            layers("model.layers.{}.self_attn.q_proj.bias", torch.ones(60)),
            r"3 tensors.*layers\.0\.self_attn\.q_proj\.bias and 2 like it",
        ),
        (
            "llama gqa",
            layers("model.layers.{}.self_attn.q_proj.lora_A.weight", torch.ones(2, 42)),
            r"lora_A.*adapter that was not merged.*merge_and_unload",
        ),
        (
            "llama gqa",
            layers("model.layers.{}.self_attn.q_proj.weight_scale", torch.ones(1)),
            r"weight_scale.*rounded weights",
        ),
        ("llama gqa", {"model.layers.7.self_attn.q_proj.weight": torch.ones(60, 42)}, r"1 tensor .*layers\.7"),
        ("gpt2", {"transformer.h.0.attn.bias": torch.ones(105)}, r"h\.0\.attn\.bias"),
        ("gpt2", {"h.0.mlp.masked_bias.weight": torch.ones(5)}, "masked_bias.weight"),
        ("bert", {"bert.encoder.layer.0.pooler.weight": torch.ones(5)}, r"layer\.0\.pooler"),
        ("marian", {"model.encoder.embed_positions.weight": torch.ones(37, 42)}, "embed_positions"),
    ],
)
def test_tensors_without_a_place_are_told(name: str, more: Tensors, says: str, folder: Callable[[str], Path]) -> None:
    loaded = load(change_tensors(folder(name), lambda tensors: tensors | more))
    assert set(more) <= set(loaded.unused)
    assert re.search(f"(?s){says}", repr(loaded)), repr(loaded)


HARMLESS_CASES: list[tuple[str, dict[str, torch.Tensor]]] = [
    ("bert", {"bert.embeddings.position_ids": torch.arange(37)[None], "bert.pooler.dense.weight": torch.ones(35, 35)}),
    ("bert", {"cls.seq_relationship.weight": torch.ones(2, 35), "bert.embeddings.token_type_ids": torch.zeros(1, 37)}),
    ("roberta", {"classifier.out_proj.weight": torch.ones(2, 35), "roberta.pooler.dense.bias": torch.ones(35)}),
    ("distilbert", {"pre_classifier.weight": torch.ones(35, 35), "qa_outputs.bias": torch.ones(2)}),
    (
        "llama gqa",
        layers("model.layers.{}.self_attn.rotary_emb.inv_freq", torch.ones(5)) | {"score.weight": torch.ones(2, 42)},
    ),
    ("llama gqa", layers("model.layers.{}.self_attn.rotary_emb.cos_cached", torch.ones(37, 10))),
    (
        "gpt2",
        layers("transformer.h.{}.attn.bias", torch.ones(1, 1, 37, 37)) | {"v_head.summary.weight": torch.ones(1, 35)},
    ),
    ("gpt2", layers("transformer.h.{}.attn.masked_bias", torch.tensor(-1e4))),
    ("gpt_neox parallel", layers("gpt_neox.layers.{}.attention.bias", torch.ones(1, 1, 37, 37))),
    ("bart", {"model.encoder.version": torch.ones(1), "classification_head.dense.weight": torch.ones(35, 35)}),
    ("marian", {"model.encoder.embed_positions._float_tensor": torch.ones(1)}),
    ("t5 v1.0", {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.ones(8, 5)}),
]


@pytest.mark.parametrize(("name", "more"), HARMLESS_CASES)
def test_harmless_ones_are_not(name: str, more: Tensors, folder: Callable[[str], Path]) -> None:
    loaded = load(change_tensors(folder(name), lambda tensors: tensors | more))
    assert set(more) <= set(loaded.unused)
    assert loaded.notices == ()


def test_each_harmless_kind_has_a_case_and_a_reason() -> None:
    named = {name for _, more in HARMLESS_CASES for name in more}
    for row in HARMLESS:
        assert any(re.search(row.pattern, name) for name in named), row
        assert len(row.reason.split()) >= 4, row


def test_computed_sinusoids_in_the_file_are_told_only_where_they_differ(folder: Callable[[str], Path]) -> None:
    place = folder("marian")
    table = load(place).model.stacks[0].embed.sinusoid
    for dtype in (torch.float32, torch.float16):
        more = {"model.encoder.embed_positions.weight": table.to(dtype)}
        assert "embed_positions" not in repr(
            load(change_tensors(place, plus(**{k.replace(".", "__"): v for k, v in more.items()})))
        )


@pytest.mark.parametrize("where", ["", "default__"])
@pytest.mark.parametrize("file", ["adapter_model.safetensors", "adapter_model.bin"])
def test_an_adapter_beside_a_model(where: str, file: str, folder: Callable[[str], Path]) -> None:
    place = files(folder("llama gqa"), **{f"{where}adapter_config.json": LORA, f"{where}{file}": 0})
    loaded = load(place)
    assert agrees(loaded, "llama gqa")
    said = where.replace("__", "/")
    assert f"{said}{file} lies beside the model and is not used" in repr(loaded) and "merge_and_unload" in repr(loaded)


def test_other_weights_beside_a_model(folder: Callable[[str], Path]) -> None:
    place = files(folder("gpt2"), **{"lora.safetensors": 0, "consolidated.safetensors": 0, "model.fp16.safetensors": 0})
    said = repr(load(place))
    assert "lora.safetensors was not read: model.safetensors holds the model" in said
    assert "consolidated" not in said and "fp16" not in said


@pytest.mark.parametrize("text", ["3 4 5", " 3  4\n5 ", "3, 4, 5"])
def test_token_numbers_are_typed_where_there_is_no_tokenizer(text: str, folder: Callable[[str], Path]) -> None:
    loaded = load(folder("llama gqa"))
    assert trace(loaded, text).source.ids == (3, 4, 5)


@pytest.mark.parametrize("text", ["3 cats", "-3", "3.5", "", "³"])
def test_another_text_says_how_numbers_are_typed(text: str, folder: Callable[[str], Path]) -> None:
    with pytest.raises(TextError, match="Type token numbers instead, with spaces between them, such as 5 17 3"):
        trace(load(folder("llama gqa")), text)


def test_a_number_that_the_model_does_not_have(folder: Callable[[str], Path]) -> None:
    with pytest.raises(Exception, match="999"):
        trace(load(folder("llama gqa")), "3 999")
