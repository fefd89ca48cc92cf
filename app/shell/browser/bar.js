// The rooms of Headlight as links: in a row, as menus in a narrow window, as a sheet from below on a phone; and their keys.
//
// The links stand in the component's own markup (app/shell/bar.py), so that they are there without this script. It follows them
// without loading the page: the address is that of the room at once, and Streamlit is told that there is another one.

import { classroom, kept } from "../../kit/browser/classroom.js";
import { isFree } from "../../kit/browser/shortcuts.js";
import { done, watch } from "../../kit/browser/progress.js";
import { runOf, wayTo } from "../../kit/browser/remembered.js";
import { here } from "../../streamlit_edge/browser/page.js";

/**
 * `said` is how the address named the room; `holders` show other rooms; `entries` are the modules of rooms that a class can follow.
 * @typedef {{room: string, said: string | null, holders: string[], classroom: string, entries: Record<string, string>}} Data
 */
/** @typedef {(name: string, value: unknown) => void} Tell */

/** @type {WeakMap<Element, Bar>} */
const SHOWN = new WeakMap();
const RESTS = 80; // ms on a link: a pointer that crosses the bar asks for nothing

/** @param {{data: Data, parentElement: ParentNode & Element, setStateValue: Tell}} given */
export default function ({ data, parentElement, setStateValue }) {
  let bar = SHOWN.get(parentElement);
  if (!bar) {
    const root = /** @type {HTMLElement} */ (parentElement.querySelector(".bar"));
    bar = new Bar(root);
    SHOWN.set(parentElement, bar);
  }
  bar.update(data, setStateValue);
  return () => {
    if (bar.root.isConnected) return; // Streamlit says so too when newer data has come
    bar.destroy();
    SHOWN.delete(parentElement);
  };
}

class Bar {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.choices = 0; // that Streamlit was told of
    this.room = "";
    /** @type {string[]} Rooms that show others, and give the run back */
    this.holders = [];
    /** @type {Record<string, string> | undefined} The run that they give back */
    this.lent = undefined;
    /** @type {Tell} */
    this.tell = () => {};
    this.links = /** @type {HTMLAnchorElement[]} */ ([...root.querySelectorAll("a[data-room]")]);
    this.menus = /** @type {HTMLElement[]} */ ([...root.querySelectorAll(".group")]);
    this.sheet = /** @type {HTMLDialogElement} */ (root.querySelector("dialog"));
    this.pick = /** @type {HTMLButtonElement} */ (root.querySelector(".pick"));
    this.languages = /** @type {HTMLSelectElement[]} */ ([...root.querySelectorAll(".language select")]);
    this.titles = new Map(
      this.links.map((link) => [link.dataset.room ?? "", link.querySelector("b")?.textContent ?? ""]),
    );

    /** @type {import("../../classroom/browser/teacher.js").Teacher | null} */
    this.teacher = null; // until this browser has a class: no one else loads what it takes
    this.classroom = "";
    /** @type {Record<string, string>} Rooms that say what they show to a class, and where their modules are */
    this.entries = {};
    /** @type {number | undefined} A timer, while the pointer rests on a link */
    this.resting = undefined;
    classroom.share = () => this.teach().then((teacher) => teacher?.share());
    classroom.ask = () => this.teach().then((teacher) => teacher?.askStep());
    const off = new AbortController();
    const { signal } = off;
    this.destroy = () => {
      off.abort();
      clearTimeout(this.resting);
      this.teacher?.destroy();
    };
    for (const link of this.links) {
      link.addEventListener("click", (e) => this.follow(e, link), { signal });
      link.addEventListener("pointerenter", () => this.rest(link), { signal });
      link.addEventListener("pointerleave", () => clearTimeout(this.resting), { signal });
    }
    const { settings } = window.headlight;
    for (const select of this.languages)
      select.addEventListener("change", () => settings.set("lang", select.value), { signal });
    for (const name of ["pointerdown", "focusin"]) root.addEventListener(name, () => this.address(), { signal }); // before a link is followed
    for (const menu of this.menus) {
      this.opener(menu).addEventListener("click", () => this.toggle(menu), { signal });
      menu.addEventListener("keydown", (e) => this.keyOfMenu(e, menu), { signal });
      menu.addEventListener(
        "focusout",
        (e) => {
          if (e.relatedTarget && !menu.contains(/** @type {Node} */ (e.relatedTarget))) this.toggle(menu, false);
        },
        { signal },
      );
    }
    this.pick.addEventListener("click", () => this.open(), { signal });
    this.sheet.addEventListener("close", () => this.pick.setAttribute("aria-expanded", "false"), { signal });
    this.sheet.addEventListener(
      "click",
      (e) => {
        if (e.target === this.sheet) this.sheet.close(); // beside what is in it
      },
      { signal },
    );
    document.addEventListener("pointerdown", (e) => this.away(e), { signal });
    document.addEventListener("keydown", (e) => this.key(e), { signal });
    const leave = window.headlight.address?.watch((_, before, isWay) => isWay && this.lend(before));
    signal.addEventListener("abort", () => leave?.());
    watch(() => this.progress(), signal);
    this.progress();
  }

  // What a teacher's page is made of, once it is wanted
  async teach() {
    const { Teacher } = await import(new URL(this.classroom, document.baseURI).href);
    if (!this.root.isConnected) return null;
    if (!this.teacher) {
      this.teacher = /** @type {import("../../classroom/browser/teacher.js").Teacher} */ (new Teacher(this.root));
      this.teacher.update(this.room, Object.keys(this.entries));
    }
    return this.teacher;
  }

  // How many steps of a room were looked at; nothing where none was
  progress() {
    for (const said of /** @type {NodeListOf<HTMLElement>} */ (this.root.querySelectorAll(".steps"))) {
      const of = Number(said.dataset.of);
      const { size } = done(of);
      said.textContent = size ? (said.dataset.said ?? "").replace("{n}", String(size)).replace("{of}", String(of)) : "";
    }
  }

  /** @param {Data} data @param {Tell} tell */
  update(data, tell) {
    this.tell = tell;
    this.holders = data.holders;
    this.address();
    this.classroom = data.classroom;
    this.entries = data.entries;
    this.teacher?.update(this.room, Object.keys(this.entries));
    if (!this.teacher && hasClass()) this.teach();
    const view = here().get("view");
    if (view === data.room || view === data.said) this.mark(data.room); // else of a script that began before the last choice
  }

  /** @param {string} room */
  mark(room) {
    this.room = room;
    this.teacher?.update(room, Object.keys(this.entries));
    for (const link of this.links) {
      if (link.dataset.room === room) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    for (const menu of this.menus) {
      const current = menu.querySelector("[aria-current] b")?.textContent;
      menu.classList.toggle("current", Boolean(current));
      const name = this.opener(menu).querySelector(".name");
      if (name) name.textContent = current || (menu.dataset.name ?? "");
    }
    const name = this.pick.querySelector(".name");
    if (name) name.textContent = this.titles.get(room) ?? "";
  }

  // Where the pointer rests a visitor is about to go: what the room is made of comes before it is asked for.
  /** @param {HTMLAnchorElement} link */
  rest(link) {
    this.address();
    const entry = this.entries[link.dataset.room ?? ""];
    clearTimeout(this.resting);
    if (!entry) return;
    this.resting = setTimeout(() => void import(new URL(entry, document.baseURI).href).catch(() => {}), RESTS); // the room asks again, and says so
  }

  // Where each link leads from here: to its room, with the sentence, the model, and the page as it is.
  address() {
    const now = here();
    const { lent } = this;
    for (const link of this.links) {
      const way = wayTo(link.dataset.room ?? "", now, this.isHeld && lent ? lent : runOf(now));
      for (const name of window.headlight.settings.names) if (now.has(name)) way.set(name, now.get(name) ?? "");
      link.setAttribute("href", `?${way}`);
    }
  }

  // Whether the room on the screen shows another one inside of it, with a run of its own
  get isHeld() {
    return this.holders.includes(here().get("view") ?? "");
  }

  // The screen before such a room, to which leaving it leads back
  /** @param {URLSearchParams} before */
  lend(before) {
    if (!this.holders.includes(before.get("view") ?? "")) this.lent = runOf(before);
    this.address();
    const room = here().get("view");
    if (room && this.titles.has(room)) this.mark(room);
  }

  /** @param {MouseEvent} e @param {HTMLAnchorElement} link */
  follow(e, link) {
    if (e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return; // the browser's own: a tab, a window, a file
    e.preventDefault();
    this.choose(link.dataset.room ?? "");
  }

  /** @param {string} room */
  choose(room) {
    const menu = this.menus.find(({ dataset }) => dataset.open !== undefined);
    if (menu) {
      this.toggle(menu, false);
      this.opener(menu).focus();
    }
    this.sheet.close();
    if (room === this.room) return;
    this.address();
    const way = this.links.find((link) => link.dataset.room === room)?.getAttribute("href") ?? `?view=${room}`;
    const { address } = window.headlight;
    const givesBack = this.isHeld && this.lent !== undefined;
    this.mark(room);
    if (givesBack) return address?.go(way, false);
    address?.choose(way);
    this.tell("chosen", ++this.choices);
  }

  /** @param {HTMLElement} menu @returns {HTMLButtonElement} */
  opener(menu) {
    return /** @type {HTMLButtonElement} */ (menu.querySelector(".opener"));
  }

  /** @param {HTMLElement} menu */
  toggle(menu, open = menu.dataset.open === undefined) {
    if (open) menu.dataset.open = "";
    else delete menu.dataset.open;
    this.opener(menu).setAttribute("aria-expanded", String(open));
  }

  open() {
    this.pick.setAttribute("aria-expanded", "true");
    this.sheet.showModal();
    /** @type {HTMLElement | null} */ (this.sheet.querySelector("[aria-current]"))?.focus();
  }

  /** @param {PointerEvent} e */
  away(e) {
    for (const menu of this.menus) if (!e.composedPath().includes(menu)) this.toggle(menu, false);
  }

  /** @param {KeyboardEvent} e @param {HTMLElement} menu */
  keyOfMenu(e, menu) {
    const isOpen = menu.dataset.open !== undefined;
    if (e.key === "Escape" && isOpen) {
      this.toggle(menu, false);
      this.opener(menu).focus();
    } else if (["ArrowDown", "ArrowUp"].includes(e.key) && getComputedStyle(this.opener(menu)).display !== "none") {
      if (!isOpen) this.toggle(menu, true);
      const links = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("a")]);
      const at = links.indexOf(/** @type {HTMLElement} */ (e.target));
      const next = e.key === "ArrowDown" ? at + 1 : at < 0 ? links.length - 1 : at - 1;
      links[(next + links.length) % links.length].focus();
    } else {
      return;
    }
    e.preventDefault();
    e.stopPropagation();
  }

  // 1 to 9 and 0 for the rooms in their order, L for the lessons, J for a class; not where a visitor writes
  /** @param {KeyboardEvent} e */
  key(e) {
    if (!isFree(e) || e.shiftKey || e.repeat) return;
    if (e.key.toLowerCase() === "j") {
      e.preventDefault();
      classroom.share();
      return;
    }
    const link = this.links.find((link) => link.dataset.key === e.key.toLowerCase());
    if (!link) return;
    e.preventDefault();
    this.choose(link.dataset.room ?? "");
  }
}

// Whether this tab teaches a class, also after it was loaded again
function hasClass() {
  try {
    return sessionStorage.getItem(kept()) !== null;
  } catch {
    return false;
  }
}
