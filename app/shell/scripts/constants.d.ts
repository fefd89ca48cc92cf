// Written by Python into constants.js (app/shell/projector.py).
export const FRAMED: { open: string; help: string; empty: string };
