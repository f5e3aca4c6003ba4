import type { ChatTool } from '../domain/chat.ts'

type ToolDescription = {
  name: string
  description: string
  /** JSON schema of the parameters, an object. */
  inputSchema: Record<string, unknown>
}

/** A chat completion's `tools`. Same tools, same bytes: order and keys are the caller's. */
export function describeTools(tools: ToolDescription[]): ChatTool[] {
  return tools.map(({ name, description, inputSchema }) => ({
    type: 'function',
    function: { name, description, parameters: describeParameters(name, inputSchema) },
  }))
}

/** The same tools as text, one line of JSON each, for models that answer in JSON blocks. */
export function describeToolsAsText(tools: ToolDescription[]): string {
  return tools
    .map(({ name, description, inputSchema }) =>
      JSON.stringify({ name, description, parameters: describeParameters(name, inputSchema) }),
    )
    .join('\n')
}

/** Words for a form's reader that say nothing beside a name such as `reason` or `detail`. */
const obvious = ['why', 'text', 'kind', 'advice']

/**
 * Leaves out a parameter's description where tool and parameter names have each of its words:
 * `get_node` takes an `id`.
 */
function describeParameters(tool: string, schema: Record<string, unknown>): Record<string, unknown> {
  const compact = compactSchema(schema) as Record<string, unknown>
  if (!compact.properties) return compact
  const properties = Object.entries(compact.properties as Record<string, Record<string, unknown>>)
  const said = properties.map(([name, { description, ...rest }]): [string, unknown] => {
    const known = new Set([...`${tool}_${name}`.split('_'), ...obvious])
    const isSaid = typeof description === 'string' && description.split(' ').every((word) => known.has(word))
    return [name, isSaid || description === undefined ? rest : { ...rest, description }]
  })
  return { ...compact, properties: Object.fromEntries(said) }
}

/**
 * Schema parts that say nothing to a model. The kernel checks arguments by the real schema,
 * whatever was shown.
 */
const noise = new Set(['$schema', '$id', 'additionalProperties', 'title', 'examples'])

/**
 * A form that a model reads as it stands. A longer one says less than its description, and code
 * refuses misfits.
 */
const maxPatternCharacters = 24

/** A longer list of words is left out. */
const maxNamed = 10

/** A bound as high as this says nothing: code refuses what goes beyond it, and says so. */
const highMaximum = 1_000

/** Lists are that long seldom, and code says so where one is. */
const fewItems = 5

/**
 * A text's length, a copied name's form, and bounds that nobody passes: code refuses the others,
 * and says why.
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
      /^\^(?:\[A-Za-z0-9\]\[|\[\^?[-a-z]+\]|inc_|prp_|\\\/)/.test(String(value))))

/** A schema with what helps a model and nothing else. */
function compactSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(compactSchema)
  if (schema === null || typeof schema !== 'object') return schema
  const compact: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) {
    if (isPlain(key, value)) continue
    if (key === 'properties' && value !== null && typeof value === 'object') {
      // Names of parameters, which may well be `title`.
      compact.properties = Object.fromEntries(
        Object.entries(value).map(([name, inner]): [string, unknown] => [name, compactSchema(inner)]),
      )
    } else if (key === 'additionalProperties' && value !== null && typeof value === 'object') {
      compact.additionalProperties = compactSchema(value)
    } else if (key === 'enum' && Array.isArray(value) && value.length > maxNamed) {
      // Kinds of things are read where things are found.
    } else if (!noise.has(key) && !isUnbounded(key, value) && !(key === 'required' && isEmpty(value))) {
      compact[key] = key === 'enum' || key === 'const' || key === 'default' ? value : compactSchema(value)
    }
  }
  return compact
}

/** zod writes the bounds of a safe integer where nobody asked for any. */
function isUnbounded(key: string, value: unknown): boolean {
  return (
    (key === 'minimum' || key === 'maximum') && typeof value === 'number' && Math.abs(value) === Number.MAX_SAFE_INTEGER
  )
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
