"""One run as a picture, for every room that shows one."""
