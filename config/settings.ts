import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { TemporalSettings } from '../clients/temporal.ts'
import { listFaults } from '../domain/schema-faults.ts'
import {
  agent,
  agentProblems,
  type EnvironmentTexts,
  knowledge,
  knowledgeProblems,
  platform,
  platformProblems,
  processes,
  url,
} from './agent.ts'
import { mesh, meshProblems, oidc, oidcProblems, slack, slackProblems } from './credentials.ts'
import { temporal, temporalProblems, temporalSettings } from './temporal.ts'

/**
 * Parses the environment, and checks settings against each other and against the models that the
 * installation declares.
 */

const defaultModel = 'default'

/**
 * A model on a model server, with the data for its requests. The key stays in the worker that reads
 * it.
 */
export type DeclaredModel = {
  name: string
  baseUrl: string
  model: string
  apiKey: string
  /** Names of the models to use, in order, while this model is unreachable. */
  fallbacks: string[]
  protocol: ProtocolSetting
}

/**
 * The form of the calls to a model. `auto`: native tool calls, unless the model server is known not
 * to support tools.
 */
type ProtocolSetting = z.infer<typeof protocolSetting>
const protocolSetting = z.enum(['auto', 'native', 'json'])

const modelName = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,39}$/, 'takes 1 to 40 of a-z, 0-9, "_", "." and "-"')

const plainUrl = url.refine((text) => {
  const { username, password, search } = new URL(text)
  return username === '' && password === '' && search === ''
}, 'holds a user, a password or a query: name the key by keyFile or keyVariable')

const fallbacks = z.array(modelName).max(8).default([])
const entry = z
  .strictObject({
    name: modelName,
    baseUrl: plainUrl,
    model: z.string().min(1).max(200),
    /**
     * The file with the key of the server, instead of the worker's variable `keyVariable`. Without
     * both, no key is sent.
     */
    keyFile: z.string().min(1).optional(),
    keyVariable: z
      .string()
      .regex(/^[A-Z_][A-Z0-9_]*$/, 'is not the name of a variable')
      .optional(),
    fallbacks,
    /** The protocol of this model. Default: LLM_PROTOCOL. */
    protocol: protocolSetting.optional(),
  })
  .refine(({ keyFile, keyVariable }) => !keyFile || !keyVariable, 'has keyFile and keyVariable: keep one')

const serversFile = z.strictObject({
  /** Options for the model of LLM_BASE_URL and LLM_MODEL. */
  default: z.strictObject({ fallbacks, protocol: protocolSetting.optional() }).optional(),
  models: z.array(entry).max(50).default([]),
})

type GivenModels = {
  baseUrl: string
  model: string
  apiKey: string
  protocol: 'native' | 'json'
  file: string | undefined
}

/**
 * Reads all models, the default model first. `problems`: one line for each fault of
 * LLM_SERVERS_FILE, with its remedy. After a fault, only the default model is returned.
 */
function readModels(
  given: GivenModels,
  environment: Record<string, string | undefined>,
): { models: DeclaredModel[]; problems: string[] } {
  const { baseUrl, model, apiKey, protocol, file } = given
  const alone: DeclaredModel = { name: defaultModel, baseUrl, model, apiKey, protocol, fallbacks: [] }
  if (file === undefined) return { models: [alone], problems: [] }
  const read = readJson(file)
  if ('problem' in read) return { models: [alone], problems: [read.problem] }
  const parsed = serversFile.safeParse(read.value)
  if (!parsed.success) {
    const problems = listFaults(parsed.error).map(({ field, message }) => `${field || 'it'}: ${message}`)
    return { models: [alone], problems: problems.map((each) => `LLM_SERVERS_FILE ${file}: ${each}`) }
  }
  const problems: string[] = []
  const declared = parsed.data.models.map(({ keyFile, keyVariable, ...rest }): DeclaredModel => {
    const found = keyOf(keyFile, keyVariable, environment)
    if ('problem' in found) problems.push(`${rest.name}: ${found.problem}`)
    return { ...rest, protocol: rest.protocol ?? protocol, apiKey: 'key' in found ? found.key : '' }
  })
  const own = parsed.data.default
  const models = [{ ...alone, fallbacks: own?.fallbacks ?? [], protocol: own?.protocol ?? protocol }, ...declared]
  const names = models.map(({ name }) => name)
  problems.push(
    ...names.filter((name, index) => names.indexOf(name) < index).map((name) => `${name} is declared twice`),
    ...models.flatMap((each) =>
      each.fallbacks
        .filter((name) => name === each.name || !names.includes(name))
        .map((name) => `${each.name}: its fallback ${name} is ${name === each.name ? 'itself' : 'declared nowhere'}`),
    ),
    ...models.flatMap((each) => protocolFaults(each, models)),
  )
  if (problems.length === 0) return { models, problems }
  return { models: [alone], problems: problems.map((each) => `LLM_SERVERS_FILE ${file}: ${each}`) }
}

/**
 * Lists fallbacks whose protocol does not fit the model. A run keeps its first protocol, because
 * native tool calls cannot be converted to text in the middle of a run. A run that began with
 * `json` can use any model.
 */
function protocolFaults({ name, protocol, fallbacks: own }: DeclaredModel, models: readonly DeclaredModel[]): string[] {
  if (protocol !== 'native') return []
  const asWords = models.filter((each) => own.includes(each.name) && each.protocol === 'json')
  return asWords.map(
    (each) =>
      `${name} uses native, but its fallback ${each.name} uses json: give both the same protocol, because a run cannot change it`,
  )
}

function readJson(file: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(readFileSync(file, 'utf8')) }
  } catch (error) {
    const why = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read'
    return { problem: `LLM_SERVERS_FILE names ${file}, which ${why}` }
  }
}

function keyOf(
  file: string | undefined,
  variable: string | undefined,
  environment: Record<string, string | undefined>,
): { key: string } | { problem: string } {
  if (variable !== undefined) {
    const key = environment[variable]
    return key ? { key } : { problem: `keyVariable names ${variable}, which is not set` }
  }
  if (file === undefined) return { key: '' }
  try {
    return { key: readFileSync(file, 'utf8').trim() }
  } catch {
    return { problem: `keyFile names ${file}, which cannot be read` }
  }
}

export { givenDefaults, knowledgeSettings, proxmoxSettings } from './agent.ts'
export {
  deviceUrlVariable,
  type MeshSettings,
  meshSettings,
  oidcSettings,
  slackSettings,
} from './credentials.ts'

export { temporalSettings }

const schema = z.object({
  ...agent.shape,
  ...processes.shape,
  ...knowledge.shape,
  ...temporal.shape,
  ...platform.shape,
  ...oidc.shape,
  ...slack.shape,
  ...mesh.shape,
})

/** Checks that involve several settings, by subject. */
const problemsOf = [
  agentProblems,
  knowledgeProblems,
  oidcProblems,
  slackProblems,
  platformProblems,
  meshProblems,
  temporalProblems,
]

export type Config = z.infer<typeof schema>

/** Names of all settings, as in docs/reference/configuration.md. */
export const settingNames = Object.keys(schema.shape) as (keyof Config)[]

/** Settings that may come from the file in `<NAME>_FILE`, as orchestrators mount secrets. */
export const secrets = [
  'AGENT_API_KEY',
  'BOOTSTRAP_ADMIN_TOKEN',
  'BOOTSTRAP_INGEST_TOKEN',
  'LLM_API_KEY',
  'DATABASE_URL',
  'HEARTBEAT_URL',
  'KNOWLEDGE_REPO_TOKEN',
  'PLATFORM_TOKEN',
  'PROXMOX_TOKEN',
  'OIDC_CLIENT_SECRET',
  'SLACK_BOT_TOKEN',
  'SLACK_SIGNING_SECRET',
  'TEMPORAL_API_KEY',
  'TEMPORAL_TLS_CLIENT_KEY_DATA',
] as const satisfies (keyof Config)[]

export class ConfigError extends Error {
  override name = 'ConfigError' as const
  readonly problems: string[]
  constructor(problems: string[]) {
    super(
      `The configuration has ${problems.length} problem(s):\n${problems.map((problem) => `  - ${problem}`).join('\n')}`,
    )
    this.problems = problems
  }
}

/**
 * Reads the environment and returns the parsed settings. Throws one ConfigError with all problems.
 * No other code parses these settings. `requires`: settings that the process cannot do without.
 */
export function readConfig(
  environment: Record<string, string | undefined> = process.env,
  requires: (keyof Config)[] = [],
): Config {
  const problems: string[] = []
  const given: EnvironmentTexts = {}
  for (const name of settingNames) {
    const value = environment[name]
    if (value !== undefined && value !== '') given[name] = value
  }
  for (const name of secrets) {
    const file = environment[`${name}_FILE`]
    if (!file) continue
    if (given[name] !== undefined) {
      problems.push(`${name} and ${name}_FILE are both set: keep one`)
      continue
    }
    try {
      given[name] = readFileSync(file, 'utf8').trim()
    } catch {
      problems.push(`${name}_FILE names ${file}, which cannot be read`)
    }
  }
  const parsed = schema.safeParse(given)
  if (!parsed.success) {
    for (const { field, message } of listFaults(parsed.error, Number.POSITIVE_INFINITY))
      problems.push(`${field}: ${message}`)
  }
  for (const problemsWith of problemsOf) problems.push(...problemsWith(given))
  for (const name of requires) {
    if (given[name] === undefined && schema.shape[name].safeParse(undefined).data === undefined) {
      problems.push(`${name} is required`)
    }
  }
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems)
  return parsed.data
}

/**
 * Returns the models for runs, with their keys. Only the worker may call this function. Throws
 * ConfigError with all faults of LLM_SERVERS_FILE.
 */
export function modelsOf(
  config: Config,
  environment: Record<string, string | undefined> = process.env,
): DeclaredModel[] {
  const given = {
    baseUrl: config.LLM_BASE_URL ?? 'http://127.0.0.1:9',
    model: config.LLM_MODEL,
    apiKey: config.LLM_API_KEY,
    protocol: config.LLM_PROTOCOL,
    file: config.LLM_SERVERS_FILE,
  }
  const { models, problems } = readModels(given, environment)
  if (problems.length > 0) throw new ConfigError(problems)
  return models
}

/**
 * Reads the settings for the main file of a process. If settings are invalid, prints one message
 * and exits with 1.
 */
export function readConfigOrExit(requires: (keyof Config)[]): Config {
  return orExit(() => readConfig(process.env, requires))
}

/** Returns the result of `read`. On a ConfigError, prints its message and exits with 1. */
export function orExit<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    console.error(error.message)
    process.exit(1)
  }
}

/** Returns Temporal's settings without reading other settings, which may have faults. */
export function temporalSettingsIn(environment: Record<string, string | undefined> = process.env): TemporalSettings {
  const own = Object.entries(environment).filter(([name]) => name.startsWith('TEMPORAL_'))
  return temporalSettings(readConfig(Object.fromEntries(own)))
}
