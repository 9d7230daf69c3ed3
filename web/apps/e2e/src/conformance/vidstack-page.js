// In pages with Vidstack: its elements, bundled as a page with a bundler has them.
import 'vidstack/player';
import { isHLSProvider } from 'vidstack';

window.isHLSProvider = isHLSProvider;
