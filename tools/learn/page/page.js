/* SPDX-License-Identifier: Apache-2.0 */
/* The moving parts of the page: ring, time lines, plane, practice. Numbers come from the JSON that C embedded. */
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const testing = location.hash === "#self-test";
const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes, ...children) {
  const drawn = ["svg", "g", "path", "circle", "line", "rect", "text"].includes(tag);
  const node = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/* The ring: one state per step, worked out from the moves. */

function ringStates(ring) {
  const range = [...Array(ring.n).keys()];
  const states = [range.map(rank => range.map(() => 1 << rank))];
  for (const step of ring.steps) {
    const before = states[states.length - 1], after = before.map(row => row.slice());
    step.moves.forEach(([to, chunk], from) => {
      after[to][chunk] = step.add ? before[to][chunk] | before[from][chunk] : before[from][chunk];
    });
    states.push(after);
  }
  return states;
}

function ringSentence(ring, at) {
  if (at === 0) return `Before the first step: every rank has only its own numbers. A chunk is ${ring.chunk[1]}.`;
  const step = ring.steps[at - 1], [to, chunk] = step.moves[0];
  const what = step.add ? "which adds it to its own" : "which stores it";
  const end = at === ring.steps.length ? " Every rank has every sum: done." : "";
  return `Rank 0 sends chunk ${chunk} to rank ${to}, ${what}; all others do the same at the same time.${end}`;
}

function ringPicture(ring, at) {
  const n = ring.n, size = 240, middle = size / 2, radius = 88, node = 17;
  const place = (rank, r) => {
    const angle = 2 * Math.PI * rank / n - Math.PI / 2;
    return [middle + r * Math.cos(angle), middle + r * Math.sin(angle)];
  };
  const svg = make("svg", {viewBox: `0 0 ${size} ${size}`, "aria-hidden": "true"});
  const moves = at > 0 ? ring.steps[at - 1].moves : Array.from({length: n}, (_, rank) => [(rank + 1) % n, null]);
  moves.forEach(([to, chunk], from) => {
    const half = 2 * Math.PI / n / 2, gap = (node + 6) / radius, start = 2 * Math.PI * from / n - Math.PI / 2;
    const dot = angle => [middle + radius * Math.cos(angle), middle + radius * Math.sin(angle)];
    const a = dot(start + gap), end = start + 2 * half - gap, b = dot(end), quiet = chunk === null;
    svg.append(make("path", {class: quiet ? "arrow quiet" : "arrow", d: `M${a} A${radius} ${radius} 0 0 1 ${b}`}));
    const tip = dot(end + 0.07), left = [b[0] + 6 * Math.cos(end), b[1] + 6 * Math.sin(end)];
    const right = [b[0] - 6 * Math.cos(end), b[1] - 6 * Math.sin(end)];
    svg.append(make("path", {class: quiet ? "head quiet-head" : "head", d: `M${tip} L${left} L${right} Z`}));
    if (!quiet) {
      const angle = start + half, x = middle + (radius - 27) * Math.cos(angle), y = middle + (radius - 27) * Math.sin(angle);
      svg.append(make("rect", {class: "tag", x: x - 12, y: y - 9, width: 24, height: 18, rx: 5}),
                 make("text", {class: "moved", x, y}, "c" + chunk));
    }
  });
  for (let rank = 0; rank < n; rank++) {
    const [x, y] = place(rank, radius);
    svg.append(make("circle", {class: "rank", cx: x, cy: y, r: node}), make("text", {x, y}, String(rank)));
  }
  return svg;
}

function ringCells(ring, state, at) {
  const n = ring.n, whole = (1 << n) - 1, moved = new Set();
  if (at > 0) ring.steps[at - 1].moves.forEach(([to, chunk]) => moved.add(to + "," + chunk));
  const head = make("tr", {}, make("th", {scope: "col"}, make("span", {class: "note"}, "rank")));
  for (let chunk = 0; chunk < n; chunk++) head.append(make("th", {scope: "col"}, "c" + chunk));
  const body = make("tbody");
  state.forEach((row, rank) => {
    const line = make("tr", {}, make("th", {scope: "row"}, "r" + rank));
    row.forEach((parts, chunk) => {
      const ranks = [...Array(n).keys()].filter(r => parts >> r & 1);
      const box = make("div", {class: "parts", role: "img", "aria-label": parts === whole ? "complete" : "ranks " + ranks.join(", ")});
      for (let r = 0; r < n; r++) box.append(make("i", {class: parts >> r & 1 ? "in" : null}));
      const kind = (parts === whole ? "whole " : "") + (moved.has(rank + "," + chunk) ? "moved" : "");
      line.append(make("td", {class: kind}, box));
    });
    body.append(line);
  });
  return make("table", {class: n > 6 ? "cells many" : "cells"}, make("thead", {}, head), body);
}

function meter(rows) {
  const whole = Math.max(...rows.map(row => row[3]), 1), box = make("div", {class: "meter"});
  for (const [name, kind, [bytes, text]] of rows) {
    const fill = make("b", {class: kind});
    fill.style.width = 100 * bytes / whole + "%";
    box.append(make("span", {}, name), make("div", {"aria-hidden": "true"}, fill), make("span", {}, text));
  }
  return box;
}

function ringStepper(frames) {
  let ring, states, at, timer = null;
  const choose = make("select", {id: "ring-n", onchange: () => load(Number(choose.value))});
  for (const each of data.rings) choose.append(make("option", {value: each.n}, String(each.n)));
  const button = (text, label, go) => make("button", {type: "button", "aria-label": label, onclick: () => { stop(); go(); }}, text);
  const first = button("|\u25c0", "First step", () => show(0)), back = button("\u25c0 Back", "Step back", () => show(at - 1));
  const next = make("button", {type: "button", class: "main", onclick: () => { stop(); show(at + 1); }}, "Next \u25b6");
  const play = make("button", {type: "button", onclick: () => (timer ? stop() : start())}, "Play");
  const title = make("p", {class: "ring-title"}), say = make("p", {class: "ring-say", "aria-live": "polite"});
  const body = make("div", {class: "ring-body"}), bars = make("div");
  const panel = make("div", {class: "panel", id: "ring-tool", role: "group", "aria-label": "Ring all-reduce, step by step", tabindex: "0",
    onkeydown: event => {
      if (event.target === choose || event.altKey || event.ctrlKey || event.metaKey) return;
      const move = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: states.length - 1}[event.key];
      if (move === undefined) return;
      event.preventDefault();
      stop();
      show(move);
    }},
    make("div", {class: "bar"}, make("label", {for: "ring-n"}, "Ranks"), choose, make("span", {class: "grow"}), play,
      make("div", {class: "steps"}, first, back, next)),
    title, say, body, bars,
    make("p", {class: "note"}, "A row is a rank, a column a chunk; the small bars show whose numbers are summed there. Full cells are complete, " +
      "framed ones have just arrived. Arrow keys step, too."));

  function stop() { clearInterval(timer); timer = null; play.textContent = "Play"; }
  function start() {
    if (at === states.length - 1) show(0);
    timer = setInterval(() => (at === states.length - 1 ? stop() : show(at + 1)), 1400);
    play.textContent = "Stop";
  }
  function show(step) {
    at = Math.max(0, Math.min(states.length - 1, step));
    const phase = at === 0 ? "" : ring.steps[at - 1].add ? ": reduce-scatter" : ": all-gather";
    title.textContent = `Step ${at} of ${ring.steps.length}${phase}`;
    say.textContent = ringSentence(ring, at);
    body.replaceChildren(ringPicture(ring, at), ringCells(ring, states[at], at));
    const most = Math.max(ring.naive[states.length - 1][0], ring.sent[states.length - 1][0]);
    bars.replaceChildren(make("p", {class: "note"}, `Sent by each rank so far, of a vector of ${data.bytes[1]}:`),
      meter([["ring", null, ring.sent[at], most], ["naive", "naive", ring.naive[at], most]]));
    first.disabled = back.disabled = at === 0;
    next.disabled = at === states.length - 1;
  }
  function load(n) {
    stop();
    ring = data.rings.find(each => each.n === n);
    states = ringStates(ring);
    choose.value = String(n);
    show(0);
  }
  load(data.ranks);
  for (const frame of frames.children) frame.hidden = true;
  frames.append(make("h3", {}, "Step by step"), panel);
  return {load, show, states: () => states, ring: () => ring};
}

/* Time lines: the same bars as the text drawing, in place of it. */

function timeline(line, legend) {
  const total = Math.max(line.done, line.backward), box = make("div", {class: "lanes"});
  const bar = (kind, from, to, text) => {
    const span = make("span", {class: kind}, text || "");
    span.style.left = 100 * from / total + "%";
    span.style.width = 100 * (to - from) / total + "%";
    return span;
  };
  const lane = (name, ...bars) => box.append(make("span", {}, name), make("div", {class: "lane"}, ...bars));
  const layers = [], each = line.backward / line.layers;
  for (let i = 0; i < line.layers; i++) layers.push(bar("layer", i * each, (i + 1) * each, "L" + (line.layers - i)));
  lane("backward", ...layers);
  line.buckets.forEach(([opened, full, start, done], i) => {
    const hidden = Math.min(done, line.backward), bars = [bar("fills", opened, full)];
    if (start < line.backward) bars.push(bar("sends", start, hidden, hidden - start > total / 12 ? "send" : ""));
    if (done > line.backward) bars.push(bar("exposed", Math.max(start, line.backward), done, done - line.backward > total / 5 ? "exposed" : ""));
    lane("bucket " + i, ...bars);
  });
  const key = (kind, text) => make("li", {}, make("i", {class: kind}), text);
  return make("div", {}, box, legend ? make("ul", {class: "legend"}, key("fills", "a bucket fills"), key("sends", "it is sent"),
    key("exposed", "sent after backward: exposed")) : "");
}

/* The still drawings of the plane: the same characters, as a picture that is easier to read. */

function points(lines) {
  const across = 9, down = 18, width = Math.max(...lines.map(line => line.length)) * across + 4 * across, height = lines.length * down + down;
  const marked = (lines.join("").match(/\[(.)\]/) || [])[1];
  const svg = make("svg", {class: "points", viewBox: `0 0 ${width} ${height}`});
  lines.forEach((line, row) => [...line].forEach((c, column) => {
    const x = (column + 1) * across, y = (row + 1) * down;
    if (c === ".") svg.append(make("circle", {class: "dot", cx: x, cy: y, r: 2}));
    else if (c === "[" || c === "<") svg.append(make("circle", {class: c === "[" ? "sent" : "found", cx: x + across, cy: y, r: 14}));
    else if (c === "x") svg.append(make("path", {class: "x", d: `M${x - 5} ${y - 5} l10 10 m0 -10 l-10 10`}));
    else if (c === "v") svg.append(make("circle", {class: "v", cx: x, cy: y, r: 9}), make("text", {x, y, class: "name"}, "v"));
    else if (/[A-Z]/.test(c)) svg.append(make("text", {x, y, class: c === marked ? "same" : null}, c));
  }));
  return svg;
}

/* The plane: move the receiver and see what it decodes. */

function decode(own) {
  const p = data.plane, one = (colour, value) => colour + p.q * Math.floor((value - colour) / p.q + 0.5);
  return [one(p.colour[0], own[0]), one(p.colour[1], own[1])];
}

function planeTool(frames) {
  const p = data.plane, cell = 44, edge = 26, width = (p.size[0] - 1) * cell + 2 * edge, height = (p.size[1] - 1) * cell + 2 * edge;
  const place = ([x, y]) => [edge + x * cell, height - edge - y * cell];
  const mod = value => (value % p.q + p.q) % p.q, letter = (i, j) => String.fromCharCode(65 + mod(i) + p.q * mod(j));
  const hash = ([k1, k2]) => (p.checksum[0] * k1 + p.checksum[1] * k2) % p.checksum[2];
  let own = p.receiver.slice(), held = false;
  const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, role: "application", tabindex: "0",
    "aria-label": "The plane. Move the receiver with the arrow keys.", "aria-describedby": "plane-verdict"});
  const verdict = make("p", {class: "verdict", id: "plane-verdict", "aria-live": "polite"});

  function draw() {
    const got = decode(own), right = got[0] === p.point[0] && got[1] === p.point[1];
    const [sx, sy] = place(p.sender), [vx, vy] = place(own), [zx, zy] = place(p.point), [gx, gy] = place(got);
    const reach = p.reach * cell;
    svg.replaceChildren(make("rect", {class: "reach", x: sx - reach, y: sy - reach, width: 2 * reach, height: 2 * reach}));
    for (let i = 0; i < p.size[0]; i++)
      for (let j = 0; j < p.size[1]; j++) {
        const [x, y] = place([i, j]), same = mod(i) === p.colour[0] && mod(j) === p.colour[1];
        svg.append(make("text", {x, y, class: same ? "same" : null}, letter(i, j)));
      }
    svg.append(make("line", {class: "link", x1: vx, y1: vy, x2: gx, y2: gy}), make("circle", {class: "sent", cx: zx, cy: zy, r: 14}));
    if (!right) svg.append(make("circle", {class: "found", cx: gx, cy: gy, r: 14}));
    svg.append(make("path", {class: "x", d: `M${sx - 5} ${sy - 5} l10 10 m0 -10 l-10 10`}), make("circle", {class: "v", cx: vx, cy: vy, r: 10}),
      make("text", {x: vx, y: vy, class: "name"}, "v"));
    verdict.className = right ? "verdict" : "verdict bad";
    const found = `The nearest ${letter(...p.colour)} to v = (${own[0].toFixed(1)}, ${own[1].toFixed(1)}) is (${got}). `;
    verdict.replaceChildren(make("b", {}, right ? "Right. " : "Wrong, and noticed. "), found, right ? "That is z." :
      `z is (${p.point}): off by ${p.q} steps or a multiple. The checksum of (${got}) is ${hash(got)}, and ${hash(p.point)} was sent.`);
  }
  function move(x, y) {
    own = [Math.min(p.size[0] - 1, Math.max(0, x)), Math.min(p.size[1] - 1, Math.max(0, y))].map(value => Math.round(value * 10) / 10);
    draw();
  }
  function follow(event) {
    const box = svg.getBoundingClientRect();
    move(((event.clientX - box.left) * width / box.width - edge) / cell, (height - edge - (event.clientY - box.top) * height / box.height) / cell);
  }
  svg.addEventListener("pointerdown", event => { held = true; svg.setPointerCapture(event.pointerId); follow(event); });
  svg.addEventListener("pointermove", event => held && follow(event));
  svg.addEventListener("pointerup", () => { held = false; });
  svg.addEventListener("pointercancel", () => { held = false; });
  svg.addEventListener("keydown", event => {
    const step = {ArrowLeft: [-0.5, 0], ArrowRight: [0.5, 0], ArrowUp: [0, 0.5], ArrowDown: [0, -0.5]}[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(own[0] + step[0], own[1] + step[1]);
  });
  draw();
  frames.append(make("div", {class: "panel plane", id: "plane-tool"}, make("p", {}, "Try it: move the receiver's v with finger, mouse or arrow keys. " +
    "x is the sender; inside the square around it, decoding is certain."), svg, verdict));
  return {move, verdict};
}

/* Practice. */

function memory() {
  const key = testing ? "coset-learn-test" : "coset-learn";
  let kept = {};
  try {
    const read = JSON.parse(localStorage.getItem(key) || "{}");
    if (read && typeof read === "object" && !Array.isArray(read)) kept = read;
  } catch (error) { /* damaged or not allowed: begin anew */ }
  const save = () => { try { localStorage.setItem(key, JSON.stringify(kept)); } catch (error) { /* not allowed: this visit only */ } };
  return {
    score: id => Object.assign({right: 0, wrong: 0, again: false}, kept[id]),
    record(id, right) {
      const score = this.score(id);
      score[right ? "right" : "wrong"]++;
      score.again = !right;
      kept[id] = score;
      save();
    },
    reset() { kept = {}; save(); },
  };
}

function shuffled(n) {
  const places = [...Array(n).keys()];
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [places[i], places[j]] = [places[j], places[i]];
  }
  return places;
}

function quiz(root) {
  const kept = memory();
  let topic = -1, queue = [], current = null, version = null, places = [];
  const choose = make("select", {id: "quiz-topic", onchange: () => { topic = Number(choose.value); queue = []; ask(); }}, make("option", {value: -1}, "all lessons"));
  data.topics.forEach((name, i) => choose.append(make("option", {value: i}, name)));
  const forget = make("button", {type: "button", onclick: () => { if (testing || confirm("Forget all answers?")) { kept.reset(); queue = []; ask(); } }}, "Forget answers");
  const status = make("p", {class: "note"}), known = make("i"), again = make("i", {class: "again"});
  const text = make("p", {class: "ask", tabindex: "-1", id: "quiz-text"}), options = make("ol", {class: "options", "aria-labelledby": "quiz-text"});
  const feedback = make("div", {class: "feedback", role: "status"});
  const next = make("button", {type: "button", class: "main", onclick: () => { ask(); text.focus(); }}, "Next question");
  root.append(make("div", {class: "panel", onkeydown: event => {
    const index = /^[a-d]$/i.test(event.key) ? event.key.toLowerCase().charCodeAt(0) - 97 : /^[1-4]$/.test(event.key) ? Number(event.key) - 1 : -1;
    if (index >= 0 && event.target !== choose && !event.altKey && !event.ctrlKey && !event.metaKey) answer(index);
  }}, make("div", {class: "bar"}, make("label", {for: "quiz-topic"}, "Questions on"), choose, make("span", {class: "grow"}), forget),
    make("div", {class: "progress", "aria-hidden": "true"}, known, again), status, text, options, feedback, next));

  const pool = () => data.questions.filter(q => topic < 0 || q.topic === topic);
  function urgency(q) {
    const score = kept.score(q.id);
    return score.again ? 0 : score.right + score.wrong === 0 ? 1 : 2;
  }
  function progress() {
    const all = pool(), good = all.filter(q => kept.score(q.id).right > 0 && !kept.score(q.id).again).length;
    const bad = all.filter(q => kept.score(q.id).again).length;
    known.style.width = 100 * good / all.length + "%";
    again.style.width = 100 * bad / all.length + "%";
    status.textContent = `${good} of ${all.length} known, ${bad} to repeat, ${all.length - good - bad} new.`;
  }
  function ask() {
    if (queue.length === 0) {
      const all = pool();
      queue = shuffled(all.length).map(i => all[i]).sort((a, b) => urgency(a) - urgency(b));
    }
    pose(queue.shift());
  }
  function pose(question) {
    current = question;
    version = question.versions[Math.floor(Math.random() * question.versions.length)];
    places = shuffled(version.options.length);
    text.textContent = version.text;
    options.replaceChildren(...places.map((place, i) => make("li", {}, make("button", {type: "button", onclick: () => answer(i)},
      make("span", {class: "letter"}, String.fromCharCode(97 + i)), make("span", {}, version.options[place][0])))));
    feedback.replaceChildren();
    next.hidden = true;
    progress();
  }
  function answer(index) {
    if (!next.hidden || index >= places.length) return;
    const right = places[index] === 0, buttons = [...options.querySelectorAll("button")];
    buttons.forEach((button, i) => {
      button.disabled = true;
      const kind = places[i] === 0 ? "right" : i === index ? "wrong" : "";
      if (!kind) return;
      button.classList.add(kind);
      button.append(make("span", {class: "mark"}, kind === "right" ? "\u2713 right" : "\u2717 your answer"));
    });
    const said = [make("p", {class: right ? "yes" : "no"}, right ? "Right." : "No."), make("p", {}, version.options[places[index]][1])];
    if (!right) said.push(make("p", {}, make("strong", {}, `The answer is ${String.fromCharCode(97 + places.indexOf(0))}: `),
      version.options[0][0].replace(/\.$/, ""), ". ", version.options[0][1]));
    feedback.replaceChildren(...said);
    kept.record(current.id, right);
    progress();
    next.hidden = false;
    next.focus();
  }
  ask();
  return {kept, pose, answer, ask, rightPlace: () => places.indexOf(0), buttons: () => options.querySelectorAll("button"),
    feedback, next, current: () => current, restart() { queue = []; ask(); }};
}

/* page.html#self-test: works everything by its own buttons and says how it went, for the tests. */

function selfTest(ring, plane, practice) {
  let checks = 0;
  const check = (ok, what) => { checks++; if (!ok) throw new Error(what); };
  for (const each of data.rings) {
    ring.load(each.n);
    const panel = document.getElementById("ring-tool"), next = panel.querySelector("button.main");
    for (let k = 0; k < each.steps.length; k++) next.click();
    check(next.disabled, `ring ${each.n}: more steps than expected`);
    check(panel.querySelectorAll("td.whole").length === each.n * each.n, `ring ${each.n}: not complete`);
    panel.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft", bubbles: true}));
    check(panel.querySelectorAll("td.whole").length < each.n * each.n, `ring ${each.n}: the key did not step back`);
    check(each.sent[each.steps.length][0] === each.steps.length * each.chunk[0] || data.bytes[0] % (4 * each.n) !== 0, `ring ${each.n}: volume`);
  }
  for (const [x, y, k1, k2] of data.plane.decodings) {
    const got = decode([x, y]);
    check(got[0] === k1 && got[1] === k2, `plane: (${x}, ${y}) gives (${got}), not (${k1}, ${k2})`);
  }
  plane.move(data.plane.point[0] + data.plane.q, data.plane.point[1]);
  check(plane.verdict.classList.contains("bad"), "plane: a wrong decoding is not shown");
  practice.kept.reset();
  for (const question of data.questions)
    for (let place = 0; place < 4; place++) {
      practice.pose(question);
      const buttons = practice.buttons(), right = practice.rightPlace();
      check(buttons.length === 4, `${question.id}: not four options`);
      buttons[(right + place) % 4].click();
      check(practice.feedback.textContent.startsWith(place === 0 ? "Right." : "No."), `${question.id}: feedback`);
      check(document.querySelectorAll(".options .right").length === 1, `${question.id}: the right option is not shown`);
      check(practice.kept.score(question.id).again === (place !== 0), `${question.id}: not remembered`);
      if (place === 3 && question !== data.questions[7]) practice.kept.record(question.id, true);
    }
  practice.restart();
  check(practice.current() === data.questions[7], "the mistake is not asked first");
  practice.kept.reset();
  document.querySelectorAll("[data-figure=timeline]").forEach(figure => check(figure.querySelector(".lanes"), "no time line"));
  document.querySelectorAll("[data-figure=plane]").forEach(figure => check(figure.querySelectorAll("svg > *").length > 50, "no points"));
  return checks;
}

const ring = ringStepper(document.querySelector("[data-frames=ring]"));
function redraw(kind, draw) {
  document.querySelectorAll(`[data-figure=${kind}]`).forEach((figure, i) => {
    const pre = figure.querySelector("pre"), drawn = draw(pre.textContent.replace(/\n$/, "").split("\n"), i);
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", pre.getAttribute("aria-label"));
    pre.replaceWith(drawn);
  });
}
redraw("timeline", (lines, i) => timeline(data.timelines[i], i === 0));
redraw("plane", points);
const plane = planeTool(document.querySelector("[data-frames=plane]"));
const practice = quiz(document.getElementById("quiz"));
if (testing) {
  let said;
  try { said = `ok ${selfTest(ring, plane, practice)} checks`; } catch (error) { said = "failed: " + error.message; }
  document.body.append(make("output", {id: "self-test"}, said));
}
})();
