/** What both have in common. Colors have a contrast of 4.5 and more on their ground, light and dark. */
export const common = `
:host {
  --ground: #fff; --ink: #1d2328; --quiet: #59636c; --line: #d5dade; --accent: #0a6b4f; --soft: #eef2f1; --warn: #9a3412;
}
.root { color: var(--ink); font: 13px/1.45 system-ui, sans-serif; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :host {
    --ground: #171c20; --ink: #e8ecef; --quiet: #a3adb5; --line: #38424a; --accent: #5fd3ac; --soft: #222a2f; --warn: #fdba74;
  }
}
* { box-sizing: border-box; }
button { font: inherit; color: inherit; cursor: pointer; }
button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
h2 { margin: 0; font-size: 14px; }
`;
