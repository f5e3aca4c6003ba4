import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import type { AddressInfo, Server } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * Starts a node's program: drops the controller's privileges permanently, and ends the program when
 * the controller is gone. The program drops the privileges itself, so its file may be unreadable to
 * the node's user. After this call all paths are relative to the program's directory.
 */
export function readSpecAndSettle<Spec extends object>(
  onMessage: (message: Partial<Spec>) => void = () => {},
): Spec & { id: string } {
  const spec = JSON.parse(process.argv[2]!) as Spec & { id: string; account: { uid: number; gid: number } | null }
  // Writes the compile cache now: a killed node writes nothing, and the node's user may not write
  // there.
  flushCompileCache()
  if (spec.account) {
    process.setgroups!([spec.account.gid])
    process.setgid!(spec.account.gid)
    process.setuid!(spec.account.uid)
  }
  process.umask(0o022)
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => onMessage(JSON.parse(line) as Partial<Spec>))
  lines.on('close', () => process.exit(0))
  // Ignores errors of the output, because nobody reads it after the first line.
  process.stdout.on('error', () => {})
  return spec
}

/**
 * Listens on loopback, and reports the port to the controller. Uses any free port if `port` is 0.
 */
export function announce(server: Server, port = 0): void {
  server.listen(port, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ listening: (server.address() as AddressInfo).port })}\n`)
  })
}

export const logFile = 'data/log'
/** The file with the number of seconds by which a web node's clock is wrong. */
export const clockFile = 'etc/clock.json'
/** The lock of a running reindex. While the lock exists, search fails. */
export const lockFile = 'var/search.lock'
export const searchLog = 'logs/search.log'
export const certificateFile = 'etc/certificate.pem'

/** The number of bytes that are read at the end of a log. They always contain a whole record. */
const tailBytes = 256

/** Returns the time of a log's newest whole record, in milliseconds. Null without a record. */
export function newestRecordAt(file: string): number | null {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  try {
    const { size } = fstatSync(fd)
    const from = Math.max(0, size - tailBytes)
    const tail = Buffer.alloc(size - from)
    readSync(fd, tail, 0, tail.length, from)
    return newestRecordIn(tail.toString('utf8'))
  } finally {
    closeSync(fd)
  }
}

/**
 * Returns the time of the newest whole record in a piece of a log. The piece may begin and end in
 * the middle of a record.
 */
export function newestRecordIn(text: string): number | null {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return Number(/"at":(\d+),"n":\d+\}\n$/.exec(whole)?.[1] ?? 0) || null
}
