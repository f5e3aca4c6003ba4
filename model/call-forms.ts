import { boundText, endOfValue, isObject, readLooseJson } from './json.ts'

/**
 * Forms in which models write a tool call as text, for servers that do not parse such calls. The
 * names are those of the model families.
 */
export type CallForm =
  | 'hermes'
  | 'qwen_xml'
  | 'glm'
  | 'kimi'
  | 'deepseek'
  | 'minimax'
  | 'mistral'
  | 'llama'
  | 'harmony'
  | 'pythonic'

/**
 * `arguments` is null, and `problem` is set, if the form is known but its contents are unreadable.
 */
type WrittenCall = { tool: string; arguments: Record<string, unknown> | null; raw: string; problem: string | null }

export type WrittenCalls = { form: CallForm; calls: WrittenCall[] }

type Cursor = { readonly text: string; at: number; readonly maxChars: number }
type Item = { form: CallForm; calls: WrittenCall[] }
type Reader = (cursor: Cursor) => Item | null

const name = '([A-Za-z_][\\w.-]{0,127})'
const bar = '[|｜]'
/** DeepSeek's mark; some servers double its bars. */
const dsml = `${bar}{1,2}DSML${bar}{1,2}`

/** Marks around calls. Forms nest these marks differently, and servers lose some. */
const frame = new RegExp(
  [
    '\\s+',
    '<\\/?(?:minimax:|seed:|antml:)?(?:tool_calls?|function_calls?)>',
    `<${bar}(?:tool_calls?|python_tag|python_start|python_end|plugin|action_start|action_end)${bar}>`,
    `<\\/?${dsml}(?:tool_calls|function_calls)>`,
    `<${bar}tool[▁_]calls?[▁_](?:section[▁_])?(?:begin|end)${bar}>`,
    `<${bar}tool[▁_]outputs?[▁_](?:begin|end)${bar}>`,
    '<\\|(?:START|END)_ACTION\\|>',
    '\\[\\/?TOOL_CALLS\\]',
    'functools(?=\\s*\\[)',
    `<${bar}(?:im_end|eot_id|eom_id|end|call|return|end▁of▁sentence|endoftext)${bar}>`,
    '<\\/s>',
  ].join('|'),
  'uy',
)

/** Texts at which a call may begin: a frame, or a call that needs no frame. */
export const beginning = new RegExp(
  [
    '<(?:minimax:|seed:|antml:)?(?:tool_calls?|function_calls?)>',
    `<${bar}(?:tool_calls?|python_tag|python_start|action_start)${bar}>`,
    `<${dsml}(?:tool_calls|function_calls|invoke)\\b`,
    `<${bar}tool[▁_]calls?[▁_](?:section[▁_])?begin${bar}>`,
    '<\\|START_ACTION\\|>',
    '\\[TOOL_CALLS\\]',
    'functools\\s*\\[',
    '<function=',
    '<function name=',
    '<invoke name=',
    `(?:<\\|start\\|>)?(?:assistant)?(?:<\\|channel\\|>)?(?:commentary|analysis)? to=functions\\.`,
  ].join('|'),
  'gu',
)

/**
 * Reads calls from `start` to the text's end. Returns null if the text contains anything except
 * frames and calls. `maxChars` limits the arguments of one call.
 */
export function readCallsToEnd(text: string, start: number, maxChars: number): WrittenCalls | null {
  const cursor: Cursor = { text, at: start, maxChars }
  const items: Item[] = []
  for (;;) {
    skipFrames(cursor)
    if (cursor.at >= text.length) break
    const item = readers.reduce<Item | null>((found, read) => found ?? tryRead(read, cursor), null)
    if (!item) return null
    items.push(item)
  }
  const [first] = items
  return first ? { form: first.form, calls: items.flatMap(({ calls }) => calls) } : null
}

function tryRead(read: Reader, cursor: Cursor): Item | null {
  const from = cursor.at
  const item = read(cursor)
  if (!item) cursor.at = from
  return item
}

function skipFrames(cursor: Cursor): void {
  while (eat(cursor, frame)) {
    // Skips every part of a frame.
  }
}

function eat(cursor: Cursor, pattern: RegExp): RegExpExecArray | null {
  pattern.lastIndex = cursor.at
  const match = pattern.exec(cursor.text)
  if (match) cursor.at = pattern.lastIndex
  return match
}

/**
 * Takes one JSON value that begins here, with or without a code fence. Returns null if no complete
 * value begins here.
 */
function eatJson(cursor: Cursor): string | null {
  const isFenced = eat(cursor, /\s*```(?:json)?\s*/y) !== null
  const end = endOfValue(cursor.text, cursor.at)
  if (end === -1) return null
  const json = cursor.text.slice(cursor.at, end)
  cursor.at = end
  return isFenced && !eat(cursor, /\s*```/y) ? null : json
}

function callWith(cursor: Cursor, from: number, tool: string, given: Record<string, unknown> | string): WrittenCall {
  const raw = cursor.text.slice(from, cursor.at)
  const kept = boundText(raw, cursor.maxChars)
  if (typeof given === 'string') return { tool, arguments: null, raw: kept, problem: given }
  return { tool, arguments: given, raw: kept, problem: null }
}

/** Reads arguments as JSON. Returns the object, or what is wrong with the text. */
function argumentsIn(json: string, maxChars: number): Record<string, unknown> | string {
  const read = readLooseJson(json, maxChars)
  if (!read.ok) return read.problem
  return isObject(read.value) ? read.value : 'they are not a JSON object'
}

/**
 * Reads parameters that are written one by one. The values of parameters stay texts, because only
 * the tool's schema gives them a type.
 */
function parametersIn(pairs: [string, string][], maxChars: number): Record<string, unknown> | string {
  const keys = pairs.map(([key]) => key)
  const twice = keys.find((key, index) => keys.indexOf(key) !== index || key === '__proto__')
  if (twice !== undefined) return `the parameter ${JSON.stringify(twice.slice(0, 64))} is given twice or not allowed`
  if (pairs.reduce((sum, [, value]) => sum + value.length, 0) > maxChars) return `they are longer than ${maxChars}`
  return Object.fromEntries(pairs.map(([key, value]) => [key, value.replace(/^\n|\n$/g, '')]))
}

/**
 * Reads `{"name", "arguments"}` of Hermes, `parameters` of Llama, `tool_name` of Command, alone or
 * in a list.
 */
const readObjects: Reader = (cursor) => {
  const from = cursor.at
  if (!/[[{]/.test(cursor.text[from] ?? '')) return null
  const json = eatJson(cursor)
  const read = json === null ? null : readLooseJson(json, cursor.maxChars)
  if (json === null || !read?.ok) return null
  const list = Array.isArray(read.value) ? read.value : [read.value]
  const calls = list.map((value) => {
    if (!isObject(value)) return null
    const tool = value.name ?? value.tool_name ?? (isObject(value.function) ? value.function.name : value.function)
    const holder = isObject(value.function) ? value.function : value
    const named = ['arguments', 'parameters', 'input'].filter((key) => Object.hasOwn(holder, key))
    if (typeof tool !== 'string' || tool.trim() === '' || named.length > 1) return null
    const given = named[0] === undefined ? {} : holder[named[0]]
    const args = typeof given === 'string' ? argumentsIn(given, cursor.maxChars) : given
    const isPlain = isObject(args) || typeof args === 'string'
    return { ...callWith(cursor, from, tool, isPlain ? args : 'they are not a JSON object'), form: formOf(named[0]) }
  })
  if (calls.length === 0 || calls.some((call) => call === null)) return null
  const whole = calls.flatMap((call) => call ?? [])
  return { form: whole[0]!.form, calls: whole.map(({ form: _, ...call }) => call) }
}

const formOf = (key: string | undefined): CallForm => (key === 'parameters' ? 'llama' : 'hermes')

/**
 * Reads `<function=NAME><parameter=KEY>…</parameter></function>` of Qwen Coder and Seed; Llama puts
 * JSON between.
 */
const readFunction: Reader = (cursor) => {
  const from = cursor.at
  const open = eat(cursor, new RegExp(`<function(?:=| name=)"?${name}"?>\\s*`, 'y'))
  if (!open) return null
  if (cursor.text[cursor.at] === '{') {
    const json = eatJson(cursor)
    eat(cursor, /\s*<\/function>/y)
    return json === null
      ? null
      : { form: 'llama', calls: [callWith(cursor, from, open[1]!, argumentsIn(json, cursor.maxChars))] }
  }
  const pairs = pairsOf(cursor, /\s*<parameter(?:=| name=)"?([\w.-]{1,64})"?>([\s\S]*?)<\/parameter>/y)
  if (!eat(cursor, /\s*<\/function>/y)) return null
  return { form: 'qwen_xml', calls: [callWith(cursor, from, open[1]!, parametersIn(pairs, cursor.maxChars))] }
}

/**
 * Reads `<invoke name="NAME"><parameter name="KEY">…</parameter></invoke>` of MiniMax, and of
 * DeepSeek with marks.
 */
const readInvoke: Reader = (cursor) => {
  const from = cursor.at
  const mark = `(?:${dsml}|antml:)?`
  const open = eat(cursor, new RegExp(`<${mark}invoke name="${name}">`, 'uy'))
  if (!open) return null
  const pair = `\\s*<${mark}parameter name="([\\w.-]{1,64})"[^>\\n]{0,40}>([\\s\\S]*?)<\\/${mark}parameter>`
  const pairs = pairsOf(cursor, new RegExp(pair, 'uy'))
  if (!eat(cursor, new RegExp(`\\s*<\\/${mark}invoke>`, 'uy'))) return null
  return { form: 'minimax', calls: [callWith(cursor, from, open[1]!, parametersIn(pairs, cursor.maxChars))] }
}

function pairsOf(cursor: Cursor, pair: RegExp): [string, string][] {
  const pairs: [string, string][] = []
  for (let match = eat(cursor, pair); match && pairs.length < 64; match = eat(cursor, pair))
    pairs.push([match[1]!, match[2]!])
  return pairs
}

/**
 * Reads `NAME<arg_key>KEY</arg_key><arg_value>…</arg_value>` of GLM. An older version of GLM wrote
 * the name, and JSON in the next line.
 */
const readKeys: Reader = (cursor) => {
  const from = cursor.at
  const open = eat(cursor, new RegExp(`${name}[ \\t]*(?:\\n\\s*(?=\\{)|\\s*(?=<arg_key>|<\\/tool_call>))`, 'y'))
  if (!open) return null
  if (cursor.text[cursor.at] === '{') {
    const json = eatJson(cursor)
    return json === null
      ? null
      : { form: 'glm', calls: [callWith(cursor, from, open[1]!, argumentsIn(json, cursor.maxChars))] }
  }
  const pairs = pairsOf(cursor, /\s*<arg_key>\s*([\w.-]{1,64})\s*<\/arg_key>\s*<arg_value>([\s\S]*?)<\/arg_value>/y)
  return { form: 'glm', calls: [callWith(cursor, from, open[1]!, parametersIn(pairs, cursor.maxChars))] }
}

/**
 * Forms with a name, a mark and JSON: DeepSeek, Kimi, Mistral and Harmony differ only in the marks.
 */
const marked: [CallForm, RegExp][] = [
  ['deepseek', new RegExp(`(?:function<${bar}tool[▁_]sep${bar}>)?${name}\\s*<${bar}tool[▁_]sep${bar}>\\s*`, 'uy')],
  ['deepseek', new RegExp(`function<${bar}tool[▁_]sep${bar}>${name}\\s*`, 'uy')],
  ['kimi', new RegExp(`${name}(?::\\d{1,4})?\\s*<\\|tool_call_argument_begin\\|>\\s*`, 'y')],
  ['mistral', new RegExp(`${name}(?:\\[CALL_ID\\]\\w{1,64})?\\[ARGS\\]\\s*`, 'y')],
  [
    'harmony',
    new RegExp(
      `(?:<\\|start\\|>)?(?:assistant)?(?:<\\|channel\\|>)?(?:commentary|analysis)? to=${name}(?:\\s*<\\|channel\\|>(?:commentary|analysis))?\\s*(?:<\\|constrain\\|>)?\\s*(?:json)?\\s*(?:<\\|message\\|>)?\\s*(?=\\{)`,
      'y',
    ),
  ],
]

const readMarked: Reader = (cursor) => {
  const from = cursor.at
  for (const [form, head] of marked) {
    const open = eat(cursor, head)
    if (!open) continue
    const json = eatJson(cursor)
    if (json !== null) return { form, calls: [callWith(cursor, from, open[1]!, argumentsIn(json, cursor.maxChars))] }
    cursor.at = from
  }
  return null
}

/**
 * Reads `[NAME(KEY="…", KEY=5)]` of Llama 4 and Olmo. Only constants are read, and nothing is
 * computed.
 */
const readPythonic: Reader = (cursor) => {
  const isListed = eat(cursor, /\[\s*/y) !== null
  const calls: WrittenCall[] = []
  do {
    const from = cursor.at
    const open = eat(cursor, new RegExp(`${name}\\(\\s*`, 'y'))
    if (!open) return null
    const pairs: [string, unknown][] = []
    for (let key = eat(cursor, keyword); key; key = eat(cursor, keyword)) {
      const value = eatConstant(cursor)
      if (value === undefined) return null
      pairs.push([key[1]!, value])
      if (!eat(cursor, /\s*,\s*/y)) break
    }
    if (!eat(cursor, /\s*\)/y)) return null
    const isClear = new Set(pairs.map(([key]) => key)).size === pairs.length
    calls.push(callWith(cursor, from, open[1]!, isClear ? Object.fromEntries(pairs) : 'a parameter is given twice'))
  } while (eat(cursor, isListed ? /\s*,\s*/y : /\s*\n\s*(?=[A-Za-z_])/y))
  return isListed && !eat(cursor, /\s*\]/y) ? null : { form: 'pythonic', calls }
}

const keyword = /([A-Za-z_]\w{0,63})\s*=\s*/y

function eatConstant(cursor: Cursor): unknown {
  const word = eat(cursor, /(?:True|False|None|true|false|null)\b/y)
  if (word) return { t: true, f: false, n: null }[word[0][0]!.toLowerCase()]
  const number = eat(cursor, /-?\d+(?:\.\d+)?(?![\w.])/y)
  if (number) return Number(number[0])
  const text = eat(cursor, /'((?:[^'\\\n]|\\['\\n"])*)'|"((?:[^"\\\n]|\\['\\n"])*)"/y)
  if (text) return (text[1] ?? text[2] ?? '').replace(/\\(.)/g, (_, sign: string) => (sign === 'n' ? '\n' : sign))
  if (!/[[{]/.test(cursor.text[cursor.at] ?? '')) return undefined
  const json = eatJson(cursor)
  const read = json === null ? null : readLooseJson(json, cursor.maxChars)
  return read?.ok ? read.value : undefined
}

const readers: Reader[] = [readObjects, readFunction, readInvoke, readMarked, readKeys, readPythonic]
