// Functions that tests/app/walking.py runs in a page: they list its controls and check visibility, reachability and text layout.
(() => {
  const CONTROL =
    "button, [role=button], [role=tab], summary, a[href], select, input:not([type=hidden]), textarea, [role=slider], [role=application]";
  const every = (root = document) => {
    const found = [];
    const walk = (at) => {
      for (const node of at.querySelectorAll("*")) {
        found.push(node);
        if (node.shadowRoot) walk(node.shadowRoot);
      }
    };
    walk(root);
    return found;
  };
  const up = (node) => node.parentElement ?? node.parentNode?.host ?? null;
  const holds = (node, other) => {
    for (let at = other; at; at = at.parentNode ?? at.host) if (at === node) return true;
    return false;
  };
  const seenAt = (x, y) => {
    let found = document.elementFromPoint(x, y);
    for (let inner = found; inner?.shadowRoot; found = inner) {
      inner = inner.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === found) break;
    }
    return found;
  };
  const isSeen = (node) => {
    if (!node.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return false;
    if (node.closest("[aria-hidden=true], [inert], .unseen")) return false;
    const { width, height } = node.getBoundingClientRect();
    return width >= 2 && height >= 2;
  };
  const nameOf = (node) =>
    (node.getAttribute("aria-label") || node.labels?.[0]?.textContent || node.textContent || node.title || "")
      .trim()
      .replace(/\s+/g, " ")
      .slice(0, 60);
  const told = (node) => `${node.localName}.${node.className.baseVal ?? node.className} “${nameOf(node)}”`;

  // Visible controls in document order. The id has the tag, the name, and an index among equal names.
  function controls() {
    const counts = new Map();
    return every()
      .filter((node) => node.matches(CONTROL) && isSeen(node) && !node.closest("[data-testid=stApp] > h1"))
      .map((node) => {
        const name = `${node.localName}|${node.type ?? ""}|${nameOf(node)}`;
        const nth = counts.get(name) ?? 0;
        counts.set(name, nth + 1);
        return { node, id: `${name}|${nth}` };
      });
  }

  // Whether the node is in a group of sibling buttons with exactly one pressed button, such as a row of tokens
  function isOneOfMany(node) {
    const alike = node.parentElement ? [...node.parentElement.children].filter((one) => one.localName === node.localName) : [];
    return alike.length > 2 && alike.filter((one) => ["aria-pressed", "aria-selected"].some((name) => one.getAttribute(name) === "true")).length === 1;
  }

  // Each control with the state that decides whether a press must have an effect
  function listed() {
    return controls().map(({ node, id }) => ({
      id,
      told: told(node),
      kind: node.localName === "select" ? "select" : node.localName === "input" ? node.type : node.localName,
      role: node.getAttribute("role") ?? "",
      isOff: node.disabled || node.getAttribute("aria-disabled") === "true",
      isOn:
        node.getAttribute("aria-pressed") === "true" ||
        node.getAttribute("aria-selected") === "true" ||
        node.hasAttribute("aria-current") ||
        node.dataset.testid?.endsWith("Active") ||
        (node.type === "radio" && node.checked),
      isSegment:
        Boolean(node.closest(".seg, [role=radiogroup], [role=tablist], [data-testid=stButtonGroup]")) || isOneOfMany(node),
      options: node.localName === "select" ? [...node.options].filter((one) => !one.disabled).map((one) => one.value) : [],
      value: node.value ?? "",
    }));
  }

  const found = (id) => controls().find((one) => one.id === id)?.node ?? null;

  // All visible text, and the values of the controls
  function said() {
    const texts = every()
      .filter((node) => node.checkVisibility({ visibilityProperty: true }))
      .flatMap((node) => [
        [...node.childNodes].filter(({ nodeType }) => nodeType === 3).map(({ data }) => data.trim()).join(" "),
        ...["aria-pressed", "aria-expanded", "aria-valuetext", "aria-checked"].map((name) => node.getAttribute(name) ?? ""),
        node.value ?? "",
      ]);
    return [...texts.filter(Boolean), window.plain?.asked.length].join("\n"); // and the number of requests to its host
  }

  // Visible texts with a number, by their path in the document. Faded texts are left out: they belong to the previous question.
  function numbers() {
    const texts = {};
    for (const node of every(document.querySelector(".hl") ?? document)) {
      const text = [...node.childNodes].filter(({ nodeType }) => nodeType === 3).map(({ data }) => data.trim()).join(" ");
      if (!/\d/.test(text) || !node.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      if (node.closest("[aria-hidden=true]:not(svg), button, select, label, [role=status], .foot, .head-choice, .counts")) continue;
      let path = "";
      let shown = 1;
      for (let at = node; at && !at.matches(".hl"); at = up(at)) {
        const alike = at.parentNode ? [...at.parentNode.children].filter((one) => one.localName === at.localName) : [at];
        path = `${at.localName}.${at.className.baseVal ?? at.className}:${alike.indexOf(at)}>${path}`;
        shown *= Number(getComputedStyle(at).opacity);
      }
      if (shown > 0.8) texts[path] = text;
    }
    return texts;
  }

  const within = (a, b) => ({
    left: Math.max(a.left, b.left),
    top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right),
    bottom: Math.min(a.bottom, b.bottom),
  });
  const WINDOW = () => ({ left: 0, top: 0, right: innerWidth, bottom: innerHeight });

  // Controls that cannot be pressed: covered by something else, or outside the window even after scrolling
  function unreached() {
    const wrong = [];
    const drawnOver = "label, [data-testid=stSlider], [data-testid=stDataFrame]";
    for (const { node } of controls()) {
      node.scrollIntoView({ block: "nearest", inline: "nearest" });
      let box = node.getClientRects()[0] ?? node.getBoundingClientRect();
      if (box.top < 0 || box.bottom > innerHeight) node.scrollIntoView({ block: "center", inline: "center" });
      box = node.getClientRects()[0] ?? node.getBoundingClientRect();
      const seen = within(box, WINDOW());
      if (seen.right - seen.left < Math.min(2, box.width) || seen.bottom - seen.top < Math.min(2, box.height)) {
        wrong.push(`outside the window: ${told(node)}`);
        continue;
      }
      let hit = seenAt((seen.left + seen.right) / 2, (seen.top + seen.bottom) / 2);
      if (hit && !holds(node, hit) && !holds(hit, node)) {
        node.scrollIntoView({ block: "center", inline: "center" }); // move it out from under sticky elements
        box = node.getClientRects()[0] ?? node.getBoundingClientRect();
        hit = seenAt((box.left + box.right) / 2, (box.top + box.bottom) / 2);
      }
      // A canvas beside the buttons of its rows hears their clicks itself.
      const isDrawing = hit?.localName === "canvas" && hit.parentElement === node.parentElement;
      const isHit = hit && (holds(node, hit) || holds(hit, node) || isDrawing || hit.closest(drawnOver)?.contains(node));
      if (!isHit) wrong.push(`covered by ${hit ? told(hit) : "nothing"}: ${told(node)}`);
    }
    scrollTo(0, 0);
    return wrong;
  }

  function panels() {
    const wrong = [];
    for (const node of every()) {
      const isOpen =
        (node.popover && node.matches(":popover-open")) ||
        (node.matches("[role=dialog], dialog[open], .menu") && !node.hidden && getComputedStyle(node).display !== "none");
      if (!isOpen || !node.checkVisibility()) continue;
      const box = node.getBoundingClientRect();
      if (box.width < 20 || box.height < 20) wrong.push(`an open panel of ${box.width} × ${box.height}: ${told(node)}`);
      else if (box.left < -1 || box.right > innerWidth + 1) wrong.push(`a panel beyond the side: ${told(node)}`);
      else if (!node.textContent.trim()) wrong.push(`an empty panel: ${told(node)}`);
      else if (box.bottom > innerHeight + 1 && getComputedStyle(node).position === "fixed")
        wrong.push(`a panel beyond the bottom: ${told(node)}`);
    }
    for (const node of every())
      if (node.getAttribute("aria-expanded") === "true" && isSeen(node) && node.getAttribute("aria-haspopup") === "dialog") {
        const isAny = every().some((one) => one.matches("[role=dialog]") && isSeen(one));
        if (!isAny) wrong.push(`opened nothing: ${told(node)}`);
      }
    return wrong;
  }

  // The part of a text that its clipping ancestors leave visible
  function clipped(node, box) {
    let seen = box;
    for (let at = node; at; at = up(at)) {
      const { overflowX, overflowY, position } = getComputedStyle(at);
      if (overflowX !== "visible" || overflowY !== "visible") seen = within(seen, at.getBoundingClientRect());
      if (position === "fixed") break;
    }
    return seen;
  }

  const isTurned = (node) => {
    if (node.getScreenCTM) return Math.abs(node.getScreenCTM()?.b ?? 0) > 0.01;
    for (let at = node; at; at = up(at)) if (Math.abs(new DOMMatrix(getComputedStyle(at).transform).b) > 0.01) return true;
    return false;
  };

  function texts() {
    const all = [];
    for (const node of every()) {
      if (!node.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      if (node.closest("[aria-hidden=true]:not(svg), .unseen, script, style, noscript, select, option, title, desc")) continue;
      if (node.matches("h1")) continue; // for a screen reader
      if (Number(getComputedStyle(node).opacity) < 0.3 || isTurned(node)) continue; // the bounding box of slanted text is much larger than the text
      for (const child of node.childNodes) {
        if (child.nodeType !== 3 || !child.data.trim()) continue;
        const range = document.createRange();
        range.selectNodeContents(child);
        for (const rect of range.getClientRects()) {
          if (rect.width < 3 || rect.height < 5) continue;
          const box = clipped(node, rect);
          if (box.right - box.left < 2 || box.bottom - box.top < 2) continue;
          all.push({ node, text: child.data.trim().slice(0, 40), box, rect });
        }
      }
    }
    return all;
  }

  // The nearest positioned ancestor with a background, such as a menu or a sticky bar
  function layerOf(node) {
    for (let at = node; at; at = up(at)) {
      const { position, backgroundColor } = getComputedStyle(at);
      const isOver = ["sticky", "fixed", "absolute"].includes(position) || at.popover;
      if (isOver && !/^rgba\(.*, 0\)$|^transparent$/.test(backgroundColor)) return at;
    }
    return null;
  }

  const isOpaque = (node) => !/^rgba\(.*, 0\)$|^transparent$/.test(getComputedStyle(node).backgroundColor);

  // Whether an element with a background covers a node at a point
  function isUnder(node, x, y) {
    for (const one of node.getRootNode().elementsFromPoint(x, y)) {
      if (holds(one, node) || holds(node, one)) return false;
      if (isOpaque(one)) return true;
    }
    return false;
  }

  // Overlapping texts. Only the letters count, not the line spacing.
  function overlaps() {
    const wrong = [];
    const all = texts().map(({ node, text, box }) => {
      const lead = 0.22 * (box.bottom - box.top);
      return { node, text, box: { ...box, left: box.left, right: box.right, top: box.top + lead, bottom: box.bottom - lead } };
    });
    all.sort((a, b) => a.box.top - b.box.top);
    for (let i = 0; i < all.length; i++)
      for (let j = i + 1; j < all.length && all[j].box.top < all[i].box.bottom; j++) {
        const [a, b] = [all[i], all[j]];
        if (a.node === b.node || holds(a.node, b.node) || holds(b.node, a.node)) continue;
        const both = within(a.box, b.box);
        if (both.right - both.left < 3 || both.bottom - both.top < 3) continue;
        const [x, y] = [(both.left + both.right) / 2, (both.top + both.bottom) / 2];
        const top = seenAt(x, y);
        if (isUnder(a.node, x, y) || isUnder(b.node, x, y)) continue;
        if (layerOf(a.node) !== layerOf(b.node)) continue; // one is on a panel above the other
        if (top && !holds(top, a.node) && !holds(top, b.node) && !holds(a.node, top) && !holds(b.node, top)) continue;
        wrong.push(`“${a.text}” and “${b.text}” at ${Math.round(both.left)}, ${Math.round(both.top)}`);
      }
    return wrong;
  }

  // Texts that are cut off and have neither a title nor a label with the full text
  function cut() {
    const wrong = [];
    for (const node of every()) {
      if (!isSeen(node) || node.matches("input, textarea, select, svg, svg *")) continue;
      const style = getComputedStyle(node);
      if (style.overflowX === "visible" || style.overflowX === "auto" || style.overflowX === "scroll") continue;
      if (node.scrollWidth <= node.clientWidth + 1 || !node.textContent.trim() || node.clientWidth < 4) continue;
      if (node.matches("h1")) continue;
      const own = [...node.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim());
      if (!own && style.textOverflow !== "ellipsis") continue;
      let says = false;
      for (let at = node; at && !says; at = up(at)) says = Boolean(at.title || at.getAttribute?.("aria-label")?.includes(node.textContent.trim().slice(0, 12)));
      const isReached = node.closest("[role=application], .strip, [role=slider]");
      if (!says && !isReached) wrong.push(`cut off: ${told(node)}`);
    }
    return wrong;
  }

  window.walk = { listed, found, said, numbers, unreached, panels, overlaps, cut };
})();
