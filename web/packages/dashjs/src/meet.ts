/**
 * What has to be in a player of dash.js from its creation on: the loader that it makes then is the one that it keeps. Small, because
 * it is part of `leeway.js`; the adapter is not there yet.
 */

import type { DashNamespace, DashPlayer, Extending, Load, LoaderLike, MakeLoader } from './dashjs.ts';

/** Loads in place of a loader of a player; undefined: it shall load itself. */
export type Instead = (load: Load, plain: MakeLoader | undefined) => Load;

/** A player that was met, and what loads in place of its loaders once the adapter is there. */
export interface Met {
  player: DashPlayer;
  instead?: Instead;
}

const loaders = ['XHRLoader', 'FetchLoader'] as const;

/** Prepares a player that has loaded nothing yet. dash.js takes the first extension of a name alone: what the page extended before stays. */
export function prepare(met: Met): void {
  for (const name of loaders) {
    met.player.extend(
      name,
      function (this: Extending): Pick<LoaderLike, 'load'> {
        const { parent, factory } = this;
        // It is overwritten in the parent.
        const { load } = parent;
        const plain = name === loaders[0] ? () => factory.getClassFactoryByName(name)({}).create() : undefined;
        return { load: (...how) => (met.instead?.(load, plain) ?? load)(...how) };
      },
      true,
    );
  }
}

/** The players of a page. */
export interface Found {
  /** Those that were made before there was `onMet`. */
  met: Met[];
  /** Takes later ones. */
  onMet?: (met: Met) => void;
  /** Has the page's own constructor back. Players that were met stay prepared, and load by themselves. */
  leave(): void;
}

/** Prepares the players that a page makes by `dashjs.MediaPlayer()` from now on; undefined: it is no dash.js, or one that cannot be changed. */
export function meet(dashjs: Partial<DashNamespace> | undefined): Found | undefined {
  const own = dashjs?.MediaPlayer;
  if (!own) return undefined;
  const found: Found = {
    met: [],
    leave() {
      if (dashjs.MediaPlayer === proxy) dashjs.MediaPlayer = own;
    },
  };
  const proxy = new Proxy(own, {
    apply(target, self, how) {
      const factory = Reflect.apply(target, self, how);
      return {
        ...factory,
        create() {
          const player: DashPlayer = factory.create();
          const met: Met = { player };
          const { initialize } = player;
          // Until then a page may extend it.
          player.initialize = (...how) => {
            prepare(met);
            initialize(...how);
          };
          if (found.onMet) found.onMet(met);
          else found.met.push(met);
          return player;
        },
      };
    },
  });
  // The namespace of a module (`import * as dashjs`) is read-only.
  return Reflect.set(dashjs, 'MediaPlayer', proxy) ? found : undefined;
}
