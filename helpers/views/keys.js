// Keys in a part of a notebook's page that has keys of its own, such as space and arrows.
//
// JupyterLab would take those for its cells, so the part is marked: in it, no key is JupyterLab's. But the
// reader still wants to run the cell, save the notebook or leave the part. Such keys are passed on to the cell.

function ownKeys(root, host) {
  host.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("keydown", (event) => {
    event.stopPropagation();
    const modified = event.ctrlKey || event.metaKey || event.altKey || (event.shiftKey && event.key === "Enter");
    const cell = host.closest(".jp-Cell");
    if (!cell || event.isComposing || !(modified || event.key === "Escape")) return;
    // JupyterLab's keys apply to the cell that has the focus.
    cell.focus({ preventScroll: true });
    const { key, code, keyCode, ctrlKey, metaKey, altKey, shiftKey, repeat } = event;
    const same = new KeyboardEvent("keydown",
      { key, code, keyCode, ctrlKey, metaKey, altKey, shiftKey, repeat, bubbles: true, cancelable: true, composed: true });
    if (!cell.dispatchEvent(same)) event.preventDefault();
  });
}
