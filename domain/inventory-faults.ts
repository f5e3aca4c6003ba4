import type { z } from 'zod'
import { idPattern } from './kinds.ts'
import { type Declared, type DeclaredRelation, fileToDeclared } from './registry.ts'
import { resourceKey } from './resource.ts'
import { items, type ListName, most, type SiteFile } from './site.ts'

/** What is wrong with an inventory, all of it at once: entry by entry, and between entries. Files may hold 100,000 of them. */

/** `field`: where it is, as `resources.3.id`; null: the file as a whole. */
export type SiteFault = { field: string | null; message: string }

/**
 * Everything that is wrong with a file, entry by entry and between them, however many entries are wrong. `known`: keys of resources that
 * others list; null where that cannot be told, as on a person's machine.
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
  for (const name of Object.keys(items) as ListName[]) checkList(name, file[name], valid[name], faults)
  const isHost = new Set(valid.hosts.map(({ id }) => id))
  for (const { id } of valid.nodes) if (isHost.has(id)) faults.push({ field: 'nodes', message: `${id} is a host, too` })
  return faults.concat(findBetween(valid, file.resources, known).map((message) => ({ field: null, message })))
}

/** Adds the faults of each entry of a list; entries that have none are added to `valid`. */
function checkList(name: ListName, list: unknown, valid: unknown[], faults: SiteFault[]): void {
  if (list === undefined) return
  if (!Array.isArray(list)) {
    faults.push({ field: name, message: 'is no list' })
    return
  }
  if (list.length > most[name])
    faults.push({ field: name, message: `has ${list.length} entries, ${most[name]} at most` })
  const seen = new Set<string>()
  for (const [at, entry] of list.slice(0, most[name]).entries()) {
    const parsed = items[name].safeParse(entry)
    if (parsed.success) valid.push(parsed.data)
    for (const { path, message } of parsed.error?.issues ?? [])
      faults.push({ field: [name, at, ...path].join('.'), message })
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
    // What is there with a fault is no unknown end besides.
    ...(Array.isArray(given) ? given : []).flatMap((each) => keyOf('resources', each) ?? []),
    ...(known ?? relations.flatMap(({ from, to }) => [from, to])),
  ]
  return findDeclarationFaults(fileToDeclared({ resources: once, relations }), new Set(own))
}

/** Faults of a declaration, all of them at once: unknown ends, loops along what belongs or runs, one id twice. */
export function findDeclarationFaults(
  { resources, relations }: Declared,
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

const mostLoops = 50
const mostSteps = 8

/** Loops along `belongs_to`, `runs_on` and `depends_on`, each once, as the path that closes it; of many the first. */
function findLoops(relations: readonly DeclaredRelation[]): string[] {
  const next = new Map<string, string[]>()
  for (const { from, kind, to } of relations) {
    if (kind !== 'belongs_to' && kind !== 'runs_on' && kind !== 'depends_on') continue
    const [left, right] = [resourceKey(from), resourceKey(to)]
    if (left !== right) next.set(left, [...(next.get(left) ?? []), right])
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
        if (loops.length >= mostLoops) return [...loops, 'more loops, which are not named']
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
    around.length <= mostSteps
      ? around
      : [...around.slice(0, mostSteps - 1), `… ${around.length - mostSteps} more …`, around.at(-1)]
  return [...shown, around[0]].join(' → ')
}
