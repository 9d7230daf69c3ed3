/** The loader of hls.js over the line of the simulation: the same marks in its stats at the same moments. */

import type { Network, World } from '../../../core/src/simulation/world.ts';
import type { FragmentContext, FragmentLoaderLike, LoaderCallbacks, LoaderConstructor } from '../hls.ts';
import { newStats } from '../testing.ts';
import type { RenditionFilm } from './line.ts';

const chunk = 8_192;
/** Chunks under way at a time, as a congestion window. */
const window = 6;

export function originLoader(
  world: World,
  network: Network,
  home: string,
  film: Pick<RenditionFilm, 'content'>,
  draw: () => number,
): LoaderConstructor {
  return function OriginLoader(): FragmentLoaderLike {
    const stats = newStats();
    let own: FragmentContext | null = null;
    let callbacks: LoaderCallbacks | undefined;
    const end = () => {
      const last = callbacks;
      callbacks = undefined;
      return last;
    };
    return {
      stats,
      get context() {
        return own;
      },
      load(context, _config, given) {
        own = context;
        callbacks = given;
        stats.loading.start = world.now();
        const { rangeStart, rangeEnd } = context;
        const data = film.content(new URL(context.url).pathname).slice(rangeStart, rangeEnd || undefined);
        let left = data.length;
        const more = () => {
          if (!callbacks || left === 0) return;
          const bytes = Math.min(chunk, left);
          left -= bytes;
          network.send(
            'origin',
            home,
            bytes,
            () => {},
            () => {
              if (!callbacks) return;
              stats.loading.first ||= world.now();
              stats.loaded += bytes;
              stats.total = data.length;
              if (stats.loaded < data.length) return more();
              stats.loading.end = world.now();
              end()!.onSuccess({ url: context.url, data: data.buffer, code: 200 }, stats, context, null);
            },
          );
        };
        // The request and the server's thought.
        world.setTimer(
          () => {
            for (let i = 0; i < window; i++) more();
          },
          12 + 10 * draw(),
        );
      },
      abort() {
        stats.aborted = true;
        end()?.onAbort?.(stats, own!, null);
      },
      destroy() {
        callbacks = undefined;
      },
    };
  } as unknown as LoaderConstructor;
}
