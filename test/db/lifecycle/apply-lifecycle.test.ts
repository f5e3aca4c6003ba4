import { beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ensureOperator } from '../../../db/access/tokens.ts'
import { markIncidentExpected } from '../../../db/alerts/expectations.ts'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import { type Closing, closeIncident } from '../../../db/incidents/close-incident.ts'
import { claimIncident, incidentById } from '../../../db/incidents/incidents.ts'
import { leaseLooks, recordLook } from '../../../db/incidents/looks.ts'
import { operatorNotes, whyReopened } from '../../../db/incidents/operator-notes.ts'
import { findLapsedOwners, releaseOwnership, takeIncident } from '../../../db/incidents/owners.ts'
import { hintLeader } from '../../../db/incidents/queue.ts'
import { dueIncidents, tickIncident } from '../../../db/lifecycle/apply-lifecycle.ts'
import { earlierAttempts } from '../../../db/lifecycle/attempts.ts'
import { append } from '../../../db/log/append.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { sendDigests } from '../../../db/outbox/digests.ts'
import type { Alert } from '../../../domain/alert.ts'
import { agentActor, type EventMetadata } from '../../../domain/event.ts'
import { allAtOnce, anAlert, moveClock, stopClock, useDatabase } from '../../support/database.ts'
import { verified, wrote } from '../../support/events.ts'

const database = useDatabase()
let fingerprint = ''
let passed = 0

beforeEach(async () => {
  fingerprint = `fp-${Math.random()}`
  passed = 0
  await moveClock(database.owner, '0 seconds')
  await sql`delete from platform_config`.execute(database.db)
})

/** Lets time pass for everything that the database decides. */
async function pass(seconds: number): Promise<void> {
  passed += seconds
  await moveClock(database.owner, `${passed} seconds`)
}

const nowIso = async (): Promise<string> => {
  const { rows } = await sql<{ now: string }>`select nightshift_now() as now`.execute(database.db)
  return rows[0]?.now ?? ''
}

async function send(change: Partial<Alert> = {}) {
  const startsAt = change.startsAt ?? (await nowIso())
  return await ingestAlert(database.db, anAlert({ fingerprint, startsAt, ...change }))
}

const fires = (startsAt: string) => send({ startsAt })
const ends = (startsAt: string, endsAt: string) => send({ status: 'resolved', startsAt, endsAt })

/** One firing alert of its own, and the start that its sender gives it. */
async function raised(change: Partial<Alert> = {}): Promise<{ id: string; startsAt: string }> {
  const startsAt = await nowIso()
  const { incidentId } = await send({ startsAt, ...change })
  return { id: incidentId ?? '', startsAt }
}

async function claimed(id: string, attempt = 1): Promise<void> {
  await database.db.transaction().execute(async (trx) => {
    const workflowId = `investigate:${id}:${attempt}`
    await claimIncident(trx, {
      incidentId: id,
      attempt,
      workflowId,
      role: 'leader',
      groupId: 'grp',
      timeBudgetSeconds: 60,
    })
    await append(trx, id, attempt, {
      kind: 'claimed',
      actor: agentActor,
      detail: 'claimed',
      metadata: { role: 'leader', groupId: 'grp', workflowId, config: {} },
    })
  })
}

const endings: Record<string, Closing> = {
  repaired: { status: 'resolved', outcome: 'repaired', resolution: 'converged', claims: [], confidence: null },
  no_fault: { status: 'resolved', outcome: 'no_fault', resolution: 'nothing was wrong', claims: [], confidence: null },
  escalated: { status: 'escalated', reason: 'a person has to look', code: 'AGENT' },
  cancelled: { status: 'cancelled', reason: 'a planned failover' },
}

async function closed(id: string, how: keyof typeof endings, actor = agentActor): Promise<void> {
  await database.db
    .transaction()
    .execute((trx) => closeIncident(trx, id, null, endings[how] as Closing, { actor, stepKey: null }))
}

const standing = async (id: string) => await incidentById(database.db, id)

/** What the watchdog does in its rounds, until nothing is due. */
async function watchdog(): Promise<void> {
  await findLapsedOwners(database.db)
  for (let round = 0; round < 3; round += 1) {
    for (const id of await dueIncidents(database.db)) await tickIncident(database.db, id)
  }
}

/** A worker looks, and sees this. */
async function looked(seen: Pick<EventMetadata['looked'], 'verification' | 'resource'>): Promise<number> {
  const wanted = await leaseLooks(database.db, 10)
  for (const each of wanted) {
    const look = { purpose: each.purpose, ...seen, about: [], observed: 'seen by the test', state: null }
    await recordLook(database.db, each, look, null)
  }
  return wanted.length
}

const noted = async (id: string) =>
  (await eventsOf(database.db, id)).flatMap((event) => (event.kind === 'noted' ? [event.metadata.code] : []))

const told = async (id: string) =>
  await database.db
    .selectFrom('delivery')
    .select(sql<string>`notification->>'trigger'`.as('trigger'))
    .where('incidentId', '=', id)
    .orderBy('id')
    .execute()
    .then((rows) => rows.map(({ trigger }) => trigger))

async function setting(key: string, value: string): Promise<void> {
  await sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(database.db)
}

const webhooks = async () => {
  await setting('webhook.escalated.url', 'http://127.0.0.1:9/escalated')
  await setting('webhook.resolved.url', 'http://127.0.0.1:9/resolved')
}

describe('no firing alert is dropped', () => {
  test.each(['repaired', 'no_fault', 'escalated'] as const)(
    'an alert that fires again after its incident ended %s is the next attempt',
    async (how) => {
      const { id, startsAt } = await raised()
      await claimed(id)
      await pass(60)
      await closed(id, how)
      await ends(startsAt, await nowIso())
      await pass(300)
      expect((await raised()).id).toBe(id)
      expect(await standing(id)).toMatchObject({ status: 'open', attempt: 1, reopened: 1 })
      expect(await noted(id)).toContain('reopened')
    },
  )

  test('three repeats of an alert whose incident was closed without a fault leave it open, not resolved', async () => {
    const { id, startsAt } = await raised()
    await claimed(id)
    await closed(id, 'no_fault')
    const outcomes = []
    for (let repeat = 0; repeat < 3; repeat += 1) outcomes.push((await fires(startsAt)).outcome)
    expect(outcomes).toEqual(['reopened', 'repeated', 'repeated'])
    expect(await standing(id)).toMatchObject({ status: 'open' })
  })

  test('an alert of a closed incident that fires again much later opens a new incident that names the old one', async () => {
    const { id, startsAt } = await raised()
    await claimed(id)
    await closed(id, 'repaired')
    await ends(startsAt, await nowIso())
    await pass(2 * 3600)
    const second = await raised()
    expect(second.id).not.toBe(id)
    expect(await standing(second.id)).toMatchObject({ previousId: id, status: 'open' })
  })

  test('the fourth attempt in a day is not begun, and a person gets the results of the three', async () => {
    let { id, startsAt } = await raised()
    for (const attempt of [1, 2, 3]) {
      await claimed(id, attempt)
      await closed(id, 'repaired')
      await pass(30)
      await ends(startsAt, await nowIso())
      await pass(60)
      startsAt = (await raised()).startsAt
    }
    expect(await standing(id)).toMatchObject({ status: 'escalated', category: 'does_not_last', attempt: 3 })
    const escalation = (await eventsOf(database.db, id)).findLast(({ kind }) => kind === 'escalated')
    expect(escalation?.detail).toContain(`Attempt 1 of ${id}`)
    expect(escalation?.detail).toContain(`Attempt 3 of ${id}`)
    // Over linked incidents too: the day's attempts are used up.
    await ends(startsAt, await nowIso())
    await pass(25 * 3600 - 1000)
    id = (await raised()).id
    expect(await standing(id)).toMatchObject({ status: 'open' })
  })

  test('an alert that keeps firing after a person closed its incident causes one reminder, then only the digest, and no attempt', async () => {
    await webhooks()
    const { id, startsAt } = await raised()
    await claimed(id)
    await closed(id, 'no_fault', 'user:anna')
    await pass(840)
    await fires(startsAt)
    await watchdog()
    expect(await told(id)).toEqual(['resolved'])
    await pass(61)
    await watchdog()
    await watchdog()
    expect(await told(id)).toEqual(['resolved', 'reminder'])
    await pass(14_400)
    await watchdog()
    await sendDigests(database.db)
    await sendDigests(database.db)
    expect((await told(id)).filter((trigger) => trigger === 'digest').length).toBeLessThanOrEqual(1)
    expect(await standing(id)).toMatchObject({ status: 'resolved', attempt: 1 })
  })

  test('a cancelled incident is left alone until its time, and investigated if its alert still fires', async () => {
    const { id, startsAt } = await raised()
    await closed(id, 'cancelled', 'user:anna')
    await pass(3600)
    expect((await fires(startsAt)).outcome).toBe('repeated')
    expect(await standing(id)).toMatchObject({ status: 'cancelled' })
    await pass(23 * 3600 + 60)
    await watchdog()
    expect(await standing(id)).toMatchObject({ status: 'open' })
  })
})

test('an alert that starts during a cancellation and never repeats is investigated when the cancellation ends', async () => {
  const { id, startsAt } = await raised()
  await closed(id, 'cancelled', 'user:anna')
  await ends(startsAt, await nowIso())
  await pass(600)
  expect((await raised()).id).toBe(id)
  expect(await standing(id)).toMatchObject({ status: 'cancelled', alerts: { firing: 1 } })
  await pass(24 * 3600)
  await watchdog()
  expect(await standing(id)).toMatchObject({ status: 'open' })
})

test('after the end of a cancellation the next repeat is investigated, with or without the watchdog', async () => {
  const { id, startsAt } = await raised()
  await closed(id, 'cancelled', 'user:anna')
  await pass(25 * 3600)
  expect((await fires(startsAt)).outcome).toBe('reopened')
})

test('an expected alert that returns is held for a read, and without a read it is investigated', async () => {
  const { id, startsAt } = await raised()
  const by = { operatorId: await ensureOperator(database.db, 'anna', 'operator'), actor: 'user:anna', name: 'anna' }
  const until = new Date(Date.parse(await nowIso()) + 86_400_000).toISOString()
  const subject = { subject: 'alert' as const, source: 'alertmanager', fingerprint }
  await database.db
    .transaction()
    .execute((trx) => markIncidentExpected(trx, id, { ...subject, until, reason: 'every night', state: {} }, by))
  expect(await standing(id)).toMatchObject({ status: 'resolved', outcome: 'expected' })
  await ends(startsAt, await nowIso())
  await pass(60)
  expect((await raised()).id).toBe(id)
  await watchdog()
  expect(await noted(id)).not.toContain('not_as_expected')
  await pass(121)
  await watchdog()
  expect(await noted(id)).toContain('not_as_expected')
  expect(await standing(id)).toMatchObject({ status: 'open' })
})

describe('after a repair', () => {
  async function repairedButFiring(change: Partial<Alert> = {}) {
    await webhooks()
    const { id, startsAt } = await raised(change)
    await claimed(id)
    await pass(30)
    await closed(id, 'repaired')
    return { id, startsAt }
  }

  test('an alert that ends in time ends the watch, and nobody is notified', async () => {
    const { id, startsAt } = await repairedButFiring()
    expect(await standing(id)).toMatchObject({ watchUntil: expect.any(String), alerts: { firing: 1 } })
    await pass(60)
    await ends(startsAt, await nowIso())
    expect(await standing(id)).toMatchObject({ status: 'resolved', watchUntil: null })
    expect(await noted(id)).toEqual(['watch_over'])
    expect(await told(id)).toEqual(['resolved'])
  })

  test('a repair that held is reported once, watched, and escalated if the alert never ends', async () => {
    const { id } = await repairedButFiring()
    await pass(901)
    await watchdog()
    expect(await looked({ verification: 'held', resource: 'nominal' })).toBe(1)
    await watchdog()
    await watchdog()
    expect(await told(id)).toEqual(['resolved', 'watch'])
    expect(await standing(id)).toMatchObject({ status: 'resolved' })
    await pass(14_400)
    await watchdog()
    expect(await standing(id)).toMatchObject({ status: 'escalated', category: 'alert_goes_on' })
    expect(await told(id)).toEqual(['resolved', 'watch', 'reopened', 'escalated'].filter((each) => each !== 'reopened'))
  })

  test('a critical alert that keeps firing is escalated after its time and a read, and the incident shows why', async () => {
    const { id } = await repairedButFiring({ severity: 'critical' })
    await pass(899)
    await watchdog()
    expect(await standing(id)).toMatchObject({ status: 'resolved' })
    await pass(2)
    await watchdog()
    expect(await looked({ verification: 'held', resource: 'nominal' })).toBe(1)
    await watchdog()
    expect(await standing(id)).toMatchObject({ status: 'escalated', category: 'alert_goes_on' })
    expect((await standing(id))?.resolution).toContain('The write was verified, but the alert still fires')
    expect(await noted(id)).toContain('repair_confirmed')
    expect(await told(id)).toEqual(['resolved', 'escalated'])
  })

  test('a repair that did not last is the next attempt, and people are notified', async () => {
    const { id } = await repairedButFiring()
    await pass(901)
    await watchdog()
    await looked({ verification: 'not_held', resource: 'degraded' })
    await watchdog()
    expect(await standing(id)).toMatchObject({ status: 'open', reopened: 1 })
    expect(await told(id)).toEqual(['resolved', 'reopened'])
  })

  test('a state that could not be read three times is the next attempt', async () => {
    const { id } = await repairedButFiring()
    await pass(901)
    for (let tries = 1; tries <= 3; tries += 1) {
      await watchdog()
      expect(await looked({ verification: 'open', resource: 'nominal' })).toBe(1)
      await pass(20)
    }
    await watchdog()
    expect(await standing(id)).toMatchObject({ status: 'open' })
  })

  test('for a sender without ends only a repeat shows that the alert still fires', async () => {
    await setting('alert.ends.alertmanager', 'no')
    const { id, startsAt } = await repairedButFiring()
    expect(await standing(id)).toMatchObject({ watchUntil: null })
    await pass(60)
    await fires(startsAt)
    expect(await standing(id)).toMatchObject({ watchUntil: expect.any(String) })
    await pass(90_000)
    await watchdog()
    expect(await noted(id)).toContain('watch_unknown')
    expect(await standing(id)).toMatchObject({ status: 'resolved', alerts: { firing: 0, unknown: 1 } })
  })
})

describe('ends belong to an occurrence', () => {
  test('the late end of an old occurrence does not end the new one', async () => {
    // Prometheus waits before it sends: a start lies behind its receipt.
    const startsAt = new Date(Date.parse(await nowIso()) - 60_000).toISOString()
    const id = (await fires(startsAt)).incidentId ?? ''
    await pass(600)
    const again = await nowIso()
    expect((await fires(again)).outcome).toBe('flapped')
    await pass(10)
    const late = await ends(startsAt, new Date(Date.parse(again) - 60_000).toISOString())
    expect(late.outcome).toBe('late_end')
    expect(await noted(id)).toEqual(['late_end'])
    expect(await standing(id)).toMatchObject({ status: 'open', alerts: { firing: 1 } })
  })

  test('an end before its own start ends nothing and leaves a row', async () => {
    const { id, startsAt } = await raised()
    const answer = await ends(startsAt, new Date(Date.parse(startsAt) - 1000).toISOString())
    expect(answer.outcome).toBe('late_end')
    expect(await standing(id)).toMatchObject({ alerts: { firing: 1 } })
  })

  test('a sender that stamps every body with the time of sending opens one incident and starts nothing else', async () => {
    const { id } = await raised()
    const outcomes = []
    for (let body = 0; body < 4; body += 1) {
      await pass(60)
      outcomes.push((await fires(await nowIso())).outcome)
    }
    expect(outcomes).toEqual(['repeated', 'repeated', 'repeated', 'repeated'])
    expect(await standing(id)).toMatchObject({ status: 'open' })
  })

  test('alerts in one group end together, and no other alert of that minute is doubted', async () => {
    const starts = await nowIso()
    const names = Array.from({ length: 30 }, (_, index) => `grouped-${fingerprint}-${index}`)
    const own = { source: 'grafana', startsAt: starts }
    for (const name of names) await send({ ...own, fingerprint: name, groupKey: 'one switch' })
    await send({ ...own, fingerprint: `beside-${fingerprint}` })
    await pass(5)
    const over = { ...own, status: 'resolved' as const, endsAt: await nowIso() }
    const ended = [await send({ ...over, fingerprint: `beside-${fingerprint}` })]
    for (const name of names) ended.push(await send({ ...over, fingerprint: name, groupKey: 'one switch' }))
    const open = await Promise.all(ended.map(({ incidentId }) => standing(incidentId ?? '')))
    expect(open.map((incident) => incident?.alerts)).toEqual(ended.map(() => ({ firing: 0, unknown: 0 })))
  })

  test('a crowd of ends counts as unknown, with one message, until the sender sends again', async () => {
    await webhooks()
    const incidents: string[] = []
    const starts = await nowIso()
    const names = Array.from({ length: 30 }, (_, index) => `crowd-${fingerprint}-${index}`)
    for (const name of names) {
      incidents.push((await send({ source: 'generic', fingerprint: name, startsAt: starts })).incidentId ?? '')
    }
    await pass(5)
    for (const name of names.slice(0, 25)) {
      await send({ source: 'generic', fingerprint: name, status: 'resolved', startsAt: starts, endsAt: await nowIso() })
    }
    await pass(125)
    await watchdog()
    const open = await Promise.all(incidents.map(standing))
    expect(open.filter((incident) => incident?.status === 'resolved')).toHaveLength(0)
    expect(open.filter((incident) => incident?.alerts.unknown === 1)).toHaveLength(25)
    const messages = await Promise.all(incidents.map(told))
    expect(messages.flat()).toEqual(['notice'])
    // One can be seen to have a well resource; the others wait for the sender.
    await send({ source: 'generic', fingerprint: names.at(-1) ?? '', startsAt: starts })
    await pass(15 * 60)
    await watchdog()
    await watchdog()
    const later = await Promise.all(incidents.map(standing))
    expect(later.filter((incident) => incident?.status === 'resolved')).toHaveLength(25)
  })
})

describe('an incident that a person owns', () => {
  async function anna(): Promise<{ operatorId: string; actor: string; name: string }> {
    return { operatorId: await ensureOperator(database.db, 'anna', 'operator'), actor: 'user:anna', name: 'anna' }
  }
  const take = async (id: string) => {
    const by = await anna()
    return await database.db.transaction().execute((trx) => takeIncident(trx, id, by))
  }

  test('gets no reminder and no attempt', async () => {
    await webhooks()
    const { id, startsAt } = await raised()
    await claimed(id)
    await closed(id, 'escalated')
    expect(await take(id)).toEqual({ taken: true })
    await pass(60)
    await ends(startsAt, await nowIso())
    await pass(60)
    expect((await raised()).id).toBe(id)
    expect(await standing(id)).toMatchObject({ status: 'escalated', attempt: 1, owner: { name: 'anna' } })
    expect(await told(id)).toEqual(['escalated', 'quiet', 'owner'])
  })

  test('loses its owner after half a day without an action, with one message', async () => {
    await webhooks()
    const { id } = await raised()
    await take(id)
    expect(await standing(id)).toMatchObject({ status: 'escalated', owner: { name: 'anna' } })
    await pass(12 * 3600 + 60)
    await watchdog()
    await watchdog()
    expect(await standing(id)).toMatchObject({ status: 'escalated', owner: null })
    expect(await told(id)).toEqual(['reminder'])
    expect(await noted(id)).toEqual(['taken', 'owner_lapsed'])
  })

  test('stays with the person who acts on it, and loses a disabled owner', async () => {
    const { id } = await raised()
    await take(id)
    await pass(11 * 3600)
    await database.db.transaction().execute((trx) =>
      append(trx, id, null, {
        kind: 'commented',
        actor: 'user:anna',
        detail: 'on it',
        metadata: { text: 'on it', confidence: null, action: null },
      }),
    )
    await pass(11 * 3600)
    await watchdog()
    expect(await standing(id)).toMatchObject({ owner: { name: 'anna' } })
    await sql`update operator set disabled_at = nightshift_now() where name = 'anna'`.execute(database.owner)
    await watchdog()
    expect(await standing(id)).toMatchObject({ owner: null })
    await sql`update operator set disabled_at = null where name = 'anna'`.execute(database.owner)
  })

  test('is an escalated incident like any other after it was given back', async () => {
    const { id } = await raised()
    await take(id)
    const given = await database.db
      .transaction()
      .execute((trx) => releaseOwnership(trx, id, { actor: 'user:anna', name: 'anna' }))
    expect(given).toBe(true)
    expect(await standing(id)).toMatchObject({ status: 'escalated', owner: null })
  })
})

describe('the start of the next attempt', () => {
  test('it gets the earlier attempts, what people wrote and denied, and why the alert returned', async () => {
    const { id } = await raised()
    await claimed(id)
    await database.db.transaction().execute(async (trx) => {
      await append(trx, id, null, {
        kind: 'commented',
        actor: 'user:anna',
        detail: 'the disk was replaced yesterday',
        metadata: { text: 'the disk was replaced yesterday', confidence: null, action: null },
      })
      await append(trx, id, null, {
        kind: 'approval_decided',
        actor: 'user:ben',
        detail: 'denied',
        metadata: {
          approvalId: 'apr_1',
          callId: 'c1_0',
          decision: 'deny',
          reason: 'not during the backup',
          via: 'api',
          status: 'denied',
          actionDigest: 'd',
        },
      })
      await append(trx, id, 1, wrote('c2_0', [{ kind: 'shard', id: 'db-osl-1' }]) as never)
      await append(trx, id, 1, verified('c2_0', 'held') as never)
    })
    await closed(id, 'repaired')
    await pass(60)
    await send({ status: 'resolved', endsAt: await nowIso(), startsAt: '2026-11-21T01:00:00Z', startGiven: false })
    await raised()
    expect(await earlierAttempts(database.db, id)).toMatchObject([
      { attempt: 1, ending: 'resolved, repaired', writes: [{ tool: 'converge_shard', verified: 'held' }] },
    ])
    expect(await operatorNotes(database.db, id)).toMatchObject([
      { by: 'user:anna', kind: 'note', text: 'the disk was replaced yesterday' },
      { by: 'user:ben', kind: 'denial', text: 'not during the backup' },
    ])
    expect(await whyReopened(database.db, id)).toBe('The incident came back: its alert fires again')
  })

  test.each([
    ['repaired', 'a hint'],
    ['no_fault', 'no hint'],
    ['escalated', 'no hint'],
  ] as const)('a leader that ended %s is %s for its followers', async (how, expected) => {
    const { id } = await raised()
    await claimed(id)
    await sql`update incident set group_id = ${id} where id = ${id}`.execute(database.db)
    await closed(id, how)
    expect((await hintLeader(database.db, id)) === null ? 'no hint' : 'a hint').toBe(expected)
  })
})

describe('a storm of ends', () => {
  test('1,000 ends at once leave a row each and one message, and close nothing', async () => {
    await webhooks()
    const starts = new Date(Date.parse(await nowIso()) - 60_000).toISOString()
    const names = Array.from({ length: 1_000 }, (_, index) => `${fingerprint}-${index}`)
    await sql`
      insert into incident (id, type, severity, title)
      select 'inc_storm_' || name, 'storm', 'warning', name from unnest(${names}::text[]) name`.execute(database.db)
    await sql`
      insert into alert (id, source, fingerprint, status, name, labels, annotations, links, starts_at, incident_id, raw)
      select 'alr_' || name, 'storm', name, 'firing', 'storm', '{}', '{}', '{}', ${starts}::timestamptz,
        'inc_storm_' || name, '{}' from unnest(${names}::text[]) name`.execute(database.db)
    await stopClock(database.owner)
    await allAtOnce(names, (name) =>
      send({ source: 'storm', fingerprint: name, status: 'resolved', startsAt: starts, endsAt: null }),
    )
    const { rows } = await sql<{ status: string; count: number }>`
      select status, count(*)::int as count from alert where source = 'storm' group by 1`.execute(database.db)
    expect(rows).toEqual([{ status: 'unknown', count: 1_000 }])
    const open = await sql<{ count: number }>`
      select count(*)::int as count from incident where type = 'storm' and status = 'open'`.execute(database.db)
    expect(open.rows).toEqual([{ count: 1_000 }])
    const notices = await sql<{ count: number }>`
      select count(*)::int as count from delivery where notification->>'trigger' = 'notice'
        and incident_id like 'inc_storm_%'`.execute(database.db)
    expect(notices.rows).toEqual([{ count: 1 }])
  })
})

describe('incidents that are left to people', () => {
  test('an incident below the required severity is left to people and says why', async () => {
    await setting('agent.investigate', 'severity>=critical')
    const { id } = await raised()
    expect(await standing(id)).toMatchObject({
      status: 'open',
      keptReason: 'agent.investigate requires severity critical or above, and this incident is warning',
    })
  })

  test('a type with a setting of its own may still be investigated', async () => {
    await setting('agent.investigate', 'none')
    await setting('agent.investigate.disk_pressure', 'all')
    const { id } = await raised()
    expect(await standing(id)).toMatchObject({ keptReason: null })
  })
})
