import { z } from 'zod'
import type { Tool, ToolFacts } from '../domain/tool.ts'
import type { Offering } from '../mesh/registry.ts'
import { isDeviceTool } from '../mesh/registry.ts'
import { toolsOfKinds } from '../sources/kinds.ts'
import { deviceTools, deviceToolsOf } from './device.ts'
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
import { activeAlerts, canReach, currentVmHost, liveLink, nodeHealth } from './predicates.ts'
import { readResult, sourceTools } from './sources.ts'

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
  nodeHealth,
  liveLink,
  canReach,
  activeAlerts,
  currentVmHost,
  scheduleHaProposal,
  executeMigration,
  runJob,
  ...sourceTools,
  readResult,
  ...deviceTools,
]

/** Every tool by its name. */
export const tools: ReadonlyMap<string, Tool> = new Map(all.map((tool) => [tool.name, tool]))

/** What the judge sees of them. */
export const toolFacts: ReadonlyMap<string, ToolFacts> = tools

/**
 * Name, description and JSON schema of the offered tools, in a stable order: as the model reads
 * them. A device tool is among them when one of the devices has it, a tool of sources when a source of these kinds serves it,
 * that of jobs when any is declared.
 */
export function describedTools(
  offered: readonly string[] | null,
  devices: readonly Offering[] = [],
  kindsOfSources: readonly string[] = [],
  { hasJobs = false }: { hasJobs?: boolean } = {},
) {
  const onDevices = deviceToolsOf(devices)
  const served = toolsOfKinds(kindsOfSources)
  return all
    .filter((tool) => !isDeviceTool(tool.name) || onDevices.has(tool.name))
    .filter((tool) => !tool.fromSource || served.has(tool.name) || (tool.name === readResult.name && served.size > 0))
    .filter((tool) => !tool.fromJobs || hasJobs)
    .filter((tool) => offered === null || offered.includes(tool.name) || tool.effect === 'terminal')
    .map((tool) => ({
      name: tool.name,
      description: tool.description,
      inputSchema: z.toJSONSchema(tool.input, { io: 'input' }) as Record<string, unknown>,
    }))
}
