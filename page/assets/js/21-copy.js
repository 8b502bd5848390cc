// Copies an answer, or the selected part of it, with its sources, numbered from 1; the content of a card; and the
// sources in a citation style.
queueMicrotask(() => {
  "use strict";
  const esc = (s) => s.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

  // part returns a copy of the selected part of an answer's text; of all of it if nothing is selected.
  const part = (prose) => {
    const root = document.createElement("div"), s = getSelection();
    const range = s.rangeCount && !s.isCollapsed ? s.getRangeAt(0) : null;
    if (range && prose.contains(range.commonAncestorContainer)) root.append(range.cloneContents());
    else for (const c of prose.childNodes) root.append(c.cloneNode(true));
    return root;
  };
  const plain = (el) => {
    let text = "";
    for (const node of el.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) { text += node.data; continue; }
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      const inner = node.localName === "br" ? "\n" : plain(node);
      if (node.localName === "li") text += "- " + inner.trim() + "\n";
      else if (/^(p|h\d|ul|ol|pre|blockquote|table|div|hr)$/.test(node.localName)) text += inner.trim() + "\n\n";
      else if (node.localName === "tr") text += inner.trim() + "\n";
      else text += node.localName === "td" || node.localName === "th" ? inner + "\t" : inner;
    }
    return text;
  };

  // noteOf returns what a reader of a copy must know about a source: what is wrong with it, and when it was read.
  const noteOf = (row) => {
    const wrong = row && row.querySelector(".standing:is(.bad, .close)"), read = row && row.querySelector(".read");
    return [wrong && wrong.textContent.trim(), read && read.textContent.trim()].filter(Boolean).join(", ");
  };

  const withSources = (article) => {
    const root = part(article.querySelector(".prose")), numbers = new Map(), sources = [];
    const bare = article.dataset.show === "no-source" ? " (no source)" : "";
    for (const n of root.querySelectorAll(".no-source")) n.replaceWith(bare);
    for (const cite of root.querySelectorAll("ibid-cite")) {
      const marks = (cite.dataset.n || "").split(" ").filter(Boolean).map((n) => {
        if (!numbers.has(n)) {
          const row = document.getElementById(article.dataset.prefix + "s-" + n);
          const link = row && row.querySelector(".source-name a:not(.n)"), name = row && row.querySelector(".source-name bdi");
          numbers.set(n, numbers.size + 1);
          sources.push({ title: name ? name.textContent.trim() : "unknown", url: link ? link.href : "", note: noteOf(row) });
        }
        return numbers.get(n);
      });
      const sup = document.createElement("sup");
      sup.textContent = marks.map((n) => `[${n}]`).join("");
      cite.replaceWith(sup);
    }
    for (const m of root.querySelectorAll("mark, .bare")) m.replaceWith(...m.childNodes);
    for (const el of root.querySelectorAll("[id], [class]")) { el.removeAttribute("id"); el.removeAttribute("class"); }
    let text = plain(root).replace(/\n{3,}/g, "\n\n").trim(), html = root.innerHTML;
    if (sources.length) {
      text += "\n\nSources\n" + sources.map((s, i) => `${i + 1}. ${s.title}${s.url ? " " + s.url : ""}${s.note && ` (${s.note})`}`).join("\n");
      html += "<p>Sources</p><ol>" + sources.map((s) => `<li>${s.url ? `<a href="${esc(s.url)}">${esc(s.title)}</a>` : esc(s.title)}${esc(s.note && ` (${s.note})`)}</li>`).join("") + "</ol>";
    }
    return { text: text + "\n", html };
  };

  // textOf returns the text copied from a card: the words, and where they are from.
  function textOf(part) {
    const out = [];
    for (const q of part.querySelectorAll("blockquote")) {
      const whole = q.cloneNode(true), short = whole.querySelector("summary");
      if (short) short.remove();
      out.push("“" + whole.textContent.trim() + "”");
    }
    const name = part.querySelector(".source-name"), link = name.querySelector("a:not(.n)");
    out.push("— " + (link || name.querySelector("bdi")).textContent.trim());
    const passage = part.querySelector("a.passage") || link;
    if (passage) out.push(passage.href);
    const note = noteOf(part);
    if (note) out.push("(" + note + ")");
    return { text: out.join("\n") };
  }

  // write puts a text on the clipboard, and its HTML if there is any. Pages loaded without TLS have no clipboard API,
  // but the old way still works.
  const write = async ({ text, html }) => {
    const forms = Object.entries({ "text/plain": text, "text/html": html }).filter(([, s]) => s);
    if (navigator.clipboard && window.ClipboardItem) {
      return navigator.clipboard.write([new ClipboardItem(Object.fromEntries(forms.map(([type, s]) => [type, new Blob([s], { type })])))]);
    }
    const set = (e) => {
      e.preventDefault();
      for (const [type, s] of forms) e.clipboardData.setData(type, s);
    };
    document.addEventListener("copy", set);
    const copied = document.execCommand("copy");
    document.removeEventListener("copy", set);
    if (!copied) throw new Error("not copied");
  };

  document.addEventListener("mousedown", (e) => { if (e.target.closest(".copy")) e.preventDefault(); }); // keeps the selection
  document.addEventListener("click", async (e) => {
    const button = e.target.closest(".copy-card");
    if (button) {
      await write(textOf(button.closest("section"))).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Not copied"; });
      return;
    }
    const cite = e.target.closest(".cites a");
    if (cite && !(e.metaKey || e.ctrlKey || e.shiftKey || e.altKey)) {
      e.preventDefault();
      const word = cite.textContent;
      try {
        const response = await fetch(cite.href);
        if (!response.ok) throw new Error("not found");
        await write({ text: await response.text() });
        cite.textContent = word + ": copied";
      } catch {
        location.href = cite.href; // the file has the same content
        return;
      }
      setTimeout(() => { cite.textContent = word; }, 2000);
      return;
    }
    const link = e.target.closest(".copy"), article = link && link.closest(".answer");
    if (!article) return;
    e.preventDefault();
    const word = link.textContent;
    try {
      await write(withSources(article));
      link.textContent = "Copied";
    } catch {
      location.href = link.href; // the file has the same content
      return;
    }
    setTimeout(() => { link.textContent = word; }, 2000);
  });
});
