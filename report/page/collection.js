// @ts-check
// Many photographs that were matched pair by pair: the matrix of pairs, the graph, and the matches of one pair.

/** What the cursor is on: a pair, two photographs without a result (`pair` -1), one photograph, or a group.
 * @typedef {{ images: number[], pair: number }} Hit */

class CollectionView {
  /** @param {CollectionData} data @param {Record<string, Uint32Array>} c columns of pairs, the strongest first
   * @param {Uint16Array} ends @param {Uint8Array | null} tried @param {(string | null)[]} urls of thumbnails */
  constructor(data, c, ends, tried, urls) {
    this.data = data;
    this.c = c;
    this.ends = ends;
    this.tried = tried;
    this.urls = urls;
    this.count = data.images.length;
    this.pairs = c.a.length;
    /** Where the lines of each pair begin. */
    this.first = new Uint32Array(this.pairs + 1);
    for (let p = 0; p < this.pairs; p++) this.first[p + 1] = this.first[p] + c.lines[p];
    /** @type {Map<number, number>} */
    this.at = new Map();
    for (let p = 0; p < this.pairs; p++) this.at.set(this.keyOf(c.a[p], c.b[p]), p);
    this.partners = new Uint32Array(this.count);
    for (let p = 0; p < this.pairs; p++) {
      this.partners[c.a[p]]++;
      this.partners[c.b[p]]++;
    }
    this.table = colourTable('viridis', 0.15, 1);
    /** @type {Uint32Array} */
    this.colours = new Uint32Array(this.pairs);
    /** Whether the filters keep a pair. */
    this.kept = new Uint8Array(this.pairs).fill(1);
    /** The kept pairs that the arrow keys go through, the strongest first. @type {number[]} */
    this.order = [];
    /** The photograph whose pairs alone are in `order`; -1 for all. */
    this.focus = -1;
    this.selected = -1;
    /** What the cursor is on. @type {Hit | null} */
    this.hovered = null;
    this.matrix = new Matrix(this);
    this.network = new Network(this);
    /** @type {Matrix | Network} */
    this.map = this.matrix;
    this.colourBy = c.runs ? 'run' : 'inliers';
    this.sorted = 'names';
    this.hidden = new Set();
    /** Of two compared runs: which pairs are left out. */
    this.hiddenRuns = new Set();
    this.atlas = new Atlas(urls, () => this.stage.draw());
    this.tip = element('div', { class: 'tip', hidden: true });
    const keys = 'Left and right arrows walk through the pairs from the strongest, up and down through the photographs, Home and End are the strongest and the weakest, Escape chooses none, plus and minus enlarge, shift with arrows moves, 0 shows all.';
    this.stage = new Stage({
      label: `The pairs among ${counted(this.count)} photographs. ${keys}`,
      arrange: (w, h) => {
        const panes = this.map.arrange(w, h);
        if (this.graphNote) this.graphNote.textContent = this.map === this.network ? this.network.note() : '';
        return panes;
      },
      draw: (painter, moving) => {
        this.moving = moving;
        this.map.draw(painter, this.stage.canvas ? this.stage.canvas.width / Math.max(1, this.stage.host.clientWidth) : 1);
      },
      hover: (at) => this.hover(at),
      click: (at) => this.click(at),
      key: (event) => this.key(event),
    });
    this.stage.shape(1);
    this.stage.host.append(this.tip);
    this.pair = new PairStage(this, keys);
    this.root = this.build();
    this.filter();
    this.select(this.pairs ? 0 : -1);
  }

  /** @param {number} a @param {number} b */
  keyOf(a, b) {
    return Math.min(a, b) * this.count + Math.max(a, b);
  }

  /** @param {number} a @param {number} b */
  pairOf(a, b) {
    return this.at.get(this.keyOf(a, b)) ?? -1;
  }

  /** @param {number} a @param {number} b */
  wasTried(a, b) {
    const { images } = this.data;
    // Pairs of a photograph without features were not tried.
    if (images[a].problem || images[b].problem) return false;
    if (this.pairOf(a, b) >= 0 || !this.tried) return true;
    [a, b] = [Math.min(a, b), Math.max(a, b)];
    const place = (a * (2 * this.count - a - 1)) / 2 + (b - a - 1);
    // Division, not a shift: the index of a pair may exceed 32 bits.
    return ((this.tried[Math.floor(place / 8)] >> (place % 8)) & 1) === 1;
  }

  // ---- the page

  build() {
    const { data, c } = this;
    const redraw = () => {
      this.matrix.sheets.clear();
      this.legend();
      this.stage.draw();
    };
    const modes = segmented('Show', [['matrix', 'matrix'], ['graph', 'graph']], 'matrix', (mode) => {
      this.map = mode === 'matrix' ? this.matrix : this.network;
      sorted.field.hidden = mode !== 'matrix';
      edges.field.hidden = mode !== 'graph';
      this.matrix.label(mode === 'matrix', 1);
      this.hover(null);
      this.legend();
      this.stage.resize();
    });
    const colours = segmented('Colour by', [.../** @type {[string, string][]} */ (c.runs ? [['run', 'which run']] : []), ['inliers', 'inliers'], ['geometry', 'geometry']], this.colourBy, (by) => {
      this.colourBy = by;
      redraw();
    });
    const sorted = segmented('Order', [['names', 'as listed'], ['likeness', 'similar together']], this.sorted, (by) => {
      this.sorted = by;
      this.arrangeRows();
      this.stage.draw();
    });
    const edges = segmented('Edges', [['strongest', 'strongest'], ['all', 'all']], 'strongest', (which) => {
      this.network.all = which === 'all';
      this.stage.draw();
    });
    edges.field.hidden = true;
    this.bar = element('div', { class: 'colour-bar' });
    const tools = element('div', { class: 'tools' }, modes.field, sorted.field, edges.field, this.pairs ? colours.field : '',
      button('show all', () => this.stage.reset()), this.stage.saving('pairs'));
    this.graphNote = element('p', { class: 'hint' });
    const left = element('div', { class: 'map' }, this.stage.host, this.bar, this.graphNote);

    this.keptText = element('p', { class: 'kept', role: 'status' });
    this.groupsText = element('p', { class: 'groups' });
    this.joints = element('div', { class: 'joints', role: 'group', 'aria-label': 'Pairs that alone join groups' });
    const csv = button('Save these as CSV', () => save('pairs.csv', this.csv()));
    const head = element('div', { class: 'filters-head' }, this.keptText, this.groupsText, this.joints, this.chips(), this.pairs ? csv : '');
    this.histogram = this.pairs
      ? new Histogram('inliers of a pair', this.c.inliers, { logarithmic: true, decimals: 0, changed: () => this.filter() })
      : null;
    const filters = element('div', { class: 'filters', role: 'group', 'aria-label': 'Which pairs' }, head, this.histogram?.field ?? '', this.search());
    const notes = this.notes();
    return element('div', { class: 'view-body' }, tools, element('div', { class: 'split collection' }, left, this.pair.root), filters, this.problems(),
      notes ? element('p', { class: 'note' }, notes) : '',
      element('p', { class: 'hint' }, data.images.length > 1 ? 'Click a pair to see its matches, a photograph to see its pairs alone. ← and → walk from the strongest pair, ↑ and ↓ from photograph to photograph. Drag to move, turn the wheel to enlarge.' : 'One photograph has no pairs.'));
  }

  chips() {
    const { data, c } = this;
    const chips = data.configurations.map((name, k) => {
      let n = 0;
      for (const which of c.configuration) if (which === k) n++;
      const chip = toggle(`${name} ${counted(n)}`, true, (on) => {
        if (on) this.hidden.delete(k);
        else this.hidden.add(k);
        this.filter();
      });
      const swatch = element('span', { class: 'swatch', 'aria-hidden': 'true' });
      swatch.style.background = css(KINDS[k % KINDS.length]);
      chip.prepend(swatch);
      return chip;
    });
    const runs = c.runs ? RUNS.map(({ name }, run) => toggle(`${name} ${counted(c.runs.reduce((n, r) => n + (r === run ? 1 : 0), 0))}`, true, (on) => {
      if (on) this.hiddenRuns.delete(run);
      else this.hiddenRuns.add(run);
      this.filter();
    })) : [];
    return element('div', { class: 'chips', role: 'group', 'aria-label': 'Geometry' }, ...runs, ...chips);
  }

  search() {
    const input = element('input', { type: 'search', placeholder: 'part of a name', 'aria-label': 'Find a photograph', autocomplete: 'off', spellcheck: 'false' });
    this.found = element('div', { class: 'found', role: 'group', 'aria-label': 'Photographs found' });
    input.addEventListener('input', () => this.find(input.value));
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.found?.querySelector('button')?.click();
      if (event.key === 'Escape') {
        input.value = '';
        this.find('');
        this.setFocus(-1);
      }
    });
    this.chosen = element('p', { class: 'chosen', role: 'status' });
    return element('div', { class: 'search' }, element('label', {}, element('span', {}, 'Find a photograph '), input), this.found, this.chosen);
  }

  state() {
    return { pair: this.selected > 0 ? String(this.selected) : '', photograph: this.focus < 0 ? '' : String(this.focus) };
  }

  /** @param {Map<string, string>} state */
  restore(state) {
    const [pair, photograph] = ['pair', 'photograph'].map((name) => Number(state.get(name) ?? -1));
    if (photograph >= 0 && photograph < this.count) this.setFocus(photograph);
    if (pair >= 0 && this.kept[pair]) this.select(pair);
  }

  /** @param {string} part of a name */
  find(part) {
    const MOST = 8;
    const wanted = part.trim().toLowerCase();
    const hits = wanted ? this.data.images.flatMap((image, i) => (image.name.toLowerCase().includes(wanted) ? [i] : [])) : [];
    const shown = hits.slice(0, MOST).map((i) => this.photographButton(i));
    const more = hits.length > MOST ? `and ${counted(hits.length - MOST)} more` : wanted && !hits.length ? 'no such name' : '';
    this.found?.replaceChildren(...shown, more);
  }

  /** @param {number} i */
  photographButton(i) {
    const made = button(`${this.data.images[i].name} · ${counted(this.partners[i])}`, () => this.setFocus(i), `${this.data.images[i].name}, ${this.partners[i]} pairs`);
    made.classList.add('photograph');
    return made;
  }

  /** Photographs that could not be used or match no other. */
  problems() {
    const { data } = this;
    const bad = data.images.flatMap((image, i) => (image.problem ? [i] : []));
    const alone = data.images.flatMap((image, i) => (!image.problem && this.partners[i] === 0 ? [i] : []));
    if (bad.length + alone.length === 0) return '';
    const MOST = 200;
    const list = (/** @type {string} */ heading, /** @type {number[]} */ which, /** @type {(i: number) => string} */ why) => (which.length
      ? [element('h3', {}, `${heading}: ${counted(which.length)}`), element('ul', {}, ...which.slice(0, MOST).map((i) => element('li', {}, this.photographButton(i), why(i)))),
        which.length > MOST ? element('p', {}, `and ${counted(which.length - MOST)} more`) : '']
      : []);
    const counts = [bad.length ? `${counted(bad.length)} could not be used` : '', alone.length ? `${counted(alone.length)} ${alone.length === 1 ? 'matches' : 'match'} no other` : ''].filter(Boolean);
    return element('details', { class: 'problems' }, element('summary', {}, `Photographs with problems: ${counts.join(', ')}`),
      ...list('Could not be used', bad, (i) => ` ${data.images[i].problem}`),
      ...list('Match no other', alone, (i) => (this.attempts(i) ? ` tried with ${counted(this.attempts(i))}` : ' not tried with any')));
  }

  /** The number of photographs with which one was tried. @param {number} i */
  attempts(i) {
    let n = 0;
    for (let j = 0; j < this.count; j++) if (j !== i && this.wasTried(i, j)) n++;
    return n;
  }

  notes() {
    const { data, c } = this;
    const notes = [];
    const inliers = c.inliers.reduce((sum, n) => sum + n, 0);
    const there = this.ends.length / 4;
    if (there < inliers) notes.push(`${counted(there)} of ${counted(inliers)} inliers are in this file as lines, at most ${counted(c.lines.reduce((most, n) => Math.max(most, n), 0))} of a pair.`);
    const step = Math.max(1, ...data.images.map((image) => image.step ?? 1));
    const shown = data.images.filter((image) => image.id).length;
    if (shown < data.thumbnails_of) notes.push('The file has no room for thumbnails.');
    else if (step > 1) notes.push(`The thumbnails are reduced to 1/${step}.`);
    return notes.join(' ');
  }

  legend() {
    const { c, table } = this;
    let [low, high] = [Infinity, 1];
    for (let p = 0; p < this.pairs; p++) {
      if (this.kept[p]) [low, high] = [Math.min(low, c.inliers[p]), Math.max(high, c.inliers[p])];
    }
    low = Math.max(1, Math.min(low, high));
    this.logarithms = [Math.log(low), Math.max(Math.log(high), Math.log(low) + 1e-6)];
    const colour = (/** @type {number} */ p) => (this.colourBy === 'run' ? RUNS[c.runs[p]].colour : this.colourBy === 'inliers' ? colourAt(table, this.strength(p)) : KINDS[c.configuration[p] % KINDS.length]);
    this.colours = Uint32Array.from(c.inliers, (_, p) => colour(p));
    const strip = element('span', { class: 'strip' });
    strip.style.background = gradient(table);
    const scale = this.pairs && this.colourBy === 'run' ? RUNS.map(({ name, colour }) => swatched(name, colour)) : this.pairs && this.colourBy === 'inliers' ? [element('span', {}, counted(low)), strip, element('span', {}, `${counted(high)} inliers`)] : [];
    const untried = this.tried ? [swatched('not tried', NOT_TRIED)] : [];
    const states = this.map === this.matrix && this.count > 1 ? [swatched('no verified match', TRIED), ...untried] : [];
    this.bar?.replaceChildren(...scale, ...states);
  }

  /** The strength of a pair among those kept, from 0 to 1, on a logarithmic scale. @param {number} p */
  strength(p) {
    const [low, high] = this.logarithms ?? [0, 1];
    return clamp((Math.log(Math.max(1, this.c.inliers[p])) - low) / (high - low), 0, 1);
  }

  // ---- which pairs

  filter() {
    const { c, histogram, hidden } = this;
    for (let p = 0; p < this.pairs; p++) this.kept[p] = !hidden.has(c.configuration[p]) && !this.hiddenRuns.has(c.runs?.[p]) && (histogram?.keeps(c.inliers[p]) ?? true) ? 1 : 0;
    this.legend();
    this.arrangeRows();
    const together = parts(this.count, this.keptPairs()).filter((part) => part.length > 1);
    const alone = this.count - together.reduce((sum, part) => sum + part.length, 0);
    const sizes = together.slice(0, 6).map((part) => counted(part.length)).join(', ') + (together.length > 6 ? ', …' : '');
    if (this.groupsText) {
      this.groupsText.textContent = together.length === 0 ? 'No two photographs are connected' : `${together.length === 1 ? 'One connected group' : `${counted(together.length)} connected groups`} of ${sizes} photographs${alone ? `; ${counted(alone)} alone` : ''}`;
    }
    const left = [...this.keptPairs()];
    const numbered = Array.from(this.kept.keys()).filter((p) => this.kept[p]);
    const joints = bridges(this.count, left).map((k) => numbered[k]);
    const MOST = 6;
    this.joints?.replaceChildren(...(joints.length ? [joints.length === 1 ? 'This pair alone joins two groups:' : `These ${counted(joints.length)} pairs alone join groups:`] : []),
      ...joints.slice(0, MOST).map((p) => button(`${this.data.images[c.a[p]].name} – ${this.data.images[c.b[p]].name} · ${counted(c.inliers[p])}`, () => this.select(p))),
      joints.length > MOST ? `and ${counted(joints.length - MOST)} more` : '');
    this.reorder();
    // The layout of many photographs takes a moment, so it waits until the filters are no longer moved.
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => {
      this.network.renew();
      if (this.map === this.network) this.stage.resize();
    }, this.network.graph ? 200 : 0);
  }

  *keptPairs() {
    const { c, kept } = this;
    for (let p = 0; p < this.pairs; p++) if (kept[p]) yield /** @type {[number, number]} */ ([c.a[p], c.b[p]]);
  }

  /** The kept pairs as edges, the strongest first. */
  keptEdges() {
    const { c, kept } = this;
    /** @type {Edge[]} */
    const edges = [];
    const most = new Float64Array(this.count).fill(1);
    for (let p = 0; p < this.pairs; p++) {
      if (!kept[p]) continue;
      const [a, b] = [c.a[p], c.b[p]];
      // The strongest pair of a photograph comes first.
      const [strongest, n] = [[a, b].map((i) => (most[i] = Math.max(most[i], c.inliers[p]))), Math.max(1, c.inliers[p])];
      edges.push({ a, b, weight: this.strength(p), length: 0.15 + Math.log(Math.sqrt(strongest[0] * strongest[1]) / n), pair: p });
    }
    return edges;
  }

  /** Fills `order`: the kept pairs, of the photograph in focus if there is one. */
  reorder() {
    const { c, kept, focus } = this;
    this.order = [];
    let n = 0;
    for (let p = 0; p < this.pairs; p++) {
      n += kept[p];
      if (kept[p] && (focus < 0 || c.a[p] === focus || c.b[p] === focus)) this.order.push(p);
    }
    if (this.keptText) this.keptText.textContent = `${counted(n)} of ${counted(this.pairs)} pairs`;
    if (this.chosen) {
      const name = focus >= 0 ? this.data.images[focus].name : '';
      this.chosen.replaceChildren(...(focus < 0 ? [] : [`Only the ${counted(this.order.length)} pairs of ${name} `, button('all pairs', () => this.setFocus(-1))]));
    }
    if (this.selected >= 0 && !this.order.includes(this.selected)) this.select(-1);
    else this.pair.show(this.selected);
    this.stage.draw();
  }

  arrangeRows() {
    this.matrix.order(this.sorted === 'names' ? null : orderByLikeness(this.count, this.keptEdges()));
  }

  csv() {
    const { c, data } = this;
    const quoted = (/** @type {string} */ text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const rows = this.order.map((p) => [quoted(data.images[c.a[p]].name), quoted(data.images[c.b[p]].name), c.inliers[p], c.matches[p], quoted(data.configurations[c.configuration[p]])].join(','));
    return `a,b,inliers,matches,geometry\n${rows.join('\n')}${rows.length ? '\n' : ''}`;
  }

  // ---- one pair, one photograph

  /** @param {number} p */
  select(p) {
    this.selected = p;
    this.pair.show(p);
    this.stage.draw();
  }

  /** Shows the pairs of one photograph alone. @param {number} i */
  setFocus(i) {
    this.focus = i;
    this.reorder();
    if (i >= 0) this.select(this.order[0] ?? -1);
  }

  /** @param {number} by */
  walk(by) {
    const n = this.order.length;
    if (n === 0) return;
    const now = this.order.indexOf(this.selected);
    this.select(this.order[now < 0 ? (by > 0 ? 0 : n - 1) : clamp(now + by, 0, n - 1)]);
    this.follow();
  }

  /** Moves the focus to the photograph of a row above or below. @param {number} by */
  walkRows(by) {
    const { rows, row } = this.matrix;
    const from = this.focus >= 0 ? row[this.focus] : by > 0 ? -1 : this.count;
    this.setFocus(rows[clamp(from + by, 0, this.count - 1)]);
    this.follow();
  }

  /** Moves an enlarged plane to the chosen pair or photograph. */
  follow() {
    const { c, selected, focus } = this;
    const [a, b] = selected >= 0 ? [c.a[selected], c.b[selected]] : [focus, focus];
    if (a >= 0) this.map.follow(a, b);
    this.stage.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.shiftKey) return false;
    if (event.key === 'ArrowRight') this.walk(1);
    else if (event.key === 'ArrowLeft') this.walk(-1);
    else if (event.key === 'ArrowDown') this.walkRows(1);
    else if (event.key === 'ArrowUp') this.walkRows(-1);
    else if (event.key === 'Home') this.select(this.order[0] ?? -1);
    else if (event.key === 'End') this.select(this.order[this.order.length - 1] ?? -1);
    else if (event.key === 'Escape') {
      if (this.focus >= 0) this.setFocus(-1);
      else this.select(-1);
    } else return false;
    return true;
  }

  // ---- under the cursor

  /** @param {Point | null} at */
  hover(at) {
    const before = this.hovered;
    this.hovered = at ? this.map.at(at) : null;
    const { hovered, tip } = this;
    tip.hidden = !hovered;
    if (hovered && at) {
      tip.replaceChildren(...this.told(hovered).map((line) => element('div', {}, line)));
      const { clientWidth, clientHeight } = this.stage.host;
      const [w, h] = [tip.offsetWidth, tip.offsetHeight];
      tip.style.left = `${clamp(at[0] + 14, 4, clientWidth - w - 4)}px`;
      tip.style.top = `${at[1] + h + 20 < clientHeight ? at[1] + 14 : Math.max(4, at[1] - h - 10)}px`;
    }
    if (before !== hovered) this.stage.draw();
  }

  /** The text for a pair, a photograph or a group. @param {Hit} of */
  told({ images, pair }) {
    const { data, c } = this;
    const name = (/** @type {number} */ i) => data.images[i].name;
    const counts = (/** @type {number} */ p) => `${counted(c.inliers[p])} inliers of ${counted(c.matches[p])} matches, ${data.configurations[c.configuration[p]]}${c.before ? `; ${counted(c.before[p])} before` : ''}`;
    if (pair >= 0) return [name(c.a[pair]), name(c.b[pair]), counts(pair)];
    if (images.length === 2) return [...images.map(name), this.wasTried(images[0], images[1]) ? 'no verified match' : 'not tried'];
    if (images.length > 2) return [`${counted(images.length)} photographs that resemble each other`, `${name(images[0])} and others`];
    return [name(images[0]), data.images[images[0]].problem ?? `${counted(this.partners[images[0]])} pairs`];
  }

  /** @param {Point} at */
  click(at) {
    const on = this.map.at(at);
    if (!on) return;
    if (on.pair >= 0) {
      const { focus } = this;
      if (focus >= 0 && !on.images.includes(focus)) this.setFocus(-1);
      if (this.kept[on.pair]) this.select(on.pair);
    } else if (on.images.length === 1) this.setFocus(on.images[0] === this.focus ? -1 : on.images[0]);
    else if (on.images.length > 2) this.setFocus(on.images[0]);
  }
}

/** @param {CollectionData} data */
async function collectionView(data) {
  /** @type {Record<string, Uint32Array>} */
  const columns = {};
  for (const [name, block] of Object.entries(data.pairs)) columns[name] = await integers(block);
  // The thumbnails are in the still picture, which is removed when the view opens.
  const urls = data.images.map((image) => (image.id ? urlIn(image.id) : null));
  return new CollectionView(data, columns, await words(data.ends), data.tried ? await bytes(data.tried) : null, urls);
}
