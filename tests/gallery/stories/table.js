// What one query looks at, as a table.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { Table } from "../../../app/attention/browser/table.js";

const keys = ["[CLS]", "The", "animal", "it", "[SEP]"];
const weights = [0.1016, 0.02, 0.6768, 0.0644, 0.1372];

/** @type {import("../story.js").Story} */
export default {
  title: "a row of the map as a table",
  style: STYLE,
  width: "28rem",
  mount(root) {
    const lens = { keys, queries: keys, kind: "head", title: "", note: "", unit: "weight", queryOf: (/** @type {number} */ q) => q, firstKey: (/** @type {number} */ k) => k };
    const view = { place: { layer: 3, head: 1 }, chosen: { query: 3 }, lens: () => lens };
    const order = [2, 4, 0, 3, 1];
    new Table(/** @type {any} */ (view), root).draw(/** @type {any} */ ({ order, weight: (/** @type {number} */ k) => weights[k], ranking: null }));
  },
};
