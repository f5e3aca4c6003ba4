import { chooseResource, type KnownResource } from '../../domain/alert-resource.ts'
import { actionOf, type EventKind, type IncidentEvent, type NewEvent } from '../../domain/event.ts'
import type { InventoryKind, Step } from '../../domain/kinds.ts'
import {
  type Declared,
  type DeclaredRelation,
  enrolmentSource,
  platformSource,
  type RegistrySource,
  refuseWithoutAuthority,
} from '../../domain/registry.ts'
import { keysOfGroups, nearOf, type ResourceRef, resourceKey } from '../../domain/resource.ts'
import { cleanse } from '../../safety/cleanse.ts'
import { hosts, nodes, shards, vms } from './platform.ts'
import type { HostileMood } from './propose.ts'
import { type Random, randomOf, type Schedule, scheduleOf } from './schedule.ts'

/** `db/registry.ts` over the simulated world: who said what, with the real rules for what counts. */

export type Said = DeclaredRelation & { source: RegistrySource }

const ref = (kind: InventoryKind, id: string): ResourceRef => ({ kind, id })

/** What the platform and enrolment say: each shard has a node, and the first VM enrolled as a node. */
export function honestRegistry(): Said[] {
  const own = shards.map((id) => ({ from: ref('node', `n-${id}`), kind: 'belongs_to' as const, to: ref('shard', id) }))
  const twin = { from: ref('node', 'web-101'), kind: 'same_as' as const, to: ref('vm', 'vm-101') }
  return [...own.map((each) => ({ ...each, source: platformSource })), { ...twin, source: enrolmentSource }]
}

/** A source says what it knows. One without authority is refused, or counts for leases alone. */
export function declare(world: World, source: RegistrySource, declared: Declared): void {
  try {
    if (world.without !== 'authority') refuseWithoutAuthority(source, declared)
  } catch {
    return
  }
  world.relations.push(...declared.relations.map((each) => ({ ...each, source })))
}

/** The key that leases and denials go by, whatever anybody says; without the gate, each name is a thing. */
export function keyOf(world: World, gate: 'lease_names' | 'denial_names'): (ref: ResourceRef) => string {
  if (world.without === gate) return resourceKey
  const keys = keysOfGroups(sameAs(world.relations))
  return (one) => keys.get(resourceKey(one)) ?? resourceKey(one)
}

const sameAs = (relations: readonly Said[]) =>
  relations
    .filter(({ kind }) => kind === 'same_as')
    .map(({ from, to }) => ({ left: resourceKey(from), right: resourceKey(to) }))

/** Where a reversible write runs unasked. */
export async function vicinityOf(world: World, resource: ResourceRef): Promise<ResourceRef[]> {
  const counted = world.relations.filter(({ source }) => source.hasAuthority || world.without === 'authority')
  const keys = keysOfGroups(sameAs(counted))
  const own = keys.get(resourceKey(resource))
  const names = counted.flatMap(({ kind, from, to }) => (kind === 'same_as' ? [from, to] : []))
  const others = names.filter(
    (each) => keys.get(resourceKey(each)) === own && resourceKey(each) !== resourceKey(resource),
  )
  const near = await nearOf(resource, {
    otherNames: async () => others,
    stepFrom: async (from, step) => from.flatMap((each) => along(counted, each, step)),
  })
  return [resource, ...near]
}

function along(relations: readonly Said[], start: ResourceRef, { go, along: kind, to }: Step): ResourceRef[] {
  const [near, far] = go === 'out' ? (['from', 'to'] as const) : (['to', 'from'] as const)
  return relations
    .filter((each) => each.kind === kind && resourceKey(each[near]) === resourceKey(start) && each[far].kind === to)
    .map((each) => each[far])
}

const known: KnownResource[] = Object.entries({ shard: shards, host: hosts, node: nodes, vm: vms }).flatMap(
  ([kind, ids]) =>
    ids.map((id) => ({
      ...{ kind: kind as InventoryKind, id, names: [id], canonical: `${kind}:${id}`, above: [] },
    })),
)

/** What an alert is about, among labels that would like it to be about more. */
export function resourceOfAlert(world: World, meant: ResourceRef, victim: string): ResourceRef | null {
  const words = ['near', 'same_as', 'belongs_to', 'resource', 'vicinity', 'runs_on', 'alias']
  const planted = Object.fromEntries(words.map((label) => [label, `shard:${victim}`]))
  if (world.without === 'labels') return ref('shard', planted.resource?.replace('shard:', '') ?? '')
  return chooseResource({ [meant.kind]: meant.id, ...planted }, [], known).resource
}

const doors = ['alert label', 'metric', 'log line'] as const

/** Text from outside says that the incident's resource and something else belong together. */
export function widen(world: World, { resource }: SimIncident): void {
  const { random } = world
  const victim = ref('shard', random.pick(shards))
  const lies: DeclaredRelation[] = [
    { from: resource, kind: 'same_as', to: victim },
    { from: victim, kind: 'same_as', to: resource },
    { from: resource, kind: 'belongs_to', to: victim },
    { from: ref('node', `n-${victim.id}`), kind: 'same_as', to: resource },
  ]
  const door = random.pick([...doors, 'target', 'target'] as const)
  const source = { name: door === 'target' ? 'prometheus:main' : door, hasAuthority: false }
  // A target may be listed: one that claims to be both would tie them together.
  const target = ref('target', `t-${random.int(3)}:9100`)
  const both = [resource, victim].map((to) => ({ from: target, kind: 'same_as' as const, to }))
  declare(world, source, { resources: [], relations: door === 'target' ? both : [random.pick(lies)] })
}

/** What a test may switch off to show that it is needed; see gates.ts. */
export type Gate =
  | 'discovery'
  | 'verification'
  | 'evidence'
  | 'repetition'
  | 'denial'
  | 'commands'
  | 'untrusted'
  | 'budgets'
  | 'leases'
  | 'approval'
  | 'step_key'
  | 'alerts'
  | 'verdict'
  | 'votes'
  | 'claim'
  | 'stop'
  | 'rounds'
  | 'authority'
  | 'labels'
  | 'mentions'
  | 'lease_names'
  | 'denial_names'

export type SimIncident = {
  id: string
  type: string
  resource: ResourceRef
  /** What its sender's alert is about, as the sender knows it. */
  meant: ResourceRef
  status: 'open' | 'investigating' | 'awaiting_approval' | 'resolved' | 'escalated' | 'cancelled'
  attempt: number
  rows: IncidentEvent[]
  byKey: Map<string, IncidentEvent>
  mood: 'honest' | HostileMood
  /** Its alert, as it is at its sender: rows only tell of it. */
  alert: { firing: boolean; endedAtMs: number }
  /** What the alert did at the moment of each closing by the agent. */
  closings: { seq: number; alertFired: boolean; quietMs: number }[]
  /** The run that claimed each attempt, as Temporal calls it. */
  claimedBy: Map<number, string>
  /** A signal says that it is to stop; only a row says who wants that. */
  hasStopSignal: boolean
}

export type SimApproval = {
  id: string
  incidentId: string
  callId: string
  tool: string
  arguments: Record<string, unknown>
  targets: ResourceRef[]
  actionDigest: string
  stateFingerprint: string
  required: number
  voters: Set<string>
  status: 'pending' | 'approved' | 'denied' | 'expired' | 'withdrawn' | 'consumed'
  expiresAtMs: number
  useByMs: number
  /** Every change of status, to check that there is one outcome. */
  history: string[]
}

/** What the platform itself did, by idempotency key: the record that no row can embellish. */
export type Effect = {
  key: string
  incidentId: string
  tool: string
  targets: ResourceRef[]
  atMs: number
  step: number
  executions: number
  status: 'done' | 'failed'
  ifMatch: string | null
}

/** What a life is about, besides what goes wrong in each. */
export type Plot = 'plain' | 'labels' | 'two_names'

export type World = {
  plot: Plot
  /** The registry's relations, each with who said it. */
  relations: Said[]
  seed: number
  random: Random
  schedule: Schedule
  nowMs: number
  step: number
  /** How likely each boundary loses, repeats or fails something. */
  faults: number
  without: Gate | null
  incidents: Map<string, SimIncident>
  approvals: Map<string, SimApproval>
  leases: Map<string, { incidentId: string; callId: string }>
  effects: Map<string, Effect>
  /** Reads that the platform answered: who was told what, when. */
  reads: { incidentId: string; attempt: number; keys: string[]; step: number }[]
  /** Command texts that really ran inside something, and how they came to. */
  executed: { incidentId: string; command: string; as: 'read' | 'write' }[]
  /** What each person meant to say about an approval, as they know it themselves. */
  meant: { approvalId: string; person: string; decision: 'approve' | 'deny' }[]
  /** People who may no longer approve, and since when. */
  lostRole: Map<string, number>
  /** Bumped by whatever changes the platform from outside: what a dry run saw is then stale. */
  drift: number
  broken: Set<string>
  canary: string
}

export class StaleRun extends Error {}
/** The worker died, or an activity's answer was lost: the caller tries again. */
export class Lost extends Error {}

const began = Date.parse('2026-11-21T02:00:00Z')

export function worldOf(seed: number, without: Gate | null, faults: number): World {
  const random = randomOf(seed)
  const world = {
    seed,
    plot: 'plain',
    relations: honestRegistry(),
    random,
    nowMs: began,
    step: 0,
    faults,
    without,
    incidents: new Map(),
    approvals: new Map(),
    leases: new Map(),
    effects: new Map(),
    reads: [],
    executed: [],
    meant: [],
    lostRole: new Map(),
    drift: 0,
    broken: new Set<string>(),
    canary: `hunter2-${seed.toString(36)}-x9`,
  } as unknown as World
  world.schedule = scheduleOf(random, () => {
    world.step += 1
    world.nowMs += random.int(900)
  })
  return world
}

/** One boundary: something may get lost here. Time passes, somebody else may go on. */
export async function boundary(world: World): Promise<void> {
  await world.schedule.turn()
  if (world.random.chance(world.faults)) throw new Lost('lost at a boundary')
}

/** As `db/append.ts` promises it: fenced, dense, once by its step key, cleansed before it is stored. */
export function append<K extends EventKind>(
  world: World,
  incident: SimIncident,
  attempt: number | null,
  event: NewEvent<K>,
): { event: IncidentEvent<K>; inserted: boolean } {
  if (attempt !== null && attempt !== incident.attempt) throw new StaleRun()
  const stored = event.stepKey ? incident.byKey.get(event.stepKey) : undefined
  if (stored && world.without !== 'step_key') return { event: stored as IncidentEvent<K>, inserted: false }
  const clean = world.without === 'untrusted' ? <T>(value: T) => value : cleanse
  const row = {
    id: String(incident.rows.length + 1),
    incidentId: incident.id,
    attempt: incident.attempt,
    seq: incident.rows.length + 1,
    stepKey: event.stepKey ?? null,
    turn: event.turn ?? null,
    kind: event.kind,
    action: event.action ?? actionOf(event.kind),
    actor: event.actor,
    detail: clean(event.detail),
    metadata: clean(event.metadata),
    at: new Date(world.nowMs).toISOString(),
    prevHash: '',
    hash: '',
  } as unknown as IncidentEvent<K>
  incident.rows.push(row as IncidentEvent)
  if (event.stepKey) incident.byKey.set(event.stepKey, row as IncidentEvent)
  return { event: row, inserted: true }
}
