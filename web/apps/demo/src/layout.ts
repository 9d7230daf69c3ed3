/** A participant of the picture, without a place. */
export interface Participant {
  id: string;
  kind: 'origin' | 'seed' | 'you' | 'viewer';
}

/** Where a participant stands: its center and the size of its figure, in CSS pixels. */
export interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Height kept free below each figure for its two lines of text. */
export const labelHeight = 32;
/** Room for half a label beside a figure's center. */
const labelReach = 50;
/** Others beyond this number are not drawn. */
export const maxOthers = 12;

/** Angles of the fan, degrees from the horizontal, by the number of other viewers. */
const fans: number[][] = [[], [0], [-40, 40], [-58, 0, 58], [-66, -23, 23, 66], [-72, -37, 0, 37, 72]];

/** Up to this many other viewers stand in one fan; more are a crowd in two columns. */
export const fanned = fans.length - 1;

/**
 * Origin and seeds stand in a column on the left, this viewer in the middle, the others fan out on the right: bytes come
 * in from the left and spread to the right.
 */
export function arrange(participants: Participant[], width: number, height: number): Map<string, Place> {
  const places = new Map<string, Place>();
  const sources = participants.filter((p) => p.kind === 'origin' || p.kind === 'seed');
  const others = participants.filter((p) => p.kind === 'viewer').slice(0, maxOthers);
  const usable = height - labelHeight;

  const icon = clamp(usable * 0.2, 26, 52);
  sources.forEach((p, i) => {
    const y = ((i + 0.5) / sources.length) * usable * 0.9 + usable * 0.05;
    places.set(p.id, { x: Math.max(labelReach * 0.8, width * 0.1), y, w: icon, h: icon });
  });

  const yours = screen(clamp(Math.min(width * 0.25, usable * 0.62), 64, 150));
  const you = { x: others.length === 0 ? width * 0.6 : width * 0.45, y: usable / 2, ...yours };
  for (const p of participants) if (p.kind === 'you') places.set(p.id, you);

  const { rows, size, apart } = sizes(others.length, width, height);
  const fan = fans[others.length];
  others.forEach((p, i) => {
    if (fan !== undefined) {
      const angle = (fan[i]! * Math.PI) / 180;
      const reachX = width - Math.max(size.w / 2 + 4, labelReach) - you.x;
      const reachY = usable / 2 - size.h / 2 - clamp(usable * 0.03, 2, 8); // apart from the buttons above
      const y = you.y + (reachY * Math.sin(angle)) / Math.sin((Math.abs(fan[0]!) || 90) * (Math.PI / 180));
      places.set(p.id, { x: you.x + reachX * (0.55 + 0.45 * Math.cos(angle)), y, ...size });
      return;
    }
    const column = i % 2;
    const y = ((Math.floor(i / 2) + 0.5 + column * 0.25) / (rows + 0.25)) * usable;
    const x = width - labelReach - (1 - column) * apart;
    places.set(p.id, { x, y, ...size });
  });
  return places;
}

/** Rows of other viewers, their figures, and how far apart the columns of a crowd are. */
function sizes(others: number, width: number, height: number) {
  const usable = height - labelHeight;
  const rows = others <= fanned ? others : Math.ceil(others / 2);
  const rowHeight = usable / Math.max(rows, 2);
  const size = screen(clamp(Math.min(width * 0.17, (rowHeight - labelHeight) * 1.5), 36, 104));
  return { rows, size, apart: Math.max(size.w * 1.3, 1.5 * labelReach) };
}

/** Whether there is room below each other viewer for what it gives or takes, beside its name. */
export function detailed(others: number, width: number, height: number): boolean {
  const drawn = Math.min(others, maxOthers);
  if (drawn <= fanned) return true;
  const { rows, size, apart } = sizes(drawn, width, height);
  return (height - labelHeight) / (rows + 0.25) >= size.h + labelHeight && apart >= size.w / 2 + labelReach - 2;
}

function screen(w: number): { w: number; h: number } {
  return { w: Math.round(w), h: Math.round((w * 9) / 16) };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
