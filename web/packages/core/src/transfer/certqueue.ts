import { maxAsked } from '../protocol/limits.ts';

export interface CertificateQueue {
  /** The peer asks for certificates. */
  ask(segments: string[]): void;
  /** Shows what the peer has room for. */
  pump(): void;
}

/** The certificates that a peer waits for, shown in turn as fast as it reads them: `room`. What is too much is refused. */
export const createCertificateQueue = (
  room: () => boolean,
  show: (segment: string) => void,
  refuse: (segment: string) => void,
): CertificateQueue => {
  const asked: string[] = [];
  const pump = () => {
    while (asked.length && room()) show(asked.shift()!);
  };
  return {
    ask(segments) {
      for (const segment of segments) {
        if (asked.length < maxAsked) asked.push(segment);
        else refuse(segment);
      }
      pump();
    },
    pump,
  };
};
