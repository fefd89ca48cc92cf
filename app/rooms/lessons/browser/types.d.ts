// Records of the lessons.

export type Kind = "point" | "drag" | "shape" | "choose" | "do";
/** Places (point), a number (drag), sizes (shape), options (choose), or what the room shows (do). */
export type Answer = number[][] | number | string[] | number[] | Record<string, string>;

/** A step of the table (app/rooms/lessons/component.py). */
export interface Step {
  title: string;
  source: string;
  room: string;
  text: string;
  question: string;
  kind: Kind;
  cover: string;
  pointed: boolean; // its picture has what can be pointed at, as an answer
  values: Record<string, string>;
  model: string;
  sentence: string;
  target: string;
  varied: Record<string, string>; // of its values, where a recap asks it again
}

/** A lesson that a teacher wrote (app/rooms/lessons/written). What it says is text, in its language. */
export interface Written {
  title: string;
  language: string;
  own: boolean; // the visitor's
  steps: Record<string, Step>;
}

/** What is true of the run on the screen (app/rooms/lessons/step.py). */
export interface Truth {
  kind: Kind;
  question: string;
  reason: string;
  footer: string;
  candidates: { label: string; place: number[]; value: number }[];
  places: string;
  best: number;
  share: boolean;
  options: string[];
  right: number[];
  all_of: boolean;
  axes: string[];
  number: number;
  unit: string;
  low: number;
  high: number;
  step: number;
  tolerance: number;
  digits: number;
  values: Record<string, string> | null;
  mistakes: { answer: string | number; name: string; sentence: string }[];
  slip: string;
  remarks: [string, string][]; // to right answers, as they are said
  hint: string;
}
export interface Checked {
  said: string;
  true: string;
  rank: number | null;
  right: boolean;
  words: string[];
}

/** What the script says with every run. */
export interface Data {
  step: string;
  fresh: boolean;
  rooms: Record<string, string>;
  models: Record<string, string>;
  states: Record<string, Record<string, string>>;
  own: Record<string, string>;
  written: Record<string, Written>;
  opens: boolean; // whether lessons of the visitor's own open here
  arrivals: number;
}
/** What the script says once the room is drawn. */
export interface Told {
  step: string;
  state: Record<string, string>;
  values: Record<string, string>;
  text: string;
  truth?: Truth;
  cannot?: string;
  example?: string;
  room?: { offer?: string; cannot?: string }; // what a class may be asked, or why it cannot
}

/** How one step is answered. */
export interface Asking {
  node: HTMLElement;
  focus(): void;
  mark(answer: Answer | null): void;
}

/** A fault of a lesson that is written, or a hint (app/rooms/lessons/routes.py). */
export interface Fault {
  line: number; // from 1
  said: string;
}
/** A step of a text that is being written. */
export interface Sketch {
  line: number;
  title: string;
  text: string;
  question: string;
  check: string;
  options: string[];
}
/** From the script to Write. */
export interface Writing {
  opens: boolean;
  examples: Record<string, string>;
}
