import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { ProxmoxOptions } from '../clients/proxmox/client.ts'
import { knownPushServices, parsePushServices } from '../domain/push.ts'
import { trustLevels } from '../domain/trust.ts'
import { engineNames } from '../placement/bound/assignment.ts'

/**
 * The values of environment variables by name, before parsing. A variable that is not set is
 * absent.
 */
export type EnvironmentTexts = Record<string, string>

/** Kinds of setting that several groups of settings use. */

const port = z.coerce.number().int().min(0).max(65_535)
export const flag = z.enum(['true', 'false', '1', '0']).transform((text) => text === 'true' || text === '1')
export const url = z.url({ protocol: /^https?$/, error: 'is not an http(s) URL' })

/** Reads a file of PEM certificates; null if it is unreadable or contains no certificate. */
export function certificatesIn(file: string): string | null {
  try {
    const text = readFileSync(file, 'utf8')
    return text.includes('-----BEGIN CERTIFICATE-----') ? text : null
  } catch {
    return null
  }
}

/** Whether traffic to this address can be read on the network: plain HTTP to another machine. */
export function isReadable(address: string): boolean {
  return /^http:\/\/(?!localhost[:/]|127(\.\d+){3}[:/]|\[::1\])/.test(`${address}/`)
}

/** Settings of the processes: addresses, connections, and limits of work. */
export const processes = z.object({
  BOOTSTRAP_ADMIN_TOKEN: z.string().min(24, 'must have at least 24 characters').optional(),
  BOOTSTRAP_INGEST_TOKEN: z.string().min(24, 'must have at least 24 characters').optional(),
  CORE_API_URL: url.default('http://127.0.0.1:8080'),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'is not a postgresql:// URL')
    .optional(),
  QUEUE_INTERVAL_SECONDS: z.coerce.number().int().min(1).max(3_600).default(60),
  WATCHDOG_INTERVAL_SECONDS: z.coerce.number().min(0.2).max(3_600).default(30),
  PORT: port.default(8080),
  WORKER_PORT: port.default(8081),
  // See "What waiting costs" in docs/explanation/operations.md.
  WORKER_CACHED_WORKFLOWS: z.coerce.number().int().min(0).max(10_000).default(500),
  WORKER_WORKFLOW_THREADS: z.coerce.number().int().min(1).max(16).default(1),
  WORKER_ACTIVITY_SLOTS: z.coerce.number().int().min(1).max(500).default(50),
  HOST: z.string().default('127.0.0.1'),
  PUBLIC_URL: url.optional(),
  // The path of this address is a credential at most monitoring services.
  HEARTBEAT_URL: url.optional(),
  PUSH_SERVICES: z
    .string()
    .default(knownPushServices.join(','))
    .transform((text, context) => {
      const services = parsePushServices(text)
      if (services) return services
      context.addIssue({ code: 'custom', message: 'takes hosts, *.hosts or origins, separated by commas' })
      return z.NEVER
    }),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
})

/** Settings of the agent and its model. */
export const agent = z.object({
  AGENT_ENABLED: flag.default(false),
  AGENT_MAX_CONCURRENT: z.coerce.number().int().min(1).max(100).default(3),
  AGENT_FOLLOWER_CONCURRENT: z.coerce.number().int().min(1).max(100).default(5),
  AGENT_TRUST: z.enum(trustLevels).default('propose'),
  AGENT_API_KEY: z.string().optional(),
  LLM_BASE_URL: url.optional(),
  LLM_API_KEY: z.string().default(''),
  LLM_MODEL: z.string().min(1).default('Qwen/Qwen2.5-72B-Instruct'),
  LLM_SERVERS_FILE: z.string().min(1).optional(),
  LLM_MAX_TURNS: z.coerce.number().int().min(1).max(200).default(10),
  LLM_PROTOCOL: z.enum(['native', 'json']).default('native'),
  LLM_TEMPERATURE: z.coerce.number().min(0).max(2).default(0.1),
  LLM_MAX_TOKENS: z.coerce.number().int().min(64).max(32_768).default(1_024),
  LLM_CONTEXT_TOKENS: z.coerce.number().int().min(2_048).max(2_000_000).optional(),
  LLM_TIMEOUT_SECONDS: z.coerce.number().min(1).max(330).default(300),
  LLM_STALL_SECONDS: z.coerce.number().min(1).max(330).default(30),
  LLM_MAX_CONCURRENT: z.coerce.number().int().min(1).max(1_000).default(16),
  LLM_REQUESTS_PER_SECOND: z.coerce.number().min(0.1).max(1_000).default(20),
})

/** Settings of the installation's own runbooks. */
export const knowledge = z.object({
  KNOWLEDGE_PATH: z.string().regex(/^\//, 'is not an absolute path').optional(),
  KNOWLEDGE_REPO: z
    .url({ protocol: /^(https|ssh|file)$/, error: 'is not an https://, ssh:// or file:// URL' })
    .optional(),
  KNOWLEDGE_REPO_TOKEN: z.string().min(1).optional(),
})

/**
 * Lists problems of the settings of the runbook repository. Credentials belong in a setting that no
 * log and no page shows, not in the URL.
 */
export function knowledgeProblems({ KNOWLEDGE_REPO, KNOWLEDGE_REPO_TOKEN }: EnvironmentTexts): string[] {
  if (!KNOWLEDGE_REPO)
    return KNOWLEDGE_REPO_TOKEN ? ['KNOWLEDGE_REPO is required when KNOWLEDGE_REPO_TOKEN is set'] : []
  if (!URL.canParse(KNOWLEDGE_REPO)) return []
  const { password, username, protocol, hash } = new URL(KNOWLEDGE_REPO)
  const isNamed = password !== '' || (username !== '' && protocol !== 'ssh:')
  return [
    ...(isNamed ? ['KNOWLEDGE_REPO holds a user or a password: set KNOWLEDGE_REPO_TOKEN instead'] : []),
    ...(KNOWLEDGE_REPO_TOKEN && protocol !== 'https:' ? ['KNOWLEDGE_REPO_TOKEN takes a KNOWLEDGE_REPO of https'] : []),
    ...(hash !== '' && !/^#[A-Za-z0-9][\w./-]{0,199}$/.test(hash)
      ? ['KNOWLEDGE_REPO names no branch after its #']
      : []),
  ]
}

/** Returns the folder and the repository of the runbooks. The branch follows a `#` in the URL. */
export function knowledgeSettings(config: z.infer<typeof knowledge>) {
  const { KNOWLEDGE_PATH: path = null, KNOWLEDGE_REPO, KNOWLEDGE_REPO_TOKEN: token = null } = config
  const [url = '', branch = ''] = KNOWLEDGE_REPO?.split('#') ?? []
  return { path, repository: KNOWLEDGE_REPO ? { url, branch: branch === '' ? null : branch, token } : null }
}

/** Lists problems of the agent's settings: an enabled agent needs a model and a token. */
export function agentProblems(given: EnvironmentTexts): string[] {
  if (!agent.shape.AGENT_ENABLED.safeParse(given.AGENT_ENABLED).data) return []
  const problems: string[] = []
  if (!given.LLM_BASE_URL) {
    problems.push('LLM_BASE_URL is required when AGENT_ENABLED is true: the base URL of an OpenAI-compatible server')
  }
  if (!given.AGENT_API_KEY) {
    problems.push('AGENT_API_KEY is required when AGENT_ENABLED is true: a token of role agent')
  }
  return problems
}

/** Returns those defaults of settings in `platform_config` that the environment explicitly sets. */
export function givenDefaults(
  environment: Record<string, string | undefined> = process.env,
): Record<'AGENT_MAX_CONCURRENT' | 'AGENT_FOLLOWER_CONCURRENT' | 'AGENT_TRUST' | 'LLM_MAX_TURNS', string | undefined> {
  const { AGENT_MAX_CONCURRENT, AGENT_FOLLOWER_CONCURRENT, AGENT_TRUST, LLM_MAX_TURNS } = environment
  return {
    AGENT_MAX_CONCURRENT: AGENT_MAX_CONCURRENT || undefined,
    AGENT_FOLLOWER_CONCURRENT: AGENT_FOLLOWER_CONCURRENT || undefined,
    AGENT_TRUST: AGENT_TRUST || undefined,
    LLM_MAX_TURNS: LLM_MAX_TURNS || undefined,
  }
}

/** Settings of the platform that runs the hosts, and of placement plans. */
export const platform = z.object({
  PLACEMENT_ENGINE: z.enum(engineNames).default('glpk'),
  PLACEMENT_CPU_OVERCOMMIT_PERCENT: z.coerce.number().int().min(100).max(3_200).default(100),
  PLACEMENT_RAM_RESERVE_PERCENT: z.coerce.number().int().min(0).max(90).default(0),
  JOBS_FILE: z.string().min(1).optional(),
  SOURCES_DIR: z
    .string()
    .regex(/^\/[^\0]+$/, 'is not an absolute path')
    .default('/run/nightshift-api/sources'),
  PLATFORM_URL: url.optional(),
  PLATFORM_TOKEN: z.string().default(''),
  // Addresses of nodes of one cluster, such as `https://pve1:8006,https://pve2:8006`.
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
})

/** Parses `r1=pve1,pve2;r2=pve3` into a map from node to rack. */
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

/** Lists problems: a Proxmox cluster needs an address and a token, and excludes PLATFORM_URL. */
export function platformProblems(given: EnvironmentTexts): string[] {
  const { PROXMOX_URL, PROXMOX_TOKEN, PROXMOX_CA_FILE, PROXMOX_RACKS, PLATFORM_URL } = given
  if (!PROXMOX_URL) {
    return PROXMOX_TOKEN || PROXMOX_CA_FILE || PROXMOX_RACKS
      ? ['PROXMOX_URL is required when another PROXMOX_ setting is set']
      : []
  }
  const problems: string[] = []
  if (PLATFORM_URL) problems.push('PROXMOX_URL and PLATFORM_URL are both set: keep one')
  if (!PROXMOX_TOKEN) problems.push('PROXMOX_TOKEN is required when PROXMOX_URL is set')
  if (PROXMOX_URL.split(',').some((one) => isReadable(one.trim()))) {
    problems.push('PROXMOX_URL must be https, unless it is on this machine')
  }
  if (PROXMOX_CA_FILE && !certificatesIn(PROXMOX_CA_FILE)) {
    problems.push(`PROXMOX_CA_FILE names ${PROXMOX_CA_FILE}, which cannot be read or holds no PEM certificate`)
  }
  return problems
}

/** Returns the settings of the Proxmox cluster that is the platform; null without a cluster. */
export function proxmoxSettings(config: z.infer<typeof platform>): Omit<ProxmoxOptions, 'journal'> | null {
  const { PROXMOX_URL, PROXMOX_TOKEN, PROXMOX_CA_FILE, PROXMOX_RACKS } = config
  if (!PROXMOX_URL || !PROXMOX_TOKEN) return null
  const ca = PROXMOX_CA_FILE ? certificatesIn(PROXMOX_CA_FILE) : null
  return { urls: PROXMOX_URL, token: PROXMOX_TOKEN, racks: PROXMOX_RACKS ?? {}, ...(ca !== null && { ca }) }
}
