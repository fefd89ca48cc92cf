// The sweep, left: the change by every head or look on a map, all of them sorted, and one sentence about them.

import { WORDS as words } from "./constants.js";
import { add, button, choice, el, fill, quotation, quoted, same, selectBox, worded } from "../../../kit/browser/dom.js";
import { headName, labelsOf, rowName, together } from "./lead.js";
import { HeatmapView } from "../../../kit/browser/picture/heatmap.js";
import { draw } from "../../../kit/browser/picture/svg.js";
import { finer, ranked, stepped } from "./numbers.js";
import { drawGrid, drawOrder } from "./sweepmap.js";
import { angle } from "../../../kit/browser/turns.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Shown} Shown */
const HEADINGS = { heads: words.heading_heads, looks: words.heading_looks, patch: words.heading_patch };

export class Left {
  /** @type {Shown} */
  shown;
  /** @type {ReturnType<typeof drawOrder> | undefined} */
  barsAt;
  /** @type {(number | undefined)[][]} */
  known = [];
  /** @type {number[]} Row numbers, the strongest first */
  ranks = [];
  /** @type {number[]} Row numbers as the bars stand */
  along = [];
  /** @type {[number, number] | null} */
  at = null;
  /** @type {[number, number]} */
  size = [0, 0];
  /** @type {unknown[]} What the map and the order are of; of which place, they only mark */
  of = [];
  switched = ""; // what the switches are of

  // take(row): the visitor takes one of the rows
  /** @param {HTMLElement} box @param {(changes: Record<string, string>) => void} choose @param {(row: Row) => void} take */
  constructor(box, choose, take) {
    this.box = box;
    this.choose = choose;
    this.take = take;
    const line = add(box, "div", "line");
    this.heading = add(line, "h2");
    this.switches = add(line, "span", "switches");
    this.map = add(box, "div", "grid");
    this.map.tabIndex = 0;
    this.map.setAttribute("role", "group");
    this.cells = new HeatmapView(this.map);
    this.legend = add(box, "div", "legend mute");
    this.order = add(box, "div", "order");
    const steps = add(this.order, "div", "line");
    this.sorted = add(steps, "b");
    const buttons = add(steps, "span", "steps");
    for (const [by, text] of /** @type {[number, string][]} */ ([
      [-1, words.stronger],
      [1, words.weaker],
    ])) {
      buttons.append(button(text, "quiet", () => this.next(by)));
    }
    this.bars = draw(this.order, "svg", { "aria-hidden": "true" });
    this.few = add(box, "p", "few");
    this.map.addEventListener("click", (e) => this.pointed(e));
    this.bars.addEventListener("click", (e) => this.barred(e));
  }

  /** @param {Shown} shown @param {number} width of this part @param {number} height of the map at most */
  draw(shown, width, height) {
    this.shown = shown;
    const { data, values, swept, pick, at, palette, type } = shown;
    const of = [
      data.key,
      swept,
      swept.part,
      swept.refused,
      values.sweep,
      values.site,
      values.group,
      values.edits,
      palette,
      width,
      height,
      type.unit,
      type.family,
    ];
    this.drawSwitches();
    if (!same(of, this.of)) this.build(width, height);
    this.of = of;
    this.at = this.placeOf(pick);
    this.mark();
    if (swept.done) this.barsAt?.choose(this.along.indexOf(at));
  }

  // The frame around the cell that is chosen
  mark() {
    const [row, column] = this.at ?? [];
    const frame = { row, column, colour: this.shown.palette.query, width: 2.5, radius: 3 };
    this.cells.frame(this.at ? [frame] : []);
  }

  // Where a place stands on the map; null where it does not
  /** @type {(pick: Row | null) => [number, number] | null} */
  placeOf = () => null;

  /** @param {number} width @param {number} height */
  build(width, height) {
    const { data, values, swept, palette, type } = this.shown;
    const looks = values.sweep === "looks";
    const size = together(data, values, this.shown.place.id);
    this.heading.textContent =
      (size > 1 ? words.heading_groups : worded(HEADINGS, values.sweep)) +
      (values.edits ? ` (${words.heading_with})` : "");
    const turns = swept.turns;
    const most = turns ? Math.max(...swept.changes.map((x) => Math.abs(x ?? 0)), 1e-6) : 1;
    /** @type {import("./sweepmap.js").Grid} */
    let grid;
    if (looks) {
      const [queries, keys] = labelsOf(data, values.site);
      const only = swept.part?.only ?? null;
      const lines = only === null ? queries.map((_, i) => i) : [only];
      const known = new Map(swept.rows.map((row, i) => [`${row[0]}.${row[1]}`, swept.changes[i]]));
      grid = {
        rows: lines.map((i) => queries[i]),
        columns: keys,
        values: lines.map((i) => keys.map((_, j) => known.get(`${i}.${j}`))),
        turns,
        tokens: true,
        most,
      };
      this.placeOf = (pick) =>
        pick?.length === 2 && lines.includes(pick[0]) ? [lines.indexOf(pick[0]), pick[1]] : null;
      this.places = (i, j) => [lines[i], j];
    } else {
      const { id, layers, heads } = this.shown.place;
      const known = new Map(swept.rows.map((row, i) => [row.join("."), swept.changes[i]]));
      const numbers = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => String(i));
      const firsts = numbers(heads / size).map((group) => Number(group) * size);
      grid = {
        rows: firsts.map((head) => (size > 1 ? `${head}–${head + size - 1}` : String(head))),
        columns: numbers(layers),
        values: firsts.map((h) => numbers(layers).map((l) => known.get(`${id}.${l}.${h}`))),
        turns,
        tokens: false,
        most,
      };
      this.placeOf = (pick) => (pick?.length === 3 && pick[0] === id ? [Math.floor(pick[2] / size), pick[1]] : null);
      this.places = (i, j) => [id, j, i * size];
    }
    this.size = [grid.rows.length, grid.columns.length];
    this.known = grid.values;
    drawGrid(this.cells, grid, palette, width, looks ? Math.max(0.34 * innerHeight, height) : height, type);
    this.map.setAttribute("aria-label", looks ? words.map_label_looks : words.map_label);
    const word = swept.part?.watched.length ? swept.labels[swept.part.watched[0]] : "";
    this.legend.classList.toggle("unknown", !turns && !word); // whose change it is comes with the first numbers
    this.legend.replaceChildren(
      el("span", "", turns ? words.legend_turn : fill(words.legend, { word: quotation(word) })),
    );
    const ramp = add(this.legend, "span", turns ? "ramp plain" : "ramp");
    ramp.append(
      turns ? "0" : words.falls_by,
      el("i", turns ? "more" : "less"),
      turns ? words.most : "0",
      ...(turns ? [] : [el("i", "more"), words.rises_by]),
    );
    const order = ranked(swept.changes);
    this.ranks = order;
    this.order.hidden = !swept.done;
    this.few.hidden = !swept.done;
    if (!swept.done) return;
    const sorted = turns ? order : [...order].sort((a, b) => (swept.changes[a] ?? 0) - (swept.changes[b] ?? 0));
    this.along = sorted;
    this.sorted.textContent = fill(words.sorted, { n: swept.of });
    this.barsAt = drawOrder(
      this.bars,
      {
        values: sorted.map((i) => swept.changes[i] ?? 0),
        names: sorted.slice(0, 3).map((i) => rowName(data, values, swept.rows[i])),
        turns,
      },
      palette,
      width,
      type,
    );
    const few = size > 1 ? [words.few_groups_turn, words.few_groups] : [words.few_turn, words.few_heads];
    let said = fill(turns ? few[0] : looks ? words.few_looks : few[1], { n: swept.few, heads: swept.of });
    if (turns && looks) said = fill(words.few_turn_looks, { n: swept.few, heads: swept.of });
    if (values.sweep === "heads" && size === 1 && swept.written.length) {
      const loud = swept.loudest;
      said += fill(turns ? words.writes_most_turn : words.writes_most, {
        head: rowName(data, values, swept.rows[loud]),
        d: turns ? angle(swept.changes[loud] ?? 0) : finer(swept.changes[loud] ?? 0),
        rank: order.indexOf(loud) + 1,
        heads: swept.of,
      });
    }
    const { heads, kv_heads: kv } = this.shown.place;
    if (values.sweep === "heads" && kv < heads)
      said += size > 1 ? fill(words.together, { n: size }) : fill(words.shared, { heads, kv });
    if (looks && swept.part?.single.length) said += words.never_cut;
    if (looks && swept.part && swept.part.only !== null)
      said += fill(words.one_query, { query: quoted(labelsOf(data, values.site)[0][swept.part.only] ?? "") });
    this.few.textContent = said;
  }

  /** @type {(i: number, j: number) => Row} */
  places = () => ["", 0, 0];

  drawSwitches() {
    const { data, values, place } = this.shown;
    const of = JSON.stringify([
      data.key,
      ...["sweep", "by", "group", "where", "only", "site", "layer", "head"].map((name) =>
        values.sweep !== "looks" && ["layer", "head"].includes(name) ? "" : values[name],
      ),
    ]);
    if (of === this.switched) return;
    this.switched = of;
    /** @type {HTMLElement[]} */
    const made = [];
    made.push(
      choice(
        words.what,
        [
          ["heads", words.heads],
          ["looks", words.looks],
        ],
        values.sweep,
        (sweep) => this.choose({ sweep, pick: "on" }),
      ),
    );
    if (values.sweep === "heads")
      made.push(
        choice(
          words.by,
          [
            ["zero", words.by_zero, words.by_zero_help],
            ["mean", words.by_mean, words.by_mean_help],
          ],
          values.by,
          (by) => this.choose({ by }),
        ),
      );
    if (values.sweep === "heads" && place.kv_heads < place.heads)
      made.push(
        choice(
          words.group,
          [
            ["off", words.group_off],
            ["on", words.group_on, words.group_on_help],
          ],
          values.group,
          (group) => this.choose({ group, pick: "on", moved: "" }),
        ),
      );
    if (values.sweep === "patch")
      made.push(
        choice(
          words.where,
          [
            ["all", words.where_all],
            ["last", words.where_last],
          ],
          values.where,
          (where) => this.choose({ where }),
        ),
      );
    if (values.sweep === "looks") {
      const head =
        values.layer !== "" && values.head !== ""
          ? headName(data, place.id, Number(values.layer), Number(values.head))
          : words.some_head;
      if (values.only === "one") made.push(this.pickOne("layer", place.layers), this.pickOne("head", place.heads));
      made.push(
        choice(
          words.cut_where,
          [
            ["all", words.only_all],
            ["one", fill(words.only_one, { head })],
          ],
          values.only,
          (only) => this.choose(only === "one" && values.layer === "" ? { only, layer: "0", head: "0" } : { only }),
        ),
      );
    }
    if (data.places.length > 1)
      made.push(
        choice(
          words.site,
          data.places.map(
            ({ id, title }) => /** @type {import("../../../kit/browser/types.js").Choice<string>} */ ([id, title]),
          ),
          place.id,
          (site) => this.choose({ site, layer: "", head: "", query: "", key: "" }),
        ),
      );
    this.switches.replaceChildren(...made);
  }

  // A box that says in which layer, or which head, a look is cut
  /** @param {"layer" | "head"} name @param {number} n */
  pickOne(name, n) {
    const options = Array.from({ length: n }, (_, i) => {
      return /** @type {[string, string]} */ ([String(i), `${words[`letter_${name}`]}${i}`]);
    });
    const chosen = this.shown.values[name] || "0";
    return selectBox(words[`one_${name}`], options, chosen, (value) => this.choose({ [name]: value }));
  }

  // The next in order of strength
  /** @param {number} by */
  next(by) {
    const { swept, pick, at } = this.shown;
    const to = pick ? this.ranks.indexOf(at) + by : 0;
    const row = swept.rows[this.ranks[Math.max(0, Math.min(this.ranks.length - 1, to))]];
    if (row) this.take(row);
  }

  /** @param {MouseEvent} event */
  pointed(event) {
    const cell = this.cells.at(event);
    if (cell && this.known[cell[0]]?.[cell[1]] !== undefined) this.take(this.places(...cell));
  }

  /** @param {MouseEvent} event */
  barred(event) {
    const at = this.barsAt?.at(event.clientX - this.bars.getBoundingClientRect().left) ?? -1;
    const row = at >= 0 ? this.shown.swept.rows[this.along[at]] : undefined;
    if (row) this.take(row);
  }

  /** To the next cell that has a number; false where none lies there. @param {[down: number, right: number]} by */
  move(by) {
    let at = this.at ?? /** @type {[number, number]} */ ([0, 0]);
    for (let i = 0; i < Math.max(...this.size); i++) {
      const to = stepped(at, by, this.size);
      if (to[0] === at[0] && to[1] === at[1]) return false;
      at = to;
      if (this.known[at[0]]?.[at[1]] === undefined) continue;
      this.take(this.places(...at));
      return true;
    }
    return false;
  }
}
