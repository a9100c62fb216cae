import { brief, escaped, Groups, num } from "./data.js";
import { Model, STORED } from "./model.js";

/* An overlay: queries go to their rendezvous nodes, then events, and notifications back. Time is the number of hops; a
   level is queries that a node stores, and what it spends is messages that it sends. Behind the events stand the queries. */
const QUERY = 2, MOST_KEYS = 10;

export class RunModel extends Model {
  prepare() {
    const { c } = this;
    c.bornAt = new Float64Array(this.events).fill(this.published);
    c.dropAt = new Float64Array(c.dropNode.length).fill(this.end);
    c.dropFor = c.dropHeld = new Uint8Array(c.dropNode.length);
    this.deliveries = { time: c.gotAt, event: c.gotEvent, node: c.gotBy, from: Array.from(c.gotEvent, () => -1) };
    this.deliveredTo = new Map(Array.from(c.gotEvent, (e, i) => [`${e} ${c.gotBy[i]}`, i]));
    this.phases = [[0, "queries go out"], [this.published, "events are published"]];
  }

  get ids() { return this.events + this.where.length; }
  get standing() { return this.count; }
  get wanters() { return this.where.length; }
  nodeOf(q) { return this.c.asker[q]; }
  nameOf(q) { return `q${q}`; }
  weight(id) { return id < this.events ? 0 : 1; }
  pay(spent, r, flags, link) { if (this.c.linkFrom[link] !== this.c.linkTo[link]) spent[this.c.linkFrom[link]]++; }
  expiry() { return Infinity; }
  place(n) { return [this.c.x[n], this.c.y[n]]; }
  birthNode(id) { return id < this.events ? this.c.birthNode[id] : this.c.asker[id - this.events]; }
  moment(t) { return t < this.published ? `hop ${Math.floor(t)}` : `hop ${Math.floor(t - this.published)}`; }
  reason(name, node) {
    return {
      never_met: `no tree took it at ${node}`, not_sent: "the query was not stored where it arrived", stranded: "it found no rendezvous",
    }[name];
  }
  parentIn(tree, n) { return this.c.parent[tree * this.count + n] - 1; }

  life(id, t = Infinity) {
    if (id < this.events) return super.life(id, t);
    const rows = [...this.rowsOfEvent.of(id)].filter((r) => this.c.rowAt[r] <= t), stored = rows.filter((r) => this.c.flags[r] & STORED);
    return {
      hops: rows.map((r) => [this.c.rowAt[r], this.from(r), this.to(r), this.c.flags[r], r]), holders: new Map(stored.map((r) => [this.to(r), 1])),
      steps: [], held: stored.length, got: [], born: 0, until: this.end,
    };
  }

  kicker() {
    return `${num(this.count)} nodes · ${this.roots.length} ${this.roots.length === 1 ? "tree" : "trees"} · ${num(this.wanters)} queries · ${num(this.events)} events · ` +
      `${num(this.c.link.length)} messages`;
  }

  story(t) {
    const s = this.sums(t);
    if (t < this.published) {
      const stored = this.state(t).level.reduce((sum, v) => sum + v, 0);
      return `After <b>${Math.floor(t)} hops</b>, ${num(this.wanters)} queries are stored <b class="delivered">${num(stored)}</b> times, at their rendezvous nodes; ` +
        `<b id="delivered">0</b> of <b id="wanted">${num(s.wanted)}</b> notifications yet.`;
    }
    return `<b>${Math.floor(t - this.published)} hops</b> after all events were published, <b class="delivered" id="delivered">${num(s.delivered)}</b> of the ` +
      `<b id="wanted">${num(s.wanted)}</b> notifications have reached their subscribers; <b class="waiting" id="waiting">${num(s.waiting)}</b> are on their way` +
      (s.lost ? `, <b id="lost">${num(s.lost)}</b> ${s.lost === 1 ? "was" : "were"} lost.` : `<span id="lost" hidden>0</span>.`);
  }

  eventTitle(id) { return id < this.events ? `Event ${id}` : `Query ${id - this.events}`; }

  eventLine(id, life) {
    if (id >= this.events) {
      const q = id - this.events;
      return `asked at <b>${escaped(this.names[this.c.asker[q]])}</b>: ${escaped(brief(this.where[q]))} · <b>${num(life.hops.length)}</b> messages so far, ` +
        `stored <b id="held">${num(life.held)}</b> times`;
    }
    return `published at <b>${escaped(this.names[this.c.birthNode[id]])}</b> · ${this.valuesOf(id)}${this.c.eventKey && this.bits <= 53 ? ` · key ${this.key(this.c.eventKey[id], this.bits)}` : ""} · <b>${num(life.hops.length)}</b> messages so far, told to <b>${num(life.got.length)}</b>`;
  }

  nodeTitle(n) {
    const tree = this.roots.indexOf(n);
    return tree < 0 ? `Node ${this.names[n]}` : `Node ${this.names[n]}, root of tree ${tree}`;
  }

  /* The first bits of a key; beyond 53 of them a number would not hold them. */
  key(head, length) { return this.bits > 53 ? "" : head.toString(2).padStart(this.bits, "0").slice(0, length); }

  keysOf(n) {
    const { c } = this;
    if (!c.keyNode) return "";
    this.keyRows ||= new Groups(c.keyNode, this.count);
    const rows = [...this.keyRows.of(n)].filter((r) => this.key(c.keyHead[r], c.keyLength[r])).slice(0, MOST_KEYS);
    return rows.map((r) => `<br>tree ${c.keyTree[r]}: key <b>${this.key(c.keyHead[r], c.keyLength[r])}</b>${c.keyLength[r] > this.bits ? "…" : ""}, ` +
      `${c.keyDepth[r]} ${c.keyDepth[r] === 1 ? "hop" : "hops"} from its root`).join("");
  }

  nodeLine(n, t, state) {
    return `stores <b id="level">${num(state.level[n])}</b> queries · has sent <b id="spent">${num(state.spent[n])}</b> messages${this.keysOf(n)}`;
  }

  nodeCharts(n) {
    const s = this.series(n);
    return [{ label: "messages sent", times: s.times, values: s.spent, top: this.mostSpent, unit: `${num(this.mostSpent)}; scale to the busiest node` }];
  }

  isStore() { return true; }
  holds(n, t) { return new Map([...super.holds(n, t)].filter(([id]) => id >= this.events)); }
  chip(id) { return id < this.events ? id : `q${id - this.events}`; }
  tip(n, state) { return `${this.names[n]} · ${num(state.spent[n])} messages · ${num(state.level[n])} queries`; }
  isQuery(r) { return (this.c.flags[r] & 3) === QUERY; }

  find(text) {
    const query = /^(?:query|q)\s*(\d+)$/i.exec(text.trim());
    if (query && !this.names.includes(text.trim())) return +query[1] < this.wanters ? { event: this.events + +query[1] } : null;
    return super.find(text);
  }
}

export const WORDS = {
  event: "Event", by: ["load", "queries"], byLabel: "Nodes by", find: "event 12, q3, s17",
  waiting: "not yet told", lost: "lost", copies: "", queue: "queries stored here", counted: "pairs of an event and a query that it matches",
  chosen: "lines: its messages; ringed: who asked", speeds: [0.5, 1, 2, 5], speed: 1,
};
