// The sentence above a chart, with projector mode and the files of the chart.

import Headline from "../../../app/kit/browser/headline.js";
import { pack } from "../../../app/kit/browser/messages.js";
import { mount } from "../../../app/kit/browser/mount.js";
import { STYLE } from "../../../app/kit/browser/words.js";

const about = { title: "Memory", alt: "", caption: "", snippet: "", name: "memory", tables: [] };

/** @type {import("../story.js").Story} */
export default {
  title: "the sentence above a chart",
  style: STYLE,
  mount(root) {
    const sentence = "A text of 4,096 tokens needs 1.6 GiB for its keys and values, twice as much as the weights.";
    const header = { key: "story", view: "story", sentence, at: {}, scale: 1, about, chosen: { values: {}, stamp: 0, reported: 0 } };
    const data = pack(header, new Uint8Array());
    mount(root, Headline, data);
  },
};
