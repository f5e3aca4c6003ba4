import { beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ensureOperator } from '../../../db/access/tokens.ts'
import { briefSources } from '../../../db/incidents/brief.ts'
import { readHome } from '../../../db/incidents/home-page.ts'
import { incidentsById } from '../../../db/incidents/incidents.ts'
import { reportOf } from '../../../db/incidents/reports.ts'
import { type Scope, systemScope } from '../../../db/scope.ts'
import { foldBrief } from '../../../domain/brief.ts'
import type { Report, ReportLine } from '../../../domain/report.ts'
import { stopClock, useDatabase } from '../../support/database.ts'
import { insertAll, type MadeIncident, type MadeRow, makeMonth, storeMonth } from '../../support/generated-month.ts'

/** Every figure a second time, from the plain objects and by the words of docs/reference/api.md. */

const database = useDatabase()
let month: MadeIncident[] = []
let now = 0
let scope: Scope
const spends: { day: string; type: string; dollars: number }[] = []
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)

beforeAll(async () => {
  await stopClock(database.owner)
  const { rows } = await sql<{ now: string }>`select nightshift_now()::text as now`.execute(database.owner)
  now = Date.parse(rows[0]?.now ?? '')
  month = makeMonth(now, 700)
  const [reader, other] = [
    await ensureOperator(database.db, 'anna', 'approver'),
    await ensureOperator(database.db, 'ben', 'approver'),
  ]
  scope = { db: database.db, reader: { role: 'approver', operatorId: reader, name: 'anna' } }
  await storeMonth(database.owner, month, { reader, other })
  for (let day = 0; day < 30; day += 3)
    for (const type of ['host_down', 'disk_full', 'asked_only'])
      spends.push({ day: dayOf(now - day * 86_400_000), type, dollars: (day + 1) / 4 })
  await insertAll(
    database.owner,
    'model_spend',
    spends.map(({ day, type, dollars }) => ({ day, model: 'm', type, answers: 1, cost: dollars, assumed: 0 })),
  )
}, 60_000)

const isPerson = ({ actor }: MadeRow) => actor.startsWith('user:')
const isOver = (status: string) => ['resolved', 'escalated', 'cancelled'].includes(status)
const isClosed = ({ closedAt }: MadeIncident) => closedAt !== null
const isResolved = ({ status, outcome }: MadeIncident) => status === 'resolved' && outcome !== 'unproven'

/**
 * No person closed, wrote, changed or expected anything before its end; who opened it asked, and
 * that is all.
 */
function isAlone(each: MadeIncident): boolean {
  if (!isResolved(each) || each.closedBy === 'person') return false
  if (each.outcome === 'expected' || each.outcome === 'changed') return false
  return !each.rows.slice(1).some((row) => isPerson(row) && row.at <= (each.closedAt ?? 0))
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const [low, high] = [sorted[Math.floor(at)] ?? 0, sorted[Math.ceil(at)] ?? 0]
  return low + (high - low) * (at - Math.floor(at))
}

const spreadOf = (values: readonly number[]) =>
  values.length === 0
    ? null
    : { p50: expect.closeTo(quantile(values, 0.5), 3), p90: expect.closeTo(quantile(values, 0.9), 3) }

const byName = (a: { category: string }, b: { category: string }) => a.category.localeCompare(b.category)
const sorted = <L extends ReportLine>(line: L): L => ({ ...line, escalations: line.escalations.toSorted(byName) })
const since = (incident: MadeIncident, at: number) => (at - incident.createdAt) / 1_000

const isUnshown = ({ kind, metadata }: MadeRow): boolean => {
  const { code, claims = [], unshown = [] } = metadata as { code?: string; claims?: unknown[]; unshown?: unknown[] }
  if (kind === 'call_judged') return code === 'CLAIM_NOT_SHOWN' || code === 'PHANTOM_CLAIM'
  if (kind === 'correction_sent') return code === 'claim_not_shown' || code === 'phantom_claim'
  return claims.length + unshown.length > 0
}

const isRepair = (row: MadeRow) => row.kind === 'resolved' && row.metadata.outcome === 'repaired' && !isPerson(row)

function didNotLast(each: MadeIncident, repair: MadeRow): boolean {
  const goesOn = ({ kind, at }: MadeRow) => at > repair.at && (kind === 'claimed' || isOver(kind))
  if (each.status !== 'resolved' || each.rows.some(goesOn)) return true
  const day = 86_400_000
  return month.some(
    (other) =>
      other.id !== each.id &&
      each.resourceId !== null &&
      other.resourceId === each.resourceId &&
      other.type === each.type &&
      other.createdAt > repair.at &&
      other.createdAt <= repair.at + day,
  )
}

const causeOf = ({ rows }: MadeIncident) => rows.findLast(({ kind }) => kind === 'graded')?.metadata.verdict

function lineOf(own: readonly MadeIncident[], dollars: number): Record<keyof ReportLine, unknown> {
  const escalated = own.filter(({ status }) => status === 'escalated')
  const repairs = own.flatMap((each) => each.rows.filter(isRepair).map((row) => [each, row] as const))
  const approvals = own.flatMap((each) => each.approvals)
  const taken = own.flatMap((each) => {
    const first = each.rows.slice(1).find((row) => row.kind === 'claimed' || isPerson(row))
    return first ? [since(each, first.at)] : []
  })
  const byCategory = Map.groupBy(escalated, ({ category }) => category ?? 'unknown')
  return {
    incidents: own.length,
    closed: own.filter(isClosed).length,
    resolved: own.filter(isResolved).length,
    autoResolved: own.filter(isAlone).length,
    unproven: own.filter(({ status, outcome }) => status === 'resolved' && outcome === 'unproven').length,
    escalated: escalated.length,
    escalations: [...byCategory].map(([category, of]) => ({ category, count: of.length })).sort(byName),
    acknowledgeSeconds: spreadOf(taken),
    resolveSeconds: spreadOf(own.filter(isResolved).map((each) => since(each, each.closedAt ?? 0))),
    approvals: approvals.length,
    approvalsWithinSeconds: 0,
    approvalSeconds: spreadOf(
      approvals.flatMap(({ requestedAt, decidedAt }) =>
        decidedAt === null ? [] : [(decidedAt - requestedAt) / 1_000],
      ),
    ),
    repairs: repairs.length,
    repairsNotLasting: repairs.filter(([each, row]) => didNotLast(each, row)).length,
    unshownClaims: own.flatMap(({ rows }) => rows.filter(isUnshown)).length,
    pagesHeld: 0,
    questionsHeld: 0,
    wakesAvoided: 0,
    causesRight: own.filter((each) => causeOf(each) === 'right').length,
    causesPartly: own.filter((each) => causeOf(each) === 'partly').length,
    causesWrong: own.filter((each) => causeOf(each) === 'wrong').length,
    dollars: expect.closeTo(dollars, 6),
  }
}

const dollarsOf = (is: (spend: (typeof spends)[number]) => boolean) =>
  spends.filter(is).reduce((sum, { dollars }) => sum + dollars, 0)

test('every figure of the report, of each type and of each week equals the sum over its incidents', async () => {
  const range = { since: dayOf(now - 40 * 86_400_000), until: dayOf(now) }
  const found: Report = await reportOf(scope, range)
  expect(sorted(found.total)).toEqual(
    lineOf(
      month,
      dollarsOf(() => true),
    ),
  )
  expect(found.byType.map(sorted).sort((a, b) => a.type.localeCompare(b.type))).toEqual(
    ['asked_only', 'cpu_high', 'disk_full', 'host_down'].map((type) => ({
      type,
      ...lineOf(
        month.filter((each) => each.type === type),
        dollarsOf((spend) => spend.type === type),
      ),
    })),
  )
  const mondayOf = (at: number) => dayOf(at - ((new Date(at).getUTCDay() + 6) % 7) * 86_400_000)
  expect(found.byWeek.map(sorted)).toEqual(
    found.byWeek.map(({ week }) => ({
      week,
      ...lineOf(
        month.filter(({ createdAt }) => mondayOf(createdAt) === week),
        dollarsOf(({ day }) => mondayOf(Date.parse(day)) === week),
      ),
    })),
  )
  expect(found.byWeek.reduce((sum, { incidents }) => sum + incidents, 0)).toBe(month.length)
})

const tokensOf = (rows: readonly MadeRow[]) =>
  rows.reduce((sum, { kind, metadata }) => {
    const { promptTokens, completionTokens } = metadata.usage as { promptTokens: number; completionTokens: number }
    return kind === 'model_answered' ? sum + promptTokens + completionTokens : sum
  }, 0)

/**
 * Repairs of the night whose newest verification found the fault still there, however often it was
 * looked at.
 */
const failedOf = (from: number): number =>
  month
    .flatMap((each) => [
      ...Map.groupBy(
        each.rows.filter(({ kind }) => kind === 'verification'),
        ({ attempt }) => attempt,
      ).values(),
    ])
    .flatMap((rows) => rows.slice(-1))
    .filter(({ at, metadata }) => at >= from && metadata.outcome === 'not_held').length

test('the night on Home has what began in it, and its three parts contain each incident at most once', async () => {
  const from = now - 12 * 3_600_000
  const home = await readHome(scope, new Date(from).toISOString())
  const night = month.filter(({ createdAt }) => createdAt >= from)
  const rows = month.flatMap((each) => each.rows.filter(({ at }) => at >= from))
  const answers = rows.filter(({ kind }) => kind === 'model_answered')
  const resolved = night.filter(isResolved)
  expect(home.tonight).toEqual({
    incidents: night.length,
    closed: night.filter(isClosed).length,
    resolved: resolved.length,
    resolvedAlone: night.filter(isAlone).length,
    unproven: night.filter(({ outcome, status }) => status === 'resolved' && outcome === 'unproven').length,
    escalated: night.filter(({ status }) => status === 'escalated').length,
    medianSeconds: expect.closeTo(
      quantile(
        resolved.map((each) => since(each, each.closedAt ?? 0)),
        0.5,
      ),
      3,
    ),
    failedRepairs: failedOf(from),
    tokens: tokensOf(answers),
    dollars: expect.closeTo(
      answers.reduce((sum, { metadata }) => sum + (metadata.cost as { dollars: number }).dollars, 0),
      6,
    ),
  })
  const isHandled = ({ owner, status }: MadeIncident) => owner === 'other' && ['open', 'escalated'].includes(status)
  const needs = month.filter(
    (each) =>
      each.approvals.some(({ status, isOver }) => status === 'pending' && !isOver) ||
      each.review ||
      each.owner === 'reader' ||
      (!isHandled(each) && (each.status === 'escalated' || each.kept)),
  )
  const work = month.filter((each) => !needs.includes(each) && (!isClosed(each) || isHandled(each)))
  const done = month.filter(
    (each) => !each.review && ['resolved', 'cancelled'].includes(each.status) && (each.closedAt ?? 0) >= from,
  )
  expect([home.needsYou.incidents, home.inProgress.incidents, home.done.incidents]).toEqual([
    needs.length,
    work.length,
    done.length,
  ])
})

test('the brief of an incident has its reads, its usage and the incidents that wait behind it', async () => {
  for (const each of month.slice(0, 45)) {
    const [incident] = await incidentsById(systemScope(database.db), [each.id])
    if (!incident) throw new Error(each.id)
    const brief = foldBrief(await briefSources(scope, incident))
    const answers = each.rows.filter(({ kind }) => kind === 'model_answered')
    const looks = each.rows.filter(
      ({ kind, attempt, metadata }) =>
        kind === 'tool_finished' && attempt === each.attempt && metadata.effect === 'read',
    )
    const behind = month.filter(
      ({ id, groupId, role, status }) =>
        id !== each.id && groupId === each.groupId && role === 'follower' && !isOver(status),
    )
    expect([each.id, brief.looks, brief.spent.turns, brief.spent.tokens, brief.spent.modelMs]).toEqual([
      each.id,
      looks.length,
      answers.length,
      tokensOf(answers),
      answers.reduce((sum, { metadata }) => sum + Number(metadata.durationMs), 0),
    ])
    expect(brief.impact?.text ?? '').toBe(
      each.role === 'follower' || behind.length === 0
        ? ''
        : `${behind.length} similar incident${behind.length === 1 ? '' : 's'} in its group`,
    )
  }
})
