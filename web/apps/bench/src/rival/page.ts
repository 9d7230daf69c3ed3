/**
 * Put into the demo page by `leeway-lab bench swarm`, in the place of our script: its hls.js plays with p2p-media-loader then. It gets what
 * its README asks for, a tracker and a STUN server, and has its defaults otherwise.
 */
import { HlsJsP2PEngine } from 'p2p-media-loader-hlsjs';
import { mix } from './mix.ts';

declare global {
  interface Window {
    /** Bytes of segments by source, as the engine reports them. */
    __rival?: { http: number; p2p: number; uploaded: number };
  }
}

const { announce = '', stun = '' } = document.currentScript!.dataset;
const traffic = { http: 0, p2p: 0, uploaded: 0 };
window.__rival = traffic;
const engine = new HlsJsP2PEngine({
  core: {
    announceTrackers: [new URL(announce, location.href.replace('http', 'ws')).href],
    rtcConfig: { iceServers: [{ urls: stun }] },
  },
});
engine.addEventListener('onChunkDownloaded', (bytes, source) => {
  traffic[source] += bytes;
});
engine.addEventListener('onChunkUploaded', (bytes) => {
  traffic.uploaded += bytes;
});
mix(window, engine as Parameters<typeof mix>[1]);
