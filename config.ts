import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { TemporalSettings } from './clients/temporal/trouble.ts'
import {
  agent,
  agentProblems,
  type Given,
  knowledge,
  knowledgeProblems,
  platform,
  platformProblems,
  processes,
} from './config/agent.ts'
import { mesh, meshProblems, oidc, oidcProblems, slack, slackProblems } from './config/credentials.ts'
import { type DeclaredModel, readModels } from './config/models.ts'
import { temporal, temporalProblems, temporalSettings } from './config/temporal.ts'

export { givenDefaults, knowledgeSettings, proxmoxSettings } from './config/agent.ts'
export {
  deviceUrlVariable,
  type MeshSettings,
  meshSettings,
  oidcSettings,
  slackSettings,
} from './config/credentials.ts'
export { type DeclaredModel, defaultModel } from './config/models.ts'

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

/** Per subject, what only several settings together can get wrong. */
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

/** Every setting, as docs/reference/configuration.md tells of it. */
export const settingNames = Object.keys(schema.shape) as (keyof Config)[]

/** Settings whose value may come from a file named by `<NAME>_FILE`, as orchestrators mount secrets. */
export const secrets = [
  'AGENT_API_KEY',
  'BOOTSTRAP_ADMIN_TOKEN',
  'BOOTSTRAP_INGEST_TOKEN',
  'LLM_API_KEY',
  'DATABASE_URL',
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
 * The only reader of the environment. Answers parsed settings or throws ConfigError with every problem at once, so that a
 * wrong start can be corrected in one go. `requires` names what this process cannot do without.
 */
export function readConfig(
  environment: Record<string, string | undefined> = process.env,
  requires: (keyof Config)[] = [],
): Config {
  const problems: string[] = []
  const given: Given = {}
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
    for (const issue of parsed.error.issues) problems.push(`${issue.path.join('.')} ${issue.message}`)
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

/** The models that runs may be given to, with their keys: for the worker alone. Throws ConfigError with every fault of LLM_SERVERS_FILE. */
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

/** For the main file of a process: a wrong environment ends it with code 1 and one message that lists every problem. */
export function readConfigOrExit(requires: (keyof Config)[]): Config {
  return orExit(() => readConfig(process.env, requires))
}

/** The same for what a file of the configuration says. */
export function orExit<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    console.error(error.message)
    process.exit(1)
  }
}

/** How to reach Temporal, whatever else of the environment is wrong: for commands that need nothing but that. */
export function temporalSettingsIn(environment: Record<string, string | undefined> = process.env): TemporalSettings {
  const own = Object.entries(environment).filter(([name]) => name.startsWith('TEMPORAL_'))
  return temporalSettings(readConfig(Object.fromEntries(own)))
}
