// @ts-check
// Elements of the page: text is always text, never mark-up.

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, string | boolean>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, '');
    else if (value !== false) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

let names = 0;

/** A choice among several values: radio buttons in one strip.
 * @param {string} label @param {[string, string][]} choices value and text @param {string} chosen
 * @param {(value: string) => void} changed */
function segmented(label, choices, chosen, changed) {
  const name = `choice${++names}`;
  const field = element('div', { class: 'segmented', role: 'radiogroup', 'aria-label': label }, element('b', { 'aria-hidden': 'true' }, label));
  for (const [value, text] of choices) {
    const input = element('input', { type: 'radio', name, value, checked: value === chosen });
    input.addEventListener('change', () => changed(value));
    field.append(element('label', {}, input, element('span', {}, text)));
  }
  const choose = (/** @type {string} */ value) => {
    for (const input of field.querySelectorAll('input')) input.checked = input.value === value;
    changed(value);
  };
  return { field, choose };
}

/** @param {string} text @param {boolean} pressed @param {(pressed: boolean) => void} changed */
function toggle(text, pressed, changed) {
  const button = element('button', { type: 'button', class: 'toggle', 'aria-pressed': String(pressed) }, text);
  button.addEventListener('click', () => {
    const now = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', String(now));
    changed(now);
  });
  return button;
}

/** @param {string} text @param {() => void} clicked @param {string} [label] */
function button(text, clicked, label) {
  const made = element('button', { type: 'button', ...(label ? { 'aria-label': label, title: label } : {}) }, text);
  made.addEventListener('click', clicked);
  return made;
}

/** @param {string} label @param {number} low @param {number} high @param {number} value @param {number} step
 * @param {(value: number) => string} shown @param {(value: number) => void} changed */
function slider(label, low, high, value, step, shown, changed) {
  const input = element('input', { type: 'range', min: String(low), max: String(high), step: String(step), value: String(value) });
  const output = element('output', {}, shown(value));
  input.addEventListener('input', () => {
    output.textContent = shown(Number(input.value));
    changed(Number(input.value));
  });
  const set = (/** @type {number} */ to) => {
    input.value = String(to);
    output.textContent = shown(to);
  };
  return { field: element('label', { class: 'slider' }, element('span', {}, label), input, output), input, set };
}

/** A word of a legend with its colour. @param {string} text @param {number} colour */
function swatched(text, colour) {
  const swatch = element('span', { class: 'swatch' });
  swatch.style.background = css(colour);
  return element('span', {}, swatch, text);
}

/** A list of names with values. */
function values() {
  const list = element('dl', { class: 'values' });
  return {
    list,
    /** @param {[string, string][]} rows */
    show(rows) {
      list.replaceChildren(...rows.flatMap(([what, value]) => [element('dt', {}, what), element('dd', {}, value)]));
    },
  };
}

/** Offers a file for download. @param {string} name @param {Blob | string} content text is CSV */
function save(name, content) {
  const url = URL.createObjectURL(typeof content === 'string' ? new Blob([content], { type: 'text/csv' }) : content);
  element('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** A function that runs `work` before the next frame, once for any number of calls. @param {() => void} work */
function oncePerFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}
