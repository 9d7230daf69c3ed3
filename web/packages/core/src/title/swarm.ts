/** The swarm of a title: asked for, joined and left. */

import type { Joined } from '../session/messages.ts';
import type { TrackerSession } from '../session/session.ts';
import type { TitleOptions } from './options.ts';

export interface Swarm {
  /** As the tracker calls it, once it is joined. */
  id: string | undefined;
  /** Whether the title is in a swarm, or has asked to join it by its name. */
  owns(id: string, name?: string): boolean;
  /** Asks to join, and says when it has. A swarm is left again whose answer comes when that is not current any more. */
  join(
    message: Parameters<TrackerSession['join']>[0],
    current: () => boolean,
    joined: (answer: Joined) => void,
  ): Promise<void>;
  leave(): void;
}

export const createSwarm = ({ session, owned }: Pick<TitleOptions, 'session' | 'owned'>): Swarm => {
  /** Joins without an answer, */
  let asking = 0;
  /** and by which name. */
  let name = '';

  /** The page is in it once, for all its titles that have the name. */
  const quit = (swarm: string) => {
    if (!owned(swarm, name)) session.send({ type: 'leave', swarm });
  };

  const swarm: Swarm = {
    id: undefined,
    owns: (id, of) => id === swarm.id || (asking > 0 && of === name),
    async join(message, current, joined) {
      name = message.title;
      asking++;
      const answer = await session.join(message).finally(() => asking--);
      if (!current()) return quit(answer.swarm);
      swarm.id = answer.swarm;
      joined(answer);
    },
    leave() {
      const { id } = swarm;
      swarm.id = undefined;
      if (id) quit(id);
    },
  };
  return swarm;
};
