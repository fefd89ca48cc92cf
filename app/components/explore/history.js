// Each thing that a visitor does is one step, which Back takes.
//
// Streamlit writes the value of a box over the entry that is there, and puts what the server says of the link behind it. So
// there was no way back from another sentence or model, and a head could take two steps.

export function stepByStep() {
  if (window.headlightSteps) return; // another view's component was here before
  window.headlightSteps = true;
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  let acted = false; // since the link was last written
  const act = (e) => {
    if (e.isTrusted) acted = true;
  };
  for (const name of ["pointerdown", "keydown"]) window.addEventListener(name, act, true);
  window.addEventListener("popstate", () => (acted = false), true);
  history.pushState = history.replaceState = (state, title, url) => {
    const isNew = url !== undefined && url !== null && new URL(url, location.href).href !== location.href;
    (acted && isNew ? push : replace)(state, title, url);
    if (isNew) acted = false;
  };
}
