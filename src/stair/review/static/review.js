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

  // --- what the page says ---
  let clearing = 0;
  const say = (text) => {
    const toast = byId("toast");
    toast.textContent = text;
    toast.classList.toggle("shown", Boolean(text));
    clearTimeout(clearing);
    clearing = setTimeout(() => toast.classList.remove("shown"), 4000);
  };
  const problem = (text) => {
    const box = byId("problem");
    box.replaceChildren();
    if (!text) return;
    const sentence = document.createElement("p");
    sentence.textContent = text;
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "Close";
    close.addEventListener("click", () => box.replaceChildren());
    box.append(sentence, close);
  };
  document.body.addEventListener("stair-said", (event) => { problem(""); say(event.detail.value); });
  document.body.addEventListener("stair-problem", (event) => problem(event.detail.value));
  document.body.addEventListener("htmx:sendError", () => problem("The page cannot reach stair. Is it still running in the terminal?"));
  document.body.addEventListener("htmx:timeout", () => problem("stair takes longer than a minute to answer."));
  document.body.addEventListener("htmx:responseError", (event) => {
    if (!event.detail.xhr.getResponseHeader("HX-Trigger")) problem(`stair answered with an error (${event.detail.xhr.status}).`);
  });

  // --- verdicts: one after the other, each with its own key, sent again until confirmed ---
  const queue = [];
  let sending = false;
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const post = async (task) => {
    for (let tries = 0; ; tries += 1) {
      try {
        return await fetch(task.url, {
          method: "POST",
          headers: { "HX-Request": "true", "Content-Type": "application/x-www-form-urlencoded" },
          body: new URLSearchParams(task.fields),
        });
      } catch {
        problem(`Not saved yet: stair does not answer. Trying again (${queue.length} waiting).`);
        await wait(Math.min(5000, 400 * 2 ** tries));
      }
    }
  };
  const run = async () => {
    if (sending) return;
    sending = true;
    while (queue.length) {
      const task = queue[0]();
      if (task) {
        byId("judge")?.setAttribute("aria-busy", "true");
        const answer = await post(task);
        const text = await answer.text();
        if (answer.ok) {
          htmx.swap("#panel", text, { swapStyle: "innerHTML" });
          document.body.dataset.confirmed = String(Number(document.body.dataset.confirmed || 0) + 1);
        }
        const trigger = answer.headers.get("HX-Trigger");
        if (trigger) for (const [name, value] of Object.entries(JSON.parse(trigger))) htmx.trigger(document.body, name, { value });
        else if (!answer.ok) problem(`Not saved: stair answered with an error (${answer.status}).`);
      }
      queue.shift();
    }
    sending = false;
    byId("judge")?.removeAttribute("aria-busy");
  };
  // What is judged is what stands there when its turn comes: keys typed ahead go to the next rule.
  const decide = (verdict) => {
    const once = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()) + Date.now();
    queue.push(() => {
      const form = byId("judge");
      if (!form) return null;
      return { url: form.dataset.post, fields: { verdict, once, note: byId("note").value } };
    });
    run();
  };
  addEventListener("beforeunload", (event) => { if (queue.length) event.preventDefault(); });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-verdict]");
    if (button) decide(button.dataset.verdict);
    const close = event.target.closest("[data-close]");
    if (close) byId(close.dataset.close).replaceChildren();
    const way = event.target.closest("[data-go]");
    if (way) go(way.dataset.go);
    const floor = event.target.closest("[data-floor]");
    if (floor) {
      byId("floor").value = floor.dataset.floor;
      byId("floor").dispatchEvent(new Event("input", { bubbles: true }));
      byId("floor").dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
  document.addEventListener("submit", (event) => { if (event.target.id === "judge") event.preventDefault(); });
  // Row verdicts and undo go through htmx; a key of their own makes a second try harmless.
  document.body.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.verb !== "get") event.detail.parameters.once = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()) + Date.now();
  });
  // A changed note is a decision of its own where there is a verdict already.
  document.addEventListener("change", (event) => {
    if (event.target.id !== "note") return;
    const pressed = document.querySelector("#judge [aria-pressed=true]");
    if (pressed) decide(pressed.dataset.verdict);
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
  });
  const filter = (text) => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const each of document.querySelectorAll(".groups > li")) {
      each.hidden = !wanted.every((word) => each.dataset.text.includes(word));
    }
  };

  // --- the list: what others do appears in it ---
  let searched = "";
  document.body.addEventListener("htmx:beforeSwap", () => { searched = byId("search")?.value || searched; });
  document.body.addEventListener("htmx:afterSettle", (event) => {
    const search = byId("search");
    if (search && searched && !search.value) { search.value = searched; filter(searched); }
    if (event.detail.target?.id === "panel") mark();
  });
  const mark = () => {
    const key = group()?.dataset.key;
    for (const each of document.querySelectorAll(".item")) {
      each.classList.toggle("now", each.dataset.key === key);
      if (each.dataset.key === key) each.setAttribute("aria-current", "true"); else each.removeAttribute("aria-current");
    }
    const shown = document.querySelector(".item.now");
    if (shown) shown.scrollIntoView({ block: "nearest" });
  };
  const refresh = () => {
    const far = document.querySelector("#side .far");
    if (!far || queue.length || byId("side").contains(document.activeElement) && document.activeElement.id === "search") return;
    const key = group()?.dataset.key || "";
    htmx.ajax("GET", `/side?since=${far.dataset.last}&current=${key}`, { target: "#side", swap: "innerHTML" });
  };
  if (byId("side")) setInterval(() => { if (!document.hidden && !document.querySelector("#job .job")) refresh(); }, 3000);

  // --- work that takes a while ---
  document.body.addEventListener("stair-ended", (event) => {
    if (event.detail.error) { problem(event.detail.error); return; }
    if (!panel()) { location.assign("/"); return; }
    problem("");
    const tuning = document.querySelector("#panel .tuning");
    htmx.ajax("GET", tuning ? "/tune" : "/", tuning ? { target: "#panel" } : { target: "#panel", select: "#panel > *" });
    htmx.ajax("GET", "/side?since=-1&current=", { target: "#side", swap: "innerHTML" });
    say(`Done: ${event.detail.title.toLowerCase()}.`);
  });
  setInterval(() => {
    if (document.querySelector("#job .job") && document.querySelector("#panel .tuning") && byId("frontier") && document.activeElement?.form?.id !== "tuning") {
      if (byId("job").textContent.includes("floor")) htmx.ajax("GET", "/tune", { target: "#frontier", select: "#frontier > *", swap: "innerHTML" });
    }
  }, 1500);

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
      htmx.ajax("POST", "/choose", { target: "#setup", values: { name: JSON.parse(request.responseText).name } });
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
  const go = (key) => {
    if (!key) return;
    htmx.ajax("GET", `/group/${key}`, { target: "#panel" });
  };
  const step = (by) => {
    const here = group();
    const key = by > 0 ? here?.dataset.next : here?.dataset.previous;
    if (key) go(key);
    else if (here && !here.dataset.key) document.querySelector(".item")?.click();
  };
  const keys = {
    1: () => decide("outlier"),
    2: () => decide("inlier"),
    3: () => decide("unsure"),
    0: () => { if (document.querySelector("#judge [data-verdict=none]")) decide("none"); },
    j: () => step(1),
    k: () => step(-1),
    e: () => byId("edit")?.click(),
    n: () => byId("note")?.focus(),
    u: () => byId("undo")?.click(),
    U: () => byId("redo")?.click(),
    t: () => byId("tune")?.click(),
    f: () => byId("find")?.focus(),
    "/": () => byId("search")?.focus(),
    "?": () => help?.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=range]):not([type=checkbox]):not([type=radio]), select, textarea");
    if (event.key === "Escape" && typing) { event.target.blur(); panel()?.focus(); return; }
    if (event.key === "Enter" && event.target.id === "note") { event.preventDefault(); event.target.blur(); panel()?.focus(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || help?.open) return;
    const act = keys[event.key];
    if (act && panel()) { event.preventDefault(); act(); }
  });
})();
