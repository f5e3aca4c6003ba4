import { sql } from 'kysely'
import type { SearchAnswer } from '../../domain/incident-detail.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { escapeLike } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { listIncidents } from './incidents.ts'

const maxIncidents = 8

const maxResources = 6

const maxRows = 8

/**
 * Maximum number of rows with the searched words that are found and ranked by time. A word may be
 * in nearly every row.
 */
const rankedRows = 5_000

/** Maximum milliseconds of a search, because people wait for its results while they type. */
const logWithinMs = 800

const searchedKinds = sql.raw(
  [
    ...['alert_received', 'looked', 'noted', 'model_answered', 'tool_finished', 'verification', 'approval_requested'],
    ...['approval_decided', 'resolved', 'escalated', 'cancelled', 'commented', 'capability_gap', 'security_event'],
  ]
    .map((kind) => `'${kind}'`)
    .join(', '),
)

/**
 * Searches every part at once. For a text of one or two letters, searches only names, because every
 * log contains so short a text.
 */
export async function searchAll(scope: Scope, text: string): Promise<SearchAnswer> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}._:/-]+/gu) ?? []
  const [incidents, resources, log] = await Promise.all([
    listIncidents(scope, { q: text }, { before: null, limit: maxIncidents }),
    findResources(scope, text),
    text.length < 3 || words.length === 0 ? { rows: [], isPartial: false } : findRows(scope, words),
  ])
  return {
    incidents: incidents.map(({ id, title, alertName, resource, status, severity, createdAt }) => ({
      id,
      title,
      alertName,
      resource,
      status,
      severity,
      createdAt,
    })),
    resources,
    log: log.rows,
    isPartial: log.isPartial,
  }
}

async function findResources({ db }: Scope, text: string): Promise<SearchAnswer['resources']> {
  const pattern = `%${escapeLike(text.toLowerCase())}%`
  const { rows } = await sql<{ kind: InventoryKind; id: string }>`
    select kind, id from resource
    where id ilike ${pattern} or name ilike ${pattern} or names @> array[${text.toLowerCase()}::text]
    order by length(id), id limit ${maxResources}`.execute(db)
  return rows
}

type Found = { rows: SearchAnswer['log']; isPartial: boolean }

/** Finds log rows whose text contains every word, or a word that begins with it, newest first. */
async function findRows({ db }: Scope, words: readonly string[]): Promise<Found> {
  const query = words.map((word) => `'${word.replaceAll("'", '')}':*`).join(' & ')
  const text = sql`to_tsvector('simple', left(detail, 2000))`
  try {
    const { rows } = await db.transaction().execute(async (trx) => {
      await sql`select set_config('statement_timeout', ${String(logWithinMs)}, true)`.execute(trx)
      return await sql<SearchAnswer['log'][number] & { found: number }>`
          with matching as (
            select id, incident_id, seq, detail, at from incident_event
            where kind in (${searchedKinds}) and ${text} @@ to_tsquery('simple', ${query}) limit ${rankedRows}
          )
          select incident_id as "incidentId", incident.title, seq, left(detail, 300) as detail, at,
            count(*) over ()::int as found
          from matching join incident on incident.id = incident_id order by matching.id desc limit ${maxRows}`.execute(
        trx,
      )
    })
    const [first] = rows
    return {
      rows: rows.map(({ incidentId, title, seq, detail, at }) => ({ incidentId, title, seq, detail, at })),
      isPartial: (first?.found ?? 0) >= rankedRows,
    }
  } catch (error) {
    // Returns a partial result after the time limit. PostgreSQL's code for query_canceled is 57014.
    if ((error as { code?: string }).code === '57014') return { rows: [], isPartial: true }
    throw error
  }
}
