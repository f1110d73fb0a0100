// Keeps the page current: the server sends its changing part again after each change. Without this script, reload.
(() => {
  "use strict";
  const main = document.querySelector("main");
  const note = document.getElementById("live");
  if (!main || !note || !main.dataset.url || !window.EventSource) return;
  const keep = {
    morphStyle: "innerHTML",
    ignoreActiveValue: true,
    callbacks: {
      // What a reader has opened or typed stays as it is.
      beforeAttributeUpdated: (name, node) =>
        !(name === "open" && node.localName === "details") && !(name === "value" && node.localName === "input"),
    },
  };
  let source;
  const show = (text) => { note.textContent = text; };
  const open = () => {
    source = new EventSource("/live?page=" + encodeURIComponent(main.dataset.url));
    source.addEventListener("open", () => show("live"));
    source.addEventListener("error", () => show("not connected; reconnecting"));
    source.addEventListener("page", (event) => { Idiomorph.morph(main, event.data, keep); show("live"); });
  };
  // A page that nobody sees costs nothing.
  document.addEventListener("visibilitychange", () => {
    if (source) source.close();
    if (document.hidden) show("paused"); else open();
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-submit]");
    if (form && event.target.localName === "select") form.requestSubmit();
  });
  if (!document.hidden) open();
})();
