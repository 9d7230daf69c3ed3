// In pages with Video.js 10: its elements, bundled as a page with a bundler has them. The tag finds hls.js as a global.
import '@videojs/html/video/player';
import '@videojs/html/media/hls-video';
import { Hls } from '@videojs/core/dom/media/hls';

window.Hls = Hls;
