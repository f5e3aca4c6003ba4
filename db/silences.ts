import { sql } from 'kysely'
import { sha256 } from '../domain/digest.ts'
import { isUnread, type Silence, type SilenceReading, type SilencesRead, silencingKind } from '../domain/silence.ts'
import { cleanse } from '../safety/redact.ts'
import { maxSilencedAlerts, type SilencedLabels } from '../safety/site/silences.ts'
import { databaseTime, now } from './clock.ts'
import type { Db, Trx } from './connect.ts'

/**
 * Stores the silences of connected Alertmanagers by their last responses, and reads the alerts that
 * they may cover.
 */

type AskedSource = { name: string; url: string }

/** Stores a complete response of an Alertmanager, or only its time if it is unchanged. */
export async function keepSilences(db: Db, source: AskedSource, read: readonly Silence[]): Promise<void> {
  const text = JSON.stringify(read.map(cleansed))
  const digest = sha256(text)
  const same = await db
    .updateTable('sourceSilences')
    .set({ triedAt: now, readAt: now, fault: null })
    .where('source', '=', source.name)
    .where('url', '=', source.url)
    .where('digest', '=', digest)
    .executeTakeFirst()
  if (same.numUpdatedRows > 0n) return
  await writeReading(db, source, { fault: null, digest, silences: text })
}

/** Records why an Alertmanager could not be read. Its last response stays, with its time. */
export async function noteUnreadSilences(db: Db, source: AskedSource, fault: string): Promise<void> {
  const said = { triedAt: now, fault: cleanse(fault).slice(0, 300) }
  const known = await db
    .updateTable('sourceSilences')
    .set(said)
    .where('source', '=', source.name)
    .where('url', '=', source.url)
    .executeTakeFirst()
  if (known.numUpdatedRows > 0n) return
  await writeReading(db, source, { fault: said.fault, digest: '', silences: '[]' })
}

type Reading = { fault: string | null; digest: string; silences: string }

/** Stores a reading, unless its source was removed or changed while the source was queried. */
async function writeReading(db: Db, { name, url }: AskedSource, { fault, digest, silences }: Reading): Promise<void> {
  await sql`
    insert into source_silences (source, url, tried_at, read_at, fault, digest, silences)
    select name, url, nightshift_now(), ${fault === null ? now : null}::timestamptz, ${fault}, ${digest}, ${silences}
    from source where name = ${name} and url = ${url}
    on conflict (source) do update set url = excluded.url, tried_at = excluded.tried_at, read_at = excluded.read_at,
      fault = excluded.fault, digest = excluded.digest, silences = excluded.silences`.execute(db)
}

/**
 * Removes secrets from a silence. A matcher without its secret would match other alerts, so the
 * matchers are then not compared.
 */
function cleansed(silence: Silence): Silence {
  const clean = cleanse(silence)
  const isSame = JSON.stringify(clean.matchers) === JSON.stringify(silence.matchers)
  return isSame ? clean : { ...clean, matchers: null }
}

/** Lists the silences of all connected Alertmanagers, also of one that never responded. */
export async function silencesRead(db: Db | Trx): Promise<SilencesRead[]> {
  const rows = await readings(db).select('silences').execute()
  return rows.map(({ source, readAt, silences }) => ({
    source,
    readAt,
    silences: readAt === null || silences === null ? [] : (JSON.parse(silences) as Silence[]),
  }))
}

/** Returns the state of each Alertmanager's reading, without the silences. */
export async function silenceReadings(db: Db | Trx): Promise<SilenceReading[]> {
  const nowMs = Date.parse(await databaseTime(db))
  const rows = await readings(db).select('fault').execute()
  return rows.map((row) => ({ ...row, isUnread: isUnread(row.readAt, nowMs) }))
}

function readings(db: Db | Trx) {
  return db
    .selectFrom('source')
    .leftJoin('sourceSilences', (join) =>
      join.onRef('sourceSilences.source', '=', 'source.name').onRef('sourceSilences.url', '=', 'source.url'),
    )
    .select(['source.name as source', 'readAt'])
    .where('kind', '=', silencingKind)
    .orderBy('source.name')
}

/**
 * Lists the labels of an incident's alerts, of any sender. Each set of labels is listed once, and
 * one set more than can be compared is read. The name of an alert counts as a label for every
 * sender.
 */
export async function labelsOfAlerts(db: Db | Trx, incidentId: string): Promise<SilencedLabels[]> {
  const { rows } = await sql<{ labels: Record<string, string> }>`
    select distinct jsonb_build_object('alertname', name) || labels as labels
    from alert where incident_id = ${incidentId} limit ${maxSilencedAlerts + 1}`.execute(db)
  return rows.map(({ labels }) => labels)
}
