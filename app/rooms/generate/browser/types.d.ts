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
  turns?: [number, string][]; // of a conversation: where each turn begins, and whose it is
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
  cache: number;
  ms: number | null;
  told: Map<number, { prob: number; rank: number }>;
}

export interface Settings {
  temperature: number;
  topK: number;
  topP: number;
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
  first: number; // of the columns that are in sight
  inSight: Column[];
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
  label: (id: number) => string;
  nameAt: (position: number) => string; // of a token that was read
  sink: number | null; // the place of the token that most heads rest on, which "looks at" leaves out; null where there is none
}

export interface Acts {
  focus(at: number): void;
  take(at: number, id: number): void;
  go(path: number[], focus: number | null): void;
}

/** The room, as asks.js sees it. */
export interface View {
  values: Record<string, string>;
  path: number[];
  by: { layer: number; head: number } | null;
  sentence: string;
  isLast: boolean;
  invalidate(what: Stale): void;
  say(text: string): void;
  choose(changes: Record<string, string>): void;
  put(changes: Record<string, string>): void;
  move(by: number): void;
}
