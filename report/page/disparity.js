// @ts-check
// Disparities, why some are missing, their errors, and the scene in space.

/** Colours of reasons, by number: those of Okabe and Ito (2008), which the colour-blind can tell apart. */
const REASON_COLOURS = [packed(0, 0, 0, 0), packed(120, 120, 128, 255), packed(240, 228, 66, 255), packed(0, 114, 178, 255), packed(213, 94, 0, 255), packed(204, 121, 167, 255)];

/** The most points. */
const POINTS = 2_000_000;

class DisparityView {
  /** @param {DisparityData} data @param {{ left: Sheet | null, right: Sheet | null, disparity: Float32Array, truth: Float32Array | null, confidence: Uint8Array | null, reasons: Uint8Array | null }} layers */
  constructor(data, layers) {
    this.data = data;
    this.layers = layers;
    this.layer = 'disparity';
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
    if (layers.truth) choices.push(['difference', 'difference to the truth'], ['truth', 'truth']);
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
    const tools = element('div', { class: 'tools' }, show.field, layers.right ? layout.field : '', layers.left ? opacity.field : '', button('show all', () => this.stage.reset()), element('div', { class: 'modes' }, this.legend), element('div', { class: 'modes' }, this.spread.field));
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
    this.readout.show(this.cursor ? this.read(this.cursor) : [['Cursor', 'over the left picture, or tap it']]);
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
      // Only a baseline of 1 says that it was not measured.
      rows.push(['Depth', d + doffs > 0 ? `${Number(z.toPrecision(4))} ${baseline === 1 ? '× baseline' : "in the calibration's unit"}` : 'none']);
    }
    if (layers.confidence) rows.push(['Confidence', (layers.confidence[i] / 255).toFixed(2)]);
    if (layers.truth) {
      const t = layers.truth[i];
      rows.push(['Truth', Number.isNaN(t) ? 'unknown' : `${t.toFixed(2)} px`], ['Off by', Number.isNaN(d - t) ? '–' : `${(d - t).toFixed(2)} px`]);
    }
    if (layers.right) rows.push(['In the right', Number.isNaN(d) ? 'not found' : `${(p[0] - d).toFixed(1)}, ${p[1]}`]);
    return rows;
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

const CLOUD_VERTEX = `#version 300 es
uniform mat4 view; uniform vec4 lens; uniform float focal; uniform float side; uniform vec2 range; uniform bool painted;
uniform sampler2D depths;
in vec3 cell; in vec4 tint; out vec3 shade;
void main() {
  float z = 1.0 / (cell.z + lens.w);
  vec3 p = vec3((cell.xy - lens.xy) * z, focal * z);
  gl_Position = view * vec4(p, 1.0);
  gl_PointSize = clamp(side / gl_Position.w * z, 1.0, 24.0);
  float t = clamp((cell.z - range.x) / (range.y - range.x), 0.0, 1.0);
  shade = painted ? tint.rgb : texture(depths, vec2((t * 255.0 + 0.5) / 256.0, 0.5)).rgb;
}`;
const CLOUD_FRAGMENT = `#version 300 es
precision highp float;
in vec3 shade; out vec4 colour;
void main() { if (length(gl_PointCoord - 0.5) > 0.55) discard; colour = vec4(shade, 1.0); }`;

/** The initial rotation of the points about the vertical and the horizontal axis, in radians, so that depth is visible. */
const ASIDE = [-0.22, 0.1];

/** Without a calibration: the largest ratio of the scene's far distance to its near distance. */
const DEEP = 2;

/** The points of a disparity map in space, turned about their middle. */
class Cloud {
  /** @param {DisparityData} data @param {{ left: Sheet | null, disparity: Float32Array }} layers @param {Uint32Array} table */
  constructor(data, layers, table) {
    this.turn = [...ASIDE];
    this.distance = 1;
    this.shift = [0, 0];
    this.painted = layers.left !== null;
    this.range = [0, 1];
    const { step, columns, rows, width, height, rectified } = data;
    // Without a calibration: a camera with a common field of view, and `DEEP`.
    const valid = layers.disparity.filter((d) => !Number.isNaN(d)).sort();
    const quantile = (/** @type {number} */ q) => valid[Math.floor((valid.length - 1) * q)] ?? 1;
    const doffs = rectified ? rectified.doffs : Math.max(0, (quantile(0.99) - DEEP * quantile(0.01)) / (DEEP - 1));
    const focal = rectified ? rectified.focal : 1.1 * width;
    const [cx, cy] = rectified ? rectified.principal : [width / 2, height / 2];
    this.lens = [cx, cy, 1, doffs];
    this.focal = focal;
    const stride = Math.max(1, Math.ceil(Math.sqrt(valid.length / POINTS)));
    const pixels = layers.left ? pixelsOf(layers.left) : null;
    const across = layers.left ? layers.left.width : columns;
    // A few far pixels would make everything else small.
    const least = Math.max(quantile(0.004), 1e-3 - doffs);
    /** @type {number[]} */
    const cells = [];
    /** @type {number[]} */
    const tints = [];
    for (let y = 0; y < rows; y += stride) {
      for (let x = 0; x < columns; x += stride) {
        const d = layers.disparity[y * columns + x];
        if (!(d >= least)) continue;
        cells.push(x * step + (step >> 1), y * step + (step >> 1), d);
        const k = 4 * (y * across + x);
        tints.push(pixels ? packed(pixels[k], pixels[k + 1], pixels[k + 2], 255) : 0);
      }
    }
    this.count = tints.length;
    this.cells = Float32Array.from(cells);
    this.tints = Uint32Array.from(tints);
    this.stride = stride * step;
    // x and y in pixels over the focal length times z = 1 / disparity: only the shape matters.
    const z = 1 / (quantile(0.5) + doffs);
    this.middle = [(width / 2 - cx) * z, (height / 2 - cy) * z, focal * z];
    this.size = width * z;
    this.distance = this.middle[2];
    this.host = element('div', { class: 'stage cloud', tabindex: '0', role: 'application', 'aria-label': `${counted(this.count)} points in space. Arrow keys turn them, plus and minus come nearer, shift with arrows moves, 0 looks from the camera.` });
    this.canvas = element('canvas');
    this.host.append(this.canvas);
    this.gl = this.open(table);
    this.draw = oncePerFrame(() => this.paint());
    const colours = layers.left ? segmented('Points in space', [['picture', 'picture'], ['disparity', 'disparity']], 'picture', (value) => {
      this.painted = value === 'picture';
      this.draw();
    }).field : '';
    const tools = element('div', { class: 'tools' }, colours, button('from the camera', () => this.reset()));
    this.root = this.gl
      ? element('div', {}, tools, this.host, element('p', { class: 'hint' }, `${counted(this.count)} points${rectified ? '' : '; without a calibration their depth is not to scale'}. Drag to turn; click and turn the wheel to come nearer; shift and drag to move.`))
      : element('p', { class: 'note' }, 'Points in space need WebGL 2, which this browser does not give.');
    if (this.gl) this.listen();
    new ResizeObserver(() => this.paint()).observe(this.host);
  }

  /** @param {Uint32Array} table */
  open(table) {
    if (location.hash === '#2d') return null;
    const gl = this.canvas.getContext('webgl2', { alpha: false, antialias: USE_GL });
    if (!gl) return null;
    this.program = program(gl, CLOUD_VERTEX, CLOUD_FRAGMENT);
    const attribute = (/** @type {string} */ name, /** @type {Float32Array | Uint32Array} */ values, /** @type {number} */ parts) => {
      const at = gl.getAttribLocation(/** @type {WebGLProgram} */ (this.program), name);
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, parts, values instanceof Uint32Array ? gl.UNSIGNED_BYTE : gl.FLOAT, values instanceof Uint32Array, 0, 0);
    };
    attribute('cell', this.cells, 3);
    attribute('tint', this.tints, 4);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(table.buffer));
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    return gl;
  }

  /** @param {number} low @param {number} high */
  recolour(low, high) {
    this.range = [low, high];
    if (!this.painted) this.draw();
  }

  reset() {
    [this.turn, this.shift, this.distance] = [[0, 0], [0, 0], this.middle[2]];
    this.draw();
  }

  /** @param {number} factor */
  approach(factor) {
    this.distance = clamp(this.distance * factor, 0.05 * this.middle[2], 10 * this.middle[2]);
    this.draw();
  }

  /** @param {number} dx @param {number} dy */
  rotate(dx, dy) {
    this.turn = [this.turn[0] + dx, clamp(this.turn[1] + dy, -1.5, 1.5)];
    this.draw();
  }

  /** @param {number} dx @param {number} dy */
  move(dx, dy) {
    const unit = (this.distance * this.size) / this.middle[2] / Math.max(1, this.host.clientWidth);
    this.shift = [this.shift[0] + dx * unit, this.shift[1] + dy * unit];
    this.draw();
  }

  listen() {
    const { host } = this;
    /** @type {Map<number, Point>} */
    const fingers = new Map();
    host.addEventListener('pointerdown', (event) => {
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener('pointermove', (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const others = [...fingers.entries()].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
      const [dx, dy] = [event.clientX - before[0], event.clientY - before[1]];
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      if (others.length) {
        const gap = (/** @type {Point} */ p) => Math.max(1, Math.hypot(p[0] - others[0][0], p[1] - others[0][1]));
        this.approach(gap(before) / gap([event.clientX, event.clientY]));
      } else if (event.shiftKey || event.buttons === 2) this.move(dx, dy);
      else this.rotate(dx / 200, dy / 200);
    });
    const released = (/** @type {PointerEvent} */ event) => fingers.delete(event.pointerId);
    host.addEventListener('pointerup', released);
    host.addEventListener('pointercancel', released);
    host.addEventListener('dblclick', () => this.reset());
    host.addEventListener('wheel', (event) => {
      // As for pictures: the wheel scrolls the page, unless the reader has clicked here or holds Ctrl.
      if (!event.ctrlKey && document.activeElement !== host) return;
      event.preventDefault();
      this.approach(Math.exp(clamp(event.deltaY * (event.deltaMode === 1 ? 20 : 1), -200, 200) / 400));
    }, { passive: false });
    host.addEventListener('keydown', (event) => {
      const steps = /** @type {Record<string, Point>} */ ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] });
      const by = steps[event.key];
      if (by && event.shiftKey) this.move(30 * by[0], 30 * by[1]);
      else if (by) this.rotate(0.1 * by[0], 0.1 * by[1]);
      else if (event.key === '+' || event.key === '=') this.approach(0.8);
      else if (event.key === '-') this.approach(1.25);
      else if (event.key === '0') this.reset();
      else return;
      event.preventDefault();
    });
  }

  /** The matrix from space to the screen, column-major: rotated about the middle, seen from `distance`. @param {number} aspect */
  view(aspect) {
    const [[a, b], [mx, my, mz]] = [this.turn, this.middle];
    const [ca, sa, cb, sb] = [Math.cos(a), Math.sin(a), Math.cos(b), Math.sin(b)];
    // Rows of the rotation: first about y, then about x.
    const r = [[ca, 0, sa], [sa * sb, cb, -ca * sb], [-sa * cb, sb, ca * cb]];
    const centre = [mx, my, mz];
    const from = r.map((row) => -(row[0] * centre[0] + row[1] * centre[1] + row[2] * centre[2]));
    from[0] += this.shift[0];
    from[1] += this.shift[1];
    from[2] += this.distance;
    // The width of the picture fills the width of the canvas where it is wide enough.
    const f = (2 * this.middle[2]) / this.size;
    const [fx, fy] = aspect > 1.4 ? [(f * 1.4) / aspect, f * 1.4] : [f, f * aspect];
    const [near, far] = [0.02 * this.middle[2], 60 * this.middle[2]];
    const [p, q] = [(far + near) / (far - near), (-2 * far * near) / (far - near)];
    const columns = [0, 1, 2, 3].map((c) => {
      const v = r.map((row, i) => (c < 3 ? row[c] : from[i]));
      // The picture's middle may be off the optical axis: a shifted lens shows it as the camera did.
      const beyond = v[2] - (c === 3 ? this.distance : 0);
      v[0] -= (mx / mz) * beyond;
      v[1] -= (my / mz) * beyond;
      return [fx * v[0], -fy * v[1], p * v[2] + (c === 3 ? q : 0), v[2]];
    });
    return { matrix: Float32Array.from(columns.flat()), fx };
  }

  paint() {
    const { gl, canvas, host } = this;
    if (!gl || !this.program || host.clientWidth === 0) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [Math.round(host.clientWidth * ratio), Math.round(host.clientHeight * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    gl.viewport(0, 0, w, h);
    gl.clearColor(GROUND[0] / 255, GROUND[1] / 255, GROUND[2] / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    const at = (/** @type {string} */ name) => gl.getUniformLocation(/** @type {WebGLProgram} */ (this.program), name);
    gl.useProgram(this.program);
    const { matrix, fx } = this.view(w / h);
    // z is focal length over disparity, x and y are pixels over disparity, so all three have one unit.
    gl.uniformMatrix4fv(at('view'), false, matrix);
    gl.uniform4f(at('lens'), this.lens[0], this.lens[1], this.lens[2], this.lens[3]);
    gl.uniform1f(at('focal'), this.focal);
    gl.uniform1f(at('side'), 1.7 * this.stride * fx * 0.5 * w);
    gl.uniform2f(at('range'), this.range[0], this.range[1]);
    gl.uniform1i(at('painted'), this.painted ? 1 : 0);
    gl.drawArrays(gl.POINTS, 0, this.count);
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
