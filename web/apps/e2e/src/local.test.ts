/** A hostile peer's private addresses do not reach the browser where the site has them out, however the description is written. */
import { expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { buildHostile, Hostile } from './hostile.ts';
import { Stack } from './stack.ts';
import { until, Viewer } from './viewer.ts';

declare global {
  interface Window {
    __remote: string[];
  }
}

/** Runs in the page before its scripts: what RTCPeerConnection is given of other sides. */
function record(): void {
  window.__remote = [];
  const { setRemoteDescription, addIceCandidate } = RTCPeerConnection.prototype;
  RTCPeerConnection.prototype.setRemoteDescription = function (description) {
    window.__remote.push(String(description.sdp));
    return Reflect.apply(setRemoteDescription, this, [description]);
  };
  RTCPeerConnection.prototype.addIceCandidate = function (
    this: RTCPeerConnection,
    candidate?: RTCIceCandidateInit | null,
  ) {
    window.__remote.push(String(candidate?.candidate));
    return Reflect.apply(addIceCandidate, this, [candidate]);
  } as typeof addIceCandidate;
}

/** The hostile viewer's addresses (test/e2e/hostile/lines.go). */
const open = ['198.51.100.7', '198.51.100.8'];
const hidden = ['10.77.0.99', '192.168.77.99', 'fd00::99', '10.77.0.98', '10.77.0.97'];

test.each([
  ['never', []],
  // The same addresses come through here: the browser would have been told.
  ['ask', ['10.77.0.99', '192.168.77.99', 'fd00::99', '10.77.0.98']],
])('local: %s, and lines that end with LF', async (local, through) => {
  buildHostile();
  const stack = await Stack.start({ split: true, policy: { local } });
  const browser = await Chromium.start();
  let hostile: Hostile | undefined;
  try {
    const viewer = await Viewer.open(browser, stack.page({ level: 0, buffer: 12 }), { before: record });
    await viewer.until('2 s of film', (seen) => seen.currentTime > 2);
    hostile = new Hostile(stack, 'silent', 60, ['--lf']);
    const remote = () => viewer.page.evaluate(() => window.__remote);
    await until('what may come through', async () => {
      const all = (await remote()).join('\n');
      return [...open, ...through].every((address) => all.includes(address));
    });
    const all = await remote();
    const named = hidden.filter((address) => all.some((text) => text.includes(address)));
    const broken = all.filter((text) => /(^|[^\r])\n/.test(text) || /\r(?!\n)/.test(text));
    figures(`local: ${local}`, {
      texts: all.length,
      named,
      broken: broken.length,
      described: hostile.of('described').length,
    });
    expect(named.sort()).toEqual([...through].sort());
    expect(broken).toEqual([]);
    expect(viewer.consoleErrors()).toEqual([]);
  } finally {
    await hostile?.stop();
    await browser.stop();
    await stack.stop();
  }
});
