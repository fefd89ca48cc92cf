"""Captions and help texts of the compute room. Names in braces are filled in where the words are used."""

from app import languages
from app.sizes.words import SHARE_OF_PEAK as SHARE

TITLE = "Compute"
LINE = "operations, traffic and time"
FILE_OPERATIONS = "operations"
FILE_ROOF = "operations and limits"
FILE_RNN = "lines"
FILE_CROSS = "terms"
FILE_PARAMETERS = "parameters"
FILE_KNOWN = "models"

# compute: parts of the view
COMPUTE_PARTS = {
    "operations": "Operations",
    "roofline": "Roofline",
    "rnn": "RNN",
    "cross": "Encoder–decoder",
    "parameters": "Parameters",
    "known": "Known models",
}
GROUPS = {
    "qkv": "q, k, v",
    "scores": "scores q kᵀ",
    "softmax": "scale, mask, softmax",
    "mix": "weights · v",
    "fused": "fused attention",
    "o": "output projection",
    "mlp": "MLP",
    "rest": "norms, residuals",
    "embed": "embedding",
    "head": "output head (logits)",
}
STEP_HELP = (
    "Whole text: all tokens at once, as in training and in reading a prompt. One token: the next one, with a cache."
)
NO_DECODE = "An encoder has no next token: this is the whole text."
FLOPS_AXIS = "share of all, %"
FLOPS_ROW = "FLOPs"
USEFUL_ROW = "FLOPs, causal"
TRAFFIC_ROW = "traffic"
OPERATIONS = "{title}, {what}: {flops}FLOP and {traffic} of memory traffic."
OPERATIONS_MOST = "Most FLOPs: {largest}, {share} %. Most traffic: {moves}, {moved} %."
OPERATIONS_CAUSAL = "The causal mask hides part of the scores: {useful}FLOP are of use."
OPERATIONS_ALL = "{batch} × {n} tokens"
OPERATIONS_ONE = "one token after {n}"
OPERATIONS_EACH = "one token of each of {batch} texts after {n} tokens"
OPERATIONS_NOTE = {
    "prefill": (
        "FLOPs of matrix products: [n, m] · [m, k] takes 2·n·m·k and writes n·k numbers. T = batch · tokens, d = d_model, q = heads · d_head, "
        "k = KV heads · d_head, b = batch, n = tokens, m = keys, h = heads, F = d_ff, V = vocabulary; biases are not in the formulas. "
    ),
    "decode": (
        "FLOPs of matrix products: [n, m] · [m, k] takes 2·n·m·k and writes n·k numbers. b = batch, one new token in each text, n = tokens that it looks at, "
        "itself included, d = d_model, q = heads · d_head, k = KV heads · d_head, h = heads, F = d_ff, V = vocabulary; "
        "biases are not in the formulas. "
    ),
}
ONE_HEAD = "{heads} heads of {d_head} cost what 1 head of {d} costs: {flops}FLOP for scores and sum, {parameters} parameters in the projections of a layer."
NOT_COUNTED = "about {n}, no product: not counted"
WITH_MASK = ", with a mask {n}"
ROOF_X = "FLOPs for each byte"
ROOF_Y = "TFLOP/s within reach"
ROOF = "The {device} is compute-bound above {ridge:.0f} FLOPs per byte."
ROOF_PREFILL = (
    "Reading {n} tokens gives {prefill:.1f} FLOPs per byte: {prefill_limit} is the limit, {prefill_time} at the least."
)
ROOF_DECODE = "The next token gives {decode:.1f} FLOPs per byte: {decode_limit} is the limit, {decode_time}, {rate} tokens a second at a batch of {batch}."
ROOF_REACHED = {
    "prefill": SHARE + ", all of a text of this length: {one} at a batch of 1, {many} at 32.",
    "decode": SHARE + ", all of one token: {one} at a batch of 1, {many} at 32.",
}
ROOF_NOTE = (
    "Numbers of 16 bits, as the makers' figures are for. All of it: the least traffic, every weight once, attention fused; of a table that is "
    "only looked up a row for each token. The output head is counted at every position, as in training. "
)
LIMITS = {"compute": "arithmetic", "memory": "memory"}
CARDS = "Cards and their figures"
CARDS_NOTE = (
    "Change GB/s or TFLOP/s to try your own: dense 16-bit arithmetic with float32 sums. The link keeps what you change. "
    "GiB: what the driver reports; for programs: without what it takes for itself."
)
CARDS_CHANGED = "changed here; was {source}"
CARDS_UNREADABLE = "This link gives “{asked}” as a card and its figures, which cannot be read. Write name:GB/s:TFLOP/s, for example rtx-4090:1008:165.2."
CARDS_COLUMNS = {
    "name": "Card",
    "gibibytes": "GiB",
    "gigabytes_per_second": "GB/s",
    "teraflops": "TFLOP/s",
    "ridge": "FLOPs per byte",
    "offered": "GiB for programs",
    "source": "Source",
    "memory_source": "Source of the memory",
}
CARDS_WRONG = "{card} needs GB/s and TFLOP/s above 0 and at most {most:,}: its maker’s figures are used instead."
RNN_LINES = {
    "rnn": "RNN, 4nd²",
    "attention": "attention, scores and sum, 4n²d",
    "whole": "attention with its projections",
}
RNN = "At {n} tokens of width {d} a plain RNN layer takes {rnn}FLOP in {n} steps, one after the other."
RNN_ATTENTION = (
    "Attention takes {attention}FLOP for scores and sum, {whole}FLOP with its projections, in 1 step. "
    "Below {d} tokens attention's n²·d is the smaller term, above it the RNN's n·d²."
)
RNN_NOTE = (
    "One layer, one text. RNN: O(n·d²), n sequential steps, n steps from the first token to the last. Self-attention: O(n²·d), 1 and 1 "
    "(Vaswani et al. 2017, table 1). All that an RNN knows of the tokens before is one vector of {d} numbers, its bottleneck; a gradient "
    "goes back through every step and is multiplied in each, so that it vanishes or grows. Step 5.9 of Lessons measures one."
)
RNN_AXIS = "tokens"
RNN_FLOPS = "FLOPs of one layer"
CROSS_TERMS = {
    "encoder": "encoder, token by token: O(n·d²)",
    "encoder_maps": "encoder self-attention: O(n²·d)",
    "decoder": "decoder, token by token: O(m·d²)",
    "decoder_maps": "decoder self-attention: O(m²·d)",
    "memory": "keys and values of the source: O(n·d²)",
    "cross_maps": "cross-attention: O(n·m·d)",
    "words": "output head (logits): O(m·d·V)",
}
CROSS = "{title} reads {n} tokens and writes {m}."
CROSS_SIZES = (
    "O(n²): {own}FLOP. O(m²): {other}FLOP. O(nm): {cross}FLOP. The projections and MLPs take {linear} % of everything."
)
CROSS_WAYS = {"at_once": "target at once", "by_word": "word by word"}
CROSS_NOTE = "At once: the whole target, as in training, full maps. Word by word: with a cache of keys and values, the encoder run once. Counted like every FLOP here, and equal to the trace of the same model."
CROSS_IF = "{title} is {kind}-only: it has one of these terms. With these layers in an encoder and in a decoder it would read {n} tokens and write {m}."
CROSS_AXIS = "FLOPs"
TAKE_TRANSFORMER = "Take Transformer base"
PARAMETER_PARTS = {
    "embedding": "embedding",
    "encoder": "encoder",
    "decoder": "decoder",
    "unembed": "output",
}
PARAMETERS_AXIS = "parameters"
LAYERS_AXIS = "layers of each stack"
PARAMETERS = "{title} has {total} parameters."
PARAMETERS_LAYER = (
    "Every layer of each stack adds {layer} parameters: a straight line. {share} % of them are in its MLP."
)
TRANSLATOR = "A textbook translator: Vaswani base with two vocabularies of 32,000"
TRANSLATOR_COLUMN = "Component"
TRANSLATOR_ROWS = ("source embedding", "target embedding", "encoder", "decoder", "output", "total")
TRANSLATOR_WHY = (
    "It has {three:,} parameters, not about 65 M: a table for the source, one for the target, and an output of its own. "
    "One table for all three, as in the paper, gives {one:,}; with the paper's 37,000 words {paper:,}. "
    "A layer of its encoder has {layer:,}; 4d² + 2dF + 4d gives {lesson:,}, because it leaves the biases of the six products out."
)
KNOWN = "{n} known models, counted from their shapes."
KNOWN_WORST = "{worst} is furthest from what its authors say: {exact} against {published}."
KNOWN_NOTE = (
    "Published figures are rounded by their authors. The counts of BERT and MiniLM include a pooler, "
    "a layer that reads the first token alone; the MiniLM of Explore and Shapes runs without it."
)
KNOWN_HEADS = "d_head is 64 in {n} of them, and not in all: {others}."
LESSON_TITLE = "A textbook encoder class in five sizes: sinusoids, attention without biases"
KNOWN_AXIS = "parameters"
YOURS = "this one"

languages.of(__name__, links=["COMPUTE_PARTS"])
