import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type RawBuilder, sql } from 'kysely'
import type { Trx } from '../../../db/connect.ts'
import { recordAudit, verifyAudit } from '../../../db/log/audit.ts'
import { verifyGrants } from '../../../db/verify/grants.ts'
import { verifyIncident } from '../../../db/verify/incident.ts'
import { verifyChanges, verifyKept } from '../../../db/verify/row-changes.ts'
import type { Findings } from '../../../domain/chain.ts'
import { useApi } from '../../support/api.ts'
import { type Column, copyOf, otherValues, readCatalogue, type Table } from './alter.ts'
import { aSitesLife } from './life.ts'

const api = useApi()
beforeAll(async () => void (await aSitesLife(api)))

/**
 * `approval.read_at`, `insert effect`, or a table as a whole: the first column of the table in
 * docs/explanation/safety.md.
 */
function outOfReach(): Set<string> {
  const page = readFileSync('docs/explanation/safety.md', 'utf8')
  const section = page.split('### What `verify` does not reach')[1]?.split('\n#')[0] ?? ''
  const rows = section.split('\n').filter((line) => /^\| `/.test(line))
  return new Set(
    rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name as string)),
  )
}

/** What nobody may put into that list; when a token was used last gives nobody anything. */
const never =
  /^(?!api_token\.last_used_at$)(?:insert |delete )?(?:approval_decision|standing_grant|operator|api_token|decision_token|source|platform_config|expectation)\b/

type AuditWhat = Parameters<typeof recordAudit>[1]['what']
type Verdict = 'refused' | 'found' | 'missed' | 'untried'

/**
 * Does anything that `nightshift verify --all` looks at differ, within the transaction that altered
 * something? The likeliest comes first.
 */
async function differs(trx: Trx, changesAfter: number): Promise<string | null> {
  const one = ({ differences: [first] }: Findings) => first && `${first.subject}: ${first.what}`
  const changed = one(await verifyChanges(trx, changesAfter))
  if (changed) return changed
  for (const { id } of await trx.selectFrom('incident').select('id').execute()) {
    const found = one(await verifyIncident(trx, id))
    if (found) return found
  }
  const found = one(await verifyKept(trx)) ?? one(await verifyGrants(trx))
  return found ?? (await verifyAudit(trx)).problem?.what ?? null
}

/** Does it, looks, and takes it back. */
async function tried(trx: Trx, statement: RawBuilder<unknown>, changesAfter: number): Promise<Verdict> {
  await sql`savepoint one`.execute(trx)
  try {
    const { numAffectedRows = 0n } = await statement.execute(trx)
    if (numAffectedRows === 0n) return 'untried'
    return (await differs(trx, changesAfter)) ? 'found' : 'missed'
  } catch (error) {
    const code = String((error as { code?: unknown }).code)
    // A body is held to its digest by the table itself.
    if (code === '42501' || (error as { constraint?: unknown }).constraint === 'result_body_digest') return 'refused'
    if (/^2[23]/.test(code)) return 'untried'
    throw error
  } finally {
    await sql`rollback to savepoint one`.execute(trx)
  }
}

/** One that was missed counts, however many others were found. */
function worst(verdicts: readonly Verdict[]): Verdict {
  for (const verdict of ['missed', 'found', 'refused'] as const) if (verdicts.includes(verdict)) return verdict
  return 'untried'
}

async function alterTable(trx: Trx, table: Table, salt: number, after: number): Promise<Map<string, Verdict>> {
  const { rows } = await sql<{ ctid: string }>`select ctid::text from ${sql.table(table.name)} order by ctid`.execute(
    trx,
  )
  // Work under way differs from what is over.
  const chosen = ['incident', 'approval', 'site_policy', 'trust_stop'].includes(table.name)
    ? [rows.at(0), rows.at(-1)]
    : [rows.at(salt % rows.length)]
  const places = [...new Set(chosen)].flatMap((row) => (row ? [row.ctid] : []))
  const at = (ctid: string) => sql`where ctid = ${ctid}::tid`
  const verdicts = new Map<string, Verdict>()
  for (const column of table.columns) {
    const { name, mayUpdate } = column
    verdicts.set(
      `${table.name}.${name}`,
      mayUpdate ? await alterColumn(trx, table, column, { places, salt, after }) : 'refused',
    )
  }
  const each = async (make: (ctid: string) => RawBuilder<unknown>) => {
    const tries: Verdict[] = []
    for (const ctid of places) tries.push(await tried(trx, make(ctid), after))
    return worst(tries)
  }
  verdicts.set(`insert ${table.name}`, table.mayInsert ? await each((ctid) => copyOf(table, ctid, salt)) : 'refused')
  verdicts.set(
    `delete ${table.name}`,
    table.mayDelete ? await each((ctid) => sql`delete from ${sql.table(table.name)} ${at(ctid)}`) : 'refused',
  )
  return verdicts
}

async function alterColumn(
  trx: Trx,
  table: Table,
  column: Column,
  { places, salt, after }: { places: string[]; salt: number; after: number },
): Promise<Verdict> {
  const tries: Verdict[] = []
  for (const ctid of places) {
    for (const value of otherValues(column, salt)) {
      if (tries.at(-1) === 'missed') break
      const typed = sql`(${value})::${sql.raw(column.type)}`
      const statement = sql`update ${sql.table(table.name)} set ${sql.ref(column.name)} = ${typed}
        where ctid = ${ctid}::tid and ${sql.ref(column.name)}::text is distinct from ${typed}::text`
      tries.push(await tried(trx, statement, after))
    }
  }
  return worst(tries)
}

test('every change that the services may make is found, or the safety page says why it cannot be found', async () => {
  const listed = outOfReach()
  expect([...listed].filter((name) => never.test(name))).toEqual([])
  await fc.assert(
    fc.asyncProperty(fc.nat(), async (salt) => {
      const verdicts = new Map<string, Verdict>()
      await api.db.transaction().execute(async (trx) => {
        const { after } = await trx
          .selectFrom('rowChange' as never)
          .select(sql<number>`coalesce(max(id), 0)`.as('after'))
          .executeTakeFirstOrThrow()
        expect(await differs(trx, 0)).toBeNull()
        for (const table of await readCatalogue(trx)) {
          if (listed.has(table.name)) continue
          for (const [name, verdict] of await alterTable(trx, table, salt, after)) verdicts.set(name, verdict)
        }
      })
      const named = (wanted: Verdict) => [...verdicts].filter(([, verdict]) => verdict === wanted).map(([name]) => name)
      const unlisted = (names: string[]) => names.filter((name) => !listed.has(name))
      expect({ missed: unlisted(named('missed')), untried: unlisted(named('untried')) }).toEqual({
        missed: [],
        untried: [],
      })
      // A name that is listed and found after all, or that is no more, has no place there.
      const idle = [...listed].filter((name) => verdicts.has(name) && verdicts.get(name) !== 'missed')
      expect(idle).toEqual([])
      process.stderr.write(
        `alterations: ${verdicts.size} tried, ${named('refused').length} refused, ${named('found').length} found, ${named('missed').length} out of reach\n`,
      )
    }),
    { numRuns: 1 },
  )
})

/**
 * Does it as the services' role with this entry beside it, says what `verify` finds of that, and
 * takes it back.
 */
async function foundBeside(statement: RawBuilder<unknown>, what: AuditWhat, subject: string, detail: string) {
  return await api.db.transaction().execute(async (trx) => {
    const { after } = await trx
      .selectFrom('rowChange' as never)
      .select(sql<number>`coalesce(max(id), 0)`.as('after'))
      .executeTakeFirstOrThrow()
    await sql`savepoint one`.execute(trx)
    await statement.execute(trx)
    await recordAudit(trx, { who: 'approver', what, subject, detail })
    const found = (await verifyChanges(trx, after)).differences.map((each) => each.subject)
    await sql`rollback to savepoint one`.execute(trx)
    return found
  })
}

/** The subject of the table's first row: what its entries are about. */
async function firstOf(table: string, key: string): Promise<string> {
  const { rows } = await sql<{ subject: string }>`
    select ${sql.ref(key)} as subject from ${sql.table(table)} order by ctid limit 1`.execute(api.db)
  return rows[0]?.subject ?? ''
}

const first = (table: string) => sql`ctid = (select min(ctid) from ${sql.table(table)})`
const plain = 'From viewer to viewer: a typo'
const rights = 'risks up to high, all incident types'

test.each<[table: string, what: AuditWhat, change: RawBuilder<unknown>, key: string, detail: string]>([
  ['operator', 'operator.changed', sql`max_risk = 'critical', role = 'admin'`, 'name', plain],
  ['operator', 'operator.changed', sql`slack_user_id = 'U012AB3CD'`, 'name', plain],
  ['operator', 'operator.changed', sql`pagerduty_user_id = 'PLH1HKV'`, 'name', plain],
  ['operator', 'operator.changed', sql`incident_types = '["other"]'`, 'name', plain],
  // The other way round, and rights in the words of a reason.
  ['operator', 'operator.changed', sql`role = 'admin'`, 'name', `From admin, ${rights} to viewer, ${rights}`],
  ['operator', 'operator.changed', sql`role = 'admin'`, 'name', `As viewer, ${rights}: once admin, ${rights}`],
  ['api_token', 'token.revoked', sql`expires_at = nightshift_now() + interval '9 years'`, 'id', plain],
  ['standing_grant', 'grant.revoked', sql`uses_left = uses_left + 1`, 'id', plain],
  ['source', 'source.put', sql`url = 'http://10.9.8.7:9090'`, 'name', plain],
  ['source', 'source.put', sql`options = '{"x": 1}'`, 'name', plain],
  ['source', 'source.put', sql`headers = '{"X-Scope-OrgID": "another"}'`, 'name', plain],
  ['source', 'source.put', sql`scheme = 'Token'`, 'name', plain],
  ['source', 'source.put', sql`cert_file = '/tmp/mine.pem', key_file = '/tmp/mine.key'`, 'name', plain],
  [
    'source',
    'source.put',
    sql`url = 'http://10.9.8.7:909', credential = null`,
    'name',
    'prometheus at http://10.9.8.7:9090',
  ],
  [
    'source',
    'source.put',
    sql`ca_file = '/tmp/mine.pem'`,
    'name',
    'prometheus at http://127.0.0.1:9 with env:NIGHTSHIFT_SOURCE_METRICS',
  ],
  ['platform_config', 'config.put', sql`value = '99'`, 'key', 'Version 1'],
  ['device', 'device.changed', sql`mode = 'all'`, 'id', plain],
  ['device', 'device.changed', sql`url_env = 'OTHER_DEVICE_MESH_URL'`, 'id', plain],
  ['device', 'device.called', sql`url = 'http://10.9.8.7'`, 'id', plain],
  ['device', 'device.changed', sql`terms = jsonb_set(terms, '{capabilities}', '["shell.eval"]')`, 'id', plain],
  // What a device does by itself tells of no right that it is given.
  ['device', 'device.manifest_renewed', sql`url = 'https://10.9.8.7'`, 'id', 'Manifest man_1'],
  ['device', 'device.enrolled', sql`mode = 'sudo'`, 'id', 'Enrolled, manifest man_1'],
  ['device', 'device.manifest_renewed', sql`refresh_sha256 = 'mine'`, 'id', 'Manifest man_1'],
  ['device', 'device.manifest_renewed', sql`manifest_days = 30`, 'id', 'Manifest man_1'],
])('a row of the audit about %s covers no change but its own: %s (%#)', async (table, what, change, key, detail) => {
  const statement = sql`update ${sql.table(table)} set ${change} where ${first(table)}`
  const found = await foundBeside(statement, what, await firstOf(table, key), detail)
  expect(found).toEqual([expect.stringContaining(table.replaceAll('_', ' '))])
})

const digest = (letter: string) => letter.repeat(64)
const newToken = (sha: string, more: string) => sql`
  insert into api_token (id, name, prefix, sha256, role, operator_id, scopes, expires_at)
  select 'tok_made', 'laptop', 'nst_', ${sha}, 'admin', id, ${sql.raw(more)} from operator where name = 'admin'`

test.each<[thing: string, what: AuditWhat, subject: string, detail: string, statement: RawBuilder<unknown>]>([
  [
    'a token for all and for ever by the words of a narrow one',
    'token.minted',
    'tok_made',
    'Minted admin of admin for read until 2026-11-27 10:00 UTC: laptop',
    newToken(digest('a'), `'[]', null`),
  ],
  [
    'a key of devices by the words of another',
    'device.keys_changed',
    'mesh',
    'Requests are signed by key-1',
    sql`insert into mesh_key (id, public_key) values ('key-mine', 'mine')`,
  ],
  [
    'an address of a credential by the words of a source elsewhere',
    'source.put',
    'metrics',
    'prometheus at http://127.0.0.1:9 with env:NIGHTSHIFT_SOURCE_METRICS',
    sql`insert into credential_address (reference, address) values ('env:NIGHTSHIFT_SOURCE_METRICS', 'http://10.9.8.7')`,
  ],
  [
    'an address of another credential whose name begins alike',
    'source.put',
    'metrics',
    'prometheus at http://10.9.8.7 with env:NIGHTSHIFT_SOURCE_METRICS_2',
    sql`insert into credential_address (reference, address) values ('env:NIGHTSHIFT_SOURCE_METRICS', 'http://10.9.8.7')`,
  ],
])('%s is a difference', async (_, what, subject, detail, statement) => {
  expect(await foundBeside(statement, what, subject, detail)).toHaveLength(1)
})

test('one row of the audit covers one decision token, with its person and verdict', async () => {
  const { rows } = await sql<{ id: string }>`select id from approval where status = 'pending' limit 1`.execute(api.db)
  const id = rows[0]?.id ?? ''
  const tokens = (decision: string, ...digests: string[]) => sql`
    insert into decision_token (sha256, approval_id, operator_id, decision, purpose, binds, expires_at)
    select sha, ${id}, operator.id, ${decision}, 'decision', 'x', nightshift_now()
    from operator, unnest(${digests}::text[]) as sha where name = 'approver'`
  const beside = async (statement: RawBuilder<unknown>) =>
    await foundBeside(statement, 'approval.token_minted', id, 'Minted a decision token: deny')
  expect(await beside(tokens('deny', digest('b')))).toEqual([])
  expect(await beside(tokens('approve', digest('b')))).toHaveLength(1)
  expect(await beside(tokens('deny', digest('b'), digest('c')))).toHaveLength(1)
})

test('a mark with the words of a narrower mark is a difference', async () => {
  const { rows } = await sql<{ detail: string }>`
    select detail from audit where what = 'expectation.marked' limit 1`.execute(api.db)
  const detail = rows[0]?.detail ?? ''
  expect(detail).toMatch(/^Expects incidents of type disk_pressure until .* UTC, seen as \w{12}: a backup$/)
  const mark = (type: string) => sql`
    insert into expectation (id, subject, type, until, reason, state, created_by)
    select 'exp_made', 'type', ${type}, until, reason, state, created_by from expectation limit 1`
  expect(await foundBeside(mark('disk_pressure'), 'expectation.marked', 'exp_made', detail)).toEqual([])
  expect(await foundBeside(mark('host_down'), 'expectation.marked', 'exp_made', detail)).toHaveLength(1)
})
