import { accessSync, constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { failed, type Outcome, type RunResult } from './capability.ts'

/**
 * The PATH of programs that do not inherit the agent's environment; apt and dpkg need the sbin
 * directories.
 */
export const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export async function isInstalled(program: string): Promise<boolean> {
  for (const directory of systemPath.split(':')) {
    try {
      await access(join(directory, program), constants.X_OK)
      return true
    } catch {}
  }
  return false
}

/**
 * Why a program that was started did not do its work; null when it ended with 0. Keeps what it
 * printed.
 */
export function whyNotDone(what: string, ran: RunResult): Outcome | null {
  const result = { exit_code: ran.exitCode, output: tail(ran.stdout + ran.stderr) }
  const outcome = (code: 'timeout' | 'cancelled' | 'failed', message: string): Outcome => ({
    ...failed(code, message, result),
    truncated: ran.truncated,
  })
  if (ran.stoppedBy === 'deadline') return outcome('timeout', `${what} was stopped at the deadline`)
  if (ran.stoppedBy === 'cancelled') return outcome('cancelled', `${what} was cancelled`)
  if (ran.stoppedBy === 'output') return outcome('failed', `${what} printed too much and was stopped`)
  if (ran.stoppedBy === 'memory') return outcome('failed', `${what} used too much memory and was stopped`)
  if (ran.exitCode === 0) return null
  const why = ran.exitCode === null ? `was ended by ${ran.signal ?? 'a signal'}` : `failed with ${ran.exitCode}`
  return outcome('failed', `${what} ${why}: ${lastLines(ran)}`)
}

/** Errors stand at the end. */
export const tail = (text: string, length = 4_000) => (text.length > length ? text.slice(-length).toWellFormed() : text)

function lastLines({ stdout, stderr }: RunResult): string {
  return tail((stderr.trim() || stdout.trim()).split('\n').slice(-4).join(' '), 600)
}

/** Where the system's own programs are. */
export const search = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']

export const dropAll = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all']

/**
 * Who is not root loses every right of a namespace by starting a program in it, that to a namespace
 * of processes too: what such a program started is looked for in /proc then.
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

/** Of the agent's user, who in a container may be in no list of users. */
export function homeOf(): string {
  try {
    return userInfo().homedir
  } catch {
    return '/'
  }
}
