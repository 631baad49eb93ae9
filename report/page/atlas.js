// @ts-check
// Small pictures of many photographs.

/** Small square pictures of all photographs in one sheet. */
class Atlas {
  /** @param {(string | null)[]} urls @param {() => void} changed */
  constructor(urls, changed) {
    this.urls = urls;
    this.changed = changed;
    this.across = Math.max(1, Math.ceil(Math.sqrt(urls.length)));
    this.side = clamp(Math.floor(3072 / this.across), 24, urls.length < 10 ? 512 : 192);
    this.there = new Uint8Array(urls.length);
    /** @type {Sheet | null} */
    this.sheet = null;
    this.asked = false;
  }

  /** Loads the pictures, some at a time; those already loaded are shown meanwhile. */
  async open() {
    this.asked = true;
    const { across, side, urls } = this;
    const canvas = element('canvas', { width: String(across * side), height: String(across * side) });
    const context = context2d(canvas);
    context.imageSmoothingQuality = 'high';
    const chunk = Math.max(64, Math.ceil(urls.length / 5));
    for (let first = 0; first < urls.length; first += chunk) {
      await Promise.all(urls.slice(first, first + chunk).map(async (url, k) => {
        if (!url) return;
        const i = first + k;
        const image = await imageOf(url);
        const [w, h] = [image.naturalWidth, image.naturalHeight];
        const cut = Math.min(w, h);
        context.drawImage(image, (w - cut) / 2, (h - cut) / 2, cut, cut, (i % across) * side, Math.floor(i / across) * side, side, side);
        this.there[i] = 1;
      }));
      this.sheet = sheet(canvas, across * side, across * side, [across * side, across * side]);
      this.changed();
    }
  }

  /** Whether a photograph's picture was drawn. @param {Painter} painter @param {number} i @param {Rect} to @param {Rect} clip */
  draw(painter, i, to, clip) {
    if (!this.asked) void this.open();
    const { across, side, sheet: of } = this;
    if (!of || !this.there[i]) return false;
    const scale = to.w / side;
    const whole = across * side * scale;
    // Filtering mixes in the neighbour within half a pixel of the edge.
    const inset = Math.min(1, to.w / 16);
    const inner = { x: to.x + inset, y: to.y + inset, w: to.w - 2 * inset, h: to.h - 2 * inset };
    painter.sheet(of, { x: to.x - (i % across) * side * scale, y: to.y - Math.floor(i / across) * side * scale, w: whole, h: whole }, intersection(inner, clip), 1, true);
    return true;
  }
}
