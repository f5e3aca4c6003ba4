import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { readProblem, toUnreachableProblem } from './api.ts'
import { type CliCommand, readLocalRun } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { getLastLoginUrl, getTokensFile, parseOrigin, removeToken, saveToken } from './saved-tokens.ts'
import { askHidden, inert, printJson, printNote } from './ui/terminal.ts'

type Options = { url?: string; tokenFile?: string; json?: boolean }

const person = z.looseObject({ name: z.string(), role: z.string() })
const answerTimeoutMs = 30_000

export function addLoginCommand(program: CliCommand): void {
  program
    .command('login')
    .description('save a token for an API; the commands of this account use it')
    .option('--url <url>', 'address of the API (default: NIGHTSHIFT_URL, else the Nightshift that runs here)')
    .option(
      '--token-file <file>',
      'file with the token (default: stdin; a terminal prompts for the token and hides it)',
    )
    .option('--json', 'JSON for programs; errors are problem+json on stderr')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift login --url https://nightshift.example.org\n  nightshift login --url https://nightshift.example.org --token-file ./token\n\nAn admin creates tokens on the page /tokens or with "nightshift tokens create". You need a token\nwith OpenID Connect too, because signing in with a browser does not sign in a terminal.',
    )
    .action(async (options: Options) => {
      const url = resolveUrl(options)
      const token = await readToken(url, options)
      const { name, role } = await verifyToken(url, token)
      saveToken(url, token)
      if (options.json) return printJson({ url, name, role })
      printNote(`Signed in to ${url} as ${inert(name)} (${inert(role)}). The token is in ${getTokensFile()}.`)
      if (url.startsWith('http:') && !isLoopback(url))
        printNote('The token is sent unencrypted. Use https if others can read the network traffic.')
    })
}

export function addLogoutCommand(program: CliCommand): void {
  program
    .command('logout')
    .description('remove the saved token for an API; the token stays valid until it is revoked')
    .option('--url <url>', 'which API (default: NIGHTSHIFT_URL, else the API that you signed in to last)')
    .addHelpText('after', '\nExample:\n  nightshift logout --url https://nightshift.example.org')
    .action((options: Options) => {
      const given = options.url ?? process.env.NIGHTSHIFT_URL ?? getLastLoginUrl()
      if (!given) return printNote('You are not signed in to any API here.')
      const url = parseOrigin(given)
      printNote(
        removeToken(url)
          ? `Removed the token for ${url}. "nightshift tokens revoke" makes it invalid.`
          : `There was no token for ${url}.`,
      )
    })
}

function resolveUrl(options: Options): string {
  const url = options.url ?? process.env.NIGHTSHIFT_URL ?? readLocalRun()?.url
  if (!url) throw new CommandFailed('usage', 'Name the API: nightshift login --url https://nightshift.example.org')
  return parseOrigin(url)
}

/**
 * Reads the token from the file, stdin or the terminal. Never from an argument, which other users
 * and the shell history can see.
 */
async function readToken(url: string, { tokenFile }: Options): Promise<string> {
  const text = tokenFile ? readTokenFile(tokenFile) : await readTypedToken(url)
  const token = text.trim()
  if (!/^\S{1,512}$/.test(token))
    throw new CommandFailed('usage', 'This text is not a token, because a token is one word.')
  return token
}

function readTokenFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new CommandFailed('auth', `The token file ${file} cannot be read.`)
  }
}

async function readTypedToken(url: string): Promise<string> {
  return process.stdin.isTTY ? await askHidden(`Token for ${url}: `) : readFileSync(0, 'utf8')
}

/**
 * Signs in as a browser does, so that the server refuses machine tokens, counts failed attempts and
 * logs the sign-in. Signs out again, because only the token is saved.
 */
async function verifyToken(url: string, token: string): Promise<z.infer<typeof person>> {
  const session = new URL('/auth/session', url)
  const ask = async (method: string, headers: Record<string, string>, body?: string) => {
    try {
      // Refuses a redirect, which would send the token to another server.
      return await fetch(session, {
        method,
        headers,
        body,
        redirect: 'error',
        signal: AbortSignal.timeout(answerTimeoutMs),
      })
    } catch (error) {
      throw toUnreachableProblem(url, error)
    }
  }
  const entered = await ask('POST', { 'content-type': 'application/json' }, JSON.stringify({ token }))
  if (!entered.ok) throw await readProblem(entered)
  const cookie = entered.headers.getSetCookie().map((each) => each.split(';')[0])
  await ask('DELETE', { cookie: cookie.join('; '), origin: session.origin }).catch(() => undefined)
  return person.parse(await entered.json())
}

function isLoopback(url: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
}
