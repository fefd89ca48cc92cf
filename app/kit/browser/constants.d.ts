// Names in a link, which Python writes into constants.js (app/kit/scripts.py).

/** Names of the run. With a value, a name belongs to the run only where it has that one. */
export const RUN: Record<string, string | null>;
/** Names of the attention head, which is one choice */
export const HEAD: string[];
/** Names of positions in the text */
export const TOKENS: string[];
/** Says that the head stays when the text changes */
export const PINNED: string;
/** The names that a rule chose */
export const RULE: string;
/** The run that the selection was made on, if its text is not the one in the address */
export const WAS: string;
