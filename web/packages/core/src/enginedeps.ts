/** What an engine is made of. */

import type { Background } from './background/index.ts';
import type { OpenDisk } from './disk/disk.ts';
import type { Clock, Crypto } from './ports.ts';
import type { Action } from './schedule/action.ts';
import type { Policy, ScheduleInput } from './schedule/input.ts';
import type { EngineContext } from './title/options.ts';
import type { Agreement } from './transfer/agreement.ts';
import type { AheadRules } from './transfer/ahead.ts';
import type { Seldom } from './transfer/seldom.ts';
import type { SilenceHost } from './transfer/silence.ts';

/** What its title says, and what it has of the page. */
export interface EngineDeps extends Omit<EngineContext, 'ahead'>, Pick<SilenceHost, 'onMoved'> {
  clock: Clock;
  crypto: Crypto;
  cacheBytes?: number;
  agreement?: Agreement;
  policy?: Partial<Policy>;
  /** What paces the uploads of this host, if anything does. */
  background?(): Background;
  /** What the site and the device say of fetching ahead; left out: nothing is. */
  ahead?(): AheadRules;
  /** Has the script come of what is seldom needed; left out: there is none of that. */
  loadSeldom?(): Promise<Seldom>;
  /** Has the script come that keeps segments on the disk. It is asked for where the site lets a page do so. */
  loadDisk?(): Promise<OpenDisk>;
  /** The engine has stopped. */
  ended?(): void;
  /** Sees every input of the schedule and what came of it. */
  record?(input: ScheduleInput, actions: Action[]): void;
}
