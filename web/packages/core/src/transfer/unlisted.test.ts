import { expect, it } from 'vitest';
import { SiteRules } from '../segment/index.ts';
import { createStats } from '../stats/stats.ts';
import type { Segment } from './segments.ts';
import type { Shared } from './shared.ts';
import { createUnlisted } from './unlisted.ts';

const setUp = (title = '/film') => {
  const stats = createStats();
  const notices: { code: string; message: string }[] = [];
  const { heard } = createUnlisted({ stats } as unknown as Shared, {
    rules: new SiteRules({ name: 's', hosts: [] }),
    title,
    notice: (code, message) => void notices.push({ code, message }),
  });
  return { stats, notices, heard: (name: string) => heard({ name } as Segment) };
};

it('says once which parameters are in names that seeds do not know, and reports them', () => {
  const { stats, notices, heard } = setUp();
  heard('/film/1.ts?token=secret1&expires=1');
  heard('/film/2.ts?token=secret2&expires=2#0-99');
  expect(notices).toEqual([]);
  heard('/film/3.ts?token=secret3&u=7');
  heard('/film/4.ts?token=secret4');
  expect(notices).toHaveLength(1);
  expect(notices[0]!.code).toBe('signed-urls');
  expect(notices[0]!.message).toContain('token, expires, u');
  expect(JSON.stringify([notices, stats.totals()])).not.toContain('secret');
  expect(stats.take().unlisted_query).toEqual({ token: 4, expires: 2, u: 1 });
});

it('says nothing of segments without a query, and bounds what it tells', () => {
  const { stats, notices, heard } = setUp();
  for (let i = 0; i < 5; i++) heard(`/film/${i}.ts`);
  expect(stats.take().unlisted_query).toBeUndefined();
  for (let i = 0; i < 20; i++) heard(`/film/${i}.ts?p${i}=1&${'x'.repeat(65)}=1&a;b=1`);
  expect(Object.keys(stats.take().unlisted_query!)).toHaveLength(8);
  expect(notices).toHaveLength(1);
});

it('says of a title with a credential that it is of one viewer', () => {
  const { notices } = setUp('/film?lang=de&Signature=abc');
  expect(notices.map((n) => n.message).join()).toContain('The title carries parameters');
  expect(setUp('/film?lang=de').notices).toEqual([]);
});
