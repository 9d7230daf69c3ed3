/** A small badge: what a viewer takes from others and gives to them, and a switch. */

import type { Leeway } from '@leeway/core';
import { createCounts } from './counts.ts';
import { element, mount } from './element.ts';
import { isSwitchedOff, remember } from './memory.ts';
import { common } from './style.ts';
import { bytes } from './text.ts';

export interface BadgeOptions {
  /** The corner at the bottom of the page: `left`, or else `right`. */
  side?: string;
}

const everyMs = 1000;

const style = `${common}
.badge {
  display: flex; gap: 8px; align-items: center; min-height: 32px; padding: 4px 12px; border: 1px solid var(--line);
  border-radius: 16px; background: var(--ground); box-shadow: 0 1px 4px #0003; font-variant-numeric: tabular-nums; white-space: nowrap;
}
.dot { width: 8px; height: 8px; border-radius: 50%; background: var(--accent); }
.idle .dot, .off .dot { background: none; box-shadow: inset 0 0 0 2px var(--quiet); }
.card {
  width: min(300px, calc(100vw - 24px)); margin-bottom: 8px; padding: 14px 16px; border: 1px solid var(--line); border-radius: 12px;
  background: var(--ground); box-shadow: 0 4px 20px #0004;
}
.right .badge { margin-left: auto; }
p { margin: 6px 0 10px; color: var(--quiet); }
dl { display: grid; grid-template-columns: 1fr auto; gap: 4px 12px; margin: 0 0 12px; font-variant-numeric: tabular-nums; }
dd { margin: 0; text-align: right; font-weight: 600; }
.switch {
  display: flex; align-items: center; justify-content: space-between; width: 100%; min-height: 36px; padding: 4px 10px;
  border: 0; border-radius: 8px; background: var(--soft); text-align: left;
}
.track { position: relative; flex: none; width: 34px; height: 20px; border-radius: 10px; background: var(--quiet); }
.track::after { content: ""; position: absolute; top: 3px; left: 3px; width: 14px; height: 14px; border-radius: 50%; background: var(--ground); }
[aria-checked=true] .track { background: var(--accent); }
[aria-checked=true] .track::after { left: 17px; }
.off .switch { display: none; }
@media (pointer: coarse) { .badge { min-height: 40px; border-radius: 20px; } .switch { min-height: 44px; } }
@media print { :host { display: none; } }
`;

/** What of the badge changes. */
function parts(press: () => void, flip: () => void) {
  const figure = () => element('dd');
  const [taken, served, given] = [figure(), figure(), figure()] as const;
  const label = element('span');
  const toggle = element(
    'button',
    { type: 'button', className: 'switch', role: 'switch', onclick: flip },
    'Share with other viewers',
    element('span', { className: 'track' }),
  );
  const card = element(
    'div',
    { id: 'card', className: 'card', hidden: true, role: 'dialog', 'aria-labelledby': 'name' },
    element('h2', { id: 'name' }, 'Delivered with other viewers'),
    element(
      'p',
      {},
      'Viewers of this page send parts of what it plays to each other. While you share, they see your IP address, as you see theirs.',
    ),
    element(
      'dl',
      {},
      ...[element('dt', {}, 'From other viewers'), taken],
      ...[element('dt', {}, 'From servers'), served],
      ...[element('dt', {}, 'Given to others'), given],
    ),
    toggle,
  );
  const button = element(
    'button',
    { type: 'button', className: 'badge', 'aria-controls': 'card', 'aria-expanded': false, onclick: press },
    element('span', { className: 'dot' }),
    label,
  );
  const box = element('div', {}, card, button);
  return [box, card, button, toggle, label, taken, served, given] as const;
}

/** Shows the badge. Returns what takes it away again. */
export function showBadge(leeway: Leeway, options: BadgeOptions = {}): () => void {
  const side = options.side === 'left' ? 'left' : 'right';
  const { consent } = leeway;
  const isOn = () => !/^(idle|off)$/.test(leeway.state);
  const count = createCounts(leeway);
  let timer = 0;
  const open = (shown: boolean) => {
    card.hidden = !shown;
    button.setAttribute('aria-expanded', String(shown));
    if (shown) toggle.focus();
  };
  const [box, card, button, toggle, label, taken, served, given] = parts(
    () => open(card.hidden !== false),
    () => {
      const on = !isOn();
      remember(!on);
      consent(on);
      draw();
    },
  );
  const draw = () => {
    leeway.clock.clearTimer(timer);
    timer = leeway.clock.setTimer(draw, everyMs);
    const on = isOn();
    const counts = count();
    const [took, gave] = [bytes(counts.taken), bytes(counts.given)];
    // Where this viewer cannot share there is nothing to switch.
    box.className = `root ${side} ${leeway.state}`;
    label.textContent = on ? `↓ ${took}  ↑ ${gave}` : 'Sharing is off';
    button.setAttribute(
      'aria-label',
      on ? `Shared with other viewers: ${took} taken, ${gave} given` : 'Sharing with other viewers is off',
    );
    toggle.setAttribute('aria-checked', String(on));
    taken.textContent = took;
    served.textContent = bytes(counts.served);
    given.textContent = gave;
  };

  // What the viewer has switched off the page does not switch on.
  leeway.consent = (allowed) => consent(allowed && !isSwitchedOff());
  if (isSwitchedOff()) consent(false);
  const host = mount('badge', style, box);
  host.style.bottom = '12px';
  host.style[side] = '12px';
  host.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || card.hidden) return;
    open(false);
    button.focus();
  });
  const outside = (event: Event) => {
    if (!card.hidden && !event.composedPath().includes(host)) open(false);
  };
  document.addEventListener('pointerdown', outside);
  const remove = () => {
    release();
    leeway.clock.clearTimer(timer);
    leeway.consent = consent;
    document.removeEventListener('pointerdown', outside);
    host.remove();
  };
  const release = leeway.on('state', ({ state }) => (state === 'stopped' ? remove() : draw()));
  draw();
  // As it may have been while the badge's script was on its way.
  if (leeway.state === 'stopped') remove();
  return remove;
}
