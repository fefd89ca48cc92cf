"""Sentences of a notebook's page and cell."""

from app import languages

ROOM = (
    "There is no room called {room} for a notebook. It must be one of: {allowed}. Leave it out, and Explore is shown."
)
PLACE = (
    "There is no {name} {asked} in this run: {name} goes from 0 to {most}. Choose one of these, or leave {name} out, "
    "and the picture opens where there is most to see."
)
NOT_WHOLE = (
    "{name} must be a whole number from 0 to {most}, and {asked} is none. Leave it out to see where the picture opens."
)
HEIGHT = "The height of the cell is {asked}; it must be a whole number of pixels from {least} to {most}, such as 640."
SITE = "This run has no attention called {asked}. It must be one of: {allowed}."
FRAME = "{title}: attention by Headlight"  # what a screen reader says of the frame
NO_OTHER_TEXT = (
    "This cell shows one of several texts, or a source with a target, and the box is for one text alone. Run core.trace with "
    "the other texts, and show that run."
)
FAILED = "That did not work: the kernel's log says why. The last picture is still there."
WIDGET = {
    "text": "Text",
    "run": "Run",
    "running": "running …",
    "kept": "The last picture is still there.",
}

languages.of(__name__)
