import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from './environment.ts'
import { identityOf, isRunning } from './process-table.ts'

/** What a running Nightshift tells scripts and the command line about itself; kept when it stops, so that tokens survive. */
export interface Run {
  url: string
  temporalAddress: string
  temporalUiUrl: string | null
  databaseUrl: string
  labUrl: string | null
  labControlToken: string | null
  /** What is asked; absent in files of version 0.1.0. */
  model?: { baseUrl: string; name: string; isRuleTable: boolean }
  tokens: Partial<Record<'admin' | 'approver' | 'ingest' | 'agent', string>>
  /** The process to ask; null when it has stopped. */
  pid: number | null
}

/** Where a checkout keeps its state. */
export function stateDirOf(rootDir: string): string {
  return join(rootDir, '.nightshift')
}

/** The run file of the last start, or undefined when there was none. */
export function readRunFile(stateDir: string): Run | undefined {
  try {
    return JSON.parse(readFileSync(join(stateDir, 'run.json'), 'utf8')) as Run
  } catch {
    return undefined
  }
}

/** Replaces the run file in one step; only the owner of the checkout can read it. */
export function writeRunFile(stateDir: string, run: Run): void {
  const file = join(stateDir, 'run.json')
  writeFileSync(`${file}.new`, `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/**
 * Where the pages are, with a code that signs one browser in, once and within ten minutes. The code stands behind `#`, which
 * browsers send to nobody: it is in no log and no referrer.
 */
export async function signInLink({ url, tokens }: Run, env: Environment): Promise<string> {
  const shown = env.PUBLIC_URL || url
  const answer = tokens.admin
    ? await fetch(`${url}/auth/codes`, { method: 'POST', headers: { authorization: `Bearer ${tokens.admin}` } }).catch(
        () => null,
      )
    : null
  const { code } = answer?.ok ? ((await answer.json()) as { code?: string }) : {}
  return code ? `${shown}/sign-in#code=${code}` : shown
}

interface Holder {
  pid: number
  identity: string
}

/**
 * Takes the lock file for this process and returns the function that gives it back, or the number of the living process
 * that holds it. The lock of a process that has died is taken over.
 */
export function takeLock(file: string): { release(): void } | { heldBy: number } {
  const mine: Holder = { pid: process.pid, identity: identityOf(process.pid) ?? '' }
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, JSON.stringify(mine), { mode: 0o600 })
  try {
    for (;;) {
      try {
        // A link appears complete or not at all, so nobody ever reads a half-written lock.
        linkSync(draft, file)
        return { release: () => release(file, mine) }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const holder = readHolder(file)
      if (holder && isRunning(holder.pid, holder.identity)) return { heldBy: holder.pid }
      const other = moveAside(file, `${draft}.stale`)
      if (other) return { heldBy: other.pid }
    }
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Puts away the lock of a dead process; answers the holder if a living one took it over in that very moment. */
function moveAside(file: string, aside: string): Holder | undefined {
  try {
    renameSync(file, aside)
  } catch {
    return undefined
  }
  const holder = readHolder(aside)
  const living = holder && isRunning(holder.pid, holder.identity) ? holder : undefined
  if (living) linkSync(aside, file)
  rmSync(aside)
  return living
}

function release(file: string, mine: Holder): void {
  const holder = readHolder(file)
  if (holder?.pid === mine.pid && holder.identity === mine.identity) rmSync(file, { force: true })
}

function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder
  } catch {
    return undefined
  }
}
