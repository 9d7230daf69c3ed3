// Writes pictures of local pages: pictures.mjs FOLDER PAGE.html…, each as FOLDER/PAGE.webp, as long as the page is.
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const puppeteer = createRequire(new URL('../web/apps/e2e/package.json', import.meta.url))('puppeteer-core');
const [folder, ...pages] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath: process.env.LEEWAY_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const tab = await browser.newPage();
await tab.setViewport({ width: 1400, height: 900 });
for (const page of pages) {
  await tab.goto(pathToFileURL(resolve(page)).href);
  await tab.screenshot({ path: join(folder, `${basename(page, '.html')}.webp`), type: 'webp', quality: 70, fullPage: true });
}
await browser.close();
