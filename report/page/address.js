// @ts-check
// The state of a page in its address: a link or a bookmark opens it as it was left.
//
// After # stand `gl` or `2d`, which choose the painter, and name=value of every control that was changed, in words of the
// page; those of further views begin with the number of the view and a dot.

const ADDRESS = (() => {
  const parts = location.hash.slice(1).split('&').filter(Boolean);
  const decoded = (/** @type {string} */ text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  return {
    painter: parts.find((part) => part === 'gl' || part === '2d') ?? '',
    /** @type {Map<string, string>} */
    state: new Map(parts.filter((part) => part.includes('=')).map((part) => /** @type {[string, string]} */ ([part.slice(0, part.indexOf('=')), decoded(part.slice(part.indexOf('=') + 1))]))),
  };
})();

/** @param {string | null | undefined} text */
function slug(text) {
  return (text ?? '').toLowerCase().replaceAll(/[^a-z]+/g, '-').replaceAll(/^-|-$/g, '');
}

/** The controls under an element, by the words that name them. @param {HTMLElement} root */
function controlsIn(root) {
  /** @type {Map<string, { get: () => string, set: (value: string) => void }>} */
  const found = new Map();
  const labelOf = (/** @type {Element} */ of) => of.getAttribute('aria-label') ?? of.closest('label')?.querySelector('span')?.textContent;
  for (const field of root.querySelectorAll('.segmented')) {
    const inputs = [...field.querySelectorAll('input')];
    found.set(slug(field.getAttribute('aria-label')), {
      get: () => inputs.find((input) => input.checked)?.value ?? '',
      set: (value) => inputs.find((input) => input.value === value)?.click(),
    });
  }
  for (const input of /** @type {NodeListOf<HTMLInputElement | HTMLSelectElement>} */ (root.querySelectorAll('input[type=range], select'))) {
    found.set(slug(labelOf(input)), {
      get: () => input.value,
      set: (value) => {
        input.value = value;
        input.dispatchEvent(new Event(input instanceof HTMLSelectElement ? 'change' : 'input', { bubbles: true }));
      },
    });
  }
  for (const toggle of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll('.toggle'))) {
    const get = () => (toggle.getAttribute('aria-pressed') === 'true' ? 'on' : 'off');
    found.set(slug(toggle.getAttribute('aria-label') ?? toggle.textContent), { get, set: (value) => value !== get() && toggle.click() });
  }
  return found;
}

/** What a view keeps beside its controls: names and values, empty where nothing was chosen.
 * @typedef {{ root: HTMLElement, stage: Stage, state?: () => Record<string, string>, restore?: (state: Map<string, string>) => void }} Kept */

/** The planes that were moved. @param {Stage} stage */
function planesOf(stage) {
  return stage.panes.flatMap((pane, i) => (pane.fitted ? [] : [`${i},${[...pane.middle, pane.zoom, pane.turn].map((v) => Number(v.toPrecision(9))).join(',')}`])).join(';');
}

/** Restores a view from the address, and writes its changes there. @param {Kept} view @param {number} number */
function keepInAddress(view, number) {
  const prefix = number ? `${number}.` : '';
  const controls = controlsIn(view.root);
  const usual = new Map([...controls].map(([name, control]) => [name, control.get()]));
  const own = new Map([...ADDRESS.state].flatMap(([name, value]) => (name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [])));
  for (const [name, control] of controls) {
    const value = own.get(name);
    if (value !== undefined) control.set(value);
  }
  view.restore?.(own);
  const planes = own.get('planes');
  if (planes) {
    // The stage gets its size when it is part of the page.
    requestAnimationFrame(() => {
      for (const plane of planes.split(';')) {
        const [i, x, y, zoom, turn] = plane.split(',').map(Number);
        if ([x, y, zoom, turn].every(Number.isFinite)) view.stage.panes[i]?.look([x, y], zoom, turn);
      }
      view.stage.draw();
    });
  }
  let waiting = 0;
  const write = () => {
    const now = { ...Object.fromEntries([...controls].flatMap(([name, control]) => (control.get() === usual.get(name) ? [] : [[name, control.get()]]))), ...view.state?.(), planes: planesOf(view.stage) };
    for (const name of [...ADDRESS.state.keys()]) if (name.startsWith(prefix) && (prefix || !/^\d+\./.test(name))) ADDRESS.state.delete(name);
    for (const [name, value] of Object.entries(now)) if (value !== '') ADDRESS.state.set(prefix + name, value);
    const parts = [...(ADDRESS.painter ? [ADDRESS.painter] : []), ...[...ADDRESS.state].map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll('%2C', ',').replaceAll('%3B', ';')}`)];
    history.replaceState(null, '', `#${parts.join('&')}`);
  };
  for (const event of ['change', 'click', 'pointerup', 'keyup', 'wheel', 'dblclick']) {
    view.root.addEventListener(event, () => {
      clearTimeout(waiting);
      waiting = window.setTimeout(write, 250);
    }, { passive: true });
  }
}
