// @ts-check
// Reads the data of the page: numbers from their blocks, pictures from the still pictures.

/** @type {PageData} */
const PAGE = JSON.parse(/** @type {HTMLElement} */ (document.getElementById('data')).textContent ?? '');

/** @param {string} text base 64 */
function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {Block} block @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function bytes(block) {
  const stream = new Blob([bytesOf(block.data)]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {Block} block */
async function floats(block) {
  return new Float32Array((await bytes(block)).buffer);
}

/** @param {Block} block */
async function integers(block) {
  return new Uint32Array((await bytes(block)).buffer);
}

/** @param {Block} block */
async function words(block) {
  return new Uint16Array((await bytes(block)).buffer);
}

/** A map of floats, NaN where there is no value. Each row is stored as differences, all low bytes before all high bytes.
 * @param {MapData} map @param {number} columns @param {number} rows */
async function mapValues(map, columns, rows) {
  const packed = await bytes(map.values);
  const out = new Float32Array(columns * rows);
  for (let y = 0; y < rows; y++) {
    const at = 2 * y * columns;
    let number = 0;
    for (let x = 0; x < columns; x++) {
      number = (number + packed[at + x] + 256 * packed[at + columns + x]) & 0xffff;
      out[y * columns + x] = number === 0xffff ? NaN : map.low + map.step * number;
    }
  }
  return out;
}

let serials = 0;

/** @param {CanvasImageSource} image @param {number} width @param {number} height @param {Point} covers @returns {Sheet} */
function sheet(image, width, height, covers) {
  return { image, width, height, covers, serial: ++serials };
}

/** The address of the pixels of a picture inside a still picture. @param {string} id */
function urlIn(id) {
  return /** @type {SVGImageElement} */ (/** @type {unknown} */ (document.getElementById(id))).href.baseVal;
}

/** @param {string} url */
async function imageOf(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  return image;
}

/** The picture inside a still picture.
 * @param {PictureData} data */
async function picture(data) {
  const image = await imageOf(urlIn(data.id));
  const [width, height] = [image.naturalWidth, image.naturalHeight];
  return sheet(image, width, height, [width * data.step, height * data.step]);
}

/** A sheet made of pixels.
 * @param {number} width @param {number} height @param {Uint8ClampedArray<ArrayBuffer>} pixels @param {Point} covers */
function sheetOfPixels(width, height, pixels, covers) {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  context2d(canvas).putImageData(new ImageData(pixels, width, height), 0, 0);
  return sheet(canvas, width, height, covers);
}

/** @param {HTMLCanvasElement} canvas */
function context2d(canvas) {
  const context = canvas.getContext('2d', { willReadFrequently: false });
  if (!context) throw new Error('this browser gives no canvas to draw on');
  return context;
}

/** The pixels of a sheet. @param {Sheet} from */
function pixelsOf(from) {
  const canvas = document.createElement('canvas');
  canvas.width = from.width;
  canvas.height = from.height;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', { willReadFrequently: true }));
  context.drawImage(from.image, 0, 0);
  return context.getImageData(0, 0, from.width, from.height).data;
}

/** The shortest decimal that gives the same 32-bit float. @param {number} value */
function shortest(value) {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}

/** A number with fixed decimals; a dash if it is not finite. @param {number} value @param {number} decimals */
function written(value, decimals) {
  return Number.isFinite(value) ? value.toFixed(decimals) : '–';
}

/** A number with commas between thousands. @param {number} count */
function counted(count) {
  // Formatted by hand: loading the browser's number formats takes a fifth of the time in which a page opens.
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** 1st, 2nd, 3rd, 4th, with commas between thousands. @param {number} n */
function ordinal(n) {
  const ending = n % 100 > 10 && n % 100 < 14 ? 'th' : ['th', 'st', 'nd', 'rd'][n % 10] ?? 'th';
  return `${counted(n)}${ending}`;
}

// ---- geometry of 3×3 matrices, row-major

/** @param {number[]} m @param {Point} p @returns {number[]} */
function times(m, [x, y]) {
  return [m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5], m[6] * x + m[7] * y + m[8]];
}

/** @param {number[]} m @param {Point} p @returns {Point | null} */
function mapped(m, p) {
  const [x, y, w] = times(m, p);
  return w > 0 && Number.isFinite(x / w) && Number.isFinite(y / w) ? [x / w, y / w] : null;
}

/** The inverse, times a positive number. @param {number[]} m */
function inverse(m) {
  const [a, b, c, d, e, f, g, h, i] = m;
  const adjugate = [e * i - f * h, c * h - b * i, b * f - c * e, f * g - d * i, a * i - c * g, c * d - a * f,
    d * h - e * g, b * g - a * h, a * e - b * d];
  const determinant = a * adjugate[0] + b * adjugate[3] + c * adjugate[6];
  return determinant < 0 ? adjugate.map((v) => -v) : adjugate;
}

/** @param {number[]} m */
function transposed(m) {
  return [m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]];
}
