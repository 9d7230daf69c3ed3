/** What is used here of the class of hls.js, by shape. */
export interface Library {
  DefaultConfig: object;
  prototype: { loadSource(url: string): void };
}

/** What is used here of p2p-media-loader's engine for hls.js. */
export interface Engine {
  getConfigForHlsJs(): object;
  bindHls(playing: () => unknown): void;
}

/**
 * Has the player that a page makes of hls.js load by an engine, as the engine's own mixin does it. The page is one that says where its hls.js
 * is (`window.Hls`) before it makes a player.
 */
export function mix(page: object, engine: Engine): void {
  let library: Library | undefined;
  let playing: unknown;
  engine.bindHls(() => playing);
  Object.defineProperty(page, 'Hls', {
    configurable: true,
    get: () => library,
    set(given: Library) {
      if (given === library) return;
      library = given;
      given.DefaultConfig = { ...given.DefaultConfig, ...engine.getConfigForHlsJs() };
      const { loadSource } = given.prototype;
      given.prototype.loadSource = function (url) {
        playing = this;
        loadSource.call(this, url);
      };
    },
  });
}
