/** What an engine is handed: the first script has it anyway, or has the room for it (decision 0015). Nothing here keeps a state of the page's. */
import { createEmitter } from './events.ts';
import { hexToId } from './session/base64.ts';
import { snapshotCache, snapshotPeer } from './stats/snapshot.ts';
import { createStats } from './stats/stats.ts';
import { createAgreement } from './transfer/agreement.ts';
import { createLook } from './transfer/look.ts';

export const createKit = () => ({
  stats: createStats(),
  createAgreement,
  createEmitter,
  createLook,
  hexToId,
  snapshotCache,
  snapshotPeer,
});

export type Kit = ReturnType<typeof createKit>;
