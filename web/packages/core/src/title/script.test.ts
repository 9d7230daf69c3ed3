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
    expect(script.came()).toBe(false);
  });

  it('is asked for again after it did not come, later each time', async () => {
    const load = vi.fn(() => Promise.reject(new Error('lost')));
    const script = createScript(load as unknown as () => Promise<CreateEngine>);
    script.fetch(); // no unhandled rejection
    await expect(script.need()).rejects.toThrow('lost');
    expect(load).toHaveBeenCalledTimes(1);
    script.failed();
    await expect(script.need()).rejects.toThrow('lost');
    expect(load).toHaveBeenCalledTimes(2);
    expect([script.againMs(), script.againMs(), script.againMs()]).toEqual([10_000, 20_000, 40_000]);
    expect([script.came(), script.came()]).toEqual([true, false]);
    expect(script.againMs()).toBe(10_000);
  });
});
