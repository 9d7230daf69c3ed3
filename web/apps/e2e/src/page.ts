import { dashScript, playDash } from './dash.ts';
import { hlsScript, playHls } from './hls.ts';
import type { Origin } from './origin.ts';
import { playShaka, shakaScript } from './shaka.ts';
import { playVideojs, videojsScript } from './video.ts';
import type { PageOptions, PageWindow, Told } from './watched.ts';

/** The players that the page can have: the script of each, and what plays with it. */
const players = {
  hls: { script: hlsScript, play: playHls },
  shaka: { script: shakaScript, play: playShaka },
  dashjs: { script: dashScript, play: playDash },
  videojs: { script: videojsScript, play: playVideojs },
} satisfies Record<Exclude<PageOptions['player'], 'none' | undefined>, object>;

/** Puts the test page (`/watch.html`) and the players on an origin. */
export function installPage(origin: Origin): void {
  for (const [name, { script }] of Object.entries(players)) {
    const text = script();
    origin.pages.set(`/${name}.js`, () => text);
  }
  origin.pages.set('/favicon.ico', () => '');
  origin.pages.set('/watch.html', (url, answer) => {
    const options = JSON.parse(url.searchParams.get('o') ?? '{}') as PageOptions;
    if (options.policy) answer.setHeader('Content-Security-Policy', options.policy);
    for (const [name, value] of Object.entries(options.headers ?? {})) answer.setHeader(name, value);
    return html(options);
  });
  // Another site's page around it.
  origin.pages.set('/frame.html', (url) => {
    const src = url.searchParams.get('src')!.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
    return `<!doctype html><title>around</title><iframe allow="autoplay" width="900" height="560" src="${src}"></iframe>`;
  });
}

export function pagePath(options: PageOptions): string {
  return `/watch.html?o=${encodeURIComponent(JSON.stringify(options))}`;
}

function html(options: PageOptions): string {
  const nonce = options.policy ? ' nonce="e2e"' : '';
  const { player: name = 'hls' } = options;
  const player = name === 'none' ? '' : `<script${nonce} src="/${name}.js"></script>`;
  const runs = name === 'none' ? [tell] : [tell, players[name].play];
  const leeway = options.tracker
    ? `<script${nonce} ${options.order ? '' : 'async '}${options.script ? '' : 'crossorigin '}src="${options.script ?? `${options.tracker}/leeway.js`}" data-tracker="${options.tracker.replace(/^http/, 'ws')}" ${options.attributes ?? ''}></script>`
    : '';
  const scripts = options.order === 'before' ? leeway + player : player + leeway;
  return `<!doctype html><meta charset="utf-8"><title>e2e</title>
<video muted playsinline width="854" height="480"></video>
${scripts}
<script${nonce}>${runs.map((f) => `(${f.toString()})(${JSON.stringify(options)});`).join('')}</script>`;
}

/** Runs in the page: records what the library says. Uses nothing from outside, it is serialized. */
function tell(): void {
  const told: Told = { notices: [], links: [], unlinks: [], segments: [], contradictions: 0 };
  const page = window as unknown as PageWindow;
  page.__told = told;
  const listen = () => {
    const { leeway } = page;
    if (!leeway) return false;
    // What was said before this script ran.
    const { notice } = leeway.stats();
    if (notice) told.notices.push({ ...notice });
    leeway.on('notice', (notice: Told['notices'][number]) => told.notices.push({ ...notice }));
    leeway.on('link', ({ peer, role }: Told['links'][number]) =>
      told.links.push({ peer, role, at: performance.now() }),
    );
    leeway.on('unlink', ({ peer, role, reason, banned }: Told['unlinks'][number]) =>
      told.unlinks.push({ peer, role, reason, banned, at: performance.now() }),
    );
    // biome-ignore lint/suspicious/noExplicitAny: the library's event
    leeway.on('segment', ({ url, result }: any) =>
      told.segments.push({
        url,
        source: result.source,
        reason: result.reason,
        bytes: result.bytes,
        at: performance.now(),
      }),
    );
    leeway.on('contradiction', () => told.contradictions++);
    return true;
  };
  // An async tag runs when it comes.
  if (!listen()) document.querySelector('script[data-tracker]')?.addEventListener('load', listen);
}
