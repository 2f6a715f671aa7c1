// The pages work without this script: it makes them live, writes and reads times in the reader's zone, and helps with
// selections.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);

  // -- times: the server writes UTC

  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  const full = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", ...time });
  const other = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", ...time });
  const short = new Intl.DateTimeFormat(undefined, time);
  const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

  const formatFull = (at) => (at.getFullYear() === new Date().getFullYear() ? full : other).format(at);

  function duration(seconds) {
    for (const [size, unit] of [[172800, "d"], [3600, "h"], [60, "min"]]) {
      if (seconds >= size) return `${Number((seconds / (unit === "d" ? 86400 : size)).toPrecision(3))} ${unit}`;
    }
    return `${Number(seconds.toPrecision(3))} s`;
  }

  function writeTimes(within) {
    for (const element of within.querySelectorAll("time[datetime]")) {
      const at = new Date(element.dateTime);
      if (element.dataset.style !== "age") {
        element.textContent = element.dataset.style === "time" ? short.format(at) : formatFull(at);
      } else {
        writeAge(element);
        if (!element.title.includes("\n")) element.title = `${formatFull(at)}\n${element.title}`;
      }
    }
    for (const element of within.querySelectorAll(".tick[data-at]")) {
      element.title = `${formatFull(new Date(element.dataset.at))}\n${element.title}`;
    }
    for (const element of within.querySelectorAll("svg text[data-time]")) {
      element.textContent = minutes.format(new Date(element.dataset.time));
    }
    for (const element of within.querySelectorAll("svg title[data-time]")) {
      const [utc, ...values] = element.textContent.split("\n");
      element.textContent = [formatFull(new Date(element.dataset.time)), ...values, `${utc} UTC`].join("\n");
      element.removeAttribute("data-time");
    }
  }

  function writeAge(element) {
    const seconds = Math.round((Date.now() - new Date(element.dateTime)) / 1000);
    element.textContent = seconds >= 1 ? `${duration(seconds)} ago` : seconds <= -1 ? `in ${duration(-seconds)}` : "now";
  }

  function writeAges() {
    if (document.hidden) return;
    for (const element of document.querySelectorAll('time[data-style="age"]')) writeAge(element);
  }

  // -- fields with a time: people write that of their zone; addresses and the server have UTC

  const DAYS = { today: 0, yesterday: 1 };

  function startOfDay(daysAgo) {
    const day = new Date();
    day.setHours(0, 0, 0, 0);
    day.setDate(day.getDate() - daysAgo);
    return day.toISOString();
  }

  function toInstant(text) {
    if (text.trim() in DAYS) return startOfDay(DAYS[text.trim()]);
    const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?$/.exec(text.trim());
    const at = parts && new Date(`${parts[1]}T${parts[2] || "00:00"}`);
    return at && !Number.isNaN(at.getTime()) ? at.toISOString() : text;
  }

  function writeFields() {
    for (const field of document.querySelectorAll("input[data-instant]")) {
      const at = /^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(field.value) ? new Date(field.value) : null;
      if (at === null || Number.isNaN(at.getTime())) continue;
      const two = (number) => String(number).padStart(2, "0");
      const seconds = at.getSeconds() ? `:${two(at.getSeconds())}` : "";
      field.dataset.instant = field.value;
      field.value = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}${seconds}`;
      field.dataset.shown = field.value;
    }
  }

  // A time that was not changed is sent as it came: the field shows no fractions of a second.
  function sendInstants(event) {
    for (const field of event.target.querySelectorAll("input[data-instant]")) {
      event.formData.set(field.name, field.value === field.dataset.shown ? field.dataset.instant : toInstant(field.value));
    }
  }

  // -- live parts: the server sends those that have changed

  const RETRY = 5000;  // milliseconds
  let stream = null;
  let hasEnded = false;
  let paused = sessionStorage.getItem("trioboss-paused") === "yes";
  const toggle = byId("live-toggle");
  const hasLive = document.querySelector('[id^="live-"]:not(#live-toggle)') !== null;

  function show(state, label) {
    toggle.className = `quiet ${state}`;
    toggle.setAttribute("aria-pressed", String(!paused));
    toggle.lastElementChild.textContent = label;
  }

  // A selection, or a field with the focus: replacing the element would undo what a person does.
  function isInUse(element) {
    const focused = document.activeElement;
    return element.querySelector("input:checked") !== null
      || (focused !== null && element.contains(focused) && /^(INPUT|SELECT|TEXTAREA)$/.test(focused.tagName));
  }

  // The effect of a control: by it the same one is found again in new markup.
  function purpose(control) {
    const fields = control.form && control.form.elements.fields;
    return `${control.tagName} ${control.getAttribute("href") || (fields && fields.value) || control.textContent}`;
  }

  function findLike(element, wanted) {
    return [...element.querySelectorAll("a, button, summary, pre")].filter((each) => purpose(each) === wanted);
  }

  function replace(element, markup) {
    const focused = element.contains(document.activeElement) ? document.activeElement : null;
    const wanted = focused && purpose(focused);
    const place = focused && findLike(element, wanted).indexOf(focused);
    const scrolled = [...element.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop]);
    const open = [...element.querySelectorAll("details")].map((details) => details.open);
    element.innerHTML = markup;  // markup of our own templates, in which everything else is escaped
    // New attempts are added at the end, so the same stack has the same place.
    element.querySelectorAll("details").forEach((details, index) => { details.open = open[index] ?? details.open; });
    element.querySelectorAll(".scroll, pre").forEach((each, index) => { [each.scrollLeft, each.scrollTop] = scrolled[index] || [0, 0]; });
    writeTimes(element);
    if (focused) {
      const like = findLike(element, wanted);
      (like[place] || like[0])?.focus();
    }
  }

  function receive(event) {
    let held = false;
    for (const [id, markup] of Object.entries(JSON.parse(event.data))) {
      const element = byId(id);
      if (element && isInUse(element)) held = true;
      else if (element) replace(element, markup);
    }
    show("live", held ? "Live, table held" : "Live");
  }

  function connect() {
    if (!hasLive || hasEnded || paused || document.hidden || stream) return;
    stream = new EventSource(location.pathname + location.search);
    stream.onopen = () => show("live", "Live");
    stream.onmessage = receive;
    stream.addEventListener("database-error", () => show("database-error", "Database does not answer"));
    stream.addEventListener("gone", end);
    stream.onerror = retry;
  }

  // A browser connects again by itself after a stream has ended, but not after an answer that is an error: that of a
  // proxy while the dashboard restarts, for example.
  function retry() {
    show("database-error", "Connecting");
    if (stream === null || stream.readyState !== EventSource.CLOSED) return;
    disconnect();
    setTimeout(connect, RETRY);
  }

  // The job or queue of the page was deleted: there is nothing to connect to again.
  function end(event) {
    disconnect();
    hasEnded = true;
    show("database-error", "Deleted");
    tell(JSON.parse(event.data));
  }

  function tell(text) {
    byId("done").textContent = text;
    byId("done").hidden = false;
  }

  function disconnect() {
    if (stream) stream.close();
    stream = null;
  }

  function setPaused(value) {
    paused = value;
    sessionStorage.setItem("trioboss-paused", paused ? "yes" : "no");
    if (paused) { disconnect(); show("", "Paused"); } else { show("", "Connecting"); connect(); }
  }

  // -- the theme: as the system, or the other one

  function setTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    if (theme) localStorage.setItem("trioboss-theme", theme); else localStorage.removeItem("trioboss-theme");
    byId("theme").textContent = `Theme: ${theme || "auto"}`;
  }

  function nextTheme() {
    const order = [undefined, "light", "dark"];
    setTheme(order[(order.indexOf(document.documentElement.dataset.theme) + 1) % order.length]);
  }

  // -- selections, and actions that go on by themselves

  function showSelection() {
    const selected = document.querySelectorAll('#jobs-form input[name="id"]:checked').length;
    byId("selected").textContent = selected ? `${selected} selected` : "select all";
    for (const button of document.querySelectorAll(".bar button")) button.disabled = selected === 0;
  }

  function prepareSelection() {
    const all = byId("select-all");
    if (!all) return;
    byId("select-label").hidden = false;
    all.addEventListener("change", () => {
      for (const box of document.querySelectorAll('#jobs-form input[name="id"]')) box.checked = all.checked;
      showSelection();
    });
    byId("jobs-form").addEventListener("change", showSelection);
    showSelection();
  }

  // An action on many jobs is done in chunks: the answer to one has the form of the next. They are sent from here, so that
  // the page stays in the history once, and a reload repeats nothing.
  async function act(form) {
    for (let next = form; next; next = document.querySelector("form[data-chunks][data-continue]")) {
      for (const button of next.querySelectorAll("button")) button.disabled = true;
      const answer = await fetch(next.action, { method: "POST", body: new URLSearchParams(new FormData(next)) });
      if (answer.redirected) return location.replace(answer.url);
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.title = found.title;
      byId("main").innerHTML = found.querySelector("main").innerHTML;
      writeTimes(byId("main"));
      const wrong = document.querySelector('#main [role="alert"] ~ form input:not([type="hidden"])');
      if (wrong) wrong.focus();
    }
  }

  function submit(event) {
    if (!event.target.matches("form[data-chunks]")) return;
    event.preventDefault();
    act(event.target).catch(() => {
      for (const button of document.querySelectorAll("#main button")) button.disabled = false;
      tell("The dashboard does not answer. Press the button to go on.");
    });
  }

  // The server has written the result: the address should not show it again.
  function forgetResult() {
    const query = new URLSearchParams(location.search);
    if (!query.has("done")) return;
    query.delete("done");
    history.replaceState(null, "", location.pathname + (query.size ? `?${query}` : ""));
  }

  // Links to the jobs of a day mean days in UTC: here those of the browser's zone.
  function setDays() {
    const midnight = startOfDay(0);
    const chosen = Date.parse(new URLSearchParams(location.search).get("since"));
    for (const link of document.querySelectorAll("a[data-day]")) {
      const address = new URL(link.href);
      address.searchParams.set("since", startOfDay(DAYS[link.dataset.day]));
      if (link.dataset.day === "yesterday") address.searchParams.set("until", midnight);
      link.href = address.href;
      if (Date.parse(address.searchParams.get("since")) === chosen) link.setAttribute("aria-current", "true");
    }
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const field = document.querySelector('[data-key="/"]');
    if (event.key === "/" && field) { event.preventDefault(); field.focus(); }
    if (event.key === "l" && hasLive) setPaused(!paused);
    if (event.key === "t") nextTheme();
  }

  setTheme(localStorage.getItem("trioboss-theme") || undefined);
  byId("theme").hidden = false;
  byId("theme").addEventListener("click", nextTheme);
  forgetResult();
  setDays();
  for (const zone of document.querySelectorAll(".zone")) zone.textContent = zone.closest("footer") ? "your time zone" : "your time";
  writeTimes(document);
  writeFields();
  document.addEventListener("formdata", sendInstants);
  document.addEventListener("submit", submit);
  for (const current of document.querySelectorAll("nav [aria-current]")) current.scrollIntoView({ block: "nearest", inline: "center" });
  setInterval(writeAges, 1000);
  prepareSelection();
  document.addEventListener("keydown", press);
  if (hasLive) {
    toggle.hidden = false;
    toggle.addEventListener("click", () => setPaused(!paused));
    document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
    window.addEventListener("pagehide", disconnect);
    window.addEventListener("pageshow", connect);
    setPaused(paused);
  }
  const going = document.querySelector("[data-continue]");
  if (going) setTimeout(() => (going.href ? location.replace(going.href) : going.requestSubmit()), 50);
})();
