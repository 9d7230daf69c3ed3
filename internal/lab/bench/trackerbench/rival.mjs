// bittorrent-tracker's WebSocket server, over TLS where a certificate is given: rival.mjs FOLDER [CERT KEY]. It prints where it
// listens and ends with its input.
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { pathToFileURL } from 'node:url'

const [folder, cert, key] = process.argv.slice(2)
const { default: Server } = await import(pathToFileURL(`${folder}/node_modules/bittorrent-tracker/server.js`).href)
const server = cert ? https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }) : http.createServer()
const tracker = new Server({ http: false, udp: false, ws: { server, perMessageDeflate: false, clientTracking: false }, stats: false })
tracker.on('error', (err) => { console.error(err.message); process.exit(1) })
tracker.on('warning', () => {})
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify(`127.0.0.1:${server.address().port}`)))
process.stdin.on('end', () => process.exit(0)).resume()
