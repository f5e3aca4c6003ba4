import { z } from 'zod'
import type { InventoryKind } from '../domain/kinds.ts'
import type { Tool, ToolFacts } from '../domain/tool.ts'
import { isDeviceTool, type Offering } from '../mesh/registry.ts'
import { kindsOfTool, toolsOfKinds } from '../sources/kinds.ts'
import { activeAlerts, canReach, currentVmHost, defineTool, liveLink, nodeHealth } from './define.ts'
import { deviceTools, deviceToolsOf } from './device.ts'
import { getHost, listHosts, recentChanges } from './hosts.ts'
import {
  addIncidentEvent,
  escalateIncident,
  getIncident,
  listIncidentEvents,
  reportCapabilityGap,
  resolveIncident,
} from './incident.ts'
import { runJob } from './jobs.ts'
import { executeMigration, scheduleHaProposal } from './placement.ts'
import { convergeShard, findResource, getNode, getResource, getShard, getTenant, listNodesByShard } from './platform.ts'
import { readResult, sourceTools } from './sources.ts'
import { vmRestart, vmStart, vmStop } from './vms.ts'

/** Adds tools to what the next turns offer. Says nothing of the world, so it is neither a look nor evidence. */
export const moreTools = defineTool({
  name: 'more_tools',
  description: 'Get tools that are not offered yet, for the turns that follow.',
  input: z.strictObject({ names: z.array(z.string().min(1).max(60)).min(1).max(12) }),
  output: z.looseObject({}),
  effect: 'record',
  risk: 'none',
  reversible: true,
  names: {},
  discovers: () => [],
  run: async ({ names }) => {
    const unknown = names.filter((name) => !tools.has(name))
    const added = names.filter((name) => tools.has(name))
    return { ok: true, status: 200, data: { added, ...(unknown.length > 0 && { unknown }) } }
  },
})

const all: Tool[] = [
  getIncident,
  listIncidentEvents,
  addIncidentEvent,
  getShard,
  listNodesByShard,
  getNode,
  getTenant,
  convergeShard,
  resolveIncident,
  escalateIncident,
  reportCapabilityGap,
  findResource,
  getResource,
  getHost,
  listHosts,
  nodeHealth,
  liveLink,
  canReach,
  activeAlerts,
  currentVmHost,
  recentChanges,
  scheduleHaProposal,
  executeMigration,
  vmStart,
  vmStop,
  vmRestart,
  runJob,
  ...sourceTools,
  readResult,
  ...deviceTools,
  moreTools,
]

/** Every tool by its name. */
export const tools: ReadonlyMap<string, Tool> = new Map(all.map((tool) => [tool.name, tool]))

/** What the judge sees of them. */
export const toolFacts: ReadonlyMap<string, ToolFacts> = tools

export type ToolDescription = { name: string; description: string; inputSchema: Record<string, unknown> }

type Schema = Record<string, unknown> & { properties?: Record<string, unknown> }

const describe = (tool: Tool): ToolDescription => ({
  name: tool.name,
  description: tool.description,
  inputSchema: z.toJSONSchema(tool.input, { io: 'input' }) as Schema,
})

/** Where one source serves a tool, there is nothing to choose. */
function describeOf(sources: readonly string[]): (tool: Tool) => ToolDescription {
  return (tool) => {
    const described = describe(tool)
    const kinds = tool.fromSource ? kindsOfTool(tool.name) : []
    const { source, ...properties } = (described.inputSchema as Schema).properties ?? {}
    if (source === undefined || sources.filter((kind) => kinds.includes(kind)).length !== 1) return described
    return { ...described, inputSchema: { ...described.inputSchema, properties } }
  }
}

/**
 * Name, description and JSON schema of the offered tools, in a stable order: as the model reads
 * them. A device tool is among them when one of the devices has it, a tool of sources when a source of these kinds serves it,
 * those of changes and jobs where the site has any.
 */
export function describedTools(
  offered: readonly string[] | null,
  devices: readonly Offering[] = [],
  kindsOfSources: readonly string[] = [],
  has: { changes?: boolean; jobs?: boolean } = {},
): ToolDescription[] {
  const onDevices = deviceToolsOf(devices)
  const served = toolsOfKinds(kindsOfSources)
  return all
    .filter((tool) => !isDeviceTool(tool.name) || onDevices.has(tool.name))
    .filter((tool) => !tool.fromSource || served.has(tool.name) || (tool.name === readResult.name && served.size > 0))
    .filter((tool) => tool !== moreTools)
    .filter((tool) => tool.needs === undefined || has[tool.needs] === true)
    .filter((tool) => offered === null || offered.includes(tool.name) || tool.effect === 'terminal')
    .map(describeOf(kindsOfSources))
}

/**
 * What the first turn of an incident about a resource of this kind offers, and what `more_tools` adds. Null: the incident names no
 * resource, and may be about anything.
 */
export function splitTools(
  described: readonly ToolDescription[],
  kind: InventoryKind | null,
): { first: ToolDescription[]; more: ToolDescription[] } {
  const isFirst = ({ name }: ToolDescription) => {
    const firstFor = tools.get(name)?.firstFor
    return firstFor === undefined || (kind === null ? firstFor.length > 0 : firstFor.includes(kind))
  }
  const more = described.filter((tool) => !isFirst(tool))
  if (more.length === 0) return { first: [...described], more }
  const { description, ...rest } = describe(moreTools)
  const names = more.map(({ name }) => name).join(', ')
  return {
    first: [...described.filter(isFirst), { ...rest, description: `${description} There are: ${names}.` }],
    more,
  }
}
