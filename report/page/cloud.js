// @ts-check
// The points of a disparity map in space: turned, measured, saved.

/** The most points. */
const POINTS = 2_000_000;

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
    /** By how much places in space are multiplied: then they are in the unit of the baseline. */
    this.unit = rectified ? rectified.baseline : 1;
    this.unitName = !rectified ? '(not to scale)' : rectified.baseline === 1 ? '× baseline' : "in the calibration's unit";
    /** The points between which the distance is measured. @type {number[]} */
    this.picks = [];
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
    this.height = height * z;
    this.distance = this.middle[2];
    this.host = element('div', { class: 'stage cloud', tabindex: '0', role: 'application', 'aria-label': `${counted(this.count)} points in space. Arrow keys turn them, plus and minus come nearer, shift with arrows moves, 0 looks from the camera.` });
    this.canvas = element('canvas');
    this.measure = element('p', { class: 'measure', role: 'status' });
    this.scale = element('span', { class: 'scale-bar' });
    this.over = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    this.over.setAttribute('class', 'over');
    this.host.append(this.canvas, this.over, this.scale);
    this.gl = this.open(table);
    this.draw = oncePerFrame(() => this.paint());
    const colours = layers.left ? segmented('Points in space', [['picture', 'picture'], ['disparity', 'disparity']], 'picture', (value) => {
      this.painted = value === 'picture';
      this.draw();
    }).field : '';
    const tools = element('div', { class: 'tools' }, colours, button('from the camera', () => this.reset()),
      button('Save as PLY', () => save('points.ply', this.ply())), this.measure);
    this.root = this.gl
      ? element('div', {}, tools, this.host, element('p', { class: 'hint' }, `${counted(this.count)} points${rectified ? '' : '; without a calibration their depth is not to scale'}. Drag to turn; click two points for their distance; after a click the wheel comes nearer; shift and drag to move.`))
      : element('p', { class: 'note' }, 'Points in space need WebGL 2, which this browser does not give.');
    if (this.gl) this.listen();
    new ResizeObserver(() => this.paint()).observe(this.host);
  }

  /** @param {Uint32Array} table */
  open(table) {
    if (ADDRESS.painter === '2d') return null;
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
    this.palette(table, gl);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    return gl;
  }

  /** Sets the colours of disparities. @param {Uint32Array} table */
  palette(table, gl = this.gl) {
    gl?.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(table.buffer));
  }

  /** Where a point is in space: x to the right, y down, z forward. @param {number} i */
  place(i) {
    const z = this.unit / (this.cells[3 * i + 2] + this.lens[3]);
    return [(this.cells[3 * i] - this.lens[0]) * z, (this.cells[3 * i + 1] - this.lens[1]) * z, this.focal * z];
  }

  /** Where points are on the screen, in pixels: a function of their number. */
  projection() {
    const { clientWidth: w, clientHeight: h } = this.host;
    const { matrix: m } = this.view(w / Math.max(1, h));
    return (/** @type {number} */ i) => {
      const [x, y, z] = this.place(i).map((v) => v / this.unit);
      const deep = m[3] * x + m[7] * y + m[11] * z + m[15];
      return [((m[0] * x + m[4] * y + m[8] * z + m[12]) / deep + 1) * 0.5 * w, (1 - (m[1] * x + m[5] * y + m[9] * z + m[13]) / deep) * 0.5 * h, deep];
    };
  }

  /** Chooses the nearest point under the cursor; a third one begins anew. @param {Point} at */
  pick(at) {
    const project = this.projection();
    let [best, nearest] = [-1, Infinity];
    for (let i = 0; i < this.count; i++) {
      const [x, y, deep] = project(i);
      if (deep > 0 && deep < nearest && (x - at[0]) ** 2 + (y - at[1]) ** 2 < 36) [best, nearest] = [i, deep];
    }
    if (best < 0) this.picks = [];
    else this.picks = this.picks.length === 1 ? [...this.picks, best] : [best];
    const places = this.picks.map((i) => this.place(i));
    const short = (/** @type {number} */ v) => String(Number(v.toPrecision(4)));
    this.measure.textContent = places.length === 0 ? '' : places.length === 1 ? `At ${places[0].map(short).join(', ')} ${this.unitName}`
      : `Distance ${short(Math.hypot(...places[0].map((v, c) => v - places[1][c])))} ${this.unitName}`;
    this.draw();
  }

  /** The points as a binary PLY file: x to the right, y down, z forward. */
  ply() {
    const head = `ply\nformat binary_little_endian 1.0\ncomment ${this.unitName}\nelement vertex ${this.count}\nproperty float x\nproperty float y\nproperty float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n`;
    const body = new DataView(new ArrayBuffer(15 * this.count));
    for (let i = 0; i < this.count; i++) {
      this.place(i).forEach((v, c) => body.setFloat32(15 * i + 4 * c, v, true));
      for (let c = 0; c < 3; c++) body.setUint8(15 * i + 12 + c, (this.tints[i] >>> (8 * c)) & 255);
    }
    return new Blob([head, body.buffer]);
  }

  /** Draws the chosen points with the line between them, and a bar of known length at the distance of the middle. */
  annotate() {
    const project = this.projection();
    const marks = this.picks.map(project).filter(([, , deep]) => deep > 0);
    const dots = marks.map(([x, y]) => `M${x - 6} ${y}h12M${x} ${y - 6}v12`).join('');
    const line = marks.length === 2 ? `M${marks[0][0]} ${marks[0][1]}L${marks[1][0]} ${marks[1][1]}` : '';
    const path = (/** @type {string} */ name) => {
      const made = document.createElementNS('http://www.w3.org/2000/svg', 'path');
      made.setAttribute('class', name);
      made.setAttribute('d', dots + line);
      return made;
    };
    this.over.replaceChildren(...(marks.length ? [path('shadow'), path('line')] : []));
    const { clientWidth: w, clientHeight: h } = this.host;
    const pixels = (this.view(w / Math.max(1, h)).fx * 0.5 * w) / this.distance / this.unit;
    const wanted = 120 / pixels;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const length = [5, 2, 1].map((k) => k * power).find((k) => k <= wanted) ?? power;
    this.scale.hidden = !(pixels > 0) || this.unitName.startsWith('(');
    this.scale.style.width = `${length * pixels}px`;
    this.scale.textContent = `${Number(length.toPrecision(3))} ${this.unitName}`;
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
    const [w, h] = [Math.max(1, this.host.clientWidth), Math.max(1, this.host.clientHeight)];
    const unit = (2 * this.distance) / (this.view(w / h).fx * w);
    this.shift = [this.shift[0] + dx * unit, this.shift[1] + dy * unit];
    this.draw();
  }

  listen() {
    const { host } = this;
    /** @type {Map<number, Point>} */
    const fingers = new Map();
    let travelled = 0;
    host.addEventListener('pointerdown', (event) => {
      travelled = 0;
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener('pointermove', (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const others = [...fingers.entries()].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
      const [dx, dy] = [event.clientX - before[0], event.clientY - before[1]];
      travelled += Math.hypot(dx, dy);
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      if (others.length) {
        const gap = (/** @type {Point} */ p) => Math.max(1, Math.hypot(p[0] - others[0][0], p[1] - others[0][1]));
        this.approach(gap(before) / gap([event.clientX, event.clientY]));
      } else if (event.shiftKey || event.buttons === 2) this.move(dx, dy);
      else this.rotate(dx / 200, dy / 200);
    });
    const released = (/** @type {PointerEvent} */ event) => fingers.delete(event.pointerId);
    host.addEventListener('pointerup', (event) => {
      const box = host.getBoundingClientRect();
      if (fingers.size === 1 && travelled < 4) this.pick([event.clientX - box.left, event.clientY - box.top]);
      released(event);
    });
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
    // The whole picture is seen, and something beside it, which is nearer or turned aside.
    const f = (0.95 * 2 * this.middle[2]) / Math.max(this.size, this.height * aspect);
    const [fx, fy] = [f, f * aspect];
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
    this.annotate();
  }
}
