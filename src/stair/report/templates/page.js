"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const lists = [...document.querySelectorAll("[data-list]")];
  const cards = [...document.querySelectorAll("li.rule")];
  const fold = document.querySelector("details.fold");
  const say = (words) => { byId("said").textContent = words; };

  document.querySelector(".tools").hidden = false;

  // Light and dark: the system's choice until somebody presses the button.
  const theme = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  name();
  dark.addEventListener("change", name);
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
  });

  // Sorting, within each kind: shortest first for length, largest first for the rest; the rule's number breaks ties.
  byId("sort").addEventListener("change", (event) => {
    const key = event.target.value;
    const sign = key === "length" || key === "number" ? 1 : -1;
    for (const list of lists) {
      const items = [...list.children];
      items.sort((a, b) => sign * (a.dataset[key] - b.dataset[key]) || a.dataset.number - b.dataset.number);
      list.append(...items);
    }
    say(`Sorted by ${event.target.selectedOptions[0].text}`);
  });

  const words = new Map(cards.map((card) => [card, card.querySelector(".what").textContent.toLowerCase()]));
  byId("search").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const card of cards) {
      const fits = wanted.every((word) => words.get(card).includes(word));
      card.hidden = !fits;
      found += fits;
    }
    for (const kind of document.querySelectorAll(".kind")) {
      kind.hidden = wanted.length > 0 && !kind.querySelector("li.rule:not([hidden])");
    }
    if (fold && wanted.length) fold.open = [...fold.querySelectorAll("li.rule")].some((card) => !card.hidden);
    byId("found").textContent = wanted.length ? `${found} of ${cards.length} rules` : "";
  });

  const all = byId("all");
  all.addEventListener("click", () => {
    const open = all.getAttribute("aria-pressed") !== "true";
    for (const each of cards.filter((card) => !card.closest(".fold"))) {
      const details = each.querySelector("details");
      if (details) details.open = open;
    }
    all.setAttribute("aria-pressed", String(open));
    all.textContent = open ? "Close all" : "Open all";
  });

  const copied = async (text, element) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const range = document.createRange();
      range.selectNodeContents(element);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      return document.execCommand("copy");
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const source = byId(button.dataset.copy);
    const done = await copied(source.textContent, source);
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    say(done ? "Copied as SQL" : "Selected; press Ctrl+C to copy");
    setTimeout(() => { button.textContent = "Copy as SQL"; }, 1600);
  });

  // A link to a rule opens it.
  const reveal = () => {
    const target = location.hash.startsWith("#rule-") && byId(location.hash.slice(1));
    if (!target) return;
    for (let each = target.querySelector("details") || target; each; each = each.parentElement) {
      if (each.tagName === "DETAILS") each.open = true;
    }
    target.scrollIntoView({ block: "nearest" });
  };
  addEventListener("hashchange", reveal);
  reveal();

  // Paper has no clicks: everything is open there, and as it was afterwards.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of closed) each.open = false;
    closed = [];
  });
})();
