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

/** Where the question of a lesson's step is; `mine` is what this phone has said in this round. */
export interface StepNow {
  q: number;
  round: number;
  stage: "ask" | "votes" | "answer";
  mine?: number;
}

/** Rows of a head: of each row a sign for every weight, and none for the row that is asked about. */
export interface Rows {
  queries: string[];
  keys: string[];
  row: number;
  rows: string[];
}

/** The question itself. What is true comes with the answer, and votes come to the teacher alone. */
export interface StepBody extends StepNow {
  step: string;
  title: string;
  question: string;
  options: string[]; // [] where a number is asked for
  unit: string;
  digits: number;
  language: string; // of its words; "" where it is the page's
  true?: string;
  right?: number[];
  value?: number;
  words?: string[];
  replies?: [answer: number, count: number, right: boolean, words: string[], mistake: string][];
  votes?: [answer: number, count: number][] | null;
  before?: [answer: number, count: number][];
  tokens?: number[]; // of options that are words of the text on the teacher's screen
  picture?: Rows | null; // for phones
  mistake?: [answer: number, count: number, name: string, words: string[]] | null; // of the commonest wrong answer, before the answer is shown
  values?: number[]; // what the run gives to each option, as shares of one
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
