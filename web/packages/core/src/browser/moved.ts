import { listen } from './sleep.ts';

interface NetworkInformation extends EventTarget {
  type?: string;
}

/**
 * Calls when the page finds itself in another network, as far as the browser says. Its estimates of one and the same network
 * change all the time; whether it is Wi-Fi or a mobile network says Chromium on Android alone.
 */
export const onMoved = (f: () => void): (() => void) => {
  const { connection = window as NetworkInformation } = navigator as { connection?: NetworkInformation };
  let { type } = connection;
  const changed = () => {
    const was = type;
    type = connection.type;
    if (type !== was) f();
  };
  const ends = [listen(window, 'online', f), listen(connection, 'change', changed)];
  return () => {
    for (const end of ends) end();
  };
};
