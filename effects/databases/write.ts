import type { DatabaseSession, SqlValue } from '../../clients/databases/server.ts'
import { withAdvisoryLock } from '../../db/advisory-lock.ts'
import { effectByKey, noteCompared } from '../../db/writes/effects.ts'
import type { DatabaseAct } from '../../domain/database-write.ts'
import { digestOf } from '../../domain/digest.ts'
import { ref } from '../../domain/registry.ts'
import { addressOf, type Source } from '../../domain/source.ts'
import type { Observation, Preparation, Risk } from '../../domain/tool.ts'
import { type EffectEnding, EffectRefused } from '../effect.ts'
import { isSameFingerprint } from '../plan-state.ts'
import { type DatabaseDeps, findReader, requireWritable, withWriter } from './connect.ts'
import { mysqlWriter } from './mysql.ts'
import { postgresWriter } from './postgres.ts'

/** What a write would be about, as the server shows it now. */
export type FoundTarget = {
  /** The decision's state: the write compares exactly this, and is refused where it differs. */
  compared: Record<string, SqlValue>
  summary: string
  told: string[]
  untried: string[]
}

/**
 * A product's way to carry out the writes. Its refusals are EffectRefused; the server's are
 * DatabaseError.
 */
export type DatabaseWriter = {
  /** `reader`: the user by whom the source reads, whose sessions are ours. */
  find(session: DatabaseSession, act: DatabaseAct, reader: string | null): Promise<FoundTarget>
  /** False: what was decided about was not there any more, and nothing was done. */
  send(session: DatabaseSession, act: DatabaseAct, found: FoundTarget): Promise<boolean>
  observe(session: DatabaseSession, act: DatabaseAct, compared: FoundTarget['compared'] | null): Promise<Observation>
}

const writerOf = ({ server }: DatabaseSession): DatabaseWriter =>
  server.product === 'PostgreSQL' ? postgresWriter : mysqlWriter

const risks: Record<DatabaseAct['write'], Risk> = {
  cancel_query: 'medium',
  terminate_session: 'medium',
  drop_replication_slot: 'critical',
  start_replica: 'medium',
}

type Named = { name: string; act: DatabaseAct }

/** The decision's state, on this server: a source's name may lead to another meanwhile. */
const fingerprintOf = ({ url }: Source, { compared }: FoundTarget): string =>
  digestOf({ server: addressOf(url), ...compared })

/** What a write would do, for its card. Changes nothing. */
export async function prepareDatabaseWrite(deps: DatabaseDeps, { name, act }: Named): Promise<Preparation> {
  const source = await requireWritable(deps, name)
  const found = await withWriter(deps, source, (session) =>
    writerOf(session).find(session, act, findReader(deps, source)),
  )
  const { write, ...about } = act
  return {
    targets: [ref('database', name)],
    identity: { database: name, ...about },
    stateFingerprint: fingerprintOf(source, found),
    asks: { risk: risks[write], why: 'what changes a database is asked every time' },
    dryRun: {
      possible: true,
      summary: `${found.summary} on ${name}`,
      details: { database: name, ...about, rehearsal: { told: found.told, untried: found.untried, tried: false } },
    },
  }
}

/**
 * Compares the decision's state with the present; the write compares once more. Answers what it
 * compares.
 */
export async function requireSameTarget(
  deps: DatabaseDeps,
  { name, act }: Named,
  ifMatch: string | undefined,
): Promise<FoundTarget> {
  if (!ifMatch) {
    const detail = 'If-Match: name the stateFingerprint of the preparation that this was decided on.'
    throw new EffectRefused('precondition_required', 'IF_MATCH_REQUIRED', detail)
  }
  const source = await requireWritable(deps, name)
  const found = await withWriter(deps, source, (session) =>
    writerOf(session).find(session, act, findReader(deps, source)),
  ).catch(asChanged)
  if (isSameFingerprint(ifMatch, fingerprintOf(source, found))) return found
  const detail = `${found.summary}: it is not as it was when this was decided. Nothing was done.`
  throw new EffectRefused('state_changed', 'STATE_CHANGED', detail)
}

/** Possible when it was decided, and not now: what was decided about is gone. */
function asChanged(error: unknown): never {
  if (!(error instanceof EffectRefused) || error.code !== 'NOTHING_TO_CHANGE') throw error
  throw new EffectRefused('state_changed', 'STATE_CHANGED', `${error.message} Nothing was done.`)
}

/** One write at a time at a server, over all processes. */
export async function performDatabaseWrite(
  deps: DatabaseDeps,
  { name, act }: Named,
  found: FoundTarget,
  key: string,
): Promise<EffectEnding> {
  const done = await withAdvisoryLock(deps.locks, `database:${name}`, async () => {
    const source = await requireWritable(deps, name)
    await noteCompared(deps.db, key, found.compared)
    return await withWriter(deps, source, (session) => writerOf(session).send(session, act, found))
  }).catch(toEnding)
  if (done === null)
    return { status: 'failed', detail: `nothing was done: another write to ${name} is under way`, result: {} }
  if (typeof done === 'object') return done
  if (!done)
    return { status: 'failed', detail: `nothing was done: ${lower(found.summary)} found it changed`, result: {} }
  return {
    status: 'done',
    detail: `${found.summary} on ${name}: done`,
    result: { changed: [found.summary], compared: found.compared },
  }
}

const lower = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)

/** What the server refused did not happen; of a connection that broke nobody can say it. */
function toEnding(error: unknown): EffectEnding {
  if (!(error instanceof EffectRefused)) throw error
  return { status: error.code === 'DATABASE_LOST' ? 'indeterminate' : 'failed', detail: error.message, result: {} }
}

/** Whether a write did what it promised, as the server shows it now. */
export async function observeDatabaseWrite(
  deps: DatabaseDeps,
  { name, act }: Named,
  key: string | null,
): Promise<Observation> {
  const source = await requireWritable(deps, name)
  const effect = key === null ? null : await effectByKey(deps.db, key)
  const compared = (effect?.result.compared as FoundTarget['compared'] | undefined) ?? null
  return await withWriter(deps, source, (session) => writerOf(session).observe(session, act, compared))
}
