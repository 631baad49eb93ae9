// @ts-check
// A canvas with panes that can be moved and enlarged, by mouse, touch and keyboard.

/** A rectangle of the canvas that shows a plane of pixels. */
class Pane {
  /** @param {number} width @param {number} height of the plane, pixels */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    /** @type {Rect} */
    this.rect = { x: 0, y: 0, w: 1, h: 1 };
    /** The point of the plane in the middle of the pane. @type {Point} */
    this.middle = [0, 0];
    /** CSS pixels for each pixel of the plane. */
    this.zoom = 1;
    /** By how much the plane is turned clockwise about its middle, in radians. */
    this.turn = 0;
    this.fitted = true;
  }

  fit() {
    this.zoom = Math.max(1e-6, Math.min(this.rect.w / this.width, this.rect.h / this.height));
    this.middle = [this.width / 2 - 0.5, this.height / 2 - 0.5];
    this.turn = 0;
    this.fitted = true;
  }

  /** @param {Rect} rect */
  place(rect) {
    this.rect = rect;
    if (this.fitted) this.fit();
  }

  /** The point of the screen in the middle of the pane. @returns {Point} */
  centre() {
    return [this.rect.x + this.rect.w / 2, this.rect.y + this.rect.h / 2];
  }

  /** @param {Point} p @returns {Point} */
  toScreen([x, y]) {
    const [[cx, cy], [dx, dy]] = [this.centre(), turned([x - this.middle[0], y - this.middle[1]], this.turn)];
    return [cx + dx * this.zoom, cy + dy * this.zoom];
  }

  /** @param {Point} p @returns {Point} */
  toPlane([x, y]) {
    const [cx, cy] = this.centre();
    const [dx, dy] = turned([x - cx, y - cy], -this.turn);
    return [dx / this.zoom + this.middle[0], dy / this.zoom + this.middle[1]];
  }

  /** `toScreen` as numbers for long loops: screen x = plane x · along − plane y · across + x, screen y = plane x · across
   * + plane y · along + y; and the edges of the pane. */
  linear() {
    const [x, y] = this.toScreen([0, 0]);
    const { rect, zoom, turn } = this;
    return { along: zoom * Math.cos(turn), across: zoom * Math.sin(turn), x, y, left: rect.x, top: rect.y, right: rect.x + rect.w, bottom: rect.y + rect.h };
  }

  /** Shows a point in the middle. @param {Point} middle @param {number} zoom @param {number} turn */
  look(middle, zoom, turn) {
    [this.middle, this.zoom, this.turn, this.fitted] = [middle, clamp(zoom, 1e-6, 64), turn, false];
  }

  /** @param {Point} p of the screen */
  holds([x, y]) {
    const { rect } = this;
    return x >= rect.x && y >= rect.y && x < rect.x + rect.w && y < rect.y + rect.h;
  }

  /** @param {Point} by CSS pixels */
  pan(by) {
    const [dx, dy] = turned(by, -this.turn);
    const middle = [this.middle[0] - dx / this.zoom, this.middle[1] - dy / this.zoom];
    this.middle = [clamp(middle[0], 0, this.width - 1), clamp(middle[1], 0, this.height - 1)];
    this.fitted = false;
  }

  /** Enlarges about a point, relative to the pane's corner. @param {number} factor @param {Point} at */
  enlarge(factor, at) {
    const screen = /** @type {Point} */ ([this.rect.x + at[0], this.rect.y + at[1]]);
    const fixed = this.toPlane(screen);
    const least = 0.5 * Math.min(this.rect.w / this.width, this.rect.h / this.height);
    this.zoom = clamp(this.zoom * factor, least, 64);
    const [dx, dy] = [fixed[0] - this.toPlane(screen)[0], fixed[1] - this.toPlane(screen)[1]];
    this.middle = [clamp(this.middle[0] + dx, 0, this.width - 1), clamp(this.middle[1] + dy, 0, this.height - 1)];
    this.fitted = false;
  }

  /** Where a sheet over the whole plane is drawn, before it is turned. @param {Sheet} of @returns {Rect} */
  sheetRect(of) {
    const [[cx, cy], { middle, zoom }] = [this.centre(), this];
    return { x: cx - (middle[0] + 0.5) * zoom, y: cy - (middle[1] + 0.5) * zoom, w: of.covers[0] * zoom, h: of.covers[1] * zoom };
  }

  /** The part of the pane that the plane covers; all of it where the plane is turned. @returns {Rect} */
  clip() {
    if (this.turn) return { ...this.rect };
    const [x0, y0] = this.toScreen([-0.5, -0.5]);
    const { rect } = this;
    const [left, top] = [Math.max(rect.x, x0), Math.max(rect.y, y0)];
    const right = Math.min(rect.x + rect.w, x0 + this.width * this.zoom);
    const bottom = Math.min(rect.y + rect.h, y0 + this.height * this.zoom);
    return { x: left, y: top, w: right - left, h: bottom - top };
  }

  /** @param {Painter} painter @param {Sheet} of @param {number} alpha @param {Rect} [within] */
  draw(painter, of, alpha = 1, within) {
    const clip = this.clip();
    const cut = within ? intersection(clip, within) : clip;
    const pixel = (this.zoom * of.covers[0]) / of.width;
    painter.sheet(of, this.sheetRect(of), cut, alpha, pixel < 6, this.turn ? { angle: this.turn, about: this.centre() } : undefined);
  }
}

/** @param {Point} p @param {number} angle clockwise, as y points down @returns {Point} */
function turned([x, y], angle) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return [c * x - s * y, s * x + c * y];
}

/** @param {Rect} a @param {Rect} b @returns {Rect} */
function intersection(a, b) {
  const [x, y] = [Math.max(a.x, b.x), Math.max(a.y, b.y)];
  return { x, y, w: Math.min(a.x + a.w, b.x + b.w) - x, h: Math.min(a.y + a.h, b.y + b.h) - y };
}

/** @param {number} v @param {number} low @param {number} high */
function clamp(v, low, high) {
  return Math.min(Math.max(v, low), Math.max(low, high));
}

/**
 * @typedef {object} StageUse
 * @property {string} label what the canvas shows, for screen readers
 * @property {(width: number, height: number) => Pane[]} arrange gives the panes their places
 * @property {(painter: Painter, moving: boolean) => void} draw
 * @property {(at: Point | null) => void} [hover] called with the cursor's place, or null
 * @property {(at: Point) => void} [click]
 * @property {(key: KeyboardEvent) => boolean} [key] returns whether the key was handled
 * @property {(at: Point, by: Point, began: boolean) => boolean} [drag] returns whether it handled the drag, which then does not move the plane
 */

/** `#gl` or `#2d` in the address chooses the painter, for tests and broken drivers. */
const USE_GL = ADDRESS.painter === 'gl' || (ADDRESS.painter !== '2d' && glIsFast());

/** A canvas with its painter and its handling of pointer, wheel and keys. */
class Stage {
  /** @param {StageUse} use */
  constructor(use) {
    this.use = use;
    this.together = true;
    /** @type {Pane[]} */
    this.panes = [];
    this.host = element('div', { class: 'stage', tabindex: '0', role: 'application', 'aria-label': use.label });
    this.draw = oncePerFrame(() => this.paint());
    /** The number of frames drawn, for tests. */
    this.frames = 0;
    this.moving = false;
    this.settle = 0;
    this.renew(USE_GL);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.host);
  }

  /** Sets the ratio of width to height. @param {number} ratio */
  shape(ratio) {
    this.host.style.aspectRatio = String(clamp(ratio, 0.4, 6));
  }

  /** Names the panes, in order. @param {string[]} names */
  names(names) {
    this.labels = names.map((name) => element('span', { class: 'pane-name' }, element('bdi', {}, name)));
    this.host.append(...this.labels);
  }

  /** Puts the names into the corners of their panes. */
  placeNames() {
    this.labels?.forEach((label, i) => {
      const pane = this.panes[i];
      if (!pane) return;
      const { x, y, w } = pane.clip();
      Object.assign(label.style, { left: `${x}px`, top: `${y}px`, maxWidth: `${Math.max(0, w)}px` });
    });
  }

  /** Whether every plane is shown whole: then the wheel and a finger scroll the page. */
  rests() {
    return this.panes.every((pane) => pane.fitted);
  }

  /** A new canvas with a painter of its own. @param {boolean} gl */
  renew(gl) {
    this.canvas?.remove();
    this.canvas = element('canvas');
    this.canvas.addEventListener('webglcontextlost', () => {
      this.renew(false);
      this.resize();
    });
    this.host.prepend(this.canvas);
    const painter = gl ? glPainter(this.canvas) : null;
    // A canvas that refused WebGL 2 still gives a 2-D context.
    this.painter = painter ?? flatPainter(this.canvas);
    this.host.dataset.painter = this.painter.name;
  }

  resize() {
    if (!this.canvas) return;
    const { clientWidth, clientHeight } = this.host;
    if (clientWidth === 0 || clientHeight === 0) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.canvas.width = Math.max(1, Math.round(clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    this.panes = this.use.arrange(clientWidth, clientHeight);
    this.paint();
  }

  /** Draws everything. @param {Painter} painter @param {number} ratio device pixels to a pixel */
  show(painter, ratio) {
    painter.begin(this.host.clientWidth, this.host.clientHeight, ratio, GROUND);
    this.use.draw(painter, this.moving);
    painter.end();
  }

  /** Buttons that save what is shown. @param {string} name */
  saving(name) {
    const png = () => {
      const [canvas, ratio] = [element('canvas'), Math.max(2, window.devicePixelRatio || 1)];
      [canvas.width, canvas.height] = [this.host.clientWidth * ratio, this.host.clientHeight * ratio];
      this.show(flatPainter(canvas), ratio);
      canvas.toBlob((blob) => blob && save(`${name}.png`, blob));
    };
    const svg = () => {
      const painter = vectorPainter();
      this.show(painter, 1);
      save(`${name}.svg`, new Blob([painter.text()], { type: 'image/svg+xml' }));
    };
    return element('span', { class: 'saving', role: 'group', 'aria-label': 'Save this view' }, button('PNG', png, 'Save this view as PNG'), button('SVG', svg, 'Save this view as SVG'));
  }

  paint() {
    if (!this.canvas || !this.painter || this.host.clientWidth === 0) return;
    this.show(this.painter, this.canvas.width / this.host.clientWidth);
    this.placeNames();
    this.host.classList.toggle('rests', this.rests());
    this.frames++;
    this.host.dataset.frames = String(this.frames);
  }

  /** Called when the planes move: less is drawn until they stop. */
  moved() {
    this.moving = true;
    clearTimeout(this.settle);
    this.settle = window.setTimeout(() => {
      this.moving = false;
      this.draw();
    }, 120);
    this.draw();
  }

  /** @param {PointerEvent | WheelEvent | MouseEvent} event @returns {Point} */
  at(event) {
    const box = this.host.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** @param {Point} at */
  paneAt(at) {
    return this.panes.find((pane) => pane.holds(at));
  }

  /** The panes that move together with this one. @param {Pane} pane */
  moves(pane) {
    return this.together ? this.panes : [pane];
  }

  /** @param {number} factor @param {Point} [at] of the screen; the middle without */
  enlarge(factor, at) {
    const pane = (at && this.paneAt(at)) ?? this.panes[0];
    if (!pane) return;
    const within = /** @type {Point} */ (at && this.paneAt(at) ? [at[0] - pane.rect.x, at[1] - pane.rect.y] : [pane.rect.w / 2, pane.rect.h / 2]);
    for (const each of this.moves(pane)) {
      each.enlarge(factor, [(within[0] * each.rect.w) / pane.rect.w, (within[1] * each.rect.h) / pane.rect.h]);
    }
    this.moved();
  }

  reset() {
    for (const pane of this.panes) pane.fit();
    this.moved();
  }

  listen() {
    const { host, use } = this;
    /** @type {Map<number, Point>} */
    const fingers = new Map();
    /** @type {Pane | undefined} */
    let held;
    let [travelled, taken, spread] = [0, false, 0];
    /** @type {Point} */
    let between = [0, 0];
    host.addEventListener('pointerdown', (event) => {
      const at = this.at(event);
      fingers.set(event.pointerId, at);
      host.setPointerCapture(event.pointerId);
      if (fingers.size === 1) {
        [held, travelled] = [this.paneAt(at), 0];
        taken = use.drag?.(at, [0, 0], true) ?? false;
      } else {
        const [a, b] = [...fingers.values()];
        spread = Math.hypot(a[0] - b[0], a[1] - b[1]);
        between = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
      }
    });
    host.addEventListener('pointermove', (event) => {
      const at = this.at(event);
      const before = fingers.get(event.pointerId);
      if (!before) {
        use.hover?.(at);
        return;
      }
      fingers.set(event.pointerId, at);
      const by = /** @type {Point} */ ([at[0] - before[0], at[1] - before[1]]);
      travelled += Math.hypot(...by);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()];
        const now = Math.hypot(a[0] - b[0], a[1] - b[1]);
        const middle = /** @type {Point} */ ([(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
        if (held) for (const pane of this.moves(held)) pane.pan([middle[0] - between[0], middle[1] - between[1]]);
        if (spread > 0) this.enlarge(now / spread, middle);
        [spread, between] = [now, middle];
      } else if (taken) {
        use.drag?.(at, by, false);
      } else if (held) {
        for (const pane of this.moves(held)) pane.pan(by);
        this.moved();
      }
    });
    const released = (/** @type {PointerEvent} */ event) => {
      if (fingers.delete(event.pointerId) && event.type === 'pointerup' && travelled < 4 && !taken) use.click?.(this.at(event));
      if (fingers.size === 0) [held, taken] = [undefined, false];
    };
    host.addEventListener('pointerup', released);
    host.addEventListener('pointercancel', released);
    // A finger leaves after every tap, whose text must stay readable.
    host.addEventListener('pointerleave', (event) => {
      if (event.pointerType !== 'touch') use.hover?.(null);
    });
    host.addEventListener('repaint', () => this.resize());
    host.addEventListener('dblclick', () => this.reset());
    host.addEventListener('wheel', (event) => {
      // While planes are shown whole the wheel scrolls the page, unless the reader has clicked here or holds Ctrl.
      if (this.rests() && !event.ctrlKey && document.activeElement !== host) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 20 : 1;
      this.enlarge(Math.exp(-clamp(event.deltaY * lines, -200, 200) / 300), this.at(event));
    }, { passive: false });
    host.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (use.key?.(event) || this.key(event)) event.preventDefault();
    });
  }

  /** Moves and enlarges by keys. @param {KeyboardEvent} event */
  key(event) {
    const steps = /** @type {Record<string, Point>} */ ({ ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] });
    const by = steps[event.key];
    if (by) {
      for (const pane of this.panes) pane.pan(by);
      this.moved();
    } else if (event.key === '+' || event.key === '=') this.enlarge(1.25);
    else if (event.key === '-') this.enlarge(0.8);
    else if (event.key === '0') this.reset();
    else return false;
    return true;
  }
}

/** The background behind pictures, the same in light and dark pages, so that colours of marks look the same. */
const GROUND = [20, 22, 27];

/** The best layout for pictures of these sizes: wide ones one below the other. @param {Point[]} sizes */
function layoutFor(sizes) {
  return innerWidth < 640 || Math.min(...sizes.map(([width, height]) => width / height)) > 1.7 ? 'below' : 'beside';
}

/** Shares a canvas among panes: beside each other, or one below the other.
 * @param {Pane[]} panes @param {number} width @param {number} height @param {boolean} below */
function share(panes, width, height, below) {
  const gap = 6;
  const n = panes.length;
  panes.forEach((pane, i) => {
    const [w, h] = below ? [width, (height - gap * (n - 1)) / n] : [(width - gap * (n - 1)) / n, height];
    pane.place({ x: below ? 0 : i * (w + gap), y: below ? i * (h + gap) : 0, w, h });
  });
  return panes;
}

/** Draws the patch that a descriptor covers, rotated and scaled as the keypoint, with the cells of the descriptor.
 * @param {HTMLCanvasElement} canvas @param {Sheet} sheet @param {string} name of the picture @param {Point} at
 * @param {number} half its side @param {number} angle */
function drawPatch(canvas, { image, covers }, name, [x, y], half, angle) {
  const [context, size] = [context2d(canvas), canvas.width];
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = `rgb(${GROUND.join(',')})`;
  context.fillRect(0, 0, size, size);
  if (![x, y, half, angle].every(Number.isFinite)) return;
  const scale = size / (2 * Math.max(1, half));
  context.translate(size / 2, size / 2);
  context.scale(scale, scale);
  context.rotate(-angle);
  context.translate(-x, -y);
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, -0.5, -0.5, covers[0], covers[1]);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.strokeStyle = 'rgba(255,255,255,.35)';
  context.lineWidth = 1;
  context.beginPath();
  for (let k = 1; k < 4; k++) {
    const at = (k * size) / 4;
    context.moveTo(at, 0);
    context.lineTo(at, size);
    context.moveTo(0, at);
    context.lineTo(size, at);
  }
  context.stroke();
  canvas.setAttribute('aria-label', `what the descriptor saw in ${name}`);
}

/**
 * Chooses another element of a view's list by a key; false for other keys.
 * @param {{ order: ArrayLike<number>, walk: (by: number) => void, select: (index: number) => void }} view
 * @param {KeyboardEvent} event
 */
function walksByKey(view, event) {
  const { order } = view;
  if (event.shiftKey) return false;
  if (event.key === 'ArrowRight' || event.key === 'ArrowDown') view.walk(1);
  else if (event.key === 'ArrowLeft' || event.key === 'ArrowUp') view.walk(-1);
  else if (event.key === 'Home') view.select(order[0] ?? -1);
  else if (event.key === 'End') view.select(order[order.length - 1] ?? -1);
  else if (event.key === 'Escape') view.select(-1);
  else return false;
  return true;
}
