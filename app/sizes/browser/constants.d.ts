// What Python writes into constants.js (app/sizes/seen.py).
export const PALETTES: Record<"light" | "dark", Record<string, string>>;
export const STYLE: string;
