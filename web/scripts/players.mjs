// The players that there are plug-ins for, as scripts/pack-check.mjs tries them: one entry a player.

/** Shaka's declarations are those of a CommonJS module, and have a default export, which is the whole of it for Node. */
const shakaTypes = `type Exported = (typeof import('shaka-player'))['default'];
declare const shaka: Exported extends { default: infer Namespace } ? Namespace : Exported;`;

/** So have those of Video.js. */
const videojsTypes = `type Exported = (typeof import('video.js'))['default'];
declare const videojs: Exported extends { default: infer Own } ? Own : Exported;`;

/**
 * npm: the player's package. global: what an example calls it, if it takes it for granted; real and fake: how it is declared
 * then, for the compiler and for a page of fakes. attach: the plug-in's function. page: the fakes; what the plug-in does to
 * them they note in `seen`. attached: whether it did all that it has to. misuse: uses that compile, and, marked, those that
 * must not.
 */
export const players = [
  {
    npm: 'hls.js',
    global: 'hls',
    real: "import Hls from 'hls.js';\nconst hls = new Hls();",
    fake: 'declare const hls: object;',
    attach: 'attachHls',
    page: ({ listeners }) => ({
      hls: {
        config: { loader: class {} },
        ...{ url: null, media: null, levels: [], currentLevel: -1, autoLevelEnabled: true },
        on: (event) => listeners.push(event),
        off: () => {},
      },
    }),
    attached: ({ hls }) => hls.config.fLoader,
  },
  {
    npm: 'shaka-player',
    global: 'shaka',
    real: `${shakaTypes}\nconst player = new shaka.Player();`,
    fake: 'declare const shaka: object, player: object;',
    attach: 'attachShaka',
    page: ({ listeners, schemes }) => ({
      shaka: {
        Player: class {
          static version = 'v5.2.12';
          dispatchEvent() {}
        },
        net: {
          NetworkingEngine: { PluginPriority: {}, registerScheme: (scheme) => schemes.push(scheme) },
          HttpFetchPlugin: {},
        },
        util: { AbortableOperation: class {} },
      },
      player: {
        getNetworkingEngine: () => ({ registerRequestFilter: () => {} }),
        ...{ getAssetUri: () => null, getMediaElement: () => null },
        addEventListener: (event) => listeners.push(event),
      },
    }),
    attached: (_, { schemes }) => schemes.join() === 'http,https',
    misuse: `
import type { Leeway } from '@leeway/core';
import { attachShaka, attachShakaClass } from '@leeway/shaka';
${shakaTypes}
declare const leeway: Leeway;
attachShaka(leeway, shaka, new shaka.Player());
attachShakaClass(leeway, shaka);
// @ts-expect-error: no player
attachShaka(leeway, shaka, {});
// @ts-expect-error: the class, not the namespace
attachShakaClass(leeway, shaka.Player);
`,
  },
  {
    npm: 'video.js',
    global: 'videojs',
    real: videojsTypes,
    fake: 'declare const videojs: (id: string) => object;',
    attach: 'attachVideojs',
    page: ({ listeners }) => ({
      videojs: Object.assign(() => ({ tech: () => null, on: (event) => listeners.push(event) }), {
        VERSION: '8.24.1',
        Vhs: { xhr: () => {} },
        ...{ xhr: () => {}, getAllPlayers: () => [], hook: () => {}, removeHook: () => {} },
      }),
    }),
    attached: ({ videojs }) => videojs.Vhs.xhr.original === false,
    misuse: `
import type { Leeway } from '@leeway/core';
import { attachVideojs, attachVideojsAll } from '@leeway/videojs';
${videojsTypes}
declare const leeway: Leeway;
attachVideojs(leeway, videojs, videojs('film'));
attachVideojsAll(leeway, videojs);
// @ts-expect-error: no player
attachVideojs(leeway, videojs, {});
// @ts-expect-error: a player, not the function
attachVideojsAll(leeway, videojs('film'));
`,
  },
  {
    npm: 'dashjs',
    global: 'dashjs',
    real: "import * as dashjs from 'dashjs';",
    fake: 'declare const dashjs: { MediaPlayer(): { create(): never } };',
    attach: 'attachDashjs',
    page: ({ listeners, schemes }) => ({
      dashjs: {
        MediaPlayer: () => ({
          create: () => ({
            extend: (name) => schemes.push(name),
            getSettings: () => ({ streaming: { abr: { throughput: { useNetworkInformationApi: {} } } } }),
            on: (event) => listeners.push(event),
          }),
        }),
      },
    }),
    attached: (_, { schemes }) => schemes.includes('XHRLoader'),
    misuse: `
import type { Leeway } from '@leeway/core';
import { attachDashjs, attachDashjsClass } from '@leeway/dashjs';
import * as dashjs from 'dashjs';
declare const leeway: Leeway;
attachDashjs(leeway, dashjs.MediaPlayer().create());
// @ts-expect-error: no player
attachDashjs(leeway, {});
// @ts-expect-error: the player, not the namespace
attachDashjsClass(leeway, dashjs.MediaPlayer().create());
`,
  },
];
