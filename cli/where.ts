import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Run, readRunFile, stateDirOf } from '../start/run-file.ts'
import { CommandFailed } from './exit-code.ts'
import { findSavedToken, lastLoginUrl } from './signed-in.ts'

/** The root of this checkout. */
export const rootDir = dirname(dirname(fileURLToPath(import.meta.url)))

/** Where `start` keeps its state and everything else looks for it. */
export function stateDir(): string {
  return process.env.NIGHTSHIFT_STATE_DIR ? resolve(process.env.NIGHTSHIFT_STATE_DIR) : stateDirOf(rootDir)
}

export type TargetOptions = { url?: string; tokenFile?: string; as?: string }
type TokenName = keyof Run['tokens']

/** Which API to ask, and with what in the hand. `run` is there when it is the one that `start` runs here. */
export type ApiTarget = { url: string; token: string; run: Run | null }

/**
 * Where: flags, then NIGHTSHIFT_URL, then the running start of this checkout, then the last `login`. As whom: flags, then
 * NIGHTSHIFT_TOKEN, then the `login` at that address, then the tokens of the running start. Throws when nothing says where, or
 * there is no token for it.
 */
export function resolveTarget(options: TargetOptions, wanted: TokenName = 'admin'): ApiTarget {
  const run = readLocalRun()
  const url = options.url ?? process.env.NIGHTSHIFT_URL ?? run?.url ?? lastLoginUrl()
  if (!url) {
    throw new CommandFailed(
      'error',
      'Nightshift does not run here. Start it with "npm start", sign in where it runs with "nightshift login --url …", or ' +
        'say so with --url and --token-file (or NIGHTSHIFT_URL and NIGHTSHIFT_TOKEN_FILE).',
    )
  }
  const name = parseTokenName(options.as) ?? wanted
  // A token of the run file goes to no other address.
  const own = run && url === run.url ? run : null
  const token = (options.as ? undefined : (readGivenToken(options) ?? findSavedToken(url))) ?? own?.tokens[name]
  if (!token) {
    throw new CommandFailed(
      'auth',
      own
        ? `The run file has no token "${name}".`
        : `No token for ${url}. Sign in with "nightshift login --url ${url}", name a file that holds one with --token-file, or set NIGHTSHIFT_TOKEN or NIGHTSHIFT_TOKEN_FILE.`,
    )
  }
  return { url, token, run: own }
}

/** The start that runs from this checkout; null when none does. */
export function readLocalRun(): Run | null {
  const run = readRunFile(stateDir())
  if (!run?.pid) return null
  try {
    process.kill(run.pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return null
  }
  return run
}

function readGivenToken({ tokenFile }: TargetOptions): string | undefined {
  const file = tokenFile ?? process.env.NIGHTSHIFT_TOKEN_FILE
  if (tokenFile === undefined && process.env.NIGHTSHIFT_TOKEN) return process.env.NIGHTSHIFT_TOKEN
  if (!file) return undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    throw new CommandFailed('auth', `The token file ${file} cannot be read.`)
  }
}

function parseTokenName(name: string | undefined): TokenName | undefined {
  const names: TokenName[] = ['admin', 'approver', 'ingest', 'agent']
  const found = names.find((each) => each === name)
  if (name !== undefined && !found) throw new CommandFailed('usage', `--as takes ${names.join(', ')}.`)
  return found
}

/** How a person types a command of ours. */
export function commandLine(text: string): string {
  return `npm run -s nightshift -- ${text}`
}

export function logFile(part: string): string {
  return join(stateDir(), 'logs', `${part}.log`)
}
