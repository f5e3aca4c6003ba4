import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { temporalSettingsIn } from '../config.ts'
import { ensureFirstRunTokens } from '../db/access/tokens.ts'
import { connect } from '../db/connect.ts'
import { nodeAccount } from '../lab/children.ts'
import { labClient } from '../lab/client.ts'
import { writeJobs } from '../lab/jobs.ts'
import { migrateToLatest, migrationTrouble } from '../migrations/migrate.ts'
import {
  type Begun,
  logFileOf,
  type Parts,
  replacePart,
  serveChild,
  servePart,
  startPart,
  stopFrom,
  waitForAll,
} from './parts.ts'
import { startPostgres } from './postgres.ts'
import { freePort, giveBack, isFree, PortTakenError } from './process.ts'
import type { Ledger } from './process-table.ts'
import {
  basics,
  canEnter,
  type Environment,
  elsewhere,
  isTemporalGiven,
  meshOf,
  type Run,
  setting,
  withoutFiles,
  withoutMesh,
  withoutTemporal,
} from './run-file.ts'
import { searchAttributes, startTemporal } from './temporal.ts'
import { findTemporalCli } from './temporal-cli.ts'
import { enrolLab } from './web.ts'

/**
 * What a start starts: the stores (PostgreSQL and Temporal, embedded where the environment names
 * no others), then the programs of this checkout.
 */

export type StoresOptions = {
  rootDir: string
  stateDir: string
  env: Environment
  ledger: Ledger
  signal?: AbortSignal | undefined
}

export type TemporalPlace = { address: string; uiUrl: string | null }

/** Both at once. Answers where they are. */
export async function startStores(parts: Parts, options: StoresOptions): Promise<[string, TemporalPlace]> {
  const { env } = options
  return await waitForAll([
    replacePart(parts, 'PostgreSQL', setting(env, 'DATABASE_URL'), withoutPassword) ?? servePostgres(parts, options),
    replacePart(parts, 'Temporal', givenTemporal(env), (given) => given.address) ?? serveTemporal(parts, options),
  ])
}

/** The user's own Temporal, by an address or by a profile that has one. */
function givenTemporal(env: Environment): TemporalPlace | undefined {
  return isTemporalGiven(env) ? { address: temporalSettingsIn(env).address, uiUrl: null } : undefined
}

/** Where a free port is looked for, beside a PostgreSQL of the machine. */
const firstPort = 5433

function servePostgres(parts: Parts, { rootDir, stateDir, ledger }: StoresOptions): Promise<string> {
  let port: number | null = null
  return servePart(parts, 'PostgreSQL', 0, async (progress, onExit): Promise<Begun<string>> => {
    const dir = join(stateDir, 'postgres')
    const logFile = logFileOf(parts, 'postgres')
    const postgres = await startPostgres({ dir, port: port ?? firstPort, logFile, ledger, progress, onExit })
    // Started again, it has to be where the others look for it.
    if (port !== null && postgres.port !== port) {
      await postgres.stop()
      throw new Error(`port ${port} of PostgreSQL is in use`)
    }
    port = postgres.port
    giveBack(port)
    const kept = relative(rootDir, postgres.dataDir).startsWith('..') ? postgres.dataDir : '.nightshift/postgres'
    const words = `${withoutPassword(postgres.url)}  ${postgres.version}, data in ${kept}`
    return { value: postgres.url, words, process: postgres.process, stop: postgres.stop }
  })
}

function serveTemporal(
  parts: Parts,
  { rootDir, stateDir, env, ledger, signal }: StoresOptions,
): Promise<TemporalPlace> {
  let ports = { frontend: 7233, ui: 8233 }
  let address: string | null = null
  return servePart(parts, 'Temporal', 0, async (progress, onExit): Promise<Begun<TemporalPlace>> => {
    const cli = await findTemporalCli({ rootDir, env, progress, ...(signal && { signal }) })
    progress('starting')
    const server = await startTemporal({
      cli: cli.path,
      dir: join(stateDir, 'temporal'),
      ports,
      searchAttributes,
      ledger,
      env,
      onExit,
      logFile: logFileOf(parts, 'temporal'),
    })
    if (address !== null && server.address !== address) {
      await server.stop()
      throw new Error(`the port of Temporal's ${address} is in use`)
    }
    address = server.address
    ports = { frontend: portOf(address), ui: portOf(new URL(server.uiUrl).host) }
    giveBack(ports.frontend)
    giveBack(ports.ui)
    const value = { address, uiUrl: server.uiUrl }
    return { value, words: `${address}  page ${server.uiUrl}`, process: server.process, stop: server.stop }
  })
}

const portOf = (address: string): number => Number(address.split(':').at(-1))

/** Brings the schema up to date and makes the tokens of a first run. */
export async function prepareDatabase(
  parts: Parts,
  databaseUrl: string,
  { env, previous }: { env: Environment; previous: Run | undefined },
): Promise<Run['tokens']> {
  const given = setting(env, 'AGENT_API_KEY')
  return await startPart(parts, 'Database', async (progress): Promise<[Run['tokens'], string]> => {
    const { applied } = await migrateToLatest(databaseUrl).catch((error): never => {
      const trouble = migrationTrouble(error, databaseUrl)
      throw trouble ? new Error(`${trouble.problem}. ${trouble.remedy}`) : error
    })
    const done = applied.length === 0 ? 'up to date' : `${applied.length} migrations applied`
    // Another core API has other tokens.
    if (setting(env, 'CORE_API_URL') !== undefined) return [{ ...(given !== undefined && { agent: given }) }, done]
    progress('minting tokens')
    const db = connect(databaseUrl, { owner: true, name: 'nightshift start' })
    try {
      const agent = given ?? previous?.tokens.agent
      const tokens = await ensureFirstRunTokens(db, { ...previous?.tokens, ...(agent !== undefined && { agent }) })
      return [tokens, `${done}, tokens in .nightshift/run.json`]
    } finally {
      await db.destroy()
    }
  })
}

function withoutPassword(databaseUrl: string): string {
  const { host } = new URL(databaseUrl)
  return `postgresql://${host}`
}

export type Entries = Partial<Record<'lab' | 'runbook' | 'api' | 'worker', string>>

type ProgramsOptions = {
  rootDir: string
  stateDir: string
  env: Environment
  /** Is there to be a lab? */
  lab: boolean
  entries: Entries | undefined
  databaseUrl: string
  temporal: TemporalPlace
  tokens: Run['tokens']
}

type Ports = Awaited<ReturnType<typeof choosePorts>>

/** Ports are chosen before anything starts, since the lab needs the API's and the API the lab's: so one may be taken meanwhile. */
const mostTries = 3

/** Starts what the environment does not replace, and answers the run. */
export async function startPrograms(parts: Parts, options: ProgramsOptions): Promise<Run> {
  for (let tries = 1; ; tries += 1) {
    const ports = await choosePorts(options.env)
    try {
      return await startAt(parts, ports, options)
    } catch (error) {
      if (!(error instanceof PortTakenError) || tries === mostTries) throw error
      await stopFrom(parts, 1)
    }
  }
}

async function startAt(parts: Parts, ports: Ports, options: ProgramsOptions): Promise<Run> {
  const { rootDir, stateDir, env, tokens, lab } = options
  const ownApi = setting(env, 'CORE_API_URL') === undefined
  const url = setting(env, 'CORE_API_URL') ?? `http://127.0.0.1:${ports.api}`
  const platform = setting(env, 'PLATFORM_URL') ?? setting(env, 'PROXMOX_URL')
  const platformToken = setting(env, 'PLATFORM_TOKEN') ?? newSecret()
  const labUrl = lab && ownApi && platform === undefined ? `http://127.0.0.1:${ports.lab}` : null
  const labControlToken = labUrl ? newSecret() : null
  const entry = (name: keyof Entries) =>
    options.entries?.[name] ?? join(rootDir, name === 'runbook' ? 'lab/runbook' : name, 'main.ts')
  const model = modelOf(env, ports)
  const shared = { ...sharedOf(options), ...model, CORE_API_URL: url, PUBLIC_URL: env.PUBLIC_URL || url }

  const child = (name: keyof Entries, tier: number, environment: Environment) => {
    const part = ({ lab: 'Lab', runbook: 'Model', api: 'API', worker: 'Worker' } as const)[name]
    return serveChild(parts, part, { tier, entry: entry(name), port: ports[name], env: environment })
  }

  await waitForAll([
    labUrl
      ? child('lab', 1, {
          ...basics(env),
          VICTORIA_LOGS: env.VICTORIA_LOGS,
          LAB_PORT: String(ports.lab),
          LAB_DIR: labDirectory(stateDir),
          LAB_PLATFORM_TOKEN: platformToken,
          LAB_CONTROL_TOKEN: labControlToken as string,
          ALERT_URL: `${url}/api/v1/ingest/alertmanager`,
          ALERT_TOKEN: tokens.ingest,
        })
      : replacePart(parts, 'Lab', ownApi ? platform : setting(env, 'CORE_API_URL'), (given) => `platform ${given}`),
    replacePart(parts, 'Model', setting(env, 'LLM_BASE_URL'), (base) => `${model.LLM_MODEL} at ${base}`) ??
      (lab && child('runbook', 1, { ...basics(env), RUNBOOK_PORT: String(ports.runbook) })),
    replacePart(parts, 'API', setting(env, 'CORE_API_URL'), (given) => given) ??
      child('api', 2, {
        ...shared,
        ...meshOf(env, stateDir),
        // What the operator of the lab declared, where nobody has jobs.
        ...(labUrl && { JOBS_FILE: env.JOBS_FILE || writeJobs(labDirectory(stateDir)) }),
        PORT: String(ports.api),
        PLATFORM_URL: labUrl ?? setting(env, 'PLATFORM_URL'),
        PLATFORM_TOKEN: platformToken,
      }),
  ])
  // As in the image: with more arenas each thread of the SDK would keep its freed memory.
  const workerMemory = { MALLOC_ARENA_MAX: env.MALLOC_ARENA_MAX || '2' }
  await child('worker', 3, { ...shared, ...workerMemory, WORKER_PORT: String(ports.worker) })
  return {
    url,
    labUrl,
    labControlToken,
    tokens,
    pid: process.pid,
    databaseUrl: options.databaseUrl,
    temporalAddress: options.temporal.address,
    temporalUiUrl: options.temporal.uiUrl,
    model: {
      baseUrl: model.LLM_BASE_URL,
      name: model.LLM_MODEL,
      isRuleTable: setting(env, 'LLM_BASE_URL') === undefined,
    },
  }
}

/** As the configuration has it where nothing is set. */
const defaultModel = 'Qwen/Qwen2.5-72B-Instruct'

function modelOf(env: Environment, ports: Ports) {
  const given = setting(env, 'LLM_BASE_URL')
  return given === undefined
    ? { LLM_BASE_URL: `http://127.0.0.1:${ports.runbook}`, LLM_MODEL: env.LLM_MODEL || 'runbook-rules' }
    : { LLM_BASE_URL: given, LLM_MODEL: env.LLM_MODEL || defaultModel }
}

/** What API and worker both know. */
function sharedOf({ env, databaseUrl, temporal, tokens }: ProgramsOptions): Environment {
  const isGiven = isTemporalGiven(env)
  return {
    ...withoutMesh(withoutTemporal(env, !isGiven)),
    ...withoutFiles(env, ['DATABASE_URL', 'PLATFORM_TOKEN', 'AGENT_API_KEY']),
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporal.address,
    // The user's own may have its namespace in a profile.
    TEMPORAL_NAMESPACE: env.TEMPORAL_NAMESPACE || (isGiven ? undefined : 'default'),
    ...(temporal.uiUrl && { TEMPORAL_UI_URL: env.TEMPORAL_UI_URL || temporal.uiUrl }),
    AGENT_ENABLED: env.AGENT_ENABLED || 'true',
    AGENT_API_KEY: tokens.agent,
  }
}

/** Makes the nodes of the lab devices, so that every fault of it can be played. What fails leaves the rest as it is. */
export async function enrolDevices(parts: Parts, { url, labUrl, labControlToken, tokens }: Run): Promise<void> {
  if (labUrl === null || labControlToken === null || !tokens.admin) return
  const lab = labClient(labUrl, labControlToken)
  await startPart(parts, 'Devices', async (): Promise<[undefined, string]> => {
    const enrolled = await enrolLab(url, tokens.admin as string, lab)
    return [undefined, enrolled === 0 ? 'every node of the lab is enrolled' : `${enrolled} nodes of the lab enrolled`]
  }).catch(() => undefined)
}

async function choosePorts(env: Environment) {
  const choose = async (name: string, from: number) => {
    const asked = env[name] ? Number(env[name]) : undefined
    if (asked === undefined || asked === 0) return freePort(from)
    if (await isFree(asked)) return asked
    throw new Error(
      `Port ${asked} is in use, and ${name} asks for it. Free it, choose another, or leave ${name} unset.`,
    )
  }
  return {
    api: await choose('PORT', 8080),
    worker: await choose('WORKER_PORT', 8081),
    lab: await choose('LAB_PORT', 8090),
    runbook: await choose('RUNBOOK_PORT', 8100),
  }
}

function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/**
 * Where the lab keeps its machines: beside the state, since what is in there holds secrets and no device shows that unasked. Where
 * root starts in a place that is closed to others, as its home is, agents on nodes could not reach their own files there: then
 * elsewhere, which the state directory names.
 */
export function labDirectory(stateDir: string): string {
  const note = join(stateDir, 'lab-location')
  if (existsSync(note)) return readFileSync(note, 'utf8').trim()
  const account = nodeAccount()
  if (!account || canEnter(dirname(stateDir), account)) return `${stateDir}-lab`
  const made = join(elsewhere(stateDir), 'lab')
  writeFileSync(note, `${made}\n`)
  return made
}
