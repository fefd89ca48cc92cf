// What travels to What if, and what its browser files hand to each other.
import type { Chosen } from "../../../kit/browser/types.js";

export interface Palette
  extends Record<"background" | "panel" | "ink" | "mute" | "line" | "query" | "key" | "proof" | "hatch", string> {
  ramp: string[];
  ahead: string[];
}

/** How a classifier answers: how many classes it has, how its numbers are read, and the token that they are read from. */
export interface Classes {
  n: number;
  kind: "one" | "several" | "numbers";
  at: number | null;
}

/** A kind of attention whose heads are swept. */
export interface Place {
  id: string;
  stack: string;
  site: string;
  title: string;
  layers: number;
  heads: number;
  kv_heads: number;
  query: "source" | "target";
  key: "source" | "target";
}

/** What the room gets from its script (view.py). */
export interface Header {
  cover?: import("../../../kit/browser/types.js").Covered | null;
  key: string;
  title: string;
  kind: string;
  writes: boolean;
  classes: Classes | null; // of a classifier
  source: string[];
  target: string[] | null;
  turns: [at: number, role: string][]; // of a conversation: where each turn begins, and whose it is
  places: Place[];
  cannot: Record<string, string>;
  models: [id: string, title: string][];
  steps: [id: string, step: string][];
  device: string;
  dtype: string;
  link: Record<string, string>;
  parts: boolean; // whether each part can be taken from another sentence
  pair: string; // the other sentence that this example opens with
  long: boolean; // of the looks, those of one query alone are cut
  chosen: Chosen;
}

/** A row of a sweep: a head [site, layer, head] or a look [query, key]. */
export type Row = [site: string, layer: number, head: number] | [query: number, key: number];

/** Some rows of a sweep, or its end (routes.py). */
export interface Part {
  refused?: string;
  snippet?: string;
  caption?: string;
  name?: string;
  table?: [label: string, name: string, text: string];
  first: number;
  of: number;
  rows: Row[];
  position: number | null;
  watched: number[];
  labels: Record<string, string>;
  single: number[];
  only: number | null;
  probability?: number[][];
  probability_before?: number[];
  kl?: number[];
  ids?: number[][];
  ids_before?: number[];
  likeliest?: number[][];
  likeliest_before?: number[];
  distance?: number[];
  turned?: number[][];
  written?: number[];
}

/** A word: its number, label, and probabilities before and after. */
export type Word = [id: number, label: string, before: number | null, after: number | null];

export interface Numbers2d {
  at: number;
  shape: [rows: number, columns: number];
}

/** The changed run beside the plain one (routes.py). */
export interface Side {
  refused?: string;
  words: Word[];
  likeliest: [Word, Word] | null;
  shared: boolean;
  kl: number | null;
  losses: [number, number] | null;
  distance: number | null;
  turned: number[] | null;
  entropy: [number, number] | null;
  comparable: boolean;
  moved: [site: string, layer: number, head: number, moved: number, query: number, key: number, largest: number][];
  ranked: [site: string, layer: number, head: number, moved: number][]; // the first of all heads that look elsewhere
  elsewhere: number;
  maps: {
    site: string;
    layer: number;
    head: number;
    before: Numbers2d | null;
    after: Numbers2d | null;
    there: [layer: number, head: number] | null; // the head of another model's map
  }[];
  too_long: boolean;
  source: string[];
  target: string[] | null;
  changed: number[]; // of the text whose next words are predicted
  source_changed: number[];
  source_columns: [before: number | null, after: number | null][];
  columns: [before: number | null, after: number | null][]; // which tokens stand over each other; [] where the text is the same
  model: string;
  pick: string | null;
  edits: [text: string, said: string][];
  linked: boolean; // whether a link stands in place of the other sentence
  there: Record<string, string>; // what a link to the changed run says
  caption: string;
  snippet: string;
  tables: [label: string, name: string, text: string][];
  body: ArrayBuffer;
}

/** What is on the screen now, for its parts to draw. */
export interface Shown {
  data: Header;
  values: Record<string, string>;
  swept: import("./numbers.js").Swept;
  side: Side | null;
  fresh: boolean; // whether `side` is what was asked for last
  pick: Row | null;
  at: number; // which row of the sweep the pick is; -1 where it is none
  place: Place; // the kind of attention that is swept
  palette: Palette;
  type: Type;
}

/** Another sentence that is offered: two words change places, and another word is likeliest after the text. */
export type Offer = [word: string, other: string, text: string, next: string, p: number];

/** The page's type. */
export interface Type {
  unit: number; // 1 is 16 pixels
  family: string;
}
