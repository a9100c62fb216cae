import { lifeline, lineChart, Strip } from "./charts.js";
import { clock, escaped, num, span, unpack, upTo } from "./data.js";
import { RunMap } from "./run.map.js";
import { RunModel, WORDS } from "./run.model.js";

/* The controls: one moment t, one thing chosen, and everything on the page follows from the two. */
const $ = (id) => document.getElementById(id), began = performance.now(), CARD_MS = 250, MOST_CHIPS = 300, SLICE_MS = 3, REST_MS = 10;
const head = JSON.parse($("head").textContent), columns = await unpack(head.columns, head.bytes, $("data").textContent);
$("data").remove();
const unpacked = performance.now(), m = new RunModel(head, columns), built = performance.now();
const map = new RunMap($("map"), m, WORDS.by[0]), strip = new Strip($("strip"), m), STEP = m.hops ? 1 : m.end > 20000 ? 10 : 1;
const SPEEDS = WORDS.speeds.filter((v, i) => i < 3 || v < m.end / 4);
let t = 0, speed = WORDS.speed, playing = false, state = m.state(0), before = 0, told = 0, life = null, drag = null;

const time = (s) => (m.hops ? m.moment(s) : clock(s));

function setUp() {
  const without = head.silent?.length ? `, ${head.silent.join(", ")} without a log` : "";
  const which = head.recorded === undefined ? `seed ${head.seed}` : `recorded by real nodes from ${head.recorded.replace("T", " ").replace("+00:00", " UTC")}${without}`;
  $("kicker").textContent = `${head.title} · ${head.protocol} · ${which} · ${m.kicker()}`;
  $("q").placeholder = WORDS.find;
  $("thin").hidden = !m.thin;
  if (m.thin) $("thin").textContent = m.leftOut();
  document.documentElement.style.setProperty("--shape", Math.min(2.2, Math.max(.8, m.width / m.height)));
  for (const v of SPEEDS) $("speed").add(new Option(m.hops ? `${v} ${v === 1 ? "hop" : "hops"}/s` : `${v}×`, v, v === speed, v === speed));
  $("scrub").max = m.end;
  $("scrub").step = STEP;
  $("by").innerHTML = `<legend>${WORDS.byLabel}</legend>` + WORDS.by.map((name, i) =>
    `<label><input type="radio" name="by" value="${name}"${i ? "" : " checked"}><span>${name}</span></label>`).join("");
  strip.sheet();
  const swatch = (name) => `<i style="background:var(--${name})"></i>`;
  $("striplegend").innerHTML = `${swatch("delivered")}delivered ${m.hops ? "per hop" : `per ${span(strip.bin)}`}${swatch("waiting")}${WORDS.waiting}` +
    `${swatch("lost")}${WORDS.lost} &nbsp;·&nbsp; counted: ${WORDS.counted}, ${num(m.sums(m.end).wanted)} in the whole run`;
}

/* Room for the longest sentence, so that the map keeps its size while playing. */
function reserve() {
  const at = [...Array(9).keys()].map((i) => m.story(i / 8 * m.end));
  $("story").style.minHeight = "";
  const heights = at.map((text) => { $("story").innerHTML = text; return $("story").offsetHeight; });
  $("story").style.minHeight = `${Math.max(...heights)}px`;
}

function feed(node) {
  const d = m.deliveries;
  let rows = "", k = 0;
  for (let i = upTo(d.time, t) - 1; i >= 0 && k < 9; i--) {
    if ((node >= 0 && m.nodeOf(d.node[i]) !== node) || !m.wants(d.event[i], d.node[i])) continue;
    k++;
    const waited = m.hops ? "" : `after ${span(d.time[i] - m.birthTime(d.event[i]))}`;
    rows += `<li><button data-event="${d.event[i]}"><span class="soft">${time(d.time[i])}</span><b>${escaped(m.nameOf(d.node[i]))}</b>` +
      `<span>${WORDS.event.toLowerCase()} ${d.event[i]}</span><span class="soft">${waited}</span></button></li>`;
  }
  return rows ? `<ul class="feed">${rows}</ul>` : "<p>Nothing has been delivered yet.</p>";
}

function chips(node) {
  const held = [...m.holds(node, t)].sort((a, b) => b[0] - a[0]), more = held.length - MOST_CHIPS;
  if (m.thin) WORDS.queue = `of the events whose whole life is in this page (1 in ${m.thin.one_in})`;
  if (!held.length) return `<p>Nothing is stored here now.</p>`;
  return `<p>${WORDS.queue}${held.some(([, k]) => k > 1) ? " (copies)" : ""}:</p><div class="chips">` +
    held.slice(0, MOST_CHIPS).map(([e, k]) => `<button data-event="${e}">${m.chip ? m.chip(e) : e}${k > 1 ? ` (${k})` : ""}</button>`).join("") +
    `${more > 0 ? `<span>and ${num(more)} more</span>` : ""}</div>`;
}

function card() {
  const { pick } = map, close = `<button data-close>close</button>`;
  told = performance.now();
  if (pick?.event !== undefined) {
    $("card").innerHTML = `<h2>${m.eventTitle ? m.eventTitle(pick.event) : `${WORDS.event} ${pick.event}`} ${close}</h2><p>${m.eventLine(pick.event, life)}</p>` +
      (m.isKept(pick.event) ? "" : `<p><b>${m.leftOut(pick.event)}</b></p>`) + (pick.event < m.events ? lifeline(m, pick.event, t, WORDS) : "");
  } else if (pick?.node !== undefined) {
    $("card").innerHTML = `<h2>${escaped(m.nodeTitle(pick.node))} ${close}</h2><p>${m.nodeLine(pick.node, t, state)}</p>` +
      m.nodeCharts(pick.node).map((chart) => lineChart(chart, t, m.end)).join("") + (m.isStore(pick.node) ? chips(pick.node) : feed(pick.node));
  } else $("card").innerHTML = `<h2>Latest deliveries</h2>${feed(-1)}`;
}

function paint(whole) {
  state = m.state(t, state);
  life = map.pick?.event === undefined ? null : m.life(map.pick.event, t);
  map.draw(t, state, life, speed, playing);
  strip.draw(t, life);
  const s = m.sums(t);
  $("story").innerHTML = m.story(t);
  $("clock").textContent = time(t);
  $("scrub").value = t;
  $("scrub").setAttribute("aria-valuetext", `${time(t)}, ${num(s.delivered)} of ${num(s.wanted)} delivered`);
  $("note").textContent = life ? WORDS.chosen
    : playing && map.oneOf > 1 ? `1 copy of ${map.oneOf} drawn as a dot; the links' glow counts all` : m.note || "";
  if (whole || performance.now() - told > CARD_MS) card();
}

function keep() {
  const { pick } = map, what = pick?.event !== undefined ? `&e=${pick.event}` : pick?.node !== undefined ? `&n=${pick.node}` : "";
  history.replaceState(null, "", `#t=${Math.round(t * 1000) / 1000}${what}`);
}

function go(to) {
  t = Math.min(Math.max(0, to), m.end);
  paint(true);
}

function toggle(on = !playing) {
  if (on && t >= m.end) t = 0;
  playing = on;
  $("play").innerHTML = on ? "&#10074;&#10074;" : "&#9654;&#xFE0E;";
  $("play").setAttribute("aria-label", on ? "Pause" : "Play");
  if (on) {
    before = performance.now();
    requestAnimationFrame(tick);
  } else {
    paint(true);
    $("said").textContent = $("story").textContent;
    keep();
  }
}

function tick(now) {
  if (!playing) return;
  t = Math.min(m.end, t + Math.min(.1, Math.max(0, now - before) / 1000) * speed);
  before = now;
  if (t >= m.end) toggle(false); else paint(false);
  requestAnimationFrame(tick);
}

function select(pick, jump = false) {
  map.pick = pick;
  if (jump && pick?.event < m.events) {
    const born = m.c.bornAt[pick.event];
    if (t < born || t > m.expiry(pick.event)) t = Math.min(m.end, born + (m.hops ? 2 : 30));
  }
  paint(true);
  $("said").textContent = $("card").textContent.slice(0, 300);
  keep();
}

function find(text) {
  const found = m.find(text);
  if (found) return select(found, true);
  map.pick = null;
  paint(true);
  const message = `Nothing is called “${text}”: try ${WORDS.find}; events are 0 to ${num(m.events - 1)}.`;
  $("card").innerHTML = `<p>${escaped(message)}</p>`;
  $("said").textContent = message;
}

function faster(by) {
  speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(speed) + by))];
  $("speed").value = speed;
  paint(true);
}

function delivery(forwards) {
  const found = m.nextDelivery(t, forwards);
  if (!found) return;
  t = found.time;
  select({ event: found.event });
}

const KEYS = {
  k: () => toggle(), Home: () => go(0), End: () => go(m.end), "/": () => $("q").focus(), "[": () => faster(-1), "]": () => faster(1),
  d: () => delivery(true), D: () => delivery(false), Escape: () => { $("q").blur(); select(null); },
  n: () => select({ node: ((map.pick?.node ?? -1) + 1) % m.count }), N: () => select({ node: ((map.pick?.node ?? 0) + m.count - 1) % m.count }),
  "+": () => { map.zoom(1.4, map.w / 2, map.h / 2); paint(false); }, "-": () => { map.zoom(1 / 1.4, map.w / 2, map.h / 2); paint(false); },
  0: () => { map.view = { z: 1, x: 0, y: 0 }; map.sheet = null; paint(false); },
};

function key(event) {
  const { target } = event, far = event.shiftKey ? 60 : 1;
  if (event.metaKey || event.ctrlKey || event.altKey || (target.id === "q" && event.key !== "Escape")) return;
  const busy = ["BUTTON", "SELECT"].includes(target.tagName) || target.type === "radio";
  let act = KEYS[event.key];
  if (event.key === " " && !busy) act = () => toggle();
  if (event.key === "ArrowLeft" && target.tagName !== "SELECT" && target.type !== "radio") act = () => go(Math.ceil(t / STEP) * STEP - far * STEP);
  if (event.key === "ArrowRight" && target.tagName !== "SELECT" && target.type !== "radio") act = () => go(Math.floor(t / STEP) * STEP + far * STEP);
  if (!act) return;
  event.preventDefault();
  act();
  if (!playing) keep();
}

const spot = (event) => {
  const box = $("map").getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

function hover(event) {
  const [x, y] = spot(event);
  if (drag && event.buttons && map.view.z > 1) {
    drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > 4;
    map.view.x = drag.viewX - (x - drag.x) / map.s;
    map.view.y = drag.viewY + (y - drag.y) / map.s;
    map.sheet = null;
    if (!playing) paint(false);
  }
  const n = map.hit(x, y);
  $("tip").hidden = n === null;
  if (n === null) return;
  $("tip").textContent = m.tip(n, state);
  $("tip").style.left = `${Math.max(0, Math.min(map.at[2 * n] + 12, map.w - $("tip").offsetWidth - 8))}px`;
  $("tip").style.top = `${Math.max(4, map.at[2 * n + 1] - 34)}px`;
}

function listen() {
  $("play").onclick = () => toggle();
  $("back").onclick = () => go(Math.ceil(t / STEP) * STEP - STEP);
  $("next").onclick = () => go(Math.floor(t / STEP) * STEP + STEP);
  $("speed").onchange = () => { speed = +$("speed").value; paint(true); };
  $("scrub").oninput = () => go(+$("scrub").value);
  $("scrub").onchange = keep;
  $("find").onsubmit = (event) => { event.preventDefault(); find($("q").value); };
  $("by").onchange = (event) => { map.by = event.target.value; map.sheet = null; $("legend").innerHTML = map.legend(); paint(true); };
  $("card").onclick = (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.event) select({ event: +button.dataset.event }, true); else if (button) select(null);
  };
  $("map").onpointerdown = (event) => { const [x, y] = spot(event); drag = { x, y, viewX: map.view.x, viewY: map.view.y, moved: false }; };
  $("map").onpointermove = hover;
  $("map").onpointerup = (event) => {
    const n = drag?.moved ? null : map.hit(...spot(event));
    if (!drag?.moved) select(n === null ? null : { node: n });
    drag = null;
  };
  $("map").onpointerleave = () => { $("tip").hidden = true; };
  $("map").addEventListener("wheel", (event) => {
    if (!event.ctrlKey && map.view.z === 1 && event.deltaY > 0) return;   // a page that is scrolled past
    event.preventDefault();
    map.zoom(Math.exp(-event.deltaY * .0015), ...spot(event));
    if (!playing) paint(false);
  }, { passive: false });
  addEventListener("keydown", key);
  new ResizeObserver(() => { map.resize(); strip.back = null; paint(false); }).observe($("mapbox"));
  addEventListener("resize", () => { reserve(); paint(false); });
  matchMedia("(prefers-reduced-motion: reduce)").addEventListener("change", (event) => { map.calm = event.matches; paint(true); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
  addEventListener("beforeprint", () => lieOnPaper(true));
  addEventListener("afterprint", () => lieOnPaper(false));
}

function dress() {
  map.dress();
  strip.back = null;
  $("legend").innerHTML = map.legend();
  paint(true);
}

/* The moment that is shown, as it is printed: paper is light and has its own width. */
function lieOnPaper(is) {
  document.documentElement.classList.toggle("paper", is);
  reserve();
  dress();
}

/* What only a choice needs is made after the first picture, in slices between others. */
function prepare() {
  for (const begun = performance.now(); performance.now() - begun < SLICE_MS;) if (m.prepareChoices()) return;
  setTimeout(prepare, REST_MS);
}

setUp();
reserve();
listen();
$("legend").innerHTML = map.legend();
const asked = new URLSearchParams(location.hash.slice(1));
t = Math.min(m.end, Math.max(0, +(asked.get("t") ?? head.opening ?? 0)));
if (asked.has("e") && +asked.get("e") < m.ids) map.pick = { event: +asked.get("e") };
else if (!location.hash && head.chosen !== undefined) map.pick = { event: head.chosen };
else if (asked.has("n") && +asked.get("n") < m.count) map.pick = { node: +asked.get("n") };
paint(true);
window.replay = {
  m, map, go, toggle, select, find, get t() { return t; }, get state() { return state; }, set speed(v) { speed = v; },
  took: { unpack: unpacked - began, model: built - unpacked, all: performance.now() - began },
};
document.documentElement.dataset.ready = "1";
setTimeout(prepare, REST_MS);
