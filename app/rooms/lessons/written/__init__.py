"""A lesson that a teacher wrote as a text file: read and checked with line numbers, and decided by the runs that it asks for."""
