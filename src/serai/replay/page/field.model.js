import { brief, clock, escaped, Groups, num, seconds, span, upTo } from "./data.js";
import { Model, REFUSED } from "./model.js";
import { takeTurns } from "./turns.js";

/* A field: sensors that stand, subscribers that walk. Time is in whole seconds; what is spent is in picojoules. */
const FIRST = 32;
const halfToEven = (v) => {
  const r = Math.round(v);
  return r - v === 0.5 && r % 2 ? r - 1 : r;
};

export class RunModel extends Model {
  prepare() {
    const { c } = this;
    c.rowAt = seconds(c.rows);
    c.dropAt = seconds(c.dropRows);
    c.birth = Float64Array.from(c.birthMs, (ms) => ms / 1000);   // upwards to the millisecond: the second stays the same
    c.bornAt = c.birth.map(Math.ceil);
    takeTurns(c, this.count);
    this.tracks = new Uint32Array(this.count + 1);
    for (let i = 0; i < c.trackNode.length; i++) this.tracks[c.trackNode[i] + 1] = i + 1;
    this.hear = this.receiveCosts ? halfToEven(this.bits * this.radio[0] * 1e12) : 0;
    this.linkCost = new Float64Array(c.linkFrom.length);
    for (let i = 0; i < this.linkCost.length; i++) {
      const a = c.linkFrom[i], b = c.linkTo[i];
      if (a < this.sensors && b < this.sensors) this.linkCost[i] = this.cost(c.x[a], c.y[a], c.x[b], c.y[b]);
    }
    this.spot = new Float64Array(2 * (this.count - this.sensors));
    this.spotAt = new Int32Array(this.count - this.sensors).fill(-1);
    this.receptions();
  }

  /* How many copies a sensor can hold, and what its battery held at the start, in joules. */
  capacityOf(n) { return this.c.capacity ? this.c.capacity[n] : this.queue; }
  batteryOf(n) { return this.c.battery ? this.c.battery[n] : this.battery; }

  /* What listening took of a sensor up to t, in joules: so much each second that it lived, the last time what was left. */
  idledOf(n, t) { return this.c.idle ? Math.min(this.c.idle[n] * (Math.floor(t) + 1), this.c.idled[n]) / 1e12 : 0; }

  /* Where sensors harvest: what the log counts of the whole run, since nobody noted when; and whether this one is dead at t. */
  sunOf(n, t) {
    const { c } = this, second = Math.floor(t), joules = (of, id) => `<b id="${id}">${of[n].toFixed(4)}</b> J`;
    const dead = c.deadNode.some((node, i) => node === n && c.deadFrom[i] < second && second <= c.deadTo[i]);
    return `${dead ? ' · <b id="dead">dead</b> now' : ""} · in the whole run it harvests ${joules(c.harvested, "harvested")}, ` +
      `of which ${joules(c.wasted, "wasted")} are too much for its battery, and spends ${joules(c.listened, "listened")} on listening`;
  }

  get firstWanting() { return this.sensors; }
  get standing() { return this.sensors; }
  get lastMoment() { return this.end - 1; }
  birthTime(e) { return this.c.birth[e]; }
  expiry(e) { return this.c.bornAt[e] + this.c.lives[e]; }

  cost(x0, y0, x1, y1) {
    const [electronics, freeSpace, multipath] = this.radio, dx = x0 - x1, dy = y0 - y1;
    const apart = Math.sqrt(dx * dx + dy * dy), square = apart * apart;
    return halfToEven(this.bits * (electronics + Math.max(freeSpace * square, multipath * square * square)) * 1e12);
  }

  /* The sender pays for the distance, and a sensor for what it accepts. */
  pay(spent, r, flags, link) {
    const { c } = this, from = c.linkFrom[link], to = c.linkTo[link];
    if (from < this.sensors) {
      if (to < this.sensors) spent[from] += this.linkCost[link];
      else {
        const p = to - this.sensors, t = c.rowAt[r];
        if (this.spotAt[p] !== t) {
          [this.spot[2 * p], this.spot[2 * p + 1]] = this.place(to, t);
          this.spotAt[p] = t;
        }
        spent[from] += this.cost(c.x[from], c.y[from], this.spot[2 * p], this.spot[2 * p + 1]);
      }
    }
    if (to < this.sensors && !(flags & REFUSED)) spent[to] += this.hear;
  }

  /* Where a node is: x, y, whether it walks, and the turning point it passed last. */
  place(n, t) {
    const { x, y, trackT, trackX, trackY } = this.c;
    if (n < this.sensors) return [x[n], y[n], false, -1];
    const last = Math.max(upTo(trackT, t, this.tracks[n], this.tracks[n + 1]) - 1, this.tracks[n]), next = last + 1;
    const x0 = trackX[last], y0 = trackY[last];
    if (next === this.tracks[n + 1] || trackT[next] <= trackT[last]) return [x0, y0, false, last];
    const x1 = trackX[next], y1 = trackY[next];
    const f = Math.min(Math.max((t - trackT[last]) / (trackT[next] - trackT[last]), 0), 1);
    const between = (a, b) => Math.min(Math.max(a + (b - a) * f, Math.min(a, b)), Math.max(a, b));
    return [between(x0, x1), between(y0, y1), x0 !== x1 || y0 !== y1, last];
  }

  target(n, last) { return last + 1 < this.tracks[n + 1] ? [this.c.trackX[last + 1], this.c.trackY[last + 1]] : null; }
  heard(n, walks) { return walks || !this.silent; }

  /* The first time that each subscriber was handed each event. */
  receptions() {
    const { c, sensors } = this, width = this.count - sensors, known = new Uint8Array(Math.ceil(c.birth.length * width / 8));
    const found = [];
    this.firstRow = new Uint8Array(c.link.length);
    for (let r = 0; r < c.link.length; r++) {
      const to = c.linkTo[c.link[r]];
      if (to < sensors) continue;
      const pair = c.event[r] * width + to - sensors;
      if (this.thin ? !(c.flags[r] & FIRST) : known[pair >> 3] & (1 << (pair & 7))) continue;
      known[pair >> 3] |= 1 << (pair & 7);
      this.firstRow[r] = 1;
      found.push(r);
    }
    this.deliveries = {
      row: found,
      time: found.map((r) => c.rowAt[r]),
      event: found.map((r) => c.event[r]),
      node: found.map((r) => c.linkTo[c.link[r]]),
      from: found.map((r) => c.linkFrom[c.link[r]]),
    };
  }

  reason(name, node, time) {
    return {
      never_met: "never within reach of it", not_sent: "met, but it was never sent", stranded: `stranded at ${node}, ${time}`,
      expired: `grew too old on its way at ${node}, ${time}`, full: `met a full queue at ${node}, ${time}`, dead: `the battery of ${node} was empty, ${time}`,
    }[name];
  }

  kicker() {
    return `${num(this.sensors)} sensors · ${num(this.count - this.sensors)} subscribers · ${num(Math.round(this.width))} × ${num(Math.round(this.height))} m · ` +
      `${span(this.end)} · ${num(this.c.link.length)} transmissions`;
  }

  story(t) {
    const s = this.sums(t), walkers = this.count - this.sensors;
    return `After <b>${span(t)}</b>, ${num(walkers)} ${walkers === 1 ? "walker has" : "walkers have"} collected ` +
      `<b class="delivered" id="delivered">${num(s.delivered)}</b> of the <b id="wanted">${num(s.wanted)}</b> readings they want; ` +
      `<b class="waiting" id="waiting">${num(s.waiting)}</b> still wait in the field, <b id="lost">${num(s.lost)}</b> grew too old.`;
  }

  eventLine(e, life) {
    return `born at <b>${escaped(this.names[this.c.birthNode[e]])}</b>, ${clock(this.c.birth[e])} · ${this.valuesOf(e)} · sent ` +
      `<b>${num(life.hops.length)}</b> times so far, <b id="held">${life.held}</b> ${life.held === 1 ? "copy" : "copies"} in the field now`;
  }

  nodeTitle(n) { return n < this.sensors ? `Sensor ${this.names[n]}` : `Subscriber ${this.names[n]}`; }

  nodeLine(n, t, state) {
    if (n < this.sensors) {
      const control = this.controlOf(n, t), head = this.headsAt(t).has(n) ? " · its head" : "";
      return `community of ${num(this.sizeOf(n))}${head} · queue <b id="level">${num(state.level[n])}</b> of ${num(this.capacityOf(n))} · ` +
        `spent <b id="spent">${(state.spent[n] / 1e12).toFixed(4)}</b> J of ${this.batteryOf(n)} on events` +
        (this.c.idle ? `, <b id="idled">${this.idledOf(n, t).toFixed(4)}</b> J on listening` : "") +
        (control ? `, ${control.toFixed(4)} J on control messages (${this.controlCosts ? "its battery pays for them" : "its battery does not pay for them"})` : "") +
        (this.c.harvested ? this.sunOf(n, t) : "");
    }
    let wanted = 0, got = 0;
    for (let e = 0; e < this.events && this.c.bornAt[e] <= t; e++) wanted += this.wants(e, n);
    const d = this.deliveries;
    for (let i = 0; i < d.time.length && d.time[i] <= t; i++) if (d.node[i] === n) got += this.wants(d.event[i], n);
    const walks = this.place(n, t)[2], groups = this.sessionsOf(n, t).map((s) => `a community of ${num(this.sizeOf(s))}`);
    const session = groups.length ? ` · in session with ${groups.join(" and ")}` : "";
    return `wants <b>${escaped(brief(this.where[n - this.sensors] || "everything"))}</b><br>${walks ? "walking" : this.silent ? "pausing, silent" : "pausing"}${session} · ` +
      `has <b>${num(got)}</b> of the <b>${num(wanted)}</b> it wants so far`;
  }

  nodeCharts(n) {
    if (n >= this.sensors) return [];
    const s = this.series(n), joules = s.spent.map((v) => v / 1e12), top = this.mostSpent / 1e12;
    return [
      { label: "queue, copies", times: s.times, values: s.level, top: Math.max(1, ...s.level), unit: `most ${num(Math.max(...s.level))}`, steps: true },
      { label: "energy spent on events", times: s.times, values: joules, top, unit: `${top.toPrecision(3)} J; scale to the busiest sensor` },
    ];
  }

  sizeOf(n) {
    if (!this.sizes) {
      this.sizes = new Map();
      for (const g of this.c.community) this.sizes.set(g, (this.sizes.get(g) || 0) + 1);
    }
    return this.sizes.get(this.c.community[n]);
  }

  /* What control messages took of a sensor up to t, in joules: known by the minute. */
  controlOf(n, t) {
    const { c } = this;
    if (!c.controlNode) return 0;
    this.controlRows ||= new Groups(c.controlNode, this.count);
    let sum = 0;
    for (const r of this.controlRows.of(n)) if (c.controlAt[r] <= t) sum += c.controlMicro[r];
    return sum / 1e6;
  }

  /* The communities, by their lowest sensors, that a subscriber is in session with. */
  sessionsOf(n, t) {
    const { c } = this;
    this.sessionRows ||= new Groups(c.sessionNode || [], this.count);
    return [...this.sessionRows.of(n)].filter((r) => c.sessionFrom[r] <= t && t < c.sessionTo[r]).map((r) => c.sessionWith[r]);
  }

  /* Who is head of a community at t. */
  headsAt(t) {
    const { c } = this, now = new Map();
    for (let r = 0; r < (c.headAt?.length ?? 0) && c.headAt[r] <= t; r++) now.set(c.headOf[r], c.headNode[r]);
    return new Set(now.values());
  }

  isStore(n) { return n < this.sensors; }

  tip(n, state) {
    if (n >= this.sensors) return `${this.names[n]} wants ${brief(this.where[n - this.sensors] || "everything")}`;
    return `${this.names[n]} · queue ${num(state.level[n])} · ${(state.spent[n] / 1e12).toFixed(3)} J`;
  }

  find(text) {
    const number = /^(?:(?:sensor|s)\s*(\d+)|(?:subscriber|walker|p)\s*(\d+))$/i.exec(text.trim());
    if (number?.[1] !== undefined && !this.names.includes(text.trim())) return +number[1] < this.sensors ? { node: +number[1] } : null;
    if (number?.[2] !== undefined) return this.sensors + +number[2] < this.count ? { node: this.sensors + +number[2] } : null;
    return super.find(text);
  }
}

export const WORDS = {
  event: "Event", by: ["community", "queue", "energy"], byLabel: "Sensors by", find: "event 812, s17, p3",
  waiting: "waiting in the field", lost: "grown too old", copies: "copies in the field", queue: "in its queue now, youngest first",
  chosen: "filled: holds a copy; those who want it stand out",
  counted: "pairs of an event and a subscriber that wants it", speeds: [1, 5, 20, 60, 200, 600], speed: 20,
};
