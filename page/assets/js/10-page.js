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
  const citesOf = (n) => n.matches(".source") ? [...n.querySelectorAll(".use")].flatMap(citesOf) : (n.dataset.cites || "").split(" ").filter(Boolean);
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
  const lightable = (e) => e.target.closest && e.target.closest("ibid-cite, mark.claim, .use, .source");
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
  document.addEventListener("ibid-close", () => {
    open = undefined;
    light(undefined);
    document.body.style.paddingBlockEnd = "";
  });

  // On a phone the card is a sheet: what it is about stays in sight above it.
  document.addEventListener("ibid-open", (e) => requestAnimationFrame(() => {
    const card = e.detail.card;
    if (innerWidth > 640 || !card.matches(":popover-open")) return;
    document.body.style.paddingBlockEnd = card.offsetHeight + "px";
    const under = e.target.getBoundingClientRect().bottom + 12 - card.getBoundingClientRect().top;
    if (under > 0) scrollBy({ top: under });
  }));

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
      panel.textContent = "Details";
      acts.append(panel);
    }
    copy.type = "button";
    copy.classList.add("copy-card"); // the next part of this script copies
    acts.append(copy);
    const judge = part.querySelector(".judge"), said = judge && judge.parentElement;
    if (judge) {
      judge.textContent = "Is this right?";
      acts.append(judge);
      said.remove();
      for (const other of part.querySelectorAll(".judge")) other.parentElement.remove();
      const link = new URL(judge.href);
      link.searchParams.set("citation", cited); // of those that say the same, the one whose card it is
      judge.href = link;
    }
    part.append(acts);
    return part;
  }

  // A reader's judgement: the form of its page, brought to where it was asked for. There is one at a time.
  let form;
  document.addEventListener("click", async (e) => {
    const link = e.composedPath().find((n) => n.matches && n.matches("a.judge"));
    if (!link || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    try {
      const response = await fetch(link.href);
      const found = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("form.judging");
      if (!response.ok || !found || !found.querySelector("button")) throw new Error("no form");
      if (form) form.remove();
      form = document.adoptNode(found);
      const row = link.closest("li");
      if (row) row.append(form);
      else (link.closest(".card-acts, .use") || link).after(form);
      form.querySelector("button").focus();
    } catch {
      location.assign(link.href);
    }
  });
  document.addEventListener("submit", (e) => {
    const sent = e.target;
    if (sent !== form || !e.submitter) return;
    e.preventDefault();
    const said = make("p", "rated");
    said.setAttribute("role", "status");
    said.tabIndex = -1;
    const say = (text) => {
      said.textContent = text;
      sent.after(said);
    };
    fetch(sent.action, { method: "POST", headers: { Accept: "application/json" }, body: new URLSearchParams(new FormData(sent, e.submitter)) }).then((r) => {
      if (r.status !== 204) { say("This could not be noted."); return; }
      say("Noted: " + e.submitter.textContent.trim().toLowerCase() + ".");
      sent.remove();
      said.focus(); // what was pressed is gone
    }, () => say("This could not be sent."));
  });

  // The line of trust: what is counted there is shown alone. The rows of other sources fade.
  function fadeRows(article) {
    const cited = new Set([...article.querySelectorAll(".chip.shown")].flatMap((chip) => chip.parentElement.dataset.n.split(" ")));
    for (const row of article.querySelectorAll(".source")) {
      row.classList.toggle("faded", "show" in article.dataset && !cited.has(row.querySelector(".n").textContent));
    }
  }
  document.querySelectorAll(".answer[data-show]").forEach(fadeRows);
  document.addEventListener("click", (e) => {
    const part = e.target.closest && e.target.closest(".trust a[data-show]");
    if (!part || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    const article = part.closest(".answer"), was = article.dataset.show || "", want = part.dataset.show === was ? "" : part.dataset.show;
    if (want) article.dataset.show = want;
    else delete article.dataset.show;
    let first;
    for (const n of article.querySelectorAll(".prose [data-s]")) {
      const isShown = want !== "" && n.dataset.s === want;
      (n.querySelector(":scope > .chip") || n).classList.toggle("shown", isShown);
      if (isShown) first ||= n;
    }
    fadeRows(article);
    for (const other of article.querySelectorAll(".trust a.trust-part")) {
      if (want && other.dataset.show === want) other.setAttribute("aria-current", "true");
      else other.removeAttribute("aria-current");
    }
    article.querySelector(".trust-all").hidden = !want;
    const url = new URL(location.href);
    if (url.pathname === part.pathname) { // in a conversation there are many answers
      if (want) url.searchParams.set("show", want);
      else url.searchParams.delete("show");
      history.replaceState(history.state, "", url);
    }
    if (first) {
      const box = first.getBoundingClientRect();
      if (box.bottom < 0 || box.top > innerHeight) first.scrollIntoView({ block: "center" });
    }
  });

  // A link to a chip from outside the text opens its card.
  document.addEventListener("click", (e) => {
    const link = e.target.closest && e.target.closest(".front-ways a[href^='#']"), cite = link && document.getElementById(link.hash.slice(1));
    if (!cite || !cite.querySelector(".chip")) return;
    e.preventDefault();
    const box = cite.getBoundingClientRect(), isNarrow = innerWidth <= 640; // there the card is a sheet over the lower half
    if (isNarrow || box.top < 0 || box.bottom > innerHeight / 2) scrollTo({ top: scrollY + box.top - innerHeight / (isNarrow ? 6 : 3) });
    cite.querySelector(".chip").click();
  });

  // The rail: the source that was looked at last is open.
  function activate(row) {
    if (!row || row.classList.contains("active")) return;
    for (const other of row.closest(".sources").querySelectorAll(".source.active")) other.classList.remove("active");
    row.classList.add("active");
    const rail = row.closest(".sources"), box = row.getBoundingClientRect(), frame = rail.getBoundingClientRect();
    if (rail.scrollHeight > rail.clientHeight + 1 && (box.top < frame.top || box.bottom > frame.bottom)) rail.scrollTop += box.top - frame.top - 8;
  }
  document.addEventListener("click", (e) => {
    const cite = e.target.closest && e.target.closest("ibid-cite"), answer = cite && answerOf(cite);
    if (answer && cite.dataset.n) activate(document.getElementById(answer.dataset.prefix + "s-" + cite.dataset.n.split(" ")[0]));
  });
  document.addEventListener("click", (e) => { if (!e.target.closest("a, button, summary")) activate(e.target.closest(".source")); });
  document.addEventListener("focusin", (e) => activate(e.target.closest(".sources .source")));

  // On a phone the sources are a sheet.
  document.addEventListener("click", (e) => {
    const bar = e.target.closest && e.target.closest("a.to-sources"), list = bar && document.getElementById(bar.hash.slice(1));
    if (!list || !list.showPopover) return;
    e.preventDefault();
    const close = make("button", "sources-close plain", "×");
    close.type = "button";
    close.setAttribute("aria-label", "Close the sources");
    close.addEventListener("click", () => list.hidePopover());
    list.popover = "auto";
    list.prepend(close);
    list.ontoggle = (t) => {
      if (t.newState !== "closed") return;
      close.remove();
      list.removeAttribute("popover");
      bar.focus({ preventScroll: true });
    };
    list.showPopover();
    close.focus();
  });

  // The search is a key away.
  document.addEventListener("keydown", (e) => {
    const field = document.getElementById("q"), typing = e.target.closest && e.target.closest("input, textarea, select, [contenteditable]");
    if (!field || e.altKey) return;
    if (e.key === "/" ? typing || e.ctrlKey || e.metaKey : !(e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey) && !e.shiftKey)) return;
    e.preventDefault();
    field.focus();
    field.select();
  });

  // Escape ends what is shown alone.
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && !e.defaultPrevented && !open) document.querySelector(".answer[data-show] .trust-all a")?.click();
  });

  // Reading the sources again takes seconds.
  document.addEventListener("submit", (e) => {
    const button = e.target.closest(".trust form")?.querySelector("button");
    if (button) { button.textContent = "Checking…"; button.disabled = true; }
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
