import type { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Server from 'bittorrent-tracker/server';
import { build } from 'esbuild';
import { dataDir, freePort, metrics, Service, sum } from './service.ts';

/** A tracker of the WebTorrent protocol. */
export interface Announce {
  readonly name: string;
  /** Its address, as clients are given it. */
  readonly url: string;
  /** A tracker's metric, for those with a label; 0 where there are none. */
  metric(name: string, ...labels: string[]): Promise<number>;
  stop(): Promise<void>;
}

const query = 'token=sesame';

/** `leeway tracker` with /announce for pages of `hosts`. */
export async function startLeeway(hosts: string[]): Promise<Announce> {
  const data = dataDir();
  const [listen, admin] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const config = data.write(
    'tracker.json',
    JSON.stringify({
      sites: [{ name: 'e2e', hosts }],
      tracker: {
        listen,
        admin,
        data_dir: join(data.path, 'tracker'),
        webtorrent: { token: 'sesame', interval: '61s' },
      },
      nats: { listen: `127.0.0.1:${await freePort()}` },
    }),
  );
  const service = await Service.start(['tracker', '--config', config], `http://${admin}/readyz`);
  return {
    name: 'leeway',
    url: `ws://${listen}/announce?${query}`,
    metric: async (name, ...labels) => sum(await metrics(`http://${admin}`), name, ...labels),
    async stop() {
      await service.stop();
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
    url: `ws://127.0.0.1:${(server.http.address() as AddressInfo).port}/announce?${query}`,
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
