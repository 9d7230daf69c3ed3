import type { Action } from '../schedule/action.ts';
import { decide } from '../schedule/decide.ts';
import type { ScheduleInput } from '../schedule/input.ts';

export interface Recorded {
  input: ScheduleInput;
  actions: Action[];
}

/** Keeps the last inputs of the schedule, as text, so that a report from the field becomes a vector. */
export const createRecorder = (limit = 200) => {
  const lines: string[] = [];
  return {
    record(input: ScheduleInput, actions: Action[]): void {
      lines.push(JSON.stringify({ input, actions }));
      if (lines.length > limit) lines.shift();
    },
    /** One JSON object a line. */
    dump: (): string => lines.join('\n'),
  };
};

/** Decides again what was recorded; returns the records whose actions differ now. */
export const replay = (dump: string): Recorded[] =>
  dump
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Recorded)
    .filter((r) => JSON.stringify(decide(r.input)) !== JSON.stringify(r.actions));
