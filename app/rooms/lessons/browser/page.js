// A finished lesson as a page of its own: questions, what the visitor said, what is true, and a picture of each. It asks no server.

import { PAGE_STYLE, WORDS as words } from "./constants.js";
import { el, fill } from "../../../kit/browser/dom.js";
import { save } from "../../../kit/browser/save.js";

/** @typedef {import("./types.js").Step & {number: string, question: string, words?: string[], picture?: string}} Finished */

/** @param {string} title @param {Finished[]} steps @param {Record<string, string>} rooms @param {string} language @returns {string} */
function pageOf(title, steps, rooms, language) {
  const page = document.implementation.createHTMLDocument(title);
  page.documentElement.lang = language;
  page.head.prepend(
    Object.assign(page.createElement("meta"), { content: "width=device-width, initial-scale=1", name: "viewport" }),
  );
  page.head.append(Object.assign(page.createElement("style"), { textContent: PAGE_STYLE }));
  page.body.append(el("h1", "", title), el("p", "", words.page_about));
  for (const step of steps) {
    page.body.append(
      el("h2", "", `${step.number} ${step.title}`),
      el("p", "", step.text),
      el("p", "question", step.question),
    );
    const room = rooms[step.room] ?? step.room;
    if (step.picture)
      page.body.append(
        Object.assign(el("img"), { src: step.picture, alt: fill(words.page_picture, { room, title: step.title }) }),
      );
    else if (step.words) page.body.append(el("small", "", fill(words.page_no_picture, { room })));
    const answer = page.body.appendChild(el("div", "answer"));
    const lines = step.words ?? [words.page_earlier];
    answer.append(...lines.map((line, i) => el(i && i === lines.length - 1 ? "small" : "p", "", line)));
  }
  return `<!doctype html>\n<meta charset="utf-8">\n${new XMLSerializer().serializeToString(page.documentElement)}\n`;
}

/** @param {string} title @param {Finished[]} steps @param {Record<string, string>} rooms @param {string} [language] */
export function savePage(title, steps, rooms, language = "en") {
  const page = new Blob([pageOf(title, steps, rooms, language)], { type: "text/html;charset=utf-8" });
  save(`headlight-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.html`, page);
}
