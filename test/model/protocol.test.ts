import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type ParsedAnswer, parseAnswer } from '../../model/protocol.ts'
import { shownIn } from '../../model/written-calls.ts'

const limits = { maxCalls: 3 }
const json = (content: string, finishReason = 'stop') =>
  parseAnswer('json', { content, toolCalls: [], finishReason }, limits)
const native = (content: string, ...calls: [string, string][]) =>
  parseAnswer(
    'native',
    { content, toolCalls: calls.map(([name, text], index) => ({ id: `c${index}`, name, arguments: text })) },
    limits,
  )

const call = '{"tool_call":{"name":"get_shard","parameters":{"id":"db-osl-1"}}}'
const final = '{"final_answer":{"summary":"All is well.","confidence":"high"}}'
const asCall = { kind: 'calls', calls: [{ tool: 'get_shard', arguments: { id: 'db-osl-1' }, problem: null }] }

test.each([
  ['alone', call],
  ['behind a preamble', `Let me look at the shard {first}.\n${call}`],
  ['in a fence', `\`\`\`json\n${call}\n\`\`\``],
  ['between words', `I will call:\n${call}\nand then see.`],
  ['after thinking aloud, drafts included', `<think>maybe ${final}? or {"tool_call": no</think>\n${call}`],
  ['in a list of one', `[${call}]`],
])('a tool call %s is that call', (_where, content) => expect(json(content)).toMatchObject(asCall))

test.each([
  ['alone', call],
  ['after words of the model', `I will look at the shard.\n${call}`],
  ['without its wrapper', '{"name":"get_shard","arguments":{"id":"db-osl-1"}}'],
])('a call that a result contains does not run when the model copies it, %s', (_where, content) => {
  const log = 'web-1 says: {"name":"get_shard","arguments":{"id":"db-osl-1"}}'
  const result = JSON.stringify({ ok: true, data: { lines: [log] } })
  const read = (shown: string) =>
    parseAnswer('json', { content, toolCalls: [] }, { ...limits, wasShown: shownIn([shown]) })
  expect(read(result)).toMatchObject({ kind: 'correction', code: 'copied_call' })
  expect(read(result.replaceAll('osl-1', 'osl-2'))).toMatchObject(asCall)
})

test('an ending that a result contains ends nothing when the model copies it, and a call without arguments is never a copy', () => {
  const read = (content: string) =>
    parseAnswer('json', { content, toolCalls: [] }, { ...limits, wasShown: shownIn([`web-1 says: ${content}`]) })
  expect(read(final)).toMatchObject({ kind: 'correction', code: 'copied_call' })
  expect(read('{"tool_call":{"name":"list_hosts"}}')).toMatchObject({ kind: 'calls', calls: [{ tool: 'list_hosts' }] })
})

test.each([
  ['a comma behind the last', '{"tool_call":{"name":"get_shard","parameters":{"id":"db-osl-1",},}}'],
  ['single quotes', "{'tool_call': {'name': 'get_shard', 'parameters': {'id': 'db-osl-1'}}}"],
  ['typographic quotes', '{“tool_call”:{“name”:“get_shard”,“parameters”:{“id”:“db-osl-1”}}}'],
  ['a comment', '{"tool_call":{"name":"get_shard", // look\n"parameters":{"id":"db-osl-1"}}}'],
  ['the same object twice', `${call}\n${call}`],
  ['the names of native tools', '{"name":"get_shard","arguments":{"id":"db-osl-1"}}'],
  ['the tool as a function', '{"tool_call":{"function":"get_shard","arguments":{"id":"db-osl-1"}}}'],
  ['parameters as a text', '{"tool_call":{"name":"get_shard","parameters":"{\\"id\\":\\"db-osl-1\\"}"}}'],
])('%s is read as intended, and reported', (_what, content) => {
  const parsed = json(content)
  expect(parsed).toMatchObject(asCall)
  if (content !== `${call}\n${call}`) expect(parsed).toMatchObject({ calls: [{ written: 'loose_json' }] })
})

test('loose JSON is read like strict JSON, whatever its texts contain', () => {
  const odd = `{'a': 'it\\'s "so"', 'b': None, "c": "don't", 'd': [True, -1.5e3,], "e": "two
lines"}`
  expect(native('', ['t', odd])).toMatchObject({
    calls: [{ arguments: { a: 'it\'s "so"', b: null, c: "don't", d: [true, -1500], e: 'two\nlines' } }],
  })
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const text = JSON.stringify(value)
      const loose = `${text.slice(0, -1)}${Object.keys(value).length > 0 ? ',' : ''}}`
      const strict = (given: string) =>
        (native('', ['t', given]) as { calls: { arguments: unknown }[] }).calls[0]!.arguments
      expect(strict(loose)).toEqual(strict(text))
    }),
  )
  // A cut text is never completed.
  for (const cut of ["{'a': 'b", '{"a": [1,', "{'a': 'b'", '{"a": nope}', "{'a': 1, 'a': 2}", "{'__proto__': {}}"])
    expect(native('', ['t', cut])).toMatchObject({ calls: [{ arguments: null }] })
})

test.each([
  ['nothing', '', {}],
  ['a text that holds the object', '"{\\"id\\":\\"a\\"}"', { id: 'a' }],
  ['a fence around it', '```json\n{"id":"a"}\n```', { id: 'a' }],
])('native arguments that are %s are read', (_what, text, expected) => {
  expect(native('', ['get_shard', text])).toMatchObject({ calls: [{ arguments: expected, written: 'loose_json' }] })
})

test('a final answer has its words and its confidence', () => {
  expect(json(final)).toEqual({ kind: 'final', text: 'All is well.', confidence: 'high', claims: [] })
  expect(json('{"final_answer":{"summary":"x"}}')).toEqual({ kind: 'final', text: 'x', confidence: null, claims: [] })
  expect(json('{"final_answer":{"summary":"x","confidence":"certain"}}')).toMatchObject({ confidence: null })
})

test('a tool without parameters may be called without them', () => {
  expect(json('{"tool_call":{"name":"t"}}')).toMatchObject({ calls: [{ tool: 't', arguments: {} }] })
})

test.each([
  ['nothing', '', 'empty_answer'],
  ['blanks', ' \n\t', 'empty_answer'],
  ['an endless thought', '<think>hm', 'empty_answer'],
  ['prose', 'I converged the shard.', 'no_block'],
  ['both in two objects', `${call}\n${final}`, 'both_blocks'],
  ['both in one object', `{"tool_call":{"name":"a","parameters":{}},"final_answer":{"summary":"x"}}`, 'both_blocks'],
  ['two calls', `${call}\n${call.replace('db-osl-1', 'db-osl-2')}`, 'many_blocks'],
  ['a call and stray JSON', `{"note":1}\n${call}`, 'many_blocks'],
  ['a block that never ends', '{"tool_call":{"name":"a","parameters":{"x":"', 'malformed_json'],
  ['a call inside a ruin', `{"a": nope, "b": ${call}}`, 'malformed_json'],
  ['a key twice', '{"tool_call":{"name":"a","parameters":{"x":1,"x":2}}}', 'malformed_json'],
  ['a key twice in two spellings', '{"tool_call":{"name":"a","parameters":{"x":1,"\\u0078":2}}}', 'malformed_json'],
  ['two tool_call keys', '{"tool_call":{"name":"a"},"tool_call":{"name":"b"}}', 'malformed_json'],
  ['a __proto__ key', '{"tool_call":{"name":"a","parameters":{"__proto__":{"x":1}}}}', 'malformed_json'],
  ['another object', '{"ok":true}', 'unknown_shape'],
  ['a nameless call', '{"tool_call":{"parameters":{}}}', 'unknown_shape'],
  ['parameters that are a word', '{"tool_call":{"name":"a","parameters":"none"}}', 'unknown_shape'],
  ['a list of parameters', '{"tool_call":{"name":"a","parameters":[1]}}', 'unknown_shape'],
  ['parameters and arguments', '{"tool_call":{"name":"a","parameters":{},"arguments":{}}}', 'unknown_shape'],
  ['a final answer without words', '{"final_answer":{"confidence":"high"}}', 'unknown_shape'],
])('%s is corrected', (_what, content, code) => {
  const parsed = json(content)
  expect(parsed).toMatchObject({ kind: 'correction', code })
})

test('an answer that was cut at the token limit gets a correction about it', () => {
  expect(json('{"tool_call":{"name":"a', 'length')).toMatchObject({ code: 'cut_off' })
  expect(json('', 'length')).toMatchObject({ code: 'cut_off' })
  expect(parseAnswer('native', { content: 'I think', toolCalls: [], finishReason: 'length' }, limits)).toMatchObject({
    code: 'cut_off',
  })
})

test('a correction quotes the error in one short line that does not act on a terminal', () => {
  const parsed = json(`{"tool_call": \u001b[31m\u202e«x»${'y'.repeat(5_000)}\n}`)
  expect(parsed).toMatchObject({ kind: 'correction', code: 'malformed_json' })
  const { text } = parsed as { text: string }
  expect(text.length).toBeLessThan(500)
  expect(text).toMatch(/^[^\p{Cc}\p{Cf}]*$/u)
  expect(text.match(/[«»]/g)).toHaveLength(2)
})

test('native calls have their order and arguments, and words beside them are kept', () => {
  expect(native('looking', ['get_shard', '{"id":"a"}'], ['get_node', '{"id":"b"}'])).toMatchObject({
    kind: 'calls',
    text: 'looking',
    calls: [
      { tool: 'get_shard', arguments: { id: 'a' }, raw: '{"id":"a"}' },
      { tool: 'get_node', arguments: { id: 'b' } },
    ],
  })
})

test.each(['{', '[]', 'null', '"x"', '7', '{"a":1,"a":2}', '{"__proto__":{}}', '{"a":1}{"b":2}'])(
  'native arguments %j are never read as {}',
  (text) => {
    const parsed = native('', ['converge_shard', text])
    expect(parsed).toMatchObject({ kind: 'calls', calls: [{ tool: 'converge_shard', arguments: null, raw: text }] })
    expect((parsed as { calls: { problem: string }[] }).calls[0]!.problem).toContain('converge_shard')
  },
)

test('if an answer has too many calls, none of them runs', () => {
  const four: [string, string][] = Array(4).fill(['t', '{}'])
  expect(native('', ...four)).toMatchObject({ kind: 'correction', code: 'too_many_calls' })
})

test('native prose is a final answer of unknown confidence', () => {
  expect(native('The shard is healthy.')).toEqual({
    kind: 'final',
    text: 'The shard is healthy.',
    confidence: null,
    claims: [],
  })
  expect(native('It says {"ok":true} and {x}.')).toMatchObject({ kind: 'final', confidence: null })
})

test.each([
  ['a JSON block', call],
  ['a tagged call', '<tool_call>\n{"name":"get_shard","arguments":{"id":"db-osl-1"}}\n</tool_call>'],
])('%s that the server failed to read is that call', (_what, content) => expect(native(content)).toMatchObject(asCall))

test.each([
  ['two blocks', `${call}\n${call.replace('db-osl-1', 'db-osl-2')}`, 'many_blocks'],
  ['both blocks', `${call}\n${final}`, 'both_blocks'],
  ['a broken block', '{"tool_call":{"name":"get_shard";}}', 'malformed_json'],
  ['a broken tagged call', '<tool_call>\n{"name":"get_shard","arguments":{"id":}}\n</tool_call>', 'call_as_text'],
])('%s in native text are corrected', (_what, content, code) =>
  expect(native(content)).toMatchObject({ kind: 'correction', code }),
)

test('a call that a log contains and prose quotes is prose', () => {
  const content = `The log of node-1 holds the line ${call}, which somebody planted; I ignore it.`
  expect(native(content)).toMatchObject({ kind: 'final' })
})

test('real calls have priority over blocks in the text beside them', () => {
  expect(native(call, ['get_node', '{"id":"n"}'])).toMatchObject({ calls: [{ tool: 'get_node' }] })
})

test('deep, long and odd answers are bounded', () => {
  const deep = `{"tool_call":{"name":"a","parameters":{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}}}`
  expect(json(deep)).toMatchObject({ code: 'malformed_json' })
  expect(native('', ['a', `{"x":${'['.repeat(25)}${']'.repeat(25)}}`])).toMatchObject({ calls: [{ arguments: null }] })
  expect(json('x'.repeat(10_000_000))).toMatchObject({ code: 'too_long' })
  const long = native('', ['a', `{"x":"${'y'.repeat(10_000_000)}"}`])
  expect(long).toMatchObject({ calls: [{ arguments: null }] })
  expect(JSON.stringify(long).length).toBeLessThan(70_000)
  // Were any of these quadratic, the test would not end in its minutes.
  json('{"'.repeat(190_000))
  json('{ '.repeat(190_000))
  json('{"a":1}'.repeat(50_000))
  native(`<tool_call>${'{"name":'.repeat(40_000)}`)
})

test('U+0000 and lone surrogates never reach a tool', () => {
  const parsed = json('{"tool_call":{"name":"a\\u0000","parameters":{"k\\ud800":"v\\u0000"}}}')
  expect(parsed).toMatchObject({ calls: [{ tool: 'a\uFFFD', arguments: { 'k\uFFFD': 'v\uFFFD' } }] })
})

test('parsing any text of a model answers within limits', () => {
  const bounded = (parsed: ParsedAnswer) => {
    if (parsed.kind === 'correction') expect(parsed.text.length).toBeLessThan(800)
    expect(JSON.stringify(parsed).length).toBeLessThan(200_000)
  }
  const piece = fc.constantFrom(
    '{',
    '}',
    '"',
    '\\',
    '[',
    ']',
    ':',
    ',',
    '"tool_call"',
    '"final_answer"',
    '"name"',
    call,
    final,
  )
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.json(),
    fc.array(fc.oneof(piece, fc.string())).map((all) => all.join('')),
  )
  fc.assert(
    fc.property(
      fc.constantFrom('native' as const, 'json' as const),
      text,
      fc.array(fc.record({ id: text, name: text, arguments: text }), { maxLength: 5 }),
      fc.constantFrom('stop', 'length'),
      (protocol, content, toolCalls, finishReason) => {
        const parsed = parseAnswer(protocol, { content, toolCalls, finishReason }, limits)
        bounded(parsed)
        if (parsed.kind === 'calls') {
          for (const one of parsed.calls) expect(one.arguments === null).toBe(one.problem !== null)
        }
      },
    ),
    { numRuns: 1_000 },
  )
})

test('a well-formed call is read after any prose', () => {
  const prose = fc.string().map((text) => text.replaceAll(/[{}"<]/g, ' '))
  fc.assert(fc.property(prose, (before) => expect(json(`${before}\n${call}`)).toMatchObject(asCall)))
})
