/**
 * The pictures of docs/demo: `./run pictures FOLDER [NAME ...]` starts `leeway up` and Chromium and looks at the page alone, with four and eight
 * viewers, at a phone's width, in the dark, and while the tracker is away.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import puppeteer from 'puppeteer-core';

const folder = resolve(process.argv[2]);
const only = process.argv.slice(3);
const dir = mkdtempSync(join(tmpdir(), 'leeway-pictures-'));
const page = 'http://127.0.0.1:8080';
const up = spawn(resolve('../../../build/leeway'), ['up', '--listen=127.0.0.1:8080', `--data-dir=${dir}/data`], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
await new Promise((done) => up.stdout.on('data', (text) => `${text}`.includes('page ') && done()));

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  userDataDir: `${dir}/profile`,
  defaultViewport: null,
  args: ['--no-sandbox', '--mute-audio', '--disable-gpu', '--autoplay-policy=no-user-gesture-required'],
});
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const cdp = await browser.target().createCDPSession();

async function viewer(number, { width = 1280, height = 800, query = '', dark = false } = {}) {
  const { targetId } = await cdp.send('Target.createTarget', { url: 'about:blank', newWindow: true, width, height });
  const target = await browser.waitForTarget((t) => t._targetId === targetId);
  const tab = await target.page();
  await tab.setViewport({ width, height });
  await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]);
  tab.on('pageerror', (error) => console.error('page', number, String(error)));
  await tab.goto(`${page}/?viewer=${number}${query}`);
  return tab;
}

async function picture(tab, name) {
  await tab.bringToFront();
  await pause(700);
  writeFileSync(join(folder, `${name}.webp`), await tab.screenshot({ type: 'webp', quality: 82 }));
  console.log(name, await tab.$eval('#sentence', (e) => e.textContent));
}

const want = (name) => only.length === 0 || only.includes(name);
try {
  const first = await viewer(1, { query: '&level=1' });
  await pause(24_000); // the film begins anew, in black, every 30 s
  if (want('alone')) await picture(first, 'alone');
  const tabs = [first];
  const add = async (n, options) => {
    while (tabs.length < n) {
      tabs.push(await viewer(tabs.length + 1, { query: '&level=1', ...options }));
      await pause(6000);
    }
  };
  await add(4);
  await pause(25_000);
  if (want('four')) await picture(tabs[1], 'four');
  if (want('dark')) {
    await tabs[2].emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
    await picture(tabs[2], 'dark');
  }
  if (want('tracker-dead')) {
    await tabs[1].bringToFront();
    await tabs[1].click('[data-service="tracker"]');
    await pause(12_000);
    await picture(tabs[1], 'tracker-dead');
    await pause(12_000);
    await picture(tabs[1], 'tracker-back');
  }
  if (want('phone')) {
    await tabs[3].setViewport({ width: 390, height: 844 });
    await tabs[3].evaluate(() => window.scrollTo(0, 0));
    await picture(tabs[3], 'phone');
    writeFileSync(
      join(folder, 'phone-full.webp'),
      await tabs[3].screenshot({ type: 'webp', quality: 82, fullPage: true }),
    );
    await tabs[3].setViewport({ width: 683, height: 500 });
    await picture(tabs[3], 'small');
  }
  if (want('eight')) {
    await add(8);
    await pause(20_000);
    await picture(tabs[1], 'eight');
  }
} finally {
  await browser.close();
  up.kill('SIGTERM');
  await new Promise((done) => up.on('exit', done));
  rmSync(dir, { recursive: true, force: true });
}
