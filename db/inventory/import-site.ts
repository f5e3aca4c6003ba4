import { sql } from 'kysely'
import { fileToDeclared, importSource, type SourceDeclaration } from '../../domain/declared-resources.ts'
import { findTwoInOne, nameRelation, withNewValues } from '../../domain/one-value.ts'
import { ref, resourceKey } from '../../domain/registry.ts'
import { findDeclarationFaults, type SiteChange, type SiteFile } from '../../domain/site.ts'
import type { Db, Trx } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import { declareResources, type ImportProgress, touchSource } from './registry.ts'
import { neighboursOf } from './resources.ts'
import { readSite, writeSite } from './site.ts'

/** Thrown if the inventory file contradicts itself. `faults`: every fault as a sentence. */
export class ImportFaultsError extends Error {
  override name = 'ImportFaultsError' as const
  readonly faults: string[]
  constructor(faults: string[]) {
    super(faults[0] ?? '')
    this.faults = faults
  }
}

/**
 * Reads the inventory in the form of a file to import: imported resources and, if there is no
 * platform, hosts, nodes and groups.
 */
export async function readSiteFile(db: Db | Trx, { hasPlatform }: { hasPlatform: boolean }): Promise<SiteFile> {
  const { resources, relations } = await readImported(db)
  return {
    ...(hasPlatform ? { groups: [], nodes: [], hosts: [] } : await readSite(db)),
    resources: resources.map(({ name, aliases = [], attributes = {}, kind, id }) => ({
      kind,
      id,
      ...(name !== id && { name }),
      ...(aliases.length > 0 && { aliases: [...aliases] }),
      ...(Object.keys(attributes).length > 0 && { attributes }),
    })),
    relations: relations.map(({ from, kind, to }) => ({ from: resourceKey(from), kind, to: resourceKey(to) })),
  }
}

export type ImportWish = { isDryRun: boolean; isPruning: boolean; hasPlatform: boolean; who: string }

type ImportSteps = {
  begin?: (trx: Trx) => Promise<void>
  onProgress?: ImportProgress
  end?: (trx: Trx, change: SiteChange) => Promise<void>
}

/** Thrown to undo an import that was only a dry run. */
class OnlyShown extends Error {
  readonly change: SiteChange
  constructor(change: SiteChange) {
    super('a dry run')
    this.change = change
  }
}

/**
 * Adds and changes the content of an inventory file, and with `prune` removes everything else. All
 * or nothing: throws ImportFaultsError with every fault. `begin` runs first in the transaction, and
 * `end` runs last.
 */
export async function importSiteFile(
  db: Db,
  file: SiteFile,
  wish: ImportWish,
  { begin, onProgress, end }: ImportSteps = {},
): Promise<SiteChange> {
  try {
    return await db.transaction().execute(async (trx) => {
      await begin?.(trx)
      const made = await writeFile(trx, file, wish, onProgress)
      made.vicinity = await largestVicinities(trx, file)
      if (wish.isDryRun) throw new OnlyShown(made)
      const detail = `${made.added.length} added, ${made.changed.length} changed, ${made.removed.length} removed`
      await recordAudit(trx, { who: wish.who, what: 'inventory.imported', subject: 'inventory', detail })
      await end?.(trx, made)
      return made
    })
  } catch (error) {
    if (error instanceof OnlyShown) return error.change
    throw error
  }
}

const maxGroupsSaid = 3

/**
 * Finds the groups of the file with the most neighbours. Membership in a group determines which
 * writes run automatically.
 */
async function largestVicinities(trx: Trx, { groups, nodes, relations }: SiteFile): Promise<SiteChange['vicinity']> {
  const ends = relations.flatMap(({ to }) => (to.startsWith('shard:') ? [to.slice('shard:'.length)] : []))
  const ids = [...new Set([...groups.map(({ id }) => id), ...nodes.map(({ group }) => group), ...ends])]
  const { rows } = await sql<{ id: string }>`
    select to_id as id from relation where to_kind = 'shard' and to_id = any(${ids}::text[]) and kind = 'belongs_to'
    group by 1 order by count(distinct (from_kind, from_id)) desc, 1 limit ${maxGroupsSaid}`.execute(trx)
  const said = []
  for (const { id } of rows)
    said.push({ of: `shard:${id}`, neighbours: (await neighboursOf(trx, ref('shard', id))).length })
  return said
}

async function writeFile(
  trx: Trx,
  file: SiteFile,
  { isPruning: prune, hasPlatform }: ImportWish,
  onProgress?: ImportProgress,
): Promise<SiteChange> {
  const { groups, nodes, hosts } = file
  // Takes a lock before earlier imports are read. Of two simultaneous imports, the later one then
  // adds to the earlier one.
  await sql`select pg_advisory_xact_lock(hashtextextended('inventory', 0))`.execute(trx)
  const change: SiteChange = !hasPlatform
    ? await writeSite(trx, { groups, nodes, hosts }, { prune })
    : { added: [], changed: [], removed: [], kept: [] }
  const before = await readImported(trx)
  const declared = prune ? fileToDeclared(file) : mergeSites(before, fileToDeclared(file))
  const imported = changesOf(before, declared)
  if (imported.added.length + imported.changed.length + imported.removed.length === 0) {
    await touchSource(trx, importSource)
    return change
  }
  const faults = [
    ...findDeclarationFaults(declared, await knownKeys(trx, { prune: true })),
    ...findTwoWithBefore(before, declared),
  ]
  if (faults.length > 0) throw new ImportFaultsError(faults)
  await declareResources(trx, importSource, declared, onProgress)
  return {
    added: [...change.added, ...imported.added],
    changed: [...change.changed, ...imported.changed],
    removed: [...change.removed, ...imported.removed],
    kept: change.kept,
  }
}

async function readImported(db: Db | Trx): Promise<SourceDeclaration> {
  const resources = await db
    .selectFrom('resourceSource')
    .select(['kind', 'id', 'name', 'aliases', 'attributes'])
    .where('source', '=', importSource.name)
    .orderBy('kind')
    .orderBy('id')
    .execute()
  const relations = await db
    .selectFrom('relation')
    .selectAll()
    .where('source', '=', importSource.name)
    .orderBy('fromKind')
    .orderBy('fromId')
    .orderBy('kind')
    .orderBy('toKind')
    .orderBy('toId')
    .execute()
  return {
    resources,
    relations: relations.map(({ fromKind, fromId, kind, toKind, toId }) => ({
      from: { kind: fromKind, id: fromId },
      kind,
      to: { kind: toKind, id: toId },
    })),
  }
}

function mergeSites(before: SourceDeclaration, wanted: SourceDeclaration): SourceDeclaration {
  const resources = new Map([...before.resources, ...wanted.resources].map((each) => [resourceKey(each), each]))
  return { resources: [...resources.values()], relations: withNewValues(before.relations, wanted.relations) }
}

/** Finds machines that only the file together with earlier imports would join. */
function findTwoWithBefore(before: SourceDeclaration, after: SourceDeclaration): string[] {
  const look = ({ relations }: SourceDeclaration) =>
    findTwoInOne(relations.map((relation) => ({ relation, place: 'as imported before' })))
  const known = new Set(look(before).map(({ pair }) => pair))
  return look(after).flatMap(({ pair, message }) => (known.has(pair) ? [] : [message]))
}

/**
 * Lists keys that a relation of the file may name because other sources list them. With `prune`,
 * leaves out earlier imports.
 */
export async function knownKeys(db: Db | Trx, { prune }: { prune: boolean }): Promise<Set<string>> {
  const { rows } = await sql<{ key: string }>`
    select distinct kind || ':' || id as key from resource_source
    where not ${prune} or source <> ${importSource.name}`.execute(db)
  return new Set(rows.map(({ key }) => key))
}

function changesOf(
  before: SourceDeclaration,
  after: SourceDeclaration,
): Pick<SiteChange, 'added' | 'changed' | 'removed'> {
  const flat = ({ resources, relations }: SourceDeclaration) =>
    new Map([
      ...resources.map(({ kind, id, name = id, aliases = [], attributes = {} }) => {
        // Sorts the attributes by name, because the database returns them in another order.
        const inOrder = Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1))
        return [`${kind}:${id}`, JSON.stringify([name, aliases, inOrder])] as const
      }),
      ...relations.map((each) => [nameRelation(each), ''] as const),
    ])
  const [old, wanted] = [flat(before), flat(after)]
  return {
    added: [...wanted.keys()].filter((key) => !old.has(key)),
    changed: [...wanted].flatMap(([key, text]) => (old.has(key) && old.get(key) !== text ? [key] : [])),
    removed: [...old.keys()].filter((key) => !wanted.has(key)),
  }
}
