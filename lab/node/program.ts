import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import type { AddressInfo, Server } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * A node's first act: gives up the controller's privileges for good, and ends when the controller
 * is gone. Drops them itself, rather than being started without, so that its program may lie where
 * that user cannot look. Uses only paths relative to its directory from here on.
 */
export function readSpecAndSettle<Spec extends object>(
  onMessage: (message: Partial<Spec>) => void = () => {},
): Spec & { id: string } {
  const spec = JSON.parse(process.argv[2]!) as Spec & { id: string; account: { uid: number; gid: number } | null }
  // A killed node keeps nothing, and may not write below where compiled programs are kept.
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
  // Nobody reads what comes after the first line.
  process.stdout.on('error', () => {})
  return spec
}

/** Listens on loopback, on any port unless one is named, and tells the controller which. */
export function announce(server: Server, port = 0): void {
  server.listen(port, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ listening: (server.address() as AddressInfo).port })}\n`)
  })
}

export const logFile = 'data/log'
/** How far a web node's clock is off, and its certificate. */
export const clockFile = 'etc/clock.json'
/** Held by a reindex while it works: search waits for it. */
export const lockFile = 'var/search.lock'
/** What the search of a web node says. */
export const searchLog = 'logs/search.log'
export const certificateFile = 'etc/certificate.pem'

/** More than one record, so that the end of the file always holds a whole one. */
const tailBytes = 256

/** The write time of a log's newest whole record, in milliseconds; null for a log without one. */
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

/** The same for a piece of a log, which may begin and end in the middle of a record. */
export function newestRecordIn(text: string): number | null {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return Number(/"at":(\d+),"n":\d+\}\n$/.exec(whole)?.[1] ?? 0) || null
}
