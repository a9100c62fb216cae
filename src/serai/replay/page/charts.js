import { clock, escaped, num, span } from "./data.js";

/* The strip under the map, which is also the scrubber, and the small charts of the card. */
const PAD = 8;
export const onPaper = () => document.documentElement.classList.contains("paper");
/* How many dots of a canvas lie along a pixel of the page. */
export const sharpness = () => onPaper() ? 3 : Math.min(devicePixelRatio || 1, 2);
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Strip {
  constructor(canvas, model) {
    this.canvas = canvas;
    this.m = model;
    this.back = null;
  }

  x(t) { return PAD + t / this.m.end * (this.w - 2 * PAD); }

  /* All that does not change while playing, drawn once. */
  sheet() {
    this.inks = Object.fromEntries(["bg", "soft", "pick", "ink"].map((name) => [name, css(`--${name}`)]));
    const d = this.dpr = sharpness(), box = this.canvas.getBoundingClientRect(), { m } = this;
    this.w = Math.max(1, box.width);
    this.h = Math.max(1, box.height);
    this.canvas.width = this.w * d;
    this.canvas.height = this.h * d;
    this.back = document.createElement("canvas");
    this.back.width = this.canvas.width;
    this.back.height = this.canvas.height;
    const g = this.back.getContext("2d");
    g.scale(d, d);
    this.bin = m.hops ? 1 : [10, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400].find((k) => m.end / k <= Math.max(30, this.w / 14)) || 604800;
    const bins = Math.max(1, Math.ceil(m.end / this.bin)), sums = [];
    for (let i = 0; i <= bins; i++) sums.push(m.sums(Math.min(m.end, i * this.bin)));
    const rise = (name, i) => sums[i + 1][name] - sums[i][name];
    sums[0] = { ...sums[0], delivered: 0, lost: 0 };
    const points = Math.ceil(this.w), line = [];
    let most = 1, top = 1, deep = 0;
    for (let i = 0; i <= points; i++) line.push(m.sums(i / points * m.end).waiting);
    for (const v of line) most = Math.max(most, v);
    for (let i = 0; i < bins; i++) { top = Math.max(top, rise("delivered", i)); deep = Math.max(deep, rise("lost", i)); }
    const foot = this.h - 16, split = Math.round(foot * .5), unit = (foot - split - 5) / (top + deep), base = Math.round(foot - 1 - deep * unit);
    this.scales = [[most, 7], [top, split + 3]];
    const path = new Path2D();
    line.forEach((v, i) => path.lineTo(this.x(i / points * m.end), split - v / most * (split - 8)));
    g.strokeStyle = g.fillStyle = css("--waiting");
    g.lineWidth = 1.2;
    g.stroke(path);
    path.lineTo(this.x(m.end), split);
    path.lineTo(this.x(0), split);
    g.globalAlpha = .38;
    g.fill(path);
    g.globalAlpha = 1;
    for (let i = 0; i < bins; i++) {
      const x = this.x(i * this.bin) + .5, wide = Math.max(.6, this.x(Math.min(m.end, (i + 1) * this.bin)) - x - .5);
      g.fillStyle = css("--delivered");
      g.fillRect(x, base - rise("delivered", i) * unit, wide, rise("delivered", i) * unit);
      g.fillStyle = css("--lost");
      g.fillRect(x, base + 1, wide, rise("lost", i) * unit);
    }
    g.fillStyle = css("--line");
    g.fillRect(PAD, base, this.w - 2 * PAD, 1);
  }

  ticks() {
    const { m } = this;
    if (m.hops) return m.phases.map(([t, name]) => [t, this.w < 420 ? name.split(" ")[0] : name]);   // one word, where two phrases would meet
    const step = [60, 300, 600, 900, 1800, 3600, 7200, 21600, 86400, 604800].find((k) => m.end / k * 52 < this.w) || 2592000, all = [];
    for (let t = 0; t <= m.end; t += step) all.push([t, clock(t).replace(/:00$/, "")]);
    return all;
  }

  draw(t, life) {
    if (!this.back) this.sheet();
    const g = this.canvas.getContext("2d"), x = this.x(t), past = Math.round(x * this.dpr), { back, inks } = this;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, back.width, back.height);
    g.globalAlpha = .28;
    g.drawImage(back, 0, 0);
    g.globalAlpha = 1;
    if (past > 0) g.drawImage(back, 0, 0, past, back.height, 0, 0, past, back.height);
    g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    g.font = "10.5px system-ui";
    g.textBaseline = "top";
    g.textAlign = "right";
    for (const [v, y] of this.scales) {
      const wide = g.measureText(num(v)).width;
      g.fillStyle = inks.bg;
      g.fillRect(this.w - PAD - wide - 3, y - 1, wide + 4, 12);
      g.fillStyle = inks.soft;
      g.fillText(num(v), this.w - PAD, y);
    }
    g.textBaseline = "alphabetic";
    g.fillStyle = inks.soft;
    for (const [at, text] of this.ticks()) {
      g.textAlign = at === 0 ? "left" : this.x(at) > this.w - 40 ? "right" : "center";
      g.fillText(text, this.x(at), this.h - 3);
    }
    if (life) {
      g.fillStyle = inks.pick;
      g.fillRect(this.x(life.born), 0, Math.max(2, this.x(Math.min(life.until, this.m.end)) - this.x(life.born)), 3);
    }
    g.fillStyle = inks.ink;
    g.fillRect(x - .75, 2, 1.5, this.h - 17);
    g.beginPath();
    g.moveTo(x - 5, 0);
    g.lineTo(x + 5, 0);
    g.lineTo(x, 7);
    g.fill();
  }
}

/* A line over the whole run with a mark at t. */
export function lineChart({ label, unit, times, values, top, steps }, t, end) {
  const W = 372, H = 62, X = (s) => s / end * W, Y = (v) => H - 12 - v / (top || 1) * (H - 26);
  let d = "";
  times.forEach((s, i) => { d += (i ? (steps ? `H${X(s).toFixed(1)}V` : `L${X(s).toFixed(1)} `) : "M0 ") + Y(values[i]).toFixed(1); });
  return `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${escaped(label)} over time"><text x="0" y="9">${escaped(label)}</text>` +
    `<text x="${W}" y="9" text-anchor="end">${escaped(unit)}</text><path d="M0 ${H - 12}H${W}" stroke="var(--line)"/>` +
    `<path d="${d}" fill="none" stroke="var(--delivered)" stroke-width="1.4"/><path d="M${X(t).toFixed(1)} 12V${H - 12}" stroke="var(--ink)"/></svg>`;
}

const MOST_LINES = 14, APART = 46;
const AGES = [10, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 86400, 259200, 604800, 2592000];

const age = (s) => (s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : s < 86400 ? `${s / 3600} h` : `${s / 86400} d`);

/* Times since birth that are written below a life, from the right: where there is room. */
function ages(length, X) {
  const kept = [];
  let free = X(length) - APART / 2;
  for (const age of AGES.filter((s) => s < length).reverse()) {
    if (X(age) > free) continue;
    kept.push(age);
    free = X(age) - APART;
  }
  return kept;
}

/* An event's life: how many copies there are, and a line for each who wants it until it has it. Where most
   of them had it soon after its birth, time is drawn by its square root. */
export function lifeline(m, e, t, words) {
  const all = m.life(e), W = 372, L = 44, { born, until } = all;
  const middle = all.got[all.got.length >> 1], early = !m.hops && middle && middle.time - born < .25 * (until - born);
  const X = (s) => {
    const part = (Math.min(Math.max(s, born), until) - born) / (until - born || 1);
    return L + (early ? Math.sqrt(part) : part) * (W - L - 6);
  };
  const most = Math.max(1, ...all.steps.map((s) => s[1])), floor = 44, Y = (v) => floor - v / most * 30;
  let d = `M${X(born)} ${floor}`;
  for (const [s, v] of all.steps) d += `H${X(s).toFixed(1)}V${Y(v).toFixed(1)}`;
  d += `H${X(until).toFixed(1)}V${floor}Z`;
  const who = m.wanting(e), got = new Map(all.got.map((g) => [g.node, g])), shown = who.slice(0, MOST_LINES);
  if (m.hops && !who.length) return "<p>Nobody asked for it.</p>";   // and it has no copies whose number could be drawn
  const foot = floor + 14 + shown.length * 17, H = foot + (m.hops ? 30 : 42), time = (s) => (m.hops ? `${num(s - born)} hops` : span(s - born));
  let rows = "";
  shown.forEach((w, i) => {
    const y = floor + 20 + i * 17, g = got.get(w), has = g && g.time <= t, end = X(g ? g.time : until);
    const text = g ? `${time(g.time)}${g.from >= 0 ? `, from ${escaped(m.names[g.from])}` : ""}` : escaped(m.why(e, w));
    const left = end < W * .6 && g;   // then the words stand behind its end, else upon it
    rows += `<text x="0" y="${y + 4}" class="ink">${escaped(m.nameOf(w))}</text>` +
      `<path d="M${X(born)} ${y}H${end.toFixed(1)}" stroke="var(--${g ? "delivered" : "waiting"})" stroke-width="${has || !g ? 2 : 1}"${has ? "" : ' stroke-dasharray="3 3"'}/>` +
      (g ? `<circle cx="${end.toFixed(1)}" cy="${y}" r="4" fill="var(--${has ? "delivered" : "bg"})" stroke="var(--delivered)" stroke-width="1.6"/>`
        : `<path d="M${end - 4} ${y - 4}l8 8m0 -8l-8 8" stroke="var(--waiting)" stroke-width="1.6"/>`) +
      `<text x="${(left ? end + 8 : end - (g ? 9 : 10)).toFixed(1)}" y="${y + 4}"${left ? "" : ' text-anchor="end"'} class="over">${text}</text>`;
  });
  const marks = m.hops ? "" : ages(until - born, (s) => X(born + s)).map((s) => `<path d="M${X(born + s).toFixed(1)} ${floor}V${foot + 2}" stroke="var(--line)"/>` +
    `<text x="${X(born + s).toFixed(1)}" y="${foot + 14}" text-anchor="middle">${age(s)}</text>`).join("");
  const more = who.length - shown.length, end = m.hops ? "" : until < m.expiry(e) ? "the run ends" : `too old at ${clock(m.expiry(e))}`;
  const served = who.filter((w) => got.has(w)).length;
  return `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="Life of ${words.event.toLowerCase()} ${e}: wanted by ${who.length}, received by ${served} of them">` +
    (m.hops ? "" : `<text x="0" y="9">${words.copies}, at most ${num(most)}</text><path d="${d}" fill="var(--delivered)" fill-opacity=".25" stroke="var(--delivered)"/>`) +
    marks + `<path d="M${X(Math.min(Math.max(t, born), until)).toFixed(1)} 12V${foot + 4}" stroke="var(--ink)"/>` + rows +
    `<text x="${m.hops ? L : 0}" y="${H - 6}">${m.hops ? "published" : `born ${clock(born)}${early ? " · time by square root" : ""}`}</text><text x="${W}" y="${H - 6}" text-anchor="end">${more > 0 ? `and ${num(more)} more · ` : ""}${end}</text></svg>`;
}
