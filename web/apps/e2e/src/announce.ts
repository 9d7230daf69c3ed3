import type { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Server from 'bittorrent-tracker/server';
import { build } from 'esbuild';
import { dataDir, freePort, metrics, Service, sum } from './service.ts';

/** A tracker of the WebTorrent protocol, which may be several processes. */
export interface Announce {
  readonly name: string;
  /** Its addresses, as clients are given them: one for each of its processes. */
  readonly urls: string[];
  /** A tracker's metric, for those with a label; 0 where there are none. */
  metric(name: string, ...labels: string[]): Promise<number>;
  stop(): Promise<void>;
}

const token = 'sesame';

/** `count` times `leeway tracker`, one cluster, with /announce for pages of `hosts`. */
export async function startLeeway(hosts: string[], count = 1): Promise<Announce> {
  const data = dataDir();
  const bus = `127.0.0.1:${await freePort()}`;
  const services: Service[] = [];
  const [urls, admins]: [string[], string[]] = [[], []];
  for (let n = 0; n < count; n++) {
    const [listen, admin] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    const config = data.write(
      `tracker-${n}.json`,
      JSON.stringify({
        sites: [{ name: 'e2e', hosts }],
        tracker: {
          ...{ listen, admin, data_dir: join(data.path, `tracker-${n}`), secret: 'A'.repeat(43) },
          webtorrent: { token, interval: '61s' },
        },
        // The first one's process has the bus.
        nats: n === 0 ? { listen: bus } : { url: `nats://${bus}` },
      }),
    );
    services.push(await Service.start(['tracker', '--config', config], `http://${admin}/readyz`));
    urls.push(`ws://${listen}/announce?token=${token}`);
    admins.push(`http://${admin}`);
  }
  return {
    name: count === 1 ? 'leeway' : `${count} × leeway`,
    urls,
    async metric(name, ...labels) {
      const all = await Promise.all(admins.map(metrics));
      return all.reduce((total, samples) => total + sum(samples, name, ...labels), 0);
    },
    async stop() {
      for (const service of services.reverse()) await service.stop();
      data.remove();
    },
  };
}

/** `bittorrent-tracker`'s own server: what passes with it, too, tests the protocol and not us. */
export async function startReference(): Promise<Announce> {
  const server = new Server({ http: false, udp: false, stats: false });
  server.on('warning', () => {}); // what it says of clients that leave
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    name: 'bittorrent-tracker',
    urls: [`ws://127.0.0.1:${(server.http.address() as AddressInfo).port}/announce?token=${token}`],
    metric: async () => 0,
    async stop() {
      server.http.closeAllConnections();
      await new Promise<void>((resolve) => server.close(resolve));
    },
  };
}

/** What is used of `bittorrent-tracker`'s client. Events: update, peer, scrape, warning, error. */
export interface Client extends EventEmitter {
  start(options?: object): void;
  update(options?: object): void;
  complete(options?: object): void;
  stop(options?: object): void;
  scrape(options?: object): void;
  destroy(done: () => void): void;
}

export type ClientClass = new (options: {
  infoHash: string;
  peerId: string;
  announce: string[];
  port: number;
  getAnnounceOpts?: () => object;
}) => Client;

/** `bittorrent-tracker`'s client for Node, with descriptions.ts in the place of WebRTC. */
export async function clientClass(): Promise<ClientClass> {
  const data = dataDir();
  const outfile = join(data.path, 'client.cjs');
  try {
    await build({
      stdin: { contents: "export { default } from 'bittorrent-tracker/client'", resolveDir: import.meta.dirname },
      outfile,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      external: ['bufferutil', 'utf-8-validate'],
      alias: { 'webrtc-polyfill': join(import.meta.dirname, 'descriptions.ts') },
    });
    return createRequire(outfile)(outfile).default as ClientClass;
  } finally {
    data.remove();
  }
}
