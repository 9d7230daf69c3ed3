/** Certificates that an offer wants and its answer says. */
import { expect, it } from 'vitest';
import type { Action } from '../schedule/action.ts';
import { defaultPolicy } from '../schedule/input.ts';
import { Film, idOf } from './film.ts';
import { figures, fine, setUp } from './scene.ts';

/** A viewer that holds the film, and one that links to it beside its first segments, with an offer that wants the next two. */
const scene = async (named: boolean) => {
  const film = new Film(12, 4_000, 1_000_000);
  const { network, seed, viewers, viewer, run } = setUp(film);
  const first = viewer([seed]);
  await run(20_000);
  const actions: Action[] = [];
  const second = viewer([], { record: (_input, done) => void actions.push(...done), policy: defaultPolicy });
  second.engine.setLinking(true, true);
  await run(250);
  const next = film.segments.slice(second.results.length + 1).slice(0, 2);
  const wanted = next.map(({ name }) => idOf(name));
  const [mine, theirs] = network.link({ id: second.id, role: 'viewer' }, { id: first.id, role: 'viewer' });
  const { said, held } = first.engine.greeting(wanted);
  expect(said).toHaveLength(4);
  const link = (messages: Uint8Array[]) => {
    second.engine.addLink(Object.assign(mine, named && { wanted }));
    first.engine.addLink(Object.assign(theirs, { greeted: held }));
    for (const message of messages) mine.onControl!(message);
  };
  const asked = () => actions.filter((a) => a.type === 'certificate' && wanted.includes(a.segment));
  return { film, viewers, first, second, next, said, link, asked, run };
};

it.each([
  ['wanted are not asked for again', true],
  ['unasked are dropped and counted', false],
])('certificates that come with an answer and were %s', async (_, named) => {
  const { film, viewers, second, next, said, link, asked, run } = await scene(named);
  link(said);
  await run(60_000);
  expect(asked()).toHaveLength(named ? 0 : 2);
  expect(second.engine.snapshot().counters.unasked_certificates ?? 0).toBe(named ? 0 : 2);
  expect(figures(viewers, film)).toMatchObject(fine);
  // And they are good for something.
  for (const { name } of next)
    expect(second.results[film.segments.findIndex((s) => s.name === name)]!.source).toBe('peer');
});

it('a forged certificate in an answer ends the link', async () => {
  const { film, viewers, first, second, said, link, run } = await scene(true);
  said[2]![said[2]!.length - 1]! ^= 1;
  link(said);
  await run(60_000);
  expect(second.unlinked).toMatchObject([{ peer: first.id, reason: 'protocol-error', banned: true }]);
  expect(figures(viewers, film)).toMatchObject(fine);
});
