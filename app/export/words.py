"""Words that every export may carry."""

from app import languages

EXPORT_HIDDEN_CELL = "hidden"
ALT = "{sentence} {note}"
NO_SCRIPT = "This page draws itself with the script that is in it. Allow scripts to see it."

languages.of(__name__)
