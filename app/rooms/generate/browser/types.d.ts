// Records of Generate's browser files.
import type { Stale } from "../../../kit/browser/stage.js";
import type { StageHeader } from "../../../kit/browser/types.js";

export interface Palette {
  mute: string;
  ramp: string[];
}

/** The message that Python sends with every script. */
export interface Header extends StageHeader {
  title: string;
  vocab: number;
  layers: number;
  heads: number;
  kv_heads: number;
  source: string[] | null;
  opens: number; // words that are written where a link says none
  turns?: [number, string][]; // of a conversation: where each turn begins, and whose it is
  marks?: [number, string][]; // tokens that only say whose turn begins, or "" that one is over
  ran: string;
  link: Record<string, string>; // to the text and its model
  about: { caption: string; snippet: string; name: string };
}

/** One token that was read. */
export interface Node {
  position: number;
  id: number;
  ids: Int32Array;
  logits: Float32Array;
  rest: Float32Array;
  rows: Uint16Array;
  keys: number;
  whole: boolean;
  head: [number, number] | null;
  entropy: number; // in bits
  cache: number;
  ms: number | null;
  told: Map<number, { prob: number; rank: number }>;
}

export interface Settings {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
}
export interface Chances {
  probs: Float64Array;
  rest: number;
  left: number | null;
}

/** One column: the token that was read, and the one that came. */
export interface Column {
  node: Node;
  given: boolean; // whether the token that came was given
  read: string;
  take: number | null;
  at: number; // how many tokens of the path were read here; below 0 in the text
  own: Chances;
  shown: Chances;
  known: { prob: number; rank: number } | null; // of the token that came
}

export type Candidate = [row: number, id: number, logProb: number, kept: boolean, ends: boolean];
export interface BeamStep {
  index: number;
  candidates: Candidate[];
  finished: [ids: number[], logProb: number, score: number, stopped: string][];
}
export interface Beam {
  row: number;
  id: number;
  logProb: number;
  ends: boolean;
  path: number[];
}
export interface Grown {
  kept: Beam[];
  dropped: Beam[];
}

/** One head's look, and what it adds to the logit of the word that came. */
export interface Look {
  layer: number;
  head: number;
  key: number;
  weight: number;
  adds: number;
}
/** The heads and looks that wrote the token after a position. */
export interface Wrote {
  position: number;
  token: number;
  heads: { adds: number; most: Look }[];
  looks: Look[];
}
export interface LensColumn {
  position: number;
  token: number;
  ids: number[];
  probs: number[];
  own: number[];
  ranks: number[];
}

export type Page = "columns" | "layers" | "cache" | "beams";

/** Where everything of the picture stands. */
export interface Plan {
  width: number;
  height: number;
  strip: number; // of the given text
  names: string[]; // above each column
  nth: string[]; // of tokens with the same name, which of them it is; "" for the only one
  low: number; // of the columns that are in sight
  high: number;
  begins: number; // the first column that is not folded into the strip
  places: Map<number, { x: number; width: number; word: number }>;
  open: boolean; // whether one column is open
  narrow: boolean;
  left: { x: number; width: number; n: number } | null; // columns that are folded
  right: { x: number; width: number; n: number } | null;
  end: number;
  long: boolean;
  arcs: number; // where each part begins
  text: number;
  stated: boolean; // whether surprise has a row; where it has none the fact says it
  lines: { path: number[]; at: number; end: number; short: boolean }[]; // end: of its words; short: with too little room for a fork
  line: (row: number) => number;
  stats: number;
  top: number;
  bottom: number;
  anchor: (position: number) => { x: number; isShown: boolean };
}

export interface LensRow {
  layer: number | null;
  ids: number[];
  labels: string[];
  probs: number[];
  rank: number;
}
export interface Cost {
  n: number;
  with_seconds: number;
  without_seconds: number;
  checked: number;
  same: boolean;
  difference: number;
}
export interface Bytes {
  token: number;
  mha: number;
  mqa: number;
  memory: number;
}

/** The state that the parts of the room draw. */
export interface Scene {
  header: Header;
  columns: Column[];
  focus: number; // the column with the ring, among all
  how: string;
  settings: Settings;
  seed: number;
  by: { layer: number; head: number } | null;
  cached: boolean;
  nBeams: number;
  grown: Grown[];
  winner: number[];
  path: number[];
  others: number[][];
  bytes: Bytes;
  losses: number[];
  prompt: number[];
  cost: Cost | null;
  timing: boolean;
  said: string; // by the server, or about what is being written
  lens: LensRow[] | null;
  page: Page;
  playing: boolean; // whether words come
  unfolded: boolean; // whether the given text has columns
  own: boolean; // whether columns are the model's own, before the settings
  hides: boolean; // what comes is to be said first
  candidate: number; // of the open column, which arrows have chosen; -1 for none
  wrote: Wrote | null; // what wrote the word of the open column
  look: Look | null; // that is shown
  looks: Look[];
  layers: Map<number, LensColumn> | null; // by the position that was read
  loop: Map<number, number>; // tokens that are written twice, and how strongly each copy is marked
  hand: boolean; // whether the word of the open column was taken by hand
  copy: { n: number; before: number } | null; // the open column's word repeats one: tokens that do, and what it had the first time
  beams: { best: number; n: number; greedy: number; same: boolean; shared: number; lines: number } | null; // the search beside greedy
  marks: Map<number, string>; // tokens of a conversation's form, by their place
  names: string[]; // of all tokens of the text, pieces of words with a hyphen
  counted: string[]; // the same, with signs for what no number tells apart
  given: string[]; // the same of those that were given, as they are
  named: (node: Node, id: number) => string; // of a token that would come after one that was read
  flush: (ids: number[]) => string; // tokens as a line of text
  scoreOf: (path: number[]) => string;
  takenElsewhere: (column: Column) => Set<number>;
  label: (id: number) => string;
  nameAt: (position: number) => string; // of a token that was read
  sink: number | null; // the place of the token that most heads rest on, which "looks at" leaves out; null where there is none
}

export interface Acts {
  focus(at: number): void;
  take(at: number, id: number): void;
  go(path: number[], focus: number | null): void;
  drop(path: number[]): void;
  unfold(): void;
  reveal(): void;
}

/** The room, as asks.js sees it. */
export interface View {
  values: Record<string, string>;
  path: number[];
  by: { layer: number; head: number } | null;
  sentence: string;
  isLast: boolean;
  isShown: boolean;
  opened(): Promise<void>;
  forked(): void;
  invalidate(what: Stale): void;
  say(text: string): void;
  choose(changes: Record<string, string>, kind?: "choice" | "rule"): void;
  put(changes: Record<string, string>, kind: "choice" | "rule"): void;
  move(by: number, kind?: "choice" | "rule"): void;
}
