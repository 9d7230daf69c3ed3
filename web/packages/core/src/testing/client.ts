import { vi } from 'vitest';
import { createClient, type LeewayOptions } from '../client.ts';
import type { Environment } from '../environment.ts';
import type { Notice } from '../events.ts';
import type { SegmentRequest } from '../ports.ts';
import { SiteRules } from '../segment/index.ts';
import type { EngineContext } from '../title/options.ts';
import { FakeClock, settle } from './clock.ts';
import { FakeConnection } from './connection.ts';
import { FakeEngine } from './engine.ts';
import { FakeTracker, swarm, welcome } from './socket.ts';

export const manifest = 'https://video.example.com/film/master.m3u8';

/** A client with everything around it faked, and handles on all of it. */
export function setUp(options: Partial<LeewayOptions> = {}, page: Partial<Environment> = {}) {
  const clock = new FakeClock();
  const tracker = new FakeTracker();
  const engines: FakeEngine[] = [];
  const contexts: EngineContext[] = [];
  const connections: FakeConnection[] = [];
  const listeners = {
    sleep: (_asleep: boolean) => {},
    forbidden: (_what: { blockedURI: string; effectiveDirective: string }) => {},
    visibility: () => {},
  };
  /** How often the engine's script was asked for, whether it comes, and how long it takes. */
  const loads = { engine: 0, failing: false, takesMs: 0, cleared: 0 };
  const released = vi.fn();
  let bytes = 0;
  const environment: Environment = {
    clock,
    crypto: { digest: async () => new Uint8Array(32), verify: async () => true },
    random: () => 0.5,
    randomBytes: (length) => new Uint8Array(length).fill(++bytes),
    openSocket: tracker.open,
    createConnection: (configuration) => {
      const connection = new FakeConnection(configuration);
      connections.push(connection);
      return connection as unknown as RTCPeerConnection;
    },
    missing: () => null,
    onPublicHost: () => true,
    localAccess: async () => true,
    line: () => ({ metered: false, unknown: false, coarse: false }),
    battery: () => false,
    hidden: () => false,
    onVisibility: (f) => {
      listeners.visibility = f;
      return released;
    },
    onSleep: (f) => {
      listeners.sleep = f;
      return released;
    },
    onForbidden: (f) => {
      listeners.forbidden = f;
      return released;
    },
    ...page,
  };
  const leeway = createClient(
    { tracker: 'wss://tracker.example.com', ...options },
    {
      environment,
      version: 'test',
      loadEngine: async () => {
        loads.engine++;
        if (loads.takesMs) await new Promise<void>((resolve) => clock.setTimer(resolve, loads.takesMs));
        if (loads.failing) throw new Error('no script');
        return (context) => {
          contexts.push(context);
          engines.push(new FakeEngine(context));
          return engines.at(-1)!;
        };
      },
      clear: async () => {
        loads.cleared++;
        if (loads.failing) throw new Error('no script');
      },
      rules: ({ site }) => new SiteRules(site),
    },
  );
  const notices: Notice[] = [];
  leeway.on('notice', (notice) => notices.push(notice));
  const sent = (type: string) => tracker.sockets.flatMap((socket) => socket.sent.filter((m) => m.type === type));
  const welcomed = async (more: object = {}) => {
    tracker.last.handlers.open();
    await settle();
    tracker.last.say(welcome(more));
  };
  const enter = async (more: object = {}) => {
    // Connecting leaves the player's first requests alone, joining its first picture.
    await clock.advance(5_000);
    await welcomed(more);
    await clock.advance(1_000);
  };
  const joined = async () => {
    await settle();
    tracker.last.say({ type: 'joined', id: sent('join').at(-1)!.id, swarm, viewers: 2, seeds: 1 });
    await settle();
  };
  const codes = () => notices.map(({ code }) => code);
  return {
    leeway,
    clock,
    tracker,
    engines,
    loads,
    contexts,
    connections,
    listeners,
    released,
    codes,
    sent,
    welcomed,
    enter,
    joined,
  };
}

/** What a player asks for: one segment of the film. `deadline`: what is in hand, ms. */
export function request(deadline = 20_000, origin?: SegmentRequest['origin']): SegmentRequest {
  return {
    url: 'https://video.example.com/film/1.ts',
    startMs: 60_000,
    durationMs: 4_000,
    rendition: 'main-0',
    bitrate: 1_000_000,
    adaptive: false,
    deadlineMs: () => deadline,
    upcoming: [],
    origin: origin ?? (async () => ({ data: new ArrayBuffer(100), status: 200, url: 'x' })),
  };
}
