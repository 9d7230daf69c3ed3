import { describe, expect, it } from 'vitest';
import type { Reason } from '../ports.ts';
import type { Welcome } from '../session/messages.ts';
import { createDelivery } from './delivery.ts';

const setUp = (policy: object = {}, metered = false, prefetch = true, disk?: boolean) => {
  const told: (Reason | null)[] = [];
  const notices: string[] = [];
  let decided = 0;
  const welcome = {
    session: 'AAAAAAAAAAAAAAAAAAAAAA',
    ice_servers: [],
    limits: { links: 9 },
    policy: { role: 'full', control_group: false, prefetch: true, waste_bytes: 7, max_links: 16, ...policy },
  } as unknown as Welcome;
  const state = { welcome: welcome as Welcome | undefined };
  const delivery = createDelivery({
    welcome: () => state.welcome,
    environment: { line: () => ({ metered, unknown: false, coarse: false }), battery: () => true },
    prefetch,
    disk,
    notice: (code) => notices.push(code),
    changed: (reason) => told.push(reason),
    decided: () => decided++,
  });
  return { delivery, told, notices, state, decided: () => decided };
};

describe('delivery', () => {
  it.each([
    ['the policy', {}, false, 'full'],
    ['the line', {}, true, 'leech'],
    ['both', { role: 'relay-only' }, true, 'off'],
  ])('has the role of %s', (_, policy, metered, role) => {
    const { delivery, state } = setUp(policy, metered);
    expect(delivery.role()).toBe(role);
    expect(delivery.settings()).toMatchObject({ self: '0'.repeat(32), maxLinks: 9, policy: { role } });
    state.welcome = undefined;
    expect(delivery.role()).toBe('off');
  });

  it('tells of each change once', () => {
    const { delivery, told, notices, decided } = setUp();
    delivery.setOff(null);
    delivery.leaveOut('udp-blocked', 'links-blocked');
    delivery.leaveOut('udp-blocked', 'links-blocked');
    delivery.setOff(null);
    expect(told).toEqual(['udp-blocked', null]);
    expect(notices).toEqual(['links-blocked']);
    expect(decided()).toBe(2);
    expect(delivery.off()).toBe(null);
  });

  it('that is barred comes back with a new decision alone, not with a change of the policy', () => {
    const { delivery } = setUp();
    delivery.bar('needs-token', 'needs-token');
    delivery.decide(null);
    expect(delivery.off()).toBe('needs-token');
    delivery.decide(null, true);
    expect(delivery.off()).toBe(null);
  });

  it.each([
    ['on', {}, null, [], []],
    ['on, and no link opens', {}, 'udp-blocked', ['udp-blocked'], []],
    ['off', { role: 'off' }, null, ['policy'], ['policy-off']],
    ['the control group', { control_group: true }, 'udp-blocked', ['control-group'], ['control-group']],
  ])('follows a policy: %s', (_, policy, blocked, reasons, codes) => {
    const { delivery, told, notices } = setUp(policy);
    delivery.decide(blocked as Reason | null);
    expect(told).toEqual(reasons);
    expect(notices).toEqual(codes);
  });

  it.each([
    [true, true, true],
    [true, false, false],
    [false, true, false],
  ])('fetches ahead where the site (%s) and the page (%s) allow it', (site, page, allowed) => {
    const { delivery } = setUp({ prefetch: site, upload_kbps: 800 }, true, page);
    expect(delivery.ahead()).toMatchObject({
      allowed,
      waste_bytes: 7,
      upload_kbps: 800,
      role: 'leech',
      battery: true,
    });
  });

  it.each([
    ['the site allows it', 1_000, undefined, 1_000],
    ['the site does not', undefined, undefined, undefined],
    ['the page has something against it', 1_000, false, false],
  ])('keeps segments on the disk where %s', (_, site, page, most) => {
    const { delivery } = setUp({ disk_bytes: site }, false, true, page);
    expect(delivery.ahead().disk_bytes).toBe(most);
  });
});
