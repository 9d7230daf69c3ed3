/** Four gauges: download, upload, latency, loss. */

import { drawing, element } from '../../../page/elements.ts';
import type { Quantity } from './format.ts';
import { rate, share, time } from './format.ts';

export type GaugeKind = 'down' | 'up' | 'latency' | 'loss';

/** Share of a gauge's arc for a value: decades, since lines differ by orders of magnitude. */
const scales: Record<GaugeKind, (value: number) => number> = {
  down: (bps) => Math.log10(Math.max(bps, 1e5) / 1e5) / 4,
  up: (bps) => Math.log10(Math.max(bps, 1e5) / 1e5) / 4,
  latency: (seconds) => Math.log10(Math.max(seconds, 0.001) / 0.001) / 3,
  loss: (ratio) => Math.sqrt(ratio / 0.1),
};

const titles: Record<GaugeKind, string> = { down: 'Download', up: 'Upload', latency: 'Latency', loss: 'Loss' };
const quantities: Record<GaugeKind, (value: number) => Quantity> = { down: rate, up: rate, latency: time, loss: share };

export interface Gauge {
  /** Shows a value; undefined: none. */
  show(value: number | undefined, live?: boolean): void;
  /** The line below it. */
  say(text: string): void;
}

const arc = 'M12 62A48 48 0 0 1 108 62';

export function createGauges(into: HTMLElement): Record<GaugeKind, Gauge> {
  const make = (kind: GaugeKind): Gauge => {
    const value = drawing('path', { d: arc, class: 'value', pathLength: '100' });
    const number = element('span', { class: 'number' }, '–');
    const unit = element('span', { class: 'unit' });
    const more = element('p', { class: 'more' });
    const gauge = element(
      'div',
      { class: 'gauge', 'data-kind': kind, role: 'group', 'aria-label': titles[kind] },
      element('h2', {}, titles[kind]),
      drawing(
        'svg',
        { viewBox: '0 0 120 68', 'aria-hidden': 'true' },
        drawing('path', { d: arc, class: 'rail' }),
        value,
      ),
      element('p', { class: 'reading' }, number, unit),
      more,
    );
    into.append(gauge);
    return {
      show(now, live = false) {
        gauge.toggleAttribute('data-live', live);
        const part = now === undefined ? 0 : Math.min(1, Math.max(0.01, scales[kind](now)));
        value.style.strokeDasharray = `${now === undefined ? 0 : part * 100} 200`;
        value.style.visibility = now ? 'visible' : 'hidden';
        [number.textContent, unit.textContent] = now === undefined ? ['–', ''] : quantities[kind](now);
      },
      say(text) {
        more.textContent = text;
      },
    };
  };
  return { down: make('down'), up: make('up'), latency: make('latency'), loss: make('loss') };
}
