// What each API of a browser is for, and what happens without it. A row has to exist for all that the packages use; a name without a
// member stands for all members that have no row of their own.

/** The oldest versions that have all that is needed. */
export const floor = { chrome: '100', chrome_android: '100', firefox: '113', safari: '15.4', safari_ios: '15.4' };

const off = (code) => `delivery by peers is off, and the page hears \`${code}\`; the film plays from the origin`;

/** `without`: the library goes on without it; the end-to-end test `off` takes all of them from a page but those that turn it `off`. */
export const rows = [
  {
    use: 'Links to other viewers and to seeds',
    without: off('no-webrtc'),
    off: true,
    apis: [
      'RTCPeerConnection',
      'RTCDataChannel',
      'RTCIceCandidate',
      'RTCPeerConnectionIceEvent',
      'RTCDataChannelEvent',
      'RTCSessionDescription',
      'RTCStatsReport',
    ],
  },
  {
    use: 'What the network check and the doctor tell of relays and NATs',
    without: 'they take a STUN or TURN server for one that does not answer',
    apis: [
      'RTCIceCandidate.type',
      'RTCIceCandidate.address',
      'RTCIceCandidate.port',
      'RTCIceCandidate.protocol',
      'RTCIceCandidate.relatedAddress',
      'RTCIceCandidate.relatedPort',
      'RTCPeerConnection.onicecandidateerror',
      'RTCPeerConnectionIceErrorEvent',
    ],
  },
  {
    use: 'The path that a link has taken changes',
    without: 'what was measured of the old path ages out',
    apis: [
      'RTCPeerConnection.sctp',
      'RTCSctpTransport',
      'RTCDtlsTransport',
      'RTCIceTransport',
      'RTCIceTransport.getSelectedCandidatePair',
    ],
  },
  {
    use: 'Digests and signatures of pieces',
    without: off('no-webcrypto'),
    off: true,
    apis: ['SubtleCrypto', 'Crypto.subtle'],
  },
  { use: 'Random numbers', apis: ['Crypto', 'crypto', 'Window.crypto'] },
  {
    use: 'Whether the page is a secure context',
    apis: ['Window.isSecureContext', 'isSecureContext'],
  },
  { use: 'The tracker', apis: ['WebSocket', 'MessageEvent', 'CloseEvent'] },
  {
    use: 'Timers of hidden tabs, and the clock beside the page',
    without: 'a hidden tab sends once a second, and the page hears `worker-blocked`',
    apis: ['Worker', 'Blob', 'URL.createObjectURL', 'URL.revokeObjectURL'],
  },
  { use: 'Order of messages on a busy page', apis: ['MessageChannel', 'MessagePort'] },
  {
    use: 'The tabs of a browser share one line, and one of them has the disk',
    without: 'each tab counts as the only one, and nothing is kept on the disk',
    apis: ['LockManager', 'Lock', 'Navigator.locks', 'BroadcastChannel'],
  },
  {
    use: 'A film on the disk',
    without: 'nothing is kept on the disk',
    apis: [
      'StorageManager',
      'Navigator.storage',
      'FileSystemDirectoryHandle',
      'FileSystemFileHandle',
      'FileSystemWritableFileStream',
      'StorageManager.getDirectory',
    ],
  },
  {
    use: 'How the viewer is connected',
    without: 'a phone or tablet counts as one on a line that costs; a computer as one on a line that does not',
    apis: ['Navigator.connection', 'Navigator.userAgentData', 'NetworkInformation', 'NavigatorUAData'],
  },
  { use: 'Whether a phone runs on its battery', without: 'it counts as charging', apis: ['Navigator.getBattery'] },
  {
    use: 'Memory of the device',
    without: 'it counts as one of 4 GiB',
    apis: ['Navigator.deviceMemory'],
  },
  {
    use: 'The permission for the local network',
    without: 'there is no gate, so candidates of the local network are signalled',
    apis: ['Navigator.permissions', 'Permissions', 'PermissionStatus'],
  },
  {
    use: 'The page, its elements and its events',
    apis: [
      'window',
      'Window.document',
      'Window.location',
      'Window.navigator',
      'Window.addEventListener',
      'Window.removeEventListener',
      'Document',
      'document',
      'Element',
      'HTMLElement',
      'HTMLScriptElement',
      'HTMLOrSVGElement',
      'Node',
      'Event',
      'EventTarget',
      'ErrorEvent',
      'Location',
      'location',
      'navigator',
      'Navigator.userAgent',
      'DOMStringMap',
      'HTMLCollection',
      'NodeList',
      'ParentNode',
    ],
  },
  {
    use: 'What a policy of the page forbids',
    without: 'the library tries again where it could say `tracker-blocked`',
    apis: ['SecurityPolicyViolationEvent'],
  },
  { use: 'The element that plays', apis: ['HTMLMediaElement', 'HTMLVideoElement', 'TimeRanges'] },
  {
    use: 'Time',
    apis: [
      'Performance',
      'performance',
      'setTimeout',
      'clearTimeout',
      'setInterval',
      'clearInterval',
      'queueMicrotask',
    ],
  },
  { use: 'To give up what was asked for', apis: ['AbortController', 'AbortSignal'] },
  {
    use: 'Fetches of the library itself: files, and what a check asks',
    apis: [
      'fetch',
      'Response',
      'Request',
      'Headers',
      'ReadableStream',
      'ReadableStreamDefaultReader',
      'ReadableStreamDefaultController',
      'DOMException',
      'XMLHttpRequest',
    ],
  },
  {
    use: 'Text and addresses',
    apis: ['TextEncoder', 'TextDecoder', 'URL', 'URLSearchParams', 'Console', 'console', 'atob', 'btoa'],
  },
  {
    use: 'The switch of the badge is kept',
    without: 'the page forgets it',
    apis: ['Storage', 'localStorage', 'Window.localStorage'],
  },
  { use: 'Whether one points with a finger', apis: ['Window.matchMedia', 'matchMedia', 'MediaQueryList'] },
  {
    use: 'Badge and panel',
    apis: [
      'ShadowRoot',
      'Element.attachShadow',
      'CSSStyleDeclaration',
      'DOMTokenList',
      'HTMLButtonElement',
      'HTMLInputElement',
      'KeyboardEvent',
      'MouseEvent',
    ],
  },
  {
    use: 'Styles of badge and panel under a strict policy',
    without: 'they are an element of the page, which a strict policy forbids',
    apis: ['CSSStyleSheet', 'ShadowRoot.adoptedStyleSheets', 'DocumentOrShadowRoot.adoptedStyleSheets'],
  },
  {
    use: 'The panel copies what it has recorded',
    without: 'it says that it could not',
    apis: ['Clipboard', 'Navigator.clipboard'],
  },
  {
    use: 'dash.js learns that what the origin sent at once came over the network',
    without: "such a segment is no sample of the line, as one of the browser's cache",
    apis: ['PerformanceResourceTiming.transferSize'],
  },
  {
    use: 'The network check times the connections that its requests open',
    apis: [
      'PerformanceResourceTiming',
      'PerformanceObserver',
      'PerformanceObserverEntryList',
      'PerformanceEntry',
      'DedicatedWorkerGlobalScope',
    ],
  },
];

/** Of our own on what is the browser's. */
export const own = new Set(['Window.leeway', 'PartScript.media', 'PartScript.take']);

/** Options, events' contents and statistics: shapes without an entry of their own in the data. */
export const shapes = new Set([
  'LockManagerSnapshot',
  'LockInfo',
  'RTCIceServer',
  'RTCSessionDescriptionInit',
  'RequestInit',
  'ReadableStreamReadValueResult',
  'ReadableStreamReadDoneResult',
  'IteratorYieldResult',
  'IteratorReturnResult',
  'MapIterator',
  'SetIterator',
  'ArrayBufferView',
  'PropertyDescriptor',
]);
