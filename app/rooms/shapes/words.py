"""Every word of the Shapes view. Names in braces are filled in where the words are used."""

from typing import Any

from app import languages
from app.sizes.words import PASTED

TITLE = "Shapes"
LINE = "every tensor of a pass"

# controls
OF = "What to trace"
OF_RUN = "The run above"
OF_TYPED = "Your own sizes"
OF_PASTED = PASTED
BATCH = "batch"
LENGTH = "tokens"
SOURCE = "source tokens"
TARGET = "target tokens"
DROPOUT = "dropout"
DROPOUT_HELP = "Training drops some numbers at random, and autograd keeps which. At inference nothing is dropped, and its rows are not there."
FIELDS = "Sizes"
FIELD_NAMES = {
    "encoder": "encoder layers",
    "decoder": "decoder layers",
    "width": "d_model",
    "heads": "heads",
    "kv": "key/value heads",
    "ff": "d_ff",
    "vocabulary": "vocab",
    "context": "longest text",
}
NORM_ORDER = "order of the norms"
NORM_ORDER_HELP = (
    "Pre-LN normalises what goes into each sublayer, Post-LN what comes out of it. Shapes and parameters stay as they are, but "
    "the weights of a model that learnt with one order do not serve the other: it would have to be trained again."
)
POSITIONS = "positions"
NORM = "kind of norm"
NORM_NAMES = {"layer": "LayerNorm", "rms": "RMSNorm"}
ACTIVATION = "activation"
ACT_NAMES = {"gelu": "GELU", "gelu_tanh": "GELU, tanh form", "relu": "ReLU", "silu": "SiLU"}
WINDOW = "window"
WINDOW_HELP = "How many tokens back a query may look, itself included. 0: all of them."
GATED = "gated FFN"
UNKNOWN_PLACE = "This link asks for {name} “{asked}”, which this diagram does not have: it opens where it usually does."
LAST_DIAGRAM = "The diagram still shows what was traced before."
NOTHING_YET = "Type a sentence above to trace it, or choose a model on the right."

# the kinds of rows: what made it (equation), the line of PyTorch, and what the shape says, spelled out
# kind -> (title, equation, code, meaning)
ROWS: dict[str, tuple[str, str, str, str]] = {
    "tokens": ("tokens", "", "ids", "{pos}, one whole number each: its row in the table of {vocab}."),
    "angles": ("rotary angles", "position · frequency", "positions[..., None] * frequencies", "An angle for each of {pos} and each pair of features that turns."),
    "token": ("embedding", "a row of the table each", "self.token(ids)", "{pos}, and for each a vector of {d_model}."),
    "scaled": ("embedding × scale", "E · {scale}", "self.token(ids) * self.scale", "{pos}, and for each a vector of {d_model}."),
    "type": ("token types", "a row of the table each", "self.token_type(type_ids)", "Which of two sentences a token is in, as a vector of {d_model} for each of {pos}."),
    "position": ("positions", "{positions}", "{position_code}", "A vector of {d_model} for each of {pos}, the same for every text: with a batch it is broadcast."),
    "embed": ("residual stream begins", "{embed}", "{embed_code}", "{pos}, and for each a vector of {d_model}: what all layers read and add to."),
    "dropout_embed": ("dropout", "x · kept / (1 − p)", "self.dropout(x)", "{pos} of {d_model}, some of them 0, in training alone: at inference this row is not there. Autograd keeps which were dropped, one byte each: {kept} bytes."),
    "dropout_weights": ("dropout of weights", "weights · kept / (1 − p)", "self.dropout(pattern)", "{head} × {query} × {key}: some looks are cut, in training alone, and rows no longer sum to 1. Autograd keeps which, one byte each: {kept} bytes."),
    "dropout_hidden": ("dropout of the hidden layer", "h · kept / (1 − p)", "self.dropout(h)", "{pos} of {d_ff}, some of them 0, in training alone. Autograd keeps which were dropped, one byte each: {kept} bytes."),
    "dropout_out": ("dropout", "f(x) · kept / (1 − p)", "self.dropout(out)", "{pos} of {d_model}: some of what the sublayer adds is 0, in training alone. Autograd keeps which, one byte each: {kept} bytes."),
    "resid_pre": ("residual in", "", "x", "{pos}, and for each a vector of {d_model}: what the layer before left."),
    "norm": ("norm", "{norm}(x)", "self.{site}_norm(x)", "Every one of {pos} normalised over its {d_model}; no token sees another here."),
    "q": ("q", "x W_Q{bias}", "self.q(x)", "For each of {pos} a vector for all heads together, {head} × {d_head}."),
    "kv": ("k, v", "x W_K{bias}, x W_V{bias}", "self.k({memory}), self.v({memory})", "For each of {pos} the keys and values of all heads together, {kv_head} × {d_head}."),
    "qkv": ("q, k, v", "x W{bias}, three times", "self.q(x), self.k(x), self.v(x)", "Three tensors. For each of {pos} a vector for all heads together, {head} × {d_head}."),
    "q_norm": ("norm of q{turned}", "{norm}(q)", "self.q_norm(q)", "Each head's query normalised over its {d_head}."),
    "k_norm": ("norm of k{turned}", "{norm}(k)", "self.k_norm(k)", "Each head's key normalised over its {d_head}."),
    "split_q": ("split heads{turned}", "", "q.unflatten(-1, ({n_heads}, {n_d_head})).transpose(1, 2)", "{head}, each with its own {d_head} for each of {query}. {stays}"),
    "split_kv": ("split heads{turned_k}", "", "k.unflatten(-1, ({n_kv_heads}, {n_d_head})).transpose(1, 2)", "Two tensors: {kv_head}, each with its own {d_head} for each of {key}."),
    "split_qkv": ("split heads{turned}", "", "q.unflatten(-1, ({n_heads}, {n_d_head})).transpose(1, 2)", "Three tensors: {head}, each with its own {d_head} for each token. {stays}"),
    "shared": ("keys shared", "each {group} heads, one key head", "k.repeat_interleave({group}, dim=1)", "{head}: each group of {group} gets the same keys, and likewise the values. The fused kernel reads them in place instead."),
    "bias": ("position bias", "a learned number for each distance", "self.relative_bias(distance)", "{query} × {key} × {head}: what the distance between two tokens adds to their score."),
    "kt": ("kᵀ", "", "k.mT", "The keys with their last two axes swapped, so that {d_head} of a query meet {d_head} of a key."),
    "padding": ("padding mask", "True: a token, False: padding", "keep[:, None, None, :]", "Where {batch} have different lengths: which of {key} are tokens. Its axes of 1 are broadcast over heads and queries, and the mask then differs from text to text. PyTorch's key_padding_mask is the reverse: True hides."),
    "scores": ("scores", "{scores}", "{scores_code}", "{head} × {query} × {key}: one number for every pair of tokens, in every head."),
    "mask": ("mask", "{mask}", "{mask_code}", "{query} × {key}, True where a query may look: one for all heads, broadcast over them."),
    "masked": ("masked scores", "−∞ where the mask hides", "scores.masked_fill(~mask, -inf)", "{head} × {query} × {key}: the scores, and −∞ in place of those that the mask hides."),
    "weights": ("weights", "softmax over keys", "scores.softmax(-1)", "{head} × {query} × {key}: one number for every pair of tokens, how much the query takes from the key. Every row sums to 1. New numbers, with bytes of their own."),
    "z": ("head outputs", "weights · v", "pattern @ v", "For each of {head} and each of {query} a mixture of values, {d_head} wide."),
    "join": ("join heads", "", "z.transpose(1, 2).flatten(2)", "The {head} of each of {query} side by side again, {d_head} each. Here numbers move: it is a copy."),
    "attn_out": ("attention out", "z W_O{out_bias}", "self.o(z)", "For each of {pos} what attention adds to the residual stream: {d_model}."),
    "cross_out": ("cross-attention out", "z W_O{out_bias}", "self.o(z)", "For each of {pos} what it took from the source, to be added to the residual stream: {d_model}."),
    "out_norm": ("norm of what is added", "{norm}(f(x))", "self.{site}_out_norm(out)", "What the sublayer adds, normalised over its {d_model}."),
    "resid_mid": ("{add}", "{add_attn}", "{add_code}", "{pos}, and for each a vector of {d_model}: the residual stream with what attention added."),
    "resid_cross": ("{add}", "{add_cross}", "{add_cross_code}", "{pos}, and for each a vector of {d_model}: the residual stream with what came from the source."),
    "resid_post": ("{add}", "{add_mlp}", "{add_mlp_code}", "{pos}, and for each a vector of {d_model}: what the next layer reads."),
    "gate": ("FFN gate", "x W_gate{mlp_bias}", "self.gate(x)", "{pos}, each widened from {d_model} to {d_ff}."),
    "gate_act": ("gate activation", "{act}(gate)", "{act_code}(self.gate(x))", "{pos}, {d_ff} each: how far each gate is open."),
    "up": ("FFN hidden", "x W₁{mlp_bias}", "self.up(x)", "{pos}, each widened from {d_model} to {d_ff}. Every token for itself."),
    "act": ("activation", "{act}(h)", "{act_code}(h)", "{pos}, {d_ff} each: the same numbers after {act}."),
    "gated": ("gate × hidden", "{act}(gate) · hidden", "{act_code}(self.gate(x)) * self.up(x)", "{pos}, {d_ff} each: what each gate lets through."),
    "mlp_out": ("FFN out", "h W₂{mlp_bias}", "self.down(h)", "For each of {pos} what the FFN adds to the residual stream: back to {d_model}."),
    "final": ("{final}", "{final_eq}", "{final_code}", "{pos}, and for each a vector of {d_model}: what the model makes of each token."),
    "dense": ("head dense", "x W + b", "self.dense(x)", "{pos}, each still {d_model} wide, once more mixed before the words are scored."),
    "head_act": ("head activation", "{act}(h)", "{act_code}(h)", "The same {pos} of {d_model} after {act}."),
    "head_norm": ("head norm", "{norm}(h)", "self.norm(h)", "The same {pos}, each normalised over its {d_model}."),
    "logits": ("logits", "{unembed}", "self.unembed(x)", "For each of {pos} a score for each of {vocab}.{tied}"),
}  # fmt: skip
# steps that a row of the diagram stands for together with others: last part of the name it is traced under -> title
STEPS = {
    "hook_positions": "places of the tokens",
    "hook_token": "embedding",
    "k": "k",
    "v": "v",
    "unflatten": "features into heads",
    "transpose": "two axes swapped",
    "hook_q": "q, head by head",
    "hook_k": "k, head by head",
    "hook_v": "v, head by head",
    "repeat_interleave": "one for every head",
    "mT": "transposed: kᵀ",
    "matmul": "q kᵀ",
    "masked_fill": "masked scores",
    "flatten": "join heads",
    "position": "positions",
}
POSITION_CODES = {
    "learned": ("a learned row each", "self.position(positions)"),
    "sinusoidal": ("sines and cosines", "self.sinusoid[positions]"),
}
TIED = " The table of the embedding, transposed: both are one set of weights."
TURNED = ", turned"
KEYS_TURNED = ", keys turned"
FINAL = {"norm": "final norm", "none": "result of the stack"}
STAYS = "The numbers stay where they are: only the strides change."
TURNS = "Queries and keys are then turned by their positions, which makes new tensors of them."
ACTS = {"relu": "ReLU", "gelu": "GELU", "gelu_tanh": "GELU", "silu": "SiLU"}
ACT_CODES = {"relu": "F.relu", "gelu": "F.gelu", "gelu_tanh": "F.gelu", "silu": "F.silu"}
MASKS = {
    "encoder": "everything may be seen",
    "decoder": "hides the future",
    "cross": "the source may be seen",
    "window": ", and beyond {window:,}",
}
MASK_CODES = {
    "encoder": "torch.ones(n, n, dtype=torch.bool)",
    "decoder": "torch.ones(n, n, dtype=torch.bool).tril()",
    "cross": "torch.ones(n, m, dtype=torch.bool)",
    "window": " & (distance.abs() < {window})",
}
MASKS_PADDED = {
    "encoder": "all but padding may be seen",
    "decoder": "hides the future and padding",
    "cross": "all of the source but padding may be seen",
    "window": ", and beyond {window:,}",
}
MASK_PADDED_CODE = "keep & {code}"
ADDS = {"pre": "add", "post": "add and norm", "sandwich": "add"}

# sections of a diagram
SECTIONS = {"embed": "Embedding", "layer": "Layer", "final": "After the last layer", "head": "Head"}
STACKS = {"encoder": "Encoder", "decoder": "Decoder"}
NORM_ORDERS = {"pre": "Pre-LN", "post": "Post-LN", "sandwich": "norms before and after"}
POSITION_NAMES = {
    "none": "no positions",
    "learned": "learned positions",
    "sinusoidal": "sinusoidal positions",
    "rotary": "rotary positions",
    "alibi": "ALiBi",
    "relative": "relative positions",
    "disentangled": "disentangled attention",
}

NO_MODULE = "There is no such file."

# what an axis is, for the legend and one hover away
AXES = {
    "batch": "Texts that run together. None sees another.",
    "pos": "Places in a text. In attention a place is a query when it looks and a key when it is looked at.",
    "head": "Attention heads, side by side. kv_head counts the key/value heads, which several heads may share.",
    "query": "Tokens that look: rows of an attention map.",
    "key": "Tokens that are looked at: columns of an attention map.",
    "d_model": "Width of the residual stream.",
    "d_head": "Width of one head.",
    "d_ff": "Width of the hidden layer of the FFN.",
    "vocab": "Words the model knows.",
}
# axis -> "1 head", "12 heads"
COUNTS = {
    "batch": ["text", "texts"],
    "pos": ["token", "tokens"],
    "head": ["head", "heads"],
    "kv_head": ["key head", "key heads"],
    "query": ["query", "queries"],
    "key": ["key", "keys"],
    "d_model": ["feature", "features"],
    "d_head": ["feature", "features"],
    "d_ff": ["hidden unit", "hidden units"],
    "vocab": ["word", "words"],
}

# what the component writes
COMPONENT: dict[str, Any] = {
    "bytes": "bytes",
    "columns": {
        "rail": "stream",
        "step": "step",
        "shape": "shape",
        "bytes": "bytes",
        "flops": "FLOPs",
        "code": "PyTorch",
    },
    "label": "Shapes along the pass. Arrow keys move between tensors, Enter opens a folded part.",
    "subtitle_run": "traced on your sentence · {model}",
    "subtitle": "nothing allocated · {model}",
    "diagram": "diagram",
    "table": "table",
    "shown_as": "Shown as",
    "view": "view",
    "view_help": "No new bytes: the same numbers seen another way.",
    "layer": "Layer {layer}",
    "of_layers": "of {n}",
    "folded": "Layers {from}–{to}: the same shapes, weights of their own, × {n}",
    "folded_one": "Layer {from}: the same shapes, weights of its own",
    "unfold": "Unfold all",
    "fold": "Fold",
    "made_by": "made by",
    "given": "given by the tokenizer",
    "read_by": "read by",
    "read_by_none": "nothing: this is the result",
    "next_layer": "the next layer",
    "grows": "grows with n²: {size} at 4,096 tokens",
    "grows_linear": "grows with n: {size} at 4,096 tokens",
    "fused": "never written",
    "fused_long": "never written by the fused kernel",
    "fused_help": "The fused kernel works through this in tiles and never writes it down; bytes are what it would take.",
    "batch_prefix": "In each of {batch}: ",
    "total": "Whole model: {parameters} parameters, {weights} of weights, {flops} for this pass",
    "cross": "the encoder's output goes to every decoder layer",
    "explore": "show it on Explore",
    "break": "What if I change a transpose?",
    "break_close": "Back to the tensor",
    "break_title": "What if …",
    "break_error": "PyTorch says",
    "break_silent": "No error, and wrong",
    "break_right": "As it should be",
    "values": "{what}",
    "values_stream": "‖x‖ of each token, layer {layer}",
    "values_range": "{low} to {high}",
    "values_part": "first {rows} × {columns} of {all_rows} × {all_columns}",
    "values_none": "The values could not be fetched.",
    "values_head_before": "previous head",
    "values_head_next": "next head",
    "compare": "Time one product against three, here",
    "compare_busy": "Measuring …",
    "compared": "One product {fused} ms, three {separate} ms (medians of nine, {device}, {rows} tokens × {width}); largest difference between their numbers {difference}.",
    "compared_fewer": "Of {of} tokens, {rows} were multiplied.",
    "compare_failed": "This could not be measured.",
    "table_caption": "Every step of the pass as it was traced, in order. Steps of a layer happen in each of its layers.",
    "table_columns": ["Part", "×", "Step", "Traced as", "Axes", "Shape", "Type", "MiB", "MB", "FLOPs", ""],
    "copies": "{n} tensors",
}

THREE_PRODUCTS = "Three tables, a product each, as this diagram draws them."
DROPPED_NO_TEXT = "This file is no text. Drop the config.json of a model, without its weights."
ONE_PRODUCT = "One table with the three below each other, one product, then views of its parts: the same numbers. Often without bias: after a norm with a shift of its own, b_K adds the same to a whole row of scores, and softmax takes it out again."
STRIDES = "Strides of z are {z}; of z.transpose(1, 2) {turned}, so that its last two axes do not lie side by side; of its copy {copied}."
# the shape debugger: why a line raises, or why its result is wrong
WHY = {
    "split_no_transpose": "Still token before head. With q and k like this, q @ kᵀ compares the heads of one token with each other, and no token sees another.",
    "split_view": "The right shape from the wrong numbers: view cuts memory as it lies, so a “head” gets all features of some tokens and nothing of the others. It needs unflatten, then transpose.",
    "split_heads": "One head more than there are: heads × d_head must be what the projection made.",
    "qkv_by_head": "It fits, and mixes q, k and v: this table has all of q first, then k, then v. Some models store it head by head, and there this line is the right one.",
    "qkv_chunk": "This cuts the tokens into three parts and not the features: the axis of a projection is the last one.",
    "scores_no_transpose": "A product needs the last axis of q, d_head, to meet the same axis of k. Without the transpose it meets the keys.",
    "scores_square": "Here there are as many keys as features in a head, so the shapes fit by chance: features are multiplied with positions. At any other length it is an error.",
    "scores_t": "On more than two axes .T reverses all of them: batch meets d_head. PyTorch warns of it and will refuse it. .mT, or transpose(-2, -1), swaps only the last two.",
    "scores_t_silent": "It fits by chance: .T reverses all axes, so batch meets d_head and heads meet keys. .mT, or transpose(-2, -1), swaps only the last two.",
    "scores_heads": "This swaps heads with positions. The head axis must stay where it is: .mT, or transpose(-2, -1), swaps only the last two.",
    "scores_heads_silent": "Heads and positions are swapped, and these sizes happen to fit or to broadcast: every head meets the keys of others.",
    "scores_unsplit": "Heads × heads for every token: each token compares its own heads with each other. No error here, and none at any length.",
    "scores_unsplit_lengths": "Positions are now where heads should be: source and target have different lengths, so they do not meet.",
    "mask_flat": "Axes are matched from the right: batch meets query. A padding mask needs two axes of 1 between batch and key.",
    "mask_flat_silent": "It fits by chance: axes are matched from the right, so batch meets query, not batch. With one text it even is right; the second text breaks it.",
    "mask_head": "Axes are matched from the right: batch meets head. One more axis of 1 is missing.",
    "mask_head_silent": "It fits by chance: batch meets head. With one text it even is right; with as many texts as heads, text 3 hides keys in head 3 of every text.",
    "mask_rows": "This hides queries, not keys: the rows of padding are all −∞, which softmax turns into NaN, and every query still looks at padding.",
    "mask_rows_error": "The padding of the keys is on the axis of the queries, and there are not as many of them.",
    "softmax_columns": "The same shape, so nothing complains. But now every column sums to 1: keys share out their attention among queries, and with a causal mask the early rows hold almost all of it.",
    "softmax_heads": "The same shape, so nothing complains. But now heads compete for each pair of tokens, and no row sums to 1.",
    "z_transposed": "The last axis of the weights, key, must meet the key axis of v, which comes before d_head. v is not transposed.",
    "z_square": "As many keys as features in a head: it fits by chance, and mixes features instead of tokens.",
    "z_pattern": "The transposed weights: each token is mixed from those that look at it. The shape is right, the columns do not sum to 1.",
    "z_lengths": "The transposed weights have queries where keys should be, and the lengths differ.",
    "join_view": "After a transpose the numbers of one token no longer lie side by side, and view never copies. flatten and reshape do.",
    "join_view_silent": "Here it is right, by chance: with one token, or one head, a transpose leaves the order in memory as it was.",
    "join_reshape": "The right shape from the wrong numbers: without the transpose, a row is filled with one head's results for several tokens.",
    "join_flatten": "Without the transpose positions and features are flattened together, and what is left no longer fits W_O.",
    "join_flatten_silent": "It fits by chance, because there are as many tokens as heads: what is multiplied with W_O is one head's result for all tokens.",
    "position_all": "The table has a row for every position the model knows. Take as many as the text has tokens.",
    "position_same": "The text is exactly as long as the table, so all of it is right. One token less and it raises.",
    "position_turned": "Positions and features are swapped: axes are matched from the right.",
    "position_square": "As many tokens as features: it fits by chance, with the table transposed.",
    "position_axis": "The new axis makes batch out of positions: every token gets every position, one text for each. The result is as many times too large.",
    "position_axis_error": "The new axis puts positions where batch should be, and there are not as many texts as positions.",
    "position_features": "The last axis is cut, which has features: every position of the table is left, with the first few of its features. A course writes it so, as pe[:, :, :n].",
    "position_features_silent": "It fits by chance: the text is as long as the table, or as long as a vector is wide, so that nothing is cut.",
    "ffn_no_up": "down expects the d_ff features that up makes.",
    "ffn_same": "d_ff equals d_model here, so it fits: the hidden layer is skipped.",
    "ffn_turned": "The last axis must be d_model. A linear layer works on features, each token for itself; transposed, its last axis is the tokens.",
    "ffn_square": "As many tokens as features: it fits by chance, and mixes tokens instead of features.",
}

languages.of(__name__)
