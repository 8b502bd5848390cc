// The form for questions: Enter sends, it grows with the text, and stopping an answer does not reload the page.
queueMicrotask(() => {
  "use strict";
  const form = document.getElementById("ask"), words = form && form.querySelector("textarea");
  if (!words) return;
  const touch = matchMedia("(pointer: coarse)");
  const grow = () => {
    words.style.blockSize = "auto";
    words.style.blockSize = Math.min(words.scrollHeight + 2, innerHeight / 3) + "px";
  };
  words.addEventListener("input", grow);
  words.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing || e.altKey || touch.matches) return; // on touch devices Enter is the only way to break a line
    e.preventDefault();
    if (words.value.trim()) form.requestSubmit(form.querySelector(".send"));
  });
  form.addEventListener("submit", () => {
    const send = form.querySelector(".send");
    setTimeout(() => { send.disabled = true; send.textContent = "Sending"; });
  });
  addEventListener("pageshow", () => {
    const send = form.querySelector(".send");
    if (!words.disabled) send.disabled = false;
    send.textContent = "Ask";
    if (words.value) grow();
    if (!words.disabled && !touch.matches && document.activeElement === document.body) words.focus({ preventScroll: true });
  });
  const stop = document.getElementById("stop");
  if (stop) stop.addEventListener("submit", (e) => {
    e.preventDefault(); // the stream reports how the answer ends
    const button = form.querySelector(".stop");
    if (button) { button.disabled = true; button.textContent = "Stopping"; }
    fetch(stop.action, { method: "POST", redirect: "manual" }).catch(() => stop.submit());
  });
});
