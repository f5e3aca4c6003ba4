import { type Kysely, sql } from 'kysely'

/**
 * Creates the list of pods and the objects that create them, with the workload to which each
 * belongs. Deleted objects are kept for some days, because alerts still name them.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table cluster_member (
      source text not null references source (name) on delete cascade,
      uid text not null check (length(uid) <= 253),
      namespace text not null check (length(namespace) <= 253),
      name text not null check (length(name) <= 253),
      workload text not null check (length(workload) <= 128),
      gone_at timestamptz,
      primary key (source, uid)
    )`.execute(db)
  await sql`create index cluster_member_name on cluster_member (name)`.execute(db)
  await sql`create index cluster_member_gone on cluster_member (source, gone_at) where gone_at is not null`.execute(db)
  await sql`
    create table cluster_listing (
      source text primary key references source (name) on delete cascade,
      digest text not null check (length(digest) = 64)
    )`.execute(db)
  await sql`grant select, insert, update, delete on cluster_member, cluster_listing to nightshift_app`.execute(db)
}
