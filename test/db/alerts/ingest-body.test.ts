import { expect, test } from '@jest/globals'
import { ingestAlert, ingestBody } from '../../../db/alerts/ingest-body.ts'
import type { Db } from '../../../db/connect.ts'
import { verifyIncident } from '../../../db/verify/incident.ts'
import type { Alert } from '../../../domain/alert.ts'
import { anAlert, storeSetting, useDatabase } from '../../support/database.ts'

const whole = useDatabase()
const single = useDatabase()

/**
 * Three days of three alerts: begun, repeated, ended, late, begun again, an end without a
 * beginning, a new start.
 */
function story(): Alert[][] {
  const at = (minute: number) => new Date(Date.parse('2026-11-21T01:00:00Z') + minute * 60_000).toISOString()
  const firing = (fingerprint: string, change: Partial<Alert> = {}) =>
    anAlert({ fingerprint, startsAt: at(0), name: `alert_${fingerprint}`, labels: { shard: fingerprint }, ...change })
  const ended = (fingerprint: string, change: Partial<Alert> = {}) =>
    firing(fingerprint, { status: 'resolved', endsAt: at(30), ...change })
  return [
    [firing('a'), firing('b', { severity: 'critical' }), firing('c', { severity: 'info' }), firing('a')],
    [firing('a'), firing('b', { startGiven: false, startsAt: at(5) }), ended('c'), ended('never-began')],
    [ended('a'), firing('a'), firing('c', { startsAt: at(40) }), firing('new'), ended('new')],
    [firing('a', { startsAt: at(50) }), ended('b', { endsAt: at(-10) }), firing('never-began')],
    [firing('a', { startsAt: '2099-01-01T00:00:00Z' }), firing('b'), ended('c', { startsAt: at(40), endsAt: at(60) })],
  ]
}

/** All that is stored, without what is random or a time. */
async function stored(db: Db) {
  const incidents = await db.selectFrom('incident').selectAll().orderBy('createdAt').execute()
  const place = new Map(incidents.map(({ id }, index) => [id, index]))
  const events = await db.selectFrom('incidentEvent').selectAll().orderBy('incidentId').orderBy('seq').execute()
  const alerts = await db.selectFrom('alert').selectAll().orderBy('fingerprint').orderBy('firstSeenAt').execute()
  for (const { id } of incidents) expect((await verifyIncident(db, id)).differences).toEqual([])
  return {
    incidents: incidents.map(({ type, severity, status, title, nextSeq, keptReason, reopened, previousId }) => ({
      type,
      severity,
      status,
      title,
      nextSeq,
      keptReason,
      reopened,
      follows: place.get(previousId ?? ''),
    })),
    events: events
      .map(({ incidentId, seq, kind, action, actor, detail, metadata }) => ({
        of: place.get(incidentId),
        seq,
        kind,
        action,
        actor,
        detail,
        metadata,
      }))
      .sort((a, b) => (a.of ?? 0) - (b.of ?? 0) || a.seq - b.seq),
    alerts: alerts.map(({ fingerprint, status, count, startsAt, startSeen, incidentId, unknownWhy }) => ({
      fingerprint,
      status,
      count,
      startsAt,
      startSeen,
      of: place.get(incidentId ?? ''),
      unknownWhy,
    })),
  }
}

test('a body leaves the same rows as its alerts one by one, whatever they are', async () => {
  for (const db of [whole.db, single.db]) await storeSetting(db, 'agent.investigate', 'severity>=warning')
  for (const body of story()) {
    const together = await ingestBody(whole.db, body)
    const apart = []
    for (const alert of body) apart.push(await ingestAlert(single.db, alert))
    const outcomes = (list: { outcome: string; wakesQueue: boolean }[]) =>
      list.map(({ outcome, wakesQueue }) => `${outcome} ${wakesQueue}`)
    expect(outcomes(together)).toEqual(outcomes(apart))
  }
  expect(await stored(whole.db)).toEqual(await stored(single.db))
})

test('twenty senders deliver the same alerts in twenty orders at once: each opens one incident, and each delivery counts', async () => {
  const alerts = Array.from({ length: 60 }, (_, n) => anAlert({ fingerprint: `crowd-${n}`, name: `crowd_${n % 7}` }))
  const bodies = Array.from({ length: 20 }, (_, shift) => [...alerts.slice(shift * 3), ...alerts.slice(0, shift * 3)])
  const taken = (await Promise.all(bodies.map((body) => ingestBody(whole.db, body)))).flat()
  expect(taken.filter(({ outcome }) => outcome === 'opened')).toHaveLength(60)
  const rows = await whole.db.selectFrom('alert').select('count').where('fingerprint', 'like', 'crowd-%').execute()
  expect(rows.map(({ count }) => count)).toEqual(Array.from({ length: 60 }, () => 20))
})

test('an alert that the database cannot store is refused and named, and the others of its body are stored', async () => {
  const odd = anAlert({ fingerprint: 'odd', startsAt: '+294999-01-01T00:00:00.000Z' })
  const fine = [anAlert({ fingerprint: 'fine-1' }), anAlert({ fingerprint: 'fine-2' })]
  const taken = await ingestBody(whole.db, [fine[0]!, odd, fine[1]!])
  expect(taken).toMatchObject([
    { fingerprint: 'fine-1', outcome: 'opened' },
    { fingerprint: 'odd', outcome: 'refused', incidentId: null, reason: expect.stringContaining('294999') },
    { fingerprint: 'fine-2', outcome: 'opened' },
  ])
  expect(await ingestBody(whole.db, fine)).toMatchObject([{ outcome: 'repeated' }, { outcome: 'repeated' }])
})
