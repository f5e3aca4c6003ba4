import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startNode } from './lab.ts'
import { fullFraction, lookAtNode, usedBytes } from './look.ts'
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
  await untilItAnswers(lab, plan)
  return changed
}

function clearDisk(directory: string): number {
  let freed = 0
  const clear = (file: string) => {
    freed += statSync(file).size
    rmSync(file, { recursive: true })
  }
  for (const name of readdirSync(join(directory, 'tmp'))) clear(join(directory, 'tmp', name))
  for (const name of readdirSync(join(directory, 'logs'))) {
    if (/\.\d+$/.test(name)) clear(join(directory, 'logs', name))
  }
  return freed
}

async function untilItAnswers(lab: Lab, plan: NodePlan): Promise<void> {
  const deadline = Date.now() + answerMs
  while (!(await lookAtNode(lab, plan)).answers) {
    if (Date.now() > deadline)
      throw new Refused(`${plan.id} does not answer ${answerMs / 1000} s after it was converged`)
    await sleep(50)
  }
}
