import { describe, expect, it } from 'vitest';
import { maxAsked } from '../protocol/limits.ts';
import { type CertificateQueue, createCertificateQueue } from './certqueue.ts';

/** Showing one may lead to anything before it returns. */
const setUp = (then: (segment: string, queue: CertificateQueue) => void, left = { room: Number.POSITIVE_INFINITY }) => {
  const shown: string[] = [];
  const refused: string[] = [];
  const queue = createCertificateQueue(
    () => left.room > 0,
    (segment) => {
      left.room--;
      shown.push(segment);
      then(segment, queue);
    },
    (segment) => refused.push(segment),
  );
  return { queue, shown, refused, left };
};

const abc = ['a', 'b', 'c'];

describe('certificates that wait for their reader', () => {
  it('are shown once each where the link takes more in the midst of showing', () => {
    const { queue, shown } = setUp((_, s) => s.pump());
    queue.ask(abc);
    queue.pump();
    expect(shown).toEqual(abc);
  });

  it('are shown once each where another is asked for in the midst of showing', () => {
    const { queue, shown } = setUp((segment, s) => {
      if (segment.length === 1) s.ask([`${segment}'`]);
    });
    queue.ask(abc);
    expect([...shown].sort()).toEqual(['a', "a'", 'b', "b'", 'c', "c'"]);
  });

  it('are shown no more once the link has ended in the midst of showing', () => {
    const end = { room: Number.POSITIVE_INFINITY };
    const { queue, shown } = setUp((segment, s) => {
      if (segment !== 'b') return;
      end.room = 0;
      s.pump();
    }, end);
    queue.ask(abc);
    queue.pump();
    expect(shown).toEqual(['a', 'b']);
  });

  it('are bounded, whatever is asked for in the midst of showing', () => {
    const { queue, shown, refused, left } = setUp(() => {}, { room: 0 });
    queue.ask(Array.from({ length: maxAsked + 2 }, (_, n) => `${n}`));
    expect(refused).toEqual([`${maxAsked}`, `${maxAsked + 1}`]);
    left.room = 3;
    queue.pump();
    expect(shown).toEqual(['0', '1', '2']);
    queue.ask(['x', 'y', 'z', 'one too many']);
    expect(refused.at(-1)).toBe('one too many');
  });
});
