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
import { problemOf } from './problem.ts';
import { hideResult, showGauges, showResult, wireCopy } from './result.ts';
import { shareable, unpack } from './share.ts';
import { createTimeline } from './timeline.ts';

/** The phases that a person sees. */
const phases: { phase: Phase; name: string; sentence: string }[] = [
  { phase: 'baseline', name: 'Idle line', sentence: 'How soon does the server answer?' },
  { phase: 'download', name: 'Download', sentence: 'How much comes in?' },
  { phase: 'upload', name: 'Upload', sentence: 'How much goes out?' },
  { phase: 'quality', name: 'Loss', sentence: 'Does all of it arrive?' },
];

const query = new URLSearchParams(location.search);
const seconds = Number(query.get('seconds') ?? 10);
const plan: Partial<Plan> = seconds >= 2 && seconds <= 10 ? { seconds, rampUp: Math.min(2, seconds / 3) } : {};

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
    const sentence = phases.find((p) => p.phase === phase)?.sentence;
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
  const loaded = figureOf(figures, 'loaded_rtt');
  return [
    down !== undefined && `${rate(down).join(' ')} down`,
    up !== undefined && `${rate(up).join(' ')} up`,
    loaded !== undefined && `${time(loaded).join(' ')} for a round trip while busy`,
  ]
    .filter(Boolean)
    .join(', ');
};

function done(results: Results): void {
  enter('done', 'Check again');
  say(`${summary(results)}.`);
  announce(`The check is complete: ${summary(results)}.`);
  timeline.describe(summary(results));
  showGauges(gauges, results, true);
  showResult(results, true);
}

function failed(error: unknown): void {
  const { sentence, next } =
    error instanceof CheckError
      ? problemOf(error, server.host)
      : { sentence: 'This browser cannot run the check.', next: String(error) };
  enter('error', 'Try again');
  main.dataset.code = error instanceof CheckError ? error.code : 'unsupported';
  say(sentence, next);
  announce(`${sentence} ${next}`);
  const results = error instanceof CheckError && error.results ? shareable(error.results) : undefined;
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
  timeline.clear(Math.ceil(3 * (plan.seconds ?? 10) + 4) * 1000);
  try {
    const test = new NetworkCheck({ server, plan, ...(token && { token }) });
    done(shareable(await test.run({ onProgress: follow, signal: running.signal })));
  } catch (error) {
    failed(error);
  } finally {
    running = undefined;
  }
}

/** Before a check: what it takes; or the result that the link has. */
function begin(): void {
  byId('server').textContent = server.host;
  mark({ phase: 'baseline', done: 0 });
  showGauges(gauges, { figures: [] });
  const shared = unpack(location.hash);
  if (!shared) {
    const connection = (navigator as { connection?: { saveData?: boolean; type?: string } }).connection;
    const metered = connection?.saveData || connection?.type === 'cellular';
    const takes = `It takes ${Math.round(3 * (plan.seconds ?? 10) + 8)} seconds and the whole line: on a line of 100 Mbit/s, ${Math.round(2 * 12.5 * (plan.seconds ?? 10))} MB.`;
    say(
      'What is this line good for?',
      metered ? `${takes} This seems to be a line that is paid for by the byte.` : takes,
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
wireCopy(announce);
begin();
