/** What stays on the page when a check is over: verdict, figures, JSON and link. */
import { type Figure, figureOf, kinds, type Results } from '@leeway/netcheck';
import { byId, element } from '../../../page/elements.ts';
import { directions, names, quantity, sources, time } from './format.ts';
import type { Gauge, GaugeKind } from './gauges.ts';
import { pack } from './share.ts';
import { verdicts } from './verdict.ts';

let file: string | undefined;

/** Nothing of an earlier result. */
export function hideResult(): void {
  for (const id of ['verdict', 'keep', 'details']) byId(id).hidden = true;
  byId('details').querySelector('tbody')!.replaceChildren();
}

function missing(over: boolean, channel: Results['channel']): string {
  if (!over) return '';
  if (channel === 'broken') return 'the test broke off';
  return channel === 'blocked' ? 'UDP is blocked' : 'not measured';
}

/** What is known so far; what a check that is over did not measure it says. */
export function showGauges(
  gauges: Record<GaugeKind, Gauge>,
  { figures, channel }: { figures: readonly Figure[]; channel?: Results['channel'] },
  over = false,
): void {
  const idle = Math.min(...figures.filter(({ name }) => name === 'baseline_rtt').map(({ value }) => value));
  const loaded = figureOf(figures, 'loaded_rtt');
  for (const direction of ['down', 'up'] as const) {
    const free = figureOf(figures, 'free_capacity', direction);
    gauges[direction].show(figureOf(figures, 'throughput', direction) ?? free);
    gauges[direction].say(free === undefined ? '' : 'was free');
  }
  gauges.latency.show(Number.isFinite(idle) ? idle : undefined);
  gauges.latency.say(loaded === undefined ? '' : `${time(loaded).join(' ')} while busy`);
  const loss = figureOf(figures, 'loss');
  gauges.loss.show(loss);
  gauges.loss.say(loss === undefined ? missing(over, channel) : loss > 0 ? 'the worse direction' : 'all arrived');
}

function row(figure: Figure): HTMLElement {
  const [value, unit] = quantity(figure);
  return element(
    'tr',
    {},
    element('th', { scope: 'row' }, names[figure.name]),
    element('td', {}, directions[figure.direction]),
    element('td', { title: `${figure.value} ${figure.unit}` }, `${value} ${unit}`),
    element('td', {}, sources[figure.source]),
  );
}

/** Shows a result. `own`: it was measured here, and can be kept. */
export function showResult(results: Results, own: boolean): void {
  const list = byId('verdict').querySelector('ul')!;
  list.replaceChildren(
    ...verdicts(results).map(({ use, tone, word, why }) =>
      element(
        'li',
        { 'data-tone': tone },
        element('h3', {}, use),
        element('p', { class: 'word' }, word),
        element('p', { class: 'why' }, why),
      ),
    ),
  );
  byId('verdict').hidden = list.childElementCount === 0;
  const order = Object.keys(kinds);
  const rows = [...results.figures].sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name)).map(row);
  byId('details')
    .querySelector('tbody')!
    .replaceChildren(...rows);
  byId('details').hidden = rows.length === 0;
  byId('keep').hidden = rows.length === 0;
  byId('copy').hidden = byId('link').hidden = !own;
  byId('keep').querySelector<HTMLElement>('.note')!.hidden = !own;
  if (file) URL.revokeObjectURL(file);
  file = URL.createObjectURL(new Blob([`${JSON.stringify(results, null, 2)}\n`], { type: 'application/json' }));
  byId<HTMLAnchorElement>('json').href = file;
  byId<HTMLInputElement>('link').value = `${location.href.replace(/#.*/, '')}#${pack(results)}`;
}

const copiedFor = 2_000; // ms that the button says so

/** The button that copies the link: by the clipboard, or, where the page may not, by a selection. */
export function wireCopy(said: (text: string) => void): void {
  const link = byId<HTMLInputElement>('link');
  const copy = byId('copy');
  const words = copy.textContent;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const done = (short: string, long: string) => {
    copy.textContent = short;
    said(long);
    clearTimeout(timer);
    timer = setTimeout(() => {
      copy.textContent = words;
    }, copiedFor);
  };
  link.addEventListener('focus', () => link.select());
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(link.value);
      done('Copied', 'The link is copied.');
    } catch {
      link.focus();
      link.select();
      done('Selected', 'The link is selected: copy it.');
    }
  });
}
