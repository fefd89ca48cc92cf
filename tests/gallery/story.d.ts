// A story: one part of the screen on fixed data, as the real module draws it.

type Palette = import("../../app/attention/browser/types.js").Palette;

/** What the page around a story is like. */
export interface Around {
  palette: Palette;
  theme: "light" | "dark";
  isProjected: boolean;
  isNarrow: boolean;
}

export interface Story {
  title: string; // what is seen, in a few words
  style: string; // that its module is drawn with in the application
  root?: string; // the class of the element that it is drawn into, "hl" where nothing is said
  width?: string; // the most that it takes, 40rem where nothing is said
  mount(root: HTMLElement, around: Around): void | Promise<void>;
}
