// Keeps a page up to date: fetches its fragment when something has changed, or shows a log as it is written.
"use strict";

const link = document.getElementById("link");
const say = (text, how) => {
  if (!link || (link.textContent === text && link.className === "link " + how)) return;
  link.textContent = text;
  link.className = "link " + how;
};

const EVENTS = ["desired_lrp", "actual_lrp", "task", "domain"]
  .flatMap((kind) => ["created", "changed", "removed"].map((what) => kind + "_" + what))
  .concat("cell_present", "cell_gone", "gap");
const AGAIN_MS = 2000;

function watchBoard(page) {
  const place = document.getElementById("fragment");
  let wanted = false, busy = false, stream = null, after = page.dataset.after;

  async function refresh() {
    if (busy) { wanted = true; return; }
    busy = true;
    wanted = false;
    try {
      const answer = await fetch(page.dataset.fragment, { cache: "no-store" });
      if (answer.status === 401) { location.reload(); return; }
      if (answer.ok) swap(await answer.text());
      else if (answer.status === 404) say("It is gone", "lost");
    } catch { say("Connection lost, trying again…", "lost"); }
    // Not more often than a person can read.
    setTimeout(() => { busy = false; if (wanted) refresh(); }, 700);
  }

  // The server has escaped it, and the policy of this page lets nothing in it run.
  function swap(text) {
    const focus = place.contains(document.activeElement) ? document.activeElement : null;
    const mark = focus && [focus.tagName, focus.getAttribute("href"), focus.getAttribute("aria-labelledby")].join();
    const open = new Set([...place.querySelectorAll("details[open] > summary")].map((it) => it.textContent));
    place.innerHTML = text;
    for (const it of place.querySelectorAll("summary")) if (open.has(it.textContent)) it.parentElement.open = true;
    if (!mark) return;
    for (const it of place.querySelectorAll("a, [tabindex], summary")) {
      if ([it.tagName, it.getAttribute("href"), it.getAttribute("aria-labelledby")].join() === mark) { it.focus(); break; }
    }
  }

  let timer = 0;
  const changed = (event) => {
    if (event.lastEventId) after = event.lastEventId;
    clearTimeout(timer);
    timer = setTimeout(refresh, 150);
  };

  function connect() {
    let lost = false;
    stream = new EventSource("/v1/events?after=" + encodeURIComponent(after));
    stream.onopen = () => { say("Live", "live"); if (lost) refresh(); lost = false; };
    stream.onerror = () => {
      lost = true;
      say("Connection lost, trying again…", "lost");
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
  let lines = {}, stream = null;

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

  function show(event) {
    const { at, stream: name, text } = JSON.parse(event.data);
    const pieces = text.split("\n");
    pieces.forEach((piece, number) => {
      const last = number === pieces.length - 1;
      if (last && piece === "") return;
      const row = lines[name] || line(name, at);
      if (row.textContent.length < 20000) row.append(piece.replace(/\r/g, ""));
      lines[name] = last ? row : null;
    });
    while (box.childElementCount > MOST_LINES) box.firstElementChild.remove();
    if (scroll.checked) box.scrollTop = box.scrollHeight;
  }

  function connect() {
    stream = new EventSource(box.dataset.source + "?format=events&follow=true&tail=1000");
    stream.onopen = () => { box.replaceChildren(); lines = {}; say("Live", "live"); };
    stream.onmessage = show;
    stream.addEventListener("end", () => { stream.close(); say("Ended", ""); });
    stream.onerror = () => {
      stream.close();
      say("Connection lost, trying again…", "lost");
      setTimeout(connect, AGAIN_MS);
    };
  }

  // Whoever reads further up is not pulled down.
  box.addEventListener("wheel", () => { scroll.checked = box.scrollHeight - box.scrollTop - box.clientHeight < 40; }, { passive: true });
  connect();
  addEventListener("pagehide", () => stream.close());
}

// A page that comes back from the browser's memory has closed its streams.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

const log = document.getElementById("log");
if (document.body.dataset.fragment) watchBoard(document.body);
if (log) watchLog(log);
