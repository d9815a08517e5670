// A slider over given labels, as the browser has it: by keyboard, with a name, in the page's colors.
export default {
  render({ model, el }) {
    const label = document.createElement("label"), words = document.createElement("span");
    const input = document.createElement("input"), now = document.createElement("output");
    label.className = "rr-slider";
    label.addEventListener("keydown", (e) => e.stopPropagation());  // arrows move the slider, not the notebook
    input.type = "range";
    label.append(words, input, now);
    const show = () => {
      const labels = model.get("labels");
      words.textContent = model.get("words");
      input.max = labels.length - 1;
      input.value = model.get("index");
      input.disabled = model.get("disabled");
      now.textContent = labels[model.get("index")];
      input.setAttribute("aria-valuetext", now.textContent);
    };
    input.addEventListener("input", () => {
      model.set("index", Number(input.value));
      model.save_changes();
    });
    model.on("change:index", show);
    model.on("change:disabled", show);
    show();
    el.append(label);
  },
};
