// Records that the browser files of attention share, and what its parts read of the view and tell it.

import type { colours } from "../../kit/browser/colours.js";
import type { Fetcher } from "../../kit/browser/fetcher.js";
import type { Setting } from "../../kit/browser/types.js";
import type { Chosen } from "./chosen.js";
import type { Facts } from "./facts.js";
import type { Lens } from "./lens.js";
import type { HeadMap } from "./map.js";
import type { Metric } from "./metrics.js";
import type { Overview } from "./overview.js";
import type { Readings } from "./readings.js";
import type { Shading } from "./shading.js";
import type { Site } from "./site.js";
import type { Tip } from "../../kit/browser/tip.js";
import type { TokenLines } from "./tokenlines.js";

export type { Lens, Site, Metric };
export type Colours = ReturnType<typeof colours>;
export type Side = "source" | "target";
export type Axis = "query" | "key";
export type Member = [layer: number, head: number];
export type Kind = "head" | "mean" | "max" | "rollout" | "value";
/** Queries q0 to q1 and keys k0 to k1, ends excluded. */
export type Area = [q0: number, q1: number, k0: number, k1: number];

/** One kind of attention as the server tells of it (app/attention/picture.py); offsets are bytes of the message's body. */
export interface SiteHeader {
  id: "encoder" | "decoder" | "cross";
  records: number[];
  heads: number;
  kv_heads: number;
  query: Side;
  key: Side;
  n_query: number;
  n_key: number;
  how?: string;
  rows?: number;
  columns?: number;
  thumbnails_at?: number;
  has_small?: boolean; // whether the small pictures are in the body
  weights_at?: number;
  entropy_at?: number;
  masks_at?: number[];
  mask_of?: number[][];
  norms_at?: number;
}

/** The header of a picture: a run without its numbers. */
export interface Picture {
  key: string;
  kind: string;
  tokens: { source: string[]; target: string[] | null };
  words: Record<Side, [start: number, stop: number, label: string][]>;
  joins: Record<Side, number[]>;
  turns?: Record<Side, [number, string][]>; // of a conversation: where each turn begins, and whose it is
  ids: Record<string, number[]>;
  reasons: string[];
  learnt?: number | null;
  brought?: boolean; // made of weights alone: what else a run has is not known
  writes?: boolean;
  roles?: import("./roles.js").Role[][];
  /** The token that heads rest on, by kind of attention. */
  sinks?: Record<string, import("../../kit/browser/sink.js").Sink>;
  look?: import("./findings.js").Finding;
  asks?: boolean; // a question, to a model that reads conversations
  openings?: Record<string, [layer: number, head: number, query: number, key: number]>;
  device: string;
  dtype: string;
  whole: boolean;
  follows: boolean;
  sites: SiteHeader[];
  ms?: number | null;
  size: number;
  link: Record<string, string>;
  chosen: import("../../kit/browser/types.js").Chosen;
  first?: [path: string, params: Record<string, string | number>, at: number, size: number][];
  going?: boolean;
  offline?: boolean;
  cover?: import("../../kit/browser/types.js").Covered | null;
  axes?: Record<string, AxisOf>;
  metrics?: Record<string, import("./metrics.js").Answer>;
}

/** Which head is on the screen, and which query is locked. */
export type Place = { site: string; layer: number; head: number; query: number | null };

/** How a picture is shown (app/attention/params.py), and whether the page is projected. */
export interface Options {
  show: "map" | "lines" | "beside" | "table";
  scale: "auto" | "linear" | "log" | "row";
  bounds: [low: number, high: number] | null;
  kind: Kind;
  members: Member[];
  hide: number[];
  pin: number | null;
  words: boolean;
  area: Area | null;
  keep: number;
  widths: "words" | "equal";
  whole: boolean;
  metric: "auto" | "roles" | "maps" | Metric;
  sort: boolean;
  by: "auto" | import("./headmap.js").By;
  candidate: string;
  low: "auto" | "head" | "looks" | "maps";
  predict: boolean;
  spotlight: boolean;
  projector: boolean;
}

/** Tokens of one side, or the words that they are put together to; of[token] is its word. */
export interface AxisOf {
  labels: string[];
  tokens: number[] | number[][];
  of: Int32Array | null;
}

/** A row, a column or a tile as it arrives. */
export interface Numbers {
  header: {
    rows: number;
    columns: number;
    exact: boolean;
    how: string;
    entropy: number | null;
    left: any;
    top?: number;
    most?: number;
  };
  weights: Float32Array;
  masked: Uint8Array | null;
}

/** Numbers of a whole map, [query, key]. */
export interface Whole {
  values: Float32Array;
  masked: Uint8Array | null;
  left: Float32Array | null;
}

/** What one query looks at; left: the share of the row that is not hidden. */
export interface Row {
  weights: Float32Array;
  masked: Uint8Array | null;
  bits: number | null;
  left: number | null;
}

/** The same with its keys, most weight first, and the rank of each. */
export interface Ranking extends Row {
  order: number[];
  rank: Map<number, number>;
}

export interface Column {
  weights: Float32Array;
  masked: Uint8Array | null;
  refused?: string;
}

export interface Summary {
  ranking: Ranking | null;
  order: number[];
  weight(k: number): number;
}

/** A part of a map, [row, column]; `how` says how it was pooled where it is not exact. */
export interface Tile {
  rows: number;
  columns: number;
  values: Float32Array;
  masked: Uint8Array | null;
  exact: boolean;
  how: string;
  area: Area;
}
export interface DrawnTile extends Tile {
  of: string;
  top: number;
}

/** Tokens that something is about; null where there is none on that side. */
export interface At {
  query: number | null;
  key: number | null;
}

export interface Palette
  extends Record<"background" | "ink" | "mute" | "line" | "panel" | "query" | "key" | "hatch" | "proof", string> {
  ramp: string[];
  ahead: string[];
  heads: string[];
  /** The colours along the ramp, and whether the page is light or dark. */
  tones: Colours;
  scheme: "light" | "dark";
}

/**
 * Where a map has its rows and columns, in CSS pixels of its box: xs[k] is the left edge of column k (mirrored: the right one).
 * isHeader: its keys stand upright above it, in type of `header` pixels.
 */
export interface Geometry {
  left: number;
  top: number;
  cell: number;
  font: number;
  xs: Float64Array;
  isHeader: boolean;
  /** Some rows and some columns: columns[c] is a key, or −n for n keys that are folded away. */
  isFold: boolean;
  columns?: number[];
  rows?: [q0: number, q1: number];
  isMirrored: boolean;
  /** What comes after each word is said right of the words that it sees. */
  isStair?: boolean;
  header: number;
  width: number;
}

/** Sizes of the layout, in CSS pixels. */
export interface Room {
  em: number;
  headsWidth: number;
  /** Of the column with the next word and all heads. */
  sideHeight: number;
  headsHeight: number;
  mapWidth: number;
  mapHeight: number;
  height: number;
  /** The page's typeface: asking the browser again would have it compute every style first. */
  family: string;
  narrow: boolean;
  /** Whether the text is too long for all of its map to be read. */
  isLong: boolean;
}

/** What a part of the view may add to the others. */
export interface ViewPart {
  tools?(): Node[];
  settings?(): Setting[];
}

/** The parts that are drawn, for what is saved of them. */
export interface Drawn {
  map: HeadMap;
  overview: Overview;
  lines: TokenLines;
  facts: Facts;
}

/** What numbers are computed from. */
export interface Shown {
  picture: Picture;
  site: Site;
  place: Place;
  options: Options;
  remote: Fetcher;
}

/** What the parts of a picture know of it, and how they change it. A part that needs more is given that when it is made. */
export interface View extends Shown {
  sites: Site[];
  lens(): Lens;
  numbers: Readings;
  chosen: Chosen;
  shading: Shading;
  palette: Palette;
  room: Room;
  tip: Tip;
  invalidate(...what: string[]): void;
  announce(text: string): void;
}
