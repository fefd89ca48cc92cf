// What travels between a class and its server (app/classroom), and what the browser keeps of it.

/** What a teacher shows: the view, the run on it, and what a link would say beside them. */
export interface ScreenNow {
  n: number;
  view: string;
  picture: string;
  with: Record<string, string>;
  cover: string; // "", "head", "row", "code", or what a lesson covers
  said: string; // why there is no picture, as the teacher reads it; "" where there is one
}

/** A question: where will this word look, in this head? */
export interface Asked {
  q: number;
  open: boolean;
  site: string;
  layer: number;
  head: number;
  query: number;
  keys: number;
  picture: string;
  hidden: boolean;
  mine: number | null;
}

/** How many have said, and what they said where that may be seen. */
export interface Votes {
  q: number;
  said: number;
  votes: [token: number, count: number][] | null;
  others: number;
}

export interface ClassNow {
  of: number;
  door: boolean;
  away: boolean;
  left: number;
}

/** A class that this browser teaches. */
export interface Taught {
  code: string;
  key: string;
  link: string;
  address: string;
  only_here: string; // why other computers cannot open it, or ""
  square: string; // of the link, as SVG
}

/** The room as a head, computed by the server where the browser has not all weights. */
export interface Likeness {
  agree: number[][];
}

/** A round that was revealed. */
export interface Round {
  q: number;
  layer: number;
  head: number;
  query: string;
  labels: string[];
  votes: number[];
  weights: number[];
}

export interface Hear {
  event(name: string, data: any): void;
  lost(): void;
  back(): void;
  gone(): void;
}
