// <ibid-cite>: a citation with a card, by ibid. Usage: docs/element.md. Apache-2.0.
(() => {
  "use strict";
  if (customElements.get("ibid-cite") || !HTMLElement.prototype.showPopover) return;

  const OPEN = 120, GRACE = 260; // ms until a card opens and closes
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`:host{position:absolute;inset:auto;margin:0;box-sizing:border-box;inline-size:min(var(--ibid-width,26rem),100vw - 16px);max-block-size:min(70vh,34rem);overflow:auto;overscroll-behavior:contain;padding:.9rem 1rem;border:1px solid var(--ibid-line,light-dark(#ddd8ce,#3a3f46));border-radius:10px;background:var(--ibid-ground,Canvas);color:var(--ibid-ink,CanvasText);box-shadow:var(--ibid-shadow,0 8px 28px #0003);font:.9375rem/1.5 system-ui,sans-serif;text-align:start;outline-offset:-2px;opacity:1;transition:opacity .12s,translate .12s}
@starting-style{:host(:popover-open){opacity:0;translate:0 3px}}
a{color:var(--ibid-accent,LinkText)}p,blockquote{margin:0 0 .5rem;overflow-wrap:anywhere}
[part=title]{font-weight:600;padding-inline-end:1.5rem}[part=meta]{font-size:.8125rem;opacity:.85}
[part=quote]{padding-inline-start:.75rem;border-inline-start:2px solid var(--ibid-line,#8888);font-family:Georgia,serif;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:6;overflow:hidden}
[part=quote].all{display:block}[part=status]{font-size:.8125rem;font-weight:600}
[part=acts]{display:flex;flex-wrap:wrap;gap:.25rem 1rem;align-items:center;margin:0;font-size:.875rem}
button{font:inherit;min-block-size:24px;min-inline-size:24px;padding:0 .2rem;border:0;background:none;color:var(--ibid-accent,LinkText);cursor:pointer;text-decoration:underline}
[part=close]{position:sticky;inset-block-start:0;float:inline-end;margin:-.4rem -.5rem 0 .25rem;text-decoration:none;color:inherit;font:1.25rem/1 system-ui}
:focus-visible{outline:2px solid var(--ibid-accent,Highlight);outline-offset:2px}[hidden]{display:none}
@media(max-width:640px){:host{position:fixed;inset:auto 0 0!important;inline-size:100%;max-inline-size:none;max-block-size:60vh;border-radius:14px 14px 0 0;border-width:1px 0 0;padding-block-end:max(1rem,env(safe-area-inset-bottom))}}
@media(prefers-reduced-motion:reduce){:host{transition:none}}`);

  // A citation looks like a chip, unless the page's own style differs.
  const chip = new CSSStyleSheet();
  chip.replaceSync(`:where(ibid-cite){position:relative;white-space:nowrap}:where(ibid-cite):where(:not(:has(a,button))),:where(ibid-cite)>:where(a,button){display:inline-block;margin-inline-start:.3em;padding:.05em .55em;border:0;border-radius:1em;font:500 .75em/1.5 system-ui,sans-serif;text-decoration:none;vertical-align:.1em;cursor:pointer;color:var(--ibid-accent,light-dark(#1f5a6e,#8cc4d8));background:var(--ibid-chip,light-dark(#e6eff2,#1d2f36))}`);
  document.adoptedStyleSheets = [chip, ...document.adoptedStyleSheets];

  let card, parts, active, pinned, timer, was, held, rest;
  const hovers = matchMedia("(hover:hover)"), narrow = matchMedia("(max-width:640px)");
  const citeOf = (e) => e.composedPath().find((n) => n.localName === "ibid-cite"), spot = (e) => e.x + " " + e.y;
  const words = (s) => encodeURIComponent(s).replace(/-/g, "%2D");

  const make = (tag, part, text) => {
    const n = document.createElement(tag);
    if (part) n.setAttribute("part", part);
    if (text) n.textContent = text;
    return n;
  };

  // The page's one card: its children replace the attributes.
  function build() {
    card = document.createElement("ibid-card");
    card.popover = "auto";
    card.tabIndex = -1;
    card.setAttribute("role", "dialog");
    const root = card.attachShadow({ mode: "open" }), close = make("button", "close", "×"), slot = make("slot");
    root.adoptedStyleSheets = [sheet];
    close.setAttribute("aria-label", "Close");
    close.onclick = () => card.hidePopover();
    parts = { title: make("p", "title"), meta: make("p", "meta"), quote: make("blockquote", "quote"), more: make("button", "more", "More"), status: make("p", "status"), acts: make("p", "acts"), open: make("a", "open", "Open"), copy: make("button", "copy", "Copy") };
    parts.more.onclick = () => (parts.more.hidden = parts.quote.classList.add("all") || true);
    parts.copy.onclick = () => navigator.clipboard.writeText(active.text()).then(() => (parts.copy.textContent = "Copied"), () => {});
    parts.open.rel = "noopener noreferrer nofollow";
    parts.acts.append(parts.open, parts.more, parts.copy);
    slot.append(parts.title, parts.meta, parts.quote, parts.status, parts.acts);
    root.append(close, slot);
    card.addEventListener("beforetoggle", (e) => { if (e.newState === "closed") closed(); });
    card.addEventListener("focusout", (e) => { if (active && e.relatedTarget && !card.contains(e.relatedTarget)) hide(); });
    new ResizeObserver(place).observe(card);
    document.body.append(card);
  }

  function show(cite, pin) {
    clearTimeout(timer);
    if (!card) build();
    if (active !== cite || !card.matches(":popover-open")) {
      hide();
      active = cite;
      card.replaceChildren();
      if (!cite.dispatchEvent(new CustomEvent("ibid-open", { bubbles: true, composed: true, cancelable: true, detail: { card, pin } }))) return (active = undefined);
      const own = cite.querySelector("template");
      if (!card.childNodes.length && own) card.append(own.content.cloneNode(true));
      cite.fill(parts);
      card.setAttribute("aria-label", "Source: " + (cite.name || cite.textContent.trim()));
      card.showPopover({ source: cite.trigger });
      parts.more.hidden = parts.quote.scrollHeight <= parts.quote.clientHeight + 1;
      place();
      card.scrollTop = 0;
      cite.trigger.setAttribute("aria-expanded", "true");
    }
    pinned = pinned || pin;
    if (pin) { held = true; card.focus({ preventScroll: true }); }
  }

  function hide() { if (card?.matches(":popover-open")) card.hidePopover(); }

  function closed() {
    const cite = active, back = held && (document.activeElement === card || card.contains(document.activeElement));
    clearTimeout(timer);
    active = pinned = held = undefined;
    if (!cite) return;
    cite.trigger.setAttribute("aria-expanded", "false");
    if (back) queueMicrotask(() => active || cite.trigger.focus({ preventScroll: true }));
    cite.dispatchEvent(new CustomEvent("ibid-close", { bubbles: true, composed: true }));
  }

  // Below the words or above them, inside the window and data-within; on narrow windows a sheet.
  function place() {
    if (!active || narrow.matches) return;
    const r = active.trigger.getBoundingClientRect(), w = card.offsetWidth, h = card.offsetHeight, view = document.documentElement;
    const end = Math.min(view.clientWidth - 8, (active.closest("[data-within]") || view).getBoundingClientRect().right);
    const left = getComputedStyle(active).direction === "rtl" ? r.right - w : r.left;
    const above = r.bottom + 6 + h > view.clientHeight - 8 && r.top - 6 - h > 8;
    card.style.left = Math.max(8, Math.min(left, end - w)) + scrollX + "px";
    card.style.top = Math.max(8, Math.min(above ? r.top - 6 - h : r.bottom + 6, view.clientHeight - h - 8)) + scrollY + "px";
  }

  class Cite extends HTMLElement {
    connectedCallback() {
      if (this.hasAttribute("title")) { this.name = this.getAttribute("title"); this.removeAttribute("title"); } // or the browser shows it
      const t = (this.trigger = this.querySelector("a[href],button") || this);
      if (t === this) { t.tabIndex = 0; t.setAttribute("role", "button"); }
      t.setAttribute("aria-haspopup", "dialog");
      t.setAttribute("aria-expanded", String(active === this));
    }

    disconnectedCallback() { if (active === this) hide(); }

    // The address of the passage, if it may be opened.
    get passage() {
      let u;
      try { u = new URL(this.getAttribute("href"), document.baseURI); } catch { return ""; }
      if (!this.hasAttribute("href") || !/^https?:$/.test(u.protocol)) return "";
      const page = this.getAttribute("page"), w = (this.getAttribute("quote") || "").trim().split(/\s+/);
      if (/^\d+$/.test(page) && /\.pdf$/i.test(u.pathname)) u.hash = "page=" + page;
      else if (w[0] && !u.hash.includes(":~:")) return u.href.replace(/#$/, "") + (u.hash ? "" : "#") + ":~:text=" + (w.length > 12 ? words(w.slice(0, 6).join(" ")) + "," + words(w.slice(-6).join(" ")) : words(w.join(" ")));
      return u.href;
    }

    text() {
      const q = this.getAttribute("quote");
      return [q && "“" + q + "”", this.name, this.getAttribute("site"), this.getAttribute("href")].filter(Boolean).join("\n");
    }

    fill(p) {
      const get = (n) => this.getAttribute(n) || "", put = (n, s) => { n.textContent = s; n.hidden = !s; }, page = get("page");
      put(p.title, this.name || get("site"));
      put(p.meta, [get("site"), get("date"), page && "p. " + page].filter(Boolean).join(" · "));
      put(p.quote, get("quote"));
      put(p.status, get("status"));
      p.quote.className = "";
      p.quote.dir = p.title.dir = "auto";
      p.open.href = this.passage;
      p.open.hidden = !this.passage;
      p.copy.textContent = "Copy";
      p.copy.hidden = !navigator.clipboard; // pages loaded without TLS have none
    }
  }
  customElements.define("ibid-cite", Cite);

  const on = (type, f, o) => document.addEventListener(type, f, o);
  on("pointerover", (e) => {
    if (e.pointerType !== "mouse" || !hovers.matches) return;
    const cite = citeOf(e);
    if (cite === active || (card && e.composedPath().includes(card))) { clearTimeout(timer); return; }
    if (pinned || (cite && rest === spot(e))) return; // the page moved, not the pointer
    clearTimeout(timer);
    if (cite) timer = setTimeout(show, OPEN, cite);
    else if (active) timer = setTimeout(hide, GRACE);
  });
  on("pointermove", (e) => (rest = spot(e)));
  on("pointerdown", () => (was = pinned && active), true);
  on("click", (e) => {
    const cite = citeOf(e), before = was;
    was = undefined;
    if (!cite || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    if (before === cite) hide();
    else show(cite, true);
  });
  on("keydown", (e) => {
    const cite = (e.key === "Enter" || e.key === " ") && citeOf(e);
    if (cite && e.target === cite.trigger && (cite.trigger === cite || e.key === " ")) { e.preventDefault(); show(cite, true); }
  });
})();
