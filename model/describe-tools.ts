import type { ChatTool } from '../domain/chat.ts'

type ToolDescription = {
  name: string
  description: string
  /** JSON schema of the parameters, which is always an object. */
  inputSchema: Record<string, unknown>
}

/**
 * Describes tools for a chat completion. The same tools always give the same bytes, in the order of
 * the caller. `after`: tools that come earlier in the request; a parameter that such a tool
 * describes in the same words is not described again.
 */
export function describeTools(tools: readonly ToolDescription[], after?: readonly ToolDescription[]): ChatTool[] {
  return described(tools, after).map((tool) => ({ type: 'function', function: tool }))
}

/** Describes the tools as text, one line of JSON each, for models that answer in JSON blocks. */
export function describeToolsAsText(tools: readonly ToolDescription[]): string {
  return described(tools)
    .map((tool) => JSON.stringify(tool))
    .join('\n')
}

function described(tools: readonly ToolDescription[], after?: readonly ToolDescription[]): ChatTool['function'][] {
  const said: Said = new Set()
  for (const { name, inputSchema } of after ?? []) describeParameters(name, inputSchema, said, true)
  return tools.map(({ name, description, inputSchema }) => ({
    name,
    description: description.replace(capability, ''),
    parameters: describeParameters(name, inputSchema, said, after === undefined),
  }))
}

/**
 * Matches the agent's name for the tool at a description's end, because the words before it already
 * say that a device is queried.
 */
const capability = / ?\[device_mesh: [a-z.]+\]/

/**
 * Parameters with their descriptions that an earlier tool has already given: `on`, for example, is
 * a machine id in every tool.
 */
type Said = Set<string>

/** Words in a description that add nothing to a parameter name such as `reason` or `detail`. */
const obvious = ['why', 'text', 'kind', 'advice']

/**
 * Leaves out a parameter's description in two cases: the names of tool and parameter have each of
 * its words (`get_node` takes an `id`), or an earlier tool described the parameter in the same
 * words.
 */
function describeParameters(
  tool: string,
  schema: Record<string, unknown>,
  saidBefore: Said,
  isNoted: boolean,
): Record<string, unknown> {
  const compact = compactSchema(schema) as Record<string, unknown>
  if (!compact.properties) return compact
  const properties = Object.entries(compact.properties as Record<string, Record<string, unknown>>)
  const said = properties.map(([name, { description, ...rest }]): [string, unknown] => {
    if (typeof description !== 'string') return [name, rest]
    const known = new Set([...`${tool}_${name}`.split('_'), ...obvious])
    const words = `${name}: ${description}`
    if (saidBefore.has(words) || description.split(' ').every((word) => known.has(word))) return [name, rest]
    if (isNoted) saidBefore.add(words)
    return [name, { ...rest, description }]
  })
  return { ...compact, properties: Object.fromEntries(said) }
}

/** Schema parts that tell a model nothing. The kernel checks arguments by the complete schema. */
const noise = new Set(['$schema', '$id', 'additionalProperties', 'title', 'examples'])

/**
 * Longest pattern that a model understands. A longer pattern tells a model less than the
 * parameter's description, and code refuses a value that does not match.
 */
const maxPatternCharacters = 20

/** Most words of an enumeration; a longer list is left out. */
const maxNamed = 10

/** Smallest maximum that is left out: code refuses higher values with the reason. */
const highMaximum = 1_000

/** Smallest `maxItems` that is left out, because few lists are that long. */
const fewItems = 5

/**
 * Whether a schema part needs no mention: the length of a text, the form of a copied name, or a
 * limit that is hardly reached. Code refuses arguments that break it, with the reason.
 */
const isPlain = (key: string, value: unknown): boolean =>
  key === 'minLength' ||
  key === 'maxLength' ||
  key === 'allOf' ||
  key === 'propertyNames' ||
  key === 'format' ||
  (key === 'minItems' && value === 1) ||
  (key === 'maxItems' && Number(value) >= fewItems) ||
  (key === 'exclusiveMinimum' && value === 0) ||
  (key === 'minimum' && (value === 0 || value === 1)) ||
  (key === 'maximum' && Number(value) >= highMaximum) ||
  (key === 'default' && isEmpty(value)) ||
  (key === 'pattern' &&
    (String(value).length > maxPatternCharacters ||
      /^\^(?:\[0-9a-f\]|\\d|\[A-Za-z0-9\]\[|\[\^?[-a-z]+\]|inc_|prp_|\\\/)/.test(String(value))))

/** Reduces a schema to what helps a model. */
function compactSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(compactSchema)
  if (schema === null || typeof schema !== 'object') return schema
  const compact: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) {
    if (isPlain(key, value)) continue
    if (key === 'properties' && value !== null && typeof value === 'object') {
      // Keeps every key here, because these are names of parameters, one of which may be `title`.
      compact.properties = Object.fromEntries(
        Object.entries(value).map(([name, inner]): [string, unknown] => [name, compactSchema(inner)]),
      )
    } else if (key === 'additionalProperties' && value !== null && typeof value === 'object') {
      compact.additionalProperties = compactSchema(value)
    } else if (key === 'items') {
      // Leaves out `required`, because a refusal names the field that an item lacks.
      const { required: _, ...items } = compactSchema(value) as Record<string, unknown>
      compact.items = items
    } else if (key === 'enum' && Array.isArray(value) && value.length > maxNamed) {
      // Leaves out a long list, such as all kinds of resources: a model reads the kind with the
      // resource.
    } else if (!noise.has(key) && !isUnbounded(key, value) && !(key === 'required' && isEmpty(value))) {
      compact[key] = key === 'enum' || key === 'const' || key === 'default' ? value : compactSchema(value)
    }
  }
  return compact
}

/** Whether a limit is that of a safe integer, which zod always adds. */
function isUnbounded(key: string, value: unknown): boolean {
  return (
    (key === 'minimum' || key === 'maximum') && typeof value === 'number' && Math.abs(value) === Number.MAX_SAFE_INTEGER
  )
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
