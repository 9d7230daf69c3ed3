import { expect, test } from 'vitest';
import { budgets, type Kind, scripts, sizes } from '../build.mjs';

test('the scripts of the drop-in stay within their budgets, and hold nothing twice that has state', async () => {
  const made = await scripts();
  for (const kind of Object.keys(budgets) as Kind[]) {
    const { bytes, brotli } = sizes(made[kind]);
    console.log(`${made[kind].name}: ${bytes} bytes, ${brotli} after brotli (at most ${budgets[kind]})`);
    expect(brotli).toBeLessThanOrEqual(budgets[kind]);
    // The comment counts at the beginning alone.
    const atOnce = made[kind].code.startsWith('//# allFunctionsCalledOnLoad\n');
    expect(atOnce, kind).toBe(!/^(more|seldom|disk)$/.test(kind));
  }
  // Functions and constants: two copies behave as one. What is made once a page or a title belongs to one script.
  const twice = made.engine.inputs.filter((path) => made.script.inputs.includes(path));
  expect(twice.map((path) => path.replace('../core/src/', '')).sort()).toEqual([
    'browser/sleep.ts',
    'link/address.ts',
    'ports.ts',
    'schedule/input.ts',
    'schedule/segment.ts',
    'segment/index.ts',
    'segment/segment.ts',
    'segment/site.ts',
    'src/script.ts',
    'stats/capacity.ts',
  ]);
  const { seldom, engine } = made;
  const node = seldom.holds.filter((path) => engine.holds.includes(path));
  expect(node.map((path) => path.replace('../core/src/', '')).sort()).toEqual([
    'certificate/certificate.ts',
    'protocol/assembly.ts',
    'protocol/limits.ts',
    'protocol/parts.ts',
    'protocol/peer.ts',
    'schedule/rank.ts',
    'segment/segment.ts',
    'transfer/segments.ts',
    'transfer/shared.ts',
  ]);
  const kept = made.disk.holds.filter((path) => engine.holds.includes(path));
  expect(kept.map((path) => path.replace('../core/src/', '')).sort()).toEqual([
    'browser/sleep.ts',
    'cache/cache.ts',
    'certificate/certificate.ts',
    'segment/segment.ts',
    'transfer/segments.ts',
    'transfer/shared.ts',
  ]);
  for (const kind of Object.keys(budgets) as Kind[]) {
    if (/^(script|engine|seldom|disk)$/.test(kind)) continue;
    const adapter = made[kind].holds.filter((path) => made.script.inputs.includes(path));
    expect(adapter, kind).toEqual([]);
  }
}, 60_000);
