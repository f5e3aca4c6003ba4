import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import type { FaultName } from '../../lab/state.ts'
import { type Spine, startSpine } from '../support/spine.ts'

// What one repair does not end. Everything is broken at once, each on a place of its own, so that
// the waits pass side by side.
const places = {
  disk: 'node-web-osl-1a',
  relapse: 'node-web-ams-1a',
  unended: 'node-web-osl-2a',
  backup: 'node-web-ams-2a',
  host: 'host-osl-1',
}
let spine: Spine

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    environment: { LAB_WEB_SHARDS: '4', LAB_PACE_SECONDS: '12', WATCHDOG_INTERVAL_SECONDS: '0.5' },
  })
  // A quarter of an hour and four hours at a real site; drift is left to people, so that the backup
  // alone is looked at.
  for (const [key, value] of Object.entries({
    'alert.settle': '2',
    'alert.settle_max': '25',
    // A backup that ends just before the look at it does not end the incident: it comes again every
    // 12 s.
    'alert.quiet': '30',
    'agent.investigate.config_drift': 'none',
    'webhook.resolved.url': 'http://127.0.0.1:9/resolved',
  })) {
    await sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(spine.db)
  }
  await spine.lab.break('relapse', places.relapse)
  await spine.lab.break('unended_alert', places.unended)
  await spine.lab.break('disk_pressure_tenant', places.disk)
  await spine.lab.break('host_lost', places.host)
})
afterAll(async () => {
  await spine?.stop()
})

/** The incident of one place, once it stands as asked. */
const about = (type: string, place: string, what: string, isSo: (incident: Incident) => boolean) =>
  spine.until(`${type} on ${place} ${what}`, async () =>
    (await spine.incidents(`?type=${type}`)).find((each) => each.resource?.id === place && isSo(each)),
  )
const isEscalated = ({ status }: Incident) => status === 'escalated'
const claims = (events: IncidentEvent[]) => events.filter(({ kind }) => kind === 'claimed').length
const endings = (events: IncidentEvent[]) =>
  events.flatMap((event) => {
    if (event.kind === 'resolved') return [`resolved ${event.metadata.outcome}`]
    return event.kind === 'escalated' ? [`escalated ${event.metadata.category}`] : []
  })
const notes = (events: IncidentEvent[], code: string) =>
  events.filter((event) => event.kind === 'noted' && event.metadata.code === code).length
const failing = async (scenario: FaultName, target: string) =>
  (await spine.lab.oracle(scenario, target)).checks.filter(({ ok }) => !ok).map(({ name }) => name)

async function approve({ id }: Pick<Approval, 'id'>): Promise<void> {
  const as = { token: spine.tokens.approver }
  const { body } = await spine.post(`/approvals/${id}/token`, { decision: 'approve' }, as)
  await spine.post(`/approvals/${id}/decision`, { decision: 'approve', token: body.token }, as)
}

test('a host that stays down while its VMs run elsewhere is mitigated, and people own its alert', async () => {
  const asked = await spine.until('the migration', async () =>
    (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items.find(
      ({ tool }) => tool === 'execute_migration',
    ),
  )
  await approve(asked)
  const incident = await about('host_down', places.host, 'to be handed over', isEscalated)
  expect(incident).toMatchObject({ category: 'mitigated', attempt: 1, alerts: { firing: 1 } })
  const events = await spine.events(incident.id)
  // Said as it is at the first try: nothing was refused on the way.
  expect(events.filter((event) => event.kind === 'call_judged' && event.metadata.verdict === 'refuse')).toEqual([])
  expect(events.find(({ kind }) => kind === 'escalated')).toMatchObject({
    metadata: { report: { nextStep: expect.stringContaining('Repair host-osl-1') } },
  })
  expect(await failing('host_lost', places.host)).toEqual([])
})

test('another fault after one that only a person could end is investigated again, and repaired', async () => {
  const first = await about('disk_pressure', places.disk, 'to be handed over', isEscalated)
  expect(first).toMatchObject({ category: 'no_tool' })
  await spine.lab.heal('disk_pressure_tenant', places.disk)
  await about('disk_pressure', places.disk, 'to be quiet', ({ alerts }) => alerts.firing === 0)
  await spine.lab.break('disk_pressure', places.disk)
  const second = await about('disk_pressure', places.disk, 'to be repaired', ({ status }) => status === 'resolved')
  expect(second).toMatchObject({ id: first.id, attempt: 2, outcome: 'repaired' })
  expect(endings(await spine.events(first.id))).toEqual(['escalated no_tool', 'resolved repaired'])
  expect(await failing('disk_pressure', places.disk)).toEqual([])
})

test('a notice without a fault is for a person, whose mark ends the next one without a run, until the node looks different', async () => {
  await spine.lab.break('backup_notice', places.backup)
  const isNoFault = ({ status, category }: Incident) => status === 'escalated' && category === 'no_fault_found'
  const first = await about('backup_running', places.backup, 'to be handed over', isNoFault)
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const marked = await spine.post(`/incidents/${first.id}/expected`, { until, reason: 'the nightly backup' })
  expect(marked).toMatchObject({ status: 201, body: { state: { health: 'nominal' } } })
  const before = await spine.get<Incident>(`/incidents/${first.id}`)
  const again = await about(
    'backup_running',
    places.backup,
    'to come again and end as expected',
    ({ outcome, reopened }) => outcome === 'expected' && reopened > before.reopened,
  )
  expect(again).toMatchObject({ id: first.id, attempt: before.attempt, closedBy: 'code' })

  await spine.lab.break('config_drift', places.backup)
  const differed = await about('backup_running', places.backup, 'to be repaired', ({ attempt, status }) => {
    return attempt > before.attempt && status === 'resolved'
  })
  const events = await spine.events(differed.id)
  expect(notes(events, 'not_as_expected')).toBeGreaterThan(0)
  expect(endings(events)).toContain('resolved repaired')
  expect(await failing('backup_notice', places.backup)).toEqual([])
})

test('people get a critical alert without an end after a check showed that the write held', async () => {
  const incident = await about('service_down', places.unended, 'to be handed over', isEscalated)
  expect(incident).toMatchObject({ category: 'alert_goes_on', attempt: 1, closedBy: 'code' })
  const events = await spine.events(incident.id)
  expect(endings(events)).toEqual(['resolved repaired', 'escalated alert_goes_on'])
  expect(notes(events, 'repair_confirmed')).toBe(1)
  expect(incident.resolution).toContain('The write was verified, but the alert still fires')
  expect(await failing('unended_alert', places.unended)).toEqual([])
})

test('a repair that does not last is tried three times, and then escalated with each attempt', async () => {
  const incident = await spine.until('the relapse to be handed over', async () => {
    const [found] = (await spine.incidents('?type=service_down')).filter(
      ({ resource }) => resource?.id === places.relapse,
    )
    // The first repair that did not last took the trust of its tool: a person is asked before each
    // of the others.
    for (const asked of (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items)
      if (asked.incidentId === found?.id) await approve(asked)
    return found && isEscalated(found) ? found : null
  })
  expect(incident).toMatchObject({ category: 'does_not_last', attempt: 3, reopened: expect.any(Number) })
  const events = await spine.events(incident.id)
  expect(claims(events)).toBe(3)
  expect(endings(events)).toEqual([...Array(3).fill('resolved repaired'), 'escalated does_not_last'])
  const judged = events.flatMap((event) => (event.kind === 'call_judged' ? [event.metadata.code] : []))
  expect(judged).toContain('PROPOSED')
  for (const attempt of [1, 2, 3]) expect(incident.resolution).toContain(`Attempt ${attempt} of ${incident.id}`)
  expect(await failing('relapse', places.relapse)).toEqual([])
})
