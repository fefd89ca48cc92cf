// Records of Train.
import type { StageHeader } from "../../../kit/browser/types.js";

export type Palette = Record<"ink" | "mute" | "line" | "query" | "key" | "proof" | "background" | "hatch", string> &
  Record<"ramp" | "heads", string[]>;

export interface Header extends StageHeader {
  tasks: Record<string, { vocabulary: string[]; n_ctx: number }>;
  twins: Record<string, { fixed: boolean; heads: number }>;
  parameters: Record<string, number>; // of each task's model
  steps: number;
  batch: number;
  finished: Record<string, string[]>; // runs that are kept: of each task its twins
  weighed: Record<string, string[]>; // those of them whose last weights are there
  version: string;
  date: string;
}

/** [step, loss or null where it is no number, share of the batch right] */
export type Point = [step: number, loss: number | null, accuracy: number];

export interface FrameFacts {
  step: number;
  given: number[];
  own: number[];
  whole: number;
  gradients: number[];
  loss?: number | null; // of the unseen problems
  finds?: number[][]; // of each head, over unseen problems: on the source of the next symbol, the place before, the place ahead
  back?: number[][];
  ahead?: number[][];
}

/** A step at which a run turns, by a rule of core/learn/recorded_runs.py. */
export interface Moment {
  kind: "start" | "plateau" | "finds" | "right" | "back" | "done";
  step: number;
  since: number;
  before: number;
  after: number;
  layer: number;
  head: number;
}

/** One seed of a kept run: its loss by step, and [step, share of unseen symbols right, problems whole]. */
export interface Seed {
  losses: (number | null)[];
  frames: [step: number, share: number, whole: number][];
}

/** Steps in which every seed of the run as it is (0) or of its twin (1) is ahead. */
export interface Lead {
  side: 0 | 1;
  first: number;
  last: number;
}

/** One line of news of a training. */
export interface News {
  state: "waiting" | "running" | "paused" | "ended" | "failed";
  place: number;
  seconds: number;
  why: string;
  points: Point[];
  frames: FrameFacts[];
  moments?: Moment[];
}

/** An example as one frame sees it; maps [layer][head] are query × key bytes, 255 for a weight of 1. */
export interface Look {
  step: number;
  p: number[];
  best: string[];
  own: string;
  finds: number[][];
  ahead: number[][];
  shape: [layers: number, heads: number, queries: number, keys: number];
  maps: Uint8Array;
}

export interface Seen {
  tokens: string[];
  answer: string;
  first: number;
  unseen: boolean;
  model: string; // the title under which Explore knows the run
  edits: string | null; // what Explore is to change so that it runs as it learnt; null where no edit does that
}

/** The drawn part of a run that is followed, or of one that is kept. */
export interface Run {
  spec: Record<string, string>;
  points: Point[];
  frames: FrameFacts[];
  looks: Map<number, Look>;
  seen: Seen | null;
  state: News["state"] | "lost" | "stopped";
  heard: boolean;
  place: number;
  seconds: number;
  why: string;
  refused: string; // why the example cannot be looked at
  moments: Moment[];
  seeds: Seed[]; // of a kept run, its own first; none where its own is the only one
  leads: Lead[]; // over the run as it is
  shown: string; // the example that the looks are of: the last one that could be looked at
}

/** Losses of guesses without a model on the part of a text that is kept aside. */
export interface TextBegun {
  blind: number;
  counts: number;
  pairs: number;
  prompt: string;
  signs: number;
  unit: "letters" | "pieces";
}

/** One step of a visitor's text; map in base64, maps as bytes. */
export interface TextFrame {
  step: number;
  seconds: number;
  loss: number;
  back: number[][];
  repeat: number[][];
  tokens: string[];
  sample: string;
  shape: [layers: number, heads: number, queries: number, keys: number];
  map: string;
  maps: Uint8Array;
}

export interface TextNews {
  state: "waiting" | "running" | "stopped" | "ended" | "failed";
  place: number;
  seconds: number;
  begun: TextBegun | null;
  points: [step: number, loss: number, seconds: number][];
  frames: TextFrame[];
  why: string;
  model: string;
}
