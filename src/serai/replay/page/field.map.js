import { below } from "./data.js";
import { Canvas, mix } from "./map.js";

/* A field: sensors on ground tinted by community, and subscribers as numbered squares with what they reach: cells, or a circle. */
const RETURN = 2, FADE_S = 240, TRAIL_S = 60;

export class RunMap extends Canvas {
  /* Communities by size; more than there are colours: near ones never look alike. */
  groups() {
    const { m } = this, size = new Map();
    for (const g of m.c.community) size.set(g, (size.get(g) || 0) + 1);
    this.sizes = [...size].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    this.hueOf = new Map();
    const centre = new Map();
    for (let n = 0; n < m.sensors; n++) {
      const at = centre.get(m.c.community[n]) || [0, 0, 0];
      centre.set(m.c.community[n], [at[0] + m.c.x[n], at[1] + m.c.y[n], at[2] + 1]);
    }
    const apart = ([x, y, k], [u, v, l]) => (x / k - u / l) ** 2 + (y / k - v / l) ** 2, bearers = this.hues.map(() => []);
    let rank = 0;
    for (const [g, k] of this.sizes) {
      if (k === 1) continue;
      let hue = rank++;
      if (hue >= this.hues.length) {   // the colour whose nearest bearer is farthest away
        const nearest = bearers.map((others) => others.reduce((least, other) => Math.min(least, apart(centre.get(g), other)), Infinity));
        hue = nearest.indexOf(Math.max(...nearest));
      }
      bearers[hue].push(centre.get(g));
      this.hueOf.set(g, hue);
    }
  }

  hue(g) {
    if (!this.hueOf) this.groups();
    return this.hueOf.has(g) ? this.hues[this.hueOf.get(g)] : this.alone;
  }

  ground(g) {
    this.colours = Array.from(this.m.c.community, (group) => this.hue(group));
    const { m } = this, { linkFrom, linkTo } = m.c, links = [];
    if (m.cells) this.cells(g);
    else this.circles(g);
    this.locate(0);
    for (let l = 0; l < linkFrom.length; l++) if (linkFrom[l] < linkTo[l] && linkTo[l] < m.sensors) links.push(l);
    this.lines(g, links, mix(this.inks.soft, m.sensors > 4000 ? .12 : .3), .7);
  }

  tint(n) { return mix(this.hue(this.m.c.community[n]), this.by === "community" ? (this.dark ? .2 : .16) : .07); }

  /* Sensors in cells of one patch hear of each other. */
  cells(g) {
    const { m } = this, [columns, rows] = m.cells, w = m.width / columns * this.s, h = m.height / rows * this.s, seen = new Set();
    for (let n = 0; n < m.sensors; n++) {
      const cell = m.c.cell[n];
      if (seen.has(cell)) continue;
      seen.add(cell);
      g.fillStyle = this.tint(n);
      g.fillRect(this.X(0) + (cell % columns) * w, this.Y(0) - (Math.floor(cell / columns) + 1) * h, w + .4, h + .4);
    }
    if (w > 5) {
      g.strokeStyle = this.inks.grid;
      g.lineWidth = 1;
      g.beginPath();
      for (let i = 0; i <= columns; i++) { g.moveTo(this.X(0) + i * w, this.Y(0)); g.lineTo(this.X(0) + i * w, this.Y(m.height)); }
      for (let j = 0; j <= rows; j++) { g.moveTo(this.X(0), this.Y(0) - j * h); g.lineTo(this.X(m.width), this.Y(0) - j * h); }
      g.stroke();
    }
  }

  /* Half a range around each sensor: those whose circles touch hear each other, if their ranges are alike. */
  circles(g) {
    const { m } = this, patches = new Map();
    for (let n = 0; n < m.sensors; n++) {
      const colour = this.tint(n), patch = patches.get(colour) || patches.set(colour, new Path2D()).get(colour);
      const x = this.X(m.c.x[n]), y = this.Y(m.c.y[n]), r = m.c.range[n] / 2 * this.s;
      patch.moveTo(x + r, y);
      patch.arc(x, y, r, 0, 2 * Math.PI);
    }
    for (const [colour, patch] of patches) {
      g.fillStyle = colour;
      g.fill(patch);
    }
  }

  paint(g, t, state, life, speed, playing) {
    const { m } = this;
    this.reach(g, t);
    if (!life) {
      this.flow(g, t, speed, playing, (r) => m.firstRow[r] && m.wants(m.c.event[r], m.to(r)), (r) => (m.c.flags[r] & 3) >= RETURN);
    }
    const colour = this.by === "community" ? (n) => this.colours[n]
      : this.by === "queue" ? (n) => this.shade(state.level[n] / m.capacityOf(n)) : (n) => this.shade(state.spent[n] / m.mostSpent);
    this.dots(g, m.sensors, colour, life, (n) => m.sizeOf(n) === 1);
    if (!life && this.r > 2.4) this.crowns(g, t);
    if (!life) this.gauges(g, m.sensors, (n) => state.level[n] / m.capacityOf(n));
    if (this.pick?.node < m.sensors) this.ring(g, this.pick.node, this.r + 6, this.inks.pick, 2.5);
    if (life) this.way(g, t, { ...life, hops: life.hops.filter((h) => h[1] < m.sensors && h[2] < m.sensors) }, (r) => (m.c.flags[r] & 3) >= RETURN, FADE_S);
    if (!life) this.rings(g, t);
    this.walkers(g, life);
  }

  /* Heads of communities have a light middle. */
  crowns(g, t) {
    g.fillStyle = this.inks.bg;
    for (const n of this.m.headsAt(t)) {
      if (this.m.sizeOf(n) === 1) continue;
      g.beginPath();
      g.arc(this.at[2 * n], this.at[2 * n + 1], this.r * .4, 0, 2 * Math.PI);
      g.fill();
    }
  }

  /* The cell of a subscriber and the eight around it, or a circle: there it is heard. */
  heardFrom(x, y) {
    const { m } = this, area = new Path2D();
    if (!m.cells) {
      area.arc(this.X(x), this.Y(y), m.range * this.s, 0, 2 * Math.PI);
      return area;
    }
    const [columns, rows] = m.cells, w = m.width / columns, h = m.height / rows;
    const column = Math.min(columns - 1, Math.floor(x / w)), row = Math.min(rows - 1, Math.floor(y / h));
    const x0 = Math.max(0, column - 1), x1 = Math.min(columns, column + 2), y0 = Math.max(0, row - 1), y1 = Math.min(rows, row + 2);
    area.roundRect(this.X(x0 * w), this.Y(y1 * h), (x1 - x0) * w * this.s, (y1 - y0) * h * this.s, 5);
    return area;
  }

  /* Where subscribers are heard, where they come from, and where they go. */
  reach(g, t) {
    const { m, inks } = this;
    if (m.count - m.sensors > 300) return;
    const few = m.count - m.sensors <= 30;
    for (let n = m.sensors; n < m.count; n++) {
      const [x, y, walks, last] = this.spots[n], picked = this.pick?.node === n;
      if (m.heard(n, walks)) {
        const area = this.heardFrom(x, y);
        g.fillStyle = mix(inks.ink, picked ? .12 : .055);
        g.strokeStyle = mix(inks.ink, picked ? .6 : .22);
        g.lineWidth = picked ? 1.5 : 1;
        g.fill(area);
        g.stroke(area);
      }
      g.lineCap = "round";
      const steps = few ? 12 : 4;
      let from = [x, y];
      for (let i = 1; i <= steps; i++) {
        const to = m.place(n, Math.max(0, t - i * TRAIL_S / steps));
        g.strokeStyle = mix(inks.ink, .6 * (1 - i / (steps + 1)));
        g.lineWidth = 2.4 - 1.5 * i / steps;
        g.beginPath();
        g.moveTo(this.X(from[0]), this.Y(from[1]));
        g.lineTo(this.X(to[0]), this.Y(to[1]));
        g.stroke();
        from = to;
      }
      const target = walks && (few || picked) && m.target(n, last);
      if (target) {
        g.setLineDash([2, 4]);
        g.strokeStyle = mix(inks.ink, .55);
        g.lineWidth = 1.1;
        g.beginPath();
        g.moveTo(this.X(x), this.Y(y));
        g.lineTo(this.X(target[0]), this.Y(target[1]));
        g.stroke();
        g.setLineDash([]);
      }
    }
  }

  /* A wanted event has come: a ring, for two seconds. */
  rings(g, t) {
    if (this.calm) return;
    const { m } = this, d = m.deliveries;
    for (let i = below(d.time, t - 2), k = 0; i < d.time.length && d.time[i] <= t && k < 400; i++, k++) {
      if (!m.wants(d.event[i], d.node[i])) continue;
      const f = (t - d.time[i]) / 2;
      if (f <= 1) this.ring(g, d.node[i], 11 + 13 * f, mix(this.inks.delivered, .5 * (1 - f)), 2);
    }
  }

  walkers(g, life) {
    const { m, inks, at } = this, many = m.count - m.sensors > 60, R = many ? 4 : this.w < 500 ? 8 : 9.5;
    const got = new Set(life?.got.map((d) => d.node));
    g.textAlign = "center";
    g.textBaseline = "middle";
    for (let n = m.sensors; n < m.count; n++) {
      const x = at[2 * n], y = at[2 * n + 1], heard = m.heard(n, this.spots[n][2]);
      const wants = life && m.wants(this.pick.event, n), has = wants && got.has(n);
      g.globalAlpha = life && !wants ? .3 : 1;
      g.beginPath();
      g.roundRect(x - R, y - R, 2 * R, 2 * R, 4);
      g.fillStyle = has ? inks.delivered : heard ? inks.ink : inks.bg;
      g.fill();
      g.lineWidth = 1.8;
      g.strokeStyle = wants ? (has ? inks.delivered : inks.waiting) : heard ? inks.bg : inks.ink;
      if (!heard) g.setLineDash([3, 2]);
      g.stroke();
      g.setLineDash([]);
      if (!many) {
        g.fillStyle = has || heard ? inks.bg : inks.ink;
        g.font = "600 11px system-ui";
        g.fillText(n - m.sensors, x, y + .5);
      }
      g.globalAlpha = 1;
      if (this.pick?.node === n) this.ring(g, n, R + 7, inks.pick, 2.5);
    }
  }

  legend() {
    const { m } = this, dot = (colour, text, kind = "") => `<span><i class="${kind}" style="background:${colour}"></i>${text}</span>`;
    if (this.by !== "community") {
      const top = this.by === "queue" ? (m.c.capacity ? "full" : `${m.queue} copies`) : `${(m.mostSpent / 1e12).toPrecision(3)} J`;
      return `<span>0 <i class="ramp" style="background:linear-gradient(90deg,${this.ramp.join()})"></i> ${top}, by square root</span>`;
    }
    if (!this.hueOf) this.groups();
    const alone = this.sizes.filter(([, k]) => k === 1).length, large = this.sizes.filter(([, k]) => k > 1);
    return large.slice(0, 8).map(([group, k]) => dot(this.hue(group), `community of ${k}`)).join("") +
      (large.length > 8 ? `<span>${large.length - 8} smaller</span>` : "") + (alone ? dot(this.alone, `${alone} alone`, "diamond") : "") +
      `<span>◔ queue${m.c.capacity ? "" : `, full at ${m.queue}`}</span>` + (m.c.headAt?.length ? "<span>◉ head of its community</span>" : "");
  }
}
