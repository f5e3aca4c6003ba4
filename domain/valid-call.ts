import { z } from 'zod'

type Schema = {
  type?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  const?: unknown
  default?: unknown
  examples?: unknown[]
  description?: string
  anyOf?: Schema[]
  minimum?: number
  additionalProperties?: Schema | boolean
}

/**
 * Maximum length of a given value that the example repeats. A longer text is replaced by a
 * placeholder.
 */
const maxGivenCharacters = 200

/**
 * Builds arguments that a tool accepts, with the given values that fit. Models that ignore a schema
 * understand an example. Null if no example fits the schema.
 */
export function validArguments(
  input: z.ZodType,
  given: Record<string, unknown> | null,
): Record<string, unknown> | null {
  const { properties = {}, required = [] } = z.toJSONSchema(input, { io: 'input' }) as Schema
  const examples = Object.fromEntries(required.map((field) => [field, exampleOf(properties[field] ?? {})]))
  const short = Object.entries(given ?? {}).filter(([, value]) => JSON.stringify(value).length <= maxGivenCharacters)
  const known = short.filter(([field]) => field in properties)
  const kept = [...renamed(short, properties, required, known), ...known]
  for (let tries = 0; tries <= kept.length; tries += 1) {
    const call = { ...examples, ...Object.fromEntries(kept) }
    const parsed = input.safeParse(call)
    if (parsed.success) return call
    const wrong = new Set(parsed.error.issues.map(({ path }) => path[0]))
    const at = kept.findIndex(([field]) => wrong.has(field))
    if (at < 0) return null
    kept.splice(at, 1)
  }
  return null
}

/**
 * Gives the only value with an unknown name the name of the only missing required field, if their
 * types are equal.
 */
function renamed(
  given: [string, unknown][],
  properties: Record<string, Schema>,
  required: string[],
  known: [string, unknown][],
): [string, unknown][] {
  const [stranger, ...others] = given.filter(([field]) => !(field in properties))
  if (!stranger || others.length > 0) return []
  const [, value] = stranger
  const lacking = required.filter(
    (field) => !known.some(([name]) => name === field) && properties[field]?.type === typeof value,
  )
  return lacking.length === 1 ? [[lacking[0]!, value]] : []
}

/**
 * Makes a value that fits a schema. A text becomes a placeholder that describes it, because a model
 * sends a realistic example back as if it were data.
 */
function exampleOf(schema: Schema, field = 'text'): unknown {
  if (schema.examples?.length) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.default !== undefined) return schema.default
  if (schema.enum?.length) return schema.enum[0]
  if (schema.anyOf?.length) return exampleOf(schema.anyOf[0] as Schema, field)
  switch (schema.type) {
    case 'array':
      return [exampleOf(schema.items ?? {}, field)]
    case 'boolean':
      return true
    case 'integer':
    case 'number':
      return Math.max(1, schema.minimum ?? 1)
    case 'object':
      return exampleOfObject(schema)
    default:
      return `<${schema.description ?? field}>`
  }
}

function exampleOfObject({ properties, required = [], additionalProperties }: Schema): Record<string, unknown> {
  const named = required.map((field) => [field, exampleOf(properties?.[field] ?? {}, field)])
  const isOpen = named.length === 0 && typeof additionalProperties === 'object'
  return isOpen ? { instance: 'web-1' } : Object.fromEntries(named)
}
