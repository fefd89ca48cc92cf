"""Sentences of the routes."""

# routes
NO_MODULE = "There is no such file."
TILE_UNKNOWN_RUN = "The server no longer has this run. Reload the page and run the sentence again."
TILE_MISSING = "{name} is missing. A tile needs {names}."
TILE_NOT_A_NUMBER = "{name} must be a whole number; it is “{value}”."
TILE_OUT_OF_RANGE = "{name} ({value}) must be from {low} to {high}."
