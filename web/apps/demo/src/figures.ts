import type { DeliveryView, Source } from './delivery';
import { formatBytes, formatSeconds, percent } from './format';
import type { Experience } from './player';

/** Offload ratio, bars by source, startup delay, stalls and what was given. */
export class Figures {
  private readonly ratio = get('#ratio');
  private readonly all = get('#all');
  private readonly startup = get('#startup');
  private readonly lag = get('#lag');
  private readonly stalls = get('#stalls');
  private readonly given = get('#given');
  private own = 0;
  private readonly bars = new Map<Source, { fill: HTMLElement; amount: HTMLElement }>();

  constructor() {
    for (const source of ['peer', 'seed', 'origin'] as const) {
      const row = get(`#bars [data-source="${source}"]`);
      this.bars.set(source, { fill: row.querySelector('i')!, amount: row.querySelector('.amount')! });
    }
  }

  show({ bytes, relayed, given }: DeliveryView, felt: Experience): void {
    const total = bytes.origin + bytes.seed + bytes.peer;
    // Relayed bytes cost the operator as much as the origin's: the offload ratio leaves them out.
    this.own = percent(bytes.peer - relayed, total);
    for (const [source, { fill, amount }] of this.bars) {
      const share = total > 0 ? (100 * bytes[source]) / total : 0;
      const transform = `translateX(${(share - 100).toFixed(1)}%)`;
      if (fill.style.transform !== transform) fill.style.transform = transform;
      set(amount, `${formatBytes(bytes[source])} · ${percent(bytes[source], total)} %`);
    }
    set(this.startup, felt.startupMs === undefined ? '…' : formatSeconds(felt.startupMs));
    const stalls = felt.stalls === 0 ? '0' : `${felt.stalls} · ${formatSeconds(felt.stallMs)}`;
    set(this.stalls, stalls);
    this.stalls.toggleAttribute('data-warn', felt.stalls > 0);
    set(this.given, formatBytes(given));
  }

  /** How far behind the clock of a live stream the picture is, milliseconds; undefined for a film. */
  showLag(ms: number | undefined): void {
    this.lag.parentElement!.hidden = ms === undefined;
    if (ms !== undefined) set(this.lag, formatSeconds(ms));
  }

  /** The share of this viewer; where the viewers on this machine have more together, theirs: the first of them gives more than it gets. */
  showAll(viewers: Record<Source, number>[]): void {
    const { large, small } = headline(this.own, viewers);
    set(this.ratio, String(large));
    set(this.all, small);
  }
}

/** The figure that stands large, percent, and the line below it. */
export function headline(own: number, viewers: Record<Source, number>[]): { large: number; small: string } {
  const peer = viewers.reduce((sum, b) => sum + b.peer, 0);
  const total = viewers.reduce((sum, b) => sum + b.peer + b.seed + b.origin, 0);
  const all = percent(peer, total);
  if (viewers.length < 2) return { large: own, small: '' };
  if (all > own) return { large: all, small: `over all ${viewers.length}; yours ${own} %` };
  return { large: own, small: `${all} % over all ${viewers.length}` };
}

function get(selector: string): HTMLElement {
  return document.querySelector<HTMLElement>(selector)!;
}

/** Says something in an element, unless it says so already. */
export function set(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
