import { join } from 'node:path'
import { type Lab, nodeDirectory } from './state.ts'
import type { HostPlan, NodePlan } from './topology.ts'

/** The fault cannot hit this target; nothing was broken. */
export class WrongTarget extends Error {
  override name = 'WrongTarget'
}

/** The node that is named, or the one of the named shard that such a fault hits. */
export function nodeAt(lab: Lab, target: string, role: NodePlan['role']): NodePlan {
  const node = lab.topology.nodes.find(({ id }) => id === target)
  const found = node ?? lab.topology.nodes.find((each) => each.shard === target && each.role === role)
  if (!found) throw new WrongTarget(`${target} is neither a node nor a shard with a ${role} node`)
  if (role === 'replica' && found.role !== 'replica') throw new WrongTarget(`${target} is not a replica`)
  if (role === 'web' && found.role !== 'web') throw new WrongTarget(`${target} is not a web node`)
  return found
}

export function hostAt(lab: Lab, target: string): HostPlan {
  const host = lab.topology.hosts.find(({ id }) => id === target)
  if (!host) throw new WrongTarget(`${target} is not a host`)
  return host
}

/** The process of what is to be broken: what is down already cannot be. */
export function runningPid(lab: Lab, id: string): number {
  const child = lab.children.get(id)
  if (!child) throw new WrongTarget(`${id} is already down`)
  return child.pid
}

export function configFile(lab: Lab, { id }: NodePlan): string {
  return join(nodeDirectory(lab, id), 'etc', 'config.json')
}
