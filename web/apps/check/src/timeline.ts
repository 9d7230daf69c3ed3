/** The timeline's drawing. */

import { byId, drawing } from '../../../page/elements.ts';
import { onScale, rate, time } from './format.ts';
import { plot, type Sample } from './plot.ts';

const margin = { left: 46, right: 58, top: 18, bottom: 20 };
const height = 210;

export interface Timeline {
  add(sample: Sample): void;
  /** Begins anew. ms: how long it will take. */
  clear(span: number): void;
  /** The same in words, for screen readers. */
  describe(text: string): void;
}

export function createTimeline(into: HTMLElement): Timeline {
  let samples: Sample[] = [];
  let span = 20_000;
  const [down, up] = [drawing('path', { class: 'down' }), drawing('path', { class: 'up' })];
  const latency = drawing('path', { class: 'latency' });
  const grid = drawing('g', { class: 'grid' });
  const inner = drawing('g', { transform: `translate(${margin.left} ${margin.top})` }, grid, down, up, latency);
  const svg = drawing('svg', { height: String(height) }, inner);
  into.append(svg);

  const label = (x: number, y: number, anchor: string, text: string, kind = '') =>
    drawing('text', { x: String(x), y: String(y), 'text-anchor': anchor, ...(kind && { class: kind }) }, text);

  const draw = () => {
    const width = Math.max(120, into.clientWidth - margin.left - margin.right);
    const high = height - margin.top - margin.bottom;
    svg.setAttribute('width', String(into.clientWidth));
    const drawn = plot(samples, { width, height: high, span });
    down.setAttribute('d', drawn.down);
    up.setAttribute('d', drawn.up);
    latency.setAttribute('d', drawn.latency);
    const lines: SVGElement[] = [];
    for (const part of [0, 0.5, 1]) {
      const y = (1 - part) * high;
      lines.push(drawing('line', { x1: '0', x2: String(width), y1: String(y), y2: String(y) }));
      if (samples.length === 0 || part === 0) continue;
      lines.push(label(-6, y + 4, 'end', onScale(part, drawn.most.throughput)));
      lines.push(label(width + 6, y + 4, 'start', time(drawn.most.latency * part).join(' '), 'latency'));
    }
    if (samples.length > 0) lines.push(label(-6, -8, 'end', rate(drawn.most.throughput)[1]));
    for (let s = 0; s <= span; s += 5000) {
      const x = (s / span) * width;
      if (x < width - 16 || s === span) lines.push(label(x, high + 16, 'middle', `${s / 1000} s`));
    }
    grid.replaceChildren(...lines);
  };
  new ResizeObserver(draw).observe(into);
  return {
    add(sample) {
      samples.push(sample);
      span = Math.max(span, sample.at);
      draw();
    },
    clear(ms) {
      samples = [];
      span = ms;
      draw();
    },
    describe(text) {
      byId('plot-words').textContent = text;
    },
  };
}
