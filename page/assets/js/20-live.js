// Shows answers while they arrive. What is already shown stays: text is appended, chips are inserted, nothing is
// replaced.
queueMicrotask(() => {
  "use strict";

  // one returns the first element of HTML from our server.
  const one = (html) => {
    const t = document.createElement("template");
    t.innerHTML = html;
    return t.content.firstElementChild;
  };
  const isText = (n) => n && n.nodeType === Node.TEXT_NODE;
  const isCite = (n) => n && n.localName === "ibid-cite";
  const face = (cite) => cite.textContent + cite.className + (cite.querySelector("a")?.className || "") + (cite.querySelector("a")?.getAttribute("href") || "");

  // follows reports whether words follow a node in its block.
  const follows = (node, block) => {
    const range = document.createRange();
    range.selectNodeContents(block);
    range.setStartAfter(node);
    return range.toString().trim() !== "";
  };

  // restate gives a chip the standing of another: its colour, its icon, for which room is reserved, and its word for
  // screen readers. The note with the differing words would move the text after it, so it is added when the answer has
  // ended.
  const restate = (old, next, whole) => {
    old.className = next.className;
    if (whole) {
      old.replaceChildren(...next.childNodes);
      return;
    }
    old.querySelector(".unseen")?.remove();
    const word = next.querySelector(".unseen");
    if (word) old.prepend(word);
  };

  // put turns the children of old into those of next, keeping every node that can stay. A chip inserted before words
  // that are already shown is marked late: it takes no room, so that nothing moves.
  const put = (old, next, block) => {
    let at = old.firstChild;
    for (const to of [...next.childNodes]) {
      if (isText(at) && isText(to)) {
        if (to.data.startsWith(at.data)) at.appendData(to.data.slice(at.data.length));
        else if (at.data.startsWith(to.data) && to.nextSibling) at.splitText(to.data.length); // something is inserted in between
        else if (at.data !== to.data) at.data = to.data;
        at = at.nextSibling;
      } else if (isCite(to) && isCite(at)) {
        at.toggleAttribute("data-s", to.hasAttribute("data-s"));
        for (const name of ["data-cites", "data-n", "data-s"]) if (at.getAttribute(name) !== to.getAttribute(name)) at.setAttribute(name, to.getAttribute(name));
        if (face(at) !== face(to) && follows(at, block)) restate(at.querySelector("a"), to.querySelector("a"), block.closest(".ended"));
        else if (face(at) !== face(to)) {
          const late = at.classList.contains("late");
          at.replaceWith(to);
          to.classList.toggle("late", late);
          at = to;
        }
        at = at.nextSibling;
      } else if (isCite(to)) {
        old.insertBefore(to, at);
        if (follows(to, block)) to.classList.add("late");
      } else if (to.nodeType === Node.ELEMENT_NODE && isText(at) && at.data && to.textContent.startsWith(at.data.slice(0, to.textContent.length)) && !to.querySelector("ibid-cite")) {
        const words = at.data.length > to.textContent.length ? at.splitText(to.textContent.length) : at.nextSibling; // words that are now marked
        const around = to.cloneNode(false);
        at.replaceWith(around);
        around.append(at);
        put(around, to, block);
        at = words;
      } else if (at && at.nodeType === Node.ELEMENT_NODE && at.localName === to.localName) {
        if (!to.hasAttribute("data-s")) at.removeAttribute("data-s");
        for (const a of to.attributes) if (at.getAttribute(a.name) !== a.value) at.setAttribute(a.name, a.value);
        put(at, to, block);
        at = at.nextSibling;
      } else {
        const rest = at;
        at = at && at.nextSibling;
        if (rest && rest.nodeType === to.nodeType) rest.replaceWith(to);
        else { old.insertBefore(to, rest); at = rest; }
      }
    }
    while (at) { const rest = at; at = at.nextSibling; rest.remove(); }
  };
  // block updates the n-th block of a text.
  const block = (prose, n, next) => {
    const old = prose.children[n];
    if (!old) prose.append(next);
    else if (old.localName !== next.localName) old.replaceWith(next);
    else put(old, next, old);
  };
  const trim = (prose, n) => { while (prose.children.length > n) prose.lastElementChild.remove(); };

  // If the reader is at the end of the page, keeps it there while the page grows, as long as the question is in view.
  const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
  const keepEnd = (turn, change) => {
    const was = atEnd();
    change();
    const most = scrollY + turn.getBoundingClientRect().top - 8;
    if (was && most > scrollY) scrollTo({ top: Math.min(document.documentElement.scrollHeight - innerHeight, most) });
  };

  for (const turn of document.querySelectorAll(".turn[data-live]")) {
    const log = turn.querySelector(".live-log"), state = turn.querySelector(".live-state"), article = turn.querySelector(".answer");
    const prose = article.querySelector(".prose"), source = new EventSource(turn.dataset.live);
    let told = Math.max(0, prose.children.length - 1), done = false; // number of blocks announced to screen readers
    turn.classList.add("arriving");

    // Screen readers announce each block once, when the next one begins. The text itself is not announced while it
    // changes.
    const tell = (n) => {
      for (; told < n && prose.children[told]; told++) {
        const p = document.createElement("p"), words = prose.children[told].cloneNode(true);
        for (const cite of words.querySelectorAll("ibid-cite")) cite.remove();
        p.textContent = words.textContent;
        log.append(p);
      }
    };
    const say = (text, ended, whole) => {
      state.querySelector(".live-word").textContent = text;
      if (!ended) return;
      turn.classList.add("ended");
      turn.classList.toggle("broken", !whole);
      const again = turn.querySelector(".live-again"), stop = document.querySelector(".composer .stop");
      if (again) again.hidden = whole;
      if (stop) {
        const focused = document.activeElement === stop || document.activeElement === document.body;
        stop.remove();
        if (focused && !matchMedia("(pointer: coarse)").matches) document.getElementById("question")?.focus({ preventScroll: true });
      }
    };
    source.addEventListener("state", (e) => say(JSON.parse(e.data).text));
    source.addEventListener("block", (e) => keepEnd(turn, () => {
      const b = JSON.parse(e.data);
      prose.dir = b.dir;
      block(prose, b.n, one(b.html));
      trim(prose, b.of);
      tell(b.of - 1);
    }));
    // Cards are filled from the rows, which are hidden for now: below the text they would move with every line.
    source.addEventListener("sources", (e) => {
      const rows = article.querySelector(".live-sources");
      if (rows) rows.replaceChildren(one(JSON.parse(e.data).html));
    });
    source.addEventListener("answer", (e) => keepEnd(turn, () => {
      // The words stay in place, so everything else about the answer is added below them.
      const sent = JSON.parse(e.data), next = one(sent.html), text = next.querySelector(".prose"), blocks = [...text.children];
      prose.dir = text.dir;
      say(sent.state, true, sent.whole);
      turn.classList.toggle("checking", sent.checking);
      trim(prose, blocks.length);
      blocks.forEach((b, n) => block(prose, n, b));
      tell(blocks.length);
      article.removeAttribute("aria-busy");
      const head = document.querySelector(".talk-head");
      if (head && sent.facts) { // its lines have room from the beginning
        head.querySelector(".talk-facts").replaceWith(one(sent.facts));
        head.querySelector(".talk-menus").hidden = false;
      }
      for (const el of [...article.children]) if (el !== prose) el.remove();
      for (const el of [...next.children]) if (el !== text) article.append(el);
      turn.querySelector(".byline")?.remove();
      article.before(one(sent.byline)); // in place of the state, which from now on is only for screen readers
      state.classList.add("unseen");
      const samples = document.querySelector(".samples-next");
      if (samples) samples.hidden = Boolean(article.querySelector(".samples"));
      done = true;
      setTimeout(() => log.replaceChildren(), 5000); // by then it was announced; the text itself can be read
    }));
    source.addEventListener("gone", (e) => { say(JSON.parse(e.data).text, true, false); done = true; });
    source.addEventListener("end", () => source.close());
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED && !done) say("The connection was lost. Reload the page to see the answer.", true, false);
    });
  }
});
