/** Control messages: JSON objects with a type. */
import type { Arrival } from '../netstat/arrival.ts';
import {
  MalformedError,
  maxArrivals,
  maxClock,
  maxControl,
  maxLoad,
  maxMarks,
  maxMessages,
  maxSize,
  maxTime,
  minInterval,
  minLoad,
  probeSize,
} from './quality.ts';

const directions = ['up', 'down', 'echo'] as const;
const types = ['run', 'load', 'ready', 'sent', 'record', 'end'] as const;
const codes = ['limit', 'malformed', 'busy', 'bytes', 'ending'] as const;

export interface Run {
  type: 'run';
  stream: number;
  direction: (typeof directions)[number];
  messages: number;
  interval_us: number;
  size: number;
}

export type ErrorCode = (typeof codes)[number];

/** A load that gives way. */
export interface Load {
  type: 'load';
  stream: number;
  direction: 'up' | 'down';
  time_us: number;
}

export type Control =
  | Run
  | Load
  | { type: 'ready'; stream: number }
  | { type: 'sent'; stream: number }
  | { type: 'record'; stream: number; arrivals: Arrival[] }
  /** marks: how many packets came with a DSCP; without it the server cannot tell. */
  | { type: 'end'; stream: number; marks?: (readonly [dscp: number, packets: number])[] }
  /** Without a stream it is about the connection. */
  | { type: 'error'; stream?: number; code: ErrorCode; text: string };

export const encodeControl = (control: Control): string => JSON.stringify(control);

type Members = Record<string, unknown>;

const bad = (field: string) => new MalformedError('field', field);

/** A whole number in its range; undefined: it is none. */
function whole(value: unknown, least: number, most: number): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
    ? value + 0
    : undefined;
}

/** A list of lists of whole numbers, each from 0 to the bound of its column; undefined: it is none. */
function rows(value: unknown, most: number, ...bounds: number[]): number[][] | undefined {
  if (!Array.isArray(value) || value.length > most) return undefined;
  const all: number[][] = [];
  for (const list of value) {
    if (!Array.isArray(list) || list.length !== bounds.length) return undefined;
    const row = list.map((cell, i) => whole(cell, 0, bounds[i]!));
    if (row.includes(undefined)) return undefined;
    all.push(row as number[]);
  }
  return all;
}

function membersOf(text: string): Members {
  if (text.length > maxControl || new TextEncoder().encode(text).length > maxControl) throw new MalformedError('long');
  let members: unknown;
  try {
    members = JSON.parse(text);
  } catch {
    throw new MalformedError('json');
  }
  if (typeof members !== 'object' || members === null || Array.isArray(members)) throw new MalformedError('json');
  return members as Members;
}

/** Throws a `MalformedError`. */
export function decodeControl(text: string): Control {
  const members = membersOf(text);
  const type = Object.hasOwn(members, 'type') ? members.type : undefined;
  const stream = whole(members.stream, 0, 65_535);
  if (type === 'error') return refusal(members, stream);
  if (!types.some((t) => t === type)) throw new MalformedError('type');
  if (stream === undefined) throw bad('stream');
  switch (type as (typeof types)[number]) {
    case 'run':
      return runOf(members, stream);
    case 'load':
      return loadOf(members, stream);
    case 'record': {
      const arrivals = rows(members.arrivals, maxArrivals, maxMessages - 1, maxClock, maxClock);
      if (!arrivals?.length) throw bad('arrivals');
      return { type: 'record', stream, arrivals: arrivals as unknown as Arrival[] };
    }
    case 'end': {
      if (!Object.hasOwn(members, 'marks')) return { type: 'end', stream };
      const marks = rows(members.marks, maxMarks, 63, maxClock);
      if (!marks || marks.some(([, packets]) => packets === 0)) throw bad('marks');
      return { type: 'end', stream, marks: marks as unknown as [number, number][] };
    }
    default:
      return { type: type as 'ready' | 'sent', stream };
  }
}

function runOf(members: Members, stream: number): Run {
  const direction = directions.find((d) => d === members.direction);
  if (!direction) throw bad('direction');
  const messages = whole(members.messages, 1, maxMessages);
  if (messages === undefined) throw bad('messages');
  const interval = whole(members.interval_us, minInterval, maxTime);
  if (interval === undefined || messages * interval > maxTime) throw bad('interval_us');
  const size = whole(members.size, probeSize, maxSize);
  if (size === undefined) throw bad('size');
  return { type: 'run', stream, direction, messages, interval_us: interval, size };
}

function loadOf(members: Members, stream: number): Load {
  const { direction } = members;
  if (direction !== 'up' && direction !== 'down') throw bad('direction');
  const time = whole(members.time_us, minLoad, maxLoad);
  if (time === undefined) throw bad('time_us');
  return { type: 'load', stream, direction, time_us: time };
}

function refusal(members: Members, stream: number | undefined): Control {
  const named = Object.hasOwn(members, 'stream');
  if (named && stream === undefined) throw bad('stream');
  const code = codes.find((c) => c === members.code);
  if (!code) throw bad('code');
  if (typeof members.text !== 'string') throw bad('text');
  return { type: 'error', ...(named && { stream: stream! }), code, text: members.text };
}
