"""Captions and sentences of what surrounds a room."""

from app import languages

TITLE = "Headlight"

# of a link, before any script runs
PREVIEW_TITLE = "Headlight: see attention at work inside a transformer"
PREVIEW = (
    "Type a sentence and see every attention head of a real language model: who looks at whom, how much, and what it does to the "
    "next word."
)
PREVIEW_ALT = "A sentence with lines between the words that one attention head connects, beside a map of all heads."
FRAME_TITLE = "Headlight"
OEMBED_JSON = "oEmbed comes as JSON here: leave out format, or say format=json."
OEMBED_OTHER = "Only links of {host} can be framed by it: url=… is the link to show."
OEMBED_NONE = "This server lets no other site show it in a frame. Its operator can name sites in HEADLIGHT_EMBED."
OPEN_FULL = "Open in Headlight"
EMPTY_FRAME = (
    "The page around this frame lets it load no scripts, so there is nothing to show. Its author can add allow-same-origin to "
    "the frame’s sandbox, or take the sandbox away."
)
NO_STAGE = "No room of this name is drawn from a message."
LINK_WITHOUT_TEXT = "This link names no text: it needs text=…, and may name a model."
LINK_IN_VAIN = "This link cannot be shown: {why}."
OPEN_FULL_HELP = "This screen with all rooms, in a tab of its own."

# controls
VIEW = "View"
VIEWS = "Views"
LOOK = "Look"
TRY = "Try"
COUNT = "Count"
LEARN = "Learn"
STEPS_DONE = "{n} of {of}"
EXPLORE = "Explore"
EXPLORE_LINE = "who looks at whom"
LANGUAGE = "Language"
TEXT = "Sentence"
TEXT_PLACEHOLDER = "Type a sentence and press Enter"
NUMBERS = "Token numbers"
NUMBERS_PLACEHOLDER = "Token numbers, separated by spaces: 5 17 3"
TEXT_KEYS = "Enter shows it, Shift+Enter begins a line"
TARGET = "Target"
TARGET_PLACEHOLDER = "Target; empty: the model writes it"
ANSWER = "Answer"
ANSWER_PLACEHOLDER = "The model’s answer so far; empty: it is about to begin"
AS = "The model reads it"
AS_HELP = (
    "As a chat, the model’s own template writes your sentence into the conversation that the model was trained on: whose turn it is, "
    "where it ends, and often a first turn of instructions. The marks above the tokens name the turns."
)
AS_OPTIONS = {"": "as it is", "chat": "as a chat"}
NO_CHAT = "{title} has no chat template, so it reads the text as it is."
MODEL = "Model"
EXAMPLES = "Examples"
EXAMPLES_HELP = "Sentences that show something, each with the head that shows it."

# all models on offer
ALL_OPTION = "All models, by form and size…"
ALL_MODELS = "All models"
ALL_FIND = "Find by name or by what it is for"
ALL_FIND_EXAMPLE = "translator, chat, brackets…"
ALL_FORM = "Form"
ALL_SIZE = "Size"
ALL_SIZES = {"small": "up to 10 M", "middle": "10 M to 1 B", "large": "1 B and more"}
ALL_COUNT = "{shown} of {n}"
ALL_NONE = "No model here is like that. Take a word, the form or the size away."

# models that other programs of this machine have
HERE_OPTION = "On this machine…"
HERE = "Models on this machine"
HERE_SAYS = "Models that Ollama, LM Studio and the Hugging Face Hub’s cache have downloaded. Nothing is opened before you choose it, and no link opens one."
HERE_NONE = (
    "Ollama, LM Studio and the Hugging Face Hub’s cache have no model here. These folders were looked at:\n{folders}"
)
HERE_FIND = "Find by name"
HERE_COUNT = "{shown} of {n}"
HERE_MORE = "Show {n} more"
HERE_WHERE = "{program} · {size} on disk"
HERE_LOOKED = "{where} · looking into it…"
HERE_TAKES = "{where} · {needed} in memory, where {free} are free"
HERE_TOO_LARGE = "It takes {needed} in memory, where {free} are free. A smaller model opens."
HERE_NO_TEXT = "It opens in a notebook alone. {why}"
HERE_OPEN = "Open"

# what a model can write, and how it learnt
STEP = "Training step"
STEP_HELP = (
    "The model as it was after this many training steps. The head and the token stay. Arrow keys move the slider."
)
STEP_SAYS = "Step {step} of {last}"
STEP_LEARNT = ": loss {loss} nats per token, {share} of the tokens right in that step’s batch."
STEP_LOSS = ": the last loss that its Trainer wrote down is {loss}."
STEP_EVALUATED = ": the last loss of an evaluation is {loss}."
STEP_LOSSES = ": the last loss that its Trainer wrote down is {loss}, and {evaluation} in an evaluation."
STEP_NO_LOSS = ". Its losses are not shown: {reason}"
STEP_UNTRAINED = "Untrained: its weights are random."
UNKNOWN_STEP = (
    "This link asks for training step “{asked}”, which was not saved: {shown} is shown. Saved steps: {known}."
)
WRITE_ON = "Continue the text"
WRITE_ON_EDITED = "The edits of this run hold for what is written too."
WRITE_ON_HELP = "The model adds up to {n} tokens, each drawn from the {k} likeliest at temperature {t}. The same text gets the same words."
NOTHING_WRITTEN = "{title} ends its text here: the end is the next token that it draws."
NO_ROOM = "{title} has no position left for another token. Shorten the text so that it can continue."
TARGET_WRITTEN = "No target was given: the model writes it."
TARGET_UNCHANGED = "No target was given: the unchanged model writes it."
TARGET_WRITTEN_HELP = "The likeliest token each time, up to its own end. Type a target to see that one instead."
TARGET_EDIT = "Edit its target"

# edits of the run, from a link or from another room
EDITED = "This run is changed: {edits}."
UNEDIT = "Run it unchanged"
EDITS_LEFT = "The changes were made for another model: {now} runs unchanged."
UNKNOWN_EDITS = "This link asks for changes that cannot be read, and the model runs unchanged. {why}"

# while a visitor waits
WORKING = {
    "loading": "Loading {title}. The picture stays until the new one is there.",
    "waiting": "Waiting for a turn: other sentences are running.",
    "running": "Running {title}.",
    "done": "Drawing.",
}
ONE_BEFORE = "Waiting for a turn: one other task runs before yours."
SOME_BEFORE = "Waiting for a turn: {n} other tasks run before yours."
LAYERS = "Running {title}: layer {done} of {total} done."
LAYERS_OF_PART = "Running {title}: part {part} of {parts} of the text, layer {done} of {total} done."
BYTES = "Loading {title}: {done} of {total} · {name}"
PROGRESS = "Progress"
CANCEL = "Cancel"
RUN_AGAIN = "Run it"
UNKNOWN_VIEW = "This link asks for a view called “{asked}”, which does not exist: {shown} is shown. Views: {known}."
UNKNOWN_SETTING = "This link asks for {what} “{asked}”, which is ignored. Possible values: {allowed}."
UNKNOWN_MODEL = (
    "This link asks for a model called “{name}”, which is not on the list: {title} is shown. The list has {titles}."
)
NO_TEXT_MODEL = "This model learnt another visitor’s own text, or is not kept any more. {title} is shown."

# where a room has no run to show yet, or none of this text
TRY_EXAMPLE = "Try: {example}"
TAKE_FITTING = "Use this example"
NOTHING_YET = "Type a sentence above, or take the example, to see what the model does with it."
TAKE_EXAMPLE = "Take the example"

# a page to which no websocket comes through
REFUSED = {
    "title": "This page cannot reach its server.",
    "why": "The server answers, but each websocket to it was refused, three times in a row. A websocket carries what you type and what "
    "you see. Something between this browser and the server does not let it through.",
    "tries": [
        "Try another network, such as a phone’s hotspot. Or turn off a VPN, a web filter or an extension that blocks parts of pages.",
        "Ask the people who look after this network to allow websockets to {host}.",
        "If you run this server: its proxy must pass websockets, and the host that browsers ask for. docs/hosting.md has settings for "
        "nginx and HAProxy.",
        "Leave this page open. It continues by itself once a websocket comes through.",
    ],
}
# a page whose server has gone
AWAY = {
    "restarts": {
        "title": "The server is restarting.",
        "why": "Your sentence stays, and this page continues by itself, usually within a minute.",
    },
    "lost": {
        "title": "The connection to the server is lost.",
        "why": "The server may be restarting, or this device may be offline. Your sentence stays, and this page continues by itself once "
        "the server answers.",
    },
    "stopped": {
        "title": "This page has stopped.",
        "why": "It received something that it cannot read. Reload the page: its address keeps your sentence.",
    },
}
DROPPED = {
    "close": "Close",
    "large": "This file has {n} kB. A config.json has a few: drop that one, without the weights.",
    "unreachable": "The server does not answer. Drop the file again once it does.",
}
COMPARE_BASE = "Compare with its base"
COMPARE_BASE_HELP = (
    "Opens {base} with {title} beside it in What if: heads by how far they look elsewhere, and the answer of both."
)

languages.of(__name__)
