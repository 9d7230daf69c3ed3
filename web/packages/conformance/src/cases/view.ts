/** One viewer of a cell: a window with the kit's page in it. */

import type { KitPage } from '../bench.ts';
import type { KitWindow, PageSeen, PlayerSeen } from '../page/probe.ts';

/** How often a condition is looked at, in ms. */
const lookMs = 250;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export class View {
  constructor(
    readonly name: string,
    private readonly page: KitPage,
  ) {}

  read(): Promise<PageSeen> {
    return this.page.evaluate(() => (window as unknown as KitWindow).__read());
  }

  /** Waits until a condition holds for every player; false: it did not within `seconds`. */
  async until(holds: (player: PlayerSeen) => boolean, seconds: number): Promise<boolean> {
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      const { players } = await this.read();
      if (players.every(holds)) return true;
      // A player that has given up does not come back.
      if (players.some(({ errors }) => errors.some(({ fatal }) => fatal))) return false;
      await pause(lookMs);
    }
    return false;
  }

  /** Moves the playhead of every player, in seconds. */
  seek(to: number): Promise<void> {
    return this.page.evaluate((time) => {
      for (const video of (window as unknown as KitWindow).__videos) video.currentTime = time;
    }, to);
  }

  /** Stops the playheads. Players go on to fill their buffers. */
  hold(): Promise<void> {
    return this.page.evaluate(() => {
      for (const video of (window as unknown as KitWindow).__videos) video.pause();
    });
  }

  /** Waits until the page has so many links; false: it has not within `seconds`. */
  async linked(links: number, seconds: number): Promise<boolean> {
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      if ((await this.read()).links >= links) return true;
      await pause(lookMs);
    }
    return false;
  }

  /** Has the players play again, as a click does. */
  play(): Promise<void> {
    return this.page.evaluate(() => {
      for (const video of (window as unknown as KitWindow).__videos) video.play().catch(() => {});
    });
  }

  close(): Promise<void> {
    return this.page.close();
  }
}

/** The playhead is there, whatever it has jumped over. */
export const reached =
  (seconds: number) =>
  ({ picture }: PlayerSeen): boolean =>
    (picture?.currentTime ?? 0) >= seconds;

export const ended = ({ picture }: PlayerSeen): boolean => picture?.ended ?? false;
