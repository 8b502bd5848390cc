// Answers: highlighting what a chip, its words and its source's row have in common, and filling the cards. Each part of
// this script is a task of its own, so that an exception in one does not stop the others.
queueMicrotask(() => {
  "use strict";
  const MOST = 12, LIT = 400; // sources on one card; elements highlighted at the same time
  const make = (tag, name, text) => {
    const n = document.createElement(tag);
    if (name) n.className = name;
    if (text) n.textContent = text;
    return n;
  };
  const citesOf = (n) => {
    if (!n.matches(".source")) return (n.dataset.cites || "").split(" ").filter(Boolean);
    const own = n.matches(".folded") ? [...answerOf(n).querySelectorAll("ibid-cite")].filter((c) => rowsOf(c).includes(n)) : n.querySelectorAll(".use");
    return [...own].flatMap(citesOf);
  };
  const rowsOf = (cite) => numbersOf(cite).map((n) => rowOf(answerOf(cite), n));
  const answerOf = (n) => n.closest("[data-prefix]");
  const numbersOf = (cite) => (cite.dataset.n || "").split(" ").filter(Boolean);
  const rowOf = (answer, n) => document.getElementById(answer.dataset.prefix + "s-" + n);

  // Of the sources after the first ones there is a line only, without what citations take from them, until it is opened.
  const unfolding = new Map();
  const unfold = (row) => {
    const answer = answerOf(row), link = row.querySelector(":scope > .source-name > .n, :scope > .left > a");
    if (!row.matches(".folded") || !answer || !link) return Promise.resolve();
    if (!unfolding.has(row)) {
      unfolding.set(row, fetch(`${link.href}?row=${answer.dataset.prefix}`).then((r) => r.ok ? r.text() : Promise.reject(r)).then((html) => {
        const whole = new DOMParser().parseFromString(html, "text/html").querySelector(".source");
        whole.querySelector(".n").textContent = row.querySelector(".n").textContent; // a conversation goes on counting
        row.replaceChildren(...whole.childNodes);
        row.classList.remove("folded");
        relight();
      }).catch(() => unfolding.delete(row))); // the line still leads to what is known of it
    }
    return unfolding.get(row);
  };

  // Highlights everything in the same answer that belongs to the same citations.
  let lit = [], at, open;
  function light(n) {
    if (n === at) return;
    at = n;
    for (const other of lit) other.classList.remove("on");
    lit = [];
    const cites = n && !n.closest(".run") ? citesOf(n) : []; // in a run, the chosen part is marked instead
    if (!cites.length) return;
    const within = answerOf(n) || document;
    const wanted = new Set(cites);
    for (const other of within.querySelectorAll("[data-cites]")) {
      if (!citesOf(other).some((id) => wanted.has(id))) continue;
      if (lit.length >= LIT) break;
      lit.push(other);
      const row = other.closest(".source");
      if (row) lit.push(row);
      if (other.localName === "ibid-cite") lit.push(...rowsOf(other).filter((r) => r && r.matches(".folded")));
    }
    for (const other of lit) other.classList.add("on");
  }
  function relight() {
    const n = at;
    at = undefined;
    light(n);
  }
  const lightable = (e) => e.target.closest && e.target.closest("ibid-cite, mark.claim, .use, .source");
  document.addEventListener("pointerover", (e) => { if (e.pointerType === "mouse") light(lightable(e) || open); });
  document.addEventListener("focusin", (e) => { if (!e.target.closest("ibid-card")) light(lightable(e) || open); });
  document.addEventListener("focusout", (e) => { if (!e.relatedTarget) light(open); });

  // A card is a copy of the rows of a chip's sources, with only the uses that the chip cites. If the sources are beside
  // the text there is no card: the rows open there.
  document.addEventListener("ibid-open", (e) => {
    const cite = e.target, answer = answerOf(cite);
    if (!answer || !cite.dataset.n) return;
    const numbers = numbersOf(cite), rows = numbers.slice(0, MOST).map((n) => rowOf(answer, n)).filter(Boolean);
    if (rows.length && isBeside(rows[0])) {
      e.preventDefault();
      activate(rows);
      if (!e.detail.pin) return;
      open = cite;
      light(cite);
      if (cite.querySelector(":focus-visible")) rows[0].focus({ preventScroll: true });
      return;
    }
    open = cite;
    light(cite);
    const cites = new Set(citesOf(cite)), card = make("div", "card");
    for (const row of rows) {
      const part = section(row, cites);
      card.append(part);
      if (row.matches(".folded")) unfold(row).then(() => part.replaceWith(section(row, cites)));
    }
    if (numbers.length > MOST) card.append(make("p", "quiet", `And ${numbers.length - MOST} more, in the list of sources.`));
    if (card.childNodes.length) e.detail.card.append(card);
  });
  document.addEventListener("ibid-close", () => {
    unpin();
    document.body.style.paddingBlockEnd = "";
  });
  // A click on cited words acts as one on their chip.
  document.addEventListener("click", (e) => {
    const claim = e.target.closest("mark.claim");
    if (!claim || e.target.closest("a, button, .run") || String(getSelection()) !== "") return;
    const cites = new Set(citesOf(claim)), all = [...claim.closest(".prose").querySelectorAll("ibid-cite")];
    all.find((cite) => citesOf(cite).some((id) => cites.has(id)))?.querySelector(".chip").click();
  });
  function unpin() {
    open = undefined;
    light(undefined);
  }
  document.addEventListener("click", (e) => { if (open && !e.target.closest("ibid-cite, ibid-card, .source, mark.claim")) unpin(); });
  document.addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !open || document.querySelector("ibid-card:popover-open")) return;
    if (e.target.closest(".source")) open.querySelector(".chip").focus();
    unpin();
    e.preventDefault();
  });

  // On a phone the card is a sheet; what it is about is scrolled into view above it.
  document.addEventListener("ibid-open", (e) => requestAnimationFrame(() => {
    const card = e.detail.card;
    if (innerWidth > 640 || !card.matches(":popover-open")) return;
    document.body.style.paddingBlockEnd = card.offsetHeight + "px";
    const under = e.target.getBoundingClientRect().bottom + 12 - card.getBoundingClientRect().top;
    if (under > 0) scrollBy({ top: under });
  }));

  function section(row, cites) {
    const part = make("section"), uses = make("div", "uses"), head = row.querySelector(".source-head, .source-name").cloneNode(true);
    part.append(head);
    for (const use of row.querySelectorAll(":scope > .uses > .use")) {
      const shared = citesOf(use).find((id) => cites.has(id));
      if (!shared) continue;
      const copied = use.cloneNode(true), judge = copied.querySelector(".judge");
      for (const m of copied.querySelectorAll("mark[data-of]")) { // words that only other claims share
        if (!m.dataset.of.split(" ").some((id) => cites.has(id))) m.replaceWith(...m.childNodes);
      }
      if (judge) { // if several citations share the use, judge the one whose card this is
        const link = new URL(judge.href);
        link.searchParams.set("citation", shared);
        judge.href = link;
      }
      uses.append(copied);
    }
    if (uses.childNodes.length) part.append(uses);
    else for (const n of row.querySelectorAll(":scope > blockquote")) part.append(n.cloneNode(true));
    if (uses.querySelector(".badge")) head.querySelector(".standing")?.remove(); // each use has its own
    for (const n of part.querySelectorAll(".on")) n.classList.remove("on");
    const copy = make("button", "plain copy-card", "Copy"); // handled in 21-copy.js
    copy.type = "button";
    let acts = [...part.querySelectorAll(".use-acts")].at(-1);
    if (!acts) part.append(acts = make("p", "facts use-acts"));
    acts.append(copy);
    return part;
  }

  // A reader's verdict: loads the form of its page and inserts it here. There is at most one.
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
      else (link.closest(".use") || link).after(form);
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
      if (r.status !== 204) { say("This could not be saved."); return; }
      say("Saved: " + e.submitter.textContent.trim().toLowerCase() + ".");
      sent.remove();
      said.focus(); // the pressed button is gone
    }, () => say("This could not be sent."));
  });

  // The summary line is a filter: a click on a part shows its citations only, and fades the rows of other sources.
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
    if (part.dataset.show === "no-source" && !part.closest(".answer").querySelector(".prose .bare")) return; // only that page marks them
    e.preventDefault();
    const article = part.closest(".answer"), was = article.dataset.show || "", want = part.dataset.show === was ? "" : part.dataset.show;
    if (want) article.dataset.show = want;
    else delete article.dataset.show;
    let first;
    for (const n of article.querySelectorAll(".prose :is([data-s], ibid-cite, mark.claim)")) {
      const isShown = want !== "" && (n.dataset.s || "not-checked").split(" ").includes(want);
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
    if (url.pathname === part.pathname) { // a conversation has many answers
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
    const box = cite.getBoundingClientRect(), isNarrow = innerWidth <= 640; // where the card is a sheet over the lower half
    if (isNarrow || box.top < 0 || box.bottom > innerHeight / 2) scrollTo({ top: scrollY + box.top - innerHeight / (isNarrow ? 6 : 3) });
    cite.querySelector(".chip").click();
  });

  // Sources beside the text: open are the last viewed ones, and those with something wrong.
  function isBeside(row) {
    const rail = row.closest(".sources");
    return getComputedStyle(rail).position === "sticky" && rail.checkVisibility();
  }
  function activate(rows) {
    const rail = rows[0].closest(".sources");
    for (const other of rail.querySelectorAll(".source.active")) other.classList.remove("active");
    for (const row of rows) {
      row.classList.add("active");
      row.tabIndex = -1;
      unfold(row);
    }
    const box = rows[0].getBoundingClientRect(), frame = rail.getBoundingClientRect();
    if (rail.scrollHeight > rail.clientHeight + 1 && (box.top < frame.top || box.bottom > frame.bottom)) rail.scrollTop += box.top - frame.top - 8;
  }
  const lookAt = (e) => {
    const row = e.target.closest(".sources .source");
    if (row && !row.classList.contains("active")) activate([row]);
  };
  document.addEventListener("click", (e) => { if (!e.target.closest("a, button, summary")) lookAt(e); });
  document.addEventListener("focusin", lookAt);

  // Where the sources are not beside the text, they are a sheet.
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
    close.focus({ preventScroll: true });
    const first = list.querySelector(".source.active"); // the gravest
    if (first && first.offsetTop > list.clientHeight / 3) list.scrollTop = first.offsetTop - 8;
  });

  // Keyboard shortcuts for the search.
  document.addEventListener("keydown", (e) => {
    const field = document.getElementById("q"), typing = e.target.closest && e.target.closest("input, textarea, select, [contenteditable]");
    if (!field || e.altKey) return;
    if (e.key === "/" ? typing || e.ctrlKey || e.metaKey : !(e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey) && !e.shiftKey)) return;
    e.preventDefault();
    field.focus();
    field.select();
  });

  // Escape clears the filter.
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && !e.defaultPrevented && !open) document.querySelector(".answer[data-show] .trust-all a")?.click();
  });

  // Reading the sources again takes seconds. Its result is shown only once.
  const isChecking = (button) => { if (button) { button.textContent = "Checking…"; button.disabled = true; } };
  document.addEventListener("submit", (e) => isChecking(e.target.closest(".trust form")?.querySelector("button")));
  const clean = new URL(location.href);
  clean.searchParams.delete("checking");
  clean.searchParams.delete("differing");
  const late = document.querySelector(".late-check");
  if (late) {
    isChecking(late.closest(".trust").querySelector("form button"));
    late.textContent = "The sources are still being read again.";
    const look = async (rest) => {
      const page = await fetch(location.href).then((r) => r.text(), () => "");
      if (!page.includes("late-check") || !rest) location.replace(clean);
      else setTimeout(look, 2000, rest - 1);
    };
    setTimeout(look, 2000, 30);
  } else if (clean.href !== location.href) history.replaceState(history.state, "", clean);

  // The page of a server without answers shows the first one when it arrives, unless somebody is writing on it.
  const empty = document.querySelector(".welcome");
  if (empty) setInterval(async () => {
    if (document.hidden || empty.querySelector("textarea").value) return;
    const page = await fetch("/").then((r) => r.ok ? r.text() : "", () => "");
    if (page && !page.includes('class="welcome"')) location.reload();
  }, 2000);

  // Menus close on a click elsewhere and on Escape.
  document.addEventListener("click", (e) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(e.target)) menu.open = false;
  });
  document.addEventListener("keydown", (e) => {
    const menu = e.key === "Escape" && e.target.closest && e.target.closest("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });
});
