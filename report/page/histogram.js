// @ts-check
// A histogram with two ends that are moved by sliders or by brushing over the bars; values between them are kept.

const BINS = 48;

class Histogram {
  /** @param {string} name @param {ArrayLike<number>} values @param {{ unit?: string, logarithmic?: boolean, decimals?: number, mark?: number, changed: () => void }} options */
  constructor(name, values, options) {
    this.options = options;
    const scale = options.logarithmic ? (/** @type {number} */ v) => Math.log2(Math.max(v, 1e-9)) : (/** @type {number} */ v) => v;
    const scaled = new Float64Array(values.length);
    let [least, most] = [Infinity, -Infinity];
    for (let i = 0; i < scaled.length; i++) {
      const v = scale(values[i]);
      scaled[i] = v;
      if (v < least && v > -Infinity) least = v;
      if (v > most && v < Infinity) most = v;
    }
    if (!(least <= most)) [least, most] = [0, 1];
    if (least === most) most = least + Math.max(1e-6, Math.abs(least) * 1e-6);
    this.least = least;
    this.most = most;
    this.scale = scale;
    this.low = -Infinity;
    this.high = Infinity;
    /** The bin of every value; −1 for NaN. */
    this.bins = new Int8Array(scaled.length);
    for (let i = 0; i < scaled.length; i++) {
      this.bins[i] = Number.isFinite(scaled[i]) ? Math.min(BINS - 1, Math.floor(((scaled[i] - least) / (most - least)) * BINS)) : -1;
    }
    this.steep = false;
    /** @type {(i: number) => boolean} */
    this.shown = () => true;
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('viewBox', `0 0 ${BINS} 24`);
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('aria-hidden', 'true');
    const path = (/** @type {string} */ name) => {
      const made = document.createElementNS('http://www.w3.org/2000/svg', 'path');
      made.setAttribute('class', name);
      svg.append(made);
      return made;
    };
    this.all = path('all');
    this.some = path('some');
    this.shade = path('out');
    if (options.mark !== undefined) {
      const x = ((scale(options.mark) - least) / (most - least)) * BINS;
      // A value outside of the shown range is not marked; on some scales its position is NaN.
      if (x >= 0 && x <= BINS) path('mark').setAttribute('d', `M${x.toFixed(2)} 0V24`);
    }
    this.brush(svg);
    const end = (/** @type {string} */ label, /** @type {number} */ value) => {
      const input = element('input', { type: 'range', min: '0', max: '1000', step: '1', value: String(value), 'aria-label': label });
      input.addEventListener('input', () => this.read());
      return input;
    };
    this.ends = [end(`least ${name}`, 0), end(`greatest ${name}`, 1000)];
    this.output = element('output');
    const steep = toggle('log', false, (on) => {
      this.steep = on;
      this.bars();
    });
    steep.setAttribute('aria-label', `log heights of ${name}`);
    this.field = element('div', { class: 'histogram' },
      element('div', { class: 'histogram-head' }, element('span', {}, name), this.output, steep),
      element('div', { class: 'histogram-body' }, svg, ...this.ends));
    this.bars();
    this.show();
  }

  /** Makes values pale that other filters leave out. @param {(i: number) => boolean} shown */
  count(shown) {
    this.shown = shown;
    this.bars();
  }

  /** Heights are counts, or their logarithms. */
  bars() {
    const [all, some] = [new Array(BINS).fill(0), new Array(BINS).fill(0)];
    this.bins.forEach((bin, i) => {
      if (bin < 0) return;
      all[bin]++;
      if (this.shown(i)) some[bin]++;
    });
    const height = (/** @type {number} */ n) => (this.steep ? Math.log1p(n) : n);
    const highest = Math.max(1e-9, ...all.map(height));
    // A least height makes small counts visible.
    const bar = (/** @type {number} */ n, /** @type {number} */ i) => (n ? `M${i} 24h.86v-${Math.max(0.6, (24 * height(n)) / highest).toFixed(2)}h-.86z` : '');
    this.all.setAttribute('d', all.map(bar).join(''));
    this.some.setAttribute('d', some.map(bar).join(''));
  }

  /** Dragging over the bars keeps the values under the drag; a click keeps all. @param {SVGSVGElement} svg */
  brush(svg) {
    let from = -1;
    const place = (/** @type {PointerEvent} */ event) => {
      const box = svg.getBoundingClientRect();
      return clamp(Math.round((1000 * (event.clientX - box.left)) / Math.max(1, box.width)), 0, 1000);
    };
    const keep = (/** @type {number} */ a, /** @type {number} */ b) => {
      this.ends[0].value = String(Math.min(a, b));
      this.ends[1].value = String(Math.max(a, b));
      this.read();
    };
    svg.addEventListener('pointerdown', (event) => {
      from = place(event);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener('pointermove', (event) => {
      if (from >= 0) keep(from, place(event));
    });
    svg.addEventListener('pointerup', (event) => {
      if (from >= 0 && Math.abs(place(event) - from) < 5) keep(0, 1000);
      from = -1;
    });
    svg.addEventListener('pointercancel', () => (from = -1));
  }

  /** @param {number} place 0 to 1000 */
  value(place) {
    const v = this.least + ((this.most - this.least) * place) / 1000;
    return this.options.logarithmic ? 2 ** v : v;
  }

  read() {
    const [a, b] = this.ends.map((input) => Number(input.value));
    const [low, high] = [Math.min(a, b), Math.max(a, b)];
    // An end at the limit of the scale cuts nothing, not even NaN.
    this.low = low === 0 ? -Infinity : this.value(low);
    this.high = high === 1000 ? Infinity : this.value(high);
    this.show();
    this.options.changed();
  }

  show() {
    const [a, b] = this.ends.map((input) => Number(input.value));
    const [low, high] = [Math.min(a, b), Math.max(a, b)];
    const text = (/** @type {number} */ v) => written(this.value(v), this.options.decimals ?? 2);
    this.output.textContent = `${text(low)} to ${text(high)}${this.options.unit ? ` ${this.options.unit}` : ''}`;
    const at = (/** @type {number} */ v) => (v / 1000) * BINS;
    this.shade.setAttribute('d', `M0 0H${at(low)}V24H0zM${at(high)} 0H${BINS}V24H${at(high)}z`);
    for (const [input, v] of /** @type {[HTMLInputElement, number][]} */ ([[this.ends[0], a], [this.ends[1], b]])) {
      input.setAttribute('aria-valuetext', `${text(v)} ${this.options.unit ?? ''}`.trim());
    }
  }

  /** @param {number} value */
  keeps(value) {
    if (this.low === -Infinity && this.high === Infinity) return true;
    return value >= this.low && value <= this.high;
  }

  /** The range of the colours: the kept values. */
  range() {
    const inside = [this.low === -Infinity ? this.value(0) : this.low, this.high === Infinity ? this.value(1000) : this.high];
    return inside[0] < inside[1] ? inside : [inside[0] - 0.5, inside[0] + 0.5];
  }

  /** Moves both ends. @param {number} low @param {number} high values */
  set(low, high) {
    const place = (/** @type {number} */ v) => String(Math.round((1000 * (this.scale(v) - this.least)) / (this.most - this.least)));
    this.ends[0].value = place(low);
    this.ends[1].value = place(high);
    this.read();
  }
}
