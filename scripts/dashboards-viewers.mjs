// Viewers of the small cluster whose players report to its trackers by CMCD: dashboards-viewers.mjs ADDRESS PORT TRACKERS MANIFEST
// serves a page with hls.js at ADDRESS:PORT and opens it in four windows of Chromium, until it is ended. The first two have Leeway and
// report to one tracker each. The third has not, and its segments fail for ten seconds now and then: its player stalls and says
// so. The fourth is of another origin, at the next port, which no site lists: its reports are refused.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const e2e = createRequire(new URL('../web/apps/e2e/package.json', import.meta.url));
const puppeteer = e2e('puppeteer-core');
const hlsScript = readFileSync(e2e.resolve('hls.js/dist/hls.min.js'));
const [address, port, trackers, manifest] = process.argv.slice(2);
const bases = trackers.split(',');
/** Seconds of film that a player holds: fewer than its segments fail. */
const buffer = 6;

/** Runs in the page: a player as docs/embedding.md has it for reports. */
function play({ manifest, report, buffer }) {
  const video = document.querySelector('video');
  const hls = new window.Hls({
    maxBufferLength: buffer,
    maxMaxBufferLength: buffer,
    cmcd: {
      version: 2,
      includeKeys: [],
      eventTargets: [
        { url: report, events: ['ps', 'e'], includeKeys: ['sta'] },
        { url: report, events: ['rr'], includeKeys: ['rc'], batchSize: 4 },
      ],
    },
  });
  hls.loadSource(manifest);
  hls.attachMedia(video);
  video.play().catch(() => {});
}

function page(query) {
  const tracker = bases[Number(query.get('tracker'))];
  const film = query.has('plain') ? new URL(manifest).pathname : manifest;
  const tag = `<script async src="${tracker}/leeway.js" data-tracker="${tracker.replace(/^http/, 'ws')}/"></script>`;
  return `<!doctype html><meta charset="utf-8"><video muted loop playsinline></video><script src="/hls.js"></script>${query.has('plain') ? '' : tag}
<script>(${play})(${JSON.stringify({ manifest: film, report: `${tracker}/cmcd`, buffer })})</script>`;
}

/** Pages without Leeway get the film from here: its segments fail while `away`. */
let away = false;
async function pass(path, response) {
  if (away && path.endsWith('.m4s')) return response.destroy();
  const answered = await fetch(new URL(path, manifest));
  response.writeHead(answered.status).end(Buffer.from(await answered.arrayBuffer()));
}

function answer(request, response) {
  const url = new URL(request.url, 'http://any');
  if (url.pathname === '/') response.setHeader('Content-Type', 'text/html').end(page(url.searchParams));
  else if (url.pathname === '/hls.js') response.setHeader('Content-Type', 'text/javascript').end(hlsScript);
  else pass(url.pathname, response).catch(() => response.destroy());
}

const servers = [Number(port), Number(port) + 1].map((at) => createServer(answer).listen(at, address));
const browser = await puppeteer.launch({
  executablePath: process.env.LEEWAY_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--mute-audio', '--disable-gpu', '--autoplay-policy=no-user-gesture-required'],
});
const control = await browser.target().createCDPSession();

/** A window of its own, because hidden tabs pause. */
async function open(url) {
  const { targetId } = await control.send('Target.createTarget', { url: 'about:blank', newWindow: true });
  const tab = await (await browser.waitForTarget((t) => t._targetId === targetId)).page();
  tab.on('pageerror', (error) => console.error(`dashboards-viewers: ${url}: ${error}`));
  await tab.goto(url);
  return tab;
}

async function end() {
  clearInterval(outages);
  await browser.close().catch(() => {});
  for (const server of servers) server.close();
  process.exit(0);
}
let outages;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, end);

await open(`http://${address}:${port}/?tracker=0`);
await open(`http://${address}:${port}/?tracker=${bases.length - 1}`);
await open(`http://${address}:${port}/?tracker=0&plain`);
await open(`http://${address}:${Number(port) + 1}/?tracker=0&plain`);
outages = setInterval(() => {
  away = true;
  setTimeout(() => {
    away = false;
  }, 10_000);
}, 35_000);
