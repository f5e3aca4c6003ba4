import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { CommandFailed } from './errors.ts'

const savedTokens = z.object({
  /** The address that was signed in to last: where commands go when nothing else says where. */
  last: z.string().nullable(),
  tokens: z.record(z.string(), z.string()),
})
type SavedTokens = z.infer<typeof savedTokens>

/** Where `login` keeps tokens: one file per user, which nobody else may read. */
export function savedTokensFile(): string {
  const configured = process.env.XDG_CONFIG_HOME
  return join(configured?.startsWith('/') ? configured : join(homedir(), '.config'), 'nightshift', 'tokens.json')
}

/** The token for exactly this address (scheme, host and port), or undefined. */
export function findSavedToken(url: string): string | undefined {
  const origin = toOrigin(url)
  const { tokens } = readSavedTokens()
  return origin !== null && Object.hasOwn(tokens, origin) ? tokens[origin] : undefined
}

export function lastLoginUrl(): string | undefined {
  return readSavedTokens().last ?? undefined
}

export function saveToken(url: string, token: string): void {
  const { tokens } = readSavedTokens()
  const origin = parseOrigin(url)
  writeSavedTokens({ last: origin, tokens: { ...tokens, [origin]: token } })
}

/** Forgets an address; false when it was not known. */
export function removeToken(url: string): boolean {
  const { last, tokens } = readSavedTokens()
  const { [parseOrigin(url)]: dropped, ...others } = tokens
  if (dropped === undefined) return false
  writeSavedTokens({ last: last === parseOrigin(url) ? null : last, tokens: others })
  return true
}

/** The address as it is kept. Throws where there is none to keep. */
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
  const file = savedTokensFile()
  let text: string
  try {
    // Somebody else may have read it by now: it is told rather than used on.
    if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) {
      throw new CommandFailed(
        'auth',
        `Others can read ${file}. Revoke the tokens in it, remove it, and sign in anew with "nightshift login".`,
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
    throw new CommandFailed(
      'error',
      `${file} cannot be understood. Remove it, and sign in anew with "nightshift login".`,
    )
  }
}

function writeSavedTokens(signedIn: SavedTokens): void {
  const file = savedTokensFile()
  if (Object.keys(signedIn.tokens).length === 0) {
    rmSync(file, { force: true })
    return
  }
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(signedIn, null, 2)}\n`, { mode: 0o600 })
  // What a file of that name was before decides nothing.
  chmodSync(draft, 0o600)
  renameSync(draft, file)
}
