import { expect, it } from 'vitest';
import { headline } from './figures';

const viewer = (peer: number, seed: number, origin: number) => ({ peer, seed, origin });

it('one viewer has its own share, and one that gives more than it gets that of all', () => {
  expect(headline(0, [viewer(0, 50, 50)])).toEqual({ large: 0, small: '' });
  const all = [viewer(0, 60, 40), viewer(80, 10, 10), viewer(80, 10, 10)];
  expect(headline(0, all)).toEqual({ large: 53, small: 'over all 3; yours 0 %' });
  expect(headline(80, all)).toEqual({ large: 80, small: '53 % over all 3' });
});
