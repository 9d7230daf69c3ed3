/** Every STUN and TURN server that the tracker names, side by side. */

import { after, type Examination, trackerUrl } from './examination.ts';
import { type Found, fail, ok, skipped, warn } from './finding.ts';
import { fixes } from './fixes.ts';
import { noWelcome } from './tracker.ts';

const answerMs = 5_000;
/** A browser gives up on connections long after this many. */
const most = 8;

export async function checkRelays({ greeting, options }: Examination): Promise<Found | Found[]> {
  if (!greeting) return skipped(noWelcome);
  const all = greeting.ice_servers.flatMap(({ urls, username, credential }) =>
    urls.map((url) => ({ urls: url, username, credential })),
  );
  if (!all.length) {
    if (/^(localhost|127\.|\[::1)/.test(trackerUrl(options.tracker)!.hostname))
      return ok('none is named, and none is needed on one machine');
    return warn(
      'no-relays',
      'the tracker names no STUN or TURN server: viewers behind different NATs do not link',
      fixes['no-relays'],
    );
  }
  return Promise.all(all.slice(0, most).map(relay));
}

type Answer = Awaited<ReturnType<typeof answers>>;

/** A STUN server that sees the machine's own address yields no candidate and no error: the search just completes. */
const reached = (answer: Answer) => answer === 'complete' || typeof answer === 'object';

async function relay(server: RTCIceServer & { urls: string }): Promise<Found> {
  const turn = server.urls.startsWith('turn');
  const at = server.urls;
  try {
    const answer = await asked(server, turn);
    // Firefox tells of 401 alone: a relay that refuses with another code (a quota; 400 of other servers) and answers STUN is not dead.
    const udp = /^turn:([^?]+)(\?transport=udp)?$/.exec(at);
    if (udp && answer === undefined && reached(await asked({ urls: `stun:${udp[1]}` }, false)))
      return fail('turn-refused', `${at} answers STUN and gives no relayed address`, fixes['turn-refused']);
    return judge(answer, at, turn);
  } catch (error) {
    return dead(at, turn, `: ${(error as Error).message}`);
  }
}

async function asked(server: RTCIceServer, turn: boolean): ReturnType<typeof answers> {
  const connection = new RTCPeerConnection({ iceServers: [server], iceTransportPolicy: turn ? 'relay' : 'all' });
  try {
    return await answers(connection);
  } finally {
    connection.close();
  }
}

/** The address that the server gave or saw, the code of its error, or nothing: none of them in time. */
async function answers(connection: RTCPeerConnection): Promise<RTCIceCandidate | number | 'complete' | undefined> {
  let code = 0;
  connection.createDataChannel('');
  const answer = new Promise<RTCIceCandidate | number | 'complete'>((resolve) => {
    connection.onicecandidateerror = ({ errorCode }) => {
      code = errorCode;
    };
    connection.onicecandidate = ({ candidate }) => {
      if (candidate?.type === 'srflx' || candidate?.type === 'relay') resolve(candidate);
      // The end, once all servers have answered or failed.
      else if (!candidate) resolve(code || 'complete');
    };
  });
  await connection.setLocalDescription();
  // An error may be known before the browser has given up.
  return Promise.race([answer, after(answerMs).then(() => code || undefined)]);
}

/** STUN's own codes are below 700; 701 is a server that was not reached. */
function judge(answer: RTCIceCandidate | number | 'complete' | undefined, at: string, turn: boolean): Found {
  if (typeof answer === 'object') {
    const { address, port } = answer;
    return ok(turn ? `${at} gave the relayed address ${address}:${port}` : `${at} answers`);
  }
  // A server that sees the address which the machine has says nothing new, and browsers then name none.
  if (answer === 'complete' && !turn) return ok(`${at} raised no error`);
  if (turn && typeof answer === 'number' && answer < 700)
    return fail('turn-refused', `${at} refuses an allocation (${answer})`, fixes['turn-refused']);
  return dead(at, turn, ` does not answer${typeof answer === 'number' ? ` (${answer})` : ''}`);
}

function dead(at: string, turn: boolean, why: string): Found {
  const code = turn ? 'turn-dead' : 'stun-dead';
  return fail(code, at + why, fixes[code]);
}
