import type { Db } from '../db/connect.ts'
import { hasChanges } from '../db/inventory/changes.ts'
import { usableDevices } from '../db/inventory/devices.ts'
import { readSiteFacts } from '../db/inventory/resources.ts'
import { listSources } from '../db/inventory/sources.ts'
import { systemScope } from '../db/scope.ts'
import type { SettingsReader } from '../db/settings.ts'
import type { ChatTool } from '../domain/chat.ts'
import type { InventoryKind } from '../domain/kinds.ts'
import type { RunbookMatch } from '../domain/runbook.ts'
import { fitToSite } from '../domain/runbook-lines.ts'
import { allowsStatements } from '../domain/source.ts'
import { describeTools, describeToolsAsText } from '../model/describe-tools.ts'
import { type Prompts, renderSystemPrompt, type SiteFacts, topicsOf } from '../prompts/render.ts'
import { describedTools, moreTools, splitTools, tools } from '../tools/registry.ts'

/** The facts about an incident on which prompt and tools depend. */
type FirstTurnOf = {
  type: string
  kind: InventoryKind | null
  /** Names of the declared jobs, and whether a job fits this resource. */
  jobs: readonly string[]
  hasFittingJob: boolean
  /** The runbook that fits the incident, and the names of other runbooks; null if none fits. */
  runbooks: RunbookMatch | null
  /** Words of the alerts, used to choose tools if no runbook fits. */
  words?: string
}

type FirstTurn = {
  /** The system prompt. */
  system: string
  /** Definitions of the tools; empty if the protocol has them in the prompt. */
  tools: ChatTool[]
  /** Tools that `more_tools` adds. */
  more: ChatTool[]
  /** The runbooks, without lines about tools that this site lacks. */
  runbooks: RunbookMatch | null
}

/**
 * Builds the prompt and tools with which an investigation begins. Used for a run, and for a person
 * who wants to see what a model reads.
 */
export async function readFirstTurn(
  { db, prompts, settings }: { db: Db; prompts: Prompts; settings: SettingsReader },
  protocol: 'native' | 'json',
  { type, kind, jobs, hasFittingJob, runbooks: match, words = '' }: FirstTurnOf,
): Promise<FirstTurn> {
  const offered = settings.value<string[] | null>('agent.tools', type)
  const devices = await usableDevices(db)
  const sources = await listSources(db)
  const inventory = await readSiteFacts(systemScope(db))
  const has = {
    ...inventory.platform,
    changes: await hasChanges(systemScope(db)),
    jobs: jobs.length > 0,
    databases: sources.some(({ writeCredential }) => writeCredential !== null),
    queries: sources.some(({ options }) => allowsStatements(options)),
  }
  const described = describedTools(
    offered,
    devices,
    sources.map((source) => source.kind),
    has,
  )
  const here = new Set(described.map(({ name }) => name)).add(moreTools.name)
  const chosen = match?.chosen && { ...match.chosen, body: fitToSite(match.chosen.body, { every: tools, here }) }
  const runbook = chosen?.body ?? null
  // Offers every tool of a list that an admin has set.
  const lacks = hasFittingJob ? [] : (['jobs'] as const)
  const { first, more } =
    offered === null
      ? splitTools(described, kind, { lacks, runbook, words: `${type} ${words}` })
      : { first: described, more: [] }
  const site: SiteFacts = { ...inventory, sources, jobs, devices: devices.length }
  const system = renderSystemPrompt(prompts, {
    override: settings.value<string | null>('agent.system_prompt', type),
    protocol,
    toolsText: describeToolsAsText(first),
    topics: topicsOf(kind),
    site,
    hasRunbook: runbook !== null,
  })
  return {
    system,
    tools: protocol === 'native' ? describeTools(first) : [],
    more: describeTools(more, first),
    runbooks: match && { ...match, chosen: chosen ?? null },
  }
}
