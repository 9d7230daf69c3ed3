import { maxAsked } from '../protocol/limits.ts';

export interface CertificateQueue {
  /** The peer asks for certificates. */
  ask(segments: string[]): void;
  /** CertificateQueue what it may. */
  pump(): void;
}

/** The certificates that a peer waits for, shown in turn as fast as it reads them: `room`. What is too much is refused. */
export const createCertificateQueue = (
  room: () => boolean,
  show: (segment: string) => void,
  refuse: (segment: string) => void,
): CertificateQueue => {
  const asked = new Set<{ segment: string }>();
  const pump = () => {
    for (const one of asked) {
      if (!room()) return;
      asked.delete(one);
      show(one.segment);
    }
  };
  return {
    ask(segments) {
      for (const segment of segments) {
        if (asked.size < maxAsked) asked.add({ segment });
        else refuse(segment);
      }
      pump();
    },
    pump,
  };
};
