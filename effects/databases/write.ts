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

/** The target of a write, as the server shows it now. */
export type FoundTarget = {
  /**
   * The state at the decision. The write compares exactly this state, and is refused if the state
   * differs.
   */
  compared: Record<string, SqlValue>
  summary: string
  told: string[]
  untried: string[]
}

/**
 * Carries out the writes at one product. Throws EffectRefused if Nightshift refuses, and
 * DatabaseError if the server refuses.
 */
export type DatabaseWriter = {
  /** `reader`: the user with which the source reads; that user's sessions are Nightshift's own. */
  find(session: DatabaseSession, act: DatabaseAct, reader: string | null): Promise<FoundTarget>
  /** Returns false if the target of the decision no longer existed, and nothing was done. */
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

/**
 * Fingerprint of the target's state. Includes the server's address, because a source's name may
 * lead to another server later.
 */
const fingerprintOf = ({ url }: Source, { compared }: FoundTarget): string =>
  digestOf({ server: addressOf(url), ...compared })

/** Describes what a write would do, for its approval card. Changes nothing. */
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
    asks: { risk: risks[write], why: 'every write to a database requires approval' },
    dryRun: {
      possible: true,
      summary: `${found.summary} on ${name}`,
      details: { database: name, ...about, rehearsal: { told: found.told, untried: found.untried, tried: false } },
    },
  }
}

/**
 * Reads the target of a write. Throws if the target's state is not the approved state. The write
 * compares the returned state once more.
 */
export async function requireSameTarget(
  deps: DatabaseDeps,
  { name, act }: Named,
  ifMatch: string | undefined,
): Promise<FoundTarget> {
  if (!ifMatch) {
    const detail = 'If-Match: send the stateFingerprint of the approved dry run.'
    throw new EffectRefused('precondition_required', 'IF_MATCH_REQUIRED', detail)
  }
  const source = await requireWritable(deps, name)
  const found = await withWriter(deps, source, (session) =>
    writerOf(session).find(session, act, findReader(deps, source)),
  ).catch(asChanged)
  if (isSameFingerprint(ifMatch, fingerprintOf(source, found))) return found
  const detail = `${found.summary}: the state changed since the approval. Nothing was done.`
  throw new EffectRefused('state_changed', 'STATE_CHANGED', detail)
}

/**
 * Reports a changed state if the target is gone, because the write was possible at the decision.
 */
function asChanged(error: unknown): never {
  if (!(error instanceof EffectRefused) || error.code !== 'NOTHING_TO_CHANGE') throw error
  throw new EffectRefused('state_changed', 'STATE_CHANGED', `${error.message} Nothing was done.`)
}

/** Carries out a write. Only one write at a time runs on a server, over all processes. */
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
    return {
      status: 'failed',
      detail: `nothing was done, because the state changed first: ${lower(found.summary)}`,
      result: {},
    }
  return {
    status: 'done',
    detail: `${found.summary} on ${name}: done`,
    result: { changed: [found.summary], compared: found.compared },
  }
}

const lower = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)

/**
 * Converts an error to an ending. A server's refusal means that nothing happened; after a broken
 * connection the outcome is unknown.
 */
function toEnding(error: unknown): EffectEnding {
  if (!(error instanceof EffectRefused)) throw error
  return { status: error.code === 'DATABASE_LOST' ? 'indeterminate' : 'failed', detail: error.message, result: {} }
}

/** Reads whether a write had its effect, as the server shows it now. */
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
