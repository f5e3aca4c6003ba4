import { z } from 'zod'
import { type DeclaredRelation, fileToDeclared, type SourceDeclaration, siteToDeclared } from './declared-resources.ts'
import { idPattern, relationKinds } from './kinds.ts'
import { findSecondValues, type PlacedRelation } from './one-value.ts'
import { attributes, inventoryKind, parseResourceKey, resourceKey } from './registry.ts'
import { listFaults } from './schema-faults.ts'

/** The inventory as a person writes it, and all faults in it. */

/**
 * The inventory as a person writes it: hosts, nodes in groups, other resources that alerts may be
 * about, and their relations. A group is what tools call a shard. If a platform is configured, it
 * lists hosts, nodes and groups, and only resources and relations are imported.
 */
const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/, 'must be letters, digits, dots, dashes and underscores, 63 at most')
/** A text of one line without invisible characters. */
const plainText = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'has a line break, a control character or an invisible one: leave it out')
const address = plainText(253)

const group = z.strictObject({
  id: name,
  region: name.default('site'),
  role: z.enum(['database', 'web']).default('web'),
})
const siteNode = z.strictObject({
  id: name,
  group: name.default('hosts'),
  /**
   * The host name of the machine, which is compared with labels of alerts. Labels such as
   * `instance` and `hostname` may contain the id, the name or the address.
   */
  hostname: address.optional(),
  ip: z.string().max(253).default(''),
})
const siteHost = z.strictObject({
  id: name,
  region: name.default('site'),
  rack: name.default('rack'),
  ramMib: z.number().int().min(1).max(1_000_000_000),
  cpuMc: z.number().int().min(1).max(1_000_000_000),
})

/** A resource of another kind that alerts may be about: a service, a database, a workload. */
const siteResource = z.strictObject({
  kind: inventoryKind,
  id: z.string().regex(idPattern, 'must be letters, digits and . _ : @ -, 128 at most'),
  name: plainText(200).optional(),
  /** Other names, host names and addresses by which alerts name the resource. */
  aliases: z.array(plainText(253)).max(20).optional(),
  attributes: attributes.optional(),
})
const resourceName = z.string().refine((text) => parseResourceKey(text) !== null, {
  error: `is not a resource: write kind:id, with one of ${inventoryKind.options.join(', ')}`,
})
const siteRelation = z.strictObject({ from: resourceName, kind: z.enum(relationKinds), to: resourceName })

/** The schema of the entries in each list of the inventory file. */
const items = {
  groups: group,
  nodes: siteNode,
  hosts: siteHost,
  resources: siteResource,
  relations: siteRelation,
}
const max = { groups: 1_000, nodes: 10_000, hosts: 10_000, resources: 100_000, relations: 400_000 } as const
type ListName = keyof typeof items

const siteLists = {
  groups: z.array(group).max(max.groups).default([]),
  nodes: z.array(siteNode).max(max.nodes).default([]),
  hosts: z.array(siteHost).max(max.hosts).default([]),
}

/** Hosts, and nodes in groups, as the tables of the platform store them. */
const site = z.strictObject(siteLists)
export type Site = z.infer<typeof site>

/** An inventory file. `findSiteFaults` checks its entries against each other. */
export const siteFile = z.strictObject({
  ...siteLists,
  resources: z.array(siteResource).max(max.resources).default([]),
  relations: z.array(siteRelation).max(max.relations).default([]),
})
export type SiteFile = z.infer<typeof siteFile>

/**
 * The ids that an import changes, or would change. `kept`: ids that are not in the file but stay.
 */
export const siteChange = z.object({
  added: z.array(z.string()),
  changed: z.array(z.string()),
  removed: z.array(z.string()),
  kept: z.array(z.string()),
  /**
   * Sizes of the largest groups in the inventory file. Within a group, reversible writes run
   * automatically.
   */
  vicinity: z.array(z.object({ of: z.string(), neighbours: z.number().int() })).optional(),
})
export type SiteChange = z.infer<typeof siteChange>

/** The number of entries above which an inventory file is imported in the background. */
export const maxEntriesAtOnce = 2_000

export function countEntries(file: Readonly<Partial<Record<ListName, unknown>>>): number {
  return (Object.keys(items) as ListName[]).reduce((sum, name) => {
    const list = file[name]
    return sum + (Array.isArray(list) ? list.length : 0)
  }, 0)
}

/** The state of the import of a large file. */
export const inventoryImport = z.object({
  id: z.string(),
  /** `lost`: the process that imported the file ended, and nothing was stored. */
  state: z.enum(['running', 'done', 'failed', 'lost']),
  entries: z.number().int(),
  /** The current step of the import, in which `done` of `total` entries are processed. */
  step: z.string(),
  done: z.number().int(),
  total: z.number().int(),
  /** The changes that the import made, or would make in a dry run. */
  change: siteChange.nullable(),
  applied: z.boolean(),
  /** Why the import failed, as a whole and at each place of the file. */
  reason: z.string().nullable(),
  faults: z.array(z.object({ field: z.string().nullable(), message: z.string() })),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
})
export type InventoryImport = z.infer<typeof inventoryImport>

/**
 * `field`: the place of the fault, such as `resources.3.id`. Null stands for the file as a whole.
 */
export type SiteFault = { field: string | null; message: string }

/**
 * Lists all faults of an inventory file, within entries and between them. `known`: keys of
 * resources that other sources list. Null if these keys are unknown, as on a person's machine.
 */
export function findSiteFaults(raw: unknown, known: ReadonlySet<string> | null): SiteFault[] {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw))
    return [{ field: null, message: `is not an inventory: write a map of ${Object.keys(items).join(', ')}` }]
  const file = raw as Record<string, unknown>
  const faults: SiteFault[] = Object.keys(file)
    .filter((name) => !(name in items))
    .map((name) => ({ field: name.slice(0, 60), message: `must be one of ${Object.keys(items).join(', ')}` }))
  const valid: { [name in ListName]: z.output<(typeof items)[name]>[] } = {
    groups: [],
    nodes: [],
    hosts: [],
    resources: [],
    relations: [],
  }
  const places = new Map<object, string>()
  for (const name of Object.keys(items) as ListName[])
    checkList(name, file[name], { valid: valid[name], faults, places })
  const isHost = new Set(valid.hosts.map(({ id }) => id))
  for (const { id } of valid.nodes) if (isHost.has(id)) faults.push({ field: 'nodes', message: `${id} is also a host` })
  const between = findBetween(valid, file.resources, known).map((message) => ({ field: null, message }))
  return [...faults, ...findSecondValues(placedRelations(valid, places)), ...between]
}

/**
 * Lists the relations in the file with their places. Relations also follow from the group of a
 * node, and from the region of a group or host.
 */
function placedRelations(
  { groups, nodes, hosts, relations }: Pick<SiteFile, ListName>,
  places: ReadonlyMap<object, string>,
): PlacedRelation[] {
  const none = { groups: [], nodes: [], hosts: [] }
  const given = [
    ...groups.map((each) => [each, siteToDeclared({ ...none, groups: [each] })] as const),
    ...nodes.map((each) => [each, siteToDeclared({ ...none, nodes: [each] })] as const),
    ...hosts.map((each) => [each, siteToDeclared({ ...none, hosts: [each] })] as const),
    ...relations.map((each) => [each, fileToDeclared({ resources: [], relations: [each] })] as const),
  ]
  return given.flatMap(([each, declared]) =>
    declared.relations.map((relation) => ({ relation, place: places.get(each) ?? '' })),
  )
}

/**
 * Adds the faults of each entry in a list to `faults`, and the entries without faults to `valid`.
 */
function checkList(
  name: ListName,
  list: unknown,
  { valid, faults, places }: { valid: unknown[]; faults: SiteFault[]; places: Map<object, string> },
): void {
  if (list === undefined) return
  if (!Array.isArray(list)) {
    faults.push({ field: name, message: 'is not a list' })
    return
  }
  if (list.length > max[name])
    faults.push({ field: name, message: `has ${list.length} entries, and at most ${max[name]} are allowed` })
  const seen = new Set<string>()
  for (const [at, entry] of list.slice(0, max[name]).entries()) {
    const parsed = items[name].safeParse(entry)
    if (parsed.success) valid.push(parsed.data)
    if (parsed.success) places.set(parsed.data, `${name}.${at}`)
    for (const { field, message } of parsed.error ? listFaults(parsed.error) : [])
      faults.push({ field: [name, at, field].filter((part) => part !== '').join('.'), message })
    const key = keyOf(name, entry)
    if (key !== null && seen.has(key)) faults.push({ field: `${name}.${at}`, message: `${key} is listed twice` })
    if (key !== null) seen.add(key)
  }
}

/** Returns an entry's key, unique in its list: the id, and for resources also the kind. */
function keyOf(name: ListName, entry: unknown): string | null {
  const { kind, id } = (entry ?? {}) as { kind?: unknown; id?: unknown }
  if (typeof id !== 'string' || name === 'relations') return null
  if (name !== 'resources') return id
  return typeof kind === 'string' ? `${kind}:${id}` : null
}

function findBetween(
  { groups, nodes, hosts, resources, relations }: Pick<SiteFile, ListName>,
  given: unknown,
  known: ReadonlySet<string> | null,
): string[] {
  const once = [...new Map(resources.map((each) => [`${each.kind}:${each.id}`, each])).values()]
  const own = [
    ...groups.flatMap(({ id, region }) => [`shard:${id}`, `region:${region}`]),
    ...nodes.flatMap(({ id, group: of }) => [`node:${id}`, `shard:${of}`]),
    ...hosts.flatMap(({ id, region }) => [`host:${id}`, `region:${region}`]),
    // Includes entries with faults, so that a relation to an entry with a fault is not also
    // reported as unknown.
    ...(Array.isArray(given) ? given : []).flatMap((each) => keyOf('resources', each) ?? []),
    ...(known ?? relations.flatMap(({ from, to }) => [from, to])),
  ]
  return findDeclarationFaults(fileToDeclared({ resources: once, relations }), new Set(own))
}

/** Lists all faults of a source's declaration: unknown ends of relations, loops, repeated ids. */
export function findDeclarationFaults(
  { resources, relations }: SourceDeclaration,
  known: ReadonlySet<string> = new Set(),
): string[] {
  const faults: string[] = []
  const keys = new Set<string>()
  for (const { kind, id } of resources) {
    const key = resourceKey({ kind, id })
    if (!idPattern.test(id))
      faults.push(`${kind} ${JSON.stringify(id)} is not an id: letters, digits and . _ : @ - are allowed, 128 at most`)
    if (keys.has(key)) faults.push(`${key} is listed twice`)
    keys.add(key)
  }
  for (const { from, kind, to } of relations) {
    for (const end of [from, to]) {
      const key = resourceKey(end)
      if (!keys.has(key) && !known.has(key))
        faults.push(`${resourceKey(from)} ${kind} ${resourceKey(to)}: ${key} is not known`)
    }
    if (resourceKey(from) === resourceKey(to)) faults.push(`${resourceKey(from)} ${kind} itself`)
  }
  return [...new Set([...faults, ...findLoops(relations)])]
}

const maxLoops = 50
const maxSteps = 8

/**
 * Finds loops along `belongs_to`, `runs_on` and `depends_on`. Returns each loop once, as the path
 * around the loop.
 */
function findLoops(relations: readonly DeclaredRelation[]): string[] {
  const next = new Map<string, string[]>()
  for (const { from, kind, to } of relations) {
    if (kind !== 'belongs_to' && kind !== 'runs_on' && kind !== 'depends_on') continue
    const [left, right] = [resourceKey(from), resourceKey(to)]
    if (left === right) continue
    const more = next.get(left) ?? []
    more.push(right)
    next.set(left, more)
  }
  const loops: string[] = []
  const done = new Set<string>()
  for (const start of next.keys()) {
    // Searches depth first without recursion, because a chain of relations may be 100,000 long.
    const path: { key: string; rest: string[] }[] = [{ key: start, rest: [...(next.get(start) ?? [])] }]
    const onPath = new Map([[start, 0]])
    if (done.has(start)) continue
    while (path.length > 0) {
      const top = path[path.length - 1] as { key: string; rest: string[] }
      const to = top.rest.pop()
      if (to === undefined) {
        path.pop()
        onPath.delete(top.key)
        done.add(top.key)
      } else if (onPath.has(to)) {
        const around = path.slice(onPath.get(to)).map(({ key }) => key)
        loops.push(`a loop: ${formatLoop(around)}`)
        if (loops.length >= maxLoops) return [...loops, 'more loops, which are not named']
      } else if (!done.has(to)) {
        onPath.set(to, path.length)
        path.push({ key: to, rest: [...(next.get(to) ?? [])] })
      }
    }
  }
  return loops
}

function formatLoop(around: readonly string[]): string {
  const shown =
    around.length <= maxSteps
      ? around
      : [...around.slice(0, maxSteps - 1), `… ${around.length - maxSteps} more …`, around.at(-1)]
  return [...shown, around[0]].join(' → ')
}
