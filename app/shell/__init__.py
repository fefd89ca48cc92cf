"""What surrounds a room: the top line, the request box, waiting, errors, and the page's own script and style."""

from app.shell import refused as refused  # with it, all that the shell's browser files import is there
