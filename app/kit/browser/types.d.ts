// Records that browser files of several rooms share.

/** What Streamlit gives to a component's default export. */
export interface Given<Data> {
  data: Data;
  parentElement: HTMLElement;
  setStateValue: Tell;
  setTriggerValue: Tell;
}
export type Tell = (name: string, value: unknown) => void;

/** What a view does that mount.js keeps on its place in the page. */
export interface Mounted {
  root: HTMLElement;
  destroy(): void;
}

/** A button of a row of which one is pressed. */
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

/** What a file of a page says about itself, and its tables: [label, name of the file, CSV]. */
export interface AboutFiles extends About {
  picture?: boolean;
  tables: [label: string, name: string, text: string][];
}

/** A piece of a line of text; a weight of 0 is the ordinary one. */
export type TextPart = [text: string, fill: string, weight?: number];
export type Point = [x: number, y: number];

/** One of the shapes that a scene is made of (scene.js). */
export type Shape =
  | { shape: "rect"; x: number; y: number; w: number; h: number; fill: string }
  | { shape: "frame"; x: number; y: number; w: number; h: number; stroke: string; width: number }
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

/** What share.js and the parts of a view that may be told to a visitor ask of it. */
export interface Shared {
  root: HTMLElement;
  picture: { offline?: boolean; link: Record<string, string> };
  place: { site: string; layer: number; head: number; query: number | null };
  options: { theme: string };
  optionTexts(): Record<string, string>;
  setOption(name: string, value: unknown, event?: Event): void;
  announce(text: string): void;
}
