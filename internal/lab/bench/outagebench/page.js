// Put into the demo page by the bench: tells how the page fares, four times a second.
(() => {
  let filled = 0;
  // When the page had film up to which second: an entry each time that there is more.
  const had = [];
  const end = () => {
    const { video } = window.__demo ?? {};
    for (let i = 0; i < (video?.buffered.length ?? 0); i++)
      if (video.buffered.start(i) <= video.currentTime + 0.1 && video.buffered.end(i) > video.currentTime)
        return video.buffered.end(i);
    return 0;
  };
  const ahead = () => Math.max(0, end() - (window.__demo?.video?.currentTime ?? 0));
  setInterval(() => {
    const to = end();
    if (to > (had.at(-1)?.to ?? 0)) had.push({ ms: performance.now(), to });
    if (!filled && ahead() >= 10) filled = performance.now();
  }, 50);
  setInterval(() => {
    const { startup_ms, stall_ms, segments = [] } = window.__demo?.stats() ?? {};
    const titles = window.leeway?.stats().titles ?? [];
    const others = titles.reduce((n, { totals }) => n + (totals.bytes.peer ?? 0) + (totals.bytes.seed ?? 0), 0);
    const bytes = segments.reduce((n, segment) => n + segment.bytes, 0);
    const told = { startup_ms, stall_ms, filled_ms: filled, had, ahead: ahead(), others, bytes };
    fetch('/bench/told', { method: 'POST', body: JSON.stringify(told) }).catch(() => {});
  }, 250);
})();
