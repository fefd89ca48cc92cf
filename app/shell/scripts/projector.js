// Projector mode of the page: P enters and leaves it anywhere but where a visitor writes, Escape leaves. A room may know more keys.
// B and the full stop, which a clicker sends, make a projected page black; so does nothing else, and every key or click brings it back.

import { projectionBar } from "../../kit/browser/projection.js";
import { isFree } from "../../kit/browser/shortcuts.js";
import { PROJECTED as words } from "./constants.js";

const { dataset } = document.documentElement;
const isProjected = () => window.headlight.settings.get("projector") !== null;

addEventListener(
  "keydown",
  (e) => {
    if (!isProjected() || !isFree(e) || e.repeat) return;
    const isBlank = dataset.blank !== undefined;
    if (!isBlank && !["b", "."].includes(e.key.toLowerCase())) return;
    if (isBlank) delete dataset.blank;
    else dataset.blank = "true";
    e.preventDefault();
    e.stopImmediatePropagation();
  },
  true,
); // before what any room does with a key
addEventListener("pointerdown", () => delete dataset.blank, true);
window.headlight.settings.watch(() => delete dataset.blank);
addEventListener("keydown", (e) => {
  if (!isFree(e) || e.repeat) return;
  const isOn = isProjected();
  if (e.key.toLowerCase() !== "p" && !(isOn && e.key === "Escape")) return;
  e.preventDefault();
  window.headlight.settings.set("projector", isOn ? null : "true");
});

addEventListener("DOMContentLoaded", () => projectionBar(words));
