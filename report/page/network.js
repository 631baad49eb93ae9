// @ts-check
// Draws the graph of photographs, with the layout of `graph.js`.

class Network {
  /** @param {CollectionView} of */
  constructor(of) {
    this.of = of;
    this.pane = new Pane(UNIT, UNIT);
    /** @type {ReturnType<typeof layout> | null} */
    this.graph = null;
    /** Whether all edges are drawn, or only the most informative ones. */
    this.all = false;
  }

  /** The filters have changed: the layout is computed again when the graph is next shown. */
  renew() {
    this.graph = null;
  }

  /** @param {number} width @param {number} height */
  arrange(width, height) {
    const { of, pane } = this;
    if (!this.graph) {
      this.graph = layout(of.count, of.keptEdges(), width / height);
      [pane.width, pane.height] = [this.graph.width, this.graph.height];
    }
    pane.place({ x: 0, y: 0, w: width, h: height });
    return [pane];
  }

  note() {
    return this.graph?.joined ? `${counted(this.of.count)} photographs are too many for one graph: a dot stands for some that resemble each other, and photographs without a pair are left out.` : '';
  }

  /** The node of a photograph, if it is in the graph. @param {number} i */
  nodeOf(i) {
    return this.graph?.nodes[this.graph.of[i]];
  }

  /** Moves an enlarged plane to a pair or a photograph. @param {number} a @param {number} b */
  follow(a, b) {
    const [p, q] = [this.nodeOf(a), this.nodeOf(b)];
    if (!this.pane.fitted && p && q) this.pane.middle = [(p.x + q.x) / 2, (p.y + q.y) / 2];
  }

  /** The side of a photograph on the screen. */
  side() {
    const { w, h } = this.pane.rect;
    // A few photographs are drawn large enough to recognise them, if there is room.
    const room = Math.min(40, 0.33 * Math.sqrt((w * h) / Math.max(1, this.of.data.images.length)));
    return clamp(0.86 * UNIT * this.pane.zoom, room, 110);
  }

  /** Whether an edge is drawn. @param {number} k @param {number} pair */
  draws(k, pair) {
    const { selected, kept, moving } = this.of;
    if (!kept[pair]) return false;
    // Thousands of lines are too slow to draw while the plane moves.
    const all = this.all && !(moving && (this.graph?.edges.length ?? 0) > 1500);
    return all || this.graph?.telling[k] || pair === selected || this.ofFocus(pair);
  }

  /** @param {number} pair */
  ofFocus(pair) {
    const { c, focus } = this.of;
    return focus >= 0 && (c.a[pair] === focus || c.b[pair] === focus);
  }

  /** @param {Point} at @returns {Hit | null} */
  at(at) {
    const { graph, pane } = this;
    if (!graph) return null;
    const places = graph.nodes.map(({ x, y }) => pane.toScreen([x, y]));
    let [node, near] = [-1, Math.max(9, this.side() / 2)];
    places.forEach(([x, y], k) => {
      const d = Math.hypot(x - at[0], y - at[1]);
      if (d < near) [node, near] = [k, d];
    });
    if (node >= 0) {
      const { members } = graph.nodes[node];
      return { images: members, pair: members.length === 2 ? this.of.pairOf(members[0], members[1]) : -1 };
    }
    let [edge, least] = [-1, 6];
    graph.edges.forEach(({ a, b, pair }, k) => {
      if (!this.draws(k, pair)) return;
      const d = distanceToSegment(at, places[a], places[b]);
      if (d < least) [edge, least] = [pair, d];
    });
    const { c } = this.of;
    return edge >= 0 ? { images: [c.a[edge], c.b[edge]], pair: edge } : null;
  }

  /** @param {Painter} painter */
  draw(painter) {
    const { graph, pane } = this;
    const { c, focus, hovered, selected } = this.of;
    if (!graph) return;
    const side = this.side();
    const places = graph.nodes.map(({ x, y }) => pane.toScreen([x, y]));
    this.drawEdges(painter, places, side);
    const chosen = selected >= 0 ? [graph.of[c.a[selected]], graph.of[c.b[selected]]] : [];
    if (chosen.length && chosen.every((node) => node >= 0)) {
      const line = Float32Array.of(...places[chosen[0]], ...places[chosen[1]]);
      painter.lines(line, Uint32Array.of(packed(0, 0, 0, 180)), 1, 8);
      painter.lines(line, Uint32Array.of(WHITE), 1, 3);
    }
    this.drawNodes(painter, places, side);
    const ring = (/** @type {number} */ node, /** @type {number} */ colour, /** @type {number} */ width) => {
      if (node < 0) return;
      const [size, [x, y]] = [Math.max(side, 12), places[node]];
      outline(painter, { x: x - size / 2, y: y - size / 2, w: size, h: size }, pane.rect, colour, width);
    };
    if (hovered && hovered.pair < 0 && hovered.images.length !== 2) ring(graph.of[hovered.images[0]], packed(255, 255, 255, 200), 1.5);
    for (const node of chosen) ring(node, WHITE, 2.5);
    if (focus >= 0) ring(graph.of[focus], WHITE, 4);
  }

  /** Draws the edges, the weakest first, in four widths. @param {Painter} painter @param {Point[]} places @param {number} side */
  drawEdges(painter, places, side) {
    const { graph } = this;
    const { colours, focus } = this.of;
    if (!graph) return;
    [1, 1.8, 3, 4.6].forEach((width, strength) => {
      const ends = [];
      const tints = [];
      for (let k = graph.edges.length - 1; k >= 0; k--) {
        const { a, b, weight, pair } = graph.edges[k];
        if (Math.min(3, Math.floor(4 * weight)) !== strength || !this.draws(k, pair)) continue;
        const alpha = this.ofFocus(pair) ? 255 : focus >= 0 ? 46 : Math.round(90 + 150 * weight);
        ends.push(...places[a], ...places[b]);
        tints.push(faded(colours[pair], alpha));
      }
      painter.lines(Float32Array.from(ends), Uint32Array.from(tints), tints.length, width * clamp(side / 24, 0.7, 1.5));
    });
  }

  /** Draws photographs where there is room for them, otherwise dots. @param {Painter} painter @param {Point[]} places @param {number} side */
  drawNodes(painter, places, side) {
    const { graph, pane } = this;
    const { atlas, data } = this.of;
    if (!graph) return;
    /** @type {number[]} */
    const dots = [];
    /** @type {number[]} */
    const tints = [];
    graph.nodes.forEach(({ members }, k) => {
      const [x, y] = places[k];
      if (x < -side || y < -side || x > pane.rect.w + side || y > pane.rect.h + side) return;
      const to = { x: x - side / 2, y: y - side / 2, w: side, h: side };
      if (side >= 15 && members.length === 1 && atlas.draw(painter, members[0], to, pane.rect)) return;
      dots.push(x, y, clamp(side / 4, 2.5, 14) * Math.min(1.6, members.length ** 0.25));
      tints.push(data.images[members[0]].problem ? packed(230, 120, 60, 255) : packed(214, 220, 230, 255));
    });
    painter.dots(Float32Array.from(dots), Uint32Array.from(tints), tints.length);
  }
}

/** @param {Point} p @param {Point} a @param {Point} b */
function distanceToSegment(p, a, b) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const along = clamp(((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / (dx * dx + dy * dy || 1), 0, 1);
  return Math.hypot(p[0] - a[0] - along * dx, p[1] - a[1] - along * dy);
}
