import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { CommandFailed } from './exit-codes.ts'

const savedTokens = z.object({
  /** The address of the last login. Commands use it if no other is named. */
  last: z.string().nullable(),
  tokens: z.record(z.string(), z.string()),
})

type SavedTokens = z.infer<typeof savedTokens>

/** Returns the file in which `login` keeps tokens: one per user, readable only by that user. */
export function getTokensFile(): string {
  const configured = process.env.XDG_CONFIG_HOME
  return join(configured?.startsWith('/') ? configured : join(homedir(), '.config'), 'nightshift', 'tokens.json')
}

/** Returns the token for exactly this scheme, host and port, or undefined. */
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

/** Removes the token for an address. False if there was none. */
export function removeToken(url: string): boolean {
  const { last, tokens } = readSavedTokens()
  const { [parseOrigin(url)]: dropped, ...others } = tokens
  if (dropped === undefined) return false
  writeSavedTokens({ last: last === parseOrigin(url) ? null : last, tokens: others })
  return true
}

/**
 * Returns the scheme, host and port of an address. Throws CommandFailed if it is not an http or
 * https address.
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
    // Refuses the tokens, because another user may have read them.
    if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) {
      throw new CommandFailed(
        'auth',
        `Other users can read ${file}. Revoke the tokens in this file, remove the file, and sign in again with "nightshift login".`,
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
  // Sets the mode again, because a file that already existed keeps its old mode.
  chmodSync(draft, 0o600)
  renameSync(draft, file)
}
