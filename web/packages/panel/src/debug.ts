/** A panel for developers: links, lanes, what the schedule decided and why, as it happens. */

import type { Leeway, TitleSnapshot } from '@leeway/core';
import { element, mount } from './element.ts';
import { readRecording, showRecording } from './recording.ts';
import { common } from './style.ts';
import { bytes, rate, sum, tail } from './text.ts';

const style = `${common}
.root.panel {
  display: flex; flex-direction: column; width: min(560px, 100vw); max-height: min(720px, 100vh); border: 1px solid var(--line);
  background: var(--ground); box-shadow: 0 0 24px #0005; font-size: 12px; font-variant-numeric: tabular-nums;
}
header { display: flex; gap: 8px; align-items: center; padding: 8px 12px; border-bottom: 1px solid var(--line); }
header h2 { flex: 1; }
header button { min-height: 28px; padding: 2px 10px; border: 1px solid var(--line); border-radius: 6px; background: var(--soft); }
main { overflow: auto; padding: 4px 12px 12px; }
h3 { margin: 12px 0 4px; font-size: 12px; color: var(--quiet); font-weight: 600; }
p { margin: 4px 0; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); }
.warn { color: var(--warn); }
.scroll { overflow-x: auto; }
table, main > input { width: 100%; border-collapse: collapse; }
th { font-weight: 400; color: var(--quiet); }
th, td { padding: 2px 8px 2px 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td:first-child { font-family: ui-monospace, monospace; }
tr + tr td { border-top: 1px solid var(--line); }
@media (max-width: 600px) { .panel { max-height: 70vh; border-width: 1px 0 0; } }
@media (pointer: coarse) { header button { min-height: 40px; } }
`;

const mostRows = 40;
const everyMs = 1000;

interface Row {
  manifest: string;
  cells: string[];
}

/** Shows the panel. Returns what takes it away again. */
export function showDebug(leeway: Leeway): () => void {
  /** Newest first. */
  const segments: Row[] = [];
  const happened: string[][] = [];
  const keep = <T>(list: T[], one: T) => {
    list.unshift(one);
    list.length = Math.min(list.length, mostRows);
  };
  const began = leeway.clock.now();
  const seconds = () => `${((leeway.clock.now() - began) / 1000).toFixed(1)} s`;
  const event = (...what: string[]) => keep(happened, [seconds(), ...what]);
  const releases = [
    leeway.on('segment', ({ manifest, url, result, tookMs }) => {
      const { origin, seed, peer } = result.bytes;
      const parts = [origin, seed, peer].map((n) => (n ? bytes(n) : '–'));
      keep(segments, { manifest, cells: [tail(url), ...parts, result.reason ?? '', `${Math.round(tookMs)} ms`] });
    }),
    leeway.on('link', ({ peer, role, path }) => event('link', `${role} ${peer.slice(0, 8)}, ${path}`)),
    leeway.on('unlink', ({ peer, role, reason, banned }) =>
      event('unlink', `${role} ${peer.slice(0, 8)}: ${reason}${banned ? ', banned' : ''}`),
    ),
    leeway.on('off', ({ reason }) => event(reason ? 'off' : 'on', reason ?? '')),
    leeway.on('notice', ({ code, message }) => event(code, message)),
    leeway.on('contradiction', ({ url }) => event('contradiction', tail(url))),
    leeway.on('state', ({ state }) => (state === 'stopped' ? remove() : event('state', state))),
  ];

  const body = element('main');
  const copy = element('button', { type: 'button', onclick: () => void copied() }, 'Copy as JSON');
  const copied = async () => {
    const text = JSON.stringify({ stats: leeway.stats(), segments, happened }, null, 2);
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = 'Copied';
    } catch {
      copy.textContent = 'Not allowed';
    }
  };
  /** A file with what a schedule decided, in place of what happens here. */
  let replays = false;
  const file = element('input', { type: 'file', hidden: true, onchange: () => void replay() });
  const open = element('button', { type: 'button', onclick: () => (replays ? live() : file.click()) }, 'Recording');
  const replay = async () => {
    try {
      showRecording(body, readRecording(await file.files![0]!.text()), table);
      replays = true;
      open.textContent = 'Live';
    } catch {
      open.textContent = 'No recording';
    }
    file.value = '';
  };
  const live = () => {
    replays = false;
    open.textContent = 'Recording';
    leeway.clock.clearTimer(timer);
    draw();
  };
  const panel = element(
    'section',
    { className: 'root panel', 'aria-label': 'Leeway, debug' },
    element(
      'header',
      {},
      element('h2', {}, 'Leeway'),
      file,
      open,
      copy,
      element('button', { type: 'button', 'aria-label': 'Close', onclick: () => remove() }, '✕'),
    ),
    body,
  );

  let timer = 0;
  const draw = () => {
    timer = leeway.clock.setTimer(draw, everyMs);
    if (replays) return;
    const { version, state, self, notice, titles } = leeway.stats();
    const top = body.scrollTop;
    body.replaceChildren(
      element('p', {}, `${version}, ${state}${self ? `, peer ${self.slice(0, 8)}` : ''}`),
      ...(notice ? [element('p', { className: 'warn' }, `${notice.code}: ${notice.message} ${notice.hint}`)] : []),
      ...titles.flatMap((title) => ofTitle(title, segments)),
      ...table('Events', ['at', 'what', ''], happened),
    );
    body.scrollTop = top;
  };
  const host = mount('debug', style, panel);
  host.style.right = host.style.bottom = '0';
  const remove = () => {
    for (const release of releases) release();
    leeway.clock.clearTimer(timer);
    host.remove();
  };
  draw();
  // As it may have been while the panel's script was on its way: then no event says so.
  if (leeway.state === 'stopped') remove();
  return remove;
}

function table(name: string, head: string[], rows: string[][]): Node[] {
  const cells = (tag: 'th' | 'td', texts: string[]) =>
    element('tr', {}, ...texts.map((text) => element(tag, tag === 'th' ? { scope: 'col' } : {}, text)));
  return [
    element('h3', {}, name),
    rows.length
      ? element(
          'div',
          { className: 'scroll' },
          element('table', {}, cells('th', head), ...rows.map((row) => cells('td', row))),
        )
      : element('p', { className: 'quiet' }, 'None yet.'),
  ];
}

const list = (figures: Record<string, number | undefined>) =>
  Object.entries(figures)
    .filter(([, n]) => n)
    .map(([name, n]) => `${name} ${n}`)
    .join(', ') || 'none';

function ofTitle(
  { manifest, title, viewers, seeds, links, linkFailures, off, totals, engine }: TitleSnapshot,
  all: Row[],
): Node[] {
  const { bytes: by, uploaded } = totals;
  const peers = engine?.peers ?? [];
  return [
    element('h3', {}, title ?? tail(manifest)),
    element('p', {}, `Viewers ${viewers}, seeds ${seeds}, links ${links.open} open and ${links.opening} opening`),
    ...(off ? [element('p', { className: 'warn' }, `Off: ${off}`)] : []),
    element(
      'p',
      {},
      `Origin ${bytes(by.origin)}, seeds ${bytes(by.seed + by.seed_relay)}, viewers ${bytes(by.peer + by.peer_relay)}; given ${bytes(sum(Object.values(uploaded)))}`,
    ),
    element('p', {}, `Reasons: ${list(totals.reasons)}. Links that failed: ${list(linkFailures)}.`),
    element(
      'p',
      {},
      `Background lane: ${bytes(totals.prefetched_bytes)} ahead, ${bytes(totals.prefetch_wasted_bytes)} not played, ${totals.promotions} promoted. Line ${engine?.capacity ? `${(engine.capacity / 1e6).toFixed(1)} Mbit/s` : 'unknown'}, cache ${bytes(engine?.cacheBytes ?? 0)}.`,
    ),
    ...table(
      'Links',
      ['peer', 'role', 'path', 'rtt', 'rate', 'asked', 'got', 'given'],
      peers.map((p) => [
        p.peer.slice(0, 8),
        p.role,
        p.path,
        `${Math.round(p.rttMs)} ms`,
        rate(p.rate),
        `${p.downloads} / ${p.uploads}`,
        bytes(p.downloaded),
        bytes(p.uploaded),
      ]),
    ),
    ...table(
      'Segments',
      ['segment', 'origin', 'seeds', 'viewers', 'reason', 'took'],
      all.filter((row) => row.manifest === manifest).map(({ cells }) => cells),
    ),
  ];
}
