import { TemporalError } from '../../clients/temporal.ts'
import { ConfigError, temporalSettingsIn } from '../../config/settings.ts'
import {
  administratorStatements,
  bringSchemaUp,
  checkOwnerLogin,
  checkServicesLogin,
} from '../../start/database-check.ts'
import { type SetupRow, setUpTemporal } from '../../start/temporal.ts'
import { type Answers, answerOf, askFor, knownAnswer, refuseMissing } from './answers.ts'
import type { SiteFiles } from './place.ts'
import { printRow, row, type StepRow } from './steps.ts'

/**
 * Setup's result for the database. `ownerUrl` is the login that migrates the schema. Null if no
 * login is needed or known.
 */
type SettledDatabase = {
  row: StepRow
  settings: Record<string, string>
  ownerUrl: string | null
  missing: number
  /** The id of the site in the database (`db/site-id.ts`), if it was read. */
  site?: string
}

/**
 * Asks for the database until the services could use it. Without an answer in a checkout, `npm
 * start` provides the database.
 */
export async function settleDatabase(answers: Answers, place: SiteFiles): Promise<SettledDatabase> {
  if (place.isCheckout && knownAnswer(answers, 'DATABASE_URL') === undefined)
    return { row: ownOf('PostgreSQL', place), settings: {}, ownerUrl: null, missing: 0 }
  for (;;) {
    const url = (await answerOf(answers, 'DATABASE_URL')) ?? ''
    const found = await lookAtDatabase(answers, url)
    if (found.row.state !== 'failed' || !answers.canAsk) return found
    printRow(found.row)
    const isOwners = found.row.step === 'schema'
    await askFor(answers, isOwners ? 'MIGRATE_DATABASE_URL' : 'DATABASE_URL')
  }
}

async function lookAtDatabase(answers: Answers, url: string): Promise<SettledDatabase> {
  const failed = (step: string, what: string, remedy: string): SettledDatabase => ({
    row: row(step, 'failed', what, remedy),
    ...{ settings: {}, ownerUrl: null, missing: 0 },
  })
  const found = await checkServicesLogin(url)
  if (!found.ok) {
    return failed(
      'PostgreSQL',
      found.what,
      found.isAbsent
        ? `${found.remedy} To create the database and its logins:\n${administratorStatements}`
        : found.remedy,
    )
  }
  const kept = answers.kept.DATABASE_URL === undefined && answers.kept.DATABASE_URL_FILE !== undefined
  const settings: Record<string, string> = kept ? {} : { DATABASE_URL: url }
  const { missing, site } = found
  const settled = { row: row('PostgreSQL', 'works', found.detail, found.warning), settings, missing, site }
  if (found.missing === 0) return { ...settled, ownerUrl: null }
  const { isOwner, hasServicesRole, mayMakeRoles } = found.rights
  if (isOwner && (hasServicesRole || mayMakeRoles)) return { ...settled, ownerUrl: url }
  const ownerUrl = await answerOf(answers, 'MIGRATE_DATABASE_URL')
  if (ownerUrl === undefined) {
    refuseMissing(['MIGRATE_DATABASE_URL'])
    return { ...settled, ownerUrl: null }
  }
  const owner = await checkOwnerLogin(ownerUrl, url)
  return owner.ok ? { ...settled, ownerUrl } : failed('schema', owner.what, owner.remedy)
}

/** Migrates the schema of the database to this release if needed. */
export async function applySchema({ ownerUrl, missing }: SettledDatabase, isDryRun: boolean): Promise<StepRow> {
  if (ownerUrl === null || missing === 0) return row('schema', 'there', 'the database has the schema of this release')
  if (isDryRun) return row('schema', 'would be made', `${missing} migrations`)
  try {
    const applied = await bringSchemaUp(ownerUrl)
    return row('schema', applied.length > 0 ? 'made' : 'there', `${applied.length} migrations applied`)
  } catch (error) {
    return row('schema', 'failed', (error as Error).message, '"nightshift setup" continues from here.')
  }
}

/** Returns all settings for Temporal that setup knows. */
function temporalOf(answers: Answers): Record<string, string> {
  const names = new Set([
    ...Object.keys(answers.kept),
    ...Object.keys(answers.environment),
    ...Object.keys(answers.given),
  ])
  const own = [...names].filter((name) => name.startsWith('TEMPORAL_'))
  return Object.fromEntries(
    own.flatMap((name) => {
      const value = knownAnswer(answers, name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

type SettledTemporal = { row: StepRow; settings: Record<string, string>; isGiven: boolean }

/** Asks for Temporal until it responds for its namespace. Changes nothing in Temporal. */
export async function settleTemporal(answers: Answers, place: SiteFiles, site?: string): Promise<SettledTemporal> {
  const isGiven = Object.keys(temporalOf(answers)).length > 0
  if (place.isCheckout && !isGiven) return { row: ownOf('Temporal', place), settings: {}, isGiven: false }
  for (;;) {
    await answerOf(answers, 'TEMPORAL_ADDRESS', '127.0.0.1:7233')
    const settings = temporalOf(answers)
    const found = await setUpAt(settings, answers, { isDryRun: true, site })
    if (found.row.state !== 'failed' || !answers.canAsk) return { ...found, settings, isGiven: true }
    printRow(found.row)
    await askFor(answers, 'TEMPORAL_ADDRESS', settings.TEMPORAL_ADDRESS)
    await askFor(answers, 'TEMPORAL_NAMESPACE', settings.TEMPORAL_NAMESPACE ?? 'default')
  }
}

/** Creates Temporal's search attributes and the Schedule if they are missing. */
export async function applyTemporal(answers: Answers, { settings }: SettledTemporal, site?: string): Promise<StepRow> {
  return (await setUpAt(settings, answers, { isDryRun: false, site })).row
}

async function setUpAt(
  settings: Record<string, string>,
  answers: Answers,
  { isDryRun, site }: { isDryRun: boolean; site: string | undefined },
): Promise<{ row: StepRow }> {
  try {
    const intervalSeconds = Number(knownAnswer(answers, 'QUEUE_INTERVAL_SECONDS') ?? 60)
    const enabled = knownAnswer(answers, 'AGENT_ENABLED') !== 'false'
    const schedule = { taskQueue: 'nightshift', intervalSeconds, enabled, ...(site !== undefined && { site }) }
    const rows = await setUpTemporal({ settings: temporalSettingsIn(settings), schedule, isDryRun })
    return { row: asOne(rows) }
  } catch (error) {
    if (error instanceof TemporalError)
      return { row: row('Temporal', 'failed', error.trouble.what, error.trouble.remedy) }
    if (error instanceof ConfigError)
      return { row: row('Temporal', 'failed', error.problems.join('; '), 'Correct these settings.') }
    throw error
  }
}

function asOne(rows: SetupRow[]): StepRow {
  const failed = rows.find(({ state }) => state === 'failed')
  if (failed)
    return row('Temporal', 'failed', `${failed.what}: ${failed.detail}`, '"nightshift setup" continues from here.')
  const changed = rows.find(({ state }) => state !== 'there')
  const detail = rows
    .map(({ what, state, detail: each }) => (what === 'namespace' ? each : `${what} ${state}`))
    .join(', ')
  return row('Temporal', changed?.state ?? 'there', detail)
}

const ownOf = (step: string, { startLine }: SiteFiles): StepRow =>
  row(step, 'there', `"${startLine}" starts its own ${step}`)
