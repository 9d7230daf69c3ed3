// Put into the demo page by the bench: notes when the library's socket and links come how far, and hands over the first
// pieces with the certificates, so that the bench verifies them for itself.
(() => {
  const session = {};
  const links = [];
  const certificates = {};
  const lengths = {};
  const pieceSize = 16384;
  // The sender whose piece counts: a viewer, a seed, or either.
  const from = document.currentScript.dataset.from;
  let told = false;
  const note = (marks, what) => {
    marks[what] ??= performance.now();
  };
  const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
  const text = (bytes) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''));
  const bytesIn = (base64url) =>
    Uint8Array.from(atob(base64url.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));

  const whole = ({ segment, number, has }) => has === Math.min(pieceSize, lengths[segment] - number * pieceSize);

  const tell = (link, piece) => {
    if (told || !whole(piece) || (from && link.marks.role !== from)) return;
    told = true;
    note(link.marks, 'piece');
    const { segment, number, data } = piece;
    fetch('/bench/told', {
      method: 'POST',
      body: JSON.stringify({ session, link: link.marks, piece: text(data.subarray(0, piece.has)), number, certificate: certificates[segment] }),
    });
  };

  const control = (link, bytes) => {
    if (bytes[0] === 0x01) note(link.marks, 'peer_hello');
    if (bytes[0] === 0x02) note(link.marks, 'have');
    if (bytes[0] !== 0x04) return;
    note(link.marks, 'certificate');
    const segment = hex(bytes.subarray(1, 17));
    certificates[segment] = text(bytes.subarray(17));
    // Behind magic, algorithm, key ID, two times and the object's length.
    lengths[segment] = new DataView(bytes.buffer, bytes.byteOffset + 17 + 37).getUint32(0);
    for (const other of links) for (const piece of other.asked.values()) tell(other, piece);
  };

  /** Bytes in front of the payload: plain, and under the law of the sender's host. */
  const headers = { 0x20: 11, 0x21: 20 };

  const data = (link, bytes) => {
    const header = headers[bytes[0]];
    if (!header) return;
    note(link.marks, 'data');
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const piece = link.asked.get(view.getUint32(1));
    if (!piece) return;
    piece.data.set(bytes.subarray(header), view.getUint16(5));
    piece.has += bytes.length - header;
    tell(link, piece);
  };

  const said = (link, bytes) => {
    if (bytes[0] === 0x03) note(link.marks, 'certificate_request');
    if (bytes[0] !== 0x10) return;
    note(link.marks, 'request');
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const segment = hex(bytes.subarray(1, 17));
    for (let at = 19, n = bytes[18]; n > 0; n--, at += 6) {
      link.asked.set(view.getUint32(at), { segment, number: view.getUint16(at + 4), data: new Uint8Array(pieceSize), has: 0 });
    }
  };

  const bytesOf = (m) => (m instanceof ArrayBuffer ? new Uint8Array(m) : new Uint8Array(m.buffer, m.byteOffset, m.byteLength));

  const Peer = RTCPeerConnection;
  window.RTCPeerConnection = class extends Peer {
    constructor(...rest) {
      super(...rest);
      const link = { pc: this, marks: {}, asked: new Map() };
      links.push(link);
      note(session, 'prepared');
      this.addEventListener('icecandidate', ({ candidate }) => {
        if (candidate?.type === 'srflx') note(link.marks, 'reflexive');
      });
      this.addEventListener('iceconnectionstatechange', () => {
        if (/connected|completed/.test(this.iceConnectionState)) note(link.marks, 'ice');
      });
      this.addEventListener('connectionstatechange', () => {
        if (this.connectionState === 'connected') note(link.marks, 'dtls');
      });
    }

    async setLocalDescription(description) {
      await super.setLocalDescription(description);
      if (!session.join) session.made = performance.now();
    }

    createDataChannel(label, options) {
      const channel = super.createDataChannel(label, options);
      const link = links.find((l) => l.pc === this);
      const hear = label === 'lw.control' ? control : data;
      channel.addEventListener('open', () => note(link.marks, 'open'));
      channel.addEventListener('message', (e) => hear(link, bytesOf(e.data)));
      if (label === 'lw.control') {
        const send = channel.send.bind(channel);
        channel.send = (m) => {
          said(link, bytesOf(m));
          send(m);
        };
      }
      return channel;
    }
  };

  const signaled = (json) => {
    let m;
    try {
      m = JSON.parse(json);
    } catch {
      return;
    }
    if (m.type !== 'signal') note(session, m.type);
    for (const offer of [...(m.offers ?? []), ...(m.kind === 'offer' ? [m] : [])]) {
      const link = links.find((l) => l.pc.localDescription?.sdp === offer.sdp) ?? links.find((l) => !l.id);
      if (link) {
        link.id = offer.link;
        note(link.marks, 'offer');
      }
    }
    if (m.kind === 'answer') {
      const link = links.find((l) => l.id === m.link);
      if (link) {
        link.marks.role = m.role;
        note(link.marks, 'answer');
        // What it says of the link's first messages is there from now on, whenever the library takes it.
        for (const message of m.said ?? []) control(link, bytesIn(message));
      }
    }
  };
  const Socket = WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...rest) {
      super(...rest);
      this.addEventListener('message', (e) => signaled(e.data));
    }

    send(m) {
      signaled(m);
      super.send(m);
    }
  };
})();
