"""Components that run in the browser: a folder each, with their Python, JavaScript and style."""
