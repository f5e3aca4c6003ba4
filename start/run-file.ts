import { existsSync, readFileSync, renameSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from './environment.ts'

/**
 * The data of a running Nightshift, for scripts and the command line. The run file is kept when
 * Nightshift stops, so that its tokens can be used again.
 */
export interface LocalRun {
  url: string
  temporalAddress: string
  temporalUiUrl: string | null
  databaseUrl: string
  labUrl: string | null
  labControlToken: string | null
  /** The model in use. Absent in files of version 0.1.0. */
  model?: { baseUrl: string; name: string; isRuleTable: boolean }
  tokens: Partial<Record<'admin' | 'approver' | 'ingest' | 'agent', string>>
  /** The running process; null when it has stopped. */
  pid: number | null
}

/** Reads the run file of the last start. Undefined if there is none. */
export function readRunFile(stateDir: string): LocalRun | undefined {
  try {
    return JSON.parse(readFileSync(join(stateDir, 'run.json'), 'utf8')) as LocalRun
  } catch {
    return undefined
  }
}

/** Replaces the run file atomically. Only the owner of the checkout can read it. */
export function writeRunFile(stateDir: string, run: LocalRun): void {
  const file = join(stateDir, 'run.json')
  writeFileSync(`${file}.new`, `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/**
 * The megabytes that a first start has written by the time it is ready, by `du`. Most of them are
 * Temporal and compiled code.
 */
const neededMb = { state: 50, cache: 180 }

/**
 * Explains an error that a full disk caused: names the folders and the space that each needs.
 * Returns every other error unchanged.
 */
export function explainFullDisk(error: Error, rootDir: string, stateDir: string): Error {
  if (!/\bENOSPC\b|No space left on device|disk is full/i.test(error.message)) return error
  const places = [
    { path: stateDir, needMb: neededMb.state },
    { path: join(rootDir, '.cache'), needMb: neededMb.cache },
  ].map(({ path, needMb }) => `${path} (a first start writes ${needMb} MB, ${describeRoom(path)})`)
  const advice = 'Free disk space and start again'
  return new Error(`The disk is full: ${places.join(', ')}. ${advice}.\n${error.message}`, { cause: error })
}

function describeRoom(path: string): string {
  if (!existsSync(path)) return 'the file does not exist yet'
  const { bavail, bsize } = statfsSync(path)
  return `${Math.floor((bavail * bsize) / 1_048_576)} MB are free`
}

/**
 * Returns the address of the pages with a code that signs in one browser, once and within ten
 * minutes. Browsers never send the part after `#`, so the code is in no log and no referrer.
 */
export async function signInLink({ url, tokens }: LocalRun, env: Environment): Promise<string> {
  const shown = env.PUBLIC_URL || url
  const answer = tokens.admin
    ? await fetch(`${url}/auth/codes`, { method: 'POST', headers: { authorization: `Bearer ${tokens.admin}` } }).catch(
        () => null,
      )
    : null
  const { code } = answer?.ok ? ((await answer.json()) as { code?: string }) : {}
  return code ? `${shown}/sign-in#code=${code}` : shown
}
