// Written by Python into constants.js (app/shell/projector.py).
export const FRAMED: { open: string; help: string; empty: string };
export const PROJECTED: Record<
  "projection" | "exit" | "exit_help" | "freeze" | "freeze_help" | "spotlight" | "spotlight_help",
  string
>;
