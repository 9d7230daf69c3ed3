// Put into the demo page by the bench's proxy: has it play under a title, and says again and again how things stand, in the
// form of a headless viewer's summary.
(() => {
  const { title, every } = document.currentScript.dataset;
  new MutationObserver((_, observer) => {
    const script = document.querySelector('script[data-tracker]');
    if (!script) return;
    observer.disconnect();
    // It is read when the script runs, which is later.
    script.dataset.title = title;
  }).observe(document.head, { childList: true });

  let library;
  let opened = 0;
  const closed = {};
  const attach = () => {
    if (library || !window.leeway) return;
    library = window.leeway;
    library.on('link', () => opened++);
    library.on('unlink', ({ reason }) => {
      closed[reason] = (closed[reason] ?? 0) + 1;
    });
  };

  const ahead = ({ currentTime, buffered }) => {
    for (let i = 0; i < buffered.length; i++) {
      if (buffered.start(i) <= currentTime && currentTime <= buffered.end(i)) return buffered.end(i) - currentTime;
    }
    return 0;
  };

  const summary = () => {
    attach();
    const demo = window.__demo?.stats();
    const all = library?.stats();
    const [known] = all?.titles ?? [];
    const linked = {};
    for (const { role, path } of known?.engine?.peers ?? []) {
      linked[`${role}/${path}`] = (linked[`${role}/${path}`] ?? 0) + 1;
    }
    const video = window.__demo?.video;
    const bytes = known?.totals.bytes ?? {};
    const sum = Object.values(bytes).reduce((a, b) => a + b, 0);
    return {
      title: known?.title,
      session: all?.self ?? '',
      off: known?.off ?? '',
      last_error: demo?.notices.map(({ code }) => code).join(', '),
      watched_ms: Math.round(performance.now()),
      position_ms: video ? Math.round(video.currentTime * 1000) : 0,
      buffer_ms: video ? Math.round(ahead(video) * 1000) : 0,
      offload: sum ? bytes.peer / sum : 0,
      links: known?.links.open ?? 0,
      linked,
      links_opened: opened,
      links_closed: closed,
      reconnects: all?.session?.reconnects ?? 0,
      store_bytes: known?.engine?.cacheBytes ?? 0,
      stats: {
        bytes,
        uploaded: known?.totals.uploaded,
        reasons: known?.totals.reasons,
        link_failures: known?.linkFailures,
        startup_ms: Math.round(demo?.startup_ms ?? 0),
        stalls: demo?.stalls ?? 0,
        stall_ms: Math.round(demo?.stall_ms ?? 0),
        played_ms: Math.round(demo?.played_ms ?? 0),
      },
    };
  };

  let busy = false;
  setInterval(async () => {
    if (busy) return;
    busy = true;
    await fetch('/bench/told', { method: 'POST', body: JSON.stringify(summary()) }).catch(() => {});
    busy = false;
  }, every);
})();
