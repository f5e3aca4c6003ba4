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

/** A VM that can be repaired on its host, as the platform reports it now. */
export type ReadyVm = { vm: VmState & { host: string }; host: Pick<HostState, 'id' | 'state'> }

type RepairDeps = Pick<EffectDeps, 'db' | 'state'>

/**
 * Returns the VM as the platform reports it now. Refuses a repair that would be useless or would
 * conflict with another write.
 */
async function requireRepairable(deps: RepairDeps, action: VmAction, id: string): Promise<ReadyVm> {
  const { db, state } = deps
  state.forget()
  await state.requireCurrent()
  const vm = await vmById(systemScope(db), id)
  if (!vm) throw refuseMissing(`VM ${id}`)
  const host = vm.host === null ? null : await hostById(systemScope(db), vm.host)
  if (vm.host === null || !host) {
    throw new EffectRefused('conflict', 'NO_HOST', `${id} is on no host: plan a host for it (schedule_ha_proposal).`)
  }
  refuseHost(action, id, host)
  if (vm.busy)
    throw new EffectRefused(
      'conflict',
      'VM_BUSY',
      `${id} is busy (${vm.busy}): try again when that operation has ended.`,
    )
  const plan = await planUnderWay(db, id)
  if (plan !== null) {
    const detail = `Plan ${plan} is running and moves ${id}: try again when the plan has ended.`
    throw new EffectRefused('conflict', 'TARGET_BUSY', detail)
  }
  refuseNoUse(action, vm)
  return { vm: { ...vm, host: vm.host }, host }
}

function refuseHost(action: VmAction, id: string, host: Pick<HostState, 'id' | 'state'>): void {
  if (host.state === 'dead') {
    const detail = `${id} is on ${host.id}, which is down: plan another host for it (schedule_ha_proposal, intent recover).`
    throw new EffectRefused('conflict', 'HOST_DOWN', detail)
  }
  if (host.state === 'draining' && action === 'start') {
    const detail = `${id} is on ${host.id}, which is being emptied: plan another host for it (schedule_ha_proposal, intent drain).`
    throw new EffectRefused('conflict', 'HOST_DRAINING', detail)
  }
}

function refuseNoUse(action: VmAction, { id, host, running }: VmState): void {
  if (action === 'start' && running) {
    const detail = `${id} runs on ${host} already. If it does not answer, ${vmTools.restart} may help.`
    throw new EffectRefused('conflict', 'NOTHING_TO_CHANGE', detail)
  }
  if (action === 'stop' && !running)
    throw new EffectRefused('conflict', 'NOTHING_TO_CHANGE', `${id} is stopped already.`)
  if (action === 'restart' && !running) {
    throw new EffectRefused(
      'conflict',
      'NOT_RUNNING',
      `${id} is stopped, and only a running VM restarts. Use ${vmTools.start}.`,
    )
  }
}

/** Identifies what was decided about: this VM on this host, running or not. */
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

/** Describes what a repair affects, by the platform's state and the registry. Changes nothing. */
export async function prepareRepair(deps: RepairDeps, action: VmAction, id: string): Promise<Preparation> {
  const ready = await requireRepairable(deps, action, id)
  const { vm, host } = ready
  const dependents = await dependentsOf(deps, id)
  const told = [
    `${id} ${vm.running ? 'runs' : 'is stopped'} on ${host.id} (${host.state})${vm.startedAt ? `, since ${vm.startedAt}` : ''}`,
    vm.haGroup === null ? 'the VM is in no ha_group' : `the VM is in the ha_group ${vm.haGroup}`,
    ...(vm.tenant === null ? [] : [`the VM belongs to the tenant ${vm.tenant}`]),
    dependents.length === 0
      ? 'nothing in the registry depends on the VM'
      : `resources that depend on the VM: ${dependents.join(', ')}`,
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
  start: 'the VM would be started there',
  stop: 'the VM would be shut down, by force after a minute if the platform can, and stay stopped',
  restart: 'the VM would be shut down and started again there; its processes are interrupted',
}
const untried: Record<VmAction, string> = {
  start: 'Only the start shows whether the VM comes up, and what runs in it.',
  stop: 'Only the stop shows whether the VM shuts down without force.',
  restart: 'Only the restart shows whether the VM shuts down without force and comes up again.',
}
const undo: Record<VmAction, string> = {
  start: vmTools.stop,
  stop: vmTools.start,
  restart: 'none; interrupted work is not resumed',
}
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

const maxDependents = 20

/** Lists the resources that run on the VM, belong to it or depend on it, under any of its names. */
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

/**
 * Requires that the VM is as it was at the decision, and that no other write to the VM or to its
 * host runs.
 */
export async function requireSameVm(
  deps: RepairDeps,
  action: VmAction,
  id: string,
  { ifMatch, incidentId }: { ifMatch: string | undefined; incidentId: string | null },
): Promise<ReadyVm> {
  if (!ifMatch) {
    const detail = 'If-Match: send the stateFingerprint of the approved dry run.'
    throw new EffectRefused('precondition_required', 'IF_MATCH_REQUIRED', detail)
  }
  const ready = await requireRepairable(deps, action, id).catch(asChanged)
  const current = fingerprintOf(ready)
  if (!isSameFingerprint(ifMatch, current)) {
    const detail = `${id} or its host changed since the approval. Nothing was started.`
    throw new EffectRefused('state_changed', 'STATE_CHANGED', detail, { fields: { currentFingerprint: current } })
  }
  const [busy] = await leasesOfOthers(deps.db, incidentId ?? '', targetsOf(ready))
  if (busy) {
    const detail = `${busy.target} is being written to by ${busy.incidentId}: try again when that write has ended.`
    throw new EffectRefused('conflict', 'TARGET_BUSY', detail)
  }
  return ready
}

/** Reports an impossible repair as a changed state: it was possible at the decision. */
function asChanged(error: unknown): never {
  if (!(error instanceof EffectRefused) || error.kind !== 'conflict' || error.code.endsWith('BUSY')) throw error
  throw new EffectRefused('state_changed', 'STATE_CHANGED', `${error.message} Nothing was started.`)
}

type Repair = { platform: PlatformClient; action: VmAction; ready: ReadyVm; key: string }

/**
 * Runs a repair. Only one repair of a VM runs at a time, over all processes. Null if the outcome is
 * unknown; the outcome can then be read by the key.
 */
export async function performRepair(deps: EffectDeps, repair: Repair): Promise<Ending | null> {
  const { vm } = repair.ready
  const done = await withAdvisoryLock(deps.locks, `vm:${vm.id}`, async () => ({ ending: await send(deps, repair) }))
  if (done) return done.ending
  return { status: 'failed', detail: `nothing was started: another repair of ${vm.id} is running`, result: {} }
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
 * Reads the VM after the repair, because an undo is for this state only. Repeats the read, because
 * a platform reports "done" a moment before it shows the new state. Null if the VM cannot be read.
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

/** Reads the VM as the platform reports it now; null if it does not exist. */
export async function readVm({ db, state }: RepairDeps, id: string): Promise<VmBefore | null> {
  state.forget()
  await state.requireCurrent()
  const vm = await vmById(systemScope(db), id)
  return vm && { host: vm.host, running: vm.running, startedAt: vm.startedAt ?? null }
}
