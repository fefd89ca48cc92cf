"""A LoRA folder of PEFT (adapter_config.json, adapter_model.safetensors): its base found by name, and its weights merged into it.

W' = W + s·BA with s = alpha / r, or alpha / sqrt(r) with rslora (Hu et al. 2021, arXiv:2106.09685, §4.1; Kalajdzievski 2023,
arXiv:2312.03732); with DoRA each row of W' then has the length that was learnt (Liu et al. 2024, arXiv:2402.09353, eq. 5).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from torch import Tensor

from ..errors import CheckpointError
from .bare_names import strip_wrappers
from .classifiers import ROWS, SCORE, SUFFIX
from .computed import computed
from .family import Family, Theirs, shown
from .files import FLOATS, Stored, header, read_json

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BEFORE = "base_model.model."
PART = re.compile(
    r"(?P<module>.+)\.(?P<part>lora_A|lora_B|lora_embedding_A|lora_embedding_B|lora_magnitude_vector)(\.weight)?"
)
# Ways to begin an adapter that change the base's own weights, so that the published base is not the one that it belongs to.
CHANGED_BASE = re.compile(r"pissa.*|olora|corda|loftq")
PATTERN = re.compile(
    r"[\w.^$\\-]{1,200}"
)  # of module names; with more of a regular expression's signs one can take without end


@dataclass(frozen=True)
class Adapter:
    """The content of the folder."""

    said: Theirs
    tensors: Mapping[str, Stored]

    @property
    def base(self) -> str:
        """As the file names it."""
        return self.said.str("base_model_name_or_path", "")


def read_config(folder: Path) -> Theirs:
    return Theirs(read_json(folder / CONFIG), CONFIG)


def is_lora(said: Theirs) -> bool:
    """Whether it is of the kind that is merged here."""
    return said.str("peft_type", "LORA") == "LORA"


def read_adapter(folder: Path) -> Adapter:
    """A LoRA folder. Raises CheckpointError by name for what is not merged here."""
    said = read_config(folder)
    begun = said.any("init_lora_weights", True)
    if isinstance(begun, str) and CHANGED_BASE.fullmatch(begun):
        raise CheckpointError(
            f"{CONFIG}: init_lora_weights is {shown(begun)}, which changes the weights of the base as well, so that it does not belong to the "
            "published one. Merge it in the program that trained it."
        )
    for key in ("trainable_token_indices", "layer_replication", "lora_bias", "use_qalora", "alora_invocation_tokens"):
        if said.any(key, None):
            raise CheckpointError(f"{CONFIG}: {key} is not supported. Merge it in the program that trained it.")
    return Adapter(said, {stored.name: stored for stored in header(folder / WEIGHTS)})


def base_beside(folder: Path, base: str) -> Path | None:
    """The folder of the base beside that of the adapter, or beside the training that it is of, by the last part of its name."""
    name = PurePosixPath(base.replace("\\", "/")).name
    if not name or name in (".", ".."):
        return None
    places = (folder.resolve().parent, folder.resolve().parent.parent)
    return next((place / name for place in places if (place / name / "config.json").is_file()), None)


def merged(adapter: Adapter, family: Family, bare: Mapping[str, Stored]) -> tuple[dict[str, Stored], str]:
    """The base's tensors with the adapter's added, under the names of their files, and a sentence about it.

    `bare` are the base's tensors by the names that its family gives them. Raises CheckpointError naming a tensor of the adapter
    that has no place in the base, or is of another shape.
    """
    said, found = adapter.said, {stored.name: stored for stored in bare.values()}
    layers: dict[str, dict[str, Stored]] = {}
    whole: list[str] = []
    heads: list[str] = []
    for name, stored in adapter.tensors.items():
        if stored.dtype not in FLOATS:
            raise CheckpointError(f"{stored.file}: {stored.name} is stored as {stored.dtype}, which is not read.")
        match = PART.fullmatch(name)
        if match:
            layers.setdefault(match["module"], {})[match["part"]] = stored
            continue
        if (head := head_name(name, family)) is not None and head not in bare:
            found[head] = computed(head, stored.file, stored.shape, lambda stored=stored: stored.read().float())
            heads.append(head)
            continue
        target = _target(name, family, bare, stored)
        if target.shape != stored.shape:
            raise CheckpointError(
                f"{stored.file}: {stored.name} is {list(stored.shape)}, but it takes the place of {target.name}, which is {list(target.shape)}."
            )
        found[target.name] = computed(
            target.name, stored.file, stored.shape, lambda stored=stored: stored.read().float()
        )
        whole.append(name)
    ranks, alphas = set(), set()
    for module, parts in layers.items():
        some = next(iter(parts.values()))
        target = _target(f"{module}.weight", family, bare, some)
        rank, alpha = _numbers(said, module)
        found[target.name] = _added(target, parts, module, rank, alpha, said)
        ranks.add(rank)
        alphas.add(alpha)
    if not layers and not whole and not heads:
        raise CheckpointError(f"{WEIGHTS} holds no weights of an adapter.")
    kind = "DoRA" if said.bool("use_dora", False) else "LoRA"
    modules = ", ".join(sorted({module.rpartition(".")[2] for module in layers}))
    text = (
        f"{kind} of rank {_listed(ranks)} (alpha {_listed(alphas)}{', rslora' if said.bool('use_rslora', False) else ''}) is merged into "
        f"{len(layers)} weight{'s' if len(layers) != 1 else ''} of {PurePosixPath(adapter.base).name or 'its base'}: {modules}."
    )
    text += f" {len(whole)} of its tensors take the place of the base's own." if whole else ""
    return found, f"{text} The head that gives a text its class is the adapter's." if heads and sorts(said) else text


def sorts(said: Theirs) -> bool:
    """Whether an adapter was trained to give texts their classes."""
    return said.str("task_type", None) == "SEQ_CLS"


def head_name(name: str, family: Family) -> str | None:
    """The name that a tensor of an adapter has in the family's classification head; None for one of another part."""
    row = ROWS.get(family.model_type, SCORE if family.head == "lm" and not family.start_token else None)
    short = _short(name)
    for each in (short.removeprefix(family.prefix), short):
        if row is not None and each.rpartition(".")[0] in (row.out, row.dense, row.norm):
            return each
    return None


def with_classes(source_config: Theirs, adapter: Adapter, family: Family, tensors: Mapping[str, Stored]) -> Theirs:
    """The base's config.json, as that of a classifier where the adapter is one (task_type SEQ_CLS) and its head is there.

    The base's names of classes are kept where they are as many: an adapter has none of its own.
    """
    row = ROWS.get(family.model_type, SCORE)
    out = next((tensors[name] for name in tensors if head_name(name, family) == f"{row.out}.weight"), None)
    if not sorts(adapter.said) or out is None or not out.shape:
        return source_config
    values = dict(source_config.values) | {"architectures": [f"{family.title.replace(' ', '')}{SUFFIX}"]}
    if len(source_config.inside("id2label").values) != out.shape[0]:
        values = {key: value for key, value in values.items() if key not in ("id2label", "label2id", "num_labels")}
    return Theirs(values, source_config.where, source_config.whole)


def _listed(numbers: set[float]) -> str:
    return " or ".join(f"{number:g}" for number in sorted(numbers))


def _target(name: str, family: Family, bare: Mapping[str, Stored], of: Stored) -> Stored:
    """The base's tensor that one of the adapter's belongs to."""
    short = _short(name)
    for each in (short.removeprefix(family.prefix), short):
        if each in bare:
            return bare[each]
    raise CheckpointError(
        f"{of.file}: {of.name} belongs to {short}, which the base does not have. It may be the adapter of another model."
    )


def _short(name: str) -> str:
    """A tensor's name without the parts that peft puts into it."""
    return strip_wrappers(name).removeprefix(BEFORE).replace(".base_layer.", ".").replace(".modules_to_save.", ".")


def _numbers(said: Theirs, module: str) -> tuple[int, float]:
    """Rank and alpha of one module: those of the first pattern that its name ends with, as peft looks for it."""
    path = module.removeprefix(BEFORE)

    def of(key: str) -> object:
        for pattern, value in said.inside(key).values.items():
            if not PATTERN.fullmatch(pattern):
                raise CheckpointError(
                    f"{said.where}: {key} has the pattern {shown(pattern)}, and only names of modules are read there."
                )
            try:
                if re.match(rf"(.*\.)?({pattern})$", path):
                    return value
            except re.error as error:
                raise CheckpointError(
                    f"{said.where}: {key} has {shown(pattern)}, which is no pattern ({error})."
                ) from error
        return None

    rank, alpha = of("rank_pattern"), of("alpha_pattern")
    own = Theirs(
        {
            "r": said.int("r", 8) if rank is None else rank,
            "lora_alpha": said.float("lora_alpha", 8.0) if alpha is None else alpha,
        },
        said.where,
    )
    if own.int("r") < 1:
        raise CheckpointError(f"{said.where}: r is {own.int('r')}, but a rank is at least 1.")
    return own.int("r"), own.float("lora_alpha")


def _added(target: Stored, parts: Mapping[str, Stored], module: str, rank: int, alpha: float, said: Theirs) -> Stored:
    table = "lora_embedding_A" in parts
    names = ("lora_embedding_A", "lora_embedding_B") if table else ("lora_A", "lora_B")
    if missing := [name for name in names if name not in parts]:
        some = next(iter(parts.values()))
        raise CheckpointError(f"{some.file} has {some.name} and no {module}.{missing[0]}: the adapter is not whole.")
    down, up = (parts[name] for name in names)
    turned = table or said.bool("fan_in_fan_out", False)
    n_in, n_out = (target.shape if turned else target.shape[::-1]) if len(target.shape) == 2 else (0, 0)
    if down.shape != (rank, n_in) or up.shape != (n_out, rank):
        raise CheckpointError(
            f"{down.file}: {down.name} {list(down.shape)} and {list(up.shape)} of rank {rank} do not make {target.name} {list(target.shape)}"
            f"{'' if turned else ', nor are the two turned, as fan_in_fan_out would have it'}. It may be the adapter of another model."
        )
    scale = alpha / (math.sqrt(rank) if said.bool("use_rslora", False) else rank)
    lengths = parts.get("lora_magnitude_vector")
    if said.bool("use_dora", False) != (lengths is not None) or (
        lengths is not None and (table or math.prod(lengths.shape) != n_out)
    ):
        raise CheckpointError(
            f"{down.file}: {module} {'has lengths' if lengths is not None else 'has no lengths'} of DoRA (lora_magnitude_vector) that fit: "
            f"use_dora is {str(said.bool('use_dora', False)).lower()}, and {n_out} numbers belong there. DoRA of a table is not supported."
        )
    make = _sum(target, down, up, scale, turned, lengths)
    return computed(target.name, target.file, target.shape, make)


def _sum(
    target: Stored, down: Stored, up: Stored, scale: float, turned: bool, lengths: Stored | None
) -> Callable[[], Tensor]:
    def make() -> Tensor:
        base = target.read().float()
        rows = base.t() if turned else base  # [out, in]
        rows = rows + scale * (up.read().float() @ down.read().float())
        if lengths is not None:
            rows = rows * (lengths.read().float().flatten() / rows.norm(dim=1))[:, None]
        return (rows.t() if turned else rows).contiguous()

    return make
