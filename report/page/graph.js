// @ts-check
// A graph of photographs: its connected parts, and a layout in which strong pairs are close.

/** @typedef {{ a: number, b: number, weight: number, length: number, pair: number }} Edge two nodes; from 0 for the weakest to 1 for the strongest; how far they should lie apart; which pair it is */
/** @typedef {{ x: number, y: number, members: number[] }} GraphNode a place, and the photographs that it stands for */

/** Disjoint sets (union-find). */
class Joined {
  /** @param {number} count */
  constructor(count) {
    this.parent = Uint32Array.from({ length: count }, (_, i) => i);
    this.size = new Uint32Array(count).fill(1);
  }

  /** @param {number} i */
  root(i) {
    while (this.parent[i] !== i) i = this.parent[i] = this.parent[this.parent[i]];
    return i;
  }

  /** Joins the sets of two, unless they would have more than `most` members. @param {number} a @param {number} b */
  join(a, b, most = Infinity) {
    [a, b] = [this.root(a), this.root(b)];
    if (a === b || this.size[a] + this.size[b] > most) return false;
    if (this.size[a] < this.size[b]) [a, b] = [b, a];
    this.parent[b] = a;
    this.size[a] += this.size[b];
    return true;
  }

  /** The members of each set, the largest first. */
  sets() {
    /** @type {Map<number, number[]>} */
    const sets = new Map();
    for (let i = 0; i < this.parent.length; i++) {
      const root = this.root(i);
      const set = sets.get(root);
      if (set) set.push(i);
      else sets.set(root, [i]);
    }
    return [...sets.values()].sort((a, b) => b.length - a.length || a[0] - b[0]);
  }
}

/** The connected parts, the largest first. @param {number} count @param {Iterable<[number, number]>} pairs */
function parts(count, pairs) {
  const joined = new Joined(count);
  for (const [a, b] of pairs) joined.join(a, b);
  return joined.sets();
}

/** Pairs that alone join two groups of at least two photographs each: the bridges of the graph (Tarjan 1974).
 * @param {number} count @param {[number, number][]} pairs @returns {number[]} their places in `pairs` */
function bridges(count, pairs) {
  /** @type {[number, number][][]} */
  const near = Array.from({ length: count }, () => []);
  pairs.forEach(([a, b], p) => {
    near[a].push([b, p]);
    near[b].push([a, p]);
  });
  const [order, low, below, parent] = [new Int32Array(count), new Int32Array(count), new Int32Array(count).fill(1), new Int32Array(count).fill(-1)];
  const at = new Uint32Array(count);
  /** @type {[number, number, number][]} candidates: the pair, its lower end, and the first photograph of the group */
  const found = [];
  const size = new Uint32Array(count);
  let clock = 0;
  for (let start = 0; start < count; start++) {
    if (order[start]) continue;
    const before = clock;
    /** @type {number[]} */
    const stack = [start];
    order[start] = low[start] = ++clock;
    while (stack.length) {
      const i = stack[stack.length - 1];
      const next = near[i][at[i]++];
      if (!next) {
        stack.pop();
        const up = stack[stack.length - 1];
        if (up === undefined) continue;
        low[up] = Math.min(low[up], low[i]);
        below[up] += below[i];
        if (low[i] > order[up]) found.push([parent[i], i, start]);
      } else if (next[1] !== parent[i]) {
        const [to, p] = next;
        if (order[to]) low[i] = Math.min(low[i], order[to]);
        else {
          order[to] = low[to] = ++clock;
          parent[to] = p;
          stack.push(to);
        }
      }
    }
    size[start] = clock - before;
  }
  return found.filter(([, i, start]) => below[i] > 1 && size[start] - below[i] > 1).map(([p]) => p);
}

/** Pseudo-random numbers from 0 to 1, the same each time, so that a graph always looks the same. */
function numbers(seed = 1) {
  return () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return seed / 2 ** 32;
  };
}

/** An order in which neighbours resemble each other (Prim): next is the photograph with the strongest pair with any before it.
 * @param {number} count @param {Edge[]} edges the strongest first */
function orderByLikeness(count, edges) {
  /** @type {[number, number][][]} */
  const near = Array.from({ length: count }, () => []);
  edges.forEach(({ a, b }, rank) => {
    near[a].push([rank, b]);
    near[b].push([rank, a]);
  });
  const taken = new Uint8Array(count);
  /** @type {number[]} */
  const order = [];
  const heap = new Heap();
  const take = (/** @type {number} */ i) => {
    taken[i] = 1;
    order.push(i);
    for (const [rank, to] of near[i]) if (!taken[to]) heap.push(rank, to);
  };
  const starts = [...edges.map((e) => e.a), ...Array.from({ length: count }, (_, i) => i)];
  for (const start of starts) {
    if (taken[start]) continue;
    take(start);
    for (let next = heap.pop(); next >= 0; next = heap.pop()) if (!taken[next]) take(next);
  }
  return order;
}

/** A priority queue: the value with the least key comes first. */
class Heap {
  constructor() {
    /** @type {[number, number][]} */
    this.items = [];
  }

  /** @param {number} key @param {number} value */
  push(key, value) {
    const { items } = this;
    let i = items.push([key, value]) - 1;
    for (let up = (i - 1) >> 1; i > 0 && items[up][0] > items[i][0]; up = (i - 1) >> 1) {
      [items[up], items[i]] = [items[i], items[up]];
      i = up;
    }
  }

  /** The value with the least key; -1 where there is none. */
  pop() {
    const { items } = this;
    const first = items[0];
    const last = items.pop();
    if (!first || !last) return -1;
    if (items.length) items[0] = last;
    for (let i = 0; ; ) {
      let least = i;
      for (const child of [2 * i + 1, 2 * i + 2]) if (child < items.length && items[child][0] < items[least][0]) least = child;
      if (least === i) break;
      [items[i], items[least]] = [items[least], items[i]];
      i = least;
    }
    return first[1];
  }
}

/** More nodes cannot be distinguished on a screen, so photographs are then drawn in groups. */
const MOST_NODES = 400;

/** A graph with a place for each node; one unit of the plane is `UNIT` of its pixels.
 * @param {number} count @param {Edge[]} edges among photographs, the strongest first @param {number} aspect width to height */
function layout(count, edges, aspect) {
  const [groups, joined] = grouped(count, edges);
  const of = new Int32Array(count).fill(-1);
  groups.forEach((members, node) => members.forEach((i) => (of[i] = node)));
  /** @type {Map<number, Edge>} */
  const strongest = new Map();
  for (const { a, b, weight, length, pair } of edges) {
    const [p, q] = [Math.min(of[a], of[b]), Math.max(of[a], of[b])];
    if (p !== q && p >= 0 && !strongest.has(p * groups.length + q)) strongest.set(p * groups.length + q, { a: p, b: q, weight, length, pair });
  }
  const between = [...strongest.values()];
  const components = parts(groups.length, between.map((e) => /** @type {[number, number]} */ ([e.a, e.b])));
  const home = new Uint32Array(groups.length);
  components.forEach((nodes, c) => nodes.forEach((node) => (home[node] = c)));
  /** @type {Edge[][]} */
  const inside = components.map(() => []);
  for (const edge of between) inside[home[edge.a]].push(edge);
  const boxes = components.map((nodes, c) => box(nodes, spread(nodes, inside[c])));
  const plane = packedBoxes(boxes, aspect);
  /** @type {GraphNode[]} */
  const nodes = groups.map((members) => ({ x: 0, y: 0, members }));
  for (const { nodes: some, places, x, y } of boxes) {
    some.forEach((node, i) => Object.assign(nodes[node], { x: (x + places[2 * i]) * UNIT, y: (y + places[2 * i + 1]) * UNIT }));
  }
  return { nodes, edges: between, of, joined, width: plane.w * UNIT, height: plane.h * UNIT, telling: backbone(groups.length, between) };
}

const UNIT = 100;

/** Nodes: photographs, or groups of those that resemble each other. Photographs without a pair are then left out.
 * @param {number} count @param {Edge[]} edges @returns {[number[][], boolean]} */
function grouped(count, edges) {
  if (count <= MOST_NODES) return [Array.from({ length: count }, (_, i) => [i]), false];
  const most = Math.ceil(count / (MOST_NODES / 2.5));
  const joined = new Joined(count);
  const paired = new Uint8Array(count);
  for (const { a, b } of edges) {
    joined.join(a, b, most);
    paired[a] = paired[b] = 1;
  }
  return [joined.sets().filter((set) => paired[set[0]]), true];
}

/** The most informative edges: those of a spanning forest, and the strongest of each node.
 * @param {number} count @param {Edge[]} edges the strongest first */
function backbone(count, edges) {
  const joined = new Joined(count);
  const many = new Uint16Array(count);
  return edges.map(({ a, b }) => {
    const told = joined.join(a, b) || many[a] < 3 || many[b] < 3;
    many[a]++;
    many[b]++;
    return told;
  });
}

/** Places of nodes whose distances are close to those along the edges. Stress is reduced by stochastic gradient descent:
 * Zheng, Pawar and Goodman, "Graph Drawing by Stochastic Gradient Descent", IEEE TVCG 25 (2019).
 * @param {number[]} nodes @param {Edge[]} edges */
function spread(nodes, edges) {
  const n = nodes.length;
  const index = new Map(nodes.map((node, i) => [node, i]));
  const far = distances(n, edges.map(({ a, b, length }) => [index.get(a) ?? 0, index.get(b) ?? 0, length]));
  const random = numbers();
  const places = Float64Array.from({ length: 2 * n }, random);
  /** @type {[number, number][]} */
  const terms = [];
  for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) terms.push([i, j]);
  let [least, most] = [Infinity, 0];
  for (const [i, j] of terms) [least, most] = [Math.min(least, far[i * n + j]), Math.max(most, far[i * n + j])];
  const ROUNDS = 40;
  for (let round = 0; round < ROUNDS && n > 1; round++) {
    const rate = most ** 2 * ((0.05 * least ** 2) / most ** 2) ** (round / (ROUNDS - 1));
    for (let k = terms.length - 1; k > 0; k--) {
      const other = Math.floor(random() * (k + 1));
      [terms[k], terms[other]] = [terms[other], terms[k]];
    }
    for (const [i, j] of terms) {
      const d = far[i * n + j];
      const [dx, dy] = [places[2 * i] - places[2 * j], places[2 * i + 1] - places[2 * j + 1]];
      const length = Math.hypot(dx, dy) || 1e-9;
      const step = (Math.min(1, rate / d ** 2) * (length - d)) / (2 * length);
      places[2 * i] -= step * dx;
      places[2 * i + 1] -= step * dy;
      places[2 * j] += step * dx;
      places[2 * j + 1] += step * dy;
    }
  }
  return apart(level(places));
}

/** Lengths of shortest paths (Floyd and Warshall). @param {number} n @param {number[][]} edges */
function distances(n, edges) {
  const far = new Float64Array(n * n).fill(Infinity);
  for (const [i, j, length] of edges) far[i * n + j] = far[j * n + i] = Math.min(far[i * n + j], length);
  for (let k = 0; k < n; k++) {
    for (let i = 0; i < n; i++) {
      const first = far[i * n + k];
      if (first === Infinity) continue;
      for (let j = 0; j < n; j++) {
        const way = first + far[k * n + j];
        if (way < far[i * n + j]) far[i * n + j] = way;
      }
    }
  }
  return far;
}

/** Rotates places so that they extend furthest from left to right. @param {Float64Array} places */
function level(places) {
  const n = places.length / 2;
  let [mx, my, xx, xy, yy] = [0, 0, 0, 0, 0];
  for (let i = 0; i < n; i++) [mx, my] = [mx + places[2 * i] / n, my + places[2 * i + 1] / n];
  for (let i = 0; i < n; i++) {
    const [x, y] = [places[2 * i] - mx, places[2 * i + 1] - my];
    [xx, xy, yy] = [xx + x * x, xy + x * y, yy + y * y];
  }
  const angle = 0.5 * Math.atan2(2 * xy, xx - yy);
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  for (let i = 0; i < n; i++) {
    const [x, y] = [places[2 * i] - mx, places[2 * i + 1] - my];
    [places[2 * i], places[2 * i + 1]] = [c * x + s * y, c * y - s * x];
  }
  return places;
}

/** Scales places so that neighbours are usually one unit apart, and moves apart those that are closer.
 * @param {Float64Array} places */
function apart(places) {
  const n = places.length / 2;
  const nearest = [];
  for (let i = 0; i < n; i++) {
    let least = Infinity;
    for (let j = 0; j < n; j++) if (j !== i) least = Math.min(least, Math.hypot(places[2 * i] - places[2 * j], places[2 * i + 1] - places[2 * j + 1]));
    nearest.push(least);
  }
  nearest.sort((a, b) => a - b);
  const scale = n > 1 ? 1.05 / Math.max(1e-9, nearest[n >> 1]) : 1;
  for (let i = 0; i < 2 * n; i++) places[i] *= scale;
  for (let round = 0; round < 80; round++) {
    let moved = false;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < i; j++) {
        const [dx, dy] = [places[2 * i] - places[2 * j], places[2 * i + 1] - places[2 * j + 1]];
        const length = Math.hypot(dx, dy) || 1e-9;
        if (length >= 0.999) continue;
        moved = true;
        const step = (1 - length) / (2 * length);
        places[2 * i] += step * dx;
        places[2 * i + 1] += step * dy;
        places[2 * j] -= step * dx;
        places[2 * j + 1] -= step * dy;
      }
    }
    if (!moved) break;
  }
  return places;
}

/** A connected part with its bounding box. @param {number[]} nodes @param {Float64Array} places */
function box(nodes, places) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < nodes.length; i++) {
    [left, right] = [Math.min(left, places[2 * i]), Math.max(right, places[2 * i])];
    [top, bottom] = [Math.min(top, places[2 * i + 1]), Math.max(bottom, places[2 * i + 1])];
  }
  const margin = nodes.length > 1 ? 0.9 : 0.6;
  const moved = places.map((v, i) => v - (i % 2 ? top : left) + margin);
  return { nodes, places: moved, w: right - left + 2 * margin, h: bottom - top + 2 * margin, x: 0, y: 0 };
}

/** Places parts in rows, the largest first, so that the whole has about this aspect ratio. @param {ReturnType<typeof box>[]} boxes @param {number} aspect */
function packedBoxes(boxes, aspect) {
  const area = boxes.reduce((sum, b) => sum + b.w * b.h, 0);
  const widest = Math.max(1, ...boxes.map((b) => b.w));
  const room = Math.max(widest, Math.sqrt(area * aspect));
  let [x, y, shelf, w] = [0, 0, 0, 1];
  for (const b of boxes) {
    if (x > 0 && x + b.w > room + 1e-9) [x, y, shelf] = [0, y + shelf, 0];
    [b.x, b.y] = [x, y];
    x += b.w;
    shelf = Math.max(shelf, b.h);
    w = Math.max(w, x);
  }
  return { w, h: Math.max(1, y + shelf) };
}
