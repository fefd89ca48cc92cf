// Sent by Python of a question and its answer (app/rooms/memory/component.py): all words and numbers come ready to be read.

import type { AboutFiles, StageHeader } from "../../../kit/browser/types.js";

/** Asked of Python: texts, by the names of what they are for. */
export type Asked = Record<string, string>;

export interface Piece {
  text: string;
  strong?: boolean;
  quiet?: boolean;
}
export interface Verdict {
  fits: boolean;
  lead: string;
  rest: Piece[];
  plain: string;
}
export interface Choice {
  title: string;
  beside: string;
  set: Asked;
  first?: boolean;
}
export interface Option {
  value: string;
  text: string;
  title?: string;
}
export type Item =
  | { kind: "text"; text: string }
  | { kind: "select"; name: string; label: string; value: string; options: Option[]; plain?: string }
  | { kind: "row"; name: string; label: string; value: string; options: Option[] }
  | { kind: "number"; name: string; label: string; value: string; help: string }
  | {
      kind: "stepper";
      name: string;
      label: string;
      value: string;
      less: string | null;
      more: string | null;
      n: number;
    }
  | { kind: "slider"; name: string; label: string; values: string[]; at: number }
  | { kind: "button"; name: string; label: string; value: string; pressed: boolean };
export type Kind<Name extends Item["kind"]> = Extract<Item, { kind: Name }>;

export type Cell = string | { text: string; good?: boolean; bad?: boolean };
export interface Bar {
  title: string;
  share: number;
  text: string;
  fits: boolean;
  on: boolean;
  set: Asked;
}
export type Block =
  | {
      kind: "switch";
      sentence: string;
      beside: string;
      name: string;
      label: string;
      value: string;
      options: Option[];
    }
  | { kind: "lines"; rows: Piece[][] }
  | { kind: "heading"; text: string; beside: string }
  | { kind: "table"; label: string; columns: string[]; rows: Cell[][]; numeric: boolean[] }
  | { kind: "bars"; label: string; line: number; line_text: string; rows: Bar[] }
  | { kind: "stack"; label: string; rows: { title: string; text: string; share: number; id: string }[] }
  | { kind: "button"; title: string; set: Asked }
  | { kind: "wrong"; text: string };
export interface Tab {
  id: string;
  title: string;
  blocks: Block[];
}

export type PartId =
  | "weights"
  | "masters"
  | "gradients"
  | "optimizer"
  | "activations"
  | "kv_cache"
  | "transient"
  | "lost";
export interface Part {
  id: PartId;
  title: string;
  help: string;
}
/** A length, and what the question takes there: bytes and sizes are of the parts. */
export interface Place {
  n: number;
  tokens: string;
  bytes: number[];
  sizes: string[];
  all: number;
  total: string;
  verdict: Verdict;
  over: boolean;
}
/** Something that stands at a number of tokens. */
export interface Mark {
  n: number;
  text: string;
}
export interface Level {
  bytes: number;
  label: string;
}
export interface Predict {
  on: boolean;
  ask: string;
  see: string;
  again: string;
  starts: number;
  answer: string | null;
  guess: number | null;
  button: string;
}
export interface Axis {
  top: number; // bytes
  ticks: { bytes: number; text: string }[];
  more: string;
  ends: number;
  nticks: Mark[];
  name: string;
}
export interface Question {
  view: string;
  scale: number;
  about?: AboutFiles;
  answered: number;
  words: Record<string, string>;
  sentence: Item[];
  verdict: Verdict;
  offers: { label: string; list: Choice[] };
  note: string;
  examples: (Choice & { on: boolean })[];
  parts: Part[];
  places: Place[];
  at: number;
  budget: Level & { kept: Level | null };
  axis: Axis;
  crossing: Mark | null;
  taught: Mark | null;
  table: Mark | null;
  row: Item[];
  predict: Predict;
  tabs: Tab[];
  tab: string;
  foot: string[];
  table_of: { columns: string[]; rows: string[][] };
}
export type Fit = StageHeader & Question;

export interface Palette {
  background: string;
  panel: string;
  ink: string;
  mute: string;
  line: string;
  query: string;
  key: string;
  proof: string;
  hatch: string;
  held: string;
  work: string;
  over: string;
}

/** Shown of a question by the picture now. */
export interface Shown {
  data: Question;
  palette: Palette;
  place: Place; // where the orange line stands
  isHidden: boolean; // the curve waits for a prediction
  isSecret: boolean; // a lesson asks where the line is met
  guess: Mark | null;
  unit: number; // pixels of the page's type
  isDark: boolean;
  isProjected: boolean;
  isSlim: boolean;
  label: string;
}
