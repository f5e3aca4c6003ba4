import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { processStartedAt, processState } from './children.ts'
import { type Lab, saveState, storageDirectory } from './state.ts'

/** Milliseconds after which a VM's beat is too old. A running VM writes a beat every second. */
const beatMs = 5000
/** The most milliseconds from the start of a VM to its first beat. */
const startMs = 5000

/** A refusal by the platform. The operation ends as `failed` with this text, without a change. */
export class VmRefusal extends Error {
  override name = 'Refused'
}

/**
 * Lists the hosts that run a process of this VM, as its beats show: one, none, or, after a fault,
 * more.
 */
export function hostsRunning(lab: Lab, vm: string): string[] {
  const storage = storageDirectory(lab, vm)
  return readdirSync(storage).flatMap((name) => {
    if (!name.startsWith('running.')) return []
    try {
      const file = join(storage, name)
      const pid = Number(readFileSync(file, 'utf8'))
      const fresh = Date.now() - statSync(file).mtimeMs < beatMs
      return pid > 0 && fresh && processState(pid) !== 'gone' ? [name.slice('running.'.length)] : []
    } catch {
      // Ignores the error, because the host may release the VM at this moment.
      return []
    }
  })
}

/** Returns the VM's counter, which continues when the VM moves to another host. */
export function counterOf(lab: Lab, vm: string): number {
  try {
    return Number(readFileSync(join(storageDirectory(lab, vm), 'counter'), 'utf8'))
  } catch {
    return 0
  }
}

/** Starts a VM that runs on no host. If the function throws `Refused`, it changed nothing. */
export async function startVm(lab: Lab, vm: string, host: string): Promise<string> {
  const [where] = hostsRunning(lab, vm)
  if (where) throw new VmRefusal(`${vm} still runs on ${where}`)
  return withRoom(lab, vm, host, async () => {
    await ask(lab, host, 'POST', vm, {})
    if (!(await beats(lab, vm, host))) {
      await ask(lab, host, 'DELETE', vm)
      throw new VmRefusal(`${vm} did not come up on ${host} within ${startMs / 1000} s`)
    }
    place(lab, vm, host)
    return `${vm} runs on ${host}, its counter continued at ${counterOf(lab, vm)}`
  })
}

/** Stops a VM on its host, and keeps its counter. */
export async function stopVm(lab: Lab, vm: string, host: string): Promise<string> {
  requireRunning(lab, vm, host)
  await ask(lab, host, 'DELETE', vm)
  return `${vm} was stopped on ${host}, its counter stands at ${counterOf(lab, vm)}`
}

/** Stops a VM and starts it again on its host, on which it keeps its room meanwhile. */
export async function restartVm(lab: Lab, vm: string, host: string): Promise<string> {
  requireRunning(lab, vm, host)
  lab.underWay[vm] = host
  try {
    await ask(lab, host, 'DELETE', vm)
    await ask(lab, host, 'POST', vm, {})
    if (!(await beats(lab, vm, host))) throw new VmRefusal(`${vm} was stopped on ${host} and did not come up again`)
  } finally {
    delete lab.underWay[vm]
  }
  return `${vm} was restarted on ${host}, its counter continued at ${counterOf(lab, vm)}`
}

function requireRunning(lab: Lab, vm: string, host: string): void {
  const hosts = hostsRunning(lab, vm)
  if (hosts.includes(host)) return
  throw new VmRefusal(
    hosts.length === 0 ? `${vm} does not run` : `${vm} runs on ${hosts.join(' and ')}, not on ${host}`,
  )
}

/** Returns when the process of a VM began, and the operation that is running on the VM. */
export function runOf(lab: Lab, vm: string): { startedAt: string | null; busy: string | null } {
  const [host] = hostsRunning(lab, vm)
  const target = lab.underWay[vm]
  const busy = target === undefined ? null : target === lab.placement[vm] ? 'starting' : `on its way to ${target}`
  return { startedAt: host === undefined ? null : startOf(join(storageDirectory(lab, vm), `running.${host}`)), busy }
}

function startOf(beat: string): string | null {
  try {
    return processStartedAt(Number(readFileSync(beat, 'utf8')))
  } catch {
    // Ignores the error, because the host may release the VM at this moment.
    return null
  }
}

/**
 * Moves a running VM: a copy waits on the target host, the source host releases the VM, and the
 * copy continues.
 */
export async function migrateVm(lab: Lab, vm: string, from: string, to: string): Promise<string> {
  if (from === to) throw new VmRefusal(`${vm} cannot move from ${from} to ${to}: both are the same host`)
  if (!hostsRunning(lab, vm).includes(from)) throw new VmRefusal(`${vm} does not run on ${from}`)
  if (!connected(lab, from, to)) throw new VmRefusal(`no path of working links leads from ${from} to ${to}`)
  return withRoom(lab, vm, to, async () => {
    await ask(lab, to, 'POST', vm, { from })
    try {
      await ask(lab, from, 'DELETE', vm)
    } catch (error) {
      // Ends the waiting copy, because it is unknown whether the source host has released the VM.
      await ask(lab, to, 'DELETE', vm)
      throw error
    }
    if (!(await beats(lab, vm, to))) {
      await ask(lab, to, 'DELETE', vm)
      await ask(lab, from, 'POST', vm, {})
      throw new VmRefusal(`${vm} did not come up on ${to} within ${startMs / 1000} s and continued on ${from}`)
    }
    place(lab, vm, to)
    return `${vm} moved from ${from} to ${to}, its counter continued at ${counterOf(lab, vm)}`
  })
}

/** Returns every VM to its host in the topology. Every host must be running. */
export async function returnVms(lab: Lab): Promise<void> {
  const away = lab.topology.vms.filter(({ id, host }) => lab.placement[id] !== host)
  for (const { id, host } of away) {
    for (const here of hostsRunning(lab, id)) await ask(lab, here, 'DELETE', id)
    lab.placement[id] = host
  }
  saveState(lab)
  for (const host of new Set(away.map((vm) => vm.host))) await startVmsOf(lab, host)
}

/** Starts the VMs that are defined on a host and run on none, as a host does after a power cut. */
export async function startVmsOf(lab: Lab, host: string): Promise<void> {
  const mine = lab.topology.vms.filter(({ id }) => lab.placement[id] === host && hostsRunning(lab, id).length === 0)
  await Promise.all(
    mine.map(async ({ id }) => {
      await ask(lab, host, 'POST', id, {})
      if (!(await beats(lab, id, host))) throw new Error(`${id} did not come up on ${host}`)
    }),
  )
}

function place(lab: Lab, vm: string, host: string): void {
  lab.placement[vm] = host
  saveState(lab)
}

/**
 * Reserves the room on the target host before it awaits anything, so that two operations cannot
 * both take the last room.
 */
async function withRoom(lab: Lab, vm: string, host: string, bring: () => Promise<string>): Promise<string> {
  requireRoom(lab, vm, host)
  lab.underWay[vm] = host
  try {
    return await bring()
  } finally {
    delete lab.underWay[vm]
  }
}

/** Throws if a host cannot take a VM. A VM that is being moved counts on both hosts. */
function requireRoom(lab: Lab, vm: string, host: string): void {
  const child = lab.children.get(host)
  if (!child || processState(child.pid) !== 'running') throw new VmRefusal(`${host} is down`)
  if (lab.draining.includes(host)) throw new VmRefusal(`${host} is being emptied and takes no VM`)
  const plan = lab.topology.vms.find(({ id }) => id === vm)!
  const limit = lab.topology.hosts.find(({ id }) => id === host)!
  const others = lab.topology.vms.filter(
    ({ id }) => id !== vm && (lab.placement[id] === host || lab.underWay[id] === host),
  )
  for (const [name, unit] of [
    ['ramMib', 'MiB of RAM'],
    ['cpuMc', 'millicores'],
  ] as const) {
    const free = others.reduce((left, each) => left - each[name], limit[name])
    if (plan[name] > free) throw new VmRefusal(`${vm} needs ${plan[name]} ${unit}, and ${host} has ${free} free`)
  }
}

function connected(lab: Lab, from: string, to: string): boolean {
  const seen = new Set([from])
  for (const here of seen) {
    for (const { a, b } of lab.topology.links) {
      const next = a === here ? b : b === here ? a : null
      if (next && !lab.linksDown.includes(linkId(a, b)) && lab.children.get(next)) seen.add(next)
    }
  }
  return seen.has(to)
}

export function linkId(a: string, b: string): string {
  return `${a}~${b}`
}

async function beats(lab: Lab, vm: string, host: string): Promise<boolean> {
  const deadline = Date.now() + startMs
  while (Date.now() < deadline) {
    if (hostsRunning(lab, vm).includes(host)) return true
    await sleep(20)
  }
  return false
}

async function ask(lab: Lab, host: string, method: 'POST' | 'DELETE', vm: string, body?: object): Promise<void> {
  const port = lab.children.get(host)?.port
  if (!port) throw new VmRefusal(`${host} is down`)
  const response = await fetch(`http://127.0.0.1:${port}/vms/${vm}`, {
    method,
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(5000),
  })
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`${host} answered ${response.status} to ${method} ${vm}`)
}
