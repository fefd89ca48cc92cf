// Records of what is seen of Memory and Compute by those who follow a class.

import type { StageHeader } from "../../kit/browser/types.js";

export interface Header extends StageHeader {
  sentence: string;
  note: string;
  chart: string;
  figures: Record<"light" | "dark", string>; // Plotly's JSON
  plotly: string; // where Plotly is
}

declare global {
  interface Window {
    Plotly?: {
      react(node: HTMLElement, data: object[], layout: object, config: object): Promise<unknown>;
      purge(node: HTMLElement): void;
    };
  }
}
