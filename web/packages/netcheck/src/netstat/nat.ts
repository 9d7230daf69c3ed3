/** What a NAT does with one socket (spec/probe.md, Reachability). */

export type Mapping = 'no-answer' | 'untranslated' | 'dependent' | 'endpoint-independent' | 'unknown';

/**
 * answered: the hosts of the STUN servers that answered. mappings: how many reflexive addresses they told. translated: whether one is
 * another than the socket's own; null: not known.
 */
export function mapping(answered: readonly string[], mappings: number, translated: boolean | null): Mapping {
  if (answered.length === 0) return 'no-answer';
  if (translated === false) return 'untranslated';
  if (mappings > 1) return 'dependent';
  return answered.some((host) => host !== answered[0]) ? 'endpoint-independent' : 'unknown';
}
