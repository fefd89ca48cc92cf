"""How numbers and files get to the browser: messages, routes, modules, compression."""
