// Light or dark as the reader chose last, else as the system has it; and the search.
(function () {
  var root = document.documentElement;
  function kept() { try { return localStorage.getItem("stair-theme"); } catch (e) { return null; } }
  function keep(theme) { try { localStorage.setItem("stair-theme", theme); } catch (e) { /* private */ } }
  var chosen = kept();
  if (chosen) root.dataset.theme = chosen;
  function isDark() {
    return (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  }
  document.addEventListener("DOMContentLoaded", function () {
    var button = document.getElementById("the-theme");
    function name() { button.textContent = isDark() ? "Light" : "Dark"; }
    button.hidden = false;
    name();
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      keep(root.dataset.theme);
      name();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
    document.querySelector(".to-menu").addEventListener("click", function (event) {
      event.preventDefault();
      document.body.classList.toggle("with-menu");
    });
  });
})();

// Every word that is asked for must be in a section; those in its heading count more than those in its
// text. The words of all documents are a script of their own, loaded when somebody begins to search.
(function () {
  var MOST = 20, AROUND = 90;
  function folded(text) { return text.toLowerCase(); }
  function begins(text, word) {
    // Where a word of the text begins with it; -1 where none does.
    for (var at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1])) return at;
    }
    return -1;
  }
  function worth(place, words) {
    var sum = 0, menu = folded(place[1]), heading = folded(place[3]), text = folded(place[4]);
    for (var i = 0; i < words.length; i++) {
      var inHeading = begins(heading, words[i]) >= 0, inMenu = begins(menu, words[i]) >= 0;
      var inText = begins(text, words[i]);
      if (!inHeading && !inMenu && inText < 0) return 0;
      sum += (inHeading ? 20 : 0) + (heading === words[i] ? 20 : 0) + (inMenu ? 5 : 0) +
        (inText >= 0 ? 1 + Math.max(0, 3 - inText / 200) : 0);
    }
    return sum;
  }
  function excerpt(text, words) {
    var at = -1;
    for (var i = 0; i < words.length && at < 0; i++) at = begins(folded(text), words[i]);
    var start = Math.max(0, at - AROUND / 2), end = Math.min(text.length, start + 2 * AROUND);
    if (start) start = text.indexOf(" ", start) + 1;
    var part = text.slice(start, end), line = document.createElement("small"), done = 0, low = folded(part);
    if (start) line.append("… ");
    for (var from = 0; from < part.length; from++) {
      for (var k = 0; k < words.length; k++) {
        if (low.startsWith(words[k], from) && (from === 0 || !/[\p{L}\p{N}]/u.test(low[from - 1]))) {
          var mark = document.createElement("mark");
          mark.textContent = part.slice(from, from + words[k].length);
          line.append(part.slice(done, from), mark);
          done = from + words[k].length;
          from = done - 1;
          break;
        }
      }
    }
    line.append(part.slice(done) + (end < text.length ? " …" : ""));
    return line;
  }
  document.addEventListener("DOMContentLoaded", function () {
    var form = document.getElementById("the-search"), field = document.getElementById("the-words");
    var panel = document.getElementById("the-found"), list = panel.querySelector("ol");
    var count = document.getElementById("the-count"), isAsked = false;
    form.hidden = false;
    function load() {
      if (isAsked) return;
      isAsked = true;
      var script = document.createElement("script");
      script.src = "search.js";
      script.onload = show;
      document.head.append(script);
    }
    function close() { panel.hidden = true; }
    function show() {
      var words = folded(field.value).split(/\s+/).filter(Boolean);
      if (!words.length || !window.stairWords) return close();
      var found = [];
      window.stairWords.forEach(function (place, order) {
        var value = worth(place, words);
        if (value) found.push([value, order, place]);
      });
      found.sort(function (a, b) { return b[0] - a[0] || a[1] - b[1]; });
      count.textContent = found.length === 1 ? "1 place" : found.length + " places" +
        (found.length > MOST ? ", the first " + MOST : "");
      list.replaceChildren.apply(list, found.slice(0, MOST).map(function (each) {
        var place = each[2], item = document.createElement("li"), link = document.createElement("a");
        var title = document.createElement("b");
        link.href = place[0] + ".html#" + place[2];
        title.textContent = place[3];
        link.append(title, place[3] === place[1] ? "" : " · " + place[1]);
        if (place[4]) link.append(excerpt(place[4], words));
        item.append(link);
        return item;
      }));
      panel.hidden = false;
    }
    field.addEventListener("focus", load);
    field.addEventListener("input", show);
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      var first = list.querySelector("a");
      if (first && !panel.hidden) { close(); location.href = first.href; }
    });
    form.addEventListener("keydown", function (event) {
      if (event.key === "Escape") { close(); field.focus(); return; }
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      var links = Array.from(list.querySelectorAll("a")), at = links.indexOf(document.activeElement);
      var next = at + (event.key === "ArrowDown" ? 1 : -1);
      event.preventDefault();
      if (next < 0) field.focus(); else if (links[next]) links[next].focus();
    });
    list.addEventListener("click", close);
    document.addEventListener("click", function (event) { if (!form.contains(event.target)) close(); });
    document.addEventListener("keydown", function (event) {
      if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
      event.preventDefault();
      field.focus();
    });
  });
})();
