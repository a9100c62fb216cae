import { below, clock, escaped, Groups, num, seconds, upTo } from "./data.js";

/* A run as a function of time. Three streams of changes, each in order of time: births, transfers (rows) and drops.
   Time t means: after everything that happened up to t. Nothing here knows of the page, and nothing but the log comes in;
   levels (copies in a queue, bytes in a store), what was spent and who has what are worked out again from it.

   A kind of network says: what an event weighs (`weight`), what a row costs whom (`pay`), where a node is (`place`). */
export const STORED = 4, REFUSED = 8, MOVED = 16;
const KEPT = 4e6;   // numbers of keyframes, at most

export class Model {
  constructor(head, columns) {
    Object.assign(this, head);
    this.c = columns;
    this.events = columns.birthNode.length;
    this.count = head.names.length;
    this.prepare();
    const { c } = this;
    this.from = (r) => c.linkFrom[c.link[r]];
    this.to = (r) => c.linkTo[c.link[r]];
    this.rowsOfLink = new Groups(c.link, c.linkFrom.length);
    this.rowsOfEvent = new Groups(c.event, this.ids);
    this.dropsOfEvent = new Groups(c.dropEvent, this.events);
    this.dropsOfNode = new Groups(c.dropNode, this.count);
    this.birthsOf = new Groups(c.birthNode, this.count);
    this.unheld = new Set(c.unborn);   // events whose first copy met a full queue, or that were never born
    for (let e = this.events - 1; e >= 0 && c.bornAt[e] > this.lastMoment; e--) this.unheld.add(e);
    for (let r = 0; r < c.dropNode.length; r++) {
      const e = c.dropEvent[r];
      if (!c.dropHeld[r] && this.isBirth(r)) this.unheld.add(e);
    }
    if (this.thin) this.keptEvents = new Set(c.keptEvent);
    this.step = Math.max(this.end / 512, Math.ceil(this.end * this.count / KEPT));
    this.play();
    this.fates();
  }

  /* Something of what only a choice needs; whether there is nothing left to do. */
  prepareChoices() { return this.rowsOfLink.go() && this.rowsOfEvent.go() && this.dropsOfEvent.go() && this.dropsOfNode.go(); }

  /* A drop at the place and the moment of birth, of no copy on its way. */
  isBirth(r) {
    const { c } = this, e = c.dropEvent[r];
    return c.dropNode[r] === c.birthNode[e] && c.dropFor[r] === 0 && c.dropAt[r] === c.bornAt[e];
  }

  weight() { return 1; }
  pay() {}
  get ids() { return this.events; }
  get lastMoment() { return this.end; }
  get standing() { return 0; }   // nodes before this one never move

  /* Who wants: nodes from `firstWanting` on. In an overlay it is subscriptions, and `nodeOf` says where they are. */
  get wanters() { return this.count; }
  get firstWanting() { return 0; }
  nodeOf(who) { return who; }
  nameOf(who) { return this.names[who]; }

  wants(e, who) {
    const k = who - this.firstWanting;
    return k < 0 ? 0 : (this.c.wants[e * this.wantBytes + (k >> 3)] >> (k & 7)) & 1;
  }

  wanting(e) {
    const all = [];
    for (let who = this.firstWanting; who < this.wanters; who++) if (this.wants(e, who)) all.push(who);
    return all;
  }

  get wantBytes() { return this.events ? this.c.wants.length / this.events : 0; }

  /* Rows from..to (exclusive) of each stream, applied to the levels. */
  apply(out, births, rows, drops) {
    const { c } = this, level = out.level;
    for (let e = births[0]; e < births[1]; e++) if (!this.unheld.has(e)) level[c.birthNode[e]] += this.weight(e);
    for (let r = drops[0]; r < drops[1]; r++) if (c.dropHeld[r]) level[c.dropNode[r]] -= this.weight(c.dropEvent[r]);
    for (let r = rows[0]; r < rows[1]; r++) {
      const flags = c.flags[r], link = c.link[r];
      if (flags & STORED) level[c.linkTo[link]] += this.weight(c.event[r]);
      if (flags & MOVED) level[c.linkFrom[link]] -= this.weight(c.event[r]);
      this.pay(out.spent, r, flags, link);
    }
  }

  blank() { return { level: new Float64Array(this.count), spent: new Float64Array(this.count), at: [0, 0, 0], t: -1 }; }

  /* Bring a state to time t, forwards only. */
  advance(out, t) {
    const { c } = this, [b, r, d] = out.at;
    const at = [upTo(c.bornAt, t, b), upTo(c.rowAt, t, r), upTo(c.dropAt, t, d)];
    this.apply(out, [b, at[0]], [r, at[1]], [d, at[2]]);
    out.at = at;
    out.t = t;
  }

  /* Once through the run: a keyframe every `step`. */
  play() {
    if (this.thin) return this.unpackKeys();
    const n = this.count, frames = Math.floor(this.end / this.step) + 1, out = this.blank();
    this.frames = { level: new Float64Array(frames * n), spent: new Float64Array(frames * n), at: [] };
    for (let k = 0; k < frames; k++) {
      this.advance(out, k * this.step);
      this.frames.level.set(out.level, k * n);
      this.frames.spent.set(out.spent, k * n);
      this.frames.at.push(out.at);
    }
    this.advance(out, this.end);
    this.last = out;
    this.scale();
  }

  scale() {
    this.mostSpent = this.mostLevel = 1;
    for (const v of this.last.spent) if (v > this.mostSpent) this.mostSpent = v;
    for (const v of this.frames.level) if (v > this.mostLevel) this.mostLevel = v;
  }

  /* A page that left rows out has its keyframes from who saw them all: what each node's values change between them. */
  unpackKeys() {
    const { c, count: n } = this, level = new Float64Array(c.keyLevel.length), spent = new Float64Array(c.keySpent.length);
    for (let i = 0; i < level.length; i++) {
      level[i] = (i < n ? 0 : level[i - n]) + ((c.keyLevel[i] >>> 1) ^ -(c.keyLevel[i] & 1));
      spent[i] = (i < n ? 0 : spent[i - n]) + c.keySpent[i];
    }
    this.step = this.thin.every;
    this.frames = { level, spent, at: Array.from(c.keyAt, (t) => [upTo(c.bornAt, t), upTo(c.rowAt, t), upTo(c.dropAt, t)]) };
    const end = c.keyAt.length - 1;
    this.last = { ...this.blank(), level: level.slice(end * n), spent: spent.slice(end * n) };
    this.scale();
    this.minutes = new Uint32Array(c.sumLinks.length + 1);
    for (let i = 0; i < c.sumLinks.length; i++) this.minutes[i + 1] = this.minutes[i] + c.sumLinks[i];
  }

  /* Whether every row of the moment is in the page, and all of an event's. */
  isWhole(t) { return !this.thin || (t >= this.thin.begin_s && t <= this.thin.end_s); }
  isKept(e) { return !this.thin || e >= this.events || this.keptEvents.has(e); }

  /* The state at t: what `out` was before, or the last keyframe, and what has happened since. */
  state(t, out = this.blank()) {
    t = Math.min(Math.max(t, 0), this.end);
    const k = t === this.end ? this.frames.at.length - 1 : Math.floor(t / this.step), n = this.count, whole = this.isWhole(t);
    if (!whole || !this.isWhole(out.t) || out.t > t || out.t < k * this.step) {
      out.level.set(this.frames.level.subarray(k * n, (k + 1) * n));
      out.spent.set(this.frames.spent.subarray(k * n, (k + 1) * n));
      out.at = this.frames.at[k];
      out.t = t;
    }
    if (whole) this.advance(out, t);
    return out;
  }

  /* When each wanted pair was delivered, and when each lost one grew too old: sorted times, so that sums are a search. */
  fates() {
    const { c } = this, got = this.deliveries, born = [0], lost = [];
    this.wantedOf = new Uint32Array(this.events);
    const has = new Uint32Array(this.events), { wantBytes } = this;
    for (let e = 0; e < this.events; e++) {
      for (let b = e * wantBytes; b < (e + 1) * wantBytes; b++) {
        for (let v = c.wants[b]; v; v &= v - 1) this.wantedOf[e]++;
      }
      born.push(born[e] + this.wantedOf[e]);
    }
    const wanted = got.event.map((e, i) => this.wants(e, got.node[i]));
    this.deliveredAt = c.deliveredRows ? seconds(c.deliveredRows) : Float64Array.from(got.time.filter((_, i) => wanted[i]));
    for (let i = 0; i < got.event.length; i++) has[got.event[i]] += wanted[i];
    for (let e = 0; e < this.events; e++) {
      const expiry = this.expiry(e);
      if (expiry <= this.lastMoment) for (let k = has[e]; k < this.wantedOf[e]; k++) lost.push(expiry);
    }
    if (this.hops) for (const _ of c.lostEvent) lost.push(this.end);   // nothing grows old: at the end it is known
    this.wantedBefore = born;
    this.lostAt = c.lostRows ? seconds(c.lostRows) : Float64Array.from(lost).sort();
    this.lostWhy = new Map();
    for (let i = 0; i < (c.lostEvent?.length ?? 0); i++) this.lostWhy.set(c.lostEvent[i] * this.wanters + c.lostNode[i], i);
  }

  /* Why a pair was lost, in the words of its kind of network. */
  why(e, who) {
    const i = this.lostWhy.get(e * this.wanters + who), { c } = this;
    if (i === undefined) return this.isKept(e) ? "not yet" : "not in this page";
    return `never: ${this.reason(this.lost[c.lostWhy[i]], this.names[c.lostAt[i]], clock(c.lostMs[i] / 1000))}`;
  }

  sums(t) {
    const wanted = this.wantedBefore[upTo(this.c.bornAt, t)];
    const delivered = upTo(this.deliveredAt, t), lost = upTo(this.lostAt, t);
    return { wanted, delivered, lost, waiting: wanted - delivered - lost };
  }

  /* The life of one event up to t: every hop, where copies lie, how many there are from each time on, who has it. */
  life(e, t = Infinity) {
    const { c } = this, holders = new Map(), hops = [], steps = [], acts = [];
    let held = 0;
    const put = (n, d, at) => {
      holders.set(n, (holders.get(n) || 0) + d);
      held += d;
      if (steps.length && steps[steps.length - 1][0] === at) steps[steps.length - 1][1] = held;
      else steps.push([at, held]);
    };
    if (!this.unheld.has(e)) acts.push([c.bornAt[e], -1, 0]);
    for (const r of this.rowsOfEvent.of(e)) acts.push([c.rowAt[r], r + 0.5, 1]);
    for (const r of this.dropsOfEvent.of(e)) if (c.dropHeld[r]) acts.push([c.dropAt[r], 0, 2, r]);
    acts.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    for (const [at, order, what, drop] of acts) {
      if (at > t) break;
      if (what === 0) put(c.birthNode[e], 1, at);
      else if (what === 2) put(c.dropNode[drop], -1, at);
      else {
        const r = order - 0.5, flags = c.flags[r];
        hops.push([at, this.from(r), this.to(r), flags, r]);
        if (flags & MOVED) put(this.from(r), -1, at);
        if (flags & STORED) put(this.to(r), 1, at);
      }
    }
    const got = this.deliveriesOf(e).filter((d) => d.time <= t);
    return { hops, holders, steps, held, got, born: this.birthTime(e), until: Math.min(this.end, this.expiry(e)) };
  }

  deliveriesOf(e) {
    this.byEvent ||= new Groups(this.deliveries.event, this.events);
    const d = this.deliveries;
    return [...this.byEvent.of(e)].map((i) => ({ time: d.time[i], node: d.node[i], from: d.from[i], row: d.row?.[i] }));
  }

  /* What a page that left rows out says of it, of an event and of a node. */
  leftOut(e) {
    const { begin_s: begin, end_s: end, one_in: k, rows, kept } = this.thin;
    if (e !== undefined) {
      return `Event ${e} is not among the 1 in ${k} whose whole life is in this page; only what happened from ${clock(begin)} to ${clock(end)} is shown. ` +
        `“serai replay --events ${e}” keeps it.`;
    }
    return `${num(kept)} of ${num(rows)} transfers are in this page: all from ${clock(begin)} to ${clock(end)}, and the whole life of 1 event in ${k}. ` +
      `Elsewhere links glow by the minute; what nodes hold and have spent is as of the last full ${this.thin.every === 60 ? "minute" : `${this.thin.every} s`}. ` +
      "The sentence and the strip count everything.";
  }

  /* What an event says: its values, as many decimals as tell them apart. */
  valuesOf(e) {
    return this.attributes.map((name, i) => {
      const [first, decimals, missing] = this.steps[i], step = this.c.values[e * this.steps.length + i];
      if (step === missing) return `${escaped(name)} unknown`;
      const value = (first + step) / 10 ** decimals;
      if (Object.hasOwn(this.texts, name)) return `${escaped(name)} ${escaped(this.texts[name][value])}`;
      return `${escaped(name)} ${value.toFixed(Math.max(0, decimals))}`;
    }).join(", ");
  }

  birthTime(e) { return this.c.bornAt[e]; }
  birthNode(e) { return this.c.birthNode[e]; }

  /* How many copies of which event lie at a node at t. */
  holds(n, t) {
    const { c } = this, held = new Map();
    const add = (e, d) => {
      const v = (held.get(e) || 0) + d;
      if (v) held.set(e, v); else held.delete(e);
    };
    for (const e of this.birthsOf.of(n)) if (c.bornAt[e] <= t && !this.unheld.has(e)) add(e, 1);
    for (const link of this.linksOf(n)) {
      const mine = c.linkFrom[link] === n ? MOVED : STORED, sign = mine === MOVED ? -1 : 1;
      for (const r of this.rowsOfLink.of(link)) {
        if (c.rowAt[r] > t) break;
        if (c.flags[r] & mine) add(c.event[r], sign);
      }
    }
    for (const r of this.dropsOfNode.of(n)) if (c.dropAt[r] <= t && c.dropHeld[r]) add(c.dropEvent[r], -1);
    return held;
  }

  linksOf(n) {
    this.outward ||= new Groups(this.c.linkFrom, this.count);
    this.inward ||= new Groups(this.c.linkTo, this.count);
    return [...this.outward.of(n), ...this.inward.of(n)];
  }

  /* Level and spending of a node at every keyframe, and at the end. */
  series(n) {
    const { level, spent, at } = this.frames, times = at.map((_, k) => Math.min(k * this.step, this.end));
    const pick = (all, last) => [...times.map((_, k) => all[k * this.count + n]), last[n]];
    return { times: [...times, this.end], level: pick(level, this.last.level), spent: pick(spent, this.last.spent) };
  }

  /* The first delivery after t (or the last one before it) that somebody wanted. */
  nextDelivery(t, forwards) {
    const { time, event, node } = this.deliveries;
    for (let i = forwards ? upTo(time, t) : below(time, t) - 1; i >= 0 && i < time.length; i += forwards ? 1 : -1) {
      if (this.wants(event[i], node[i])) return { time: time[i], event: event[i], node: node[i] };
    }
    return null;
  }

  find(text) {
    const word = text.trim(), named = this.names.indexOf(word);
    if (named >= 0) return { node: named };
    const event = /^(?:event|bundle|e|#)?\s*(\d+)$/i.exec(word);
    return event && +event[1] < this.events ? { event: +event[1] } : null;
  }
}
