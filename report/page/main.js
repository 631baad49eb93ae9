// @ts-check
// Replaces still pictures by interactive views.

/** @param {ViewData} data */
function viewOf(data) {
  switch (data.view) {
    case 'features':
      return featuresView(data);
    case 'matches':
      return matchesView(data);
    case 'registration':
      return registrationView(data);
    case 'disparity':
      return disparityView(data);
    case 'collection':
      return collectionView(data);
  }
}

/** @param {ViewData} data @param {number} i */
async function open(data, i) {
  const figure = /** @type {HTMLElement} */ (document.getElementById(`view${i}`));
  const still = figure.querySelector('.still');
  try {
    const view = await viewOf(data);
    still?.replaceWith(view.root);
    figure.querySelector('.still-figures')?.remove();
    keepInAddress(view, i);
    figure.dataset.ready = 'true';
    // A browser may lose drawings made before the page has its layout.
    requestAnimationFrame(() => figure.querySelectorAll('.stage').forEach((stage) => stage.dispatchEvent(new Event('repaint'))));
  } catch (error) {
    // The still picture stays.
    figure.append(element('p', { class: 'note', role: 'alert' }, `This view cannot be opened: ${error instanceof Error ? error.message : error}`));
    figure.dataset.ready = 'failed';
  }
}

/** Opens the views one after the other: the first at once, the others when the reader scrolls near. */
async function openAll() {
  const waiting = PAGE.views.map((data, i) => ({ data, i, figure: /** @type {HTMLElement} */ (document.getElementById(`view${i}`)) }));
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const found = entry.isIntersecting ? waiting.find((view) => view.figure === entry.target) : undefined;
      if (!found) continue;
      near.unobserve(entry.target);
      void open(found.data, found.i);
    }
  }, { rootMargin: '600px' });
  for (const view of waiting) near.observe(view.figure);
}

// The page's own changes of the address do not raise this event; a change by the reader reloads the page.
addEventListener('hashchange', () => location.reload());
document.documentElement.classList.add('lively');
// Each option becomes an element of its own, so that no line breaks within its name.
for (const command of document.querySelectorAll('.command')) {
  const parts = (command.textContent ?? '').split(/(?<=\s)(-\S+)/);
  command.replaceChildren(...parts.map((part, i) => (i % 2 ? element('span', {}, part) : part)));
}
void openAll();
