import { type InventoryKind, inventoryKinds } from '../domain/kinds.ts'
import { openKnowledge } from '../knowledge/knowledge.ts'
import { describeTools, describeToolsAsText } from '../model/describe-tools.ts'
import {
  describePlatform,
  noFacts,
  readPrompts,
  renderRunbooks,
  renderSystemPrompt,
  type SiteFacts,
  topicsOf,
} from '../prompts/render.ts'
import { describedTools, splitTools } from '../tools/registry.ts'
import { countRepairingFirst } from './repairing.ts'
import { report } from './stage.ts'

/** Three installations that have nothing in common, with the registry of each. */
export const sites = {
  lab: {
    counts: { region: 2, shard: 4, node: 8, tenant: 6, host: 9, vm: 25 },
    platform: { shards: true, hosts: true },
    databaseShards: 2,
    racks: 5,
    sources: [{ name: 'lab', kind: 'prometheus' }],
    jobs: ['unlock-search'],
    devices: 8,
  },
  hosts: { ...noFacts, counts: { region: 1, shard: 1, node: 3, device: 3 }, devices: 3 },
  proxmox: {
    ...noFacts,
    counts: { region: 1, host: 3, vm: 14 },
    platform: { shards: false, hosts: true },
    racks: 3,
  },
} satisfies Record<string, SiteFacts>

/**
 * Types of the lab's alerts, with the kinds of their resources. `seen`: only metrics show the
 * fault, so the lab has a source of metrics.
 */
const incidents: readonly { type: string; kind: InventoryKind; seen?: true }[] = [
  { type: 'replication_lag', kind: 'node' },
  { type: 'service_down', kind: 'node' },
  { type: 'disk_pressure', kind: 'node' },
  { type: 'config_drift', kind: 'node' },
  { type: 'runaway_process', kind: 'node' },
  { type: 'bad_deploy', kind: 'node' },
  { type: 'missing_package', kind: 'node' },
  { type: 'host_down', kind: 'host' },
  { type: 'host_draining', kind: 'host' },
  { type: 'HighErrorRate', kind: 'node', seen: true },
  { type: 'ServiceMemoryHigh', kind: 'node', seen: true },
]

/** A device with every capability of an agent. */
const device = { mode: 'all' as const, toolsAllowed: [], terms: { capabilities: [] }, health: null }

/**
 * Measures the system prompt and the tools of a first turn, in bytes: for a kind of resource, with
 * or without devices, and with sources of `sourceKinds`.
 */
export function measureFirstTurn(
  kind: InventoryKind | null,
  site: SiteFacts,
  sourceKinds: readonly string[],
  { runbook = null, words = '' }: { runbook?: string | null; words?: string } = {},
) {
  const described = describedTools(null, site.devices > 0 ? [device] : [], sourceKinds, {
    ...site.platform,
    jobs: site.jobs.length > 0,
  })
  const { first } = splitTools(described, kind, { lacks: ['jobs'], runbook, words })
  const options = {
    override: null,
    protocol: 'native' as const,
    toolsText: '',
    topics: topicsOf(kind),
    site,
    hasRunbook: runbook !== null,
  }
  const system = Buffer.byteLength(renderSystemPrompt(readPrompts(), options))
  const tools = Buffer.byteLength(JSON.stringify(describeTools(first)))
  return { system, tools, first: system + tools, names: first.map(({ name }) => name), described: first }
}

/** All tools that may be in first turns of the lab. */
export const everyTool = describedTools(null, [device], ['prometheus'], { shards: true, hosts: true, jobs: true })

/**
 * Measures the bytes of prompt and tools in first turns: with every tool, for the lab's incidents,
 * and the prompts of three installations.
 */
export async function prompt(): Promise<void> {
  const prompts = readPrompts()
  const described = describedTools(null, [], [], { shards: true, hosts: true })
  const tools = Buffer.byteLength(JSON.stringify(describeTools(described)))
  const whole = (protocol: 'native' | 'json', toolsText: string) =>
    Buffer.byteLength(renderSystemPrompt(prompts, { override: null, protocol, toolsText }))
  const [native, json] = [whole('native', ''), whole('json', describeToolsAsText(described))]
  report('prompt', {
    'tools offered': described.length,
    'system prompt, native (bytes)': native,
    'tool definitions, native (bytes)': tools,
    'first turn, native (bytes)': native + tools,
    'first turn, json (bytes)': json,
  })
  await reportIncidents()
  report('what repairs is offered first', await countRepairingFirst())
  reportSites()
}

/** Measures the first turn of each incident type of the lab, with its runbook. */
export async function measureIncidents() {
  const knowledge = openKnowledge({})
  await knowledge.refresh()
  return incidents.map(({ type, kind, seen }) => {
    const site = { ...sites.lab, ...(!seen && { sources: [] }) }
    const match = knowledge.match({ type, kind, words: '' })
    const turn = measureFirstTurn(kind, site, seen ? ['prometheus'] : [], { runbook: match.chosen?.body ?? null })
    const runbook = { name: match.chosen?.name ?? null, bytes: Buffer.byteLength(renderRunbooks(match)) }
    return { type, kind, ...turn, runbook }
  })
}

async function reportIncidents(): Promise<void> {
  const rows = (await measureIncidents()).map(
    ({ type, kind, system, tools, first, runbook }) =>
      [`${type} of a ${kind}`, `${first} = ${system} + ${tools}; ${runbook.name} ${runbook.bytes}`] as const,
  )
  report('first turns of the lab (bytes: system prompt + tools; runbook)', Object.fromEntries(rows))
}

function reportSites(): void {
  for (const [name, site] of Object.entries(sites)) {
    const bytes = (kind: InventoryKind) =>
      measureFirstTurn(
        kind,
        site,
        site.sources.map((source) => source.kind),
      )
    const kinds = inventoryKinds.filter((kind) => (site.counts as SiteFacts['counts'])[kind])
    const rows = kinds.map((kind) => [
      `about a ${kind} (bytes)`,
      `${bytes(kind).first} = ${bytes(kind).system} + ${bytes(kind).tools}`,
    ])
    report(`the prompt of ${name}`, Object.fromEntries(rows))
    console.log(`${describePlatform(site, null)}\n`)
  }
}
