// Light or dark as the reader chose last; else as the system has it. Nothing else needs a script.
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
    var button = document.getElementById("theme");
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
