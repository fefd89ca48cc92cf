// Memory's first part: the curve waits for a guess.

import { STYLE } from "../../../app/rooms/memory/browser/constants.js";
import Fit from "../../../app/rooms/memory/browser/fit.js";
import { pack } from "../../../app/kit/browser/messages.js";
import { mount } from "../../../app/kit/browser/mount.js";
import { QUESTIONS } from "../data/memory.js";

/** @type {import("../story.js").Story} */
export default {
  title: "the curve waits for a guess",
  style: STYLE,
  width: "none",
  mount(root) {
    const header = { key: "memory", ...QUESTIONS.predicted(null), chosen: { values: {}, stamp: 0, reported: 0 } };
    const data = pack(header, new Uint8Array());
    mount(root, Fit, data);
  },
};
