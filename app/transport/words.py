"""Sentences of the routes."""

from app import languages

# routes
NO_MODULE = "There is no such file."
TILE_UNKNOWN_RUN = "The server no longer has this run. Reload the page and run the sentence again."
TILE_MISSING = "{name} is missing. A tile needs {names}."
TILE_NOT_A_NUMBER = "{name} must be a whole number; it is “{value}”."
TILE_OUT_OF_RANGE = "{name} ({value}) must be from {low} to {high}."

FAILED = "The server failed at this answer, and it is not your fault. Try it again, or ask for something else."

# the operator's settings
NO_ORIGIN = (
    "{name} names the sites that may show Headlight in a frame: origins such as https://course.example.edu, with spaces "
    "between them. “{value}” is not one."
)
NO_LIMIT = (
    "{name} changes what one visitor may ask for: parts such as seconds=60/0.5 (60 at once, 0.5 more a second) with spaces between "
    "them, of {names}; or off. “{value}” is not one."
)
FEW_FILES = (
    "The system lets this server have {files:,} files open; {visitors:,} visitors need up to {needed:,} (ulimit -n)."
)
NO_MOST = "{name} is how many visitors fit at a time, a whole number from 1; it is “{value}”."
SHORT_PASSWORD = "{name} must have at least {n} characters."

# requests that are never answered
OTHER_HOST = (
    "Headlight does not answer under this name. Its operator can allow the name with STREAMLIT_SERVER_ALLOWED_HOSTS "
    "in the server's environment."
)

# a private host
PASSWORD = "Password"
ENTER = "Enter"
NEEDS_PASSWORD = "This host asks for a password. Reload the page to type it."
WRONG_PASSWORD = "This is not the password."
WAIT_TO_GUESS = "There were too many wrong passwords from your network. Try again in {seconds} seconds."

# limits
WAIT = "This is more than one visitor can have at a time. Try again in {seconds} seconds."
WAIT_ONE = "This is more than one visitor can have at a time. Try again in a second."

NO_NAME = (
    "Your browser keeps no cookie of this page, so nothing can be kept for you alone. Allow cookies for this page, or open it "
    "in a tab of its own, and reload it."
)

# no one new is let in
WAITING_TITLE = "Headlight"
FULL = "All places are taken: {n} people are here now."
CLOSING = "The server is restarting. It will be back in a moment."
NO_FILES = "Files cannot be uploaded here."
TRIES_AGAIN = "This page tries again every {seconds} seconds."

languages.of(__name__)
