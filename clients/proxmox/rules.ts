import { z } from 'zod'
import { PlatformError } from '../platform.ts'
import type { ProxmoxApi } from './api.ts'
import { flag } from './name.ts'

/** What the HA manager holds guests to. Groups of guests are named by the first rule in them. */
export type Rules = {
  /** By guest (`vm:101`): the only nodes it may be on. */
  nodes: Map<string, string[]>
  together: Map<string, string>
  apart: Map<string, string>
}

const rule = z.object({
  rule: z.string(),
  type: z.string(),
  resources: z.string().default(''),
  nodes: z.string().default(''),
  strict: flag.default(false),
  affinity: z.string().optional(),
  disable: flag.default(false),
})
const group = z.object({ group: z.string(), nodes: z.string().default(''), restricted: flag.default(false) })

/**
 * The rules of Proxmox VE 9, or the groups of 8, which has no rules. `groupOf` tells which guest is in which group.
 *
 * Rules that share a guest are taken as one: exact for those kept together, stricter than the manager for those kept apart,
 * so that no plan asks for what it refuses.
 */
export async function readRules(api: ProxmoxApi, groupOf: Map<string, string>, signal?: AbortSignal): Promise<Rules> {
  try {
    const all = await api.get(['cluster', 'ha', 'rules'], z.array(rule), { signal })
    const rules = all.filter((one) => !one.disable)
    const affinity = (kind: string) =>
      rules.filter((one) => one.type === 'resource-affinity' && one.affinity === kind).map(namesIn)
    return {
      nodes: new Map(
        rules
          .filter((one) => one.type === 'node-affinity' && one.strict)
          .flatMap((one) => list(one.resources).map((sid) => [sid, nodesIn(one.nodes)] as const)),
      ),
      together: joined(affinity('positive')),
      apart: joined(affinity('negative')),
    }
  } catch (error) {
    // "Method 'GET /cluster/ha/rules' not implemented": this is Proxmox VE 8.
    if (!(error instanceof PlatformError) || error.status !== 501) throw error
  }
  const groups = await api.get(['cluster', 'ha', 'groups'], z.array(group), { signal })
  const restricted = new Map(groups.filter((one) => one.restricted).map((one) => [one.group, nodesIn(one.nodes)]))
  const nodes = new Map<string, string[]>()
  for (const [sid, name] of groupOf) {
    const only = restricted.get(name)
    if (only) nodes.set(sid, only)
  }
  return { nodes, together: new Map(), apart: new Map() }
}

function namesIn(one: z.infer<typeof rule>): { name: string; members: string[] } {
  return { name: one.rule, members: list(one.resources) }
}

/** `pve1:2,pve2`: names with their priorities, which say what is preferred, not what may be. */
function nodesIn(text: string): string[] {
  return list(text).map((node) => node.split(':')[0] ?? '')
}

function list(text: string): string[] {
  return text.split(/[,;\s]+/).filter((part) => part !== '')
}

function joined(rules: { name: string; members: string[] }[]): Map<string, string> {
  const nameOf = new Map<string, string>()
  for (const { name, members } of rules) {
    const met = new Set(members.map((member) => nameOf.get(member)).filter((known) => known !== undefined))
    const [first = name] = met
    for (const [member, known] of nameOf) if (met.has(known)) nameOf.set(member, first)
    for (const member of members) nameOf.set(member, first)
  }
  return nameOf
}
