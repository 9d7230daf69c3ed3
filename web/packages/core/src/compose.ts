/** Puts the engine together for a title: the one place where the facade knows what the engine is made of. */

import { createEngine } from './engine.ts';
import type { Environment } from './environment.ts';
import type { Engine } from './ports.ts';
import { SiteRules } from './segment/index.ts';
import type { Welcome } from './session/messages.ts';
import type { EngineContext } from './title.ts';

export function composeRules(welcome: Welcome): SiteRules {
  return new SiteRules(welcome.site);
}

export function composeEngine(context: EngineContext, environment: Environment): Engine {
  const { clock, crypto } = environment;
  const { welcome, swarm, self, uploads, line } = context;
  return createEngine({ clock, crypto, rules: new SiteRules(welcome.site), swarm, self, uploads, line });
}
