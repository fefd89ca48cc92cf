// Python writes this into spoken.js (app/kit/scripts.py): the language of the page, such as "de".
export const LANGUAGE: string;
