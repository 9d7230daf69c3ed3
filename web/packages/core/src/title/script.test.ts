import { describe, expect, it, vi } from 'vitest';
import type { CreateEngine } from './options.ts';
import { createScript } from './script.ts';

const engine = (() => ({})) as unknown as CreateEngine;

describe("the engine's script", () => {
  it('is asked for once, however many need it', async () => {
    const load = vi.fn(() => Promise.resolve(engine));
    const script = createScript(load);
    script.fetch();
    expect(await Promise.all([script.need(), script.need()])).toEqual([engine, engine]);
    expect(load).toHaveBeenCalledTimes(1);
  });

  it('is asked for again after it did not come, later each time', async () => {
    const load = vi.fn(() => Promise.reject(new Error('lost')));
    const script = createScript(load as unknown as () => Promise<CreateEngine>);
    script.fetch(); // no unhandled rejection
    await expect(script.need()).rejects.toThrow('lost');
    expect(load).toHaveBeenCalledTimes(1);
    expect(script.failed()).toBe(10_000);
    await expect(script.need()).rejects.toThrow('lost');
    expect(load).toHaveBeenCalledTimes(2);
    expect([script.failed(), script.failed()]).toEqual([20_000, 40_000]);
  });
});
