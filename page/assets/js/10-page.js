// Answers: what a chip, its words and its source's row show of each other, and what stands on a card. Each part of this script is a
// task of its own, so that what one throws stops no other.
queueMicrotask(() => {
  "use strict";
  const MOST = 12, LIT = 400; // sources on one card, elements that are lit at once
  const make = (tag, name, text) => {
    const n = document.createElement(tag);
    if (name) n.className = name;
    if (text) n.textContent = text;
    return n;
  };
  const citesOf = (n) => (n.dataset.cites || "").split(" ").filter(Boolean);
  const answerOf = (n) => n.closest("[data-prefix]");

  // Lighting: everything in the same answer that is about the same citations.
  let lit = [], at, open;
  function light(n) {
    if (n === at) return;
    at = n;
    for (const other of lit) other.classList.remove("on");
    lit = [];
    const cites = n ? citesOf(n) : [];
    if (!cites.length) return;
    const within = answerOf(n) || document;
    const wanted = new Set(cites);
    for (const other of within.querySelectorAll("[data-cites]")) {
      if (!citesOf(other).some((id) => wanted.has(id))) continue;
      if (lit.length >= LIT) break;
      lit.push(other);
      const row = other.closest(".source");
      if (row) lit.push(row);
    }
    for (const other of lit) other.classList.add("on");
  }
  const lightable = (e) => e.target.closest && e.target.closest("ibid-cite, mark.claim, .use");
  document.addEventListener("pointerover", (e) => { if (e.pointerType === "mouse") light(lightable(e) || open); });
  document.addEventListener("focusin", (e) => { if (!e.target.closest("ibid-card")) light(lightable(e) || open); });
  document.addEventListener("focusout", (e) => { if (!e.relatedTarget) light(open); });

  // A card is a copy of the rows that a chip is about, with what of them it cites.
  document.addEventListener("ibid-open", (e) => {
    const cite = e.target, answer = answerOf(cite);
    if (!answer || !cite.dataset.n) return;
    open = cite;
    light(cite);
    const cites = new Set(citesOf(cite)), numbers = cite.dataset.n.split(" "), card = make("div", "card");
    for (const n of numbers.slice(0, MOST)) {
      const row = document.getElementById(answer.dataset.prefix + "s-" + n);
      if (row) card.append(section(row, cites));
    }
    if (numbers.length > MOST) card.append(make("p", "quiet", `And ${numbers.length - MOST} more, in the list of sources.`));
    if (card.childNodes.length) e.detail.card.append(card);
  });
  document.addEventListener("ibid-close", () => { open = undefined; light(undefined); });

  function section(row, cites) {
    const part = make("section"), uses = make("div", "uses"), acts = make("div", "card-acts");
    part.append(row.querySelector(".source-head").cloneNode(true));
    let cited;
    for (const use of row.querySelectorAll(":scope > .uses > .use")) {
      const shared = citesOf(use).find((id) => cites.has(id));
      if (!shared) continue;
      cited ||= shared;
      const copied = use.cloneNode(true);
      for (const m of copied.querySelectorAll("mark[data-of]")) { // words that only other claims share
        if (!m.dataset.of.split(" ").some((id) => cites.has(id))) m.replaceWith(...m.childNodes);
      }
      uses.append(copied);
    }
    if (uses.childNodes.length) part.append(uses);
    else for (const n of row.querySelectorAll(":scope > blockquote")) part.append(n.cloneNode(true));
    for (const n of part.querySelectorAll(".on")) n.classList.remove("on");
    const panel = part.querySelector(".to-panel"), copy = make("button", "plain", "Copy");
    if (panel) {
      panel.parentElement.remove();
      panel.textContent = "Show in panel";
      acts.append(panel);
    }
    copy.type = "button";
    copy.classList.add("copy-card"); // the next part of this script copies
    acts.append(copy);
    part.append(acts);
    const rate = row.querySelector(":scope > .rate") || answerOf(row).querySelector(".source > .rate"); // far rows have none
    if (rate && cited) acts.append(rated(rate.cloneNode(true), cited));
    return part;
  }

  // A form for judging one citation, of one that lets its reader choose.
  function rated(form, cited) {
    const choice = form.querySelector("select");
    if (choice) choice.closest("label").remove();
    let field = form.elements.namedItem("citation");
    if (!field) {
      field = make("input");
      field.type = "hidden";
      field.name = "citation";
      form.append(field);
    }
    field.value = cited;
    form.hidden = false;
    return form;
  }

  // A reader's word is sent without leaving the page. A form that chooses among citations stays for the others.
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (!form.matches("form.rate") || !e.submitter) return;
    e.preventDefault();
    const say = (text) => {
      let said = form.nextElementSibling;
      if (!said || !said.matches(".rated")) form.after(said = make("p", "rated"));
      said.setAttribute("role", "status");
      said.textContent = text;
      return said;
    };
    fetch(form.action, { method: "POST", headers: { Accept: "application/json" }, body: new URLSearchParams(new FormData(form, e.submitter)) }).then((r) => {
      if (r.status !== 204) { say("This could not be noted."); return; }
      const said = say("Noted: " + e.submitter.textContent.trim().toLowerCase() + ".");
      if (form.querySelector("select")) return;
      said.tabIndex = -1;
      said.focus(); // what was pressed goes away
      form.hidden = true;
    }, () => say("This could not be sent."));
  });

  // Menus close like all others.
  document.addEventListener("click", (e) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(e.target)) menu.open = false;
  });
  document.addEventListener("keydown", (e) => {
    const menu = e.key === "Escape" && e.target.closest && e.target.closest("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });
});
