// Shows answers while they arrive, and copies what is marked with its sources.
queueMicrotask(() => {
  "use strict";

  // one returns the first element of HTML that our server made.
  const one = (html) => {
    const t = document.createElement("template");
    t.innerHTML = html;
    return t.content.firstElementChild;
  };
  // same reports whether two blocks show the same. The element of a chip may have added to itself since.
  const face = (el) => el.localName + el.textContent + [...el.querySelectorAll("[data-cites]")].map((c) => `|${c.dataset.cites} ${c.dataset.n}`).join("");
  const same = (a, b) => face(a) === face(b);
  // put makes the n-th block of a text what it should be. What is that already is not touched: words stay where they are, and selected.
  const put = (prose, n, next) => {
    const old = prose.children[n];
    if (!old) prose.append(next);
    else if (!same(old, next)) old.replaceWith(next);
  };
  const trim = (prose, n) => { while (prose.children.length > n) prose.lastElementChild.remove(); };

  for (const turn of document.querySelectorAll(".turn[data-live]")) {
    const log = turn.querySelector(".live-log"), state = turn.querySelector(".live-state"), article = turn.querySelector(".answer");
    const prose = article.querySelector(".prose"), source = new EventSource(turn.dataset.live);
    let told = Math.max(0, prose.children.length - 1), done = false; // blocks that listeners have heard of
    turn.classList.add("arriving");

    // Listeners hear each block once, when the next one begins. Of the text itself nothing is read out while it changes.
    const tell = (n) => {
      for (; told < n && prose.children[told]; told++) {
        const p = document.createElement("p"), words = prose.children[told].cloneNode(true);
        for (const cite of words.querySelectorAll("ibid-cite")) cite.remove();
        p.textContent = words.textContent;
        log.append(p);
      }
    };
    const say = (text, ended) => {
      turn.classList.toggle("ended", ended);
      state.querySelector(".live-word").textContent = text;
    };
    source.addEventListener("block", (e) => {
      const b = JSON.parse(e.data);
      prose.dir = b.dir;
      put(prose, b.n, one(b.html));
      trim(prose, b.of);
      tell(b.of - 1);
    });
    source.addEventListener("answer", (e) => {
      // The words stay; what belongs around them comes in.
      const sent = JSON.parse(e.data), next = one(sent.html), text = next.querySelector(".prose"), blocks = [...text.children];
      prose.dir = text.dir;
      trim(prose, blocks.length);
      blocks.forEach((b, n) => put(prose, n, b));
      tell(blocks.length);
      article.removeAttribute("aria-busy");
      // What the head of the conversation says of it stands below until the next load: above, it would move the words.
      const talk = article.closest(".talk"), old = document.querySelector(".talk-end"), end = document.createElement("div");
      if (talk && sent.facts) {
        end.className = "talk-end";
        end.append(one(sent.facts));
        if (sent.takes) end.append(one(sent.takes));
        if (old) old.replaceWith(end);
        else talk.after(end);
      }
      let before = true;
      for (const el of [...article.children]) if (el !== prose) el.remove();
      for (const el of [...next.children]) {
        if (el === text) before = false;
        else if (before) prose.before(el);
        else article.append(el);
      }
      const n = article.querySelectorAll(".sources > .rows:not(.uncited) > .source").length;
      say(n ? `The answer is complete, with ${n} ${n === 1 ? "source" : "sources"}.` : "The answer is complete. It cites no sources.", true);
      done = true;
      setTimeout(() => log.replaceChildren(), 5000); // it was heard; the text itself is there to be read
    });
    source.addEventListener("gone", (e) => { say(JSON.parse(e.data).text, true); done = true; });
    source.addEventListener("end", () => source.close());
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED && !done) say("The connection was lost. Reload the page to see the answer.", true);
    });
  }
});
