import { candidateBytes } from '../ports.ts';
import { candidatesPerLink, type SignalBody } from '../session/messages.ts';

/**
 * Passes the candidates of one link on, both ways: this side's once its description has been signaled, the other side's once that
 * one's description is in.
 */
export interface Trickle {
  /** The description is out: candidates may follow. */
  letOut(): void;
  /** Those known so far are in the description that is to be signaled. */
  described(): void;
  /** A candidate of the other side. What is too many is dropped. */
  remote(body: SignalBody): void;
  /** Hands over those that came before the description. */
  catchUp(): void;
}

export const createTrickle = (
  connection: RTCPeerConnection,
  signal: (body: SignalBody) => void,
  take: (body: SignalBody) => void,
): Trickle => {
  let ours: SignalBody[] | undefined = [];
  let theirs: SignalBody[] = [];
  let heard = 0;
  /** All local candidates are known. */
  let gathered = false;
  connection.onicecandidate = ({ candidate }) => {
    if (gathered) return;
    let body: SignalBody = { kind: 'end' };
    if (candidate?.candidate) {
      if (candidate.candidate.length > candidateBytes) return;
      const { sdpMid, sdpMLineIndex } = candidate;
      body = {
        kind: 'candidate',
        candidate: candidate.candidate,
        sdp_mid: sdpMid ?? undefined,
        sdp_m_line_index: sdpMLineIndex ?? undefined,
      };
    } else gathered = true;
    if (ours) ours.push(body);
    else signal(body);
  };
  const trickle: Trickle = {
    letOut() {
      ours?.forEach(signal);
      ours = undefined;
    },
    described() {
      ours = [];
    },
    remote(body) {
      if (++heard > candidatesPerLink + 1) return;
      theirs.push(body);
      if (connection.remoteDescription) trickle.catchUp();
    },
    catchUp() {
      const bodies = theirs;
      theirs = [];
      bodies.forEach(take);
    },
  };
  return trickle;
};
