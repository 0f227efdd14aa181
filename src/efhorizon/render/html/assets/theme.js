// Light or dark: the system's choice until the reader makes one. Runs before the page is drawn.
"use strict";
(function () {
  const root = document.documentElement;

  function stored() {
    try {
      return localStorage.getItem("efhorizon-theme");
    } catch {
      return null; // pages on disk may have no storage
    }
  }

  function store(theme) {
    try {
      localStorage.setItem("efhorizon-theme", theme);
    } catch {
      // the choice then lasts as long as the page
    }
  }

  const chosen = stored();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  document.addEventListener("DOMContentLoaded", function () {
    const button = document.querySelector(".theme");
    const name = function () {
      button.textContent = isDark() ? "Light" : "Dark";
    };
    name();
    button.hidden = false;
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      store(root.dataset.theme);
      name();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  });
})();
