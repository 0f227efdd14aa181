// Sorting by a click on a column's head, and filters. Cells carry what they sort by in data-value.
"use strict";
(function () {
  const table = document.querySelector("table.sortable");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const compareTexts = new Intl.Collator("en", { numeric: true }).compare;

  function value(row, column) {
    return row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  }

  // Missing values are last in both directions.
  function compare(one, other, isNumber, direction) {
    if (one === "" || other === "") return (one === "") - (other === "");
    return direction * (isNumber ? Number(one) - Number(other) || 0 : compareTexts(one, other));
  }

  function sort(column) {
    const head = heads[column];
    const isNumber = head.classList.contains("number");
    const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    rows.sort((one, other) => compare(value(one, column), value(other, column), isNumber, direction));
    body.append(...rows);
  }

  heads.forEach(function (head, column) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(column));
  });

  const form = document.querySelector(".filters");
  const shown = form.querySelector("output");

  function filter() {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = Array.from(form.querySelectorAll("select")).filter((select) => select.value);
    let count = 0;
    for (const row of rows) {
      const text = row.dataset.words;
      row.hidden = !(words.every((word) => text.includes(word)) && wanted.every((s) => row.dataset[s.name] === s.value));
      count += !row.hidden;
    }
    shown.textContent = `${count} of ${rows.length} MDPs`;
  }

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter(); // a browser may have kept what was written before
})();
