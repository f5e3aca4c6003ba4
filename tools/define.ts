import { z } from 'zod'
import type { PostconditionProof } from '../domain/envelope.ts'
import type { ResourceKind, ResourceRef } from '../domain/registry.ts'
import { toText } from '../domain/say.ts'
import type { DiscoveredThing, Tool } from '../domain/tool.ts'

/**
 * Declares a tool and checks its parts against each other: the input type of `targets`, `prepare`
 * and `run` is that of the schema. Shared code uses only the declared facts and never branches on
 * the name of a tool.
 */
export function defineTool<Input extends Record<string, unknown>, Output>(tool: Tool<Input, Output>): Tool {
  return tool as unknown as Tool
}

/** An identifier in the inventory. Cannot contain a path, a query or a control character. */
export const resourceId = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'is not an identifier of the inventory')
  .meta({ examples: ['web-1'] })
export const incidentId = z
  .string()
  .regex(/^inc_[0-9a-z]{26}$/, 'is not an incident id')
  .meta({ examples: ['inc_0123456789abcdefghjkmnpqrs'] })
/**
 * One sentence for the reader of the timeline. Every tool that may need approval takes a reason.
 */
export const reason = z.string().min(3).max(500).describe('why')

export function ref(kind: ResourceKind, id: string): ResourceRef {
  return { kind, id }
}

export function discoveredThing(kind: ResourceKind, id: string, name = id, aliases: string[] = []): DiscoveredThing {
  return { kind, id, name, aliases }
}

/** Records that the response contained a resource, with its health if the response has one. */
export function observedThing(thing: DiscoveredThing, health: string | null | undefined): DiscoveredThing {
  return { ...thing, seen: true, ...(health && { health }) }
}

/** Declares that code checks the write afterwards. `text`: the state that must then be true. */
export const state = (text: string): PostconditionProof => ({ by: 'state', text })
/** Declares that code cannot check the write. `text`: where a person checks it afterwards. */
export const nothing = (text: string): PostconditionProof => ({ by: 'nothing', text })

/** Formats the receiver's report about a write, after the name of the target. */
export function sayWrite(output: Record<string, unknown>, about: string): string {
  const detail = toText(output.detail)
  return detail === '' || about.includes(detail) ? about : `${about}: ${detail}`
}

const byGravity = ['critical', 'down', 'degraded', 'unknown']

/**
 * Returns the health of a group, which is the worst health of its parts; null if it has no parts.
 */
export function worstHealth(parts: readonly string[]): string | null {
  if (parts.length === 0) return null
  return byGravity.find((word) => parts.includes(word)) ?? parts.find((word) => word !== 'nominal') ?? 'nominal'
}
