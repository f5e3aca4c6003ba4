import { z } from 'zod'
import type { ChatTool } from '../domain/chat.ts'
import type { EventMetadata, IncidentEvent } from '../domain/event.ts'

/** Finds, from an attempt's rows, the tools that the attempt added to those of its first turn. */

/**
 * Names of the tools that add others: `more` adds tools by name; `find` adds `get`; `get` reads one
 * resource; `whole` reads the complete data behind a summary.
 */
type OfferingTools = { more: string; find: string; get: string; whole: string }

/**
 * `kinds`: kinds of the resources that the attempt read. The kinds matter if the incident has no
 * resource.
 */
type Added = { names: ReadonlySet<string>; kinds: readonly string[] }

/** Lists the tools that this attempt's calls have added. Never throws. */
export function addedBy(events: readonly IncidentEvent[], attempt: number, offering: OfferingTools): Added {
  const finished = events.flatMap((event) =>
    event.kind === 'tool_finished' && event.attempt === attempt ? [event.metadata] : [],
  )
  return {
    names: new Set(finished.flatMap((each) => namesAddedBy(each, offering))),
    kinds: finished.flatMap((each) => kindsReadBy(each, offering)),
  }
}

/**
 * Chooses the added tools among `kept`, in order. If the incident has no resource, also chooses the
 * tools for the kinds of the resources that were read.
 */
export function chooseAdded(
  kept: readonly ChatTool[],
  { names, kinds }: Added,
  isAboutNothing: boolean,
  isFirstFor: (name: string, kind: string) => boolean,
): ChatTool[] {
  const found = isAboutNothing ? kinds : []
  return kept.filter(({ function: { name } }) => names.has(name) || found.some((kind) => isFirstFor(name, kind)))
}

/**
 * Lists the tools that a finished call added: the requested tools, the tool that reads a found
 * resource, or the tool that reads the whole of a summary.
 */
function namesAddedBy({ tool, result }: EventMetadata['tool_finished'], offering: OfferingTools): string[] {
  if (tool === offering.more) return addedNames.safeParse(result.data).data?.added ?? []
  if (tool === offering.find) return [offering.get]
  return wholeBehind.safeParse(result.data).success ? [offering.whole] : []
}

function kindsReadBy({ tool, result }: EventMetadata['tool_finished'], { get }: OfferingTools): string[] {
  const read = tool === get ? readThing.safeParse(result.data).data : undefined
  return read ? [read.kind] : []
}

/**
 * Whether this context states that its incident has no resource. Throws if the value is not a
 * context.
 */
export function isWithoutResource(context: unknown): boolean {
  return withIncident.parse(context).incident.resource === null
}

const readThing = z.looseObject({ kind: z.string() })
const withIncident = z.looseObject({ incident: z.looseObject({ resource: z.unknown() }) })
const addedNames = z.looseObject({ added: z.array(z.string()) })
const wholeBehind = z.looseObject({ source: z.string(), digest: z.string() })
