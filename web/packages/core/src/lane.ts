/** The background lane without the engine, for packages of this workspace that carry it with them. It is not published. */
export {
  type Background,
  type BackgroundLane,
  type BackgroundLink,
  type BackgroundSource,
  backgroundHeader,
  createBackground,
} from './background/index.ts';
export { Sender } from './background/sender.ts';
export { pageAlarm } from './browser/alarm.ts';
export { clock } from './browser/environment.ts';
export { Within } from './ledbat/within.ts';
