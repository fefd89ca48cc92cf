"""Captions and sentences of Explore."""

from app import languages

INSPECT = "Inspect in Plotly"
NON_FINITE = "From {where} on, this run has numbers that are {kind} ({what}): what comes after is no result of the model. Try float32, or another text."
NON_FINITE_LAYER = "{stack} layer {layer}"
NON_FINITE_ENDS = "the {stack}, outside its layers,"
NON_FINITE_KINDS = {"nan": "not numbers (NaN)", "inf": "infinite"}

# the table of shapes
STEPS_CAPTION = (
    "Every tensor of the pass, in order. Greyed rows were never materialised: the fused kernel works through them in tiles, "
    "and this is what they would have cost."
)
STEPS_COLUMNS = {
    "name": "Step",
    "axes": "Axes",
    "shape": "Shape",
    "dtype": "Type",
    "mib": "MiB",
    "mb": "MB",
    "held": "In memory",
    "note": "Note",
}
MATERIALISED = "yes"
NEVER = "never materialised"
DEVICE = "{device}, {dtype} · {ms} ms for the pass · this trace holds {held} · {models} in memory"
MODELS = ("{n} models", "1 model")

languages.of(__name__)
