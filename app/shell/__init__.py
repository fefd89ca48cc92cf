"""What surrounds a room: the top line, the request box, waiting, errors, and the page's own script and style."""
