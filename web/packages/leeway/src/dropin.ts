/** The drop-in: `<script async src="…/leeway.js" data-tracker="wss://…"></script>` beside the player's script. */

import { createLeeway, type Leeway } from '@leeway/core';
import { type Hook, hook } from './hook.ts';
import { loadPart } from './load.ts';
import { type Load, players } from './players.ts';
import { readTag } from './tag.ts';

/** What the page finds as `window.leeway`: the library, started. */
export type LeewayGlobal = Leeway;

declare global {
  interface Window {
    leeway?: LeewayGlobal;
  }
}

/** How long after the page has loaded a player may take to show up before the log says that there is none. */
const playerWaitMs = 10_000;

function run(): void {
  const script = (document.currentScript ?? document.querySelector('script[data-tracker]')) as HTMLScriptElement | null;
  // A second tag, or a bundle beside the tag, would share everything twice.
  if (window.leeway) return;
  const options = readTag(script ? script.dataset : {}, script?.src ?? '');
  const log = (...words: unknown[]) => console.info('[leeway]', ...words);
  const leeway = createLeeway(options);
  let hooks: Hook[] = [];
  leeway.on('notice', ({ code, message, hint }) => log(`${code}: ${message} ${hint}`));
  leeway.on('state', ({ state }) => {
    // Without peer delivery the player gets its own loader back, as if this script were not there.
    if (state === 'stopped' || state === 'off') for (const hook of hooks) hook.undo();
  });
  if (options.debug) {
    for (const event of ['state', 'joined', 'segment', 'link', 'unlink', 'off'] as const) {
      leeway.on(event, (detail) => log(event, detail));
    }
  }
  window.leeway = leeway;
  const scope = window as unknown as Record<string, unknown>;
  const load: Load = (part) => loadPart(options.tracker, part);
  hooks = Object.entries(players).map(([name, take]) =>
    hook(leeway, scope, name, (value) => take(leeway, value, load)),
  );
  // After the page's own scripts: they start the player, and listen to what is said.
  setTimeout(() => leeway.start());

  const look = () =>
    setTimeout(() => {
      if (hooks.some(({ found }) => found) || leeway.state === 'stopped') return;
      leeway.notice({
        code: 'no-player',
        message: `There is no window.${Object.keys(players).join(' or window.')} on this page.`,
        hint: 'Use the npm package: attachHls(leeway, hls).',
      });
    }, playerWaitMs);
  if (document.readyState === 'complete') look();
  else window.addEventListener('load', look, { once: true });
}

try {
  run();
} catch (error) {
  // The page must not notice a library that cannot start.
  console.info('[leeway] could not start:', error);
}
