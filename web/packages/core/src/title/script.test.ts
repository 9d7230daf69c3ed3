import { describe, expect, it, vi } from 'vitest';
import type { CreateEngine } from './options.ts';
import { createScript } from './script.ts';

const engine = (() => ({})) as unknown as CreateEngine;
const lost = () => vi.fn(() => Promise.reject<CreateEngine>(new Error('lost')));

describe("the engine's script", () => {
  it('is asked for once, however many need it', async () => {
    const load = vi.fn(() => Promise.resolve(engine));
    const script = createScript(load);
    script.fetch();
    expect(await Promise.all([script.need(), script.need()])).toEqual([engine, engine]);
    expect(load).toHaveBeenCalledTimes(1);
  });

  it('is asked for again after it did not come, later each time, up to a bound', async () => {
    const load = lost();
    const script = createScript(load);
    script.fetch(); // no unhandled rejection
    const waits: number[] = [];
    for (let n = 1; n <= 30; n++) {
      await expect(script.need()).rejects.toThrow('lost');
      expect(load).toHaveBeenCalledTimes(n);
      waits.push(script.failed() / 1_000);
    }
    expect(waits.slice(0, 8)).toEqual([10, 20, 40, 80, 160, 320, 640, 640]);
    expect(waits.at(-1)).toBe(640);
  });

  it('has failed once for all titles that needed it', async () => {
    const script = createScript(lost());
    await expect(script.need()).rejects.toThrow('lost');
    expect([script.failed(), script.failed(), script.failed()]).toEqual([10_000, 10_000, 10_000]);
    await expect(script.need()).rejects.toThrow('lost');
    expect(script.failed()).toBe(20_000);
  });
});
