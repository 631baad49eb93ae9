// @ts-check
// Two pictures and their matches.

/** The values by which lines and dots may be coloured. */
const MEASURES = /** @type {const} */ (['residual', 'ratio', 'distance', 'scale', 'change', 'turn']);

class MatchesView {
  /** @param {MatchesData} data @param {[Sheet, Sheet]} sheets @param {Record<string, Float32Array>} c @param {Uint8Array} inlier @param {Uint32Array[]} indices
   * @param {Uint8Array | null} runs which of two compared runs has each match */
  constructor(data, sheets, c, inlier, indices, runs) {
    this.data = data;
    this.sheets = sheets;
    this.c = c;
    this.inlier = inlier;
    this.indices = indices;
    this.runs = runs;
    this.keepRuns = RUNS.map(() => true);
    this.count = inlier.length;
    /** A ratio of 0 means that there was no second neighbour. */
    this.ratios = c.ratio.map((ratio) => (ratio > 0 ? ratio : NaN));
    /** By how much a feature is larger in B, and turned, in degrees from −180 to 180. */
    this.changes = c.ascale.map((scale, i) => c.bscale[i] / scale);
    this.turns = c.aangle.map((angle, i) => ((((c.bangle[i] - angle) * 180) / Math.PI + 540) % 360) - 180);
    this.order = new Uint32Array(0);
    this.colours = new Uint32Array(this.count);
    /** The values at both ends of the colour map. */
    this.range = [0, 1];
    this.selected = -1;
    this.hovered = -1;
    /** The match that is shown until one is chosen. @type {number | undefined} */
    this.example = undefined;
    /** @type {{ pane: number, at: Point } | null} */
    this.cursor = null;
    /** Places whose line or place in the other picture stays drawn. @type {{ pane: number, at: Point }[]} */
    this.pins = [];
    this.layout = layoutFor([[data.a.width, data.a.height], [data.b.width, data.b.height]]);
    this.lineMode = this.count > 400 ? 'some' : 'all';
    this.mix = 0.5;
    this.error = this.errors();
    this.panes = [new Pane(data.a.width, data.a.height), new Pane(data.b.width, data.b.height)];
    this.places = new Float32Array(3 * 2 * this.count);
    this.tints = new Uint32Array(2 * this.count);
    this.ends = new Float32Array(4 * (this.count + 4));
    this.lineTints = new Uint32Array(this.count + 4);
    this.table = colourTable('viridis', 0.3, 1);
    this.stage = new Stage({
      label: `${data.a.name} and ${data.b.name} with their matches. Arrow keys walk through the matches from the worst, Enter enlarges the match, P pins what the cursor shows, plus and minus enlarge, shift with arrows moves, 0 shows all.`,
      arrange: (w, h) => this.arrange(w, h),
      draw: (painter, moving) => this.draw(painter, moving),
      hover: (at) => this.hover(at),
      click: (at) => this.click(at),
      key: (event) => this.key(event),
    });
    this.shape();
    this.parts = new Parts(data.parts, this.stage, this.panes[0]);
    this.stage.names([`A: ${data.a.name}`, `B: ${data.b.name}`]);
    this.root = this.build();
    this.filter();
    this.example = this.telling();
    this.inspect(-1);
  }

  /** The errors of matches, where the truth is known. */
  errors() {
    const { truth } = this.data;
    if (!truth) return null;
    const { ax, ay, bx, by } = this.c;
    return Float32Array.from(ax, (x, i) => {
      const to = mapped(truth, [x, ay[i]]);
      return to ? Math.hypot(to[0] - bx[i], to[1] - by[i]) : NaN;
    });
  }

  /** @param {string} name @returns {Float32Array} */
  measure(name) {
    if (name === 'error' && this.error) return this.error;
    if (name === 'ratio') return this.ratios;
    if (name === 'run' && this.runs) return Float32Array.from(this.runs);
    if (name === 'change') return this.changes;
    if (name === 'turn') return this.turns;
    return name === 'scale' ? this.c.ascale : this.c[name];
  }

  // ---- the page

  build() {
    const { data } = this;
    const verified = data.model !== null;
    /** The value by which lines and dots are coloured. @type {string} */
    this.colourBy = this.runs ? 'run' : this.error ? 'error' : verified ? 'residual' : 'ratio';
    const layout = segmented('Layout', [['beside', 'side by side'], ['below', 'one below the other'], ['over', 'one over the other']], this.layout, (value) => {
      this.layout = value;
      this.shape();
      mix.field.hidden = value !== 'over';
      for (const pane of this.panes) pane.fitted = true;
      this.stage.resize();
    });
    const lines = segmented('Lines', [['none', 'none'], ['some', 'some'], ['all', 'all']], this.lineMode, (value) => {
      this.lineMode = value;
      this.stage.draw();
    });
    const mix = slider('Second picture', 0, 100, 50, 1, (v) => `${v} %`, (v) => {
      this.mix = v / 100;
      this.stage.draw();
    });
    mix.field.hidden = true;
    const names = [...(this.error ? ['error'] : []), ...MEASURES.filter((m) => verified || m !== 'residual')];
    const chosen = this.colourBy;
    const colours = element('select', {}, ...[...(this.runs ? ['run'] : []), ...names].map((n) => element('option', { value: n, selected: n === chosen }, this.nameOf(n))));
    colours.addEventListener('change', () => {
      this.colourBy = colours.value;
      this.legend();
      this.stage.draw();
    });
    const linked = toggle('move together', true, (on) => {
      this.stage.together = on;
    });
    this.bar = element('div', { class: 'colour-bar' });
    const pin = data.model || data.truth ? button('pin (P)', () => this.pin(), 'Pin the line or place that the cursor, or the chosen match, has in the other picture; again to remove it') : '';
    const tools = element('div', { class: 'tools' }, layout.field, lines.field,
      element('label', { class: 'select' }, element('span', {}, 'Colour by'), colours), this.bar, linked, pin, this.parts.toggle ?? '',
      button('show all', () => this.stage.reset()), this.stage.saving('matches'), mix.field);

    this.keepInliers = true;
    this.keepOutliers = !verified;
    const chip = (/** @type {boolean} */ inlier) => {
      let n = 0;
      for (const flag of this.inlier) n += flag === (inlier ? 1 : 0) ? 1 : 0;
      return toggle(`${inlier ? 'inliers' : 'outliers'} ${counted(n)}`, inlier ? this.keepInliers === true : this.keepOutliers === true, (/** @type {boolean} */ on) => {
        if (inlier) this.keepInliers = on;
        else this.keepOutliers = on;
        this.filter();
      });
    };
    const worst = this.inlier.reduce((most, flag, i) => (flag && this.c.residual[i] > most ? this.c.residual[i] : most), 0);
    /** @type {[string, Histogram][]} */
    this.histograms = names.map((n) => [n, new Histogram(this.nameOf(n), this.measure(n), {
      changed: () => this.filter(),
      unit: this.unitOf(n),
      ...(n === 'scale' ? { logarithmic: true, decimals: 1 } : n === 'change' ? { logarithmic: true } : n === 'turn' ? { decimals: 0 } : {}),
      // The residual of the worst inlier stands for the threshold, from which it hardly differs.
      ...(n === 'residual' && verified && worst > 0 ? { mark: worst } : {}),
    })]);
    const { runs } = this;
    const runChips = runs ? RUNS.map(({ name }, run) => toggle(`${name} ${counted(runs.reduce((n, r, i) => n + (r === run && (this.inlier[i] || !verified) ? 1 : 0), 0))}`, true, (on) => {
      this.keepRuns[run] = on;
      this.filter();
    })) : [];
    const chips = verified || runs ? element('div', { class: 'chips' }, ...runChips, ...(verified ? [chip(true), chip(false)] : [])) : '';

    // The details of one match.
    this.patches = [0, 1].map(() => element('canvas', { width: '144', height: '144', class: 'patch', role: 'img', 'aria-label': 'no match chosen' }));
    this.details = values();
    this.status = element('p', { class: 'status', 'aria-live': 'polite' });
    this.kept = element('p', { class: 'kept', role: 'status' });
    const walk = element('div', { class: 'walk' }, button('← worse', () => this.walk(-1), 'the next worse match'), button('better →', () => this.walk(1), 'the next better match'), button('enlarge', () => this.approach(), 'Enlarge the match, with B turned and scaled as the model says (Enter)'));
    const csv = button('Save these as CSV', () => save('matches.csv', this.csv()));
    const inspector = element('div', { class: 'panel', role: 'group', 'aria-label': 'One match' },
      element('div', { class: 'patches' }, ...this.patches), this.status, this.details.list, walk);
    const filters = element('div', { class: 'filters', role: 'group', 'aria-label': 'Which matches' },
      element('div', { class: 'filters-head' }, this.kept, chips, csv), ...this.histograms.map(([, h]) => h.field));
    const reduced = [];
    if (this.count < data.total) reduced.push(`${counted(this.count)} of ${counted(data.total)} matches are in this file.`);
    if (data.a.step > 1 || data.b.step > 1) reduced.push(`The pictures are reduced to 1/${data.a.step} and 1/${data.b.step}.`);
    const note = reduced.length ? element('p', { class: 'note' }, reduced.join(' ')) : '';
    return element('div', { class: 'view-body' }, tools, element('div', { class: 'split' }, this.stage.host, inspector), filters, note,
      element('p', { class: 'hint' }, 'Move the mouse over a feature, or walk with ← and → from the worst match; Enter enlarges it. Drag to move; click and turn the wheel, or hold Ctrl, to enlarge; double click to show all.'));
  }

  /** @param {string} measure */
  nameOf(measure) {
    if (measure === 'residual') return this.data.residual_name;
    return { error: 'error to truth', ratio: 'ratio', distance: 'descriptor distance', scale: 'scale', change: 'scale change', turn: 'turned by', run: 'which run' }[measure] ?? measure;
  }

  /** @param {string} measure */
  unitOf(measure) {
    return measure === 'ratio' || measure === 'distance' ? '' : { change: '×', turn: '°' }[measure] ?? 'px';
  }

  /** Sets the aspect ratio of the canvas to that of its content. */
  shape() {
    const steepest = Math.max(...this.panes.map((pane) => pane.height / pane.width));
    const [across, down] = this.layout === 'beside' ? [2, 1] : this.layout === 'below' ? [1, 2] : [1, 1];
    this.stage.shape(across / (down * steepest));
  }

  // ---- which matches

  filter() {
    const keep = [];
    const { histograms = [] } = this;
    const chosen = (/** @type {number} */ i) => (this.inlier[i] ? this.keepInliers : this.keepOutliers) === true && this.keepRuns[this.runs?.[i] ?? 0];
    for (const [, h] of histograms) h.count(chosen);
    const columns = histograms.map(([name, h]) => /** @type {[Float32Array, Histogram]} */ ([this.measure(name), h]));
    for (let i = 0; i < this.count; i++) {
      if (!chosen(i)) continue;
      if (columns.every(([column, h]) => h.keeps(column[i]))) keep.push(i);
    }
    const by = this.measure(this.error ? 'error' : this.data.model ? 'residual' : 'ratio');
    const worth = (/** @type {number} */ i) => (Number.isNaN(by[i]) ? Infinity : by[i]);
    // The worst first, NaN before all others.
    keep.sort((i, j) => (worth(j) > worth(i) ? 1 : worth(j) < worth(i) ? -1 : i - j));
    this.order = Uint32Array.from(keep);
    if (this.kept) this.kept.textContent = `${counted(keep.length)} of ${counted(this.count)} matches`;
    const kept = (/** @type {number} */ i) => i >= 0 && this.order.includes(i);
    if (this.example !== undefined && !kept(this.example)) this.example = this.telling();
    if (this.selected >= 0 && !kept(this.selected)) this.select(-1);
    this.legend();
    this.stage.draw();
  }

  /** The legend; colours run from the least to nearly the greatest of the kept values. */
  legend() {
    const { runs } = this;
    if (runs && this.colourBy === 'run') {
      this.colours = Uint32Array.from(runs, (run) => RUNS[run].colour);
      this.bar?.replaceChildren(...RUNS.map(({ name, colour }) => swatched(name, colour)));
      return;
    }
    const by = this.measure(this.colourBy ?? 'ratio');
    const kept = Array.from(this.order, (i) => by[i]).filter(Number.isFinite).sort((a, b) => a - b);
    const low = kept[0] ?? 0;
    const high = kept[Math.floor(kept.length * 0.98)] ?? 1;
    this.range = [low, high > low ? high : low + 1e-6];
    const strip = element('span', { class: 'strip' });
    strip.style.background = gradient(this.table);
    const of = (/** @type {number} */ v) => (Number.isFinite(v) ? colourAt(this.table, (v - low) / (this.range[1] - low)) : this.table[255]);
    this.colours = Uint32Array.from(by, of);
    const decimals = high < 10 ? 2 : 0;
    const unit = this.unitOf(this.colourBy ?? 'ratio');
    this.bar?.replaceChildren(element('span', {}, written(low, decimals)), strip, element('span', {}, `${written(high, decimals)}${unit ? ` ${unit}` : ''}`));
  }

  csv() {
    const { c, inlier, indices } = this;
    const rows = Array.from(this.order, (i) => [
      ...[c.ax[i], c.ay[i], c.bx[i], c.by[i], c.distance[i], c.ratio[i]].map(shortest), inlier[i], indices[0][i], indices[1][i],
      Number.isNaN(c.residual[i]) ? '' : shortest(c.residual[i]),
    ].join(','));
    return `ax,ay,bx,by,distance,ratio,inlier,a,b,residual\n${rows.join('\n')}${rows.length ? '\n' : ''}`;
  }

  // ---- drawing

  /** @param {number} width @param {number} height */
  arrange(width, height) {
    if (this.layout === 'over') {
      for (const pane of this.panes) pane.place({ x: 0, y: 0, w: width, h: height });
      return this.panes;
    }
    return share(this.panes, width, height, this.layout === 'below');
  }

  /** The ends of a match in A and B, on the screen. @param {number} i @returns {[Point, Point]} */
  screen(i) {
    const { c, panes } = this;
    return [panes[0].toScreen([c.ax[i], c.ay[i]]), panes[1].toScreen([c.bx[i], c.by[i]])];
  }

  /** @param {Painter} painter @param {boolean} moving */
  draw(painter, moving) {
    const over = this.layout === 'over';
    this.panes.forEach((pane, i) => pane.draw(painter, this.sheets[i], over && i === 1 ? this.mix : 1));
    const { c, order, places, tints, ends, lineTints, panes, colours, inlier } = this;
    const n = order.length;
    const chosen = [this.hovered, this.selected, this.example ?? -1].find((i) => i >= 0) ?? -1;
    // The largest dots that fit so many matches on so wide a canvas.
    const radius = (n > 5000 ? 1.6 : n > 800 ? 2.2 : 3) * clamp(this.stage.host.clientWidth / 1000, 1, 1.7);
    let dots = 0;
    let lines = 0;
    // The time for a line grows with the area that it covers, so only some hundred are drawn while the planes move.
    const most = this.lineMode === 'none' ? 0 : this.lineMode === 'some' ? 250 : moving ? 800 : Infinity;
    const every = Math.max(1, Math.ceil(n / Math.max(1, most)));
    const [a, b] = panes.map((pane) => pane.linear());
    const outlier = faded(OUTLIER, 200);
    const alpha = Math.round(255 * clamp(Math.sqrt(60 / Math.max(1, Math.min(n, most))), 0.25, 0.9));
    // From the best to the worst, so that the worst lie on top and are not hidden in a crowd.
    for (let k = n - 1; k >= 0; k--) {
      const i = order[k];
      const colour = colours[i];
      const [px, py] = [c.ax[i] * a.along - c.ay[i] * a.across + a.x, c.ax[i] * a.across + c.ay[i] * a.along + a.y];
      const [qx, qy] = [c.bx[i] * b.along - c.by[i] * b.across + b.x, c.bx[i] * b.across + c.by[i] * b.along + b.y];
      const inA = px >= a.left && px < a.right && py >= a.top && py < a.bottom;
      const inB = qx >= b.left && qx < b.right && qy >= b.top && qy < b.bottom;
      const tint = inlier[i] ? colour : outlier;
      if (inA) {
        const at = 3 * dots;
        places[at] = px;
        places[at + 1] = py;
        places[at + 2] = radius;
        tints[dots++] = tint;
      }
      if (inB) {
        const at = 3 * dots;
        places[at] = qx;
        places[at + 1] = qy;
        places[at + 2] = radius;
        tints[dots++] = tint;
      }
      if (most > 0 && inA && inB && (k % every === 0 || over)) {
        const at = 4 * lines;
        ends[at] = px;
        ends[at + 1] = py;
        ends[at + 2] = qx;
        ends[at + 3] = qy;
        lineTints[lines++] = inlier[i] ? faded(colour, over ? 200 : alpha) : faded(OUTLIER, 70);
      }
    }
    painter.lines(ends, lineTints, lines, over ? 1.6 : 1.2);
    painter.dots(places, tints, dots);
    if (!over) this.parts.draw(painter);
    this.pins.forEach((pin, k) => this.drawPrediction(painter, pin, KINDS[k % KINDS.length], true));
    if (this.cursor) this.drawPrediction(painter, this.cursor, packed(120, 220, 255, 255), false);
    if (chosen >= 0) {
      const [p, q] = this.screen(chosen);
      painter.lines(Float32Array.of(...p, ...q), Uint32Array.of(packed(0, 0, 0, 160)), 1, 5);
      painter.lines(Float32Array.of(...p, ...q), Uint32Array.of(packed(255, 255, 255, 255)), 1, 2);
      const bright = packed(255, 255, 255, 255);
      painter.dots(Float32Array.of(...p, 7, ...q, 7, ...p, 4.5, ...q, 4.5), Uint32Array.of(bright, bright, colours[chosen], colours[chosen]), 4);
    }
  }

  /** Draws the point or the line that the model predicts for a place, and the place itself.
   * @param {Painter} painter @param {{ pane: number, at: Point }} cursor @param {number} colour @param {boolean} marked */
  drawPrediction(painter, cursor, colour, marked) {
    const { data } = this;
    const matrix = data.truth ?? data.model?.matrix;
    if (!matrix || this.layout === 'over') return;
    const other = this.panes[1 - cursor.pane];
    const own = this.panes[cursor.pane].toScreen(cursor.at);
    if (marked && this.panes[cursor.pane].holds(own)) painter.dots(Float32Array.of(...own, 6, ...own, 4.5), Uint32Array.of(packed(0, 0, 0, 200), colour), 2);
    const shadow = packed(0, 0, 0, 130);
    const stroke = (/** @type {Point} */ p, /** @type {Point} */ q) => {
      painter.lines(Float32Array.of(...p, ...q), Uint32Array.of(shadow), 1, 4);
      painter.lines(Float32Array.of(...p, ...q), Uint32Array.of(colour), 1, 1.6);
    };
    if (data.model?.kind === 'fundamental' && !data.truth) {
      const line = times(cursor.pane === 0 ? matrix : transposed(matrix), cursor.at);
      const whole = lineWithin(line, other);
      const ends = whole && segmentWithin(...whole, other.rect);
      if (ends) stroke(...ends);
      return;
    }
    const to = mapped(cursor.pane === 0 ? matrix : inverse(matrix), cursor.at);
    if (!to) return;
    const [x, y] = other.toScreen(to);
    if (!other.holds([x, y])) return;
    for (const [dx, dy] of [[12, 0], [0, 12]]) {
      stroke([x - dx, y - dy], [x - dx / 3, y - dy / 3]);
      stroke([x + dx / 3, y + dy / 3], [x + dx, y + dy]);
    }
  }

  // ---- one match

  /** The kept match with an end nearest to a point of the screen. @param {Point} at */
  nearest(at) {
    const { c, order } = this;
    let [best, least] = [-1, 14 ** 2];
    this.panes.forEach((pane, side) => {
      if (!pane.holds(at)) return;
      const [xs, ys] = side === 0 ? [c.ax, c.ay] : [c.bx, c.by];
      const [x, y] = pane.toPlane(at);
      const scale = pane.zoom ** 2;
      for (const i of order) {
        const d = ((xs[i] - x) ** 2 + (ys[i] - y) ** 2) * scale;
        if (d < least) [best, least] = [i, d];
      }
    });
    return best;
  }

  /** The match that is shown until one is chosen: of large scale, unlike all others, and an inlier if there is a model. */
  telling() {
    const { c, order } = this;
    let [best, most] = [-1, -Infinity];
    for (const i of order) {
      if (this.data.model && !this.inlier[i]) continue;
      const worth = Math.min(c.ascale[i], 12) - 10 * (Number.isNaN(this.ratios[i]) ? 1 : this.ratios[i]);
      if (worth > most) [best, most] = [i, worth];
    }
    return best;
  }

  /** @param {Point | null} at */
  hover(at) {
    const side = at ? this.panes.findIndex((pane) => pane.holds(at)) : -1;
    this.cursor = at && side >= 0 ? { pane: side, at: this.panes[side].toPlane(at) } : null;
    const before = this.hovered;
    this.hovered = at ? this.nearest(at) : -1;
    if (this.hovered !== before) this.inspect(this.hovered >= 0 ? this.hovered : this.selected);
    this.stage.draw();
  }

  /** @param {Point} at */
  click(at) {
    this.select(this.nearest(at));
  }

  /** @param {number} i */
  select(i) {
    this.selected = i;
    this.inspect(i);
    this.stage.draw();
  }

  /** Pins the place under the cursor, or that of the chosen match; removes it where it is pinned. */
  pin() {
    const { c, pins, selected } = this;
    const place = this.cursor ?? (selected >= 0 ? { pane: 0, at: /** @type {Point} */ ([c.ax[selected], c.ay[selected]]) } : null);
    if (!place) return;
    const { zoom } = this.panes[place.pane];
    const near = pins.findIndex(({ pane, at }) => pane === place.pane && Math.hypot(at[0] - place.at[0], at[1] - place.at[1]) * zoom < 8);
    if (near >= 0) pins.splice(near, 1);
    else pins.push(place);
    this.stage.draw();
  }

  /** Enlarges the chosen match in both pictures; B is turned and scaled as the model says there, or else as its features
   * are. */
  approach() {
    const { c, panes, data } = this;
    const i = this.selected >= 0 ? this.selected : this.example ?? -1;
    const [a, b] = /** @type {Point[]} */ ([[c.ax[i], c.ay[i]], [c.bx[i], c.by[i]]]);
    if (i < 0 || ![...a, ...b, c.ascale[i]].every(Number.isFinite)) return;
    if (this.selected !== i) this.select(i);
    const map = data.truth ?? (data.model && data.model.kind !== 'fundamental' && data.model.kind !== 'essential' ? data.model.matrix : null);
    let [scale, turn] = [c.bscale[i] / c.ascale[i], c.bangle[i] - c.aangle[i]];
    const [here, right, below] = map ? [a, [a[0] + 1, a[1]], [a[0], a[1] + 1]].map((p) => mapped(map, /** @type {Point} */ (p))) : [];
    if (here && right && below) {
      const [xx, yx, xy, yy] = [right[0] - here[0], right[1] - here[1], below[0] - here[0], below[1] - here[1]];
      [scale, turn] = [Math.sqrt(Math.abs(xx * yy - xy * yx)), Math.atan2(yx - xy, xx + yy)];
    }
    if (!(scale > 0) || !Number.isFinite(turn)) [scale, turn] = [1, 0];
    const side = Math.min(panes[0].rect.w, panes[0].rect.h);
    const zoom = clamp(side / (6 * data.support * c.ascale[i]), 0.1, 32);
    panes[0].look(a, zoom, 0);
    panes[1].look(b, zoom / scale, -turn);
    this.stage.moved();
  }

  state() {
    return {
      match: this.selected < 0 ? '' : String(this.selected),
      pins: this.pins.map(({ pane, at }) => [pane, ...at.map((v) => Number(v.toFixed(2)))].join(',')).join(';'),
    };
  }

  /** @param {Map<string, string>} state */
  restore(state) {
    this.pins = (state.get('pins') ?? '').split(';').map((pin) => pin.split(',').map(Number))
      .filter((pin) => pin.length === 3 && pin.every(Number.isFinite)).map(([pane, x, y]) => ({ pane: pane ? 1 : 0, at: [x, y] }));
    const match = Number(state.get('match') ?? -1);
    if (this.order.includes(match)) this.select(match);
  }

  /** @param {number} by */
  walk(by) {
    const n = this.order.length;
    if (n === 0) return;
    const now = this.order.indexOf(this.selected);
    const next = now < 0 ? (by > 0 ? 0 : n - 1) : clamp(now + by, 0, n - 1);
    this.hovered = -1;
    this.select(this.order[next]);
    const { c, selected, panes } = this;
    const places = /** @type {Point[]} */ ([[c.ax[selected], c.ay[selected]], [c.bx[selected], c.by[selected]]]);
    // Enlarged planes move to the match.
    panes.forEach((pane, side) => {
      if (!pane.fitted && places[side].every(Number.isFinite)) pane.middle = places[side];
    });
    this.stage.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.shiftKey) return false;
    if (walksByKey(this, event)) return true;
    if (event.key === 'Enter') this.approach();
    else if (event.key === 'p' || event.key === 'P') this.pin();
    else return false;
    return true;
  }

  /** Shows both patches and the figures of a match. @param {number} i */
  inspect(i) {
    const { c, data, patches = [], details, status } = this;
    if (!details || !status) return;
    const example = i < 0 && this.order.includes(this.example ?? -1);
    if (example) i = this.example ?? -1;
    if (i < 0) {
      for (const patch of patches) {
        context2d(patch).clearRect(0, 0, patch.width, patch.height);
        patch.setAttribute('aria-label', 'no match chosen');
      }
      details.show([]);
      status.textContent = 'No match chosen.';
      return;
    }
    drawPatch(patches[0], this.sheets[0], data.a.name, [c.ax[i], c.ay[i]], data.support * c.ascale[i], c.aangle[i]);
    drawPatch(patches[1], this.sheets[1], data.b.name, [c.bx[i], c.by[i]], data.support * c.bscale[i], c.bangle[i]);
    const rank = this.order.indexOf(i);
    // Adding 0 turns −0 into 0.
    const turned = Math.round(this.turns[i]) + 0;
    status.textContent = example ? 'Example: the highlighted match.' : rank < 0 ? '' : `${ordinal(rank + 1)} worst of ${counted(this.order.length)}: ${this.inlier[i] ? 'an inlier' : 'an outlier'}.`;
    /** @type {[string, string][]} */
    const rows = [];
    if (this.error) rows.push(['error to truth', `${written(this.error[i], 2)} px`]);
    if (data.model) rows.push([data.residual_name, `${written(c.residual[i], 2)} px`]);
    rows.push(
      ['descriptor distance', written(c.distance[i], 3)],
      ['ratio', Number.isNaN(this.ratios[i]) ? 'no rival' : written(this.ratios[i], 3)],
      ['in A', `${written(c.ax[i], 1)}, ${written(c.ay[i], 1)}`],
      ['in B', `${written(c.bx[i], 1)}, ${written(c.by[i], 1)}`],
      ['scale', `${written(c.ascale[i], 1)} → ${written(c.bscale[i], 1)} px`],
      ['turned by', Number.isFinite(turned) ? `${turned}°` : '–'],
    );
    details.show(rows);
  }
}

/** The colour of outliers. */
const OUTLIER = packed(225, 228, 235, 255);

/** The part of a line a x + b y + c = 0 inside a pane, on the screen.
 * @param {number[]} line @param {Pane} pane @returns {[Point, Point] | null} */
function lineWithin([a, b, c], pane) {
  const [w, h] = [pane.width - 0.5, pane.height - 0.5];
  /** @type {Point[]} */
  const ends = [];
  for (const x of [-0.5, w]) {
    const y = -(a * x + c) / b;
    if (y >= -0.5 && y <= h) ends.push([x, y]);
  }
  for (const y of [-0.5, h]) {
    const x = -(b * y + c) / a;
    if (x >= -0.5 && x <= w) ends.push([x, y]);
  }
  if (ends.length < 2) return null;
  const far = ends.reduce((p, q) => (Math.hypot(q[0] - ends[0][0], q[1] - ends[0][1]) > Math.hypot(p[0] - ends[0][0], p[1] - ends[0][1]) ? q : p));
  return [pane.toScreen(ends[0]), pane.toScreen(far)];
}

/** @param {MatchesData} data */
async function matchesView(data) {
  const sheets = /** @type {[Sheet, Sheet]} */ (await Promise.all([picture(data.a), picture(data.b)]));
  /** @type {Record<string, Float32Array>} */
  const columns = {};
  for (const [name, block] of Object.entries(data.columns)) {
    if (block.type === 'f32') columns[name] = await floats(block);
  }
  const inlier = await bytes(data.columns.inlier);
  const indices = [await integers(data.columns.a), await integers(data.columns.b)];
  return new MatchesView(data, sheets, columns, inlier, indices, data.runs ? await bytes(data.runs) : null);
}
