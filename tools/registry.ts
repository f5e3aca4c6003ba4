import { z } from 'zod'
import type { InventoryKind } from '../domain/kinds.ts'
import { describeItems, toWords } from '../domain/say.ts'
import type { SiteNeed, Tool, ToolFacts } from '../domain/tool.ts'
import { type Offering, specOfTool } from '../mesh/registry.ts'
import { kindsOfTool, sourceTools as servedTools, toolsOfKinds } from '../sources/kinds.ts'
import { databaseTools } from './databases.ts'
import { defineTool } from './define.ts'
import { deviceTools, deviceToolsOf } from './device.ts'
import { getHost, listHosts, recentChanges, vmRestart, vmStart, vmStop } from './hosts.ts'
import {
  addIncidentEvent,
  escalateIncident,
  getIncident,
  listIncidentEvents,
  reportCapabilityGap,
  resolveIncident,
} from './incident.ts'
import { runJob } from './jobs.ts'
import { activeAlerts, canReach, currentVmHost, liveLink, nodeHealth } from './live-platform.ts'
import { executeMigration, scheduleHaProposal } from './placement.ts'
import { convergeShard, findResource, getNode, getResource, getShard, getTenant, listNodesByShard } from './platform.ts'
import { readResult, sourceTools } from './sources.ts'
import { suitedTools, unsuitedLooks } from './suits.ts'

/**
 * Adds tools to those offered in the next turns. A call reads no resource, so it counts neither as
 * a read nor as evidence.
 */
export const moreTools = defineTool({
  name: 'more_tools',
  description: 'Get more tools for later turns',
  input: z.strictObject({ names: z.array(z.string().min(1).max(200)).min(1).max(12).describe('names') }),
  output: z.looseObject({}),
  effect: 'record',
  risk: 'none',
  reversible: true,
  names: {},
  say: ({ added }) => describeItems(toWords(added), 'more tool'),
  discovers: () => [],
  run: async ({ names: folded }) => {
    const names = unfoldNames(folded)
    const unknown = names.filter((name) => !tools.has(name))
    const added = names.filter((name) => tools.has(name))
    return { ok: true, status: 200, data: { added, ...(unknown.length > 0 && { unknown }) } }
  },
})

/**
 * Reads the body of a runbook. The text is by its author, so reading it counts neither as a read of
 * a resource nor as evidence, and no name in it counts as looked up.
 */
const readRunbook = defineTool({
  name: 'read_runbook',
  description: 'Read a runbook by name.',
  input: z.strictObject({ name: z.string().min(1).max(64).describe('as the context lists it') }),
  output: z.looseObject({ name: z.string(), digest: z.string(), body: z.string() }),
  effect: 'record',
  risk: 'none',
  reversible: true,
  names: {},
  say: ({ name }) => `read the runbook ${name}`,
  discovers: () => [],
  run: ({ name }, { core, signal }) => core.get(`/api/v1/knowledge/${encodeURIComponent(name)}`, { signal }),
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
  ...databaseTools,
  ...sourceTools,
  readResult,
  ...deviceTools,
  readRunbook,
  moreTools,
]

export const tools: ReadonlyMap<string, Tool> = new Map(all.map((tool) => [tool.name, tool]))

/** The facts about the tools that the policy check gets. */
export const toolFacts: ReadonlyMap<string, ToolFacts> = tools

type ToolDescription = { name: string; description: string; inputSchema: Schema }

type Schema = Record<string, unknown> & { properties?: Record<string, object> }

/** Describes a tool with all of its fields, even those that do not apply to this installation. */
export const describeTool = (tool: Tool): ToolDescription => {
  const schema = z.toJSONSchema(tool.input, { io: 'input' }) as Schema
  const properties = Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([field, about]) => [field, { ...nameOf(tool, field), ...about }]),
  )
  return { name: tool.name, description: tool.description, inputSchema: { ...schema, properties } }
}

/**
 * Describes a field that names a resource if the tool has no description for it: `node id`, `node,
 * host or vm id`.
 */
function nameOf({ names }: Tool, field: string): { description?: string } {
  const kinds = [names[field] ?? []].flat()
  if (kinds.length === 0) return {}
  return { description: `${kinds.length > 3 ? 'its' : kinds.join(', ').replace(/, (?=\w+$)/, ' or ')} id` }
}

/**
 * Describes a tool without the fields that do not apply to this installation: the field for the
 * source if only one source serves the tool, and the fields for devices if no device offers it.
 */
function describeOf(sources: readonly string[], onDevices: ReadonlySet<string>): (tool: Tool) => ToolDescription {
  return (tool) => {
    const described = describeTool(tool)
    const serving = tool.fromSource ? sources.filter((kind) => kindsOfTool(tool.name).includes(kind)).length : 0
    const { sourceFields = [], deviceFields = [] } = servedTools.get(tool.name)?.alsoOfDevices ?? {}
    const without = new Set([
      ...(serving === 1 ? ['source'] : []),
      ...(serving === 0 ? sourceFields : []),
      ...(onDevices.has(tool.name) ? [] : deviceFields),
    ])
    const { properties = {}, ...schema } = described.inputSchema as Schema
    const kept = Object.entries(properties).filter(([field]) => !without.has(field))
    return { ...described, inputSchema: { ...schema, properties: Object.fromEntries(kept) } }
  }
}

/**
 * Lists the names, descriptions and JSON schemas of the offered tools in a stable order, as the
 * model reads them. Includes a device tool if a device offers it, and a source tool if one of these
 * kinds of source serves it. Includes tools for changes, jobs, shards and hosts only if the
 * installation has them.
 */
export function describedTools(
  offered: readonly string[] | null,
  devices: readonly Offering[] = [],
  kindsOfSources: readonly string[] = [],
  has: Partial<Record<SiteNeed, boolean>> = {},
): ToolDescription[] {
  const onDevices = deviceToolsOf(devices)
  const served = toolsOfKinds(kindsOfSources)
  const hasWholes = served.size > 0 || [...servedTools.keys()].some((name) => onDevices.has(name))
  const isServed = ({ name, fromSource }: Tool) =>
    (fromSource === true && (served.has(name) || (name === readResult.name && hasWholes))) || onDevices.has(name)
  return all
    .filter((tool) => (!tool.fromSource && !specOfTool(tool.name)) || isServed(tool))
    .filter((tool) => tool !== moreTools)
    .filter((tool) => tool.needs === undefined || has[tool.needs] === true)
    .filter((tool) => offered === null || offered.includes(tool.name) || tool.effect === 'terminal')
    .map(describeOf(kindsOfSources, onDevices))
}

/**
 * Splits the tools into those offered in the first turn of an incident about a resource of this
 * kind (null: no resource) and those that `more_tools` adds. Resources found during the run add the
 * tools for their kinds (`activities/ask-model.ts`). `lacks`: what this resource does not have.
 * `runbook`: the body of the runbook that fits; a tool that the repair in the runbook names comes
 * first, and a tool that the runbook never names may come later. `words`: the words of the alert,
 * used if no runbook fits. An offer is no permission, because the policy is checked for each call.
 */
export function splitTools(
  described: readonly ToolDescription[],
  kind: InventoryKind | null,
  { lacks = [], runbook = null, words = '' }: Situation = {},
): { first: ToolDescription[]; more: ToolDescription[] } {
  const wanted = runbook === null ? suitedTools(words) : repairsOf(runbook)
  const later = runbook === null ? unsuitedLooks(words) : []
  const isFirst = ({ name }: ToolDescription) => {
    const { firstFor, needs, isSituational, insteadOf } = tools.get(name) ?? {}
    if (needs !== undefined && lacks.includes(needs)) return false
    if (wanted.includes(name)) return true
    if (later.includes(name)) return false
    if (isSituational && kind !== null && runbook !== null && !runbook.includes(`\`${name}\``)) return false
    const missing = kind === null ? undefined : insteadOf?.[kind]
    if (missing !== undefined && !described.some((other) => other.name === missing)) return true
    return firstFor === undefined || firstFor.includes(kind)
  }
  const more = described.filter((tool) => !isFirst(tool))
  if (more.length === 0) return { first: [...described], more }
  const { description, ...rest } = describeTool(moreTools)
  const names = foldNames(more.map(({ name }) => name))
  return {
    first: [...described.filter(isFirst), { ...rest, description: `${description}: ${names}.` }],
    more,
  }
}

type Situation = { lacks?: readonly Tool['needs'][]; runbook?: string | null; words?: string }

/**
 * Returns the write that the repair in a runbook names first: in the paragraph `Repair:`, or
 * anywhere if there is no such paragraph.
 */
function repairsOf(runbook: string): string[] {
  const told = runbook.split(/\n\s*\n/).find((paragraph) => paragraph.startsWith('Repair:')) ?? runbook
  const named = [...told.matchAll(/`([a-z_]+)`/g)].flatMap(([, name]) =>
    name && tools.get(name)?.effect === 'write' ? [name] : [],
  )
  return named.slice(0, 1)
}

/** Shortens a list of names: names with the same beginning become `git_{log,show}`. */
function foldNames(names: readonly string[]): string {
  const byBegin = Map.groupBy(names, (name) => name.slice(0, name.indexOf('_') + 1))
  return [...byBegin]
    .flatMap(([begin, alike]) =>
      begin === '' || alike.length < 2 ? alike : `${begin}{${alike.map((name) => name.slice(begin.length)).join(',')}}`,
    )
    .join(', ')
}

/** Expands folded names such as `git_{log,show}`, and returns other names unchanged. */
export function unfoldNames(names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const [, begin = '', rest] = /^(\w+_)\{([\w,]+)\}$/.exec(name) ?? []
    return rest === undefined ? [name] : rest.split(',').map((end) => `${begin}${end}`)
  })
}

/** Whether the first turn of an incident about a resource of this kind offers the tool. */
export const isFirstFor = (name: string, kind: string): boolean =>
  tools.get(name)?.firstFor?.some((each) => each === kind) === true
