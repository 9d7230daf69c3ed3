import Hls from 'hls.js';
import { offerManifest } from './chooser';
import { openViewer, showCredit } from './controls';
import { Dashboard } from './dashboard';
import { Delivery, type Notice } from './delivery';
import { readFilm, readMeta, readOptions } from './film';
import { offerPhone } from './phone';
import { Player } from './player';

declare global {
  interface Window {
    /** Where the drop-in looks for the page's player. */
    Hls?: typeof Hls;
    /** For tests: the player and what the viewer felt, in milliseconds and bytes. */
    __demo?: { hls: Hls; video: HTMLVideoElement; stats(): DemoStats };
  }
}

/** What `window.__demo.stats()` answers. */
export interface DemoStats {
  startup_ms: number | null;
  player_startup_ms: number | null;
  stalls: number;
  stall_ms: number;
  played_ms: number;
  played_bits: number;
  switches: number;
  latency_ms: number | null;
  segments: {
    url: string;
    level: number;
    sn: number;
    start_ms: number;
    duration_ms: number;
    bytes: number;
    source: string;
    reason: string | null;
  }[];
  notices: Notice[];
}

const options = readOptions(location.search);
const film = readFilm(document, options.src);
const tag = document.querySelector<HTMLScriptElement>('script[data-tracker]');
const delivery = new Delivery(options.leeway, () => tag?.dataset.failed === undefined);
const notices: Notice[] = [];
delivery.onNotice = (notice) => notices.push(notice);

window.Hls = Hls;
const player = new Player(document.querySelector<HTMLVideoElement>('#video')!, film.src, options);
const dashboard = new Dashboard({
  player,
  delivery,
  viewer: options.viewer,
  film: film.src,
  outages: readMeta(document, 'demo-outages') !== '',
  outageSeconds: options.outage,
});

document.title = `Viewer ${options.viewer} · Leeway`;
document.querySelector('#badge')!.textContent = `Viewer ${options.viewer}`;
showCredit(document.querySelector<HTMLElement>('#credit')!, film);
document.querySelector('#add')!.addEventListener('click', () => {
  dashboard.expect(openViewer(dashboard.nextViewer()));
});
offerManifest(document.querySelector<HTMLElement>('#choose')!, document.querySelector('#chooser')!);
offerPhone(
  document.querySelector<HTMLElement>('#phone')!,
  document.querySelector('#elsewhere')!,
  readMeta(document, 'demo-addresses'),
);
dashboard.start();

window.__demo = {
  hls: player.hls,
  video: player.video,
  stats() {
    const felt = player.experience();
    return {
      startup_ms: felt.startupMs ?? null,
      player_startup_ms: felt.playerStartupMs ?? null,
      stalls: felt.stalls,
      stall_ms: felt.stallMs,
      played_ms: felt.playedMs,
      played_bits: felt.playedBits,
      switches: felt.switches,
      latency_ms: felt.latencyMs ?? null,
      segments: player.segments.map((s) => {
        const delivered = dashboard.deliveredAs(s.url);
        return {
          url: s.url,
          level: s.level,
          sn: s.sn,
          start_ms: s.startMs,
          duration_ms: s.durationMs,
          bytes: s.bytes,
          source: delivered?.source ?? 'origin',
          reason: delivered?.reason ?? null,
        };
      }),
      notices,
    };
  },
};
