import { set } from './figures';
import { formatBytes, formatRate } from './format';
import { columnMs, columns, type Rates, roundUp, without } from './history';

/** From the bottom up: what costs the site most stands on the ground. */
const order = ['origin', 'seed', 'peer'] as const;
const height = 100;
/** A page that has just been opened shows a minute: its strip is not empty for long. */
const fewest = 30;

/** A stretch of time in which a service was away, milliseconds since the page was opened. */
export interface Gap {
  service: string;
  from: number;
  /** Undefined: it still is. */
  to: number | undefined;
}

/** The last minutes of all viewers: what came from where, stacked, and what the origin would send without Leeway. */
export class Chart {
  private readonly svg: SVGSVGElement;
  private readonly top: HTMLElement;
  private readonly span: HTMLElement;
  private readonly saved: HTMLElement;
  private readonly figures = new Map<string, HTMLElement>();
  private readonly paths = new Map<string, SVGPathElement>();
  private readonly gaps: SVGGElement;

  constructor(root: HTMLElement) {
    this.svg = root.querySelector('svg')!;
    this.top = root.querySelector<HTMLElement>('.top')!;
    this.span = root.querySelector<HTMLElement>('.span')!;
    this.saved = root.querySelector<HTMLElement>('.saved')!;
    this.gaps = make('g');
    this.gaps.setAttribute('class', 'gaps');
    this.svg.append(this.gaps);
    for (const name of [...order, 'without']) {
      const path = make('path');
      path.setAttribute('class', name);
      this.svg.append(path);
      this.paths.set(name, path);
      this.figures.set(name, root.querySelector<HTMLElement>(`[data-source="${name}"] b`)!);
    }
  }

  show(at: number, points: Rates[], total: Rates, viewers: number, gaps: Gap[]): void {
    const top = roundUp(points.reduce((most, p) => Math.max(most, without(p)), 0));
    const shown = Math.min(columns, Math.max(fewest, points.length));
    this.svg.setAttribute('viewBox', `0 0 ${shown - 1} ${height}`);
    const x = (i: number) => shown - points.length + i;
    const below = points.map(() => 0);
    for (const source of order) {
      const floor = points.map((_, i) => `${x(i)},${y(below[i]!, top)}`).reverse();
      for (const [i, p] of points.entries()) below[i]! += p[source];
      const roof = points.map((_, i) => `${x(i)},${y(below[i]!, top)}`);
      this.draw(source, points.length < 2 ? '' : `M${roof.join('L')}L${floor.join('L')}Z`);
    }
    this.draw(
      'without',
      points.length < 2 ? '' : `M${points.map((p, i) => `${x(i)},${y(without(p), top)}`).join('L')}`,
    );
    this.drawGaps(at, gaps, shown);
    set(this.top, formatRate(top));
    set(this.saved, describeSaved(total));
    this.write(points.at(-1) ?? { origin: 0, seed: 0, peer: 0 }, viewers, (shown * columnMs) / 1000);
  }

  private draw(name: string, d: string): void {
    this.paths.get(name)!.setAttribute('d', d);
  }

  private drawGaps(at: number, gaps: Gap[], shown: number): void {
    const end = Math.floor(at / columnMs);
    const place = (ms: number) => shown - end + ms / columnMs - 1;
    this.gaps.replaceChildren(
      ...gaps.flatMap(({ from, to = at }) => {
        const left = Math.max(0, place(from));
        const right = Math.min(shown - 1, place(to));
        if (right <= left) return [];
        const rect = make('rect');
        rect.setAttribute('x', left.toFixed(2));
        rect.setAttribute('width', (right - left).toFixed(2));
        rect.setAttribute('y', '0');
        rect.setAttribute('height', String(height));
        return [rect];
      }),
    );
  }

  private write(now: Rates, viewers: number, seconds: number): void {
    for (const source of order) set(this.figures.get(source)!, formatRate(now[source]));
    set(this.figures.get('without')!, formatRate(without(now)));
    set(this.span, `The last ${seconds} s`);
    this.svg.setAttribute('aria-label', describeChart(now, viewers, seconds));
  }
}

/** What all viewers had since the page was opened, and what of it the origin sent them. */
export function describeSaved(total: Rates): string {
  const all = without(total);
  if (all <= 0) return '';
  return `Sent to viewers by the origin so far: ${formatBytes(total.origin)}; without Leeway: ${formatBytes(all)}.`;
}

/** The chart in words. */
export function describeChart(now: Rates, viewers: number, seconds: number): string {
  const of = viewers === 1 ? 'the viewer' : `all ${viewers} viewers`;
  return (
    `The last ${seconds} s of ${of} on this machine. Now ${formatRate(now.origin)} come from the origin, ` +
    `${formatRate(now.seed)} from the seed and ${formatRate(now.peer)} from other viewers; ` +
    `without Leeway the origin would send ${formatRate(without(now))}.`
  );
}

function y(rate: number, top: number): string {
  return (height - (height * rate) / top).toFixed(2);
}

function make<K extends keyof SVGElementTagNameMap>(name: K): SVGElementTagNameMap[K] {
  return document.createElementNS('http://www.w3.org/2000/svg', name);
}
