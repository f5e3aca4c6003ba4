import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { nodeAccount } from '../lab/children.ts'
import { labClient } from '../lab/client.ts'
import { writeJobs } from '../lab/jobs.ts'
import { canEnter, makePrivateDirectory } from './account.ts'
import {
  basics,
  type Environment,
  isTemporalGiven,
  meshOf,
  setting,
  withoutFiles,
  withoutMesh,
  withoutTemporal,
} from './environment.ts'
import { enrolLab } from './lab-devices.ts'
import { type Parts, replacePart, serveChild, startPart, stopFrom, waitForAll } from './parts.ts'
import { portHolder } from './port-holder.ts'
import { freePort, isFree, PortTakenError } from './process.ts'
import type { LocalRun } from './run-file.ts'
import type { TemporalPlace } from './stores.ts'

/**
 * Entry files of programs, to use instead of the checkout's own. The programs start when the stores
 * run (`stores.ts`).
 */

export type Entries = Partial<Record<'lab' | 'runbook' | 'api' | 'worker', string>>

type ProgramsOptions = {
  rootDir: string
  stateDir: string
  env: Environment
  lab: boolean
  entries: Entries | undefined
  databaseUrl: string
  temporal: TemporalPlace
  tokens: LocalRun['tokens']
}

type Ports = Awaited<ReturnType<typeof choosePorts>>

/**
 * How often ports are chosen. Lab and API need each other's ports, so all ports are chosen before
 * the start. Another program may take a port in the meantime.
 */
const maxTries = 3

/** Starts the programs that the environment does not replace. Returns the data of the run. */
export async function startPrograms(parts: Parts, options: ProgramsOptions): Promise<LocalRun> {
  for (let tries = 1; ; tries += 1) {
    const ports = await choosePorts(options.env)
    try {
      return await startAt(parts, ports, options)
    } catch (error) {
      if (!(error instanceof PortTakenError) || tries === maxTries) throw error
      await stopFrom(parts, 1)
    }
  }
}

async function startAt(parts: Parts, ports: Ports, options: ProgramsOptions): Promise<LocalRun> {
  const { rootDir, stateDir, env, tokens, lab } = options
  const ownApi = setting(env, 'CORE_API_URL') === undefined
  const url = setting(env, 'CORE_API_URL') ?? `http://127.0.0.1:${ports.api}`
  const platform = setting(env, 'PLATFORM_URL') ?? setting(env, 'PROXMOX_URL')
  const platformToken = setting(env, 'PLATFORM_TOKEN') ?? newSecret()
  const labUrl = lab && ownApi && platform === undefined ? `http://127.0.0.1:${ports.lab}` : null
  const labControlToken = labUrl ? newSecret() : null
  const entry = (name: keyof Entries) =>
    // Takes this file's extension, because program files end in `.js` in a package.
    options.entries?.[name] ??
    join(rootDir, name === 'runbook' ? 'lab/runbook' : name, `main${extname(import.meta.url)}`)
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
          KUBE_BIN: env.KUBE_BIN,
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
        // Uses the jobs that the lab declares, if the user declares none.
        ...(labUrl && { JOBS_FILE: env.JOBS_FILE || writeJobs(labDirectory(stateDir)) }),
        SOURCES_DIR: env.SOURCES_DIR || join(stateDir, 'sources'),
        PORT: String(ports.api),
        PLATFORM_URL: labUrl ?? setting(env, 'PLATFORM_URL'),
        PLATFORM_TOKEN: platformToken,
      }),
  ])
  await child('worker', 3, { ...shared, ...workerMemoryOf(env), WORKER_PORT: String(ports.worker) })
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

/**
 * Sets the same memory limits for the worker as the image. With more arenas each SDK thread would
 * keep its freed memory, and V8 would fill 128 MB before its first collection.
 */
const workerMemoryOf = (env: Environment) => ({
  MALLOC_ARENA_MAX: env.MALLOC_ARENA_MAX || '2',
  NODE_OPTIONS: env.NODE_OPTIONS || '--max-semi-space-size=16',
})

/** The default of LLM_MODEL in the configuration. */
const defaultModel = 'Qwen/Qwen2.5-72B-Instruct'

function modelOf(env: Environment, ports: Ports) {
  const given = setting(env, 'LLM_BASE_URL')
  return given === undefined
    ? { LLM_BASE_URL: `http://127.0.0.1:${ports.runbook}`, LLM_MODEL: env.LLM_MODEL || 'runbook-rules' }
    : { LLM_BASE_URL: given, LLM_MODEL: env.LLM_MODEL || defaultModel }
}

/** Returns the settings that API and worker share. */
function sharedOf({ env, lab, databaseUrl, temporal, tokens }: ProgramsOptions): Environment {
  const isGiven = isTemporalGiven(env)
  return {
    ...withoutMesh(withoutTemporal(env, !isGiven)),
    ...withoutFiles(env, ['DATABASE_URL', 'PLATFORM_TOKEN', 'AGENT_API_KEY']),
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporal.address,
    // Sets no namespace for the user's own Temporal, whose profile may contain it.
    TEMPORAL_NAMESPACE: env.TEMPORAL_NAMESPACE || (isGiven ? undefined : 'default'),
    ...(temporal.uiUrl && { TEMPORAL_UI_URL: env.TEMPORAL_UI_URL || temporal.uiUrl }),
    AGENT_ENABLED: env.AGENT_ENABLED || 'true',
    // Lets the lab's deliberate faults be repaired without an approval. At a site, the agent first
    // asks people.
    AGENT_TRUST: env.AGENT_TRUST || (lab ? 'act' : undefined),
    AGENT_API_KEY: tokens.agent,
  }
}

/**
 * Makes the lab's nodes devices of the mesh, which some faults of the lab need. Ignores a failure,
 * which affects nothing else.
 */
export async function enrolDevices(parts: Parts, { url, labUrl, labControlToken, tokens }: LocalRun): Promise<void> {
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
    const holder = portHolder(asked)
    throw new Error(
      `${name} is set to port ${asked}, which is in use${holder ? ` by ${holder}` : ''}. Free the port, choose another, or leave ${name} unset.`,
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
 * Returns the directory of the lab's machines. It is beside the state directory, which contains
 * secrets that no device may show. If root starts Nightshift in a closed place, such as its home,
 * the nodes' agents could not reach their files there. Then makes another directory, and names it
 * in a file of the state directory.
 */
export function labDirectory(stateDir: string): string {
  const note = join(stateDir, 'lab-location')
  if (existsSync(note)) return readFileSync(note, 'utf8').trim()
  const account = nodeAccount()
  if (!account || canEnter(dirname(stateDir), account)) return `${stateDir}-lab`
  const made = join(makePrivateDirectory(stateDir), 'lab')
  writeFileSync(note, `${made}\n`)
  return made
}
