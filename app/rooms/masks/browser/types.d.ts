// Records that the files of this room share.

import type { StageHeader } from "../../../kit/browser/types.js";

/** A piece of a sentence, and the class that sets it off; "" is plain text. */
export type Piece = [text: string, tone: string];

export interface SiteHeader {
  id: "encoder" | "decoder" | "cross";
  layers: number;
  heads: number;
  kv_heads: number;
  query: "source" | "target";
  key: "source" | "target";
  n_query: number;
  n_key: number;
  opening?: [layer: number, head: number, query: number];
  causal?: boolean; // of a text that is shown by row: whether the future is hidden
  sent: number[];
  offset: number;
  masks: number[];
  mask_of: number[][];
}

/** Rows of one head that are at hand, [row, key] from the first of them on. */
export interface Rows {
  first: number;
  count: number;
  scores: Float32Array; // before any mask
  mask: Uint8Array | null; // why cells are hidden; null where none is
}

/** The look that the walk forbids. */
export interface Look {
  site: string;
  layer: number;
  head: number;
  query: number;
  key: number;
}

export interface Outcome {
  words: [id: number, label: string, chance: number][];
  asked: number[];
  newcomers?: [id: number, chance: number][]; // words that lead under a mask, and their chance under the model's own
  losses: number[];
  loss: number | null;
  numbers: [name: string, value: number][]; // of a regression
}

export interface AboutRun {
  caption: string;
  snippet: string;
  name: string;
  looks?: string; // the code of one head, whose place is filled in
}

export interface Header extends StageHeader {
  title: string;
  model: string;
  kind: string;
  writes: boolean;
  d: number;
  divided: boolean;
  biased: boolean;
  labels: { source: string[]; target: string[] | null };
  turns?: [at: number, role: string][]; // of a conversation: where each turn begins, and whose it is
  sites: SiteHeader[];
  outcome: Outcome;
  classes: "one" | "several" | "numbers" | null; // of a classifier: how its answer is read
  lines: number;
  text: string;
  link: Record<string, string>;
  about: AboutRun;
  partner: string;
  isByRow: boolean; // a long text, whose scores are asked for some rows at a time
  beginnings: Record<string, string>; // of such a text, by how many tokens they have at most
  look: Look | null;
}

/** What a fact is said of. */
export interface Said {
  pieces: Piece[];
}

export interface Files {
  caption: string;
  snippet: string;
  name: string;
  tables: [label: string, name: string, columns: string[], rows: (string | number)[][]][];
  arrays?: Record<string, import("../../../kit/browser/npz.js").NumpyArray>;
}

/** One of the five labs: builds its part of the room, draws what is chosen. */
export interface Lab {
  /** The heads that can be found by their numbers. */
  readonly headGrid: { layers: number; heads: number } | null;
  draw(): void;
  files(): Files;
  table(box: HTMLElement): void;
  foot(): { ok: string[]; rest: string[]; legend: string[] };
  /** Keys: a row up or down, a head back or on. */
  arrow?(down: number, right: number): boolean;
  /** How the link says a head, where it says it otherwise than the room. */
  head?(layer: number, head: number): Record<string, string>;
  status?(): Record<string, unknown>;
  /** The key that a map of all heads is about, of the locked row. */
  looked?(query: number): number | undefined;
}
