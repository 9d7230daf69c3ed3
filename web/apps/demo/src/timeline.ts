import type { Source } from './delivery';
import { formatBytes, formatClock } from './format';
import { explainSegment } from './reasons';

/** Where one segment's bytes came from. */
export interface Delivered {
  source: Source;
  reason: string | undefined;
  bytes: Record<Source, number>;
  /** Fetched before the library had joined a swarm. */
  early: boolean;
  /** “480p”, or empty. */
  rendition: string;
}

/** A place on the presentation timeline, milliseconds. */
export interface Slot {
  startMs: number;
  durationMs: number;
}

interface Cell extends Slot {
  element: HTMLElement;
}

/** A longer film is shown in windows of this length. */
const windowMs = 300_000;
const order: Source[] = ['peer', 'seed', 'origin'];

/** The film from left to right, each segment colored by where its bytes came from; its reason on hover and focus. */
export class Timeline {
  private readonly track: HTMLElement;
  private readonly axis: HTMLElement;
  private readonly playhead: HTMLElement;
  private readonly buffer: HTMLElement;
  private readonly tip: HTMLElement;
  private cells: Cell[] = [];
  /** What came, by when it begins: segments, and parts of them. */
  private readonly delivered = new Map<number, Delivered>();
  private from = 0;
  private to = 0;

  constructor(root: HTMLElement) {
    const part = (name: string) => root.querySelector<HTMLElement>(`.${name}`)!;
    this.track = part('cells');
    this.axis = part('axis');
    this.playhead = part('playhead');
    this.buffer = part('buffer');
    this.tip = part('tip');
    this.track.addEventListener('pointerover', (event) => this.tell(event.target));
    this.track.addEventListener('pointerleave', () => this.hush());
    this.track.addEventListener('focusin', (event) => this.tell(event.target));
    this.track.addEventListener('focusout', () => this.hush());
    this.track.addEventListener('keydown', (event) => this.move(event));
  }

  /** Lays out the cells; nothing happens while film and window stay the same. */
  layOut(slots: Slot[], positionMs: number, live = false): void {
    const last = slots.at(-1);
    if (last === undefined) return;
    const end = last.startMs + last.durationMs;
    // A live stream slides through: what has left its playlist is gone.
    const first = live ? slots[0]!.startMs : 0;
    if (live) for (const at of this.delivered.keys()) if (at < nearest(first)) this.delivered.delete(at);
    const from = end - first <= 2 * windowMs ? first : Math.floor(positionMs / windowMs) * windowMs;
    const to = end - first <= 2 * windowMs ? end : Math.min(end, from + windowMs);
    const inside = slots.filter((s) => s.startMs < to && s.startMs + s.durationMs > from);
    if (this.from === from && this.to === to && this.cells.length === inside.length) return;
    this.from = from;
    this.to = to;
    // A stream lays its cells out with each new segment: those that stay are moved. A new one would fade in.
    const before = this.cells;
    const known = new Map(before.map((cell) => [nearest(cell.startMs), cell]));
    this.cells = inside.map((slot) => {
      const cell = known.get(nearest(slot.startMs));
      known.delete(nearest(slot.startMs));
      return cell === undefined ? this.create(slot) : this.place(cell, slot);
    });
    const kept = new Set(this.cells);
    for (const cell of before) if (!kept.has(cell)) cell.element.remove();
    for (const [i, { element }] of this.cells.entries()) {
      // Where it stands already it is left alone: what is put anew loses the focus, and fades in.
      if (this.track.children[i] !== element) this.track.insertBefore(element, this.track.children[i] ?? null);
    }
    if (!this.cells.some(({ element }) => element.tabIndex === 0)) this.cells[0]?.element.setAttribute('tabindex', '0');
    this.layOutAxis();
  }

  /** Records where the segment that starts near `startMs` came from, or the part of one. */
  record(slot: Slot, delivered: Delivered): void {
    this.delivered.set(nearest(slot.startMs), delivered);
    const middle = slot.startMs + slot.durationMs / 2;
    const cell = this.cells.find((c) => c.startMs <= middle && middle < c.startMs + c.durationMs);
    if (cell !== undefined) this.fill(cell);
  }

  /** What came of a cell, all of its parts together; undefined: nothing. */
  private cameOf({ startMs, durationMs }: Slot): Delivered | undefined {
    const bytes = { origin: 0, seed: 0, peer: 0 };
    let last: Delivered | undefined;
    let reason: string | undefined;
    const first = nearest(startMs);
    // A cell has at least the one that begins with it.
    for (let at = first; at < Math.max(first + 1, nearest(startMs + durationMs)); at++) {
      const one = this.delivered.get(at);
      if (one === undefined) continue;
      last = one;
      reason = one.reason ?? reason;
      for (const name of order) bytes[name] += one.bytes[name];
    }
    if (last === undefined) return undefined;
    const most = order.reduce((best, name) => (bytes[name] > bytes[best] ? name : best), last.source);
    return { ...last, bytes, reason, source: most };
  }

  /** Moves the playhead and the line of what is buffered (seconds). */
  follow(positionMs: number, bufferedToMs: number): void {
    const at = this.share(positionMs);
    const to = Math.max(at, this.share(bufferedToMs));
    this.playhead.style.left = `${(at * 100).toFixed(2)}%`;
    this.buffer.style.left = `${(at * 100).toFixed(2)}%`;
    this.buffer.style.width = `${((to - at) * 100).toFixed(2)}%`;
  }

  private share(ms: number): number {
    return this.to <= this.from ? 0 : Math.min(1, Math.max(0, (ms - this.from) / (this.to - this.from)));
  }

  private place(cell: Cell, slot: Slot): Cell {
    const grown = slot.durationMs > cell.durationMs;
    const { startMs, durationMs } = Object.assign(cell, slot);
    cell.element.style.left = `${this.share(startMs) * 100}%`;
    cell.element.style.width = `${(this.share(startMs + durationMs) - this.share(startMs)) * 100}%`;
    if (grown) this.fill(cell);
    return cell;
  }

  private create(slot: Slot): Cell {
    const element = document.createElement('li');
    element.className = 'cell';
    element.tabIndex = -1;
    const cell = this.place({ ...slot, element }, slot);
    this.fill(cell);
    return cell;
  }

  private fill(cell: Cell): void {
    cell.element.setAttribute('aria-label', this.describe(cell));
    const delivered = this.cameOf(cell);
    if (delivered === undefined) return;
    const { bytes, source } = delivered;
    const total = bytes.origin + bytes.seed + bytes.peer || 1;
    let below = 0;
    const stops = order.flatMap((name) => {
      const share = (100 * bytes[name]) / total;
      if (share <= 0) return [];
      const stop = `var(--${name}) ${below.toFixed(1)}% ${(below + share).toFixed(1)}%`;
      below += share;
      return [stop];
    });
    cell.element.dataset.source = source;
    cell.element.style.setProperty(
      '--mix',
      `linear-gradient(to top, ${stops.join(', ') || `var(--${source}) 0 100%`})`,
    );
  }

  private describe(cell: Cell): string {
    const delivered = this.cameOf(cell);
    if (delivered === undefined) return `${span(cell)}, not fetched yet`;
    const { bytes, reason, early, rendition } = delivered;
    const size = formatBytes(bytes.origin + bytes.seed + bytes.peer);
    return `${span(cell)}, ${size}${rendition === '' ? '' : ` at ${rendition}`}, ${explainSegment(bytes, reason, early)}`;
  }

  private layOutAxis(): void {
    const length = this.to - this.from;
    const step = [10, 20, 30, 60, 120].map((s) => s * 1000).find((s) => length / s <= 6) ?? 300_000;
    this.axis.replaceChildren();
    for (let ms = Math.ceil(this.from / step) * step; ms < this.to - step * 0.35; ms += step) {
      const mark = document.createElement('span');
      mark.textContent = formatClock(ms);
      mark.style.left = `${this.share(ms) * 100}%`;
      this.axis.append(mark);
    }
  }

  private tell(target: EventTarget | null): void {
    const cell = this.cells.find((c) => c.element === target);
    if (cell === undefined) return;
    const text = this.describe(cell);
    this.tip.textContent = text;
    this.tip.dataset.source = cell.element.dataset.source ?? '';
    this.tip.hidden = false;
    const center = this.share(cell.startMs + cell.durationMs / 2);
    const room = this.track.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.min(Math.max(0, room), Math.max(0, center * this.track.clientWidth - this.tip.offsetWidth / 2))}px`;
  }

  private hush(): void {
    const focused = this.cells.find((c) => c.element === document.activeElement);
    if (focused === undefined) this.tip.hidden = true;
    else this.tell(focused.element);
  }

  private move(event: KeyboardEvent): void {
    const here = this.cells.findIndex((c) => c.element === document.activeElement);
    const last = this.cells.length - 1;
    const targets: Record<string, number> = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last };
    const next = targets[event.key];
    if (here < 0 || next === undefined || next < 0 || next > last) return;
    event.preventDefault();
    this.cells[here]!.element.tabIndex = -1;
    this.cells[next]!.element.tabIndex = 0;
    this.cells[next]!.element.focus();
  }
}

/** Renditions may differ by a few milliseconds where the same segment starts. */
function nearest(ms: number): number {
  return Math.round(ms / 500);
}

function span(slot: Slot): string {
  return `${formatClock(slot.startMs)} to ${formatClock(slot.startMs + slot.durationMs)}`;
}
