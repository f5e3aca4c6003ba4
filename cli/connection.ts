import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command, type ErrorOptions, Option } from 'commander'
import { commandPrefix } from '../domain/own-command.ts'
import { lastStateDir, runningStarts, stateDirFor } from '../start/purpose.ts'
import type { LocalRun } from '../start/run-file.ts'
import { type ApiClient, createApiClient } from './api.ts'
import { CommandFailed } from './exit-codes.ts'
import { findSavedToken, getLastLoginUrl } from './saved-tokens.ts'
import { startLine } from './start-line.ts'
import { openPage } from './ui/open-page.ts'
import { useUtc } from './ui/table.ts'

export type ConnectionOptions = TargetOptions & { json?: boolean }

/** A command of the program, with sub-commands, access to the API, `--quiet` and `--no-color`. */
export class CliCommand extends Command {
  #page: ((...words: string[]) => string) | null = null

  constructor(name?: string) {
    super(name)
    this.addOption(new Option('-q, --quiet', 'print only results and errors').hideHelp())
    this.addOption(new Option('--no-color', 'no colours').hideHelp())
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name)
  }

  /**
   * Leaves `-q` and `--no-color` among the arguments, because they may be options of another
   * program.
   */
  takesForeignWords(): this {
    ;(this.options as Option[]).length = 0
    return this
  }

  /** Prints help on stdout with exit code 0 for a parent without a sub-command, like `gh`. */
  override help(context?: { error: boolean } | ((text: string) => string)): never {
    return typeof context === 'function' ? super.help(context) : super.help({ error: false })
  }

  override error(message: string, options?: ErrorOptions): never {
    this.showHelpAfterError(`See: ${[...parents(this), this].map((each) => each.name()).join(' ')} --help`)
    return super.error(message, options)
  }

  /** Adds the flags of every command that calls the API: address, token, output format. */
  connected(help?: string): this {
    const names = ['admin', 'approver', 'ingest', 'agent']
    this.option('--url <url>', 'address of the API (default: NIGHTSHIFT_URL, else the Nightshift that runs here)')
      .option('--token-file <file>', 'file with the bearer token (default: NIGHTSHIFT_TOKEN_FILE or NIGHTSHIFT_TOKEN)')
      .addOption(new Option('--as <token>', 'role of the token to use, if Nightshift runs here').choices(names))
      .option('--utc', 'times in UTC instead of local time')
      .on('option:utc', useUtc)
      .option('--json', 'JSON for programs; errors are problem+json on stderr')
    return help === undefined ? this : this.addHelpText('after', help)
  }

  /**
   * Adds `--web`, which opens a page in the browser instead of printing the result. `page` builds
   * the path of the page from the arguments.
   */
  web(page: (...words: string[]) => string): this {
    this.#page = page
    return this.option('--web', 'open the page with this result in a browser')
  }

  /** Runs the command with an API client. Throws CommandFailed without an address or a token. */
  calls(run: (api: ApiClient, ...given: never[]) => void | Promise<void>): this {
    return this.action((...given) => {
      const options = given.at(-2) as ConnectionOptions & { web?: boolean }
      const { api, target } = connect(options)
      if (this.#page && options.web) return openPage(`${target.url}${this.#page(...given)}`)
      return run(api, ...(given as never[]))
    })
  }
}

const parents = (command: Command): Command[] => (command.parent ? [...parents(command.parent), command.parent] : [])

/**
 * Returns the API client for these flags, with its address and token. Throws CommandFailed without
 * an address or a token.
 */
export function connect(
  options: ConnectionOptions,
  wanted?: Parameters<typeof resolveTarget>[1],
): { api: ApiClient; target: ApiTarget } {
  const target = resolveTarget(options, wanted)
  return { api: createApiClient(target), target }
}

/** The root directory of this checkout. */
export const rootDir = dirname(dirname(fileURLToPath(import.meta.url)))

/** Returns the state directory that the environment names for this checkout, if it is set. */
function namedStateDir(): string | undefined {
  return process.env.NIGHTSHIFT_STATE_DIR ? resolve(process.env.NIGHTSHIFT_STATE_DIR) : undefined
}

/** Returns the directory in which `start` keeps the state of the lab or of a site. */
export function getStateDir(purpose: Parameters<typeof stateDirFor>[1]): string {
  return namedStateDir() ?? stateDirFor(rootDir, purpose)
}

type TargetOptions = { url?: string; tokenFile?: string; as?: string }
type TokenName = keyof LocalRun['tokens']

/**
 * The API to call, and the token for it. `run` is set if `start` runs this API from this checkout.
 */
export type ApiTarget = { url: string; token: string; run: LocalRun | null }

/**
 * Finds the address: --url, then NIGHTSHIFT_URL, then the Nightshift that runs from this checkout,
 * then the last `login`. Finds the token: --token-file, then NIGHTSHIFT_TOKEN or
 * NIGHTSHIFT_TOKEN_FILE, then the `login` at that address, then the Nightshift that runs here.
 * Throws CommandFailed if no address or no token is found.
 */
export function resolveTarget(options: TargetOptions, wanted: TokenName = 'admin'): ApiTarget {
  const asked = options.url ?? process.env.NIGHTSHIFT_URL
  const run = readLocalRun(asked)
  const url = asked ?? run?.url ?? getLastLoginUrl()
  if (!url) {
    throw new CommandFailed(
      'error',
      `Nightshift does not run here. Start it with "${startLine()}", sign in to a Nightshift elsewhere with "nightshift login --url …", or ` +
        'give --url and --token-file (or NIGHTSHIFT_URL and NIGHTSHIFT_TOKEN_FILE).',
    )
  }
  const name = parseTokenName(options.as) ?? wanted
  // Sends a token of the run file only to the API of that file.
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

/**
 * Reads what `start` runs from this checkout. Null if nothing runs. If both lab and site run,
 * returns the one at `url`. Without `url`, throws CommandFailed for both, because a command for the
 * lab must not reach the site, and the reverse.
 */
export function readLocalRun(url = process.env.NIGHTSHIFT_URL): LocalRun | null {
  const running = runningStarts(rootDir, namedStateDir())
  const named = running.find((run) => run.url === url)
  if (named || running.length < 2) return named ?? running[0] ?? null
  if (url !== undefined) return null
  const [site, lab] = [running.find((run) => run.labUrl === null), running.find((run) => run.labUrl !== null)]
  throw new CommandFailed(
    'usage',
    `The lab and your site both run here. Choose one: --url ${site?.url} is the site, --url ${lab?.url} the lab. NIGHTSHIFT_URL sets the address for every command of this terminal.`,
  )
}

/** Reads the running lab of this checkout, or without a lab the site. Null if neither runs. */
export function readLabRun(): LocalRun | null {
  const running = runningStarts(rootDir, namedStateDir())
  return running.find((run) => run.labUrl !== null) ?? running[0] ?? null
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

/** Formats a nightshift command line as the current one was typed. */
export function commandLine(text: string): string {
  return `${commandPrefix(process.env)} ${text}`
}

export function getLogFile(part: string): string {
  return join(namedStateDir() ?? lastStateDir(rootDir), 'logs', `${part}.log`)
}
