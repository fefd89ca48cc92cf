// A question to a class, and what it has said so far.

export const ASKED = { labels: ["[CLS]", "The", "animal", "cross", "the", "street"], at: 3, word: "it", asked: { layer: 3, head: 1, q: "a" }, row: () => null };
export const COUNTS = [1, 0, 11, 0, 2, 4];
export const WEIGHTS = [0.1, 0.02, 0.68, 0.03, 0.05, 0.12];
