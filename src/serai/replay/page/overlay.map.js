import { Canvas, mix } from "./map.js";

/* Links faint, the tree of a chosen root strong, load as the size of a dot; messages run along the links. */
const FADE_HOPS = 40, NOTIFICATION = 1;

export class RunMap extends Canvas {
  ground(g) {
    const { c } = this.m;
    this.locate(0);
    g.strokeStyle = mix(this.inks.soft, this.m.count > 800 ? .16 : .3);
    g.lineWidth = .7;
    g.beginPath();
    for (let i = 0; i < c.graphA.length; i++) this.edge(g, c.graphA[i], c.graphB[i]);
    g.stroke();
    const tree = this.m.roots.indexOf(this.pick?.node);
    if (tree < 0) return;
    g.strokeStyle = mix(this.inks.pick, .7);
    g.lineWidth = 1.6;
    g.beginPath();
    for (let n = 0; n < this.m.count; n++) if (this.m.parentIn(tree, n) >= 0) this.edge(g, n, this.m.parentIn(tree, n));
    g.stroke();
  }

  edge(g, a, b) {
    g.moveTo(this.at[2 * a], this.at[2 * a + 1]);
    g.lineTo(this.at[2 * b], this.at[2 * b + 1]);
  }

  draw(...all) {
    if (this.rooted !== this.pick?.node) {
      this.rooted = this.pick?.node;
      this.sheet = null;
    }
    super.draw(...all);
  }

  paint(g, t, state, life, speed, playing) {
    const { m, at, inks } = this, top = this.by === "load" ? m.mostSpent : m.mostLevel, value = this.by === "load" ? state.spent : state.level;
    if (!life) this.flow(g, t, speed, playing, (r) => (m.c.flags[r] & 3) === NOTIFICATION, (r) => m.isQuery(r));
    const least = Math.max(1, this.r * .45);
    g.globalAlpha = life ? .35 : 1;
    for (let n = 0; n < m.count; n++) {
      g.fillStyle = this.shade(value[n] / top);
      g.beginPath();
      g.arc(at[2 * n], at[2 * n + 1], least + Math.sqrt(value[n] / top) * this.r * 1.8, 0, 2 * Math.PI);
      g.fill();
    }
    g.globalAlpha = 1;
    for (const root of m.roots) {
      g.strokeStyle = inks.ink;
      g.lineWidth = 1.6;
      g.strokeRect(at[2 * root] - this.r - 3, at[2 * root + 1] - this.r - 3, 2 * this.r + 6, 2 * this.r + 6);
    }
    if (life) {
      this.way(g, t, life, (r) => m.isQuery(r), FADE_HOPS);
      if (this.pick.event < m.events) {
        const got = new Set(life.got.map((d) => d.node));
        for (const q of m.wanting(this.pick.event)) this.ring(g, m.nodeOf(q), this.r + 4, got.has(q) ? inks.delivered : inks.waiting, 2.5);
      }
    }
    if (this.pick?.node !== undefined) this.ring(g, this.pick.node, this.r + 7, inks.pick, 2.5);
  }

  legend() {
    const top = this.by === "load" ? "most messages sent" : "most queries stored";
    return `<span>0 <i class="ramp" style="background:linear-gradient(90deg,${this.ramp.join()})"></i> ${top}, by square root</span>` +
      "<span>▢ root: choose it to see its tree</span><span>amber: queries; blue: notifications</span>";
  }
}
