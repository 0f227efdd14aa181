// Scatter charts: a label at the mark under the pointer or with the focus, the same MDP lit in all charts, a switch
// between algorithms. Arrow keys go from mark to mark, so that a chart is one stop of the Tab key.
"use strict";
(function () {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  const labels = new WeakMap();

  function lit(key, on) {
    if (!key) return;
    for (const same of document.querySelectorAll(`.point[data-mdp="${CSS.escape(key)}"]`)) same.classList.toggle("lit", on);
  }

  function show(point) {
    tip.textContent = labels.get(point);
    tip.hidden = false;
    const box = point.getBoundingClientRect();
    const left = box.left + box.width / 2 - tip.offsetWidth / 2;
    const widest = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const above = box.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(8, Math.min(left, widest)) + scrollX}px`;
    tip.style.top = `${(above < 4 ? box.bottom + 8 : above) + scrollY}px`;
    lit(point.dataset.mdp, true);
  }

  function hide(point) {
    tip.hidden = true;
    lit(point.dataset.mdp, false);
  }

  for (const group of document.querySelectorAll(".points")) {
    const points = Array.from(group.querySelectorAll(".point"));
    for (const point of points) {
      const title = point.querySelector("title"); // the label of pages without scripts
      labels.set(point, title.textContent);
      point.setAttribute("aria-label", title.textContent);
      title.remove();
      point.setAttribute("tabindex", point === points[0] ? "0" : "-1");
      point.addEventListener("pointerenter", () => show(point));
      point.addEventListener("pointerleave", () => hide(point));
      point.addEventListener("focus", () => show(point));
      point.addEventListener("blur", () => hide(point));
    }
    group.addEventListener("keydown", function (event) {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const at = points.indexOf(document.activeElement);
      if (!step || at < 0) return;
      event.preventDefault();
      const next = points[(at + step + points.length) % points.length];
      points[at].setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
  }

  for (const choice of document.querySelectorAll(".switch")) {
    const buttons = Array.from(choice.querySelectorAll("button"));
    const choose = function (chosen) {
      for (const button of buttons) {
        button.setAttribute("aria-pressed", String(button === chosen));
        for (const part of document.querySelectorAll(`[data-shown-for="${CSS.escape(button.value)}"]`)) part.hidden = button !== chosen;
      }
    };
    for (const button of buttons) button.addEventListener("click", () => choose(button));
    choice.hidden = false;
    choose(buttons[0]);
  }
})();
