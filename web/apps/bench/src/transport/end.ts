/** One end of background links in a page: the twin of the bench's ends in Go. */

import type { BackgroundLane } from '../../../../packages/core/src/background/index.ts';
import { backgroundType, createBackground } from '../../../../packages/core/src/background/index.ts';
import { pageAlarm } from '../../../../packages/core/src/browser/alarm.ts';
import { browserEnvironment } from '../../../../packages/core/src/browser/environment.ts';
import { pageTabs } from '../../../../packages/core/src/browser/tabs.ts';
import { statsOf } from '../../../../packages/core/src/ledbat/host.ts';
import { dataHeader, pieceSize } from '../../../../packages/core/src/protocol/peer.ts';
import { createPageLink, type PageLink } from './link.ts';
import type { Setup, Signal, State, Word } from './parent.ts';

/** What a control message asks for, of so many bytes (32 bits): the letters are those of the ends in Go. */
const askForeground = 'f'.charCodeAt(0);
const askBackground = 'b'.charCodeAt(0);
/** The requests that parts answer to, so that the other end can tell what it waits for. */
const backgroundRequest = 0;
const foregroundRequest = 1;
/** More than any run sends. */
const endless = 2 ** 50;
/** How often a host says how it stands, ms. */
const step = 100;

interface LinkEnd {
  link: PageLink;
  lane?: BackgroundLane;
  /** Bytes that the other end still wants in the background, and in the foreground. */
  owed: number;
  urgent: number;
}

export interface End {
  begin(link: number): void;
  signal(link: number, signal: Signal): void;
  start(): void;
  burst(bytes: number): void;
}

export function createEnd(setup: Setup, say: (word: Word) => void): End {
  const { clock } = browserEnvironment();
  const alarm = pageAlarm(clock);
  const background = createBackground({ clock, alarm, tabs: pageTabs });
  const links = new Map<number, LinkEnd>();
  const payload = new Uint8Array(pieceSize);
  /** The foreground segment that was asked for: when, of what size, and how much of it is missing. */
  let burst = { at: 0, bytes: 0, missing: 0 };
  let begun = -1;

  const foreground = () => [...links.values()].some((e) => e.urgent > 0);

  const control = (e: LinkEnd, message: Uint8Array) => {
    if (message.length !== 5) return;
    const bytes = new DataView(message.buffer, message.byteOffset).getUint32(1);
    if (message[0] === askBackground) e.owed += bytes;
    else e.urgent += bytes;
    e.lane?.wake();
  };

  const data = (e: LinkEnd, message: Uint8Array) => {
    if (message[0] === backgroundType) {
      const part = e.lane?.data(message);
      ask();
      if (part?.request === foregroundRequest) arrived(part.payload.length);
    } else arrived(message.length - dataHeader);
  };

  /** So many bytes of a foreground segment have come. */
  const arrived = (bytes: number) => {
    if (burst.missing === 0) return;
    burst.missing -= bytes;
    if (burst.missing > 0) return;
    burst.missing = 0;
    say({ type: 'took', took: { bytes: burst.bytes, seconds: (clock.now() - burst.at) / 1000 } });
  };

  const create = (number: number): LinkEnd => {
    const link = createPageLink({
      signal: (signal) => say({ type: 'signal', link: number, signal }),
      open() {
        const source = {
          urgent: () => e.urgent > 0,
          // Foreground goes under the controller as everything that a viewer sends, and nothing of the background beside it.
          waiting: () => e.urgent > 0 || (e.owed > 0 && !foreground()),
          next(n: number) {
            const request = e.urgent > 0 ? foregroundRequest : backgroundRequest;
            const size = Math.min(n, e.urgent || e.owed, pieceSize);
            if (request === backgroundRequest) e.owed -= size;
            else {
              e.urgent -= size;
              if (!foreground()) for (const other of links.values()) other.lane?.wake();
            }
            return size > 0 ? { request, offset: 0, payload: payload.subarray(0, size) } : undefined;
          },
        };
        e.lane = background.add(link, source);
        say({ type: 'open', link: number });
      },
      control: (message) => control(e, message),
      ack(message) {
        if (e.lane?.ack(message) === false) say({ type: 'failed', why: 'an ack that cannot be' });
      },
      data: (message) => data(e, message),
      failed: (why) => say({ type: 'failed', why: `link ${number}: ${why}` }),
    });
    const e: LinkEnd = { link, owed: 0, urgent: 0 };
    links.set(number, e);
    return e;
  };

  const request = (lane: number, bytes: number): Uint8Array => {
    const message = new Uint8Array(5);
    message[0] = lane;
    new DataView(message.buffer).setUint32(1, bytes);
    return message;
  };

  let turn = 0;
  const again = alarm(() => ask());
  /** Asks for pieces over all links in turn, as the window has room for them. */
  const ask = () => {
    if (begun < 0 || !setup.asks || setup.send) return;
    const all = [...links.values()];
    for (;;) {
      const may = background.mayRequest();
      if (may !== true) {
        if (Number.isFinite(may)) again.set(may);
        return;
      }
      const e = all[turn++ % all.length]!;
      e.lane?.requested(pieceSize);
      e.link.sendControl(request(askBackground, pieceSize));
    }
  };

  const ms = (us: number) => us / 1000;
  const watch = alarm(() => {
    const { sent, acked, host } = background.sender;
    const s = statsOf(setup.send ? host : background.receiver);
    const state: State = {
      at_ms: Math.round(clock.now() - begun),
      law: s.state,
      window: s.window,
      flight: s.flight,
      sent,
      acked,
      base: ms(s.base),
      queuing: ms(s.queuing),
      target: ms(s.target),
      rtt: ms(s.rtt),
      slowdowns: s.slowdowns,
      parts: host.parts,
    };
    say({ type: 'state', state });
    watch.set(step - ((clock.now() - begun) % step));
  });

  return {
    begin: (number) => create(number).link.offer(),
    signal: (number, signal) => (links.get(number) ?? create(number)).link.signal(signal),
    start() {
      begun = clock.now();
      watch.set(step);
      ask();
      if (!setup.send || setup.asks) return;
      for (const e of links.values()) {
        e.owed = endless;
        e.lane?.wake();
      }
    },
    burst(bytes) {
      const e = links.get(0)!;
      burst = { at: clock.now(), bytes, missing: bytes };
      e.link.sendControl(request(askForeground, bytes));
    },
  };
}
