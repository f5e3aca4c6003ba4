import { sql } from 'kysely'
import {
  describeDevice,
  describeGrant,
  describeOperator,
  describeSource,
  describeToken,
  toMinute,
} from '../../domain/authority-words.ts'
import type { Findings } from '../../domain/chain.ts'
import { cleanse } from '../../safety/redact.ts'
import type { Db, Trx } from '../connect.ts'
import { type Notes, takeNotes } from './findings.ts'
import { inSnapshot } from './incident.ts'

/** A change as the database wrote it down itself (migration 0040): what the row was after it. */
type Change = {
  id: number
  tx: string
  role: string
  ofTable: string
  rowKey: string
  op: 'kept' | 'insert' | 'update' | 'delete'
  kept: Record<string, unknown> | null
}

/** What the same transaction wrote into the audit, and into logs of incidents. */
type Told = {
  audit: { tx: string; what: string; subject: string; who: string; detail: string }[]
  events: { tx: string; kind: string; incidentId: string; approvalId: string | null; grantId: string | null }[]
}

/** Names behind ids: a row of the audit names people by name. */
type Names = { person(operatorId: unknown): string | null; ofToken(tokenId: unknown): string | null }

type Rule = {
  kind: string
  key: string
  /** Columns that pass and are no authority; as in the trigger. */
  without?: string[]
  /** Columns that are named as changed and never shown. */
  secret?: string[]
  /** Rows that are removed when they are over, without a word. */
  passes?: true
  /** Only changes of some columns are written down: there is nothing to hold the whole row against. */
  inPart?: true
  /** Is the change told of? */
  isTold(change: Change, told: Told, names: Names): boolean
}

/** `words`: what the row gives, as the entry has to say it. An entry about another change of the same subject does not tell of this one. */
const says = (told: Told, what: RegExp, subject: unknown, words = '') =>
  told.audit.some(
    (entry) => what.test(entry.what) && entry.subject === subject && entry.detail.includes(cleanse(words)),
  )
const signedIn = (told: Told, who: string | null, words = '') =>
  told.audit.some((entry) => entry.what === 'sign_in.done' && entry.who === who && entry.detail.includes(words))

/** A row as its JSON has it, by the names that the product has for its columns. The database wrote it, so nothing of it is checked here. */
// biome-ignore lint/suspicious/noExplicitAny: each rule knows its own table.
const inCamelCase = (kept: Change['kept']): any =>
  Object.fromEntries(
    Object.entries(kept ?? {}).map(([name, value]) => [
      name.replaceAll(/_(\w)/g, (_match, letter) => letter.toUpperCase()),
      value,
    ]),
  )

function grantWords(kept: Change['kept']): string {
  const hours = (Date.parse(String(kept?.expires_at)) - Date.parse(String(kept?.granted_at))) / 3_600_000
  return `${kept?.tool} as in ${kept?.approval_id} ${describeGrant({ uses: Number(kept?.uses), hours })}`
}

/** What authority rests on, by table: which row of the audit or of a log has to stand beside each of its changes. */
const rules: Record<string, Rule> = {
  operator: {
    kind: 'people',
    key: 'id',
    isTold({ kept }, told) {
      const words = describeOperator(inCamelCase(kept))
      const isOfProvider = kept?.issuer !== null
      return (
        says(told, /^operator\.(added|changed)$/, kept?.name, words) ||
        (isOfProvider && signedIn(told, String(kept?.name), words))
      )
    },
  },
  api_token: {
    kind: 'tokens',
    key: 'id',
    without: ['last_used_at'],
    secret: ['sha256'],
    isTold({ op, rowKey, kept }, told, names) {
      const owner = names.person(kept?.operator_id)
      if (kept?.kind === 'sign_in' && signedIn(told, owner, `Signed in as ${kept.role}`)) return true
      if (op !== 'insert') return kept?.revoked_at !== null && says(told, /^token\.revoked$/, rowKey)
      return says(told, /^token\.minted$/, rowKey, describeToken({ ...inCamelCase(kept), operator: owner }))
    },
  },
  session: {
    kind: 'sign-ins',
    key: 'sha256',
    without: ['expires_at'],
    secret: ['sha256'],
    passes: true,
    isTold: ({ kept }, told, names) => signedIn(told, names.ofToken(kept?.token_id)),
  },
  sign_in_code: {
    kind: 'sign-ins',
    key: 'sha256',
    secret: ['sha256'],
    passes: true,
    isTold: ({ op, kept }, told, names) =>
      op === 'insert'
        ? says(told, /^sign_in\.code_minted$/, kept?.token_id)
        : signedIn(told, names.ofToken(kept?.token_id)),
  },
  decision_token: {
    kind: 'decision tokens',
    key: 'sha256',
    secret: ['sha256'],
    isTold: ({ op, kept }, told) =>
      op === 'insert'
        ? says(told, /^approval\.token_minted$/, kept?.approval_id)
        : says(told, /^approval\.token_spent$/, kept?.approval_id) ||
          told.events.some(
            ({ kind, approvalId }) => /^approval_(decided|withdrawn)$/.test(kind) && approvalId === kept?.approval_id,
          ),
  },
  standing_grant: {
    kind: 'standing grants',
    key: 'id',
    isTold: ({ op, rowKey, kept }, told) =>
      op === 'insert'
        ? says(told, /^grant\.given$/, rowKey, grantWords(kept))
        : (kept?.revoked_at !== null && says(told, /^grant\.revoked$/, rowKey)) ||
          told.events.some(({ kind, grantId }) => kind === 'grant_used' && grantId === rowKey),
  },
  source: {
    kind: 'sources',
    key: 'name',
    secret: ['credential', 'url', 'options'],
    isTold: ({ op, rowKey, kept }, told) =>
      op === 'delete'
        ? says(told, /^source\.removed$/, rowKey)
        : says(told, /^source\.put$/, rowKey, describeSource(inCamelCase(kept))),
  },
  credential_address: {
    kind: 'addresses of credentials',
    key: 'reference',
    inPart: true,
    // The reference stands in the words of the source that was put.
    isTold: ({ rowKey }, told) =>
      told.audit.some(({ what, detail }) => what === 'source.put' && detail.includes(` with ${rowKey}`)),
  },
  platform_config: {
    kind: 'settings',
    key: 'key',
    secret: ['value'],
    // By hand in SQL is a way that is described; the trigger's revision stands for it in the audit.
    isTold: ({ role, rowKey }, told) => role !== 'nightshift_app' || says(told, /^config\.put$/, rowKey),
  },
  expectation: {
    kind: 'marks',
    key: 'id',
    isTold: ({ op, rowKey, kept }, told) =>
      op === 'insert'
        ? says(told, /^expectation\.marked$/, rowKey, `until ${toMinute(String(kept?.until))}`)
        : says(told, /^expectation\.ended$/, rowKey),
  },
  device: {
    kind: 'devices',
    key: 'id',
    without: ['health', 'health_problem', 'health_at'],
    secret: ['refresh_sha256', 'manifest'],
    isTold({ rowKey, kept }, told) {
      const resource = { kind: kept?.resource_kind, id: kept?.resource_id }
      return (
        says(told, /^device\.(added|changed)$/, rowKey, describeDevice({ ...inCamelCase(kept), resource })) ||
        says(told, /^device\.(enrolled|manifest_renewed|revoked)$/, rowKey)
      )
    },
  },
  device_enrolment: {
    kind: 'devices',
    key: 'sha256',
    secret: ['sha256'],
    isTold: ({ op, kept }, told) =>
      op === 'insert'
        ? says(told, /^device\.enrolment_minted$/, kept?.device_id, `good until ${toMinute(String(kept?.expires_at))}`)
        : says(told, /^device\./, kept?.device_id),
  },
  mesh_key: {
    kind: 'devices',
    key: 'id',
    isTold: (_change, told) => told.audit.some(({ what }) => what === 'device.keys_changed'),
  },
  postmortem_edit: {
    kind: 'versions of postmortems',
    key: 'incident_id',
    inPart: true,
    isTold: ({ rowKey }, told) => says(told, /^postmortem\.edited$/, rowKey),
  },
  incident: {
    kind: 'changes of incidents',
    key: 'id',
    inPart: true,
    isTold: ({ rowKey }, told) => told.events.some(({ incidentId }) => incidentId === rowKey),
  },
  alert: {
    kind: 'changes of alerts',
    key: 'id',
    inPart: true,
    // An end without an incident is counted and read by nothing; what fires without one is a difference by itself.
    isTold: (_change, told) => told.events.some(({ kind }) => kind === 'alert_received' || kind === 'noted'),
  },
}

/** So many changes a step: a second's work. */
const stepSize = 2_000

/** Holds the next changes after this one against audit and logs. Answers the last one of them; null where there are no more. */
export async function verifyChanges(db: Db | Trx, after: number): Promise<Findings & { last: number | null }> {
  return await inSnapshot(db, async (trx) => {
    const { rows } = await sql<Change>`
      select id, tx::text, role, of_table, row_key, op, kept from row_change
      where id > ${after} order by id limit ${stepSize}`.execute(trx)
    const last = rows.length < stepSize ? null : (rows.at(-1)?.id ?? null)
    return { ...(await holdChanges(trx, rows)), last }
  })
}

/** The same for what belongs to one incident: its own row, its alerts, decision tokens and standing grants. */
export async function verifyChangesOf(db: Db | Trx, incidentId: string): Promise<Findings> {
  return await inSnapshot(db, async (trx) => {
    const { rows } = await sql<Change>`
      with own (of_table, row_key) as (
        values ('incident', ${incidentId})
        union all select 'alert', id from alert where incident_id = ${incidentId}
        union all select 'decision_token', token.sha256 from decision_token as token
          join approval on approval.id = token.approval_id where approval.incident_id = ${incidentId}
        union all select 'standing_grant', given.id from standing_grant as given
          join approval on approval.id = given.approval_id where approval.incident_id = ${incidentId}
      )
      select id, tx::text, role, of_table, row_key, op, kept from row_change join own using (of_table, row_key)
      order by id`.execute(trx)
    return await holdChanges(trx, rows)
  })
}

async function holdChanges(trx: Trx, changes: readonly Change[]): Promise<Findings> {
  const notes = takeNotes()
  const made = changes.filter(({ op }) => op !== 'kept')
  const told = await toldIn(trx, [...new Set(made.map(({ tx }) => tx))])
  const names = await namesOf(trx)
  const nothing: Told = { audit: [], events: [] }
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

/** A row that nothing of the product could have written cannot be put into words: nobody told of it. */
function isTold(rule: Rule, change: Change, told: Told, names: Names): boolean {
  try {
    return rule.isTold(change, told, names)
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return false
    throw error
  }
}

async function toldIn(trx: Trx, txs: string[]): Promise<Map<string, Told>> {
  const { rows: audit } = await sql<Told['audit'][number]>`
    select tx::text, what, subject, who, detail from audit where tx = any(${txs}::xid8[])`.execute(trx)
  const { rows: events } = await sql<Told['events'][number]>`
    select tx::text, kind, incident_id, metadata->>'approvalId' as approval_id, metadata->>'grantId' as grant_id
    from incident_event where tx = any(${txs}::xid8[])`.execute(trx)
  const told = new Map<string, Told>()
  const at = (tx: string) => {
    const there = told.get(tx) ?? { audit: [], events: [] }
    told.set(tx, there)
    return there
  }
  for (const row of audit) at(row.tx).audit.push(row)
  for (const row of events) at(row.tx).events.push(row)
  return told
}

async function namesOf(trx: Trx): Promise<Names> {
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

/** A hash of a credential says nothing to people; what it is for does. */
function subjectOf(
  { ofTable, rowKey, kept }: Pick<Change, 'ofTable' | 'rowKey' | 'kept'>,
  { key, inPart }: Rule,
): string {
  if (inPart) return rowKey
  const name = kept?.name ?? kept?.approval_id ?? kept?.device_id ?? kept?.token_id
  const shown = key === 'sha256' ? `${rowKey.slice(0, 12)}…` : rowKey
  const also = name !== undefined && name !== rowKey ? ` (${name})` : ''
  return `${ofTable.replaceAll('_', ' ')} ${shown}${also}`
}

const done = { kept: 'kept', insert: 'made', update: 'changed', delete: 'removed' }

function whatOf({ op, role, id }: Change): string {
  return `it was ${done[op]} by ${role} without a row of the audit or of a log in the same transaction (change ${id})`
}

/** Holds the rows as they are now against what the database wrote down of them last. */
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
  op: Change['op'] | null
  kept: Record<string, unknown> | null
}

async function holdTable(trx: Trx, table: string, rule: Rule, notes: Notes): Promise<void> {
  const { key, kind, without = [] } = rule
  const { rows } = await sql<{ all: number; old: number }>`
    select count(*)::int as all, count(*) filter (where change.op = 'kept')::int as old
    from ${sql.table(table)} as stored
    left join lateral (
      select op from row_change where of_table = ${table} and row_key = stored.${sql.ref(key)} order by id limit 1
    ) as change on true`.execute(trx)
  notes.check(kind, rows[0]?.all ?? 0)
  if (rows[0]?.old) notes.leave(kind, rows[0].old)
  const { rows: held } = await sql<Held>`
    with last as (
      select distinct on (row_key) row_key, op, kept from row_change where of_table = ${table} order by row_key, id desc
    ), now as (
      select stored.${sql.ref(key)} as key, kept_form(to_jsonb(stored), null, ${without}::text[]) as stored
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

/** A column that is newer than the change stands in no row of it yet, and is no flaw. */
function flawOf({ stored, op, kept }: Held, { passes, secret = [] }: Rule): string | null {
  if (!op) return 'nothing was written down when it was made'
  if (!stored) return op === 'delete' || passes ? null : 'it was removed, and nothing was written down'
  if (!kept) return 'it was removed, and is there again'
  const changed = Object.keys(stored).filter(
    (column) => column in kept && JSON.stringify(stored[column]) !== JSON.stringify(kept[column]),
  )
  if (changed.length === 0) return null
  const said = changed.map((column) =>
    secret.includes(column)
      ? `${column} is another`
      : `${column} is ${shorten(stored[column])}, ${shorten(kept[column])} was written down`,
  )
  return said.join('; ')
}

const shorten = (value: unknown) => (value === null ? 'empty' : JSON.stringify(value)).slice(0, 120)

/** What fires belongs to an incident: without one, its repeats would be counted and never open any. */
async function holdOrphans(trx: Trx, notes: Notes): Promise<void> {
  const orphans = await trx
    .selectFrom('alert')
    .select('id')
    .where('incidentId', 'is', null)
    .where('status', 'in', ['firing', 'unknown'])
    .execute()
  for (const { id } of orphans) notes.differ(id, 'it fires and belongs to no incident')
}
