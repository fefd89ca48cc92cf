"""Records what TransformerLens finds in a small GPT-2: heads silenced, heads patched, the logit lens and logit attribution.

    python -m venv lens && lens/bin/pip install transformer-lens==4.3.0 transformers==5.23.0 torch==2.13.0
    lens/bin/python -m scripts.record_lens

tests/core/test_transformer_lens.py holds core to what is recorded in tests/core/golden/gpt2. Headlight needs TransformerLens for
nothing else. The model is made here: 3 layers of 5 heads whose every weight is moved by noise, because fresh norms are ones and fresh
biases zeros, so that a wrong formula would look right. Sizes are primes wherever they may be, so that no transposition fits.
"""

from __future__ import annotations

import importlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

FOLDER = Path(__file__).resolve().parents[1] / "tests/core/golden/gpt2"
SIZES = {"n_embd": 35, "n_layer": 3, "n_head": 5, "n_inner": 41, "n_positions": 37, "vocab_size": 53, "eos_token_id": 2}
PACKAGES = ("transformer-lens", "transformers", "torch")
IDS = (3, 1, 4, 1, 5, 9, 2, 6, 5, 35)
OTHER = (3, 1, 4, 1, 5, 9, 27, 6, 5, 36)  # as long, another text
TOKEN = 17  # of the attribution: any word but the likeliest


def main() -> None:
    """Make the model, and record."""
    transformers, lens = (importlib.import_module(name) for name in ("transformers", "transformer_lens"))
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**SIZES, bos_token_id=2)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(FOLDER)
    (FOLDER / "generation_config.json").unlink(missing_ok=True)
    found = recorded(bridged(lens, model))
    made = {"ids": IDS, "other": OTHER, "token": TOKEN, "versions": {name: version(name) for name in PACKAGES}}
    save_file({name: x.contiguous() for name, x in found.items()}, FOLDER / "found.safetensors")
    (FOLDER / "found.json").write_text(json.dumps(made, indent=2) + "\n", "utf-8")


def bridged(lens: Any, model: Any) -> Any:
    """TransformerLens around the model, the last norm's weights folded into the head, which its attributions take for granted."""
    bridge = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    found = bridge.boot_transformers(str(FOLDER), hf_model=model)
    found.enable_compatibility_mode(
        fold_ln=True, center_writing_weights=False, center_unembed=False, fold_value_biases=False
    )
    return found


@torch.no_grad()
def recorded(model: Any) -> dict[str, Tensor]:
    """logits [vocab] behind the last token; zero and mean [head, vocab]; all and last [head, vocab]; lens [layer, pos, vocab];
    heads [head], mlps [layer], token and position [] of the attribution. Heads are those of all layers, in their order."""
    ids, other = torch.tensor([IDS]), torch.tensor([OTHER])
    model.set_use_attn_result(True)
    logits, cache = model.run_with_cache(ids)
    _, of_other = model.run_with_cache(other)
    n_layers, n_heads = SIZES["n_layer"], SIZES["n_head"]

    def each(change: Any) -> Tensor:
        """The logits behind the last token with one head after the other changed."""
        rows = []
        for layer in range(n_layers):
            for head in range(n_heads):

                def hook(
                    z: Tensor, hook: Any, layer: int = layer, head: int = head
                ) -> Tensor:  # [batch, pos, head, d_head]
                    z = z.clone()
                    change(z, layer, head)
                    return z

                rows.append(model.run_with_hooks(ids, fwd_hooks=[(f"blocks.{layer}.attn.hook_z", hook)])[0, -1])
        return torch.stack(rows)

    def zero(z: Tensor, layer: int, head: int) -> None:
        z[:, :, head] = 0

    def mean(z: Tensor, layer: int, head: int) -> None:
        z[:, :, head] = z[:, :, head].mean(1, keepdim=True)

    def patch(z: Tensor, layer: int, head: int) -> None:
        z[:, :, head] = of_other["z", layer][:, :, head]

    def patch_last(z: Tensor, layer: int, head: int) -> None:
        z[:, -1, head] = of_other["z", layer][:, -1, head]

    streams = cache.accumulated_resid(apply_ln=True)[:, 0]  # [layer, pos, d_model]
    parts, labels = cache.decompose_resid(return_labels=True, mode="mlp")
    attributed = dict(zip(labels, cache.logit_attrs(parts, TOKEN)[:, 0, -1], strict=True))
    heads = cache.stack_head_results()
    return {
        "logits": logits[0, -1],
        "zero": each(zero),
        "mean": each(mean),
        "all": each(patch),
        "last": each(patch_last),
        "lens": streams @ model.W_U + model.b_U,
        "heads": cache.logit_attrs(heads, TOKEN)[:, 0, -1],
        "mlps": torch.stack([attributed[f"{layer}_mlp_out"] for layer in range(n_layers)]),
        "token": attributed["embed"],
        "position": attributed["pos_embed"],
    }


if __name__ == "__main__":
    main()
