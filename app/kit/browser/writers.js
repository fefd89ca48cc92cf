// Makers of files that few ask for, each fetched when it is asked for. A page that works offline holds those that it needs.

import { LANGUAGE } from "./language.js";

/** @type {Map<string, any>} */
const held = new Map();

/** @param {string} name @param {object} module */
export const hold = (name, module) => held.set(name, module);

/** @param {string} name */
async function get(name) {
  if (!held.has(name))
    hold(name, await import(new URL(`headlight/writer/${name}.js?lang=${LANGUAGE}`, document.baseURI).href));
  return held.get(name);
}

/** GIF and video of a room. @returns {Promise<typeof import("./writers/film.js")>} */
export const film = () => get("film");

/** PDF of drawings. @returns {Promise<Pick<typeof import("./writers/vector.js"), "pdfOf">>} */
export const vector = () => get("vector");
