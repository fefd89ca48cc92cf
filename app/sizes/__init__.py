"""The shared setup of the rooms that ask how large something is."""
