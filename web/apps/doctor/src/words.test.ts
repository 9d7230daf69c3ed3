import { expect, test } from 'vitest';
import { fragmentOf, originOf, sentenceOf, shown } from './words.ts';

test('an origin is taken from the address of a page', () => {
  expect([originOf('https://www.example.com/watch?v=1'), originOf('HTTP://A:80/'), originOf('nonsense')]).toEqual([
    'https://www.example.com',
    'http://a',
    'nonsense',
  ]);
});

test('a link fills the fields in, without the token', () => {
  const wanted = { page: 'https://a', manifest: 'https://m/x?y', site: '', title: '', token: 'secret' };
  expect(fragmentOf(wanted)).toBe('#page=https%3A%2F%2Fa&manifest=https%3A%2F%2Fm%2Fx%3Fy');
});

test('what this page cannot know is not shown', () => {
  expect(['player', 'piece', 'site', 'relays'].map((check) => shown(check, true))).toEqual([false, false, true, true]);
  expect(shown('site', false)).toBe(false);
});

test('the sentence counts errors', () => {
  const one = { check: 'site', status: 'error', code: 'x', text: '', took_ms: 0 } as const;
  expect(sentenceOf([one], { page: '' })).toBe('One thing is wrong.');
  expect(sentenceOf([one, one], { page: '' })).toBe('2 things are wrong.');
  expect(sentenceOf([{ ...one, status: 'warning' }], { page: 'https://a' })).toBe(
    'Pages of https://a can share, from here.',
  );
});
