/** An engine that does what a test says. */

import { type Inspection, inspection } from '../link/inspect.ts';
import type {
  Engine,
  EngineEvents,
  EngineSnapshot,
  Greeting,
  PeerLink,
  ProgressFunction,
  Reason,
  Revocation,
  SegmentRequest,
  SegmentResult,
  StatsDelta,
  VerifyKey,
} from '../ports.ts';
import { createStats } from '../stats/stats.ts';
import type { EngineContext } from '../title/options.ts';

const emptyStats = (): StatsDelta => createStats().totals();

export class FakeEngine implements Engine, Inspection {
  readonly diagnose = inspection.diagnose;
  readonly pathOf = inspection.pathOf;
  readonly readDescription = inspection.readDescription;
  readonly readCandidate = inspection.readCandidate;
  readonly links: PeerLink[] = [];
  readonly loads: SegmentRequest[] = [];
  readonly adopted: [url: string, bytes: number][] = [];
  linking = false;
  seedLinking = false;
  off: Reason | null = null;
  keys: VerifyKey[] = [];
  revocations: Revocation[] = [];
  serverTime = 0;
  stopped = false;
  bps: number | undefined;
  delta: StatsDelta = emptyStats();
  /** What `load` does; by default the origin serves. */
  serve: (request: SegmentRequest, signal: AbortSignal, onProgress: ProgressFunction) => Promise<SegmentResult> =
    async (request, signal, onProgress) => {
      const { data, status } = await request.origin(signal, onProgress);
      return { data, status, source: 'origin', reason: 'urgent', bytes: { origin: data.byteLength, seed: 0, peer: 0 } };
    };

  constructor(private readonly context: Pick<EngineContext, 'emit'>) {}

  load(request: SegmentRequest, onProgress: ProgressFunction): ReturnType<Engine['load']> {
    this.loads.push(request);
    const controller = new AbortController();
    return { result: this.serve(request, controller.signal, onProgress), abort: () => controller.abort() };
  }
  greeting(): Greeting {
    return { said: [], held: [] };
  }
  adopt(request: { url: string }, data: Uint8Array): void {
    this.adopted.push([request.url, data.length]);
  }
  addLink(link: PeerLink): void {
    this.links.push(link);
  }
  setLinking(linking: boolean, seed: boolean): void {
    this.linking = linking;
    this.seedLinking = seed;
  }
  setOff(reason: Reason | null): void {
    this.off = reason;
  }
  setKeys(keys: VerifyKey[]): void {
    this.keys = keys;
  }
  revoke(revocations: Revocation[]): void {
    this.revocations.push(...revocations);
  }
  setServerTime(offsetMs: number): void {
    this.serverTime = offsetMs;
  }
  capacity(): number | undefined {
    return this.bps;
  }
  takeStats(): StatsDelta {
    const taken = this.delta;
    this.delta = emptyStats();
    return taken;
  }
  snapshot(): EngineSnapshot {
    return {
      peers: [],
      totals: emptyStats(),
      segments: 0,
      cacheBytes: 0,
      linking: this.linking,
      off: this.off,
      counters: {},
      ranges: [],
    };
  }
  say<K extends keyof EngineEvents>(event: K, detail: EngineEvents[K]): void {
    this.context.emit(event, detail);
  }
  stop(): void {
    this.stopped = true;
  }
}
