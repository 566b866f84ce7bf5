"use strict";
// Filters: words that an entry's text must all have, and verdicts of which it must be one.
(() => {
  const form = document.querySelector(".filters form");
  if (!form) return;
  const entries = [...document.querySelectorAll("[data-verdict]")];
  const groups = [...document.querySelectorAll("[data-group]")];
  const words = form.elements.namedItem("words");
  const boxes = [...form.querySelectorAll("input[type=checkbox]")];
  const shown = form.querySelector(".shown");
  const texts = new Map(entries.map((entry) => [entry, entry.dataset.text.toLowerCase()]));
  // An entry may stand in a list and at its line of the source.
  const every = new Set(texts.values()).size;

  function filter() {
    const asked = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const seen = new Set();
    for (const entry of entries) {
      const named = verdicts.size === 0 || verdicts.has(entry.dataset.verdict);
      const told = asked.every((word) => texts.get(entry).includes(word));
      entry.hidden = !(named && told);
      if (!entry.hidden) seen.add(texts.get(entry));
    }
    const narrowed = asked.length > 0 || verdicts.size > 0;
    for (const group of groups) {
      const some = group.querySelector("[data-verdict]:not([hidden])") !== null;
      group.hidden = narrowed && !some;
      if (narrowed && some && group.matches("details.contract")) group.open = true;
    }
    shown.textContent = narrowed ? `${seen.size} of ${every} shown` : `${every} entries`;
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", filter);
  filter();
})();
