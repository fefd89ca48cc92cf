// Records that the modules of Step through share.

import type { StageHeader } from "../../../kit/browser/types.js";

export interface Palette {
  background: string;
  panel: string;
  ink: string;
  mute: string;
  line: string;
  query: string;
  key: string;
  proof: string;
  ramp: string[];
  ahead: string[];
  hatch: string;
  [axis: string]: string | string[];
}

/** One station of the line, or layers that are folded away. */
export interface Step {
  id: string;
  kind: string;
  lane: "stream" | "branch" | "add";
  value: string;
  axes: [name: string, size: number][];
  fold?: undefined;
}
export interface Folded {
  fold: [first: number, last: number];
  same: boolean; // their steps are those of the layer that is shown
}

/** One attention of the layer. */
export interface Site {
  site: string;
  record: number;
  labels: string[];
  padding: number[];
  scale: number;
  temperature: number;
  group: number;
  head: number | null;
}

/** A norm: which rows of its input are here. */
export interface Norm {
  first: number;
  of: number;
  eps: number;
  mean: boolean;
}

/** What a visitor changed in one head. */
export interface Edit {
  divide: number | null;
  hide: number[];
}

/** One row of attention, step by step; entries are of keys. */
export interface Attended {
  q: Float32Array;
  raw: number[];
  seen: boolean[];
  reason: number[];
  bias: number[] | null;
  terms: [string, ArrayLike<number>][];
  divisor: number;
  scaled: number[];
  masked: number[];
  largest: number;
  exp: number[];
  total: number;
  weights: number[];
  z: Float64Array;
}

/** One term of a sum as it is shown: its label, its two factors, its product. */
export interface Term {
  label: string;
  kind?: string;
  a?: number;
  b?: number;
  product: number;
}

/** Where a number came from. */
export interface From {
  title: (Node | string)[] | string;
  right?: string;
  name?: string;
  total?: number;
  terms?: Term[];
  rest?: number;
  nRest?: number;
  bias?: number | null;
  edited?: number;
  digits?: number;
  factorDigits?: number;
  pieces?: Piece[];
  note?: string;
}
/** A part of a line that is no sum of products. */
export type Piece = { op: string } | { label: string; value: string; kind?: string; strong?: boolean; under?: string };

/** The terms of a number as the server works them out. */
export interface ServerTerms {
  value: number;
  indices: number[];
  factors: [number, number][];
  products: number[];
  rest: number;
  n_rest: number;
  bias: number;
  edited: number;
  refused?: string;
}

/** A table of what a picture shows. */
export interface Numbers {
  columns: string[];
  rows: (string | number)[][];
}

export type Cell = [row: number, column: number];

/** A picture of one step: its numbers, and where each came from. */
export interface Picture {
  rows: number;
  columns: number;
  opens: Cell;
  show(cell: Cell, pointed: boolean): void;
  from(cell: Cell): From;
  numbers(): Numbers;
  at?(moment: number): void; // the picture in the middle of its motion: 0 is the step before, 1 as it stays
  again?(on: import("./shown.js").Shown): boolean; // shows another key or head in place; false where it has to be made again
}

/** The guess after one addition. */
export interface Guess {
  layer: number | null;
  sublayer: string;
  word: string;
  p: number;
  final: number;
  rank: number;
}
export interface Guesses {
  guesses: Guess[];
  words: [word: string, p: number][];
  refused?: string;
}

/** The answer of a classifier's head. */
export interface Classes {
  names: string[];
  kind: "one" | "several" | "numbers";
  logits: number[];
  chances: number[] | null; // of a regression there are none
  reads: "first" | "last" | "mean" | "late" | "end";
  refused?: string;
}

/** What Python sends: the run, if there is one, and what files say of themselves. */
export interface Header extends StageHeader {
  run: Run | null;
  about: { caption: string; name: string; code: string[] };
}

/** What the browser knows of a run before it asks for a walk. */
export interface Run {
  key: string;
  model: string;
  text: string;
  layers: Record<string, number>;
  heads: number;
  kv_heads: number;
  tokens: Record<string, { labels: string[]; joins: number[]; turns: [number, string][]; ids: number[] }>;
  experts: Record<string, number[]>; // stack -> its layers whose MLP is a mixture of experts
  shared_expert: boolean; // that every token takes as well
  records: [stack: string, layer: number, site: string][];
  edits: string[];
  ms: number;
  device: string;
  dtype: string;
  torch: string;
}
export interface Small {
  one: Record<string, number[][]>;
  batch: { q: number[][][]; k: number[][][]; scores: number[][][]; error: string; wrong_by: number };
  reshape: { qkv: number[][][]; error: string; strides: number[] };
}

/** Sizes of the page in pixels: of its type, of all below the tokens, and of the line alone. */
export interface Sizes {
  rem: number;
  main: [width: number, height: number];
  line: [width: number, height: number];
}

/** A number of a page of small numbers: which matrix, and where in it. */
export type Spot = [name: string, row: number, column: number];
export type Rows = [name: string, values: number[][]][];

/** One page of small numbers. */
export interface SmallPage {
  x?: number[][] | null;
  draw(): void;
  opens(): Spot;
  from(spot: Spot): From;
  numbers(): Rows;
  change?(row: number, column: number, by: number): void;
}
