// @ts-check
// Two registered pictures: with a movable edge between them, blinking, as difference, or as a chequerboard.

class RegistrationView {
  /** @param {RegistrationData} data @param {Sheet} reference @param {Sheet} warped @param {{ ground: Sheet, outline: Sheet } | null} uncovered @param {Record<string, Float32Array>} arrows */
  constructor(data, reference, warped, uncovered, arrows) {
    this.data = data;
    this.reference = reference;
    this.warped = warped;
    /** What lies under the warped picture where it shows nothing, and the edge of what it shows. */
    this.uncovered = uncovered;
    this.arrows = arrows;
    /** @type {Sheet | null} */
    this.difference = null;
    this.mode = 'swipe';
    this.place = 0.5;
    this.squares = 8;
    this.gain = 2;
    this.shown = true;
    this.enlarged = this.usualEnlargement();
    this.arrowsShown = false;
    this.table = colourTable('inferno');
    const pane = new Pane(data.reference.width, data.reference.height);
    this.pane = pane;
    this.stage = new Stage({
      label: `${data.warped.name} on the pixels of ${data.reference.name}. B blinks, left and right arrows swipe, plus and minus enlarge, shift with arrows moves, 0 shows all.`,
      arrange: (w, h) => share([pane], w, h, false),
      draw: (painter) => this.draw(painter),
      key: (event) => this.key(event),
      drag: (at, by, began) => this.drag(at, began),
      hover: (at) => {
        this.stage.host.classList.toggle('grab', at !== null && this.onHandle(at));
      },
    });
    this.stage.shape(pane.width / pane.height);
    this.parts = new Parts(data.parts, this.stage, pane);
    this.root = this.build();
  }

  /** The enlargement at which an arrow of median length is a fortieth of the picture's width. */
  usualEnlargement() {
    const { px, py, qx, qy } = this.arrows;
    const lengths = Array.from(px, (x, i) => Math.hypot(qx[i] - x, qy[i] - py[i])).filter(Number.isFinite).sort((a, b) => a - b);
    const usual = lengths[lengths.length >> 1] ?? 1;
    return clamp(Math.round(this.data.reference.width / 40 / Math.max(usual, 1e-3)), 1, 100);
  }

  build() {
    const { data } = this;
    this.modes = segmented('Show', [['swipe', 'swipe'], ['blink', 'blink'], ['difference', 'difference'], ['checker', 'squares'], ['reference', 'reference'], ['warped', 'warped']], this.mode, (mode) => {
      this.mode = mode;
      for (const [of, field] of fields) field.hidden = of !== mode;
      clearInterval(this.timer);
      this.shown = true;
      // A reader who prefers reduced motion switches the pictures with the key B.
      if (mode === 'blink' && !matchMedia('(prefers-reduced-motion: reduce)').matches) this.timer = setInterval(() => this.blink(), 700);
      this.stage.draw();
    });
    const redraw = (/** @type {(v: number) => void} */ set) => (/** @type {number} */ v) => {
      set(v);
      this.stage.draw();
    };
    this.swipe = slider('Edge', 0, 1000, 500, 1, (v) => `${Math.round(v / 10)} %`, redraw((v) => (this.place = v / 1000)));
    const squares = slider('Squares', 2, 40, this.squares, 1, String, redraw((v) => (this.squares = v)));
    const gain = slider('Strength', 1, 10, this.gain, 0.5, (v) => `× ${v}`, redraw((v) => {
      this.gain = v;
      this.difference = null;
    }));
    const blink = button('the other one (B)', () => this.blink());
    /** @type {[string, HTMLElement][]} */
    const fields = [['swipe', this.swipe.field], ['checker', squares.field], ['difference', gain.field], ['blink', blink]];
    for (const [of, field] of fields) field.hidden = of !== this.mode;
    const arrows = toggle('residual arrows', false, (on) => {
      this.arrowsShown = on;
      enlarged.field.hidden = !on;
      this.stage.draw();
    });
    const enlarged = slider('Enlarged', 1, 100, this.enlarged, 1, (v) => `× ${v}`, redraw((v) => (this.enlarged = v)));
    enlarged.field.hidden = true;
    const count = this.arrows.px.length;
    const tools = element('div', { class: 'tools' }, this.modes.field, element('div', { class: 'modes' }, ...fields.map(([, f]) => f)),
      button('show all', () => this.stage.reset()), this.stage.saving('registration'), this.parts.toggle ?? '', count ? arrows : '', count ? element('div', { class: 'modes' }, enlarged.field) : '');
    const laid = data.before ? 'One picture, warped by the run before and by the run after. ' : `${data.reference.name} stays; ${data.warped.name} is warped onto it. `;
    const names = element('p', { class: 'hint' }, laid,
      count ? `Arrows lead from where the model puts a feature to where it was found: ${counted(count)}${count < data.total ? ` of ${counted(data.total)}` : ''}.` : '');
    if (this.uncovered) names.append(` The yellow line encloses what ${data.warped.name} covers; beyond it stripes stand for nothing.`);
    const note = data.reference.step > 1 ? element('p', { class: 'note' }, `The pictures are reduced to 1/${data.reference.step}.`) : '';
    return element('div', { class: 'view-body' }, tools, this.stage.host, names, note);
  }

  blink() {
    this.shown = !this.shown;
    this.stage.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.shiftKey) return false;
    if (event.key === 'b' || event.key === 'B') {
      if (this.mode !== 'blink') this.modes?.choose('blink');
      clearInterval(this.timer);
      this.blink();
    } else if (this.mode === 'swipe' && (event.key === 'ArrowLeft' || event.key === 'ArrowRight')) {
      this.moveEdge(this.place + (event.key === 'ArrowLeft' ? -0.02 : 0.02));
    } else return false;
    return true;
  }

  /** @param {number} place */
  moveEdge(place) {
    this.place = clamp(place, 0, 1);
    this.swipe?.set(Math.round(this.place * 1000));
    this.stage.draw();
  }

  edge() {
    const { rect } = this.pane;
    return rect.x + this.place * rect.w;
  }

  /** @param {Point} at */
  onHandle(at) {
    return this.mode === 'swipe' && Math.abs(at[0] - this.edge()) < 14;
  }

  /** @param {Point} at @param {boolean} began */
  drag(at, began) {
    if (began) return this.onHandle(at);
    const { rect } = this.pane;
    this.moveEdge((at[0] - rect.x) / rect.w);
    return true;
  }

  /** The absolute difference of the pictures in colours, where both show something. */
  subtracted() {
    if (this.difference) return this.difference;
    const [a, b] = [pixelsOf(this.reference), pixelsOf(this.warped)];
    const out = new Uint8ClampedArray(a.length);
    const words = new Uint32Array(out.buffer);
    for (let i = 0; i < words.length; i++) {
      const k = 4 * i;
      if (b[k + 3] === 0) continue;
      const d = Math.max(Math.abs(a[k] - b[k]), Math.abs(a[k + 1] - b[k + 1]), Math.abs(a[k + 2] - b[k + 2]));
      words[i] = this.table[Math.min(255, Math.round(d * this.gain))];
    }
    this.difference = sheetOfPixels(this.reference.width, this.reference.height, out, this.reference.covers);
    return this.difference;
  }

  /** @param {Painter} painter */
  draw(painter) {
    const { pane, mode, reference, warped } = this;
    const { uncovered } = this;
    const clip = pane.clip();
    /** The warped picture, and stripes where it shows nothing: never the reference. */
    const drawWarped = (/** @type {Rect | undefined} */ within = undefined) => {
      if (uncovered) pane.draw(painter, uncovered.ground, 1, within);
      pane.draw(painter, warped, 1, within);
    };
    if (mode === 'difference') {
      if (uncovered) pane.draw(painter, uncovered.ground);
      pane.draw(painter, this.subtracted());
    } else if (mode === 'warped' || (mode === 'blink' && !this.shown)) drawWarped();
    else pane.draw(painter, reference);
    if (mode === 'swipe') {
      const x = this.edge();
      drawWarped({ x, y: clip.y, w: pane.rect.x + pane.rect.w - x, h: clip.h });
      const { y, h } = pane.rect;
      painter.lines(Float32Array.of(x, y, x, y + h), Uint32Array.of(packed(0, 0, 0, 120)), 1, 4);
      painter.lines(Float32Array.of(x, y, x, y + h), Uint32Array.of(packed(255, 255, 255, 255)), 1, 1.5);
      painter.dots(Float32Array.of(x, y + h / 2, 8), Uint32Array.of(packed(255, 255, 255, 255)), 1);
    }
    if (mode === 'checker') {
      const side = (Math.max(pane.width, pane.height) / this.squares) * pane.zoom;
      const [x0, y0] = pane.toScreen([-0.5, -0.5]);
      for (let j = 0; j * side < pane.height * pane.zoom; j++) {
        for (let i = j % 2; i * side < pane.width * pane.zoom; i += 2) {
          drawWarped({ x: x0 + i * side, y: y0 + j * side, w: side, h: side });
        }
      }
    }
    if (uncovered && mode !== 'reference') pane.draw(painter, uncovered.outline);
    this.parts.draw(painter);
    if (this.arrowsShown) this.drawArrows(painter);
  }

  /** @param {Painter} painter */
  drawArrows(painter) {
    const { px, py, qx, qy } = this.arrows;
    const ends = [];
    const tips = [];
    for (let i = 0; i < px.length; i++) {
      const from = this.pane.toScreen([px[i], py[i]]);
      const to = this.pane.toScreen([px[i] + (qx[i] - px[i]) * this.enlarged, py[i] + (qy[i] - py[i]) * this.enlarged]);
      if (![...from, ...to].every(Number.isFinite) || !this.pane.holds(from)) continue;
      ends.push(...from, ...to);
      tips.push(...from, 1.3);
    }
    const n = ends.length / 4;
    const lines = Float32Array.from(ends);
    painter.lines(lines, new Uint32Array(n).fill(packed(0, 0, 0, 150)), n, 3.2);
    painter.lines(lines, new Uint32Array(n).fill(packed(120, 220, 255, 255)), n, 1.4);
    painter.dots(Float32Array.from(tips), new Uint32Array(n).fill(packed(255, 200, 60, 255)), n);
  }
}

/** A sheet that is transparent where `covered` is 0. @param {Sheet} from @param {Uint8Array} covered */
function masked(from, covered) {
  const pixels = Uint8ClampedArray.from(pixelsOf(from));
  for (let i = 0; i < covered.length; i++) if (!covered[i]) pixels[4 * i + 3] = 0;
  return sheetOfPixels(from.width, from.height, pixels, from.covers);
}

/** Stripes where `covered` is 0, and the edge of the rest. @param {Sheet} from @param {Uint8Array} covered */
function uncoveredSheets(from, covered) {
  const { width, height } = from;
  const [ground, outline] = [0, 1].map(() => new Uint32Array(width * height));
  const [period, thick] = [Math.max(6, Math.round(Math.max(width, height) / 80)), Math.max(1, Math.round(Math.max(width, height) / 700))];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const i = y * width + x;
      if (!covered[i]) {
        ground[i] = (x + y) % period < period / 2 ? packed(58, 62, 72, 255) : packed(34, 37, 44, 255);
        continue;
      }
      const inside = x < thick || y < thick || (covered[i - thick] && covered[i - thick * width]);
      const before = x >= width - thick || y >= height - thick || (covered[i + thick] && covered[i + thick * width]);
      if (!inside || !before) outline[i] = packed(255, 214, 10, 255);
    }
  }
  const made = (/** @type {Uint32Array<ArrayBuffer>} */ of) => sheetOfPixels(width, height, new Uint8ClampedArray(of.buffer), from.covers);
  return { ground: made(ground), outline: made(outline) };
}

/** @param {RegistrationData} data */
async function registrationView(data) {
  const [reference, warped] = await Promise.all([picture(data.reference), picture(data.warped)]);
  const covered = await bytes(data.covered);
  /** @type {Record<string, Float32Array>} */
  const arrows = {};
  for (const [name, block] of Object.entries(data.arrows)) arrows[name] = await floats(block);
  const whole = covered.every((v) => v !== 0);
  return new RegistrationView(data, reference, whole ? warped : masked(warped, covered), whole ? null : uncoveredSheets(warped, covered), arrows);
}
