import {
  describeDevice,
  describeGrant,
  describeMark,
  describeOperator,
  describeSource,
  describeToken,
  readSourceWords,
  toMinute,
} from '../../domain/authority-words.ts'
import { addressOf } from '../../domain/source.ts'
import { describeStopTerms, nameScope, scopeOfRow, stopName } from '../../domain/stop.ts'
import { pairName, trustLevels } from '../../domain/trust.ts'
import { cleanse } from '../../safety/redact.ts'

/** A change of a row as the database recorded it (migration 0040), with the row before it. */
export type RowChange = {
  id: number
  tx: string
  at: string
  role: string
  /** Whether the change was made in a role of the services, not in that of the owner. */
  isServices: boolean
  ofTable: string
  rowKey: string
  op: 'kept' | 'insert' | 'update' | 'delete'
  before: Record<string, unknown> | null
  kept: Record<string, unknown> | null
}

/** Rows that the change's transaction wrote to the audit log and to the logs of incidents. */
export type TransactionRows = {
  audit: { tx: string; what: string; subject: string; who: string; detail: string; isErased: boolean }[]
  events: { tx: string; kind: string; incidentId: string; approvalId: string | null; grantId: string | null }[]
}

/** Finds the names of people by their ids, because the audit log contains names. */
export type PersonNames = { person(operatorId: unknown): string | null; ofToken(tokenId: unknown): string | null }

export type Rule = {
  kind: string
  key: string
  /** Columns that give no authority and may change freely, as in the database trigger. */
  without?: string[]
  /** Columns that are reported as changed but whose values are never shown. */
  secret?: string[]
  /** Set if expired rows are removed without an entry in the audit log. */
  passes?: true
  /** Set if only changes of some columns are recorded, so that no whole row can be compared. */
  inPart?: true
  /** Whether the audit log has an entry for the change. */
  isTold(change: RowChange, told: TransactionRows, names: PersonNames): boolean
}

/**
 * The placeholders that an erasure left in a sentence. A placeholder may stand for a word of
 * Nightshift, because an erased name may equal that word.
 */
const gap = /\[erased\]|erased-[0-9a-z]{8,40}/

/**
 * Whether an entry of the audit log begins with `words`. A reason or a name may follow after a
 * colon.
 */
function beginsWith({ detail, isErased }: TransactionRows['audit'][number], words: string): boolean {
  if (detail === words || detail.startsWith(`${words}: `) || detail.startsWith(`${words}, by a start`)) return true
  if (!isErased) return false
  const [said = ''] = detail.split(/: |, by a start/)
  const parts = said.split(gap).map((part) => part.replaceAll(/[^\w\s]/g, '\\$&'))
  return new RegExp(`^${parts.join('.+')}$`).test(words)
}

/**
 * Whether the audit log has an entry. `words`: the beginning of the entry up to its reason, so that
 * an entry about another change of the subject does not match.
 */
const says = (told: TransactionRows, what: RegExp, subject: unknown, ...words: string[]) =>
  told.audit.some(
    (entry) =>
      what.test(entry.what) &&
      entry.subject === subject &&
      (words.length === 0 || words.some((each) => beginsWith(entry, cleanse(each)))),
  )
const signedIn = (told: TransactionRows, who: string | null, words = '') =>
  told.audit.some((entry) => entry.what === 'sign_in.done' && entry.who === who && entry.detail.startsWith(words))

/**
 * Converts the JSON of a row to the column names of the code. Checks nothing, because the database
 * wrote the row.
 */
// biome-ignore lint/suspicious/noExplicitAny: each rule knows its own table.
const inCamelCase = (kept: RowChange['kept']): any =>
  Object.fromEntries(
    Object.entries(kept ?? {}).map(([name, value]) => [
      name.replaceAll(/_(\w)/g, (_match, letter) => letter.toUpperCase()),
      value,
    ]),
  )

/**
 * Whether the change left all other columns unchanged. A column that was added after the last
 * change is in no recorded row.
 */
function changesOnly({ before, kept }: RowChange, columns: readonly string[]): boolean {
  if (!before || !kept) return false
  return Object.keys(kept).every(
    (column) =>
      columns.includes(column) ||
      !(column in before) ||
      JSON.stringify(kept[column]) === JSON.stringify(before[column]),
  )
}

function grantWords(kept: RowChange['kept']): string {
  const hours = (Date.parse(String(kept?.expires_at)) - Date.parse(String(kept?.granted_at))) / 3_600_000
  return `${kept?.tool} as in ${kept?.approval_id} ${describeGrant({ uses: Number(kept?.uses), hours })}`
}

/**
 * Maximum milliseconds for which a sign-in through an identity provider is valid: a week, which the
 * text of its audit entry does not contain.
 */
const maxSignInMs = 7 * 24 * 3_600_000 + 60_000

function isTokenTold(change: RowChange, told: TransactionRows, names: PersonNames): boolean {
  const { op, at, rowKey, kept } = change
  const owner = names.person(kept?.operator_id)
  if (op === 'update' && kept?.revoked_at !== null && changesOnly(change, ['revoked_at']))
    return says(told, /^token\.revoked$/, rowKey)
  if (kept?.kind === 'sign_in') {
    const isWeek = Date.parse(String(kept.expires_at)) - Date.parse(at) <= maxSignInMs
    const isNarrow = op === 'insert' || changesOnly(change, ['role', 'expires_at'])
    return isWeek && isNarrow && kept.revoked_at === null && signedIn(told, owner, `Signed in as ${kept.role}, `)
  }
  const words = describeToken({ ...inCamelCase(kept), operator: owner })
  return op === 'insert' && says(told, /^token\.minted$/, rowKey, `Minted ${words}`)
}

/**
 * Whether a decision token has its audit entry. A used entry is removed from the list, so that it
 * covers only one token.
 */
function isDecisionTokenTold({ op, kept }: RowChange, told: TransactionRows, names: PersonNames): boolean {
  if (op !== 'insert')
    return (
      says(told, /^approval\.token_spent$/, kept?.approval_id) ||
      told.events.some(
        ({ kind, approvalId }) => /^approval_(decided|withdrawn)$/.test(kind) && approvalId === kept?.approval_id,
      )
    )
  const words = `Minted a decision token: ${kept?.decision}${kept?.purpose === 'temporal' ? ', for Temporal' : ''}`
  const who = names.person(kept?.operator_id)
  const at = told.audit.findIndex(
    (entry) =>
      entry.what === 'approval.token_minted' &&
      entry.subject === kept?.approval_id &&
      entry.who === who &&
      entry.detail === words,
  )
  if (at >= 0) told.audit.splice(at, 1)
  return at >= 0
}

/**
 * Columns that a device itself changes. Only an admin changes all other columns, with an entry in
 * the audit log.
 */
const ownWays: [what: RegExp, columns: string[]][] = [
  [/^device\.enrolled$/, ['enrolled_at', 'refresh_sha256', 'agent_key', 'manifest', 'manifest_expires_at']],
  [/^device\.manifest_renewed$/, ['manifest', 'manifest_expires_at']],
  [/^device\.revoked$/, ['revoked_at', 'refresh_sha256', 'agent_key']],
]

function isDeviceTold(change: RowChange, told: TransactionRows): boolean {
  const { rowKey, kept, before } = change
  if (ownWays.some(([what, columns]) => changesOnly(change, columns) && says(told, what, rowKey))) return true
  const isOpenOnlyByEnrolment = ['revoked_at', 'enrolled_at', 'refresh_sha256', 'agent_key'].every(
    (column) => (kept?.[column] ?? null) === (before?.[column] ?? null),
  )
  const resource = { kind: kept?.resource_kind, id: kept?.resource_id }
  const words = describeDevice({ ...inCamelCase(kept), resource })
  return isOpenOnlyByEnrolment && says(told, /^device\.(added|changed)$/, rowKey, words)
}

/**
 * Whether a change of a mesh key has its entry. Devices accept a key without an end from then on,
 * so the entry must name the key.
 */
function isMeshKeyTold({ rowKey, before, kept }: RowChange, told: TransactionRows): boolean {
  const isEndOnly = before !== null && kept !== null && before.not_after === null && kept.not_after !== null
  return told.audit.some(
    ({ what, detail }) =>
      what === 'device.keys_changed' &&
      (isEndOnly || detail.split(/, next by |^Requests are signed by /).includes(rowKey)),
  )
}

const isPolicyTaken = (told: TransactionRows): boolean =>
  told.audit.some(({ what }) => what === 'policy.in_force' || what === 'policy.accepted')

/** Tables with authority, and the row of audit log or log that each of their changes needs. */
export const rules: Record<string, Rule> = {
  operator: {
    kind: 'people',
    key: 'id',
    isTold({ before, kept }, told) {
      const words = describeOperator(inCamelCase(kept))
      const changed = before ? [`From ${describeOperator(inCamelCase(before))} to ${words}`] : []
      return (
        says(told, /^operator\.(added|changed)$/, kept?.name, `As ${words}`, ...changed) ||
        (kept?.issuer !== null && signedIn(told, String(kept?.name), `Signed in as ${words}`))
      )
    },
  },
  api_token: { kind: 'tokens', key: 'id', without: ['last_used_at'], secret: ['sha256'], isTold: isTokenTold },
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
  decision_token: { kind: 'decision tokens', key: 'sha256', secret: ['sha256'], isTold: isDecisionTokenTold },
  standing_grant: {
    kind: 'standing grants',
    key: 'id',
    isTold: ({ op, rowKey, kept }, told) =>
      op === 'insert'
        ? says(told, /^grant\.given$/, rowKey, grantWords(kept))
        : (kept?.revoked_at !== null && says(told, /^grant\.revoked$/, rowKey)) ||
          told.events.some(({ kind, grantId }) => kind === 'grant_used' && grantId === rowKey),
  },
  trust_change: {
    kind: 'levels of trust',
    key: 'id',
    isTold({ op, kept }, told, names) {
      const subject = pairName({ type: String(kept?.incident_type), tool: String(kept?.tool) })
      if (op !== 'insert') return false
      if (kept?.cause === 'lost')
        return says(told, /^trust\.lost$/, subject, `To ${kept.level} after ${kept.incident_id}`)
      const who = names.person(kept?.set_by)
      const own = { ...told, audit: told.audit.filter((entry) => entry.who === who) }
      const words = trustLevels.map((level) => `From ${level} to ${kept?.level}`)
      return kept?.cause === 'person' && says(own, /^trust\.set$/, subject, ...words)
    },
  },
  trust_stop: {
    kind: 'stops of a kind of write',
    key: 'id',
    isTold({ op, kept }, told, names) {
      const row = inCamelCase(kept)
      const scope = scopeOfRow(row)
      const person = names.person(op === 'insert' ? kept?.set_by : kept?.ended_by)
      const own = { ...told, audit: told.audit.filter(({ who }) => who === person) }
      if (op === 'update') return says(own, /^trust\.resumed$/, stopName(scope), `Resumes ${nameScope(scope)}`)
      const words = describeStopTerms({ ...scope, until: row.until })
      return op === 'insert' && kept?.ended_at === null && says(own, /^trust\.stopped$/, stopName(scope), words)
    },
  },
  source: {
    kind: 'sources',
    key: 'name',
    secret: ['credential', 'write_credential', 'url', 'headers', 'options'],
    isTold: ({ op, rowKey, kept }, told) =>
      op === 'delete'
        ? says(told, /^source\.removed$/, rowKey)
        : says(told, /^source\.put$/, rowKey, describeSource(inCamelCase(kept))),
  },
  credential_address: {
    kind: 'addresses of credentials',
    key: 'reference',
    inPart: true,
    // Looks for the reference and the address in the audit entry of the source that was set.
    isTold: ({ rowKey, kept }, told) =>
      told.audit.some(({ what, detail }) => {
        const { url, isGiven } = readSourceWords(detail, cleanse(rowKey))
        return what === 'source.put' && isGiven && URL.canParse(url) && addressOf(url) === kept?.address
      }),
  },
  platform_config: {
    kind: 'settings',
    key: 'key',
    secret: ['value'],
    // Accepts a manual SQL statement, which is an allowed way to change a setting. The revision
    // that the trigger writes is its entry.
    isTold: ({ isServices, rowKey, kept }, told) =>
      !isServices ||
      told.audit.some(
        ({ what, subject, who, detail }) =>
          what === 'config.put' &&
          subject === rowKey &&
          detail === `Version ${kept?.version}` &&
          who === String(kept?.updated_by).replace(/^user:/, ''),
      ),
  },
  expectation: {
    kind: 'marks',
    key: 'id',
    isTold: ({ op, rowKey, kept }, told) =>
      op === 'insert'
        ? says(told, /^expectation\.marked$/, rowKey, describeMark(inCamelCase(kept)))
        : says(told, /^expectation\.ended$/, rowKey),
  },
  site_policy: {
    kind: 'policies of the site',
    key: 'id',
    without: ['text'],
    isTold: ({ op, kept, before }, told, names) => {
      const { digest, status, accepted_by: id } = kept ?? {}
      const who = names.person(id)
      // Accepts the end of a policy if another policy takes its place in the transaction.
      if (status === 'past') return before?.status === 'waiting' ? says(told, /^policy\./, digest) : isPolicyTaken(told)
      if (op === 'insert') return says(told, status === 'waiting' ? /^policy\.waits$/ : /^policy\.in_force$/, digest)
      return told.audit.some(
        (entry) => entry.what === 'policy.accepted' && entry.subject === digest && entry.who === who,
      )
    },
  },
  incident_hold: {
    kind: 'holds',
    key: 'id',
    isTold: ({ op, rowKey, kept }, told) =>
      op === 'insert'
        ? says(told, /^incident\.held$/, rowKey, `${kept?.incident_id}: ${kept?.reason}`)
        : op === 'update' && says(told, /^incident\.hold_ended$/, rowKey, String(kept?.incident_id)),
  },
  device: {
    kind: 'devices',
    key: 'id',
    without: ['health', 'health_problem', 'health_at'],
    secret: ['refresh_sha256', 'manifest'],
    isTold: isDeviceTold,
  },
  device_enrolment: {
    kind: 'devices',
    key: 'sha256',
    secret: ['sha256'],
    isTold: ({ op, kept }, told) =>
      op === 'insert'
        ? told.audit.some(
            ({ what, subject, detail }) =>
              what === 'device.enrolment_minted' &&
              subject === kept?.device_id &&
              detail.includes(`good until ${toMinute(String(kept?.expires_at))}`),
          )
        : says(told, /^device\./, kept?.device_id),
  },
  mesh_key: { kind: 'devices', key: 'id', isTold: isMeshKeyTold },
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
    // Requires only that the transaction has a log row about an alert. An end without an incident
    // is only counted, and a firing alert without an incident is itself a difference.
    isTold: (_change, told) => told.events.some(({ kind }) => kind === 'alert_received' || kind === 'noted'),
  },
}
