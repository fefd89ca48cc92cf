"""Sentences about a visitor's request."""

from app import languages

EXAMPLE = "The animal didn't cross the street because it was too tired."
DEFAULT_IS_MISSING = "{title} is not installed and could not be fetched, so {opened} opens. `make run` installs it."
UNKNOWN_LANGUAGE = "This link asks for the language “{asked}”. Possible here: {allowed}. Your browser’s own is shown."
STOPPED = "Stopped, as you asked. Your text is still in the box."

# sentences for a person whose request did not work
LAST_PICTURE = "The picture still shows the last sentence that worked."
BROKEN = "Something went wrong here, and it is not your fault. Your text is still in the box: try it again, or try another sentence."

# models that a person brings
NUMBERS = "5 17 3"
NUMBERS_NOTE = "This model has no tokenizer: the text is token numbers, separated by spaces."
WITHOUT_ADAPTER = "{title} without its adapter"
IN_TRAINING = "{title} in training"

# the list of models: their form, and what each is for
FORMS = {
    "encoder": "encoder",
    "decoder": "decoder",
    "encoder-decoder": "encoder–decoder",
    "classifier": "classifier",
}
USES = {
    "encoder": "Reads a text from both sides and makes a vector of each token.",
    "decoder": "Continues a text, token by token.",
    "encoder-decoder": "Reads a text and writes another one, as a translator does.",
    "classifier": "Gives a text its class.",
}
USE_CHAT = "Continues a text, and answers in a chat."
USE_ADAPTER = "{base} with an adapter. {use}"
USE_UNKNOWN = "It is downloaded when it is opened; its form is known then."
USE_UNREAD = "What it is for is known when it is opened."

# In the header of a CSV file.
GUARDED = "A text that begins as a formula does (= + - @) has an apostrophe in front, so that no spreadsheet runs it: take it off."

languages.of(__name__, read=["EXAMPLE", "NUMBERS"])
