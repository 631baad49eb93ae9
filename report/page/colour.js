// @ts-check
// Colours of numbers.

/** A colour map with 256 colours, from `from` to `to` of its length: 0xAABBGGRR.
 * @param {string} name @param {number} from @param {number} to */
function colourTable(name, from = 0, to = 1) {
  const stops = PAGE.maps[name];
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const place = (from + ((to - from) * i) / 255) * (stops.length - 1);
    const k = Math.min(Math.floor(place), stops.length - 2);
    const mix = (/** @type {number} */ c) => Math.round(stops[k][c] + (stops[k + 1][c] - stops[k][c]) * (place - k));
    table[i] = packed(mix(0), mix(1), mix(2), 255);
  }
  return table;
}

/** @param {number} r @param {number} g @param {number} b @param {number} a */
function packed(r, g, b, a) {
  return ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** Colours of kinds, which the colour-blind can tell apart: Okabe and Ito (2008). */
const KINDS = [packed(86, 180, 233, 255), packed(230, 159, 0, 255), packed(0, 158, 115, 255), packed(240, 228, 66, 255), packed(204, 121, 167, 255), packed(213, 94, 0, 255), packed(0, 114, 178, 255)];

/** Of two compared runs, which has a match or pair, by number. */
const RUNS = [{ name: 'in both', colour: packed(150, 158, 172, 255) }, { name: 'only before', colour: KINDS[1] }, { name: 'only after', colour: KINDS[0] }];

/** @param {number} colour @param {number} alpha 0 to 255 */
function faded(colour, alpha) {
  return ((colour & 0xffffff) | (alpha << 24)) >>> 0;
}

/** @param {number} colour */
function css(colour) {
  const alpha = ((colour >>> 24) / 255).toFixed(3);
  return `rgba(${colour & 255},${(colour >>> 8) & 255},${(colour >>> 16) & 255},${alpha})`;
}

/** @param {Uint32Array} table @param {number} share 0 to 1; NaN as 0 */
function colourAt(table, share) {
  return table[Math.max(0, Math.min(255, Math.round(share * 255) || 0))];
}

/** A strip of a colour map as a background. @param {Uint32Array} table */
function gradient(table) {
  const stops = [];
  for (let i = 0; i < 256; i += 15) stops.push(css(table[i]));
  return `linear-gradient(to right, ${stops.join(', ')})`;
}
