import { existsSync, readFileSync, renameSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from './environment.ts'

/**
 * A running Nightshift's words to scripts and the command line; kept when it stops, so that tokens
 * survive.
 */
export interface LocalRun {
  url: string
  temporalAddress: string
  temporalUiUrl: string | null
  databaseUrl: string
  labUrl: string | null
  labControlToken: string | null
  /** The asked model; absent in files of version 0.1.0. */
  model?: { baseUrl: string; name: string; isRuleTable: boolean }
  tokens: Partial<Record<'admin' | 'approver' | 'ingest' | 'agent', string>>
  /** The process to ask; null when it has stopped. */
  pid: number | null
}

/** The run file of the last start, or undefined when there was none. */
export function readRunFile(stateDir: string): LocalRun | undefined {
  try {
    return JSON.parse(readFileSync(join(stateDir, 'run.json'), 'utf8')) as LocalRun
  } catch {
    return undefined
  }
}

/** Replaces the run file in one step; only the owner of the checkout can read it. */
export function writeRunFile(stateDir: string, run: LocalRun): void {
  const file = join(stateDir, 'run.json')
  writeFileSync(`${file}.new`, `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** The size of a first start when ready, by `du`: mostly Temporal and compiled code. */
const neededMb = { state: 50, cache: 180 }

/** Names the folders of a full disk and what is needed there; every other error stays as it is. */
export function explainFullDisk(error: Error, rootDir: string, stateDir: string): Error {
  if (!/\bENOSPC\b|No space left on device|disk is full/i.test(error.message)) return error
  const places = [
    { path: stateDir, needMb: neededMb.state },
    { path: join(rootDir, '.cache'), needMb: neededMb.cache },
  ].map(({ path, needMb }) => `${path} (a first start writes ${needMb} MB, ${describeRoom(path)})`)
  const advice = 'Make room and start again'
  return new Error(`The disk is full: ${places.join(', ')}. ${advice}.\n${error.message}`, { cause: error })
}

function describeRoom(path: string): string {
  if (!existsSync(path)) return 'it is not there yet'
  const { bavail, bsize } = statfsSync(path)
  return `${Math.floor((bavail * bsize) / 1_048_576)} MB are free`
}

/**
 * The pages' address with a code that signs one browser in, once and within ten minutes. The code
 * is behind `#`, which browsers send to nobody: no log and no referrer has it.
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
