// A walk as it arrived: its arrays by name, the vector of each step, and a row of attention with what a visitor changed.

import { unpack } from "../../../kit/browser/messages.js";
import { ACTIVATIONS, attended } from "./compute.js";

/** @typedef {import("./types.js").Site} Site */
/** @typedef {import("./types.js").Step} Step */
const NONE = { divide: null, hide: [] };
const TERMS = ["c2p", "p2c"]; // of distance, where a score has more than one (DeBERTa)

// float16 as a number
/** @param {number} h */
function half(h) {
  const [sign, exponent, fraction] = [h >> 15 ? -1 : 1, (h >> 10) & 31, h & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : fraction * 2 ** -24);
}

export class Walk {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    const [header, body] = unpack(bytes);
    this.header = header;
    this.body = body;
    /** @type {Site[]} */
    this.sites = header.sites;
    /** @type {Record<string, import("./types.js").Norm>} */
    this.norms = header.norms;
    /** @type {Step[]} */
    this.steps = header.steps.filter((/** @type {any} */ step) => !step.fold);
    /** @type {Map<string, any>} */
    this.known = new Map();
  }

  /** @param {string} name */
  has(name) {
    return name in this.header.arrays;
  }

  // A named array, flat
  /** @param {string} name @returns {Float32Array} */
  array(name) {
    if (!this.known.has(name)) {
      const [at, shape, kind] = this.header.arrays[name];
      const size = shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
      const read = {
        f4: () => new Float32Array(this.body, at, size),
        f2: () => Float32Array.from(new Uint16Array(this.body, at, size), half),
        u1: () => Float32Array.from(new Uint8Array(this.body, at, size)),
      };
      this.known.set(name, read[/** @type {"f4"} */ (kind)]());
    }
    return this.known.get(name);
  }

  /** @param {string} name @returns {number[]} */
  shape(name) {
    return this.header.arrays[name][1];
  }

  // Row i of an array of two axes, or row (i, j) of one of three
  /** @param {string} name @param {number[]} index */
  row(name, ...index) {
    const shape = this.shape(name);
    const width = shape[shape.length - 1];
    const at = index.reduce((sum, i, axis) => sum * shape[axis] + i, 0);
    return this.array(name).subarray(at * width, (at + 1) * width);
  }

  /** @param {string} id */
  step(id) {
    return this.steps.find((step) => step.id === id);
  }

  // The attention that a step belongs to
  /** @param {Step} step @returns {Site} */
  site(step) {
    const name = step.id.startsWith("cross-") ? "cross_attn" : "attn";
    return /** @type {Site} */ (this.sites.find((site) => site.site === name));
  }

  // Whether the keys and values of a head are here
  /** @param {number} head */
  holds(head) {
    return this.sites.every((site) => site.head === null || site.head === head);
  }

  // Where a head's rows stand in arrays that have one for each head, and in those of shared keys
  /** @param {Site} site @param {number} head @returns {[own: number, shared: number]} */
  places(site, head) {
    return site.head === null ? [head, Math.floor(head / site.group)] : [0, 0];
  }

  // The query as it meets the keys
  /** @param {Site} site @param {number} head */
  query(site, head) {
    const turned = `${site.site}.turned`;
    return this.row(this.has(turned) ? turned : `${site.site}.q`, head);
  }

  // The keys before they are turned
  /** @param {Site} site */
  keysName(site) {
    return this.has(`${site.site}.k`) ? `${site.site}.k` : `${site.site}.keys`;
  }

  /** @param {Site} site @param {number} head @param {import("./types.js").Edit} [edit] */
  attended(site, head, edit = NONE) {
    const id = `${site.site}/${head}/${edit.divide}/${edit.hide}`;
    if (!this.known.has(id)) {
      const [own, shared] = this.places(site, head);
      const reasons = `${site.site}.reasons`;
      this.known.set(
        id,
        attended(
          {
            q: this.query(site, head),
            raw: this.row(`${site.site}.raw`, own),
            v: (key) => this.row(`${site.site}.v`, shared, key),
            reason: this.row(reasons, this.shape(reasons)[0] > 1 ? head : 0),
            bias: this.has(`${site.site}.bias`) ? this.row(`${site.site}.bias`, own) : null,
            terms: TERMS.filter((term) => this.has(`${site.site}.${term}`)).map((term) => [
              term,
              this.row(`${site.site}.${term}`, own),
            ]),
            scale: site.scale,
            temperature: site.temperature,
          },
          edit,
        ),
      );
      if (this.known.size > 600)
        for (const key of this.known.keys())
          if (key.includes("/")) {
            this.known.delete(key);
            break;
          }
    }
    return /** @type {import("./types.js").Attended} */ (this.known.get(id));
  }

  // What the activation makes of the followed token's neurons
  /** @param {string} name */
  activated(name) {
    const before = this.array(this.has("mlp.gate") ? "mlp.gate" : "mlp.up");
    const found = Float32Array.from(before, ACTIVATIONS[name]);
    if (!this.has("mlp.gate")) return found;
    const up = this.array("mlp.up");
    return found.map((x, i) => x * up[i]);
  }

  // The followed token's vector at a step: a station's numbers
  /** @param {Step} step @param {number} head @param {import("./types.js").Edit} edit @returns {ArrayLike<number>} */
  vector(step, head, edit) {
    const { kind, value } = step;
    if (["qkv", "turn"].includes(kind)) return this.row(value, head);
    if (["scores", "scale", "mask", "softmax", "z"].includes(kind)) {
      const found = this.attended(this.site(step), head, edit);
      return { scores: found.raw, scale: found.scaled, mask: found.masked, softmax: found.weights, z: found.z }[
        /** @type {"z"} */ (kind)
      ];
    }
    return value ? this.array(value) : [];
  }

  /** @param {Step} step */
  size(step) {
    const last = step.axes[step.axes.length - 1][1];
    if (step.kind === "token") return this.header.d_model;
    return step.kind === "heads" ? this.header.heads * this.header.d_head : last;
  }
}
