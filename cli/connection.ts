import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, Option } from 'commander'
import { z } from 'zod'
import { type Run, readRunFile, stateDirOf } from '../start/run-file.ts'
import { type ApiClient, CommandFailed, createApiClient } from './api.ts'
import { useUtc } from './ui/table.ts'
import { inert } from './ui/terminal.ts'

export type ConnectionOptions = TargetOptions & { json?: boolean }

/**
 * Adds the flags of every command that calls the API: its address, the token, and the output
 * format.
 */
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

/**
 * The API client for these flags, and the address and token that it uses. Throws as `resolveTarget`
 * does.
 */
export function connect(
  options: ConnectionOptions,
  wanted?: Parameters<typeof resolveTarget>[1],
): { api: ApiClient; target: ApiTarget } {
  const target = resolveTarget(options, wanted)
  return { api: createApiClient(target), target }
}

/** The root of this checkout. */
export const rootDir = dirname(dirname(fileURLToPath(import.meta.url)))

/** The directory where `start` keeps its state and other commands look for it. */
export function getStateDir(): string {
  return process.env.NIGHTSHIFT_STATE_DIR ? resolve(process.env.NIGHTSHIFT_STATE_DIR) : stateDirOf(rootDir)
}

type TargetOptions = { url?: string; tokenFile?: string; as?: string }
type TokenName = keyof Run['tokens']

/**
 * The API to call, and the token for it. `run` is set when `start` runs this API from this
 * checkout.
 */
export type ApiTarget = { url: string; token: string; run: Run | null }

/**
 * Finds the address: flags, then NIGHTSHIFT_URL, then the running start of this checkout, then the
 * last `login`. Finds the token: flags, then NIGHTSHIFT_TOKEN or NIGHTSHIFT_TOKEN_FILE, then the
 * `login` at that address, then the running start. Throws CommandFailed when no address or no token
 * is found.
 */
export function resolveTarget(options: TargetOptions, wanted: TokenName = 'admin'): ApiTarget {
  const run = readLocalRun()
  const url = options.url ?? process.env.NIGHTSHIFT_URL ?? run?.url ?? getLastLoginUrl()
  if (!url) {
    throw new CommandFailed(
      'error',
      'Nightshift does not run here. Start it with "npm start", sign in where it runs with "nightshift login --url …", or ' +
        'name it with --url and --token-file (or NIGHTSHIFT_URL and NIGHTSHIFT_TOKEN_FILE).',
    )
  }
  const name = parseTokenName(options.as) ?? wanted
  // A token of the run file is sent to its own API only.
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

/** The `start` that runs from this checkout; null when it does not run. */
export function readLocalRun(): Run | null {
  const run = readRunFile(getStateDir())
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

/** The line that runs a nightshift command in this checkout. */
export function commandLine(text: string): string {
  return `npm run -s nightshift -- ${text}`
}

export function getLogFile(part: string): string {
  return join(getStateDir(), 'logs', `${part}.log`)
}

/**
 * Where ids are listed, by their prefix. An argument described as `as inc_…` takes an id with the
 * prefix `inc`.
 */
const listPaths: Record<string, string> = { inc: '/api/v1/incidents', apr: '/api/v1/approvals' }

/** How many matching ids an error names. */
const maxNamed = 5

const completeId = /^[a-z]+_[0-9a-z]{26}$/

/** Completes shortened ids before a command runs. Throws CommandFailed when several ids match. */
export async function completeIds(action: Command): Promise<void> {
  for (const [index, argument] of action.registeredArguments.entries()) {
    const [, kind = ''] = /^as ([a-z]+)_/.exec(argument.description) ?? []
    const given: unknown = action.processedArgs[index]
    if (!listPaths[kind] || typeof given !== 'string' || completeId.test(given)) continue
    const { api } = connect(action.opts<ConnectionOptions>())
    action.processedArgs[index] = await findFullId(api, kind, given)
  }
}

/**
 * The only id with this beginning, with or without its prefix. Without a match the API gets the
 * text as it is.
 */
async function findFullId(api: ApiClient, kind: string, given: string): Promise<string> {
  const prefix = given.startsWith(`${kind}_`) ? given : `${kind}_${given}`
  if (!/^[a-z]+_[0-9a-z]+$/.test(prefix)) return given
  const query = new URLSearchParams({ idPrefix: prefix, limit: String(maxNamed + 1) })
  const { items } = z
    .looseObject({ items: z.array(z.looseObject({ id: z.string() })) })
    .parse(await api.get(`${listPaths[kind]}?${query}`))
  // An older API ignores this filter and answers the newest ids.
  const ids = items.map(({ id }) => id).filter((id) => id.startsWith(prefix))
  const [only, ...others] = ids
  if (others.length > 0) {
    const more = ids.length > maxNamed ? ', and more' : ''
    throw new CommandFailed(
      'usage',
      `"${given}" matches several ids: ${ids
        .slice(0, maxNamed)
        .map((id) => inert(id))
        .join(', ')}${more}. Give more of it.`,
    )
  }
  return only ?? given
}

const savedTokens = z.object({
  /** The address of the last login. Commands use it when nothing else names one. */
  last: z.string().nullable(),
  tokens: z.record(z.string(), z.string()),
})
type SavedTokens = z.infer<typeof savedTokens>

/** The file where `login` keeps tokens: one per user, readable by that user only. */
export function getTokensFile(): string {
  const configured = process.env.XDG_CONFIG_HOME
  return join(configured?.startsWith('/') ? configured : join(homedir(), '.config'), 'nightshift', 'tokens.json')
}

/** The token for exactly this scheme, host and port, or undefined. */
export function findSavedToken(url: string): string | undefined {
  const origin = toOrigin(url)
  const { tokens } = readSavedTokens()
  return origin !== null && Object.hasOwn(tokens, origin) ? tokens[origin] : undefined
}

export function getLastLoginUrl(): string | undefined {
  return readSavedTokens().last ?? undefined
}

export function saveToken(url: string, token: string): void {
  const { tokens } = readSavedTokens()
  const origin = parseOrigin(url)
  writeSavedTokens({ last: origin, tokens: { ...tokens, [origin]: token } })
}

/** Removes the token for an address. False when there was none. */
export function removeToken(url: string): boolean {
  const { last, tokens } = readSavedTokens()
  const { [parseOrigin(url)]: dropped, ...others } = tokens
  if (dropped === undefined) return false
  writeSavedTokens({ last: last === parseOrigin(url) ? null : last, tokens: others })
  return true
}

/**
 * The scheme, host and port of an address. Throws CommandFailed when it is not an http or https
 * address.
 */
export function parseOrigin(url: string): string {
  const origin = toOrigin(url)
  if (origin === null) throw new CommandFailed('usage', `${url} is not an http or https address.`)
  return origin
}

function toOrigin(url: string): string | null {
  if (!URL.canParse(url)) return null
  const { protocol, origin } = new URL(url)
  return protocol === 'http:' || protocol === 'https:' ? origin : null
}

function readSavedTokens(): SavedTokens {
  const file = getTokensFile()
  let text: string
  try {
    // Another user may have read the tokens, so they are not used.
    if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) {
      throw new CommandFailed(
        'auth',
        `Other users can read ${file}. Revoke the tokens in it, remove it, and sign in again with "nightshift login".`,
      )
    }
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { last: null, tokens: {} }
    throw error
  }
  try {
    return savedTokens.parse(JSON.parse(text))
  } catch {
    throw new CommandFailed('error', `${file} is not valid. Remove it, and sign in again with "nightshift login".`)
  }
}

function writeSavedTokens(signedIn: SavedTokens): void {
  const file = getTokensFile()
  if (Object.keys(signedIn.tokens).length === 0) {
    rmSync(file, { force: true })
    return
  }
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(signedIn, null, 2)}\n`, { mode: 0o600 })
  // A file that already existed keeps its old mode, so the mode is set again.
  chmodSync(draft, 0o600)
  renameSync(draft, file)
}
