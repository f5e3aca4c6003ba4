import { sql } from 'kysely'
import { newId } from '../domain/digest.ts'
import type { SitePolicyState } from '../domain/site-policy-state.ts'
import type { CompiledPolicy } from '../safety/site/compile.ts'
import { widens } from '../safety/site/widens.ts'
import { now } from './clock.ts'
import type { Db, Trx } from './connect.ts'
import { recordAudit } from './log/audit.ts'
import { silenceReadings } from './silences.ts'
import { compiledPolicy } from './site-policy.ts'

/** A valid policy file, with the place and commit from which it was read. */
type SoundPolicy = { text: string; place: string; commit: string | null; compiled: CompiledPolicy }
type SitePolicyFault = { line: number; why: string; remedy: string }

/**
 * Stores a valid policy file. If the file allows less than the policy in force, it applies at once.
 * If the file allows more, it waits for an admin. Runs in one process at a time, because a process
 * compares the file with the policy in force when it writes.
 */
export async function takeSitePolicy(db: Db, found: SoundPolicy): Promise<'same' | 'in_force' | 'waiting'> {
  return await db.transaction().execute(async (trx) => {
    await lockPolicies(trx)
    const { digest } = found.compiled
    await noteReading(trx, digest, [])
    const before = await standing(trx, 'in_force')
    const waiting = await standing(trx, 'waiting')
    if (before?.digest === digest) {
      if (waiting) await withdraw(trx, waiting)
      return 'same'
    }
    if (waiting?.digest === digest) return 'waiting'
    if (waiting) await withdraw(trx, waiting)
    const held = before ? await compiledPolicy(trx, before) : null
    const wider =
      before && held === null ? ['this build cannot read the policy in force'] : widens(held, found.compiled)
    const status = wider.length === 0 ? 'in_force' : 'waiting'
    if (status === 'in_force' && before) await end(trx, before.id)
    await trx
      .insertInto('sitePolicy')
      .values({
        ...{
          id: newId('pol'),
          digest,
          place: found.place,
          gitCommit: found.commit,
          text: found.text,
          widens: wider,
          status,
        },
        ...(status === 'in_force' && { inForceAt: now }),
      })
      .execute()
    const words =
      status === 'in_force'
        ? 'The file allows nothing more and is in force.'
        : `The file allows more, and waits for an admin: ${wider[0]}`
    await record(trx, 'system', status === 'in_force' ? 'policy.in_force' : 'policy.waits', digest, words)
    return status
  })
}

/**
 * Records why a policy file was refused. The last valid policy stays in force. Writes once for each
 * fault.
 */
export async function noteUnreadablePolicy(db: Db, digest: string | null, faults: SitePolicyFault[]): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockPolicies(trx)
    const before = await trx.selectFrom('sitePolicyReading').select(['digest', 'faults']).executeTakeFirst()
    await noteReading(trx, digest, faults)
    const [first] = faults
    if (!first || JSON.stringify(before?.faults) === JSON.stringify(faults)) return
    await record(trx, 'system', 'policy.refused', digest ?? 'policy.yaml', `Line ${first.line}: ${first.why}`)
  })
}

/**
 * Puts the waiting policy into force on behalf of an admin. Null if no waiting policy has this
 * digest.
 */
export async function acceptSitePolicy(
  db: Db,
  digest: string,
  person: { operatorId: string; name: string },
): Promise<{ digest: string } | null> {
  return await db.transaction().execute(async (trx) => {
    await lockPolicies(trx)
    const waiting = await standing(trx, 'waiting')
    if (waiting?.digest !== digest) return null
    const before = await standing(trx, 'in_force')
    if (before) await end(trx, before.id)
    await trx
      .updateTable('sitePolicy')
      .set({ status: 'in_force', inForceAt: now, acceptedBy: person.operatorId })
      .where('id', '=', waiting.id)
      .execute()
    await record(trx, person.name, 'policy.accepted', digest, `Accepted: ${waiting.widens[0] ?? 'nothing'}`)
    return { digest }
  })
}

/** Reads the policies that are in force, waiting, and last read. */
export async function readSitePolicies(db: Db): Promise<SitePolicyState> {
  const [inForce, waiting, reading] = [
    await standing(db, 'in_force'),
    await standing(db, 'waiting'),
    await db.selectFrom('sitePolicyReading').select(['readAt', 'digest', 'faults']).executeTakeFirst(),
  ]
  const held = inForce ? await compiledPolicy(db, inForce) : null
  const silences = held?.rules.some(({ silenced }) => silenced) ? await silenceReadings(db) : null
  return { inForce: toShown(inForce), waiting: toShown(waiting), reading: reading ?? null, silences }
}

function toShown(row: Awaited<ReturnType<typeof standing>>) {
  if (!row) return null
  const { id: _, gitCommit: commit, ...shown } = row
  return { ...shown, commit }
}

/** Returns the text of the policy in force. */
export async function textInForce(db: Db): Promise<string | null> {
  const row = await db.selectFrom('sitePolicy').select('text').where('status', '=', 'in_force').executeTakeFirst()
  return row?.text ?? null
}

/**
 * Returns the policy for `policy lint`: the waiting policy, if there is one, otherwise the policy
 * in force.
 */
export async function newestText(db: Db): Promise<{ text: string; status: 'waiting' | 'in_force' } | null> {
  const rows = await db
    .selectFrom('sitePolicy')
    .select(['text', 'status'])
    .where('status', 'in', ['waiting', 'in_force'])
    .execute()
  const found = rows.find(({ status }) => status === 'waiting') ?? rows[0]
  return found ? { text: found.text, status: found.status as 'waiting' | 'in_force' } : null
}

async function lockPolicies(trx: Trx): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('site_policy', 0))`.execute(trx)
}

async function standing(db: Db | Trx, status: 'in_force' | 'waiting') {
  return await db
    .selectFrom('sitePolicy')
    .leftJoin('operator', 'operator.id', 'sitePolicy.acceptedBy')
    .select(['sitePolicy.id', 'digest', 'place', 'gitCommit', 'widens', 'readAt', 'inForceAt'])
    .select('operator.name as acceptedBy')
    .where('status', '=', status)
    .executeTakeFirst()
}

async function noteReading(trx: Trx, digest: string | null, faults: SitePolicyFault[]): Promise<void> {
  const said = { readAt: now, digest, faults: JSON.stringify(faults) }
  await trx
    .insertInto('sitePolicyReading')
    .values(said)
    .onConflict((on) => on.column('onlyRow').doUpdateSet(said))
    .execute()
}

async function end(trx: Trx, id: string): Promise<void> {
  await trx.updateTable('sitePolicy').set({ status: 'past' }).where('id', '=', id).execute()
}

async function withdraw(trx: Trx, { id, digest }: { id: string; digest: string }): Promise<void> {
  await end(trx, id)
  await record(trx, 'system', 'policy.withdrawn', digest, 'Another file has replaced this policy.')
}

async function record(trx: Trx, who: string, what: `policy.${string}`, subject: string, detail: string): Promise<void> {
  await recordAudit(trx, { who, what, subject, detail })
}
