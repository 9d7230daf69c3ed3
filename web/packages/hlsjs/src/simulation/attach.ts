/** Gives a player of the simulation our loader, as attachHls does, over an engine alone. */
import type { Playback } from '../../../core/src/index.ts';
import type { Clock, Engine } from '../../../core/src/ports.ts';
import type { Line } from '../../../core/src/transfer/line.ts';
import type { HlsLike } from '../hls.ts';
import { wrapLoader } from '../loader.ts';
import type { Player } from './player.ts';

export function attachTo(player: Pick<Player, 'url' | 'config'>, engine: Engine, line: Line, clock: Clock): void {
  const playback: Playback = {
    manifest: player.url,
    active: true,
    alone: false,
    load: (request, onProgress = () => {}) => engine.load(request, onProgress),
    bypass: (bytes, ms) => line.bypassed(bytes, ms!),
    capacity: line.told,
    observe() {},
    setPaused() {},
    close() {},
  };
  player.config.fLoader = wrapLoader(player.config.loader, {
    hls: player as unknown as HlsLike,
    clock,
    playback: () => playback,
    caught(_, error) {
      throw error;
    },
  });
}
