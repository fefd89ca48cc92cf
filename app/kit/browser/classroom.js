// Between what is on the screen and the class that follows it. They are parts of one page, and share this module.
//
// A room says what it shows as soon as it does; app/classroom sends it on. On a follower's own page no one offers to share it again.

/** @typedef {import("./types.js").ShownToClass} Shown */

// In the session's storage: the class that this tab teaches. Below one host there may be several Headlights, each with its own classes.
export const kept = () => `headlight-classroom ${new URL(".", document.baseURI).pathname}`;

class Classroom {
  /** @type {Shown | null} The run or the room on the screen, and what is chosen in it */
  shown = null;
  follows = false; // whether this page is a follower's
  chose = () => {}; // something is chosen in the room, by the person at this page or by the room itself: a follower's page says what then
  /** @type {import("./types.js").StepToAsk | null} The step of a lesson on the screen */
  step = null;
  /** @type {(by: number) => boolean} Whether the page of a question takes a Page key */
  turn = () => false;
  ask = () => {}; // asks a class the step on the screen: the bar says how
  share = () => {}; // opens a class, or the page with its code: the bar says how
  /** @type {Set<() => void>} */
  heard = new Set();

  /** @type {Map<object, Shown>} What each room in the page shows, in the order in which they came */
  rooms = new Map();

  /** A room shows this. One that is drawn once more while the next one is there already changes nothing. @param {Shown} shown @param {object} by */
  show(shown, by) {
    this.rooms.set(by, shown);
    this.look();
  }

  /** A room has left the page, which it may hear late: what another one, or the same one drawn again, has shown since stays. @param {object} by */
  leave(by) {
    this.rooms.delete(by);
    this.look();
  }

  look() {
    const shown = [...this.rooms.values()].at(-1) ?? null;
    if (JSON.stringify(shown) === JSON.stringify(this.shown)) return;
    this.shown = shown;
    for (const hear of [...this.heard]) hear();
  }

  /** A lesson shows this step; null: it has left the page. @param {import("./types.js").StepToAsk | null} step */
  offers(step) {
    const said = (/** @type {import("./types.js").StepToAsk | null} */ one) =>
      one && [one.name, one.offer, one.isCovered].join();
    const isSame = said(step) === said(this.step);
    this.step = step;
    if (!isSame) for (const hear of [...this.heard]) hear();
  }

  /** @param {() => void} hear */
  watch(hear) {
    this.heard.add(hear);
    return () => void this.heard.delete(hear);
  }
}

export const classroom = new Classroom();
