import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { secrets, settingNames } from '../../config/settings.ts'
import { capitalize } from '../../domain/format.ts'
import { CommandFailed } from '../exit-codes.ts'
import { askHidden, askLine, isAskable, printNote } from '../ui/terminal.ts'
import { readEnvFile, type Values } from './env-file.ts'
import type { SiteFiles } from './place.ts'

/**
 * Questions of setup, named after their settings. The login of the database's owner is used once,
 * and never stored.
 */
export type AnswerName =
  | 'LLM_BASE_URL'
  | 'LLM_MODEL'
  | 'LLM_API_KEY_FILE'
  | 'DATABASE_URL'
  | 'MIGRATE_DATABASE_URL'
  | 'TEMPORAL_ADDRESS'
  | 'TEMPORAL_NAMESPACE'
  | 'PUBLIC_URL'
  | 'PORT'

/** The flag of each answer, and the question for a person. */
export const questions: Record<AnswerName, { flag: string; asks: string; isHidden?: boolean }> = {
  LLM_BASE_URL: {
    flag: '--base-url',
    asks: "the model's server, as http://gpu-1:8000/v1 (none: no model yet)",
  },
  LLM_MODEL: { flag: '--model', asks: 'the name of the model at that server' },
  LLM_API_KEY_FILE: { flag: '--key-file', asks: 'a file with the key of the server (none: no key)' },
  DATABASE_URL: {
    flag: '--database-url',
    asks: 'PostgreSQL, as postgresql://nightshift_services:password@host:5432/nightshift (not shown)',
    isHidden: true,
  },
  MIGRATE_DATABASE_URL: {
    flag: '--owner-url',
    asks: 'the same database with the login that owns it, used only for the schema (not shown, never written)',
    isHidden: true,
  },
  TEMPORAL_ADDRESS: { flag: '--temporal-address', asks: 'Temporal, as host:port' },
  TEMPORAL_NAMESPACE: { flag: '--temporal-namespace', asks: 'its namespace' },
  PUBLIC_URL: {
    flag: '--public-url',
    asks: 'the address that people and agents use, as https://nightshift.example.com',
  },
  PORT: { flag: '--port', asks: 'the port that the API listens on' },
}

/** The values of all settings that setup knows, and whether it can ask for more. */
export type Answers = {
  /**
   * Values for this run: those that the person typed, then flags, then the answers file. They may
   * replace a value in the file of settings.
   */
  given: Values
  /** The present values in the file of settings. */
  kept: Values
  /** Names of the settings that a person typed in this run. */
  typed: Set<string>
  environment: Record<string, string | undefined>
  canAsk: boolean
}

export function readAnswers(place: SiteFiles, flags: Values, answersFile: string | undefined): Answers {
  const fromFile = answersFile === undefined ? {} : readAnswersFile(answersFile)
  return {
    given: { ...fromFile, ...flags },
    kept: readEnvFile(place.envFile),
    typed: new Set(),
    environment: process.env,
    canAsk: isAskable(),
  }
}

/**
 * Returns the current value: the answer in this run, or else from the file of settings, or else
 * from the environment.
 */
export function knownAnswer({ given, kept, environment }: Answers, name: string): string | undefined {
  return (
    given[name] ?? (kept[name] || undefined) ?? (environment[name] || undefined) ?? secretOf(kept, environment, name)
  )
}

function secretOf(kept: Values, environment: Answers['environment'], name: string): string | undefined {
  const file = kept[`${name}_FILE`] || environment[`${name}_FILE`]
  if (!file || !(secrets as readonly string[]).includes(name)) return undefined
  try {
    return readFileSync(file, 'utf8').trim() || undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the answer. Asks for a missing answer if a person can answer. An empty line means
 * `fallback`; without `fallback` the question is repeated.
 */
export async function answerOf(answers: Answers, name: AnswerName, fallback?: string): Promise<string | undefined> {
  const known = knownAnswer(answers, name)
  if (known !== undefined || !answers.canAsk) return known ?? fallback
  return await askFor(answers, name, fallback)
}

/**
 * Number of empty lines after which asking stops, because an input that has ended returns empty
 * lines forever.
 */
const maxEmpty = 3

/** Asks a person, even if the answer is known. */
export async function askFor(answers: Answers, name: AnswerName, fallback?: string): Promise<string> {
  const { asks, isHidden } = questions[name]
  const shown = fallback === undefined || isHidden ? '' : ` [${fallback || 'none'}]`
  for (let tries = 0; tries < maxEmpty; tries += 1) {
    const line = (await (isHidden ? askHidden : askLine)(`${capitalize(asks)}${shown}: `)).trim()
    const value = line === '' ? fallback : line
    if (value === undefined) continue
    answers.given[name] = value
    answers.typed.add(name)
    return value
  }
  throw new CommandFailed('usage', `${questions[name].flag} (${name}) has no value. Nothing was changed.`)
}

/** Throws CommandFailed with the flag of each missing answer, because nobody can be asked. */
export function refuseMissing(missing: AnswerName[]): void {
  if (missing.length === 0) return
  const words = missing.map((name) => `${questions[name].flag} (${name})`)
  throw new CommandFailed(
    'usage',
    `There is no terminal to ask at, and these settings have no value: ${words.join(', ')}. Give the flags, or a file of NAME=value lines with --answers. Nothing was changed.`,
  )
}

/**
 * Names that an answers file may contain: all settings, files of secrets, and the login of the
 * database's owner.
 */
const known = new Set<string>([...settingNames, ...secrets.map((name) => `${name}_FILE`), 'MIGRATE_DATABASE_URL'])

function readAnswersFile(file: string): Values {
  const text = readBounded(file)
  const values = parseEnv(text) as Values
  const unknown = Object.keys(values).filter((name) => !known.has(name))
  if (unknown.length === 0 && (Object.keys(values).length > 0 || text.trim() === ''))
    // Ignores a line without a value: a template that was not filled in does not mean "none".
    return Object.fromEntries(Object.entries(values).filter(([, value]) => value.trim() !== ''))
  if (unknown.length === 0)
    throw new CommandFailed('usage', `${file} holds no lines of NAME=value, as LLM_MODEL=qwen3:32b.`)
  throw new CommandFailed(
    'usage',
    `${file} has names that are no settings: ${unknown.slice(0, 5).join(', ')}. Use the names in docs/reference/configuration.md, and MIGRATE_DATABASE_URL. Nothing was changed.`,
  )
}

/**
 * The most bytes of a file of answers, which has about forty lines. Stops the reading of an endless
 * file such as /dev/zero.
 */
const maxAnswersBytes = 262_144

function readBounded(file: string): string {
  let descriptor: number | undefined
  try {
    descriptor = file === '-' ? 0 : openSync(file, 'r')
    warnIfOpen(file, fstatSync(descriptor).mode)
    const bytes = Buffer.alloc(maxAnswersBytes + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, null)
    if (length <= maxAnswersBytes) return bytes.toString('utf8', 0, length).replace(/^\uFEFF/, '')
  } catch {
    throw new CommandFailed('usage', `The answers file ${file} cannot be read.`)
  } finally {
    if (descriptor) closeSync(descriptor)
  }
  throw new CommandFailed(
    'usage',
    `The answers file ${file} is larger than ${maxAnswersBytes / 1024} KiB: it takes lines of NAME=value. Nothing was changed.`,
  )
}

/** Warns if others can read a file that may contain a database password. */
function warnIfOpen(file: string, mode: number): void {
  const isPlainFile = (mode & 0o170000) === 0o100000
  if (isPlainFile && (mode & 0o004) !== 0 && file !== '-')
    printNote(
      `Everybody on this host can read ${file}. Run "chmod 600 ${file}", and remove the file once its site runs.`,
    )
}
