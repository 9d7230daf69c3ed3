// Put into the demo page by the bench's proxy: plays as long as planned, and tells the proxy how it went.
(() => {
  const { leave } = document.currentScript.dataset;
  let over = false;
  const tell = (ended) => {
    const demo = window.__demo?.stats();
    const bytes = demo?.segments.reduce((n, segment) => n + segment.bytes, 0) ?? 0;
    return fetch('/bench/report', {
      method: 'POST',
      body: JSON.stringify({ ended, bytes, demo: { ...demo, segments: undefined }, leeway: window.leeway?.stats() }),
    });
  };
  const finish = async (how) => {
    if (over) return;
    over = true;
    await tell(how);
    // The page is left as a viewer leaves it, so that the library says goodbye.
    location.replace('about:blank');
  };
  addEventListener('DOMContentLoaded', () => {
    const video = document.querySelector('video');
    video.loop = false;
    video.addEventListener('ended', () => finish('end'));
    if (leave > 0) setTimeout(() => finish('left'), leave - performance.now());
    setInterval(() => over || tell(''), 5000);
  });
})();
