import { expect, test } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { createRequests } from './requests.ts';

test('a request is settled once: by its answer, by time, or by the loss of the socket', async () => {
  const clock = new FakeClock();
  const requests = createRequests(clock);
  const ids: number[] = [];
  const send = (id: number) => ids.push(id) > 0;
  const joined = requests.ask(send);
  expect(requests.settle(ids[0], { swarm: 's' } as never)).toBe(true);
  expect(requests.settle(ids[0], { swarm: 's' } as never)).toBe(false);
  await expect(joined).resolves.toMatchObject({ swarm: 's' });
  const late = requests.ask(send);
  const timedOut = expect(late).rejects.toMatchObject({ code: 'timeout' });
  await clock.advance(20_000);
  await timedOut;
  const lost = requests.ask(send);
  requests.lose();
  await expect(lost).rejects.toMatchObject({ code: 'lost' });
  await expect(requests.ask(() => false)).rejects.toMatchObject({ code: 'lost' });
  expect(new Set(ids).size).toBe(3);
});
