import { sql } from 'kysely'
import type { Findings } from '../../domain/chain.ts'
import type { Db, Trx } from '../connect.ts'
import { type Notes, takeNotes } from './findings.ts'
import { inSnapshot } from './incident.ts'
import { type PersonNames, type RowChange, type Rule, rules, type TransactionRows } from './row-rules.ts'

/**
 * Selects a recorded change, the row before it, and whether it was made in a role of the services
 * or of the owner.
 */
const changes = sql`
  select change.id, change.tx::text, change.at::text, change.role, change.of_table, change.row_key, change.op, change.kept,
    (select earlier.kept from row_change as earlier
      where earlier.of_table = change.of_table and earlier.row_key = change.row_key and earlier.id < change.id
      order by earlier.id desc limit 1) as before,
    exists (select from pg_roles as made join pg_class as held on held.oid = 'row_change'::regclass
      where made.rolname = change.role and pg_has_role(made.oid, 'nightshift_app', 'usage')
        and not pg_has_role(made.oid, held.relowner, 'usage')) as is_services
  from row_change as change`

/** Number of changes in one step, which takes about a second. */
const stepSize = 2_000

/**
 * Compares recorded changes after the change number `after` with audit log and incident logs.
 * Returns the last change; null at the end.
 */
export async function verifyChanges(db: Db | Trx, after: number): Promise<Findings & { last: number | null }> {
  return await inSnapshot(db, async (trx) => {
    const { rows } = await sql<RowChange>`
      ${changes} where change.id > ${after} order by change.id limit ${stepSize}`.execute(trx)
    const last = rows.length < stepSize ? null : (rows.at(-1)?.id ?? null)
    return { ...(await holdChanges(trx, rows)), last }
  })
}

/**
 * Compares recorded changes of an incident's rows: its own row, its alerts, decision tokens and
 * standing grants.
 */
export async function verifyChangesOf(db: Db | Trx, incidentId: string): Promise<Findings> {
  return await inSnapshot(db, async (trx) => {
    const { rows } = await sql<RowChange>`
      with own (of_table, row_key) as (
        values ('incident', ${incidentId})
        union all select 'alert', id from alert where incident_id = ${incidentId}
        union all select 'decision_token', token.sha256 from decision_token as token
          join approval on approval.id = token.approval_id where approval.incident_id = ${incidentId}
        union all select 'standing_grant', given.id from standing_grant as given
          join approval on approval.id = given.approval_id where approval.incident_id = ${incidentId}
      )
      ${changes} join own using (of_table, row_key) order by change.id`.execute(trx)
    return await holdChanges(trx, rows)
  })
}

async function holdChanges(trx: Trx, changes: readonly RowChange[]): Promise<Findings> {
  const notes = takeNotes()
  const made = changes.filter(({ op }) => op !== 'kept')
  const told = await toldIn(trx, [...new Set(made.map(({ tx }) => tx))])
  const names = await namesOf(trx)
  const nothing: TransactionRows = { audit: [], events: [] }
  for (const change of made) {
    const rule = rules[change.ofTable]
    if (!rule) continue
    notes.check(rule.inPart ? rule.kind : `changes of ${rule.kind}`)
    if (!isTold(rule, change, told.get(change.tx) ?? nothing, names))
      notes.differ(subjectOf(change, rule), whatOf(change))
  }
  const { differences, checked, untold } = notes
  return { differences, checked, untold }
}

/**
 * Whether the change has its entry in a log. A row that Nightshift itself could not have written
 * has no entry.
 */
function isTold(rule: Rule, change: RowChange, told: TransactionRows, names: PersonNames): boolean {
  try {
    return rule.isTold(change, told, names)
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return false
    throw error
  }
}

async function toldIn(trx: Trx, txs: string[]): Promise<Map<string, TransactionRows>> {
  const { rows: audit } = await sql<TransactionRows['audit'][number]>`
    select tx::text, what, subject, who, detail,
      exists (select from erased_row where of_table = 'audit' and row_id = audit.id) as is_erased
    from audit where tx = any(${txs}::xid8[])`.execute(trx)
  const { rows: events } = await sql<TransactionRows['events'][number]>`
    select tx::text, kind, incident_id, metadata->>'approvalId' as approval_id, metadata->>'grantId' as grant_id
    from incident_event where tx = any(${txs}::xid8[])`.execute(trx)
  const told = new Map<string, TransactionRows>()
  const at = (tx: string) => {
    const there = told.get(tx) ?? { audit: [], events: [] }
    told.set(tx, there)
    return there
  }
  for (const row of audit) at(row.tx).audit.push(row)
  for (const row of events) at(row.tx).events.push(row)
  return told
}

async function namesOf(trx: Trx): Promise<PersonNames> {
  const people = new Map<unknown, string>()
  for (const { id, name } of await trx.selectFrom('operator').select(['id', 'name']).execute()) people.set(id, name)
  const owners = new Map<unknown, string | null>()
  for (const { id, operatorId } of await trx.selectFrom('apiToken').select(['id', 'operatorId']).execute())
    owners.set(id, operatorId)
  return {
    person: (operatorId) => people.get(operatorId) ?? null,
    ofToken: (tokenId) => people.get(owners.get(tokenId)) ?? null,
  }
}

/** Returns what a credential is for, because the hash of the credential tells people nothing. */
function subjectOf(
  { ofTable, rowKey, kept }: Pick<RowChange, 'ofTable' | 'rowKey' | 'kept'>,
  { key, inPart }: Rule,
): string {
  if (inPart) return rowKey
  const name = kept?.name ?? kept?.approval_id ?? kept?.device_id ?? kept?.token_id
  const shown = key === 'sha256' ? `${rowKey.slice(0, 12)}…` : rowKey
  const also = name !== undefined && name !== rowKey ? ` (${name})` : ''
  return `${ofTable.replaceAll('_', ' ')} ${shown}${also}`
}

const done = { kept: 'kept', insert: 'made', update: 'changed', delete: 'removed' }

function whatOf({ op, role, id }: RowChange): string {
  return `it was ${done[op]} by ${role} without a row of the audit or of a log in the same transaction (change ${id})`
}

/** Compares the current rows with the last change that the database recorded. */
export async function verifyKept(db: Db | Trx): Promise<Findings> {
  return await inSnapshot(db, async (trx) => {
    const notes = takeNotes()
    for (const [table, rule] of Object.entries(rules)) if (!rule.inPart) await holdTable(trx, table, rule, notes)
    await holdOrphans(trx, notes)
    const { differences, checked, untold } = notes
    return { differences, checked, untold }
  })
}

type Held = {
  key: string
  stored: Record<string, unknown> | null
  op: RowChange['op'] | null
  kept: Record<string, unknown> | null
}

async function holdTable(trx: Trx, table: string, rule: Rule, notes: Notes): Promise<void> {
  const { key, kind, without = [] } = rule
  const { rows } = await sql<{ all: number; old: number }>`
    select count(*)::int as all, count(*) filter (where change.op = 'kept')::int as old
    from ${sql.table(table)} as stored
    left join lateral (
      select op from row_change where of_table = ${table} and row_key = stored.${sql.ref(key)}::text order by id limit 1
    ) as change on true`.execute(trx)
  notes.check(kind, rows[0]?.all ?? 0)
  if (rows[0]?.old) notes.leave(kind, rows[0].old)
  const { rows: held } = await sql<Held>`
    with last as (
      select distinct on (row_key) row_key, op, kept from row_change where of_table = ${table} order by row_key, id desc
    ), now as (
      select stored.${sql.ref(key)}::text as key, kept_form(to_jsonb(stored), null, ${without}::text[]) as stored
      from ${sql.table(table)} as stored
    )
    select coalesce(now.key, last.row_key) as key, now.stored, last.op, last.kept
    from now full join last on last.row_key = now.key
    where last.kept is distinct from now.stored`.execute(trx)
  for (const row of held) {
    const what = flawOf(row, rule)
    if (!what) continue
    const change = { ofTable: table, rowKey: row.key, kept: row.stored ?? row.kept }
    notes.differ(subjectOf(change, rule), what)
  }
}

/**
 * Describes what is wrong with a row; null if nothing is wrong. A column that was added after the
 * last change is in no recorded row and is ignored.
 */
function flawOf({ stored, op, kept }: Held, { passes, secret = [] }: Rule): string | null {
  if (!op) return 'its creation was not recorded'
  if (!stored) return op === 'delete' || passes ? null : 'it was removed, and the removal was not recorded'
  if (!kept) return 'it was removed, and exists again'
  const changed = Object.keys(stored).filter(
    (column) => column in kept && JSON.stringify(stored[column]) !== JSON.stringify(kept[column]),
  )
  if (changed.length === 0) return null
  const said = changed.map((column) =>
    secret.includes(column)
      ? `${column} is another`
      : `${column} is ${shorten(stored[column])}, and ${shorten(kept[column])} was recorded`,
  )
  return said.join('; ')
}

const shorten = (value: unknown) => (value === null ? 'empty' : JSON.stringify(value)).slice(0, 120)

/** Finds firing alerts without an incident. Their repeats would only be counted. */
async function holdOrphans(trx: Trx, notes: Notes): Promise<void> {
  const orphans = await trx
    .selectFrom('alert')
    .select('id')
    .where('incidentId', 'is', null)
    .where('status', 'in', ['firing', 'unknown'])
    .execute()
  for (const { id } of orphans) notes.differ(id, 'the alert fires and belongs to no incident')
}
