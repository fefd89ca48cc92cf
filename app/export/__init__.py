"""What leaves the page: captions, code, files, and the page that works offline."""
