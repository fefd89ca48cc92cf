"""Every caption and help text of the recorded curves. Names in braces are filled in where the words are used."""

from app import languages

LIVE = "Train one now"
LIVE_HELP = "These are records of trainings that ended long ago. There a model learns before your eyes."
PART = "What is compared"
PARTS = {"heads": "Number of heads", "norm": "Where the norm stands", "tasks": "Six tasks"}
MEASURE = "Measure"
MEASURES = {"loss": "loss", "accuracy": "tokens right"}
ABOUT = {
    "heads": "The same task, the same data, the same number of parameters: only the 64 dimensions are cut into more or fewer heads.",
    "norm": "The same task and data. Pre-LN normalises what goes into each sublayer, Post-LN what comes out of it. "
    "The weights of one do not serve the other: each was trained from its own start.",
    "tasks": "Six tiny decoders of two layers, each learning one thing.",
}
HEADLINE = "{share} of tokens right: {quickest} first, at step {first}; {slowest} last, at step {last}."
HEADLINE_NEVER = "{share} of tokens right: {quickest} first, at step {first}; {others} never."
HEADLINE_SAME = "{share} of tokens right: {all} at the same step, {first}."
AND = " and "
HEADLINE_NONE = "None of them ever has {share} of its tokens right."
STEP_AXIS = "step"
AXES = {"loss": "loss, nats per token", "accuracy": "tokens right"}
LEARNT = "{share} right counts on average over {over} steps in a row, on the batch that each step learns from."
NOTE = {
    "loss": "Each point is the mean of the steps since the one before it; both axes are logarithmic. " + LEARNT,
    "accuracy": "Each point is the mean of the steps since the one before it. " + LEARNT,
}
FILE_LINES = "lines"
FILE_TABLE = "table"
TABLE = "The same as a table"
COLUMNS = {"model": "Model", "parameters": "Parameters", "learnt": "{share} right from step", "never": "never"}
AT_STEP = "{measure} at step {step}"
HEADS = "Look at the heads of"
NOTHING = "No curves are there. `make models` trains the models that ship and keeps them."

languages.of(__name__, links=["PARTS", "MEASURES"])
