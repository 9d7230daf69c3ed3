import type { Leeway, TokenSource } from '@leeway/core';
import type { Finding } from './finding.ts';

export interface DoctorOptions {
  /** The tracker's WebSocket address, as `createLeeway` has it. */
  tracker: string;
  site?: string;
  token?: TokenSource;
  /** Loads one of the drop-in's scripts once more. */
  load?(part: 'engine'): Promise<unknown>;
  /** The drop-in's looks for players. */
  hooks?: readonly { readonly found: boolean }[];
  /** Gets each finding as soon as it and those before it are there. */
  heard?(finding: Finding): void;
}

/** The parts of `welcome` that are looked at (spec/tracker-protocol.md). */
export interface Greeting {
  server_time_ms: number;
  site: { name: string; hosts: string[] };
  ice_servers: { urls: string[]; username?: string; credential?: string }[];
  verify_keys: unknown[];
  policy: { role: string };
}

/** What the checks leave to those after them. */
export interface Examination {
  readonly leeway: Leeway;
  readonly options: DoctorOptions;
  /** By the tracker's check; undefined: its socket did not open. */
  socket?: WebSocket;
  /** By `welcome`; undefined: there was none. */
  greeting?: Greeting;
  /** How far the tracker's clock is ahead, ms. */
  ahead?: number;
}

/** Resolves after a time. */
export const after = (ms: number): Promise<undefined> =>
  new Promise((resolve) => setTimeout(() => resolve(undefined), ms));

/** The origin that the tracker is asked about: the page's, or the one that its own page `/doctor` asks for. */
export function pageOrigin({ options }: Examination): string {
  return trackerUrl(options.tracker)?.searchParams.get('page') ?? location.origin;
}

export function trackerUrl(text: string): URL | undefined {
  try {
    return new URL(text.replace(/^http/i, 'ws'));
  } catch {
    return undefined;
  }
}

/** Without what may be secret. */
export const plain = ({ origin, pathname }: URL): string => `${origin}${pathname}`;
