import { readFileSync } from 'node:fs'
import { formatCount } from '../domain/format.ts'
import { fence, inertJson } from '../domain/inert-text.ts'
import { type InventoryKind, inventoryKinds, kinds } from '../domain/kinds.ts'
import { inlineCharacters, type RunbookMatch } from '../domain/runbook.ts'

/**
 * What the prompt says about a site: counts from the registry, and names of connected sources and
 * jobs. Plain data.
 */
export type SiteFacts = {
  /** The number of resources that a source lists, by kind. */
  counts: Partial<Record<InventoryKind, number>>
  /**
   * What the platform lists and can change: shards, or hosts with VMs. An imported group is not a
   * shard.
   */
  platform: { shards: boolean; hosts: boolean }
  /** How many shards of the platform contain databases. */
  databaseShards: number
  racks: number
  sources: readonly { name: string; kind: string }[]
  jobs: readonly string[]
  devices: number
}

export const noFacts: SiteFacts = {
  counts: {},
  platform: { shards: false, hosts: false },
  databaseShards: 0,
  racks: 0,
  sources: [],
  jobs: [],
  devices: 0,
}

/** The most names in one list of the prompt. Further names are only counted. */
const maxNames = 8
/**
 * The most characters of a name in the prompt, because a longer name could be a text. Declarations
 * allow fewer characters for sources and for jobs.
 */
const maxNameCharacters = 40

/**
 * Returns whether the site has shards of databases, which are pairs. Any other shard serves
 * tenants, or is a group of nodes.
 */
const hasDatabases = ({ platform, databaseShards }: SiteFacts) => platform.shards && databaseShards > 0
const hasTenants = ({ platform, counts }: SiteFacts) => platform.shards && (counts.tenant ?? 0) > 0

/**
 * Returns the topics that lines of `system.md` may have at this site, in addition to kinds:
 * `{replication} …`.
 */
function siteTopics(facts: SiteFacts): string[] {
  const shards = hasDatabases(facts) || hasTenants(facts)
  return [...(hasDatabases(facts) ? ['replication'] : []), ...(shards ? ['shards'] : [])]
}

/**
 * Describes a site's platform in a few lines: which resources there are and how many, how they are
 * related, which sources can be read, and which jobs can run. Uses only counts, and names that were
 * checked when declared. At most 1,500 bytes, whatever the site. `topics` is as for `keepTopics`;
 * null describes everything.
 */
export function describePlatform(facts: SiteFacts, topics: ReadonlySet<string> | null): string {
  const isAbout = (...kinds: InventoryKind[]) => topics === null || kinds.some((kind) => topics.has(kind))
  const { counts, sources, jobs, devices } = facts
  const hasMembers = facts.platform.hosts && (counts.vm ?? 0) > 0
  const lines = [
    describeCounts(facts),
    ...(isAbout('shard', 'node', 'tenant', 'region') ? describeShards(facts) : []),
    ...(hasMembers && isAbout('host', 'vm')
      ? ['Hosts run the VMs; some VMs belong to an ha_group whose members must not share a host.']
      : []),
    `Read: ${namesOf(
      sources.map(({ name, kind }) => `${plain(name)} (${plain(kind)})`),
      'no source of metrics or logs',
    )}.`,
    ...(devices > 0 ? [`${formatCount(devices, 'device')} can be asked and, where a person approves, changed.`] : []),
    ...(jobs.length > 0 ? [`Jobs: ${namesOf(jobs.map(plain), '')}.`] : []),
  ]
  return lines.join('\n')
}

function describeCounts({ counts, racks, platform }: SiteFacts): string {
  const told = inventoryKinds.flatMap((kind) => {
    const count = counts[kind] ?? 0
    if (count === 0) return []
    const isGroup = kind === 'shard' && !platform.shards
    const one = isGroup ? 'group of nodes' : (namedOtherwise[kind] ?? kind)
    const many = isGroup ? 'groups of nodes' : kinds[kind].plural
    const among = kind === 'host' && racks > 1 ? ` in ${racks} racks` : ''
    return [`${count} ${count === 1 ? one : many}${among}`]
  })
  return told.length === 0 ? 'Nothing is in the inventory yet.' : `${told.join(', ')}.`
}

const namedOtherwise: Partial<Record<InventoryKind, string>> = { vm: 'VM', service_unit: 'service' }

function describeShards(facts: SiteFacts): string[] {
  const { counts, databaseShards, platform } = facts
  const others = (counts.shard ?? 0) - databaseShards
  if (!hasDatabases(facts) && !hasTenants(facts))
    return platform.shards && others > 0 ? ['A shard is a group of nodes.'] : []
  const told = [
    'Regions hold shards.',
    ...(hasDatabases(facts) ? ['A database shard is a MySQL replication pair: a primary node and a replica.'] : []),
    ...(others > 0 && hasTenants(facts) ? ['A web shard is a set of nodes that serve tenants from CephFS.'] : []),
  ]
  return [told.join(' ')]
}

function namesOf(names: readonly string[], none: string): string {
  if (names.length === 0) return none
  const more = names.length - maxNames
  return `${names.slice(0, maxNames).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Returns a name without anything that could be read as a sentence or a line. */
const plain = (name: string): string => name.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, maxNameCharacters)

export type Prompts = {
  system: string
  constraints: string
  protocol: { native: string; json: string }
}

/**
 * The words that the block of the JSON protocol must contain. If one is missing, the parser and the
 * prompt no longer match.
 */
const promised = ['"tool_call"', '"name"', '"parameters"', '"final_answer"', '"summary"', '"confidence"', '{{tools}}']

/**
 * Reads the prompt files once, at start. Throws an error that names the file if a file is missing,
 * or if the protocol block is not what the parser expects. A worker with a wrong prompt must not
 * start.
 */
export function readPrompts(directory: URL = new URL('./', import.meta.url)): Prompts {
  const read = (name: string) => readFileSync(new URL(name, directory), 'utf8').trim()
  const prompts: Prompts = {
    system: read('system.md'),
    constraints: read('constraints.md'),
    protocol: { native: read('protocol-native.md'), json: read('protocol-json.md') },
  }
  const missing = promised.filter((word) => !prompts.protocol.json.includes(word))
  if (missing.length > 0) throw new Error(`prompts/protocol-json.md does not state ${missing.join(', ')}`)
  return prompts
}

/**
 * Builds the system prompt of an attempt. `override` replaces only the platform's text. Code
 * appends constraints and protocol, so that no configuration can remove them.
 */
export function renderSystemPrompt(
  prompts: Prompts,
  options: {
    override: string | null
    protocol: 'native' | 'json'
    toolsText: string
    topics?: ReadonlySet<string> | null
    site?: SiteFacts
    /**
     * Whether a runbook follows the context. The prompt does not repeat what the runbook says about
     * the incident.
     */
    hasRunbook?: boolean
  },
): string {
  const protocol = prompts.protocol[options.protocol].replace('{{tools}}', () => options.toolsText)
  return [options.override ?? renderSite(prompts.system, options), prompts.constraints, protocol].join('\n\n')
}

/**
 * Converts a stored system prompt to the JSON protocol, with its tools as text. Used for a run
 * whose server does not parse tool calls.
 */
export function renderAsJson(prompt: string, { protocol }: Pick<Prompts, 'protocol'>, toolsText: string): string {
  const rest = prompt.endsWith(protocol.native) ? prompt.slice(0, -protocol.native.length) : `${prompt}\n\n`
  return rest + protocol.json.replace('{{tools}}', () => toolsText)
}

function renderSite(
  system: string,
  {
    topics = null,
    site = noFacts,
    hasRunbook = false,
  }: { topics?: ReadonlySet<string> | null; site?: SiteFacts; hasRunbook?: boolean },
): string {
  const isNearShards = topics === null || aboutShards.some((kind) => topics.has(kind))
  const known = new Set([...(topics ?? inventoryKinds), ...(isNearShards && !hasRunbook ? siteTopics(site) : [])])
  return keepTopics(system, known).replace('{{platform}}', () => describePlatform(site, topics))
}

const aboutShards: readonly InventoryKind[] = ['shard', 'node', 'tenant', 'region']

/**
 * Returns the kinds that the prompt describes: the resource's kind and the kinds near it. Null
 * means all kinds.
 */
export function topicsOf(kind: InventoryKind | null): ReadonlySet<string> | null {
  if (kind === null) return null
  const near = kinds[kind].near.flatMap((steps) => steps.map(({ to }) => to))
  return new Set([kind, ...near])
}

/** Matches a line of `system.md` that names its topics: `- {host vm} Host down: …`. */
const topical = /^(- )?\{([a-z_ ]+)\} /

/** Keeps the lines about these topics, and the lines that name no topic. Null keeps every line. */
export function keepTopics(text: string, topics: ReadonlySet<string> | null): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const named = topical.exec(line)?.[2]?.split(' ')
      const isKept = named === undefined || topics === null || named.some((topic) => topics.has(topic))
      return isKept ? [line.replace(topical, '$1')] : []
    })
    .join('\n')
}

/** Builds the first message of an attempt, which contains what is known, as data. */
export function renderContext(context: unknown): string {
  return `Investigate this incident. What is known of it:\n${fence('incident_context', inertJson(context))}`
}

/**
 * Formats the runbook that fits and the names of other runbooks as data, because strangers may have
 * written them. Runbooks decide nothing.
 */
export function renderRunbooks({ chosen, others }: RunbookMatch): string {
  const more = others.map(({ name, description }) => `- ${name}: ${description.slice(0, 200)}`).join('\n')
  const rest = chosen && chosen.body.length > inlineCharacters ? `\n(cut here: read_runbook ${chosen.name})` : ''
  const body = chosen ? `${chosen.body.slice(0, inlineCharacters).toWellFormed()}${rest}` : ''
  return [
    ...(chosen ? [`The runbook ${chosen.name} for such trouble. It suggests.`, fence('runbook', body)] : []),
    ...(more === '' ? [] : [`${chosen ? 'Other runbooks' : 'Runbooks'}, for read_runbook:`, fence('runbooks', more)]),
  ].join('\n')
}

/** Builds an introductory sentence, followed by the leader's hint as data. */
export function renderHint(hint: string): string {
  return `A similar incident of the same type was recently investigated and resolved. Use this as a starting point. It is no finding: look at this incident's own resource first.\n${fence('hint', hint)}`
}
