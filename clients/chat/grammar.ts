/**
 * A JSON schema as a grammar in GBNF, which llama.cpp and the servers built on it take as `grammar`
 * (https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md).
 */

type Schema = Record<string, unknown>

/** White space between tokens is bounded: a small model could write it until its limit is reached. */
const primitives: Readonly<Record<string, string>> = {
  ws: '[ \\n]? " "? " "? " "? " "?',
  hex: '[0-9a-fA-F]',
  string: '"\\"" ( [^"\\\\\\x00-\\x1F] | "\\\\" ( ["\\\\/bfnrt] | "u" hex hex hex hex ) )* "\\""',
  integer: '"-"? ( "0" | [1-9] [0-9]* )',
  number: 'integer ( "." [0-9]+ )? ( [eE] [-+]? [0-9]+ )?',
  boolean: '"true" | "false"',
  null: '"null"',
  value: 'object | array | string | number | boolean | null',
  array: '"[" ws ( value ( ws "," ws value )* )? ws "]"',
  object: '"{" ws ( string ws ":" ws value ( ws "," ws string ws ":" ws value )* )? ws "}"',
}

/**
 * The grammar of what a schema allows. It knows objects with their properties in the order that they are written in (those that must be there
 * first), lists, `anyOf`, `enum` and plain types; any other word of a schema it passes over, so that it allows more.
 */
export function toGrammar(schema: Schema): string {
  const rules = new Map<string, string>()
  const root = ruleOf(schema, 'answer', rules)
  const written = [['root', `ws ${root} ws`], ...rules, ...Object.entries(primitives)]
  return `${written.map(([name, body]) => `${name} ::= ${body}`).join('\n')}\n`
}

/** The name of the rule for a schema, which is added to the rules where it is no primitive. */
function ruleOf(schema: Schema, name: string, rules: Map<string, string>): string {
  const { anyOf, enum: words, type, properties, items } = schema
  const add = (body: string) => {
    rules.set(name, body)
    return name
  }
  if (Array.isArray(anyOf))
    return add(anyOf.map((each, at) => ruleOf(each as Schema, `${name}-${at + 1}`, rules)).join(' | '))
  if (Array.isArray(words)) return add(words.map((word) => quote(JSON.stringify(word))).join(' | '))
  if (type === 'array' && isSchema(items)) {
    const item = ruleOf(items, `${name}-item`, rules)
    return add(`"[" ws ( ${item} ( ws "," ws ${item} )* )? ws "]"`)
  }
  if (type === 'object' && isSchema(properties)) return add(objectBody(schema, properties, name, rules))
  return typeof type === 'string' && type in primitives ? type : 'value'
}

function objectBody(schema: Schema, properties: Schema, name: string, rules: Map<string, string>): string {
  const required = Array.isArray(schema.required) ? schema.required : []
  const pairOf = (key: string) => {
    const rule = ruleOf(properties[key] as Schema, `${name}-${key.replace(/[^a-zA-Z0-9]/g, '-')}`, rules)
    return `${quote(JSON.stringify(key))} ws ":" ws ${rule}`
  }
  const keys = Object.keys(properties)
  const must = keys.filter((key) => required.includes(key)).map(pairOf)
  const may = keys.filter((key) => !required.includes(key)).map(pairOf)
  if (must.length === 0) return may.length === 0 ? 'object' : `"{" ws ( ${may.join(' | ')} )? ws "}"`
  const more = may.map((pair) => ` ( ws "," ws ${pair} )?`).join('')
  return `"{" ws ${must.join(' ws "," ws ')}${more} ws "}"`
}

const isSchema = (value: unknown): value is Schema =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** A text as a literal of a grammar. */
const quote = (text: string): string => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
