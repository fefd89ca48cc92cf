// Records of a diagram, as app/rooms/shapes/diagram.py and view.py write them.

import type { StageHeader } from "../../../kit/browser/types.js";

export interface Palette extends Record<"background" | "ink" | "mute" | "line" | "query" | "key" | "hatch", string> {
  ramp: string[];
  ahead: string[];
}

/** A change of the line that makes a tensor, and what PyTorch says to it. */
export interface Try {
  code: string;
  verdict: "right" | "error" | "wrong";
  error?: string | null;
  shape: number[];
  why?: string | null;
}

/** One tensor, or two or three of the same shape. */
export interface Row {
  id: string;
  kind: string;
  title: string;
  equation: string;
  code: string;
  means: string;
  flops: number;
  count: number;
  view: boolean;
  lane: number;
  joins: boolean;
  reads: string[];
  source: string | null;
  fused: boolean;
  axes: string[];
  shape: number[];
  dtype: string;
  bytes: number;
  tries?: Try[];
}

/** Consecutive rows: the embedding, one layer (which happens `times` times), what comes after. */
export interface Part {
  stack: string;
  section: string;
  times: number;
  rows: Row[];
}

export interface Diagram extends StageHeader {
  title: string;
  caption: string;
  snippet: string;
  run: string | null;
  link: Record<string, string>;
  heads: number;
  kv_heads: number;
  tokens?: { source: string[]; target: string[] }; // of a run
  stacks: string[];
  layers: Record<string, number>;
  batch: number;
  lengths: [source: number, target: number];
  parts: Part[];
  parameters: number;
  weights: number;
  flops: number;
  vocab: number;
  table: [
    stack: string,
    times: number,
    title: string,
    name: string,
    op: string,
    axes: string[],
    shape: number[],
    dtype: string,
    bytes: number,
    flops: number,
    view: boolean,
  ][];
}

/** What is chosen, as the URL has it. */
export interface Place {
  tensor: string;
  at: number;
  unfold: string[];
  as: "diagram" | "table";
  break: string;
  with_head: number;
}

/** A place on the rail: a row, or what is folded. */
export interface Item {
  node: HTMLElement;
  lane: number;
  joins: boolean;
  fold?: boolean;
  chosen?: boolean;
}

/** What a run has of a tensor's values, [row, column]; null where a cell is masked. */
export interface Values {
  rows: number;
  columns: number;
  all_rows: number;
  all_columns: number;
  low: number;
  high: number;
  values: (number | null)[];
}

/** The view, as its parts know it. */
export interface View {
  root: HTMLElement;
  header: Diagram;
  place: Place;
  palette: Palette;
  byId: Map<string, { part: Part; row: Row }>;
  readonly chosen: { part: Part; row: Row };
  chooser: import("../../../kit/browser/chooser.js").HeadChooser | null;
  choosePlace(change: Partial<Place>, focus?: boolean): void;
  sizes(row: Row): Record<string, number>;
  layerOf(row: Row): number;
}
