import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startNode } from './lab.ts'
import { fullFraction, lookAtNode, usedBytes } from './look.ts'
import { overDeclared } from './metric-faults.ts'
import { desiredConfig, type Lab, nodeDirectory, writeForNode } from './state.ts'
import type { NodePlan } from './topology.ts'
import { Refused } from './vm.ts'

/** How long a node may take to answer after it was continued or restarted. */
const answerMs = 5000

/**
 * Re-applies the desired state to every node of a shard: continues what is stopped, restarts what is dead, restores a
 * drifted configuration, clears `tmp/` and rotated logs of a node whose disk is full. Never deletes tenant data.
 */
export async function converge(lab: Lab, shard: string): Promise<string[]> {
  const changed: string[] = []
  // In order: a replica needs its primary.
  for (const node of lab.topology.nodes.filter((each) => each.shard === shard)) {
    changed.push(...(await convergeNode(lab, node)).map((what) => `${node.id}: ${what}`))
  }
  return changed
}

async function convergeNode(lab: Lab, plan: NodePlan): Promise<string[]> {
  const changed: string[] = []
  const before = await lookAtNode(lab, plan)
  // Before the process, so that it starts with the right one.
  if (before.drift.length > 0) {
    writeForNode(lab, join(nodeDirectory(lab, plan.id), 'etc', 'config.json'), desiredConfig(lab, plan))
    changed.push('configuration restored')
  }
  if (usedBytes(before.bytes) >= fullFraction * plan.diskQuotaBytes) {
    const freed = clearDisk(nodeDirectory(lab, plan.id))
    if (freed > 0) changed.push(`cleared ${freed} bytes from tmp and rotated logs`)
  }
  if (before.process === 'stopped') {
    process.kill(lab.children.get(plan.id)!.pid, 'SIGCONT')
    changed.push('continued')
  } else if (before.process === 'gone') {
    await startNode(lab, plan.id)
    changed.push('restarted')
  } else if (!before.answers) {
    await lab.children.kill(plan.id)
    await startNode(lab, plan.id)
    changed.push('did not answer, restarted')
  }
  for (const { what, run } of await overDeclared(lab, plan)) {
    await run()
    changed.push(what)
  }
  await untilItAnswers(lab, plan)
  return changed
}

/** What a convergence would change on each node of a shard, as things are now; nothing is changed. */
export async function wouldConverge(lab: Lab, shard: string): Promise<{ id: string; changes: string[] }[]> {
  const nodes = lab.topology.nodes.filter((each) => each.shard === shard)
  return Promise.all(nodes.map(async (plan) => ({ id: plan.id, changes: await changesOf(lab, plan) })))
}

async function changesOf(lab: Lab, plan: NodePlan): Promise<string[]> {
  const found = await lookAtNode(lab, plan)
  const freed =
    usedBytes(found.bytes) >= fullFraction * plan.diskQuotaBytes ? bytesOf(clearable(nodeDirectory(lab, plan.id))) : 0
  const started = {
    stopped: ['continue its process'],
    gone: ['restart its process'],
    running: found.answers ? [] : ['restart its process, which does not answer'],
  }[found.process]
  return [
    ...(found.drift.length > 0 ? [`restore its configuration (${found.drift.join(', ')})`] : []),
    ...(freed > 0 ? [`clear ${freed} bytes from tmp and rotated logs`] : []),
    ...started,
    ...(await overDeclared(lab, plan)).map(({ what }) => what),
  ]
}

function clearDisk(directory: string): number {
  const files = clearable(directory)
  const freed = bytesOf(files)
  for (const file of files) rmSync(file, { recursive: true })
  return freed
}

const bytesOf = (files: readonly string[]): number => files.reduce((sum, file) => sum + statSync(file).size, 0)

/** Temporary files and rotated logs: never what belongs to a tenant. */
function clearable(directory: string): string[] {
  const rotated = readdirSync(join(directory, 'logs')).filter((name) => /\.\d+$/.test(name))
  return [
    ...readdirSync(join(directory, 'tmp')).map((name) => join(directory, 'tmp', name)),
    ...rotated.map((name) => join(directory, 'logs', name)),
  ]
}

async function untilItAnswers(lab: Lab, plan: NodePlan): Promise<void> {
  const deadline = Date.now() + answerMs
  while (!(await lookAtNode(lab, plan)).answers) {
    if (Date.now() > deadline)
      throw new Refused(`${plan.id} does not answer ${answerMs / 1000} s after it was converged`)
    await sleep(50)
  }
}
