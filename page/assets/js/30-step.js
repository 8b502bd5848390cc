// Runs: marks what belongs to the reader's choice at once. Without this script, the same links load the page with it
// marked.
(function show(run, isFirst = true) {
  if (!run) return;
  const why = document.getElementById("why");
  const numbers = (text) => (text || "").split(" ").filter(Boolean);
  const all = (selector) => [...run.querySelectorAll(selector)];
  const ties = all("a[data-choose]");
  const narrow = matchMedia("(max-width: 65.99rem)"); // where the explanation is a sheet, as in 30-step.css
  const gone = new AbortController(); // aborted when the run is replaced
  for (const tie of ties) {
    tie.setAttribute("role", "button");
    tie.setAttribute("aria-pressed", String(tie.hasAttribute("aria-current")));
    tie.removeAttribute("aria-current");
    if (why) tie.setAttribute("aria-controls", "why");
  }

  // related returns what belongs to a choice: the numbers, as strings, of sentences, steps and passages.
  const related = (kind, n) => {
    const found = { sentence: new Set(), step: new Set(), passage: new Set() };
    if (kind === "sentence") {
      const sentence = document.getElementById("sentence-" + n);
      numbers(sentence?.dataset.steps).forEach((m) => found.step.add(m));
      numbers(sentence?.dataset.passages).forEach((m) => found.passage.add(m));
      return found;
    }
    for (const sentence of all(".sentence")) {
      if (numbers(sentence.dataset[kind + "s"]).includes(n)) found.sentence.add(sentence.dataset.n);
    }
    if (kind === "step") {
      for (const passage of all(".passage")) if (numbers(passage.dataset.steps).includes(n)) found.passage.add(passage.dataset.passage);
    } else {
      numbers(document.getElementById("passage-" + n)?.dataset.steps).forEach((m) => found.step.add(m));
    }
    return found;
  };

  const mark = (elements, kind, of, chosen, found) => {
    for (const element of elements) {
      const n = of(element);
      element.classList.toggle("chosen", chosen?.kind === kind && chosen.n === n);
      element.classList.toggle("related", found[kind].has(n));
    }
  };

  const say = (chosen, found) => {
    if (!why) return;
    const kind = chosen?.kind, told = kind === "sentence" ? new Set([chosen.n]) : found.sentence, none = why.querySelector(".why-none");
    for (const because of why.querySelectorAll(".because")) because.hidden = !told.has(because.id.slice("why-".length));
    document.getElementById("why-head").textContent =
      kind === "step" ? "What rests on step " + chosen.n : kind === "passage" ? "What rests on this passage" : "What it rests on";
    why.dataset.of = kind || "";
    none.hidden = told.size > 0;
    none.textContent = kind ? "No sentence rests on it." : "Choose a sentence or a step to see what belongs together.";
  };

  // On phones the explanation of a sentence is a sheet that can be closed.
  const closer = why && document.createElement("button");
  if (closer) {
    closer.type = "button";
    closer.className = "why-close plain";
    closer.setAttribute("aria-label", "Close");
    closer.innerHTML = '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M4 4l8 8M12 4l-8 8"/></svg>';
    closer.addEventListener("click", () => {
      const on = ties.find((tie) => tie.getAttribute("aria-pressed") === "true"); // there is none for a sentence without a source
      choose(null, on);
      remember(null);
      on?.focus({ preventScroll: true });
    });
    why.prepend(closer);
  }

  const isSeen = (element) => {
    const box = element.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight;
  };

  // choose marks what belongs to a choice; null clears the marks.
  const kinds = ["sentence", "step", "passage"], keyOf = (chosen) => chosen ? chosen.kind + chosen.n : "";
  const inAddress = () => {
    const q = new URL(location.href).searchParams, kind = kinds.find((name) => q.get(name));
    return kind ? { kind, n: q.get(kind) } : null;
  };
  let current = keyOf(inAddress());
  const choose = (chosen, from) => {
    current = keyOf(chosen);
    const none = { sentence: new Set(), step: new Set(), passage: new Set() };
    const found = chosen ? related(chosen.kind, chosen.n) : none;
    mark(all(".sentence"), "sentence", (e) => e.dataset.n, chosen, found);
    mark(all(".step"), "step", (e) => e.dataset.step, chosen, found);
    mark(all(".node"), "step", (e) => e.dataset.node, chosen, found);
    mark(all("[data-passage]"), "passage", (e) => e.dataset.passage, chosen, found);
    for (const tie of ties) tie.setAttribute("aria-pressed", String(chosen?.kind === tie.dataset.choose && chosen.n === tie.dataset.n));
    say(chosen, found);
    if (why) {
      why.classList.toggle("sheet", Boolean(chosen));
      if (chosen) why.scrollTop = 0;
      // If it is a sheet, the chosen part is scrolled into view above it.
      const isSheet = chosen && getComputedStyle(why).position === "fixed";
      const under = isSheet && from ? from.getBoundingClientRect().bottom + 12 - why.getBoundingClientRect().top : 0;
      if (under > 0) scrollBy({ top: under, behavior: "instant" });
    }
    // Steps are above the answer: opening one must not move what was pressed.
    const was = from?.getBoundingClientRect().top;
    const step = run.querySelector(".step.chosen > details");
    if (step) step.open = true;
    if (from) scrollBy({ top: from.getBoundingClientRect().top - was, behavior: "instant" });
  };

  // The choice is kept in the address, so that a reload restores it.
  const remember = (chosen, at = location.href) => {
    const url = new URL(at);
    for (const kind of kinds) url.searchParams.delete(kind);
    if (chosen) url.searchParams.set(chosen.kind, chosen.n);
    history.replaceState(history.state, "", url);
  };
  const chooseSentence = (n, from) => {
    choose({ kind: "sentence", n }, from);
    remember({ kind: "sentence", n });
  };
  const toggle = (tie) => {
    const tied = { kind: tie.dataset.choose, n: tie.dataset.n };
    const isLeft = why && narrow.matches && !why.classList.contains("sheet"); // a dismissed sheet comes back
    const off = keyOf(tied) === current && !isLeft, chosen = off ? null : tied;
    choose(chosen, tie);
    remember(chosen, off ? location.href : tie.href);
  };

  // Follows the address when the reader navigates back or forward.
  addEventListener("popstate", () => {
    const chosen = inAddress();
    if (current !== keyOf(chosen)) choose(chosen);
  }, { signal: gone.signal });
  const addressed = run.querySelector(".sentence.chosen");
  if (addressed && isFirst) { // when a run is replaced, the reader's open steps stay open
    for (const details of all(".step.related > details")) details.open = false;
    choose(inAddress());
    if (!isSeen(addressed)) addressed.scrollIntoView({ block: "start", behavior: "instant" }); // with its margin
  }

  // Additions are inserted while the run is read. What the reader opened, chose and looks at stays.
  const open = run.querySelector("[data-run-live]");
  if (open) {
    const said = open.querySelector(".run-said"), reload = open.querySelector("a"), source = new EventSource(open.dataset.runLive);
    const offer = () => {
      said.textContent = "Something was added to this run.";
      reload.parentElement.hidden = open.hidden = false;
      open.classList.add("good");
    };
    source.addEventListener("open", () => { reload.parentElement.hidden = true; });
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) reload.parentElement.hidden = false; });
    source.addEventListener("changed", async () => {
      source.close();
      await new Promise((done) => setTimeout(done, 500)); // more may follow
      try {
        const response = await fetch(location.href);
        const next = response.ok && new DOMParser().parseFromString(await response.text(), "text/html").querySelector("article.run");
        const isBusy = run.contains(getSelection().anchorNode) && !getSelection().isCollapsed || document.querySelector("ibid-card:popover-open");
        if (!next || isBusy) throw new Error("not now");
        replaceRun(document.adoptNode(next));
      } catch {
        offer();
      }
    });
  }

  function replaceRun(next) {
    const name = (details) => (details.closest("[id]")?.id || "") + details.querySelector("summary")?.textContent;
    const opened = new Set(all("details[open]").map(name)), shut = new Set(all("details:not([open])").map(name));
    for (const details of next.querySelectorAll("details")) {
      if (opened.has(name(details))) details.open = true;
      else if (shut.has(name(details))) details.open = false;
    }
    const seen = all("[id]").find(isSeen), was = seen?.getBoundingClientRect().top, held = document.activeElement;
    const isSheet = why?.classList.contains("sheet");
    gone.abort();
    run.replaceWith(next);
    show(next, false);
    if (isSheet) document.getElementById("why")?.classList.add("sheet");
    const stays = seen && document.getElementById(seen.id);
    if (stays) scrollBy({ top: stays.getBoundingClientRect().top - was, behavior: "instant" });
    const same = run.contains(held) && (held.id ? "#" + CSS.escape(held.id) : held.dataset.choose && `[data-choose="${held.dataset.choose}"][data-n="${held.dataset.n}"]`);
    if (same) next.querySelector(same)?.focus({ preventScroll: true });
  }

  run.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const tie = event.target.closest("a[data-choose]");
    if (tie) {
      event.preventDefault();
      toggle(tie);
      return;
    }
    const to = event.target.closest(':is(a[href^="#step-"], a[href^="#passage-"], a[href^="#source-"]):not(.chip)');
    if (to) { // a link to a step, a passage or a source shows it; a chip chooses its sentence instead
      const at = document.getElementById(to.getAttribute("href").slice(1));
      const details = at?.matches(".step") ? at.querySelector("details") : at?.closest("details");
      if (details) details.open = true;
      why?.classList.remove("sheet");
      return;
    }
    const sentence = event.target.closest(".sentence");
    if (sentence && !event.target.closest("a") && String(getSelection()) === "") chooseSentence(sentence.dataset.n, sentence);
  });
  // A chip chooses the sentence before it. The explanation shows what it rests on, so no card opens.
  run.addEventListener("ibid-open", (event) => {
    const cite = event.target;
    if (!why || !cite.closest(".prose")) return;
    const sentence = all(".sentence").findLast((s) => s.compareDocumentPosition(cite) & Node.DOCUMENT_POSITION_FOLLOWING);
    if (!sentence) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.detail.pin) chooseSentence(sentence.dataset.n, cite);
  }, true);
  // After a click on words nothing in the run has the focus, so the handler is on the document.
  document.addEventListener("keydown", (event) => {
    const isElsewhere = event.target.closest?.("#panel, dialog") || document.querySelector(":popover-open");
    if (event.key === "Escape" && current && !isElsewhere) closer?.click();
  }, { signal: gone.signal });
  run.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches("a[data-choose]")) return;
    event.preventDefault();
    toggle(event.target);
  });
})(document.querySelector("article.run"));

// Panels: a source opens beside the answer, on phones as a sheet, and closes by going back in the history.
(() => {
  const path = /^\/ui\/answers\/[^/]+\/sources\/\d+$/;
  if (path.test(location.pathname)) return;
  const wide = matchMedia("(min-width: 68.75rem)");
  let opener = null;
  let asked = 0;

  const button = () => {
    const b = document.createElement("button");
    b.type = "button";
    b.className = "panel-close plain";
    b.setAttribute("aria-label", "Close the source");
    b.innerHTML = '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M4 4l8 8M12 4l-8 8"/></svg>';
    b.addEventListener("click", close);
    return b;
  };

  const aside = () => {
    let found = document.getElementById("panel");
    if (!found) {
      found = document.createElement("aside");
      found.id = "panel";
      found.className = "apart";
      found.setAttribute("aria-label", "Source");
      document.getElementById("main").append(found);
    }
    return found;
  };

  const sheet = () => {
    let found = document.querySelector("dialog.sheet");
    if (!found) {
      found = document.createElement("dialog");
      found.className = "sheet";
      found.setAttribute("aria-label", "Source");
      found.addEventListener("close", () => { if (history.state?.panel) history.back(); });
      found.addEventListener("click", (event) => { if (event.target === found) found.close(); });
      document.body.append(found);
    }
    return found;
  };

  const hide = () => {
    asked++;
    const side = document.getElementById("panel");
    if (side && !side.hidden) {
      side.hidden = true;
      side.replaceChildren();
    }
    const low = document.querySelector("dialog.sheet");
    if (low?.open) low.close();
    if (opener?.isConnected) opener.focus({ preventScroll: true });
    opener = null;
  };

  const close = () => { if (history.state?.panel) history.back(); else hide(); };

  const show = (section) => {
    document.getElementById("why")?.classList.remove("sheet"); // only one of them at a time
    const low = document.querySelector("dialog.sheet");
    if (wide.matches) {
      if (low?.open) low.close();
      const side = aside();
      side.replaceChildren(button(), section);
      side.hidden = false;
      side.scrollTop = 0;
    } else {
      const under = sheet();
      under.replaceChildren(button(), section);
      if (!under.open) under.showModal();
      under.scrollTop = 0;
    }
    section.querySelector("#panel-title")?.focus({ preventScroll: true });
  };

  const open = async (where, push) => {
    const mine = ++asked;
    try {
      const response = await fetch(where + "?fragment=1");
      if (!response.ok || response.redirected) throw new Error("not a panel");
      const section = new DOMParser().parseFromString(await response.text(), "text/html").querySelector(".source-panel");
      if (mine !== asked) return;
      if (!section) throw new Error("not a panel");
      if (push) {
        if (history.state?.panel) history.replaceState({ ...history.state, panel: where }, "");
        else history.pushState({ panel: where }, "");
      }
      show(document.adoptNode(section));
    } catch {
      if (mine === asked) location.assign(where);
    }
  };

  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.composedPath().find((e) => e.localName === "a" && e.href);
    if (!link || link.target || link.origin !== location.origin || !path.test(link.pathname) || link.closest(".source-panel")) return;
    event.preventDefault();
    opener = link;
    open(link.pathname, true);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && event.target.closest?.("#panel")) close();
  });
  addEventListener("popstate", (event) => { if (event.state?.panel) open(event.state.panel, false); else hide(); });
  if (history.state?.panel) open(history.state.panel, false);
})();
