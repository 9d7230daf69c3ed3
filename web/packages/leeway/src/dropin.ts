/** The drop-in: `<script async crossorigin src="…/leeway.js" data-tracker="wss://…"></script>` beside the player's script. */

import { createLeeway, type Leeway } from '@leeway/core';
import type { FileOptions } from '@leeway/file';
import type { Finding } from '@leeway/panel';
import { type Hook, hook } from './hook.ts';
import { loadPart } from './load.ts';
import type { More } from './parts/more.ts';
import { type Load, players } from './players.ts';
import { isSwitchedOff, readTag } from './tag.ts';

/** What the page finds as `window.leeway`: the library, started, and what comes in scripts of their own where it is asked for. */
export interface LeewayGlobal extends Leeway {
  /** Fetches a file, or a range of it, from other viewers and the origin: `fetchFile` of @leeway/file. */
  fetch(url: string, options?: FileOptions): Promise<Response>;
  /** Shows the panel for developers: links, lanes, decisions and reasons. Returns what takes it away. */
  debug(): Promise<() => void>;
  /** Says on the console what keeps this page from sharing and how to mend it, a line a check. `heard` gets them as they come. */
  doctor(heard?: (finding: Finding) => void): Promise<Finding[]>;
}

declare global {
  interface Window {
    leeway?: LeewayGlobal;
  }
}

/** How long after the page has loaded a player may take to show up before the log says that there is none. */
const playerWaitMs = 10_000;

function run(): void {
  const script = (document.currentScript ?? document.querySelector('script[data-tracker]')) as HTMLScriptElement | null;
  // A second tag, or a bundle beside the tag, would share everything twice. An element with this ID is none: browsers have it there, too.
  if (window.leeway?.stats) return;
  const options = readTag(script ? script.dataset : {}, script?.src ?? '');
  const log = (...words: unknown[]) => console.info('[leeway]', ...words);
  const load: Load = (part) => loadPart(options.tracker, part);
  const leeway: LeewayGlobal = Object.assign(createLeeway(options), {
    async fetch(url: string, how: FileOptions = {}) {
      files = true;
      const loaded = await more().catch(() => undefined);
      if (loaded) return loaded.fetchFile(leeway, url, how);
      // What the browser would do without this script.
      const { range, signal, request } = how;
      const headers = new Headers(request?.headers);
      if (range) headers.set('range', `bytes=${range.first}-${range.last ?? ''}`);
      return fetch(url, { ...request, headers, signal });
    },
    debug: async () => (await more()).showDebug(leeway),
    doctor: async (heard?: (finding: Finding) => void) =>
      (await more()).examine(leeway, { ...options, load, hooks, heard }),
  });
  let coming: Promise<More> | undefined;
  /** Once: the part knows which file the page serves to others, and a second run of it would not. */
  const more = () => {
    coming ??= (load('more') as Promise<More>).catch((error) => {
      coming = undefined;
      throw error;
    });
    return coming;
  };
  let hooks: Hook[] = [];
  /** The page has files, so it needs no player. */
  let files = false;
  let before = leeway.state;
  /** The tracker has taken this page, so its origin is not what keeps it away. */
  let taken = false;
  leeway.on('notice', ({ code, message, hint }) => {
    log(`${code}: ${message} ${hint}`);
    // A browser does not tell a page that it was refused for its origin. The tracker answers in a sentence.
    if (code === 'tracker-unreachable' && !taken)
      fetch(new URL('/allowed', options.tracker.replace(/^ws/i, 'http')))
        .then((answer) => answer.text())
        .then(log, () => {});
  });
  leeway.on('state', ({ state }) => {
    taken ||= state === 'ready';
    // Without peer delivery the player gets its own loader back, as if this script were not there.
    if (/off|stopped/.test(state)) for (const hook of hooks) hook.undo();
    // Consent that is given once more may bring it.
    if (before === 'off' && state === 'idle') find();
    before = state;
  });
  const { badge, debug } = options;
  const { consent } = leeway;
  // What the viewer has switched off the page does not switch on, also before the badge is there.
  leeway.consent = (given) => consent(given && !isSwitchedOff(badge));
  if (debug) more().then(({ logEvents }) => logEvents(leeway, log), log);
  window.leeway = leeway;
  const scope = window as unknown as Record<string, unknown>;
  const find = () => {
    hooks = Object.entries(players).map(([name, take]) =>
      hook(leeway, scope, name, (value) => take(leeway, value, load)),
    );
  };
  find();
  // After the page's own scripts: they start the player, and listen to what is said.
  setTimeout(() => leeway.start());

  const look = () => {
    if (badge !== undefined) more().then(({ showBadge }) => showBadge(leeway, { side: badge }), log);
    setTimeout(() => {
      // Where it is off no player is looked for, and something else was said.
      if (files || hooks.some(({ found }) => found) || /off|stopped/.test(leeway.state)) return;
      leeway.notice({
        code: 'no-player',
        message: `This page has no window.${Object.keys(players).join(' or window.')}.`,
        hint: 'Use an npm package.',
      });
    }, playerWaitMs);
  };
  if (document.readyState === 'complete') look();
  else window.addEventListener('load', look, { once: true });
}

try {
  run();
} catch (error) {
  // The page must not notice a library that cannot start.
  console.info('[leeway] could not start:', error);
}
