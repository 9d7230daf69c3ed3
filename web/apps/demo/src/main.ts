import { offerManifest, offerPlayers } from './chooser';
import { openViewer, showCredit } from './controls';
import { Dashboard } from './dashboard';
import { Delivery, type Notice } from './delivery';
import { readFilm, readMeta, readOptions, sourceFor } from './film';
import { offerPhone } from './phone';
import { Player } from './player';
import { choices, readPlayer } from './players/choice';

declare global {
  interface Window {
    /** For tests: the picture and what the viewer felt, in milliseconds and bytes. */
    __demo?: { video: HTMLVideoElement; stats(): DemoStats };
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
const { player: name, refused } = readPlayer(new URLSearchParams(location.search).get('player'));
const film = readFilm(document, options.src);
const source = sourceFor(film, name, location.href);
const tag = document.querySelector<HTMLScriptElement>('script[data-tracker]');
const delivery = new Delivery(options.leeway, () => tag?.dataset.failed === undefined);
const notices: Notice[] = [];
delivery.onNotice = (notice) => notices.push(notice);

const player = new Player(document.querySelector<HTMLVideoElement>('#video')!);
const dashboard = new Dashboard({
  player,
  delivery,
  viewer: options.viewer,
  film: 'src' in source ? source.src : film.src,
  outages: readMeta(document, 'demo-outages') !== '',
  outageSeconds: options.outage,
});

document.title = `Viewer ${options.viewer} · Leeway`;
document.querySelector('#badge')!.textContent = `Viewer ${options.viewer}`;
showCredit(document.querySelector<HTMLElement>('#credit')!, film);
document.querySelector('#add')!.addEventListener('click', () => {
  dashboard.expect(openViewer(dashboard.nextViewer()));
});
offerManifest(document.querySelector<HTMLElement>('#choose')!, document.querySelector('#chooser')!, name);
offerPlayers(document.querySelector<HTMLSelectElement>('#player')!, name, refused);
offerPhone(
  document.querySelector<HTMLElement>('#phone')!,
  document.querySelector('#elsewhere')!,
  readMeta(document, 'demo-addresses'),
);
dashboard.start();
void play();

async function play(): Promise<void> {
  if ('error' in source) {
    player.failure = source.error;
    return;
  }
  const [loaded] = await Promise.all([
    choices[name].load().catch(() => undefined),
    // A player of dash.js shares if the script was there before it was made.
    name === 'dashjs' ? scriptRun() : undefined,
  ]);
  if (loaded === undefined) player.failure = `The script of ${choices[name].label} does not load. Load the page again.`;
  else player.play(loaded.start, source.src, options);
}

/** The drop-in has run, or is known not to; the film waits three seconds for it and no longer. */
function scriptRun(): Promise<void> {
  return new Promise((done) => {
    if (tag === null || window.leeway !== undefined || tag.dataset.failed !== undefined) return done();
    for (const type of ['load', 'error']) tag.addEventListener(type, () => done());
    setTimeout(done, 3000);
  });
}

window.__demo = {
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
