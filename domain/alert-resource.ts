import { type AlertLabels, saysOther, toPlainLabels } from './alert-labels.ts'
import {
  isAddress,
  isOwnName,
  listMachine,
  namesOf,
  type Sought,
  saysNothing,
  toMachineNames,
} from './alert-machines.ts'
import { listSought, namespaceOf } from './alert-subjects.ts'
import { type InventoryKind, machineKinds } from './kinds.ts'
import { type ResourceRef, resourceKey } from './registry.ts'
import type { ResourceRule } from './resource-rules.ts'

/**
 * Finds the resource of an alert. Labels choose among resources that the registry knows; a label
 * never adds a resource. The order of the steps is published (`docs/reference/ingest.md`), and each
 * step is recorded for people. A name that two resources share decides nothing.
 */

/** A resource that has one of the names, with the resources that it belongs to and runs on. */
export type KnownResource = ResourceRef & {
  kind: InventoryKind
  names: readonly string[]
  /** The registry's key of the resource, which is equal for all names of the resource. */
  canonical: string
  /**
   * Whether exporters that measure other machines run on this resource, according to an inventory
   * or to the targets scraped there.
   */
  runsExporters?: boolean
  above: readonly { kind: InventoryKind; id: string; names: readonly string[] }[]
}

type ResourceAttempt = { label: string; name: string; result: 'found' | 'unknown' | 'several' | 'elsewhere' }

export type AlertResource = {
  resource: ResourceRef | null
  /** The label that named the resource; null if no label did. */
  by: string | null
  tried: ResourceAttempt[]
  /** Keys (`kind:id`) of the resources that an ambiguous name may mean. */
  candidates: string[]
}

/** Lists all names that could decide, so that one query to the registry finds all of them. */
export function namesToLookUp(labels: AlertLabels, rules: readonly ResourceRule[]): string[] {
  const { plain } = toPlainLabels(labels)
  return [
    ...new Set([
      ...[...listSought(plain, rules), ...listMachine(plain)].flatMap(({ names }) => names),
      ...placeLabels.flatMap((label) => namesOf(plain[label])),
      ...namesOf(namespaceOf(plain)),
      ...jobNames(plain),
    ]),
  ]
}

/**
 * Lists the labels, as the sender wrote them, that no step of the order reads and that are not on
 * every alert.
 */
export function labelsLeft(labels: AlertLabels, rules: readonly ResourceRule[]): string[] {
  const { plain, written } = toPlainLabels(labels)
  const asked = new Set([...listSought(plain, rules), ...listMachine(plain)].map(({ label }) => label))
  return [...written].flatMap(([name, label]) =>
    asked.has(name) || saysNothing.has(name) || saysOther(name) ? [] : [label],
  )
}

/**
 * Chooses the resource of an alert from the known resources. Has no side effect: equal input gives
 * an equal result.
 */
export function chooseResource(
  labels: AlertLabels,
  rules: readonly ResourceRule[],
  known: readonly KnownResource[],
): AlertResource {
  const { plain, written } = toPlainLabels(labels)
  const registry = toRegistry(plain, known)
  const tried: ResourceAttempt[] = []
  let candidates: readonly KnownResource[] = []
  let isHolderLeft = false
  let isNarrowerElsewhere = false
  for (const sought of listSought(plain, rules)) {
    if (isHolderLeft && !sought.isHolder) continue
    if (sought.isHolder && isNarrowerElsewhere) break
    const outcome = look(sought, registry)
    const label = written.get(sought.label) ?? sought.label
    const isRepeated = outcome.result === 'unknown' && tried.at(-1)?.label === label
    // Reports a label without a known resource only once, although the label is tried as several
    // kinds of resource. Reports a label with `isSeldom` not at all.
    const isUntold = outcome.result === 'unknown' && sought.isSeldom
    if (!isRepeated && !isUntold) tried.push({ label, name: sought.names[0] ?? '', result: outcome.result })
    if (outcome.result === 'found' && isAmong(outcome.resource, candidates)) {
      const { kind, id } = narrowToService(outcome.resource, registry)
      return { resource: { kind, id }, by: label, tried, candidates: [] }
    }
    if (outcome.result === 'several' && candidates.length === 0) candidates = outcome.fitting
    if (outcome.result === 'elsewhere' && sought.inside === 'machine' && !namespaceOf(plain)) isNarrowerElsewhere = true
    if (sought.isSubject) break
    if (sought.isNarrowest) isHolderLeft = true
  }
  return { resource: null, by: null, tried, candidates: candidates.map(resourceKey).sort().slice(0, 10) }
}

/**
 * Whether a resource is still possible. After an ambiguous name, a later label only chooses among
 * the resources that the ambiguous name may mean.
 */
const isAmong = ({ canonical }: KnownResource, candidates: readonly KnownResource[]): boolean =>
  candidates.length === 0 || candidates.some((each) => each.canonical === canonical)

type Registry = {
  /** The alert's labels under their plain names. */
  labels: AlertLabels
  byName: Map<string, KnownResource[]>
  /** Machines that may be meant by the first label with a known machine. */
  machines: readonly KnownResource[]
  /** Keys of resources with exporters that measure other machines. */
  exporters: ReadonlySet<string>
}

function toRegistry(labels: AlertLabels, known: readonly KnownResource[]): Registry {
  const byName = new Map<string, KnownResource[]>()
  for (const resource of known)
    for (const name of resource.names) byName.set(name, [...(byName.get(name) ?? []), resource])
  const exporters = new Set(known.filter(({ runsExporters }) => runsExporters).map(({ canonical }) => canonical))
  const registry: Registry = { labels, byName, machines: [], exporters }
  registry.machines = findMachines(registry)
  return registry
}

const isToldByExporter = ({ labels, byName, exporters }: Registry): boolean =>
  toMachineNames(labels.instance ?? '').some((name) =>
    (byName.get(name) ?? []).some(({ canonical }) => exporters.has(canonical)),
  )

type LookupOutcome =
  | { result: 'found'; resource: KnownResource; fitting: readonly KnownResource[] }
  | { result: 'several'; fitting: readonly KnownResource[] }
  | { result: 'unknown' | 'elsewhere' }

function look(sought: Sought, registry: Registry): LookupOutcome {
  if (sought.isFromExporter && !isToldByExporter(registry)) return { result: 'unknown' }
  for (const name of sought.names) {
    const meant = (registry.byName.get(name) ?? []).filter(
      (resource) => sought.kinds.includes(resource.kind) && (!sought.isServer || isAtAddress(resource, name)),
    )
    if (meant.length === 0) continue
    if (!isNameOf(meant, name, sought)) return { result: 'elsewhere' }
    const fitting = narrowByPlace(
      meant.filter(
        (resource) =>
          fits(resource, sought, registry) &&
          (!isServiceNeeded(resource, sought, registry) || listJobServices(resource, registry).length > 0),
      ),
      registry.labels,
    )
    const things = [...new Map(fitting.map((resource) => [resource.canonical, resource])).values()]
    const [only] = things
    if (!only) return { result: 'elsewhere' }
    if (things.length === 1) return { result: 'found', resource: only, fitting }
    const system = ownSystem(things)
    return system ? { result: 'found', resource: system, fitting } : { result: 'several', fitting: things }
  }
  return { result: 'unknown' }
}

/**
 * Whether the name is the server's address. A plain name such as `mysql` may also belong to a
 * container, or to a database inside the server.
 */
function isAtAddress({ names }: KnownResource, name: string): boolean {
  if (/:\d+$/.test(name)) return true
  const hosts = names.filter((each) => /:\d+$/.test(each)).flatMap(toMachineNames)
  return hosts.length === 0 || hosts.includes(name)
}

const isServiceNeeded = (
  { canonical }: KnownResource,
  { needsService = false, sparesExporters = false }: Sought,
  { exporters }: Registry,
): boolean => needsService || (sparesExporters && exporters.has(canonical))

/**
 * Returns the node if `things` are one node and one VM or host. Both are one machine, seen from
 * inside and from outside, and exporters run on the node. Two nodes, or a host and a VM, may be two
 * machines.
 */
function ownSystem(things: readonly KnownResource[]): KnownResource | null {
  const [node, ...more] = things.filter(({ kind }) => kind === 'node')
  const outside = things.filter(({ kind }) => kind === 'vm' || kind === 'host')
  return node && more.length === 0 && outside.length === 1 && things.length === 2 ? node : null
}

/** Labels that name a place and not a resource. */
const placeLabels = ['region', 'shard', 'cluster', 'datacenter', 'dc', 'site', 'zone', 'availability_zone'] as const

/**
 * Keeps only the resources at the place that the alert names, if several resources have one name.
 * Keeps all resources if none of them is at such a place.
 */
function narrowByPlace(resources: readonly KnownResource[], labels: AlertLabels): readonly KnownResource[] {
  if (resources.length < 2) return resources
  const places = placeLabels.flatMap((label) => namesOf(labels[label]))
  const there = resources.filter(({ above }) => above.some(({ names }) => names.some((name) => places.includes(name))))
  return there.length > 0 ? there : resources
}

function fits(resource: KnownResource, { inside, namespace }: Sought, { labels, machines }: Registry): boolean {
  if (inside === 'cluster')
    return (
      isBelow(resource, 'namespace', namespace ?? namespaceOf(labels)) && isBelow(resource, 'cluster', labels.cluster)
    )
  return inside !== 'machine' || machines.some((machine) => runsOn(resource, machine))
}

const runsOn = ({ above }: KnownResource, machine: KnownResource): boolean =>
  above.some((parent) => resourceKey(parent) === resourceKey(machine))

/**
 * Whether a resource may belong to the parent of this kind and name. A resource without a parent of
 * this kind may belong to any.
 */
function isBelow(resource: KnownResource, kind: InventoryKind, name: string | undefined): boolean {
  if (!name || resource.kind === kind) return true
  const parents = resource.above.filter((parent) => parent.kind === kind)
  return parents.length === 0 || parents.some((parent) => parent.names.includes(name.toLowerCase()))
}

/** Finds the machine of the first label that names a known machine. Later labels are ignored. */
function findMachines(registry: Registry): readonly KnownResource[] {
  for (const sought of listMachine(registry.labels)) {
    const outcome = look(sought, registry)
    if ('fitting' in outcome) return outcome.fitting
    if (sought.isSubject || sought.isNarrowest) return []
  }
  return []
}

/**
 * Whether a name that was cut to its first part means the machines `meant`. `web-1.example.com`
 * means neither the known `web-1.example.net` nor a guest that is known only as `web-1`.
 */
function isNameOf(meant: readonly KnownResource[], name: string, { names, isPublic }: Sought): boolean {
  const [full = ''] = names
  if (name === full || !full.startsWith(`${name}.`)) return true
  if (isPublic && !isOwnName(full, name)) return false
  return !meant.some((resource) => resource.names.some((each) => each.startsWith(`${name}.`) && !isAddress(each)))
}

/**
 * Returns the service on this machine that has the name of the scrape job; the machine itself if
 * there is not exactly one such service. Scrape jobs that measure machines name no service.
 */
function narrowToService(found: KnownResource, registry: Registry): KnownResource {
  const job = (registry.labels.job ?? '').toLowerCase()
  const isMachine = (machineKinds as readonly string[]).includes(found.kind)
  if (!isMachine || job === '' || /node|kubelet|cadvisor|windows|blackbox|icmp|ping/.test(job)) return found
  const things = new Map(listJobServices(found, registry).map((resource) => [resource.canonical, resource]))
  const [only] = things.values()
  return only && things.size === 1 ? only : found
}

function listJobServices(machine: KnownResource, { labels, byName }: Registry): KnownResource[] {
  return jobNames(labels).flatMap((name) =>
    (byName.get(name) ?? []).filter(
      (resource) =>
        (resource.kind === 'service_unit' || resource.kind === 'database' || resource.kind === 'container') &&
        runsOn(resource, machine),
    ),
  )
}

/** Lists the name of a scrape job and of what it measures: `integrations/redis` and `redis`. */
function jobNames({ job = '' }: AlertLabels): string[] {
  return [
    ...new Set(
      namesOf(job).flatMap((name) => [name, name.replace(/^integrations\//, '').replace(/[-_]exporter$/, '')]),
    ),
  ]
}
