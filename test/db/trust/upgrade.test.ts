import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { connect, type Db } from '../../../db/connect.ts'
import { systemScope } from '../../../db/scope.ts'
import { readSettings } from '../../../db/settings.ts'
import { setTrustOf, unconfirmedPairs } from '../../../db/trust/levels.ts'
import { setTrust } from '../../../db/trust/set.ts'
import { verifyKept } from '../../../db/verify/row-changes.ts'
import type { TrustPair } from '../../../domain/trust.ts'
import { migrateTo, migrateToLatest } from '../../../migrations/migrate.ts'
import { emptyDatabase } from '../../support/broker.ts'
import { pair, playPair } from '../../support/played-pair.ts'

const database = {} as { db: Db; owner: Db }
let drop: () => Promise<void>

beforeAll(async () => {
  const empty = await emptyDatabase()
  drop = empty.drop
  const connected = { db: connect(empty.url, { max: 4 }), owner: connect(empty.url, { owner: true, max: 2 }) }
  Object.assign(database, connected)
  await migrateTo(empty.url, '0070-answered-as')
  const judged = [
    ['inc_a', 'replication_lag', 'converge_shard', 'run', 'REVERSIBLE_NEAR'],
    ['inc_b', 'replication_lag', 'converge_shard', 'run', 'REVERSIBLE_NEAR'],
    ['inc_c', 'host_down', 'execute_migration', 'run', 'APPROVED'],
    ['inc_d', 'disk_pressure', 'converge_shard', 'ask', 'REVERSIBLE_FAR'],
    ['inc_e', 'manual_change', 'converge_shard', 'run', 'REVERSIBLE_NEAR'],
  ]
  for (const [id, type, tool, verdict, code] of judged) {
    const metadata = JSON.stringify({ callId: 'c1_0', tool, verdict, code, effect: 'write' })
    await sql`insert into incident (id, type, severity, title) values (${id}, ${type}, 'warning', 'x')`.execute(
      connected.owner,
    )
    await sql`
      insert into incident_event (incident_id, attempt, seq, kind, action, actor, detail, metadata, at, prev_hash, hash)
      values (${id}, 1, 1, 'call_judged', 'investigated', 'agent:incident-investigator', '', ${metadata}, now(), '', ${id})`.execute(
      connected.owner,
    )
  }
  await migrateToLatest(empty.url)
})
afterAll(async () => {
  await database.db.destroy()
  await database.owner.destroy()
  await drop()
})

test('pairs that ran without approval in an older version keep acting and are named until a person confirms them, and all others ask', async () => {
  const { db } = database
  const play = playPair(database)
  expect(await unconfirmedPairs(systemScope(db))).toEqual([pair])
  expect(await setTrustOf(db, pair)).toMatchObject({ level: 'act', cause: 'upgrade' })
  expect(await setTrustOf(db, { type: 'disk_pressure', tool: 'converge_shard' })).toBeNull()
  expect((await play.propose()).outcome).toMatchObject({ kind: 'run' })

  const anna = await play.person('anna')
  expect(await play.set(anna, 'act', { seen: 'nothing' })).toMatchObject({ outcome: 'moved_on' })
  expect(await play.set(anna, 'act')).toMatchObject({ outcome: 'set' })
  expect(await unconfirmedPairs(systemScope(db))).toEqual([])
  expect((await verifyKept(db)).differences.filter(({ subject }) => !subject.startsWith('inc_'))).toEqual([])
})

test('a type has one level under its old and its new spelling, so a withdrawal under one is confirmed under neither', async () => {
  const { db, owner } = database
  const [former, today] = ['my_sqldown', 'mysql_down'].map((type) => ({ type, tool: pair.tool })) as [
    TrustPair,
    TrustPair,
  ]
  const said = { incidentType: former.type, tool: former.tool, level: 'act' as const, cause: 'upgrade' as const }
  await owner
    .insertInto('trustChange')
    .values({ ...said, setBy: null, incidentId: null })
    .execute()
  expect(await unconfirmedPairs(systemScope(db))).toEqual([former])
  const anna = await playPair(database).person('anna')
  const taken = { to: 'propose' as const, reason: 'not here', seen: '', risk: 'low' }
  expect(await setTrust(db, anna, today, taken, await readSettings(db, {}))).toMatchObject({ outcome: 'set' })
  expect(await setTrustOf(db, former)).toMatchObject({ level: 'propose', cause: 'person' })
  expect(await unconfirmedPairs(systemScope(db))).toEqual([])
})
