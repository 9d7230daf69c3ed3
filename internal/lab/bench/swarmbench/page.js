// Put into the demo page by the bench's proxy: plays as long as planned, and tells the proxy how it went.
(() => {
  const { leave, busy } = document.currentScript.dataset;
  let over = false;
  const given = new Set(); // paths of segments: the page forgets old ones of a live stream
  const tell = (ended) => {
    const demo = window.__demo?.stats();
    const segments = demo?.segments ?? [];
    const bytes = segments.reduce((n, segment) => n + segment.bytes, 0);
    for (const { url } of segments) given.add(new URL(url, location).pathname);
    return fetch('/bench/told', {
      method: 'POST',
      body: JSON.stringify({
        ended,
        bytes,
        given: [...given],
        demo: { ...demo, segments: undefined },
        leeway: window.leeway?.stats(),
        rival: window.__rival,
      }),
    });
  };
  const finish = async (how) => {
    if (over) return;
    over = true;
    await tell(how);
    // The page is left as a viewer leaves it, so that the library says goodbye.
    location.replace('about:blank');
  };
  // A page that has more to do than to play: tasks of 20 to 100 ms, and pauses that leave them so much of the time.
  const work = () => {
    const began = performance.now();
    const length = 20 + 80 * Math.random();
    while (performance.now() < began + length);
    setTimeout(work, length * (1 / busy - 1));
  };
  addEventListener('DOMContentLoaded', () => {
    if (busy > 0) work();
    const video = document.querySelector('video');
    video.loop = false;
    video.addEventListener('ended', () => finish('end'));
    if (leave > 0) setTimeout(() => finish('left'), leave - performance.now());
    setInterval(() => over || tell(''), 5000);
  });
})();
