"""What the tests of lessons share: the rail, its steps, and what of a room may not be read before Look."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from app.rooms.lessons import opening
from tests.app.browsing import PATIENCE, idle, once

STEPS, EVERY = opening.steps(), opening.every()
HERE = ("explore", "step", "masks", "positions", "generate", "whatif", "train", "shapes", "memory", "compute")
# Of every step: what its room says once it is uncovered, and not before.
SAYS = {
    "1.1": "0.3172",
    "1.2": "67.7",
    "1.4": "2.30 bits",
    "1.5": "K.transpose(-2, -1) [2, 4, 3]",
    "1.6": "Now no word sees what comes later",
    "1.7": "adds up to only",
    "1.8": "renamed three times",
    "2.1": "Equivariant, not invariant",
    "2.2": "slow digits to the left",
    "2.3": "256 features",
    "2.4": "Shorten the text",
    "2.5": "step 14 of 21",
    "2.6": "10.9 long and 6.24 long make 13.4",
    "2.7": "List the heads by this number",
    "3.1": "16 tokens",
    "3.2": "Layer 0",
    "3.3": "The mask makes them inert",
    "3.4": "Layer 0",
    "3.5": "mlp up 12.5 MiB",
    "3.6": "autograd keeps 52.5 MiB",
    "3.7": "512: 256.0 MiB",
    "3.8": "623 source tokens fit",
    "4.2": "83.3",
    "4.3": "Step 600: loss",
    "4.4": "step 16 of 21",
    "4.5": "66.6 % of a layer is its MLP",
    "4.6": "length 64.0",
    "5.1": "11.0 %",
    "5.2": "11.0 %",
    "5.3": "Step 600: loss",
    "5.4": "it gets 0 of 48",
    "5.5": "Step 600: loss",
    "5.6": "Read again now",
    "5.7": "2 · 12 layers",
    "5.8": "memory is the limit",
    "5.9": "O(nm)",
    "6.1": "is NaN, 0 ÷ 0",
    "6.6": "its numbers are those it has alone",
    "6.5": "List the heads by this number",
}
# Of those whose picture is covered in part alone: what stays to reason with.
STAYS = {
    "1.6": "Weights before and after the mask, 5 queries by 5 keys",
    "1.7": "Weights before and after the mask, 5 queries by 5 keys",
    "1.8": "K: 8–15",
    "2.1": "How much each head changes",
    "2.2": "digit 3",
    "2.3": "cosine 0.74",
    "2.4": "16 rows of 384 features",
    "2.6": "length 6.24",
    "3.3": "Only the words of",
    "3.5": "five terms 30.6 MiB (32.1 MB)",
    "3.6": "MLP hidden",
    "3.7": "50: 2.4 MiB",
    "3.8": "1,315 source tokens fit",
    "4.5": "63,082,496 parameters",
    "5.7": "bytes of cache",
    "5.8": "compute-bound above 153 FLOPs per byte",
    "5.9": "encoder, token by token: O(n·d²)",
    "6.1": "Weights before and after the mask, 16 queries by 16 keys",
    "6.6": "attention_mask",
}
CHART = ".js-plotly-plot .main-svg"
# Once a room is there, and not only the one before, whose parts go a moment later
DRAWN = {room: f".hl.{room}[data-painted]" for room in HERE} | {
    "explore": ".hl[data-site][data-painted]",
    "memory": CHART,
    "compute": CHART,
}
# What somebody reads, or a screen reader says: texts and names of all that is not hidden, also within components.
READ = """() => {
  const found = [];
  const walk = (node) => {
    if (node.nodeType === 3 && (node.parentElement ?? node.parentNode.host).checkVisibility({ visibilityProperty: true })) found.push(node.textContent);
    if (node.nodeType === 1 && !["STYLE", "SCRIPT"].includes(node.tagName)) {
      if (node.checkVisibility({ visibilityProperty: true }))
        for (const name of ["aria-label", "aria-description", "aria-valuetext", "title", "alt"]) found.push(node.getAttribute(name) ?? "");
      [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes].forEach(walk);
    }
  };
  walk(document.querySelector(".st-key-lessons_view"));
  return found.join(" ").replace(/\\s+/g, " ");
}"""


def rail(page: Page) -> Locator:
    return page.locator(".lessons")


def ready(page: Page, step: str, room: str = "") -> None:
    """Until a step is open, its room is drawn, what is true of it is there, and nothing of the room before is."""
    page.locator(f'.lessons[data-ready=true][data-step="{step}"]').wait_for()
    drawn = page.locator(f".st-key-lessons_view :is({DRAWN[room or EVERY[step].room]})").first
    expect(drawn).to_be_attached(timeout=PATIENCE)
    idle(page)


def read(page: Page) -> str:
    """What somebody reads of the room, or a screen reader says."""
    return page.evaluate(READ)


def is_there(page: Page, text: str) -> None:
    """Until that is to be read in the room, whose pictures are drawn a frame after its words."""
    once(page, f"(text) => ({READ})().includes(text)", arg=text)
