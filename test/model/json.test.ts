import { expect, test } from '@jest/globals'
import { withoutThoughts } from '../../model/thoughts.ts'

const call = '{"tool_call":{"name":"get_shard","parameters":{"id":"db-osl-1"}}}'

test.each([
  ['before the answer', `<think>maybe</think>${call}`, call],
  ['in the middle', 'I look. <think>at {"tool_call": no</think>Done.', 'I look. Done.'],
  ['twice', '<think>a</think>x<think>b</think>y', 'xy'],
  ['never closed', 'Said. <think>and then {"tool_call"', 'Said. '],
  ['opened by the template', `drafts ${call} and doubts</think>\n${call}`, `\n${call}`],
  ['with a draft of a whole call', `<think>${call}</think>no`, 'no'],
  ['with its own mark in it', '<think>a <think> b</think>c', 'c'],
  ['in capitals', '<THINK>a</THINK>b', 'b'],
  ["in Mistral's brackets", '[THINK]a[/THINK]b', 'b'],
  ["in Kimi's marks", '◁think▷a◁/think▷b', 'b'],
  ["in Seed's marks", '<seed:think>a</seed:think>b', 'b'],
  ["in Cohere's marks", '<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>', 'b'],
  [
    'in channels',
    '<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>',
    'b',
  ],
])('reasoning %s is no part of the answer', (_where, text, rest) => {
  expect(withoutThoughts(text)).toBe(rest)
  expect(withoutThoughts(rest)).toBe(rest)
})

test.each([
  'nothing of the kind',
  '{"final_answer":{"summary":"the log says <think> and </think>","confidence":"low"}}',
  `${call} `,
  'a < b and [b] > a, says <thinker>',
])('text of a model about marks stays: %s', (text) => expect(withoutThoughts(text)).toBe(text))

test('a text full of marks takes no noticeable time', () => {
  const text = '<think>{"a":"</think>"}'.repeat(10_000)
  expect(withoutThoughts(text).length).toBeLessThan(text.length)
})
