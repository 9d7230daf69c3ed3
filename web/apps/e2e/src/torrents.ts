import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Origin } from './origin.ts';
import { root } from './paths.ts';

const modules = join(root, 'web/node_modules');

/** What a page with one of the npm clients has in its window, for tests. */
export interface TorrentWindow {
  // biome-ignore lint/suspicious/noExplicitAny: the package has no types
  WebTorrent: any;
  // biome-ignore lint/suspicious/noExplicitAny: hls.js with p2p-media-loader mixed in
  P2PHls: any;
  __contacts: Contacts;
  __traffic: Traffic;
  /** Goes to another rendition. */
  __level(level: number): void;
  /** Loads the stream anew, as a page does whose player was reset. */
  __again(): void;
}

/** The servers that a page's scripts turned to. */
export interface Contacts {
  sockets: string[];
  ice: string[];
}

/** Bytes of segments as p2p-media-loader reports them. */
export interface Traffic {
  http: number;
  p2p: number;
  uploaded: number;
  peers: string[];
  warnings: string[];
}

/** WebTorrent's bundle for browsers; empty where npm could not reach its registry (./run). */
export const bundle = process.env.LEEWAY_WEBTORRENT;

/** Puts a page for each of the npm clients on an origin, with the files that the packages ship for browsers. */
export function installTorrentPages(origin: Origin): void {
  const file = (path: string, name: string) => {
    const body = readFileSync(name);
    origin.pages.set(path, () => body);
  };
  if (bundle) file('/webtorrent.js', bundle);
  file('/hls.js', join(modules, 'hls.js/dist/hls.min.js'));
  for (const name of ['p2p-media-loader-core', 'p2p-media-loader-hlsjs']) {
    file(`/${name}.js`, join(modules, name, `dist/${name}.es.min.js`));
  }
  origin.pages.set('/favicon.ico', () => '');
  origin.pages.set('/torrent.html', () =>
    page('', "import WebTorrent from '/webtorrent.js';", 'window.WebTorrent = WebTorrent;'),
  );
  origin.pages.set('/p2pml.html', () =>
    page(
      `<script src="/hls.js"></script>
<script type="importmap">{"imports": {"p2p-media-loader-core": "/p2p-media-loader-core.js"}}</script>
<video muted playsinline width="854" height="480"></video>`,
      "import { HlsJsP2PEngine } from '/p2p-media-loader-hlsjs.js';",
      'window.P2PHls = HlsJsP2PEngine.injectMixin(window.Hls);',
    ),
  );
}

function page(body: string, ...script: string[]): string {
  return `<!doctype html><meta charset="utf-8"><title>e2e</title>${body}<script type="module">${script.join('\n')}</script>`;
}

/** Runs in a page before its scripts: notes every WebSocket and every STUN or TURN server. */
export function watchContacts(): void {
  const contacts: Contacts = { sockets: [], ice: [] };
  (window as unknown as TorrentWindow).__contacts = contacts;
  window.WebSocket = class extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      contacts.sockets.push(this.url);
    }
  };
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(configuration?: RTCConfiguration) {
      super(configuration);
      contacts.ice.push(...(configuration?.iceServers ?? []).flatMap(({ urls }) => urls));
    }
  };
}

/** Runs in a page: seeds a file of `size` bytes that look random. */
export async function seed({ announce, size }: { announce: string; size: number }) {
  const bytes = new Uint8Array(size);
  for (let i = 0, x = 1; i < size; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    bytes[i] = x >>> 24;
  }
  const { WebTorrent } = window as unknown as TorrentWindow;
  const client = new WebTorrent({ tracker: { rtcConfig: { iceServers: [] } } });
  // biome-ignore lint/suspicious/noExplicitAny: the package has no types
  const torrent = await new Promise<any>((resolve, reject) => {
    client.on('error', reject);
    client.seed(new File([bytes], 'film.bin'), { announce: [announce] }, resolve);
  });
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return { infoHash: torrent.infoHash as string, announce: torrent.announce as string[], digest: digest.join() };
}

/** Runs in a page: fetches a torrent of one file by its info_hash. */
export async function leech({ announce, infoHash }: { announce: string; infoHash: string }) {
  const { WebTorrent } = window as unknown as TorrentWindow;
  const client = new WebTorrent({ tracker: { rtcConfig: { iceServers: [] } } });
  // biome-ignore lint/suspicious/noExplicitAny: the package has no types
  const torrent = await new Promise<any>((resolve, reject) => {
    client.on('error', reject);
    client.add(infoHash, { announce: [announce] }).on('done', function (this: unknown) {
      resolve(this);
    });
  });
  const bytes = await (await torrent.files[0].blob()).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return {
    digest: digest.join(),
    size: bytes.byteLength,
    received: torrent.received as number,
    wires: torrent.wires.map(({ type }: { type: string }) => type) as string[],
  };
}

/** Runs in a page: plays a film with hls.js and p2p-media-loader. */
export function play({ announce, manifest }: { announce: string; manifest: string }): void {
  const page = window as unknown as TorrentWindow;
  const traffic: Traffic = { http: 0, p2p: 0, uploaded: 0, peers: [], warnings: [] };
  page.__traffic = traffic;
  const hls = new page.P2PHls({
    maxBufferLength: 12,
    maxMaxBufferLength: 12,
    p2p: {
      core: { announceTrackers: [announce], rtcConfig: { iceServers: [] } },
      // biome-ignore lint/suspicious/noExplicitAny: the package's types are not for the page
      onHlsJsCreated({ p2pEngine }: any) {
        p2pEngine.addEventListener('onChunkDownloaded', (bytes: number, source: 'http' | 'p2p') => {
          traffic[source] += bytes;
        });
        p2pEngine.addEventListener('onChunkUploaded', (bytes: number) => {
          traffic.uploaded += bytes;
        });
        p2pEngine.addEventListener('onPeerConnect', ({ peerId }: { peerId: string }) => traffic.peers.push(peerId));
        p2pEngine.addEventListener('onTrackerWarning', ({ warning }: { warning: Error }) =>
          traffic.warnings.push(String(warning)),
        );
      },
    },
  });
  page.__level = (level) => {
    hls.loadLevel = level;
  };
  page.__again = () => hls.loadSource(manifest);
  const video = document.querySelector('video')!;
  hls.on('hlsManifestParsed', () => page.__level(1));
  hls.loadSource(manifest);
  hls.attachMedia(video);
  video.play().catch(() => {});
}
