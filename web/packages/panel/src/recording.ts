/** A recording of the schedule (spec/schedule.md, "Recordings"), step by step: what it knew, and what it decided. */

import { element } from './element.ts';
import { bytes, rate } from './text.ts';

interface Part {
  type: string;
  segment?: string;
  piece?: number;
  peer?: string;
  reason?: string;
  at_us?: number;
}

/** As much of a step as is shown. */
export interface Step {
  input: {
    now_us: number;
    off: string | null;
    segments: {
      id: string;
      deadline_us: number;
      asked_us: number;
      certificate: string;
      pieces: number;
      have: number[];
      origin: string;
    }[];
    peers: { id: string; role: string; rate: number; queued: number }[];
  };
  actions: Part[];
}

type Table = [name: string, head: string[], rows: string[][]];

/** The steps of a file, one a line. Throws if it is no recording. */
export const readRecording = (text: string): Step[] => {
  const steps = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Step);
  for (const step of steps) tablesOf(step, step);
  return steps;
};

const short = (id = '') => id.slice(0, 8);

/** The tables of a step. Moments of the past count from the first step, moments to come from this step. */
export const tablesOf = ({ input, actions }: Step, first: Step): Table[] => {
  const seconds = (us: number, from: number) => `${((us - from) / 1e6).toFixed(1)} s`;
  const now = input.now_us;
  /** The pieces that a row is of, by what else is in it. */
  const decided = new Map<string, { cells: string[]; pieces: number[] }>();
  for (const { type, segment, piece, peer, reason, at_us } of actions) {
    const why = at_us ? `in ${seconds(at_us, now)}` : (reason ?? '');
    const cells = [type, short(segment), short(peer), why];
    const row = decided.get(cells.join()) ?? { cells, pieces: [] };
    decided.set(cells.join(), row);
    if (piece !== undefined) row.pieces.push(piece);
  }
  return [
    [
      `At ${seconds(now, first.input.now_us)}${input.off ? `, off: ${input.off}` : ''}`,
      ['decided', 'segment', 'peer', 'why', 'pieces'],
      [...decided.values()].map(({ cells, pieces }) => [...cells, pieces.join(', ')]),
    ],
    [
      'Segments',
      ['segment', 'asked', 'due', 'certificate', 'in hand', 'origin'],
      input.segments.map((s) => [
        short(s.id),
        s.asked_us < 0 ? 'no' : `${seconds(now, s.asked_us)} ago`,
        `in ${seconds(s.deadline_us, now)}`,
        s.certificate,
        `${s.have.length} / ${s.pieces}`,
        s.origin,
      ]),
    ],
    [
      'Peers',
      ['peer', 'role', 'rate', 'queued'],
      input.peers.map((p) => [short(p.id), p.role, rate(p.rate), bytes(p.queued)]),
    ],
  ];
};

/** Shows the steps in a place, with what goes through them. */
export function showRecording(place: Element, steps: Step[], table: (...of: Table) => Node[]): void {
  const view = element('div');
  const show = () => {
    const step = steps[Number(at.value)]!;
    view.replaceChildren(...tablesOf(step, steps[0]!).flatMap((one) => table(...one)));
  };
  const last = steps.length - 1;
  const at = element('input', { type: 'range', min: 0, max: last, value: 0, oninput: show, 'aria-label': 'Step' });
  place.replaceChildren(at, view);
  show();
}
