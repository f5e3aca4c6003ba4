import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { troubleWith } from '../clients/temporal.ts'
import { ConfigError, readConfig } from '../config/settings.ts'
import { dutyOf } from '../domain/duty.ts'
import { capitalize } from '../domain/format.ts'
import { commandPrefix, spellCommands } from '../domain/own-command.ts'
import type { Status, StatusPart } from '../domain/status.ts'
import { describeAbilities, describePassport } from '../domain/status-words.ts'
import type { LocalRun } from '../start/run-file.ts'
import { ApiProblem, createApiClient } from './api.ts'
import {
  type CliCommand,
  type ConnectionOptions,
  getLogFile,
  readLocalRun,
  resolveTarget,
  rootDir,
} from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { probeHttp, probePostgres, probeWorkers } from './probes.ts'
import { getLastLoginUrl } from './saved-tokens.ts'
import { startLine } from './start-line.ts'
import { readTemporalSettings } from './temporal.ts'
import { getTerminalWidth, inert, paint, print, printJson, wrap } from './ui/terminal.ts'

/**
 * The result of one check. A failed check that is `needed` fails the command. Any other failed
 * check is a warning.
 */
type Finding = { name: string; ok: boolean; needed: boolean; detail: string; remedy: string | null }

export function addDoctorCommand(program: CliCommand): void {
  program
    .command('doctor')
    .description('check which parts work, and show how to fix faults')
    .connected('\nExample:\n  nightshift doctor || echo "something is down"')
    .action(async (options: ConnectionOptions) => {
      const findings = await examine(options)
      if (options.json) printJson(findings)
      else for (const each of findings) print(formatFinding(each))
      if (findings.some(({ ok, needed }) => needed && !ok)) throw new CommandFailed('error', '')
    })
}

async function examine(options: ConnectionOptions): Promise<Finding[]> {
  const env = process.env
  const run = readLocalRun(options.url ?? env.NIGHTSHIFT_URL)
  const named = options.url ?? env.NIGHTSHIFT_URL ?? (run ? undefined : getLastLoginUrl())
  const own = named && named !== run?.url ? null : run
  const url = own?.url ?? named
  // Asks the API about a Nightshift on another machine, because the API knows more about the parts
  // of that Nightshift than this machine.
  const isElsewhere = own === null && url !== undefined
  const found = await Promise.all([
    checkConfiguration(run),
    isElsewhere ? [] : checkStart(own),
    isElsewhere && !env.DATABASE_URL ? [] : checkPostgres(own?.databaseUrl ?? env.DATABASE_URL),
    isElsewhere && !env.TEMPORAL_ADDRESS ? [] : checkTemporal(own),
    checkApi(options),
    checkReadiness(url).then((found) => found.filter(({ name }) => !isElsewhere || name !== 'Queue')),
    isElsewhere ? checkRemoteParts(options) : [await checkModel(own, env, options), await checkLab(own)],
    checkSources(options),
    isElsewhere ? [] : checkApiParts(options),
    checkGrade(options),
  ])
  return found.flat()
}

/**
 * Returns the parts of Nightshift that the API reports. Empty if the API is not reached, which the
 * check 'API' reports.
 */
async function checkRemoteParts(options: ConnectionOptions): Promise<Finding[]> {
  try {
    const { parts } = (await createApiClient(resolveTarget(options)).get('/api/v1/status')) as Pick<Status, 'parts'>
    return parts.map((part) =>
      toPartFinding({ ...part, detail: part.status === 'ok' ? part.detail : `${part.status}: ${part.detail}` }),
    )
  } catch {
    return []
  }
}

/** Checks each source by its last contact with the API process. */
async function checkSources(options: ConnectionOptions): Promise<Finding[]> {
  try {
    const { sources } = (await createApiClient(resolveTarget(options)).get('/api/v1/status')) as Pick<Status, 'sources'>
    return sources.map(({ name, status, detail, remedy }) =>
      toFinding('Source', status !== 'failed', `${name}: ${detail}`, remedy),
    )
  } catch {
    return []
  }
}

/**
 * Parts of Nightshift that `doctor` checks itself on this machine. The API adds only their
 * problems.
 */
const probed = new Set(['Temporal', 'worker', 'model', 'platform', 'queue'])

async function checkApiParts(options: ConnectionOptions): Promise<Finding[]> {
  try {
    const { parts } = (await createApiClient(resolveTarget(options)).get('/api/v1/status')) as Pick<Status, 'parts'>
    return parts.filter(({ name, status }) => !probed.has(name) || status === 'failed').map(toPartFinding)
  } catch {
    return []
  }
}

/** Reports a failed part of Nightshift as a warning unless the part is vital. */
function toPartFinding({ name, status, detail, remedy }: StatusPart): Finding {
  return toFinding(capitalize(name), status !== 'failed', detail, remedy, dutyOf(name)?.isVital ?? true)
}

/** Reports the measured grade of the model in use. A low or missing grade is only a warning. */
async function checkGrade(options: ConnectionOptions): Promise<Finding[]> {
  try {
    const { model } = (await createApiClient(resolveTarget(options)).get('/api/v1/status')) as Pick<Status, 'model'>
    if (!model.grade) return []
    const { passport, warning } = model.grade
    const measured = passport
      ? `${model.grade.model}: ${describePassport(passport)}, measured ${passport.measuredAt.slice(0, 10)}`
      : `${model.grade.model}: not measured`
    const remedy = passport ? 'docs/how-to/choose-a-model.md' : '"nightshift model check" measures the model.'
    return [toFinding('Model grade', warning === null, measured, remedy, false)]
  } catch {
    return []
  }
}

function toFinding(name: string, ok: boolean, detail: string, remedy: string | null = null, needed = true): Finding {
  return { name, ok, needed, detail, remedy: ok || remedy === null ? null : toSentence(remedy) }
}

/** Makes a sentence of a remedy, because the API returns clauses. */
const toSentence = (text: string) => `${capitalize(text).replace(/\.$/, '')}.`

async function checkConfiguration(run: LocalRun | null): Promise<Finding> {
  try {
    // Sets values that `start` sets for embedded parts, so that they do not count as missing.
    const embedded = { LLM_BASE_URL: 'http://127.0.0.1:1', AGENT_API_KEY: 'set at the start' }
    readConfig({ ...(run || process.env.CORE_API_URL === undefined ? embedded : {}), ...process.env })
    return toFinding('Configuration', true, 'no setting of the environment contradicts another')
  } catch (error) {
    const problems = error instanceof ConfigError ? error.problems : [String(error)]
    return toFinding(
      'Configuration',
      false,
      problems.join('; '),
      'Correct these settings. Nightshift does not start with them.',
    )
  }
}

function checkStart(run: LocalRun | null): Finding {
  const what = run?.labUrl ? 'the lab' : 'your site'
  if (run) return toFinding('Start', true, `${what} runs here as process ${run.pid}`)
  return toFinding(
    'Start',
    false,
    'Nightshift does not run from this checkout',
    `Start Nightshift with "${startLine()}".`,
  )
}

async function checkPostgres(url: string | undefined): Promise<Finding[]> {
  if (!url) return [toUnknownAddress('PostgreSQL', 'DATABASE_URL')]
  const { host } = new URL(url)
  const files = readdirSync(join(rootDir, 'migrations')).filter((name) => /^\d+-.*\.[jt]s$/.test(name))
  const answer = await probePostgres(
    url,
    files.map((name) => name.replace(/\.[jt]s$/, '')),
  )
  if (!answer.ok) {
    return [
      toFinding(
        'PostgreSQL',
        false,
        `${host}: ${answer.detail}`,
        `See ${getLogFile('postgres')}, or correct DATABASE_URL.`,
      ),
    ]
  }
  const { lacks } = answer
  const migrated = lacks.length === 0 ? `all ${files.length} applied` : `not applied: ${lacks.join(', ')}`
  return [
    toFinding('PostgreSQL', true, `${host}, ${answer.detail}`),
    toFinding('Migrations', lacks.length === 0, migrated, '"nightshift migrate" applies migrations.'),
  ]
}

function toUnknownAddress(name: string, setting: string): Finding {
  return toFinding(name, false, 'the address is unknown here', `Set ${setting}, and doctor checks this part.`, false)
}

async function checkTemporal(run: LocalRun | null): Promise<Finding[]> {
  let settings: ReturnType<typeof readTemporalSettings>
  try {
    settings = readTemporalSettings(run)
  } catch {
    // Reports nothing: the check 'Configuration' reports contradicting settings.
    return []
  }
  if (!settings) return [toUnknownAddress('Temporal', 'TEMPORAL_ADDRESS')]
  const trouble = await troubleWith(settings, 3_000)
  // If Temporal does not respond, the workers cannot be checked.
  if (trouble) return [toFinding('Temporal', false, trouble.what, `${trouble.remedy} See ${getLogFile('temporal')}.`)]
  const workers = await probeWorkers(settings)
  return [
    toFinding('Temporal', true, `${settings.address} answers for the namespace ${settings.namespace}`),
    toFinding(
      'Worker',
      workers.ok,
      workers.detail,
      `See ${getLogFile('worker')}. Without a worker nothing is investigated.`,
    ),
  ]
}

async function checkApi(options: ConnectionOptions): Promise<Finding> {
  try {
    const target = resolveTarget(options)
    await createApiClient(target).get('/api/v1/incidents?limit=1')
    return toFinding('API', true, `${target.url} answers, and accepts the token`)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return toFinding('API', false, message, error instanceof ApiProblem ? error.remedy : null)
  }
}

/**
 * Checks whether the API is ready: its database has every migration, and its dependencies respond.
 */
async function checkReadiness(url: string | undefined): Promise<Finding[]> {
  if (!url) return [toFinding('Readiness', false, 'no API to check', `Start Nightshift with "${startLine()}".`)]
  const answer = await probeHttp(new URL('/readyz', url))
  const detail = answer.ok ? 'the API has its migrations and its dependencies' : answer.detail
  return [
    toFinding('Readiness', answer.ok, detail, `See ${getLogFile('api')}; "nightshift migrate" applies migrations.`),
    ...checkQueue(answer.detail),
  ]
}

type Ready = { checks?: { queue?: { status?: string; detail?: string } } }

/**
 * Returns the state of the queue's Schedule and search attributes in Temporal, if `/readyz` reports
 * it.
 */
function checkQueue(body: string): Finding[] {
  try {
    const { status, detail = '' } = (JSON.parse(body) as Ready).checks?.queue ?? {}
    if (status === undefined) return []
    const remedy = `Without the Schedule nothing is investigated. A worker restores the Schedule within a minute: see ${getLogFile('worker')}.`
    return [toFinding('Queue', status === 'ok', detail || 'the Schedule and search attributes exist', remedy)]
  } catch {
    return []
  }
}

/** Checks the model of `run`, whose variables may differ from those of this command. */
async function checkModel(run: LocalRun | null, env: NodeJS.ProcessEnv, options: ConnectionOptions): Promise<Finding> {
  const baseUrl = run?.model ? run.model.baseUrl : env.LLM_BASE_URL
  const key = env.LLM_API_KEY
  if (run?.model?.isRuleTable && run.labUrl === null)
    return toFinding(
      'Model',
      false,
      'none: incidents open and wait for people',
      'Set LLM_BASE_URL and LLM_MODEL.',
      false,
    )
  if (!baseUrl || run?.model?.isRuleTable)
    return toFinding(
      'Model',
      true,
      'embedded: runbook-rules, a rule table that knows this lab, not a language model. Your own: LLM_BASE_URL and LLM_MODEL',
    )
  const base = baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '')
  const answer = await probeHttp(new URL(`${base}/v1/models`), key ? { authorization: `Bearer ${key}` } : {})
  if (!answer.ok)
    return toFinding('Model', false, `${baseUrl}: ${answer.detail}`, 'Correct LLM_BASE_URL or LLM_API_KEY.')
  const { text, isNarrow } = await describeModelState(options)
  const remedy =
    'The server refused a request that is smaller than its stated limit. Check the limit at the server. Nightshift forgets the smaller limit after 7 days.'
  return toFinding('Model', !isNarrow, `${baseUrl} answers${text}`, isNarrow ? remedy : null, !isNarrow)
}

/**
 * Reports what the workers know about the model's server. Empty if the API is not reached, which
 * the check 'API' reports.
 */
async function describeModelState(options: ConnectionOptions): Promise<{ text: string; isNarrow: boolean }> {
  try {
    const status = (await createApiClient(resolveTarget(options)).get('/api/v1/status')) as Pick<Status, 'model'>
    const { windowTokens, windowSource, statedWindow, learned, waiting, abilities } = status.model
    const set = process.env.LLM_CONTEXT_TOKENS
    const window = set
      ? `${set} by LLM_CONTEXT_TOKENS`
      : windowTokens
        ? `${windowTokens} by ${windowSource}`
        : '32768, because the server does not report its window'
    const asked = learned.length > 0 ? `; asked with ${learned.join(', ')}` : ''
    const can = abilities ? `; ${describeAbilities(abilities)}` : ''
    const stated = statedWindow !== null && windowTokens !== null && windowTokens < statedWindow / 2
    const beside = stated ? ` (the server states ${statedWindow})` : ''
    const text = `; window ${window}${beside}${can}${asked}${waiting > 0 ? `; ${waiting} runs wait for this model` : ''}`
    return { text, isNarrow: stated && !set }
  } catch {
    return { text: '', isNarrow: false }
  }
}

async function checkLab(run: LocalRun | null): Promise<Finding> {
  if (!run?.labUrl) {
    const { PLATFORM_URL, PROXMOX_URL } = process.env
    const url = PROXMOX_URL ? `Proxmox VE at ${PROXMOX_URL}` : PLATFORM_URL
    return toFinding('Platform', true, url ? `${url}, not checked` : 'no lab here', null, false)
  }
  const answer = await probeHttp(new URL('/readyz', run.labUrl))
  const detail = answer.ok ? `${run.labUrl}, every node and host answers` : `${run.labUrl}: ${answer.detail}`
  return toFinding(
    'Lab',
    answer.ok,
    detail,
    'Somebody may have broken a part on purpose: see "nightshift lab status". Undo with "nightshift lab heal".',
    false,
  )
}

function formatFinding({ name, ok, needed, detail, remedy }: Finding): string {
  const mark = ok ? paint('green', '✔') : needed ? paint('red', '✖') : paint('yellow', '!')
  const todo = spellCommands(remedy ?? '', commandPrefix(process.env))
  const text = wrap(inert(detail), getTerminalWidth() - 18, ' '.repeat(18))
  return `${mark} ${name.padEnd(15)} ${text}${todo ? `\n${' '.repeat(18)}${wrap(todo, getTerminalWidth() - 18, ' '.repeat(18))}` : ''}`
}
