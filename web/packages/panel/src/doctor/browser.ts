/** What the page and the browser bring. */

import { after, type Examination } from './examination.ts';
import { type Found, fail, ok, skipped, warn } from './finding.ts';

const waitMs = 5_000;

/** Without these there is nothing more to look at. */
export function checkPage(): Found {
  if (!isSecureContext)
    return fail('insecure-context', 'this page is no secure context', 'serve it over https or from localhost');
  return crypto?.subtle
    ? ok(`a secure context, ${location.origin}`)
    : fail('no-webcrypto', 'there is no crypto.subtle: nothing can be verified', 'try another browser');
}

const withoutWebrtc =
  'the browser lacks WebRTC, or an extension, a VPN or a policy of the browser keeps pages from it: try without them. The origin serves such viewers';

export async function checkWebrtc(): Promise<Found> {
  if (!globalThis.RTCPeerConnection) return fail('no-webrtc', 'there is no RTCPeerConnection here', withoutWebrtc);
  let connection: RTCPeerConnection | undefined;
  try {
    connection = new RTCPeerConnection();
    const one = connection;
    one.createDataChannel('');
    const gathered = new Promise<boolean>((resolve) => {
      one.onicecandidate = ({ candidate }) => resolve(Boolean(candidate?.candidate));
    });
    await one.setLocalDescription();
    if (await Promise.race([gathered, after(waitMs)])) return ok('a connection is made, and has addresses');
    return fail('no-candidates', 'WebRTC gives this page no address to be reached at', withoutWebrtc);
  } catch (error) {
    return fail('no-webrtc', `no connection can be made: ${(error as Error).message}`, withoutWebrtc);
  } finally {
    connection?.close();
  }
}

export async function checkScripts({ options, leeway }: Examination): Promise<Found> {
  const loaded = leeway.stats().titles.some(({ engine }) => engine);
  if (!options.load) return loaded ? ok('the engine is there') : skipped('the engine is part of the bundle');
  return options.load('engine').then(
    () => ok("the engine's script loads, and has the hash that the first script wants"),
    () =>
      fail(
        'engine-missing',
        "Leeway's second script does not load, or is of another build than the first",
        'serve it beside the first, from one build; allow it in script-src',
      ),
  );
}

export async function checkWorker(): Promise<Found> {
  const lacks = warn(
    'worker-blocked',
    'this page may have no worker: hidden, it sends slowly',
    'add blob: to worker-src of the policy',
  );
  let worker: Worker | undefined;
  const url = URL.createObjectURL(new Blob(['postMessage(0)'], { type: 'text/javascript' }));
  try {
    worker = new Worker(url);
    const one = worker;
    const came = new Promise<boolean>((resolve) => {
      one.onmessage = () => resolve(true);
      one.onerror = () => resolve(false);
    });
    return (await Promise.race([came, after(waitMs)])) ? ok('workers run, so a hidden tab keeps time') : lacks;
  } catch {
    return lacks; // as browsers have it that refuse at once
  } finally {
    worker?.terminate();
    URL.revokeObjectURL(url);
  }
}

const names = { Hls: 'hls.js', shaka: 'Shaka', videojs: 'Video.js', dashjs: 'dash.js' } as const;

export function checkPlayer({ options, leeway }: Examination): Found {
  if (!('MediaSource' in window || 'ManagedMediaSource' in window))
    return warn('no-mse', 'the browser has no Media Source Extensions', 'its own player plays, and is not shared');
  const there = Object.entries(names).flatMap(([name, player]) => ((window as never)[name] ? player : []));
  if (options.hooks?.some(({ found }) => found)) return ok(`found: ${there.join(', ')}`);
  if (leeway.stats().titles.length > 0) return ok('a player or a file has been attached');
  if (!options.hooks) return skipped('no player has been attached', 'attachHls(leeway, hls), or that of your player');
  if (/off|stopped/.test(leeway.state)) return skipped('peer delivery is off');
  return warn(
    'no-player',
    there.length
      ? `${there.join(', ')} is there in a version that cannot be attached`
      : 'there is none of hls.js, Shaka, Video.js and dash.js under its global name',
    'load hls.js 1.5, Shaka 5, Video.js 8 or dash.js 5 under its global name; a player that is bundled is attached with the npm package: attachHls(leeway, hls)',
  );
}
