/** What the tracker says to this page, on a socket beside the library's own. */

import { after, type Examination, type Greeting, pageOrigin, plain, trackerUrl } from './examination.ts';
import { type Found, fail, ok, skipped, warn } from './finding.ts';
import { begun, fixes } from './fixes.ts';

const answerMs = 5_000;
/** A browser says a moment after the socket has failed that a policy forbade it. */
const policyMs = 300;

/** Opens the WebSocket as the library does. */
export async function checkTracker(e: Examination): Promise<Found> {
  const url = trackerUrl(e.options.tracker);
  if (!url) return fail('private-tracker', 'the tracker address is no URL', 'give a public data-tracker="wss://…"');
  let forbidden: string | undefined;
  const violated = (event: SecurityPolicyViolationEvent) => {
    if (event.disposition !== 'report' && event.blockedURI.startsWith(url.origin)) forbidden = event.effectiveDirective;
  };
  document.addEventListener('securitypolicyviolation', violated);
  try {
    if (await opened(e, url)) return ok(`WebSocket open, ${plain(url)}`);
    await after(policyMs);
    if (e.leeway.stats().notice?.code === 'tracker-blocked') forbidden ??= 'connect-src';
    if (forbidden)
      return fail(
        'tracker-blocked',
        `this page's policy forbids ${url.origin} (${forbidden})`,
        `add it to the page's Content-Security-Policy: ${forbidden} ${url.origin}`,
      );
    return await asked(e, url);
  } catch {
    return fail('tracker-insecure', `a page of https may not open ${plain(url)}`, fixes['tracker-insecure']);
  } finally {
    document.removeEventListener('securitypolicyviolation', violated);
  }
}

/** Whether the socket opens; throws where the page may have none of that kind. */
async function opened(e: Examination, url: URL): Promise<boolean> {
  const socket = new WebSocket(url, 'leeway.v1');
  const came = new Promise<boolean>((resolve) => {
    socket.onopen = () => resolve(true);
    // Where a policy forbids it there is an error, and no close.
    socket.onerror = socket.onclose = () => resolve(false);
  });
  if (await Promise.race([came, after(answerMs)])) {
    e.socket = socket;
    return true;
  }
  socket.close();
  return false;
}

/** A browser does not say why a socket did not open. The tracker says by HTTP whether it is for the page's origin. */
async function asked(e: Examination, url: URL): Promise<Found> {
  const origin = pageOrigin(e);
  const question = new URL(`/allowed?origin=${encodeURIComponent(origin)}`, url.origin.replace(/^ws/, 'http'));
  // Safari before 16 has no AbortSignal.timeout.
  const answer = await Promise.race([fetch(question).catch(() => undefined), after(answerMs)]);
  const text = await answer?.text().catch(() => undefined);
  if (text === undefined)
    return fail(
      'tracker-unreachable',
      `${plain(url)} does not answer`,
      `${fixes['tracker-unreachable']}. ${question.href} in a tab of its own says whether it is the TLS certificate`,
    );
  if (text.startsWith('refused:'))
    return fail('origin-refused', `the tracker refuses pages of ${origin}`, `${begun['origin-refused']}"${origin}"]`);
  return fail(
    'tracker-wrong-server',
    `${question.origin} answers (${answer!.status}), and no WebSocket opens there`,
    `correct data-tracker: ${fixes['tracker-wrong-server']}, and Host as it came`,
  );
}

/** Says hello as a viewer does. */
export async function checkWelcome(e: Examination): Promise<Found> {
  const { socket } = e;
  if (!socket) return skipped('there is no connection to a tracker');
  const { site, token } = e.options;
  const answer = new Promise<Record<string, unknown> | undefined>((resolve) => {
    socket.onmessage = ({ data }) => {
      try {
        const message = JSON.parse(data);
        if (/^(welcome|error)$/.test(message.type)) resolve(message);
      } catch {}
    };
    socket.onclose = () => resolve(undefined);
  });
  const ask = async () => (typeof token === 'function' ? token() : token);
  // Without a token the tracker says what is missing, as it says to the library.
  const given = await Promise.race([ask().catch(() => undefined), after(2 * answerMs)]);
  const begunAt = Date.now();
  socket.send(JSON.stringify({ type: 'hello', version: 1, client: 'leeway-doctor-js', site, token: given }));
  const message = await Promise.race([answer, after(answerMs)]);
  const tookMs = Date.now() - begunAt;
  socket.close();
  if (!message) return fail('welcome-timeout', 'the tracker does not answer hello', fixes['welcome-timeout']);
  if (message.type === 'error') return refused(message as unknown as Refused);
  e.greeting = message as unknown as Greeting;
  e.ahead = e.greeting.server_time_ms - (begunAt + tookMs / 2);
  const keys = e.greeting.verify_keys.length;
  if (!keys)
    return warn(
      'no-keys',
      'the tracker welcomes this viewer, and knows of no seed or packager that certifies',
      fixes['no-keys'],
    );
  return ok(`the tracker welcomes this viewer; ${keys} keys certify`);
}

interface Refused {
  code: string;
  message: string;
  hint: string;
}

function refused({ code, message, hint }: Refused): Found {
  const fix = (fixes as Partial<Record<string, string>>)[code] ?? hint;
  return fail(code, `the tracker: ${message}`, code === 'token-required' ? `give a join token, ${fix}` : fix);
}

export const noWelcome = 'the tracker did not welcome this viewer';

/** Clock differences: below the first nothing is noticed; beyond the second join tokens and relay credentials are refused. */
const noticedMs = 5_000;
const harmsMs = 60_000;

export function checkClock({ ahead }: Examination): Found {
  if (ahead === undefined) return skipped(noWelcome);
  const skew = Math.abs(ahead);
  const text = `this clock and the tracker's differ by ${(skew / 1000).toFixed(1)} s`;
  if (skew < noticedMs) return ok(text);
  if (skew < harmsMs) return warn('clock-skew', text, fixes['clock-skew']);
  return fail('clock-skew', `${text}: join tokens and relay credentials are refused`, fixes['clock-skew']);
}
