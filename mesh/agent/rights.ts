import { accessSync, constants } from 'node:fs'

/** Where the system's own programs are. */
export const search = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']

export const dropAll = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all']

/**
 * Who is not root loses every right of a namespace by starting a program in it, that to a namespace of processes too: what such
 * a program started is looked for in /proc then.
 */
export function isRoot(): boolean {
  return process.getuid?.() === 0
}

export function withoutMore(): string[] {
  return isRoot() ? dropAll : ['--no-new-privs']
}

export function find(program: string): string | null {
  for (const directory of search) {
    try {
      accessSync(`${directory}/${program}`, constants.X_OK)
      return `${directory}/${program}`
    } catch {
      // In the next one, perhaps.
    }
  }
  return null
}
