import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/**
 * Describes the program that listens on this port of the machine, for example as `process 4711
 * (node api/main.ts)`. Null if the system does not show the program.
 */
export function portHolder(port: number): string | null {
  const sockets = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => listeningSockets(table, port)))
  if (sockets.size === 0) return null
  const pid = processes().find((each) => openFiles(each).some((file) => sockets.has(file)))
  return pid === undefined ? null : `process ${pid} (${commandOf(pid)})`
}

/**
 * Lists the listening sockets of a port. State 0A of proc(5) is LISTEN. The table has the port in
 * hexadecimal digits, and the inode in the tenth field.
 */
function listeningSockets(table: string, port: number): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return readOr(table)
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(wanted) && state === '0A')
    .map((fields) => `socket:[${fields[9]}]`)
}

function processes(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}

/**
 * Lists the open files of a process. Empty for a process of another user, and for a process that
 * has ended in the meantime.
 */
function openFiles(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => readlinkSync(`/proc/${pid}/fd/${name}`))
  } catch {
    return []
  }
}

/** Returns the program and its first argument. Later arguments may contain secrets. */
function commandOf(pid: string): string {
  const [program = '', argument = ''] = readOr(`/proc/${pid}/cmdline`).split('\0')
  return [program.split('/').at(-1), argument].filter(Boolean).join(' ').slice(0, 120)
}

function readOr(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
