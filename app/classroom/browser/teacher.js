// A class that this browser teaches: what it shows is sent on, and over every room lie the page with the code and the page of a question.

import { add, button, described, el, fill } from "../../kit/browser/dom.js";
import { agreements, shares } from "./votes.js";
import { ask, pageAddress, Refused, Stream } from "./wire.js";
import { AskPage } from "./askpage.js";
import { classroom, kept } from "../../kit/browser/classroom.js";
import { colours, themeOf } from "../../kit/browser/colours.js";
import { cover } from "../../kit/browser/cover.js";
import { differing, nearest } from "./again.js";
import { goTo, here, texts } from "../../streamlit_edge/browser/page.js";
import { isFree } from "../../kit/browser/shortcuts.js";
import { PALETTES, STYLE, WORDS as words } from "./constants.js";
import { Question } from "./question.js";
import { paint, spaced } from "./parts.js";
import { SharePage } from "./sharepage.js";
import { StepPage } from "./steppage.js";
import { save } from "../../kit/browser/save.js";
import { form } from "../../kit/browser/language.js";

/** @typedef {import("./types.js").Asked} Asked */
/** @typedef {import("./types.js").Round} Round */

const SEND_AFTER = 60; // ms without a change before the class is told
const LOOK = 250; // ms between two looks at the address, in rooms that do not say what they show
const ASKS = "explore"; // the room whose rows are asked about
const LESSONS = "lessons"; // in which every other room stands
const MOST_LINK = 700; // bytes of a link to a room that is not followed, and of what is said in place of a picture
const REFUSED = "sentences"; // where a room says why it shows nothing
const SILENT = 2; // looks in a row without a picture, after which a room that says why is taken to show none
const LONG = 8; // the same of a room that says nothing, and gets a link
const SAY = 5000; // ms between two sentences for a screen reader
const TOAST = 6000; // ms
const TOLD_AFTER = 300; // ms before a screen reader hears the result
const OF_THE_PAGE = ["view", "theme", "projector", "frozen", "spotlight", "lang"]; // parameters of the page, not of its contents
const OF_THE_RUN = ["text", "target", "with"];
const settings = () => window.headlight.settings;

// What a lesson covers until its teacher has looked, as the class is told
function ofLesson() {
  const { now, seen, isLed, held } = cover;
  return held || !isLed || !now?.part || seen
    ? ""
    : `lesson:${now.part}:${/^\d{1,4}$/.test(now.values.query ?? "") ? now.values.query : ""}`;
}

// What a link to a room says that is not followed: all of the address, or what there is room for
/** @param {[name: string, text: string][]} address */
function linked(address) {
  const all = address.filter(([name]) => !OF_THE_PAGE.includes(name));
  const found = [all, all.filter(([name]) => !OF_THE_RUN.includes(name)), []].find((said) => size(said) <= MOST_LINK);
  return Object.fromEntries(found ?? []);
}

// As many bytes as it travels in
const size = (/** @type {unknown} */ said) => JSON.stringify(said).replace(/[^ -~]/g, "\\u0000").length;

/** The sentences above a room, as many words of them as there is room for. @param {string[]} sentences */
function cut(sentences) {
  const kept = sentences.join(" ").split(" ");
  if (size(kept.join(" ")) <= MOST_LINK) return kept.join(" ");
  while (kept.length && size(`${kept.join(" ")} …`) > MOST_LINK) kept.pop();
  return `${kept.join(" ")} …`;
}

export class Teacher {
  /** @type {import("./types.js").Taught | null} */
  taught = null;
  /** @type {import("./types.js").ClassNow} */
  now = { of: 0, door: true, away: false, left: 0 };
  /** @type {Asked | null} */
  asked = null;
  /** @type {import("./types.js").Votes | null} */
  votes = null;
  /** @type {Question | null} */
  question = null;
  /** @type {import("./types.js").StepNow | null} A step of a lesson that is asked, in place of a row */
  step = null;
  /** @type {import("./types.js").StepBody | null} */
  body = null;
  isHidden = false; // the votes on a step, which are closed
  isMistake = false; // whether the wall says which mistake the commonest wrong answer is
  /** @type {number | null} How many had answered when the connection went */
  slept = null;
  /** @type {Round[]} */
  rounds = [];
  /** @type {[layer: number, head: number]} Whose weights stand beside the votes */
  head = [0, 0];
  /** @type {{text: string, site: string, layer: number, head: number, word: string, at: number} | null} To be asked once its sentence has run */
  pending = null;
  wantsAsk = false; // a question was wanted before the room of questions had its picture
  text = ""; // of the question
  page = ""; // what lies over the room: "share", "ask", "step", or nothing; "pick" is the room itself, covered
  cleared = 0; // the last question that this page has taken back
  isLost = false;
  isAsking = false;
  isEnding = false;
  silent = 0; // looks in a row in which a room that is followed showed nothing, with its script done
  room = "";
  /** @type {string[]} Rooms that say what they show */
  followed = [];
  /** @type {SharePage | AskPage | StepPage | null} */
  shownPage = null;
  /** @type {Stream | null} */
  stream = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  sending;
  sent = "";
  /** @type {"light" | "dark"} */
  themeName = "light";

  /** @param {HTMLElement} bar */
  constructor(bar) {
    this.bar = bar;
    this.host = el("div");
    this.host.id = "headlight-classroom";
    const shadow = this.host.attachShadow({ mode: "open" });
    shadow.append(el("style", "", STYLE));
    this.root = shadow.appendChild(el("div", "classroom"));
    this.over = add(this.root, "div", "over");
    this.corner = add(this.root, "div", "corner");
    this.card = add(this.root, "div", "card");
    described(this.root, "region", words.region);
    this.toast = add(this.root, "p", "toast");
    this.toast.setAttribute("role", "status");
    this.live = add(this.root, "p", "unseen");
    this.live.setAttribute("aria-live", "polite");
    document.body.append(this.host);

    this.asks = button(words.ask, "ask", () => (this.asked?.open ? this.show("ask") : this.pick()));
    this.badge = button("", "badge", () => this.show(this.page === "share" ? this.asking : "share"));
    this.badge.title = words.badge_help;
    this.bar.append(this.asks, this.badge);

    const off = new AbortController();
    const { signal } = off;
    addEventListener("keydown", (e) => this.key(e), { signal, capture: true }); // before the projector, which turns heads with Page Down
    addEventListener("resize", () => this.place(), { signal });
    addEventListener("scroll", () => this.follows(), { signal, capture: true, passive: true });
    classroom.turn = (by) => this.turn(by);
    const unwatch = [
      classroom.watch(() => this.moved()),
      cover.watch(() => this.send()),
      settings().watch(() => this.theme()),
    ];
    const looking = setInterval(() => this.looksAgain(), LOOK);
    const saying = setInterval(() => this.say(), SAY);
    this.destroy = () => {
      off.abort();
      for (const stop of unwatch) stop();
      clearInterval(looking);
      clearInterval(saying);
      this.stream?.close();
      classroom.turn = () => false;
      this.host.remove();
      this.asks.remove();
      this.badge.remove();
      cover.free();
      delete document.documentElement.dataset.classroom;
    };
    this.theme();
    this.resume();
    this.draw();
  }

  // ------------------------------------------------------------------ the page around it

  // The bar says so whenever the room or the theme changes.
  /** @param {string} room @param {string[]} followed */
  update(room, followed) {
    this.followed = followed;
    const isOther = room !== this.room;
    if (isOther) this.silent = 0;
    if (isOther && this.page === "pick") {
      this.unpick();
      this.wantsAsk = room === ASKS; // asked for when the address had gone there, and the bar had not
    }
    // Who chooses a room wants to see it. A question that is open stays open, and the bar leads back to it.
    if (this.room && room !== this.room && this.page && !this.pending) this.show("");
    this.room = room;
    this.theme();
    this.askNow();
    this.send();
    this.draw();
  }

  theme() {
    const name = themeOf(this.bar);
    if (name !== this.themeName || !this.ramp) {
      this.themeName = name;
      this.ramp = colours(this.palette.ramp);
      paint(this.root, this.palette);
      this.shownPage = null;
    }
    this.draw();
    requestAnimationFrame(() => this.place());
  }

  /** @type {ReturnType<typeof colours>} */
  ramp;

  /** @returns {Record<string, any>} */
  get palette() {
    return PALETTES[this.themeName];
  }

  /** @param {number} p */
  colour(p) {
    return this.ramp.css[Math.round(255 * p)];
  }

  get isProjected() {
    return settings().get("projector") !== null;
  }

  // It begins below the bar, and in projector mode, which has none, at the top.
  place() {
    const top = this.isProjected ? 0 : this.bar.getBoundingClientRect().bottom;
    this.root.style.setProperty("--top", `${Math.max(0, Math.round(top))}px`);
    this.root.classList.toggle("projected", this.isProjected);
    if (this.shownPage instanceof AskPage) this.shownPage.draw();
  }

  // ------------------------------------------------------------------ open and end

  resume() {
    try {
      const taught = JSON.parse(sessionStorage.getItem(kept()) ?? "null");
      if (taught?.code && taught.key) this.begin(taught);
    } catch {
      // no storage: a class ends with its page
    }
  }

  async share() {
    if (this.taught) return this.show("share");
    try {
      const response = await ask("open", { body: { screen: this.screen(), page: pageAddress() } });
      this.begin(await response.json());
      this.show("share");
    } catch (error) {
      this.tell(error instanceof Refused ? error.message : words.no_connection_now);
    }
  }

  /** @param {import("./types.js").Taught} taught */
  begin(taught) {
    this.taught = taught;
    try {
      sessionStorage.setItem(kept(), JSON.stringify(taught));
    } catch {
      // as above
    }
    this.stream = new Stream(taught.code, taught.key, {
      event: (name, data) => this.hear(name, data),
      lost: () => this.lose(true),
      back: () => {
        this.lose(false);
        this.sent = "";
        this.send();
      },
      gone: () => this.isGone(),
    });
  }

  async end() {
    const { taught } = this;
    if (!taught) return;
    this.isEnding = true;
    try {
      await ask(`${taught.code}/teach`, { key: taught.key, body: { do: "end" } });
      this.over_(words.ended);
    } catch (error) {
      if (error instanceof Refused && error.status === 404) this.over_(words.forgotten);
      else this.tell(error instanceof Refused ? error.message : words.no_connection_now);
    }
    this.isEnding = false;
  }

  // The server does not know the class any more. Of one that the teacher ends it may say so before it answers that it has ended.
  isGone() {
    this.over_(this.isEnding ? words.ended : words.forgotten);
  }

  // The class is over.
  /** @param {string} sentence */
  over_(sentence) {
    if (!this.taught) return;
    this.stream?.close();
    Object.assign(this, {
      taught: null,
      stream: null,
      asked: null,
      votes: null,
      question: null,
      step: null,
      body: null,
      slept: null,
      rounds: [],
      cleared: 0,
      pending: null,
      wantsAsk: false,
      sent: "",
      isLost: false,
      isAsking: false,
    });
    this.now = { of: 0, door: true, away: false, left: 0 };
    try {
      sessionStorage.removeItem(kept());
    } catch {
      // as above
    }
    cover.free();
    this.show("");
    this.tell(sentence);
  }

  /** @param {boolean} isLost */
  lose(isLost) {
    this.isLost = isLost;
    if (isLost && this.step?.stage === "ask") this.slept = this.votes?.said ?? 0;
    this.draw();
  }

  // ------------------------------------------------------------------ what the class sees

  get isShown() {
    const { shown } = classroom;
    return shown !== null && (shown.view === this.room || this.room === LESSONS);
  }

  get canAsk() {
    return this.taught !== null && this.isShown && classroom.shown?.view === ASKS;
  }

  // Whether the room of questions is on the screen, or on its way there
  get isBound() {
    return [this.room, here().get("view") ?? ASKS].includes(ASKS);
  }

  // A question that was wanted before there was a picture
  askNow() {
    if (!this.wantsAsk || !this.canAsk) return;
    this.wantsAsk = false;
    this.pick();
  }

  // Another sentence, head or word is on the screen.
  moved() {
    const { shown } = classroom;
    this.askNow();
    if (this.pending && shown && shown.text === this.pending.text && shown.view === ASKS && this.room === ASKS) {
      const { pending } = this;
      const { site, layer, head, word, at } = pending;
      this.pending = null;
      this.ask(shown.run, site, layer, head, nearest(shown.labels(site), word, at));
    }
    this.send();
    this.draw();
  }

  screen() {
    const { shown, step } = classroom;
    const isPicking = this.page === "pick" || this.wantsAsk || this.pending || this.isAsking;
    // No covered number of a step goes to a phone before its answer is shown.
    if (this.room === LESSONS && (!step || step.isCovered) && !isPicking && !this.asked) {
      const covers = this.page === "share" ? "code" : "step";
      return { view: this.room, run: "", with: {}, cover: covers, said: words.step_covered };
    }
    const covers = isPicking ? "head" : this.asked?.open ? "row" : this.page === "share" ? "code" : ofLesson();
    if (shown && this.isShown) return { view: shown.view, run: shown.run, with: shown.with, cover: covers };
    const said = this.followed.includes(this.room) ? cut(texts(REFUSED) ?? []) : "";
    return { view: this.room, run: "", with: said ? {} : linked([...here()]), cover: covers, said };
  }

  looksAgain() {
    if (!this.taught) return;
    this.seek();
    this.follows();
  }

  // The votes on the picture go with it.
  follows() {
    if (this.shownPage instanceof StepPage) this.shownPage.draw();
  }

  // A room that says nothing of itself is looked at; of those that do, one that was refused.
  seek() {
    this.silent = this.isShown || texts(REFUSED) === null ? 0 : this.silent + 1;
    if (!this.isBound)
      this.wantsAsk = false; // its teacher has gone elsewhere
    else if (this.wantsAsk && this.silent >= LONG) {
      this.wantsAsk = false;
      this.tell(words.nothing_to_ask);
    }
    if (!this.isShown) this.send();
  }

  send() {
    if (!this.taught || this.isLost || !this.room) return;
    clearTimeout(this.sending);
    this.sending = setTimeout(() => {
      const screen = this.screen();
      if (this.followed.includes(this.room) && !this.isShown && this.silent < (screen.said ? SILENT : LONG)) return; // its picture is on its way
      const text = JSON.stringify(screen);
      if (!this.taught || text === this.sent) return;
      this.sent = text;
      this.teach({ do: "screen", screen }).then((answer) => {
        if (!answer && this.sent === text) this.sent = ""; // it was refused: what is shown next is told, also where it is the same
      });
    }, SEND_AFTER);
  }

  /** @param {object} command @returns {Promise<any>} the answer; null where the server would not, which is said */
  async teach(command) {
    const { taught } = this;
    if (!taught) return null;
    try {
      const response = await ask(`${taught.code}/teach`, { key: taught.key, body: command });
      return response.status === 204 ? {} : await response.json();
    } catch (error) {
      if (error instanceof Refused && error.status === 404) this.isGone();
      else if (error instanceof Refused) this.tell(error.message);
      return null;
    }
  }

  // ------------------------------------------------------------------ a question

  // The head is covered on every screen until the teacher has clicked a word.
  pick() {
    if (!this.canAsk || this.asked?.open || this.page === "pick") return;
    if (this.asked) this.clear();
    this.show("pick");
    cover.hold({ step: "classroom", part: "row", asks: "point", values: { query: "all" }, seen: false }, ([query]) =>
      this.choose(query),
    );
    this.send();
  }

  unpick() {
    if (this.page !== "pick") return;
    cover.free();
    this.show("");
    this.send();
  }

  /** @param {number} query */
  choose(query) {
    const { shown } = classroom;
    if (!shown || this.page !== "pick") return;
    this.text = shown.text;
    this.ask(shown.run, shown.with.site, Number(shown.with.layer), Number(shown.with.head), query);
  }

  /** @param {string} run @param {string} site @param {number} layer @param {number} head @param {number} query */
  async ask(run, site, layer, head, query) {
    this.text = classroom.shown?.text ?? this.text;
    this.isAsking = true; // until the class has it, and so this page
    const asked = await this.teach({ do: "ask", run, site, layer, head, query });
    if (asked) return;
    this.isAsking = false;
    this.unpick();
    this.draw();
  }

  reveal() {
    if (this.asked?.open) this.teach({ do: "reveal", q: this.asked.q });
  }

  hide() {
    if (this.asked?.open) this.teach({ do: "hide", on: !this.asked.hidden });
  }

  // ------------------------------------------------------------------ a step of a lesson

  // The question of the lesson on the screen. Without a class the code comes first, and this once more.
  async askStep() {
    if (!this.taught) return this.share();
    if (this.page === "pick" || this.page === "ask") return;
    if (this.step) return this.show("step");
    const { step } = classroom;
    if (!step?.offer) return this.tell(words.step_nothing);
    step.cover();
    if (this.page === "share") this.show("");
    this.wantsStep = true;
    if (!(await this.teach({ do: "step", offer: step.offer }))) this.wantsStep = false;
  }

  wantsStep = false; // one is asked, and the class has not said so yet

  /** @param {"votes" | "again" | "answer"} to */
  move(to) {
    if (this.step) this.teach({ do: to, q: this.step.q });
  }

  hideStep() {
    this.isHidden = !this.isHidden;
    this.draw();
  }

  showMistake() {
    this.isMistake = !this.isMistake;
    this.draw();
  }

  /** @param {import("./types.js").StepNow} step */
  hearStep(step) {
    if (step.q === this.cleared) return void this.teach({ do: "back" });
    const before = this.step;
    Object.assign(this, { step, asked: null, question: null, isAsking: false });
    if (step.q !== before?.q) Object.assign(this, { body: null, votes: null });
    if (step.stage !== before?.stage) Object.assign(this, { isHidden: false, isMistake: false });
    if (step.q !== before?.q || this.wantsStep) {
      this.wantsStep = false;
      if (this.page !== "share") this.show("step");
    }
    this.fetchStep(step);
  }

  /** @param {import("./types.js").StepNow} step */
  async fetchStep(step) {
    const { taught } = this;
    if (!taught) return;
    try {
      const response = await ask(`${taught.code}/step?q=${step.q}`, { key: taught.key });
      const body = await response.json();
      if (this.step?.q !== step.q || this.step.round !== body.round || this.step.stage !== body.stage) return; // a newer one is on its way
      this.body = body;
      if (body.stage === "answer" && classroom.step?.name === body.step) classroom.step?.look();
      this.draw();
      this.say();
    } catch (error) {
      this.tell(error instanceof Refused ? error.message : words.no_connection_now);
    }
  }

  // All steps that were answered, as a file
  /** @param {"csv" | "html"} kind */
  async saveClass(kind) {
    const { taught } = this;
    if (!taught) return;
    try {
      const response = await ask(`${taught.code}/class.${kind}`, { key: taught.key });
      save(`headlight-${taught.code}.${kind}`, await response.blob());
    } catch (error) {
      this.tell(error instanceof Refused ? error.message : words.no_connection_now);
    }
  }

  // ------------------------------------------------------------------ back

  // The page of what is asked; "": nothing is
  get asking() {
    return this.asked ? "ask" : this.step ? "step" : "";
  }

  // Back to the sentence
  leave() {
    this.pending = null;
    this.clear();
    cover.free();
    this.show("");
  }

  // No question any more
  clear() {
    this.cleared = this.asked?.q ?? this.step?.q ?? this.cleared;
    Object.assign(this, { asked: null, question: null, step: null, body: null });
    this.teach({ do: "back" });
  }

  // The same word of the same head, in another sentence
  /** @param {string} text */
  again(text) {
    const { asked, question } = this;
    if (!asked || !question) return;
    const { site, layer, head } = asked;
    this.pending = { text, site, layer, head, word: question.word, at: asked.query };
    cover.hold({ step: "classroom", part: "row", asks: "", values: { query: "all" }, seen: false });
    const address = new URL(location.href);
    for (const [name, value] of Object.entries({ text, site, layer, head, query: asked.query }))
      address.searchParams.set(name, String(value));
    address.searchParams.set("view", "explore");
    goTo(address.href, false);
    this.draw();
  }

  /** Another head beside the votes. @param {number} layer @param {number} head */
  look(layer, head) {
    if (!this.question || this.asked?.open) return;
    const { layers, heads } = this.question.site;
    if (layer < 0 || head < 0 || layer >= layers || head >= heads) return;
    this.head = [layer, head];
    this.draw();
    const page = this.shownPage;
    if (page instanceof AskPage)
      this.live.textContent = `${fill(words.place_short, { layer, head })} ${page.summary()}`;
  }

  /** @param {string} name @param {any} data */
  hear(name, data) {
    if (name === "class") this.now = data;
    else if (name === "question" && data && "stage" in data) this.hearStep(data);
    else if (name === "question") this.hearQuestion(data);
    else if (name === "votes") this.hearVotes(data);
    else if (name === "ended") return this.over_(data.why === "end" ? words.ended : words.forgotten);
    this.keep();
    this.draw();
  }

  /** @param {import("./types.js").Votes | null} votes */
  hearVotes(votes) {
    if (!votes || votes.q !== (this.asked ?? this.step)?.q) return;
    const more = this.slept === null || this.isLost ? 0 : votes.said - this.slept;
    if (!this.isLost) this.slept = null;
    if (more > 0) this.tell(fill(words.step_slept, { n: more }));
    this.votes = votes;
  }

  /** @param {Asked | null} asked */
  hearQuestion(asked) {
    if (this.step) {
      Object.assign(this, { step: null, body: null });
      if (this.page === "step") this.show("");
    }
    if (asked && asked.q === this.cleared) return void this.teach({ do: "back" }); // the class has not heard that it is over
    const before = this.asked;
    this.asked = asked;
    this.isAsking = false;
    if (!asked) {
      this.question = null;
      if (before && !this.pending) cover.free();
      if (this.page === "ask" && !this.pending) this.show("");
      return;
    }
    if (asked.q !== before?.q) {
      this.head = [asked.layer, asked.head];
      this.votes = null;
      this.fetch(asked);
      if (this.page !== "share") this.show("ask");
    }
    if (asked.open)
      cover.hold({ step: "classroom", part: "row", asks: "", values: { query: String(asked.query) }, seen: false });
    else if (!this.pending) {
      cover.free();
      if (before?.open) this.tellResult();
    }
    this.send();
  }

  /** @param {Asked} asked */
  async fetch(asked) {
    const { taught } = this;
    if (!taught) return;
    this.question = null;
    try {
      const response = await ask(`${taught.code}/picture/${asked.picture}`, { key: taught.key });
      const bytes = new Uint8Array(await response.arrayBuffer());
      if (this.asked?.q !== asked.q) return;
      this.question = new Question(asked, bytes, () => this.draw());
      this.text = this.question.picture.link?.text ?? classroom.shown?.text ?? this.text;
      this.likeness = null;
      this.keep();
    } catch (error) {
      this.tell(error instanceof Refused ? error.message : words.no_connection_now);
    }
    this.draw();
  }

  // What a round was, for the one after it
  keep() {
    const { asked, question, votes } = this;
    if (!asked || asked.open || !question || votes?.q !== asked.q || !votes.votes) return;
    const weights = question.row(asked.layer, asked.head)?.weights;
    if (!weights) return;
    const { q, layer, head } = asked;
    this.rounds = this.rounds.filter((round) => round.q !== q);
    this.rounds.push({
      q,
      layer,
      head,
      query: question.word,
      labels: question.labels,
      votes: shares(question.counts(votes)),
      weights: Array.from(weights),
    });
  }

  // The sentence that the class has come to, read out once it is on the screen
  tellResult() {
    setTimeout(() => {
      const page = this.shownPage;
      if (page instanceof AskPage && page.fact) this.live.textContent = page.fact;
    }, TOLD_AFTER);
  }

  // The last round of the same word and head in another sentence of as many words
  get last() {
    const { asked, question } = this;
    if (!asked || !question) return null;
    const same = (/** @type {Round} */ r) =>
      r.q < asked.q &&
      r.layer === asked.layer &&
      r.head === asked.head &&
      r.query === question.word &&
      r.labels.length === question.n;
    return this.rounds.findLast((round) => same(round) && round.votes.some(Boolean)) ?? null;
  }

  // What the marks of the round before say; only beside the head that was asked about
  before() {
    const { last, asked, question } = this;
    if (!last || !question || this.head[0] !== asked?.layer || this.head[1] !== asked.head) return null;
    return { votes: last.votes, weights: last.weights, word: differing(last.labels, question.labels)?.[0] ?? "" };
  }

  /** @param {number[]} votes @param {ArrayLike<number>} weights */
  change(votes, weights) {
    const { last, question } = this;
    const words_ =
      last && question && this.before() && votes.some(Boolean) ? differing(last.labels, question.labels) : null;
    if (!last || !words_) return null;
    return {
      old: words_[0],
      now: words_[1],
      votes: /** @type {[number[], number[]]} */ ([last.votes, votes]),
      weights: /** @type {[ArrayLike<number>, ArrayLike<number>]} */ ([last.weights, weights]),
    };
  }

  /** How much of each head's row the class shares: from the weights that are here, or from the server. @param {number[]} votes */
  likes(votes) {
    const { question, taught, asked } = this;
    if (!question || !taught || !asked) return null;
    const rows = question.rows();
    if (rows) return agreements(rows, votes);
    if (!this.likeness) {
      this.likeness = { agree: [] };
      ask(`${taught.code}/likeness?q=${asked.q}`, { key: taught.key }).then(
        async (response) => {
          this.likeness = await response.json();
          const page = this.shownPage;
          if (page instanceof AskPage) page.last = "";
          this.draw();
        },
        () => {},
      );
    }
    const { agree } = this.likeness;
    return agree.length
      ? agree.flatMap((heads, layer) => heads.map((agreement, head) => ({ layer, head, agreement })))
      : null;
  }

  /** @type {import("./types.js").Likeness | null} */
  likeness = null;

  // ------------------------------------------------------------------ what is drawn

  /** @param {string} page */
  show(page) {
    if (page === "ask" && !this.asked && !this.pending) page = "";
    if (page === "step" && !this.step) page = "";
    if (page === "" && this.step) this.clear(); // it leaves the wall, and the phones
    // However the answer leaves the wall, it leaves the phones too: else they would stay with it whatever is shown from now on.
    if (page === "" && this.asked && !this.asked.open && !this.pending) this.clear();
    const isOther = page !== this.page;
    if (this.page === "pick" && page !== "pick" && page !== "ask") cover.free();
    this.page = page;
    if (isOther) this.shownPage = null;
    this.draw();
    if (isOther && this.shownPage) this.shownPage.title.focus({ preventScroll: true });
    this.send();
  }

  draw() {
    const { taught, now, page } = this;
    const isOpen = Boolean(this.asked?.open);
    this.asks.hidden = !(this.canAsk || isOpen) || page !== "" || (this.room === LESSONS && !isOpen); // there a step has its own
    this.asks.textContent = isOpen ? words.back_to_question : words.ask;
    this.asks.title = isOpen ? "" : words.ask_help;
    this.badge.hidden = !taught;
    this.badge.classList.toggle("off", this.isLost);
    this.badge.setAttribute("aria-pressed", String(page === "share"));
    if (taught) {
      const count = el("span");
      count.append(el("b", "", String(now.of)), ` ${form(words.follow, now.of)}`);
      this.badge.replaceChildren(
        ...(this.isLost
          ? [el("span", "", words.no_connection)]
          : [count, " ", el("span", "signs", now.door ? spaced(taught.code) : words.door_closed)]),
      );
    }
    this.corner.hidden = !taught || !this.isProjected || page === "share";
    if (taught)
      this.corner.replaceChildren(
        el("b", "", now.door ? spaced(taught.code) : words.door_closed),
        ` ${taught.address}`,
      );
    this.drawCard();
    const isOver = taught !== null && (page === "share" || page === "ask" || page === "step");
    this.over.hidden = !isOver;
    this.over.classList.toggle("beside", page === "step");
    if (isOver) document.documentElement.dataset.classroom = page;
    else delete document.documentElement.dataset.classroom;
    if (!isOver) {
      if (this.shownPage instanceof AskPage) this.shownPage.destroy();
      this.shownPage = null;
      this.over.replaceChildren();
    } else if (this.shownPage) this.shownPage.draw();
    else {
      this.over.replaceChildren();
      const lost = add(this.over, "p", "lost");
      lost.textContent = words.teacher_lost;
      this.shownPage = new { share: SharePage, ask: AskPage, step: StepPage }[page](this, this.over);
    }
    this.over.classList.toggle("isLost", this.isLost);
  }

  // Beside the room that is covered: what to do
  drawCard() {
    const wanted = this.page === "pick";
    if (this.card.hidden === !wanted && this.card.childElementCount) return;
    this.card.hidden = !wanted;
    if (!wanted) return;
    this.card.replaceChildren(
      el("h2", "", words.pick_title),
      el("p", "big", words.pick),
      el("p", "", words.pick_help),
      button(words.no_question, "quiet big", () => this.unpick()),
    );
  }

  /** @param {string} sentence */
  tell(sentence) {
    this.toast.textContent = sentence;
    clearTimeout(this.telling);
    this.telling = setTimeout(() => (this.toast.textContent = ""), TOAST);
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  telling;

  // How many have said, for a screen reader; not more often than a listener can follow
  say() {
    const page = this.shownPage;
    if (!(page instanceof StepPage) && (!(page instanceof AskPage) || !this.asked?.open)) return;
    const text = page.summary();
    if (text !== this.live.textContent) this.live.textContent = text;
  }

  // ------------------------------------------------------------------ keys

  // J the code, A a question, H hides the votes, R or Page Down uncovers, arrows go through the heads
  /** @param {KeyboardEvent} e */
  key(e) {
    if (!isFree(e) || e.repeat) return;
    const letter = e.key.toLowerCase();
    const { asked, page } = this;
    const isAsking = page === "ask" && asked !== null;
    if (page === "step" && this.keyOfStep(e)) {
      // the question is at another stage
    } else if (letter === "j") this.taught && page === "share" ? this.show(this.asking) : this.share();
    else if (!this.taught) return;
    else if (e.key === "Escape" && page === "pick") this.unpick();
    else if (e.key === "Escape" && this.wantsAsk) {
      this.wantsAsk = false;
      this.send();
    } else if (e.key === "Escape" && page === "share" && !this.isProjected) this.show(this.asking);
    else if (letter === "r" && page === "share" && (this.step || classroom.step?.offer)) this.askStep();
    else if (letter === "a" && asked?.open && page !== "ask") this.show("ask");
    else if (letter === "a" && this.canAsk && page !== "ask") this.pick();
    else if (letter === "a" && this.isBound && page === "") {
      this.wantsAsk = true; // its picture is on its way
      this.send();
    } else if (isAsking && asked.open && (letter === "r" || e.key === "PageDown")) this.reveal();
    else if (isAsking && asked.open && letter === "h") this.hide();
    else if (isAsking && !asked.open && !this.pending && this.turnHead(e.key)) {
      // the head is another one
    } else return;
    e.preventDefault();
    e.stopImmediatePropagation();
  }

  /** A Page key that a lesson below has heard first. @param {number} by */
  turn(by) {
    if (this.page === "ask" && this.asked?.open && by > 0) this.reveal();
    else if (this.page !== "step") return this.page === "ask" || this.page === "share";
    else this.stepOn(by > 0 ? "pagedown" : "pageup");
    return true;
  }

  // Page Down and Space lead on, Page Up and H hide the votes, M names the commonest mistake, A asks again, Escape goes back to the lesson
  /** @param {KeyboardEvent} e */
  keyOfStep(e) {
    const { step } = this;
    const isButton =
      e.key === " " && e.target instanceof Element && this.host.shadowRoot?.activeElement?.tagName === "BUTTON";
    if (!step || isButton) return false;
    return this.stepOn(e.key.toLowerCase());
  }

  /** @param {string} key */
  stepOn(key) {
    const { step } = this;
    if (!step) return false;
    if (key === "pagedown" || key === " " || key === "r")
      step.stage === "answer" ? key !== "r" && this.show("") : this.move(step.stage === "ask" ? "votes" : "answer");
    else if ((key === "pageup" || key === "h") && step.stage === "votes") this.hideStep();
    else if (key === "a" && step.stage === "votes") this.move("again");
    else if (key === "m" && step.stage === "votes" && this.body?.mistake) this.showMistake();
    else if (key === "escape" && !this.isProjected) this.show("");
    else return ["pageup", "a", "h", "m"].includes(key); // which turn no page below
    return true;
  }

  /** @param {string} key */
  turnHead(key) {
    /** @type {Record<string, [number, number]>} */
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const by = steps[key];
    if (by) this.look(this.head[0] + by[0], this.head[1] + by[1]);
    return Boolean(by);
  }
}
