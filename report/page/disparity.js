// @ts-check
// Disparities, why some are missing, their errors, and the scene in space.

/** Colours of reasons, by number: those of Okabe and Ito (2008), which the colour-blind can tell apart. */
const REASON_COLOURS = [packed(0, 0, 0, 0), packed(120, 120, 128, 255), packed(240, 228, 66, 255), packed(0, 114, 178, 255), packed(213, 94, 0, 255), packed(204, 121, 167, 255)];

class DisparityView {
  /** @param {DisparityData} data @param {{ left: Sheet | null, right: Sheet | null, disparity: Float32Array, truth: Float32Array | null, confidence: Uint8Array | null, reasons: Uint8Array | null }} layers */
  constructor(data, layers) {
    this.data = data;
    this.layers = layers;
    // Of two compared runs, the one before stands in the place of the truth.
    this.layer = data.before ? 'difference' : 'disparity';
    this.opacity = 1;
    /** @type {Point | null} */
    this.cursor = null;
    this.tables = { depth: colourTable('viridis'), share: colourTable('inferno'), signed: colourTable('signed') };
    this.layout = layoutFor([[data.width, data.height]]);
    this.left = new Pane(data.width, data.height);
    this.right = new Pane(data.right?.width ?? data.width, data.right?.height ?? data.height);
    this.readout = values();
    this.stage = new Stage({
      label: 'Disparities of the left picture. Move the cursor with the arrow keys to read values; plus and minus enlarge, shift with arrows moves, 0 shows all.',
      arrange: (w, h) => share(layers.right ? [this.left, this.right] : [this.left], w, h, this.layout === 'below'),
      draw: (painter) => this.draw(painter),
      hover: (at) => this.hover(at),
      click: (at) => this.hover(at),
      key: (event) => this.key(event),
    });
    this.shape();
    this.root = this.build();
    this.recolour();
    this.point(null);
  }

  /** Sets the aspect ratio of the canvas to that of its content. */
  shape() {
    const panes = this.layers.right ? 2 : 1;
    this.stage.shape(((this.layout === 'below' ? 1 / panes : panes) * this.data.width) / this.data.height);
  }

  build() {
    const { data, layers } = this;
    const layout = segmented('Layout', [['beside', 'side by side'], ['below', 'one below the other']], this.layout, (value) => {
      this.layout = value;
      this.shape();
      for (const pane of [this.left, this.right]) pane.fitted = true;
      this.stage.resize();
    });
    if (data.left && data.right) this.stage.names([data.left.name, data.right.name]);
    /** @type {[string, string][]} */
    const choices = [['disparity', 'disparity']];
    if (layers.left) choices.push(['picture', 'picture']);
    if (layers.reasons) choices.push(['reasons', 'why invalid']);
    if (layers.confidence) choices.push(['confidence', 'confidence']);
    if (layers.truth) choices.push(['difference', data.before ? 'difference of both runs' : 'difference to the truth'], ['truth', data.before ? 'before' : 'truth']);
    const show = segmented('Show', choices, this.layer, (layer) => {
      this.layer = layer;
      this.recolour();
    });
    const opacity = slider('Over the picture', 0, 100, 100, 1, (v) => `${v} %`, (v) => {
      this.opacity = v / 100;
      this.stage.draw();
    });
    this.range = new Histogram('disparity', layers.disparity, { unit: 'px', decimals: 1, changed: () => this.recolour() });
    this.range.set(...data.range);
    this.spread = slider('Difference up to', 0.25, 10, 2, 0.25, (v) => `± ${v} px`, () => this.recolour());
    const colours = element('select', {}, ...['viridis', 'plasma', 'inferno', 'grey'].map((name) => element('option', { value: name }, name)));
    colours.addEventListener('change', () => {
      this.tables.depth = colourTable(colours.value);
      this.cloud?.palette(this.tables.depth);
      this.recolour();
    });
    this.legend = element('div', { class: 'colour-bar' });
    this.space = element('div', { class: 'space', role: 'group', 'aria-label': 'Points in space' });
    // The points are computed when the reader scrolls near.
    const near = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) {
        near.disconnect();
        this.openCloud();
      }
    }, { rootMargin: '200px' });
    near.observe(this.space);
    const tools = element('div', { class: 'tools' }, show.field, layers.right ? layout.field : '', layers.left ? opacity.field : '', element('label', { class: 'select' }, element('span', {}, 'Colours'), colours),
      button('show all', () => this.stage.reset()), this.stage.saving('disparity'), element('div', { class: 'modes' }, this.legend), element('div', { class: 'modes' }, this.spread.field));
    const status = element('div', { role: 'group', 'aria-label': 'Under the cursor', 'aria-live': 'polite' }, this.readout.list);
    const panel = element('div', { class: 'panel' }, status, element('div', { role: 'group', 'aria-label': 'Range of the colours' }, this.range.field), this.reasonList());
    const note = data.step > 1 ? element('p', { class: 'note' }, `This file holds one pixel of each ${data.step} × ${data.step}.`) : '';
    return element('div', { class: 'view-body' }, tools, element('div', { class: 'split' }, this.stage.host, panel), note, this.space,
      element('p', { class: 'hint' }, layers.right ? 'The cursor in the left picture is shown at its place in the right one.' : ''));
  }

  reasonList() {
    const { counts, reason_names, width, height } = this.data;
    if (!counts) return '';
    const rows = reason_names.filter(([, name]) => counts[name]).map(([number, name]) => {
      const swatch = element('span', { class: 'swatch' });
      swatch.style.background = number ? css(REASON_COLOURS[number]) : gradient(this.tables.depth);
      return element('tr', {}, element('th', { scope: 'row' }, swatch, name), element('td', {}, `${((100 * counts[name]) / (width * height)).toFixed(1)} %`));
    });
    return element('div', { class: 'reasons', role: 'group', 'aria-label': 'Why pixels are invalid' }, element('table', {}, element('caption', {}, 'Pixels'), ...rows));
  }

  // ---- colours

  recolour() {
    if (!this.range) return;
    const { data, layers, layer, tables } = this;
    const n = data.columns * data.rows;
    const [low, high] = this.range.range();
    const scale = 1 / (high - low);
    const spread = Number(this.spread?.input.value ?? 2);
    const out = new Uint32Array(n);
    const { disparity, truth, reasons, confidence } = layers;
    const none = packed(0, 0, 0, 255);
    /** @type {(i: number) => number} */
    let colour = (i) => (Number.isNaN(disparity[i]) ? none : colourAt(tables.depth, (disparity[i] - low) * scale));
    if (layer === 'truth' && truth) colour = (i) => (Number.isNaN(truth[i]) ? none : colourAt(tables.depth, (truth[i] - low) * scale));
    if (layer === 'confidence' && confidence) colour = (i) => tables.share[confidence[i]];
    if (layer === 'reasons' && reasons) colour = (i) => REASON_COLOURS[reasons[i]] ?? 0;
    if (layer === 'difference' && truth) {
      colour = (i) => {
        const d = disparity[i] - truth[i];
        if (Number.isNaN(truth[i])) return packed(70, 72, 80, 255);
        return Number.isNaN(d) ? none : colourAt(tables.signed, 0.5 + d / (2 * spread));
      };
    }
    if (layer !== 'picture') for (let i = 0; i < n; i++) out[i] = colour(i);
    this.sheet = sheetOfPixels(data.columns, data.rows, new Uint8ClampedArray(out.buffer), [data.columns * data.step, data.rows * data.step]);
    this.bar(low, high, spread);
    if (this.cloud && (this.cloud.range[0] !== low || this.cloud.range[1] !== high)) this.cloud.recolour(low, high);
    this.stage.draw();
  }

  /** The legend of colours. @param {number} low @param {number} high @param {number} spread */
  bar(low, high, spread) {
    const { legend, layer, tables } = this;
    if (!legend) return;
    if (this.spread) this.spread.field.hidden = layer !== 'difference';
    /** @type {Record<string, [string, Uint32Array, string]>} */
    const bars = {
      disparity: [`${low.toFixed(1)} px`, tables.depth, `${high.toFixed(1)} px`],
      truth: [`${low.toFixed(1)} px`, tables.depth, `${high.toFixed(1)} px`],
      confidence: ['0', tables.share, '1'],
      difference: [`−${spread} px`, tables.signed, `+${spread} px`],
    };
    const bar = bars[layer];
    legend.hidden = !bar;
    if (!bar) return;
    const strip = element('span', { class: 'strip' });
    strip.style.background = gradient(bar[1]);
    legend.replaceChildren(element('span', {}, bar[0]), strip, element('span', {}, bar[2]));
  }

  // ---- the cursor

  /** @param {Point | null} at */
  hover(at) {
    if (at && this.layers.right && this.right.holds(at)) return;
    const p = at && this.left.holds(at) ? this.left.toPlane(at) : null;
    this.point(p && p[0] >= -0.5 && p[1] >= -0.5 && p[0] < this.data.width - 0.5 && p[1] < this.data.height - 0.5 ? p : null);
  }

  /** @param {Point | null} p in pixels of the left picture */
  point(p) {
    this.cursor = p ? [Math.round(p[0]), Math.round(p[1])] : null;
    this.readout.show(this.cursor ? this.read(this.cursor) : [['Cursor', `over the ${this.layers.right ? 'left ' : ''}picture, or tap it`]]);
    this.stage.draw();
  }

  /** The index of a pixel in the layers. @param {Point} p */
  index([x, y]) {
    const { step, columns, rows } = this.data;
    return Math.min(rows - 1, Math.floor(y / step)) * columns + Math.min(columns - 1, Math.floor(x / step));
  }

  /** @param {Point} p @returns {[string, string][]} */
  read(p) {
    const { data, layers } = this;
    const i = this.index(p);
    const d = layers.disparity[i];
    /** @type {[string, string][]} */
    const rows = [['Pixel', `${p[0]}, ${p[1]}`], ['Disparity', Number.isNaN(d) ? 'none' : `${d.toFixed(2)} px`]];
    if (layers.reasons && layers.reasons[i]) {
      const name = data.reason_names.find(([n]) => n === layers.reasons?.[i])?.[1] ?? '';
      rows.push([Number.isNaN(d) ? 'Why' : 'Filled, was', name]);
    }
    if (data.rectified) {
      const { focal, baseline, doffs } = data.rectified;
      const z = (focal * baseline) / (d + doffs);
      // A baseline of exactly 1 is taken to mean that none was given.
      rows.push(['Depth', d + doffs > 0 ? `${Number(z.toPrecision(4))} ${baseline === 1 ? '× baseline' : "in the calibration's unit"}` : 'none']);
    }
    if (layers.confidence) rows.push(['Confidence', (layers.confidence[i] / 255).toFixed(2)]);
    if (layers.truth) {
      const t = layers.truth[i];
      rows.push([data.before ? 'Before' : 'Truth', Number.isNaN(t) ? data.before ? 'none' : 'unknown' : `${t.toFixed(2)} px`], [data.before ? 'Change' : 'Off by', Number.isNaN(d - t) ? '–' : `${(d - t).toFixed(2)} px`]);
    }
    if (layers.right) rows.push(['In the right', Number.isNaN(d) ? 'not found' : `${(p[0] - d).toFixed(1)}, ${p[1]}`]);
    return rows;
  }

  state() {
    return { cursor: this.cursor ? this.cursor.join(',') : '' };
  }

  /** @param {Map<string, string>} state */
  restore(state) {
    const [x, y] = (state.get('cursor') ?? '').split(',').map(Number);
    if (x >= 0 && y >= 0 && x < this.data.width && y < this.data.height) this.point([x, y]);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.shiftKey) return false;
    const steps = /** @type {Record<string, Point>} */ ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] });
    const by = steps[event.key];
    if (!by) return false;
    const { width, height } = this.data;
    const stride = Math.max(1, Math.round(4 / this.left.zoom));
    const from = this.cursor ?? [Math.floor(width / 2), Math.floor(height / 2)];
    this.point([clamp(from[0] + by[0] * stride, 0, width - 1), clamp(from[1] + by[1] * stride, 0, height - 1)]);
    return true;
  }

  // ---- drawing

  /** @param {Painter} painter */
  draw(painter) {
    const { left, right, layers, data, cursor } = this;
    if (layers.left) left.draw(painter, layers.left);
    if (this.sheet && this.layer !== 'picture') left.draw(painter, this.sheet, layers.left && this.layer !== 'reasons' ? this.opacity : layers.left ? 0.85 * this.opacity : 1);
    if (layers.right) right.draw(painter, layers.right);
    if (!cursor) return;
    const white = packed(255, 255, 255, 255);
    const cross = (/** @type {Pane} */ pane, /** @type {Point} */ p) => {
      const [x, y] = pane.toScreen(p);
      if (!pane.holds([x, y])) return;
      painter.lines(Float32Array.of(x - 10, y, x + 10, y, x, y - 10, x, y + 10), Uint32Array.of(...Array(2).fill(packed(0, 0, 0, 180))), 2, 4);
      painter.lines(Float32Array.of(x - 10, y, x + 10, y, x, y - 10, x, y + 10), Uint32Array.of(white, white), 2, 1.5);
    };
    cross(left, cursor);
    if (!layers.right) return;
    const d = layers.disparity[this.index(cursor)];
    const [, y] = right.toScreen([0, cursor[1]]);
    const { x, w } = right.clip();
    if (y >= right.rect.y && y < right.rect.y + right.rect.h) {
      painter.lines(Float32Array.of(x, y, x + w, y), Uint32Array.of(packed(120, 220, 255, 140)), 1, 1);
    }
    if (!Number.isNaN(d) && data.right) cross(right, [cursor[0] - d, cursor[1]]);
  }

  openCloud() {
    if (!this.space || !this.range) return;
    this.cloud = new Cloud(this.data, this.layers, this.tables.depth);
    this.space.append(this.cloud.root);
    const [low, high] = this.range.range();
    this.cloud.recolour(low, high);
    this.cloud.draw();
  }
}

/** @param {DisparityData} data */
async function disparityView(data) {
  const values = (/** @type {MapData | null} */ map) => (map ? mapValues(map, data.columns, data.rows) : null);
  const [left, right] = await Promise.all([data.left ? picture(data.left) : null, data.right ? picture(data.right) : null]);
  return new DisparityView(data, {
    left,
    right,
    disparity: await mapValues(data.disparity, data.columns, data.rows),
    truth: await values(data.truth),
    confidence: data.confidence ? await bytes(data.confidence) : null,
    reasons: data.reasons ? await bytes(data.reasons) : null,
  });
}
