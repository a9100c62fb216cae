import { css, onPaper, sharpness } from "./charts.js";
import { upTo } from "./data.js";

/* A map on a canvas: what every kind of network shares. What does not move is drawn once, on a sheet behind.
   P. Tol's muted and light schemes for groups (the two largest far apart in hue for everyone), cividis for amounts. */
const MUTED = ["#332288", "#999933", "#882255", "#44AA99", "#DDCC77", "#AA4499", "#88CCEE", "#CC6677", "#117733"];
const LIGHT = ["#BBCC33", "#FFAABB", "#44BB99", "#EE8866", "#99DDFF", "#EEDD88", "#77AADD", "#AAAA00", "#DDDDDD"];
const CIVIDIS = ["#00224e", "#1f3a6d", "#48526d", "#666970", "#848279", "#a69d75", "#cbba69", "#fee838"];
const CIVIDIS_DARK = ["#465d96", "#5b6688", "#707380", "#848279", "#a69d75", "#cbba69", "#fee838"];   // all of them seen on a dark ground
const INKS = ["ink", "soft", "line", "grid", "field", "delivered", "waiting", "pick", "bg", "lost"];
const TURN = 2 * Math.PI, MOST_DOTS = 1600, MOST_LINES_DRAWN = 2500, FOLLOWED_S = 10, GLOW = [.13, .22, .34, .5];
export const mix = (hex, a) => hex + Math.round(a * 255).toString(16).padStart(2, "0");

export class Canvas {
  constructor(canvas, model, by) {
    this.canvas = canvas;
    this.m = model;
    this.by = by;
    this.view = { z: 1, x: 0, y: 0 };
    this.pick = null;
    this.dotsDrawn = 0;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.dress();
  }

  dress() {
    this.inks = Object.fromEntries(INKS.map((name) => [name, css(`--${name}`)]));
    this.dark = !onPaper() && matchMedia("(prefers-color-scheme: dark)").matches;
    this.hues = this.dark ? LIGHT : MUTED;
    this.alone = this.dark ? "#8b919c" : "#7b808a";
    this.ramp = this.dark ? CIVIDIS_DARK : [...CIVIDIS].reverse().slice(1);
    this.resize();
  }

  resize() {
    const box = this.canvas.parentElement.getBoundingClientRect(), d = this.dpr = sharpness();
    this.w = Math.max(1, box.width);   // a canvas without a pixel cannot be drawn from
    this.h = Math.max(1, box.height);
    this.canvas.width = this.w * d;
    this.canvas.height = this.h * d;
    this.sheet = null;
  }

  fit() {
    const pad = this.w < 500 ? 14 : 24, { m, view } = this;
    this.s = Math.max(1e-6, Math.min((this.w - 2 * pad) / m.width, (this.h - 2 * pad) / m.height)) * view.z;   // also without room
    this.ox = this.w / 2 - (m.width / 2 + view.x) * this.s;
    this.oy = this.h / 2 + (m.height / 2 + view.y) * this.s;
    this.r = Math.max(1.1, Math.min(6.5, .19 * this.s * Math.sqrt(m.width * m.height / this.m.count)));
  }

  X(x) { return this.ox + x * this.s; }
  Y(y) { return this.oy - y * this.s; }

  zoom(factor, px, py) {
    this.fit();
    const { view } = this, x = (px - this.ox) / this.s, y = (this.oy - py) / this.s;
    view.z = Math.min(60, Math.max(1, view.z * factor));
    this.fit();
    view.x += x - (px - this.ox) / this.s;
    view.y += y - (this.oy - py) / this.s;
    if (view.z === 1) view.x = view.y = 0;
    this.sheet = null;
  }

  backdrop() {
    this.fit();
    const sheet = this.sheet = document.createElement("canvas"), { m } = this;
    sheet.width = this.canvas.width;
    sheet.height = this.canvas.height;
    const g = sheet.getContext("2d");
    g.scale(this.dpr, this.dpr);
    g.fillStyle = this.inks.field;
    g.fillRect(0, 0, this.w, this.h);
    g.fillStyle = this.inks.bg;
    g.fillRect(this.X(0), this.Y(m.height), m.width * this.s, m.height * this.s);
    this.ground(g);
    if (!m.laidOut) this.scale(g);
  }

  scale(g) {
    const third = this.m.width / 3 / this.view.z, ten = 10 ** Math.floor(Math.log10(third)), bar = ten * ([5, 2].find((f) => ten * f < third) || 1);
    const end = this.w - 14, begin = end - bar * this.s, y = this.h - 12;
    g.strokeStyle = g.fillStyle = this.inks.soft;
    g.lineWidth = 1.5;
    g.beginPath();
    g.moveTo(begin, y - 3);
    g.lineTo(begin, y);
    g.lineTo(end, y);
    g.lineTo(end, y - 3);
    g.stroke();
    g.font = "11px system-ui";
    g.textAlign = "center";
    g.fillText(bar >= 1000 ? `${bar / 1000} km` : `${bar} m`, (begin + end) / 2, y - 5);
  }

  draw(t, state, life, speed, playing) {
    if (!this.sheet) this.backdrop();
    const g = this.canvas.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.drawImage(this.sheet, 0, 0);
    g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    this.t = t;
    this.locate(t);
    this.dotsDrawn = 0;
    this.oneOf = 1;
    this.paint(g, t, state, life, speed, playing);
  }

  /* Where every node is on the canvas, worked out once for each picture; those that stand only when the view changes. */
  locate(t) {
    const { m } = this;
    this.at ||= new Float32Array(2 * m.count);
    this.spots ||= [];
    for (let n = this.placed === this.sheet ? m.standing : 0; n < m.count; n++) {
      const spot = m.place(n, t);
      this.spots[n] = spot;
      this.at[2 * n] = this.X(spot[0]);
      this.at[2 * n + 1] = this.Y(spot[1]);
    }
    this.placed = this.sheet;
  }

  ring(g, n, radius, colour, width) {
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.beginPath();
    g.arc(this.at[2 * n], this.at[2 * n + 1], radius, 0, TURN);
    g.stroke();
  }

  shade(share) { return this.ramp[Math.min(this.ramp.length - 1, Math.floor(Math.sqrt(Math.max(0, share)) * this.ramp.length))]; }

  /* Dots for all nodes before `end`, one path for each colour; `diamond(n)`: those with corners. */
  dots(g, end, colourOf, faded, diamond = () => false) {
    const paths = new Map(), { at, r } = this;
    if (r < 2.4 && end === this.m.standing) return this.squares(g, end, colourOf, faded);
    for (let n = 0; n < end; n++) {
      const x = at[2 * n], y = at[2 * n + 1];
      if (!(x > -9 && y > -9 && x < this.w + 9 && y < this.h + 9)) continue;
      const colour = colourOf(n);
      let path = paths.get(colour);
      if (!path) paths.set(colour, path = new Path2D());
      if (r < 2.4) path.rect(x - r, y - r, 2 * r, 2 * r);
      else if (diamond(n)) {
        path.moveTo(x, y - r * 1.2);
        path.lineTo(x + r * 1.2, y);
        path.lineTo(x, y + r * 1.2);
        path.lineTo(x - r * 1.2, y);
        path.closePath();
      } else {
        path.moveTo(x + r, y);
        path.arc(x, y, r, 0, TURN);
      }
    }
    g.globalAlpha = faded ? .35 : 1;
    for (const [colour, path] of paths) {
      g.fillStyle = colour;
      g.fill(path);
      if (r > 3.5) {
        g.strokeStyle = this.inks.bg;
        g.lineWidth = 1;
        g.stroke(path);
      }
    }
    g.globalAlpha = 1;
  }

  /* Thousands of nodes that stand: squares on a sheet of their own, where only those are painted anew whose colour has changed. */
  squares(g, end, colourOf, faded) {
    const { at, r, dpr } = this;
    if (this.squared?.of !== this.sheet) {
      const canvas = Object.assign(document.createElement("canvas"), { width: this.canvas.width, height: this.canvas.height });
      this.squared = { of: this.sheet, canvas, colours: new Array(end) };
      canvas.getContext("2d").scale(dpr, dpr);
    }
    const { canvas, colours } = this.squared, on = canvas.getContext("2d");
    for (let n = 0; n < end; n++) {
      const colour = colourOf(n);
      if (colours[n] === colour) continue;
      colours[n] = on.fillStyle = colour;
      on.fillRect(at[2 * n] - r, at[2 * n + 1] - r, 2 * r, 2 * r);
    }
    g.globalAlpha = faded ? .35 : 1;
    g.drawImage(canvas, 0, 0, this.w, this.h);
    g.globalAlpha = 1;
  }

  /* How full queues or stores are: an arc around each node. */
  gauges(g, end, shareOf) {
    if (this.r <= 2.4) return;
    const R = this.r + 2.6, whole = new Path2D(), full = new Path2D();
    for (let n = 0; n < end; n++) {
      const x = this.at[2 * n], y = this.at[2 * n + 1], share = Math.min(1, shareOf(n));
      whole.moveTo(x + R, y);
      whole.arc(x, y, R, 0, TURN);
      if (share > .005) {
        full.moveTo(x, y - R);
        full.arc(x, y, R, -TURN / 4, -TURN / 4 + TURN * share);
      }
    }
    g.lineCap = "butt";
    g.lineWidth = 2;
    g.strokeStyle = mix(this.inks.ink, .13);
    g.stroke(whole);
    g.strokeStyle = this.inks.ink;
    g.stroke(full);
  }

  lines(g, links, colour, width) {
    const { c } = this.m, { at } = this;
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.beginPath();
    for (const l of links) {
      g.moveTo(at[2 * c.linkFrom[l]], at[2 * c.linkFrom[l] + 1]);
      g.lineTo(at[2 * c.linkTo[l]], at[2 * c.linkTo[l] + 1]);
    }
    g.stroke();
  }

  /* How often each link was used by rows first..last: the counts of the picture before, with what came and what went. */
  uses(first, last) {
    const { link, linkFrom, sumLink, sumCount } = this.m.c;
    if (!this.m.isWhole(this.t)) {
      const { minutes } = this.m, minute = Math.min(minutes.length - 2, Math.max(0, Math.ceil(this.t / 60) - 1)), count = new Uint32Array(linkFrom.length);
      for (let i = minutes[minute]; i < minutes[minute + 1]; i++) count[sumLink[i]] = sumCount[i];
      return count;
    }
    this.used ||= { count: new Uint32Array(linkFrom.length), first: 0, last: 0 };
    const used = this.used, { count } = used;
    if (first >= used.last || last <= used.first) {   // nothing in common
      count.fill(0);
      used.first = used.last = first;
    }
    for (; used.last < last; used.last++) count[link[used.last]]++;
    while (used.first > first) count[link[--used.first]]++;
    while (used.last > last) count[link[--used.last]]--;
    for (; used.first < first; used.first++) count[link[used.first]]--;
    return count;
  }

  /* Links that were used, the more the darker: as lines, or, where there are thousands, as the pixels that lines would touch. */
  glow(g, count, window) {
    const bins = [[], [], [], []], { linkTo } = this.m.c, end = window > FOLLOWED_S && this.m.standing ? this.m.standing : Infinity;
    let links = 0;
    for (let l = 0; l < count.length; l++) {
      if (!count[l] || linkTo[l] >= end) continue;   // who walks has long left the place where it was handed something
      bins[Math.min(3, Math.floor(Math.log2(1 + count[l] / Math.max(1, window / 8))))].push(l);
      links++;
    }
    if (links > MOST_LINES_DRAWN) return this.pixels(g, bins);
    g.lineCap = "round";
    bins.forEach((of, i) => { if (of.length) this.lines(g, of, mix(this.inks.ink, GLOW[i]), [1, 1.5, 2.2, 3][i]); });
  }

  pixels(g, bins) {
    const w = Math.ceil(this.w), h = Math.ceil(this.h), { at } = this, { linkFrom, linkTo } = this.m.c;
    if (this.light?.width !== w || this.light.height !== h) {
      this.light = Object.assign(document.createElement("canvas"), { width: w, height: h });
      this.light.image = this.light.getContext("2d").createImageData(w, h);
      this.light.words = new Uint32Array(this.light.image.data.buffer);
    }
    const { words, image } = this.light, ink = [5, 3, 1].reduce((v, i) => v * 256 + parseInt(this.inks.ink.slice(i, i + 2), 16), 0);
    words.fill(0);
    bins.forEach((of, i) => {
      const word = (Math.round(1.4 * GLOW[i] * 255) << 24 | ink) >>> 0;
      for (const l of of) {
        const x = at[2 * linkFrom[l]], y = at[2 * linkFrom[l] + 1], dx = at[2 * linkTo[l]] - x, dy = at[2 * linkTo[l] + 1] - y;
        const steps = Math.min(400, Math.ceil(Math.max(Math.abs(dx), Math.abs(dy), 1)));
        for (let k = 0; k <= steps; k++) {
          const px = Math.floor(x + dx * k / steps), py = Math.floor(y + dy * k / steps);
          if (px >= 0 && py >= 0 && px < w && py < h) words[py * w + px] = word;
        }
      }
    });
    this.light.getContext("2d").putImageData(image, 0, 0);
    g.drawImage(this.light, 0, 0, w, h);
  }

  /* Copies on their way: the glow of a link counts all of the window; dots are drawn while the eye can follow. */
  flow(g, t, speed, playing, isWanted, isOther) {
    const { m, at, inks } = this, { c } = m, window = Math.max(1, .5 * speed);
    const last = upTo(c.rowAt, t), first = upTo(c.rowAt, t - window);
    this.glow(g, this.uses(first, last), window);
    if (this.calm || !m.isWhole(t)) return;
    const stride = this.oneOf = Math.max(1, Math.ceil((last - first) / MOST_DOTS)), wanted = [], other = [], plain = [];
    for (let r = first + (stride - first % stride) % stride; r < last; r += stride) {
      const f = (t - c.rowAt[r] - (m.hops ? 0 : .9 * ((r * 7919) % 1000) / 1000)) / window * 1.15;
      if (f < 0 || f > 1) continue;
      const a = 2 * c.linkFrom[c.link[r]], b = 2 * c.linkTo[c.link[r]], q = f * f * (3 - 2 * f), tail = Math.max(0, q - .16);
      const dx = at[b] - at[a], dy = at[b + 1] - at[a + 1];
      (isWanted(r) ? wanted : isOther(r) ? other : plain).push(at[a] + dx * q, at[a + 1] + dy * q, at[a] + dx * tail, at[a + 1] + dy * tail);
      this.dotsDrawn++;
    }
    this.comets(g, plain, inks.ink, 1.5, false);
    this.comets(g, other, inks.waiting, 2.3, true);
    this.comets(g, wanted, inks.delivered, 2.6, false);
  }

  comets(g, list, colour, r, square) {
    if (!list.length) return;
    const many = list.length > 3200, path = new Path2D(), tails = new Path2D();
    for (let i = 0; i < list.length; i += 4) {
      if (square || many) path.rect(list[i] - r, list[i + 1] - r, 2 * r, 2 * r);
      else {
        path.moveTo(list[i] + r, list[i + 1]);
        path.arc(list[i], list[i + 1], r, 0, TURN);
      }
      if (!many) {
        tails.moveTo(list[i + 2], list[i + 3]);
        tails.lineTo(list[i], list[i + 1]);
      }
    }
    g.strokeStyle = mix(colour, .45);
    g.lineWidth = r * 1.1;
    g.stroke(tails);
    g.fillStyle = colour;
    g.fill(path);
  }

  /* An event's hops so far, the older the fainter, and who holds it. */
  way(g, t, life, isOther, fade) {
    const { at, inks } = this;
    g.lineCap = "round";
    for (const [s, from, to, flags, r] of life.hops) {
      const age = Math.min(1, (t - s) / fade);
      g.strokeStyle = mix(isOther(r) ? inks.waiting : inks.delivered, .75 - .55 * age);
      g.lineWidth = 2.6 - 1.4 * age;
      g.beginPath();
      g.moveTo(at[2 * from], at[2 * from + 1]);
      g.lineTo(at[2 * to], at[2 * to + 1]);
      g.stroke();
    }
    this.held(g, life);
  }

  /* Who holds the chosen event, and where it was born. */
  held(g, life) {
    const { at, inks } = this;
    g.textAlign = "center";
    g.textBaseline = "middle";
    for (const [n, k] of life.holders) {
      if (k <= 0) continue;
      g.fillStyle = inks.delivered;
      g.beginPath();
      g.arc(at[2 * n], at[2 * n + 1], this.r + 1.5, 0, TURN);
      g.fill();
      if (k > 1) {
        g.fillStyle = inks.bg;
        g.font = "600 10px system-ui";
        g.fillText(k, at[2 * n], at[2 * n + 1] + .5);
      }
    }
    this.ring(g, this.m.birthNode(this.pick.event), this.r + 6, inks.pick, 2.5);
  }

  hit(px, py) {
    let best = null, least = 16 * 16;
    for (let n = this.m.count - 1; n >= 0; n--) {
      const apart = (this.at[2 * n] - px) ** 2 + (this.at[2 * n + 1] - py) ** 2;
      if (apart < least) { least = apart; best = n; }
    }
    return best;
  }
}
