// @ts-check
// Draws sheets, lines and dots by WebGL 2, or on a 2-D canvas if WebGL 2 is missing or slow.

const SHEET_VERTEX = `#version 300 es
uniform vec2 size; uniform vec4 rect; uniform vec4 turn; out vec2 at;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  at = corner;
  vec2 p = rect.xy + corner * rect.zw - turn.zw;
  p = (vec2(turn.x * p.x - turn.y * p.y, turn.y * p.x + turn.x * p.y) + turn.zw) / size * 2.0 - 1.0;
  gl_Position = vec4(p.x, -p.y, 0.0, 1.0);
}`;
const SHEET_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D picture; uniform float alpha; in vec2 at; out vec4 colour;
void main() { vec4 c = texture(picture, at); colour = vec4(c.rgb, c.a * alpha); }`;
const LINE_VERTEX = `#version 300 es
uniform vec2 size; uniform float width; in vec4 ends; in vec4 tint; out vec4 shade; out float side;
void main() {
  vec2 along = ends.zw - ends.xy;
  float n = max(length(along), 1e-3);
  along /= n;
  vec2 across = vec2(-along.y, along.x);
  float s = float(gl_VertexID & 1) * 2.0 - 1.0;
  side = s * (0.5 * width + 1.0);
  vec2 p = (gl_VertexID < 2 ? ends.xy : ends.zw) + across * side;
  shade = tint;
  p = p / size * 2.0 - 1.0;
  gl_Position = vec4(p.x, -p.y, 0.0, 1.0);
}`;
const LINE_FRAGMENT = `#version 300 es
precision highp float;
uniform float width; in vec4 shade; in float side; out vec4 colour;
void main() { colour = vec4(shade.rgb, shade.a * clamp(0.5 * width + 0.5 - abs(side), 0.0, 1.0)); }`;
const DOT_VERTEX = `#version 300 es
uniform vec2 size; uniform float ratio; in vec3 place; in vec4 tint; out vec4 shade; out float radius;
void main() {
  vec2 p = place.xy / size * 2.0 - 1.0;
  gl_Position = vec4(p.x, -p.y, 0.0, 1.0);
  radius = place.z * ratio;
  gl_PointSize = 2.0 * radius + 3.0;
  shade = tint;
}`;
const DOT_FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade; in float radius; out vec4 colour;
void main() {
  float r = length(gl_PointCoord - 0.5) * (2.0 * radius + 3.0);
  float inside = clamp(radius + 0.5 - r, 0.0, 1.0);
  // A rim around small dots would be most of them.
  float rim = radius < 3.0 ? inside : clamp(radius + 1.5 - r, 0.0, 1.0);
  colour = vec4(shade.rgb * inside, shade.a * rim * mix(0.7, 1.0, inside));
}`;

/** @param {WebGL2RenderingContext} gl @param {string} vertex @param {string} fragment */
function program(gl, vertex, fragment) {
  const made = /** @type {WebGLProgram} */ (gl.createProgram());
  for (const [kind, source] of /** @type {[number, string][]} */ ([[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]])) {
    const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost()) {
      throw new Error(`shader: ${gl.getShaderInfoLog(shader)}`);
    }
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) throw new Error(`shaders: ${gl.getProgramInfoLog(made)}`);
  return made;
}

/** Whether a graphics card provides WebGL 2; in software it is slower than a 2-D canvas. */
function glIsFast() {
  const gl = document.createElement('canvas').getContext('webgl2', { failIfMajorPerformanceCaveat: true });
  if (!gl) return false;
  const told = gl.getExtension('WEBGL_debug_renderer_info');
  const renderer = String(gl.getParameter(told ? told.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension('WEBGL_lose_context')?.loseContext();
  return !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(renderer);
}

/** @param {HTMLCanvasElement} canvas @returns {Painter | null} */
function glPainter(canvas) {
  const gl = canvas.getContext('webgl2', { alpha: false, antialias: false });
  if (!gl) return null;
  const programs = {
    sheet: program(gl, SHEET_VERTEX, SHEET_FRAGMENT),
    line: program(gl, LINE_VERTEX, LINE_FRAGMENT),
    dot: program(gl, DOT_VERTEX, DOT_FRAGMENT),
  };
  const empty = gl.createVertexArray();
  const numbers = gl.createBuffer();
  const tints = gl.createBuffer();
  /** @type {Map<number, WebGLTexture>} */
  const textures = new Map();
  let [width, height, ratio] = [1, 1, 1];

  /** @param {Sheet} from */
  const texture = (from) => {
    const known = textures.get(from.serial);
    if (known) return known;
    const made = /** @type {WebGLTexture} */ (gl.createTexture());
    gl.bindTexture(gl.TEXTURE_2D, made);
    const most = gl.getParameter(gl.MAX_TEXTURE_SIZE);
    let image = from.image;
    if (from.width > most || from.height > most) {
      const scale = most / Math.max(from.width, from.height);
      const small = element('canvas', { width: String(Math.max(1, Math.floor(from.width * scale))), height: String(Math.max(1, Math.floor(from.height * scale))) });
      context2d(small).drawImage(from.image, 0, 0, small.width, small.height);
      image = small;
    }
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, /** @type {TexImageSource} */ (image));
    gl.generateMipmap(gl.TEXTURE_2D);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
    // Each change of colours makes a new sheet, so the oldest textures are deleted.
    if (textures.size > 12) {
      const [oldest] = textures.keys();
      gl.deleteTexture(/** @type {WebGLTexture} */ (textures.get(oldest)));
      textures.delete(oldest);
    }
    textures.set(from.serial, made);
    return made;
  };
  /** @param {WebGLProgram} of @param {string} name @param {number} parts */
  const attribute = (of, name, parts, divisor = 0) => {
    const at = gl.getAttribLocation(of, name);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, parts, parts === 4 && name === 'tint' ? gl.UNSIGNED_BYTE : gl.FLOAT, name === 'tint', 0, 0);
    gl.vertexAttribDivisor(at, divisor);
    return at;
  };
  /** @param {WebGLProgram} of @param {string} name @param {number} parts @param {Float32Array} places @param {Uint32Array} colours @param {number} count @param {number} divisor */
  const fill = (of, name, parts, places, colours, count, divisor) => {
    gl.useProgram(of);
    gl.uniform2f(gl.getUniformLocation(of, 'size'), width, height);
    gl.bindBuffer(gl.ARRAY_BUFFER, numbers);
    gl.bufferData(gl.ARRAY_BUFFER, places.subarray(0, parts * count), gl.STREAM_DRAW);
    const first = attribute(of, name, parts, divisor);
    gl.bindBuffer(gl.ARRAY_BUFFER, tints);
    gl.bufferData(gl.ARRAY_BUFFER, colours.subarray(0, count), gl.STREAM_DRAW);
    const second = attribute(of, 'tint', 4, divisor);
    return () => [first, second].forEach((at) => {
      gl.vertexAttribDivisor(at, 0);
      gl.disableVertexAttribArray(at);
    });
  };
  return {
    name: 'WebGL 2',
    begin(w, h, r, ground) {
      [width, height, ratio] = [w, h, r];
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.disable(gl.SCISSOR_TEST);
      gl.clearColor(ground[0] / 255, ground[1] / 255, ground[2] / 255, 1);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.enable(gl.BLEND);
      gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    },
    sheet(from, to, clip, alpha, smooth, turn) {
      if (clip.w <= 0 || clip.h <= 0) return;
      const bound = texture(from);
      gl.useProgram(programs.sheet);
      gl.enable(gl.SCISSOR_TEST);
      gl.scissor(Math.round(clip.x * ratio), Math.round((height - clip.y - clip.h) * ratio), Math.round(clip.w * ratio), Math.round(clip.h * ratio));
      gl.bindTexture(gl.TEXTURE_2D, bound);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, smooth ? gl.LINEAR : gl.NEAREST);
      gl.uniform2f(gl.getUniformLocation(programs.sheet, 'size'), width, height);
      gl.uniform4f(gl.getUniformLocation(programs.sheet, 'rect'), to.x, to.y, to.w, to.h);
      const { angle, about } = turn ?? { angle: 0, about: [0, 0] };
      gl.uniform4f(gl.getUniformLocation(programs.sheet, 'turn'), Math.cos(angle), Math.sin(angle), about[0], about[1]);
      gl.uniform1f(gl.getUniformLocation(programs.sheet, 'alpha'), alpha);
      gl.bindVertexArray(empty);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
      gl.disable(gl.SCISSOR_TEST);
    },
    lines(ends, colours, count, thickness) {
      if (count === 0) return;
      gl.bindVertexArray(null);
      const done = fill(programs.line, 'ends', 4, ends, colours, count, 1);
      gl.uniform1f(gl.getUniformLocation(programs.line, 'width'), thickness);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
      done();
    },
    dots(places, colours, count) {
      if (count === 0) return;
      gl.bindVertexArray(null);
      const done = fill(programs.dot, 'place', 3, places, colours, count, 0);
      gl.uniform1f(gl.getUniformLocation(programs.dot, 'ratio'), ratio);
      gl.drawArrays(gl.POINTS, 0, count);
      done();
    },
    end() {},
  };
}

/** @param {HTMLCanvasElement} canvas @returns {Painter} */
function flatPainter(canvas) {
  const context = context2d(canvas);
  /** @type {Map<number, string>} */
  const names = new Map();
  const named = (/** @type {number} */ colour) => {
    const known = names.get(colour) ?? css(colour);
    if (names.size < 4096) names.set(colour, known);
    return known;
  };
  let [width, height, ratio] = [1, 1, 1];
  const layer = document.createElement('canvas');
  /** @type {ImageData | null} */
  let pixels = null;
  /** Draws thousands of dots as squares of whole pixels into the image data, without a call for each.
   * @param {Float32Array} places @param {Uint32Array} colours @param {number} count */
  const squares = (places, colours, count) => {
    if (!pixels || layer.width !== canvas.width || layer.height !== canvas.height) {
      [layer.width, layer.height] = [canvas.width, canvas.height];
      pixels = new ImageData(layer.width, layer.height);
    }
    const [across, down] = [layer.width, layer.height];
    const words = new Uint32Array(pixels.data.buffer);
    words.fill(0);
    for (let i = 0; i < count; i++) {
      const side = Math.max(2, Math.round(2 * places[3 * i + 2] * ratio));
      const left = Math.round(places[3 * i] * ratio - side / 2);
      const top = Math.round(places[3 * i + 1] * ratio - side / 2);
      const [x0, x1] = [Math.max(0, left), Math.min(across, left + side)];
      for (let y = Math.max(0, top); y < Math.min(down, top + side); y++) {
        for (let x = x0; x < x1; x++) words[y * across + x] = colours[i];
      }
    }
    context2d(layer).putImageData(pixels, 0, 0);
    context.drawImage(layer, 0, 0, width, height);
  };
  return {
    name: '2-D canvas',
    begin(w, h, r, ground) {
      [width, height, ratio] = [w, h, r];
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.globalAlpha = 1;
      context.fillStyle = `rgb(${ground.join(',')})`;
      context.fillRect(0, 0, width, height);
    },
    sheet(from, to, clip, alpha, smooth, turn) {
      if (clip.w <= 0 || clip.h <= 0) return;
      context.save();
      context.beginPath();
      context.rect(clip.x, clip.y, clip.w, clip.h);
      context.clip();
      if (turn) {
        context.translate(...turn.about);
        context.rotate(turn.angle);
        context.translate(-turn.about[0], -turn.about[1]);
      }
      context.globalAlpha = alpha;
      context.imageSmoothingEnabled = smooth;
      context.drawImage(from.image, to.x, to.y, to.w, to.h);
      context.restore();
    },
    lines(ends, colours, count, thickness) {
      context.lineWidth = thickness;
      for (let i = 0; i < count; ) {
        const colour = colours[i];
        context.strokeStyle = named(colour);
        context.beginPath();
        for (; i < count && colours[i] === colour; i++) {
          context.moveTo(ends[4 * i], ends[4 * i + 1]);
          context.lineTo(ends[4 * i + 2], ends[4 * i + 3]);
        }
        context.stroke();
      }
    },
    dots(places, colours, count) {
      if (count > 2000) {
        squares(places, colours, count);
        return;
      }
      let before = -1;
      for (let i = 0; i < count; i++) {
        const x = places[3 * i];
        const y = places[3 * i + 1];
        const r = places[3 * i + 2];
        if (colours[i] !== before) context.fillStyle = named((before = colours[i]));
        context.beginPath();
        context.arc(x, y, r, 0, 2 * Math.PI);
        context.fill();
      }
    },
    end() {},
  };
}

/** Draws an SVG. @returns {Painter & { text(): string }} */
function vectorPainter() {
  /** @type {string[]} */
  const parts = [];
  /** @type {Map<number, string>} */
  const known = new Map();
  let [width, height] = [1, 1];
  const fixed = (/** @type {number} */ v) => String(Number(v.toFixed(2)));
  const box = (/** @type {Rect} */ { x, y, w, h }) => `x="${fixed(x)}" y="${fixed(y)}" width="${fixed(w)}" height="${fixed(h)}"`;
  const paint = (/** @type {string} */ what, /** @type {number} */ colour) => `${what}="#${[colour & 255, (colour >>> 8) & 255, (colour >>> 16) & 255].map((v) => v.toString(16).padStart(2, '0')).join('')}" ${what}-opacity="${fixed((colour >>> 24) / 255)}"`;
  /** The pixels of a sheet, once. @param {Sheet} of */
  const pixels = (of) => {
    const name = known.get(of.serial) ?? `p${of.serial}`;
    if (!known.has(of.serial)) {
      const url = of.image instanceof HTMLImageElement ? of.image.src : /** @type {HTMLCanvasElement} */ (of.image).toDataURL();
      parts.push(`<defs><image id="${name}" width="1" height="1" preserveAspectRatio="none" href="${url}"/></defs>`);
      known.set(of.serial, name);
    }
    return name;
  };
  return {
    name: 'SVG',
    begin(w, h, _, ground) {
      [width, height] = [w, h];
      parts.push(`<rect width="${w}" height="${h}" fill="rgb(${ground.join(',')})"/>`);
    },
    sheet(from, to, clip, alpha, smooth, turn) {
      if (clip.w <= 0 || clip.h <= 0) return;
      const about = turn ? `rotate(${fixed((turn.angle * 180) / Math.PI)} ${turn.about.map(fixed).join(' ')}) ` : '';
      const place = `${about}translate(${fixed(to.x)} ${fixed(to.y)}) scale(${to.w} ${to.h})`;
      // A nested SVG clips what is in it.
      const name = pixels(from);
      parts.push(`<svg ${box(clip)} viewBox="${[clip.x, clip.y, clip.w, clip.h].map(fixed).join(' ')}" preserveAspectRatio="none"><use href="#${name}" transform="${place}" opacity="${alpha}"${smooth ? '' : ' style="image-rendering:pixelated"'}/></svg>`);
    },
    lines(ends, colours, count, thickness) {
      for (let i = 0; i < count; i++) parts.push(`<path d="M${fixed(ends[4 * i])} ${fixed(ends[4 * i + 1])}L${fixed(ends[4 * i + 2])} ${fixed(ends[4 * i + 3])}" stroke-width="${thickness}" ${paint('stroke', colours[i])}/>`);
    },
    dots(places, colours, count) {
      for (let i = 0; i < count; i++) parts.push(`<circle cx="${fixed(places[3 * i])}" cy="${fixed(places[3 * i + 1])}" r="${fixed(places[3 * i + 2])}" ${paint('fill', colours[i])}/>`);
    },
    end() {},
    text: () => `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${parts.join('\n')}</svg>\n`,
  };
}
