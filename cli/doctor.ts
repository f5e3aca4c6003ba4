import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { troubleWith } from '../clients/temporal/trouble.ts'
import { ConfigError, readConfig } from '../config.ts'
import type { Run } from '../start/run-file.ts'
import { type Asking, asking } from './connection.ts'
import { core } from './core.ts'
import { CommandFailed } from './exit-code.ts'
import { inert } from './inert.ts'
import { ApiProblem } from './problem.ts'
import { answersHttp, postgresAnswers, workersOf } from './reach.ts'
import { lastSignedIn } from './signed-in.ts'
import { temporalHere } from './temporal-here.ts'
import { data, json, paint, width } from './terminal.ts'
import { logFile, rootDir, runningHere, whereToAsk } from './where.ts'
import { wrap } from './wrap.ts'

/** `needed`: without it Nightshift does not work, so that the command fails. */
export type Finding = { name: string; ok: boolean; needed: boolean; detail: string; remedy: string | null }

export function doctorCommand(program: Command): void {
  asking(program.command('doctor').description('what is reachable and what to do about the rest'))
    .addHelpText('after', '\nExample:\n  nightshift doctor || echo "call somebody"')
    .action(async (options: Asking) => {
      const findings = await examine(options)
      if (options.json) json(findings)
      else for (const each of findings) data(told(each))
      if (findings.some(({ ok, needed }) => needed && !ok)) throw new CommandFailed('error', '')
    })
}

async function examine(options: Asking): Promise<Finding[]> {
  const run = runningHere()
  const env = process.env
  const named = options.url ?? env.NIGHTSHIFT_URL ?? (run ? undefined : lastSignedIn())
  const own = named && named !== run?.url ? null : run
  const url = own?.url ?? named
  // Of a Nightshift elsewhere its own API knows more than can be seen from this machine.
  const isElsewhere = own === null && url !== undefined
  const found = await Promise.all([
    configuration(run),
    isElsewhere ? [] : running(own),
    isElsewhere && !env.DATABASE_URL ? [] : postgres(own?.databaseUrl ?? env.DATABASE_URL),
    isElsewhere && !env.TEMPORAL_ADDRESS ? [] : temporal(own),
    api(options),
    ready(url).then((found) => found.filter(({ name }) => !isElsewhere || name !== 'Queue')),
    isElsewhere ? partsElsewhere(options) : [await model(own, env, options), await lab(own)],
  ])
  return found.flat()
}

type PartElsewhere = { name: string; status: 'ok' | 'failed' | 'unknown' | 'off'; detail: string }

/** What the API says of its own parts; nothing where it cannot be asked, which is a finding already. */
async function partsElsewhere(options: Asking): Promise<Finding[]> {
  try {
    const { parts } = (await core(whereToAsk(options)).get('/api/v1/status')) as { parts: PartElsewhere[] }
    return parts.map(({ name, status, detail }) => ({
      ...{ name: name.charAt(0).toUpperCase() + name.slice(1), ok: status !== 'failed', needed: status === 'failed' },
      ...{ detail: status === 'ok' ? detail : `${status}: ${detail}`, remedy: null },
    }))
  } catch {
    return []
  }
}

function finding(name: string, ok: boolean, detail: string, remedy: string | null = null, needed = true): Finding {
  return { name, ok, needed, detail, remedy: ok ? null : remedy }
}

async function configuration(run: Run | null): Promise<Finding> {
  try {
    // Start fills in what is embedded, so only what was set can be wrong.
    const embedded = { LLM_BASE_URL: 'http://127.0.0.1:1', AGENT_API_KEY: 'filled in at the start' }
    readConfig({ ...(run || process.env.CORE_API_URL === undefined ? embedded : {}), ...process.env })
    return finding('Configuration', true, 'nothing in the environment contradicts itself')
  } catch (error) {
    const problems = error instanceof ConfigError ? error.problems : [String(error)]
    return finding('Configuration', false, problems.join('; '), 'Correct these settings; a start refuses them.')
  }
}

function running(run: Run | null): Finding {
  if (run) return finding('Start', true, `runs here as process ${run.pid}`)
  return finding('Start', false, 'does not run from this checkout', 'Start it with "npm start".')
}

async function postgres(url: string | undefined): Promise<Finding[]> {
  if (!url) return [unknown('PostgreSQL', 'DATABASE_URL')]
  const { host } = new URL(url)
  const files = readdirSync(join(rootDir, 'migrations')).filter((name) => /^\d+-.*\.ts$/.test(name))
  const answer = await postgresAnswers(
    url,
    files.map((name) => name.replace(/\.ts$/, '')),
  )
  if (!answer.ok) {
    return [
      finding('PostgreSQL', false, `${host}: ${answer.detail}`, `See ${logFile('postgres')}, or correct DATABASE_URL.`),
    ]
  }
  const { lacks } = answer
  const migrated = lacks.length === 0 ? `all ${files.length} applied` : `not applied: ${lacks.join(', ')}`
  return [
    finding('PostgreSQL', true, `${host}, ${answer.detail}`),
    finding('Migrations', lacks.length === 0, migrated, '"nightshift start" applies them.'),
  ]
}

function unknown(name: string, setting: string): Finding {
  return finding(name, false, 'its address is not known here', `Set ${setting} to have it looked at.`, false)
}

async function temporal(run: Run | null): Promise<Finding[]> {
  let settings: ReturnType<typeof temporalHere>
  try {
    settings = temporalHere(run)
  } catch {
    // What the environment contradicts itself in is a line of its own already.
    return []
  }
  if (!settings) return [unknown('Temporal', 'TEMPORAL_ADDRESS')]
  const trouble = await troubleWith(settings, 3_000)
  // Without Temporal nothing can be said about workers.
  if (trouble) return [finding('Temporal', false, trouble.what, `${trouble.remedy} See ${logFile('temporal')}.`)]
  const workers = await workersOf(settings, 'nightshift')
  return [
    finding('Temporal', true, `${settings.address} answers for the namespace ${settings.namespace}`),
    finding(
      'Worker',
      workers.ok,
      workers.detail,
      `See ${logFile('worker')}. Without a worker nothing is investigated.`,
    ),
  ]
}

async function api(options: Asking): Promise<Finding> {
  try {
    const where = whereToAsk(options)
    await core(where).get('/api/v1/incidents?limit=1')
    return finding('API', true, `${where.url} answers, and knows the token`)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return finding('API', false, message, error instanceof ApiProblem ? error.remedy : null)
  }
}

/** The API is ready when its database has every migration and whatever else it cannot do without. */
async function ready(url: string | undefined): Promise<Finding[]> {
  if (!url) return [finding('Readiness', false, 'no API to ask', 'Start it with "npm start".')]
  const answer = await answersHttp(new URL('/readyz', url))
  const detail = answer.ok ? 'the API has its migrations and its dependencies' : answer.detail
  return [
    finding('Readiness', answer.ok, detail, `See ${logFile('api')}; "nightshift start" applies migrations.`),
    ...queue(answer.detail),
  ]
}

type Ready = { checks?: { queue?: { status?: string; detail?: string } } }

/** What `/readyz` says of the queue's Schedule and search attributes in Temporal; nothing where it says nothing. */
function queue(body: string): Finding[] {
  try {
    const { status, detail = '' } = (JSON.parse(body) as Ready).checks?.queue ?? {}
    if (status === undefined) return []
    const remedy = `Without it nothing is investigated. A worker makes it again within a minute: see ${logFile('worker')}.`
    return [finding('Queue', status === 'ok', detail || 'its Schedule and search attributes are there', remedy)]
  } catch {
    return []
  }
}

/** The model of the run that is spoken of, which may have been started in another environment. */
async function model(run: Run | null, env: NodeJS.ProcessEnv, options: Asking): Promise<Finding> {
  const baseUrl = run?.model ? run.model.baseUrl : env.LLM_BASE_URL
  const key = env.LLM_API_KEY
  if (run?.model?.isRuleTable && run.labUrl === null)
    return finding(
      'Model',
      false,
      'none: incidents open, and wait for people',
      'Set LLM_BASE_URL and LLM_MODEL.',
      false,
    )
  if (!baseUrl || run?.model?.isRuleTable)
    return finding(
      'Model',
      true,
      'embedded: runbook-rules, a rule table that knows this lab, not a language model. Your own: LLM_BASE_URL and LLM_MODEL',
    )
  const base = baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '')
  const answer = await answersHttp(new URL(`${base}/v1/models`), key ? { authorization: `Bearer ${key}` } : {})
  return finding(
    'Model',
    answer.ok,
    answer.ok ? `${baseUrl} answers${await knownOfModel(options)}` : `${baseUrl}: ${answer.detail}`,
    'Correct LLM_BASE_URL or LLM_API_KEY.',
  )
}

type KnownOfModel = { windowTokens: number | null; windowSource: string | null; learned: string[]; waiting: number }

/** What the workers know of the model's server; nothing where the API cannot say, which is a finding already. */
async function knownOfModel(options: Asking): Promise<string> {
  try {
    const status = (await core(whereToAsk(options)).get('/api/v1/status')) as { model: KnownOfModel }
    const { windowTokens, windowSource, learned, waiting } = status.model
    const set = process.env.LLM_CONTEXT_TOKENS
    const window = set
      ? `${set} by LLM_CONTEXT_TOKENS`
      : windowTokens
        ? `${windowTokens} by ${windowSource}`
        : '32768, for it tells none'
    const asked = learned.length > 0 ? `; asked with ${learned.join(', ')}` : ''
    return `; window ${window}${asked}${waiting > 0 ? `; ${waiting} runs wait for it` : ''}`
  } catch {
    return ''
  }
}

async function lab(run: Run | null): Promise<Finding> {
  if (!run?.labUrl) {
    const { PLATFORM_URL, PROXMOX_URL } = process.env
    const url = PROXMOX_URL ? `Proxmox VE at ${PROXMOX_URL}` : PLATFORM_URL
    return finding('Platform', true, url ? `${url}, not looked at` : 'no lab here', null, false)
  }
  const answer = await answersHttp(new URL('/readyz', run.labUrl))
  const detail = answer.ok ? `${run.labUrl}, every node and host answers` : `${run.labUrl}: ${answer.detail}`
  return finding(
    'Lab',
    answer.ok,
    detail,
    'Perhaps something is broken on purpose: "nightshift lab status", "nightshift lab heal".',
    false,
  )
}

function told({ name, ok, needed, detail, remedy }: Finding): string {
  const mark = ok ? paint('green', '✔') : paint(needed ? 'red' : 'yellow', '✖')
  const text = wrap(inert(detail), width() - 18, ' '.repeat(18))
  return `${mark} ${name.padEnd(15)} ${text}${remedy ? `\n${' '.repeat(18)}${wrap(remedy, width() - 18, ' '.repeat(18))}` : ''}`
}
