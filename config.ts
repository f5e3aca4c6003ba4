import { readFileSync } from 'node:fs'
import { z } from 'zod'

const port = z.coerce.number().int().min(0).max(65_535)
const flag = z.enum(['true', 'false', '1', '0']).transform((text) => text === 'true' || text === '1')
const url = z.url({ protocol: /^https?$/, error: 'is not an http(s) URL' })

const schema = z.object({
  AGENT_ENABLED: flag.default(false),
  AGENT_MAX_CONCURRENT: z.coerce.number().int().min(1).max(100).default(3),
  AGENT_FOLLOWER_CONCURRENT: z.coerce.number().int().min(1).max(100).default(5),
  AGENT_API_KEY: z.string().optional(),
  BOOTSTRAP_ADMIN_TOKEN: z.string().min(24, 'must have at least 24 characters').optional(),
  BOOTSTRAP_INGEST_TOKEN: z.string().min(24, 'must have at least 24 characters').optional(),
  LLM_BASE_URL: url.optional(),
  LLM_API_KEY: z.string().default(''),
  LLM_MODEL: z.string().min(1).default('Qwen/Qwen2.5-72B-Instruct'),
  LLM_MAX_TURNS: z.coerce.number().int().min(1).max(200).default(10),
  LLM_PROTOCOL: z.enum(['native', 'json']).default('native'),
  LLM_TEMPERATURE: z.coerce.number().min(0).max(2).default(0.1),
  LLM_MAX_TOKENS: z.coerce.number().int().min(64).max(32_768).default(1_024),
  LLM_CONTEXT_TOKENS: z.coerce.number().int().min(2_048).max(2_000_000).default(32_768),
  LLM_TIMEOUT_SECONDS: z.coerce.number().min(1).max(330).default(300),
  LLM_REQUESTS_PER_SECOND: z.coerce.number().min(0.1).max(1_000).default(20),
  CORE_API_URL: url.default('http://127.0.0.1:8080'),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'is not a postgresql:// URL')
    .optional(),
  TEMPORAL_ADDRESS: z.string().min(1).default('127.0.0.1:7233'),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  QUEUE_INTERVAL_SECONDS: z.coerce.number().int().min(1).max(3_600).default(60),
  WATCHDOG_INTERVAL_SECONDS: z.coerce.number().min(0.2).max(3_600).default(30),
  PORT: port.default(8080),
  WORKER_PORT: port.default(8081),
  HOST: z.string().default('127.0.0.1'),
  PUBLIC_URL: url.optional(),
  TEMPORAL_UI_URL: url.optional(),
  PLATFORM_URL: url.optional(),
  PLATFORM_TOKEN: z.string().default(''),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
})

export type Config = z.infer<typeof schema>

/** Settings whose value may come from a file named by `<NAME>_FILE`, as orchestrators mount secrets. */
const secrets = [
  'AGENT_API_KEY',
  'BOOTSTRAP_ADMIN_TOKEN',
  'BOOTSTRAP_INGEST_TOKEN',
  'LLM_API_KEY',
  'DATABASE_URL',
  'PLATFORM_TOKEN',
] as const

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
 * wrong start is mended in one go. `requires` names what this process cannot do without.
 */
export function readConfig(
  environment: Record<string, string | undefined> = process.env,
  requires: (keyof Config)[] = [],
): Config {
  const problems: string[] = []
  const values: Record<string, string> = {}
  for (const name of Object.keys(schema.shape)) {
    const value = environment[name]
    if (value !== undefined && value !== '') values[name] = value
  }
  for (const name of secrets) {
    const file = environment[`${name}_FILE`]
    if (!file) continue
    if (values[name] !== undefined) {
      problems.push(`${name} and ${name}_FILE are both set: keep one`)
      continue
    }
    try {
      values[name] = readFileSync(file, 'utf8').trim()
    } catch {
      problems.push(`${name}_FILE names ${file}, which cannot be read`)
    }
  }
  const parsed = schema.safeParse(values)
  if (!parsed.success) {
    for (const issue of parsed.error.issues) problems.push(`${issue.path.join('.')} ${issue.message}`)
  }
  const enabled = parsed.success ? parsed.data.AGENT_ENABLED : values.AGENT_ENABLED === 'true'
  if (enabled) {
    if (!values.LLM_BASE_URL) {
      problems.push('LLM_BASE_URL is required when AGENT_ENABLED is true: the base URL of an OpenAI-compatible server')
    }
    if (!values.AGENT_API_KEY) {
      problems.push('AGENT_API_KEY is required when AGENT_ENABLED is true: a token of role agent')
    }
  }
  for (const name of requires) {
    if (values[name] === undefined && schema.shape[name].safeParse(undefined).data === undefined) {
      problems.push(`${name} is required`)
    }
  }
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems)
  return parsed.data
}

/** Of the defaults that `platform_config` falls back to, those that somebody really set in the environment. */
export function givenDefaults(
  environment: Record<string, string | undefined> = process.env,
): Record<'AGENT_FOLLOWER_CONCURRENT' | 'LLM_MAX_TURNS', string | undefined> {
  const { AGENT_FOLLOWER_CONCURRENT, LLM_MAX_TURNS } = environment
  return {
    AGENT_FOLLOWER_CONCURRENT: AGENT_FOLLOWER_CONCURRENT || undefined,
    LLM_MAX_TURNS: LLM_MAX_TURNS || undefined,
  }
}
