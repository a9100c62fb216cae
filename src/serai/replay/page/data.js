/* Columns out of the page: base 85 -> deflate -> byte planes -> typed arrays. `serai.replay.pack` is the other end. */
const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

export async function unpack(rows, bytes, text) {
  const stream = new Blob([fromBase85(text).subarray(0, bytes)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const columns = {};
  let at = 0;
  for (const [name, type, length, differences] of rows) {
    const size = +type[1], values = size === 1 ? planes.subarray(at, at + length) : joined(planes, at, ARRAYS[type], length);
    columns[name] = differences ? added(values) : values;
    at += length * size;
  }
  return columns;
}

/* Numbers of several bytes: their lowest bytes stand from `at` on, then the next ones, and so on. */
function joined(planes, at, Numbers, length) {
  const values = new Numbers(length), bytes = new Uint8Array(values.buffer), size = Numbers.BYTES_PER_ELEMENT;
  for (let b = 0; b < size; b++, at += length) {
    for (let i = 0, to = b; i < length; i++, to += size) bytes[to] = planes[at + i];
  }
  return values;
}

/* Five characters from "(" on, without "<", are four bytes, the highest first. */
function fromBase85(text) {
  const codes = new TextEncoder().encode(text), packed = new Uint8Array(codes.length / 5 * 4);
  for (let i = 0, at = 0; i < codes.length; at += 4) {
    let word = 0;
    for (const end = i + 5; i < end; i++) word = word * 85 + codes[i] - (codes[i] > 60 ? 41 : 40);
    packed[at] = word >>> 24;
    packed[at + 1] = word >>> 16;
    packed[at + 2] = word >>> 8;
    packed[at + 3] = word;
  }
  return packed;
}

function added(steps) {
  const values = new Uint32Array(steps.length);
  for (let i = 0, sum = 0; i < steps.length; i++) values[i] = sum += (steps[i] >>> 1) ^ -(steps[i] & 1);
  return values;
}

/* How many of the ascending numbers are below v, or up to v. */
export function below(sorted, v, from = 0, to = sorted.length) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sorted[middle] < v) from = middle + 1; else to = middle;
  }
  return from;
}

export function upTo(sorted, v, from = 0, to = sorted.length) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sorted[middle] <= v) from = middle + 1; else to = middle;
  }
  return from;
}

/* Rows by a number that each of them has: of(k) are those of k, in their order. Made when first asked for, or before, in slices. */
const SLICE = 1 << 16;

export class Groups {
  constructor(keys, count) {
    this.start = new Uint32Array(count + 1);
    this.slices = this.making(keys, count);
  }

  * making(keys, count) {
    const { start } = this, rows = this.rows = new Uint32Array(keys.length);
    for (let i = 0; i < keys.length; i += SLICE) {
      counted(start, keys, i, Math.min(i + SLICE, keys.length));
      yield;
    }
    for (let k = 0; k < count; k++) start[k + 1] += start[k];
    const next = start.slice();
    for (let i = 0; i < keys.length; i += SLICE) {
      placed(rows, next, keys, i, Math.min(i + SLICE, keys.length));
      yield;
    }
  }

  /* One slice more; whether that was the last. */
  go() {
    this.made ||= this.slices.next().done;
    return this.made;
  }

  of(k) {
    while (!this.go());
    return this.rows.subarray(this.start[k], this.start[k + 1]);
  }
}

function counted(start, keys, from, to) {
  for (let i = from; i < to; i++) start[keys[i] + 1]++;
}

function placed(rows, next, keys, from, to) {
  for (let i = from; i < to; i++) rows[next[keys[i]]++] = i;
}

/* The second of each row, from how many rows there are in each second. */
export function seconds(counts) {
  let rows = 0;
  for (const n of counts) rows += n;
  const times = new Uint32Array(rows);
  for (let s = 0, r = 0; s < counts.length; s++) for (let end = r + counts[s]; r < end; r++) times[r] = s;
  return times;
}

export const clock = (s) => {
  s = Math.max(0, Math.floor(s));
  const two = (v) => String(v).padStart(2, "0");
  return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
};
export const num = (v) => v.toLocaleString("en-US");
export const span = (s) => {
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${+(s / 3600).toFixed(1)} h` : `${+(s / 86400).toFixed(1)} days`;
};
export const bytes = (v) => (v < 1e4 ? `${num(Math.round(v))} B` : v < 1e7 ? `${num(Math.round(v / 1e3))} kB` : `${(v / 1e6).toFixed(1)} MB`);
export const brief = (where) => where.replace(/-?\d+\.\d{4,}(e-?\d+)?/g, (v) => `${+(+v).toPrecision(4)}`);
export const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");
