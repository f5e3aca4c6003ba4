import { beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../db/access/principals.ts'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { ingestAlert, ingestBody } from '../../db/alerts/ingest-body.ts'
import { requestApproval } from '../../db/approvals/ask.ts'
import { decide } from '../../db/approvals/decide.ts'
import { consumeApproval, readDecision } from '../../db/approvals/settle.ts'
import { mintDecisionToken } from '../../db/approvals/tokens.ts'
import type { Db } from '../../db/connect.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { eventsOf } from '../../db/log/events.ts'
import { verifyIncident } from '../../db/verify/incident.ts'
import type { Alert } from '../../domain/alert.ts'
import type { DecisionOutcome } from '../../domain/approval.ts'
import type { Principal } from '../../domain/operator.ts'
import { anAlert, claimedIncident, useDatabase } from '../support/database.ts'

describe('races', () => {
  /** `RACE_ROUNDS=2000 npm test -- test/db/races` plays as many as an afternoon allows. */
  const rounds = Number(process.env.RACE_ROUNDS ?? 16)
  const database = useDatabase()
  const people: Principal[] = []

  beforeAll(async () => {
    for (const name of ['anna', 'bert', 'cleo']) {
      const operatorId = await ensureOperator(database.db, name, 'approver')
      const token = await createToken(database.db, { name, role: 'approver', operatorId })
      people.push((await principalOf(database.db, token)) as Principal)
    }
  })

  async function asked(expirySeconds: number): Promise<{ id: string; incidentId: string }> {
    const incidentId = await claimedIncident(database.db)
    const { id } = await database.db.transaction().execute((trx) =>
      requestApproval(trx, {
        ...{ incidentId, attempt: 1, turn: 1, callId: 'c1_0', tool: 'execute_migration', args: {}, targets: [] },
        ...{
          reason: 'the host is dead',
          actionDigest: incidentId,
          stateFingerprint: '',
          risk: 'high',
          reversible: true,
        },
        ...{ required: 1, dryRun: { possible: true, summary: '', details: {} }, expirySeconds, replaces: null },
        ...{ stepKey: `${incidentId}:ask`, actor: 'agent:incident-investigator' },
      }),
    )
    return { id, incidentId }
  }

  const tokenOf = async (principal: Principal, id: string, decision: 'approve' | 'deny' = 'approve') => {
    const minted = await mintDecisionToken(database.db, principal, id, decision)
    return minted.outcome === 'minted' ? minted.token : 'none'
  }

  async function race(round: number): Promise<void> {
    const { db } = database
    // Some are decided around the very moment they expire: the database's clock says which side of it.
    const isLate = round % 3 === 0
    const { id, incidentId } = await asked(isLate ? 1 : 600)
    const foreign = await tokenOf(people[0] as Principal, (await asked(600)).id)
    const tokens = await Promise.all(people.map((person) => tokenOf(person, id)))
    const denials = await Promise.all(people.map((person) => tokenOf(person, id, 'deny')))
    if (isLate) {
      await sql`select pg_sleep(greatest(0, extract(epoch from expires_at - nightshift_now())::float8 - 0.05 + ${(round % 10) / 100}))
      from approval where id = ${id}`.execute(db)
    }
    const say = (token: string, decision: 'approve' | 'deny', via: string) => () =>
      decide(db, { approvalId: id, incidentId: null, token, decision, reason: 'because', via })
    const contenders: (() => Promise<unknown>)[] = [
      ...tokens.flatMap((token) => ['api', 'signal', 'update', 'slack'].map((via) => say(token, 'approve', via))),
      ...denials.map((token) => say(token, 'deny', 'page')),
      say(foreign, 'approve', 'api'),
      say('made-up', 'approve', 'signal'),
      () => readDecision(db, id),
      () => readDecision(db, id),
    ]
    if (round % 4 === 1) contenders.push(() => cancel(incidentId))
    contenders.sort(() => Math.random() - 0.5)
    const answers = await Promise.all(contenders.map((contender) => contender()))

    const outcomes = answers.filter(
      (each): each is DecisionOutcome => typeof each === 'object' && each !== null && 'outcome' in each,
    )
    const recorded = outcomes.filter(({ outcome }) => outcome === 'recorded')
    const { status } = await db.selectFrom('approval').select('status').where('id', '=', id).executeTakeFirstOrThrow()
    const rows = (await eventsOf(db, incidentId)).filter(({ kind }) =>
      /^approval_(decided|expired|withdrawn)$/.test(kind),
    )
    const final = rows.filter((row) => row.kind !== 'approval_decided' || row.metadata.status !== 'pending')
    expect(recorded.length).toBeLessThanOrEqual(1)
    // Approved and then cancelled is two rows in that order; everything else is one.
    expect([1, status === 'withdrawn' && recorded.length === 1 ? 2 : 1]).toContain(final.length)
    if (status === 'approved' || status === 'denied') expect(recorded).toHaveLength(1)
    if (status === 'expired') expect(recorded).toHaveLength(0)
    for (const answer of outcomes) if ('message' in answer) expect(answer.message).toMatch(/\w/)
    const uses = await Promise.all([1, 2, 3].map(() => db.transaction().execute((trx) => consumeApproval(trx, id))))
    expect(uses.filter(Boolean)).toHaveLength(status === 'approved' ? 1 : 0)
  }

  async function cancel(incidentId: string): Promise<void> {
    await database.db
      .transaction()
      .execute((trx) =>
        closeIncident(
          trx,
          incidentId,
          null,
          { status: 'cancelled', reason: 'enough' },
          { actor: 'user:vera', stepKey: null },
        ),
      )
  }

  test(`every door at the same moment, ${rounds} times: one outcome, every loser is told why, and at most one use`, async () => {
    for (let round = 0; round < rounds; round += 4) {
      await Promise.all([0, 1, 2, 3].map((n) => race(round + n)))
    }
  }, 1_200_000)
})

describe('take body', () => {
  const whole = useDatabase()
  const single = useDatabase()

  /** Three days of three alerts: begun, repeated, ended, late, begun again, an end without a beginning, a new start. */
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
      [
        firing('a', { startsAt: '2099-01-01T00:00:00Z' }),
        firing('b'),
        ended('c', { startsAt: at(40), endsAt: at(60) }),
      ],
    ]
  }

  /** All that is stored, without what is random or a time. */
  async function stored(db: Db) {
    const incidents = await db.selectFrom('incident').selectAll().orderBy('createdAt').execute()
    const place = new Map(incidents.map(({ id }, index) => [id, index]))
    const events = await db.selectFrom('incidentEvent').selectAll().orderBy('incidentId').orderBy('seq').execute()
    const alerts = await db.selectFrom('alert').selectAll().orderBy('fingerprint').orderBy('firstSeenAt').execute()
    for (const { id } of incidents) expect((await verifyIncident(db, id)).found).toEqual([])
    return {
      incidents: incidents.map(({ type, severity, status, title, nextSeq, keptReason, reopened, previousId }) => ({
        ...{ type, severity, status, title, nextSeq, keptReason, reopened, follows: place.get(previousId ?? '') },
      })),
      events: events
        .map(({ incidentId, seq, kind, action, actor, detail, metadata }) => ({
          ...{ of: place.get(incidentId), seq, kind, action, actor, detail, metadata },
        }))
        .sort((a, b) => (a.of ?? 0) - (b.of ?? 0) || a.seq - b.seq),
      alerts: alerts.map(({ fingerprint, status, count, startsAt, startSeen, incidentId, unknownWhy }) => ({
        ...{ fingerprint, status, count, startsAt, startSeen, of: place.get(incidentId ?? ''), unknownWhy },
      })),
    }
  }

  test('a body leaves behind exactly what its alerts leave behind one by one, whatever they are', async () => {
    for (const db of [whole.db, single.db])
      await db
        .insertInto('platformConfig')
        .values({ key: 'agent.investigate', value: 'severity>=warning' } as never)
        .execute()
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

  test('twenty senders deliver the same alerts in twenty orders at once: each opens one incident, and each sight counts', async () => {
    const alerts = Array.from({ length: 60 }, (_, n) => anAlert({ fingerprint: `crowd-${n}`, name: `crowd_${n % 7}` }))
    const bodies = Array.from({ length: 20 }, (_, shift) => [...alerts.slice(shift * 3), ...alerts.slice(0, shift * 3)])
    const taken = (await Promise.all(bodies.map((body) => ingestBody(whole.db, body)))).flat()
    expect(taken.filter(({ outcome }) => outcome === 'opened')).toHaveLength(60)
    const rows = await whole.db.selectFrom('alert').select('count').where('fingerprint', 'like', 'crowd-%').execute()
    expect(rows.map(({ count }) => count)).toEqual(Array.from({ length: 60 }, () => 20))
  })

  test('an alert that the database cannot hold is refused and named; the others of its body are stored', async () => {
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
})
