import { z } from 'zod'
import { type DeclaredRelation, fileToDeclared, type SourceDeclaration, siteToDeclared } from './declared-resources.ts'
import { idPattern, relationKinds } from './kinds.ts'
import { findSecondValues, type PlacedRelation } from './one-value.ts'
import { attributes, inventoryKind, parseResourceKey, resourceKey } from './registry.ts'
import { listFaults } from './schema-faults.ts'

/** The inventory as a person writes it, and everything that is wrong with it. */

/**
 * The inventory as a person writes it: hosts, nodes in groups, other things that alerts may be
 * about, and how they relate. A group is what tools call a shard. A configured platform lists
 * hosts, nodes and groups; resources and relations are imported beside it.
 */
const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/, 'takes letters, digits, dots, dashes and underscores, 63 at most')
/** A name is one line, and what it looks like. */
const plainText = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(
      /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u,
      'holds a line break, a control character or one that is not seen: leave it out',
    )
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
   * Names in alerts: their labels `instance`, `hostname` and the like are held against id, name and
   * address.
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

/** Anything else that alerts may be about: a node's service, a database, a workload. */
const siteResource = z.strictObject({
  kind: inventoryKind,
  id: z.string().regex(idPattern, 'takes letters, digits and . _ : @ -, 128 at most'),
  name: plainText(200).optional(),
  /** Other names, host names and addresses that alerts may use. */
  aliases: z.array(plainText(253)).max(20).optional(),
  attributes: attributes.optional(),
})
const resourceName = z.string().refine((text) => parseResourceKey(text) !== null, {
  error: `is no resource: write kind:id, with one of ${inventoryKind.options.join(', ')}`,
})
const siteRelation = z.strictObject({ from: resourceName, kind: z.enum(relationKinds), to: resourceName })

/** What a list of the file holds. */
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

/** Hosts, and nodes in groups: what the platform's tables hold. */
const site = z.strictObject(siteLists)
export type Site = z.infer<typeof site>

/** A file of the inventory. What holds between its entries `findSiteFaults` says. */
export const siteFile = z.strictObject({
  ...siteLists,
  resources: z.array(siteResource).max(max.resources).default([]),
  relations: z.array(siteRelation).max(max.relations).default([]),
})
export type SiteFile = z.infer<typeof siteFile>

/** What an import does or would do, by id; `kept` is not in the file and stays. */
export const siteChange = z.object({
  added: z.array(z.string()),
  changed: z.array(z.string()),
  removed: z.array(z.string()),
  kept: z.array(z.string()),
  /** Neighbours in the largest groups of the file: reversible writes run unasked on them. */
  vicinity: z.array(z.object({ of: z.string(), neighbours: z.number().int() })).optional(),
})
export type SiteChange = z.infer<typeof siteChange>

/** A file with more entries than this is imported by a job. */
export const maxEntriesAtOnce = 2_000

export function countEntries(file: Readonly<Partial<Record<ListName, unknown>>>): number {
  return (Object.keys(items) as ListName[]).reduce((sum, name) => {
    const list = file[name]
    return sum + (Array.isArray(list) ? list.length : 0)
  }, 0)
}

/** How the import of a large file is. */
export const inventoryImport = z.object({
  id: z.string(),
  /** `lost`: the process that carried it out ended, and nothing was stored. */
  state: z.enum(['running', 'done', 'failed', 'lost']),
  entries: z.number().int(),
  /** What it is at; `done` of `total`. */
  step: z.string(),
  done: z.number().int(),
  total: z.number().int(),
  /** What it did, or as a dry run would do. */
  change: siteChange.nullable(),
  applied: z.boolean(),
  /** Why it failed: the whole of it, and each place. */
  reason: z.string().nullable(),
  faults: z.array(z.object({ field: z.string().nullable(), message: z.string() })),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
})
export type InventoryImport = z.infer<typeof inventoryImport>

/** `field`: where it is, as `resources.3.id`; null: the file as a whole. */
export type SiteFault = { field: string | null; message: string }

/**
 * All faults of a file, entry by entry and between entries. `known`: keys of resources that others
 * list; null where that is unknown, as on a person's machine.
 */
export function findSiteFaults(raw: unknown, known: ReadonlySet<string> | null): SiteFault[] {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw))
    return [{ field: null, message: `is no inventory: it is a map of ${Object.keys(items).join(', ')}` }]
  const file = raw as Record<string, unknown>
  const faults: SiteFault[] = Object.keys(file)
    .filter((name) => !(name in items))
    .map((name) => ({ field: name.slice(0, 60), message: `is none of ${Object.keys(items).join(', ')}` }))
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
  for (const { id } of valid.nodes) if (isHost.has(id)) faults.push({ field: 'nodes', message: `${id} is a host, too` })
  const between = findBetween(valid, file.resources, known).map((message) => ({ field: null, message }))
  return [...faults, ...findSecondValues(placedRelations(valid, places)), ...between]
}

/** Relations in the file, with places: a node has its group, a group and a host their region. */
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

/** Adds the faults of each entry of a list; entries that have none are added to `valid`. */
function checkList(
  name: ListName,
  list: unknown,
  { valid, faults, places }: { valid: unknown[]; faults: SiteFault[]; places: Map<object, string> },
): void {
  if (list === undefined) return
  if (!Array.isArray(list)) {
    faults.push({ field: name, message: 'is no list' })
    return
  }
  if (list.length > max[name]) faults.push({ field: name, message: `has ${list.length} entries, ${max[name]} at most` })
  const seen = new Set<string>()
  for (const [at, entry] of list.slice(0, max[name]).entries()) {
    const parsed = items[name].safeParse(entry)
    if (parsed.success) valid.push(parsed.data)
    if (parsed.success) places.set(parsed.data, `${name}.${at}`)
    for (const { field, message } of parsed.error ? listFaults(parsed.error) : [])
      faults.push({ field: [name, at, field].filter((part) => part !== '').join('.'), message })
    const key = keyOf(name, entry)
    if (key !== null && seen.has(key)) faults.push({ field: `${name}.${at}`, message: `${key} is there twice` })
    if (key !== null) seen.add(key)
  }
}

/** What may stand in a list once: the id, and of resources with its kind. */
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
    // An end that is listed with a fault is not unknown as well.
    ...(Array.isArray(given) ? given : []).flatMap((each) => keyOf('resources', each) ?? []),
    ...(known ?? relations.flatMap(({ from, to }) => [from, to])),
  ]
  return findDeclarationFaults(fileToDeclared({ resources: once, relations }), new Set(own))
}

/** All faults of a declaration: unknown ends, loops along what belongs or runs, an id twice. */
export function findDeclarationFaults(
  { resources, relations }: SourceDeclaration,
  known: ReadonlySet<string> = new Set(),
): string[] {
  const faults: string[] = []
  const keys = new Set<string>()
  for (const { kind, id } of resources) {
    const key = resourceKey({ kind, id })
    if (!idPattern.test(id))
      faults.push(`${kind} ${JSON.stringify(id)} is no id: letters, digits and . _ : @ - are taken, 128 at most`)
    if (keys.has(key)) faults.push(`${key} is there twice`)
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
 * Loops along `belongs_to`, `runs_on` and `depends_on`, each once as the path that closes it; the
 * first of many.
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
    // Depth first without recursion: a chain may be 100,000 long.
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
