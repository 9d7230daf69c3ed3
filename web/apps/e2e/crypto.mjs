/**
 * What it costs a page to verify a part: `node crypto.mjs` in web/apps/e2e, in the browsers that are installed. Prints µs each, the median of
 * nine rounds and their range. The page is about:blank of a loopback server, since WebCrypto needs a secure context.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';

/** Runs in the page. A part of 117 kB has eight pieces and a certificate of 430 bytes. */
async function measure() {
  const subtle = crypto.subtle;
  const random = (n) => crypto.getRandomValues(new Uint8Array(n));
  const certificate = random(430);
  const piece = random(16_384);
  const figures = {};
  const time = async (name, n, one) => {
    const rounds = [];
    for (let round = 0; round < 9; round++) {
      const start = performance.now();
      for (let i = 0; i < n; i++) await one();
      rounds.push(((performance.now() - start) * 1000) / n);
    }
    rounds.sort((a, b) => a - b);
    figures[name] = [rounds[4], rounds[0], rounds[8]].map((us) => Math.round(us));
  };
  const signs = async (name, algorithm, using) => {
    const keys = await subtle.generateKey(algorithm, false, ['sign', 'verify']).catch(() => undefined);
    if (!keys) return;
    const [own, other] = 'privateKey' in keys ? [keys.privateKey, keys.publicKey] : [keys, keys];
    const signature = await subtle.sign(using, own, certificate);
    await time(name, 200, () => subtle.verify(using, other, signature, certificate));
  };
  await signs('ECDSA P-256 verify', { name: 'ECDSA', namedCurve: 'P-256' }, { name: 'ECDSA', hash: 'SHA-256' });
  await signs('Ed25519 verify', { name: 'Ed25519' }, { name: 'Ed25519' });
  await signs('HMAC-SHA-256 verify', { name: 'HMAC', hash: 'SHA-256' }, { name: 'HMAC' });
  await time('SHA-256 of 64 bytes', 400, () => subtle.digest('SHA-256', certificate.subarray(0, 64)));
  await time('SHA-256 of a piece', 400, () => subtle.digest('SHA-256', piece));
  return figures;
}

const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<p>crypto</p>'));
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const browsers = {
  chrome: process.env.CHROMIUM ?? '/usr/bin/chromium',
  firefox: process.env.FIREFOX ?? '/usr/bin/firefox-esr',
};
for (const [browser, executablePath] of Object.entries(browsers)) {
  if (!existsSync(executablePath)) continue;
  const userDataDir = mkdtempSync(join(tmpdir(), 'leeway-crypto-'));
  const launched = await puppeteer.launch({
    browser,
    executablePath,
    userDataDir,
    headless: true,
    args: browser === 'chrome' ? ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] : [],
  });
  try {
    const page = await launched.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const figures = await page.evaluate(measure);
    console.log(await launched.version());
    for (const [name, [median, least, most]] of Object.entries(figures)) {
      console.log(`  ${name.padEnd(22)} ${median} µs (${least}–${most})`);
    }
  } finally {
    await launched.close();
    rmSync(userDataDir, { recursive: true, force: true, maxRetries: 3 });
  }
}
server.close();
