import { below } from "./data.js";
import { Canvas, mix } from "./map.js";

/* Nodes move, contacts are lines, thicker while bytes flow; the arc around a node says how full its store is. */

export class RunMap extends Canvas {
  /* Where no places are known: who met whom, the more often the stronger. */
  ground(g) {
    const { m } = this, { c } = m;
    if (!m.laidOut) return;
    const times = new Map();
    for (let i = 0; i < c.contactA.length; i++) {
      const pair = c.contactA[i] * m.count + c.contactB[i];
      times.set(pair, (times.get(pair) || 0) + 1);
    }
    const most = [...times.values()].reduce((v, w) => Math.max(v, w), 1);
    const faint = Math.min(1, Math.max(.25, 4 * m.count / times.size));   // where nearly all have met, lines would hide the rest
    this.locate(0);
    for (const [pair, n] of times) {
      g.strokeStyle = mix(this.inks.soft, faint * (.1 + .25 * n / most));
      g.lineWidth = .6 + 2 * n / most;
      g.beginPath();
      this.line(g, Math.floor(pair / m.count), pair % m.count);
      g.stroke();
    }
  }

  paint(g, t, state, life, speed, playing) {
    const { m, at, inks } = this, full = m.capacity || m.mostLevel;
    this.meetings(g, t, life ? .25 : 1);
    if (!life) this.flow(g, t, speed, playing, (r) => m.firstRow[r], (r) => m.c.outcome[r] > 0);
    const colour = this.by === "store" ? (n) => this.shade(state.level[n] / full) : (n) => this.shade(state.spent[n] / m.mostSpent);
    this.dots(g, m.count, colour, life);
    if (!life) this.gauges(g, m.count, (n) => state.level[n] / full);
    if (life) {
      this.way(g, life);
      const got = new Set(life.got.map((d) => d.node));
      for (const n of m.wanting(this.pick.event)) {
        this.ring(g, n, this.r + 4, got.has(n) ? inks.delivered : inks.waiting, 2.5);
        if (!got.has(n)) continue;
        g.fillStyle = inks.delivered;
        g.beginPath();
        g.arc(at[2 * n], at[2 * n + 1], this.r, 0, 2 * Math.PI);
        g.fill();
      }
    } else this.rings(g, t, speed);
    if (this.pick?.node !== undefined) this.ring(g, this.pick.node, this.r + 7, inks.pick, 2.5);
    if (m.count <= 60 && this.r > 3) this.names(g);
  }

  line(g, a, b) {
    g.moveTo(this.at[2 * a], this.at[2 * a + 1]);
    g.lineTo(this.at[2 * b], this.at[2 * b + 1]);
  }

  meetings(g, t, strength) {
    const { m, inks } = this, { c } = m;
    const now = m.contactsAt(t), busy = m.underWay(t), draw = (rows, ends, colour, width) => {
      g.strokeStyle = colour;
      g.lineWidth = width;
      g.beginPath();
      for (const row of rows) this.line(g, ...ends(row));
      g.stroke();
    };
    const met = (i) => [c.contactA[i], c.contactB[i]], sent = (r) => [m.from(r), m.to(r)];
    g.lineCap = "round";
    const around = m.laidOut ? 3 : 2 * this.r + 12;   // who meets may stand closer than a line can be seen
    draw(now, met, mix(inks.soft, .35 * strength), around);
    draw(busy, sent, mix(inks.delivered, .5 * strength), around);
  }

  /* How a bundle came to those who wanted it: the ways of its carriers, from hand to hand, and where it changed hands. Where
     no places are known, nobody goes anywhere: lines from hand to hand. */
  way(g, life) {
    const { m, inks } = this, birth = m.birthNode(this.pick.event), came = new Map(), drawn = new Set();
    for (const [s, from, to, , r] of life.hops) if (!m.c.outcome[r] && !came.has(to)) came.set(to, [s, from]);
    const leg = (n, from, since, until) => {
      const name = m.laidOut ? n : `${n} ${until}`;
      if (drawn.has(name)) return;
      drawn.add(name);
      if (!m.laidOut) this.track(g, n, since, until);
      else if (n !== birth) this.line(g, from, n);
    };
    if (!m.laidOut) this.handOvers(g, life);
    g.strokeStyle = mix(inks.delivered, .8);
    g.lineWidth = 1.8;
    g.lineCap = "round";
    g.beginPath();
    for (const { node, time } of life.got) {
      let n = node, until = time;
      while (n !== birth && came.has(n)) {
        const [since, from] = came.get(n);
        if (m.laidOut || n !== node) leg(n, from, since, until);   // who got it carried it nowhere for this
        [n, until] = [from, since];
      }
      if (n === birth) leg(n, birth, life.born, until);
    }
    g.stroke();
    this.held(g, life);
  }

  handOvers(g, life) {
    const { m } = this;
    g.fillStyle = mix(this.inks.delivered, .55);
    for (const [s, from, to] of life.hops) {
      const [x, y] = m.place(from, s), [u, v] = m.place(to, s);
      g.fillRect(this.X((x + u) / 2) - 1.5, this.Y((y + v) / 2) - 1.5, 3, 3);
    }
  }

  track(g, n, since, until) {
    const steps = Math.max(2, Math.min(60, Math.ceil((until - since) / 20)));
    for (let i = 0; i <= steps; i++) {
      const [x, y] = this.m.place(n, since + (until - since) * i / steps);
      if (i) g.lineTo(this.X(x), this.Y(y)); else g.moveTo(this.X(x), this.Y(y));
    }
  }

  rings(g, t, speed) {
    if (this.calm) return;
    const d = this.m.deliveries, window = Math.max(2, .5 * speed);
    for (let i = below(d.time, t - window), k = 0; i < d.time.length && d.time[i] <= t && k < 400; i++, k++) {
      const f = (t - d.time[i]) / window;
      this.ring(g, d.node[i], this.r + 4 + 13 * f, mix(this.inks.delivered, .5 * (1 - f)), 2);
    }
  }

  names(g) {
    g.font = "10px system-ui";
    g.textBaseline = "middle";
    g.fillStyle = this.inks.soft;
    for (let n = 0; n < this.m.count; n++) {
      const x = this.at[2 * n], name = this.m.names[n], left = x + this.r + 8 + g.measureText(name).width > this.w;
      g.textAlign = left ? "right" : "left";
      if (x >= 0) g.fillText(name, left ? x - this.r - 6 : x + this.r + 6, this.at[2 * n + 1]);
    }
  }

  legend() {
    const { m } = this, top = this.by === "store" ? (m.capacity ? "full" : "the fullest") : "the busiest";
    return `<span>0 <i class="ramp" style="background:linear-gradient(90deg,${this.ramp.join()})"></i> ${top}, by square root</span>` +
      "<span>grey between two: contact; blue: bytes flow</span><span>◔ store</span>";
  }
}
