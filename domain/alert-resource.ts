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
 * The resource of an alert. Labels are a sender's words: they choose among what the registry knows
 * and make nothing known. The order is published (`docs/reference/ingest.md`), each step is kept
 * for people, and two things with one name are none.
 */

/** A resource that one of the names means, with what it belongs to and runs on. */
export type KnownResource = ResourceRef & {
  kind: InventoryKind
  names: readonly string[]
  /** One key for all names of one thing. */
  canonical: string
  /** It measures others: an inventory says so, or the targets that are scraped there. */
  runsExporters?: boolean
  above: readonly { kind: InventoryKind; id: string; names: readonly string[] }[]
}

type ResourceAttempt = { label: string; name: string; result: 'found' | 'unknown' | 'several' | 'elsewhere' }

export type AlertResource = {
  resource: ResourceRef | null
  /** The label that named it. */
  by: string | null
  tried: ResourceAttempt[]
  /** What an ambiguous name may mean, as keys. */
  candidates: string[]
}

/** Every name that could decide, for one look-up in the registry. */
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

/** Labels, as written, that no step of the order reads and that do not stand on every alert. */
export function labelsLeft(labels: AlertLabels, rules: readonly ResourceRule[]): string[] {
  const { plain, written } = toPlainLabels(labels)
  const asked = new Set([...listSought(plain, rules), ...listMachine(plain)].map(({ label }) => label))
  return [...written].flatMap(([name, label]) =>
    asked.has(name) || saysNothing.has(name) || saysOther(name) ? [] : [label],
  )
}

/** Chooses the resource that the registry knows by those names. Pure: same input, same answer. */
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
    // One label may be tried as several kinds: once is enough to read.
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

/** Where one name means several things, a later label decides which, and does nothing else. */
const isAmong = ({ canonical }: KnownResource, candidates: readonly KnownResource[]): boolean =>
  candidates.length === 0 || candidates.some((each) => each.canonical === canonical)

type Registry = {
  /** By their plain names. */
  labels: AlertLabels
  byName: Map<string, KnownResource[]>
  /** What the first label that names a machine may mean. */
  machines: readonly KnownResource[]
  /** Things that measure others, by their one key. */
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
 * `mysql:3306` is a container's name at many sites; `mysql` and its databases are on every server
 * of MySQL.
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
 * A VM or host and the node of the same name are one machine, seen from outside and from within,
 * even where nothing says so: exporters run on the node. Two nodes may be two machines, and so may
 * a host and a VM.
 */
function ownSystem(things: readonly KnownResource[]): KnownResource | null {
  const [node, ...more] = things.filter(({ kind }) => kind === 'node')
  const outside = things.filter(({ kind }) => kind === 'vm' || kind === 'host')
  return node && more.length === 0 && outside.length === 1 && things.length === 2 ? node : null
}

/** Labels that say where something is, and nothing about what. */
const placeLabels = ['region', 'shard', 'cluster', 'datacenter', 'dc', 'site', 'zone', 'availability_zone'] as const

/**
 * Keeps, of several things with one name, those at the place that the alert names; all where it
 * names none.
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

/** What has no such parent may be anywhere; what has one is where the alert says. */
function isBelow(resource: KnownResource, kind: InventoryKind, name: string | undefined): boolean {
  if (!name || resource.kind === kind) return true
  const parents = resource.above.filter((parent) => parent.kind === kind)
  return parents.length === 0 || parents.some((parent) => parent.names.includes(name.toLowerCase()))
}

/** The machine that the labels name first, under each of its names; later labels do not count. */
function findMachines(registry: Registry): readonly KnownResource[] {
  for (const sought of listMachine(registry.labels)) {
    const outcome = look(sought, registry)
    if ('fitting' in outcome) return outcome.fitting
    if (sought.isSubject || sought.isNarrowest) return []
  }
  return []
}

/**
 * Whether a name cut to its first part means these machines. `web-1.example.com` is neither the
 * known `web-1.example.net`, nor a guest known as `web-1` alone.
 */
function isNameOf(meant: readonly KnownResource[], name: string, { names, isPublic }: Sought): boolean {
  const [full = ''] = names
  if (name === full || !full.startsWith(`${name}.`)) return true
  if (isPublic && !isOwnName(full, name)) return false
  return !meant.some((resource) => resource.names.some((each) => each.startsWith(`${name}.`) && !isAddress(each)))
}

/** The service on a machine that bears the job's name. Jobs that measure machines name none. */
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

/** A job and what it measures: `redis` of `redis-exporter` and of `integrations/redis`. */
function jobNames({ job = '' }: AlertLabels): string[] {
  return [
    ...new Set(
      namesOf(job).flatMap((name) => [name, name.replace(/^integrations\//, '').replace(/[-_]exporter$/, '')]),
    ),
  ]
}
