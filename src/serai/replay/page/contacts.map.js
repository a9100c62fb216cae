import { below } from "./data.js";
import { Canvas, mix } from "./map.js";

/* Nodes move, contacts are lines, thicker while bytes flow; the arc around a node says how full its store is. */
const FADE_S = 1800;

export class RunMap extends Canvas {
  ground() {}

  paint(g, t, state, life, speed, playing) {
    const { m, at, inks } = this, full = m.capacity || m.mostLevel;
    this.meetings(g, t);
    if (!life) this.flow(g, t, speed, playing, (r) => m.firstRow[r], (r) => m.c.outcome[r] > 0);
    const colour = this.by === "store" ? (n) => this.shade(state.level[n] / full) : (n) => this.shade(state.spent[n] / m.mostSpent);
    this.dots(g, m.count, colour, life);
    if (!life) this.gauges(g, m.count, (n) => state.level[n] / full);
    if (life) {
      this.way(g, t, life, (r) => m.c.outcome[r] > 0, FADE_S);
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

  meetings(g, t) {
    const { m, at, inks } = this, { c } = m, line = (a, b) => {
      g.moveTo(at[2 * a], at[2 * a + 1]);
      g.lineTo(at[2 * b], at[2 * b + 1]);
    };
    g.strokeStyle = mix(inks.soft, .55);
    g.lineWidth = 1.2;
    g.beginPath();
    for (const i of m.contactsAt(t)) line(c.contactA[i], c.contactB[i]);
    g.stroke();
    g.strokeStyle = mix(inks.ink, .7);
    g.lineWidth = 2.6;
    g.beginPath();
    for (const r of m.underWay(t)) line(m.from(r), m.to(r));
    g.stroke();
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
    g.textAlign = "left";
    g.textBaseline = "middle";
    g.fillStyle = this.inks.soft;
    for (let n = 0; n < this.m.count; n++) if (this.at[2 * n] >= 0) g.fillText(this.m.names[n], this.at[2 * n] + this.r + 6, this.at[2 * n + 1]);
  }

  legend() {
    const { m } = this, top = this.by === "store" ? (m.capacity ? "full" : "the fullest") : "the busiest";
    return `<span>0 <i class="ramp" style="background:linear-gradient(90deg,${this.ramp.join()})"></i> ${top}, by square root</span>` +
      "<span>— contact; thicker: bytes flow</span><span>◔ store</span>";
  }
}
