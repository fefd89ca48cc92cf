// Records that the browser files of Positions share.

import type { StageHeader } from "../../../kit/browser/types.js";

export interface Side {
  labels: string[];
  turns: [at: number, role: string][]; // of a conversation: where each turn begins, and whose it is
  fixed: number[]; // special tokens and padding, which stay where they are
}

export interface Site {
  id: "encoder" | "decoder" | "cross";
  stack: string;
  records: number[];
  heads: number;
  kv_heads: number;
  query: "source" | "target";
  key: "source" | "target";
  n_query: number;
  n_key: number;
}

/** What Python sends (app/rooms/positions/message.py). */
export interface Header extends StageHeader {
  model: string;
  kind: "encoder" | "decoder" | "encoder-decoder";
  position: string;
  n_ctx: number;
  d_model: number;
  stacks: string[];
  tokens: Record<"source" | "target", Side | null>;
  sites: Site[];
  opening: { layer: number; head: number };
  line: number;
  windowed: boolean[] | null;
  homes: Record<string, [model: string, text: string]>;
  ordered: Record<string, boolean>; // by stack: whether its mask tells order as well
  about: { name: string; caption: string; load: string; trace: string; text: string };
}

/** What another order of the words did. */
export interface Change {
  other: string;
  edit: string;
  again: string;
  rows: number;
  of: number;
  reach: number;
  places: number[];
  moved: Float32Array; // [layer, head]
  before: Float32Array | null; // [layer, head, distance]
  after: Float32Array | null;
  weights: Uint16Array | null; // [layer, head, query, key]
  weightsNow: Uint16Array | null;
}

/** Two words that have changed places. */
export interface Swapped {
  before: string; // keys of both runs
  after: string;
  pair: [number, number];
  pairs: [number, number][];
  guesses: [label: string, before: number, after: number][];
  edit: string;
  again: string;
  condition: string;
  rows: number;
  read: number;
  of: number;
  weights: number;
  apart: number;
  after_both: number;
  word: Follower;
  place: Follower;
  along: Float32Array; // [layer, head]
  still: Float32Array;
  back: Float32Array; // [2, layer, head]
}
export interface Follower {
  layer: number;
  head: number;
  query: number;
  key: number;
  by: number;
}

export interface Clock {
  q: number[];
  k: number[];
  frequencies: number[];
  scale: number;
  factor: number;
  places: [query: number, key: number];
  score: number;
  masked: boolean;
}

export interface Stack {
  stack: string;
  kind: string;
  n_ctx: number;
  parameters: number;
  layout: string | null;
  closest: [i: number, j: number, distance: number] | null;
  compared: number;
  alike: number[] | null;
  too_long: string | null;
  periods: number[] | null;
  slopes: number[] | null;
  bias: number[][] | null;
  buckets: number[] | null;
}

export interface Known {
  stacks: Stack[];
  rules: {
    slopes: number[];
    bias: number[][];
    buckets: number[];
    wide: number[];
    decoder: number[];
    exact: number;
    far: number;
  };
  beside: { added: number; beside: number; width: number };
}

export interface Rows {
  first: number;
  rows: number;
  columns: number;
  values: Float32Array; // [position, feature]
}

/** Numbers of one head's map, pooled where it is large. */
export interface Weights {
  rows: number;
  columns: number;
  at(row: number, column: number): number; // 0 to 1
}

export interface Table {
  title: string;
  name: string;
  columns: string[];
  rows: (string | number)[][];
}

/** A part of a sentence: text, or text that is set off with a class. */
export type Said = Node[];

/** What each lab does for the room. */
export interface Lab {
  /** Whether what it shows is of a head, which can be found by its numbers. */
  readonly hasHeads: boolean;
  /** The head that is shown, and by which numbers of this lab all heads are told apart. */
  readonly shownHead?: {
    site: Site;
    layer: number;
    head: number;
    query?: number;
    key?: number;
    measures?: import("../../../kit/browser/chooser.js").Measure[];
  };
  draw(): void;
  fact(): Said;
  foot(): { proof: string; facts: string };
  tables(): Table[];
  snippet(): string;
  tools(): HTMLElement[];
  status(): Record<string, unknown>;
  arrow(down: number, right: number): boolean;
  /** The lab's findings, which one is shown ("": none of them), and those that this text or model lacks. */
  readonly ownFindings?: string[];
  readonly shownFinding?: string;
  readonly isAsTrained?: boolean; // true while it shows the unchanged model, whose attention sink is then reported
  readonly isWaiting?: boolean; // whether what it lacks is not known yet
  lacks?(id: string): boolean;
  take?(id: string): void;
  /** Everything on the screen that no one has chosen. */
  held?(): Record<string, string>;
}

/** What the labs know of the room. */
export interface Shown {
  scheme: "light" | "dark";
  labPlace: HTMLElement;
  header: Header;
  labLeaves: AbortController; // aborted when another lab takes the place of this one, or the room is left
  unit: number; // CSS pixels for one of the design's
  width: number; // of the lab, in CSS pixels
  room: number; // the height that a projected page has for it, in CSS pixels; else Infinity
  below(node: Element): number; // of that, what is left under a part that is drawn already
  narrow: boolean;
  isProjected: boolean;
  palette: Record<string, any> & { ramp: string[]; ahead: string[]; mute: string };
  ramp: Ramp;
  ahead: Ramp;
  chooser: import("../../../kit/browser/chooser.js").HeadChooser | null;
  sink: import("../../../kit/browser/sink.js").SinkLine;
  value(name: string): string;
  number(name: string, otherwise?: number): number;
  choose(changes: Record<string, string>): void;
  invalidate(what: "answer"): void;
  ask<Answer>(
    path: string,
    params: Record<string, string | number>,
    read: (bytes: Uint8Array) => Answer,
    of?: string,
  ): (Answer & { refused?: string }) | null;
  button(parent: HTMLElement | null, text: string, act: () => void, help?: string): HTMLButtonElement;
  announce(text: string): void;
  tip: import("../../../kit/browser/tip.js").Tip;
  site(): Site;
  side(name: "source" | "target"): Side;
}
export interface Ramp {
  rgb: number[][];
  css: string[];
  ink: string[];
  packed: Uint32Array;
}
