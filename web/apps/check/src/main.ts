/** The page of the network check. */
import {
  CheckError,
  figureOf,
  NetworkCheck,
  type Phase,
  type Plan,
  type Progress,
  type Results,
} from '@leeway/netcheck';
import { byId, element } from '../../../page/elements.ts';
import { rate, time } from './format.ts';
import { createGauges } from './gauges.ts';
import { missingOf, problemOf } from './problem.ts';
import { hideResult, showGauges, showResult, wireCopy } from './result.ts';
import { shareable, unpack } from './share.ts';
import { createTimeline } from './timeline.ts';

/** The phases that a person sees. */
const phases: { phase: Phase; name: string; sentence: string; free?: string }[] = [
  { phase: 'baseline', name: 'Idle line', sentence: 'How soon does the server answer?' },
  { phase: 'download', name: 'Download', sentence: 'How much comes in?', free: 'How much is free on the way in?' },
  { phase: 'upload', name: 'Upload', sentence: 'How much goes out?', free: 'How much is free on the way out?' },
  { phase: 'quality', name: 'Loss', sentence: 'Does all of it arrive?' },
];

const query = new URLSearchParams(location.search);
const seconds = Number(query.get('seconds') ?? 10);
const timed: Partial<Plan> = seconds >= 2 && seconds <= 10 ? { seconds, rampUp: Math.min(2, seconds / 3) } : {};
const length = timed.seconds ?? 10;

/** Where the tests are: this page's own server, or another port beside it. */
function serverURL(): URL {
  const named = document.querySelector<HTMLMetaElement>('meta[name="probe-server"]')!.content;
  if (!named.startsWith(':')) return new URL(named || '/', location.href);
  const url = new URL('/', location.origin);
  url.port = named.slice(1);
  return url;
}

/** A token of the page's link: #token=…, which no server sees but the one that checks it. */
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? undefined;

const server = serverURL();
const main = byId('main');
const go = byId<HTMLButtonElement>('go');
const mild = byId<HTMLInputElement>('gives-way');
const gauges = createGauges(byId('gauges'));
const timeline = createTimeline(byId('plot'));
let running: AbortController | undefined;

const say = (sentence: string, next = '') => {
  byId('sentence').textContent = sentence;
  byId('next').textContent = next;
};
/** Read aloud by screen readers. */
const announce = (text: string) => {
  byId('status').textContent = text;
};

byId('phases').append(
  ...phases.map(({ phase, name }) => element('li', { 'data-phase': phase }, element('span', {}, name), element('i'))),
);

function enter(state: 'idle' | 'running' | 'done' | 'error', button: string): void {
  main.dataset.state = state;
  go.textContent = button;
  mild.disabled = state === 'running';
}

function mark(progress: Pick<Progress, 'phase' | 'done'>): void {
  const now = phases.findIndex(({ phase }) => phase === progress.phase);
  for (const [n, item] of [...byId('phases').children].entries()) {
    const part = progress.phase === 'done' || n < now ? 1 : n === now ? progress.done : 0;
    (item.lastElementChild as HTMLElement).style.transform = `scaleX(${part})`;
    if (n === now) item.setAttribute('aria-current', 'step');
    else item.removeAttribute('aria-current');
  }
}

let phase: Phase | undefined;

function follow(progress: Progress): void {
  mark(progress);
  const { direction, throughput, latency, figures, elapsed } = progress;
  if (progress.phase !== phase) {
    phase = progress.phase;
    showGauges(gauges, { figures });
    const known = phases.find((p) => p.phase === phase);
    const sentence = (mild.checked && known?.free) || known?.sentence;
    if (sentence) {
      say(sentence);
      announce(sentence);
    }
  }
  if (throughput !== undefined && (direction === 'down' || direction === 'up'))
    gauges[direction].show(throughput, true);
  if (latency !== undefined) {
    gauges.latency.show(latency, true);
    gauges.latency.say(direction ? 'while busy' : 'idle'); // messages leave the line idle, too
  }
  if (throughput !== undefined || latency !== undefined) {
    timeline.add({
      ...{ at: elapsed, throughput, latency },
      direction: direction === 'down' || direction === 'up' ? direction : undefined,
    });
  }
}

const summary = ({ figures }: Results) => {
  const [down, up] = [figureOf(figures, 'throughput', 'down'), figureOf(figures, 'throughput', 'up')];
  const [freeDown, freeUp] = [figureOf(figures, 'free_capacity', 'down'), figureOf(figures, 'free_capacity', 'up')];
  const loaded = figureOf(figures, 'loaded_rtt');
  const words = [
    down !== undefined && `${rate(down).join('\u00a0')} down`,
    up !== undefined && `${rate(up).join('\u00a0')} up`,
    freeDown !== undefined && `${rate(freeDown).join('\u00a0')} free down`,
    freeUp !== undefined && `${rate(freeUp).join('\u00a0')} free up`,
    loaded !== undefined && `${time(loaded).join('\u00a0')} for a round trip while busy`,
  ];
  return words.filter(Boolean).join(', ') || 'What is free of this line is not known';
};

function done(results: Results): void {
  enter('done', 'Check again');
  say(`${summary(results)}.`, missingOf(results));
  announce(`The check is complete: ${summary(results)}.`);
  timeline.describe(summary(results));
  showGauges(gauges, results, true);
  showResult(results, true);
}

/** Whether the server has gone: it answers nothing. */
async function gone(): Promise<boolean> {
  try {
    await fetch(new URL('/probe/v1/info', server), { cache: 'no-store', signal: AbortSignal.timeout(5000) });
    return false;
  } catch {
    return true;
  }
}

/** Why there is no result, or a part of one. */
async function failed(error: unknown): Promise<void> {
  const known = error instanceof CheckError;
  const { sentence, next } = known
    ? problemOf(error, server.host, error.code === 'stopped' && (await gone()))
    : { sentence: 'This browser cannot run the check.', next: `Try another browser, or a newer one. (${error})` };
  enter('error', 'Try again');
  main.dataset.code = known ? error.code : 'unsupported';
  say(sentence, next);
  announce(`${sentence} ${next}`);
  const results = known && error.results ? shareable(error.results) : undefined;
  showGauges(gauges, results ?? { figures: [] }, true);
  if (results?.figures.length) showResult(results, true);
}

async function check(): Promise<void> {
  running = new AbortController();
  phase = undefined;
  delete main.dataset.code;
  enter('running', 'Stop');
  hideResult();
  showGauges(gauges, { figures: [] });
  history.replaceState(
    null,
    '',
    location.pathname + location.search + (token ? `#token=${encodeURIComponent(token)}` : ''),
  );
  timeline.clear(Math.ceil(mild.checked ? 2 * length + 3 : 3 * length + 4) * 1000);
  const plan = { ...timed, givesWay: mild.checked };
  try {
    const test = new NetworkCheck({ server, plan, ...(token && { token }) });
    done(shareable(await test.run({ onProgress: follow, signal: running.signal })));
  } catch (error) {
    await failed(error);
  } finally {
    running = undefined;
  }
}

/** What a check takes of the line. */
function taken(): string {
  const bytes = `line of 100 Mbit/s, ${Math.round(2 * 12.5 * length)} MB`;
  return mild.checked
    ? `It takes ${Math.round(2 * length + 4)} seconds and what other traffic leaves of the line: on an idle ${bytes}.`
    : `It takes ${Math.round(3 * length + 8)} seconds and the whole line: on a ${bytes}.`;
}

/** The switch: by the address, and kept there. */
function offer(): void {
  byId('phases').querySelector<HTMLElement>('[data-phase="quality"]')!.hidden = mild.checked;
  if (main.dataset.state !== 'idle') return;
  const connection = (navigator as { connection?: { saveData?: boolean; type?: string } }).connection;
  const metered = connection?.saveData || connection?.type === 'cellular';
  say(
    'What is this line good for?',
    metered ? `${taken()} This seems to be a line that is paid for by the byte.` : taken(),
  );
}

mild.checked = query.get('gives-way') === '1';
mild.addEventListener('change', () => {
  if (mild.checked) query.set('gives-way', '1');
  else query.delete('gives-way');
  const said = `${query}`;
  history.replaceState(null, '', `${location.pathname}${said && `?${said}`}${location.hash}`);
  offer();
});

/** Before a check: what it takes; or the result that the link has. */
function begin(): void {
  byId('server').textContent = server.host;
  offer();
  mark({ phase: 'baseline', done: 0 });
  showGauges(gauges, { figures: [] });
  const shared = unpack(location.hash);
  if (!shared) {
    if (location.hash.startsWith('#r='))
      say(
        'The result of this link cannot be read.',
        'A part of the link may be missing: copy it as a whole. Or check your own line.',
      );
    return;
  }
  enter('done', 'Check this line');
  main.dataset.shared = '';
  say(
    `${summary(shared)}.`,
    `A result that was shared with you: measured against ${shared.server}, ${new Date(shared.started_ms).toLocaleString()}.`,
  );
  showGauges(gauges, shared, true);
  showResult(shared, false);
}

go.addEventListener('click', () => {
  if (running) running.abort();
  else {
    delete main.dataset.shared;
    void check();
  }
});
// A link that is opened in a page that is there changes the fragment alone.
addEventListener('hashchange', () => running || location.reload());
wireCopy(announce);
begin();
