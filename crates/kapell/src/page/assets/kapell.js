// Keeps a page up to date: fetches its fragment when something has changed, or shows a log as it is written.
"use strict";

const link = document.getElementById("link");
const say = (text, how) => {
  if (!link || (link.textContent === text && link.className === "link " + how)) return;
  link.textContent = text;
  link.className = "link " + how;
};
let seen = new Date();
const live = () => { seen = new Date(); say("Live", "live"); };
const lost = () => say("Connection lost. This is how it was at " + seen.toLocaleTimeString() + "; trying again…", "lost");

const EVENTS = ["desired_lrp", "actual_lrp", "task", "domain", "job", "run"]
  .flatMap((kind) => ["created", "changed", "removed"].map((what) => kind + "_" + what))
  .concat("actual_lrp_crashed", "cell_present", "cell_gone", "gap");
const AGAIN_MS = 2000;

function watchBoard(page) {
  const place = document.getElementById("fragment");
  let wanted = false, busy = false, stream = null, open = false, after = page.dataset.after, timer = 0;

  async function refresh() {
    if (busy) { wanted = true; return; }
    busy = true;
    wanted = false;
    let pause = 700; // Not more often than a person can read.
    try {
      const answer = await fetch(page.dataset.fragment, { cache: "no-store" });
      if (answer.status === 401) { location.reload(); return; }
      if (answer.status === 404) { say("It is gone. This is how it was at " + seen.toLocaleTimeString() + ".", "lost"); }
      else if (!answer.ok) throw new Error(answer.status);
      else if (reads()) wanted = true;
      else {
        swap(await answer.text());
        if (open) live();
      }
    } catch {
      lost();
      wanted = true;
      pause = AGAIN_MS;
    }
    setTimeout(() => { busy = false; if (wanted) refresh(); }, pause);
  }

  // Whoever has marked some text wants to copy it.
  function reads() {
    const marked = getSelection();
    return marked && !marked.isCollapsed && place.contains(marked.anchorNode);
  }

  // What somebody has typed stays.
  const fields = () => [...place.querySelectorAll("form[data-key] [name]")];
  const field = (it) => it.form.dataset.key + "/" + it.name;

  const mark = (it) => [it.tagName, it.getAttribute("href"), it.getAttribute("aria-labelledby"), it.parentElement.dataset.key, it.form && it.form.getAttribute("action"), it.name].join();

  // The server has escaped it, and the policy of this page lets nothing in it run.
  function swap(text) {
    const focus = place.contains(document.activeElement) ? mark(document.activeElement) : null;
    const opened = new Set([...place.querySelectorAll("details[open]")].map((it) => it.dataset.key));
    const aside = new Map([...place.querySelectorAll(".scroll")].map((it) => [mark(it), it.scrollLeft]));
    const typed = new Map(fields().filter((it) => it.value !== it.defaultValue).map((it) => [field(it), it.value]));
    place.innerHTML = text;
    for (const it of fields()) if (typed.has(field(it))) it.value = typed.get(field(it));
    for (const it of place.querySelectorAll("details")) it.open = opened.has(it.dataset.key);
    for (const it of place.querySelectorAll(".scroll")) it.scrollLeft = aside.get(mark(it)) || 0;
    if (!focus) return;
    for (const it of place.querySelectorAll("a, [tabindex], summary, input, select, button")) {
      if (mark(it) === focus) { it.focus({ preventScroll: true }); break; }
    }
  }

  const changed = (event) => {
    if (event.lastEventId) after = event.lastEventId;
    clearTimeout(timer);
    timer = setTimeout(refresh, 150);
  };

  function connect() {
    stream = new EventSource("/v1/events?after=" + encodeURIComponent(after));
    let failed = false;
    stream.onopen = () => { open = true; if (failed) refresh(); else live(); failed = false; };
    stream.onerror = () => {
      failed = true;
      open = false;
      lost();
      if (stream.readyState === EventSource.CLOSED) setTimeout(() => { connect(); refresh(); }, AGAIN_MS);
    };
    for (const name of EVENTS) stream.addEventListener(name, changed);
  }

  connect();
  // Ages and what is not told by events.
  setInterval(refresh, 15000);
  addEventListener("pagehide", () => stream.close());
}

function watchLog(box) {
  const MOST_LINES = 2000;
  const scroll = document.getElementById("autoscroll");
  const classes = { stdout: "stdout", stderr: "stderr", kapell: "note" };
  // Colours of terminals, and what turns text around.
  const odd = /\x1b\[[0-9;?]*[ -/]*[@-~]|\r/g, turns = /[\u202a-\u202e\u2066-\u2069]/g;
  // On the page of a run, the state of the page is told by the rest of it.
  const alone = !document.body.dataset.fragment;
  const attempt = () => { const it = document.getElementById("attempt"); return it ? it.dataset.attempt : null; };
  let lines = {}, stream = null, fresh = false, waiting = [];

  function line(name, at) {
    const row = document.createElement("div");
    row.className = classes[name] || "stdout";
    row.title = new Date(at).toISOString() + " " + name;
    if (name !== "stdout") {
      const label = document.createElement("span");
      label.className = "hidden";
      label.textContent = name + ": ";
      row.append(label);
    }
    box.append(row);
    return row;
  }

  function show({ at, stream: name, text }) {
    const pieces = text.split("\n");
    pieces.forEach((piece, number) => {
      const last = number === pieces.length - 1;
      if (last && piece === "") return;
      const row = lines[name] || line(name, at);
      if (row.textContent.length < 20000) row.append(piece.replace(odd, "").replace(turns, "\ufffd"));
      lines[name] = last ? row : null;
    });
  }

  const bottom = () => { box.scrollTop = box.scrollHeight; };

  // All that came at once is laid out once.
  function flush() {
    const top = box.scrollTop, anew = fresh;
    if (anew) { box.replaceChildren(); lines = {}; fresh = false; }
    for (const each of waiting.splice(0)) show(each);
    while (box.childElementCount > MOST_LINES) box.firstElementChild.remove();
    // Where lines went away above, the browser itself keeps what is read in its place.
    if (scroll.checked) bottom(); else if (anew) box.scrollTop = top;
    if (alone) live();
  }

  function connect() {
    stream = new EventSource(box.dataset.source + "?format=events&follow=true&tail=1000");
    // What is shown stays until there is something instead.
    const of = attempt();
    stream.onopen = () => { fresh = true; waiting = []; if (alone) live(); };
    stream.onmessage = (event) => {
      if (waiting.push(JSON.parse(event.data)) === 1) setTimeout(flush, 30);
    };
    stream.addEventListener("end", () => {
      stream.close();
      flush();
      if (alone) { say("Ended", ""); return; }
      // Another attempt may follow.
      const next = setInterval(() => { if (attempt() !== of) { clearInterval(next); connect(); } }, 500);
    });
    stream.onerror = () => {
      stream.close();
      if (alone) lost();
      setTimeout(connect, AGAIN_MS);
    };
  }

  // Whoever reads further up is not pulled down.
  box.addEventListener("scroll", () => { scroll.checked = box.scrollHeight - box.scrollTop - box.clientHeight < 40; }, { passive: true });
  scroll.addEventListener("change", () => { if (scroll.checked) bottom(); });
  connect();
  addEventListener("pagehide", () => stream.close());
}

// A page that comes back from the browser's memory has closed its streams.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

const log = document.getElementById("log");
if (document.body.dataset.fragment) watchBoard(document.body);
if (log) watchLog(log);
