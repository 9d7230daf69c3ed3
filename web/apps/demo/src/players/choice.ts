/** The players that a visitor can choose. None is part of the page: the one that is chosen is loaded. */
import type { Start } from './driver';

export type PlayerName = 'hlsjs' | 'shaka' | 'dashjs' | 'videojs';
export type Format = 'HLS' | 'DASH';

export interface Choice {
  label: string;
  plays: Format[];
  load(): Promise<{ start: Start }>;
}

export const choices: Record<PlayerName, Choice> = {
  hlsjs: { label: 'hls.js', plays: ['HLS'], load: () => import('./hlsjs') },
  shaka: { label: 'Shaka', plays: ['HLS', 'DASH'], load: () => import('./shaka') },
  dashjs: { label: 'dash.js', plays: ['DASH'], load: () => import('./dashjs') },
  videojs: { label: 'Video.js', plays: ['HLS'], load: () => import('./videojs') },
};

/** The labels of those that `wanted` says yes to: “hls.js, Shaka and Video.js”. */
function labels(joint: string, wanted: (choice: Choice) => boolean = () => true): string {
  const all = Object.values(choices)
    .filter(wanted)
    .map(({ label }) => label);
  return all.length < 2 ? all.join() : `${all.slice(0, -1).join(', ')} ${joint} ${all.at(-1)}`;
}

/** The player that a query asks for; what the page has not is hls.js, and a sentence about it. */
export function readPlayer(text: string | null): { player: PlayerName; refused?: string } {
  const name = (text ?? '').toLowerCase().replace(/[^a-z]/g, '');
  if (text === null || text.trim() === '') return { player: 'hlsjs' };
  if (Object.hasOwn(choices, name)) return { player: name as PlayerName };
  const shown = text.length > 30 ? `${text.slice(0, 30)}…` : text;
  return {
    player: 'hlsjs',
    refused: `This page has no player “${shown}”, so hls.js plays. There are ${labels('and')}.`,
  };
}

/** What the name of a manifest says of it; nothing where it says nothing. */
export function formatOf(url: string, page: string): Format | undefined {
  const path = URL.canParse(url, page) ? new URL(url, page).pathname : url;
  if (/\.mpd$/i.test(path)) return 'DASH';
  return /\.m3u8?$/i.test(path) ? 'HLS' : undefined;
}

/** Why a player does not play a format, and which ones do; nothing where it does. */
export function unplayable(player: PlayerName, format: Format | undefined): string | undefined {
  const { label, plays } = choices[player];
  if (format === undefined || plays.includes(format)) return undefined;
  return `${label} plays no ${format}. Choose ${labels('or', (choice) => choice.plays.includes(format))}.`;
}
