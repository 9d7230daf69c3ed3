/** What a title, and its engine, are made with. */

import type { Environment } from '../environment.ts';
import type { Emitter, LeewayEvents, NoticeCode } from '../events.ts';
import type { Inspection } from '../link/inspect.ts';
import type { Engine, EngineEvents } from '../ports.ts';
import type { SiteRules } from '../segment/index.ts';
import type { Welcome } from '../session/messages.ts';
import type { TrackerSession } from '../session/session.ts';
import type { Stats } from '../stats/stats.ts';
import type { AheadRules } from '../transfer/ahead.ts';
import type { Credit } from '../transfer/credit.ts';
import type { Line } from '../transfer/line.ts';

/** What an engine is made from. */
export interface EngineContext {
  rules: SiteRules;
  /** Own peer ID, hex; read again whenever it is needed, since a lost session may bring a new one. */
  self(): string;
  /** Swarm ID, hex. */
  swarm: string;
  title?: string;
  /** Whether this viewer sends to others. */
  uploads(): boolean;
  /** What is known of the line to the origin. */
  line: Line;
  /** Where its segments came from, and what came before the engine was there. */
  stats: Stats;
  /** How long requests may wait. */
  credit: Credit;
  /** What the site and the device say of fetching ahead. */
  ahead(): AheadRules;
  /** Another socket to the tracker, soon. */
  hurry(woke?: boolean): void;
  /** Says something that the page should know; the title plays on. */
  notice(code: NoticeCode, message: string, hint: string): void;
  /** Tells the page, and the title itself. It never throws. */
  emit<K extends keyof EngineEvents>(event: K, detail: EngineEvents[K]): void;
}

/** Makes a title's engine. It comes in a script of its own, once there is a picture (decision 0015). */
export type CreateEngine = (context: EngineContext, environment: Environment) => Engine & Inspection;

/** The script that it comes in. */
export interface Script {
  /** Asks for it. What fails is seen when it is needed. */
  fetch(): void;
  /** What it makes engines with. Rejects where it does not come. */
  need(): Promise<CreateEngine>;
  /** It did not come: the next that needs it asks again. Says when to try that, ms. */
  failed(): number;
}

export interface TitleOptions {
  manifest: string;
  title?: string;
  /** The manifest is a file, and its title its key. */
  file?: boolean;
  /** What the page gives to join with, if anything. */
  token?: unknown;
  /** False: the page has something against fetching ahead, or against keeping segments on the disk. */
  prefetch?: boolean;
  disk?: boolean;
  environment: Environment;
  session: TrackerSession;
  /** Whether a title of the page is in a swarm, or has asked to join it by its name. */
  owned(swarm: string, name: string): boolean;
  /** How long requests may wait, in all titles of the session. */
  credit: Credit;
  rules(welcome: Welcome): SiteRules;
  /** The engine's script, for all titles. */
  script: Script;
  events: Emitter<LeewayEvents>;
  notice(code: NoticeCode, message: string, hint: string): void;
  caught(where: string, error: unknown): void;
}
