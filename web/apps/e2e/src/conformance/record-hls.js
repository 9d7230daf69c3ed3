// In pages with hls.js: has a stage see what a player of hls.js is given, and what it tells the page.

/** The outermost loader sees what the player is given. What is configured is wrapped when it is read, so it does not matter when the library comes. */
window.recordHls = (Hls, hls, stage) => {
  hls.on(Hls.Events.ERROR, (_, { details, fatal }) => stage.error(details, fatal));
  const { config } = hls;
  let current = config.fLoader;
  const made = new Map();
  const outermost = () => {
    const Inner = current ?? config.loader;
    // Not by a subclass: a loader's constructor may return an object of its own.
    function Recorder(loaderConfig) {
      const inner = new Inner(loaderConfig);
      // The library may have wrapped this one.
      if (outermost() !== Recorder) return inner;
      const load = inner.load.bind(inner);
      inner.load = (context, settings, callbacks) => {
        const { rangeStart, rangeEnd } = context;
        const range = rangeEnd ? `bytes=${rangeStart}-${rangeEnd - 1}` : undefined;
        const onSuccess = (response, ...rest) => {
          stage.received({ url: context.url, range, data: response.data });
          callbacks.onSuccess(response, ...rest);
        };
        load(context, settings, { ...callbacks, onSuccess });
      };
      return inner;
    }
    if (!made.has(Inner)) made.set(Inner, Recorder);
    return made.get(Inner);
  };
  Object.defineProperty(config, 'fLoader', {
    configurable: true,
    enumerable: true,
    get: outermost,
    set(loader) {
      current = loader;
    },
  });
};
