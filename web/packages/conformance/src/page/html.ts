/** The kit's page: an adapter's scripts, as many players as the case wants, and the library. */

import { extname } from 'node:path';
import type { Adapter, Stage } from '../adapter.ts';
import { type KitWindow, probe } from './probe.ts';

/** What of a stage is known before the page is there. */
export type Setting = Pick<Stage, 'manifest' | 'buffer' | 'cmcd' | 'lowLatency' | 'clearKey'>;

export interface PageOptions {
  players: Setting[];
  /** The tracker's base URL (`http://host:port`); without it the page has no Leeway. */
  tracker?: string;
}

/** Runs in the page after the adapter's scripts. */
function start(play: Adapter['play'], players: Setting[]): void {
  const page = window as unknown as KitWindow;
  for (const [i, setting] of players.entries()) {
    const own = page.__stage(i);
    const stage: Stage = { ...setting, ...own, manifest: new URL(setting.manifest, location.href).href };
    Promise.resolve()
      .then(() => play(stage))
      .catch((error) => own.error(`play: ${String(error?.message ?? error)}`, true));
  }
}

/** URL path of the n-th script or style sheet of an adapter. */
const assetPath = (file: string, n: number): string => `asset-${n}${extname(file)}`;

export function pageHtml(adapter: Adapter, { players, tracker }: PageOptions): string {
  const markup = adapter.markup ?? '<video muted playsinline width="320" height="180"></video>';
  const assets = [...(adapter.styles ?? []).map((file) => ({ file, module: false })), ...adapter.scripts];
  const tags = assets.map(({ file, module }, n) => {
    const path = assetPath(file, n);
    if (path.endsWith('.css')) return `<link rel="stylesheet" href="${path}">`;
    return `<script ${module ? 'type="module" ' : ''}src="${path}"></script>`;
  });
  const address = tracker?.replace(/^http/, 'ws');
  const tag =
    tracker && !adapter.ownLibrary
      ? `<script ${adapter.early ? '' : 'async '}src="${tracker}/leeway.js" data-tracker="${address}"></script>`
      : '';
  // As docs/embedding.md has it.
  const scripts = adapter.early ? [tag, ...tags] : [...tags, tag];
  // A module's script runs after the page has been read, and so does what follows it here.
  const late = assets.some(({ module }) => module);
  return `<!doctype html><html${tracker ? ` data-tracker="${address}"` : ''}><meta charset="utf-8"><title>conformance</title>
<script>(${probe})();</script>
${players.map(() => `<div class="stage">${markup}</div>`).join('\n')}
${scripts.join('\n')}
<script${late ? ' type="module"' : ''}>(${start})(${adapter.play}, ${JSON.stringify(players)});</script>`;
}

/** The files of an adapter by their paths in the page's folder. */
export function assetsOf(adapter: Adapter): Map<string, string> {
  const files = [...(adapter.styles ?? []), ...adapter.scripts.map(({ file }) => file)];
  return new Map(files.map((file, n) => [assetPath(file, n), file]));
}
