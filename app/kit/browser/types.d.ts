// Records that browser files of several rooms share.

/** What Streamlit gives to a component's default export. */
export interface Given<Data> {
  data: Data;
  parentElement: HTMLElement;
  setStateValue: Tell;
  setTriggerValue: Tell;
}
export type Tell = (name: string, value: unknown) => void;

/** The selection in a message, and the run that it belongs to. */
export interface Chosen {
  values: Record<string, string>;
  of?: string;
  address?: Addressed;
  follow?: Follow;
}

/** How the page's address says it: of `view`, the room itself or one that shows it. */
export interface Addressed {
  view: string;
  room: string;
  run: Record<string, string>;
  rule: string[]; // the names that a rule chose
  silent: string[]; // names that are left out while they are empty
  shared: string[]; // names that mean the same in every room
  of_text: string[]; // names that mean nothing on another text
  asked: Record<string, string>; // what it said of all that when Python read it
  going: boolean; // the run continues and may be cancelled
}

/** The view for a class that follows; `most` are the bytes of what is chosen that it is told at once. */
export interface Follow {
  room: string;
  drawn: string;
  base: Record<string, string>;
  most: number;
}

/** A host shows a part of the page and is told of events in it. */
export interface Host {
  /** The present selection in a room, the number of changes so far, and its run. */
  choose(report: { number: number; said: Record<string, string>; of: string }): void;
  /** Further facts about a part, such as the size of its type. */
  tell: Tell;
  /** A part asks for something once, such as a dialog. */
  trigger: Tell;
  /** The message of a room for what a link says; null where none is to be had. */
  message(room: string, link: string): Promise<Uint8Array | null>;
}

/** What every room's message says in its header, beside what is the room's own (app/kit/stage.py). */
export interface StageHeader {
  key: string;
  chosen: Chosen;
  cover?: Covered | null;
  link?: Record<string, string>;
  offline?: boolean;
  clearest?: { layer: number; head: number } | null;
}

/** A part of the page as mount.js needs it. */
export interface Mounted {
  host: Host;
  receive(message: any): void;
  destroy(): void;
}

/** A button of a row in which one is pressed. */
export type Choice<Value> = [value: Value, text: string, title?: string];

/** A line of the options of a picture. */
export interface Setting {
  label: string;
  node: HTMLElement;
  help?: string;
}

/** A drawing as SVG, and its size in CSS pixels. */
export interface Drawing {
  group: SVGGElement;
  width: number;
  height: number;
}

/** What a file says about itself. */
export interface About {
  title: string;
  alt: string;
  caption: string;
  snippet: string;
  name: string;
}

/** Columns of numbers and of text, before they are written as a file. */
export interface Columns {
  of: string;
  columns: string[];
  rows: (string | number)[][];
}

/** What a room was drawn from, for a page of it that works offline: its message, and the holder of answers. */
export interface OfflinePage {
  path: string;
  theme: string;
  message: [header: object, body: ArrayBuffer];
  remotes: { ids: string[] }[];
}

/** A room shown one moment after the other: `end` is called once, when all is drawn or none. */
export interface Film extends About {
  frames: { seconds: number; draw: () => Drawing | Promise<Drawing> }[];
  end: () => void;
}

/**
 * What a file of a page says about itself, and its tables: [label, name of the file, CSV, the same as columns]. `arrays` are for an NPZ,
 * instead of the columns, `page` is there where the room can be saved whole, and `film` where it can be saved as it moves: what that
 * throws with a sentence is why it cannot be now.
 */
export interface AboutFiles extends About {
  picture?: boolean;
  tables: [label: string, name: string, text: string, numbers?: Columns][];
  trees?: [label: string, name: string, json: string][];
  arrays?: Record<string, import("./npz.js").NumpyArray>;
  page?: OfflinePage;
  film?: () => Film;
}

/** A button of the menu of files: what it says when it has done its work is said in the menu. */
export type FileEntry = [text: string, help: string, act: () => string | Promise<string>];
/** A line of that menu. */
export type FileKind = [label: string, ...(FileEntry | HTMLElement)[]];

/** A piece of a line of text; a weight of 0 is the ordinary one. */
export type TextPart = [text: string, fill: string, weight?: number];
export type Point = [x: number, y: number];

/** One of the shapes that a scene is made of (scene.js). */
export type Shape =
  | { shape: "rect"; x: number; y: number; w: number; h: number; fill: string; rx?: number; opacity?: number }
  | { shape: "frame"; x: number; y: number; w: number; h: number; stroke: string; width: number; rx?: number }
  | { shape: "hatch"; x: number; y: number; w: number; h: number }
  | { shape: "image"; canvas: HTMLCanvasElement; x: number; y: number; w: number; h: number }
  | { shape: "ramp"; x: number; y: number; w: number; h: number; stops: string[] }
  | { shape: "curve"; points: Point[]; stroke: string; width: number; opacity: number; dash?: number[] }
  | { shape: "dot"; x: number; y: number; r: number; fill: string; opacity?: number }
  | Text;
export interface Text {
  shape: "text";
  x: number;
  y: number;
  parts: TextPart[];
  size: number;
  anchor: "start" | "middle" | "end";
  angle: number;
  opacity?: number;
  /** px: letters of a longer line stand closer on a canvas */
  most?: number;
}
export interface Scene {
  width: number;
  height: number;
  background: string;
  hatch: string;
  font: string;
  shapes: Shape[];
}

/** What a request asks for, as its address spells it out. */
export type Params = Record<string, string | number>;

/** What is covered in a room, and how a visitor says what is there (app/kit/cover.py). */
export interface Covered {
  step: string;
  part: string;
  asks: string;
  values: Record<string, string>;
  seen: boolean;
}

/** The step of a lesson that is on the screen, for a class. */
export interface StepToAsk {
  name: string; // "1.2"
  offer: string; // by which the server knows what may be asked; "" where nothing may be, or not yet
  isCovered: boolean; // whether its picture has what no phone may have yet
  cover(): void; // also what was looked at before
  look(): void;
}

/** What a class is shown of a run: its key, what a link would say of the place and the options, and the words that may look. */
export interface ShownToClass {
  view: string;
  run: string;
  text: string;
  with: Record<string, string>;
  labels(site: string): string[];
  /** Where words that may be looked at stand above the picture, in pixels of the window; null where they stand nowhere above it, or lean. */
  above?(tokens: number[]): Above | null;
}

export interface Above {
  left: number;
  right: number;
  bottom: number; // where the words begin
  columns: [x: number, width: number][];
}
