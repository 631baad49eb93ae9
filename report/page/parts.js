// @ts-check
// Parts of a picture, drawn over it: how many inliers each has, how far off they are, and where the model is wrong.

class Parts {
  /** @param {PartData[]} parts @param {Stage} stage @param {Pane} pane */
  constructor(parts, stage, pane) {
    this.parts = parts;
    this.pane = pane;
    this.labels = parts.map(({ inliers, residual, off }) => {
      const told = inliers ? `${counted(inliers)} inlier${inliers === 1 ? '' : 's'}` : 'no inlier';
      return element('span', { class: `part-label${off === null ? '' : ' off'}`, hidden: true }, told,
        residual === null ? '' : element('span', {}, `${written(residual, 1)} px`), off === null ? '' : element('b', {}, `${written(off, 0)} px off`));
    });
    stage.host.append(...this.labels);
    this.shown = false;
    /** Shown at once where right matches contradict the model. */
    this.toggle = parts.length ? toggle('parts', parts.some((part) => part.off !== null), (on) => {
      this.shown = on;
      stage.draw();
    }) : null;
    this.shown = this.toggle?.getAttribute('aria-pressed') === 'true';
  }

  /** @param {Painter} painter */
  draw(painter) {
    const { pane, shown } = this;
    const calm = this.parts.filter((part) => part.off === null);
    // The wrong ones last, so that their edges are whole.
    for (const part of shown ? [...calm, ...this.parts.filter((one) => one.off !== null)] : []) {
      const corners = part.corners.map((corner) => pane.toScreen(corner));
      const [dark, bright] = part.off === null ? [packed(0, 0, 0, 90), packed(255, 255, 255, part.inliers ? 130 : 60)] : [packed(0, 0, 0, 160), packed(255, 92, 64, 255)];
      for (const [colour, width] of [[dark, part.off === null ? 3 : 6], [bright, part.off === null ? 1 : 3]]) {
        const ends = corners.flatMap((corner, k) => segmentWithin(corner, corners[(k + 1) % 4], pane.rect) ?? []);
        painter.lines(Float32Array.from(ends.flat()), new Uint32Array(ends.length / 2).fill(colour), ends.length / 2, width);
      }
    }
    this.labels.forEach((label, i) => {
      const middle = [0, 1].map((c) => this.parts[i].corners.reduce((sum, corner) => sum + corner[c] / 4, 0));
      const [x, y] = pane.toScreen(/** @type {Point} */ (middle));
      label.hidden = !shown || !pane.holds([x, y]);
      Object.assign(label.style, { left: `${x}px`, top: `${y}px` });
    });
  }
}

/** The part of a segment inside a rectangle (Liang and Barsky). @param {Point} p @param {Point} q @param {Rect} rect @returns {[Point, Point] | null} */
function segmentWithin(p, q, { x, y, w, h }) {
  let [from, to] = [0, 1];
  const by = [q[0] - p[0], q[1] - p[1]];
  for (const [c, low, high] of [[0, x, x + w], [1, y, y + h]]) {
    const ends = [(low - p[c]) / by[c], (high - p[c]) / by[c]].sort((a, b) => a - b);
    if (by[c] === 0 ? p[c] < low || p[c] > high : false) return null;
    if (by[c] !== 0) [from, to] = [Math.max(from, ends[0]), Math.min(to, ends[1])];
  }
  const at = (/** @type {number} */ t) => /** @type {Point} */ ([p[0] + t * by[0], p[1] + t * by[1]]);
  return from < to ? [at(from), at(to)] : null;
}
