// @ts-check
// The matrix of pairs: a square for any two photographs.

/** Pixels of the plane for each square, many enough that a square can be enlarged to show a thumbnail. */
const CELL = 16;
/** The largest side of a sheet. */
const SHEET = 4096;
/** The colour of pairs that were tried without a result. */
const TRIED = packed(58, 65, 78, 255);
/** The colour of pairs that were not tried. */
const NOT_TRIED = packed(GROUND[0], GROUND[1], GROUND[2], 255);
/** The colour of the diagonal. */
const SELF = packed(92, 100, 116, 255);
const WHITE = packed(255, 255, 255, 255);

class Matrix {
  /** @param {CollectionView} of */
  constructor(of) {
    this.of = of;
    this.count = of.count;
    this.pane = new Pane(CELL * this.count, CELL * this.count);
    /** The photograph of each row, and the row of each photograph. */
    this.rows = Uint32Array.from({ length: this.count }, (_, i) => i);
    this.row = Uint32Array.from(this.rows);
    /** Drawn matrices, and below those without results, by the number of squares that a pixel stands for. @type {Map<number, Sheet>} */
    this.sheets = new Map();
    /** @type {Map<number, Uint32Array>} */
    this.grounds = new Map();
    /** The width of the names beside rows and above columns; 0 where there is no room. */
    this.names = 0;
    /** The names of the rows, then those of the columns, by photograph. @type {HTMLElement[][]} */
    this.labels = [[], []];
  }

  /** Shows names beside rows and above columns, if this map is the one that is shown. @param {boolean} shown @param {number} cell */
  label(shown, cell) {
    const { pane, names, count, row, of } = this;
    if (shown && names && !this.labels[0].length) {
      this.labels = ['row', 'column'].map((axis) => of.data.images.map(({ name }) => element('span', { class: `matrix-name ${axis}`, 'aria-hidden': 'true', title: name }, name.split('/').pop() ?? name)));
      of.stage.host.append(...this.labels.flat());
    }
    const { x, y, w, h } = pane.rect;
    const [x0, y0] = pane.toScreen([-0.5, -0.5]);
    const room = x - names;
    // Beside the matrix where it is narrower than its pane.
    const [right, bottom] = [Math.max(x, x0) - room, Math.max(y, y0) - room];
    for (let i = 0; this.labels[0].length && i < count; i++) {
      const [cx, cy] = [x0 + (row[i] + 0.5) * cell, y0 + (row[i] + 0.5) * cell];
      const [beside, above] = this.labels.map((labels) => labels[i]);
      beside.hidden = !shown || !names || cy < y || cy >= y + h;
      above.hidden = !shown || !names || cx < x || cx >= x + w;
      Object.assign(beside.style, { right: `${of.stage.host.clientWidth - right}px`, top: `${cy}px`, maxWidth: `${names - 4}px` });
      Object.assign(above.style, { left: `${cx}px`, bottom: `${of.stage.host.clientHeight - bottom}px`, maxHeight: `${names - 4}px` });
      beside.classList.toggle('current', i === of.focus);
      above.classList.toggle('current', i === of.focus);
    }
    return room;
  }

  /** Sets the photograph of each row; null for the order of the list. @param {number[] | null} order */
  order(order) {
    this.rows = Uint32Array.from(order ?? { length: this.count }, (i, k) => (order ? i : k));
    this.rows.forEach((i, place) => (this.row[i] = place));
    this.grounds.clear();
    this.sheets.clear();
  }

  /** @param {number} width @param {number} height */
  arrange(width, height) {
    const heads = this.count > 1 ? clamp(Math.round((0.9 * width) / this.count), 26, 56) : 0;
    // Names take part of the room where rows stay high enough to read them.
    const longest = this.of.data.images.reduce((most, { name }) => Math.max(most, (name.split('/').pop() ?? name).length), 0);
    const names = Math.min(120, 7 * longest + 8);
    this.names = heads && width >= 480 && (width - heads - names) / this.count >= 12 ? names : 0;
    const margin = heads + this.names;
    this.pane.place({ x: margin, y: margin, w: width - margin, h: height - margin });
    return [this.pane];
  }

  /** Moves an enlarged plane to a pair or a photograph. @param {number} a @param {number} b */
  follow(a, b) {
    const { pane, row } = this;
    if (!pane.fitted) pane.middle = [CELL * (Math.max(row[a], row[b]) + 0.5), CELL * (Math.min(row[a], row[b]) + 0.5)];
  }

  /** @param {Point} at @returns {Hit | null} */
  at(at) {
    const { pane, count, rows } = this;
    const [x, y] = pane.toPlane(at).map((v) => Math.floor((v + 0.5) / CELL));
    const inside = (/** @type {number} */ v) => v >= 0 && v < count;
    const [above, before] = [at[1] < Math.max(pane.rect.y, pane.toScreen([0, -0.5])[1]), at[0] < Math.max(pane.rect.x, pane.toScreen([-0.5, 0])[0])];
    if (above && before) return null;
    if (above) return inside(x) ? { images: [rows[x]], pair: -1 } : null;
    if (before) return inside(y) ? { images: [rows[y]], pair: -1 } : null;
    if (!inside(x) || !inside(y)) return null;
    const [i, j] = [rows[x], rows[y]];
    return i === j ? { images: [i], pair: -1 } : { images: [j, i], pair: this.of.pairOf(i, j) };
  }

  /** The matrix with a pixel for `by` × `by` pairs, of which it shows the strongest. @param {number} by */
  sheet(by) {
    const known = this.sheets.get(by);
    if (known) return known;
    const side = Math.ceil(this.count / by);
    const pixels = Uint32Array.from(this.ground(by, side));
    const { row } = this;
    const { c, kept, colours, pairs } = this.of;
    const paint = (/** @type {number} */ p, /** @type {number} */ colour) => {
      const [x, y] = [Math.floor(row[c.a[p]] / by), Math.floor(row[c.b[p]] / by)];
      pixels[y * side + x] = pixels[x * side + y] = colour;
    };
    // The strongest is painted last. Pairs that the filters leave out are painted first, and pale.
    for (let p = pairs - 1; p >= 0; p--) if (!kept[p]) paint(p, mixed(TRIED, colours[p], 0.25));
    for (let p = pairs - 1; p >= 0; p--) if (kept[p]) paint(p, colours[p]);
    const made = sheetOfPixels(side, side, new Uint8ClampedArray(pixels.buffer), [side * by * CELL, side * by * CELL]);
    this.sheets.set(by, made);
    return made;
  }

  /** The matrix without results: pairs that were tried and those that were not. @param {number} by @param {number} side */
  ground(by, side) {
    const known = this.grounds.get(by);
    if (known) return known;
    const { count, row } = this;
    const { tried } = this.of;
    const pixels = new Uint32Array(side * side).fill(tried ? NOT_TRIED : TRIED);
    const place = Uint32Array.from(row, (r) => Math.floor(r / by));
    for (let a = 0, bit = 0; tried && a < count; a++) {
      const x = place[a];
      for (let b = a + 1; b < count; b++, bit++) {
        if ((tried[Math.floor(bit / 8)] >> (bit % 8)) & 1) pixels[place[b] * side + x] = pixels[x * side + place[b]] = TRIED;
      }
    }
    for (let i = 0; by === 1 && i < count; i++) {
      for (let j = 0; this.of.data.images[i].problem && j < count; j++) pixels[place[i] * side + place[j]] = pixels[place[j] * side + place[i]] = NOT_TRIED;
    }
    if (by === 1) for (let i = 0; i < count; i++) pixels[i * side + i] = SELF;
    this.grounds.set(by, pixels);
    return pixels;
  }

  /** @param {Painter} painter @param {number} ratio device pixels to a pixel */
  draw(painter, ratio) {
    const { pane, row } = this;
    const { c, focus, hovered, selected } = this.of;
    const cell = CELL * pane.zoom;
    let by = 1;
    while (cell * ratio * by < 1 || this.count / by > SHEET) by *= 2;
    const sheet = this.sheet(by);
    painter.sheet(sheet, pane.sheetRect(sheet), pane.clip(), 1, false);
    if (cell >= 9) this.drawGaps(painter, cell);
    if (cell >= 24) this.drawSelves(painter, cell);
    this.drawHeads(painter, cell, this.label(true, cell));
    if (focus >= 0) this.mark(painter, focus, packed(255, 255, 255, 220));
    for (const i of hovered?.images ?? []) this.mark(painter, i, packed(255, 255, 255, 90));
    if (selected < 0) return;
    const [x, y] = [row[c.a[selected]], row[c.b[selected]]];
    for (const [p, q] of [[x, y], [y, x]]) {
      this.frame(painter, p, q, 1, 1, packed(0, 0, 0, 200), 5);
      this.frame(painter, p, q, 1, 1, WHITE, 2);
    }
  }

  /** Draws a frame around some squares. @param {Painter} painter @param {number} x @param {number} y @param {number} w @param {number} h @param {number} colour @param {number} width */
  frame(painter, x, y, w, h, colour, width) {
    const { pane } = this;
    const cell = CELL * pane.zoom;
    const [left, top] = pane.toScreen([x * CELL - 0.5, y * CELL - 0.5]);
    outline(painter, { x: left, y: top, w: w * cell, h: h * cell }, pane.rect, colour, width);
  }

  /** Frames the row and the column of a photograph. @param {Painter} painter @param {number} i @param {number} colour */
  mark(painter, i, colour) {
    this.frame(painter, 0, this.row[i], this.count, 1, colour, 1);
    this.frame(painter, this.row[i], 0, 1, this.count, colour, 1);
  }

  /** Draws the gaps between squares. @param {Painter} painter @param {number} cell */
  drawGaps(painter, cell) {
    const { pane } = this;
    const { x, y, w, h } = pane.clip();
    const [x0, y0] = pane.toScreen([-0.5, -0.5]);
    const ends = [];
    for (let k = Math.ceil((x - x0) / cell); x0 + k * cell <= x + w + 0.5; k++) ends.push(x0 + k * cell, y, x0 + k * cell, y + h);
    for (let k = Math.ceil((y - y0) / cell); y0 + k * cell <= y + h + 0.5; k++) ends.push(x, y0 + k * cell, x + w, y0 + k * cell);
    const count = ends.length / 4;
    painter.lines(Float32Array.from(ends), new Uint32Array(count).fill(NOT_TRIED), count, clamp(cell / 14, 1, 3));
  }

  /** Draws each photograph on the diagonal. @param {Painter} painter @param {number} cell */
  drawSelves(painter, cell) {
    const { pane, rows, count } = this;
    for (let k = 0; k < count; k++) {
      const [x, y] = pane.toScreen([k * CELL - 0.5, k * CELL - 0.5]);
      const to = { x: x + 1, y: y + 1, w: cell - 2, h: cell - 2 };
      const { w, h } = intersection(to, pane.rect);
      if (w > 0 && h > 0) this.of.atlas.draw(painter, rows[k], to, pane.rect);
    }
  }

  /** Draws the photographs above their columns and beside their rows, where there is room. @param {Painter} painter @param {number} cell @param {number} room that they have */
  drawHeads(painter, cell, room) {
    const { pane, rows, row, count } = this;
    const { atlas, focus, hovered } = this.of;
    const margin = pane.rect.x;
    if (margin === 0) return;
    const [x0, y0] = pane.toScreen([-0.5, -0.5]);
    const [right, bottom] = [margin + pane.rect.w, margin + pane.rect.h];
    // Beside the matrix where it is narrower than its pane.
    const [left, top] = [Math.max(margin, x0), Math.max(margin, y0)];
    const head = (/** @type {number} */ place, /** @type {number} */ size) => {
      const [cx, cy] = [x0 + (place + 0.5) * cell, y0 + (place + 0.5) * cell];
      const above = { x: cx - size / 2, y: top - 3 - size, w: size, h: size };
      const before = { x: left - 3 - size, y: cy - size / 2, w: size, h: size };
      if (cx >= margin && cx < right) atlas.draw(painter, rows[place], above, { x: margin, y: 0, w: right - margin, h: top });
      if (cy >= margin && cy < bottom) atlas.draw(painter, rows[place], before, { x: 0, y: margin, w: left, h: bottom - margin });
    };
    const side = Math.min(cell - 2, room - 6);
    if (side >= 11) {
      const first = Math.max(0, Math.floor((margin - Math.max(x0, y0)) / cell));
      const last = Math.min(count, Math.ceil((Math.max(right, bottom) - Math.min(x0, y0)) / cell));
      for (let place = first; place < last; place++) head(place, side);
      return;
    }
    for (const i of [focus, ...(hovered?.images ?? [])]) if (i >= 0) head(row[i], room - 6);
  }
}

/** Draws the edges of a rectangle, clipped to another. @param {Painter} painter @param {Rect} of @param {Rect} within @param {number} colour @param {number} width */
function outline(painter, of, within, colour, width) {
  const { x, y, w, h } = intersection(of, within);
  if (w < 0 || h < 0) return;
  const [right, bottom] = [x + w, y + h];
  painter.lines(Float32Array.of(x, y, right, y, right, y, right, bottom, right, bottom, x, bottom, x, bottom, x, y), new Uint32Array(4).fill(colour), 4, width);
}

/** @param {number} from @param {number} to @param {number} share of the second colour */
function mixed(from, to, share) {
  const mix = (/** @type {number} */ shift) => Math.round(((from >>> shift) & 255) * (1 - share) + ((to >>> shift) & 255) * share);
  return packed(mix(0), mix(8), mix(16), 255);
}
