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

/** A command of the program: sub-commands can call the API. Each has `--quiet` and `--no-color`. */
export class CliCommand extends Command {
  #page: ((...words: string[]) => string) | null = null

  constructor(name?: string) {
    super(name)
    this.addOption(new Option('-q, --quiet', 'results and errors alone').hideHelp())
    this.addOption(new Option('--no-color', 'no colours').hideHelp())
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name)
  }

  /** Leaves `-q` and `--no-color` to the words of the command, which may mean another program's. */
  takesForeignWords(): this {
    ;(this.options as Option[]).length = 0
    return this
  }

  /** A parent alone was called: answers its help, on stdout with 0, as `gh` and `kubectl` do. */
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
    this.option('--url <url>', 'where the API is (else NIGHTSHIFT_URL, else the start that runs here)')
      .option('--token-file <file>', 'file with the bearer token (else NIGHTSHIFT_TOKEN_FILE or NIGHTSHIFT_TOKEN)')
      .addOption(new Option('--as <token>', 'which token of the start that runs here').choices(names))
      .option('--utc', 'times in UTC instead of local time')
      .on('option:utc', useUtc)
      .option('--json', 'JSON for programs; errors are problem+json on stderr')
    return help === undefined ? this : this.addHelpText('after', help)
  }

  /**
   * Adds `--web`: opens the thing's page instead of printing it. `page` makes its path of the
   * arguments.
   */
  web(page: (...words: string[]) => string): this {
    this.#page = page
    return this.option('--web', 'open the page of it in a browser')
  }

  /** Runs with the API client of its flags; throws as `resolveTarget` does. */
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

/** The state folder that the environment names for this checkout, if it names one. */
function namedStateDir(): string | undefined {
  return process.env.NIGHTSHIFT_STATE_DIR ? resolve(process.env.NIGHTSHIFT_STATE_DIR) : undefined
}

/** Where `start` keeps the state of the lab or of a site. */
export function getStateDir(purpose: Parameters<typeof stateDirFor>[1]): string {
  return namedStateDir() ?? stateDirFor(rootDir, purpose)
}

type TargetOptions = { url?: string; tokenFile?: string; as?: string }
type TokenName = keyof LocalRun['tokens']

/**
 * The API to call, and the token for it. `run` is set when `start` runs this API from this
 * checkout.
 */
export type ApiTarget = { url: string; token: string; run: LocalRun | null }

/**
 * Finds the address: flags, then NIGHTSHIFT_URL, then the running start of this checkout, then the
 * last `login`. Finds the token: flags, then NIGHTSHIFT_TOKEN or NIGHTSHIFT_TOKEN_FILE, then the
 * `login` at that address, then the running start. Throws CommandFailed when no address or no token
 * is found.
 */
export function resolveTarget(options: TargetOptions, wanted: TokenName = 'admin'): ApiTarget {
  const asked = options.url ?? process.env.NIGHTSHIFT_URL
  const run = readLocalRun(asked)
  const url = asked ?? run?.url ?? getLastLoginUrl()
  if (!url) {
    throw new CommandFailed(
      'error',
      `Nightshift does not run here. Start it with "${startLine()}", sign in where it runs with "nightshift login --url …", or ` +
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

/**
 * This checkout's running start; null when there is none. Where lab and site both run, the one at
 * this address; throws CommandFailed where none is named, since a command for one must not reach
 * the other.
 */
export function readLocalRun(url = process.env.NIGHTSHIFT_URL): LocalRun | null {
  const running = runningStarts(rootDir, namedStateDir())
  const named = running.find((run) => run.url === url)
  if (named || running.length < 2) return named ?? running[0] ?? null
  if (url !== undefined) return null
  const [site, lab] = [running.find((run) => run.labUrl === null), running.find((run) => run.labUrl !== null)]
  throw new CommandFailed(
    'usage',
    `The lab and your site both run here. Say which you mean: --url ${site?.url} is the site, --url ${lab?.url} the lab. NIGHTSHIFT_URL sets it for every command of this terminal.`,
  )
}

/** The lab that runs from this checkout, whatever else runs; null when none does. */
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

/** The line that runs a nightshift command where this one runs. */
export function commandLine(text: string): string {
  return `${commandPrefix(process.env)} ${text}`
}

export function getLogFile(part: string): string {
  return join(namedStateDir() ?? lastStateDir(rootDir), 'logs', `${part}.log`)
}
