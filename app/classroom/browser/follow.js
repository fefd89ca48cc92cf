// A follower's page: the teacher's screen in its own size and colours, and the words to tap when the class is asked. No script of
// Streamlit's runs for it.

import { add, button, el, fill, keepingFocus, quotation } from "../../kit/browser/dom.js";
import { ALPHABET, PALETTES, STYLE, WORDS as words } from "./constants.js";
import { ask, Refused, Stream } from "./wire.js";
import { classroom } from "../../kit/browser/classroom.js";
import { codeOf, impossible, lengthOf, SIGNS } from "./place.js";
import { cover } from "../../kit/browser/cover.js";
import { paint } from "./parts.js";
import { pack, unpack } from "../../kit/browser/messages.js";
import { mount, unmount } from "../../kit/browser/mount.js";
import { answered, ask as askedStep, wait } from "./phonestep.js";
import { Question } from "./question.js";
import { revealed, vote } from "./phone.js";

const FONT = '"Source Sans", "Source Sans 3", system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const NOTE = 4000; // ms that the page says that it is back
const AGAIN = 1500; // ms before a word that did not go out is sent again
const SPREAD = 2000; // ms in which phones send again, of themselves, what they said in the round before
const SAY = 5000; // ms between two sentences for a screen reader
const STRANGE = 3; // signs that are named as impossible
const PICTURES = 2; // that are kept: the screen's and the question's

// The part of the address after r/: the code of a link, or a text that was typed there
function ofAddress() {
  const [, said = ""] = location.pathname.slice(new URL(document.baseURI).pathname.length).split("/");
  try {
    return decodeURIComponent(said);
  } catch {
    return said; // no text, and so no code
  }
}

/** Which signs of what was typed no code has, and what may be meant by them; "" where all may be. @param {string} text */
function strange(text) {
  const signs = impossible(text, ALPHABET);
  if (!signs.length) return "";
  /** @type {Record<string, string>} */
  const likely = words.code_likely;
  const shown = signs.slice(0, STRANGE);
  return [
    fill(words.code_never, { signs: shown.map((sign) => quotation(sign)).join(words.code_or) }),
    ...shown.filter((sign) => sign in likely).map((sign) => fill(words.code_try, { sign, others: likely[sign] })),
    fill(words.code_signs, { signs: [...ALPHABET].join(" ") }),
  ].join(" ");
}

// A page that waits: what it waits for
/** @param {string} title @param {string} next */
const quiet = (title, next) => [el("h1", "waits", title), el("p", "big mute", next)];

class Follower {
  /** @type {{code: string, key: string} | null} */
  joined = null;
  typedCode = ""; // the code
  entered = ""; // as it was typed, or was in the address
  wrong = "";
  /** @type {import("./types.js").ScreenNow | null} */
  screen = null;
  /** @type {import("./types.js").Asked | null} */
  asked = null;
  /** @type {Question | null} */
  question = null;
  /** @type {import("./types.js").Votes | null} */
  votes = null;
  /** @type {import("./types.js").ClassNow} */
  now = { of: 0, door: true, away: false, left: 0 };
  /** @type {Map<number, number>} What this follower said, by question */
  said = new Map();
  /** @type {import("./types.js").StepNow | null} A step of a lesson that is asked, in place of a row */
  step = null;
  /** @type {import("./types.js").StepBody | null} */
  body = null;
  /** @type {{q: number, r: number, a: number} | null} The last answer to a step, in whichever round; this browser alone knows it once voting is closed */
  answer = null;
  typed = ""; // of a number, and not sent yet
  /** @type {{q: number, t: number} | {q: number, r: number, a: number} | null} What is still to go out */
  queued = null;
  isSending = false;
  isOwn = false; // looks around alone
  isLost = false;
  isLate = false; // came while the class was voting
  isWaiting = false; // came while the answer was on the wall, and is told the next question
  isClosed = false;
  isFirst = true; // nothing has come yet
  note = "";
  /** @type {Stream | null} */
  stream = null;
  /** @type {Map<string, Uint8Array>} */
  pictures = new Map();
  /** @type {{view: string, id: string, isTouched: boolean, values: Record<string, string>, box: HTMLElement, root: HTMLElement, Room: any, header: any, body: ArrayBuffer} | null} */
  view = null;
  drawing = "";
  /** @type {Record<string, string>} What a link says of the run that was on the screen last */
  link = {};

  /** @param {HTMLElement} main */
  constructor(main) {
    classroom.follows = true;
    classroom.chose = () => this.view?.isTouched && !this.isOwn && this.lookAround(); // at once: the teacher's next change would take it back; a room may also choose by itself
    this.main = main;
    /** @type {Record<string, string>} */
    this.views = JSON.parse(main.dataset.views ?? "{}");
    document.head.append(el("style", "", STYLE));
    main.className = "follow";
    const head = add(main, "header");
    add(head, "b").textContent = words.product;
    this.state = add(head, "span", "state");
    this.state.setAttribute("role", "status");
    this.banner = add(main, "p", "banner");
    this.banner.setAttribute("role", "status");
    this.panel = add(main, "div", "panel");
    this.place = add(main, "div", "place");
    this.low = add(main, "div", "low");
    this.live = add(main, "p", "unseen");
    this.live.setAttribute("aria-live", "polite");
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.theme());
    window.headlight.settings.watch(() => this.theme());
    setInterval(() => this.say(), SAY);
    this.theme();
    this.entered = ofAddress();
    if (this.entered) this.read();
    this.draw();
    if (this.typedCode && !this.wrong) this.join();
  }

  theme() {
    const chosen = window.headlight.settings.get("theme");
    const name =
      chosen === "dark" || chosen === "light"
        ? chosen
        : matchMedia("(prefers-color-scheme: dark)").matches
          ? "dark"
          : "light";
    const palette = PALETTES[name];
    const { style } = document.documentElement;
    style.colorScheme = name;
    style.setProperty("--st-background-color", palette.background);
    style.setProperty("--st-text-color", palette.ink);
    style.setProperty("--st-primary-color", palette.proof);
    style.setProperty("--st-font", FONT);
    document.body.style.background = palette.background;
    paint(this.main, palette);
    this.drawing = "";
    this.draw();
    if (this.view) this.mount();
  }

  // ------------------------------------------------------------------ in and out

  // The code that was entered, or the sentence about what is wrong with it
  read() {
    const { entered } = this;
    this.typedCode = codeOf(entered, ALPHABET);
    this.wrong =
      strange(entered) ||
      (lengthOf(entered) === SIGNS ? "" : fill(words.code_length, { of: SIGNS, n: lengthOf(entered) }));
  }

  get kept() {
    return `headlight-classroom-${this.typedCode}`;
  }

  // The last question that this browser was asked, also before a reload
  get lastAsked() {
    try {
      return Number(localStorage.getItem(`${this.kept}-asked`));
    } catch {
      return 0;
    }
  }

  /** @param {number} q */
  set lastAsked(q) {
    try {
      localStorage.setItem(`${this.kept}-asked`, String(q));
    } catch {
      // a private window does not know it after a reload
    }
  }

  async join() {
    let key = "";
    try {
      key = localStorage.getItem(this.kept) ?? "";
    } catch {
      // a private window gets a new one
    }
    try {
      const response = await ask(`${this.typedCode}/join`, { key, body: {} });
      const joined = await response.json();
      this.joined = joined;
      try {
        localStorage.setItem(this.kept, joined.key);
      } catch {
        // as above
      }
      history.replaceState(history.state, "", new URL(`r/${joined.code}`, document.baseURI).pathname + location.search);
      this.wrong = "";
      this.stream = new Stream(joined.code, joined.key, {
        event: (name, data) => this.hear(name, data),
        lost: () => this.lose(),
        back: () => this.back(),
        gone: () => this.close(),
      });
    } catch (error) {
      this.wrong = error instanceof Refused ? error.message : words.no_connection_now;
      this.drawing = ""; // the same sentence as before is said again
    }
    this.draw();
  }

  lose() {
    this.isLost = true;
    this.draw();
  }

  back() {
    this.isLost = false;
    this.note = words.back_again;
    setTimeout(() => {
      this.note = "";
      this.draw();
    }, NOTE);
    this.flush();
    this.draw();
  }

  close() {
    this.stream?.close();
    this.isClosed = true;
    cover.free();
    try {
      localStorage.removeItem(this.kept);
      localStorage.removeItem(`${this.kept}-asked`);
      localStorage.removeItem(`${this.kept}-step`);
    } catch {
      // as above
    }
    this.draw();
  }

  // ------------------------------------------------------------------ what comes

  /** @param {string} name @param {any} data */
  hear(name, data) {
    if (name === "screen") this.hearScreen(data);
    else if (name === "question" && data && "stage" in data) this.hearStep(data);
    else if (name === "question") this.hearQuestion(data);
    else if (name === "votes") this.votes = data?.q === (this.asked ?? this.step)?.q ? data : this.votes;
    else if (name === "class") this.now = data;
    else if (name === "ended") this.close();
    this.draw();
  }

  /** @param {import("./types.js").ScreenNow} screen */
  hearScreen(screen) {
    this.screen = screen;
    this.covers();
    if (!this.isOwn) this.follow();
  }

  /** @param {import("./types.js").StepNow} step */
  hearStep(step) {
    const before = this.step;
    const isNew = step.q !== before?.q;
    if (isNew) {
      this.isWaiting = step.stage !== "ask" && this.isFirst && this.keptAnswer()?.q !== step.q;
      Object.assign(this, { body: null, votes: null, typed: "" });
      this.answer = this.keptAnswer();
    }
    this.isFirst = false;
    Object.assign(this, { step, asked: null, question: null });
    if (step.stage === "ask") this.isWaiting = false;
    else this.queued = null; // it would come too late
    if (step.round !== before?.round) this.typed = "";
    if (typeof step.mine === "number" && !this.queued) this.keepAnswer({ q: step.q, r: step.round, a: step.mine });
    this.covers();
    const { answer } = this;
    // In one more round the answer of the one before is kept, until it is changed.
    const isKept = answer?.q === step.q && answer.r === step.round - 1 && step.mine === undefined;
    if (step.stage === "ask" && answer && isKept) {
      this.before = null;
      this.keepAnswer({ q: step.q, r: step.round, a: answer.a });
      this.queued = this.answer;
      setTimeout(() => this.flush(), SPREAD * Math.random()); // not all phones at once
    }
    // The question is the same at every stage; only the answer brings more.
    if (this.body?.q === step.q && step.stage !== "answer") this.body = { ...this.body, ...step };
    else if (!this.isWaiting) this.fetchStep(step);
    if (step.stage !== before?.stage && !this.isOwn) scrollTo(0, 0);
  }

  /** @param {import("./types.js").StepNow} step */
  async fetchStep(step) {
    const { joined } = this;
    if (!joined) return;
    const isNow = () => this.step?.q === step.q && this.step.round === step.round && this.step.stage === step.stage;
    try {
      const response = await ask(`${joined.code}/step?q=${step.q}`, { key: joined.key });
      const body = await response.json();
      if (isNow() && body.stage === step.stage) this.body = body;
    } catch (error) {
      if (!(error instanceof Refused)) this.retry(() => isNow() && this.fetchStep(step));
    }
    this.arrived();
  }

  // The last answer of this browser: also after a reload, for a reply of its own
  keptAnswer() {
    try {
      const { q, r, a } = JSON.parse(localStorage.getItem(`${this.kept}-step`) ?? "null") ?? {};
      return typeof a === "number" ? { q, r, a } : null;
    } catch {
      return this.answer; // a private window
    }
  }

  /** @param {{q: number, r: number, a: number} | null} answer */
  keepAnswer(answer) {
    this.answer = answer;
    try {
      if (answer) localStorage.setItem(`${this.kept}-step`, JSON.stringify(answer));
      else localStorage.removeItem(`${this.kept}-step`);
    } catch {
      // as above
    }
  }

  /** @param {number} a */
  says(a) {
    const { step } = this;
    if (step?.stage !== "ask") return;
    if (!this.queued) this.before = this.answer; // and not one that has not gone out
    this.keepAnswer({ q: step.q, r: step.round, a });
    this.queued = this.answer;
    this.typed = "";
    this.draw();
    this.flush();
  }

  /** @type {{q: number, r: number, a: number} | null} The answer that counts where the last answer came too late */
  before = null;

  /** @param {import("./types.js").Asked | null} asked */
  hearQuestion(asked) {
    Object.assign(this, { step: null, body: null });
    const isNew = asked?.q !== this.asked?.q;
    const wasOpen = this.asked?.open;
    if (isNew) {
      const isFirst = Boolean(asked) && this.isFirst;
      this.isLate = isFirst && Boolean(asked?.open);
      this.isWaiting = isFirst && !asked?.open && this.lastAsked !== asked?.q;
      this.question = null;
      this.votes = null;
      if (this.queued?.q !== asked?.q) this.queued = null;
    }
    this.isFirst = false;
    this.asked = asked;
    if (asked?.open) this.lastAsked = asked.q;
    if (asked && typeof asked.mine === "number" && this.queued?.q !== asked.q) this.said.set(asked.q, asked.mine);
    if (asked && !asked.open) this.queued = null;
    this.covers();
    if (asked && isNew && !this.isWaiting) this.fetchQuestion(asked);
    if (asked && wasOpen && !asked.open && !this.isOwn) scrollTo(0, 0);
  }

  // What is asked is covered, on this screen as on every other.
  covers() {
    const step = { step: "classroom", part: "row", asks: "", seen: false };
    if (this.asked?.open) cover.hold({ ...step, values: { query: String(this.asked.query) } });
    else if (this.screen?.cover === "head") cover.hold({ ...step, values: { query: "all" } });
    else if (this.screen?.cover.startsWith("lesson:")) {
      const [, part, query] = this.screen.cover.split(":");
      cover.hold({ ...step, part, values: query ? { query } : {} });
    } else cover.free();
  }

  /** @param {string} id */
  async picture(id) {
    const known = this.pictures.get(id);
    if (known || !this.joined) return known ?? null;
    const response = await ask(`${this.joined.code}/picture/${id}`, { key: this.joined.key });
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (this.pictures.size >= PICTURES) this.pictures.delete(String(this.pictures.keys().next().value));
    this.pictures.set(id, bytes);
    return bytes;
  }

  /** @param {import("./types.js").Asked} asked */
  async fetchQuestion(asked) {
    try {
      const bytes = await this.picture(asked.picture);
      if (!bytes || this.asked?.q !== asked.q) return;
      this.question = new Question(this.asked, bytes, () => this.arrived());
    } catch {
      this.retry(() => this.asked?.q === asked.q && !this.question && this.fetchQuestion(asked));
    }
    this.arrived();
  }

  arrived() {
    this.drawing = "";
    this.draw();
  }

  /** @param {() => void} again */
  retry(again) {
    if (!this.isClosed) setTimeout(again, AGAIN);
  }

  // ------------------------------------------------------------------ the teacher's screen

  // Whether this page can draw it, once what it is drawn from has come
  /** @param {import("./types.js").ScreenNow} screen */
  isDrawn(screen) {
    return Boolean(screen.picture && this.views[screen.view]);
  }

  // While the code is on the wall the room is not, and who comes in now sees no more of it than those who are there. Who had it keeps it.
  get isHeld() {
    return this.screen?.cover === "code" && !this.view;
  }

  async follow() {
    const { screen } = this;
    if (!screen) return;
    if (this.isHeld) return;
    if (!this.isDrawn(screen)) return this.unmount();
    try {
      const bytes = await this.picture(screen.picture);
      if (!bytes || this.screen !== screen || this.isOwn) return;
      const Room = (await import(new URL(this.views[screen.view], document.baseURI).href)).default;
      if (this.screen !== screen || this.isOwn) return;
      const [header, body] = unpack(bytes);
      if (this.view?.view !== screen.view) {
        this.unmount();
        const box = add(this.place, "div", `view ${screen.view}`);
        const root = add(box, "div", `hl ${screen.view}`);
        /** @type {NonNullable<Follower["view"]>} */
        const view = {
          view: screen.view,
          id: "",
          isTouched: false,
          values: {},
          box,
          root,
          Room,
          header,
          body,
        };
        this.view = view;
        for (const kind of ["pointerdown", "keydown"])
          box.addEventListener(kind, () => (view.isTouched = true), { capture: true });
      }
      Object.assign(this.view, { Room, header, body, id: screen.picture });
      this.link = header.link ?? {};
      this.view.isTouched = false;
      this.mount();
    } catch {
      this.retry(() => this.screen === screen && this.follow());
    }
    this.draw();
  }

  mount() {
    const { view, screen } = this;
    if (!view || !screen) return;
    if (!this.isOwn) view.values = { ...view.header.chosen.values, ...screen.with };
    const chosen = { values: view.values };
    const header = { ...view.header, chosen, cover: null, offline: true, link: view.header.link ?? {} };
    mount(view.root, view.Room, pack(header, new Uint8Array(view.body))); // of what is chosen classroom.chose has heard at once
  }

  // What a room watches ends with it: of a training, as long as anybody watches it, the server lets it go on.
  unmount() {
    if (this.view) {
      this.view.box.remove();
      unmount(this.view.root);
    }
    this.view = null;
  }

  lookAround() {
    this.isOwn = true;
    this.draw();
  }

  // One head, alone
  /** @param {number} layer @param {number} head */
  look(layer, head) {
    const { asked, view } = this;
    if (!asked || view?.view !== "explore") return;
    this.isOwn = true;
    Object.assign(view.values, {
      site: asked.site,
      layer: String(layer),
      head: String(head),
      query: String(asked.query),
    });
    this.mount();
    this.draw();
    scrollTo(0, 0);
  }

  comeBack() {
    this.isOwn = false;
    if (this.view) this.view.isTouched = false;
    this.draw();
    this.follow();
    scrollTo(0, 0);
  }

  // ------------------------------------------------------------------ a vote

  get mine() {
    return this.asked ? (this.said.get(this.asked.q) ?? null) : null;
  }

  /** @param {number} token */
  tap(token) {
    const { asked } = this;
    if (!asked?.open) return;
    this.said.set(asked.q, token);
    this.queued = { q: asked.q, t: token };
    this.draw();
    this.flush();
  }

  // The newest word goes out, one at a time; where there is no connection, once there is one.
  async flush() {
    const { queued, joined } = this;
    if (!queued || !joined || this.isLost || this.isSending) return;
    this.isSending = true;
    try {
      await ask(`${joined.code}/vote`, { key: joined.key, body: queued });
      if (this.queued === queued) this.queued = null;
    } catch (error) {
      if (error instanceof Refused && error.status === 429) this.retry(() => this.flush());
      else if (error instanceof Refused) {
        if (this.queued === queued) this.queued = null;
        this.said.delete(queued.q);
        const isLate = "a" in queued && error.status === 409;
        if (isLate && this.answer?.q === queued.q) this.keepAnswer(this.before);
        this.note = isLate ? words.step_late : error.message;
      } else this.retry(() => this.flush());
    }
    this.isSending = false;
    if (this.queued && this.queued !== queued) this.flush();
    this.draw();
  }

  // ------------------------------------------------------------------ what is drawn

  // Only what is another one than before: a finger may be on it
  draw() {
    const { asked, question, screen, joined } = this;
    const { step } = this;
    const isOpen = Boolean(asked?.open) || step?.stage === "ask";
    const asks = joined !== null && (asked ?? step) !== null && !this.isOwn && !this.isClosed;
    this.main.dataset.state = this.isClosed
      ? "closed"
      : !joined
        ? "join"
        : this.isLost
          ? "lost"
          : this.isOwn
            ? "own"
            : this.now.away
              ? "away"
              : asks
                ? isOpen
                  ? "vote"
                  : this.isWaiting || step?.stage === "votes"
                    ? "wait"
                    : "result"
                : this.isHeld
                  ? "wait"
                  : "follow";
    const [text, look] = this.isClosed
      ? [words.state_closed, "off"]
      : !joined
        ? ["", ""]
        : this.isLost
          ? [words.no_connection, "off"]
          : this.now.away
            ? [words.state_away, "off"]
            : this.isOwn
              ? [words.state_own, "own"]
              : [words.state_following, "on"];
    this.state.className = `state ${look}`;
    if (this.state.textContent !== text) this.state.textContent = text;
    const banner =
      this.isClosed || !joined
        ? ""
        : this.isLost
          ? [words.lost, this.queued ? words.lost_word : ""].filter(Boolean).join(" ")
          : this.now.away
            ? words.away
            : this.note;
    if (this.banner.textContent !== banner) this.banner.textContent = banner;
    this.banner.hidden = !banner;
    this.banner.classList.toggle("fine", !this.isLost && !this.now.away);
    const isShown = joined !== null && !asks && (this.view !== null || !screen);
    this.place.hidden = !isShown || this.isClosed;
    if (asks && isOpen) this.count();
    const said = asks
      ? [
          step,
          this.body?.stage,
          this.body?.round,
          step && this.answer,
          asked,
          this.mine,
          this.isLate,
          question?.asked.q,
          !isOpen && this.votes,
          !isOpen && this.view?.view,
        ]
      : [this.isOwn, isOpen, screen?.view, screen?.cover, screen?.said, this.view?.view];
    const drawing = JSON.stringify([this.isClosed, joined?.code, this.wrong, asks, this.isWaiting, said]);
    if (drawing === this.drawing) return;
    this.drawing = drawing;
    keepingFocus(this.main, () => this.drawPanel(asks));
    if (!this.place.hidden) dispatchEvent(new Event("resize")); // what was out of sight has its size again
  }

  // How many have said: on its own, for a word that is drawn again under a finger takes no tap
  count() {
    const [text, bar] = [
      this.panel.querySelector(".count"),
      /** @type {HTMLElement | null} */ (this.panel.querySelector(".meter i")),
    ];
    if (!text || !bar) return;
    const n = this.votes?.said ?? 0;
    const of = Math.max(this.now.of, n);
    text.textContent = fill(words.have_said, { n, of });
    bar.style.width = `${(100 * n) / Math.max(1, of)}%`;
  }

  /** @param {boolean} asks */
  drawPanel(asks) {
    const { panel, low, asked, question, screen } = this;
    low.replaceChildren();
    if (this.isClosed) {
      panel.replaceChildren(
        el("h1", "", words.closed_title),
        el("p", "big mute", words.closed),
        ...(this.view ? [el("p", "note", words.closed_sentence)] : []),
      );
      low.append(this.door(words.go_on, "primary"));
    } else if (!this.joined) this.drawJoin();
    else if (asks && this.step) this.drawStep(this.step);
    else if (asks && asked) {
      const now = {
        question: /** @type {Question} */ (question),
        mine: this.mine,
        late: this.isLate,
        votes: this.votes,
        of: this.now.of,
      };
      if (this.isWaiting) panel.replaceChildren(...quiet(words.on_wall, words.on_wall_next));
      else if (!question) panel.replaceChildren(el("p", "note", words.weights_coming));
      else if (asked.open) vote(panel, now, (token) => this.tap(token));
      else revealed(panel, now, this.view?.view === "explore" ? (layer, head) => this.look(layer, head) : null);
      if (!this.isWaiting) low.append(button(words.look_around, "quiet", () => this.lookAround()));
    } else {
      const isVeiled = screen?.cover === "head";
      const parts = [];
      if (isVeiled) parts.push(el("p", "big", words.choosing));
      if (this.isHeld) parts.push(...quiet(words.in_now, words.in_now_next));
      else if (!screen || (!this.view && this.isDrawn(screen))) parts.push(el("p", "note", words.waiting));
      else if (!this.view)
        parts.push(
          ...(screen.said
            ? [el("p", "big", screen.said)]
            : [el("p", "big", words.no_picture), this.door(words.open_tab, "quiet big")]),
        );
      panel.replaceChildren(...parts);
      if (this.isOwn)
        low.append(button(asked?.open ? words.teacher_asks : words.to_teacher, "primary", () => this.comeBack()));
      else if (!this.isHeld) low.append(button(words.look_around, "quiet", () => this.lookAround()));
    }
    panel.hidden = !panel.childElementCount;
    panel.classList.toggle("quiet", panel.querySelector("h1.waits") !== null);
  }

  /** @param {import("./types.js").StepNow} step */
  drawStep(step) {
    const { panel, body, answer } = this;
    if (this.isWaiting) return panel.replaceChildren(...quiet(words.on_wall, words.on_wall_next));
    if (!body) return panel.replaceChildren(el("p", "note", words.waiting));
    const own = answer?.q === step.q && answer.r === step.round ? answer : null;
    const said = this.votes?.said ?? 0;
    const now = {
      body,
      mine: own?.a ?? null,
      typed: this.typed,
      of: Math.max(this.now.of, said),
      said,
    };
    if (body.stage === "ask")
      askedStep(
        panel,
        now,
        (a) => this.says(a),
        (text) => (this.typed = text),
      );
    else if (body.stage === "votes") wait(panel, now);
    else answered(panel, now);
  }

  // The same in the whole of Headlight, in a tab of its own
  /** @param {string} text @param {string} look */
  door(text, look) {
    const { screen } = this;
    const link = el("a", look, text);
    const said = { ...this.link, ...this.view?.values, ...screen?.with, view: screen?.view ?? "explore" };
    link.href = new URL(`?${new URLSearchParams(said)}`, document.baseURI).href;
    link.target = this.isClosed ? "" : "_blank";
    link.rel = "noopener";
    return link;
  }

  drawJoin() {
    const form = el("form", "join");
    const title = el("h1", "", words.join_title);
    const label = el("label", "note", words.join_label);
    const field = add(label, "input");
    Object.assign(field, {
      type: "text",
      autocomplete: "off",
      spellcheck: false,
      value: this.entered,
    });
    field.autocapitalize = "characters";
    const go = button(words.join, "primary", () => {});
    go.type = "submit";
    const wrong = el("p", "wrong");
    wrong.setAttribute("role", "alert");
    /** @param {string} sentence */
    const say = (sentence) => {
      if (wrong.textContent !== sentence) wrong.textContent = sentence;
      wrong.hidden = !sentence;
    };
    // At once that a sign is none; how many there are only once the code is said to be all of it.
    field.addEventListener("input", () => {
      this.entered = field.value;
      say(strange(field.value));
    });
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      this.entered = field.value;
      this.read();
      say(this.wrong);
      if (!this.wrong) this.join();
    });
    say(this.wrong);
    const ticks = el("ul", "ticks");
    for (const text of words.ticks) add(ticks, "li").textContent = text;
    form.append(title, label, wrong, go, ticks);
    this.panel.replaceChildren(form);
  }

  // How many have said, for a screen reader
  say() {
    const { asked, step, votes, now } = this;
    const text =
      (asked?.open || step?.stage === "ask") && this.joined && votes
        ? fill(words.have_said, { n: votes.said, of: Math.max(now.of, votes.said) })
        : "";
    if (this.live.textContent !== text) this.live.textContent = text;
  }
}

new Follower(/** @type {HTMLElement} */ (document.getElementById("follow")));
