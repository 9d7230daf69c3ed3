import { Chromium } from './browser.ts';
import { Firefox } from './firefox.ts';
import type { StackOptions } from './stack.ts';

/** `LEEWAY_E2E_BROWSER=firefox`: startup and the choice of renditions are compared in Firefox. */
const inFirefox = process.env.LEEWAY_E2E_BROWSER === 'firefox';

export const startBrowser = (): Promise<Chromium | Firefox> => (inFirefox ? Firefox.start() : Chromium.start());

/** Firefox makes no pair with a loopback address. */
export const stackFor: StackOptions = inFirefox ? { split: true, publicSeed: true } : {};

/** The name of a case's figures. */
export const figuresOf = (name: string): string => (inFirefox ? `${name}-firefox` : name);
