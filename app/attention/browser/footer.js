// The line below: how the run went, what has been proved about this layer, and the scale of the colours.

import { WORDS as words } from "./constants.js";
import { add, button, choice, el, fill, number, scientific, worded } from "../../kit/browser/dom.js";
import { json } from "../../kit/browser/messages.js";
import { pointed } from "../../kit/browser/language.js";

const MOST = 1e6; // as far as colours may go
const LONG = 10_000; // ms from which on a pass is said in seconds

// NaN for what is no plain number; a comma is a point in half of the world
/** @param {string} text */
const numberOf = (text) => (/^[0-9]+([.,][0-9]+)?$/.test(text) ? Number(text.replace(",", ".")) : NaN);

export class Footer {
  /** @type {HTMLInputElement[]} The fields of the options for both ends of the colours */
  ends = [];

  /** @param {import("./types.js").View} view @param {HTMLElement} box @param {HTMLElement} acts what can be done with the picture @param {() => void} shapes opens the table of the run */
  constructor(view, box, acts, shapes) {
    this.view = view;
    this.box = box;
    box.replaceChildren();
    this.run = box.appendChild(button("", "ran", shapes));
    this.proofs = add(this.box, "span", "proofs"); // after it: nothing moves when they come, and a click may be under way
    this.legend = add(this.box, "span", "legend");
    box.append(acts);
    this.low = el("span");
    this.high = el("span");
    this.middle = el("span");
    this.scale = el("b");
    this.legend.append(this.scale, this.low, el("i", "ramp half"), this.middle, el("i", "ramp half second"), this.high);
  }

  build() {
    this.tellRun();
    this.drawLegend();
  }

  // How long the text is, and how long the pass took
  tellRun() {
    const { picture } = this.view;
    const { source, target } = picture.tokens;
    const ms = Number(picture.ms);
    const took =
      ms < LONG
        ? fill(words.run_took, { ms: Math.round(ms) })
        : fill(words.run_took_long, { s: pointed((ms / 1000).toFixed(1)) });
    const time = picture.brought ? words.run_brought : picture.ms === undefined ? words.run_goes_on : took;
    const parts = { n: number(source.length), time };
    const ran = target ? fill(words.run_pair, { ...parts, m: number(target.length) }) : fill(words.run, parts);
    const on = fill(words.run_on, { device: picture.device, dtype: picture.dtype });
    const text = ran + on;
    this.run.disabled = Boolean(picture.offline); // no server is there to compute the table
    if (this.run.textContent === text) return;
    this.run.replaceChildren(ran, el("i", "", on)); // a laptop's one line leaves the second part to where one points at it
    this.run.title = `${text}\n${words.run_shapes}`;
    this.run.setAttribute("aria-label", `${text}. ${words.run_shapes}`);
  }

  // What it adds to the options of the picture
  settings() {
    /** @type {import("../../kit/browser/types.js").Choice<string>[]} */
    const scales = [
      ["auto", words.scale_auto],
      ["linear", words.linear],
      ["log", words.log],
      ["row", words.per_row],
    ];
    const node = choice(words.colour, scales, this.view.options.scale, (scale, e) =>
      this.view.chosen.set("scale", scale, e),
    );
    return [
      { label: words.colour, node, help: words.colour_help },
      { label: words.bounds, node: this.bounds(), help: words.bounds_help },
    ];
  }

  // Two fields for the values at the ends of the colours; empty where the scale has them
  bounds() {
    const { bounds } = this.view.options;
    const box = el("span", "bounds");
    const said = el("span", "mute");
    said.setAttribute("role", "status");
    this.ends = [words.bounds_low, words.bounds_high].map((label, i) => {
      const field = el("input", "");
      Object.assign(field, {
        type: "text",
        inputMode: "decimal",
        autocomplete: "off",
        placeholder: words.bounds_auto,
        size: 6,
        value: bounds ? pointed(String(bounds[i])) : "",
      });
      this.markEnd(field);
      field.setAttribute("aria-label", label);
      field.addEventListener("change", (e) =>
        this.bound(
          this.ends.map(({ value }) => value.trim()),
          said,
          e,
        ),
      );
      return field;
    });
    box.append(this.ends[0], el("span", "mute", words.bounds_to), this.ends[1], said);
    return box;
  }

  // What is written in both; one alone leaves the other end as the scale has it.
  /** @param {string[]} texts @param {HTMLElement} said @param {Event} event */
  bound([from, to], said, event) {
    const low = from ? numberOf(from) : 0;
    const high = to ? numberOf(to) : Number(this.view.lens().top.toPrecision(6));
    const isRange = low >= 0 && low < high && high <= MOST;
    said.textContent =
      isRange || (!from && !to)
        ? ""
        : fill(words.bounds_wrong, { low: from || "0", high: to || pointed(String(high)) });
    if (!from && !to) this.view.chosen.set("bounds", null, event);
    else if (isRange) this.view.chosen.set("bounds", [low, high], event);
  }

  drawLegend() {
    const { low, middle, high } = this.view.shading.ticks();
    this.low.textContent = low;
    this.middle.textContent = middle;
    this.high.textContent = high;
    this.legend.hidden = this.view.options.show === "beside"; // which has one scale for all of its maps
    this.box.dataset.scale = this.view.shading.scale;
    this.scale.textContent = words.scale_said[this.view.shading.scale];
    for (const field of this.ends) this.markEnd(field);
    this.legend.title = worded(words.units, this.view.lens().unit);
  }

  // Where each row has colours of its own, their ends cannot be chosen.
  /** @param {HTMLInputElement} field */
  markEnd(field) {
    field.disabled = this.view.shading.scale === "row";
    field.title = field.disabled ? words.bounds_row : "";
  }

  draw() {
    this.drawLegend();
    const { site, place, picture, remote } = this.view;
    const { query } = this.view.chosen;
    // Computed when a visitor looks: for every layer of every sentence it would cost more than the sentence itself.
    const params = { record: site.records[place.layer] };
    const receipt = remote.get("proof", params, json);
    if (!receipt && this.proofs.dataset.run === picture.key) return; // those of the layer before, for a moment
    this.proofs.dataset.run = picture.key;
    this.proofs.replaceChildren();
    if (!receipt) return;
    if (receipt.refused) return void this.proofs.append(el("span", "mute", receipt.refused));
    /** @param {boolean} holds @param {string} text @param {string} [help] @param {string} [more] which a laptop's one line has room for beside a short scale */
    const proof = (holds, text, help, more = "") => {
      const item = el("span", holds ? "holds" : "fails", `${holds ? "✓" : "✗"} ${text}`);
      if (more) item.append(el("i", "", more));
      if (help) item.title = help;
      this.proofs.append(item);
    };
    const sums = receipt.sums < 1e-4;
    const off = { error: scientific(receipt.sums) };
    proof(
      sums,
      sums ? (this.view.lens().kind === "head" ? words.sums : words.sums_each) : fill(words.sums_off, off),
      fill(words.sums_help, off),
    );
    const hides = picture.whole
      ? site.masked(place.layer, place.head)
      : query !== null && this.view.numbers.row(query)?.masked;
    if (hides) proof(receipt.masked === 0, words.masked_zero);
    if (receipt.fused === null && picture.brought) return; // nothing else is there to hold weights against
    if (receipt.fused === null) this.proofs.append(el("span", "mute", words.fused_none));
    else {
      const error = scientific(receipt.fused);
      proof(receipt.fused < 1e-3, words.fused, fill(words.fused_help, { error }), fill(words.fused_by, { error }));
    }
  }
}
