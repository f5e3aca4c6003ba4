import { sql } from 'kysely'
import { siteSource, siteToDeclared } from '../../domain/declared-resources.ts'
import type { Site, SiteChange } from '../../domain/site.ts'
import type { Db, Trx } from '../connect.ts'
import { declareResources } from './registry.ts'

/** The inventory that people and devices maintain if there is no platform. */

/** Reads the stored inventory in the form of a file to import. */
export async function readSite(db: Db | Trx): Promise<Site> {
  const [groups, nodes, hosts] = await Promise.all([
    db.selectFrom('shard').select(['id', 'region', 'role']).orderBy('id').execute(),
    db.selectFrom('node').select(['id', 'shard', 'hostname', 'ip']).orderBy('id').execute(),
    db.selectFrom('host').select(['id', 'region', 'rack', 'ramMib', 'cpuMc']).orderBy('id').execute(),
  ])
  return {
    groups: groups.map(({ id, region, role }) => ({ id, region, role: role === 'database' ? role : 'web' })),
    nodes: nodes.map(({ id, shard, hostname, ip }) => ({ id, group: shard, hostname, ip })),
    hosts,
  }
}

/** Lists the names of groups, which a tool with patterns would read as all their members. */
export async function listGroups(db: Db | Trx): Promise<string[]> {
  const { rows } = await sql<{ word: string }>`
    select id as word from shard union select id from region union select role::text from shard`.execute(db)
  return rows.map(({ word }) => word)
}

/** Thrown if a node, group or host with a device would be removed before it is revoked. */
export class HasDeviceError extends Error {
  override name = 'HasDeviceError' as const
}

/**
 * Adds and changes the content of an inventory file, and with `prune` removes everything else. A
 * file contains no health, so health stays unchanged, or unknown.
 */
export async function writeSite(trx: Trx, wanted: Site, { prune }: { prune: boolean }): Promise<SiteChange> {
  await sql`select pg_advisory_xact_lock(hashtextextended('inventory', 0))`.execute(trx)
  const before = await readSite(trx)
  const groups = withGroupsOfNodes(wanted, before)
  const differs = differing(before)
  const regions = [...new Set([...groups, ...wanted.hosts].map(({ region }) => region))]
  const regionOf = new Map([...before.groups, ...groups].map(({ id, region }) => [id, region]))
  await upsert(
    trx,
    'region',
    regions.map((id) => ({ id })),
    [],
  )
  await upsert(
    trx,
    'shard',
    groups.filter(differs).map(({ id, region, role }) => ({ id, region, role, status: 'unknown', config: '{}' })),
    ['region', 'role'],
  )
  await upsert(
    trx,
    'node',
    // Gives a node the region of its group.
    wanted.nodes.filter(groups.some(differs) ? () => true : differs).map(({ id, group, hostname = id, ip }) => ({
      ...{ id, shard: group, region: regionOf.get(group) as string, hostname, ip },
      ...{ role: 'web', status: 'unknown', diskByDirectory: '{}' },
    })),
    ['shard', 'region', 'hostname', 'ip'],
  )
  await upsert(
    trx,
    'host',
    wanted.hosts.filter(differs).map((host) => ({ ...host, state: 'live' })),
    ['region', 'rack', 'ramMib', 'cpuMc'],
  )
  const removed = prune ? await removeOthers(trx, { ...wanted, groups }) : []
  await declareSite(trx)
  return changeOf(before, { ...wanted, groups }, removed)
}

const rowsAtOnce = 1_000

/** Adds rows to a table, and changes the given columns of existing rows. */
async function upsert(
  trx: Trx,
  table: 'region' | 'shard' | 'node' | 'host',
  rows: readonly Record<string, unknown>[],
  changed: readonly string[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += rowsAtOnce) {
    await trx
      .insertInto(table)
      .values(rows.slice(from, from + rowsAtOnce) as never)
      .onConflict((on) =>
        changed.length === 0
          ? on.column('id').doNothing()
          : on
              .column('id')
              .doUpdateSet(Object.fromEntries(changed.map((column) => [column, sql.ref(`excluded.${column}`)]))),
      )
      .execute()
  }
}

/**
 * Declares the stored groups, nodes and hosts to the registry. Called after each change, and when
 * an API starts on an older database.
 */
export async function declareSite(trx: Trx): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('inventory', 0))`.execute(trx)
  await declareResources(trx, siteSource, siteToDeclared(await readSite(trx)))
  // Marks the last inventory of a platform as old. No platform is queried any more, so what the
  // platform listed cannot be changed.
  await sql`update inventory_sync set at = 'epoch' where at > 'epoch'`.execute(trx)
}

/** Adds the groups that nodes name, because a file need not list these groups. */
function withGroupsOfNodes({ groups, nodes }: Site, before: Site): Site['groups'] {
  const known = new Set([...groups, ...before.groups].map(({ id }) => id))
  const named = new Set(nodes.map(({ group }) => group).filter((id) => !known.has(id)))
  return [...groups, ...[...named].map((id) => ({ id, region: 'site', role: 'web' as const }))]
}

async function removeOthers(trx: Trx, { groups, nodes, hosts }: Site): Promise<string[]> {
  const ids = (items: readonly { id: string }[]) => [...items.map(({ id }) => id), '']
  const { rows } = await sql<{ id: string }>`
    select id from node where id <> all(${ids(nodes)}) union all select id from host where id <> all(${ids(hosts)})`.execute(
    trx,
  )
  const leaving = rows.map(({ id }) => id)
  const devices = await trx
    .selectFrom('device')
    .select('resourceId')
    .where('resourceId', 'in', [...leaving, ''])
    .where('revokedAt', 'is', null)
    .execute()
  if (devices.length > 0) {
    const named = devices.map(({ resourceId }) => resourceId).join(', ')
    throw new HasDeviceError(
      `${named}: not in the file, and has a device. Revoke the device first, or leave it in the file.`,
    )
  }
  await trx.deleteFrom('node').where('id', 'not in', ids(nodes)).execute()
  await trx.deleteFrom('link').execute()
  await trx.deleteFrom('vm').where('host', 'not in', ids(hosts)).execute()
  await trx.deleteFrom('host').where('id', 'not in', ids(hosts)).execute()
  const kept = new Set([...groups.map(({ id }) => id), ...nodes.map(({ group }) => group)])
  const gone = await trx
    .deleteFrom('shard')
    .where('id', 'not in', [...kept, ''])
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('tenant').select('id').whereRef('tenant.shard', '=', 'shard.id'))),
    )
    .returning('id')
    .execute()
  return [...leaving, ...gone.map(({ id }) => id)]
}

function changeOf(before: Site, after: Site, removed: readonly string[]): SiteChange {
  const flat = ({ groups, nodes, hosts }: Site) =>
    new Map([...groups, ...nodes, ...hosts].map((each) => [each.id, textOf(each)]))
  const [old, wanted] = [flat(before), flat(after)]
  return {
    added: [...wanted.keys()].filter((id) => !old.has(id)),
    changed: [...wanted].flatMap(([id, text]) => (old.has(id) && old.get(id) !== text ? [id] : [])),
    removed: [...removed],
    kept: [...old.keys()].filter((id) => !wanted.has(id) && !removed.includes(id)),
  }
}

/**
 * Returns a function that tells whether an entry is new or changed. Unchanged entries are not
 * written.
 */
function differing({ groups, nodes, hosts }: Site): (entry: Site[keyof Site][number]) => boolean {
  const known = new Set([...groups, ...nodes, ...hosts].map(textOf))
  return (entry) => !known.has(textOf(entry))
}

/**
 * Serializes an entry for comparison. Groups, nodes and hosts have different fields, so entries of
 * two kinds are never equal.
 */
const textOf = (entry: Site[keyof Site][number]): string =>
  JSON.stringify(Object.entries('ip' in entry ? { ...entry, hostname: entry.hostname ?? entry.id } : entry).sort())

/**
 * Adds a node for a device to the group `hosts` if there is no platform. The node has the address
 * of the device.
 */
export async function addNodeOfDevice(trx: Trx, id: string, url: string | null): Promise<void> {
  const ip = url === null ? '' : new URL(url).hostname.replace(/^\[|\]$/g, '')
  const node = { id, group: 'hosts', hostname: id, ip }
  await writeSite(trx, { groups: [], nodes: [node], hosts: [] }, { prune: false })
}

/** The inventory as the last synchronization left it. */
