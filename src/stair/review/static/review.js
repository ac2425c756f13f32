// Keys, verdicts that are never lost on the way, and small conveniences. htmx does the rest.
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const panel = () => byId("panel");
  const group = () => document.querySelector("#panel [data-key]");

  // --- theme: as the system says, unless somebody chooses ---
  const theme = byId("theme");
  const root = document.documentElement;
  const kept = (() => { try { return localStorage.getItem("stair-theme"); } catch { return null; } })();
  if (kept) root.dataset.theme = kept;
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { if (theme) theme.textContent = isDark() ? "Light" : "Dark"; };
  if (theme) theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("stair-theme", root.dataset.theme); } catch { /* private window */ }
    nameTheme();
  });
  nameTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);

  // --- what the page says ---
  let clearing = 0;
  const say = (text) => {
    const toast = byId("toast");
    toast.textContent = text;
    toast.classList.toggle("shown", Boolean(text));
    clearTimeout(clearing);
    clearing = setTimeout(() => toast.classList.remove("shown"), 3000 + 50 * text.length);
  };
  const problem = (text, kind = "") => {
    const box = byId("problem");
    box.dataset.kind = kind;
    box.replaceChildren();
    if (!text) return;
    const sentence = document.createElement("p");
    sentence.textContent = text;
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "Close";
    close.addEventListener("click", () => { box.replaceChildren(); settle(); });
    box.append(sentence, close);
  };
  const reached = () => { if (byId("problem").dataset.kind === "away") problem(""); };
  document.body.addEventListener("stair-said", (event) => { problem(""); say(event.detail.value); });
  document.body.addEventListener("stair-problem", (event) => problem(event.detail.value));
  document.body.addEventListener("htmx:sendError", () => problem("The page cannot reach stair. Is it still running in the terminal?", "away"));
  document.body.addEventListener("htmx:timeout", () => problem("stair takes longer than a minute to answer.", "away"));
  document.body.addEventListener("htmx:afterOnLoad", reached);
  document.body.addEventListener("htmx:responseError", (event) => {
    if (!event.detail.xhr.getResponseHeader("HX-Trigger")) problem(`stair answered with an error (${event.detail.xhr.status}).`);
  });

  // --- what a person does, one after the other: verdicts, steps and undo keep their order ---
  const queue = [];
  let running = false;
  const later = (act) => { queue.push(act); run(); };
  const run = async () => {
    if (running) return;
    running = true;
    while (queue.length) {
      try { await queue[0](); } catch { /* htmx has said what is wrong */ }
      queue.shift();
    }
    running = false;
  };
  // Each part of the page asks by itself: htmx holds back a second request of the same element.
  const load = (verb, address, place, more = {}) => htmx.ajax(verb, address, { source: place, target: place, swap: "innerHTML", ...more });
  const ask = (verb, address, values = {}) => later(() => load(verb, address, "#panel", { values }));

  // --- verdicts: each with its own key, sent again until it is confirmed ---
  const newKey = () => crypto.randomUUID ? crypto.randomUUID() : String(Math.random()) + Date.now();
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const post = async (address, fields) => {
    for (let tries = 0; ; tries += 1) {
      let why = "stair does not answer";
      try {
        const answer = await fetch(address, {
          method: "POST",
          headers: { "HX-Request": "true", "Content-Type": "application/x-www-form-urlencoded" },
          body: new URLSearchParams(fields),
        });
        if (answer.status !== 503) return answer;
        why = "stair is opening the table";
      } catch { /* nobody listens */ }
      problem(`Not saved yet: ${why}. Trying again (${queue.length} waiting).`);
      await wait(Math.min(3000, 400 * 2 ** tries));
    }
  };
  // What is judged is what stands there when its turn comes: keys typed ahead go to the next rule.
  const decide = (verdict) => {
    const once = newKey();
    later(async () => {
      const form = byId("judge");
      if (!form) return;
      const key = group().dataset.key;
      form.setAttribute("aria-busy", "true");
      const answer = await post(form.dataset.post, { verdict, once, note: byId("note").value });
      const text = await answer.text();
      byId("judge")?.removeAttribute("aria-busy");
      if (answer.ok) {
        drafts.delete(key);
        htmx.swap("#panel", text, { swapStyle: "innerHTML" });
        arrive();
        document.body.dataset.confirmed = String(Number(document.body.dataset.confirmed || 0) + 1);
      }
      const trigger = answer.headers.get("HX-Trigger");
      if (trigger) for (const [name, value] of Object.entries(JSON.parse(trigger))) htmx.trigger(document.body, name, { value });
      else if (!answer.ok) problem(`Not saved: stair answered with an error (${answer.status}).`);
    });
  };
  addEventListener("beforeunload", (event) => { if (queue.length) event.preventDefault(); });
  document.addEventListener("click", (event) => {
    choosing = false;
    const button = event.target.closest("button[data-verdict]");
    if (button) decide(button.dataset.verdict);
    const close = event.target.closest("[data-close]");
    if (close) { byId(close.dataset.close).replaceChildren(); settle(); }
    const way = event.target.closest("[data-go]");
    if (way) go(way.dataset.go);
    const back = event.target.closest("[data-post-to]");
    if (back) ask("POST", back.dataset.postTo, { current: group()?.dataset.key || "" });
    if (event.target.closest("[data-begin]")) step(1);
    const floor = event.target.closest("[data-floor]");
    if (floor) {
      byId("floored").checked = true;
      byId("floor").value = floor.dataset.floor;
      byId("floor").dispatchEvent(new Event("input", { bubbles: true }));
      byId("floor").dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
  document.addEventListener("submit", (event) => { if (event.target.id === "judge") event.preventDefault(); });
  // Row verdicts and undo go through htmx; a key of their own makes a second try harmless.
  document.body.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.verb !== "get") event.detail.parameters.once = newKey();
  });

  // --- notes: kept with the verdict, and until there is one, kept here ---
  const drafts = new Map();
  // A changed note is a decision of its own where there is a verdict already; not where somebody
  // is about to press a verdict's button, which takes the note with it.
  let choosing = false;
  let pressed = false;
  document.addEventListener("pointerdown", (event) => { pressed = true; choosing = Boolean(event.target.closest("button[data-verdict]")); }, true);
  for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => { pressed = false; }, true);
  document.addEventListener("change", (event) => {
    if (event.target.id !== "note" || choosing) return;
    const given = document.querySelector("#judge [aria-pressed=true]");
    if (given) decide(given.dataset.verdict);
    else if (event.target.value) say("The note will be kept with your verdict.");
  });

  // --- rules to take away: what cannot be written in a form is said here, not on a page of its own ---
  document.addEventListener("submit", async (event) => {
    if (event.target.id !== "take-rules") return;
    event.preventDefault();
    let answer;
    try { answer = await fetch(`${event.target.action}?${new URLSearchParams(new FormData(event.target))}`); } catch { problem("The page cannot reach stair. Is it still running in the terminal?", "away"); return; }
    const said = answer.headers.get("HX-Trigger");
    if (!answer.ok) { problem(said ? JSON.parse(said)["stair-problem"] : `stair answered with an error (${answer.status}).`); return; }
    problem("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = /filename="([^"]*)"/.exec(answer.headers.get("Content-Disposition"))?.[1] || "rules";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });

  // --- copy ---
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const text = byId(button.dataset.copy).textContent;
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Press Ctrl+C"; getSelection().selectAllChildren(byId(button.dataset.copy)); }
    setTimeout(() => { button.textContent = "Copy as SQL"; }, 1600);
  });

  // --- sliders show their value ---
  document.addEventListener("input", (event) => {
    if (event.target.type === "range") {
      const output = event.target.closest("label").querySelector("output");
      output.textContent = event.target.step === "1" ? event.target.value : Number(event.target.value).toFixed(2);
    }
    if (event.target.id === "search") filter(event.target.value);
    if (event.target.id === "note") drafts.set(group().dataset.key, event.target.value);
  });
  const filter = (text) => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const each of document.querySelectorAll(".groups > li")) {
      each.hidden = !wanted.every((word) => each.dataset.text.includes(word));
    }
  };

  // --- floors and lengths: the newest wish wins, though rules of an earlier one replace the form ---
  let wish = 0;
  const patience = { floor: 300, longest: 300, method: 0 };
  document.addEventListener("change", (event) => {
    if (!(event.target.id in patience)) return;
    const values = new FormData(byId("tuning"));
    clearTimeout(wish);
    wish = setTimeout(() => load("POST", "/learn", "#job", { values }).catch(() => {}), patience[event.target.id]);
  });

  // --- the list: what others do appears in it ---
  let searched = "";
  const unfolded = new Set();
  document.addEventListener("toggle", (event) => {
    if (event.target.closest?.("#side")) unfolded[event.target.open ? "add" : "delete"](event.target.id);
  }, true);
  // An answer that was overtaken by a later one shows what is no more: it is dropped.
  const isOld = (last) => Number(last) < Number(document.querySelector("#side .far")?.dataset.last);
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    searched = byId("search")?.value || "";
    if (event.detail.target?.id === "side" && isOld(/data-last="(\d+)"/.exec(event.detail.serverResponse)?.[1])) event.detail.shouldSwap = false;
  });
  document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
    searched = byId("search")?.value || "";
    if (isOld(event.detail.fragment.querySelector(".far")?.dataset.last)) event.detail.shouldSwap = false;
  });
  const restore = () => {
    const search = byId("search");
    if (search && searched && !search.value) { search.value = searched; filter(searched); }
    for (const id of unfolded) byId(id)?.setAttribute("open", "");
  };
  document.body.addEventListener("htmx:oobAfterSwap", restore);
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id === "side") restore();
    if (event.detail.target?.id === "panel") arrive();
  });
  // Another rule is there: from its top, with its note, and the keyboard goes on.
  let shown = group()?.dataset.key;
  const settle = () => { if (document.activeElement === document.body) panel()?.focus({ preventScroll: true }); };
  const arrive = () => {
    const key = group()?.dataset.key;
    for (const each of document.querySelectorAll(".item")) {
      each.classList.toggle("now", each.dataset.key === key);
      if (each.dataset.key === key) each.setAttribute("aria-current", "true"); else each.removeAttribute("aria-current");
    }
    const note = byId("note");
    if (note && drafts.get(key)) note.value = drafts.get(key);
    const side = byId("side");
    if (getComputedStyle(side).overflowY === "auto") document.querySelector(".item.now")?.scrollIntoView({ block: "nearest" });
    if (key !== shown) {
      panel().scrollTop = 0;
      if (getComputedStyle(document.body).overflowY !== "hidden") scrollTo(0, 0);
    }
    shown = key;
    settle();
  };
  const refresh = () => {
    const far = document.querySelector("#side .far");
    if (!far || queue.length || pressed || byId("side").contains(document.activeElement) && document.activeElement.id === "search") return;
    const key = group()?.dataset.key || "";
    load("GET", `/side?since=${far.dataset.last}&current=${key}`, "#side").catch(() => {});
  };
  if (byId("side")) setInterval(() => { if (!document.hidden && !document.querySelector("#job .job")) refresh(); }, 2000);

  // --- work that takes a while ---
  document.body.addEventListener("stair-ended", (event) => {
    const { error, revision, first, said, panel: place } = event.detail;
    if (error) {
      if (byId("wait-title")) { byId("wait-title").textContent = "It did not work"; byId("wait-after").hidden = true; byId("wait-back").hidden = false; }
      return;
    }
    if (!panel()) { location.assign("/"); return; }
    problem("");
    say(said);
    if (place) { ask("GET", place); return; }
    const isNew = String(revision) !== document.querySelector("#side .far")?.dataset.revision;
    const isBusy = document.activeElement?.closest("#judge, #editing");
    if (document.querySelector("#panel .tuning")) ask("GET", "/tune");
    else if (isNew && !isBusy) {
      if (first) go(first); else ask("GET", "/tune");
      later(() => panel().focus({ preventScroll: true }));
      return;
    }
    load("GET", `/side?since=-1&current=${group()?.dataset.key || ""}`, "#side").catch(() => {});
  });
  setInterval(() => {
    if (byId("frontier") && document.querySelector("#job .job[data-kind=frontier]")) load("GET", "/tune", "#frontier", { select: "#frontier > *" }).catch(() => {});
  }, 500);

  // --- upload ---
  const file = byId("file");
  const send = (chosen) => {
    const place = byId("uploading");
    const request = new XMLHttpRequest();
    place.textContent = `Sending ${chosen.name} …`;
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) place.textContent = `Sending ${chosen.name}: ${Math.floor(100 * event.loaded / event.total)}%`;
    });
    request.addEventListener("error", () => { place.textContent = ""; problem(`${chosen.name} was not taken: too large, or stair has stopped.`); });
    request.addEventListener("load", () => {
      place.textContent = "";
      if (request.status !== 200) {
        const said = request.getResponseHeader("HX-Trigger");
        problem(said ? JSON.parse(said)["stair-problem"] : request.responseText.replace(/<[^>]*>/g, " ").trim() || "The file was not taken.");
        return;
      }
      problem("");
      load("POST", "/choose", "#setup", { values: { name: JSON.parse(request.responseText).name } });
    });
    request.open("POST", `/upload?name=${encodeURIComponent(chosen.name)}`);
    request.send(chosen);
  };
  if (file) {
    file.addEventListener("change", () => { if (file.files.length) send(file.files[0]); });
    const drop = byId("drop");
    drop.addEventListener("dragover", (event) => event.preventDefault());
    drop.addEventListener("drop", (event) => { event.preventDefault(); if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]); });
  }
  document.body.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target?.id === "setup") { byId("setup").focus(); byId("setup").scrollIntoView({ block: "start" }); }
    if (event.detail.target?.id === "editing") document.querySelector("#editing input:not([type=hidden]), #editing select")?.focus();
  });

  // --- keys ---
  const help = byId("help");
  byId("help-open")?.addEventListener("click", () => help.showModal());
  const go = (key) => { if (key) ask("GET", `/group/${key}`); };
  const step = (by) => later(() => {
    const here = group();
    const key = here?.dataset.key ? (by > 0 ? here.dataset.next : here.dataset.previous) : (document.querySelector(".item.waiting") || document.querySelector(".item"))?.dataset.key;
    return key && load("GET", `/group/${key}`, "#panel");
  });
  // The field is there when the rows are. What is typed before that is text, not a command.
  let finding = null;
  const find = () => {
    if (finding === null || byId("rows") && !byId("find")) return;
    const field = byId("find");
    const text = finding;
    finding = null;
    if (!field) return;
    field.focus();
    if (text) { field.value += text; field.dispatchEvent(new Event("input", { bubbles: true })); }
  };
  document.body.addEventListener("htmx:afterSettle", find);
  const keys = {
    1: () => decide("outlier"),
    2: () => decide("inlier"),
    3: () => decide("unsure"),
    0: () => later(() => { if (document.querySelector("#judge [data-verdict=none]")) decide("none"); }),
    j: () => step(1),
    k: () => step(-1),
    e: () => later(() => byId("edit")?.click()),
    n: () => later(() => byId("note")?.focus()),
    u: () => byId("undo")?.click(),
    U: () => byId("redo")?.click(),
    t: () => byId("tune")?.click(),
    f: () => { finding = ""; later(find); },
    "/": () => byId("search")?.focus(),
    "?": () => help?.showModal(),
    Escape: () => { if (byId("editing")?.firstElementChild) { byId("editing").replaceChildren(); byId("edit").focus(); } else problem(""); },
  };
  document.addEventListener("keydown", (event) => {
    choosing = false;
    // A key that is held says nothing twice; Enter on a button would press it again and again.
    if (event.repeat && event.key === "Enter" && event.target.closest("button")) { event.preventDefault(); return; }
    const typing = event.target.closest("input:not([type=range]):not([type=checkbox]):not([type=radio]), select, textarea");
    if (typing && panel() && (event.key === "Escape" || event.key === "Enter" && event.target.id === "note")) {
      event.preventDefault();
      event.target.blur();
      panel().focus({ preventScroll: true });
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || help?.open) return;
    if (finding !== null) {
      if (event.key === "Escape") finding = null;
      else if (event.key.length === 1) { finding += event.key; event.preventDefault(); }
      return;
    }
    const act = keys[event.key];
    if (act && panel()) { event.preventDefault(); act(); }
  });
})();
