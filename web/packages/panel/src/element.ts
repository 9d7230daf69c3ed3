/** Elements without markup: a page with trusted types or a strict content security policy has them too. */

type Child = Node | string | undefined;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Record<string, unknown> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (/-|^role$/.test(name)) made.setAttribute(name, String(value));
    else (made as unknown as Record<string, unknown>)[name] = value;
  }
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/** Puts a shadow tree on the page that neither gets the page's styles nor gives it any. */
export function mount(name: string, style: string, ...children: Node[]): HTMLElement {
  const host = element('div', { id: `leeway-${name}`, lang: 'en' });
  // The page's own rules for `div` do not reach what is set here. Its direction does, but by the last one: what is shown is English.
  host.style.cssText = 'all: initial; position: fixed; z-index: 2147483647; direction: ltr';
  const root = host.attachShadow({ mode: 'open' });
  try {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    root.adoptedStyleSheets = [sheet];
  } catch {
    root.append(element('style', { textContent: style })); // Safari before 16.4
  }
  root.append(...children);
  document.body.append(host);
  return host;
}
