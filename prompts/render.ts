import { readFileSync } from 'node:fs'
import { fence, inertJson } from '../domain/inert-text.ts'
import { type InventoryKind, inventoryKinds, kinds } from '../domain/kinds.ts'
import { inlineCharacters, type RunbookMatch } from '../domain/runbook.ts'
import { describePlatform, noFacts, type SiteFacts, siteTopics } from './platform.ts'

export type Prompts = {
  system: string
  constraints: string
  protocol: { native: string; json: string }
}

/** What the JSON protocol's block must say, or the parser and the prompt have drifted apart. */
const promised = ['"tool_call"', '"name"', '"parameters"', '"final_answer"', '"summary"', '"confidence"', '{{tools}}']

/**
 * Reads the prompt files once, at start. Throws, naming the file, when one is missing or when the protocol block does not
 * state what the parser expects: a worker with a wrong prompt must not start.
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
 * The system prompt of an attempt. `override` replaces the platform's text only: constraints and protocol are appended by
 * code, so that no configuration drops them.
 */
export function renderSystemPrompt(
  prompts: Prompts,
  options: {
    override: string | null
    protocol: 'native' | 'json'
    toolsText: string
    topics?: ReadonlySet<string> | null
    /** What the site has. */
    site?: SiteFacts
  },
): string {
  const protocol = prompts.protocol[options.protocol].replace('{{tools}}', () => options.toolsText)
  return [options.override ?? renderSite(prompts.system, options), prompts.constraints, protocol].join('\n\n')
}

function renderSite(
  system: string,
  { topics = null, site = noFacts }: { topics?: ReadonlySet<string> | null; site?: SiteFacts },
): string {
  const isNearShards = topics === null || aboutShards.some((kind) => topics.has(kind))
  const known = new Set([...(topics ?? inventoryKinds), ...(isNearShards ? siteTopics(site) : [])])
  return keepTopics(system, known).replace('{{platform}}', () => describePlatform(site, topics))
}

const aboutShards: readonly InventoryKind[] = ['shard', 'node', 'tenant', 'region']

/** What the prompt says something about: the kind of the resource with those near it. Null: everything. */
export function topicsOf(kind: InventoryKind | null): ReadonlySet<string> | null {
  if (kind === null) return null
  const near = kinds[kind].near.flatMap((steps) => steps.map(({ to }) => to))
  return new Set([kind, ...near])
}

/** A line of `system.md` that is about something names it: `- {host vm} Host down: …`. */
const topical = /^(- )?\{([a-z_ ]+)\} /

/** The lines about these topics, and all that name none. Null keeps every line. */
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

/** The first message of an attempt: what is known, as data. */
export function renderContext(context: unknown): string {
  return `Investigate this incident. What is known of it:\n${fence('incident_context', inertJson(context))}`
}

/** The runbook that fits, and the names of others, as data: a stranger may have written them, and they decide nothing. */
export function renderRunbooks({ chosen, others }: RunbookMatch): string {
  const more = others.map(({ name, description }) => `- ${name}: ${description.slice(0, 200)}`).join('\n')
  const rest = chosen && chosen.body.length > inlineCharacters ? `\n(cut here: read_runbook ${chosen.name})` : ''
  const body = chosen ? `${chosen.body.slice(0, inlineCharacters).toWellFormed()}${rest}` : ''
  return [
    ...(chosen ? [`The runbook ${chosen.name} for such trouble. It suggests.`, fence('runbook', body)] : []),
    ...(more === '' ? [] : [`${chosen ? 'Other runbooks' : 'Runbooks'}, for read_runbook:`, fence('runbooks', more)]),
  ].join('\n')
}

/** The introductory sentence, then the leader's hint as data. */
export function renderHint(hint: string): string {
  return `A similar incident of the same type was recently investigated and resolved. It is a starting point, not a finding: look at this incident's own resource first.\n${fence('hint', hint)}`
}
