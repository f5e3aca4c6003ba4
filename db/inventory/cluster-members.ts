import { sql } from 'kysely'
import { sha256 } from '../../domain/digest.ts'
import { type ClusterMember, workloadId } from '../../domain/listed-cluster.ts'
import { cleanse } from '../../safety/redact.ts'
import { onceNow } from '../clock.ts'
import type { Trx } from '../connect.ts'

/**
 * Stores pods of clusters and their owners by name, because alerts name pods even after they are
 * gone.
 */

/** The time for which removed pods are kept, and the maximum number in each cluster. */
const keptDays = sql`interval '7 days'`
const maxGone = 50_000

/**
 * Replaces the stored members of a cluster by its current list. Pods and owners that are missing
 * from the list are marked as gone. An unchanged list costs one query.
 */
export async function mergeMembers(trx: Trx, source: string, members: readonly ClusterMember[]): Promise<void> {
  const digest = sha256(JSON.stringify(members))
  const before = await trx.selectFrom('clusterListing').select('digest').where('source', '=', source).executeTakeFirst()
  if (before?.digest === digest) return
  await trx
    .insertInto('clusterListing')
    .values({ source, digest })
    .onConflict((on) => on.column('source').doUpdateSet({ digest }))
    .execute()
  const rows = members.map(({ uid, namespace, name, workload, goneMs }) => ({
    uid,
    namespace,
    name: name.toLowerCase(),
    workload: workloadId(source, workload),
    gone_at: goneMs === null ? null : new Date(goneMs).toISOString(),
  }))
  const declared = sql`jsonb_to_recordset(${JSON.stringify(cleanse(rows))}::jsonb)
    as declared (uid text, namespace text, name text, workload text, gone_at timestamptz)`
  await sql`
    insert into cluster_member (source, uid, namespace, name, workload, gone_at)
    select distinct on (uid) ${source}, uid, namespace, name, workload, gone_at from ${declared}
    on conflict (source, uid) do update set workload = excluded.workload, gone_at = excluded.gone_at
      where (cluster_member.workload, cluster_member.gone_at) is distinct from (excluded.workload, excluded.gone_at)`.execute(
    trx,
  )
  await sql`
    update cluster_member set gone_at = ${onceNow}
    where source = ${source} and gone_at is null
      and not exists (select from ${declared} where declared.uid = cluster_member.uid)`.execute(trx)
  await sql`
    delete from cluster_member where source = ${source} and gone_at is not null and (gone_at < ${onceNow} - ${keptDays} or uid in (
      select uid from cluster_member where source = ${source} and gone_at is not null order by gone_at desc offset ${maxGone}))`.execute(
    trx,
  )
}

/** Deletes all stored members of a source that now belongs to another cluster. */
export async function forgetMembers(trx: Trx, source: string): Promise<void> {
  await trx.deleteFrom('clusterMember').where('source', '=', source).execute()
  await trx.deleteFrom('clusterListing').where('source', '=', source).execute()
}
