// @ts-check
// The matches of one pair of a collection.

/** The number of lines that leaves the pictures visible. */
const SOME = 150;

class PairStage {
  /** @param {CollectionView} of @param {string} keys */
  constructor(of, keys) {
    this.of = of;
    this.shown = -1;
    /** @type {Pane[]} */
    this.panes = [new Pane(1, 1), new Pane(1, 1)];
    /** @type {(Sheet | null)[]} */
    this.sheets = [null, null];
    /** The thumbnails that were shown last, at full size. @type {Map<number, Sheet>} */
    this.known = new Map();
    this.line = -1;
    /** Whether some or all lines are drawn: hundreds hide the pictures. */
    this.lines = 'some';
    this.table = colourTable('viridis', 0.3, 1);
    this.stage = new Stage({
      label: `The matches of the chosen pair. ${keys}`,
      arrange: (w, h) => share(this.panes, w, h, this.below()),
      draw: (painter) => this.draw(painter),
      hover: (at) => this.hover(at),
      key: (event) => of.key(event),
    });
    this.stage.shape(this.usualShape());
    this.title = element('p', { class: 'names' });
    this.details = values();
    this.status = element('p', { class: 'status', 'aria-live': 'polite' });
    const lines = segmented('Lines', [['none', 'none'], ['some', 'some'], ['all', 'all']], this.lines, (which) => {
      this.lines = which;
      this.stage.draw();
    });
    const walk = element('div', { class: 'walk' }, button('← stronger', () => of.walk(-1), 'the next stronger pair'), button('weaker →', () => of.walk(1), 'the next weaker pair'));
    this.stage.host.hidden = walk.hidden = lines.field.hidden = of.pairs === 0;
    this.root = element('div', { class: 'pair' }, this.title, this.stage.host,
      element('div', { class: 'panel', role: 'group', 'aria-label': 'One pair' }, this.status, this.details.list, lines.field, walk));
  }

  below() {
    return this.stage.host.clientWidth < 420;
  }

  /** The aspect ratio of the stage, for two photographs of the median shape. */
  usualShape() {
    const shapes = this.of.data.images.filter((i) => i.width && i.height).map((i) => i.width / i.height).sort((a, b) => a - b);
    const usual = clamp(shapes[shapes.length >> 1] ?? 4 / 3, 0.5, 3);
    return innerWidth < 460 ? usual / 2 : 2 * usual;
  }

  /** @param {number} p */
  show(p) {
    const { of, details, status, title } = this;
    const { c, data } = of;
    if (p !== this.shown) {
      this.shown = p;
      this.line = -1;
      this.sheets = [null, null];
      if (p >= 0) void this.open(p);
    }
    if (p < 0) {
      title.replaceChildren(of.pairs === 0 ? 'No pairs' : 'No pair chosen');
      status.textContent = of.pairs === 0 ? 'No two photographs show the same thing.' : of.focus >= 0 && of.order.length === 0 ? `${data.images[of.focus].name} has no such pair${data.images[of.focus].problem ? `: ${data.images[of.focus].problem}` : ''}.` : 'No pair chosen.';
      details.show([]);
      this.stage.draw();
      return;
    }
    const [a, b] = [data.images[c.a[p]], data.images[c.b[p]]];
    title.replaceChildren(element('b', {}, a.name), ' and ', element('b', {}, b.name));
    const rank = of.order.indexOf(p);
    status.textContent = rank < 0 ? '' : `${ordinal(rank + 1)} strongest of ${counted(of.order.length)}${of.focus >= 0 ? ` of ${data.images[of.focus].name}` : ''}.`;
    this.figures();
    this.stage.draw();
  }

  figures() {
    const { of, shown: p, details, line } = this;
    const { c, data } = of;
    if (p < 0) return;
    const [a, b] = [data.images[c.a[p]], data.images[c.b[p]]];
    /** @type {[string, string][]} */
    const rows = [
      ['inliers', counted(c.inliers[p])],
      ['matches', counted(c.matches[p])],
      ['share', `${((100 * c.inliers[p]) / Math.max(1, c.matches[p])).toFixed(1)} %`],
      ['geometry', data.configurations[c.configuration[p]]],
    ];
    if (a.features !== null && b.features !== null) rows.push(['features', `${counted(a.features)} and ${counted(b.features)}`]);
    if (c.lines[p] < c.inliers[p]) rows.push(['lines', `${counted(c.lines[p])} of the inliers`]);
    if (line >= 0) {
      const [p0, p1] = this.places(line);
      rows.push(['under the cursor', `${p0.map((v) => v.toFixed(0)).join(', ')} → ${p1.map((v) => v.toFixed(0)).join(', ')}`]);
    }
    details.show(rows);
  }

  /** @param {number} p */
  async open(p) {
    const { c, data } = this.of;
    const images = [c.a[p], c.b[p]];
    this.panes = images.map((i) => new Pane(Math.max(1, data.images[i].width), Math.max(1, data.images[i].height)));
    this.stage.host.setAttribute('aria-label', `${data.images[images[0]].name} and ${data.images[images[1]].name} with ${c.lines[p]} matches. ${this.stage.use.label}`);
    this.stage.resize();
    const sheets = await Promise.all(images.map((i) => this.thumbnail(i)));
    if (this.shown !== p) return;
    this.sheets = sheets;
    this.stage.draw();
  }

  /** @param {number} i @returns {Promise<Sheet | null>} */
  async thumbnail(i) {
    const url = this.of.urls[i];
    const { covers } = this.of.data.images[i];
    const known = this.known.get(i);
    if (known || !url || !covers) return known ?? null;
    const image = await imageOf(url);
    const made = sheet(image, image.naturalWidth, image.naturalHeight, covers);
    this.known.set(i, made);
    if (this.known.size > 24) this.known.delete(/** @type {number} */ (this.known.keys().next().value));
    return made;
  }

  /** The ends of a line, in pixels of the two photographs. @param {number} k @returns {[Point, Point]} */
  places(k) {
    const { ends } = this.of;
    const at = (/** @type {number} */ side) => /** @type {Point} */ ([
      (ends[4 * k + 2 * side] / 65535) * this.panes[side].width - 0.5, (ends[4 * k + 2 * side + 1] / 65535) * this.panes[side].height - 0.5]);
    return [at(0), at(1)];
  }

  /** @param {Painter} painter */
  draw(painter) {
    const { of, panes, sheets, shown, table } = this;
    if (shown < 0) return;
    panes.forEach((pane, side) => {
      const from = sheets[side];
      if (from) painter.sheet(from, pane.sheetRect(from), pane.clip(), 1, true);
      else outline(painter, pane.clip(), pane.rect, packed(120, 130, 150, 255), 1);
    });
    const [from, to] = [of.first[shown], of.first[shown + 1]];
    const n = to - from;
    const [ends, tints, dots, shades] = [new Float32Array(4 * n), new Uint32Array(n), new Float32Array(6 * n), new Uint32Array(2 * n)];
    const every = this.lines === 'some' ? Math.max(1, Math.ceil(n / SOME)) : 1;
    const alpha = Math.round(255 * clamp(Math.sqrt((50 * every) / Math.max(1, n)), 0.28, 0.9));
    const radius = n > 1500 ? 1.1 : n > 400 ? 1.8 : 2.6;
    let [lines, marks] = [0, 0];
    for (let k = from; k < to; k++) {
      const colour = colourAt(table, of.ends[4 * k] / 65535);
      const screen = this.places(k).map((p, side) => panes[side].toScreen(p));
      const inside = screen.map((p, side) => panes[side].holds(p));
      screen.forEach((p, side) => {
        if (!inside[side]) return;
        dots.set([...p, radius], 3 * marks);
        shades[marks++] = colour;
      });
      if (!inside[0] || !inside[1] || this.lines === 'none' || (k - from) % every !== 0) continue;
      ends.set([...screen[0], ...screen[1]], 4 * lines);
      tints[lines++] = faded(colour, alpha);
    }
    painter.lines(ends, tints, lines, 1.2);
    painter.dots(dots, shades, marks);
    if (this.line < 0) return;
    const [p, q] = this.places(this.line).map((place, side) => panes[side].toScreen(place));
    painter.lines(Float32Array.of(...p, ...q), Uint32Array.of(packed(0, 0, 0, 160)), 1, 5);
    painter.lines(Float32Array.of(...p, ...q), Uint32Array.of(WHITE), 1, 2);
    painter.dots(Float32Array.of(...p, 5, ...q, 5), Uint32Array.of(WHITE, WHITE), 2);
  }

  /** @param {Point | null} at */
  hover(at) {
    const { of, shown, panes } = this;
    const before = this.line;
    this.line = -1;
    const side = at ? panes.findIndex((pane) => pane.holds(at)) : -1;
    if (at && side >= 0 && shown >= 0) {
      let least = 14 ** 2;
      for (let k = of.first[shown]; k < of.first[shown + 1]; k++) {
        const [x, y] = panes[side].toScreen(this.places(k)[side]);
        const d = (x - at[0]) ** 2 + (y - at[1]) ** 2;
        if (d < least) [this.line, least] = [k, d];
      }
    }
    if (this.line === before) return;
    this.figures();
    this.stage.draw();
  }
}
