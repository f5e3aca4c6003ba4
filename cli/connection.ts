import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, Option } from 'commander'
import { z } from 'zod'
import { type Run, readRunFile, stateDirOf } from '../start/run-file.ts'
import { type ApiClient, createApiClient } from './api.ts'
import { findSavedToken, lastLoginUrl } from './credentials.ts'
import { CommandFailed } from './errors.ts'
import { useUtc } from './ui/format.ts'
import { inert } from './ui/text.ts'

export type ConnectionOptions = TargetOptions & { json?: boolean }

/** The flags of every command that asks the API: where, as whom, and for whom the output is. */
export function withConnectionOptions(command: Command): Command {
  return command
    .option('--url <url>', 'where the API is (else NIGHTSHIFT_URL, else the start that runs here)')
    .option('--token-file <file>', 'file with the bearer token (else NIGHTSHIFT_TOKEN_FILE or NIGHTSHIFT_TOKEN)')
    .addOption(
      new Option('--as <token>', 'which token of the start that runs here').choices([
        'admin',
        'approver',
        'ingest',
        'agent',
      ]),
    )
    .option('--utc', 'times in UTC instead of local time')
    .on('option:utc', useUtc)
    .option('--json', 'JSON for programs; errors are problem+json on stderr')
}

export function connect(
  options: ConnectionOptions,
  wanted?: Parameters<typeof resolveTarget>[1],
): { api: ApiClient; where: ApiTarget } {
  const where = resolveTarget(options, wanted)
  return { api: createApiClient(where), where }
}

/** The root of this checkout. */
export const rootDir = dirname(dirname(fileURLToPath(import.meta.url)))

/** Where `start` keeps its state and everything else looks for it. */
export function stateDir(): string {
  return process.env.NIGHTSHIFT_STATE_DIR ? resolve(process.env.NIGHTSHIFT_STATE_DIR) : stateDirOf(rootDir)
}

type TargetOptions = { url?: string; tokenFile?: string; as?: string }
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

/** By how an argument is described (`as inc_…`), where the ids of its kind are listed. */
const listPaths: Record<string, string> = { inc: '/api/v1/incidents', apr: '/api/v1/approvals' }

/** How many candidates are named. */
const maxNamed = 5

const completeId = /^[a-z]+_[0-9a-z]{26}$/

/** Before a command runs: the beginning of an id is as good as the id, as long as only one begins so. */
export async function completeIds(action: Command): Promise<void> {
  for (const [index, argument] of action.registeredArguments.entries()) {
    const [, kind = ''] = /^as ([a-z]+)_/.exec(argument.description) ?? []
    const given: unknown = action.processedArgs[index]
    if (!listPaths[kind] || typeof given !== 'string' || completeId.test(given)) continue
    const { api } = connect(action.opts<ConnectionOptions>())
    action.processedArgs[index] = await findFullId(api, kind, given)
  }
}

/** The one id that begins so, with or without its kind in front. What begins no id is left to the API to refuse. */
async function findFullId(api: ApiClient, kind: string, given: string): Promise<string> {
  const prefix = given.startsWith(`${kind}_`) ? given : `${kind}_${given}`
  if (!/^[a-z]+_[0-9a-z]+$/.test(prefix)) return given
  const query = new URLSearchParams({ idPrefix: prefix, limit: String(maxNamed + 1) })
  const { items } = z
    .looseObject({ items: z.array(z.looseObject({ id: z.string() })) })
    .parse(await api.get(`${listPaths[kind]}?${query}`))
  // An older API knows no such filter and answers what is newest.
  const ids = items.map(({ id }) => id).filter((id) => id.startsWith(prefix))
  const [only, ...others] = ids
  if (others.length > 0) {
    const more = ids.length > maxNamed ? ', and more' : ''
    throw new CommandFailed(
      'usage',
      `"${given}" begins several ids: ${ids
        .slice(0, maxNamed)
        .map((id) => inert(id))
        .join(', ')}${more}. Give more of it.`,
    )
  }
  return only ?? given
}
