import { readFileSync } from 'node:fs'

export type Account = { uid: number; gid: number }

/** Whom nodes run as: `nobody` where the start is root, otherwise the user who started it (null). */
export function nodeAccount(): Account | null {
  if (process.getuid?.() !== 0) return null
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((each) => each.startsWith('nobody:'))
  if (!line) throw new Error('the lab was started as root and /etc/passwd has no user "nobody" to run its nodes as')
  const [, , uid, gid] = line.split(':')
  // macOS writes -2.
  return { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }
}
