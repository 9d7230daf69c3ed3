import type { SiteRules } from '../segment/index.ts';
import type { Welcome } from '../session/messages.ts';
import type { TitleOptions } from './options.ts';

/** How a title is called on its site. */
export interface Naming {
  rules: SiteRules;
  name?: string;
  /** The manifest's key without its query. */
  path: string;
  /** Names the manifest by the rules that the tracker sent; throws why they have no name for it. */
  read(welcome: Welcome): void;
}

export const createNaming = (o: Pick<TitleOptions, 'manifest' | 'title' | 'file' | 'rules'>): Naming => {
  const naming = {
    read(welcome) {
      naming.rules = o.rules(welcome);
      const key = naming.rules.key(o.manifest);
      naming.name = naming.rules.title(key, o.file ? key : o.title);
      naming.path = key.split('?')[0]!;
    },
  } as Naming;
  return naming;
};
