// Between what is on the screen and the class that follows it. They are parts of one page, and share this module.
//
// A room says what it shows as soon as it does; app/classroom sends it on. On a follower's own page nobody offers to share it again.

/** @typedef {import("./types.js").ShownToClass} Shown */

export const KEPT = "headlight-classroom"; // in the session's storage: the class that this tab teaches

class Classroom {
  /** @type {Shown | null} The run or the room on the screen, and what is chosen in it */
  shown = null;
  follows = false; // whether this page is a follower's
  chose = () => {}; // something is chosen in the room, by whoever is at this page or by the room itself: a follower's page says what then
  share = () => {}; // opens a class, or the page with its code: the bar says how
  /** @type {Set<() => void>} */
  heard = new Set();

  /** @type {object | null} Who has said what is shown */
  by = null;

  /** A room shows this, or nothing that can be asked about any more. @param {Shown | null} shown @param {object | null} by */
  show(shown, by) {
    this.by = by;
    if (JSON.stringify(shown) === JSON.stringify(this.shown)) return;
    this.shown = shown;
    for (const hear of [...this.heard]) hear();
  }

  /** A room has left the page, which it may hear late: what another one, or the same one drawn anew, has shown since stays. @param {object} by */
  leave(by) {
    if (this.by === by) this.show(null, null);
  }

  /** @param {() => void} hear */
  watch(hear) {
    this.heard.add(hear);
    return () => void this.heard.delete(hear);
  }
}

export const classroom = new Classroom();
