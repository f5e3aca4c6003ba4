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

/** `approval.read_at`, `insert effect`, or a table as a whole: the first column of the table in docs/explanation/safety.md. */
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

type Verdict = 'refused' | 'found' | 'missed' | 'untried'

/** Does anything that `nightshift verify --all` looks at differ, within the transaction that altered something? The likeliest comes first. */
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
  // What is at work differs from what is over.
  const chosen = ['incident', 'approval'].includes(table.name)
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

test('whatever the services may alter is found, or the safety page says why it is out of reach', async () => {
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

test.each([
  ['operator', 'operator.changed', sql`max_risk = 'critical', role = 'admin'`, 'name'],
  ['operator', 'operator.changed', sql`slack_user_id = 'U012AB3CD'`, 'name'],
  ['operator', 'operator.changed', sql`incident_types = '["other"]'`, 'name'],
  ['api_token', 'token.revoked', sql`expires_at = nightshift_now() + interval '9 years'`, 'id'],
  ['standing_grant', 'grant.revoked', sql`uses_left = uses_left + 1`, 'id'],
  ['source', 'source.put', sql`url = 'http://10.9.8.7:9090'`, 'name'],
  ['source', 'source.put', sql`options = '{"x": 1}'`, 'name'],
  ['device', 'device.changed', sql`mode = 'all'`, 'id'],
  ['device', 'device.changed', sql`url_env = 'OTHER_DEVICE_MESH_URL'`, 'id'],
  ['device', 'device.called', sql`url = 'http://10.9.8.7'`, 'id'],
  ['device', 'device.changed', sql`terms = jsonb_set(terms, '{capabilities}', '["shell.eval"]')`, 'id'],
] as const)(
  'a row of the audit about %s tells of no other change than its own: %s (%#)',
  async (table, what, change, key) => {
    await api.db.transaction().execute(async (trx) => {
      const { after } = await trx
        .selectFrom('rowChange' as never)
        .select(sql<number>`coalesce(max(id), 0)`.as('after'))
        .executeTakeFirstOrThrow()
      await sql`savepoint one`.execute(trx)
      const { rows } = await sql<{ subject: string }>`
      update ${sql.table(table)} set ${change} where ctid = (select min(ctid) from ${sql.table(table)}) returning ${sql.ref(key)} as subject`.execute(
        trx,
      )
      expect(rows).toHaveLength(1)
      const [{ subject } = { subject: '' }] = rows
      await recordAudit(trx, { who: 'approver', what, subject, detail: 'From viewer to viewer: a typo' })
      expect((await verifyChanges(trx, after)).differences.map((each) => each.subject)).toEqual([
        expect.stringContaining(table.replaceAll('_', ' ')),
      ])
      await sql`rollback to savepoint one`.execute(trx)
    })
  },
)
