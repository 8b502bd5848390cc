// Answers: what a chip, its words and its source's row show of each other, and what stands on a card.
(() => {
  "use strict";
  const MOST = 12; // sources on one card
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
    const found = within.querySelectorAll(cites.map((id) => `[data-cites~="${CSS.escape(id)}"]`).join());
    for (const other of found) {
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
      uses.append(use.cloneNode(true));
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
    copy.addEventListener("click", () => {
      navigator.clipboard.writeText(textOf(part)).then(() => { copy.textContent = "Copied"; }, () => { copy.textContent = "Not copied"; });
    });
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
    return form;
  }

  // What is copied: the words, and where they are from.
  function textOf(part) {
    const out = [];
    for (const q of part.querySelectorAll("blockquote")) {
      const whole = q.cloneNode(true), short = whole.querySelector("summary");
      if (short) short.remove();
      out.push("“" + whole.textContent.trim() + "”");
    }
    const name = part.querySelector(".source-name"), link = name.querySelector("a");
    out.push("— " + (link || name.querySelector("bdi")).textContent.trim());
    const passage = part.querySelector("a.passage") || link;
    if (passage) out.push(passage.href);
    return out.join("\n");
  }

  // A reader's word is sent without leaving the page.
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (!form.matches("form.rate") || !e.submitter) return;
    e.preventDefault();
    const said = make("p", "said");
    said.setAttribute("role", "status");
    fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form, e.submitter)), redirect: "manual" }).then((r) => {
      const ok = r.ok || r.type === "opaqueredirect";
      said.textContent = ok ? "Noted: " + e.submitter.textContent.trim().toLowerCase() + "." : "This could not be noted.";
      if (ok) form.replaceChildren(said);
      else form.append(said);
    }, () => { said.textContent = "This could not be sent."; form.append(said); });
  });

  // Menus close like all others.
  document.addEventListener("click", (e) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(e.target)) menu.open = false;
  });
  document.addEventListener("keydown", (e) => {
    const menu = e.key === "Escape" && e.target.closest && e.target.closest("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });
})();
