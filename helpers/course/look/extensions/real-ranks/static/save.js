// An extension of JupyterLab and of Notebook 7: saves a notebook when a check in it has passed, disables quizzes
// and buttons whose kernel was restarted, and keeps arrow keys inside of a quiz.
//
// Without the save the progress could say "passed", while the file, saved every two minutes, still has the stub. The
// kernel asks for it by `ask_to_save` in helpers/views/live.py. This file has the form in which JupyterLab's
// tools build extensions, so it needs no build.

(() => {
  const SAVE = "application/vnd.real-ranks.save+json";
  let shared;

  const RESTARTS = new Set(["restarting", "autorestarting", "dead"]);

  // Their kernel's part is gone: a click would mark an answer next to the reply to an earlier one.
  function disableWidgets(panel) {
    for (const cell of panel.content.widgets) {
      for (const part of cell.node.querySelectorAll(".jp-OutputArea .jupyter-widgets")) part.inert = true;
    }
  }

  // The radio buttons of ipywidgets are not a group, so arrow keys would select the notebook's next cell.
  const choicesOf = (event) => event.target.matches?.("input[type=radio]") && event.target.closest(".rr-choices");
  let groups = 0;

  function makeGroup(event) {
    const choices = choicesOf(event);
    if (!choices || event.target.name) return;
    groups += 1;
    for (const radio of choices.querySelectorAll("input[type=radio]")) radio.name = `rr-choices-${groups}`;
  }

  function keepArrows(event) {
    if (event.key.startsWith("Arrow") && choicesOf(event)) event.stopImmediatePropagation();
  }

  window.addEventListener("focusin", makeGroup, true);
  window.addEventListener("keydown", keepArrows, true);

  function follow(panel) {
    panel.sessionContext.statusChanged.connect((_, status) => RESTARTS.has(status) && disableWidgets(panel));
    let asking; // the id of the request whose cell asked
    panel.sessionContext.iopubMessage.connect((_, { header, parent_header, content }) => {
      if (header.msg_type === "update_display_data" && SAVE in content.data) asking = parent_header.msg_id;
      const ended = header.msg_type === "status" && content.execution_state === "idle";
      // Only now the page has all that the cell shows.
      if (!ended || !asking || parent_header.msg_id !== asking) return;
      asking = undefined;
      if (panel.context.model.dirty && !panel.context.model.readOnly) panel.context.save();
    });
  }

  async function extension() {
    const [notebook] = Object.values(shared["@jupyterlab/notebook"]);
    const { INotebookTracker } = (await notebook.get())();
    const activate = (_, notebooks) => {
      notebooks.forEach(follow);
      notebooks.widgetAdded.connect((_, panel) => follow(panel));
    };
    const plugin = { id: "real-ranks:save", autoStart: true, requires: [INotebookTracker], activate };
    const module = { __esModule: true, default: plugin };
    return () => module;
  }

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["real-ranks"] = { init: (modules) => void (shared = modules), get: extension };
})();
