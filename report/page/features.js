// @ts-check
// A picture and its features.

/** The corners of a circle as lines. */
const CORNERS = 20;
/** More circles than these are drawn as dots. */
const MOST_CIRCLES = 1500;

class FeaturesView {
  /** @param {FeaturesData} data @param {Sheet} sheet @param {Record<string, Float32Array>} c the strongest first */
  constructor(data, sheet, c) {
    this.data = data;
    this.sheet = sheet;
    this.c = c;
    this.count = c.x.length;
    /** The features that the filters keep. */
    this.order = new Uint32Array(0);
    this.selected = -1;
    this.hovered = -1;
    this.table = colourTable('viridis', 0.3, 1);
    this.pane = new Pane(data.picture.width, data.picture.height);
    this.stage = new Stage({
      label: `${data.picture.name} with its features. Arrow keys walk from the strongest, Escape chooses none, plus and minus enlarge, shift with arrows moves, 0 shows all.`,
      arrange: (width, height) => {
        this.pane.place({ x: 0, y: 0, w: width, h: height });
        return [this.pane];
      },
      draw: (painter) => this.draw(painter),
      hover: (at) => {
        this.hovered = at ? this.nearest(at) : -1;
        this.inspect();
      },
      click: (at) => this.select(this.nearest(at)),
      key: (event) => this.key(event),
    });
    this.stage.shape(data.picture.width / data.picture.height);
    this.root = this.build();
    this.filter();
  }

  build() {
    const { data, c, stage } = this;
    this.bar = element('div', { class: 'colour-bar' });
    const tools = element('div', { class: 'tools' }, element('span', {}, 'Colour: scale'), this.bar, button('show all', () => stage.reset()), stage.saving('features'));
    const changed = () => this.filter();
    this.histograms = /** @type {[string, Histogram][]} */ ([
      ['response', new Histogram('response', c.response, { logarithmic: true, decimals: 4, changed })],
      ['scale', new Histogram('scale', c.scale, { logarithmic: true, decimals: 1, unit: 'px', changed })],
      ['angle', new Histogram('direction', c.angle.map((a) => (a * 180) / Math.PI), { unit: '°', decimals: 0, changed })],
    ]);
    this.patch = element('canvas', { width: '144', height: '144', class: 'patch', role: 'img', 'aria-label': 'no feature chosen' });
    this.details = values();
    this.status = element('p', { class: 'status', 'aria-live': 'polite' });
    this.kept = element('p', { class: 'kept', role: 'status' });
    const walk = element('div', { class: 'walk' }, button('← stronger', () => this.walk(-1), 'the next stronger feature'), button('weaker →', () => this.walk(1), 'the next weaker feature'));
    const panel = element('div', { class: 'panel', role: 'group', 'aria-label': 'One feature' }, element('div', { class: 'patches' }, this.patch), this.status, this.details.list, walk);
    const filters = element('div', { class: 'filters', role: 'group', 'aria-label': 'Which features' },
      element('div', { class: 'filters-head' }, this.kept, button('Save these as CSV', () => save('features.csv', this.csv()))), ...this.histograms.map(([, h]) => h.field));
    const notes = [this.count < data.total ? `${counted(this.count)} of ${counted(data.total)} features are in this file.` : '', data.picture.step > 1 ? `The picture is reduced to 1/${data.picture.step}.` : ''].filter(Boolean);
    return element('div', { class: 'view-body' }, tools, element('div', { class: 'split' }, stage.host, panel), filters, notes.length ? element('p', { class: 'note' }, notes.join(' ')) : '',
      element('p', { class: 'hint' }, 'Move the mouse over a feature, or walk with ← and → from the strongest. Drag to move; click and turn the wheel, or hold Ctrl, to enlarge; double click to show all.'));
  }

  filter() {
    const { histograms = [], c } = this;
    for (const [, h] of histograms) h.count(() => true);
    const value = (/** @type {string} */ name, /** @type {number} */ i) => (name === 'angle' ? (c.angle[i] * 180) / Math.PI : c[name][i]);
    const kept = [];
    for (let i = 0; i < this.count; i++) if (histograms.every(([name, h]) => h.keeps(value(name, i)))) kept.push(i);
    this.order = Uint32Array.from(kept);
    if (!this.order.includes(this.selected)) this.selected = -1;
    if (this.kept) this.kept.textContent = `${counted(kept.length)} of ${counted(this.count)} features`;
    const scales = kept.map((i) => Math.log2(c.scale[i])).filter(Number.isFinite).sort((a, b) => a - b);
    this.range = [scales[0] ?? 0, Math.max(scales[scales.length - 1] ?? 1, (scales[0] ?? 0) + 1e-6)];
    const strip = element('span', { class: 'strip' });
    strip.style.background = gradient(this.table);
    this.bar?.replaceChildren(element('span', {}, written(2 ** this.range[0], 1)), strip, element('span', {}, `${written(2 ** this.range[1], 1)} px`));
    this.inspect();
  }

  /** @param {number} i */
  colour(i) {
    const [low, high] = this.range ?? [0, 1];
    return colourAt(this.table, (Math.log2(this.c.scale[i]) - low) / (high - low));
  }

  csv() {
    const { c } = this;
    const rows = Array.from(this.order, (i) => ['x', 'y', 'scale', 'angle', 'response'].map((name) => shortest(c[name][i])).join(','));
    return `x,y,scale,angle,response\n${rows.join('\n')}${rows.length ? '\n' : ''}`;
  }

  /** @param {Painter} painter */
  draw(painter) {
    const { pane, sheet, c, order, data } = this;
    pane.draw(painter, sheet);
    const seen = [];
    for (const i of order) {
      const [x, y] = pane.toScreen([c.x[i], c.y[i]]);
      if (pane.holds([x, y])) seen.push({ i, x, y, r: data.support * c.scale[i] * pane.zoom });
    }
    const rings = seen.length <= MOST_CIRCLES ? seen : [];
    if (!rings.length) {
      painter.dots(Float32Array.from(seen.flatMap(({ x, y }) => [x, y, 2])), Uint32Array.from(seen, ({ i }) => this.colour(i)), seen.length);
    }
    this.circles(painter, rings, (i) => faded(this.colour(i), 190), 1.2);
    const chosen = [this.hovered, this.selected].find((i) => i >= 0) ?? -1;
    const one = chosen >= 0 ? [{ i: chosen, ...this.ring(chosen) }] : [];
    this.circles(painter, one, () => packed(0, 0, 0, 200), 5);
    this.circles(painter, one, () => packed(255, 255, 255, 255), 2);
  }

  /** @param {number} i */
  ring(i) {
    const [x, y] = this.pane.toScreen([this.c.x[i], this.c.y[i]]);
    return { x, y, r: this.data.support * this.c.scale[i] * this.pane.zoom };
  }

  /** Draws circles with a line in the direction of the feature.
   * @param {Painter} painter @param {{ i: number, x: number, y: number, r: number }[]} rings @param {(i: number) => number} colour @param {number} width */
  circles(painter, rings, colour, width) {
    const ends = new Float32Array(4 * (CORNERS + 1) * rings.length);
    const colours = new Uint32Array((CORNERS + 1) * rings.length);
    let n = 0;
    for (const { i, x, y, r } of rings) {
      const at = (/** @type {number} */ k) => this.c.angle[i] + (2 * Math.PI * k) / CORNERS;
      for (let k = 0; k <= CORNERS; k++, n++) {
        // The last is the direction.
        const [p, q] = k < CORNERS ? [at(k), at(k + 1)] : [at(0), at(0)];
        const from = k < CORNERS ? r : 0;
        ends.set([x + from * Math.cos(p), y + from * Math.sin(p), x + r * Math.cos(q), y + r * Math.sin(q)], 4 * n);
        colours[n] = colour(i);
      }
    }
    painter.lines(ends, colours, n, width);
  }

  /** @param {Point} at */
  nearest(at) {
    let [best, least] = [-1, 14 ** 2];
    for (const i of this.order) {
      const [x, y] = this.pane.toScreen([this.c.x[i], this.c.y[i]]);
      const far = (x - at[0]) ** 2 + (y - at[1]) ** 2;
      if (far < least) [best, least] = [i, far];
    }
    return best;
  }

  /** @param {number} i */
  select(i) {
    this.selected = i;
    this.inspect();
  }

  /** @param {number} by */
  walk(by) {
    const n = this.order.length;
    if (n === 0) return;
    const now = this.order.indexOf(this.selected);
    this.hovered = -1;
    this.select(this.order[now < 0 ? (by > 0 ? 0 : n - 1) : clamp(now + by, 0, n - 1)]);
    if (!this.pane.fitted) this.pane.middle = [this.c.x[this.selected], this.c.y[this.selected]];
    this.stage.draw();
  }

  state() {
    return { feature: this.selected < 0 ? '' : String(this.selected) };
  }

  /** @param {Map<string, string>} state */
  restore(state) {
    const feature = Number(state.get('feature') ?? -1);
    if (this.order.includes(feature)) this.select(feature);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    return walksByKey(this, event);
  }

  /** Shows what the descriptor sees, and the figures; of the strongest until one is chosen. */
  inspect() {
    const { c, data, patch, details, status, order } = this;
    this.stage.draw();
    const i = [this.hovered, this.selected, order[0] ?? -1].find((k) => k >= 0) ?? -1;
    if (!patch || !details || !status) return;
    if (i < 0) {
      context2d(patch).clearRect(0, 0, patch.width, patch.height);
      patch.setAttribute('aria-label', 'no feature chosen');
      details.show([]);
      status.textContent = this.count ? 'The filters leave no feature.' : 'No features.';
      return;
    }
    drawPatch(patch, this.sheet, data.picture.name, [c.x[i], c.y[i]], data.support * c.scale[i], c.angle[i]);
    status.textContent = `${ordinal(order.indexOf(i) + 1)} of ${counted(order.length)}.`;
    details.show([
      ['at', `${written(c.x[i], 1)}, ${written(c.y[i], 1)}`],
      ['response', String(Number(c.response[i].toPrecision(3)))],
      ['scale', `${written(c.scale[i], 2)} px`],
      ['direction', `${written((c.angle[i] * 180) / Math.PI, 0)}°`],
    ]);
  }
}

/** @param {FeaturesData} data */
async function featuresView(data) {
  /** @type {Record<string, Float32Array>} */
  const columns = {};
  for (const [name, block] of Object.entries(data.columns)) columns[name] = await floats(block);
  return new FeaturesView(data, await picture(data.picture), columns);
}
