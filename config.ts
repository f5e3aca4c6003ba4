import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { OidcSettings } from './clients/oidc.ts'
import type { ProxmoxOptions } from './clients/proxmox/client.ts'
import type { SlackSettings } from './clients/slack/client.ts'
import type { PersonRole } from './domain/operator.ts'
import { engineNames } from './placement/bound/engine.ts'

const port = z.coerce.number().int().min(0).max(65_535)
const flag = z.enum(['true', 'false', '1', '0']).transform((text) => text === 'true' || text === '1')
const url = z.url({ protocol: /^https?$/, error: 'is not an http(s) URL' })

/**
 * `sre-admins=admin,sre=approver`; with semicolons between them where names of groups hold commas, as those of LDAP do. The
 * roles of machines are not among them: no group makes a person an agent.
 */
function roleMap(text: string, context: z.core.$RefinementCtx): Record<string, PersonRole> {
  const roles: Record<string, PersonRole> = Object.create(null)
  for (const pair of text.split(text.includes(';') ? ';' : ',')) {
    const [, group, role] = /^\s*(.+)=\s*(viewer|operator|approver|admin)\s*$/.exec(pair) ?? []
    if (group && role) roles[group.trim()] = role as PersonRole
    else if (pair.trim() !== '') {
      context.addIssue(`has "${pair.trim()}", which is not <group>=<viewer, operator, approver or admin>`)
    }
  }
  if (Object.keys(roles).length === 0) context.addIssue('names no group: nobody could sign in')
  return roles
}

/** `r1=pve1,pve2;r2=pve3` as rack by node. */
function rackMap(text: string, context: z.core.$RefinementCtx): Record<string, string> {
  const racks: Record<string, string> = Object.create(null)
  for (const part of text.split(';').filter((part) => part.trim() !== '')) {
    const [rack = '', nodes = '', more] = part.split('=').map((text) => text.trim())
    const names = nodes.split(',').map((node) => node.trim())
    if (more !== undefined || ![rack, ...names].every((name) => /^[A-Za-z0-9][\w.-]*$/.test(name))) {
      context.addIssue(`has "${part.trim()}", which is not <rack>=<node>,<node>`)
      continue
    }
    for (const node of names) {
      if (racks[node]) context.addIssue(`has ${node} in two racks`)
      racks[node] = rack
    }
  }
  return racks
}

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
  // See "What waiting costs" in docs/operations.md.
  WORKER_CACHED_WORKFLOWS: z.coerce.number().int().min(0).max(10_000).default(100),
  WORKER_WORKFLOW_THREADS: z.coerce.number().int().min(1).max(16).default(1),
  WORKER_ACTIVITY_SLOTS: z.coerce.number().int().min(1).max(500).default(50),
  HOST: z.string().default('127.0.0.1'),
  PUBLIC_URL: url.optional(),
  TEMPORAL_UI_URL: url.optional(),
  PLACEMENT_ENGINE: z.enum(engineNames).default('glpk'),
  PLACEMENT_CPU_OVERCOMMIT_PERCENT: z.coerce.number().int().min(100).max(3_200).default(100),
  PLACEMENT_RAM_RESERVE_PERCENT: z.coerce.number().int().min(0).max(90).default(0),
  PLATFORM_URL: url.optional(),
  PLATFORM_TOKEN: z.string().default(''),
  // Nodes of one cluster: `https://pve1:8006,https://pve2:8006`.
  PROXMOX_URL: z
    .string()
    .transform((text) => text.split(',').map((part) => part.trim()))
    .pipe(z.array(url))
    .optional(),
  PROXMOX_TOKEN: z
    .string()
    .regex(
      /^[^\s:/=]+@[\w.-]+![\w.-]+=[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/,
      'is not USER@REALM!TOKENID=UUID',
    )
    .optional(),
  PROXMOX_CA_FILE: z.string().optional(),
  PROXMOX_RACKS: z.string().transform(rackMap).optional(),
  OIDC_ISSUER: url.optional(),
  OIDC_CLIENT_ID: z.string().min(1).optional(),
  OIDC_CLIENT_SECRET: z.string().default(''),
  OIDC_SCOPES: z
    .string()
    .regex(/(^| )openid( |$)/, 'must hold openid')
    .default('openid profile email'),
  OIDC_GROUPS_CLAIM: z.string().min(1).default('groups'),
  OIDC_ROLE_MAP: z.string().transform(roleMap).optional(),
  SLACK_BOT_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'is not a token')
    .optional(),
  SLACK_SIGNING_SECRET: z.string().min(16, 'must have at least 16 characters').optional(),
  SLACK_CHANNEL: z
    .string()
    .regex(/^#?[\w-]{1,80}$/, 'is neither the id nor the name of a channel')
    .optional(),
  SLACK_API_URL: url.default('https://slack.com/api'),
  // Keys of the device mesh (ed25519, PKCS8, PEM): in the API process and nowhere else.
  MESH_ROOT_KEY_FILE: z.string().min(1).optional(),
  MESH_SIGNING_KEY_FILE: z.string().min(1).optional(),
  MESH_NEXT_KEY_FILE: z.string().min(1).optional(),
  MESH_CA_FILE: z.string().min(1).optional(),
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
  'PROXMOX_TOKEN',
  'OIDC_CLIENT_SECRET',
  'SLACK_BOT_TOKEN',
  'SLACK_SIGNING_SECRET',
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
  problems.push(...oidcProblems(values), ...slackProblems(values), ...proxmoxProblems(values), ...meshProblems(values))
  for (const name of requires) {
    if (values[name] === undefined && schema.shape[name].safeParse(undefined).data === undefined) {
      problems.push(`${name} is required`)
    }
  }
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems)
  return parsed.data
}

/** A provider takes all of its settings; and what it says is believed over TLS, or from this machine. */
function oidcProblems(values: Record<string, string>): string[] {
  if (!values.OIDC_ISSUER) return []
  const problems = (['OIDC_CLIENT_ID', 'OIDC_ROLE_MAP', 'PUBLIC_URL'] as const)
    .filter((name) => !values[name])
    .map((name) => `${name} is required when OIDC_ISSUER is set`)
  if (isReadable(values.OIDC_ISSUER)) problems.push('OIDC_ISSUER must be https, unless it is on this machine')
  return problems
}

/** Slack with a bot takes all of its settings: without the secret a button could not be believed, without `PUBLIC_URL` not be reached. */
function slackProblems(values: Record<string, string>): string[] {
  const own = ['SLACK_BOT_TOKEN', 'SLACK_SIGNING_SECRET', 'SLACK_CHANNEL'] as const
  const given = [...own, 'SLACK_API_URL'].find((name) => values[name])
  if (!given) return []
  const missing = [...own, 'PUBLIC_URL'].filter((name) => !values[name])
  const problems = missing.length > 0 ? [`${given} is set, and Slack also needs ${missing.join(', ')}`] : []
  if (values.SLACK_API_URL && isReadable(values.SLACK_API_URL)) {
    problems.push('SLACK_API_URL must be https, unless it is on this machine')
  }
  return problems
}

/** A cluster takes an address and a token, and there is one platform. */
function proxmoxProblems(values: Record<string, string>): string[] {
  const { PROXMOX_URL, PROXMOX_TOKEN, PROXMOX_CA_FILE, PROXMOX_RACKS, PLATFORM_URL } = values
  if (!PROXMOX_URL) {
    return PROXMOX_TOKEN || PROXMOX_CA_FILE || PROXMOX_RACKS
      ? ['PROXMOX_URL is required when another PROXMOX_ setting is set']
      : []
  }
  const problems: string[] = []
  if (PLATFORM_URL) problems.push('PROXMOX_URL and PLATFORM_URL are both set: there is one platform')
  if (!PROXMOX_TOKEN) problems.push('PROXMOX_TOKEN is required when PROXMOX_URL is set')
  if (PROXMOX_URL.split(',').some((one) => isReadable(one.trim()))) {
    problems.push('PROXMOX_URL must be https, unless it is on this machine')
  }
  if (PROXMOX_CA_FILE && !certificatesIn(PROXMOX_CA_FILE)) {
    problems.push(`PROXMOX_CA_FILE names ${PROXMOX_CA_FILE}, which cannot be read or holds no PEM certificate`)
  }
  return problems
}

/** The mesh takes a root key and a signing key, and they are two: a signing key that was stolen must not sign manifests. */
function meshProblems(values: Record<string, string>): string[] {
  const { MESH_ROOT_KEY_FILE: root, MESH_SIGNING_KEY_FILE: signing, MESH_CA_FILE: ca } = values
  const given = (['MESH_ROOT_KEY_FILE', 'MESH_SIGNING_KEY_FILE', 'MESH_NEXT_KEY_FILE'] as const).filter(
    (name) => values[name],
  )
  const problems: string[] = []
  if (given.length > 0 && !root) problems.push(`MESH_ROOT_KEY_FILE is required when ${given[0]} is set`)
  if (given.length > 0 && !signing) problems.push(`MESH_SIGNING_KEY_FILE is required when ${given[0]} is set`)
  if (new Set(given.map((name) => values[name])).size < given.length) {
    problems.push(`${given.join(' and ')} name one file twice: each is a key of its own`)
  }
  if (ca && !certificatesIn(ca)) {
    problems.push(`MESH_CA_FILE names ${ca}, which cannot be read or holds no PEM certificate`)
  }
  return problems
}

function certificatesIn(file: string): string | null {
  try {
    const text = readFileSync(file, 'utf8')
    return text.includes('-----BEGIN CERTIFICATE-----') ? text : null
  } catch {
    return null
  }
}

/** Would somebody on the way read what is said to this address? */
function isReadable(address: string): boolean {
  return /^http:\/\/(?!localhost[:/]|127(\.\d+){3}[:/]|\[::1\])/.test(`${address}/`)
}

/** The provider that vouches for people; null where none is set. */
export function oidcSettings(config: Config): OidcSettings | null {
  const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_ROLE_MAP, PUBLIC_URL } = config
  if (!OIDC_ISSUER || !OIDC_CLIENT_ID || !OIDC_ROLE_MAP || !PUBLIC_URL) return null
  return {
    issuer: OIDC_ISSUER,
    clientId: OIDC_CLIENT_ID,
    clientSecret: config.OIDC_CLIENT_SECRET,
    scopes: config.OIDC_SCOPES,
    groupsClaim: config.OIDC_GROUPS_CLAIM,
    roles: OIDC_ROLE_MAP,
    publicUrl: PUBLIC_URL,
  }
}

/** The workspace that is told and asked by a bot; null where none is set. */
export function slackSettings(config: Config): SlackSettings | null {
  const { SLACK_BOT_TOKEN, SLACK_SIGNING_SECRET, SLACK_CHANNEL } = config
  if (!SLACK_BOT_TOKEN || !SLACK_SIGNING_SECRET || !SLACK_CHANNEL) return null
  return {
    botToken: SLACK_BOT_TOKEN,
    signingSecret: SLACK_SIGNING_SECRET,
    channel: SLACK_CHANNEL,
    apiUrl: config.SLACK_API_URL.replace(/\/+$/, ''),
  }
}

/** The cluster that is the platform; null where none is set. */
export function proxmoxSettings(config: Config): Omit<ProxmoxOptions, 'journal'> | null {
  const { PROXMOX_URL, PROXMOX_TOKEN, PROXMOX_CA_FILE, PROXMOX_RACKS } = config
  if (!PROXMOX_URL || !PROXMOX_TOKEN) return null
  const ca = PROXMOX_CA_FILE ? certificatesIn(PROXMOX_CA_FILE) : null
  return { urls: PROXMOX_URL, token: PROXMOX_TOKEN, racks: PROXMOX_RACKS ?? {}, ...(ca !== null && { ca }) }
}

export type MeshSettings = { rootKeyFile: string; signingKeyFile: string; nextKeyFile: string | null; ca?: string }

/** Where the keys of the device mesh are; null where none is set. */
export function meshSettings(config: Config): MeshSettings | null {
  const { MESH_ROOT_KEY_FILE, MESH_SIGNING_KEY_FILE, MESH_NEXT_KEY_FILE, MESH_CA_FILE } = config
  if (!MESH_ROOT_KEY_FILE || !MESH_SIGNING_KEY_FILE) return null
  const ca = MESH_CA_FILE ? certificatesIn(MESH_CA_FILE) : null
  return {
    rootKeyFile: MESH_ROOT_KEY_FILE,
    signingKeyFile: MESH_SIGNING_KEY_FILE,
    nextKeyFile: MESH_NEXT_KEY_FILE ?? null,
    ...(ca !== null && { ca }),
  }
}

/** Address of a device that its row leaves to the environment. Only such variables: no other is anybody's business. */
export function deviceUrlVariable(name: string): string | undefined {
  return name.endsWith('_DEVICE_MESH_URL') ? process.env[name] || undefined : undefined
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
