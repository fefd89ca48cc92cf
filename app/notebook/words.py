"""Sentences of a notebook's page and cell."""

ROOM = (
    "There is no room called {room} for a notebook. It must be one of: {allowed}. Leave it out, and Explore is shown."
)
PLACE = (
    "There is no {name} {asked} in this run: {name} goes from 0 to {most}. Choose one of these, or leave {name} out, "
    "and the picture opens where there is most to see."
)
NOT_WHOLE = (
    "{name} must be a whole number from 0 to {most}, and {asked} is none. Leave it out to see where the picture opens."
)
