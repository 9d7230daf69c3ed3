import { labelHeight, type Place } from './layout';

/** A stream of bytes from one participant to another, as the canvas draws it. */
export interface Stream {
  from: Place;
  to: Place;
  color: string;
  /** Bytes per second. */
  rate: number;
  /** Streams between other viewers stand back. */
  faint: boolean;
  /** Figure in the way, to be passed above or below; undefined: straight on. */
  around: Place | undefined;
  /** Phases 0 … 1 of the particles under way. */
  particles: number[];
  /** Fraction of the next particle. */
  credit: number;
}

/** One particle stands for this many bytes, until there would be too many. */
const particleBytes = 24_576;
const particlesPerSecond = 11;
const travelSeconds = 1.5;

/** Moves particles along and lets new ones go, by the time that passed; true while something is in motion. */
export function advance(stream: Stream, seconds: number): boolean {
  const step = seconds / travelSeconds;
  stream.particles = stream.particles.map((t) => t + step).filter((t) => t < 1.05);
  stream.credit += Math.min(stream.rate / particleBytes, particlesPerSecond) * seconds;
  if (stream.rate <= 0) stream.credit = 0;
  const due = Math.floor(stream.credit);
  stream.credit -= due;
  for (let i = 0; i < due; i++) stream.particles.push((i / due) * step);
  return stream.particles.length > 0 || stream.rate > 0;
}

/** Width of a stream's bed: grows with the root of its rate, so that a trickle is seen and a flood fits. */
function bedWidth(rate: number): number {
  return rate <= 0 ? 1 : Math.min(9, 1.5 + 6 * Math.sqrt(rate / 1_000_000));
}

interface Curve {
  x0: number;
  y0: number;
  cx: number;
  cy: number;
  x1: number;
  y1: number;
}

/** Room kept above a figure that is passed, and below it for its text. */
const clearAbove = 10;
const clearBelow = labelHeight / 2 + 6;

/** Height at which a stream should pass a figure that stands on its straight way, or undefined if none does. */
function detour({ from, to, around }: Stream): number | undefined {
  if (around === undefined || around.x <= from.x || around.x >= to.x) return undefined;
  const slope = (to.y - from.y) / (to.x - from.x);
  const straight = from.y + slope * (around.x - from.x);
  // A slanting stream would cut a corner.
  const corner = Math.abs(slope) * around.w * 0.42;
  const above = around.y - around.h / 2 - clearAbove - corner;
  const below = around.y + around.h / 2 + clearBelow + corner;
  if (straight < above || straight > below) return undefined;
  return to.y > around.y + 1 ? below : above;
}

/** Bent to its right, so that the two directions of a pair run beside each other; or around a figure in the way. */
function curve(stream: Stream): Curve {
  const { from, to, around } = stream;
  const pass = detour(stream);
  if (pass !== undefined && around !== undefined) {
    // The parameter at which a parabola over this control point reaches the figure's x is near one half.
    const cy = 2 * pass - (from.y + to.y) / 2;
    return { x0: from.x, y0: from.y, cx: 2 * around.x - (from.x + to.x) / 2, cy, x1: to.x, y1: to.y };
  }
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const bend = 0.13;
  return {
    x0: from.x,
    y0: from.y,
    cx: (from.x + to.x) / 2 - dy * bend,
    cy: (from.y + to.y) / 2 + dx * bend,
    x1: to.x,
    y1: to.y,
  };
}

function at(c: Curve, t: number): [number, number] {
  const u = 1 - t;
  return [u * u * c.x0 + 2 * u * t * c.cx + t * t * c.x1, u * u * c.y0 + 2 * u * t * c.cy + t * t * c.y1];
}

/** Draws the bed of a stream and, unless motion is unwelcome, its particles as short streaks. */
export function paint(canvas: CanvasRenderingContext2D, stream: Stream, moving: boolean): void {
  const c = curve(stream);
  const width = bedWidth(stream.rate) * (stream.faint ? 0.7 : 1);
  const weight = stream.faint ? 0.55 : 1;
  canvas.strokeStyle = stream.color;
  canvas.lineCap = 'round';
  canvas.globalAlpha = (moving ? 0.2 : 0.5) * weight;
  canvas.lineWidth = width;
  canvas.beginPath();
  canvas.moveTo(c.x0, c.y0);
  canvas.quadraticCurveTo(c.cx, c.cy, c.x1, c.y1);
  canvas.stroke();
  if (!moving) return;
  const length = Math.hypot(c.x1 - c.x0, c.y1 - c.y0) || 1;
  // As long as one step of the drawing, so that ten pictures a second look like motion.
  const tail = Math.max(0.07, 14 / length);
  for (const t of stream.particles) {
    const head = Math.min(1, t);
    const fade = Math.min(1, head * 6, (1.04 - t) * 8);
    if (fade <= 0) continue;
    streak(canvas, c, Math.max(0, head - tail), head, width * 0.5 + 1, 0.4 * fade * weight);
    streak(canvas, c, Math.max(0, head - tail * 0.45), head, width * 0.5 + 2, fade * weight);
  }
}

function streak(
  canvas: CanvasRenderingContext2D,
  c: Curve,
  tail: number,
  head: number,
  width: number,
  alpha: number,
): void {
  const [x0, y0] = at(c, tail);
  const [x1, y1] = at(c, head);
  canvas.globalAlpha = alpha;
  canvas.lineWidth = width;
  canvas.beginPath();
  canvas.moveTo(x0, y0);
  canvas.lineTo(x1, y1);
  canvas.stroke();
}

/** Hairline of a link on which nothing flows. */
export function paintIdle(canvas: CanvasRenderingContext2D, from: Place, to: Place, color: string): void {
  canvas.strokeStyle = color;
  canvas.globalAlpha = 1;
  canvas.lineWidth = 1;
  canvas.setLineDash([2, 5]);
  canvas.beginPath();
  canvas.moveTo(from.x, from.y);
  canvas.lineTo(to.x, to.y);
  canvas.stroke();
  canvas.setLineDash([]);
}
