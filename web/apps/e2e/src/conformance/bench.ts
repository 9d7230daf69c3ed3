import type { Asker as KitAsker, KitBrowser, KitOrigin } from '@leeway/conformance';
import type { Asker, Origin } from '../origin.ts';

const ports: Record<KitAsker, Asker> = { host: 'line1', guest: 'line2', server: 'seed' };
const names = new Map(Object.entries(ports).map(([name, port]) => [port, name as KitAsker]));

/** The suite's origin as the kit wants one. */
export function kitOrigin(origin: Origin): KitOrigin {
  return {
    url: (path, asker) => origin.url(path, ports[asker]),
    mount(prefix, answer) {
      origin.mounts.set(prefix, answer);
      return () => origin.mounts.delete(prefix);
    },
    requests: (prefix) =>
      origin.ledger
        .filter(({ path, asker }) => path.startsWith(prefix) && names.has(asker))
        .map(({ asker, ...request }) => ({ ...request, asker: names.get(asker)! })),
    fault({ path, askers, ...fault }) {
      const one = { ...fault, match: path, askers: askers.map((asker) => ports[asker]) };
      origin.faults.push(one);
      return () => {
        const at = origin.faults.indexOf(one);
        if (at >= 0) origin.faults.splice(at, 1);
      };
    },
  };
}

/** A browser that is started when a cell needs it first. */
export function kitBrowser(
  name: KitBrowser['name'],
  start: () => Promise<{ window(): Promise<unknown>; stop(): Promise<void> }>,
): KitBrowser & { stop(): Promise<void> } {
  let started: ReturnType<typeof start> | undefined;
  return {
    name,
    async window() {
      started ??= start();
      return (await started).window() as ReturnType<KitBrowser['window']>;
    },
    stop: async () => (await started)?.stop(),
  };
}
