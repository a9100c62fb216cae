import { bytes, clock, escaped, num, span, upTo } from "./data.js";
import { Model } from "./model.js";
import { takeTurns } from "./turns.js";

/* An opportunistic network: nodes that meet now and then. A level is bytes in a store; what is spent is transfers begun. */
const inSeconds = (ms) => Float64Array.from(ms, (v) => v / 1000);

export class RunModel extends Model {
  prepare() {
    const { c } = this;
    c.rowAt = inSeconds(c.rowMs);
    c.rowBegin = c.rowAt.map((s, r) => s - c.rowLength[r] / 1000);
    this.longest = c.rowLength.reduce((most, v) => Math.max(most, v), 0) / 1000;
    c.dropAt = inSeconds(c.dropMs);
    c.bornAt = inSeconds(c.bornMs);
    takeTurns(c, this.count);
    c.dropFor = new Uint8Array(c.dropNode.length);
    c.begin = inSeconds(c.contactMs);
    c.over = c.begin.map((s, i) => s + c.contactLength[i] / 1000);
    this.longestContact = c.contactLength.reduce((most, v) => Math.max(most, v), 0) / 1000;
    this.deliveries = {
      time: inSeconds(c.gotMs), event: c.gotEvent, node: c.gotNode,
      from: Array.from(c.gotRow, (r) => (r ? c.linkFrom[c.link[r - 1]] : -1)),
    };
    if (!this.laidOut) {
      c.trackT = inSeconds(c.trackMs);
      this.tracks = new Uint32Array(this.count + 1);
      for (let i = 0; i < c.trackNode.length; i++) this.tracks[c.trackNode[i] + 1] = i + 1;
      for (let n = 0; n < this.count; n++) this.tracks[n + 1] = Math.max(this.tracks[n], this.tracks[n + 1]);
    } else this.note = "positions are not known: nodes that meet often stand near each other";
    this.firstRow = new Uint8Array(c.link.length);
    for (const r of c.gotRow) if (r) this.firstRow[r - 1] = 1;
  }

  get standing() { return this.laidOut ? this.count : 0; }
  weight(e) { return this.c.size[e]; }
  pay(spent, r, flags, link) { spent[this.c.linkFrom[link]]++; }
  expiry(e) { return this.c.bornAt[e] + this.c.lifetime[e]; }

  place(n, t) {
    const { c } = this;
    if (this.laidOut) return [c.x[n], c.y[n]];
    const first = this.tracks[n], end = this.tracks[n + 1];
    if (first === end) return [NaN, NaN];
    const last = Math.max(upTo(c.trackT, t, first, end) - 1, first), next = last + 1;
    if (next === end || !(c.trackT[next] > c.trackT[last]) || Number.isNaN(c.trackX[next])) return [c.trackX[last], c.trackY[last]];
    const f = Math.min(Math.max((t - c.trackT[last]) / (c.trackT[next] - c.trackT[last]), 0), 1);
    return [c.trackX[last] + (c.trackX[next] - c.trackX[last]) * f, c.trackY[last] + (c.trackY[next] - c.trackY[last]) * f];
  }

  /* The contacts that last at t, and the transfers under way. */
  contactsAt(t) {
    const { c } = this, now = [];
    for (let i = upTo(c.begin, t) - 1, oldest = t - this.longestContact; i >= 0 && c.begin[i] >= oldest; i--) if (c.over[i] > t) now.push(i);
    return now;
  }

  underWay(t) {
    const { c } = this, now = [];
    for (let r = upTo(c.rowAt, t); r < c.rowAt.length && c.rowAt[r] <= t + this.longest; r++) if (c.rowBegin[r] <= t) now.push(r);
    return now;
  }

  reason(name, node, time) {
    return {
      never_met: "met nobody who had it", not_sent: `last met ${node}, which had it, ${time}`, stranded: `the contact with ${node} broke, ${time}`,
      expired: `too late from ${node}, ${time}`, full: `met a full store: ${node}, ${time}`, dead: `${node} was dead, ${time}`,
    }[name];
  }

  kicker() {
    return `${num(this.count)} nodes · ${num(this.c.begin.length)} contacts · ${num(this.events)} bundles · ${span(this.end)} · ${num(this.c.link.length)} transfers`;
  }

  story(t) {
    const s = this.sums(t);
    return `After <b>${span(t)}</b>, <b class="delivered" id="delivered">${num(s.delivered)}</b> of the <b id="wanted">${num(s.wanted)}</b> wanted deliveries ` +
      `have been made; <b class="waiting" id="waiting">${num(s.waiting)}</b> are still under way, <b id="lost">${num(s.lost)}</b> expired before they arrived.`;
  }

  eventLine(e, life) {
    const { c } = this, channel = this.channels[c.channel[e]];
    return `born at <b>${escaped(this.names[c.birthNode[e]])}</b>, ${clock(c.bornAt[e])}${channel ? ` · ${escaped(channel)}` : ""} · ${bytes(c.size[e])} · sent ` +
      `<b>${num(life.hops.length)}</b> times so far, <b id="held">${life.held}</b> ${life.held === 1 ? "node holds" : "nodes hold"} it now`;
  }

  nodeTitle(n) { return `Node ${this.names[n]}`; }

  nodeLine(n, t, state) {
    const d = this.deliveries;
    let got = 0, wanted = 0;
    for (let i = 0; i < d.time.length && d.time[i] <= t; i++) got += d.node[i] === n;
    for (let e = 0; e < this.events && this.c.bornAt[e] <= t; e++) wanted += this.wants(e, n);
    const asks = this.asks[n] ? `asks for <b>${escaped(this.asks[n])}</b> and has <b>${num(got)}</b> of <b>${num(wanted)}</b><br>` : "";
    const room = this.capacity ? ` of ${bytes(this.capacity)}` : "";
    return `${asks}store <b id="level">${bytes(state.level[n])}</b>${room} · <b id="spent">${num(state.spent[n])}</b> transfers begun`;
  }

  nodeCharts(n) {
    const s = this.series(n), most = Math.max(...s.level);
    return [
      { label: "store", times: s.times, values: s.level, top: Math.max(1, most), unit: `most ${bytes(most)}`, steps: true },
      { label: "transfers begun", times: s.times, values: s.spent, top: this.mostSpent, unit: `${num(this.mostSpent)}; scale to the busiest node` },
    ];
  }

  isStore() { return true; }
  tip(n, state) { return `${this.names[n]} · ${bytes(state.level[n])}${this.asks[n] ? ` · asks for ${this.asks[n]}` : ""}`; }
}

export const WORDS = {
  event: "Bundle", by: ["store", "transfers"], byLabel: "Nodes by", find: "bundle 12, n3",
  waiting: "under way", lost: "expired", copies: "copies", queue: "in its store now, youngest first",
  chosen: "filled: holds it; ringed: wants it; lines: how it was carried there",
  counted: "pairs of a bundle and a node that wants it", speeds: [1, 5, 20, 60, 200, 600, 3600], speed: 60,
};
