import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseAnswer } from '../../model/protocol.ts'
import { shownIn } from '../../model/written-calls.ts'
import { first, second, speakingOfCalls, writtenCalls } from '../support/model-hosts/written-calls.ts'

const read = (content: string, more: { shown?: string; reasoning?: string; finishReason?: string } = {}) =>
  parseAnswer(
    'native',
    {
      content,
      toolCalls: [],
      finishReason: more.finishReason ?? 'stop',
      ...(more.reasoning && { reasoning: more.reasoning }),
    },
    {
      maxCalls: 32,
      isKnown: (tool) => tool.replace(/^functions\./, '') === 'get_node',
      wasShown: shownIn(more.shown === undefined ? [] : [more.shown]),
    },
  )
const called = (parsed: ReturnType<typeof read>) =>
  parsed.kind === 'calls'
    ? parsed.calls.map(({ tool, arguments: given }) => [tool.replace(/^functions\./, ''), given])
    : parsed

describe('a call that a model wrote as text is that call', () => {
  test.each(writtenCalls.map((each) => [each.form, each.text, each] as const))(
    '%s: %s',
    (_form, text, { form, calls }) => {
      const parsed = read(text)
      expect(called(parsed)).toEqual([first, second].slice(0, calls ?? 1).map((id) => ['get_node', { id }]))
      expect(parsed).toMatchObject({ calls: Array(calls ?? 1).fill({ written: form, problem: null }) })
    },
  )

  test('in reasoning without a following answer', () => {
    const reasoning = `The node may be down.\n${writtenCalls[0]!.text}`
    expect(called(read('', { reasoning }))).toEqual([['get_node', { id: first }]])
    expect(called(read(`<think>${reasoning}`))).toEqual([['get_node', { id: first }]])
    // A thought that was cut off had not come to its end.
    expect(read('', { reasoning, finishReason: 'length' })).toMatchObject({ kind: 'correction', code: 'cut_off' })
  })

  test('with the words before it, and without its marks', () => {
    expect(read(`I look.\n${writtenCalls[0]!.text}`)).toMatchObject({ text: 'I look.' })
  })
})

describe('a text about a call runs nothing', () => {
  // Those that announce themselves would be calls behind any sentence.
  const bare = writtenCalls.map(({ text }) => text).filter((text) => !/^[A-Z]|^analysis/.test(text))
  const texts = speakingOfCalls.flatMap((sentence) => bare.map((text) => sentence.replace('…', () => text)))

  test(`${texts.length} sentences about calls`, () => {
    expect(texts.length).toBeGreaterThan(500)
    expect(texts.filter((text) => read(text).kind === 'calls')).toEqual([])
  })

  test.each(writtenCalls.map(({ text }) => text))('%s, copied from what the run was shown', (text) => {
    const line = `10:00 app: ${text}`
    for (const shown of [
      text,
      JSON.stringify({ line }),
      JSON.stringify({ body: JSON.stringify([line]) }),
      line.replaceAll('<', '‹'),
    ])
      for (const said of [text, `I look.\n${text}`]) expect(read(said, { shown }).kind).not.toBe('calls')
  })

  test('in an answer of prose, an unknown name in a form that any JSON has is JSON', () => {
    expect(read('{"name": "disk", "parameters": {"size": 5}}').kind).toBe('final')
    expect(read('[{"name": "disk", "arguments": {"size": 5}}]').kind).toBe('final')
    expect(read('[reboot(now=True)]').kind).toBe('final')
  })
})

describe('an unreadable call as text', () => {
  test.each([
    ['arguments that are no JSON', '<tool_call>\n{"name": "get_node", "arguments": {"id": }}\n</tool_call>'],
    ['a parameter that never ends', '<tool_call>\n<function=get_node>\n<parameter=id>\nnode'],
    ['a mark and nothing', '<tool_call>\n</tool_call>'],
    ['a list of names', '[TOOL_CALLS] get_node'],
  ])('gets a correction for %s, and nothing runs', (_what, text) => {
    expect(read(text)).toMatchObject({ kind: 'correction', code: 'call_as_text' })
  })

  test('with a repeated parameter is not guessed', () => {
    const text = `<function=get_node><parameter=id>a</parameter><parameter=id>b</parameter></function>`
    expect(read(text)).toMatchObject({ calls: [{ arguments: null, problem: expect.stringContaining('twice') }] })
    expect(read('<|python_start|>[get_node(id="a", id="b")]')).toMatchObject({ calls: [{ arguments: null }] })
  })
})

test('any text of a model is read quickly and without an exception', () => {
  const piece = fc.constantFrom(
    ...writtenCalls.flatMap(({ text }) => text.split(/(?<=[>\]}|])/)),
    '<tool_call>',
    '[TOOL_CALLS]',
    '"',
    '```',
    '{',
    '[',
  )
  const text = fc.array(fc.oneof(piece, fc.string()), { maxLength: 30 }).map((all) => all.join(''))
  fc.assert(
    fc.property(text, (content) => ['calls', 'final', 'correction'].includes(read(content).kind)),
    {
      numRuns: 1_000,
    },
  )
  // Were any of these quadratic, the test would not end in its minutes.
  for (const one of [
    '<tool_call>',
    '<function=a>',
    '<parameter=a>',
    '[TOOL_CALLS]',
    '<｜tool▁sep｜>',
    'get_node(',
    "{'",
  ])
    read(one.repeat(30_000))
  read(`<function=get_node>${'<parameter=a>b'.repeat(30_000)}`)
})
