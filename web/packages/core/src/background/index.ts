export { type BackgroundOptions, createBackground } from './background.ts';
export { backgroundHeader, backgroundType, decodeBackground, encodeBackground, type Part } from './message.ts';
export type {
  Alarm,
  Background,
  BackgroundLane,
  BackgroundLink,
  BackgroundSource,
  TabsPort,
} from './ports.ts';
