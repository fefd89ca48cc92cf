"""train(): the training loop of every model trained here. It yields each step, so that a caller can draw it.

A step depends only on the weights, the optimiser's moments, and its number: batch, dropout and learning rate all follow from the number. So
a resumed run reaches the same weights, bit for bit on the same machine.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as safetensors_bytes
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers import models as tokenizer_models
from tokenizers.trainers import BpeTrainer
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..checkpoints.native_format import config_values, write_whole
from ..device import multiplies_bfloat16
from ..edits import Intervention, hooks_of
from ..errors import CheckpointError, ConfigError
from ..model.custom_mask import FusedCall
from ..model.hooks import Hook, compose_hooks, hook_points, hooked
from ..model.transformer import Transformer

STATE = "training.json"
FUSED = F.scaled_dot_product_attention
# Tensors under residual dropout: each sublayer's output, and the embeddings (Vaswani et al. 2017, §5.4).
DROPPED = ("hook_attn_out", "hook_cross_out", "hook_mlp_out", "hook_embed")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Hyperparameters: everything a run depends on except the model and the batches. Raises ConfigError for values out of range."""

    steps: int
    learning_rate: float = 1e-3  # at the end of the warm-up
    warmup: int = 100  # steps of the linear warm-up from 0
    final_share: float = 0.1  # of learning_rate, at the end of the cosine
    weight_decay: float = 0.1  # of matrices and tables, not of biases and norms
    beta1: float = 0.9
    beta2: float = 0.98
    clip: float = 1.0  # maximum norm of the gradient over all parameters
    dropout: float = 0.0
    label_smoothing: float = 0.0
    mixed: bool = True  # matrix products in bfloat16 if the hardware supports it; weights and moments stay float32
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.warmup < 0:
            raise ConfigError(f"steps ({self.steps}) must be at least 1 and warmup ({self.warmup}) at least 0")
        if not self.learning_rate > 0 or not self.clip > 0:
            raise ConfigError(f"learning_rate ({self.learning_rate}) and clip ({self.clip}) must be above 0")
        for name in ("final_share", "weight_decay", "beta1", "beta2", "dropout", "label_smoothing"):
            top = 1 if name in ("final_share", "weight_decay") else math.nextafter(1, 0)
            if not 0 <= getattr(self, name) <= top:
                raise ConfigError(f"{name} ({getattr(self, name)}) must be from 0 to {'1' if top == 1 else 'below 1'}")


@dataclass(frozen=True, eq=False)
class Batch:
    """Token ids [batch, pos], right-padded; the loss is on tokens where counts [batch, pos] is True.

    Encoder–decoders read source [batch, pos], with the attention mask source_keep; ids are then the decoder's. The target of a position is the
    next token, or the token of `targets` [batch, pos] at the same position if they are given; counts then refers to those.
    """

    ids: Tensor
    counts: Tensor
    source: Tensor | None = None
    source_keep: Tensor | None = None
    targets: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        def move(x: Tensor | None) -> Tensor | None:
            return None if x is None else x.to(device, non_blocking=True)

        ids, counts = self.ids.to(device), self.counts.to(device)
        return Batch(ids, counts, move(self.source), move(self.source_keep), move(self.targets))


@dataclass(frozen=True)
class TrainStep:
    """State after `step` updates. loss (nats per token) and accuracy (share of tokens) are those of the last batch."""

    step: int
    loss: float
    accuracy: float
    learning_rate: float
    seconds: float  # since the first step, without pauses between runs
    gradient: float = 0.0  # norm over all parameters, before clipping


@dataclass(frozen=True, eq=False)
class RunState:
    """State of a run: the number of steps so far, and the weights and the optimiser's moments by name."""

    step: int
    tensors: Mapping[str, Tensor]


def train(
    model: Transformer,
    batches: Callable[[int], Batch],
    recipe: Recipe,
    *,
    folder: Path | None = None,
    save_every: int = 0,
    interventions: Iterable[Intervention] = (),
    start: RunState | None = None,
    hooks: Mapping[str, Hook] | None = None,
    optimiser: torch.optim.Optimizer | None = None,
) -> Iterator[TrainStep]:
    """Train in place, and yield every step; batches(step) returns the batch of step 0, 1, 2, ...

    AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101), linear warm-up and cosine (2017, arXiv:1608.03983), gradients
    clipped by norm. With a folder the state is saved there every save_every steps and at the end, and a run resumes from a saved state.
    Between two steps the model may be saved or evaluated. Afterwards its weights are frozen again.

    `interventions` and `hooks` apply to every step. A run with a `start` continues from the weights and moments of another, and its first
    step has the next number. A caller that passes the `optimiser`, from make_optimiser(), can take state_of() between two steps.

    Raises ConfigError if the model has no head, CheckpointError if the folder holds the state of another model or recipe,
    InterventionError for an edit that does not fit this model.
    """
    if model.head is None or model.decoder is None:
        raise ConfigError(
            "train() teaches a decoder to write the next token: the model needs decoder layers and a head"
        )
    optimiser = optimiser or make_optimiser(model, recipe)
    step, seconds = (0, 0.0) if folder is None else restore(folder, model, optimiser, recipe)
    if start is not None and not step:
        load_state(model, optimiser, start.tensors, "The state to start from")
        step = start.step
    edits = dict(hooks_of(model, interventions))
    for name, hook in (hooks or {}).items():
        edits[name] = compose_hooks(edits[name], hook) if name in edits else hook
    return _loop(_Training(model, batches, recipe, optimiser, edits, step, seconds), folder, save_every)


@dataclass(frozen=True, eq=False)
class _Training:
    """Arguments of the loop, and the progress of earlier runs."""

    model: Transformer
    batches: Callable[[int], Batch]
    recipe: Recipe
    optimiser: torch.optim.Optimizer
    edits: Mapping[str, Hook]  # of every step
    step: int
    seconds: float


def _loop(training: _Training, folder: Path | None, save_every: int) -> Iterator[TrainStep]:
    model, recipe, optimiser, step = training.model, training.recipe, training.optimiser, training.step
    device = next(model.parameters()).device
    start = time.perf_counter() - training.seconds
    while step < recipe.steps:
        rate = learning_rate(step, recipe)
        for group in optimiser.param_groups:
            group["lr"] = rate
        model.requires_grad_(True)
        try:
            with hooked(model, training.edits):
                loss, accuracy, gradient = learn(model, training.batches(step).to(device), recipe, optimiser, step)
        finally:
            model.requires_grad_(False)
        step += 1
        seconds = time.perf_counter() - start
        yield TrainStep(step, loss, accuracy, rate, seconds, gradient)
        # Saved after the yield, so that the caller has handled a step before the saved state counts it.
        if folder is not None and (step == recipe.steps or (save_every and step % save_every == 0)):
            keep_state(folder, model, optimiser, recipe, step, seconds)


def learn(
    model: Transformer, batch: Batch, recipe: Recipe, optimiser: torch.optim.Optimizer, step: int
) -> tuple[float, float, float]:
    """Make one update. Returns the loss in nats per counted token, the accuracy, and the gradient norm."""
    device = batch.ids.device
    mixed = recipe.mixed and multiplies_bfloat16(device)
    precision = torch.autocast(device.type, torch.bfloat16) if mixed else nullcontext()
    attention = PlainAttention() if device.type == "cpu" else nullcontext()
    with hooked(model, dropout_hooks(model, recipe, device, step)), precision, attention:
        logits, targets = predicted(model, batch)
        logits = logits.float()
        loss = F.cross_entropy(logits, targets, label_smoothing=recipe.label_smoothing)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    gradient = torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    optimiser.step()
    return loss.item(), (logits.argmax(-1) == targets).float().mean().item(), gradient.item()


def gradient_lengths(model: Transformer, done: TrainStep, recipe: Recipe) -> tuple[float, ...]:
    """Gradient norm of the last step in each layer of the decoder, before clipping."""
    assert model.decoder is not None
    scale = max(1.0, done.gradient / recipe.clip)  # undoes the clipping
    lengths = []
    for block in model.decoder.blocks:
        squares = sum(float(p.grad.square().sum()) for p in block.parameters() if p.grad is not None)
        lengths.append(math.sqrt(squares) * scale)
    return tuple(lengths)


class PlainAttention(TorchFunctionMode):
    """Context in which attention uses PyTorch's math kernel, only in the thread that enters it.

    On a CPU the backward pass of the fused kernel takes several times as long at training lengths. `sdpa_kernel` selects the
    same kernel, with the same bits, but for all threads of the process.
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func is FUSED:
            return plain_attention(FusedCall(*args, **(kwargs or {})))
        return func(*args, **(kwargs or {}))


def plain_attention(call: FusedCall) -> Tensor:
    """F.scaled_dot_product_attention with the math kernel, in the dtypes of autocast."""
    q, k, v, attn_mask, dropout, is_causal, scale, enable_gqa = call
    device = q.device.type
    if torch.is_autocast_enabled(device):
        q, k, v = (x.to(torch.get_autocast_dtype(device)) for x in (q, k, v))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill(~attn_mask, float("-inf"))
    with torch.autocast(device, enabled=False):
        return torch.ops.aten._scaled_dot_product_attention_math(
            q, k, v, attn_mask, dropout, is_causal, scale=scale, enable_gqa=enable_gqa
        )[0]


def predicted(model: Transformer, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return (logits [token, vocab], targets [token]) of the counted tokens, each predicted from the position before it.

    Right padding needs no mask in a causal stack, because no counted token attends to it.
    """
    assert model.head is not None
    if batch.targets is not None:
        return model.head(model.last_residual(batch.ids)[batch.counts]), batch.targets[batch.counts]
    ids = batch.ids[:, :-1]
    if batch.source is None:
        x = model.last_residual(ids)
    else:
        x = model.last_residual(batch.source, ids, keep=batch.source_keep)
    counts = batch.counts[:, 1:]
    return model.head(x[counts]), batch.ids[:, 1:][counts]


@torch.inference_mode()
def evaluate(model: Transformer, batches: Iterable[Batch]) -> tuple[float, float]:
    """Return (loss in nats per counted token, accuracy) over all batches, without training."""
    device = next(model.parameters()).device
    loss, right, n = 0.0, 0, 0
    for batch in batches:
        logits, targets = predicted(model, batch.to(device))
        loss += F.cross_entropy(logits.float(), targets, reduction="sum").item()
        right += int((logits.argmax(-1) == targets).sum())
        n += len(targets)
    return loss / n, right / n


def learning_rate(step: int, recipe: Recipe) -> float:
    """Learning rate of update `step`, from 0: linear warm-up, then a cosine."""
    if step < recipe.warmup:
        return recipe.learning_rate * (step + 1) / recipe.warmup
    done = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    share = recipe.final_share + (1 - recipe.final_share) * 0.5 * (1 + math.cos(math.pi * done))
    return recipe.learning_rate * share


def make_optimiser(model: Transformer, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW with weight decay only on matrices and tables, as in GPT-3 and nanoGPT."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": recipe.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]  # a group may be empty
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(recipe.beta1, recipe.beta2))


def dropout_hooks(model: Transformer, recipe: Recipe, device: torch.device, step: int) -> dict[str, Hook]:
    """Dropout as hooks, so that a shipped model has no modules used only in training."""
    if not recipe.dropout:
        return {}
    generator = torch.Generator(device).manual_seed(recipe.seed * 1_000_003 + step)

    def drop(x: Tensor) -> Tensor:
        kept = torch.rand(x.shape, generator=generator, device=device) >= recipe.dropout
        return x * kept / (1 - recipe.dropout)

    return {name: drop for name in hook_points(model) if name.endswith(DROPPED)}


# Progress.


def eta(done: TrainStep, steps: int) -> float:
    """Estimated seconds until step `steps`, at the average pace."""
    return done.seconds / done.step * (steps - done.step)


def progress(done: TrainStep, steps: int) -> str:
    """One line: "step 300/2000  loss 0.412  accuracy 86.1 %  lr 9.8e-04  1:05 spent, 6:10 to go"."""
    return (
        f"step {done.step:,}/{steps:,}  loss {done.loss:.3f}  accuracy {done.accuracy:.1%}  "
        f"lr {done.learning_rate:.1e}  {_clock(done.seconds)} spent, {_clock(eta(done, steps))} to go"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


# Saved state: numbers as safetensors, the rest as JSON, never a pickle.


def keep_state(
    folder: Path, model: Transformer, optimiser: torch.optim.Optimizer, recipe: Recipe, step: int, seconds: float
) -> None:
    """Save weights, moments and the step. The JSON file names the tensor file and is written last, so that a partial save is ignored."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = state_of(model, optimiser)
    file = f"training-{step:08}.safetensors"
    write_whole(folder / file, safetensors_bytes(tensors))
    state = {
        "step": step,
        "seconds": seconds,
        "tensors": file,
        "recipe": asdict(recipe),
        "config": config_values(model.config),
    }
    write_whole(folder / STATE, (json.dumps(state, indent=2) + "\n").encode())
    for old in folder.glob("training-*.safetensors"):
        if old.name != file:
            old.unlink()


def restore(folder: Path, model: Transformer, optimiser: torch.optim.Optimizer, recipe: Recipe) -> tuple[int, float]:
    """Load the state of the folder into the model and the optimiser. Returns (step, seconds); (0, 0.0) if there is none.

    Raises CheckpointError if it belongs to another model or recipe, or is damaged.
    """
    if not (folder / STATE).is_file():
        return 0, 0.0
    try:
        state = json.loads((folder / STATE).read_text("utf-8"))
        same_recipe, same_config = state["recipe"] == asdict(recipe), state["config"] == _as_json(model)
        step, seconds, file = int(state["step"]), float(state["seconds"]), Path(str(state["tensors"])).name
        tensors = load_file(folder / file)
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(
            f"{STATE} or the tensors it names cannot be read ({error}). Remove the folder to start anew."
        ) from error
    if not (same_recipe and same_config):
        what = "recipe" if same_config else "model"
        raise CheckpointError(
            f"{STATE} belongs to a run with another {what}. Choose another folder, or remove this one to start anew."
        )
    load_state(model, optimiser, tensors, f"{file}, which stands in {STATE},")
    return step, seconds


def state_of(model: Transformer, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Weights and moments by name, on the CPU. They may share memory with the model: clone them to keep them."""
    names = dict_of_names(model)
    tensors = {f"model.{name}": p.detach().cpu().contiguous() for name, p in names.items()}
    for name, p in names.items():
        for moment, value in optimiser.state.get(p, {}).items():
            tensors[f"optimiser.{moment}.{name}"] = value.detach().cpu().contiguous()
    return tensors


def load_state(model: Transformer, optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], what: str) -> None:
    """Load state_of() into a model and its optimiser. Raises CheckpointError; `what` describes the state in its message."""
    with torch.no_grad():
        for name, parameter in dict_of_names(model).items():
            if f"model.{name}" not in tensors or tensors[f"model.{name}"].shape != parameter.shape:
                raise CheckpointError(f"{what} holds no {name} of the right shape. Remove the folder to start anew.")
            parameter.copy_(tensors[f"model.{name}"])
            moments = {
                moment: tensors[f"optimiser.{moment}.{name}"]
                for moment in ("step", "exp_avg", "exp_avg_sq")
                if f"optimiser.{moment}.{name}" in tensors
            }
            # AdamW counts its steps on the CPU, wherever the weights are.
            optimiser.state[parameter] = {
                k: v.clone() if k == "step" else v.to(parameter.device, copy=True) for k, v in moments.items()
            }


def dict_of_names(model: Transformer) -> dict[str, torch.nn.Parameter]:
    """Every parameter by its first name."""
    return dict(model.named_parameters())


def _as_json(model: Transformer) -> object:
    """The model's config as read back from JSON, with lists for tuples."""
    return json.loads(json.dumps(config_values(model.config)))


# Tokenizer.


def train_bpe(texts: Iterable[str], vocab_size: int, *, special: Sequence[str] = ("<pad>", "<s>", "</s>")) -> Tokenizer:
    """Train a byte-level BPE tokenizer (Sennrich et al. 2016; Radford et al. 2019, §2.2), which reads any text without <unk>.

    `special` have the first ids, in this order; then come 256 bytes, then merges up to vocab_size, or fewer if the texts have
    no more. Raises ConfigError if vocab_size is too small for the bytes.
    """
    least = 256 + len(special)
    if vocab_size < least:
        raise ConfigError(
            f"vocab_size ({vocab_size}) must be at least {least}: 256 bytes and {len(special)} special tokens"
        )
    tokenizer = Tokenizer(tokenizer_models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
