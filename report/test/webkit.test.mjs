// Every kind of page in WebKit, the engine of Safari: it opens without errors, fits, shows its pictures, and follows keys and the cursor.
//
// Playwright has no driver for a WebKit of the system, so this speaks WebDriver. WEBKIT names the driver, in Debian
// /usr/bin/WebKitWebDriver (package webkit2gtk-driver), which starts MiniBrowser; it needs a screen, such as that of xvfb-run.
// TIEPOINT names the command.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';

const TIEPOINT = resolve(process.env.TIEPOINT ?? '../../target/debug/tiepoint');
const { WEBKIT } = process.env;
const skip = !WEBKIT && 'WEBKIT names no driver';
const PORT = 4_000 + (process.pid % 1_000);
const folder = mkdtempSync(join(tmpdir(), 'tiepoint-webkit-'));
const at = (name) => join(folder, name);
let driver;
let session;

async function call(method, path, body) {
  const answer = await fetch(`http://127.0.0.1:${PORT}${path}`, { method, body: body && JSON.stringify(body), headers: { 'content-type': 'application/json' } });
  const { value } = await answer.json();
  assert.ok(answer.ok, `${method} ${path}: ${JSON.stringify(value)}`);
  return value;
}
const run = (script, ...args) => call('POST', `${session}/execute/async`, { script: `const done = arguments[arguments.length - 1]; (async (...args) => { ${script} })(...arguments).then(done, (error) => done({ failed: String(error) }));`, args });

const PAGES = {
  match: ['match', 'bookshelf-left.jpg', 'bookshelf-right.jpg', '--model', 'fundamental'],
  register: ['register', 'coffee.jpg', 'coffee-turned.png'],
  affine: ['register', 'coffee.jpg', 'coffee-turned.png', '--model', 'affine'],
  rectify: ['rectify', 'bookshelf-left.jpg', 'bookshelf-right.jpg', '--output-left', at('l.png'), '--output-right', at('r.png')],
  stereo: ['stereo', 'stereo-left.png', 'stereo-right.png', '--disparities', '64'],
  detect: ['detect', 'coffee.jpg'],
  collect: ['collect', 'bookshelf-left.jpg', 'coffee.jpg', 'coffee-turned.png', '--longest-side', '300', '--output', at('pairs.db')],
};

before(async () => {
  if (skip) return;
  const tiepoint = (...line) => {
    const { status, stderr } = spawnSync(TIEPOINT, [...line, '--quiet'], { encoding: 'utf8', cwd: folder });
    assert.equal(status, 0, `${line.join(' ')}: ${stderr}`);
  };
  tiepoint('demo', folder);
  for (const [name, line] of Object.entries(PAGES)) tiepoint(...line, '--report', at(`${name}.html`));
  tiepoint('report', '--compare', at('register.html'), at('affine.html'), '--output', at('compared.html'));
  driver = spawn(WEBKIT, [`--port=${PORT}`], { stdio: 'ignore' });
  for (let i = 0; i < 50 && !session; i++) {
    await new Promise((done) => setTimeout(done, 200));
    const opened = await call('POST', '/session', { capabilities: {} }).catch((error) => (i === 49 ? Promise.reject(error) : null));
    session = opened && `/session/${opened.sessionId}`;
  }
  await call('POST', `${session}/timeouts`, { script: 60_000, pageLoad: 60_000 });
  await call('POST', `${session}/window/rect`, { width: 1280, height: 1000 });
});
after(async () => {
  if (session) await call('DELETE', session);
  driver?.kill();
  rmSync(folder, { recursive: true, force: true });
});

for (const name of [...Object.keys(PAGES), 'index', 'compared']) {
  test(`${name}.html in WebKit`, { skip }, async () => {
    await call('POST', `${session}/url`, { url: `${pathToFileURL(at(`${name}.html`)).href}#2d` });
    const told = await run(`
      const errors = [];
      addEventListener('error', (event) => errors.push(event.message));
      for (const view of document.querySelectorAll('.view')) {
        view.scrollIntoView();
        while (!view.dataset.ready) await new Promise((next) => setTimeout(next, 50));
      }
      scrollTo(0, 0);
      const colours = (canvas) => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return new Set(Array.from({ length: 2000 }, (_, i) => 4 * Math.floor((i * data.length) / 8000)).map((i) => data.slice(i, i + 3).join())).size;
      };
      // A view is drawn a moment after it is ready; within five seconds on a busy machine.
      const counts = () => [...document.querySelectorAll('.stage:not(.cloud) canvas')].map(colours);
      for (let i = 0; i < 50 && counts().some((count) => count <= 50); i++) await new Promise((next) => setTimeout(next, 100));
      const middle = (of) => of.getBoundingClientRect().top + of.getBoundingClientRect().height / 2;
      return {
        errors, ready: [...document.querySelectorAll('.view')].map((view) => view.dataset.ready),
        wide: document.scrollingElement.scrollWidth - innerWidth,
        colours: counts(),
        above: [...document.querySelectorAll('.segmented')].filter((of) => Math.abs(middle(of.querySelector('b')) - middle(of.querySelector('label'))) > 3).length,
      };`);
    assert.deepEqual(told.errors, [], JSON.stringify(told));
    assert.ok(told.ready.length > 0 && told.ready.every((ready) => ready === 'true'), JSON.stringify(told));
    assert.ok(told.wide <= 0, `${told.wide} px too wide`);
    assert.ok(told.colours.length > 0 && told.colours.every((count) => count > 50), `a picture is blank: ${told.colours} colours`);
    assert.equal(told.above, 0, 'a choice stands below its name');
  });
}

const key = (code) => call('POST', `${session}/actions`, { actions: [{ type: 'key', id: 'keys', actions: [{ type: 'keyDown', value: code }, { type: 'keyUp', value: code }] }] });
const ARROW_RIGHT = '\ue014';

test('keys walk and the cursor reads in WebKit', { skip }, async () => {
  await call('POST', `${session}/url`, { url: pathToFileURL(at('match.html')).href });
  const status = () => run(`
    while (document.querySelector('.view')?.dataset.ready !== 'true') await new Promise((next) => setTimeout(next, 50));
    document.querySelector('.stage').focus();
    return document.querySelector('.status').innerText;`);
  assert.match(await status(), /^Example/);
  await key(ARROW_RIGHT);
  assert.match(await status(), /^1st worst of/);
  await key(ARROW_RIGHT);
  assert.match(await status(), /^2nd worst of/);

  await call('POST', `${session}/url`, { url: pathToFileURL(at('stereo.html')).href });
  await run(`while (document.querySelector('.view')?.dataset.ready !== 'true') await new Promise((next) => setTimeout(next, 50));`);
  const [x, y] = await run(`const box = document.querySelector('.stage').getBoundingClientRect(); return [box.x + box.width / 4, box.y + box.height / 2].map(Math.round);`);
  await call('POST', `${session}/actions`, { actions: [{ type: 'pointer', id: 'mouse', actions: [{ type: 'pointerMove', x, y, duration: 0 }] }] });
  assert.match(await run(`await new Promise((next) => setTimeout(next, 200)); return document.querySelector('.panel .values').innerText;`), /Disparity/);
});
