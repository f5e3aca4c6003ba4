import { createSocket } from 'node:dgram'
import { rmSync } from 'node:fs'
import type { Ends } from './passage.ts'
import { relayTo } from './relay.ts'

/**
 * Runs in the network of engines and pods: brings connections from there to sockets of the file
 * system and back, and answers for a few names.
 */
const { into = [], out = [], names } = JSON.parse(process.argv[2] ?? '{}') as Ends
for (const { socket, host, port } of out) relayTo({ path: socket }).listen(port, host)
for (const { socket, host, port } of into) {
  rmSync(socket, { force: true })
  relayTo({ host, port }).listen(socket)
}
if (names) answerNames(names)
process.stdout.write('open\n')

/**
 * Knows the names of the table, as IPv4, and says of each other that there is none: whoever asks
 * goes on at once.
 */
function answerNames({ host, table }: NonNullable<Ends['names']>): void {
  const socket = createSocket('udp4')
  socket.on('message', (question, { port, address }) => {
    const end = question.indexOf(0, 12)
    const labels: string[] = []
    for (let at = 12; at < end; at += (question[at] ?? 0) + 1)
      labels.push(question.toString('ascii', at + 1, at + 1 + (question[at] ?? 0)))
    const ip = table[labels.join('.').toLowerCase()]
    const asked = question.subarray(12, end + 5)
    const isAddress = ip !== undefined && question.readUInt16BE(end + 1) === 1
    const head = Buffer.from(question.subarray(0, 12))
    head.writeUInt16BE(ip === undefined ? 0x8183 : 0x8180, 2)
    head.writeUInt16BE(isAddress ? 1 : 0, 6)
    head.writeUInt32BE(0, 8)
    const answer = isAddress
      ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, ...ip.split('.').map(Number)])
      : Buffer.alloc(0)
    socket.send(Buffer.concat([head, asked, answer]), port, address)
  })
  socket.bind(53, host)
}
