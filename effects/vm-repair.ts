import { setTimeout as sleep } from 'node:timers/promises'
import type { PlatformClient } from '../clients/platform.ts'
import { withAdvisoryLock } from '../db/advisory-lock.ts'
import { hostById, vmById } from '../db/inventory/platform-rows.ts'
import { leasesOfOthers, otherNames } from '../db/inventory/registry.ts'
import { relationsOf } from '../db/inventory/show-resource.ts'
import { systemScope } from '../db/scope.ts'
import { noteVmOfEffect, planUnderWay } from '../db/writes/effects.ts'
import { digestOf } from '../domain/digest.ts'
import { type HostState, type VmAction, type VmBefore, type VmState, vmTools } from '../domain/platform.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import type { Preparation } from '../domain/tool.ts'
import { type EffectDeps, EffectRefused, type Ending, refuseMissing } from './effect.ts'
import { followWrite } from './follow-write.ts'
import { isSameFingerprint } from './plan-state.ts'

/** A VM that can be repaired where it is, as the platform reports it now. */
export type ReadyVm = { vm: VmState & { host: string }; host: Pick<HostState, 'id' | 'state'> }

type RepairDeps = Pick<EffectDeps, 'db' | 'state'>

/** The VM now; refused where this repair would be useless, or cross another. */
async function requireRepairable(deps: RepairDeps, action: VmAction, id: string): Promise<ReadyVm> {
  const { db, state } = deps
  state.forget()
  await state.requireCurrent()
  const vm = await vmById(systemScope(db), id)
  if (!vm) throw refuseMissing(`VM ${id}`)
  const host = vm.host === null ? null : await hostById(systemScope(db), vm.host)
  if (vm.host === null || !host) {
    throw new EffectRefused('conflict', 'NO_HOST', `${id} is on no host: plan where it goes (schedule_ha_proposal).`)
  }
  refuseHost(action, id, host)
  if (vm.busy)
    throw new EffectRefused('conflict', 'VM_BUSY', `${id} is busy (${vm.busy}): look again once that is over.`)
  const plan = await planUnderWay(db, id)
  if (plan !== null) {
    const detail = `Plan ${plan} is being carried out and brings ${id} somewhere: look again once it has ended.`
    throw new EffectRefused('conflict', 'TARGET_BUSY', detail)
  }
  refuseNoUse(action, vm)
  return { vm: { ...vm, host: vm.host }, host }
}

function refuseHost(action: VmAction, id: string, host: Pick<HostState, 'id' | 'state'>): void {
  if (host.state === 'dead') {
    const detail = `${id} is on ${host.id}, which is down: plan where it goes instead (schedule_ha_proposal, intent recover).`
    throw new EffectRefused('conflict', 'HOST_DOWN', detail)
  }
  if (host.state === 'draining' && action === 'start') {
    const detail = `${id} is on ${host.id}, which is to be emptied: plan where it goes instead (schedule_ha_proposal, intent drain).`
    throw new EffectRefused('conflict', 'HOST_DRAINING', detail)
  }
}

function refuseNoUse(action: VmAction, { id, host, running }: VmState): void {
  if (action === 'start' && running) {
    const detail = `${id} runs on ${host} already. Where it does not answer, ${vmTools.restart} may help.`
    throw new EffectRefused('conflict', 'NOTHING_TO_CHANGE', detail)
  }
  if (action === 'stop' && !running)
    throw new EffectRefused('conflict', 'NOTHING_TO_CHANGE', `${id} is stopped already.`)
  if (action === 'restart' && !running) {
    throw new EffectRefused(
      'conflict',
      'NOT_RUNNING',
      `${id} is stopped, and only what runs is restarted: ${vmTools.start}.`,
    )
  }
}

/** The decision's subject: this VM on this host, running or not. */
function fingerprintOf({ vm, host }: ReadyVm): string {
  const { id, running, haGroup } = vm
  return digestOf({ id, host: host.id, hostState: host.state, running, haGroup })
}

function targetsOf({ vm, host }: ReadyVm): ResourceRef[] {
  return [
    { kind: 'vm', id: vm.id },
    { kind: 'host', id: host.id },
  ]
}

/** A repair's reach, by the platform's state now and the registry's relations. Changes nothing. */
export async function prepareRepair(deps: RepairDeps, action: VmAction, id: string): Promise<Preparation> {
  const ready = await requireRepairable(deps, action, id)
  const { vm, host } = ready
  const dependents = await dependentsOf(deps, id)
  const told = [
    `${id} ${vm.running ? 'runs' : 'is stopped'} on ${host.id} (${host.state})${vm.startedAt ? `, since ${vm.startedAt}` : ''}`,
    vm.haGroup === null ? 'it is in no ha_group' : `it is in the ha_group ${vm.haGroup}`,
    ...(vm.tenant === null ? [] : [`it belongs to the tenant ${vm.tenant}`]),
    dependents.length === 0
      ? 'the registry knows nothing that depends on it'
      : `on it depend: ${dependents.join(', ')}`,
    effectWords[action],
    `undo: ${undo[action]}`,
  ]
  return {
    targets: targetsOf(ready),
    identity: { id },
    stateFingerprint: fingerprintOf(ready),
    dryRun: {
      possible: true,
      summary: `${capital(action)} ${id} on ${host.id}`,
      details: {
        vm: id,
        host: host.id,
        running: vm.running,
        dependents,
        rehearsal: { told, untried: [untried[action]], tried: false },
      },
    },
  }
}

const effectWords: Record<VmAction, string> = {
  start: 'it would be started there',
  stop: 'it would be shut down, forced after a minute where the platform can, and stay stopped',
  restart: 'it would be shut down and started again there; what runs in it is interrupted',
}
const untried: Record<VmAction, string> = {
  start: 'Whether it comes up, and what runs in it, shows only then.',
  stop: 'Whether it shuts down by itself shows only then.',
  restart: 'Whether it shuts down by itself and comes up again shows only then.',
}
const undo: Record<VmAction, string> = {
  start: vmTools.stop,
  stop: vmTools.start,
  restart: 'none; what it interrupts does not come back by itself',
}
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

const maxDependents = 20

/** What runs on it, belongs to it or depends on it, under any of its names. */
async function dependentsOf({ db }: Pick<RepairDeps, 'db'>, id: string): Promise<string[]> {
  const own: ResourceRef = { kind: 'vm', id }
  const names = [own, ...((await otherNames(db, [own])).get(resourceKey(own)) ?? [])]
  const keys = new Set(names.map(resourceKey))
  const relations = (await Promise.all(names.map((name) => relationsOf(db, name)))).flat()
  const found = relations
    .filter(({ to, from, kind }) => keys.has(to) && !keys.has(from) && counting.has(kind))
    .map(({ from }) => from)
  const all = [...new Set([...names.slice(1).map(resourceKey), ...found])]
  const more = all.length - maxDependents
  return more > 0 ? [...all.slice(0, maxDependents), `${more} more`] : all
}

const counting: ReadonlySet<string> = new Set(['runs_on', 'depends_on', 'belongs_to'])

/** The VM is as at the decision, and no other incident writes to it or its host. Read just now. */
export async function requireSameVm(
  deps: RepairDeps,
  action: VmAction,
  id: string,
  { ifMatch, incidentId }: { ifMatch: string | undefined; incidentId: string | null },
): Promise<ReadyVm> {
  if (!ifMatch) {
    const detail = 'If-Match: name the stateFingerprint of the dry run that this was decided on.'
    throw new EffectRefused('precondition_required', 'IF_MATCH_REQUIRED', detail)
  }
  const ready = await requireRepairable(deps, action, id).catch(asChanged)
  const current = fingerprintOf(ready)
  if (!isSameFingerprint(ifMatch, current)) {
    const detail = `${id} or its host is not as it was when this was decided. Nothing was begun.`
    throw new EffectRefused('state_changed', 'STATE_CHANGED', detail, { fields: { currentFingerprint: current } })
  }
  const [busy] = await leasesOfOthers(deps.db, incidentId ?? '', targetsOf(ready))
  if (busy) {
    const detail = `${busy.target} is being written to by ${busy.incidentId}: look again once that is over.`
    throw new EffectRefused('conflict', 'TARGET_BUSY', detail)
  }
  return ready
}

/** Possible when it was decided, and not now: what was decided about is gone. */
function asChanged(error: unknown): never {
  if (!(error instanceof EffectRefused) || error.kind !== 'conflict' || error.code.endsWith('BUSY')) throw error
  throw new EffectRefused('state_changed', 'STATE_CHANGED', `${error.message} Nothing was begun.`)
}

type Repair = { platform: PlatformClient; action: VmAction; ready: ReadyVm; key: string }

/** One repair of a VM at a time, over all processes. Null: unknown; ask by its key. */
export async function performRepair(deps: EffectDeps, repair: Repair): Promise<Ending | null> {
  const { vm } = repair.ready
  const done = await withAdvisoryLock(deps.locks, `vm:${vm.id}`, async () => ({ ending: await send(deps, repair) }))
  if (done) return done.ending
  return { status: 'failed', detail: `nothing was begun: another repair of ${vm.id} is under way`, result: {} }
}

async function send(deps: EffectDeps, { platform, action, ready: { vm }, key }: Repair): Promise<Ending | null> {
  const { id, host, running, startedAt = null } = vm
  const before = { host, running, startedAt }
  await noteVmOfEffect(deps.db, key, before)
  const ending = await followWrite(platform, key, () =>
    action === 'start' ? platform.startVm(id, host, key) : platform.powerVm(id, action, host, key),
  )
  if (!ending) return null
  const after = ending.status === 'done' ? await lookAfter(deps, action, id) : null
  return { ...ending, result: { ...ending.result, before, ...(after && { after }) } }
}

const afterWithinMs = 5_000

/**
 * The VM after the repair: an undo is for that state alone. A platform says "done" a moment before
 * it shows it. Null: unreadable.
 */
async function lookAfter(deps: RepairDeps, action: VmAction, id: string): Promise<VmBefore | null> {
  const untilMs = performance.now() + afterWithinMs
  let seen: VmBefore | null = null
  do {
    seen = await readVm(deps, id).catch(() => null)
    if (seen?.running === (action !== 'stop')) return seen
    await sleep(200)
  } while (performance.now() < untilMs)
  return seen
}

/** The VM as the platform reports it now; null where there is none. */
export async function readVm({ db, state }: RepairDeps, id: string): Promise<VmBefore | null> {
  state.forget()
  await state.requireCurrent()
  const vm = await vmById(systemScope(db), id)
  return vm && { host: vm.host, running: vm.running, startedAt: vm.startedAt ?? null }
}
